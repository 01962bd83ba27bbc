use maitred_http::target::{normalise_decoded, percent_decode};
use proptest::prelude::*;

use super::*;
use crate::PathPattern;

fn pattern(text: &str) -> PathPattern {
    text.parse().expect(text)
}

/// The patterns that match, if that is clear.
fn found(patterns: &[&str], raw: &str) -> Result<Vec<usize>, Ambiguity> {
    let patterns: Vec<PathPattern> = patterns.iter().map(|text| pattern(text)).collect();
    decide(raw.as_bytes(), &mut Vec::new(), |path| {
        (0..patterns.len()).filter(|number| patterns[*number].matches(path)).collect()
    })
}

#[test]
fn a_path_decides_only_if_all_of_its_readings_agree() {
    use Ambiguity::{DotSegment, Foreign, Slashes};

    for (raw, expected) in [
        ("/media/private/a", Ok(vec![0])),
        ("/media/%70rivate/a", Ok(vec![0])),
        ("/media/private", Ok(vec![0])),
        ("/media/private/a%2Fb", Ok(vec![0])),
        ("/media/private/a//b", Ok(vec![0])),
        ("/media/public/a%2Fb", Ok(vec![])),
        ("/proxy/https://shop.example/", Ok(vec![])),
        ("/proxy/https:%2f%2fshop.example/", Ok(vec![])),
        ("/media/privat%c3%a9", Ok(vec![])),
        ("/media/private%", Ok(vec![])),
        ("/media/%252fprivate", Ok(vec![])),
        ("/.well-known/a", Ok(vec![])),
        ("/a/...", Ok(vec![])),
        ("*", Ok(vec![])),
        ("", Ok(vec![])),
        ("/media/x/..%2fprivate/a", Err(DotSegment)),
        ("/media/%2e%2E/media/private/a", Err(DotSegment)),
        ("/media/x/%2e.%2f/private/a", Err(DotSegment)),
        ("/media//../../private/a", Err(DotSegment)),
        ("/media/./private%2fa", Err(DotSegment)),
        ("/public/..", Err(DotSegment)),
        ("/media%5cprivate/a", Err(Foreign)),
        ("/media\\private/a", Err(Foreign)),
        ("/media/private%00", Err(Foreign)),
        ("/media/%2fprivate/a", Err(Slashes)),
        ("/media//private/a", Err(Slashes)),
        ("//media/private/a", Err(Slashes)),
        ("/media%2fprivate/a", Err(Slashes)),
        ("/media/private%2fa", Err(Slashes)),
        ("/media%2f/private", Err(Slashes)),
    ] {
        assert_eq!(found(&["/media/private/*"], raw), expected, "{raw}");
    }
    // A segment with a slash in it is one for readers of the path as it was sent.
    assert_eq!(found(&["/user/*/export"], "/user/a%2Fb/export"), Err(Slashes));
    assert_eq!(found(&["*.pdf"], "/user/a%2Fb.pdf"), Ok(vec![0]));
    assert_eq!(found(&["*/export"], "/user%2Fexport"), Err(Slashes));
}

#[test]
fn the_deciding_path_is_left_in_its_normal_form() {
    for (raw, expected) in
        [("/a/b", "/a/b"), ("/a%20b", "/a b"), ("/a//b%2f/c%2F", "/a/b/c/"), ("*", "*"), ("//", "/")]
    {
        let mut room = b"earlier".to_vec();
        assert_eq!(decide(raw.as_bytes(), &mut room, |_| ()), Ok(()));
        assert_eq!(room, expected.as_bytes(), "{raw}");
    }
}

/// All that applications make of the path they get: as it is, with encoded slashes in its segments, resolved, and behind each prefix that
/// could be a route's resolved without leaving that; with backslashes as they are or as slashes.
fn meant(raw: &[u8]) -> Vec<Vec<u8>> {
    let mut decoded = Vec::new();
    percent_decode(raw, &mut decoded);
    let mut all = vec![decoded.clone()];
    let mut normal = Vec::new();
    normalise_decoded(raw, &mut normal);
    all.push(normal);
    let text = String::from_utf8_lossy(raw).replace("%2f", "|").replace("%2F", "|");
    let mut segments = Vec::new();
    percent_decode(text.as_bytes(), &mut segments);
    all.push(segments);
    let slashed: Vec<u8> = decoded.iter().map(|byte| if *byte == b'\\' { b'/' } else { *byte }).collect();
    for form in [decoded, slashed] {
        for at in (0..form.len()).filter(|at| form[*at] == b'/') {
            let mut stack: Vec<&[u8]> = Vec::new();
            for segment in form[at..].split(|byte| *byte == b'/') {
                match segment {
                    b"" | b"." => {}
                    b".." => drop(stack.pop()),
                    other => stack.push(other),
                }
            }
            all.push([&form[..at], b"/", &stack.join(&b'/')[..]].concat());
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Property for all requests: a path that some application takes for a protected one is protected, and a path that
    /// is let in is unprotected for all.
    #[test]
    fn no_spelling_leads_past_a_pattern(
        segments in prop::collection::vec(
            (
                prop::sample::select(vec!["/", "/", "/", "%2f", "%2F", "//", "\\", "%5c"]),
                prop::sample::select(vec!["private", "private", "%70rivate", "..", "%2E.", ".", "x", "", "%00", "%", "%252e"]),
            ),
            0..6,
        ),
    ) {
        let text: String = segments.iter().map(|(slash, name)| format!("{slash}{name}")).collect();
        let raw = format!("/{}", text.strip_prefix('/').unwrap_or(&text));
        let private = pattern("/private/*");
        match decide(raw.as_bytes(), &mut Vec::new(), |path| private.matches(path)) {
            Ok(found) => for path in meant(raw.as_bytes()) {
                let shown = path.escape_ascii().to_string();
                prop_assert_eq!(private.matches(&path), found, "{} as {}", raw, shown);
            },
            Err(_) => prop_assert!(!target::is_plain(raw.as_bytes())),
        }
    }
}
