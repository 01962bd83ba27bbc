//! Merging of a pool from several sources: later sources win, key by key, and their rules replace the rules of earlier
//! sources.

use std::mem;

use maitred_server::{DEFAULT_POOL, PoolRule, Strategy};

use super::keys::{check_name, value_of};
use super::rule::{self, MATCH, POOL};
use crate::config::NamedPool;
use crate::forms::Field;
use crate::schema::{Given, Part};
use crate::{BadValue, Config, Origins, PoolConfig, Problem, Source, options};

/// Merges the table of a named pool, or the rules of the default pool.
///
/// # Errors
/// The name, a value or a rule is not valid, or not valid in a named pool.
pub(super) fn merge(part: Part, config: &mut Config, origins: &mut Origins) -> Result<(), Problem> {
    let Part { name, source, given } = part;
    check_name(&name).map_err(|bad| bad.at(source.place_in(POOL, "", None)))?;
    origins.pools.name(&name, source);
    if name != DEFAULT_POOL && !config.pools.iter().any(|pool| pool.name == name) {
        config.pools.push(NamedPool { name: name.clone(), threads: PoolConfig::named() });
    }
    let mut rules: Option<Vec<(PoolRule, Source)>> = None;
    for given in &given {
        if given.key == MATCH {
            let own = given.items.iter().map(|item| rule::read(&name, item));
            rules.get_or_insert_default().extend(own.collect::<Result<Vec<_>, _>>()?);
            continue;
        }
        let pool = config.pools.iter_mut().find(|pool| pool.name == name);
        let Some((pool, value)) = pool.zip(options::find(given.key).and_then(value_of)) else {
            return Err(of_default(given));
        };
        set(&mut pool.threads, value, &given.texts())
            .map_err(|bad| bad.at(given.source.place_in(POOL, &name, Some(given.key))))?;
        origins.pools.set(&name, given.key, given.source.clone());
    }
    if let Some(rules) = rules {
        let before = mem::take(&mut config.rules).into_iter().zip(mem::take(&mut origins.rules));
        let kept = before.filter(|(rule, _)| rule.pool != name);
        (config.rules, origins.rules) = kept.chain(rules).unzip();
    }
    Ok(())
}

fn of_default(given: &Given) -> Problem {
    let key = given.key;
    Problem::new(
        given.source.place_in(POOL, DEFAULT_POOL, Some(key)),
        format!("the pool '{DEFAULT_POOL}' has rules only: it is what {key} outside of pools is for"),
        format!("set {key} there"),
    )
}

/// Parses a value of a named pool.
pub(super) fn set(
    threads: &mut PoolConfig,
    value: &dyn Field<PoolConfig>,
    texts: &[String],
) -> Result<(), BadValue> {
    value.set(threads, texts)?;
    if matches!(threads.strategy, Strategy::Pc | Strategy::Epc) {
        return Err(BadValue::new(
            format!("'{}' is for threads that poll, and those of a named pool never do", texts.concat()),
            "write adaptive or pec",
        ));
    }
    Ok(())
}
