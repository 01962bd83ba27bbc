//! A table of what clients send as `traceparent` and `tracestate`.
#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use maitred_http::TracePlace;
use maitred_trace::{Context, Ids};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

/// The context as it would be written, without its version; none where the trace starts anew.
fn read(fields: &[&[u8]]) -> Option<String> {
    let (context, _) = Context::received(fields.iter().copied(), [])?;
    let field = String::from_utf8(field_of(context).to_vec()).expect("ASCII");
    Some(field.strip_prefix("00-").expect("version 0").to_owned())
}

fn field_of(context: Context) -> [u8; 55] {
    let place =
        TracePlace { trace: *context.trace.bytes(), flags: context.flags.bits(), ..TracePlace::default() };
    place.parent_field(*context.span.bytes())
}

#[test]
fn contexts_are_taken_over_in_their_exact_form_only() {
    let good = format!("00-{TRACE}-{SPAN}-01");
    let kept = Some(format!("{TRACE}-{SPAN}-01"));
    let unsampled = Some(format!("{TRACE}-{SPAN}-00"));
    let with = |from: &str, to: &str| good.replacen(from, to, 1);
    let table: &[(&str, String, &Option<String>)] = &[
        ("sampled", good.clone(), &kept),
        ("not sampled", with("-01", "-00"), &unsampled),
        ("sampled and random", with("-01", "-03"), &Some(format!("{TRACE}-{SPAN}-03"))),
        ("random", with("-01", "-02"), &Some(format!("{TRACE}-{SPAN}-02"))),
        ("unknown flags go", with("-01", "-ff"), &Some(format!("{TRACE}-{SPAN}-03"))),
        ("unknown flags alone", with("-01", "-04"), &unsampled),
        ("a later version", with("00-", "01-"), &kept),
        ("the last version", with("00-", "fe-"), &kept),
        ("a later version with a part", with("00-", "cc-") + "-what-the-future-will-be-like", &kept),
        ("a later version with an empty part", with("00-", "cc-") + "-", &kept),
        ("a later version that goes on without a dash", with("00-", "cc-") + ".what", &None),
        ("a later version with a longer flag", with("00-", "cc-") + "0", &None),
        ("a later version that is too short", with("00-", "cc-")[..54].to_owned(), &None),
        ("version 255", with("00-", "ff-"), &None),
        ("version 255 with a part", with("00-", "ff-") + "-1", &None),
        ("a version of one digit", with("00-", "0-"), &None),
        ("a version of three digits", with("00-", "000-"), &None),
        ("a version in upper case", with("00-", "CC-"), &None),
        ("a version of letters", with("00-", ".0-"), &None),
        ("a version of a letter behind f", with("00-", "0g-"), &None),
        ("version 0 with a part", good.clone() + "-what", &None),
        ("version 0 with a dash", good.clone() + "-", &None),
        ("version 0 with a blank", good.clone() + " ", &None),
        ("a blank before", " ".to_owned() + &good, &None),
        ("a tab before", "\t".to_owned() + &good, &None),
        ("a line behind", good.clone() + "\r\nx: y", &None),
        ("a zero byte behind", good.clone() + "\0", &None),
        ("two in one field", good.clone() + "," + &good, &None),
        ("nothing", String::new(), &None),
        ("dashes", "---".to_owned(), &None),
        ("only the version", "00".to_owned(), &None),
        ("only the trace", format!("00-{TRACE}"), &None),
        ("no flags", format!("00-{TRACE}-{SPAN}"), &None),
        ("empty flags", format!("00-{TRACE}-{SPAN}-"), &None),
        ("flags of one digit", with("-01", "-1"), &None),
        ("flags of three digits", with("-01", "-001"), &None),
        ("flags that are none", with("-01", "-.0"), &None),
        ("flags in upper case", with("-01", "-0A"), &None),
        ("a trace of zeros", with(TRACE, &"0".repeat(32)), &None),
        ("a span of zeros", with(SPAN, &"0".repeat(16)), &None),
        ("a trace in upper case", with("4bf9", "4BF9"), &None),
        ("a span in upper case", with("67aa", "67AA"), &None),
        ("a trace that is too short", with("4bf9", "bf9"), &None),
        ("a trace that is too long", with("4bf9", "04bf9"), &None),
        ("a span that is too short", with("00f0", "0f0"), &None),
        ("a span that is too long", with("00f0", "000f0"), &None),
        ("a trace with a dash in it", with("4bf92f", "4bf-2f"), &None),
        ("a trace with a point in it", with("4bf92f", "4bf.2f"), &None),
        ("a digit moved across the dash", format!("00-{}-6{SPAN}-01", &TRACE[..31]), &None),
        ("underscores", good.replace('-', "_"), &None),
        ("digits of another script", with("4bf9", "٤bf"), &None),
        ("a long field", "0".repeat(100_000), &None),
        ("a long field of a later version", with("00-", "02-") + "-" + &"a".repeat(100_000), &kept),
        ("B3", format!("{TRACE}-{SPAN}-1"), &None),
    ];
    assert!(table.len() >= 40);
    for (name, field, expected) in table {
        assert_eq!(&read(&[field.as_bytes()]), *expected, "{name}: {field:.80}");
    }
    assert_eq!(read(&[]), None);
    assert_eq!(read(&[good.as_bytes(), good.as_bytes()]), None, "two fields");
    assert_eq!(read(&[b"", good.as_bytes()]), None, "two fields, one empty");
    assert_eq!(read(&[format!("00-{TRACE}-{SPAN}-0\u{e4}").as_bytes()]), None);
}

fn state(fields: &[&str]) -> String {
    let parent = format!("00-{TRACE}-{SPAN}-01");
    let fields = fields.iter().map(|field| field.as_bytes());
    let (_, state) = Context::received([parent.as_bytes()], fields).expect("valid");
    state.as_str().to_owned()
}

#[test]
fn trace_states_are_one_list_that_is_kept_whole_or_not_at_all() {
    let long_key = "k".repeat(256) + "=v";
    for (fields, expected) in [
        (&["a=1"][..], "a=1"),
        (&["a=1", "b=2,c=3"], "a=1,b=2,c=3"),
        (&[" a=1 ,\tb=2", "", ",,c=3,"], "a=1,b=2,c=3"),
        (&["a=1,a=2"], "a=1,a=2"),
        (&["0a_-*/=~ !x", "tenant@vendor=1"], "0a_-*/=~ !x,tenant@vendor=1"),
        (&["a="], "a="),
        (&[long_key.as_str()], long_key.as_str()),
        (&["a=1", "A=1"], ""),
        (&["a=1", "b"], ""),
        (&["=1"], ""),
        (&["a=1=2"], ""),
        (&["a=1\x7f"], ""),
        (&["a=ä"], ""),
        (&["a=1\r\nx: y"], ""),
        (&["a b=1"], ""),
        (&["a=1;b"], "a=1;b"),
        (&["a=1;b=2"], ""),
        (&["_a=1"], ""),
    ] {
        assert_eq!(state(fields), expected, "{fields:?}");
    }
    let member = |count: usize| (0..count).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join(",");
    assert_eq!(state(&[&member(32)]), member(32));
    assert_eq!(state(&[&member(33)]), "");
    assert_eq!(state(&[&format!("{}={}", "k".repeat(257), 1)]), "");
    assert_eq!(state(&[&format!("k={}", "v".repeat(257))]), "");
    // The newest are in front: the long one goes, then the last ones.
    let (long, usual) = (format!("long={}", "v".repeat(200)), format!("usual={}", "v".repeat(94)));
    assert_eq!(state(&[&format!("{usual},{long},{usual},{usual},{usual}")]), [&*usual; 4].join(","));
    assert_eq!(state(&[&[&*usual; 6].join(",")]), [&*usual; 5].join(","));
    assert!(state(&[&[&*usual; 6].join(",")]).len() <= 512);
    assert!(Context::received([], [&b"a=1"[..]]).is_none(), "no state without a parent");
}

#[test]
fn ids_differ_and_are_written_as_they_are_read() {
    for seed in [[0, 0], [1, 2], [u64::MAX, 7]] {
        let mut ids = Ids::seeded(seed);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let context = Context { trace: ids.trace(), span: ids.span(), flags: Default::default() };
            assert_eq!(Context::parse(&field_of(context)), Some(context));
            assert!(seen.insert(context.trace.to_string()) && seen.insert(context.span.to_string()));
        }
    }
}
