//! Repositories that git itself made, whole and hostile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::ServiceError;
use crate::git::{Entry, Kind, Repository};

/// A folder that goes when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("conductor-git-{:016x}", getrandom::u64().unwrap()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A repository with a file, a folder and two commits, the first of them tagged.
    fn repository() -> Self {
        let folder = Self::new();
        git(&folder.0, &["init", "--quiet", "--initial-branch=main"]);
        folder.write("readme", "first");
        fs::create_dir(folder.0.join("src")).unwrap();
        folder.write("src/main.rs", "fn main() {}");
        folder.commit("one");
        git(&folder.0, &["tag", "--annotate", "--message=one", "v1"]);
        folder.write("readme", "second");
        folder.commit("two");
        folder
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn commit(&self, message: &str) {
        git(&self.0, &["add", "--all"]);
        git(&self.0, &["commit", "--quiet", "--message", message]);
    }

    fn open(&self) -> Repository {
        Repository::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What git prints, with nothing of this machine's settings.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.name=A", "-c", "user.email=a@example.com"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_commit_is_read_as_it_was() {
    let folder = Folder::repository();
    for packed in [false, true] {
        if packed {
            git(&folder.0, &["gc", "--quiet"]);
        }
        let repository = folder.open();
        let head = git(&folder.0, &["rev-parse", "HEAD"]);
        for revision in ["HEAD", "main", "refs/heads/main", &head] {
            let snapshot = repository.at(revision).unwrap();
            assert_eq!(snapshot.commit(), head, "{revision}");
            assert_eq!(snapshot.read("readme").unwrap(), b"second", "{revision}");
        }
        let first = repository.at("v1").unwrap();
        assert_eq!(first.read("readme").unwrap(), b"first");
        assert_eq!(first.read("src/main.rs").unwrap(), b"fn main() {}");
        let entry = |name: &str, kind, size| Entry { name: name.into(), kind, size };
        assert_eq!(first.names(".").unwrap(), [entry("readme", Kind::File, 5), entry("src", Kind::Folder, 0)]);
        assert_eq!(first.names("src").unwrap(), [entry("main.rs", Kind::File, 12)]);
    }
}

#[cfg(unix)]
#[test]
fn every_name_of_a_commit_is_listed() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let folder = Folder::repository();
    fs::create_dir(folder.0.join("odd")).unwrap();
    let names: [&[u8]; 6] =
        [b"a\\b.rs", b"new\nline.rs", b".conductor-x", b"not\xffutf8.rs", b"not\xef\xbf\xbdutf8.rs", b"\x1b[2J"];
    for name in names {
        fs::write(folder.0.join("odd").join(OsStr::from_bytes(name)), name).unwrap();
    }
    folder.commit("odd");
    let snapshot = folder.open().at("HEAD").unwrap();
    let listed: Vec<String> = snapshot.names("odd").unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(
        listed,
        ["\0not\u{fffd}utf8.rs", "\u{1b}[2J", ".conductor-x", "a\\b.rs", "new\nline.rs", "not\u{fffd}utf8.rs"]
    );
    for name in &listed {
        match snapshot.read(&format!("odd/{name}")) {
            Ok(bytes) => assert_eq!(bytes, name.as_bytes()),
            Err(error) => {
                assert!(name.contains('\0') && matches!(error, ServiceError::Invalid(_)), "{name:?}: {error}")
            }
        }
    }
}

#[test]
fn names_that_lead_elsewhere_can_not_be_read() {
    let folder = Folder::repository();
    let blob = git(&folder.0, &["rev-parse", "HEAD:readme"]);
    let mut tree = Vec::new();
    for name in ["..", "src/main.rs"] {
        tree.extend_from_slice(format!("100644 {name}\0").as_bytes());
        tree.extend((0..20).map(|at| u8::from_str_radix(&blob[2 * at..2 * at + 2], 16).unwrap()));
    }
    fs::write(folder.0.join("tree"), tree).unwrap();
    let tree = git(&folder.0, &["hash-object", "-t", "tree", "--literally", "-w", "tree"]);
    let commit = git(&folder.0, &["commit-tree", "-m", "odd", &tree]);
    let snapshot = folder.open().at(&commit).unwrap();
    let listed: Vec<String> = snapshot.names(".").unwrap().into_iter().map(|entry| entry.name).collect();
    assert_eq!(listed, ["\0..", "\0src/main.rs"]);
    for name in listed {
        assert!(matches!(snapshot.read(&name), Err(ServiceError::Invalid(_))), "{name:?}");
    }
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let folder = Folder::repository();
    let snapshot = folder.open().at("HEAD").unwrap();
    folder.write("readme", "third");
    assert_eq!(snapshot.read("readme").unwrap(), b"second", "what is not committed is not there");
    folder.commit("three");
    assert_eq!(snapshot.read("readme").unwrap(), b"second");
    assert_eq!(folder.open().at("HEAD").unwrap().read("readme").unwrap(), b"third");
}

#[test]
fn what_is_not_there_is_said_so() {
    let folder = Folder::repository();
    let repository = folder.open();
    let snapshot = repository.at("HEAD").unwrap();
    for path in ["missing", "src/missing", "readme/inner", "src/main.rs/x"] {
        assert!(matches!(snapshot.read(path), Err(ServiceError::Unavailable(_))), "{path}");
    }
    for path in ["..", "/etc/passwd", "src/../readme", "", "src//main.rs", "a\0b"] {
        assert!(matches!(snapshot.read(path), Err(ServiceError::Invalid(_))), "{path:?}");
        assert!(matches!(snapshot.names(path), Err(ServiceError::Invalid(_))), "{path:?}");
    }
    assert!(matches!(snapshot.read("src"), Err(ServiceError::Invalid(_))), "a folder");
    assert!(matches!(snapshot.names("readme"), Err(ServiceError::Invalid(_))), "a file");
    let blob = git(&folder.0, &["rev-parse", "HEAD:readme"]);
    assert!(matches!(repository.at(&blob), Err(ServiceError::Invalid(_))), "no commit");
    for revision in
        ["missing", "HEAD~2", "main:readme", "0123456789012345678901234567890123456789", "../HEAD", "", "0123"]
    {
        assert!(matches!(repository.at(revision), Err(ServiceError::Unavailable(_))), "{revision}");
    }
    for revision in ["a\nb".to_owned(), "x".repeat(300)] {
        assert!(matches!(repository.at(&revision), Err(ServiceError::Invalid(_))), "{revision}");
    }
    let empty = Folder::new();
    assert!(matches!(Repository::open(&empty.0), Err(ServiceError::Unavailable(_))), "no repository");
}

#[test]
fn a_revision_goes_back_as_git_does() {
    let folder = Folder::repository();
    git(&folder.0, &["checkout", "--quiet", "-b", "side", "HEAD~1"]);
    folder.write("side", "side");
    folder.commit("side");
    git(&folder.0, &["checkout", "--quiet", "main"]);
    git(&folder.0, &["merge", "--quiet", "--no-edit", "side"]);
    let short = git(&folder.0, &["rev-parse", "--short", "HEAD~1"]);
    let four = &git(&folder.0, &["rev-parse", "side"])[..39];
    for packed in [false, true] {
        if packed {
            git(&folder.0, &["gc", "--quiet"]);
        }
        let repository = folder.open();
        for revision in
            ["HEAD~1", "HEAD^", "@", "@~2", "HEAD~", "HEAD^2", "main^2~1", "HEAD^^", "v1^0", "HEAD~0", &short, four]
        {
            let head = git(&folder.0, &["rev-parse", "--verify", &format!("{revision}^{{commit}}")]);
            assert_eq!(repository.at(revision).unwrap().commit(), head, "{revision}");
        }
        for (revision, why) in [
            ("HEAD~3", "has no parent"),
            ("HEAD~60~40", "has no parent"),
            ("HEAD^3", "has no parent 3"),
            ("v1~1", "has no parent"),
            ("none~1", "\"none\": there is no such branch"),
        ] {
            let error = repository.at(revision).unwrap_err();
            assert!(matches!(&error, ServiceError::Unavailable(text) if text.contains(why)), "{revision}: {error}");
        }
        for (revision, why) in [
            ("HEAD~101", "at most 100 commits back"),
            ("HEAD~60~41", "at most 100 commits back"),
            ("HEAD~99999999999999999999", "at most 100 commits back"),
            ("HEAD^{tree}", "as in HEAD~1"),
            ("HEAD~1:readme", "as in HEAD~1"),
            ("HEAD^-1", "as in HEAD~1"),
        ] {
            let error = repository.at(revision).unwrap_err();
            assert!(matches!(&error, ServiceError::Invalid(text) if text.contains(why)), "{revision}: {error}");
        }
    }
}

/// Digits that are not enough are no choice among what they begin.
#[test]
fn digits_that_begin_several_objects_name_none() {
    let folder = Folder::repository();
    for number in 0..2000 {
        folder.write(&format!("{number}"), &format!("{number}"));
    }
    folder.commit("many");
    let all = git(&folder.0, &["rev-list", "--all", "--objects", "--no-object-names"]);
    let mut ids: Vec<&str> = all.lines().collect();
    ids.sort_unstable();
    // The same files have the same digits everywhere.
    let two = ids.windows(2).find(|two| two[0][..4] == two[1][..4]).expect("two begin alike");
    let error = folder.open().at(&two[0][..4]).map(drop).unwrap_err();
    assert!(matches!(&error, ServiceError::Unavailable(text) if text.contains("more than one object")), "{error}");
}

#[test]
fn a_folder_of_another_repository_is_no_repository() {
    let folder = Folder::repository();
    assert!(Repository::open(&folder.0.join("src")).is_err(), "the grant is for this folder alone");
}

#[cfg(unix)]
#[test]
fn nothing_outside_of_the_folder_is_read() {
    use std::os::unix::fs::symlink;
    let elsewhere = Folder::repository();
    let refused = |folder: &Folder, how: &str| {
        let error = Repository::open(&folder.0).map(drop).unwrap_err();
        assert!(matches!(&error, ServiceError::Unavailable(_)), "{how}: {error:?}");
    };

    let file = Folder::new();
    file.write(".git", &format!("gitdir: {}", elsewhere.0.join(".git").display()));
    refused(&file, "a file in the place of .git");

    let link = Folder::new();
    symlink(elsewhere.0.join(".git"), link.0.join(".git")).unwrap();
    refused(&link, "a link in the place of .git");

    let objects = Folder::repository();
    fs::rename(objects.0.join(".git/objects"), objects.0.join("away")).unwrap();
    symlink(elsewhere.0.join(".git/objects"), objects.0.join(".git/objects")).unwrap();
    refused(&objects, "a link in the place of the objects");

    let shared = Folder::new();
    fs::remove_dir(&shared.0).unwrap();
    git(&elsewhere.0, &["clone", "--quiet", "--shared", ".", shared.0.to_str().unwrap()]);
    refused(&shared, "objects that are borrowed");

    let worktree = Folder::new();
    git(&elsewhere.0, &["worktree", "add", "--quiet", worktree.0.join("tree").to_str().unwrap()]);
    refused(&Folder(worktree.0.join("tree")), "a work tree of another");
}

#[cfg(unix)]
#[test]
fn links_and_modules_lead_nowhere() {
    let folder = Folder::repository();
    std::os::unix::fs::symlink("/etc/passwd", folder.0.join("link")).unwrap();
    std::os::unix::fs::symlink("src", folder.0.join("inner")).unwrap();
    let other = git(&folder.0, &["rev-parse", "HEAD"]);
    git(&folder.0, &["add", "--all"]);
    git(&folder.0, &["update-index", "--add", "--cacheinfo", &format!("160000,{other},module")]);
    git(&folder.0, &["commit", "--quiet", "--message=links"]);
    let snapshot = folder.open().at("HEAD").unwrap();
    assert_eq!(snapshot.read("link").unwrap(), b"/etc/passwd", "the link, and not what it leads to");
    assert!(snapshot.read("inner/main.rs").is_err());
    assert!(snapshot.read("module").is_err() && snapshot.read("module/readme").is_err());
    let kinds: Vec<_> = snapshot.names(".").unwrap().into_iter().map(|entry| (entry.name, entry.kind)).collect();
    let kind = |name: &str, kind| (name.to_owned(), kind);
    let expected = [
        ("inner", Kind::Link),
        ("link", Kind::Link),
        ("module", Kind::Module),
        ("readme", Kind::File),
        ("src", Kind::Folder),
    ];
    assert_eq!(kinds, expected.map(|(name, of)| kind(name, of)));
}

#[cfg(unix)]
#[test]
fn a_reference_that_is_another_file_tells_nothing_of_it() {
    let folder = Folder::repository();
    let secret = folder.0.join("secret");
    fs::write(&secret, "the secret\n").unwrap();
    std::os::unix::fs::symlink(&secret, folder.0.join(".git/refs/heads/spy")).unwrap();
    folder.write(".git/refs/heads/loop", "ref: refs/heads/loop\n");
    for revision in ["spy", "loop"] {
        let told = format!("{:?}", folder.open().at(revision).map(drop).unwrap_err());
        assert!(!told.contains("secret"), "{told}");
    }
}

/// Nothing of a repository is waited for, and nothing without an end is read.
#[cfg(unix)]
#[test]
fn pipes_and_devices_in_a_repository_are_not_opened() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let in_time = |work: Box<dyn FnOnce() -> ServiceError + Send>| {
        let (done, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(work()));
        told.recv_timeout(std::time::Duration::from_secs(20)).expect("it is not waited for").to_string()
    };
    let swap = |folder: &Folder, name: &str, pipe: bool| {
        let file = folder.0.join(".git").join(name);
        let _ = fs::remove_file(&file);
        if pipe {
            mknodat(CWD, &file, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        } else {
            std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        }
    };
    let files = ["HEAD", "config", "packed-refs", "commondir", "refs/heads/main", "objects/info/alternates"];
    for (name, pipe) in files.into_iter().flat_map(|name| [(name, true), (name, false)]) {
        let folder = Folder::repository();
        swap(&folder, name, pipe);
        let path = folder.0.clone();
        let told = in_time(Box::new(move || Repository::open(&path).map(drop).unwrap_err()));
        let kind = if pipe { "is a pipe" } else { "is a device" };
        assert!(told.contains(name) && told.contains(kind), "{name}: {told}");
    }
    let folder = Folder::new();
    mknodat(CWD, folder.0.join(".git"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    let path = folder.0.clone();
    in_time(Box::new(move || Repository::open(&path).map(drop).unwrap_err()));

    // And what is put there later.
    let folder = Folder::repository();
    let (repository, head) = (folder.open(), git(&folder.0, &["rev-parse", "HEAD"]));
    swap(&folder, "refs/heads/late", true);
    let opened = repository.clone();
    assert!(in_time(Box::new(move || opened.at("late").map(drop).unwrap_err())).contains("is a pipe"));
    fs::remove_file(folder.0.join(".git/refs/heads/late")).unwrap();
    swap(&folder, &format!("objects/{}/{}", &head[..2], &head[2..]), true);
    assert!(in_time(Box::new(move || repository.at("HEAD").map(drop).unwrap_err())).contains("damaged"));
}

#[test]
fn what_is_too_large_is_not_unpacked() {
    let folder = Folder::repository();
    let (large, small) = ("x".repeat(5 * 1024 * 1024), "x".repeat(3 * 1024 * 1024));
    folder.write("large", &large);
    folder.write("small", &small);
    folder.commit("large");
    let snapshot = folder.open().at("HEAD").unwrap();
    assert!(matches!(snapshot.read("large"), Err(ServiceError::Exhausted(_))));
    assert_eq!(snapshot.read("small").unwrap().len(), small.len());
    let sizes: Vec<u64> = snapshot.names(".").unwrap().iter().map(|entry| entry.size).collect();
    assert!(sizes.contains(&(large.len() as u64)), "{sizes:?}");
}

/// What comes of reading a file of 2 MiB that git has packed as a part of one with so many lines of 8 bytes.
fn read_a_part_of(lines: u32) -> Result<Vec<u8>, ServiceError> {
    let folder = Folder::repository();
    // Lines that differ, so that the small one is best told as a part of the other.
    let whole: String = (0..lines).map(|n| format!("{n:07}\n")).collect();
    folder.write("file", &whole);
    folder.commit("whole");
    folder.write("file", &whole[..2 * 1024 * 1024]);
    folder.commit("part");
    git(&folder.0, &["gc", "--quiet"]);
    let id = git(&folder.0, &["rev-parse", "HEAD:file"]);
    let packs = fs::read_dir(folder.0.join(".git/objects/pack")).unwrap().flatten().map(|entry| entry.path());
    let index = packs.into_iter().find(|path| path.extension().is_some_and(|it| it == "idx")).unwrap();
    let packed = git(&folder.0, &["verify-pack", "--verbose", index.to_str().unwrap()]);
    let line = packed.lines().find(|line| line.starts_with(&id)).unwrap();
    assert_eq!(line.split_whitespace().count(), 7, "git has it as a difference to another: {line}");
    folder.open().at("HEAD").unwrap().read("file")
}

#[test]
fn what_leans_on_something_huge_is_not_unpacked_either() {
    assert_eq!(read_a_part_of(1_000_000).map(|data| data.len()), Ok(2 * 1024 * 1024), "8 MB");
    assert!(matches!(read_a_part_of(4_600_000), Err(ServiceError::Failed(_))), "36.8 MB, above 32 MiB");
}

#[test]
fn damage_is_no_crash() {
    let folder = Folder::repository();
    let blob = git(&folder.0, &["rev-parse", "HEAD:readme"]);
    let (start, rest) = blob.split_at(2);
    let path = folder.0.join(".git/objects").join(start).join(rest);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "no object").unwrap();
    let snapshot = folder.open().at("HEAD").unwrap();
    assert!(matches!(snapshot.read("readme"), Err(ServiceError::Failed(_))));
    assert_eq!(snapshot.read("src/main.rs").unwrap(), b"fn main() {}", "the rest is there");

    let tags = Folder::repository();
    for n in 2..=12 {
        git(&tags.0, &["tag", "--annotate", "--message=x", &format!("v{n}"), &format!("v{}", n - 1)]);
    }
    assert!(tags.open().at("v8").is_ok());
    assert!(matches!(tags.open().at("v12"), Err(ServiceError::Invalid(_))), "tags of tags of tags");
}
