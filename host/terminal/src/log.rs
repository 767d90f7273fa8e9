//! Log lines on standard error: the time, the level, and a message in which everything is escaped.

use std::fmt;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::FmtContext;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::registry::LookupSpan;

use super::output::{StandardError, is_error_coloured};
use super::{Lines, Style};

/// The target of log lines that every command shows, and not only a running host: why a command takes long.
pub const NOTICE: &str = "conductor::notice";

/// Goes before each line of a message but its first.
const GUTTER: &str = "    | ";

/// Sends log lines to standard error from now on. `filter` says which, as in the variable `CONDUCTOR_LOG`.
///
/// # Panics
/// If log lines go somewhere already.
pub fn start(filter: EnvFilter) {
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| StandardError)
        .event_format(EscapedFormat { colour: is_error_coloured() })
        .init();
}

/// The format of log lines, for any `tracing` subscriber. Names of spans are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct EscapedFormat {
    /// Whether time and level have ANSI colours.
    pub colour: bool,
}

impl<S, F> FormatEvent<S, F> for EscapedFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    F: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, F>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (mut time, mut message) = (String::new(), String::new());
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        context.format_fields(Writer::new(&mut message), event)?;
        let level = *event.metadata().level();
        let (first, more) = message.split_once('\n').unwrap_or((&message, ""));
        let mut lines = Lines::new();
        lines.push_spans(&[
            (Style::Dim, &time),
            (Style::Plain, &" "),
            (style(level), &format_args!("{:>5}", level.as_str())),
            (Style::Plain, &" "),
            (Style::Plain, &first),
        ]);
        if !more.is_empty() {
            lines.push_text(GUTTER, more);
        }
        out.write_str(&lines.render(self.colour))
    }
}

fn style(level: Level) -> Style {
    match level {
        Level::ERROR => Style::Red,
        Level::WARN => Style::Yellow,
        Level::INFO => Style::Green,
        _ => Style::Blue,
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::is_hidden;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(colour: bool, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .event_format(EscapedFormat { colour })
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_name_in_a_log_line_neither_steers_the_terminal_nor_makes_a_line() {
        let log = logged(false, || {
            let name = "pads\u{9b}2J\u{202e}\u{1b}]0;x\u{7}\n2026-01-01T00:00:00Z  INFO ready";
            tracing::warn!(door = name, port = %name, "{name}");
        });
        assert!(!log.chars().any(|c| c != '\n' && is_hidden(c)), "{log:?}");
        assert!(log.contains("\\u{9b}2J\\u{202e}"), "{log}");
        assert!(log.lines().skip(1).all(|line| line.starts_with(GUTTER)), "{log}");
    }

    #[test]
    fn only_time_and_level_are_coloured() {
        let log = logged(true, || tracing::error!("broken\u{1b}[0m"));
        assert!(log.contains("\u{1b}[31mERROR\u{1b}[0m broken"), "{log:?}");
        assert_eq!(log.matches('\u{1b}').count(), 4, "{log:?}");
    }
}
