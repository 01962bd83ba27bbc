//! Paths of request targets: no normal path leaves its root, and the lenient decoder agrees with the
//! strict one. Input: the path as sent.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_http::target::{PathError, normalise, percent_decode};
use maitred_http::{date, media_type};

fuzz_target!(|raw: &[u8]| {
    let (mut path, mut decoded) = (Vec::new(), Vec::new());
    percent_decode(raw, &mut decoded);
    assert!(decoded.len() <= raw.len());
    if let Ok(text) = std::str::from_utf8(raw) {
        media_type::for_name(text);
    }
    date::parse(raw);

    match normalise(raw, &mut path) {
        Ok(()) => check(raw, &decoded, &path),
        Err(error) => {
            assert!(path.is_empty());
            match error {
                PathError::NotAbsolute => assert_ne!(raw.first(), Some(&b'/')),
                PathError::BadEscape | PathError::EncodedSlash => assert!(raw.contains(&b'%')),
                PathError::Nul => assert!(decoded.contains(&0)),
                PathError::Backslash => assert!(decoded.contains(&b'\\')),
            }
        }
    }
});

fn check(raw: &[u8], decoded: &[u8], path: &[u8]) {
    assert_eq!(path.first(), Some(&b'/'));
    assert!(path.len() <= raw.len());
    assert!(!decoded.contains(&0) && !decoded.contains(&b'\\'));
    assert!(!path.windows(2).any(|pair| pair == b"//"));
    assert!(path.split(|byte| *byte == b'/').all(|segment| segment != b"." && segment != b".."));
    // Without dot segments and doubled slashes there is nothing to do but to decode.
    let plain = decoded.split(|byte| *byte == b'/').all(|segment| segment != b"." && segment != b"..");
    if plain && !decoded.windows(2).any(|pair| pair == b"//") {
        assert_eq!(path, decoded);
    }
    // Twice is once, unless a percent sign was encoded.
    if !path.contains(&b'%') {
        let mut again = Vec::new();
        assert_eq!(normalise(path, &mut again), Ok(()));
        assert_eq!(again, path);
    }
}
