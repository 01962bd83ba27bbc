//! Byte ranges: the rules of RFC 9110 §14, and the bytes selected against a naive model.

use maitred_http::limits::MAX_RANGES;
use maitred_http::multipart::Parts;
use maitred_http::range::{ByteRange, Ranges, parse};
use proptest::prelude::*;

fn satisfiable(ranges: &[(u64, u64)]) -> Ranges {
    Ranges::Satisfiable(ranges.iter().map(|&(first, last)| ByteRange { first, last }).collect())
}

#[test]
fn one_range_selects_its_bytes() {
    for (field, expected) in [
        ("bytes=0-0", (0, 0)),
        ("bytes=0-499", (0, 499)),
        ("bytes=500-999", (500, 999)),
        ("bytes=500-", (500, 999)),
        ("bytes=-500", (500, 999)),
        ("bytes=-1", (999, 999)),
        ("bytes=-5000", (0, 999)),
        ("bytes=999-5000", (999, 999)),
        ("bytes=0-18446744073709551615", (0, 999)),
        ("bytes=0-99999999999999999999999", (0, 999)),
        ("bytes=-99999999999999999999999", (0, 999)),
        ("bytes=000-0005", (0, 5)),
        ("BYTES=0-1", (0, 1)),
    ] {
        assert_eq!(parse(field.as_bytes(), 1000), satisfiable(&[expected]), "{field}");
    }
}

#[test]
fn several_ranges_stay_in_the_order_of_the_request() {
    assert_eq!(parse(b"bytes=500-600,0-10,-1", 1000), satisfiable(&[(500, 600), (0, 10), (999, 999)]));
}

#[test]
fn ranges_that_overlap_or_touch_become_one() {
    for (field, expected) in [
        ("bytes=0-10,5-20", &[(0, 20)][..]),
        ("bytes=0-10,11-20", &[(0, 20)]),
        ("bytes=11-20,0-10", &[(0, 20)]),
        ("bytes=0-100,20-30", &[(0, 100)]),
        ("bytes=5-5,5-5,5-5", &[(5, 5)]),
        // A gap of one byte is left alone.
        ("bytes=0-10,12-20", &[(0, 10), (12, 20)]),
        // The last one joins the first two, at the place of the first.
        ("bytes=0-10,20-30,500-501,9-21", &[(0, 30), (500, 501)]),
        ("bytes=800-900,0-1,850-", &[(800, 999), (0, 1)]),
        ("bytes=0-,-1,5-6", &[(0, 999)]),
    ] {
        assert_eq!(parse(field.as_bytes(), 1000), satisfiable(expected), "{field}");
    }
}

#[test]
fn ranges_outside_are_left_out_and_alone_are_not_satisfiable() {
    assert_eq!(parse(b"bytes=1000-,0-1", 1000), satisfiable(&[(0, 1)]));
    assert_eq!(parse(b"bytes=0-1,-0", 1000), satisfiable(&[(0, 1)]));
    for field in [
        "bytes=1000-",
        "bytes=1000-1000",
        "bytes=-0",
        "bytes=5000-6000,7000-",
        "bytes=99999999999999999999999-",
    ] {
        assert_eq!(parse(field.as_bytes(), 1000), Ranges::Unsatisfiable, "{field}");
    }
}

#[test]
fn an_empty_representation_has_no_range() {
    for field in ["bytes=0-", "bytes=0-0", "bytes=-0", "bytes=7-9,0-1"] {
        assert_eq!(parse(field.as_bytes(), 0), Ranges::Unsatisfiable, "{field}");
    }
    assert_eq!(parse(b"bytes=-1", 0), Ranges::Ignored);
    assert_eq!(parse(b"bytes=0-1,-1", 0), Ranges::Ignored);
}

#[test]
fn text_that_is_not_a_byte_range_set_is_ignored() {
    for field in [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes= , ,",
        "=0-1",
        "items=0-1",
        "byte=0-1",
        "bytes 0-1",
        "bytes =0-1",
        "bytes=1",
        "bytes=-",
        "bytes=--1",
        "bytes=1-0",
        "bytes=0-1-2",
        "bytes=a-b",
        "bytes=0x0-1",
        "bytes=+1-2",
        "bytes=0 -1",
        "bytes=0- 1",
        "bytes=- 1",
        "bytes=0-1;2-3",
        "bytes=0-1,x",
        "bytes=0-1,5-4",
        "bytes=1.0-2",
        "bytes==0-1",
        "bytes=0-1\n",
        "bytes=\u{660}-1",
    ] {
        assert_eq!(parse(field.as_bytes(), 1000), Ranges::Ignored, "{field:?}");
    }
}

#[test]
fn white_space_and_empty_members_are_allowed_around_commas() {
    let expected = satisfiable(&[(0, 1), (4, 5)]);
    for field in ["bytes=0-1 , 4-5", "bytes= 0-1,\t4-5 ", "bytes=,0-1,,4-5,", " bytes=0-1,4-5"] {
        assert_eq!(parse(field.as_bytes(), 1000), expected, "{field:?}");
    }
}

#[test]
fn the_most_ranges_are_served_and_one_more_is_ignored() {
    let field = |count: usize| {
        let members: Vec<_> = (0..count).map(|index| format!("{0}-{0}", index * 2)).collect();
        format!("bytes={}", members.join(","))
    };
    match parse(field(MAX_RANGES).as_bytes(), 1000) {
        Ranges::Satisfiable(ranges) => assert_eq!(ranges.len(), MAX_RANGES),
        other => panic!("{other:?}"),
    }
    assert_eq!(parse(field(MAX_RANGES + 1).as_bytes(), 1000), Ranges::Ignored);
    // Ranges are counted as they were sent: the same byte many times is one range, but too many.
    let same = vec!["0-0"; MAX_RANGES + 1].join(",");
    assert_eq!(parse(format!("bytes={same}").as_bytes(), 1000), Ranges::Ignored);
}

#[test]
fn positions_past_four_gibibytes_and_at_the_end_of_64_bits_are_exact() {
    let total = 5 * 1024 * 1024 * 1024;
    assert_eq!(
        parse(b"bytes=4294967296-4294967296,-1", total),
        satisfiable(&[(1 << 32, 1 << 32), (total - 1, total - 1)])
    );
    let most = u64::MAX;
    assert_eq!(parse(b"bytes=18446744073709551614-", most), satisfiable(&[(most - 1, most - 1)]));
    assert_eq!(parse(b"bytes=-18446744073709551615", most), satisfiable(&[(0, most - 1)]));
    assert_eq!(parse(b"bytes=18446744073709551615-", most), Ranges::Unsatisfiable);
    let whole = ByteRange { first: 0, last: u64::MAX };
    assert_eq!(whole.len(), u64::MAX, "saturates");
}

/// A member of a range set.
#[derive(Clone, Debug)]
enum Member {
    Int(u64, u64),
    Open(u64),
    Suffix(u64),
}

impl Member {
    fn write(&self) -> String {
        match self {
            Self::Int(first, last) => format!("{first}-{last}"),
            Self::Open(first) => format!("{first}-"),
            Self::Suffix(length) => format!("-{length}"),
        }
    }

    fn selects(&self, position: u64, total: u64) -> bool {
        match *self {
            Self::Int(first, last) => (first..=last).contains(&position),
            Self::Open(first) => position >= first,
            Self::Suffix(length) => total - position <= length,
        }
    }
}

fn member() -> impl Strategy<Value = Member> {
    prop_oneof![
        (0u64..80, 0u64..40).prop_map(|(first, more)| Member::Int(first, first + more)),
        (0u64..80).prop_map(Member::Open),
        (0u64..80).prop_map(Member::Suffix),
    ]
}

proptest! {
    /// Exactly the bytes that some member names are sent, each once, and nothing that overlaps.
    #[test]
    fn the_bytes_named_are_the_bytes_selected(members in prop::collection::vec(member(), 1..20), total in 1u64..70) {
        let set: Vec<_> = members.iter().map(Member::write).collect();
        let named: Vec<u64> = (0..total).filter(|at| members.iter().any(|m| m.selects(*at, total))).collect();
        match parse(format!("bytes={}", set.join(", ")).as_bytes(), total) {
            Ranges::Satisfiable(ranges) => {
                let mut sent: Vec<u64> = ranges.iter().flat_map(|range| range.first..=range.last).collect();
                sent.sort_unstable();
                prop_assert_eq!(sent, named);
                let mut sorted = ranges.clone();
                sorted.sort_by_key(|range| range.first);
                prop_assert!(sorted.windows(2).all(|pair| pair[0].last + 1 < pair[1].first));
                // The first member that names a byte decides the order.
                let leader = members.iter().find(|m| (0..total).any(|at| m.selects(at, total)));
                prop_assert!(leader.is_some_and(|m| (ranges[0].first..=ranges[0].last).any(|at| m.selects(at, total))));
            }
            Ranges::Unsatisfiable => prop_assert!(named.is_empty()),
            Ranges::Ignored => prop_assert!(false, "ignored: {:?}", set),
        }
    }

    /// For all requests, ranges are inside, apart and few, and the multipart length is the sum of its parts.
    #[test]
    fn any_field_gives_ranges_inside(field in "(bytes=)?[-0-9, \ta]{0,60}", total: u64, boundary: u128) {
        if let Ranges::Satisfiable(ranges) = parse(field.as_bytes(), total) {
            prop_assert!(!ranges.is_empty() && ranges.len() <= MAX_RANGES);
            prop_assert!(ranges.iter().all(|range| range.first <= range.last && range.last < total));
            let parts = Parts::new(Some("text/plain"), total, &ranges, boundary);
            let heads: u64 = parts.iter().map(|(head, range)| head.len() as u64 + range.len()).sum();
            prop_assert_eq!(parts.content_length(), heads + parts.closing().len() as u64);
        }
    }

    #[test]
    fn any_bytes_are_survived(field: Vec<u8>, total: u64) {
        let mut with_unit = b"bytes=".to_vec();
        with_unit.extend_from_slice(&field);
        parse(&field, total);
        parse(&with_unit, total);
    }
}
