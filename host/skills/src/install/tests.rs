use super::*;

fn files(description: &str) -> Files {
    let text = format!("---\nname: lamp\ndescription: {description}\n---\nSee [more](references/more.md).\n");
    vec![
        ("SKILL.md".into(), text.into_bytes().into()),
        ("references/more.md".into(), b"More.".as_slice().into()),
        ("scripts/run.sh".into(), b"#!/bin/sh\n".as_slice().into()),
    ]
}

fn prepared(description: &str) -> Prepared {
    Prepared::new(Some("lamp"), files(description), "test".into()).unwrap()
}

#[test]
fn a_skill_is_put_there_whole_replaced_on_request_and_removed() {
    let (home, agent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let into = agent.path().join(".claude/skills");
    let (folder, outcome) = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    assert_eq!(outcome, Outcome::Installed);
    assert_eq!(Skill::load(&folder).unwrap().digest(), prepared("Lights.").skill().digest());
    assert_eq!(prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap().1, Outcome::Unchanged);
    let exists = prepared("Lasers.").install(home.path(), &into, false, &Caller::cli()).unwrap_err();
    assert!(matches!(exists, InstallError::Exists(_)), "{exists}");
    assert_eq!(prepared("Lasers.").install(home.path(), &into, true, &Caller::cli()).unwrap().1, Outcome::Replaced);
    assert_eq!(Skill::load(&folder).unwrap().description, "Lasers.");
    assert_eq!(receipts(home.path()).unwrap().len(), 1);
    // Nothing is left of what was there before, nor of the way.
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1);
    remove(home.path(), &into, "lamp", false, &Caller::cli()).unwrap();
    assert!(!folder.exists() && receipts(home.path()).unwrap().is_empty());
    assert!(matches!(remove(home.path(), &into, "lamp", false, &Caller::cli()), Err(InstallError::Missing(_))));
}

#[test]
fn what_is_installed_and_removed_is_in_the_audit() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("skills");
    prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    // The very same changes nothing.
    prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    prepared("Lasers.").install(home.path(), &into, false, &Caller::cli()).unwrap_err();
    prepared("Lasers.").install(home.path(), &into, true, &Caller::cli()).unwrap();
    remove(home.path(), &into, "lamp", false, &Caller::cli()).unwrap();
    let rows = Chain::at(home.path()).after(0, 100).unwrap();
    let told: Vec<_> = rows.iter().map(|row| format!("{} {} {}", row.kind, row.what, row.outcome)).collect();
    assert_eq!(
        told,
        [
            "skill install begun",
            "skill install done",
            "skill install refused",
            "skill replace begun",
            "skill replace done",
            "skill remove begun",
            "skill remove done",
        ]
    );
    assert!(rows.iter().all(|row| row.subject == "lamp"), "{rows:?}");
    assert!(rows[1].detail.contains("sha256:"), "{}", rows[1].detail);
}

#[test]
fn a_record_that_is_none_is_said_to_be_and_nothing_goes_away() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join(HOME_FOLDER);
    let (folder, _) = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    fs::write(into.join(RECORD), "no record").unwrap();
    let error = remove(home.path(), &into, "lamp", false, &Caller::cli()).unwrap_err();
    assert!(matches!(error, InstallError::Record { .. }), "{error}");
    assert!(folder.exists());
}

#[test]
fn where_no_folder_can_be_nothing_is_installed() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("taken"), "a file").unwrap();
    let into = home.path().join("taken/skills");
    let error = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap_err();
    assert!(matches!(error, InstallError::Io { .. }), "{error}");
    assert!(receipts(home.path()).unwrap().is_empty());
}

// A home whose audit can't be written keeps its skills as they are.
#[test]
fn what_can_not_be_put_on_record_is_not_done() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("skills");
    fs::create_dir(Chain::at(home.path()).file()).unwrap();
    let error = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap_err();
    assert!(matches!(error, InstallError::Audit(_)), "{error}");
    assert!(!into.join("lamp").exists());
}

#[cfg(unix)]
#[test]
fn nothing_of_it_can_be_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = prepared("Lights.").install(home.path(), home.path(), false, &Caller::cli()).unwrap();
    let mode = fs::metadata(folder.join("scripts/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}");
}

#[test]
fn what_a_person_changed_or_put_there_stays() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("skills");
    let (folder, _) = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    fs::write(folder.join("references/more.md"), "Mine.").unwrap();
    assert!(matches!(remove(home.path(), &into, "lamp", false, &Caller::cli()), Err(InstallError::Changed(_))));
    remove(home.path(), &into, "lamp", true, &Caller::cli()).unwrap();
    fs::create_dir_all(into.join("mine")).unwrap();
    assert!(matches!(remove(home.path(), &into, "mine", false, &Caller::cli()), Err(InstallError::NotInstalled(_))));
    for name in ["..", ".", "", "mine/..", ".installed.json"] {
        assert!(
            matches!(remove(home.path(), &into, name, true, &Caller::cli()), Err(InstallError::Missing(_))),
            "{name}"
        );
    }
    assert!(into.join("mine").exists());
}

#[test]
fn only_what_the_specification_allows_is_installed() {
    let refused =
        |folder: Option<&str>, files: Files| Prepared::new(folder, files, "test".into()).unwrap_err().to_string();
    assert!(refused(Some("lamb"), files("Lights.")).contains("the name is \"lamp\", the folder's \"lamb\""));
    let mut lost = files("Lights.");
    lost.remove(1);
    assert!(refused(Some("lamp"), lost).contains("links to references/more.md, which is not in the skill"));
    let mut wrong = files("Lights.");
    wrong.push(("../escape".into(), b"".as_slice().into()));
    assert!(refused(Some("lamp"), wrong).contains("can't be read as a file of a skill"));
    // At the top of an archive there is no folder to compare with.
    assert_eq!(Prepared::new(None, files("Lights."), "test".into()).unwrap().skill().name, "lamp");
    assert!(refused(None, vec![]).contains("SKILL.md is missing"));
}

#[test]
fn a_record_that_is_none_is_reported_and_nothing_is_removed() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("skills");
    let (folder, _) = prepared("Lights.").install(home.path(), &into, false, &Caller::cli()).unwrap();
    fs::write(into.join(RECORD), "{").unwrap();
    assert!(matches!(remove(home.path(), &into, "lamp", true, &Caller::cli()), Err(InstallError::Record { .. })));
    assert!(folder.exists());
}
