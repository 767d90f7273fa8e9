//! Transcripts on a real disk, signed by a real key: what is altered in one is found, and named.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use conductor_council_tests::Member::{Babbles, Obeys};
use conductor_council_tests::{Commit, Member, Scripted, deliberated};
use conductor_services::error::ServiceError;
use conductor_services::files::GrantedFolder;
use conductor_services::signing::{self, Signature, Signer};
use council::review::Verdict;
use council::transcript::{self, Checked, Folder, RESULT, SIGNATURE, Seal, Transcript, Validity};
use serde_json::{Value, json};

const FEATURE: &str = "builtin:council";

/// A folder as the host grants it.
struct Granted(GrantedFolder);

fn text(error: ServiceError) -> String {
    error.to_string()
}

impl Folder for Granted {
    fn write(&self, path: &str, bytes: &str) -> Result<(), String> {
        self.0.write(path, bytes.as_bytes()).map_err(text)
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        match self.0.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(ServiceError::Unavailable(_)) => Ok(None),
            Err(error) => Err(text(error)),
        }
    }

    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        Ok(self.0.names(path).map_err(text)?.into_iter().map(|entry| entry.name).collect())
    }
}

/// The key of a home.
struct Key(Signer);

impl Seal for Key {
    fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
        let Signature { key, value } = self.0.sign(FEATURE, statement.as_bytes()).map_err(text)?;
        Ok((key, value))
    }

    fn validity(&self, statement: &str, key: &[u8], value: &[u8]) -> Validity {
        let signature = Signature { key: key.to_owned(), value: value.to_owned() };
        match self.0.validity(FEATURE, statement.as_bytes(), &signature) {
            signing::Validity::ThisHost => Validity::ThisHost,
            signing::Validity::AnotherHost => Validity::AnotherHost,
            signing::Validity::Invalid => Validity::Invalid,
        }
    }
}

/// A home and a project, which go away with the test.
struct Place {
    path: PathBuf,
    key: Key,
    granted: Granted,
}

impl Place {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("conductor-transcripts-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("home")).unwrap();
        fs::create_dir_all(path.join("project")).unwrap();
        let key = Key(Signer::of(&path.join("home")));
        let granted = Granted(GrantedFolder::open(&path.join("project"), true).unwrap());
        Self { path, key, granted }
    }

    /// Has a panel verify work, and gives where the transcript is.
    fn verified(&self, id: &str, members: &[Member]) -> (String, Value) {
        let commit = Commit::of(&[("src/a.rs", "fn a() {}\n")]);
        let args = json!({ "snapshot_id": "HEAD", "target_paths": ["src"] });
        let mut transcript = Transcript::new(Some(&self.granted), "2026-01-01T00:00:00Z", id);
        let result = deliberated(&Scripted::new(members), (&commit, None), args, id, &mut transcript).unwrap();
        let finished = transcript.finish(&result, &self.key);
        assert_eq!(finished.problem, None);
        (result.transcript_path.clone().unwrap(), serde_json::to_value(result).unwrap())
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path.join("project").join(path)
    }

    fn check(&self, path: &str) -> Checked {
        transcript::check(&self.granted, path, &self.key, None).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// CNC-4, ADR-034 "Transcript Persistence": the files of the decision record, and in the result the SHA-256 of each.
#[test]
fn a_verification_leaves_its_files_and_the_result_is_bound_to_them() {
    let place = Place::new("files");
    let (path, result) = place.verified("0a", &[Obeys; 3]);
    assert_eq!(path, ".council/logs/2026-01-01T00-00-00-0a");
    let names: BTreeSet<String> =
        fs::read_dir(place.at(&path)).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let all = ["request.json", RESULT, SIGNATURE, "stage1.json", "stage2.json", "stage3.json"];
    assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), all);
    let read =
        |name: &str| -> Value { serde_json::from_slice(&fs::read(place.at(&path).join(name)).unwrap()).unwrap() };
    assert_eq!(read("request.json")["paths"], json!(["src"]));
    assert_eq!([1, 2, 3].map(|stage| read(&format!("stage{stage}.json")).as_array().unwrap().len()), [3, 3, 1]);
    assert_eq!(read(RESULT), result, "the result that is returned, without its signature");
    let checked = place.check(&path);
    assert!(checked.intact && checked.exit_code == 0, "{checked:?}");
    assert_eq!((checked.verdict.as_deref(), checked.verification_id.as_deref()), (Some("pass"), Some("0a")));
    // Without a quorum the transcript is whole all the same.
    let (path, result) = place.verified("0b", &[Obeys, Babbles, Babbles]);
    assert_eq!((&result["verdict"], place.check(&path).intact), (&json!(Verdict::Unclear.as_str()), true));
}

/// Numbers that follow from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Alters a transcript at random, and gives what was done and the names of which one has to be found first.
fn altered(random: &mut Random, folder: &Path, others: &Path) -> (String, Vec<String>) {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut taken = names.remove(random.below(names.len()));
    let other = names.remove(random.below(names.len()));
    let file = folder.join(&taken);
    let bytes = fs::read(&file).unwrap();
    match random.below(8) {
        0 => {
            let (at, bit) = (random.below(bytes.len()), random.below(8));
            let mut flipped = bytes;
            flipped[at] ^= 1 << bit;
            fs::write(&file, flipped).unwrap();
            (format!("bit {bit} of byte {at} of {taken} flipped"), vec![taken])
        }
        1 => {
            fs::remove_file(&file).unwrap();
            (format!("{taken} removed"), vec![taken])
        }
        2 => {
            let name = format!("{}.bak", random.below(1000));
            fs::rename(&file, folder.join(&name)).unwrap();
            (format!("{taken} renamed to {name}"), vec![taken, name])
        }
        3 => {
            let second = fs::read(folder.join(&other)).unwrap();
            fs::write(folder.join(&other), bytes).unwrap();
            fs::write(&file, second).unwrap();
            (format!("{taken} and {other} swapped"), vec![taken, other])
        }
        4 => {
            let name = format!("stage{}.json", 4 + random.below(100));
            fs::write(folder.join(&name), "[]").unwrap();
            (format!("{name} added"), vec![name])
        }
        5 => {
            let text = String::from_utf8(fs::read(folder.join(RESULT)).unwrap()).unwrap();
            let edits = [
                ("\"verdict\": \"fail\"", "\"verdict\": \"pass\""),
                ("\"exit_code\": 1", "\"exit_code\": 0"),
                ("\"operation\": \"verify\"", "\"operation\": \"gate\""),
                ("\"panel\"", "\"Panel\""),
                ("  ", " "),
            ];
            let there: Vec<_> = edits.iter().filter(|(from, _)| text.contains(from)).collect();
            let (from, to) = there[random.below(there.len())];
            fs::write(folder.join(RESULT), text.replacen(from, to, 1)).unwrap();
            (format!("in the result, {from} became {to}"), vec![RESULT.to_owned()])
        }
        6 => {
            // Of another verification by the same host, and so with a digest and a signature that are right elsewhere.
            let theirs = fs::read(others.join(&taken)).unwrap();
            let is_other = theirs != bytes;
            fs::write(&file, theirs).unwrap();
            if !is_other {
                fs::write(&file, [&bytes[..], b"\n"].concat()).unwrap();
            }
            // A signature of another result does not fit this one: it is the result that is not what was signed.
            if taken == SIGNATURE {
                taken = RESULT.to_owned();
            }
            (format!("{taken} taken from another transcript"), vec![taken])
        }
        _ => {
            let mut cut = bytes;
            cut.truncate(random.below(cut.len()));
            fs::write(&file, cut).unwrap();
            (format!("{taken} cut off"), vec![taken])
        }
    }
}

/// CNC-7, ADR-034 "Security Considerations": whatever is altered, the check finds it, and names it first.
#[test]
fn each_of_many_random_alterations_is_found_and_named() {
    let place = Place::new("altered");
    let (path, _) = place.verified("0a", &[Obeys; 3]);
    let (other, _) = place.verified("0b", &[Obeys, Obeys, Obeys, Obeys]);
    let whole: BTreeMap<PathBuf, Vec<u8>> = fs::read_dir(place.at(&path))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|file| (file.clone(), fs::read(&file).unwrap()))
        .collect();
    let mut random = Random(34);
    for number in 0..250 {
        fs::remove_dir_all(place.at(&path)).unwrap();
        fs::create_dir_all(place.at(&path)).unwrap();
        whole.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
        assert!(place.check(&path).intact, "{number}: what is restored is whole");
        let (what, names) = altered(&mut random, &place.at(&path), &place.at(&other));
        let checked = place.check(&path);
        assert!(!checked.intact && checked.exit_code == 1, "{number}: {what} was not found");
        let first = &checked.findings[0].file;
        assert!(names.contains(first), "{number}: {what}, and {first} is named: {:?}", checked.findings);
    }
}

#[test]
fn a_whole_transcript_in_the_place_of_another_is_found() {
    let place = Place::new("replaced");
    let (path, _) = place.verified("0a", &[Obeys; 3]);
    let (other, _) = place.verified("0b", &[Obeys; 3]);
    fs::remove_dir_all(place.at(&path)).unwrap();
    fs::rename(place.at(&other), place.at(&path)).unwrap();
    let checked = place.check(&path);
    assert_eq!(checked.findings[0].file, path, "{checked:?}");
    // A folder within counts as added.
    let (path, _) = place.verified("0c", &[Obeys; 3]);
    fs::create_dir(place.at(&path).join("more")).unwrap();
    assert_eq!(place.check(&path).findings[0].file, "more");
}

/// One who has the files and no key can't make them fit.
#[test]
fn a_result_that_is_rewritten_with_all_its_digests_is_found() {
    let place = Place::new("rewritten");
    let (path, mut result) = place.verified("0a", &[Obeys; 3]);
    let stranger = Place::new("stranger");
    result["verdict"] = json!("fail");
    let text = transcript::rendered(&result);
    fs::write(place.at(&path).join(RESULT), &text).unwrap();
    assert_eq!(place.check(&path).findings[0].file, RESULT);
    // Signed anew, by a key that is not this host's.
    let forged = Transcript::new(Some(&stranger.granted), "2026-01-01T00:00:00Z", "0a").finish(&result, &stranger.key);
    fs::write(place.at(&path).join(SIGNATURE), &forged.files[SIGNATURE]).unwrap();
    let checked = place.check(&path);
    assert_eq!(checked.findings[0].file, SIGNATURE);
    assert!(checked.findings[0].problem.contains("another host"), "{checked:?}");
}
