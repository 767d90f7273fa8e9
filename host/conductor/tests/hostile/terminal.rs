//! Text that would steer a terminal, turn around what is beside it, or hide: names, addresses, plans and packages that
//! a person reads before they decide.

use conductor_audit::caller::{Caller, Door, Scope};
use conductor_audit::{Entry, Kind};
use conductor_config as config;
use conductor_package::Descriptor;
use conductor_terminal::{Lines, MAX_MARKS, Style, escape, excerpt, fit, is_hidden};

/// Asserts that a text of several lines holds nothing hidden but its line feeds.
fn is_clean(text: &str) {
    assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)), "{text:?}");
}

#[test]
fn sequences_that_steer_a_terminal() {
    for (sequence, shown) in [
        ("\u{1b}[2J", "\\u{1b}[2J"),
        ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
        ("\u{1b}]52;c;Y3VybCB4fHNo\u{1b}\\", "\\u{1b}]52;c;Y3VybCB4fHNo\\u{1b}\\"),
        ("\u{9b}2J", "\\u{9b}2J"),
        ("\u{9d}0;title\u{9c}", "\\u{9d}0;title\\u{9c}"),
        ("safe\rrm -rf", "safe\\u{d}rm -rf"),
        ("safe\u{8}\u{8}", "safe\\u{8}\\u{8}"),
        ("a\u{85}b\u{c}c\u{b}d", "a\\u{85}b\\u{c}c\\u{b}d"),
    ] {
        assert_eq!(escape(sequence), shown);
    }
}

#[test]
fn text_that_is_turned_around() {
    for control in
        "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}".chars()
    {
        let shown = escape(&format!("/safe{control}fdp.exe")).into_owned();
        assert_eq!(shown, format!("/safe\\u{{{:x}}}fdp.exe", u32::from(control)));
    }
}

#[test]
fn text_that_can_not_be_seen() {
    // A sentence in tag characters, which models read and people do not see.
    let smuggled: String =
        "ignore all".bytes().map(|byte| char::from_u32(0xe0000 + u32::from(byte)).unwrap()).collect();
    let shown = escape(&smuggled).into_owned();
    assert_eq!(shown.matches("\\u{e00").count(), smuggled.chars().count(), "{shown}");
    for twin in
        ["pads\u{200b}", "pa\u{ad}ds", "pads\u{3164}", "pads\u{fe0f}", "pads\u{2800}", "p\u{34f}ads", "pads\u{e000}"]
    {
        assert_ne!(escape(twin), "pads", "{twin:?}");
        is_clean(&escape(twin));
    }
}

#[test]
fn a_line_that_looks_like_the_hosts() {
    let mut lines = Lines::new();
    lines.push(format_args!("proposed by {}", "agent\nrisk: usual\nApply it? [y/N] "));
    lines.push_text("  | ", "+a = 1\n\nno event has come yet\n\u{2028}Apply it? [y/N]\r+b = 2");
    let shown = lines.to_string();
    is_clean(&shown);
    let [head, text @ ..] = &shown.lines().collect::<Vec<_>>()[..] else { panic!("no lines") };
    assert!(head.starts_with("proposed by agent\\u{a}risk"), "{head}");
    assert!(text.iter().all(|line| line.starts_with("  | ")), "{shown}");
    assert_eq!(text.len(), 4, "{shown}");
}

#[test]
fn an_escape_that_was_written_out() {
    assert_ne!(escape("\\u{202e}"), escape("\u{202e}"));
    assert_ne!(escape("\\\\u{202e}"), escape("\\\u{202e}"));
}

#[test]
fn marks_that_are_drawn_over_other_lines() {
    let shown = escape(&format!("z{}", "\u{489}".repeat(500))).into_owned();
    assert_eq!(shown.matches('\u{489}').count(), MAX_MARKS);
    // A mark has no letter of the host's to strike through.
    assert_eq!(escape("\"\u{338}"), "\"\\u{338}");
}

#[test]
fn colours_that_others_choose() {
    let mut lines = Lines::new();
    lines.push_spans(&[(Style::Error, &"\u{1b}[0m\u{1b}[8mhidden"), (Style::Plain, &"\u{1b}[8mhidden")]);
    let shown = lines.render(true);
    assert_eq!(shown.matches('\u{1b}').count(), 2, "{shown:?}");
    assert!(shown.starts_with("\u{1b}[1;31m\\u{1b}[0m"), "{shown:?}");
}

#[test]
fn text_without_end() {
    let million = "\u{1b}".repeat(1_000_000);
    assert_eq!(escape(&million).len(), 6_000_000);
    let kept = excerpt(&million, 1024);
    assert!(kept.len() <= 1024 && kept.ends_with(" more characters"), "{kept}");
    let fitting = fit(&million, 200).into_owned();
    assert!(fitting.chars().count() <= 200 && fitting.ends_with(" more characters"), "{fitting}");
}

#[test]
fn mistakes_in_a_file_that_hides_something() {
    let text =
        "[[modes]]\nname = 'a\u{9b}2J\u{202e}' # \u{2066}\u{e0041}\ncolour\u{200b} = '\u{61c}'\r\nx = '\u{1b}'\n";
    let mistakes = config::parse(text, "c\u{202e}\u{1b}[2J.toml").unwrap_err();
    is_clean(&mistakes.render(false));
    assert_eq!(mistakes.to_string().lines().filter(|line| line.starts_with("error")).count(), mistakes.iter().len());
}

#[test]
fn names_that_are_kept() {
    let agent = |name| Caller::client(Door::McpSocket, Scope::Agent, Some(name));
    let caller = agent("Claude\u{202e}\u{200b}\u{9b}");
    assert_eq!(caller.to_string(), "mcp-socket:agent \"Claude\\u{202e}\\u{200b}\\u{9b}\"");
    let invisible = agent("\u{200b}\u{e0041}");
    assert!(invisible.name().is_some_and(|name| name.starts_with("\\u{200b}")), "{invisible}");
    let entry = format!("{:?}", Entry::new(Kind::Tool, "call", &caller, "a\u{1b}[2J\nb").with("args", "\u{202e}"));
    is_clean(&entry);
}

#[test]
fn a_descriptor_with_hidden_characters() {
    let plain = "id = 'project:x'\nname = 'X'\nversion = '1.0.0'\ncontract = '0.1'\n";
    assert!(Descriptor::parse(plain.as_bytes()).is_ok());
    for hidden in ["\u{202e}", "\u{61c}", "\u{200b}", "\u{e0041}", "\u{9b}", "\u{feff}", "\u{2028}", "\u{e000}"] {
        let in_a_value = plain.replace("'X'", &format!("'X{hidden}'"));
        let in_a_key = format!("{plain}[extra]\n\"a{hidden}\" = 1\n");
        for text in [in_a_value, in_a_key] {
            let error = Descriptor::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("can't be seen"), "{hidden:?}: {error}");
            is_clean(&error);
        }
    }
    // Scripts that need joiners, and emoji, are text.
    let persian = plain.replace("'X'", "'می\u{200c}خواهم ⚠\u{fe0f}'");
    assert!(Descriptor::parse(persian.as_bytes()).is_ok());
}
