//! Reading the tables of a file by their schemas.

use toml::de::{DeTable, DeValue};

use super::reading::{Reading, Value, Wrong, in_order, text};
use crate::Problem;
use crate::forms::{Facts, Holds};
use crate::schema::{Given, Item, Key, Part, Table, Takes, suggest};

/// Reads the tables of a kind.
///
/// # Errors
/// The value has no such tables, or a key in a table is not known or has a value of another type. Values are checked where they are merged.
pub(super) fn parts(reading: &Reading<'_>, table: &Table, value: &Value<'_>) -> Result<Vec<Part>, Problem> {
    let [kind, _] = table.names;
    let wrong = |value: &Value<'_>, remedy: String| {
        Problem::new(format!("{}: {kind}", reading.at(value.span().start)), of_type(value), remedy)
    };
    match value.get_ref() {
        DeValue::Array(tables) if table.is_list() => {
            let part = |value: &Value<'_>| {
                let DeValue::Table(keys) = value.get_ref() else {
                    return Err(wrong(value, format!("begin each {kind} with {}", table.head)));
                };
                // The span of a table in a list is not that of its head.
                let at = in_order(keys).first().map_or(value.span().start, |(key, _)| key.span().start);
                part(reading, table, (at, ""), keys)
            };
            tables.iter().map(part).collect()
        }
        DeValue::Table(tables) if !table.is_list() => {
            let part = |(name, value): (&super::reading::Key<'_>, &Value<'_>)| {
                let (at, name) = (name.span().start, name.get_ref().as_ref());
                let DeValue::Table(keys) = value.get_ref() else {
                    let found = value.get_ref().type_str();
                    let what = format!("'{name}' in [{kind}] is no {kind}, it is of the type {found}");
                    let remedy = format!("give the {kind} a name: {}", table.head);
                    return Err(Problem::new(reading.at(at), what, remedy));
                };
                part(reading, table, (at, name), keys)
            };
            in_order(tables).into_iter().map(part).collect()
        }
        _ if table.is_list() => Err(wrong(value, format!("begin each {kind} with {}", table.head))),
        _ => Err(wrong(value, format!("write a table {} for each {kind}", table.head))),
    }
}

fn part(
    reading: &Reading<'_>,
    table: &Table,
    (at, name): (usize, &str),
    written: &DeTable<'_>,
) -> Result<Part, Problem> {
    let [kind, _] = table.names;
    let place = if name.is_empty() { kind.to_owned() } else { format!("{kind}.{name}") };
    let unknown =
        |key: &str| (format!("unknown key '{key}' in {}", table.head_of(name)), table.suggest(name, key));
    part_of(reading, &(table.keys)(), (at, name, &place), written, &unknown)
}

/// `place` is how errors call the table; `unknown` has the fault of a key that the table does not have, and the remedy.
fn part_of(
    reading: &Reading<'_>,
    keys: &[Key],
    (at, name, place): (usize, &str, &str),
    written: &DeTable<'_>,
    unknown: &dyn Fn(&str) -> (String, String),
) -> Result<Part, Problem> {
    let mut given = Vec::new();
    for (key, value) in in_order(written) {
        let at = key.span().start;
        let name = key.get_ref().as_ref();
        let find = |name: &str| keys.iter().find(|known| known.name == name);
        let Some((known, renamed)) = reading.earlier.find(name, find) else {
            let (what, remedy) = unknown(name);
            return Err(Problem::new(reading.at(at), what, remedy));
        };
        let place = format!("{place}.{}", known.name);
        let wrong =
            |(at, what, remedy): Wrong| Problem::new(format!("{}: {place}", reading.at(at)), what, remedy);
        let items = match &known.takes {
            Takes::Value(facts) => texts(reading, facts, value).map_err(wrong)?,
            Takes::Tables(inner) => parts(reading, inner, value)?.into_iter().map(Item::Table).collect(),
            Takes::Rules { keys, form } => {
                let rule = |value| rule(reading, (&keys(), form), &place, value);
                match value.get_ref() {
                    DeValue::Array(rules) => rules.iter().map(rule).collect::<Result<_, _>>()?,
                    _ => vec![rule(value)?],
                }
            }
        };
        given.push(Given { key: known.name, renamed, items, source: reading.source(at) });
    }
    Ok(Part { name: name.to_owned(), source: reading.source(at), given })
}

/// A table, or a text that stands for one.
fn rule(
    reading: &Reading<'_>,
    (keys, form): (&[Key], &str),
    place: &str,
    value: &Value<'_>,
) -> Result<Item, Problem> {
    let at = value.span().start;
    match value.get_ref() {
        DeValue::String(text) => Ok(Item::Text(text.to_string(), reading.source(at))),
        DeValue::Table(written) => {
            let unknown =
                |key: &str| (format!("{place}: unknown key '{key}' in a rule"), suggest(key, keys, "rule"));
            part_of(reading, keys, (at, "", place), written, &unknown).map(Item::Table)
        }
        other => {
            let what = format!("a rule is of the type {}", other.type_str());
            Err(Problem::new(format!("{}: {place}", reading.at(at)), what, format!("expected: {form}")))
        }
    }
}

/// A value, or the items of a list.
fn texts(reading: &Reading<'_>, facts: &Facts, value: &Value<'_>) -> Result<Vec<Item>, Wrong> {
    let item = |value: &Value<'_>| {
        let at = value.span().start;
        let is_text = matches!(value.get_ref(), DeValue::String(_));
        if facts.holds == Holds::Text && !is_text {
            return Err((at, of_type(value), format!("expected: {}", facts.takes)));
        }
        Ok(Item::Text(text(&facts.takes, value)?, reading.source(at)))
    };
    match value.get_ref() {
        DeValue::Array(values) if facts.is_list => values.iter().map(item).collect(),
        _ => Ok(vec![item(value)?]),
    }
}

fn of_type(value: &Value<'_>) -> String {
    format!("the value is of the type {}", value.get_ref().type_str())
}
