//! Merging of a host from several sources, key by key: later sources win.

use std::collections::BTreeSet;
use std::mem;

use maitred_server::HostPattern;

use crate::config::{Config, HostConfig};
use crate::origins::{Assignment, Origins, Source};
use crate::problem::Problem;

/// One source's table of a host, without its filters, which are with those of all hosts.
pub(crate) struct HostPart {
    pub(crate) name: String,
    /// The source of the table.
    pub(crate) source: Source,
    /// Further names; `None` without that key.
    pub(crate) names: Option<(Vec<HostPattern>, Source)>,
    pub(crate) pool: Option<(String, Source)>,
    pub(crate) values: Vec<Assignment>,
}

impl HostPart {
    /// Merges this part into `config`.
    ///
    /// # Errors
    /// A value or the name is not valid.
    pub(crate) fn merge(self, config: &mut Config, origins: &mut Origins) -> Result<(), Problem> {
        let Self { name, source, names, pool, values } = self;
        let first: HostPattern = name.parse().map_err(|bad: maitred_match::BadPattern| {
            Problem::new(source.place_in_host(&name, None), bad.what, bad.remedy)
        })?;
        let name = first.to_string();
        // The list is only searched for a known host: there may be thousands of hosts.
        let is_known = origins.hosts.knows(&name);
        origins.hosts.name(&name, source);
        let known = || config.hosts.iter().position(|host| host.name == name);
        let position = is_known.then(known).flatten().unwrap_or_else(|| {
            let site = Config::default().site;
            let names = vec![first.clone()];
            config.hosts.push(HostConfig {
                name: name.clone(),
                names,
                pool: None,
                site,
                given: BTreeSet::new(),
            });
            config.hosts.len() - 1
        });
        if let Some((names, source)) = names {
            let host = &mut config.hosts[position];
            host.names = std::iter::once(first).chain(names).collect();
            host.give("names");
            origins.hosts.set(&name, "names", source);
        }
        if let Some((pool, source)) = pool {
            let host = &mut config.hosts[position];
            host.pool = Some(pool);
            host.give("pool");
            origins.hosts.set(&name, "pool", source);
        }
        for Assignment { definition, texts, source } in values {
            // The definition sets options of the default host only, so the host takes its place for a moment.
            mem::swap(&mut config.site, &mut config.hosts[position].site);
            let set = definition.set(config, &texts);
            mem::swap(&mut config.site, &mut config.hosts[position].site);
            set.map_err(|bad| bad.at(source.place_in_host(&name, Some(definition.name))))?;
            config.hosts[position].give(definition.name);
            origins.hosts.set(&name, definition.name, source);
        }
        Ok(())
    }
}

impl HostConfig {
    fn give(&mut self, key: &'static str) {
        self.given.insert(key);
    }
}
