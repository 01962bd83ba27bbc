//! The shape of a request: its method, and its path without the parts that vary from one request to the next.
//!
//! It stands for the route where the engine does not know the application's routes. Leaves out: the costs of a shape
//! (`costs.rs` of maitred-dispatch), and the places at which names have been seen to vary (`site/naming/` of
//! maitred-server).

use std::fmt;
use std::hash::{BuildHasher, DefaultHasher, Hasher, RandomState};
use std::sync::LazyLock;

/// Bytes of a segment that are kept as they are; a longer one is a name, a token or a digest.
const MAX_SEGMENT: usize = 24;

/// Characters of a shape as text.
const MAX_SHAPE: usize = 120;

/// Method and shape of a request. As text, `GET /user/*/orders`: printable, of bounded length, without the query.
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// The method as it was sent.
    pub method: &'a str,
    /// The path as it was sent; the query does not count.
    pub path: &'a [u8],
    /// The number of the virtual host; 0 is the default one. Not part of the text: its name is unknown here.
    pub host: u16,
}

/// A hasher for shapes. Its key is one of this process and peers do not know it: otherwise they could choose paths that are taken for
/// others. Processes that fork after the first call share the key.
pub fn shape_hasher() -> DefaultHasher {
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEY.build_hasher()
}

impl Shape<'_> {
    /// One number for all requests of this shape, as [`shape_hasher`] gives it; never 0.
    pub fn hash(self) -> u64 {
        let mut hasher = shape_hasher();
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
        hasher.finish().max(1)
    }
}

/// Segments that are looked at one by one; those behind stay as they are.
const MAX_PLACES: usize = 16;

/// A [`Shape`] in which further segments are one for all.
#[derive(Clone, Copy)]
pub struct Widened<'a> {
    shape: Shape<'a>,
    /// These segments, by their numbers.
    any: u32,
    /// The hash, as [`Shape::hash`].
    pub hash: u64,
}

impl<'a> Shape<'a> {
    /// This shape with a segment being one for all where `varies` says so of its place and itself; none where that is
    /// nowhere. A place is a number for the segments before, and the number of segments. So `/a/x` and `/a/y` have the
    /// same second place, and `/a/y/z` another one.
    pub fn widened(self, varies: impl FnMut(u64, &[u8]) -> bool) -> Option<Widened<'a>> {
        let (any, hash) = self.walk(varies);
        (any != 0).then_some(Widened { shape: self, any, hash })
    }

    /// The segments that are one for all beside those that have no text, and the hash that follows.
    fn walk(self, mut varies: impl FnMut(u64, &[u8]) -> bool) -> (u32, u64) {
        let mut hasher = shape_hasher();
        hasher.write_u16(self.host);
        hasher.write(self.method.as_bytes());
        // No byte of a method: the hash is never that of a shape that is not widened.
        hasher.write_u8(0);
        hasher.write_usize(segments(self.path).count());
        let mut any = 0;
        for (number, segment) in segments(self.path).enumerate() {
            hasher.write_u8(b'/');
            match segment {
                Segment::Kept(bytes) if number < MAX_PLACES && varies(hasher.finish(), bytes) => {
                    any |= 1 << number;
                    hasher.write_u8(b'?');
                }
                Segment::Kept(bytes) => hasher.write(bytes),
                Segment::Any => hasher.write_u8(b'?'),
            }
        }
        (any, hasher.finish())
    }
}

impl fmt::Display for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Widened { shape: *self, any: 0, hash: 0 }.fmt(f)
    }
}

impl fmt::Display for Widened<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { method, path, .. } = self.shape;
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
        let mut whole = put(&mut method.escape_debug().chain([' ']))?;
        for (number, segment) in segments(path).enumerate() {
            let bytes: &[u8] = match segment {
                Segment::Kept(bytes) if number >= MAX_PLACES || self.any & 1 << number == 0 => bytes,
                Segment::Kept(_) | Segment::Any => b"*",
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

/// The shape of a path: segments with a digit in them, or of more than [`MAX_SEGMENT`] bytes, are one for all. So are
/// those that are percent-encoded with a digit.
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
    fn a_shape_is_widened_at_places_with_the_given_segments_before() {
        let shape = |path: &'static str| Shape { method: "GET", path: path.as_bytes(), host: 0 };
        let places = |path| {
            let mut places = Vec::new();
            assert!(
                shape(path)
                    .widened(|place, _| {
                        places.push(place);
                        false
                    })
                    .is_none()
            );
            places
        };
        assert_eq!(places("/users/ann"), places("/users/bob"));
        assert_eq!(places("/users/ann")[0], places("/blog/x")[0]);
        assert_ne!(places("/users/ann")[1], places("/blog/x")[1]);
        assert_ne!(places("/users/ann")[1], places("/users/ann/orders")[1], "another number of segments");
        assert_eq!(places("/users/17/orders").len(), 2, "a number has no place");
        let second = places("/users/ann")[1];
        let widened = |path| shape(path).widened(|place, _| place == second);
        let [ann, bob] = ["/users/ann", "/users/bob?a=b"].map(|path| widened(path).unwrap());
        assert_eq!((ann.to_string(), ann.hash), ("GET /users/*".to_owned(), bob.hash));
        assert!(widened("/blog/x").is_none() && widened("/users").is_none());
        let deep: &'static str = Box::leak("/a".repeat(40).into_boxed_str());
        let all = shape(deep).widened(|_, _| true).unwrap().to_string();
        assert_eq!(all, format!("GET {}{}", "/*".repeat(MAX_PLACES), "/a".repeat(40 - MAX_PLACES)));
    }

    #[test]
    fn one_shape_one_route() {
        let hash = |method, path: &str| Shape { method, path: path.as_bytes(), host: 0 }.hash();
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
