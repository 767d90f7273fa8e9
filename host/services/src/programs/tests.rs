//! Real programs in real namespaces: what they find, what they don't, and how they end.

use std::net::TcpListener;
use std::time::Instant;

use super::*;

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build().unwrap().block_on(work)
}

/// A script of a shell, as a program.
fn script(script: &str) -> Program {
    reaching("", script)
}

fn reaching(what: &str, script: &str) -> Program {
    format!("{what} /bin/bash -c {}", shell_word(script)).trim().parse().unwrap()
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn nothing() -> Files {
    Files::new([].into_iter()).unwrap()
}

fn run_now(program: &Program, input: &[u8], files: &Files) -> Result<Outcome, ServiceError> {
    block_on(run(program, input, files, TIMEOUT))
}

/// What a script prints.
fn says(program: &Program) -> String {
    let outcome = run_now(program, b"", &nothing()).unwrap();
    assert_eq!((outcome.status, outcome.complaint.as_str()), (0, ""));
    String::from_utf8(outcome.output).unwrap()
}

#[test]
fn a_program_reads_its_input_and_its_files_and_writes_nothing_that_lasts() {
    let files = Files::new([("src/lib.rs", &b"fn f() {}"[..]), ("notes", b"n")].into_iter()).unwrap();
    let program = script("cat; pwd; ls -R; cat src/lib.rs; echo x > $HOME/kept && cat $HOME/kept");
    let outcome = run_now(&program, b"said\n", &files).unwrap();
    assert_eq!(
        String::from_utf8(outcome.output).unwrap(),
        "said\n/work\n.:\nnotes\nsrc\n\n./src:\nlib.rs\nfn f() {}x\n"
    );
    for place in ["/work/new", "/work/notes", "/usr/new", "/new", "/dev/new", "/etc/passwd"] {
        let outcome = run_now(&script(&format!("echo x > {place}")), b"", &files).unwrap();
        assert_eq!(outcome.status, 1, "{place}");
        assert!(outcome.complaint.contains("ead-only file system"), "{place}: {}", outcome.complaint);
    }
    assert_eq!(says(&script("ls -A $HOME /tmp | tr -d '\\n'")), "/tmp:home/tmp/home:", "what one run wrote is gone");
    assert_eq!(std::fs::read(files.0.path().join("notes")).unwrap(), b"n");
}

#[test]
fn a_program_reads_nothing_of_a_persons_own_unless_the_grant_names_it() {
    let own = tempfile::tempdir().unwrap();
    let key = own.path().join("key");
    std::fs::write(&key, "secret").unwrap();
    let key = key.to_str().unwrap();
    let outcome = run_now(&script(&format!("cat {key}")), b"", &nothing()).unwrap();
    assert!(outcome.status == 1 && outcome.complaint.ends_with("No such file or directory"), "{outcome:?}");
    assert_eq!(says(&reaching(&format!("read={key}"), &format!("cat {key}"))), "secret");
    let outcome = run_now(&reaching(&format!("read={key}"), &format!("echo x > {key}")), b"", &nothing()).unwrap();
    assert_eq!(outcome.status, 1, "the grant is to read");
    let gone = reaching(&format!("read={}/gone", own.path().display()), "true");
    assert!(matches!(run_now(&gone, b"", &nothing()), Err(ServiceError::Unavailable(_))));

    // The environment, and other processes, can hold keys as well.
    assert_eq!(says(&reaching("HOME=/x TOKEN='a b'", "echo $HOME $TOKEN")), "/x a b\n");
    assert_eq!(says(&script("env | cut -d= -f1 | sort | tr '\\n' ' '")), "HOME LANG PATH PWD SHLVL _ ");
    let seen = says(&script("cat /proc/[0-9]*/comm"));
    assert!(seen.lines().any(|name| name == "cat"), "{seen}");
    assert!(seen.lines().all(|name| ["bash", "bwrap", "cat"].contains(&name)), "{seen}");
    let outcome = run_now(&script("unshare --user true"), b"", &nothing()).unwrap();
    assert_ne!(outcome.status, 0, "no namespace of its own, where it could do more");
}

/// A program that lies in a person's folder is there, and nothing beside it.
#[test]
fn a_program_of_a_person_is_there_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let own = tempfile::tempdir().unwrap();
    let program = own.path().join("agent");
    std::fs::write(&program, "#!/bin/sh\nls \"$(dirname \"$0\")\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(own.path().join("key"), "secret").unwrap();
    assert_eq!(says(&program.to_str().unwrap().parse().unwrap()), "agent\n");
    // By a link, as installers make them.
    let link = own.path().join("linked");
    std::os::unix::fs::symlink(&program, &link).unwrap();
    assert_eq!(says(&link.to_str().unwrap().parse().unwrap()), "linked\n");
}

#[test]
fn a_program_has_no_network_unless_the_grant_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<>/dev/tcp/{}", listener.local_addr().unwrap().to_string().replace(':', "/"));
    assert_ne!(run_now(&script(&connect), b"", &nothing()).unwrap().status, 0);
    let outcome = run_now(&reaching("network", &connect), b"", &nothing()).unwrap();
    assert_eq!(outcome.status, 0, "{}", outcome.complaint);
    listener.accept().unwrap();
}

#[test]
fn how_a_program_ended_is_known() {
    let outcome =
        run_now(&script("echo first >&2; printf 'no \\033[1mkey\\n\\n' >&2; exit 3"), b"", &nothing()).unwrap();
    assert_eq!((outcome.status, outcome.complaint.as_str()), (3, "no \\u{1b}[1mkey"));
    assert_eq!(run_now(&script("kill -9 $$"), b"", &nothing()).unwrap().status, KILLED);
    // What does not read its input, ends before it, or leaves others behind ends all the same.
    let outcome = run_now(&script("sleep 1000 & echo done"), &vec![b'x'; MAX_INPUT], &nothing()).unwrap();
    assert_eq!((outcome.status, &outcome.output[..]), (0, &b"done\n"[..]));
    let gone = "/usr/bin/not-there".parse().unwrap();
    let error = run_now(&gone, b"", &nothing()).unwrap_err().to_string();
    assert!(error.contains("the program /usr/bin/not-there can't be started: No such file"), "{error}");
    let error = run_now(&script("true"), &vec![0; MAX_INPUT + 1], &nothing()).unwrap_err();
    assert!(matches!(error, ServiceError::Invalid(_)));
}

#[test]
fn limits_hold_for_what_a_program_takes() {
    assert_eq!(says(&script("ulimit -d; ulimit -c; ulimit -n; ulimit -u")), "4194304\n0\n1024\n512\n");
    let error = run_now(&script("yes"), b"", &nothing()).unwrap_err();
    assert_eq!(error, ServiceError::Exhausted(format!("/bin/bash wrote more than {MAX_OUTPUT} bytes")));
    for place in ["/tmp/full", "/dev/shm/full"] {
        let full = run_now(&script(&format!("head -c 300000000 /dev/zero > {place}")), b"", &nothing()).unwrap();
        assert!(full.status == 1 && full.complaint.ends_with("No space left on device"), "{full:?}");
    }
}

/// Whether a process with this argument is there.
fn is_there(argument: &str) -> bool {
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.into_iter().any(|process| {
        let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "{what}");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_is_killed_with_all_that_it_started() {
    let naps = |name: &str| script(&format!("(setsid bash -c 'sleep 600; : {name}' &) ; sleep 600; : {name}"));
    let number = std::process::id();
    let late = format!("late{number}");
    let error = block_on(run(&naps(&late), b"", &nothing(), Duration::from_millis(500))).unwrap_err();
    assert_eq!(error, ServiceError::Unavailable("/bin/bash did not end within 500 ms".to_owned()));
    let of = |name: &str| {
        [format!("sleep 600; : {name}"), format!("(setsid bash -c 'sleep 600; : {name}' &) ; sleep 600; : {name}")]
    };
    wait_until("the late one is gone", || of(&late).iter().all(|word| !is_there(word)));

    let dropped = format!("dropped{number}");
    block_on(async {
        let program = naps(&dropped);
        let files = nothing();
        let mut running = Box::pin(run(&program, b"", &files, TIMEOUT));
        let [inner, _] = of(&dropped);
        while !is_there(&inner) {
            let step = tokio::time::timeout(Duration::from_millis(5), &mut running).await;
            assert!(step.is_err(), "it naps");
        }
    });
    wait_until("the dropped one is gone", || of(&dropped).iter().all(|word| !is_there(word)));
}

#[test]
fn files_lead_nowhere_else() {
    let made = |path: &str| Files::new([(path, &b"x"[..])].into_iter()).map(drop);
    for path in ["../x", "/x", "a//b", "", "a/../../x", "a\\b", "a\nb", &"x".repeat(300)] {
        assert!(matches!(made(path), Err(ServiceError::Invalid(_))), "{path:?}");
    }
    let twice = Files::new([("a", &b"x"[..]), ("a", b"y")].into_iter());
    assert!(matches!(twice, Err(ServiceError::Invalid(_))));
    let both = Files::new([("a", &b"x"[..]), ("a/b", b"y")].into_iter());
    assert!(matches!(both, Err(ServiceError::Invalid(_))));
    let large = vec![0; MAX_FILES_SIZE];
    assert!(Files::new([("a", &large[..])].into_iter()).is_ok());
    assert!(Files::new([("a", &large[..]), ("b", b"x")].into_iter()).is_err());
    let many: Vec<String> = (0..=MAX_FILES).map(|number| number.to_string()).collect();
    assert!(Files::new(many.iter().map(|name| (name.as_str(), &b""[..]))).is_err());
    let folder = {
        let files = Files::new([("a", &b"x"[..])].into_iter()).unwrap();
        files.0.path().to_owned()
    };
    assert!(!folder.exists());
}
