use std::fs;

use super::*;

fn text(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nDo it well.\n")
}

fn put(root: &Path, name: &str, description: &str) {
    fs::create_dir_all(root.join(name)).unwrap();
    fs::write(root.join(name).join("SKILL.md"), text(name, description)).unwrap();
}

/// A library that keeps what it read at once.
fn library(home: &Path, project: &Path) -> Library {
    Library { settled: Duration::ZERO, ..Library::new(Some(home), Some(project)) }
}

fn summary(found: &[Found]) -> Vec<(&str, Place, Option<Place>, bool)> {
    let of_folders = found.iter().filter(|one| one.place != Place::Bundled);
    of_folders.map(|one| (one.name.as_str(), one.place, one.shadowed_by, one.skill.is_ok())).collect()
}

/// SKL-5: the first of a name is used, and the others say which.
#[test]
fn the_first_of_a_name_is_used_and_the_others_are_shadowed() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&home.path().join("skills"), "lamp", "of the home");
    put(&project.path().join(".agents/skills"), "lamp", "of agents");
    put(&project.path().join(".github/skills"), "fog", "of github");
    put(&project.path().join(".claude/skills"), "fog", "of claude");
    let contributed =
        [Contributed { name: "fog".into(), feature: "x.y".into(), text: text("fog", "f"), ..Default::default() }];
    let library = library(home.path(), project.path());
    let all = library.all(&contributed);
    assert_eq!(
        summary(&all),
        [
            ("lamp", Place::Home, None, true),
            ("lamp", Place::Project, Some(Place::Home), true),
            ("fog", Place::Project, None, true),
            ("fog", Place::Project, Some(Place::Project), true),
            ("fog", Place::Feature, Some(Place::Project), true),
        ]
    );
    assert_eq!(library.find("fog", &contributed).unwrap().skill.description, "of claude");
    assert_eq!(library.find("lamp", &[]).unwrap().skill.description, "of the home");
}

/// One that can't be used takes nothing away.
#[test]
fn a_refused_skill_shadows_nothing() {
    let (home, project) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    put(&home.path().join("skills"), "lamp", "");
    put(&project.path().join(".agents/skills"), "lamp", "of agents");
    let library = library(home.path(), project.path());
    assert_eq!(
        summary(&library.all(&[]))[..2],
        [("lamp", Place::Home, None, false), ("lamp", Place::Project, None, true)]
    );
    assert_eq!(library.find("lamp", &[]).unwrap().skill.description, "of agents");
}

#[test]
fn an_unknown_name_is_answered_with_what_was_probably_meant() {
    let home = tempfile::tempdir().unwrap();
    put(&home.path().join("skills"), "lamp", "Lights.");
    put(&home.path().join("skills"), "fog", "");
    let library = library(home.path(), home.path());
    let said = library.find("lamb", &[]).unwrap_err().to_string();
    assert!(said.contains("there is no skill \"lamb\", perhaps lamp; there are"), "{said}");
    let said = library.find("fog", &[]).unwrap_err().to_string();
    assert_eq!(said, "the skill can't be used: fog: SKILL.md:3: `description` is empty");
}

/// SKL-1: a cache that notices changes, of the text and of the files beside it.
#[test]
fn what_was_read_is_kept_until_a_file_changes() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("skills");
    put(&root, "lamp", "Lights.");
    let library = library(home.path(), home.path());
    let read = || library.find("lamp", &[]).unwrap().skill;
    let first = read();
    assert!(Arc::ptr_eq(&first, &read()), "nothing has changed");
    fs::create_dir(root.join("lamp/references")).unwrap();
    fs::write(root.join("lamp/references/a.md"), "a").unwrap();
    let second = read();
    assert_eq!(second.resources().len(), 1);
    assert!(Arc::ptr_eq(&second, &read()));
    // Of the same length.
    put(&root, "lamp", "Lasers.");
    assert_eq!(read().description, "Lasers.");
    fs::write(root.join("lamp/SKILL.md"), "no front matter").unwrap();
    assert!(matches!(library.find("lamp", &[]), Err(FindError::Refused(_))));
    put(&root, "lamp", "Lights.");
    assert_eq!(read().description, "Lights.");
    fs::remove_dir_all(root.join("lamp")).unwrap();
    assert!(matches!(library.find("lamp", &[]), Err(FindError::Unknown { .. })));
    assert!(library.cache.lock().is_empty(), "what is gone is not kept");
}

/// What was written just now may be written again within the step of the file system's clock.
#[test]
fn what_was_just_written_is_read_again() {
    let home = tempfile::tempdir().unwrap();
    put(&home.path().join("skills"), "lamp", "Lights.");
    let library = Library::new(Some(home.path()), None);
    let read = || library.find("lamp", &[]).unwrap().skill;
    assert!(!Arc::ptr_eq(&read(), &read()));
}

/// SKL-1: many threads look while the files change; each sees a whole skill.
#[test]
fn many_threads_see_whole_skills() {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("skills");
    put(&root, "lamp", "Lights 0.");
    let library = library(home.path(), home.path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    if let Ok(named) = library.find("lamp", &[]) {
                        assert!(named.skill.description.starts_with("Lights "), "{}", named.skill.description);
                        assert!(named.skill.body().starts_with("Do it"), "{}", named.skill.body());
                    }
                }
            });
        }
        for number in 0..200 {
            let staged = root.join("lamp/new");
            fs::write(&staged, text("lamp", &format!("Lights {number}."))).unwrap();
            fs::rename(&staged, root.join("lamp/SKILL.md")).unwrap();
        }
    });
    assert_eq!(library.find("lamp", &[]).unwrap().skill.description, "Lights 199.");
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_another_folder_of_the_same_place_and_nowhere_else() {
    use std::os::unix::fs::symlink;
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = home.path().join("skills");
    put(&root, "lamp", "Lights.");
    put(elsewhere.path(), "fog", "Fog.");
    symlink(elsewhere.path().join("fog"), root.join("fog")).unwrap();
    symlink("lamp", root.join("lantern")).unwrap();
    let library = library(home.path(), elsewhere.path());
    let all = library.all(&[]);
    let of = |name: &str| all.iter().find(|one| one.name == name).unwrap().skill.clone();
    assert_eq!(of("fog").unwrap_err().problems, [Problem::Link { path: ".".into() }]);
    // It is read, and is not called like its folder.
    assert!(matches!(of("lantern").unwrap_err().problems[..], [Problem::NameIsNotFolder { .. }]));
}

#[test]
fn a_place_has_a_bounded_number_of_folders() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..=MAX_SKILLS {
        fs::create_dir_all(home.path().join(format!("skills/s{number}"))).unwrap();
    }
    let all = library(home.path(), home.path()).all(&[]);
    let refused = all.iter().filter_map(|one| one.skill.as_ref().err());
    assert_eq!(refused.filter(|why| why.problems == [Problem::TooManySkills { max: MAX_SKILLS }]).count(), 1);
    assert!(all.len() <= MAX_SKILLS + 1 + bundled::all().len());
}

#[test]
fn a_project_begins_where_its_repository_does() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("a/b");
    fs::create_dir_all(&inner).unwrap();
    fs::create_dir(folder.path().join(".git")).unwrap();
    assert_eq!(project_root(&inner), folder.path());
}
