//! Lines that a person types at a terminal: edited, with the lines of before, and words that Tab completes.
//!
//! What is shown and read goes to the terminal itself, also where standard output goes elsewhere.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::{DefaultHistory, MemHistory};
use rustyline::validate::Validator;
use rustyline::{Behavior, Config, Context, Editor, Helper};

use super::escape::escape;

/// Lines that are remembered.
const MAX_HISTORY: usize = 1000;

/// Whether an editor is in use, so that questions are asked by one, too.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// What a person typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    /// A line, without blanks around it.
    Line(String),
    /// Ctrl-C: the line is thrown away.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    End,
}

/// Reads lines, and remembers them in a file.
#[derive(Debug)]
pub struct LineEditor {
    editor: Editor<Words, DefaultHistory>,
    history: PathBuf,
}

impl LineEditor {
    /// An editor that remembers lines in `history`, and completes these words at the beginning of a line.
    ///
    /// # Errors
    /// If there is no terminal.
    pub fn open(history: &Path, words: &'static [&'static str]) -> io::Result<Self> {
        let mut editor = Editor::with_config(config()).map_err(failed)?;
        editor.set_helper(Some(Words(words)));
        // Without it there is nothing to remember yet.
        let _ = editor.load_history(history);
        IN_USE.store(true, Ordering::Relaxed);
        Ok(Self { editor, history: history.to_owned() })
    }

    /// Reads a line.
    ///
    /// # Errors
    /// If the terminal can't be read.
    pub fn read(&mut self, prompt: &str) -> io::Result<Typed> {
        let typed = typed(self.editor.readline(&*escape(prompt)))?;
        if let Typed::Line(line) = &typed
            && self.editor.add_history_entry(line).unwrap_or(false)
        {
            // A line that is not remembered was said all the same.
            let _ = self.editor.save_history(&self.history);
        }
        Ok(typed)
    }
}

impl Drop for LineEditor {
    fn drop(&mut self) {
        IN_USE.store(false, Ordering::Relaxed);
    }
}

/// Asks a question while a [`LineEditor`] is in use: Ctrl-C is an empty answer. `None` if none is.
pub(super) fn ask(question: &str) -> Option<io::Result<Option<String>>> {
    if !IN_USE.load(Ordering::Relaxed) {
        return None;
    }
    let asked = || {
        let mut editor: Editor<(), MemHistory> = Editor::with_history(config(), MemHistory::new()).map_err(failed)?;
        Ok(match typed(editor.readline(question))? {
            Typed::Line(line) => Some(line),
            Typed::Interrupted => Some(String::new()),
            Typed::End => None,
        })
    };
    Some(asked())
}

fn config() -> Config {
    let builder = Config::builder().behavior(Behavior::PreferTerm).history_ignore_space(true).auto_add_history(false);
    match builder.max_history_size(MAX_HISTORY) {
        Ok(builder) => builder.build(),
        Err(_) => Config::default(),
    }
}

fn typed(read: Result<String, ReadlineError>) -> io::Result<Typed> {
    match read {
        Ok(line) => Ok(Typed::Line(line.trim().to_owned())),
        Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
        Err(ReadlineError::Eof) => Ok(Typed::End),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Completes the first word of a line.
#[derive(Debug)]
struct Words(&'static [&'static str]);

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let begun = line.get(..at).unwrap_or_default();
        let fit = self.0.iter().filter(|word| !begun.is_empty() && word.starts_with(begun));
        Ok((0, fit.map(|word| (*word).to_owned()).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}
