//! Text that people read: on a terminal, in a log, in a question that an agent's program shows.
//!
//! Most of what the program prints was written by others: names of devices, addresses of OSC packets, plans of
//! agents, summaries of packages, lines of a file. A control character in it could clear the screen, retype the line
//! above or set the clipboard; a bidi control could turn a diff around; a character that can't be seen could hide in
//! a name. So there is one way to a terminal, and it is this module:
//!
//! - [`escape`] decides for each character whether it is shown as it is, or as `\u{1b}`. Nothing else does.
//! - `outln!` and `errln!` print *one line each*: control characters in their arguments, line feeds included, are
//!   escaped.
//!   Output of several lines is made with [`Lines`], where text of others that has lines of its own gets a gutter, or
//!   with [`Table`], where it is a cell.
//! - JSON is escaped as JSON is: the same value, other text.
//! - Markdown of others is rendered by [`markdown`], which escapes its text and indents its lines.
//! - Lines that a person types are read by [`editor`]; a program that has the whole screen keeps one as a [`typed::Line`].
//! - [`duration()`] writes seconds for people.
//! - [`Progress`] counts the seconds of work that takes long.
//! - Colours are a [`Style`] of a part of a line, and never text.
//! - [`log`] does the same for what is logged.
//!
//! The macros and functions of the standard library that write to a terminal are disallowed outside this module by
//! `host/clippy.toml`.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::disallowed_macros))]

/// Bytes kept of a text that a feature, a server or another program gives: an error, a diagnostic.
pub const MAX_TEXT: usize = 1024;

mod duration;
pub mod editor;
mod escape;
mod lines;
pub mod log;
pub mod markdown;
mod output;
mod progress;
mod table;
pub mod typed;

pub use conductor_hidden_characters::is_hidden;
pub use duration::duration;
pub use escape::{MAX_MARKS, escape, excerpt, excerpt_lines, fit, paragraphs, shortened, width};
pub use lines::{Lines, Style};
pub use output::{
    Rendered, ask, ask_line, ask_secret, document, eprint, eprint_table, error_columns, escaped_arguments,
    is_interactive, is_output_terminal, json, json_line, output_columns, piece, print, print_table, report_panics,
    try_json_line, try_print,
};
pub use output::{print_err_line, print_line};
pub use progress::Progress;
pub use table::Table;
