//! Pools of threads, and the rules that lead requests to pools: from the sources to the server's settings.
//!
//! The keys of a named pool are the options of the default pool, with the same definitions.

mod keys;
mod merge;
mod rule;
mod text;

use maitred_server::{BESIDE_LOOP, DEFAULT_POOL, PoolLimits, PoolRule, PoolSettings, Settings, Strategy};

use crate::schema::{Line, Shown, Table, Written};
use crate::{BadValue, Config, Definition, Origins, PoolConfig, Problem, Source, options, tls};

use keys::{keys, value_of};
pub(crate) use rule::NOBODY_IS_ASKED;
use rule::{MATCH, POOL};
pub use rule::{conditions, show_rule};
pub(crate) use text::parts;
pub use text::{Mapped, mapped};

pub(crate) const TABLE: Table = Table {
    names: [POOL, "pools"],
    head: "[pool.NAME]",
    summary: "A table in maitred.toml for each pool of threads: the options of the default pool, and which requests it gets.",
    document: "threads.md",
    keys,
    merge: merge::merge,
    show: show_tables,
    check,
    warnings,
};

/// The tables of pools: the values of named ones, and the rules.
fn show_tables(config: &Config, origins: &Origins) -> Vec<Shown> {
    // The default pool may have rules, exceptions from those of others, but has no table otherwise.
    let of_default =
        config.rules.iter().any(|rule| rule.pool == DEFAULT_POOL).then_some((DEFAULT_POOL, None));
    let named = config.pools.iter().map(|pool| (&*pool.name, Some(&pool.threads)));
    of_default.into_iter().chain(named).map(|(name, pool)| show_table(config, origins, name, pool)).collect()
}

fn show_table(config: &Config, origins: &Origins, name: &str, pool: Option<&PoolConfig>) -> Shown {
    let line = |(pool, key): (&PoolConfig, &'static Definition)| Line {
        key: key.name,
        value: Written::Value(show(key, pool)),
        source: Some(origins.of_pool(Some(name), key.name).clone()),
    };
    let keys = pool.into_iter().flat_map(|pool| options::of_pools().map(move |key| (pool, key)));
    let mut lines: Vec<Line> = keys.map(line).collect();
    let rules = (0..).zip(&config.rules).filter(|(_, rule)| rule.pool == name);
    let rules: Vec<_> =
        rules.map(|(position, rule)| (show_rule(rule), origins.of_rule(position).clone())).collect();
    if !rules.is_empty() {
        lines.push(Line { key: MATCH, value: Written::Items(rules), source: None });
    }
    let source = origins.pools.of(name, None).clone();
    Shown { head: TABLE.head_of(name), prefix: format!("{POOL}.{name}."), source, lines }
}

impl PoolConfig {
    /// The defaults of a named pool.
    fn named() -> Self {
        let pool = Config::with_defaults().pool;
        Self { limits: PoolLimits { min_threads: 0, ..pool.limits }, ..pool }
    }

    /// The most threads of this pool that can be in the application at the same time.
    pub fn most_threads(&self) -> usize {
        let limits = self.effective_limits();
        let lost = if limits.request_timeout.is_none() { 0 } else { limits.max_lost };
        let most = if self.strategy == Strategy::Pc { 1 } else { limits.max_threads };
        most.saturating_add(lost)
    }

    fn settings(&self, name: &str) -> PoolSettings {
        let (limits, strategy) = (self.effective_limits(), self.strategy);
        PoolSettings { limits, strategy, ..PoolSettings::named(name) }
    }

    /// The limits of the pool while the server runs.
    pub fn effective_limits(&self) -> PoolLimits {
        PoolLimits { max_lost: self.max_lost_threads.unwrap_or(self.limits.max_threads), ..self.limits }
    }
}

impl Config {
    /// The most threads that can be in the application at the same time, at least 1.
    pub fn most_threads(&self) -> usize {
        let named = self.pools.iter().map(|pool| &pool.threads);
        named.chain([&self.pool]).map(PoolConfig::most_threads).fold(0, usize::saturating_add)
    }
}

/// Hands pools and rules to a server.
pub fn apply(config: &Config, settings: &mut Settings) {
    settings.pool = config.pool.settings(DEFAULT_POOL);
    settings.pools = config.pools.iter().map(|pool| pool.threads.settings(&pool.name)).collect();
    settings.rules = config.all_rules();
    settings.poll_groups = config.poll_groups.unwrap_or(0);
}

/// Changes a key of the pool called `name`, which exists.
pub fn set_key(
    config: &mut Config,
    name: &str,
    definition: &'static Definition,
    text: &str,
) -> Result<(), BadValue> {
    let texts = [text.to_owned()];
    let pool = config.pools.iter_mut().find(|pool| pool.name == name);
    match pool.zip(value_of(definition)) {
        Some((pool, value)) => merge::set(&mut pool.threads, value, &texts),
        None => definition.set(config, &texts),
    }
}

/// The allowed values of a key of the pool called `name`, in words.
pub fn takes(definition: &Definition, name: &str) -> String {
    let named = value_of(definition).filter(|_| name != DEFAULT_POOL);
    named.map_or_else(|| definition.takes(), |value| value.facts().takes)
}

/// The value of a key of a pool as `maitred.toml` would have it; `None` where there is none.
pub fn show(definition: &Definition, pool: &PoolConfig) -> Option<String> {
    value_of(definition)?.show(pool)
}

/// Checks the keys of all pools together.
pub fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    check_pool(&config.pool, origins, None)?;
    check_groups(config, origins)?;
    config.pools.iter().try_for_each(|pool| check_pool(&pool.threads, origins, Some(&pool.name)))
}

fn check_pool(pool: &PoolConfig, origins: &Origins, name: Option<&str>) -> Result<(), Problem> {
    let limits = &pool.limits;
    let pairs = [
        ("min-threads", limits.min_threads, "max-threads", limits.max_threads),
        ("queue-low", limits.low_mark.into(), "queue-high", limits.high_mark.into()),
    ];
    let wrong = pairs.into_iter().find(|(_, least, _, most)| least > most);
    let Some((small, least, large, most)) = wrong else { return Ok(()) };
    let (of_small, of_large) = (origins.of_pool(name, small), origins.of_pool(name, large));
    // A default is not the user's fault: then the error is about the other key.
    Err(if *of_small == Source::Default {
        Problem::new(
            origins.describe_pool(name, large),
            format!("{large} {most} is less than {small} {least} ({of_small})"),
            format!("set {small} to {most} or less"),
        )
    } else {
        Problem::new(
            origins.describe_pool(name, small),
            format!("{small} {least} is greater than {large} {most} ({of_large})"),
            format!("set {large} to {least} or more"),
        )
    })
}

/// Refuses more groups than the pool allows. Applications that allow only one group are not loaded yet, so they are not checked here.
fn check_groups(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let (groups, pool) = (config.poll_groups.unwrap_or(1), &config.pool);
    let wrong = |what, remedy| Err(Problem::new(origins.describe("poll-groups"), what, remedy));
    if groups > 1 && pool.strategy != Strategy::Adaptive {
        let what =
            format!("{groups} groups need the strategy adaptive ({})", origins.of_pool(None, "strategy"));
        return wrong(what, "leave one of them out".to_owned());
    }
    if groups > pool.limits.max_threads {
        let place = origins.of_pool(None, "max-threads");
        let what = format!(
            "each of {groups} groups needs a thread, and max-threads is {} ({place})",
            pool.limits.max_threads
        );
        return wrong(what, format!("set max-threads to {groups} or more"));
    }
    Ok(())
}

/// Refuses named pools where the application runs on an event loop.
pub fn refuse_with_event_loop(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let Some(pool) = config.pools.first() else { return Ok(()) };
    Err(Problem::new(
        origins.place_of_pool(&pool.name),
        format!("the pool '{}' can have no thread: an ASGI application runs on one event loop", pool.name),
        "leave the pools out",
    ))
}

/// Warns of settings without effect: a pool without a rule, interrupt without request-timeout, a rule that a later one replaces.
pub fn warnings(config: &Config, origins: &Origins) -> Vec<String> {
    let mut warnings = Vec::new();
    let rules = config.all_rules();
    // This pool needs no rule beside an event loop, and whether there is one is not known before the applications are loaded.
    for pool in config.pools.iter().filter(|pool| pool.name != BESIDE_LOOP) {
        if !rules.iter().any(|rule| rule.pool == pool.name) {
            let place = origins.place_of_pool(&pool.name);
            warnings.push(format!("{place}: no rule leads to the pool '{}'; give it one", pool.name));
        }
    }
    let pools = config.pools.iter().map(|pool| (Some(pool.name.as_str()), &pool.threads));
    for (name, pool) in std::iter::once((None, &config.pool)).chain(pools) {
        if pool.limits.interrupt && pool.limits.request_timeout.is_none() {
            let place = origins.describe_pool(name, "interrupt");
            warnings.push(format!("{place}: without request-timeout nothing is interrupted; set it"));
        }
    }
    for (position, rule) in config.rules.iter().enumerate() {
        if rule.certificate.is_some() && !tls::asks_clients(config) {
            let place = origins.of_rule(position).place_in(POOL, &rule.pool, None);
            warnings.push(format!("{place}: {NOBODY_IS_ASKED}: {}", show_rule(rule)));
        }
    }
    warnings.extend(config.rules.iter().enumerate().filter_map(|(position, rule)| {
        let later = config.rules.iter().skip(position + 1).find(|later| {
            PoolRule { pool: rule.pool.clone(), ..(*later).clone() } == *rule && later.pool != rule.pool
        })?;
        let place = origins.of_rule(position).place_in(POOL, &rule.pool, None);
        let text = show_rule(rule);
        Some(format!("{place}: a later rule leads the same requests to the pool '{}': {text}", later.pool))
    }));
    warnings
}

#[cfg(test)]
mod tests;
