//! A program behind a pseudo terminal, and a person in front of it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a person waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program that runs in a terminal of 100 columns.
pub struct Terminal {
    child: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    pub screen: Screen,
    /// Lines of the screen that were waited for already.
    seen: usize,
}

impl Terminal {
    /// Starts a program in a terminal of its own.
    pub fn start(mut command: Command) -> Self {
        let (mut master, mut side) = (-1, -1);
        let mut size = libc::winsize { ws_row: 40, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: all pointers are to what lives longer than the call, or null where that is allowed.
        let opened = unsafe { libc::openpty(&mut master, &mut side, null_mut(), null_mut(), &raw mut size) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just opened, and belong to nobody else.
        let (master, side) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(side)) };
        // Programs that others start meanwhile must not hold it open.
        // SAFETY: it changes a flag of an open descriptor.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        // SAFETY: the same.
        unsafe { libc::fcntl(side.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        let copy = |side: &OwnedFd| side.try_clone().unwrap();
        command.stdin(copy(&side)).stdout(copy(&side)).stderr(side).env("TERM", "xterm").env_remove("NO_COLOR");
        // SAFETY: both calls are async-signal-safe, nothing is allocated between fork and exec, and descriptor 0 is the
        // terminal, which is open until then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY as _, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        // The command has copies of the other side, and the end is seen when the last one is closed.
        drop(command);
        let keys = File::from(master);
        let mut from = keys.try_clone().unwrap();
        let (sender, output) = channel();
        // It ends with the terminal.
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(size) = from.read(&mut piece)
                && size > 0
                && sender.send(piece[..size].to_vec()).is_ok()
            {}
        });
        Self { child, keys, output, screen: Screen::default(), seen: 0 }
    }

    /// Waits until a line below those that were waited for before has this text.
    pub fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.screen.lines();
            if let Some(at) = lines.iter().skip(self.seen).position(|line| line.contains(text)) {
                self.seen += at;
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.screen.write(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{text:?} does not come; there is:\n{}", self.screen.lines().join("\n"))
                }
            }
        }
    }

    /// Waits for the prompt of a conversation: what is typed earlier would be shown twice.
    pub fn prompt(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while self.screen.lines().last().is_none_or(|line| line != ">") {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.screen.write(&bytes),
                Err(_) => panic!("no prompt comes; there is:\n{}", self.screen.lines().join("\n")),
            }
        }
    }

    /// Types keys.
    pub fn type_keys(&mut self, keys: &str) {
        // What comes from now on stands below.
        self.seen = self.screen.lines().len().saturating_sub(1);
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        self.type_keys(&format!("{line}\r"));
    }

    /// Waits for the end of the program, and returns its exit code and what is on the screen.
    pub fn end(mut self) -> (Option<i32>, Vec<String>) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.output.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.screen.write(&bytes),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.screen.lines().join("\n")),
            }
        }
        (self.child.wait().unwrap().code(), self.screen.lines())
    }
}

/// What a terminal without an end shows of what it is sent: as much of it as these programs use.
#[derive(Default)]
pub struct Screen {
    lines: Vec<Vec<char>>,
    row: usize,
    column: usize,
    /// What is no whole character or sequence yet.
    pending: Vec<u8>,
    /// Whether there were colours.
    pub is_coloured: bool,
}

impl Screen {
    /// The lines, without blanks at their ends.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.lines.iter().map(|line| line.iter().collect::<String>().trim_end().to_owned()).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let pending = std::mem::take(&mut self.pending);
        let whole = match std::str::from_utf8(&pending) {
            Ok(_) => pending.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8_lossy(&pending[..whole]).into_owned();
        self.pending = pending[whole..].to_vec();
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\r' => self.column = 0,
                '\n' => self.row += 1,
                '\u{8}' => self.column = self.column.saturating_sub(1),
                '\u{1b}' => {
                    let rest: String = text[at + 1..].to_owned();
                    let Some(end) = rest.find(|c: char| c.is_ascii_alphabetic()).filter(|_| rest.starts_with('['))
                    else {
                        // The rest of the sequence comes with the next bytes.
                        let mut kept = text.as_bytes()[at..].to_vec();
                        kept.append(&mut self.pending);
                        self.pending = kept;
                        return;
                    };
                    self.sequence(&rest[1..end], &rest[end..=end]);
                    letters.nth(end);
                }
                letter if letter.is_control() => {}
                letter => self.put(letter),
            }
        }
    }

    fn put(&mut self, letter: char) {
        let (line, column) = self.line();
        if line.len() <= column {
            line.resize(column + 1, ' ');
        }
        line[column] = letter;
        self.column += 1;
    }

    fn line(&mut self) -> (&mut Vec<char>, usize) {
        if self.lines.len() <= self.row {
            self.lines.resize(self.row + 1, Vec::new());
        }
        (&mut self.lines[self.row], self.column)
    }

    fn sequence(&mut self, parameters: &str, what: &str) {
        let count = parameters.parse::<usize>().unwrap_or(1);
        match what {
            "m" => self.is_coloured = true,
            "A" => self.row = self.row.saturating_sub(count),
            "B" => self.row += count,
            "C" => self.column += count,
            "D" => self.column = self.column.saturating_sub(count),
            "G" => self.column = count - 1,
            "K" => {
                let (line, column) = self.line();
                line.truncate(column);
            }
            "J" => {
                let (line, column) = self.line();
                line.truncate(column);
                let row = self.row;
                self.lines.truncate(row + 1);
            }
            _ => {}
        }
    }
}
