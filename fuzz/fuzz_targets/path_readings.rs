//! The readings of a path: a path that some application takes for a protected one is denied, and an allowed path is
//! unprotected for all.
//! Input: the path as sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_http::target::{bytes, normalise_decoded, percent_decode};
use maitred_match::{PathPattern, decide};

/// The readings behind all prefixes are as long together as the square of the path.
const MAX_LENGTH: usize = 512;

fuzz_target!(|raw: &[u8]| {
    let raw = &raw[..raw.len().min(MAX_LENGTH)];
    let mut room = Vec::new();
    for pattern in ["/private/*", "/media/private/*", "/user/*/export", "*.sql"] {
        let pattern: PathPattern = pattern.parse().expect("a pattern");
        let Ok(found) = decide(raw, &mut room, |path| pattern.matches(path)) else { continue };
        let mut normal = Vec::new();
        normalise_decoded(raw, &mut normal);
        assert_eq!(room, normal);
        for path in meant(raw) {
            assert_eq!(pattern.matches(&path), found, "{pattern} and {}", path.escape_ascii());
        }
    }
});

/// The readings of applications: the path as it is, with encoded slashes in its segments, and behind each prefix that
/// could be a route's resolved without leaving that.
fn meant(raw: &[u8]) -> Vec<Vec<u8>> {
    let mut decoded = Vec::new();
    percent_decode(raw, &mut decoded);
    let data = bytes(raw).map(|byte| if byte.encoded && byte.decoded == b'/' { b'|' } else { byte.decoded });
    let mut all = vec![data.collect()];
    let is_doubled = |at: usize| at > 0 && decoded[at - 1] == b'/';
    // Which slashes in a row are one is the same for all of a path here: no router merges a part of them.
    let first = decoded.windows(2).position(|pair| pair == b"//").map_or(decoded.len(), |at| at + 1);
    for at in (0..first).filter(|at| decoded[*at] == b'/' && !is_doubled(*at)) {
        let mut stack: Vec<&[u8]> = Vec::new();
        let rest = decoded[at..].strip_suffix(b"/").unwrap_or(&decoded[at..]);
        for segment in rest.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => drop(stack.pop()),
                other => stack.push(other),
            }
        }
        let slash: &[u8] = if decoded.ends_with(b"/") && !stack.is_empty() { b"/" } else { b"" };
        all.push([&decoded[..at], b"/", &stack.join(&b'/'), slash].concat());
    }
    all.push(decoded);
    all
}
