//! Where each value of a configuration was written, as errors and `maitred check` name it.

use std::collections::BTreeMap;
use std::fmt;

use maitred_server::DEFAULT_POOL;

use crate::options::{self, Definition};

/// The variable in which a platform says where the server listens.
pub(crate) const PORT: &str = "PORT";

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nowhere: it is the option's default.
    Default,
    /// In `maitred.toml`, or the file given instead.
    File { path: String, line: usize },
    /// In a file of the drop-in folder.
    DropIn { path: String, line: usize },
    /// In this environment variable.
    Environment(String),
    /// On the command line.
    CommandLine,
    /// Nowhere: it is other in development.
    Development,
    /// There too, by this name that other servers have for it.
    Familiar(&'static str),
    /// Nowhere: it was changed while the server ran.
    Control,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{path}:{line}"),
            Self::DropIn { path, line } => write!(f, "drop-in {path}:{line}"),
            Self::Environment(name) => write!(f, "environment variable {name}"),
            Self::CommandLine => f.write_str("command line"),
            Self::Development => f.write_str("development"),
            Self::Familiar(name) => write!(f, "command line, {name}"),
            Self::Control => f.write_str("changed at run time"),
        }
    }
}

impl Source {
    /// Another value of the same list comes from `other`: with names of ours and of others among them, the first of theirs is named.
    pub(crate) fn also(&mut self, other: &Self) {
        if *self == Self::CommandLine {
            *self = other.clone();
        }
    }

    /// How an error names the place.
    pub(crate) fn place(&self, definition: &Definition) -> String {
        match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                format!("{path}:{line}: {}", definition.name)
            }
            Self::Environment(name) => name.clone(),
            Self::Familiar(name) => (*name).to_owned(),
            Self::Control => definition.name.to_owned(),
            Self::Default | Self::CommandLine | Self::Development if definition.is_positional() => {
                definition.name.to_owned()
            }
            Self::Default | Self::CommandLine | Self::Development => definition.flag(),
        }
    }

    /// How an error names a virtual host, or one of its keys.
    pub(crate) fn place_in_host(&self, host: &str, key: Option<&str>) -> String {
        let place = match self {
            Self::File { path, line } | Self::DropIn { path, line } => format!("{path}:{line}: host.{host}"),
            _ => format!("host.{host}"),
        };
        key.map_or(place.clone(), |key| format!("{place}.{key}"))
    }

    /// How an error names a named pool, or one of its keys.
    pub(crate) fn place_in_pool(&self, pool: &str, key: Option<&str>) -> String {
        let (pool, separator) = match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                (format!("{path}:{line}: pool.{pool}"), ".")
            }
            Self::Environment(name) => (format!("{name} {pool}"), ": "),
            Self::Control => (format!("pool.{pool}"), "."),
            Self::Default | Self::CommandLine | Self::Familiar(_) | Self::Development => {
                (format!("--pool {pool}"), ": ")
            }
        };
        key.map_or(pool.clone(), |key| format!("{pool}{separator}{key}"))
    }
}

/// Where each value of a configuration came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    options: BTreeMap<&'static str, Source>,
    pools: BTreeMap<String, TableOrigin>,
    hosts: BTreeMap<String, TableOrigin>,
    /// Those of the rules of the configuration, in the same order.
    pub(crate) rules: Vec<Source>,
    /// Those of its filters, likewise.
    pub(crate) filters: Vec<Source>,
}

#[derive(Clone, Debug)]
struct TableOrigin {
    /// Where the pool or the host was named first.
    named: Source,
    keys: BTreeMap<&'static str, Source>,
}

impl Origins {
    /// The source of the option with this name.
    pub(crate) fn of(&self, name: &str) -> &Source {
        self.options.get(name).unwrap_or(&Source::Default)
    }

    /// Notes where the value of an option is from.
    pub(crate) fn set(&mut self, name: &'static str, source: Source) {
        self.options.insert(name, source);
    }

    /// How an error names the place of this option.
    pub(crate) fn describe(&self, name: &str) -> String {
        options::find(name).map_or(name.to_owned(), |definition| self.of(name).place(definition))
    }

    /// Notes where a pool is named; only the first place counts.
    pub(crate) fn name_pool(&mut self, pool: &str, source: Source) {
        self.pools
            .entry(pool.to_owned())
            .or_insert_with(|| TableOrigin { named: source, keys: BTreeMap::new() });
    }

    /// Notes where the value of a key of a pool that has been named is from.
    pub(crate) fn set_pool(&mut self, pool: &str, key: &'static str, source: Source) {
        if let Some(origin) = self.pools.get_mut(pool) {
            origin.keys.insert(key, source);
        }
    }

    /// Notes that a key of a pool was changed while the server ran.
    pub(crate) fn change(&mut self, pool: &str, key: &'static str) {
        if pool == DEFAULT_POOL {
            self.options.insert(key, Source::Control);
        } else {
            self.set_pool(pool, key, Source::Control);
        }
    }

    /// Where a pool was named first.
    pub(crate) fn naming(&self, pool: &str) -> &Source {
        self.pools.get(pool).map_or(&Source::Default, |origin| &origin.named)
    }

    /// The source of a key of a pool; without a name that of the default pool.
    pub(crate) fn of_pool(&self, pool: Option<&str>, key: &str) -> &Source {
        match pool {
            Some(pool) => {
                self.pools.get(pool).and_then(|origin| origin.keys.get(key)).unwrap_or(&Source::Default)
            }
            None => self.of(key),
        }
    }

    /// How an error names the place of a key of a pool; without a name that of the default pool.
    pub(crate) fn describe_pool(&self, pool: Option<&str>, key: &str) -> String {
        match pool {
            Some(pool) => self.of_pool(Some(pool), key).place_in_pool(pool, Some(key)),
            None => self.describe(key),
        }
    }

    /// Whether a host has been named.
    pub(crate) fn knows_host(&self, host: &str) -> bool {
        self.hosts.contains_key(host)
    }

    /// Notes where a host is named; only the first place counts.
    pub(crate) fn name_host(&mut self, host: &str, source: Source) {
        self.hosts
            .entry(host.to_owned())
            .or_insert_with(|| TableOrigin { named: source, keys: BTreeMap::new() });
    }

    /// Notes where the value of a key of a host that has been named is from.
    pub(crate) fn set_host(&mut self, host: &str, key: &'static str, source: Source) {
        if let Some(origin) = self.hosts.get_mut(host) {
            origin.keys.insert(key, source);
        }
    }

    /// The source of a key of a host; without a key, where the host was named first.
    pub(crate) fn of_host(&self, host: &str, key: Option<&str>) -> &Source {
        self.hosts.get(host).map_or(&Source::Default, |origin| match key {
            Some(key) => origin.keys.get(key).unwrap_or(&Source::Default),
            None => &origin.named,
        })
    }

    /// How an error names the place of a host, or of one of its keys.
    pub(crate) fn describe_host(&self, host: &str, key: Option<&str>) -> String {
        self.of_host(host, key).place_in_host(host, key)
    }

    /// The source of the rule at this position of the configuration.
    pub(crate) fn of_rule(&self, position: usize) -> &Source {
        self.rules.get(position).unwrap_or(&Source::Default)
    }

    /// The source of the filter at this position of the configuration.
    pub(crate) fn of_filter(&self, position: usize) -> &Source {
        self.filters.get(position).unwrap_or(&Source::Default)
    }

    /// How an error names a pool.
    pub(crate) fn place_of_pool(&self, pool: &str) -> String {
        self.naming(pool).place_in_pool(pool, None)
    }
}
