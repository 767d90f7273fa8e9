//! Skills: reading them for the first time, and looking at many that were read before.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, SystemTime};

use anyhow::{Result, ensure};
use conductor_skills::library::{Library, Place};

use crate::measure::nanos_per_call;
use crate::report::{Section, Unit};
use crate::scratch::Folder;

/// Skills in the home, each with so many files beside its text.
const SKILLS: usize = 100;
const FILES: usize = 4;

/// Measures the row.
pub fn measure(section: &mut Section<'_>) -> Result<()> {
    let home = Folder::new()?;
    // What was written just now is not kept.
    let before = SystemTime::now() - Duration::from_secs(60);
    let write = |path: &std::path::Path, text: &str| -> Result<()> {
        fs::write(path, text)?;
        Ok(fs::File::options().write(true).open(path)?.set_modified(before)?)
    };
    for number in 0..SKILLS {
        let folder = home.path().join(format!("skills/skill-{number}"));
        fs::create_dir_all(folder.join("references"))?;
        let body = "What to look at, and what to ask.\n".repeat(300);
        let front = format!("---\nname: skill-{number}\ndescription: Does one thing of a hundred.\n---\n");
        write(&folder.join("SKILL.md"), &(front + &body))?;
        for file in 0..FILES {
            write(&folder.join(format!("references/{file}.md")), &body)?;
        }
    }
    let known = Library::new(Some(home.path()), None);
    let read = known.all(&[]).iter().filter(|found| found.place == Place::Home && found.skill.is_ok()).count();
    ensure!(read == SKILLS, "{read} skills were read");
    let name = format!("skill-{}", SKILLS / 2);
    let [fresh, again, found] = nanos_per_call([
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(Library::new(Some(home.path()), None).all(&[]));
            }
        }),
        Box::new(|calls| {
            for _ in 0..calls {
                black_box(known.all(&[]));
            }
        }),
        Box::new(|calls| {
            for _ in 0..calls {
                let named = known.find(&name, &[]);
                black_box(named.map(|named| named.skill.read("references/1.md").ok()).ok());
            }
        }),
    ]);
    let each = |nanos: f64| nanos / SKILLS as f64;
    section.figure(
        format!("a skill with {FILES} files, read and checked ({SKILLS} in a home)"),
        each(fresh),
        Unit::Nanoseconds,
    );
    section.figure("the same, looked at again: nothing has changed", each(again), Unit::Nanoseconds);
    section.figure(format!("one of {SKILLS} found by its name, and a file of it read"), found, Unit::Nanoseconds);
    Ok(())
}
