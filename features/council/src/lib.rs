//! The council: several models verify work, and the outcome is calculated (consensus, quorum).
//!
//! The tools are here, and what they use of the host; who is asked is in
//! `members`. The rest knows nothing of it: what a request may say
//! ([`request`]), which files it means ([`snapshot`]), the fence around what others wrote ([`fence`]), what is asked
//! ([`prompt`]) and answered ([`review`]), the way from there to a verdict ([`deliberation`], [`decision`]), and what is
//! left of it ([`transcript`], [`records`]).

use std::cell::RefCell;
use std::time::{Duration, UNIX_EPOCH};

use conductor_feature::json::{answer, register};
use conductor_feature::store::Table;
use conductor_feature::{
    Context, Error, Invocation, Lifecycle, ReadOnlyTools, Reader, clock, files, git, models, programs, random, signing,
    tool_registrar,
};
use serde_json::Value;

pub mod changes;
pub mod compare;
pub mod decision;
pub mod deliberation;
mod digest;
pub mod families;
pub mod fence;
mod hex;
mod members;
pub mod order;
pub mod panel;
pub mod prompt;
pub mod records;
pub mod request;
pub mod result;
pub mod review;
pub mod snapshot;
pub mod transcript;

use compare::{Compared, compare};
use deliberation::{Case, Granted, Occasion, consensus};
use members::{Access, GrantedPanel, family_of};
use request::{Audit, Check, Compare, Consensus, Gate, Request, Review, Verify, Wrong};
use result::{Agreed, Bound, Verification};
use snapshot::{Entry, Kind, Tree};
use transcript::{Checked, Seal, Transcript, Validity};

/// The purpose of the repository that is reviewed.
const PURPOSE: &str = "work";
/// The purpose of the folder that transcripts are written to.
const TRANSCRIPTS: &str = "transcripts";
/// Bytes of randomness for markers.
const SECRET: u32 = 32;
/// Bytes of randomness in a verification's id.
const ID: u32 = 16;

struct Council;

/// What `install` opened.
#[derive(Default)]
struct State {
    members: Access,
    /// Or why it can't be opened; `None` before `install`.
    repository: Option<Result<git::Repository, Error>>,
    /// Without one no records are kept.
    table: Option<Table>,
    /// Without one no transcripts are written.
    folder: Option<Folder>,
}

impl State {
    /// Who can be asked.
    fn members(&self) -> Result<&Access, Error> {
        if self.members.is_none() { Err(not_granted("model or program")) } else { Ok(&self.members) }
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

impl Lifecycle for Council {
    fn install(ctx: &Context) -> Result<(), Error> {
        let tools = tool_registrar::Registrar::open(ctx)?;
        register::<Verify, Verification>(&tools, "council_verify")?;
        register::<Review, Verification>(&tools, "council_review")?;
        register::<Gate, Verification>(&tools, "council_gate")?;
        register::<Consensus, Agreed>(&tools, "council_consensus")?;
        register::<Audit, records::Found>(&tools, "council_audit")?;
        register::<Check, Checked>(&tools, "council_check")?;
        register::<Compare, Compared>(&tools, "council_compare")?;
        let members = Access { models: models::Access::open(ctx).ok(), programs: programs::Access::open(ctx).ok() };
        let table = Table::open(ctx).ok();
        let folder = files::Folder::open(ctx, TRANSCRIPTS).ok().map(Folder);
        STATE.set(State { members, repository: Some(git::Repository::open(ctx, PURPOSE)), table, folder });
        Ok(())
    }
}

fn invalid(wrong: &Wrong) -> Error {
    Error::Invalid(wrong.to_string())
}

fn text(error: &Error) -> String {
    match error {
        Error::Denied(text)
        | Error::Unavailable(text)
        | Error::Invalid(text)
        | Error::Exhausted(text)
        | Error::Failed(text) => text.clone(),
    }
}

/// A commit of the granted repository.
struct Commit(git::Snapshot);

impl Tree for Commit {
    fn names(&self, folder: &str) -> Result<Vec<Entry>, String> {
        let entry = |entry: git::Entry| Entry {
            name: entry.name,
            kind: match entry.kind {
                git::Kind::File => Kind::File,
                git::Kind::Folder => Kind::Folder,
                git::Kind::Link => Kind::Link,
                git::Kind::Module => Kind::Module,
            },
        };
        let names = self.0.names(folder).map_err(|error| text(&error))?;
        Ok(names.into_iter().map(entry).collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        self.0.read(path).map_err(|error| text(&error))
    }
}

/// Now, under a random name.
fn occasion() -> Occasion {
    let id = hex::hex(&random::bytes(ID));
    let now = UNIX_EPOCH + Duration::from_millis(clock::now());
    Occasion { verification_id: id, timestamp: humantime::format_rfc3339_seconds(now).to_string() }
}

/// The table, for records.
struct Shelf<'t>(&'t Table);

impl records::Shelf for Shelf<'_> {
    fn keys(&self) -> Result<Vec<String>, String> {
        self.0.keys(records::PREFIX, None).map_err(|error| text(&error))
    }

    fn get(&self, key: &str) -> Result<Option<Vec<u8>>, String> {
        self.0.get(key).map_err(|error| text(&error))
    }

    fn set(&self, key: &str, value: &[u8]) -> Result<(), String> {
        self.0.set(key, value).map_err(|error| text(&error))
    }

    fn delete(&self, key: &str) -> Result<(), String> {
        self.0.delete(key).map(drop).map_err(|error| text(&error))
    }
}

/// The folder for transcripts.
struct Folder(files::Folder);

impl transcript::Folder for Folder {
    fn write(&self, path: &str, bytes: &str) -> Result<(), String> {
        self.0.write(path, bytes.as_bytes()).map_err(|error| text(&error))
    }

    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        match self.0.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Error::Unavailable(_)) => Ok(None),
            Err(error) => Err(text(&error)),
        }
    }

    fn names(&self, path: &str) -> Result<Vec<String>, String> {
        let names = self.0.names(path).map_err(|error| text(&error))?;
        Ok(names.into_iter().map(|entry| entry.name).collect())
    }
}

/// The host's key.
struct HostKey;

impl Seal for HostKey {
    fn sign(&self, statement: &str) -> Result<(Vec<u8>, Vec<u8>), String> {
        let signature = signing::sign(statement.as_bytes()).map_err(|error| text(&error))?;
        Ok((signature.key, signature.value))
    }

    fn validity(&self, statement: &str, key: &[u8], value: &[u8]) -> Validity {
        let signature = signing::Signature { key: key.to_owned(), value: value.to_owned() };
        match signing::verify(statement.as_bytes(), &signature) {
            Ok(signing::Validity::ThisHost) => Validity::ThisHost,
            Ok(signing::Validity::AnotherHost) => Validity::AnotherHost,
            Ok(signing::Validity::Invalid) | Err(_) => Validity::Invalid,
        }
    }
}

/// The transcript of a verification, in the granted folder if there is one.
fn transcript<'s>(state: &'s State, occasion: &Occasion) -> Transcript<'s> {
    let folder = state.folder.as_ref().map(|folder| folder as &dyn transcript::Folder);
    Transcript::new(folder, &occasion.timestamp, &occasion.verification_id)
}

/// Signs a result, and puts it on record where there is a place for it.
fn finish<R: Bound>(state: &State, id: &str, transcript: Transcript<'_>, mut result: R) -> R {
    let finished = transcript.finish(&result, &HostKey);
    result.bind(&finished);
    if let Some(table) = &state.table {
        // A verdict stands without its record: what the record would be bound to is in it.
        let _ = records::keep(&Shelf(table), clock::now(), id, finished.files);
    }
    result
}

fn not_granted(what: &str) -> Error {
    Error::Denied(format!("no {what} was granted; see [features.council.grants]"))
}

/// Verifies work at a commit.
fn verify(request: Result<Request, Wrong>, invoked: &Invocation, host: &Reader) -> Result<Verification, Error> {
    let request = request.map_err(|wrong| invalid(&wrong))?;
    let mut families = families::of_configuration(&host.config()?);
    STATE.with_borrow(|state| {
        let panel = GrantedPanel::new(state.members()?, invoked);
        let repository = match &state.repository {
            Some(Ok(repository)) => repository,
            Some(Err(Error::Denied(_))) | None => return Err(not_granted("repository")),
            Some(Err(error)) => return Err(error.clone()),
        };
        let commit = Commit(repository.at(&request.snapshot_id)?);
        let id = commit.0.commit();
        let base = request.base.as_ref().map(|base| repository.at(base)).transpose()?.map(Commit);
        let base = base.as_ref().map(|base| (base.0.commit(), base));
        let names = state.members.names();
        families.extend(names.iter().filter_map(|name| Some((name.clone(), family_of(name)?.to_owned()))));
        let granted = Granted { names, families };
        let case = Case::prepare(request, (id, &commit), base, &granted, &random::bytes(SECRET));
        let occasion = occasion();
        let (id, mut transcript) = (occasion.verification_id.clone(), transcript(state, &occasion));
        let case = case.map_err(|wrong| invalid(&wrong))?;
        let result = case.verify(&panel.beside(case.files()), occasion, &mut transcript);
        Ok(finish(state, &id, transcript, result))
    })
}

fn agree(asked: Consensus, invoked: &Invocation) -> Result<Agreed, Error> {
    let question = asked.checked().map_err(|wrong| invalid(&wrong))?;
    STATE.with_borrow(|state| {
        let panel = GrantedPanel::new(state.members()?, invoked);
        let occasion = occasion();
        let (id, mut transcript) = (occasion.verification_id.clone(), transcript(state, &occasion));
        let secret = random::bytes(SECRET);
        let agreed = consensus(question, &state.members.names(), &secret, &panel, occasion, &mut transcript);
        Ok(finish(state, &id, transcript, agreed.map_err(|wrong| invalid(&wrong))?))
    })
}

fn audit(asked: &Audit) -> Result<records::Found, Error> {
    STATE.with_borrow(|state| {
        let table = state.table.as_ref().ok_or_else(|| not_granted("store"))?;
        records::find(&Shelf(table), asked.verification_id.as_deref(), &HostKey).map_err(Error::Invalid)
    })
}

fn check(asked: &Check) -> Result<Checked, Error> {
    let path = transcript::path_of(&asked.path).map_err(|wrong| invalid(&wrong))?;
    STATE.with_borrow(|state| {
        let folder = state.folder.as_ref().ok_or_else(|| not_granted("folder for transcripts"))?;
        transcript::check(folder, &path, &HostKey, asked.public_key.as_deref()).map_err(Error::Invalid)
    })
}

/// The result of a verification: of a record by its id, or of a transcript by its path.
fn result_of(state: &State, place: &str, named: &str) -> Result<Value, Error> {
    let text = if named.contains('/') {
        let path = transcript::path_of(named).map_err(|wrong| invalid(&wrong))?;
        let folder = state.folder.as_ref().ok_or_else(|| not_granted("folder for transcripts"))?;
        let bytes =
            transcript::Folder::read(folder, &format!("{path}/{}", transcript::RESULT)).map_err(Error::Invalid)?;
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    } else {
        let table = state.table.as_ref().ok_or_else(|| not_granted("store"))?;
        records::files(&Shelf(table), place, named).map_err(Error::Invalid)?.remove(transcript::RESULT)
    };
    let text = text.ok_or_else(|| Error::Invalid(format!("{place} = {named:?}: there is no result")))?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Invalid(format!("{place} = {named:?}: its result is not valid: {error}")))
}

fn compared(asked: &Compare) -> Result<Compared, Error> {
    let [reference, result] = &asked.verifications[..] else {
        let problem = format!("verifications: {} are named; two are allowed", asked.verifications.len());
        return Err(Error::Invalid(problem));
    };
    STATE.with_borrow(|state| {
        let reference = result_of(state, "verifications[0]", reference)?;
        Ok(compare(&reference, &result_of(state, "verifications[1]", result)?))
    })
}

impl ReadOnlyTools for Council {
    fn call(name: String, args: String, invoked: &Invocation, host: &Reader) -> Result<String, Error> {
        match name.as_str() {
            "council_verify" => answer(&args, |asked: Verify| verify(Request::try_from(asked), invoked, host)),
            "council_review" => answer(&args, |asked: Review| verify(Request::try_from(asked), invoked, host)),
            "council_gate" => answer(&args, |asked: Gate| verify(Request::try_from(asked), invoked, host)),
            "council_consensus" => answer(&args, |asked: Consensus| agree(asked, invoked)),
            "council_audit" => answer(&args, |asked: Audit| audit(&asked)),
            "council_check" => answer(&args, |asked: Check| check(&asked)),
            "council_compare" => answer(&args, |asked: Compare| compared(&asked)),
            _ => Err(Error::Invalid(format!("there is no tool {name}"))),
        }
    }
}

conductor_feature::feature!(Council, "../feature.toml", [read_only_tools]);
