//! JSON of one level: a line of the access log, and the texts of the report.

use std::fmt::Write as _;

/// A member's value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// A number as it was written.
    Number(String),
    /// `true`, `false`, `null`.
    Other,
}

/// The members of an object without objects or arrays in it; `None` for anything else.
pub(super) fn object(text: &str) -> Option<Vec<(String, Value)>> {
    let mut rest = text.trim().strip_prefix('{')?.trim_start();
    let mut members = Vec::new();
    if let Some(end) = rest.strip_prefix('}') {
        return end.is_empty().then_some(members);
    }
    loop {
        let (name, after) = string(rest)?;
        let after = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = value(after)?;
        members.push((name, value));
        let after = after.trim_start();
        match after.strip_prefix(',') {
            Some(next) => rest = next.trim_start(),
            None => return (after == "}").then_some(members),
        }
    }
}

fn value(text: &str) -> Option<(Value, &str)> {
    if text.starts_with('"') {
        let (text, rest) = string(text)?;
        return Some((Value::Text(text), rest));
    }
    for word in ["true", "false", "null"] {
        if let Some(rest) = text.strip_prefix(word) {
            return Some((Value::Other, rest));
        }
    }
    let end = text.find(|character: char| !character.is_ascii_digit() && !"+-.eE".contains(character))?;
    (end > 0).then(|| (Value::Number(text[..end].to_owned()), &text[end..]))
}

fn string(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut out = String::new();
    let mut units = Vec::new();
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        let escaped = if character == '\\' { Some(characters.next()?.1) } else { None };
        if escaped == Some('u') {
            let digits = inner.get(at + 2..at + 6)?;
            units.push(u16::from_str_radix(digits, 16).ok()?);
            characters.nth(3)?;
            continue;
        }
        out.extend(
            char::decode_utf16(units.drain(..)).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)),
        );
        match (character, escaped) {
            ('"', None) => return Some((out, &inner[at + 1..])),
            (_, Some('n')) => out.push('\n'),
            (_, Some('r')) => out.push('\r'),
            (_, Some('t')) => out.push('\t'),
            (_, Some('b')) => out.push('\u{8}'),
            (_, Some('f')) => out.push('\u{c}'),
            (_, Some(character @ ('"' | '\\' | '/'))) => out.push(character),
            (_, Some(_)) => return None,
            (character, None) => out.push(character),
        }
    }
    None
}

/// Appends `text` as a JSON string.
pub(super) fn push_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            character if character.is_control() => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_one_level_are_read() {
        let members =
            object(r#" {"a":"x\"\u20ac\ud83d\ude00\n","b": -1.5e3 ,"c":null} "#).expect("an object");
        assert_eq!(members[0], ("a".to_owned(), Value::Text("x\"€😀\n".to_owned())));
        assert_eq!(members[1].1, Value::Number("-1.5e3".to_owned()));
        assert_eq!(members[2].1, Value::Other);
        assert_eq!(object("{}"), Some(Vec::new()));
        for text in [
            "",
            "{",
            "[]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1",
            "{\"a\":1}x",
            "{\"a\":{}}",
            "{\"a\":\"\\u12\"}",
        ] {
            assert_eq!(object(text), None, "{text}");
        }
    }
}
