//! Virtual hosts: from the tables `[host."NAME"]` to the server's settings.
//!
//! The keys of a host are the options of the default host, with the same definitions: while a host's value is parsed, the host is in
//! the default host's place. A host has its own applications, files and certificates. It takes error pages, log and limits from the
//! default host unless its table has them.

mod merge;

use std::collections::HashMap;
use std::sync::Arc;

use maitred_filters::{Condition, FieldChanges, FilterRule, Side};
use maitred_server::{DEFAULT_POOL, HostCondition, HostPattern, PathPattern, PoolRule};

use crate::config::{Config, HostConfig, SiteConfig};
use crate::options::{self, Definition};
use crate::origins::Origins;
use crate::problem::{Problem, did_you_mean, nearest};

pub(crate) use merge::HostPart;

/// Options for applications, files and certificates. A host does not take them from the default host.
const CONTENT: [&str; 10] = [
    "application",
    "interface",
    "factory",
    "app-dir",
    "root-path",
    "mount",
    "static",
    "tls-cert",
    "tls-key",
    "tls-ocsp",
];

/// Options that a host takes from the default host unless it has its own.
const MANNER: [&str; 9] = [
    "listing",
    "error-page",
    "max-body",
    "access-log",
    "access-log-format",
    "hsts",
    "tls-client-auth",
    "tls-client-ca",
    "tls-client-crl",
];

/// Options of hosts that the terms of TLS depend on.
const TLS: [&str; 6] =
    ["tls-cert", "tls-key", "tls-ocsp", "tls-client-auth", "tls-client-ca", "tls-client-crl"];

/// Options of hosts for certificates of clients.
pub(crate) const CLIENTS: [&str; 3] = ["tls-client-auth", "tls-client-ca", "tls-client-crl"];

/// The keys of a host besides those of the options.
pub(crate) const OTHERS: [&str; 3] = ["names", "pool", "filter"];

/// Most hosts: their numbers have 16 bits, and 0 is the default host.
const MAX_HOSTS: usize = u16::MAX as usize - 1;

/// The options that are also the keys of a host.
pub(crate) fn keys() -> impl Iterator<Item = &'static Definition> {
    CONTENT.into_iter().chain(MANNER).filter_map(options::find)
}

/// Whether hosts do not take this option from the default host.
pub(crate) fn is_content(definition: &Definition) -> bool {
    CONTENT.contains(&definition.name)
}

/// The remedy for an unknown key of a host.
pub(crate) fn suggest_key(key: &str) -> String {
    let known: Vec<&str> = OTHERS.into_iter().chain(keys().map(|known| known.name)).collect();
    match nearest(key, known.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None if options::find(key).is_some_and(Definition::is_in_file) => {
            "it is the same for all hosts: write it above the first table".to_owned()
        }
        None => format!("a host has {}", known.join(", ")),
    }
}

impl HostConfig {
    /// The options of the host, with those of the default host where the host has none of its own.
    pub(crate) fn effective(&self, default: &SiteConfig) -> SiteConfig {
        let mut site = self.site.clone();
        let own = |key: &str| self.given.contains(key);
        if !own("listing") {
            site.listing = default.listing;
        }
        if !own("error-page") {
            site.error_pages.clone_from(&default.error_pages);
        }
        if !own("max-body") {
            site.max_body = default.max_body;
        }
        if !own("access-log") {
            site.access_log.clone_from(&default.access_log);
        }
        if !own("access-log-format") {
            site.access_log_format.clone_from(&default.access_log_format);
        }
        if !own("hsts") {
            site.hsts = default.hsts;
        }
        if !own("tls-client-auth") {
            site.client_auth = default.client_auth;
        }
        if !own("tls-client-ca") {
            site.client_ca.clone_from(&default.client_ca);
        }
        // Lists of revoked certificates belong to authorities: with other authorities the default host's lists do not apply.
        if !own("tls-client-crl") && !own("tls-client-ca") {
            site.client_crl.clone_from(&default.client_crl);
        }
        site
    }

    /// Takes over those limits of `other` that a running server can change.
    pub fn take_limits(&mut self, other: &Self) {
        self.site.max_body = other.site.max_body;
        self.take_key("max-body", other);
        self.site.hsts = other.site.hsts;
        self.take_key("hsts", other);
    }

    /// Takes over the certificates of `other`, and the rules for certificates of clients.
    pub fn take_certificates(&mut self, other: &Self) {
        self.site.take_certificates(&other.site);
        TLS.into_iter().for_each(|key| self.take_key(key, other));
    }

    /// Takes over the pool of `other`.
    pub fn take_pool(&mut self, other: &Self) {
        self.pool.clone_from(&other.pool);
        self.take_key("pool", other);
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
        own.take_limits(other);
        own.take_pool(other);
        own.take_certificates(other);
        own == *other
    }

    /// Whether the host has its own setting of the access log, which may be none.
    pub fn has_log(&self) -> bool {
        self.given.contains("access-log")
    }
}

impl SiteConfig {
    pub(crate) fn take_certificates(&mut self, other: &Self) {
        self.certificates.clone_from(&other.certificates);
        self.keys.clone_from(&other.keys);
        self.ocsp.clone_from(&other.ocsp);
        self.client_auth = other.client_auth;
        self.client_ca.clone_from(&other.client_ca);
        self.client_crl.clone_from(&other.client_crl);
    }
}

impl Config {
    /// Takes over the options of the terms of TLS from a configuration with the same hosts.
    pub fn take_terms(&mut self, other: &Self) {
        let handshake_timeout = self.tls.handshake_timeout;
        self.tls.clone_from(&other.tls);
        self.tls.handshake_timeout = handshake_timeout;
        self.site.take_certificates(&other.site);
        for (host, other) in self.hosts.iter_mut().zip(&other.hosts) {
            host.take_certificates(other);
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
            host.number = number(host, &|| origins.of_rule(position).place_in_pool(&rule.pool, None))?;
        }
    }
    for (position, filter) in config.filters.iter_mut().enumerate() {
        if let Some(host) = &mut filter.rule.when.host {
            host.number = number(host, &|| origins.of_filter(position).place_in_filter(Some("host")))?;
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
        let wrong = |key: Option<&str>, what: String, remedy: String| {
            Err(Problem::new(origins.describe_host(&host.name, key), what, remedy))
        };
        for name in &host.names {
            if let Some(other) = owners.insert(name, &host.name).filter(|other| *other != host.name) {
                let key = host.given.contains("names").then_some("names");
                let what = format!("'{name}' is a name of the host '{other}' already");
                return wrong(key, what, "leave one of them out".to_owned());
            }
        }
        let site = &host.site;
        if site.application.is_none() && site.mounted.is_empty() && site.mounts.is_empty() {
            let what = format!("the host '{}' serves nothing", host.name);
            return wrong(None, what, "give it an application, a mount or static".to_owned());
        }
        if host.given.contains("access-log-format") && !host.has_log() {
            let what =
                "it says how the lines of an access log look, and the host has none of its own".to_owned();
            return wrong(Some("access-log-format"), what, "give it access-log, too".to_owned());
        }
        check_pool(config, host.pool.as_deref())
            .map_or(Ok(()), |(what, remedy)| wrong(Some("pool"), what, remedy))?;
    }
    for (host, site) in config.sites() {
        for mounted in &site.mounted {
            if let Some((what, remedy)) = check_pool(config, mounted.pool.as_deref()) {
                let place = match host {
                    Some(host) => origins.describe_host(&host.name, Some("mount")),
                    None => origins.describe("mount"),
                };
                return Err(Problem::new(place, what, remedy));
            }
        }
    }
    Ok(())
}

/// The fault of a pool's name, and the remedy; none for a known pool.
fn check_pool(config: &Config, name: Option<&str>) -> Option<(String, String)> {
    let name = name.filter(|name| *name != DEFAULT_POOL)?;
    let mut known = config.pools.iter().map(|pool| pool.name.as_str());
    if known.clone().any(|known| known == name) {
        return None;
    }
    let remedy = did_you_mean(name, &mut known, format!("write a table [pool.{name}] for it"));
    Some((format!("there is no pool '{name}'"), remedy))
}
