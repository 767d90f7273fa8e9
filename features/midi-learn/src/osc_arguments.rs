//! The types of an OSC message's arguments, read from the event as text.

/// The types, in their order, as text.
pub fn types(text: &str) -> Vec<&'static str> {
    let mut rest = text.trim_start();
    // The first two words are `osc` and the address.
    for _ in 0..2 {
        rest = rest.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim_start());
    }
    let mut found = Vec::new();
    let mut depth = 0_usize;
    while !rest.is_empty() {
        let (word, after) = next(rest);
        match word {
            "[" => {
                if depth == 0 {
                    found.push("array");
                }
                depth += 1;
            }
            "]" => depth = depth.saturating_sub(1),
            word if depth == 0 => found.push(name(word)),
            _ => {}
        }
        rest = after.trim_start();
    }
    found
}

/// The next argument, and what comes after it: a text between quotes is one, and a bracket stands for itself.
fn next(rest: &str) -> (&str, &str) {
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
    let end = match quote {
        Some(quote) => {
            let mut escaped = false;
            let mut inner = rest.char_indices().skip(1);
            let closing = inner.find(|(_, c)| {
                let closes = *c == quote && !escaped;
                escaped = *c == '\\' && !escaped;
                closes
            });
            closing.map_or(rest.len(), |(at, _)| at + 1)
        }
        None if rest.starts_with(['[', ']']) => 1,
        None => rest.find(|c: char| c.is_whitespace() || c == ']').unwrap_or(rest.len()),
    };
    rest.split_at(end.max(1).min(rest.len()))
}

fn name(word: &str) -> &'static str {
    match word {
        "true" | "false" => "boolean",
        "nil" => "nil",
        "infinitum" => "infinitum",
        _ if word.starts_with('"') => "string",
        _ if word.starts_with('\'') => "character",
        _ if word.starts_with("blob:") => "blob",
        _ if word.starts_with("color:") => "color",
        _ if word.starts_with("midi:") => "MIDI message",
        _ if word.starts_with("time:") => "time",
        _ if word.parse::<i32>().is_ok() => "integer",
        _ if word.ends_with('h') => "long integer",
        _ if word.ends_with('d') => "double",
        _ => "float",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_told() {
        let all = "osc /x 1 0.5 1h 0.5d \"a \\\" text\" 'c' true nil infinitum blob:00ff color:ff00ff00 midi:00903c64 time:3.7 [ 1 [ 2 ] ] -3";
        assert_eq!(
            types(all),
            [
                "integer",
                "float",
                "long integer",
                "double",
                "string",
                "character",
                "boolean",
                "nil",
                "infinitum",
                "blob",
                "color",
                "MIDI message",
                "time",
                "array",
                "integer"
            ]
        );
        assert_eq!(types("osc /x"), [""; 0]);
        assert_eq!(types("osc /x \"open"), ["string"]);
        assert_eq!(types("osc /x é [1 2] 3"), ["float", "array", "integer"]);
    }
}
