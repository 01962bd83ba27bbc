//! Paths: the results and refusals of normalisation, and that no path leaves its root.

use std::path::{Component, Path};

use maitred_http::target::{PathError, is_plain, normalise, normalise_decoded, percent_decode};
use proptest::prelude::*;

fn normal(raw: &[u8]) -> Result<Vec<u8>, PathError> {
    let mut out = b"what stood there before".to_vec();
    let result = normalise(raw, &mut out);
    match result {
        Ok(()) => Ok(out),
        Err(error) => {
            assert!(out.is_empty(), "a refused path leaves nothing behind");
            Err(error)
        }
    }
}

fn decoded(raw: &str) -> Vec<u8> {
    let mut out = b"what stood there before".to_vec();
    percent_decode(raw.as_bytes(), &mut out);
    out
}

#[test]
fn paths_are_decoded_and_resolved() {
    for (raw, expected) in [
        ("/", "/"),
        ("/a", "/a"),
        ("/a/", "/a/"),
        ("/a/b/c.html", "/a/b/c.html"),
        ("/a%20b", "/a b"),
        ("/%41%7e", "/A~"),
        ("/%e2%82%ac", "/€"),
        ("/a+b", "/a+b"),
        // Dot segments, RFC 3986 §5.2.4
        ("/.", "/"),
        ("/./", "/"),
        ("/a/.", "/a/"),
        ("/a/./b", "/a/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/../", "/a/"),
        ("/a/b/../c", "/a/c"),
        ("/a/b/c/./../../g", "/a/g"),
        // The root has no parent.
        ("/..", "/"),
        ("/../", "/"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("/a/../../b", "/b"),
        // Encoded dots are dots.
        ("/%2e%2e/etc", "/etc"),
        ("/a/.%2E/b", "/b"),
        ("/a/%2e/b", "/a/b"),
        // Decoded once only.
        ("/%252e%252e/a", "/%2e%2e/a"),
        ("/%252f", "/%2f"),
        // Only `.` and `..` are special.
        ("/...", "/..."),
        ("/.../a", "/.../a"),
        ("/.htaccess", "/.htaccess"),
        ("/a..b/..c/d..", "/a..b/..c/d.."),
        ("/%20..", "/ .."),
        // Slashes in a row are one.
        ("//", "/"),
        ("//a///b//", "/a/b/"),
        ("/a//../b", "/b"),
        ("//../a", "/a"),
        ("/a?b", "/a?b"),
        ("/a%3Fb%23", "/a?b#"),
    ] {
        assert_eq!(normal(raw.as_bytes()).as_deref(), Ok(expected.as_bytes()), "{raw}");
    }
    assert_eq!(normal(b"/\xff%ff").as_deref(), Ok(&b"/\xff\xff"[..]));
}

#[test]
fn dangerous_paths_are_refused() {
    for (raw, expected) in [
        ("", PathError::NotAbsolute),
        ("*", PathError::NotAbsolute),
        ("a/b", PathError::NotAbsolute),
        ("../a", PathError::NotAbsolute),
        ("%2Fa", PathError::NotAbsolute),
        ("http://a/", PathError::NotAbsolute),
        ("/%", PathError::BadEscape),
        ("/%2", PathError::BadEscape),
        ("/a%/b", PathError::BadEscape),
        ("/%zz", PathError::BadEscape),
        ("/%+1", PathError::BadEscape),
        ("/%u002e", PathError::BadEscape),
        ("/a%2", PathError::BadEscape),
        ("/a%2/e", PathError::BadEscape),
        ("/\0", PathError::Nul),
        ("/a.html%00.png", PathError::Nul),
        ("/a\\b", PathError::Backslash),
        ("/..%5c..%5Cetc", PathError::Backslash),
        ("/a%2fb", PathError::EncodedSlash),
        ("/..%2F..%2Fetc/passwd", PathError::EncodedSlash),
        // A path that would be fine once resolved is refused all the same.
        ("/%00/../a", PathError::Nul),
    ] {
        assert_eq!(normal(raw.as_bytes()), Err(expected), "{raw}");
        assert!(!expected.to_string().is_empty());
    }
}

#[test]
fn lenient_decoding_changes_only_escapes() {
    for (raw, expected) in [
        ("", ""),
        ("/a/../b//c", "/a/../b//c"),
        ("/a%20b%2Fc", "/a b/c"),
        ("%", "%"),
        ("%4", "%4"),
        ("%4g%41", "%4gA"),
        ("%%41", "%A"),
        ("%25%32%35", "%25"),
        ("a+b", "a+b"),
        ("%00%5c", "\0\\"),
    ] {
        assert_eq!(decoded(raw), expected.as_bytes(), "{raw}");
    }
}

#[test]
fn a_path_that_passes_for_normal_is_its_own_normal_form() {
    const PARTS: [&str; 9] = ["/", "a", ".", "..", "%", "%41", "\\", "\0", "b.c"];
    let (mut plain, mut normal) = (0, Vec::new());
    for number in 0..PARTS.len().pow(5) {
        let parts = (0..5).map(|place| PARTS[number / PARTS.len().pow(place) % PARTS.len()]);
        let path: String = ["/"].into_iter().chain(parts).collect();
        if is_plain(path.as_bytes()) {
            plain += 1;
            assert_eq!(normalise(path.as_bytes(), &mut normal), Ok(()), "{path}");
            assert_eq!(path.as_bytes(), normal, "{path}");
        }
    }
    assert!(plain > 100, "{plain}");
    assert!(is_plain(b"/a.b/c-d/") && !is_plain(b"") && !is_plain(b"*"));
}

#[test]
fn the_meaning_for_an_application_is_decoded_and_then_resolved() {
    for (raw, expected) in [
        ("/a/x/..%2fb", "/a/b"),
        ("/a%2F..%2fb/", "/b/"),
        ("/a/.%2f.", "/a/"),
        ("/%2e%2e%2fa%2fb", "/a/b"),
        ("/a%2f%2Fb//c", "/a/b/c"),
        ("/a/%2f../b", "/b"),
        ("/a%252fb", "/a%2fb"),
        ("/a\\..%5cb", "/a\\..\\b"),
        ("/a%00/../b%", "/b%"),
        ("*", "*"),
        ("", ""),
        ("%2fa/..", "/a/.."),
    ] {
        let mut out = b"earlier".to_vec();
        normalise_decoded(raw.as_bytes(), &mut out);
        assert_eq!(out, expected.as_bytes(), "{raw}");
    }
}

/// Text made of characters that matter to paths.
fn path_like() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "/", "/", "/", ".", "..", "/../", "/..", "../", "%2e", "%2E%2e", "%2f", "%5c", "\\", "%00", "%",
        "%2", "a", "b.c", "%41", "%c3%a9", "\u{e9}", "%252e", "?", " ",
    ]);
    prop::collection::vec(piece, 0..14).prop_map(|pieces| format!("/{}", pieces.concat()).into_bytes())
}

/// A model: decode each segment, keep a stack.
fn model(raw: &[u8]) -> Option<Vec<u8>> {
    let text = raw.strip_prefix(b"/")?;
    let mut stack: Vec<Vec<u8>> = Vec::new();
    let mut open = false;
    for segment in text.split(|byte| *byte == b'/') {
        let mut name = Vec::new();
        percent_decode(segment, &mut name);
        if name.contains(&b'/') || name.contains(&0) || name.contains(&b'\\') {
            return None;
        }
        open = matches!(&name[..], b"" | b"." | b"..");
        match &name[..] {
            b"" | b"." => {}
            b".." => drop(stack.pop()),
            _ => stack.push(name),
        }
    }
    let mut path = b"/".to_vec();
    path.extend(stack.join(&b'/'));
    if open && !stack.is_empty() {
        path.push(b'/');
    }
    Some(path)
}

proptest! {
    #[test]
    fn a_normal_path_cannot_leave_its_root(raw in prop_oneof![path_like(), any::<Vec<u8>>()]) {
        let Ok(path) = normal(&raw) else { return Ok(()) };
        prop_assert_eq!(path.first(), Some(&b'/'));
        prop_assert!(path.len() <= raw.len());
        prop_assert!(!path.contains(&0) && !path.contains(&b'\\'));
        prop_assert!(!path.windows(2).any(|pair| pair == b"//"));
        prop_assert!(path.split(|byte| *byte == b'/').all(|segment| segment != b"." && segment != b".."));
        // As the standard library reads it, too.
        let text = String::from_utf8_lossy(&path).into_owned();
        prop_assert!(Path::new(&text).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_))));
    }

    #[test]
    fn a_normal_path_stays_as_it_is(raw in path_like()) {
        let Ok(path) = normal(&raw) else { return Ok(()) };
        if !path.contains(&b'%') {
            prop_assert_eq!(normal(&path), Ok(path));
        }
    }

    #[test]
    fn normalisation_equals_a_stack_of_segments(raw in path_like()) {
        match normal(&raw) {
            Ok(path) => prop_assert_eq!(Some(path), model(&raw)),
            Err(PathError::BadEscape) => {}
            Err(error) => prop_assert_eq!(model(&raw), None, "{}", error),
        }
    }

    /// Decoded and then normalised equals the reading of the standard library, and the strict reading where there is
    /// one.
    #[test]
    fn the_reading_of_applications_leaves_out_nothing(raw in path_like()) {
        let (mut path, mut clean) = (Vec::new(), Vec::new());
        normalise_decoded(&raw, &mut path);
        if let Ok(strict) = normal(&raw) {
            prop_assert_eq!(&path, &strict);
        }
        percent_decode(&raw, &mut clean);
        let mut stack: Vec<&[u8]> = Vec::new();
        for segment in clean.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => drop(stack.pop()),
                other => stack.push(other),
            }
        }
        let expected = [b"/", &stack.join(&b'/')[..]].concat();
        prop_assert_eq!(path.strip_suffix(b"/").filter(|_| path.len() > 1).unwrap_or(&path), expected);
    }

    #[test]
    fn every_encoded_byte_is_decoded(bytes: Vec<u8>) {
        let lower: String = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
        prop_assert_eq!(decoded(&lower), bytes.clone());
        let upper: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
        prop_assert_eq!(decoded(&upper), bytes);
    }
}
