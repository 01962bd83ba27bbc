//! The field set against a list of pairs.

use maitred_http::FieldSet;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Push(String, Vec<u8>),
    /// As a parser does it: adopt the line, then name its parts.
    Adopt(String, Vec<u8>),
    PushMissing(String, Vec<u8>),
    Set(String, Vec<u8>),
    Remove(String),
    Truncate(usize),
    Clear,
}

type Model = Vec<(String, Vec<u8>)>;

fn is(name: &str) -> impl Fn(&(String, Vec<u8>)) -> bool + '_ {
    move |pair| pair.0.eq_ignore_ascii_case(name)
}

/// Spaces around a value are no part of it (RFC 9110 section 5.5).
fn trimmed(value: Vec<u8>) -> Vec<u8> {
    let mut rest = &value[..];
    while let [b' ' | b'\t', others @ ..] | [others @ .., b' ' | b'\t'] = rest {
        rest = others;
    }
    rest.to_vec()
}

fn apply_to_model(model: &mut Model, step: Step) {
    match step {
        Step::Adopt(name, value) => model.push((name, value)),
        Step::Push(name, value) => model.push((name, trimmed(value))),
        Step::PushMissing(name, value) => {
            if !model.iter().any(is(&name)) {
                model.push((name, trimmed(value)));
            }
        }
        Step::Set(name, value) => match model.iter().position(is(&name)) {
            None => model.push((name, trimmed(value))),
            Some(place) => {
                model[place].1 = trimmed(value);
                let mut index = 0;
                model.retain(|pair| {
                    index += 1;
                    index <= place + 1 || !is(&name)(pair)
                });
            }
        },
        Step::Remove(name) => model.retain(|pair| !is(&name)(pair)),
        Step::Truncate(fields) => model.truncate(fields),
        Step::Clear => model.clear(),
    }
}

fn apply(set: &mut FieldSet, step: Step) {
    match step {
        Step::Push(name, value) => assert!(set.push(name, value)),
        Step::Adopt(name, value) => {
            let line = [name.as_bytes(), b": ", &value].concat();
            let span = set.adopt(&line).unwrap();
            set.push_spans(span.part(0, name.len()), span.part(name.len() + 2, value.len()));
        }
        Step::PushMissing(name, value) => {
            let missing = !set.contains(&name);
            assert_eq!(set.push_missing(&name, value), missing);
        }
        Step::Set(name, value) => assert!(set.set(&name, value)),
        Step::Remove(name) => {
            let (before, removed) = (set.len(), set.remove(&name));
            assert_eq!(set.len() + removed, before);
        }
        Step::Truncate(fields) => set.truncate(fields),
        Step::Clear => set.clear(),
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[abAB]{1,2}", 1 => "[a-zA-Z-]{0,12}"]
}

fn step() -> impl Strategy<Value = Step> {
    let byte = || prop_oneof![8 => any::<u8>(), 1 => Just(b' '), 1 => Just(b'\t')];
    let value = move || prop::collection::vec(byte(), 0..20);
    prop_oneof![
        6 => (name(), value()).prop_map(|(n, v)| Step::Push(n, v)),
        4 => (name(), value()).prop_map(|(n, v)| Step::Adopt(n, v)),
        2 => (name(), value()).prop_map(|(n, v)| Step::PushMissing(n, v)),
        3 => (name(), value()).prop_map(|(n, v)| Step::Set(n, v)),
        2 => name().prop_map(Step::Remove),
        1 => (0usize..12).prop_map(Step::Truncate),
        1 => Just(Step::Clear),
    ]
}

proptest! {
    #[test]
    fn a_field_set_is_a_list_of_pairs(steps in prop::collection::vec(step(), 0..60), probe in name()) {
        let (mut set, mut model) = (FieldSet::new(), Model::new());
        for step in steps {
            apply(&mut set, step.clone());
            apply_to_model(&mut model, step);
            let listed: Vec<_> = set.iter().map(|(n, v)| (n.to_vec(), v.to_vec())).collect();
            let expected: Vec<_> = model.iter().map(|(n, v)| (n.clone().into_bytes(), v.clone())).collect();
            prop_assert_eq!(listed, expected);
            let values: Vec<_> = model.iter().filter(|pair| is(&probe)(pair)).map(|pair| &pair.1[..]).collect();
            prop_assert_eq!(set.first(&probe), values.first().copied());
            prop_assert_eq!(set.all(&probe).collect::<Vec<_>>(), values);
            prop_assert_eq!((set.len(), set.is_empty()), (model.len(), model.is_empty()));
            prop_assert!(set.memory() >= set.used() + set.len() * 16);
        }
    }
}
