//! The tables `[[filter]]` of a file.

use toml::de::{DeTable, DeValue};

use super::reading::{Reading, Value, in_order};
use crate::config::FilterConfig;
use crate::filters::{Given, KEYS, Takes};
use crate::options::{self, Definition};
use crate::origins::Source;
use crate::problem::{Problem, did_you_mean};

/// The key of the tables.
pub(super) const FILTER: &str = "filter";

/// Reads the filters of these tables.
///
/// # Errors
/// The value is no list of tables, or a key or a value in a table is wrong.
pub(super) fn filters(
    reading: &Reading<'_>,
    value: &Value<'_>,
) -> Result<Vec<(FilterConfig, Source)>, Problem> {
    let wrong = |value: &Value<'_>| {
        let place = format!("{}: {FILTER}", reading.at(value.span().start));
        let what = format!("the value is of the type {}", value.get_ref().type_str());
        Problem::new(place, what, "begin each filter with [[filter]]")
    };
    let DeValue::Array(tables) = value.get_ref() else { return Err(wrong(value)) };
    let mut found = Vec::new();
    for value in tables {
        let DeValue::Table(table) = value.get_ref() else { return Err(wrong(value)) };
        let at = first(table).unwrap_or(value.span().start);
        let filters = of_table(reading, at, table)?;
        found.extend(filters.into_iter().map(|filter| (filter, reading.source(at))));
    }
    Ok(found)
}

/// The offset of the first key: the span of a table in a list is not that of its head.
fn first(table: &DeTable<'_>) -> Option<usize> {
    in_order(table).first().map(|(key, _)| key.span().start)
}

/// The filter of a table, or one for each of its paths.
fn of_table(reading: &Reading<'_>, at: usize, table: &DeTable<'_>) -> Result<Vec<FilterConfig>, Problem> {
    let mut given = Vec::new();
    let mut places = Vec::new();
    for (key, value) in in_order(table) {
        let at = key.span().start;
        let key = key.get_ref().as_ref();
        let Some((key, takes)) = KEYS.into_iter().find(|(known, _)| *known == key) else {
            let what = format!("unknown key '{key}' in [[filter]]");
            return Err(Problem::new(reading.at(at), what, remedy(key)));
        };
        let texts = texts(takes, value).map_err(|(at, what, remedy)| {
            Problem::new(format!("{}: filter.{key}", reading.at(at)), what, remedy)
        })?;
        given.push((key, texts));
        places.push((key, at));
    }
    let filters = Given(given).each_path().map(|given| given.filter());
    filters.collect::<Result<_, _>>().map_err(|(key, bad)| {
        let at = places.iter().find(|(known, _)| Some(*known) == key).map_or(at, |(_, at)| *at);
        bad.at(reading.source(at).place_in_filter(key))
    })
}

/// The remedy for a key that no filter has.
fn remedy(key: &str) -> String {
    if options::find(key).is_some_and(Definition::is_in_file) {
        return "write it above the first table: behind [[filter]] it belongs to the filter".to_owned();
    }
    let keys = KEYS.iter().map(|(key, _)| *key);
    did_you_mean(key, keys.clone(), format!("a filter has {}", keys.collect::<Vec<_>>().join(", ")))
}

/// The offset in the file, the fault, and the remedy.
type Wrong = (usize, String, String);

fn texts(takes: Takes, value: &Value<'_>) -> Result<Vec<String>, Wrong> {
    match value.get_ref() {
        DeValue::Array(values) if takes == Takes::Texts => {
            values.iter().map(|value| text(takes, value)).collect()
        }
        _ => Ok(vec![text(takes, value)?]),
    }
}

fn text(takes: Takes, value: &Value<'_>) -> Result<String, Wrong> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        other => {
            let expected = if takes == Takes::Texts { "text, or a list of texts" } else { "text" };
            let what = format!("the value is of the type {}", other.type_str());
            Err((value.span().start, what, format!("expected: {expected}")))
        }
    }
}
