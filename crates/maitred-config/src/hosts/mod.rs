//! Virtual hosts: from the tables `[host."NAME"]` to the server's settings.
//!
//! The keys of a host are the options of the default host, with the same definitions. A host has its own applications, files and
//! certificates. It takes error pages, log and limits from the default host unless its table has them.

mod keys;
mod merge;

use std::collections::HashMap;
use std::sync::Arc;

use maitred_filters::{Condition, FieldChanges, FilterRule, Side};
use maitred_server::{DEFAULT_POOL, HostCondition, HostPattern, PathPattern, PoolRule};

use crate::options::{self, Kind, Reload};
use crate::schema::{Line, Shown, Table, Written};
use crate::{BadValue, Config, Definition, HostConfig, Origins, Problem, SiteConfig, did_you_mean};
use keys::{HOST, OWN, keys, options, value_of};

pub(crate) const TABLE: Table = Table {
    names: [HOST, "hosts"],
    head: "[host.\"NAME\"]",
    summary: "A table in maitred.toml for each virtual host. Options that it does not have are those outside of host tables, but for what says what \
              is served.",
    document: "hosts.md",
    keys,
    merge: merge::merge,
    show: |config, origins| config.hosts.iter().map(|host| host.shown(config, origins)).collect(),
    check,
    warnings: |_, _| Vec::new(),
};

/// A change of the longest body of a host is applied with the filters; the default host has a setting.
fn reload_of(option: &Definition) -> Reload {
    if option.name == "max-body" { Reload::Filters } else { option.reload }
}

/// Most hosts: their numbers have 16 bits, and 0 is the default host.
const MAX_HOSTS: usize = u16::MAX as usize - 1;

impl HostConfig {
    /// The options of the host, with those of the default host where the host has none of its own.
    pub(crate) fn effective(&self, default: &SiteConfig) -> SiteConfig {
        let (mut site, mut default) = (self.site.clone(), default.clone());
        let own = |key: &str| self.given.contains(key);
        for option in options() {
            let Kind::Manner(value) = option.kind else { continue };
            // Lists of revoked certificates belong to authorities: with other authorities the default host's lists do not apply.
            let is_own = own(option.name) || option.name == "tls-client-crl" && own("tls-client-ca");
            if !is_own {
                value.take(&mut site, &mut default);
            }
        }
        site
    }

    /// Takes over those values of `other` whose changes need this while the server runs.
    pub fn take(&mut self, what: Reload, other: &Self) {
        let mut site = other.site.clone();
        for option in options().filter(|option| reload_of(option) == what) {
            if let Some(value) = value_of(option) {
                value.take(&mut self.site, &mut site);
                self.take_key(option.name, other);
            }
        }
        if what == Reload::Rules {
            self.pool.clone_from(&other.pool);
            self.take_key("pool", other);
        }
    }

    fn take_key(&mut self, key: &'static str, other: &Self) {
        if other.given.contains(key) {
            self.given.insert(key);
        } else {
            self.given.remove(key);
        }
    }

    /// Whether a running server can change this host into `other`.
    pub fn differs_only_live(&self, other: &Self) -> bool {
        let mut own = self.clone();
        [Reload::Filters, Reload::Rules, Reload::Terms].into_iter().for_each(|what| own.take(what, other));
        own == *other
    }

    /// The host's table. Options from the default host are marked: as keys they would become the host's own.
    fn shown(&self, config: &Config, origins: &Origins) -> Shown {
        let name = self.name.as_str();
        let source = |key: &str| Some(origins.hosts.of(name, Some(key)).clone());
        let own = OWN.iter().filter(|own| self.given.contains(own.name));
        let mut lines: Vec<Line> = own.filter_map(|own| own.line(self, source(own.name))).collect();
        let site = self.effective(&config.site);
        for option in options() {
            let value = value_of(option).and_then(|value| value.show(&site));
            if self.given.contains(option.name) {
                lines.push(Line {
                    key: option.name,
                    value: Written::Value(value),
                    source: source(option.name),
                });
            } else if let (Some(value), Kind::Manner(_)) = (value, option.kind) {
                let source = Some(origins.of(option.name).clone());
                lines.push(Line { key: option.name, value: Written::Outside(value), source });
            }
        }
        let source = origins.hosts.of(name, None).clone();
        Shown { head: TABLE.head_of(name), prefix: format!("{HOST}.{name}."), source, lines }
    }

    /// Whether the host has its own setting of the access log, which may be none.
    pub fn has_log(&self) -> bool {
        self.given.contains("access-log")
    }
}

impl Config {
    /// Takes over the options of the terms of TLS from a configuration with the same hosts.
    pub fn take_terms(&mut self, other: &Self) {
        let mut from = Self { hosts: Vec::new(), ..other.clone() };
        for option in options::all().filter(|option| option.reload == Reload::Terms) {
            option.take(self, &mut from);
        }
        for (host, other) in self.hosts.iter_mut().zip(&other.hosts) {
            host.take(Reload::Terms, other);
        }
    }

    /// The effective options of all hosts, each with its host. The default host comes first, as none.
    pub fn sites(&self) -> impl Iterator<Item = (Option<&HostConfig>, SiteConfig)> {
        let others = self.hosts.iter().map(|host| (Some(host), host.effective(&self.site)));
        std::iter::once((None, self.site.clone())).chain(others)
    }

    /// All rules of pools. Rules from hosts and mounted applications come first, so that written rules win: of two equal ones the
    /// later one decides.
    pub fn all_rules(&self) -> Vec<PoolRule> {
        let mut rules = Vec::new();
        for (number, (host, site)) in (0..).zip(self.sites()) {
            let condition = host.map(|host| condition(number, &host.name));
            let condition = condition.or_else(|| (!self.hosts.is_empty()).then(condition_of_default));
            if let Some(pool) = host.and_then(|host| host.pool.clone()) {
                rules.push(PoolRule { pool, host: condition.clone(), ..PoolRule::default() });
            }
            for mounted in &site.mounted {
                let (Some(pool), Ok(path)) = (mounted.pool.clone(), format!("{}/*", mounted.prefix).parse())
                else {
                    continue;
                };
                let path: Option<PathPattern> = Some(path);
                rules.push(PoolRule { pool, host: condition.clone(), path, ..PoolRule::default() });
            }
        }
        rules.extend(self.rules.iter().cloned());
        rules
    }

    /// The filters from options of hosts, which come before the written filters.
    pub fn host_filters(&self) -> impl Iterator<Item = FilterRule> {
        self.limit_filters().chain(self.hsts_filters())
    }

    /// Filters that add Strict-Transport-Security to responses by https.
    fn hsts_filters(&self) -> impl Iterator<Item = FilterRule> {
        let has_hosts = !self.hosts.is_empty();
        let told =
            (0..).zip(self.sites()).filter_map(|(number, (host, site))| Some((number, host, site.hsts?)));
        told.map(move |(number, host, hsts)| {
            let of_host = host.map(|host| condition(number, &host.name));
            let host = of_host.or_else(|| has_hosts.then(condition_of_default));
            let mut response = FieldChanges::default();
            let set = response.set(Side::Response, &format!("Strict-Transport-Security: {hsts}"));
            debug_assert!(set.is_ok(), "{hsts}");
            let when = Condition { host, secure: Some(true), ..Condition::default() };
            FilterRule { when, response, ..FilterRule::default() }
        })
    }

    fn limit_filters(&self) -> impl Iterator<Item = FilterRule> {
        let limited = (1..).zip(&self.hosts).filter(|(_, host)| host.given.contains("max-body"));
        limited.map(|(number, host)| FilterRule {
            when: Condition { host: Some(condition(number, &host.name)), ..Condition::default() },
            max_body: Some(host.site.max_body),
            ..FilterRule::default()
        })
    }
}

fn condition(number: u16, name: &str) -> HostCondition {
    HostCondition { number, name: name.into() }
}

fn condition_of_default() -> HostCondition {
    condition(0, "default")
}

/// Sets the numbers of the hosts in rules and filters.
///
/// # Errors
/// There is no such host.
pub fn resolve(config: &mut Config, origins: &Origins) -> Result<(), Problem> {
    let names: Vec<Arc<str>> = config.hosts.iter().map(|host| host.name.as_str().into()).collect();
    // Reversed, so that of equal names the first host counts.
    let places: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(place, name)| (&**name, place + 1)).collect();
    let number = |wanted: &HostCondition, place: &dyn Fn() -> String| {
        let found = places.get(&*wanted.name);
        found.and_then(|number| u16::try_from(*number).ok()).ok_or_else(|| {
            let place = place();
            let remedy = did_you_mean(
                &wanted.name,
                names.iter().map(|name| &**name),
                format!("write a table [host.\"{}\"] for it", wanted.name),
            );
            Problem::new(place, format!("there is no host '{}'", wanted.name), remedy)
        })
    };
    for (position, rule) in config.rules.iter_mut().enumerate() {
        if let Some(host) = &mut rule.host {
            host.number = number(host, &|| origins.of_rule(position).place_in("pool", &rule.pool, None))?;
        }
    }
    for (position, filter) in config.filters.iter_mut().enumerate() {
        if let Some(host) = &mut filter.rule.when.host {
            host.number = number(host, &|| origins.of_filter(position).place_in("filter", "", Some("host")))?;
        }
    }
    Ok(())
}

/// Checks the keys of the hosts together.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    if config.hosts.len() > MAX_HOSTS {
        let what = format!("there are {} hosts, and there can be {MAX_HOSTS}", config.hosts.len());
        return Err(Problem::new("host", what, "leave some out"));
    }
    let mut owners: HashMap<&HostPattern, &str> = HashMap::new();
    for host in &config.hosts {
        let wrong = |key: Option<&str>, what: String, remedy: &str| {
            Err(Problem::new(origins.describe_host(&host.name, key), what, remedy))
        };
        for name in &host.names {
            if let Some(other) = owners.insert(name, &host.name).filter(|other| *other != host.name) {
                let key = host.given.contains("names").then_some("names");
                let what = format!("'{name}' is a name of the host '{other}' already");
                return wrong(key, what, "leave one of them out");
            }
        }
        let site = &host.site;
        if site.application.is_none() && site.mounted.is_empty() && site.mounts.is_empty() {
            let what = format!("the host '{}' serves nothing", host.name);
            return wrong(None, what, "give it an application, a mount or static");
        }
        if host.given.contains("access-log-format") && !host.has_log() {
            let what =
                "it says how the lines of an access log look, and the host has none of its own".to_owned();
            return wrong(Some("access-log-format"), what, "give it access-log, too");
        }
        check_pool(config, host.pool.as_deref())
            .map_err(|bad| bad.at(origins.describe_host(&host.name, Some("pool"))))?;
    }
    for (host, site) in config.sites() {
        for mounted in &site.mounted {
            let host = host.map(|host| &*host.name);
            check_pool(config, mounted.pool.as_deref())
                .map_err(|bad| bad.at(origins.describe_in(host, "mount")))?;
        }
    }
    Ok(())
}

fn check_pool(config: &Config, name: Option<&str>) -> Result<(), BadValue> {
    let Some(name) = name.filter(|name| *name != DEFAULT_POOL) else { return Ok(()) };
    let mut known = config.pools.iter().map(|pool| pool.name.as_str());
    if known.clone().any(|known| known == name) {
        return Ok(());
    }
    let remedy = did_you_mean(name, &mut known, format!("write a table [pool.{name}] for it"));
    Err(BadValue::new(format!("there is no pool '{name}'"), remedy))
}
