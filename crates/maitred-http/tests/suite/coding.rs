//! Which coding a peer gets.

use maitred_http::coding::{Accepted, Coding};
use proptest::prelude::*;

fn chosen(value: &str, available: &[Coding]) -> Coding {
    Accepted::of([value.as_bytes()].into_iter())
        .choose(Coding::COMPRESSED, |coding| available.contains(&coding))
}

#[test]
fn the_highest_weight_wins_and_ties_are_ours() {
    use Coding::{Brotli, Gzip, Identity, Zstd};
    let all = [Gzip, Zstd, Brotli];
    for (value, available, expected) in [
        ("gzip, deflate, br, zstd", &all[..], Brotli),
        ("gzip, deflate, br, zstd", &all[..2], Zstd),
        ("gzip, deflate, br, zstd", &all[..1], Gzip),
        ("gzip, deflate, br, zstd", &[], Identity),
        ("gzip;q=1.0, br;q=0.5", &all, Gzip),
        ("br;q=0.001", &all, Brotli),
        ("br;q=0", &all, Identity),
        ("br;q=0, *", &all, Zstd),
        ("*", &all, Brotli),
        ("*;q=0.5, gzip", &all, Gzip),
        ("*;q=0", &all, Identity),
        ("gzip, *;q=0", &all, Gzip),
        ("identity", &all, Identity),
        ("identity;q=0.5, gzip;q=0.4", &all, Identity),
        ("identity;q=0.5, gzip;q=0.5", &all, Gzip),
        ("identity;q=0", &[], Identity),
        ("identity;q=0, *", &all, Brotli),
        ("", &all, Identity),
        ("deflate", &all, Identity),
        ("X-GZIP", &all, Gzip),
        ("GZip ; Q=0.3", &all, Gzip),
        (" gzip\t;\tq=0.3 ,br;q=0.2", &all, Gzip),
        ("br;q=2, gzip;q=0.1", &all, Gzip),
        ("br;q=1.001, gzip;q=0.1", &all, Gzip),
        ("br;q=0.1234, gzip;q=0.1", &all, Gzip),
        ("br;q=, gzip;q=0.1", &all, Gzip),
        ("br;q=0., gzip;q=0.1", &all, Gzip),
        ("br;q=1., gzip;q=0.1", &all, Brotli),
        (",,br,,", &all, Brotli),
    ] {
        assert_eq!(chosen(value, available), expected, "{value:?} {available:?}");
    }
}

#[test]
fn several_fields_count_as_one_list() {
    let choose =
        |values: &[&'static [u8]]| Accepted::of(values.iter().copied()).choose(Coding::COMPRESSED, |_| true);
    assert_eq!(choose(&[b"br;q=0", b"gzip;q=0.2"]), Coding::Gzip);
    assert_eq!(choose(&[]), Coding::Identity);
}

#[test]
fn an_order_of_ones_own_decides_on_ties_only() {
    let order = [Coding::Gzip, Coding::Zstd];
    for (value, expected) in
        [("br, zstd, gzip", Coding::Gzip), ("br, zstd, gzip;q=0.9", Coding::Zstd), ("br", Coding::Identity)]
    {
        let accepted = Accepted::of([value.as_bytes()].into_iter());
        assert_eq!(accepted.choose(order, |_| true), expected, "{value}");
    }
}

#[test]
fn accepted_codings_come_in_the_order_of_the_peer() {
    for (value, expected) in [
        ("", "identity"),
        ("gzip, deflate, br, zstd", "br zstd gzip identity"),
        ("gzip;q=0.8, zstd;q=0.9", "zstd gzip identity"),
        ("identity, gzip;q=0.5", "identity gzip"),
        ("gzip, identity;q=0", "gzip"),
        ("*", "br zstd gzip identity"),
        ("*;q=0, br", "br"),
        ("identity;q=0", ""),
        ("*;q=0.1, gzip;q=0, identity;q=0.2", "identity br zstd"),
    ] {
        let accepted = Accepted::of([value.as_bytes()].into_iter()).in_order();
        let names: Vec<&str> = accepted.into_iter().map(Coding::name).collect();
        assert_eq!(names.join(" "), expected, "{value:?}");
    }
}

#[test]
fn names_are_compared_without_case() {
    for (name, expected) in [
        ("GZIP", Some(Coding::Gzip)),
        ("x-gzip", Some(Coding::Gzip)),
        ("Br", Some(Coding::Brotli)),
        ("identity", Some(Coding::Identity)),
        ("deflate", None),
        ("", None),
    ] {
        assert_eq!(Coding::named(name.as_bytes()), expected, "{name}");
    }
}

/// A list as RFC 9110 §12.5.3 writes it, and the weight of each coding in it: `None` where it does not name it.
fn lists() -> impl Strategy<Value = (String, [Option<u16>; 4], Option<u16>)> {
    let weight = prop_oneof![Just(None), (0_u16..=1000).prop_map(Some)];
    let names = ["identity", "gzip", "zstd", "br", "*", "deflate"];
    prop::collection::vec((0_usize..names.len(), weight, "[ \t]{0,2}"), 0..8).prop_map(move |elements| {
        let (mut named, mut others, mut text) = ([None; 4], None, String::new());
        for (name, weight, blank) in elements {
            let q =
                weight.map_or(String::new(), |q| format!("{blank};{blank}q={}.{:03}", q / 1000, q % 1000));
            text.push_str(&format!("{blank}{}{q}{blank},", names[name]));
            match name {
                0..=3 => named[name] = Some(weight.unwrap_or(1000)),
                4 => others = Some(weight.unwrap_or(1000)),
                _ => {}
            }
        }
        (text, named, others)
    })
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(value in prop::collection::vec(any::<u8>(), 0..200)) {
        let accepted = Accepted::of([&value[..]].into_iter());
        let _ = accepted.choose(Coding::COMPRESSED, |_| true);
        prop_assert!(accepted.in_order().len() <= 4);
    }

    /// RFC 9110 §12.5.3: `*` stands for all codings that are not named; a weight of 0 is "not acceptable"; the highest
    /// weight is preferred.
    #[test]
    fn refused_codings_are_never_chosen((value, named, others) in lists()) {
        let accepted = Accepted::of([value.as_bytes()].into_iter());
        let weight = |coding: Coding| named[coding as usize].or(others).unwrap_or(0);
        let chosen = accepted.choose(Coding::COMPRESSED, |_| true);
        for coding in Coding::COMPRESSED {
            prop_assert!(weight(chosen) >= weight(coding), "{value:?}: {chosen:?} before {coding:?}");
            prop_assert_eq!(accepted.in_order().contains(&coding), weight(coding) > 0);
        }
        prop_assert!(chosen == Coding::Identity || weight(chosen) > 0);
        prop_assert!(accepted.in_order().is_sorted_by_key(|coding| std::cmp::Reverse(weight(*coding))));
    }
}
