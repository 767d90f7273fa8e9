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
    let (folder, outcome) = prepared("Lights.").install(home.path(), &into, false).unwrap();
    assert_eq!(outcome, Outcome::Installed);
    assert_eq!(Skill::load(&folder).unwrap().digest(), prepared("Lights.").skill().digest());
    assert_eq!(prepared("Lights.").install(home.path(), &into, false).unwrap().1, Outcome::Unchanged);
    let exists = prepared("Lasers.").install(home.path(), &into, false).unwrap_err();
    assert!(matches!(exists, InstallError::Exists(_)), "{exists}");
    assert_eq!(prepared("Lasers.").install(home.path(), &into, true).unwrap().1, Outcome::Replaced);
    assert_eq!(Skill::load(&folder).unwrap().description, "Lasers.");
    assert_eq!(receipts(home.path()).unwrap().len(), 1);
    // Nothing is left of what was there before, nor of the way.
    assert_eq!(fs::read_dir(&into).unwrap().count(), 1);
    remove(home.path(), &into, "lamp", false).unwrap();
    assert!(!folder.exists() && receipts(home.path()).unwrap().is_empty());
    assert!(matches!(remove(home.path(), &into, "lamp", false), Err(InstallError::Missing(_))));
}

#[cfg(unix)]
#[test]
fn nothing_of_it_can_be_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = tempfile::tempdir().unwrap();
    let (folder, _) = prepared("Lights.").install(home.path(), home.path(), false).unwrap();
    let mode = fs::metadata(folder.join("scripts/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0, "{mode:o}");
}

#[test]
fn what_a_person_changed_or_put_there_stays() {
    let home = tempfile::tempdir().unwrap();
    let into = home.path().join("skills");
    let (folder, _) = prepared("Lights.").install(home.path(), &into, false).unwrap();
    fs::write(folder.join("references/more.md"), "Mine.").unwrap();
    assert!(matches!(remove(home.path(), &into, "lamp", false), Err(InstallError::Changed(_))));
    remove(home.path(), &into, "lamp", true).unwrap();
    fs::create_dir_all(into.join("mine")).unwrap();
    assert!(matches!(remove(home.path(), &into, "mine", false), Err(InstallError::NotInstalled(_))));
    for name in ["..", ".", "", "mine/..", ".installed.json"] {
        assert!(matches!(remove(home.path(), &into, name, true), Err(InstallError::Missing(_))), "{name}");
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
    let (folder, _) = prepared("Lights.").install(home.path(), &into, false).unwrap();
    fs::write(into.join(RECORD), "{").unwrap();
    assert!(matches!(remove(home.path(), &into, "lamp", true), Err(InstallError::Record { .. })));
    assert!(folder.exists());
}
