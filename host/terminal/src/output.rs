//! Standard output and standard error of the `conductor` command.
//!
//! The one place that writes to them. If the reader of standard output has closed it (`conductor ports | head`), the
//! program ends without an error, as other Unix tools do.

#![expect(clippy::disallowed_methods, reason = "this is where the rest of the host is sent to")]

use std::ffi::OsString;
use std::fmt::Arguments;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::Value;
use terminal_size::{Width, terminal_size_of};

use super::escape::{escape, escape_json, excerpt_lines, fit};
use super::markdown::Markdown;
use super::{Lines, Table, editor, paragraphs};

/// Whether the last line on standard error is one that the next output there takes the place of.
static IS_TRANSIENT: AtomicBool = AtomicBool::new(false);

/// Goes to the beginning of the line and clears it (ECMA-48 CR and EL 2).
const CLEAR_LINE: &str = "\r\u{1b}[2K";

/// Goes before each line of a text of others but its first, where nothing else fits better.
const GUTTER: &str = "  | ";

/// Prints one line to standard output, as `println!` does, with all of it escaped: line feeds, too.
#[macro_export]
macro_rules! outln {
    ($($argument:tt)*) => { $crate::print_line(format_args!($($argument)*)) };
}

/// Prints one line to standard error, as `eprintln!` does, with all of it escaped: line feeds, too.
#[macro_export]
macro_rules! errln {
    ($($argument:tt)*) => { $crate::print_err_line(format_args!($($argument)*)) };
}

/// Prints one line to standard output; use [`outln!`].
pub fn print_line(line: Arguments<'_>) {
    written(write_out(&format!("{}\n", escape(&line.to_string()))));
}

/// Prints one line to standard error; use [`errln!`].
pub fn print_err_line(line: Arguments<'_>) {
    write_err(&format!("{}\n", escape(&line.to_string())));
}

/// Prints lines to standard output.
pub fn print(lines: &Lines) {
    written(try_print(lines));
}

/// Prints lines to standard output, and returns an error if its reader has closed it.
pub fn try_print(lines: &Lines) -> io::Result<()> {
    write_out(&lines.render(has_colour(&io::stdout())))
}

/// How many columns standard output has, if it is a terminal.
pub fn output_columns() -> Option<u16> {
    terminal_size_of(io::stdout()).map(|(Width(columns), _)| columns)
}

/// How many columns standard error has, if it is a terminal.
pub fn error_columns() -> Option<u16> {
    terminal_size_of(io::stderr()).map(|(Width(columns), _)| columns)
}

/// Prints a table to standard output; on a terminal, arranged for its width.
pub fn print_table<const N: usize>(table: &Table<N>) {
    print(&table.lines(output_columns()));
}

/// Prints a table to standard error; on a terminal, arranged for its width.
pub fn eprint_table<const N: usize>(table: &Table<N>) {
    eprint(&table.lines(error_columns()));
}

/// Prints lines to standard error.
pub fn eprint(lines: &Lines) {
    write_err(&lines.render(has_colour(&io::stderr())));
}

/// Prints a value as JSON over several lines.
///
/// # Errors
/// If the value can't be serialized.
pub fn json(value: &(impl Serialize + ?Sized)) -> serde_json::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    written(write_out(&format!("{}\n", escape_json(&text))));
    Ok(())
}

/// Prints a value as JSON on one line.
pub fn json_line(value: &Value) {
    written(try_json_line(value));
}

/// Prints a value as JSON on one line.
///
/// # Errors
/// If the value can't be serialized, or standard output has been closed.
pub fn try_json_line(value: &(impl Serialize + ?Sized)) -> io::Result<()> {
    write_out(&format!("{}\n", escape_json(&serde_json::to_string(value)?)))
}

/// Prints a file that this program makes for another program to read, such as a shell's completions.
///
/// It is the exception that is not escaped, except on a terminal, where its only reader is a person.
pub fn document(text: &str) {
    if io::stdout().is_terminal() {
        let mut lines = Lines::new();
        lines.push_text("", text);
        print(&lines);
    } else {
        written(write_out(text));
    }
}

/// Asks a person a question on standard error, and returns the line that is typed, without blanks around it.
///
/// # Errors
/// If standard input can't be read.
pub fn ask(question: Arguments<'_>) -> io::Result<String> {
    Ok(ask_line(question)?.unwrap_or_default())
}

/// The same; `None` at the end of standard input.
///
/// # Errors
/// If standard input can't be read.
pub fn ask_line(question: Arguments<'_>) -> io::Result<Option<String>> {
    let question = format!("{} ", escape(&question.to_string()));
    if let Some(answer) = editor::ask(&question) {
        return answer;
    }
    write_err(&question);
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer)?;
    Ok((read > 0).then(|| answer.trim().to_owned()))
}

/// Prints a piece of a text that is still coming. What is hidden in it is escaped, except line feeds.
pub fn piece(text: &str) {
    written(write_out(&excerpt_lines(text, usize::MAX)));
}

/// A Markdown text of others that is still coming: rendered on a terminal, as it came where standard output is none.
#[derive(Debug)]
pub struct Rendered(Option<Markdown>);

impl Rendered {
    /// A text for standard output.
    pub fn new() -> Self {
        let columns = output_columns();
        let colour = has_colour(&io::stdout());
        Self(io::stdout().is_terminal().then(|| Markdown::new(columns, colour)))
    }

    /// Prints as much of a piece as can be shown.
    pub fn push(&mut self, text: &str) {
        match &mut self.0 {
            Some(markdown) => written(write_out(&markdown.push(text))),
            None => piece(text),
        }
    }

    /// Prints the rest, and a line feed if the last line has none. The next piece begins another text.
    pub fn end(&mut self) {
        if let Some(markdown) = &mut self.0 {
            written(write_out(&markdown.end()));
        }
    }
}

impl Default for Rendered {
    fn default() -> Self {
        Self::new()
    }
}

/// Asks for a secret, which is not shown while it is typed.
///
/// # Errors
/// If there is no terminal.
pub fn ask_secret(question: Arguments<'_>) -> io::Result<String> {
    rpassword::prompt_password(format!("{} ", escape(&question.to_string())))
}

/// Whether standard output is a terminal.
pub fn is_output_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether a person can be asked: standard input and standard error are a terminal.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether standard error is a terminal.
pub(super) fn is_error_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Shows a line on standard error, which is a terminal, until anything else is written there. It is escaped,
/// and cut at the terminal's width, since one that wraps can't be taken back.
pub(super) fn show_transient(line: &str) {
    let columns = terminal_size_of(io::stderr()).map_or(80, |(Width(columns), _)| usize::from(columns));
    let mut error = io::stderr().lock();
    let line = fit(line, columns.saturating_sub(1));
    let _ = error.write_all(format!("{CLEAR_LINE}{line}").as_bytes()).and_then(|()| error.flush());
    IS_TRANSIENT.store(true, Ordering::Relaxed);
}

/// Takes back a line that [`show_transient`] shows.
fn clear_transient(error: &mut impl io::Write) {
    if IS_TRANSIENT.swap(false, Ordering::Relaxed) {
        let _ = error.write_all(CLEAR_LINE.as_bytes());
    }
}

/// Takes back a line that [`show_transient`] shows, if nothing was written there since.
pub(super) fn end_transient() {
    let mut error = io::stderr().lock();
    clear_transient(&mut error);
    let _ = error.flush();
}

/// Whether standard error shows colours.
pub(super) fn is_error_coloured() -> bool {
    has_colour(&io::stderr())
}

/// Standard error, for log lines.
#[derive(Debug)]
pub(super) struct StandardError;

impl io::Write for StandardError {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut error = io::stderr().lock();
        clear_transient(&mut error);
        error.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn has_colour(stream: &impl io::IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The command line with all hidden characters escaped, for a message about it.
pub fn escaped_arguments() -> Vec<OsString> {
    std::env::args_os().map(|argument| escape(&argument.to_string_lossy()).into_owned().into()).collect()
}

/// Has panics reported to standard error as everything else: escaped. A message may hold text of others.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let place = panic.location().map(|place| format!(" at {place}")).unwrap_or_default();
        let message = panic.payload_as_str().unwrap_or("no message");
        print_err_line(format_args!("thread '{}' panicked{place}:", thread.name().unwrap_or("<unnamed>")));
        write_err(&format!("{}\n", paragraphs(message, GUTTER)));
        let backtrace = std::backtrace::Backtrace::capture();
        if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
            write_err(&format!("{}\n", paragraphs(&backtrace.to_string(), "")));
        }
    }));
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Failures are reported on standard error; if it can't be written, they are lost.
fn write_err(text: &str) {
    let mut error = io::stderr().lock();
    clear_transient(&mut error);
    let _ = error.write_all(text.as_bytes());
}

/// Ends the program if standard output can't be written: without an error if its reader has closed it.
fn written(result: io::Result<()>) {
    match result {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            print_err_line(format_args!("conductor: standard output can't be written: {error}"));
            std::process::exit(1);
        }
    }
}
