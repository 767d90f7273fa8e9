//! The audit log and the secret store.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use super::finding::Finding;
use super::home::writable;
use conductor_audit::verify::Verdict;
use conductor_audit::{AuditError, Chain};
use conductor_host::host::status::Status;
use conductor_services::keychain::{Keychain, KeychainError};
use conductor_services::secret_store::{Place, SecretStore};
use conductor_stdx::plural::plural_u64;

/// From this size on doctor says that the audit can be put away, in bytes.
const LARGE_BYTES: u64 = 1 << 30;

/// How the audit and the keychain are.
#[derive(Debug)]
pub(super) struct RecordCheck {
    file: PathBuf,
    audit: Result<Verdict, AuditError>,
    /// Why nothing can be added to it.
    unwritable: Option<String>,
    /// How much of the disk it takes, in bytes.
    size: u64,
    /// The keychain of this system, and why it can't be used.
    keychain: (Keychain, Result<(), String>),
    /// Secrets whose values are in a keychain.
    secrets: Result<Vec<StoredSecret>, String>,
}

/// A secret that is kept in a keychain.
#[derive(Debug)]
struct StoredSecret {
    id: String,
    /// Why it is not there any more.
    lost: Option<KeychainError>,
}

impl RecordCheck {
    /// How it is in this home, where a host may run that says how it is.
    pub(super) fn gather(home: &Path, running: Option<&Status>) -> Self {
        let keychain = Keychain::of_this_system();
        let answers = keychain.answers().map_err(|error| error.to_string());
        let kept = |(id, place): (String, Place)| match place {
            Place::Keychain { r#in } => Some(StoredSecret { lost: r#in.get(&id).err(), id }),
            // A host has its own environment.
            Place::Environment { .. } => None,
        };
        let secrets = SecretStore::at(home).list().map_err(|error| error.to_string());
        let chain = Chain::at(home);
        Self {
            size: std::fs::metadata(chain.file()).map_or(0, |about| about.len()),
            file: chain.file(),
            audit: chain.verify(),
            unwritable: running
                .and_then(|status| status.audit.trouble.clone())
                .or_else(|| unwritable(&chain.file()).map(|error| error.to_string())),
            keychain: (keychain, answers),
            secrets: secrets.map(|list| list.into_iter().filter_map(kept).collect()),
        }
    }

    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = vec![self.audit()];
        let (keychain, answers) = &self.keychain;
        let needed = self.secrets.as_ref().is_ok_and(|secrets| !secrets.is_empty());
        findings.push(match answers {
            Ok(()) => Finding::ok("secrets", format!("the {keychain} answers")),
            Err(why) => Finding::missed(
                needed,
                "secrets",
                why.clone(),
                "unlock it, or keep keys in the host's environment: `conductor secret set ID --env VARIABLE`",
            ),
        });
        match &self.secrets {
            Err(why) => {
                findings.push(Finding::trouble("secrets", why.clone(), "move that file away, and set the secrets anew"))
            }
            Ok(secrets) => {
                for (id, error) in secrets.iter().filter_map(|kept| Some((&kept.id, kept.lost.as_ref()?))) {
                    let mend = format!("`conductor secret set {id}` keeps it again, or `conductor secret remove {id}`");
                    findings.push(Finding::trouble("secrets", format!("{id}: {error}"), mend));
                }
            }
        }
        findings
    }

    fn audit(&self) -> Finding {
        const ABOUT: &str = "audit";
        let file = self.file.display();
        match &self.audit {
            Err(error) => {
                Finding::trouble(ABOUT, error.to_string(), format!("make {file} and the folder readable for this user"))
            }
            Ok(Verdict { wrong: Some(wrong), .. }) => Finding::trouble(
                ABOUT,
                format!("the audit was altered: row {}: {}", wrong.number, wrong.why),
                format!("keep {file} and audit.head as evidence: move both away. A new chain begins with the next row"),
            ),
            Ok(_) if let Some(why) = &self.unwritable => Finding::trouble(
                ABOUT,
                format!("nothing can be recorded in the audit log: {why}"),
                format!(
                    "make room on the disk, and make {file} and the folder writable; until then no plan is applied"
                ),
            ),
            Ok(Verdict { rows, unknown, .. }) if unknown.is_empty() && self.size >= LARGE_BYTES => Finding::warning(
                ABOUT,
                format!(
                    "{}, as written, take {} MB of the disk",
                    plural_u64(rows.unsigned_abs(), "row"),
                    self.size / 1_000_000
                ),
                format!(
                    "with no host running, move {file} and audit.head beside it to where you keep such; a new chain begins"
                ),
            ),
            Ok(Verdict { rows, unknown, .. }) if unknown.is_empty() => {
                Finding::ok(ABOUT, format!("{}, as written", plural_u64(rows.unsigned_abs(), "row")))
            }
            Ok(Verdict { rows: 0, unknown, .. }) => Finding::ok(ABOUT, unknown.join("; ")),
            Ok(Verdict { rows, unknown, .. }) => Finding::warning(
                ABOUT,
                format!("{}, as written; {}", plural_u64(rows.unsigned_abs(), "row"), unknown.join("; ")),
                "the next row writes it again; if you did not remove it, find out who did",
            ),
        }
    }
}

/// Why nothing can be added to the audit: it can't be opened for that, or there is no room beside it. `None` if
/// it can, or is not there yet because its folder is not.
fn unwritable(file: &Path) -> Option<io::Error> {
    let folder = file.parent().filter(|folder| folder.is_dir())?;
    if file.exists()
        && let Err(error) = OpenOptions::new().append(true).open(file)
    {
        return Some(error);
    }
    writable(folder).err()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::super::finding::Level;
    use super::*;
    use conductor_audit::verify::InvalidRow;

    fn facts() -> RecordCheck {
        RecordCheck {
            file: "/h/audit.sqlite".into(),
            audit: Ok(Verdict { rows: 3, wrong: None, unknown: Vec::new() }),
            unwritable: None,
            size: 20_480,
            keychain: (a_keychain(), Ok(())),
            secrets: Ok(Vec::new()),
        }
    }

    /// A keychain that this system may have; it is not queried.
    fn a_keychain() -> Keychain {
        Keychain::value_variants()[0]
    }

    fn levels(facts: &RecordCheck) -> Vec<Level> {
        facts.judge().into_iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn an_altered_audit_is_trouble() {
        assert_eq!(levels(&facts()), [Level::Ok, Level::Ok]);
        let wrong = Some(InvalidRow { number: 2, why: "it is missing".into() });
        let audit = Ok(Verdict { rows: 1, wrong, unknown: Vec::new() });
        assert_eq!(levels(&RecordCheck { audit, ..facts() })[0], Level::Trouble);
        let audit = Err(AuditError::Unreadable { file: "f".into(), why: "w".into() });
        assert_eq!(levels(&RecordCheck { audit, ..facts() })[0], Level::Trouble);
        let noted = |rows| Ok(Verdict { rows, wrong: None, unknown: vec!["n".into()] });
        assert_eq!(levels(&RecordCheck { audit: noted(0), ..facts() })[0], Level::Ok);
        assert_eq!(levels(&RecordCheck { audit: noted(5), ..facts() })[0], Level::Warning);
    }

    #[test]
    fn one_row_is_no_rows() {
        let said = |rows| {
            let audit = Ok(Verdict { rows, wrong: None, unknown: Vec::new() });
            RecordCheck { audit, ..facts() }.judge().remove(0).what
        };
        assert_eq!((said(1).as_str(), said(2).as_str()), ("1 row, as written", "2 rows, as written"));
    }

    #[test]
    fn an_audit_that_cannot_be_written_is_trouble() {
        let full = RecordCheck { unwritable: Some("no space left".into()), ..facts() };
        assert_eq!(levels(&full)[0], Level::Trouble);
        assert!(full.judge()[0].what.contains("no space left"), "{full:?}");
    }

    #[test]
    fn whether_the_audit_can_be_written_is_tried_and_leaves_nothing() {
        let home = std::env::temp_dir().join(format!("cond-doctor-record-{}", std::process::id()));
        let file = home.join("audit.sqlite");
        assert!(unwritable(&file).is_none(), "no home, no audit");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::write(&file, "rows").unwrap();
        assert!(unwritable(&file).is_none());
        assert_eq!(std::fs::read(&file).unwrap(), b"rows", "it is left as it was");
        assert_eq!(std::fs::read_dir(&home).unwrap().count(), 1, "nothing is left behind");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        let found = unwritable(&file);
        std::fs::remove_dir_all(&home).unwrap();
        assert!(found.is_some());
    }

    #[test]
    fn an_audit_that_fills_the_disk_is_told() {
        let large = RecordCheck { size: 3 << 30, ..facts() };
        assert_eq!(levels(&large)[0], Level::Warning);
        assert!(format!("{:?}", large.judge()[0]).contains("3221 MB"), "{:?}", large.judge()[0]);
    }

    #[test]
    fn a_keychain_is_missed_where_a_secret_is_kept_there() {
        let keychain = (a_keychain(), Err("locked".to_owned()));
        assert_eq!(levels(&RecordCheck { keychain: keychain.clone(), ..facts() })[1], Level::Warning);
        let lost = || Some(KeychainError::Missing(a_keychain()));
        let gone = || Ok(vec![StoredSecret { id: "key".into(), lost: lost() }]);
        assert_eq!(
            levels(&RecordCheck { keychain, secrets: gone(), ..facts() })[1..],
            [Level::Trouble, Level::Trouble]
        );
        assert_eq!(levels(&RecordCheck { secrets: gone(), ..facts() })[1..], [Level::Ok, Level::Trouble]);
    }
}
