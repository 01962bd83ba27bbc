//! Pools on the command line and in the environment: `reports,max-threads=2,path=/report/*`.

use maitred_server::PoolRule;

use super::{CONDITIONS, PoolPart, PoolValue, check_name, set_condition, suggest_key};
use crate::options;
use crate::options::renamed::Names;
use crate::origins::Source;
use crate::value::BadValue;

/// Parses these texts, which all come from `source`. Several texts may name the same pool: later values
/// win, and the rules are collected.
pub fn parts(texts: &[String], source: &Source, names: Names) -> Result<Vec<PoolPart>, BadValue> {
    let mut parts: Vec<PoolPart> = Vec::new();
    for text in texts {
        let part = part(text, source, names)?;
        match parts.iter_mut().find(|earlier| earlier.name == part.name) {
            Some(earlier) => {
                earlier.values.extend(part.values);
                match (&mut earlier.rules, part.rules) {
                    (Some(rules), Some(more)) => rules.extend(more),
                    (rules, more) => *rules = rules.take().or(more),
                }
            }
            None => parts.push(part),
        }
    }
    Ok(parts)
}

fn part(text: &str, source: &Source, names: Names) -> Result<PoolPart, BadValue> {
    let mut items = text.split(',');
    let name = items.next().unwrap_or_default().trim();
    check_name(name)?;
    let mut rule = PoolRule { pool: name.to_owned(), ..PoolRule::default() };
    let mut values: Vec<PoolValue> = Vec::new();
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
        if CONDITIONS.contains(&key) {
            set_condition(&mut rule, key, value)
                .map_err(|BadValue { what, remedy }| bad(format!("{key}: {what}"), remedy))?;
        } else if let Some((definition, renamed)) = options::find_of_pool(key, names) {
            values.push(PoolValue { definition, renamed, text: value.to_owned(), source: source.clone() });
        } else {
            return Err(bad(format!("unknown key '{key}'"), suggest_key(key, &CONDITIONS)));
        }
    }
    let rules = (!rule.is_unconditional()).then(|| vec![(rule, source.clone())]);
    Ok(PoolPart { name: name.to_owned(), source: source.clone(), values, rules })
}
