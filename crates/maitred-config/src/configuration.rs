//! Every option of a running server with its value and its origin, for the control.
//!
//! Promises: no value is a secret. Passwords, tokens and keys are in files, and only the paths are shown; values of header fields in
//! filters and rules are left out, since such a field may be a secret. The list has every key of the files: a key without an option is an
//! error when the file is read.

use maitred_control::{Configured, HIDDEN};

use crate::config::Config;
use crate::filters;
use crate::hosts;
use crate::options::{self, Kind};
use crate::origins::Origins;
use crate::pools;

/// Keys of filters and conditions of rules that have values of header fields.
const FIELDS: [&str; 6] =
    ["header", "set-request", "add-request", "set-response", "add-response", "remove-request"];

/// Returns all options of this configuration, with their origins.
pub fn of(config: &Config, origins: &Origins) -> Vec<Configured> {
    let plain = |value: Option<String>| value.map(|value| unquoted(&value));
    let mut all: Vec<Configured> = options::all()
        .filter(|option| !matches!(option.kind, Kind::Table | Kind::Action))
        .map(|option| Configured {
            name: option.name.to_owned(),
            value: plain(option.show(config)),
            from: origins.of(option.name).to_string(),
        })
        .collect();
    for pool in &config.pools {
        all.extend(options::of_pools().map(|key| Configured {
            name: format!("pool.{}.{}", pool.name, key.name),
            value: plain(pools::show(key, &pool.threads)),
            from: origins.of_pool(Some(&pool.name), key.name).to_string(),
        }));
    }
    all.extend((0..).zip(&config.rules).map(|(position, rule)| Configured {
        name: format!("pool.{}.match", rule.pool),
        value: Some(without_fields(&pools::show_rule(rule))),
        from: origins.of_rule(position).to_string(),
    }));
    for host in &config.hosts {
        let own = Config { site: host.effective(&config.site), ..config.clone() };
        all.extend(hosts::keys().filter(|key| host.given.contains(key.name)).map(|key| Configured {
            name: format!("host.{}.{}", host.name.as_str(), key.name),
            value: plain(key.show(&own)),
            from: origins.hosts.of(host.name.as_str(), Some(key.name)).to_string(),
        }));
    }
    for (position, filter) in config.filters.iter().enumerate() {
        all.extend(filters::show(filter).into_iter().filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            let key = key.trim();
            let value = if FIELDS.contains(&key) { HIDDEN.to_owned() } else { unquoted(value.trim()) };
            Some(Configured {
                name: format!("filter {}: {key}", position + 1),
                value: Some(value),
                from: origins.of_filter(position).to_string(),
            })
        }));
    }
    all
}

/// Hides the value of the header field in the text of a rule.
fn without_fields(rule: &str) -> String {
    match rule.split_once("header = ") {
        Some((before, rest)) => {
            let behind = rest.split_once("\", ").map_or(" }", |(_, behind)| behind);
            format!("{before}header = {HIDDEN}, {}", behind.trim_start())
        }
        None => rule.to_owned(),
    }
}

fn unquoted(value: &str) -> String {
    serde_json::from_str(value).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origins::Source;

    #[test]
    fn every_option_has_a_value_and_a_place() {
        let mut origins = Origins::default();
        origins.set("max-threads", Source::File { path: "maitred.toml".to_owned(), line: 3 });
        let all = of(&Config::default(), &origins);
        let found = |name: &str| all.iter().find(|option| option.name == name).expect(name);
        assert_eq!(found("max-threads").from, "maitred.toml:3");
        assert_eq!(
            found("log-level"),
            &Configured { name: "log-level".into(), value: Some("info".into()), from: "default".into() }
        );
        assert_eq!(found("admin-token-file").value, None);
        let names: std::collections::BTreeSet<_> = all.iter().map(|option| &option.name).collect();
        assert_eq!(names.len(), all.len());
    }
}
