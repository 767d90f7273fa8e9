//! SKL-1: what the loader takes for a skill, and each thing that it refuses, with its place.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::fs;
use std::path::Path;

use conductor_skills::limits::{BODY_TOKENS, MAX_FILES, MAX_SKILL_FILE};
use conductor_skills::problem::{Problem, Severity};
use conductor_skills::skill::{ReadError, Skill};
use tempfile::TempDir;

/// A folder `lamp` with this `SKILL.md`.
fn folder(text: impl AsRef<[u8]>) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("lamp")).unwrap();
    fs::write(root.path().join("lamp/SKILL.md"), text).unwrap();
    root
}

fn load(root: &TempDir) -> Result<Skill, Vec<Problem>> {
    Skill::load(&root.path().join("lamp")).map_err(|refused| refused.problems)
}

/// What is said of a front matter with these lines beside a good name and description.
fn with(lines: &str) -> Vec<String> {
    let text = format!("---\nname: lamp\ndescription: Lights.\n{lines}\n---\nBody.\n");
    match load(&folder(text)) {
        Ok(skill) => skill.findings.iter().map(ToString::to_string).collect(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

/// What is said of a whole `SKILL.md`.
fn refused(text: impl AsRef<[u8]>) -> Vec<String> {
    load(&folder(text)).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_skill_has_three_levels() {
    let root = folder(
        "---\nname: lamp\ndescription: >\n  Lights a lamp.\n  Use it at night.\nlicense: MIT\nmetadata:\n  version: 1.5\n  \
         author: \"a\"\nallowed-tools: Read\n---\n\n# Lamp\n\nSee [colours](references/colours.md#red).\n",
    );
    fs::create_dir(root.path().join("lamp/references")).unwrap();
    fs::write(root.path().join("lamp/references/colours.md"), "Red.\n").unwrap();
    let skill = load(&root).unwrap();
    assert_eq!(skill.description, "Lights a lamp. Use it at night.");
    assert_eq!(skill.metadata["version"], "1.5");
    assert_eq!(skill.front_matter()["license"], "MIT");
    assert!(skill.body().starts_with("# Lamp"), "{}", skill.body());
    assert_eq!(skill.resources()[0].path, "references/colours.md");
    assert_eq!(skill.read("references/colours.md").unwrap(), "Red.\n");
    assert_eq!(skill.read("SKILL.md").unwrap(), skill.text());
    assert_eq!(skill.digests().len(), 2);
    assert!(skill.findings.is_empty(), "{:?}", skill.findings);
}

#[test]
fn every_mistake_of_a_front_matter_is_named_with_its_line() {
    assert_eq!(
        refused("---\nname: Lamp\ndescription: \"\"\nlisense: MIT\nmetadata: [1]\n---\n"),
        [
            "SKILL.md:2: the name \"Lamp\" has 'L'; a name has small letters, digits and hyphens",
            "SKILL.md:3: `description` is empty",
            "SKILL.md:5: `metadata` has to be names with texts, such as `version: \"1\"`",
            "SKILL.md:4: `lisense` is no field of a skill; `license` is one; put values of your own under `metadata`",
            "SKILL.md:2: the name is \"Lamp\", the folder's \"lamp\"; they have to be the same",
        ]
    );
    assert_eq!(with("compatibility: {a: b}"), ["SKILL.md:4: `compatibility` has to be text"]);
    assert_eq!(
        with(&format!("compatibility: {}", "x".repeat(501))),
        ["SKILL.md:4: `compatibility` has 501 characters; at most 500 are allowed"]
    );
    assert_eq!(
        refused(format!("---\nname: lamp\ndescription: {}\n---\n", "x".repeat(1025)))[0],
        "SKILL.md:3: `description` has 1025 characters; at most 1024 are allowed"
    );
    assert_eq!(
        refused("---\nlicense: MIT\n---\n")[..2],
        ["SKILL.md:1: the field `name` is missing", "SKILL.md:1: the field `description` is missing"]
    );
}

#[test]
fn a_field_of_ones_own_is_against_the_specification_and_is_no_reason_to_refuse() {
    let skill = load(&folder("---\nname: lamp\ndescription: Lights.\nmodel: big\n---\n")).unwrap();
    assert_eq!(skill.findings.len(), 1);
    assert_eq!(skill.findings[0].severity(), Severity::Violation);
}

#[test]
fn what_has_no_front_matter_is_no_skill() {
    for text in ["", "# Lamp\n", " ---\nname: lamp\n---\n", "\u{feff}---\nname: lamp\n---\n"] {
        let said = refused(text);
        assert!(said[0].contains("begins without front matter") || said[0].contains("U+FEFF"), "{said:?}");
    }
    assert!(refused("---\nname: lamp\ndescription: x\n")[0].contains("does not end"));
    assert!(refused("---\n- a\n- b\n---\n")[0].starts_with("SKILL.md:2:"), "{:?}", refused("---\n- a\n---\n"));
    assert!(refused("---\nname: [\n---\n")[0].starts_with("SKILL.md:"));
    assert!(refused("---\nname: a\nname: b\n---\n")[0].starts_with("SKILL.md:3:"));
    // Lines of another system.
    assert!(
        load(&folder("---\r\nname: lamp\r\ndescription: x\r\n---\r\nBody.\r\n")).unwrap().body().starts_with("Body.")
    );
}

#[test]
fn yaml_that_grows_is_refused_before_it_does() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let before = level - 1;
        bomb += &format!("a{level}: &a{level} [{}]\n", vec![format!("*a{before}"); 9].join(", "));
    }
    for lines in [
        bomb.as_str(),
        "metadata: &m {a: b}",
        "metadata:\n  <<: {a: b}",
        &format!("metadata: {}{}", "[".repeat(200), "]".repeat(200)),
        &format!("metadata: {{{}}}", (0..300).map(|n| format!("k{n}: v")).collect::<Vec<_>>().join(", ")),
    ] {
        let said = with(lines);
        assert!(said[0].starts_with("SKILL.md:"), "{said:?}");
        assert!(said.iter().all(|one| one.len() < 400), "{said:?}");
    }
    let long = with(&format!("metadata: {{a: {}}}", "x".repeat(9000)));
    assert!(long[0].contains("the front matter has 90"), "{long:?}");
}

#[test]
fn text_that_is_none_or_hides_something_is_refused_with_its_place() {
    assert_eq!(refused(b"---\nname: lamp\n\xff---\n"), ["SKILL.md:3: is not UTF-8 text"]);
    for hidden in ['\u{1b}', '\0', '\u{7f}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{e0041}', '\u{feff}'] {
        let said = refused(format!("---\nname: lamp\ndescription: x\n---\nab{hidden}c\n"));
        assert_eq!(said, [format!("SKILL.md:5:3: has the hidden character U+{:04X}; remove it", u32::from(hidden))]);
    }
    // As an escape of YAML.
    assert_eq!(with("metadata:\n  a: \"b\\u202e\""), ["SKILL.md:4:1: has the hidden character U+202E; remove it"]);
    assert!(load(&folder("---\nname: lamp\ndescription: x\n---\n\t👩‍💻 ❤️ → ✓ é\n")).is_ok());
}

#[test]
fn a_body_of_a_megabyte_is_refused_and_a_long_one_is_listed_as_such() {
    let text = |body: usize| format!("---\nname: lamp\ndescription: x\n---\n{}", "word ".repeat(body / 5));
    let said = refused(text(1 << 20));
    assert!(said[0].contains(&format!("at most {MAX_SKILL_FILE} are read")), "{said:?}");
    let skill = load(&folder(text(5 * BODY_TOKENS))).unwrap();
    assert!(matches!(skill.findings[..], [Problem::LongBody { .. }]), "{:?}", skill.findings);
    assert_eq!(skill.findings[0].severity(), Severity::Advice);
}

#[test]
fn ten_thousand_references_are_too_many() {
    let root = folder("---\nname: lamp\ndescription: x\n---\n");
    let references = root.path().join("lamp/references");
    fs::create_dir(&references).unwrap();
    for number in 0..10_000 {
        fs::write(references.join(format!("{number}.md")), "").unwrap();
    }
    assert!(load(&root).unwrap_err().contains(&Problem::TooManyFiles { max: MAX_FILES }));
}

#[test]
fn folders_lie_only_so_deep_and_files_are_only_so_large() {
    let root = folder("---\nname: lamp\ndescription: x\n---\n");
    fs::create_dir_all(root.path().join("lamp/a/b/c/d/e/f/g")).unwrap();
    fs::write(root.path().join("lamp/large"), vec![b'x'; 600 * 1024]).unwrap();
    let problems = load(&root).unwrap_err();
    assert!(problems.iter().any(|one| matches!(one, Problem::TooDeep { path, .. } if path == "a/b/c/d/e/f/g")));
    assert!(problems.iter().any(|one| matches!(one, Problem::TooLarge { path, .. } if path == "large")));
    for number in 0..8 {
        fs::write(root.path().join(format!("lamp/l{number}")), vec![b'x'; 600 * 1024]).unwrap();
    }
    assert!(load(&root).unwrap_err().iter().any(|one| matches!(one, Problem::TotalTooLarge { .. })));
}

#[test]
fn a_file_whose_name_no_address_has_is_left_out_and_said() {
    let root = folder("---\nname: lamp\ndescription: x\n---\n");
    fs::write(root.path().join("lamp/a b.md"), "a").unwrap();
    let skill = load(&root).unwrap();
    assert_eq!(skill.findings, [Problem::FileName { path: "a b.md".into() }]);
    assert!(skill.resources().is_empty(), "{:?}", skill.resources());
}

#[test]
fn a_description_that_every_conversation_pays_for_is_listed_as_long() {
    // Short words: more tokens than a text of that many characters usually has.
    let description = "a b c d e ".repeat(100);
    let skill = load(&folder(format!("---\nname: lamp\ndescription: {description}\n---\n"))).unwrap();
    assert!(matches!(skill.findings[..], [Problem::LongMetadata { .. }]), "{:?}", skill.findings);
    assert_eq!(skill.findings[0].severity(), Severity::Advice);
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let root = folder("---\nname: lamp\ndescription: x\n---\n");
    fs::write(root.path().join("secret"), "s").unwrap();
    fs::write(root.path().join("lamp/a.md"), "a").unwrap();
    let skill = load(&root).unwrap();
    let secret = root.path().join("secret").display().to_string();
    for path in [
        "../secret",
        "a.md/../../secret",
        "./a.md",
        "",
        "/",
        secret.as_str(),
        "a.md\0",
        "..\\secret",
        "a//b",
        "..",
        "C:secret",
    ] {
        assert!(matches!(skill.read(path), Err(ReadError::Path(_))), "{path:?}");
    }
    let said = skill.read("b.md").unwrap_err().to_string();
    assert_eq!(said, "the skill lamp has no file \"b.md\"; it has a.md");
}

#[cfg(unix)]
#[test]
fn links_out_of_the_folder_pipes_and_what_takes_their_place_are_refused() {
    use std::os::unix::fs::symlink;
    let root = folder("---\nname: lamp\ndescription: x\n---\n");
    let at = |path: &str| root.path().join("lamp").join(path);
    fs::write(root.path().join("secret"), "s").unwrap();
    fs::write(at("a.md"), "a").unwrap();
    symlink("a.md", at("inside.md")).unwrap();
    assert_eq!(load(&root).unwrap().read("inside.md").unwrap(), "a", "a link within is a file");
    let skill = load(&root).unwrap();
    // Behind the back of the one who looked.
    fs::remove_file(at("a.md")).unwrap();
    symlink("../secret", at("a.md")).unwrap();
    let said = skill.read("a.md").unwrap_err().to_string();
    assert!(said.starts_with("a.md: is a link that leads out"), "{said}");
    for target in ["../secret", "/etc/passwd", "/", "..", "nowhere"] {
        fs::remove_file(at("a.md")).unwrap();
        fs::remove_file(at("inside.md")).ok();
        symlink(target, at("a.md")).unwrap();
        assert_eq!(load(&root).unwrap_err(), [Problem::Link { path: "a.md".into() }], "{target}");
    }
    fs::remove_file(at("a.md")).unwrap();
    pipe(&at("a.md"));
    assert_eq!(load(&root).unwrap_err(), [Problem::NotAFile { path: "a.md".into() }]);
    // As the file itself.
    fs::remove_file(at("a.md")).unwrap();
    fs::remove_file(at("SKILL.md")).unwrap();
    symlink("../secret", at("SKILL.md")).unwrap();
    assert!(load(&root).unwrap_err().contains(&Problem::Link { path: "SKILL.md".into() }));
}

#[cfg(unix)]
fn pipe(path: &Path) {
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_link_in_the_text_has_to_lead_to_a_file() {
    let root = folder(
        "---\nname: lamp\ndescription: x\n---\n[a](references/a.md) [web](https://example.org) [part](#part) [dir](references/)\n\
         ```\n[code](x.md)\n```\n[b](references/b.md)\n",
    );
    fs::create_dir(root.path().join("lamp/references")).unwrap();
    fs::write(root.path().join("lamp/references/a.md"), "a").unwrap();
    let skill = load(&root).unwrap();
    assert_eq!(skill.findings, [Problem::MissingFile { line: 9, path: "references/b.md".into() }]);
}

#[test]
fn a_folder_that_is_not_there_is_said_to_be() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(load(&root).unwrap_err()[..], [Problem::Unreadable { .. }]));
    fs::create_dir(root.path().join("lamp")).unwrap();
    assert_eq!(load(&root).unwrap_err(), [Problem::NoSkillFile]);
}

mod any {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever comes, the loader answers, and with bounded texts.
        #[test]
        fn text_is_a_skill_or_refused(front in "(?s).{0,200}", body in "(?s).{0,200}") {
            let text = format!("---\nname: lamp\n{front}\n---\n{body}");
            match Skill::from_text("lamp", &text) {
                Ok(skill) => {
                    prop_assert_eq!(&skill.name, "lamp");
                    prop_assert!(!skill.description.is_empty());
                    prop_assert!(skill.text().ends_with(skill.body()));
                }
                Err(refused) => {
                    prop_assert!(!refused.problems.is_empty());
                    prop_assert!(refused.problems.iter().all(|one| one.to_string().len() < 1500));
                }
            }
        }
    }
}
