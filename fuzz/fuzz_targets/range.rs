//! A `Range` field and the conditions around it. Input: the length of the representation in decimal
//! digits, a line end, then the value of `Range`, and on further lines `Name: value` of other fields.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_http::conditional::{Validators, Verdict, evaluate};
use maitred_http::limits::MAX_RANGES;
use maitred_http::multipart::Parts;
use maitred_http::range::{Ranges, parse};
use maitred_http::{FieldSet, Method, date};

fuzz_target!(|input: &[u8]| {
    let mut lines = input.split(|byte| *byte == b'\n');
    let digits = lines.next().unwrap_or_default();
    let total = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(1000);
    let field = lines.next().unwrap_or_default();
    check_ranges(field, total);

    let mut fields = FieldSet::new();
    fields.push("Range", field);
    for line in lines {
        if let Some(seconds) = date::parse(line) {
            assert_eq!(date::parse(&date::format(seconds)), Some(seconds));
        }
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let name = parts.next().unwrap_or_default();
        fields.push(name, parts.next().unwrap_or_default().trim_ascii());
    }
    check_conditions(&fields);
});

fn check_ranges(field: &[u8], total: u64) {
    let Ranges::Satisfiable(ranges) = parse(field, total) else { return };
    assert!(!ranges.is_empty() && ranges.len() <= MAX_RANGES);
    assert!(ranges.iter().all(|range| range.first <= range.last && range.last < total));
    let mut sorted = ranges.clone();
    sorted.sort_by_key(|range| range.first);
    assert!(sorted.windows(2).all(|pair| pair[0].last + 1 < pair[1].first), "two ranges overlap or touch");
    let sent: u64 = ranges.iter().map(|range| range.len()).sum();
    assert!(sent <= total);

    let parts = Parts::new(Some("text/plain"), total, &ranges, 7);
    let framing: usize = parts.iter().map(|(head, _)| head.len()).sum::<usize>() + parts.closing().len();
    assert_eq!(parts.content_length(), sent.saturating_add(framing as u64));

    // Selected ranges, asked for again, select themselves.
    let set: Vec<_> = ranges.iter().map(|range| format!("{}-{}", range.first, range.last)).collect();
    assert_eq!(parse(format!("bytes={}", set.join(",")).as_bytes(), total), Ranges::Satisfiable(ranges));
}

fn check_conditions(fields: &FieldSet) {
    let strong = Validators { etag: Some("\"a\""), last_modified: Some(784_111_777) };
    let weak = Validators { etag: Some("W/\"a\""), ..strong };
    for validators in [strong, weak, Validators::default()] {
        let get = evaluate(&Method::Get, fields, &validators);
        let head = evaluate(&Method::Head, fields, &validators);
        match (get, head) {
            (Verdict::Proceed { .. }, Verdict::Proceed { ranges }) => assert!(!ranges, "HEAD has no ranges"),
            _ => assert_eq!(get, head),
        }
        assert_ne!(evaluate(&Method::Put, fields, &validators), Verdict::NotModified);
    }
}
