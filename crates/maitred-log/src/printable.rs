//! Text of peers and applications, made harmless for the error log.

use std::fmt::Write as _;

/// In front of each line of an entry but its first one. A line that begins with a blank never begins an entry.
const CONTINUES: &str = "  ";

/// `text` without a way to look like another entry or to command a terminal: control characters and the line separators of
/// Unicode are escaped (`\x1b`), and every line but the first one is indented by two blanks.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    push(&mut out, text);
    out
}

pub(crate) fn push(out: &mut String, text: &str) {
    for (number, line) in text.lines().enumerate() {
        if number > 0 {
            out.push('\n');
            out.push_str(CONTINUES);
        }
        if !line.contains(is_escaped) {
            out.push_str(line);
            continue;
        }
        for character in line.chars() {
            let code = u32::from(character);
            // Writing to a String does not fail.
            match is_escaped(character) {
                false => out.push(character),
                true if code <= 0xff => _ = write!(out, "\\x{code:02x}"),
                true => _ = write!(out, "\\u{code:04x}"),
            }
        }
    }
}

/// A tab moves the cursor only forward. U+2028 and U+2029 end lines for some readers, Python's `splitlines` for one.
fn is_escaped(character: char) -> bool {
    (character.is_control() && character != '\t') || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_but_the_first_begins_at_the_margin_and_no_control_character_is_left() {
        for (text, shown) in [
            ("as it is, \tü", "as it is, \tü"),
            (
                "x\n2026-01-01T00:00:00Z error forged\x1b[31m",
                "x\n  2026-01-01T00:00:00Z error forged\\x1b[31m",
            ),
            ("a\r\nb\rc", "a\n  b\\x0dc"),
            ("a\u{85}b\u{2028}c\u{9b}31m\0\x7f", "a\\x85b\\u2028c\\x9b31m\\x00\\x7f"),
            ("a\n\nb\n", "a\n  \n  b"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
