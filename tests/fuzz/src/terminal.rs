//! Text on its way to a terminal: nothing hidden passes, nothing is lost, nothing grows beyond its bound.

use conductor_terminal::{Lines, Style, escape, excerpt, fit, is_hidden, paragraphs, width};

pub fn run(data: &[u8]) {
    let Some((&number, data)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(data);
    let limit = usize::from(number);

    let line = escape(&text);
    assert!(!line.chars().any(is_hidden), "{line:?}");
    assert!(line.len() <= text.len() * 6);
    assert_eq!(unescape(&line), text, "{line}");

    let kept = excerpt(&text, limit);
    assert!(!kept.chars().any(is_hidden) && kept.len() <= limit + '…'.len_utf8(), "{kept:?}");
    let fitting = fit(&text, limit);
    assert!(!fitting.chars().any(is_hidden) && width(&fitting) <= limit.max(NOTE), "{fitting:?}");
    // A text may be what is said of one that was cut.
    if width(&line) <= limit {
        assert_eq!(fitting, line);
    } else {
        assert!(
            fitting.contains("… ") && [" more characters", " more character"].iter().any(|end| fitting.ends_with(end)),
            "{fitting:?}"
        );
    }

    // However many lines it has, each is behind the gutter.
    let shown = paragraphs(&text, "| ");
    assert!(shown.split('\n').skip(1).all(|line| line.starts_with("| ")), "{shown:?}");
    let mut lines = Lines::new();
    lines.push_spans(&[(Style::Error, &text), (Style::Plain, &text)]);
    lines.push_text("| ", &text);
    let plain = lines.render(false);
    assert!(!plain.chars().any(|c| c != '\n' && is_hidden(c)), "{plain:?}");
    assert!(plain.lines().skip(1).all(|line| line.starts_with("| ")), "{plain:?}");
    // Our colours, and no codes but those.
    let colours = lines.render(true).matches('\u{1b}').count();
    assert_eq!(colours, if text.is_empty() { 0 } else { 2 });
}

/// The longest note on what was cut off, for the texts that come here.
const NOTE: usize = "… 123 456 789 more characters".len();

/// What an escaped text was made of: an odd number of backslashes before `u{` is an escape.
fn unescape(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let after = rest[at..].trim_start_matches('\\');
        let count = rest.len() - at - after.len();
        rest = after;
        let Some(escape) = after.strip_prefix("u{") else {
            out.extend(std::iter::repeat_n('\\', count));
            continue;
        };
        out.extend(std::iter::repeat_n('\\', count / 2));
        if count % 2 == 1 {
            let (digits, behind) = escape.split_once('}').expect("an escape ends");
            out.extend(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32));
            rest = behind;
        }
    }
    out + rest
}
