//! The shape of a request: its method, and its path without what varies from one request to the next.
//!
//! It stands for the route where nobody tells the engine which routes there are. Leaves out: what is known of a shape
//! (`costs.rs` of maitred-dispatch, `site.rs` of maitred-server).

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Bytes of a segment that are kept as they are; what is longer is a name, a token or a digest.
const MAX_SEGMENT: usize = 24;

/// Characters of a shape as text.
const MAX_SHAPE: usize = 120;

/// Method and shape of a request. As text, `GET /user/*/orders`: printable, of bounded length, without the query.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// As it was sent.
    pub method: &'a str,
    /// As it was sent; what stands behind a question mark does not count.
    pub path: &'a [u8],
    /// The number of the virtual host; 0 is the default one. Not part of the text: its name is unknown here.
    pub host: u16,
}

impl Shape<'_> {
    /// One number for all requests of this shape. `state` is a key that peers do not know: otherwise they could choose
    /// paths that are taken for others.
    pub fn hash(self, state: &RandomState) -> u64 {
        let mut hasher = state.build_hasher();
        hasher.write_u16(self.host);
        hasher.write(self.method.as_bytes());
        for segment in segments(self.path) {
            // Neither byte stands in a segment.
            hasher.write_u8(b'/');
            match segment {
                Segment::Kept(bytes) => hasher.write(bytes),
                Segment::Any => hasher.write_u8(b'?'),
            }
        }
        hasher.finish()
    }
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut left = MAX_SHAPE;
        let mut put = |text: &mut dyn Iterator<Item = char>| {
            for letter in text {
                if left == 0 {
                    return Ok(false);
                }
                left -= 1;
                fmt::Write::write_char(f, letter)?;
            }
            Ok(true)
        };
        let mut whole = put(&mut self.method.escape_debug().chain([' ']))?;
        for segment in segments(self.path) {
            let bytes: &[u8] = match segment {
                Segment::Kept(bytes) => bytes,
                Segment::Any => b"*",
            };
            let letters = bytes.escape_ascii().map(char::from);
            whole = whole && put(&mut std::iter::once('/').chain(letters))?;
        }
        if whole { Ok(()) } else { f.write_str("...") }
    }
}

/// A part of a path's shape.
enum Segment<'a> {
    Kept(&'a [u8]),
    /// A number, a name or a token: one for all.
    Any,
}

/// The shape of a path: segments with a digit in them, or of more than [`MAX_SEGMENT`] bytes, are one for all. So is
/// what is percent-encoded with a digit.
fn segments(path: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    path.strip_prefix(b"/").unwrap_or(path).split(|byte| *byte == b'/').map(|segment| {
        let varies = segment.len() > MAX_SEGMENT || segment.iter().any(u8::is_ascii_digit);
        if varies { Segment::Any } else { Segment::Kept(segment) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_in_the_log_is_short_and_printable_and_has_no_query() {
        let long = format!("/{}", "ab/".repeat(100));
        for (path, text) in [
            ("/", "GET /".to_owned()),
            ("/user/17/orders?token=secret", "GET /user/*/orders".to_owned()),
            ("/a\x1b\"b", "GET /a\\x1b\\\"b".to_owned()),
            ("*", "GET /*".to_owned()),
            (long.as_str(), format!("GET {}...", &long[..MAX_SHAPE - 4])),
        ] {
            assert_eq!(Shape { method: "GET", path: path.as_bytes(), host: 0 }.to_string(), text);
        }
    }

    #[test]
    fn one_shape_one_route() {
        let state = RandomState::new();
        let hash = |method, path: &str| Shape { method, path: path.as_bytes(), host: 0 }.hash(&state);
        let key = |path: &str| hash("GET", path);
        for (one, other) in [
            ("/user/17", "/user/18"),
            ("/user/17", "/user/item-2024"),
            ("/user/17?a=1", "/user/18?b"),
            ("/a/abcdefghijklmnopqrstuvwxy", "/a/yxwvutsrqponmlkjihgfedcba-longer"),
            ("/a%20b/x", "/c%3Fd/x"),
        ] {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
        for (one, other) in [
            ("/user/a", "/user/b"),
            ("/user/17", "/user/17/"),
            ("/user/17", "/users/17"),
            ("/user/1/2", "/user/1"),
            ("/ab/c", "/a/bc"),
            ("/", "/a"),
            ("/a//b", "/a/b"),
            ("/abcdefghijklmnopqrstuvwx", "/abcdefghijklmnopqrstuvwy"),
        ] {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
        assert_ne!(hash("POST", "/user"), key("/user"));
    }
}
