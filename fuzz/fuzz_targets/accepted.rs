//! `Accept-Encoding`. Input: the values of its lines, with line ends between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_http::coding::{Accepted, Coding};

fuzz_target!(|input: &[u8]| {
    let lines: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
    let accepted = Accepted::of(lines.iter().copied());
    assert_eq!(accepted, Accepted::of([lines.join(&b',')].iter().map(Vec::as_slice)), "lines are one list");

    let slow = Slow::of(&lines);
    let order = accepted.in_order();
    for coding in Coding::COMPRESSED {
        assert_eq!(
            order.contains(&coding),
            slow.weight(coding).is_some_and(|weight| weight > 0.0),
            "{coding:?}"
        );
    }
    let weights: Vec<f64> = order.iter().map(|coding| slow.weight(*coding).unwrap_or(0.0)).collect();
    assert!(weights.is_sorted_by(|first, second| first >= second), "{order:?} {weights:?}");

    let all = Coding::COMPRESSED;
    let best = accepted.choose(all, |_| true);
    assert_eq!(best, order.first().copied().unwrap_or(Coding::Identity));
    for missing in all {
        let chosen = accepted.choose(all, |coding| coding != missing);
        assert_ne!(chosen, missing);
        assert!(chosen == Coding::Identity || order.contains(&chosen), "{chosen:?} is not accepted");
        assert!(best == missing || chosen == best, "{chosen:?} in the place of {best:?}");
    }
    assert_eq!(accepted.choose(all, |_| false), Coding::Identity);
});

/// The weight of each name, in the order of the field.
struct Slow(Vec<(String, f64)>);

impl Slow {
    fn of(lines: &[&[u8]]) -> Self {
        // Bytes are told apart as Latin-1 does; a byte outside ASCII is in no name and no weight.
        let text = |line: &&[u8]| line.iter().map(|byte| char::from(*byte)).collect::<String>();
        let elements = lines.iter().map(text).collect::<Vec<_>>().join(",");
        Self(elements.split(',').map(|element| (name(element), weight(element))).collect())
    }

    /// None: nothing is said.
    fn weight(&self, coding: Coding) -> Option<f64> {
        let of =
            |wanted: &str| self.0.iter().rev().find(|(name, _)| name == wanted).map(|(_, weight)| *weight);
        of(coding.name()).or_else(|| of("*"))
    }
}

fn name(element: &str) -> String {
    let name = trim(element.split(';').next().unwrap_or_default()).to_ascii_lowercase();
    if name == "x-gzip" { "gzip".to_owned() } else { name }
}

fn weight(element: &str) -> f64 {
    let parameter =
        element.split(';').skip(1).map(trim).find(|part| part.to_ascii_lowercase().starts_with("q="));
    let Some(parameter) = parameter else { return 1.0 };
    let value = &parameter[2..];
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && matches!(value.as_bytes(), [b'0' | b'1'] | [b'0' | b'1', b'.', ..])
        && value.len() <= 5;
    value.parse().ok().filter(|weight| is_plain && *weight <= 1.0).unwrap_or(0.0)
}

fn trim(text: &str) -> &str {
    text.trim_matches(|character: char| character.is_ascii_whitespace())
}
