//! Merging of a host from several sources, key by key: later sources win.

use std::collections::BTreeSet;

use maitred_server::HostPattern;

use super::keys::{FILTER, HOST, OWN, value_of};
use crate::schema::{Item, Part};
use crate::{Config, HostConfig, Origins, Problem, filters, options};

/// Merges the table of a host, and its filters into those of all hosts.
///
/// # Errors
/// The name, a value or a filter is not valid.
pub(super) fn merge(part: Part, config: &mut Config, origins: &mut Origins) -> Result<(), Problem> {
    let Part { name, source, given } = part;
    let first: HostPattern = name.parse().map_err(|bad: maitred_match::BadPattern| {
        Problem::new(source.place_in(HOST, &name, None), bad.what, bad.remedy)
    })?;
    let name = first.to_string();
    // The list is only searched for a known host: there may be thousands of hosts.
    let is_known = origins.hosts.knows(&name);
    origins.hosts.name(&name, source);
    let known = || config.hosts.iter().position(|host| host.name == name);
    let position = is_known.then(known).flatten().unwrap_or_else(|| {
        let (site, given) = (Config::with_defaults().site, BTreeSet::new());
        config.hosts.push(HostConfig { name: name.clone(), names: vec![first], pool: None, site, given });
        config.hosts.len() - 1
    });
    for given in given {
        if given.key == FILTER.name {
            for item in given.items {
                let Item::Table(part) = item else { continue };
                filters::merge(&part, Some(&name), config, origins)?;
            }
            continue;
        }
        let host = &mut config.hosts[position];
        let set = match OWN.iter().find(|own| own.name == given.key) {
            Some(own) => given.set(own.value, host),
            None => match options::find(given.key).and_then(value_of) {
                Some(value) => given.set(value, &mut host.site),
                None => continue,
            },
        };
        set.map_err(|(bad, source)| bad.at(source.place_in(HOST, &name, Some(given.key))))?;
        host.given.insert(given.key);
        origins.hosts.set(&name, given.key, given.source);
    }
    Ok(())
}
