//! The file of `--env-file`: variables for the application.
//!
//! ```text
//! file    = *( blank | comment | [ "export" ] NAME "=" value [ comment ] )
//! value   = plain           up to the end of the line or " #", without blanks around it
//!         | 'literal'       may go over several lines
//!         | "escaped"       the same, with \n \r \t \\ \" \$
//! ```
//! Variables are not expanded: `$HOME` stays as it is written. Of a name given twice the last value counts.

use std::path::Path;

use crate::Problem;
use crate::sources::utf8;

/// Reads the variables of the file, in its order.
pub(crate) fn read(path: &Path, place: &str) -> Result<Vec<(String, String)>, Problem> {
    let shown = path.display();
    let bytes = std::fs::read(path).map_err(|error| {
        Problem::new(place, format!("{shown} cannot be read: {error}"), "name a file that can be read")
    })?;
    let text = utf8(&shown.to_string(), bytes)?;
    parse(&text).map_err(|wrong| Problem::new(format!("{shown}:{}", wrong.line), wrong.what, wrong.remedy))
}

#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    what: String,
    remedy: &'static str,
}

const FORM: &str = "write NAME=value, NAME='value' or NAME=\"value\"";

fn parse(text: &str) -> Result<Vec<(String, String)>, Wrong> {
    // Some editors put a byte order mark before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let line = 1 + text[..text.len() - rest.len()].matches('\n').count();
        let wrong = |what: String| Wrong { line, what, remedy: FORM };
        let (current, after) = split_line(rest);
        let trimmed = current.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            rest = after;
            continue;
        }
        let Some((name, _)) = current.split_once('=') else {
            return Err(wrong("there is no '='".to_owned()));
        };
        let value = rest[name.len() + 1..].trim_start_matches([' ', '\t']);
        let name =
            name_of(name).ok_or_else(|| wrong(format!("{:?} is no name of a variable", name.trim())))?;
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => quoted(&value[1..], quote).map_err(wrong)?,
            _ => {
                let (value, after) = split_line(value);
                (plain(value), after)
            }
        };
        if value.contains('\0') {
            return Err(wrong(format!("the value of {name} has a NUL in it")));
        }
        variables.push((name.to_owned(), value));
        rest = after;
    }
    Ok(variables)
}

/// Splits off the first line, without its end.
fn split_line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

/// The name before the equals sign, POSIX.1 §8.1; `export` may stand before it.
fn name_of(text: &str) -> Option<&str> {
    let text = text.trim();
    let name = match text.strip_prefix("export") {
        Some(name) if name.starts_with([' ', '\t']) => name.trim_start(),
        _ => text,
    };
    let first = name.chars().next()?;
    let is_name = !first.is_ascii_digit() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// A value without quotes: a `#` begins a comment only after a blank, so that colours and URLs with
/// fragments survive.
fn plain(text: &str) -> String {
    let comment = text
        .char_indices()
        .find(|(at, character)| *character == '#' && (*at == 0 || text[..*at].ends_with([' ', '\t'])));
    text[..comment.map_or(text.len(), |(at, _)| at)].trim().to_owned()
}

/// Reads a value in quotes. `text` begins behind the first quote; the rest begins at the next line.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            _ if character == quote => {
                let (behind, after) = split_line(&text[at + 1..]);
                let behind = behind.trim();
                if !behind.is_empty() && !behind.starts_with('#') {
                    return Err(format!("there is {behind:?} behind the closing quote"));
                }
                return Ok((value, after));
            }
            '\\' if quote == '"' => match characters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 'r')) => value.push('\r'),
                Some((_, 't')) => value.push('\t'),
                Some((_, plain @ ('\\' | '"' | '$'))) => value.push(plain),
                // Unknown escapes stay as they are: the value may be a Windows path or a regular expression.
                Some((_, other)) => value.extend(['\\', other]),
                None => break,
            },
            _ => value.push(character),
        }
    }
    Err(format!("the quote {quote} is not closed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).expect(text)
    }

    fn value(text: &str) -> String {
        let [(_, value)] = &parsed(text)[..] else { panic!("{text:?} is one variable") };
        value.clone()
    }

    #[test]
    fn lines_of_all_kinds() {
        let text = "\u{feff}# comment\r\n\nA=1\r\n  export B = two words  # why\nexported=x\nA=3\n\t#end";
        let expected = [("A", "1"), ("B", "two words"), ("exported", "x"), ("A", "3")];
        assert_eq!(parsed(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(parsed(""), []);
    }

    #[test]
    fn values_keep_what_is_theirs() {
        for (text, expected) in [
            ("A=", ""),
            ("A=#c", ""),
            ("A=a#b", "a#b"),
            ("A=postgres://u:p@h/d?x=1", "postgres://u:p@h/d?x=1"),
            ("A=it's", "it's"),
            ("A=$HOME/x", "$HOME/x"),
            ("A='a \\n \" # b' # c", "a \\n \" # b"),
            (r#"A="a\n\t\"\\\$HOME \d""#, "a\n\t\"\\$HOME \\d"),
            ("A=\"one\ntwo\"\n", "one\ntwo"),
            ("A='é'", "é"),
        ] {
            assert_eq!(value(text), expected, "{text:?}");
        }
    }

    #[test]
    fn variables_after_a_value_of_several_lines_are_read() {
        assert_eq!(parsed("A='1\n2'\nB=3").len(), 2);
        assert_eq!(parse("A='1\n2'\nB").expect_err("no '='").line, 3);
    }

    #[test]
    fn errors_name_the_line_where_the_variable_begins() {
        for (text, line, what) in [
            ("A=1\n\nB", 3, "there is no '='"),
            ("1A=1", 1, "\"1A\" is no name of a variable"),
            ("A B=1", 1, "\"A B\" is no name of a variable"),
            ("=1", 1, "\"\" is no name of a variable"),
            ("\nA=\"x\ny", 2, "the quote \" is not closed"),
            ("A=\"x\\", 1, "the quote \" is not closed"),
            ("A='x'y", 1, "there is \"y\" behind the closing quote"),
            ("A=x\0y", 1, "the value of A has a NUL in it"),
        ] {
            let wrong = parse(text).expect_err(text);
            assert_eq!((wrong.line, wrong.what.as_str()), (line, what), "{text:?}");
        }
    }
}
