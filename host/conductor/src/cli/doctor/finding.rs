//! Findings of the doctor: one problem each, its severity, and how to repair it.

use serde::Serialize;

use conductor_terminal::Lines;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Conductor works, but something that a person may want does not.
    Warning,
    /// Conductor does not do what the configuration says.
    Trouble,
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// The part of the machine: `home`, `host`, `configuration`, `midi`.
    pub(super) about: &'static str,
    /// How bad it is.
    pub(super) level: Level,
    /// What there is.
    pub(super) what: String,
    /// What to do about it, command lines and text of files included; `None` if nothing is to do.
    pub(super) mend: Option<String>,
}

impl Finding {
    pub(super) fn ok(about: &'static str, what: impl Into<String>) -> Self {
        Self { about, level: Level::Ok, what: what.into(), mend: None }
    }

    pub(super) fn warning(about: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, level: Level::Warning, what: what.into(), mend: Some(mend.into()) }
    }

    pub(super) fn trouble(about: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { about, level: Level::Trouble, what: what.into(), mend: Some(mend.into()) }
    }

    /// A trouble if it is used (`wanted`), else a warning.
    pub(super) fn missed(wanted: bool, about: &'static str, what: impl Into<String>, mend: impl Into<String>) -> Self {
        if wanted { Self::trouble(about, what, mend) } else { Self::warning(about, what, mend) }
    }
}

/// All of them for a person.
pub(super) fn shown(findings: &[Finding]) -> Lines {
    let mut out = Lines::new();
    for Finding { about, level, what, mend } in findings {
        let word = match level {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Trouble => "TROUBLE",
        };
        below(&mut out, &format!("{word:<8} {about:<14} "), what);
        if let Some(mend) = mend {
            below(&mut out, &format!("{:24}-> ", ""), mend);
        }
    }
    out
}

/// A text, and below its first line what more there is to it.
fn below(out: &mut Lines, head: &str, text: &str) {
    let (first, more) = text.split_once('\n').unwrap_or((text, ""));
    out.push(format_args!("{head}{first}"));
    if !more.is_empty() {
        out.push_text(&" ".repeat(head.len()), more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_stands_below_what_is_wrong() {
        let findings = [Finding::ok("home", "fine"), Finding::trouble("midi", "no\nport", "do this\nand that")];
        let expected = "ok       home           fine\n\
            TROUBLE  midi           no\n                        port\n                        -> do this\n                           and that\n";
        assert_eq!(shown(&findings).to_string(), expected);
        let json = serde_json::to_value(&findings[1]).unwrap();
        assert_eq!(json["level"], "trouble");
    }
}
