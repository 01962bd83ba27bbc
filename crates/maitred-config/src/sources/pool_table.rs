//! The tables `[pool.NAME]` of a file.

use maitred_server::{DEFAULT_POOL, PoolRule};
use toml::de::{DeTable, DeValue};

use super::reading::{Named, Reading, Value, Wrong, in_order, named, text};
use crate::options;
use crate::origins::Source;
use crate::pools::{CONDITIONS, PoolPart, PoolValue, check_name, set_condition, short_rule, suggest_key};
use crate::problem::{Problem, did_you_mean};

/// The key of the rules.
const MATCH: &str = "match";

/// Reads the pools of the table `pool`.
///
/// # Errors
/// The value is no table of tables, or a key or a rule in a table is wrong. Values of keys are checked where they are merged.
pub(super) fn parts(reading: &Reading<'_>, value: &Value<'_>) -> Result<Vec<PoolPart>, Problem> {
    named(reading, "pool", ("[pool.NAME]", "[pool.NAME]"), value)?
        .map(|table| part(reading, table?))
        .collect()
}

fn part(reading: &Reading<'_>, (at, name, table): Named<'_, '_>) -> Result<PoolPart, Problem> {
    check_name(name).map_err(|bad| bad.at(reading.at(at)))?;
    let source = reading.source(at);
    let mut part = PoolPart { name: name.to_string(), source, values: Vec::new(), rules: None };
    for (key, value) in in_order(table) {
        let at = key.span().start;
        let wrong = |(at, what, remedy): Wrong| {
            Problem::new(format!("{}: pool.{name}.{}", reading.at(at), key.get_ref()), what, remedy)
        };
        if key.get_ref() == MATCH {
            part.rules = Some(rules(reading, name, value).map_err(wrong)?);
        } else if let Some((definition, renamed)) = options::find_of_pool(key.get_ref(), reading.earlier) {
            let text = text(definition, value).map_err(wrong)?;
            part.values.push(PoolValue { definition, renamed, text, source: reading.source(at) });
        } else {
            let what = format!("unknown key '{}' in [pool.{name}]", key.get_ref());
            return Err(Problem::new(reading.at(at), what, remedy(name, key.get_ref())));
        }
    }
    Ok(part)
}

/// The remedy for a key that no pool has.
fn remedy(pool: &str, key: &str) -> String {
    if options::find(key).is_some_and(options::Definition::is_in_file) {
        format!("write it above the first table: behind [pool.{pool}] it belongs to the pool")
    } else if CONDITIONS.contains(&key) {
        format!("it is part of a rule: {MATCH} = [{{ {key} = \"...\" }}]")
    } else if pool == DEFAULT_POOL {
        format!("the pool '{DEFAULT_POOL}' has {MATCH} only")
    } else {
        suggest_key(key, &[MATCH])
    }
}

type Rules = Vec<(PoolRule, Source)>;

/// A rule, or a list of rules.
fn rules(reading: &Reading<'_>, pool: &str, value: &Value<'_>) -> Result<Rules, Wrong> {
    let rule = |value: &Value<'_>| Ok((rule(pool, value)?, reading.source(value.span().start)));
    match value.get_ref() {
        DeValue::Array(values) => values.iter().map(rule).collect(),
        _ => Ok(vec![rule(value)?]),
    }
}

fn rule(pool: &str, value: &Value<'_>) -> Result<PoolRule, Wrong> {
    let at = value.span().start;
    match value.get_ref() {
        DeValue::String(text) => short_rule(pool, text).map_err(|bad| (at, bad.what, bad.remedy)),
        DeValue::Table(table) => long_rule(pool, at, table),
        other => {
            let what = format!("a rule is of the type {}", other.type_str());
            Err((at, what, "expected: \"/path\", \"METHOD /path\" or { path = \"...\", ... }".to_owned()))
        }
    }
}

fn long_rule(pool: &str, at: usize, table: &DeTable<'_>) -> Result<PoolRule, Wrong> {
    let mut rule = PoolRule { pool: pool.to_owned(), ..PoolRule::default() };
    for (key, value) in in_order(table) {
        let (key_at, key) = (key.span().start, key.get_ref().as_ref());
        if !CONDITIONS.contains(&key) {
            let remedy = did_you_mean(key, CONDITIONS, format!("a rule has {}", CONDITIONS.join(", ")));
            return Err((key_at, format!("unknown key '{key}' in a rule"), remedy));
        }
        let at = value.span().start;
        let DeValue::String(text) = value.get_ref() else {
            let what = format!("{key}: the value is of the type {}", value.get_ref().type_str());
            return Err((at, what, "expected: text".to_owned()));
        };
        set_condition(&mut rule, key, text)
            .map_err(|bad| (at, format!("{key}: {}", bad.what), bad.remedy))?;
    }
    if rule.is_unconditional() {
        return Err((at, "a rule has no condition".to_owned(), format!("it has {}", CONDITIONS.join(", "))));
    }
    Ok(rule)
}
