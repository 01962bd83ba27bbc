//! The field set against a list of pairs. Input: lines; the first byte of each chooses the operation.
//!
//! `+Name: value` appends, `@Name: value` appends by spans, `?Name: value` appends if missing,
//! `=Name: value` sets, `-Name` removes, `#n` keeps the first n, `!` clears, any other line is a field
//! to append.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maitred_http::FieldSet;

type Model = Vec<(Vec<u8>, Vec<u8>)>;

fuzz_target!(|input: &[u8]| {
    let (mut set, mut model) = (FieldSet::new(), Model::new());
    for line in input.split(|byte| *byte == b'\n').take(64) {
        apply(&mut set, &mut model, line);
        let expected = model.iter().map(|(name, value)| (&name[..], &value[..]));
        assert!(set.iter().eq(expected), "{set:?} is not {model:?}");
        assert!(set.memory() >= set.used());
    }
    for (name, _) in &model {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let values: Vec<_> = model.iter().filter(|pair| is(pair, name)).map(|pair| &pair.1[..]).collect();
        assert_eq!(set.first(name), values.first().copied());
        assert!(set.all(name).eq(values));
    }
});

fn apply(set: &mut FieldSet, model: &mut Model, line: &[u8]) {
    let (step, rest) = line.split_first().map_or((b'+', line), |(step, rest)| (*step, rest));
    let (name, value) = halves(if b"+@?=-#!".contains(&step) { rest } else { line });
    let pair = (name.to_vec(), value.to_vec());
    let text = std::str::from_utf8(name);
    match (step, text) {
        (b'!', _) => {
            set.clear();
            model.clear();
        }
        (b'#', Ok(digits)) => {
            let fields = digits.trim().parse().unwrap_or(usize::MAX);
            set.truncate(fields);
            model.truncate(fields);
        }
        (b'-', Ok(name)) => {
            let before = model.len();
            model.retain(|pair| !is(pair, name));
            assert_eq!(set.remove(name), before - model.len());
        }
        (b'=', Ok(name)) => {
            assert!(set.set(name, value));
            match model.iter().position(|pair| is(pair, name)) {
                None => model.push(pair),
                Some(place) => {
                    let mut tail = model.split_off(place + 1);
                    tail.retain(|pair| !is(pair, name));
                    model[place].1 = pair.1;
                    model.append(&mut tail);
                }
            }
        }
        (b'?', Ok(name)) => {
            let missing = !model.iter().any(|pair| is(pair, name));
            assert_eq!(set.push_missing(name, value), missing);
            if missing {
                model.push(pair);
            }
        }
        (b'@', _) => {
            let span = set.adopt(&[name, value].concat()).expect("small");
            set.push_spans(span.part(0, name.len()), span.part(name.len(), value.len()));
            model.push(pair);
        }
        _ => {
            assert!(set.push(name, value));
            model.push(pair);
        }
    }
}

fn halves(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b':') {
        Some(colon) => (&line[..colon], line[colon + 1..].trim_ascii()),
        None => (line, b""),
    }
}

fn is(pair: &(Vec<u8>, Vec<u8>), name: &str) -> bool {
    pair.0.eq_ignore_ascii_case(name.as_bytes())
}
