//! Transcripts: what was asked and said, as files, each bound to the result by its digest, and the result by a signature.
//!
//! ```text
//! .council/logs/2025-12-28T10-30-00-ID/
//!     request.json  stage1.json  stage2.json  stage3.json     as soon as each is there
//!     result.json       the result, with the SHA-256 of those above
//!     signature.json    the host's signature of result.json's SHA-256
//! ```
//!
//! [`check`] finds what was altered in one afterwards.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::sha256;
use crate::hex::{hex, unhex};
use crate::request::Wrong;
use crate::result::Stage;

/// Where transcripts are, below the folder that was granted.
pub const FOLDER: &str = ".council/logs";
/// The file with what was asked.
pub const REQUEST: &str = "request.json";
/// The file with the result.
pub const RESULT: &str = "result.json";
/// The file with the signature.
pub const SIGNATURE: &str = "signature.json";

/// All files of a transcript.
const FILES: [&str; 6] =
    [REQUEST, file_of(Stage::Reviews), file_of(Stage::Rankings), file_of(Stage::Verdict), RESULT, SIGNATURE];

/// The file with what was answered in a stage.
pub const fn file_of(stage: Stage) -> &'static str {
    match stage {
        Stage::Reviews => "stage1.json",
        Stage::Rankings => "stage2.json",
        Stage::Verdict => "stage3.json",
    }
}

/// A folder that transcripts are written to and read from. Paths have `/` between names.
pub trait Folder {
    /// Writes a file, and makes the folders on its way.
    ///
    /// # Errors
    /// Why it can't be written.
    fn write(&self, path: &str, text: &str) -> Result<(), String>;
    /// A file; `None` if it is not there.
    ///
    /// # Errors
    /// Why it can't be read.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String>;
    /// The names of everything in a folder.
    ///
    /// # Errors
    /// Why it can't be listed.
    fn names(&self, path: &str) -> Result<Vec<String>, String>;
}

/// What a signature is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// It is by this host.
    ThisHost,
    /// It is by another one, whose key stands with it.
    AnotherHost,
    /// It is not a transcript.
    Invalid,
}

/// The host's key, for what the council states.
pub trait Seal {
    /// Signs a statement: the public key (32 bytes), and the signature (64 bytes).
    ///
    /// # Errors
    /// Why it can't be signed.
    fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String>;
    /// What the signature `value` of a statement by `key` is worth.
    fn validity(&self, statement: &str, key: &[u8], value: &[u8]) -> Validity;
}

/// The signature of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// SHA-256 of the result as `result.json` has it: what is signed is these 64 digits.
    pub result_sha256: String,
    /// The host's public key (Ed25519), 64 hexadecimal digits.
    pub public_key: String,
    /// The signature, 128 hexadecimal digits.
    pub signature: String,
}

impl Signature {
    fn of(seal: &impl Seal, result: &str) -> Result<Self, String> {
        let result_sha256 = sha256(result.as_bytes());
        let (key, value) = seal.sign(&result_sha256)?;
        Ok(Self { result_sha256, public_key: hex(&key), signature: hex(&value) })
    }

    fn validity(&self, seal: &impl Seal) -> Validity {
        match (unhex(&self.public_key), unhex(&self.signature)) {
            (Some(key), Some(value)) => seal.validity(&self.result_sha256, &key, &value),
            _ => Validity::Invalid,
        }
    }
}

/// JSON as transcripts have it: its digest is of this text.
pub fn rendered(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).map_or_else(|error| format!("\"{error}\""), |text| text + "\n")
}

/// A transcript that is being written.
pub struct Transcript<'f> {
    folder: Option<&'f dyn Folder>,
    path: String,
    files: BTreeMap<String, String>,
    problem: Option<String>,
}

impl<'f> Transcript<'f> {
    /// That of a verification, in a folder if there is one. `timestamp` is by RFC 3339, to the second.
    pub fn new(folder: Option<&'f dyn Folder>, timestamp: &str, id: &str) -> Self {
        let time = timestamp.trim_end_matches('Z').replace(':', "-");
        Self { folder, path: format!("{FOLDER}/{time}-{id}"), files: BTreeMap::new(), problem: None }
    }

    /// Adds a file. The first that can't be written is the last that is tried: what is there then is whole up to it.
    pub fn put(&mut self, name: &str, text: String) {
        if let (Some(folder), None) = (self.folder, &self.problem) {
            self.problem = folder.write(&format!("{}/{name}", self.path), &text).err();
        }
        self.files.insert(name.to_owned(), text);
    }

    /// Where it is; `None` without a folder.
    pub fn path(&self) -> Option<String> {
        self.folder.map(|_| self.path.clone())
    }

    /// Why it is not whole; `None` if it is.
    pub fn problem(&self) -> Option<String> {
        self.problem.clone()
    }

    /// The SHA-256 of each file.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.files.iter().map(|(name, text)| (name.clone(), sha256(text.as_bytes()))).collect()
    }

    /// Adds the result and its signature, if it can be signed. Gives all files, and the signature.
    pub fn finish(mut self, result: &impl Serialize, seal: &impl Seal) -> Finished {
        let text = rendered(result);
        let signature = Signature::of(seal, &text).ok();
        self.put(RESULT, text);
        if let Some(signature) = &signature {
            self.put(SIGNATURE, rendered(signature));
        }
        Finished { problem: self.problem, files: self.files, signature }
    }
}

/// A transcript that is written.
#[derive(Debug)]
pub struct Finished {
    /// Its files by their names.
    pub files: BTreeMap<String, String>,
    /// The signature of the result; `None` if the host could not sign.
    pub signature: Option<Signature>,
    /// Why it is not whole in its folder.
    pub problem: Option<String>,
}

/// Something that was altered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// The file, or the folder.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a check finds.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Checked {
    /// Whether all is as it was written.
    pub intact: bool,
    /// 0 if it is, else 1.
    pub exit_code: u8,
    /// What was altered, in the order in which one vouches for the next: signature, result, the other files by name.
    pub findings: Vec<Finding>,
    /// The folder, below the one that was granted.
    pub path: String,
    /// The verification, as the result says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verification_id: Option<String>,
    /// Its verdict, as the result says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// The key by which the result is signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

/// Where a transcript is, from what a request says: `.council/logs/TIME-ID`, or the last name alone.
///
/// # Errors
/// It leads elsewhere: nothing but transcripts is read.
pub fn path_of(asked: &str) -> Result<String, Wrong> {
    let wrong = |problem: &str| Err(Wrong::new(format!("path = {asked:?}"), problem));
    if asked.starts_with('/') {
        return wrong(
            "it is absolute, and transcripts are read below the folder that is granted for them; a path such as \
             \".council/logs/2026-01-01T00-00-00-ID\" is allowed",
        );
    }
    let names: Vec<&str> = asked.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    match &names[..] {
        [name] | [".council", "logs", name] if *name != ".." && *name != ".council" => Ok(format!("{FOLDER}/{name}")),
        _ => wrong("it names no transcript; a path such as \".council/logs/2026-01-01T00-00-00-ID\" is allowed"),
    }
}

/// Finds what was altered in the transcript at `path`. `expected` is the public key, in hexadecimal digits, of another host
/// that is believed as this one is.
///
/// # Errors
/// There is no such folder, or it can't be read.
pub fn check(folder: &dyn Folder, path: &str, seal: &impl Seal, expected: Option<&str>) -> Result<Checked, String> {
    let there: BTreeSet<String> = folder.names(path)?.into_iter().collect();
    let mut files = BTreeMap::new();
    // What else is there was added, and is not read.
    for name in there.iter().filter(|name| FILES.contains(&name.as_str())) {
        if let Ok(Some(bytes)) = folder.read(&format!("{path}/{name}")) {
            files.insert(name.clone(), bytes);
        }
    }
    let mut checked = check_files(&files, seal, expected);
    let (mut findings, result) = (std::mem::take(&mut checked.findings), result_of(&files));
    for name in there.iter().filter(|name| !files.contains_key(*name)) {
        findings.push(finding(name, "it was added: a transcript has no such file"));
    }
    let written_to = result["transcript_path"].as_str().unwrap_or_default();
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    if !written_to.is_empty() && last(written_to) != last(path) {
        findings
            .push(finding(path, &format!("it was renamed, or another was put in its place: it was {written_to:?}")));
    }
    Ok(Checked {
        intact: findings.is_empty(),
        exit_code: u8::from(!findings.is_empty()),
        findings,
        path: path.to_owned(),
        ..checked
    })
}

fn finding(file: &str, problem: &str) -> Finding {
    Finding { file: file.to_owned(), problem: problem.to_owned() }
}

fn result_of(files: &BTreeMap<String, Vec<u8>>) -> Value {
    files.get(RESULT).and_then(|bytes| serde_json::from_slice(bytes).ok()).unwrap_or_default()
}

/// Finds what was altered in the files of a transcript.
pub fn check_files(files: &BTreeMap<String, Vec<u8>>, seal: &impl Seal, expected: Option<&str>) -> Checked {
    const ALTERED: &str = "it was altered: it is not what was written";
    const MISSING: &str = "it is missing";
    let (mut findings, mut public_key) = (Vec::new(), None);
    let signature = files.get(SIGNATURE).and_then(|bytes| {
        let signature: Signature = serde_json::from_slice(bytes).ok()?;
        // The same values in another form are not what was written.
        (rendered(&signature).as_bytes() == &bytes[..]).then_some(signature)
    });
    match (&signature, signature.as_ref().map(|signature| signature.validity(seal))) {
        (Some(_), Some(Validity::ThisHost)) => {}
        (Some(signature), Some(Validity::AnotherHost)) if expected == Some(&*signature.public_key) => {}
        (Some(signature), Some(Validity::AnotherHost)) => findings.push(finding(
            SIGNATURE,
            &format!(
                "it is by another host, whose key is {}; if you know that key, say so with `public_key`",
                signature.public_key
            ),
        )),
        _ if !files.contains_key(SIGNATURE) => findings.push(finding(SIGNATURE, MISSING)),
        _ => findings.push(finding(SIGNATURE, ALTERED)),
    }
    let is_signed = findings.is_empty();
    let result = files.get(RESULT).map(|bytes| sha256(bytes));
    match (&result, &signature) {
        (None, _) => findings.push(finding(RESULT, MISSING)),
        (Some(sha256), Some(signature)) if is_signed && *sha256 != signature.result_sha256 => {
            findings.push(finding(RESULT, ALTERED));
        }
        _ => {}
    }
    if let Some(signature) = &signature {
        public_key = Some(signature.public_key.clone());
    }
    let result = result_of(files);
    let written: BTreeMap<String, String> = serde_json::from_value(result["transcript"].clone()).unwrap_or_default();
    for (name, digest) in &written {
        match files.get(name) {
            None => findings.push(finding(name, MISSING)),
            Some(bytes) if sha256(bytes) != *digest => findings.push(finding(name, ALTERED)),
            Some(_) => {}
        }
    }
    if written.is_empty() && files.contains_key(RESULT) && !findings.iter().any(|one| one.file == RESULT) {
        findings.push(finding(RESULT, "it names no files of a transcript"));
    }
    let known = |name: &str| name == RESULT || name == SIGNATURE || written.contains_key(name);
    if !written.is_empty() {
        for name in files.keys().filter(|name| !known(name)) {
            findings.push(finding(name, "it was added: a transcript has no such file"));
        }
    }
    let text = |key: &str| result[key].as_str().map(str::to_owned);
    Checked {
        intact: findings.is_empty(),
        exit_code: u8::from(!findings.is_empty()),
        findings,
        path: text("transcript_path").unwrap_or_default(),
        verification_id: text("verification_id"),
        verdict: text("verdict"),
        public_key,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use serde_json::json;

    use super::*;

    /// A seal for tests: the key alone is needed to sign. The host's own is tested with a real one.
    struct Plain(&'static str);

    impl Seal for Plain {
        fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
            let value = sha256(format!("{} {statement}", self.0).as_bytes());
            Ok((self.0.as_bytes().to_vec(), value.into_bytes()))
        }

        fn validity(&self, statement: &str, key: &[u8], value: &[u8]) -> Validity {
            let by = |key: &str| sha256(format!("{key} {statement}").as_bytes()).into_bytes() == value;
            match std::str::from_utf8(key) {
                Ok(key) if by(key) && key == self.0 => Validity::ThisHost,
                Ok(key) if by(key) => Validity::AnotherHost,
                _ => Validity::Invalid,
            }
        }
    }

    #[derive(Default)]
    struct Memory(RefCell<BTreeMap<String, Vec<u8>>>);

    impl Folder for Memory {
        fn write(&self, path: &str, text: &str) -> Result<(), String> {
            if path.ends_with("stage2.json") && text.contains("no room") {
                return Err("the disk is full".to_owned());
            }
            self.0.borrow_mut().insert(path.to_owned(), text.as_bytes().to_owned());
            Ok(())
        }

        fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
            Ok(self.0.borrow().get(path).cloned())
        }

        fn names(&self, path: &str) -> Result<Vec<String>, String> {
            let below = format!("{path}/");
            Ok(self.0.borrow().keys().filter_map(|key| key.strip_prefix(&below)).map(str::to_owned).collect())
        }
    }

    fn written(folder: &Memory, second: &str) -> String {
        let mut transcript = Transcript::new(Some(folder), "2026-01-01T00:00:00Z", "ID");
        transcript.put(REQUEST, "{}\n".to_owned());
        transcript.put("stage1.json", "[1]\n".to_owned());
        transcript.put("stage2.json", second.to_owned());
        let result =
            json!({ "verdict": "pass", "transcript_path": transcript.path(), "transcript": transcript.digests() });
        let path = transcript.path().expect("there is a folder");
        let finished = transcript.finish(&result, &Plain("here"));
        assert_eq!(finished.problem.is_some(), second.contains("no room"));
        path
    }

    fn first(folder: &Memory, path: &str) -> Option<(String, String)> {
        let checked = check(folder, path, &Plain("here"), None).expect("it is there");
        checked.findings.into_iter().next().map(|one| (one.file, one.problem))
    }

    /// CNC-4, ADR-034 "Transcript Persistence", "Security Considerations"
    #[test]
    fn a_transcript_is_files_and_each_alteration_is_named() {
        let folder = Memory::default();
        let path = written(&folder, "[2]\n");
        assert_eq!(path, ".council/logs/2026-01-01T00-00-00-ID");
        assert_eq!(first(&folder, &path), None);
        let whole = folder.0.borrow().clone();
        for (name, bytes, problem) in [
            (SIGNATURE, None, "missing"),
            (SIGNATURE, Some("{}"), "altered"),
            (RESULT, None, "missing"),
            (RESULT, Some("{\"transcript\": {}}"), "altered"),
            (REQUEST, Some("{ }\n"), "altered"),
            ("stage1.json", None, "missing"),
            ("stage3.json", Some("[]"), "added"),
        ] {
            *folder.0.borrow_mut() = whole.clone();
            match bytes {
                Some(text) => folder.0.borrow_mut().insert(format!("{path}/{name}"), text.as_bytes().to_owned()),
                None => folder.0.borrow_mut().remove(&format!("{path}/{name}")),
            };
            let (file, why) = first(&folder, &path).expect("it is found");
            assert!(file == name && why.contains(problem), "{name} {bytes:?}: {file}: {why}");
        }
        let renamed = whole.iter().map(|(key, bytes)| (key.replace("-ID", "-OTHER"), bytes.clone())).collect();
        *folder.0.borrow_mut() = renamed;
        let path = path.replace("-ID", "-OTHER");
        assert_eq!(first(&folder, &path).map(|(file, _)| file), Some(path));
    }

    #[test]
    fn a_signature_of_another_host_counts_where_its_key_is_expected() {
        let folder = Memory::default();
        let path = written(&folder, "[2]\n");
        let there = Plain("there");
        let checked = check(&folder, &path, &there, None).expect("it is there");
        assert!(checked.findings[0].problem.contains("another host"), "{checked:?}");
        let key = checked.public_key.expect("a key");
        assert!(check(&folder, &path, &there, Some(&key)).expect("it is there").intact);
        assert!(!check(&folder, &path, &there, Some("00")).expect("it is there").intact);
    }

    #[test]
    fn what_can_not_be_written_is_said_and_nothing_follows_it() {
        let folder = Memory::default();
        let path = written(&folder, "no room");
        assert_eq!(folder.names(&path).expect("it is there"), [REQUEST, "stage1.json"]);
    }

    #[test]
    fn paths_are_below_the_folder_that_was_granted() {
        for path in ["./.council/logs/a/", "a", ".council/logs/a"] {
            assert_eq!(path_of(path).as_deref(), Ok(".council/logs/a"));
        }
        for wrong in ["/a", "..", "a/../b", "", ".", "a/b", ".council/logs", ".council/logs/..", ".council/other/a"] {
            assert!(path_of(wrong).is_err(), "{wrong}");
        }
    }
}
