//! Paths of request targets: percent-decoding and normalisation (RFC 3986 §2.1, §5.2.4, §6.2.2).
//!
//! Three readings of one path are three different things here. [`normalise`] is strict, for code that opens a file.
//! [`percent_decode`] decodes only the escapes; applications get its result. [`normalise_decoded`] gives the meaning of
//! the path in an application that resolves it, and is for comparing paths with rules.

use std::fmt;

/// Why a path cannot be normalised. The answer is 400; only this request dies with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathError {
    /// The path does not start with `/` (for example `*`, or nothing).
    NotAbsolute,
    /// `%` without two hexadecimal digits behind it.
    BadEscape,
    /// A NUL byte, plain or encoded: system calls end a name there.
    Nul,
    /// A backslash, plain or encoded: some systems and clients take it for a slash.
    Backslash,
    /// `%2F`: a slash inside a segment is data, which no file name can hold. Decoding it would make two segments of
    /// one, and lead past a check of the encoded path (a proxy's rules).
    EncodedSlash,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAbsolute => "the path does not start with a slash",
            Self::BadEscape => "a percent sign in the path is not followed by two hexadecimal digits",
            Self::Nul => "the path contains a NUL byte",
            Self::Backslash => "the path contains a backslash",
            Self::EncodedSlash => "the path contains an encoded slash (%2F)",
        })
    }
}

impl std::error::Error for PathError {}

/// Writes the normal form of `raw_path`, a path without its query, to `out`, whose content is
/// replaced.
///
/// Escapes are decoded once, then `.` and `..` are resolved as in RFC 3986 §5.2.4, where `..` at the
/// root stays there; slashes in a row count as one, as they do for a file system. A slash at the end
/// stays, and one is there when the last segment was `.` or `..`. The result
///
/// - starts with `/`, is not longer than `raw_path` and holds no NUL and no backslash;
/// - has no segment `.`, `..` or (but for the last one) of no bytes, so it cannot leave the folder
///   it is appended to;
/// - may hold any other byte, not necessarily UTF-8, also a `%` that was encoded. Normalising a
///   result without `%` again changes nothing.
///
/// # Errors
///
/// [`PathError`], and `out` is empty.
pub fn normalise(raw_path: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    out.clear();
    let result = resolve(raw_path, out);
    if result.is_err() {
        out.clear();
    }
    result
}

/// Writes `raw` with its escapes decoded to `out`, whose content is replaced. A `%` without two
/// hexadecimal digits behind it stays as it is; a `+` is a plus sign.
///
/// For `PATH_INFO`: nothing is resolved or refused, and `%2F` becomes a slash (PEP 3333 leaves the
/// application no way to tell).
pub fn percent_decode(raw: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.reserve(raw.len());
    out.extend(bytes(raw).map(|byte| byte.decoded));
}

/// Writes `raw` with its escapes decoded as by [`percent_decode`], and then normalised: slashes in a row count as one, `.` and `..` are
/// resolved, where a slash that was encoded counts like any other. The content of `out` is replaced.
///
/// A target that does not start with a slash, such as `*`, is only decoded. Where [`normalise`] succeeds both write the
/// same.
pub fn normalise_decoded(raw: &[u8], out: &mut Vec<u8>) {
    let Some((b'/', relative)) = raw.split_first() else { return percent_decode(raw, out) };
    out.clear();
    out.reserve(raw.len());
    out.push(b'/');
    for byte in bytes(relative) {
        match byte.decoded {
            b'/' => end_segment(true, out),
            other => out.push(other),
        }
    }
    end_segment(false, out);
}

/// Whether all three readings certainly give the path itself.
pub fn is_plain(path: &[u8]) -> bool {
    let mut after_slash = false;
    let fits = |byte: &u8| {
        let fits = match byte {
            b'%' | b'\\' | 0 => false,
            b'/' | b'.' => !after_slash,
            _ => true,
        };
        after_slash = *byte == b'/';
        fits
    };
    path.first() == Some(&b'/') && path.iter().all(fits)
}

/// A byte of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathByte {
    /// The decoded byte.
    pub decoded: u8,
    /// Whether it was sent as `%` with two hexadecimal digits.
    pub encoded: bool,
}

/// The bytes of a path with their escapes decoded as by [`percent_decode`].
pub fn bytes(raw: &[u8]) -> impl Iterator<Item = PathByte> + '_ {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let (byte, after) = rest.split_first()?;
        let found = escape(after).filter(|_| *byte == b'%');
        rest = found.map_or(after, |(_, after)| after);
        Some(match found {
            Some((decoded, _)) => PathByte { decoded, encoded: true },
            None => PathByte { decoded: *byte, encoded: false },
        })
    })
}

fn resolve(raw_path: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    let Some((b'/', relative)) = raw_path.split_first() else { return Err(PathError::NotAbsolute) };
    out.reserve(raw_path.len());
    out.push(b'/');
    // `out` ends with a slash whenever a segment starts, and a segment that ended is followed by one.
    for segment in relative.split_inclusive(|byte| *byte == b'/') {
        let (segment, slash) = match segment.split_last() {
            Some((b'/', segment)) => (segment, true),
            _ => (segment, false),
        };
        decode_segment(segment, out)?;
        end_segment(slash, out);
    }
    Ok(())
}

/// Resolves the segment behind the last slash, and puts a slash behind it if one was there.
fn end_segment(slash: bool, out: &mut Vec<u8>) {
    let start = out.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    match out.get(start..) {
        Some(b"." | b"") => out.truncate(start),
        Some(b"..") => drop_segment(start, out),
        _ if slash => out.push(b'/'),
        _ => {}
    }
}

fn decode_segment(segment: &[u8], out: &mut Vec<u8>) -> Result<(), PathError> {
    let mut rest = segment;
    while let Some((byte, mut after)) = rest.split_first() {
        let mut decoded = *byte;
        if decoded == b'%' {
            (decoded, after) = escape(after).ok_or(PathError::BadEscape)?;
        }
        match decoded {
            0 => return Err(PathError::Nul),
            b'\\' => return Err(PathError::Backslash),
            // A plain slash ends the segment, so this one was encoded.
            b'/' => return Err(PathError::EncodedSlash),
            _ => out.push(decoded),
        }
        rest = after;
    }
    Ok(())
}

/// Removes the bytes from `start` and the segment before them. `out` stays at least `/`.
fn drop_segment(start: usize, out: &mut Vec<u8>) {
    out.truncate(start.saturating_sub(1));
    let parent = out.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    out.truncate(parent);
    if out.is_empty() {
        out.push(b'/');
    }
}

/// The byte of two hexadecimal digits at the start of `bytes`, and the rest.
fn escape(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let ([high, low], after) = bytes.split_first_chunk::<2>()?;
    Some((hex(*high)? << 4 | hex(*low)?, after))
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
