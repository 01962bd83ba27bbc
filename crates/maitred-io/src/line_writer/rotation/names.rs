//! The names of the files of a log: what a pattern gives at a time, and which files are of it.

use super::Rotation;
use std::path::{Path, PathBuf};

pub(super) fn rendered(given: &Path, rotation: Rotation, second: u64) -> PathBuf {
    match given.file_name().and_then(|name| name.to_str()) {
        Some(name) if Rotation::is_pattern(name) => {
            let rendered: String = pieces(name)
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Digits(specifier) => (rotation.strftime)(specifier, second),
                })
                .collect();
            given.with_file_name(rendered)
        }
        _ => given.to_owned(),
    }
}

/// Whether `name` is one that `pattern` gives, or one of a file that had such a name and was closed.
pub(super) fn is_of(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    for piece in pieces(pattern) {
        let after = match piece {
            Piece::Text(text) => rest.strip_prefix(text),
            Piece::Digits(specifier) => without_digits(rest, digits_of(specifier)),
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    if rest.is_empty() {
        return Rotation::is_pattern(pattern);
    }
    let stamp = |rest: &str| {
        let rest = without_digits(rest.strip_prefix('.')?, 8)?;
        let rest = without_digits(rest.strip_prefix('-')?, 6)?;
        let number = rest.strip_prefix('-').unwrap_or("0");
        Some((rest.is_empty() || rest.starts_with('-')) && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    stamp(rest).unwrap_or(false)
}

fn without_digits(text: &str, count: usize) -> Option<&str> {
    let (digits, rest) = text.split_at_checked(count)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

fn digits_of(specifier: &str) -> usize {
    match specifier {
        "%Y" => 4,
        "%j" => 3,
        _ => 2,
    }
}

pub(super) enum Piece<'a> {
    Text(&'a str),
    Digits(&'a str),
}

/// A per cent sign before anything else stands for itself.
pub(super) fn pieces(name: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let specifier = |at: usize| {
            let text = rest.get(at..at + 2)?;
            matches!(text.as_bytes(), [b'%', b'Y' | b'm' | b'd' | b'H' | b'M' | b'S' | b'j']).then_some(text)
        };
        let (piece, length) = match specifier(0) {
            Some(text) => (Piece::Digits(text), 2),
            None => {
                let end = (1..rest.len()).find(|at| specifier(*at).is_some()).unwrap_or(rest.len());
                (Piece::Text(&rest[..end]), end)
            }
        };
        let left = (length > 0).then(|| &rest[length..])?;
        rest = left;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_log_are_taken_for_closed_ones() {
        for (pattern, name, is) in [
            ("a.log", "a.log.20261122-000000", true),
            ("a.log", "a.log.20261122-000000-012", true),
            ("a.log", "a.log", false),
            ("a.log", "a.log.1", false),
            ("a.log", "a.log.20261122-000000.gz", false),
            ("a.log", "b.log.20261122-000000", false),
            ("site-%Y%m%d.log", "site-20261122.log", true),
            ("site-%Y%m%d.log", "site-20261122.log.20261122-101112", true),
            ("site-%Y%m%d.log", "site-errors00.log", false),
            ("site-%Y-%j", "site-2026-031", true),
            ("100%", "100%", false),
        ] {
            assert_eq!(is_of(pattern, name), is, "{pattern} {name}");
        }
    }
}
