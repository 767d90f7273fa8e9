//! A program behind a pseudo terminal, and a person in front of it.

#![allow(dead_code, reason = "each program of tests uses its part")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a person waits for anything.
const EXPECT_TIMEOUT: Duration = Duration::from_secs(60);

/// How a terminal treats what is typed and printed: its input, output and local modes.
fn modes(terminal: &impl AsRawFd) -> [libc::tcflag_t; 3] {
    let mut modes = std::mem::MaybeUninit::<libc::termios>::zeroed();
    // SAFETY: the pointer is to what lives longer than the call.
    let done = unsafe { libc::tcgetattr(terminal.as_raw_fd(), modes.as_mut_ptr()) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the call has filled it, and all zeros would be a value, too.
    let modes = unsafe { modes.assume_init() };
    [modes.c_iflag, modes.c_oflag, modes.c_lflag]
}

/// A program that runs in a terminal.
pub struct Terminal {
    child: Child,
    keys: File,
    /// Its modes before the program started.
    pub modes_before: [libc::tcflag_t; 3],
    output: Receiver<Vec<u8>>,
    pub screen: Screen,
    /// All that the program has sent.
    pub sent: Vec<u8>,
    /// Lines of the screen that were waited for already.
    seen: usize,
}

impl Terminal {
    /// Starts a program in a terminal of its own, of 100 columns and 40 rows.
    pub fn start(mut command: Command) -> Self {
        command.env_remove("NO_COLOR");
        Self::sized(command, 100, 40)
    }

    /// The same in a terminal of this size.
    pub fn sized(mut command: Command, columns: u16, rows: u16) -> Self {
        let (mut master, mut side) = (-1, -1);
        let mut size = winsize(columns, rows);
        // SAFETY: all pointers are to what lives longer than the call, or null where that is allowed.
        let opened = unsafe { libc::openpty(&mut master, &mut side, null_mut(), null_mut(), &raw mut size) };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: both were just opened, and are owned here alone.
        let (master, side) = unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(side)) };
        // Programs that others start meanwhile must not hold it open.
        // SAFETY: it changes a flag of an open descriptor.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        // SAFETY: the same.
        unsafe { libc::fcntl(side.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
        let copy = |side: &OwnedFd| side.try_clone().unwrap();
        command.stdin(copy(&side)).stdout(copy(&side)).stderr(side).env("TERM", "xterm");
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
        let modes = modes(&master);
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
        Self { child, keys, modes_before: modes, output, screen: Screen::default(), sent: Vec::new(), seen: 0 }
    }

    /// Takes in what comes next. Returns whether anything does within this time.
    fn read(&mut self, within: Duration) -> Result<(), RecvTimeoutError> {
        let bytes = self.output.recv_timeout(within)?;
        self.screen.write(&bytes);
        self.sent.extend(bytes);
        Ok(())
    }

    /// Waits until a line below those that were waited for before has this text.
    pub fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + EXPECT_TIMEOUT;
        loop {
            let lines = self.screen.lines();
            if let Some(at) = lines.iter().skip(self.seen).position(|line| line.contains(text)) {
                self.seen += at;
                return;
            }
            if self.read(deadline.saturating_duration_since(Instant::now())).is_err() {
                panic!("{text:?} does not come; there is:\n{}", self.screen.lines().join("\n"));
            }
        }
    }

    /// Waits until the screen of a program that draws all of it is so.
    pub fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let deadline = Instant::now() + EXPECT_TIMEOUT;
        while !is_so(&self.screen.lines()) {
            if self.read(deadline.saturating_duration_since(Instant::now())).is_err() {
                panic!("{what:?} does not come; there is:\n{}", self.screen.lines().join("\n"));
            }
        }
    }

    /// Waits until a line of such a screen has all of these texts.
    pub fn shows(&mut self, texts: &[&str]) {
        let has_all = |line: &String| texts.iter().all(|text| line.contains(text));
        self.until(&texts.join(" ... "), |lines| lines.iter().any(has_all));
    }

    /// Makes the terminal larger or smaller.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = winsize(columns, rows);
        // SAFETY: the pointer is to what lives longer than the call.
        let done = unsafe { libc::ioctl(self.keys.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child was not waited for yet, so that no other process has its number.
        let done = unsafe { libc::kill(self.child.id().try_into().unwrap(), signal) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }

    /// The terminal's modes now.
    pub fn modes(&self) -> [libc::tcflag_t; 3] {
        modes(&self.keys)
    }

    /// Waits for the prompt of a conversation: what is typed earlier would be shown twice.
    pub fn prompt(&mut self) {
        let deadline = Instant::now() + EXPECT_TIMEOUT;
        while self.screen.lines().last().is_none_or(|line| line != ">") {
            if self.read(deadline.saturating_duration_since(Instant::now())).is_err() {
                panic!("no prompt comes; there is:\n{}", self.screen.lines().join("\n"));
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
        (self.code(), self.screen.lines())
    }

    /// Waits for the end of the program, and returns its exit code.
    pub fn code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + EXPECT_TIMEOUT;
        loop {
            match self.read(deadline.saturating_duration_since(Instant::now())) {
                Ok(()) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", self.screen.lines().join("\n")),
            }
        }
        self.child.wait().unwrap().code()
    }
}

fn winsize(columns: u16, rows: u16) -> libc::winsize {
    libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
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
            "H" => {
                let (row, column) = parameters.split_once(';').unwrap_or((parameters, "1"));
                self.row = row.parse::<usize>().unwrap_or(1) - 1;
                self.column = column.parse::<usize>().unwrap_or(1) - 1;
            }
            "J" if parameters == "2" => self.lines.clear(),
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
