//! Conditional requests: each field of RFC 9110 §13.1, their order (§13.2.2), and a model.

use maitred_http::conditional::{Validators, Verdict, evaluate};
use maitred_http::{FieldSet, Method, date};
use proptest::prelude::*;

const MODIFIED: u64 = 784_111_777;
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const WHOLE: Verdict = Verdict::Proceed { ranges: false };
const PARTS: Verdict = Verdict::Proceed { ranges: true };
const STRONG: Validators = Validators { etag: Some("\"a\""), last_modified: Some(MODIFIED) };
const WEAK: Validators = Validators { etag: Some("W/\"a\""), last_modified: Some(MODIFIED) };
const NONE: Validators = Validators { etag: None, last_modified: None };

fn ask(method: &Method, validators: &Validators, fields: &[(&str, &str)]) -> Verdict {
    let mut set = FieldSet::new();
    for (name, value) in fields {
        set.push(name, value);
    }
    evaluate(method, &set, validators)
}

fn get(validators: &Validators, fields: &[(&str, &str)]) -> Verdict {
    ask(&Method::Get, validators, fields)
}

#[test]
fn a_request_without_conditions_proceeds() {
    assert_eq!(get(&STRONG, &[]), WHOLE);
    assert_eq!(get(&NONE, &[("Range", "bytes=0-1")]), PARTS);
}

#[test]
fn if_none_match_compares_weakly_and_takes_lists() {
    for value in [
        "\"a\"",
        "W/\"a\"",
        "*",
        "\"b\", \"a\"",
        "\"b\",W/\"a\"",
        "\"b\" , \"a\" ,",
        ",, \"a\"",
        "\"x,y\", \"a\"",
        "junk, \"a\"",
        "\"\", \"a\"",
    ] {
        for validators in [STRONG, WEAK] {
            assert_eq!(get(&validators, &[("If-None-Match", value)]), Verdict::NotModified, "{value}");
            assert_eq!(
                ask(&Method::Head, &validators, &[("If-None-Match", value)]),
                Verdict::NotModified,
                "{value}"
            );
            assert_eq!(
                ask(&Method::Put, &validators, &[("If-None-Match", value)]),
                Verdict::PreconditionFailed,
                "{value}"
            );
        }
    }
    for value in [
        "\"b\"",
        "",
        "a",
        "w/\"a\"",
        "\"A\"",
        "\"a",
        "a\"",
        "\"x, \"a\"\"",
        "\"a\"x",
        "\"x,\"a\",y\"",
        "*, \"b\"",
        "W/a",
        "\" a\"",
    ] {
        assert_eq!(get(&STRONG, &[("If-None-Match", value)]), WHOLE, "{value}");
    }
}

#[test]
fn several_lines_of_a_list_are_one_list() {
    assert_eq!(get(&STRONG, &[("If-None-Match", "\"b\""), ("if-none-match", "\"a\"")]), Verdict::NotModified);
    assert_eq!(get(&STRONG, &[("If-Match", "\"b\""), ("if-match", "\"a\"")]), WHOLE);
}

#[test]
fn a_star_matches_whatever_exists_even_without_a_tag() {
    assert_eq!(get(&NONE, &[("If-Match", "*")]), WHOLE);
    assert_eq!(get(&NONE, &[("If-None-Match", "*")]), Verdict::NotModified);
    assert_eq!(ask(&Method::Put, &NONE, &[("If-None-Match", "*")]), Verdict::PreconditionFailed);
}

#[test]
fn if_match_compares_strongly() {
    assert_eq!(get(&STRONG, &[("If-Match", "\"b\", \"a\"")]), WHOLE);
    assert_eq!(ask(&Method::Delete, &STRONG, &[("If-Match", "\"a\"")]), WHOLE);
    for (validators, value) in [
        (STRONG, "W/\"a\""),
        (WEAK, "W/\"a\""),
        (WEAK, "\"a\""),
        (STRONG, "\"b\""),
        (STRONG, ""),
        (NONE, "\"a\""),
    ] {
        assert_eq!(get(&validators, &[("If-Match", value)]), Verdict::PreconditionFailed, "{value}");
    }
}

#[test]
fn if_modified_since_is_for_get_and_head() {
    for (value, expected) in
        [(SAME, Verdict::NotModified), (AFTER, Verdict::NotModified), (BEFORE, WHOLE), ("yesterday", WHOLE)]
    {
        assert_eq!(get(&STRONG, &[("If-Modified-Since", value)]), expected, "{value}");
        assert_eq!(ask(&Method::Head, &STRONG, &[("If-Modified-Since", value)]), expected, "{value}");
        assert_eq!(ask(&Method::Post, &STRONG, &[("If-Modified-Since", value)]), WHOLE, "{value}");
        assert_eq!(get(&NONE, &[("If-Modified-Since", value)]), WHOLE, "{value}");
    }
    for value in ["Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
        assert_eq!(get(&STRONG, &[("If-Modified-Since", value)]), Verdict::NotModified, "{value}");
    }
    assert_eq!(get(&STRONG, &[("If-Modified-Since", SAME), ("If-Modified-Since", AFTER)]), WHOLE);
}

#[test]
fn if_unmodified_since_fails_on_a_later_modification() {
    for (value, expected) in
        [(SAME, WHOLE), (AFTER, WHOLE), (BEFORE, Verdict::PreconditionFailed), ("tomorrow", WHOLE)]
    {
        assert_eq!(get(&STRONG, &[("If-Unmodified-Since", value)]), expected, "{value}");
        assert_eq!(ask(&Method::Put, &STRONG, &[("If-Unmodified-Since", value)]), expected, "{value}");
        assert_eq!(get(&NONE, &[("If-Unmodified-Since", value)]), WHOLE, "{value}");
    }
}

#[test]
fn a_tag_takes_precedence_over_a_date() {
    assert_eq!(get(&STRONG, &[("If-Match", "\"a\""), ("If-Unmodified-Since", BEFORE)]), WHOLE);
    assert_eq!(get(&STRONG, &[("If-None-Match", "\"b\""), ("If-Modified-Since", AFTER)]), WHOLE);
    assert_eq!(
        get(&STRONG, &[("If-None-Match", "\"a\""), ("If-Modified-Since", BEFORE)]),
        Verdict::NotModified
    );
}

#[test]
fn a_failed_precondition_comes_before_not_modified() {
    assert_eq!(
        get(&STRONG, &[("If-None-Match", "\"a\""), ("If-Match", "\"b\"")]),
        Verdict::PreconditionFailed
    );
    assert_eq!(
        get(&STRONG, &[("If-None-Match", "\"a\""), ("If-Unmodified-Since", BEFORE)]),
        Verdict::PreconditionFailed
    );
    assert_eq!(
        get(&STRONG, &[("If-None-Match", "\"a\""), ("Range", "bytes=0-1"), ("If-Range", "\"a\"")]),
        Verdict::NotModified
    );
}

#[test]
fn if_range_needs_a_strong_tag_or_the_exact_date() {
    for (value, expected) in [
        ("\"a\"", PARTS),
        ("\"b\"", WHOLE),
        ("W/\"a\"", WHOLE),
        ("*", WHOLE),
        ("", WHOLE),
        ("a", WHOLE),
        ("\"b\", \"a\"", WHOLE),
        ("\"a\", \"b\"", WHOLE),
        (SAME, PARTS),
        (BEFORE, WHOLE),
        (AFTER, WHOLE),
        ("Sunday, 06-Nov-94 08:49:37 GMT", PARTS),
    ] {
        assert_eq!(get(&STRONG, &[("Range", "bytes=0-1"), ("If-Range", value)]), expected, "{value}");
    }
    assert_eq!(get(&WEAK, &[("Range", "bytes=0-1"), ("If-Range", "W/\"a\"")]), WHOLE);
    assert_eq!(get(&WEAK, &[("Range", "bytes=0-1"), ("If-Range", "\"a\"")]), WHOLE);
    assert_eq!(get(&NONE, &[("Range", "bytes=0-1"), ("If-Range", SAME)]), WHOLE);
    assert_eq!(get(&STRONG, &[("Range", "bytes=0-1"), ("If-Range", "\"a\""), ("If-Range", "\"a\"")]), WHOLE);
    assert_eq!(get(&STRONG, &[("If-Range", "\"b\"")]), WHOLE, "without Range it does not count");
}

#[test]
fn only_get_has_ranges_and_only_one_range_field_counts() {
    assert_eq!(ask(&Method::Head, &STRONG, &[("Range", "bytes=0-1")]), WHOLE);
    assert_eq!(ask(&Method::Post, &STRONG, &[("Range", "bytes=0-1")]), WHOLE);
    assert_eq!(get(&STRONG, &[("Range", "bytes=0-1"), ("Range", "bytes=2-3")]), WHOLE);
}

#[test]
fn methods_without_a_representation_have_no_conditions() {
    for method in [Method::Connect, Method::Options, Method::Trace] {
        assert_eq!(ask(&method, &STRONG, &[("If-Match", "\"b\""), ("Range", "bytes=0-1")]), WHOLE);
    }
}

/// The result of each condition, decided by how the request was made and not by reading it.
fn model(
    read: bool,
    m: Option<bool>,
    u: Option<u64>,
    n: Option<bool>,
    s: Option<u64>,
    range: Option<bool>,
) -> Verdict {
    let stale = |limit: u64| MODIFIED > limit;
    match (m, u) {
        (Some(false), _) => return Verdict::PreconditionFailed,
        (None, Some(limit)) if stale(limit) => return Verdict::PreconditionFailed,
        _ => {}
    }
    match (n, s) {
        (Some(true), _) if read => return Verdict::NotModified,
        (Some(true), _) => return Verdict::PreconditionFailed,
        (None, Some(limit)) if read && !stale(limit) => return Verdict::NotModified,
        _ => {}
    }
    Verdict::Proceed { ranges: read && range == Some(true) }
}

fn tag(same: bool) -> &'static str {
    if same { "\"x\", \"a\"" } else { "\"x\", \"b\"" }
}

proptest! {
    #[test]
    fn the_order_of_the_rfc_holds(
        read: bool,
        matches: Option<bool>,
        unmodified in prop::option::of(MODIFIED - 2..MODIFIED + 2),
        none: Option<bool>,
        since in prop::option::of(MODIFIED - 2..MODIFIED + 2),
        range: Option<bool>,
        reverse: bool,
    ) {
        let mut fields: Vec<(&str, Vec<u8>)> = Vec::new();
        fields.extend(matches.map(|same| ("If-Match", tag(same).into())));
        fields.extend(unmodified.map(|limit| ("If-Unmodified-Since", date::format(limit).to_vec())));
        fields.extend(none.map(|same| ("If-None-Match", tag(same).into())));
        fields.extend(since.map(|limit| ("If-Modified-Since", date::format(limit).to_vec())));
        if let Some(same) = range {
            fields.push(("Range", b"bytes=0-1".to_vec()));
            fields.push(("If-Range", if same { b"\"a\"".to_vec() } else { b"\"b\"".to_vec() }));
        }
        if reverse {
            fields.reverse();
        }
        let mut set = FieldSet::new();
        for (name, value) in &fields {
            set.push(name, value);
        }
        let method = if read { Method::Get } else { Method::Put };
        prop_assert_eq!(evaluate(&method, &set, &STRONG), model(read, matches, unmodified, none, since, range));
    }

    #[test]
    fn any_values_are_survived(values in prop::collection::vec((0usize..6, prop_oneof![any::<Vec<u8>>(), "[W/\"a*, ]{0,20}".prop_map(String::into_bytes)]), 0..8)) {
        let names = ["If-Match", "If-None-Match", "If-Range", "Range", "If-Modified-Since", "If-Unmodified-Since"];
        let mut set = FieldSet::new();
        for (name, value) in values {
            set.push(names[name], value);
        }
        for validators in [STRONG, WEAK, NONE] {
            let verdict = evaluate(&Method::Put, &set, &validators);
            prop_assert_ne!(verdict, Verdict::NotModified);
            prop_assert_ne!(verdict, PARTS);
        }
    }
}
