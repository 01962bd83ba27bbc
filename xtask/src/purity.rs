//! Protocol crates name no socket, no thread, no file and no clock: time and bytes are arguments.
//!
//! A scan of the source rather than a clippy list, because it sees whole modules, every `cfg`, and imports that are never
//! called. It reads tokens, not types: a re-export by another crate passes unseen, so the table of directions keeps
//! such crates away. Comments and literals are skipped; code made by macros is seen where it is written.

/// The crates that are free of I/O.
pub(crate) const PURE_CRATES: &[&str] = &[
    "maitred-http",
    "maitred-h1",
    "maitred-h2",
    "maitred-ws",
    "maitred-match",
    "maitred-forward",
    "maitred-history",
    "maitred-finding",
    "maitred-pool",
    "maitred-trace",
    "maitred-acme",
];

/// Modules of the standard library that reach outside the process, or observe something other than the arguments.
const FORBIDDEN: &[&str] = &["net", "time", "thread", "fs", "process", "env", "os"];

/// Allowed all the same: a length of time, the zero of the calendar and addresses are values, not clocks or sockets.
const ALLOWED: &[&str] = &[
    "std::time::Duration",
    "std::time::UNIX_EPOCH",
    "std::net::IpAddr",
    "std::net::Ipv4Addr",
    "std::net::Ipv6Addr",
    "std::net::SocketAddr",
];

/// One line `LINE: message` for every forbidden path in `source`.
pub(crate) fn faults(source: &str) -> Vec<String> {
    let tokens = tokens(source);
    let mut faults = Vec::new();
    let mut position = 0;
    while position < tokens.len() {
        let token = &tokens[position];
        if token.text != "std" || is_inner_segment(&tokens, position) {
            position += 1;
            continue;
        }
        let mut paths = Vec::new();
        position = expand(&tokens, position, "", &mut paths);
        for Found { line, path, .. } in paths {
            if is_forbidden(&path) {
                faults.push(format!("{line}: a protocol crate must not use {path}"));
            }
        }
    }
    faults
}

/// Whether the path as written gives access to a forbidden module. The bare `std` and `std::*` do, under another name.
fn is_forbidden(path: &str) -> bool {
    if ALLOWED.contains(&path) {
        return false;
    }
    match path.split("::").nth(1) {
        None | Some("self" | "*") => true,
        Some(module) => FORBIDDEN.contains(&module),
    }
}

/// True for the `std` of `crate::std`, which is some module of that name; `::std` is the library.
fn is_inner_segment(tokens: &[Token<'_>], position: usize) -> bool {
    let before = |back: usize| position.checked_sub(back).map(|index| &tokens[index]);
    before(1).is_some_and(|token| token.text == "::")
        && before(2)
            .is_some_and(|token| token.is_word() && !matches!(token.text, "use" | "as" | "in" | "return"))
}

/// A path as it is written.
pub(crate) struct Found<'a> {
    pub(crate) line: usize,
    pub(crate) path: String,
    /// The word behind `as`.
    pub(crate) alias: Option<&'a str>,
}

/// Collects the paths of the tree that starts at `position`, each with its line, and returns the position behind it:
/// `std::{fs, time::{self, Duration}}` gives `std::fs`, `std::time::self` and `std::time::Duration`.
pub(crate) fn expand<'a>(
    tokens: &[Token<'a>],
    mut position: usize,
    prefix: &str,
    paths: &mut Vec<Found<'a>>,
) -> usize {
    let mut path = prefix.to_owned();
    let mut line = 0;
    while let Some(token) = tokens.get(position) {
        if token.text == "{" {
            return expand_group(tokens, position + 1, &path, paths);
        }
        if !token.is_word() && token.text != "*" {
            break;
        }
        if !path.is_empty() {
            path.push_str("::");
        }
        path.push_str(token.text);
        line = token.line;
        position += 1;
        if tokens.get(position).is_none_or(|token| token.text != "::") {
            break;
        }
        position += 1;
    }
    if line != 0 {
        let renamed = tokens.get(position).is_some_and(|token| token.text == "as");
        let alias = tokens.get(position + 1).filter(|_| renamed).map(|token| token.text);
        paths.push(Found { line, path, alias });
    }
    position
}

/// The inside of a brace group up to and with its closing brace.
fn expand_group<'a>(
    tokens: &[Token<'a>],
    mut position: usize,
    prefix: &str,
    paths: &mut Vec<Found<'a>>,
) -> usize {
    while let Some(token) = tokens.get(position) {
        match token.text {
            "}" => return position + 1,
            "as" => position += 2, // the new name is not a path
            _ if token.is_word() || token.text == "*" || token.text == "{" => {
                position = expand(tokens, position, prefix, paths);
            }
            _ => position += 1,
        }
    }
    position
}

/// A word, `::` or a single other character, with the line it stands on, counted from 1.
#[derive(Clone, Copy)]
pub(crate) struct Token<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

impl Token<'_> {
    pub(crate) fn is_word(&self) -> bool {
        self.text.starts_with(|first: char| first.is_alphanumeric() || first == '_')
    }
}

/// Splits source into tokens without comments, strings and character literals.
pub(crate) fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let (length, kept) = token_length(rest, first);
        if kept {
            tokens.push(Token { text: &rest[..length], line });
        }
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length in bytes of what `rest` starts with, and whether it is a token (not space, comment or literal).
fn token_length(rest: &str, first: char) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment_length(rest), false);
    }
    if let Some(length) = raw_string_length(rest) {
        return (length, false);
    }
    if first == '"' || rest.starts_with("b\"") || rest.starts_with("c\"") {
        return (string_length(rest), false);
    }
    if first == '\'' || rest.starts_with("b'") {
        return (character_length(rest), false);
    }
    if rest.starts_with("::") {
        return (2, true);
    }
    let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    if word > 0 { (word, true) } else { (first.len_utf8(), !first.is_whitespace()) }
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0;
    let mut position = 0;
    while position < rest.len() {
        let tail = &rest.as_bytes()[position..];
        let step = match tail {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        position += step;
        if depth == 0 {
            return position;
        }
    }
    rest.len()
}

/// `r"…"`, `br#"…"#` and so on; `None` for anything else, raw identifiers included.
fn raw_string_length(rest: &str) -> Option<usize> {
    let body =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let hashes = body.bytes().take_while(|&byte| byte == b'#').count();
    let inside = body[hashes..].strip_prefix('"')?;
    let closing = format!("\"{}", "#".repeat(hashes));
    let end = inside.find(&closing).map_or(inside.len(), |end| end + closing.len());
    Some(rest.len() - inside.len() + end)
}

/// A string literal with escapes, from its prefix to its closing quote.
fn string_length(rest: &str) -> usize {
    let start = rest.find('"').map_or(rest.len(), |quote| quote + 1);
    let mut escaped = false;
    for (offset, byte) in rest.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character literal, or only the quote of a lifetime.
fn character_length(rest: &str) -> usize {
    let start = rest.find('\'').map_or(rest.len(), |quote| quote + 1);
    let mut inside = rest[start..].chars();
    match inside.next() {
        Some('\\') => {
            // Skips the escaped character, which may itself be a quote.
            let from = start + 1 + inside.next().map_or(0, char::len_utf8);
            rest[from..].find('\'').map_or(rest.len(), |quote| from + quote + 1)
        }
        Some(character) if inside.next() == Some('\'') => start + character.len_utf8() + 1,
        _ => start,
    }
}

#[cfg(test)]
mod tests {
    use super::faults as forbidden;

    #[test]
    fn a_plain_import_is_found_with_its_line() {
        assert_eq!(
            forbidden("\n\nuse std::net::TcpStream;\n"),
            ["3: a protocol crate must not use std::net::TcpStream"]
        );
    }

    #[test]
    fn a_path_in_an_expression_is_found() {
        assert_eq!(forbidden("fn f() { ::std::thread::yield_now() }").len(), 1);
        assert_eq!(forbidden("fn f() -> std::time::Instant { g() }").len(), 1);
    }

    #[test]
    fn groups_are_expanded() {
        let found = forbidden("use std::{fmt, fs as files, time::{self, Duration}};");
        assert_eq!(
            found,
            ["1: a protocol crate must not use std::fs", "1: a protocol crate must not use std::time::self"]
        );
    }

    #[test]
    fn another_name_for_the_whole_library_is_found() {
        for source in ["use std as s;", "use std::*;", "use std::{self as s};", "extern crate std;"] {
            assert_eq!(forbidden(source).len(), 1, "{source}");
        }
    }

    #[test]
    fn values_and_ordinary_modules_are_allowed() {
        let source = "use std::time::Duration; use std::{collections::HashMap, sync::Arc}; fn f(d: std::time::Duration) -> u64 { g(std::time::UNIX_EPOCH) }";
        assert_eq!(forbidden(source), Vec::<String>::new());
    }

    #[test]
    fn a_module_of_ours_with_that_name_is_allowed() {
        assert_eq!(forbidden("use crate::std::net;"), Vec::<String>::new());
    }

    #[test]
    fn comments_and_literals_are_skipped() {
        for source in [
            "// std::fs\n",
            "/* /* std::fs */ std::fs */",
            "const A: &str = \"\\\" std::fs\";",
            "const A: &str = r#\"\" std::fs\"#;",
            "const A: &[u8] = b\"std::fs\";",
        ] {
            assert_eq!(forbidden(source), Vec::<String>::new(), "{source}");
        }
    }

    #[test]
    fn code_behind_a_literal_is_seen() {
        for source in [
            "'\"'; std::fs",
            "'\\''; std::fs",
            "b'\\\\'; std::fs",
            "&'a str; std::fs",
            "r\"\\\"; std::fs",
            "'é'; std::fs",
        ] {
            assert_eq!(forbidden(source).len(), 1, "{source}");
        }
    }
}
