//! Pools on the command line and in the environment: `reports,max-threads=2,path=/report/*`.

use maitred_server::PoolRule;

use super::keys::check_name;
use super::rule::{self, MATCH};
use crate::options::renamed::{NAMES, Names};
use crate::schema::{Given, Item, Key, Part, suggest};
use crate::{BadValue, Source, options};

/// Parses these texts, which all come from `source`. Several texts may name the same pool: later values
/// win, and the rules are collected.
pub(crate) fn parts(texts: &[String], source: &Source, names: Names) -> Result<Vec<Part>, BadValue> {
    let mut parts: Vec<Part> = Vec::new();
    for text in texts {
        let part = part(text, source, names)?;
        match parts.iter_mut().find(|earlier| earlier.name == part.name) {
            Some(earlier) => earlier.given.extend(part.given),
            None => parts.push(part),
        }
    }
    Ok(parts)
}

/// A rule for a pool that is written in this form.
pub struct Mapped {
    /// The name of the pool.
    pub pool: String,
    /// A key that is no condition, if there is one.
    pub key: Option<&'static str>,
    /// The rule, if there is a condition.
    pub rule: Option<PoolRule>,
}

/// Parses a rule for a pool of a running server.
///
/// # Errors
/// The text is no pool with conditions, in words.
pub fn mapped(text: &str) -> Result<Mapped, String> {
    let source = Source::Control;
    let part = part(text, &source, NAMES).map_err(|BadValue { what, remedy }| format!("{what}; {remedy}"))?;
    let (rules, keys): (Vec<&Given>, Vec<&Given>) = part.given.iter().partition(|given| given.key == MATCH);
    let item = rules.first().and_then(|given| given.items.first());
    let rule =
        item.map(|item| rule::read(&part.name, item)).transpose().map_err(|problem| problem.to_string())?;
    Ok(Mapped {
        pool: part.name.clone(),
        key: keys.first().map(|given| given.key),
        rule: rule.map(|(rule, _)| rule),
    })
}

fn part(text: &str, source: &Source, names: Names) -> Result<Part, BadValue> {
    let mut items = text.split(',');
    let name = items.next().unwrap_or_default().trim();
    check_name(name)?;
    let part = |name: &str| Part { name: name.to_owned(), source: source.clone(), given: Vec::new() };
    let (mut pool, mut rule) = (part(name), part(""));
    let of_pool = || options::of_pools().filter_map(Key::of_option);
    let mut seen: Vec<&str> = Vec::new();
    for item in items {
        let bad = |what: String, remedy: String| BadValue::new(format!("{name}: {what}"), remedy);
        let (key, value) = item.trim().split_once('=').ok_or_else(|| {
            bad(format!("'{item}' has no '='"), "write KEY=VALUE behind each comma".to_owned())
        })?;
        if seen.contains(&key) {
            return Err(bad(
                format!("{key} is given twice"),
                format!("for another rule write --pool {name},... once more"),
            ));
        }
        seen.push(key);
        let given = |key, renamed| {
            let items = vec![Item::Text(value.to_owned(), source.clone())];
            Given { key, renamed, items, source: source.clone() }
        };
        if let Some(condition) = rule::keys().into_iter().find(|known| known.name == key) {
            rule.given.push(given(condition.name, None));
        } else if let Some((known, renamed)) =
            names.find(key, |key| of_pool().find(|known| known.name == key))
        {
            pool.given.push(given(known.name, renamed));
        } else {
            let keys: Vec<Key> = of_pool().chain(rule::keys()).collect();
            return Err(bad(format!("unknown key '{key}'"), suggest(key, &keys, "pool")));
        }
    }
    if !rule.given.is_empty() {
        let items = vec![Item::Table(rule)];
        pool.given.push(Given { key: MATCH, renamed: None, items, source: source.clone() });
    }
    Ok(pool)
}
