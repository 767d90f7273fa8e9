//! Skills: a `SKILL.md`, and archives with one.

use conductor_skills::archive;
use conductor_skills::limits::{MAX_DESCRIPTION, MAX_SKILL_FILE};
use conductor_skills::problem::{Severity, check_name};
use conductor_skills::skill::Skill;

pub fn run(data: &[u8]) {
    // As the text of a skill that is called as it says.
    let text = String::from_utf8_lossy(data);
    let said = text.lines().find_map(|line| line.strip_prefix("name: ")).unwrap_or("lamp").trim().to_owned();
    match Skill::from_text(&said, &text) {
        Ok(skill) => {
            assert!(text.len() as u64 <= MAX_SKILL_FILE);
            assert!(check_name(&skill.name).is_ok() && skill.name == said);
            assert!(!skill.description.is_empty() && skill.description.chars().count() <= MAX_DESCRIPTION);
            assert!(!skill.description.contains('\n'), "one line");
            assert!(skill.text().ends_with(skill.body()), "nothing is made up");
            assert!(skill.findings.iter().all(|finding| finding.severity() < Severity::Refusal));
            assert_eq!(
                skill.front_matter()["name"].as_str().map(str::trim),
                Some(said.as_str()).filter(|_| { skill.front_matter()["name"].is_string() })
            );
            assert_eq!(Skill::from_text(&said, &text).ok().map(|again| again.digest()), Some(skill.digest()));
        }
        Err(refused) => {
            assert!(refused.problems.iter().any(|problem| problem.severity() == Severity::Refusal));
            assert!(refused.problems.iter().all(|problem| problem.to_string().len() < 2048), "messages are bounded");
        }
    }
    // As an archive: no file has a path that leads out.
    if let Ok((_, files)) = archive::skill(data) {
        assert!(files.iter().any(|(path, _)| path == "SKILL.md"));
        assert!(files.iter().all(|(path, _)| !path.starts_with('/') && path.split('/').all(|name| name != "..")));
    }
}
