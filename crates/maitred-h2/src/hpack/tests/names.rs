//! Names without regard to case.

use crate::hpack::known_names::{hash, is_same};

/// Every pair of bytes at every place of a name of every length up to 17.
#[test]
fn names_are_the_same_as_a_slow_comparison_says() {
    for length in 1..18 {
        for place in 0..length {
            let (mut one, mut other) = (vec![b'x'; length], vec![b'X'; length]);
            for (first, second) in
                (0..=255).flat_map(|first| [(first, first ^ 0x20), (first, first ^ 1), (first, first)])
            {
                (one[place], other[place]) = (first, second);
                assert_eq!(is_same(&one, &other), one.eq_ignore_ascii_case(&other), "{one:?} {other:?}");
            }
        }
    }
    assert!(is_same(b"", b"") && !is_same(b"", b"a") && !is_same(b"aaaaaaaa", b"aaaaaaaaa"));
}

#[test]
fn the_case_does_not_change_the_hash() {
    for name in [
        "",
        "a",
        "ab",
        "age",
        "date",
        "server",
        "X-Frame-Options",
        "content-type",
        "a-name_with.a~lot`of^signs",
    ] {
        assert_eq!(hash(name.as_bytes()), hash(name.to_ascii_uppercase().as_bytes()), "{name}");
    }
    assert_ne!(hash(b"x-a"), hash(b"x-b"));
}
