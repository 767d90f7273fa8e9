//! SIGHUP: the terminal that a host was started in is closed, or somebody asks the host to read its configuration again.

#![allow(clippy::unwrap_used, reason = "in a test a panic is a result")]

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use conductor_tests::conductor::{Host, command};
use conductor_tests::home::Home;

/// A pseudo terminal. Dropping it closes it, as a person closes a window.
struct Terminal {
    _master: File,
    side: File,
}

impl Terminal {
    /// Opens both ends so that no program which another test starts meanwhile can hold one of them open.
    fn new() -> Self {
        let open =
            |path: &Path| OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).unwrap();
        let master = open(Path::new("/dev/ptmx"));
        let mut name = [0; 128];
        // SAFETY: the descriptor is open, and `name` is as long as is said and outlives the call.
        let named = unsafe {
            let fd = master.as_raw_fd();
            libc::grantpt(fd) == 0 && libc::unlockpt(fd) == 0 && libc::ptsname_r(fd, name.as_mut_ptr(), name.len()) == 0
        };
        assert!(named, "{}", io::Error::last_os_error());
        // SAFETY: a name that was found ends with 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        let side = open(Path::new(name.to_str().unwrap()));
        Self { _master: master, side }
    }

    /// Has the program begin a session whose controlling terminal this is.
    fn controls(&self, command: &mut Command) {
        let side = self.side.as_raw_fd();
        begins_session(command);
        // SAFETY: the call is async-signal-safe, nothing is allocated between fork and exec, and the descriptor is open
        // until then.
        unsafe {
            command.pre_exec(move || match libc::ioctl(side, libc::TIOCSCTTY as _, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
    }
}

/// Has the program begin a session without a terminal, as a service is. It ends by SIGHUP, also where these tests are run by
/// `nohup`.
fn begins_session(command: &mut Command) {
    // SAFETY: the calls are async-signal-safe, and nothing is allocated between fork and exec.
    unsafe {
        command.pre_exec(|| {
            if libc::signal(libc::SIGHUP, libc::SIG_DFL) == libc::SIG_ERR || libc::setsid() == -1 {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Has the program begin with SIGHUP ignored, as `nohup` does.
fn ignores_hang_ups(command: &mut Command) {
    // SAFETY: the call is async-signal-safe, and nothing is allocated between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::signal(libc::SIGHUP, libc::SIG_IGN) {
            libc::SIG_ERR => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
}

/// The same program, as what a shell runs in the foreground.
fn by_shell(direct: &Command) -> Command {
    let mut shell = Command::new("sh");
    // Without more to do the shell would become the program.
    shell.args(["-c", "\"$@\"; exit", "sh"]).arg(direct.get_program()).args(direct.get_args());
    for (name, value) in direct.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// A home whose configuration is a link, behind which no change is noticed.
struct LinkedHome {
    home: Home,
    elsewhere: Home,
}

impl LinkedHome {
    fn new() -> Self {
        let (home, elsewhere) = (Home::empty(), Home::new("[[modes]]\nname = 'Play'\n"));
        std::os::unix::fs::symlink(elsewhere.config(), home.config()).unwrap();
        Self { home, elsewhere }
    }

    fn change(&self) {
        self.elsewhere.configure("[[modes]]\nname = 'Live'\n");
    }
}

// CLI-1: who closes the window leaves no host behind that nobody sees.
#[test]
fn a_host_ends_with_the_terminal_that_it_was_started_in() {
    for is_by_shell in [false, true] {
        let home = Home::new("");
        let mut command = command(home.path(), &["run"]);
        if is_by_shell {
            command = by_shell(&command);
        }
        let terminal = Terminal::new();
        terminal.controls(&mut command);
        let host = Host::ready(&mut command, home.socket());
        let pid = host.status()["pid"].to_string();

        drop(terminal);
        let (end, _) = host.end();
        let is_there = home.socket().exists();
        if is_there {
            // What a shell leaves behind is nobody's to end.
            Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap();
        }
        assert!(!is_there, "it goes on; by a shell: {is_by_shell}: {}", end.err);
        assert!(end.err.contains("stopping"), "{}", end.err);
        if !is_by_shell {
            assert_eq!(end.code, Some(0), "{}", end.err);
        }
    }
}

// CFG-4: `nohup conductor run &` goes on, and the signal means what it means to a service.
#[test]
fn a_host_that_was_started_to_outlive_its_terminal_does() {
    let linked = LinkedHome::new();
    let mut command = command(linked.home.path(), &["run"]);
    let terminal = Terminal::new();
    terminal.controls(&mut command);
    ignores_hang_ups(&mut command);
    let host = Host::ready(&mut command, linked.home.socket());

    linked.change();
    drop(terminal);
    host.log().line("reloaded");
    assert_eq!(host.stop().0.code, Some(0));
}

// CFG-4: SIGHUP by hand, or by a service manager.
#[test]
fn a_hang_up_while_the_terminal_is_there_or_without_any_reads_the_file_again() {
    for has_terminal in [true, false] {
        let linked = LinkedHome::new();
        let mut command = command(linked.home.path(), &["run"]);
        let terminal = has_terminal.then(Terminal::new);
        match &terminal {
            Some(terminal) => terminal.controls(&mut command),
            None => begins_session(&mut command),
        }
        let host = Host::ready(&mut command, linked.home.socket());

        linked.change();
        host.signal("HUP");
        host.log().line("reloaded");
        assert_eq!(host.stop().0.code, Some(0));
        drop(terminal);
    }
}
