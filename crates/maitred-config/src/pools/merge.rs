//! Merging of a pool from several sources: later sources win, key by key, and their rules replace the rules of earlier
//! sources.

use std::mem;

use maitred_server::{DEFAULT_POOL, PoolRule, Strategy};

use crate::config::{Config, NamedPool, PoolConfig};
use crate::forms::Count;
use crate::options::renamed::{Renamed, Used};
use crate::options::{Definition, Kind, MAX_THREADS, pool};
use crate::origins::{Origins, Source};
use crate::problem::Problem;
use crate::value::BadValue;

/// One source's table of a named pool, or its rules of the default pool.
#[derive(Debug)]
pub struct PoolPart {
    /// The name of the pool.
    pub name: String,
    /// The source of the table.
    pub(crate) source: Source,
    /// The keys except the rules.
    pub values: Vec<PoolValue>,
    /// `None` without that key.
    pub rules: Option<Vec<(PoolRule, Source)>>,
}

/// A value as it was written.
pub struct PoolValue {
    /// The definition of the key.
    pub definition: &'static Definition,
    /// The earlier name of the key that was used, if one was.
    pub(crate) renamed: Option<Renamed>,
    pub(crate) text: String,
    pub(crate) source: Source,
}

impl std::fmt::Debug for PoolValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={} ({})", self.definition.name, self.text, self.source)
    }
}

impl PoolPart {
    /// Notes the earlier names of keys in this part.
    pub(crate) fn note_renamed(&self, used: &mut Used) {
        for PoolValue { renamed, source, .. } in &self.values {
            let place = source.place_in_pool(&self.name, None);
            used.add(place, *renamed);
        }
    }

    /// Merges this part into `config`.
    ///
    /// # Errors
    /// A value is not valid, or not valid in a named pool.
    pub(crate) fn merge(self, config: &mut Config, origins: &mut Origins) -> Result<(), Problem> {
        let Self { name, source, values, rules } = self;
        origins.pools.name(&name, source);
        if name == DEFAULT_POOL {
            if let Some(value) = values.first() {
                let key = value.definition.name;
                return Err(Problem::new(
                    value.source.place_in_pool(&name, Some(value.definition.name)),
                    format!(
                        "the pool '{DEFAULT_POOL}' has rules only: it is what {key} outside of pools is for"
                    ),
                    format!("set {key} there"),
                ));
            }
        } else {
            let position = config.pools.iter().position(|pool| pool.name == name).unwrap_or_else(|| {
                config.pools.push(NamedPool { name: name.clone(), threads: PoolConfig::named() });
                config.pools.len() - 1
            });
            for value in values {
                let set = set(config, position, &value);
                set.map_err(|bad| bad.at(value.source.place_in_pool(&name, Some(value.definition.name))))?;
                origins.pools.set(&name, value.definition.name, value.source);
            }
        }
        if let Some(rules) = rules {
            let before = mem::take(&mut config.rules).into_iter().zip(mem::take(&mut origins.rules));
            let kept = before.filter(|(rule, _)| rule.pool != name);
            (config.rules, origins.rules) = kept.chain(rules).unzip();
        }
        Ok(())
    }
}

/// Parses a value into the named pool at `position`.
pub(super) fn set(config: &mut Config, position: usize, value: &PoolValue) -> Result<(), BadValue> {
    let threads = &mut config.pools[position].threads;
    let set = match in_named_pool(value.definition).kind {
        Kind::Pool(key) => key.set(threads, std::slice::from_ref(&value.text)),
        _ => Ok(()),
    };
    if matches!(threads.strategy, Strategy::Pc | Strategy::Epc) {
        return Err(BadValue::new(
            format!("'{}' is for threads that poll, and those of a named pool never do", value.text),
            "write adaptive or pec",
        ));
    }
    set
}

/// Only the default pool needs a thread at all times, for polling.
const MIN_THREADS: Kind = Kind::Pool(&pool(Count(0, MAX_THREADS), |pool| &mut pool.min_threads));

/// The option as a key of a named pool.
pub(super) fn in_named_pool(definition: &Definition) -> Definition {
    let kind = if definition.name == "min-threads" { MIN_THREADS } else { definition.kind };
    Definition { kind, ..*definition }
}
