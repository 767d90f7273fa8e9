//! Consent: how capabilities are shown to the person who grants them.
//!
//! What is granted is what was shown: one line for each target, nothing cut, and what stands for everything first
//! and in capitals. A request that can't be shown so is not granted as a whole; a person may grant its targets
//! one by one. Every place that words a capability words it with this module, so what a person reads before a
//! decision is what a receipt or a listing says after it. Characters that steer a terminal are made visible where
//! it is printed; see [`terminal`](conductor_terminal).

use crate::admission::Grantee;
pub use crate::capability::is_wildcard;
use crate::capability::{Capability, CapabilityRequest, HTTP, SYSEX};
use crate::grants::Grants;
use crate::program::Program;

/// Targets that one question may be about.
pub const MAX_TARGETS_ASKED: usize = 16;

/// The longest target that one question may be about, in characters.
const MAX_TARGET_ASKED: usize = 100;

/// What a capability opens, a line for each target; what stands for everything first.
pub fn lines(capability: &Capability) -> Vec<String> {
    let mut lines = match capability {
        Capability::Network { .. } => capability
            .scope()
            .iter()
            .map(|word| match word.strip_prefix(HTTP) {
                Some(host) if is_wildcard(word) => format!("HTTP to ANY host ({host})"),
                Some(host) => format!("HTTP to {host}"),
                None => udp(word),
            })
            .collect(),
        Capability::Secret { hosts, .. } => {
            let to = |host: String| if host == "*" { "ANY host (*)".to_owned() } else { host };
            hosts.iter().map(|host| format!("sent to {}", to(host.to_string()))).collect()
        }
        Capability::Store { quota } => vec![format!("{quota} bytes of its own data")],
        Capability::Files { write, path, .. } => {
            let what = if *write { "read, make, replace and remove files" } else { "read files" };
            vec![format!("{what} in {}", folder(path.as_deref()))]
        }
        Capability::GitSnapshot { path, .. } => vec![format!("read what is committed in {}", folder(path.as_deref()))],
        Capability::RunProgram { programs } if programs.is_empty() => vec!["run a program that you name".to_owned()],
        Capability::RunProgram { programs } => programs.iter().map(program).collect(),
        Capability::MidiOut { bindings, sysex } => {
            let to = bindings.iter().map(|alias| all(alias, "MIDI to EVERY output (*)", "MIDI to"));
            to.chain(sysex.then(|| "system exclusive messages to these outputs".to_owned())).collect()
        }
        Capability::ObserveEvents { bindings } => {
            bindings.iter().map(|alias| all(alias, "every event of EVERY device (*)", "every event of")).collect()
        }
        Capability::UseModel { models, tokens } => {
            let ask = models.iter().map(|name| all(name, "ask EVERY model (*)", "ask the model"));
            ask.chain([format!("{tokens} tokens per minute")]).collect()
        }
        whole => whole.kind().as_whole().into_iter().map(|(_, opens)| opens.to_owned()).collect(),
    };
    // Stable: beside that, the order is the author's.
    lines.sort_by_key(|line| match line {
        line if line.contains(" ANY host") || line.contains(" EVERY ") => 0,
        line if line.contains(" ANY port") => 1,
        _ => 2,
    });
    lines
}

/// What a request or a grant is on one line: kind, purpose, and every target.
pub fn line(request: &CapabilityRequest) -> String {
    format!("{} ({})", request.key(), lines(&request.capability).join("; "))
}

/// Whether a person can grant all of it with one answer: it is not too long to be read, and is what it looks like.
///
/// # Errors
/// Why not, to follow the name of the request.
pub fn whole(capability: &Capability) -> Result<(), String> {
    let scope = capability.scope();
    if scope.len() > MAX_TARGETS_ASKED {
        return Err(format!(
            "asks for {} targets, and one answer grants at most {MAX_TARGETS_ASKED}; grant those that you mean, one by one",
            scope.len()
        ));
    }
    if let Some(long) = scope.iter().find(|word| word.chars().count() > MAX_TARGET_ASKED) {
        return Err(format!(
            "has a target of {} characters, and one answer grants none above {MAX_TARGET_ASKED}; grant targets one by one",
            long.chars().count()
        ));
    }
    // A single blank within a name is seen for what it is; others are not.
    let is_seen = |word: &str| word.split(' ').all(|part| !part.is_empty() && is_plain(part));
    match scope.iter().chain(capability.purpose().map(str::to_owned).iter()).find(|word| !is_seen(word)) {
        Some(odd) => {
            Err(format!("has a target that can't be shown as it is: {}; grant targets one by one", escaped(odd)))
        }
        None => Ok(()),
    }
}

/// What grants just this, a word for each target: `network:osc=10.0.0.5:9000`. A wildcard is never proposed: a
/// placeholder stands for what a person has to name.
pub fn examples(capability: &Capability) -> Vec<String> {
    let key = capability.key();
    if capability.must_be_named() {
        return vec![format!("{key}={}", capability.example())];
    }
    let scope = capability.scope();
    if scope.is_empty() {
        return vec![key];
    }
    let wildcard = scope.iter().any(|word| is_wildcard(word));
    let mut words: Vec<String> =
        scope.iter().filter(|target| !is_wildcard(target)).map(|target| format!("{key}={target}")).collect();
    // System exclusive messages are no target by themselves.
    if wildcard && words.iter().all(|word| word.ends_with(&format!("={SYSEX}"))) {
        let placeholder = match capability {
            Capability::Network { .. } => scope
                .iter()
                .find_map(|target| target.strip_suffix(":*").filter(|host| *host != "*"))
                .map_or_else(|| "HOST:PORT".to_owned(), |host| format!("{host}:PORT")),
            Capability::UseModel { .. } => "MODEL".to_owned(),
            _ => "BINDING".to_owned(),
        };
        words.insert(0, format!("{key}={placeholder}"));
    }
    words
}

/// The [`examples`] as they are typed into a shell.
pub fn words(capability: &Capability) -> Vec<String> {
    examples(capability).iter().map(|word| quoted(word)).collect()
}

/// What a person does to grant this to a feature, no wider than it asks.
pub fn advice(grantee: &Grantee, capability: &Capability) -> String {
    grantee.advice(&Grants::advice(capability), &words(capability).join(" "))
}

/// What grants one target of a kind of capability on the command line, as it is typed into a shell.
pub fn word(key: &str, target: &str) -> String {
    quoted(&format!("{key}={target}"))
}

/// A word as it is typed into a shell.
fn quoted(word: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_=:./,".contains(c);
    if word.chars().all(is_safe) { word.to_owned() } else { format!("'{}'", escaped(word).replace('\'', "'\\''")) }
}

/// Printable ASCII without blanks, quotes and backslashes: what it is can be seen.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_graphic() && !"\"'\\`".contains(c))
}

fn escaped(word: &str) -> String {
    if is_plain(word) { word.to_owned() } else { word.escape_default().to_string() }
}

fn program(program: &Program) -> String {
    let reaches = if program.has_network() { ", which reaches ANY host" } else { "" };
    let reads = match program.reads() {
        [] => String::new(),
        reads => format!(", which reads {}", reads.join(", ")),
    };
    format!("run {}{reaches}{reads}", program.command())
}

fn udp(target: &str) -> String {
    match target.rsplit_once(':') {
        Some(("*", "*")) => format!("UDP to ANY host, ANY port ({target})"),
        Some(("*", port)) => format!("UDP to ANY host, port {port} ({target})"),
        Some((host, "*")) => format!("UDP to {host}, ANY port ({target})"),
        _ => format!("UDP to {target}"),
    }
}

fn all(name: &str, every: &str, one: &str) -> String {
    if name == "*" { every.to_owned() } else { format!("{one} {name}") }
}

fn folder(path: Option<&std::path::Path>) -> String {
    path.map_or_else(|| "a folder that you name".to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn network(udp: &[&str], http: &[&str]) -> Capability {
        Capability::Network {
            purpose: "text".into(),
            udp: udp.iter().map(|target| target.parse().unwrap()).collect(),
            http: http.iter().map(|host| host.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn every_target_has_a_line_and_wildcards_come_first() {
        let many: Vec<String> = (1..=29).map(|n| format!("10.0.0.{n}:9000")).collect();
        let mut udp: Vec<&str> = many.iter().map(String::as_str).collect();
        udp.push("*:*");
        let shown = lines(&network(&udp, &["evil.example"]));
        assert_eq!(shown.len(), 31);
        assert_eq!(shown[0], "UDP to ANY host, ANY port (*:*)");
        for target in many.iter().map(String::as_str).chain(["evil.example"]) {
            assert!(shown.iter().any(|line| line.ends_with(target)), "{target}: {shown:?}");
        }
        let midi = Capability::MidiOut { bindings: vec!["pads".into(), "*".into()], sysex: true };
        assert_eq!(
            lines(&midi),
            ["MIDI to EVERY output (*)", "MIDI to pads", "system exclusive messages to these outputs"]
        );
        let programs = ["/usr/bin/llm -m 'a b'", "network read=/home/me/.codex /usr/bin/codex exec -"];
        let programs = Capability::RunProgram { programs: programs.map(|text| text.parse().unwrap()).to_vec() };
        assert_eq!(
            lines(&programs),
            [
                "run /usr/bin/codex exec -, which reaches ANY host, which reads /home/me/.codex",
                "run /usr/bin/llm -m 'a b'"
            ]
        );
        let ports = lines(&network(&["10.0.0.1:9", "10.0.0.2:*", "*:9"], &[]));
        assert_eq!(ports[..2], ["UDP to ANY host, port 9 (*:9)", "UDP to 10.0.0.2, ANY port (10.0.0.2:*)"]);
    }

    #[test]
    fn what_can_not_be_shown_is_not_granted_as_a_whole() {
        let targets = |count: usize| (0..count).map(|n| format!("10.0.0.{n}:9")).collect::<Vec<_>>();
        let of = |udp: Vec<String>| network(&udp.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
        assert_eq!(whole(&of(targets(MAX_TARGETS_ASKED))), Ok(()));
        assert!(whole(&of(targets(MAX_TARGETS_ASKED + 1))).unwrap_err().contains("17 targets"));
        let named = |alias: &str| Capability::MidiOut { bindings: vec![alias.into()], sysex: false };
        assert_eq!(whole(&named("pads")), Ok(()));
        assert_eq!(whole(&named("Launchpad Mini")), Ok(()));
        assert!(whole(&named(&"x".repeat(101))).unwrap_err().contains("101 characters"));
        for odd in
            ["pads\n  alert", "pads\u{1b}[2K", "p\u{430}ds", "pads\u{200b}", "a  b", " a", "a\tb", "\u{202e}sdap"]
        {
            let why = whole(&named(odd)).unwrap_err();
            assert!(why.contains("can't be shown") && why.is_ascii() && !why.contains('\u{1b}'), "{why}");
            assert_eq!(lines(&named(odd)).len(), 1, "one line for a target, escaped where it is printed");
        }
    }

    #[test]
    fn advice_names_targets_and_never_a_wildcard() {
        assert_eq!(words(&network(&["10.0.0.1:9000"], &[])), ["network:text=10.0.0.1:9000"]);
        assert_eq!(words(&network(&["*:*"], &[])), ["network:text=HOST:PORT"]);
        assert_eq!(words(&network(&["10.0.0.1:*"], &[])), ["network:text=10.0.0.1:PORT"]);
        assert_eq!(words(&network(&["*:*", "10.0.0.1:9000"], &[])), ["network:text=10.0.0.1:9000"]);
        assert_eq!(words(&network(&[], &["*"])), ["network:text=http:api.example.com"]);
        assert_eq!(words(&network(&["[::1]:9"], &[])), ["'network:text=[::1]:9'"]);
        assert_eq!(words(&Capability::Alert {}), ["alert"]);
        let midi = Capability::MidiOut { bindings: vec!["*".into()], sysex: true };
        assert_eq!(words(&midi), ["midi-out=BINDING", "midi-out=sysex"]);
    }
}
