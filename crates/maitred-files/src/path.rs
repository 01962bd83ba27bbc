//! The names that may be served, and how a path is written back into a URL or a page.

use maitred_http::target;

/// The one name with a leading dot that is public by design (RFC 8615).
const WELL_KNOWN: &[u8] = b".well-known";

/// Whether a normalised path may name a file here: it starts with a slash (or is empty, for the
/// root), holds no NUL, and no segment is hidden or, except for the last one, empty.
pub(crate) fn is_servable(path: &[u8]) -> bool {
    let Some(below) = path.strip_prefix(b"/") else { return path.is_empty() };
    let mut segments = below.split(|byte| *byte == b'/');
    let last = segments.next_back().unwrap_or_default();
    !path.contains(&0)
        && !is_hidden(last)
        && segments.all(|segment| !segment.is_empty() && !is_hidden(segment))
}

/// Whether a name is not shown and not served: `.git`, `.env`, and with them `.` and `..`.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    name.starts_with(b".") && name != WELL_KNOWN
}

/// The `Location` that adds the missing slash to a request for a folder: always an absolute path on this host. Two
/// leading slashes would make a host name of the first segment (RFC 3986 §4.2); normalising leaves one, and the
/// encoding leaves no backslash that a browser could read as a slash. `None` when the path of the request cannot be
/// normalised.
pub fn folder_location(raw_path: &[u8], query: Option<&[u8]>) -> Option<String> {
    let mut path = Vec::new();
    target::normalise(raw_path, &mut path).ok()?;
    let mut location = String::with_capacity(path.len() + 1 + query.map_or(0, <[u8]>::len));
    encode(&path, &mut location);
    if !location.ends_with('/') {
        location.push('/');
    }
    if let Some(query) = query {
        location.push('?');
        for byte in query {
            match byte {
                0x21..=0x7e => location.push(char::from(*byte)),
                _ => push_escape(*byte, &mut location),
            }
        }
    }
    Some(location)
}

/// Whether a request named the folder itself without the slash behind it, for a path that is the
/// root of the mount (`/static` for a mount at `/static`).
pub(crate) fn lacks_slash(raw_path: &[u8]) -> bool {
    if raw_path.ends_with(b"/") {
        return false;
    }
    let mut path = Vec::new();
    target::normalise(raw_path, &mut path).is_ok() && !path.ends_with(b"/")
}

/// Appends a decoded path percent-encoded: only unreserved characters (RFC 3986 §2.3) and the slash
/// stay, so that the result is safe in a field, in an attribute and as a reference.
pub(crate) fn encode(path: &[u8], out: &mut String) {
    for byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(char::from(*byte));
            }
            _ => push_escape(*byte, out),
        }
    }
}

fn push_escape(byte: u8, out: &mut String) {
    let digit = |nibble: u8| char::from(b"0123456789ABCDEF"[usize::from(nibble & 15)]);
    out.extend(['%', digit(byte >> 4), digit(byte)]);
}

/// Appends text with the characters that mean something in HTML escaped, for content and for
/// quoted attributes.
pub(crate) fn escape_html(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_names_are_not_servable_anywhere_in_the_path() {
        for path in ["", "/", "/a", "/a/b/", "/.well-known/x", "/a./b..c", "/a/.well-known/"] {
            assert!(is_servable(path.as_bytes()), "{path:?}");
        }
        for path in [
            "a",
            "/.git",
            "/.git/config",
            "/a/.env",
            "/.",
            "/..",
            "/a/../b",
            "//a",
            "/a//b",
            "/a\0b",
            "/.well-known-not",
            "/.well-known/.x",
        ] {
            assert!(!is_servable(path.as_bytes()), "{path:?}");
        }
    }

    #[test]
    fn a_location_stays_on_this_host() {
        for (raw, query, expected) in [
            ("/a", None, "/a/"),
            ("/a%20b", Some("x=%2F&y=1"), "/a%20b/?x=%2F&y=1"),
            ("//evil.example", None, "/evil.example/"),
            ("///evil.example/..//evil.example", None, "/evil.example/"),
            ("/a:b@c", None, "/a%3Ab%40c/"),
            ("/x/../y/.", Some(""), "/y/?"),
            ("/%0d%0aSet-Cookie:a", None, "/%0D%0ASet-Cookie%3Aa/"),
            ("/a", Some("x y\u{e4}"), "/a/?x%20y%C3%A4"),
        ] {
            let location = folder_location(raw.as_bytes(), query.map(str::as_bytes));
            assert_eq!(location.as_deref(), Some(expected), "{raw:?}");
        }
        assert_eq!(folder_location(b"/\\evil.example", None), None);
    }

    #[test]
    fn the_slash_is_missed_only_where_a_relative_link_would_go_wrong() {
        assert!(lacks_slash(b"/static"));
        assert!(lacks_slash(b"/x/../static"));
        assert!(!lacks_slash(b"/static/"));
        assert!(!lacks_slash(b"/static/."));
        assert!(!lacks_slash(b"/"));
    }
}
