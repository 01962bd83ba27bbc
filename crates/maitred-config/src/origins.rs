//! The origin of each value of a configuration, as errors and `maitred check` name it.

use std::collections::BTreeMap;
use std::fmt;

use maitred_server::DEFAULT_POOL;

use crate::{Definition, options};

/// The variable in which a platform gives the port.
pub const PORT: &str = "PORT";

/// The origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The option's default.
    Default,
    /// `maitred.toml`, or the file given instead.
    File {
        /// The path as it was found.
        path: String,
        /// Numbered from 1 on.
        line: usize,
    },
    /// A file of the drop-in folder.
    DropIn {
        /// The path as it was found.
        path: String,
        /// Numbered from 1 on.
        line: usize,
    },
    /// This environment variable.
    Environment(String),
    /// The command line.
    CommandLine,
    /// The value of development.
    Development,
    /// The value of a server that orders certificates.
    Acme,
    /// The command line, by this name of another server for the option.
    Familiar(&'static str),
    /// A change while the server ran.
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
            Self::Acme => f.write_str("acme"),
            Self::Familiar(name) => write!(f, "command line, {name}"),
            Self::Control => f.write_str("changed at run time"),
        }
    }
}

impl Source {
    /// Adds `other`, the origin of another value of the same list. The first name of another server is kept.
    pub fn also(&mut self, other: &Self) {
        if *self == Self::CommandLine {
            *self = other.clone();
        }
    }

    /// The place of an option, for errors.
    pub fn place(&self, definition: &Definition) -> String {
        match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                format!("{path}:{line}: {}", definition.name)
            }
            Self::Environment(name) => name.clone(),
            Self::Familiar(name) => (*name).to_owned(),
            Self::Control => definition.name.to_owned(),
            Self::Default | Self::CommandLine | Self::Development | Self::Acme
                if definition.is_positional() =>
            {
                definition.name.to_owned()
            }
            Self::Default | Self::CommandLine | Self::Development | Self::Acme => definition.flag(),
        }
    }

    /// Whether no user has said the value.
    pub fn is_default(&self) -> bool {
        matches!(self, Self::Default | Self::Acme)
    }

    /// Whether this is a line of a file.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self, Self::File { .. } | Self::DropIn { .. })
    }

    /// The place of a table of this kind, or of one of its keys, for errors. Tables of a list have no name.
    pub(crate) fn place_in(&self, kind: &str, name: &str, key: Option<&str>) -> String {
        let table = if name.is_empty() { kind.to_owned() } else { format!("{kind}.{name}") };
        let (table, separator) = match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                (format!("{path}:{line}: {table}"), ".")
            }
            Self::Environment(variable) => (format!("{variable} {name}"), ": "),
            Self::Control => (table, "."),
            // Of a kind that is an option, too: `--pool NAME,KEY=VALUE`.
            _ if options::find(kind).is_some() => (format!("--{kind} {name}"), ": "),
            _ => (table, "."),
        };
        key.map_or(table.clone(), |key| format!("{table}{separator}{key}"))
    }
}

/// A value of an option as it was written.
pub(crate) struct Assignment {
    pub(crate) definition: &'static Definition,
    pub(crate) texts: Vec<String>,
    pub(crate) source: Source,
}

/// The origins of all values of a configuration.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    options: BTreeMap<&'static str, Source>,
    /// The tables of pools.
    pub(crate) pools: TableOrigins,
    /// The tables of hosts.
    pub(crate) hosts: TableOrigins,
    /// The origins of the rules, in the order of the configuration.
    pub rules: Vec<Source>,
    /// The origins of the filters, in the order of the configuration.
    pub filters: Vec<Source>,
}

/// The origins of the tables of one kind, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableOrigins(BTreeMap<String, TableOrigin>);

#[derive(Clone, Debug)]
struct TableOrigin {
    /// The first origin of the table.
    named: Source,
    keys: BTreeMap<&'static str, Source>,
}

impl TableOrigins {
    /// Whether a table has been named.
    pub(crate) fn knows(&self, table: &str) -> bool {
        self.0.contains_key(table)
    }

    /// Notes the origin of a table; only the first one counts.
    pub(crate) fn name(&mut self, table: &str, source: Source) {
        self.0
            .entry(table.to_owned())
            .or_insert_with(|| TableOrigin { named: source, keys: BTreeMap::new() });
    }

    /// Notes the origin of a key of a known table.
    pub(crate) fn set(&mut self, table: &str, key: &'static str, source: Source) {
        if let Some(origin) = self.0.get_mut(table) {
            origin.keys.insert(key, source);
        }
    }

    /// The source of a key; without a key, the first origin of the table.
    pub(crate) fn of(&self, table: &str, key: Option<&str>) -> &Source {
        self.0.get(table).map_or(&Source::Default, |origin| match key {
            Some(key) => origin.keys.get(key).unwrap_or(&Source::Default),
            None => &origin.named,
        })
    }
}

impl Origins {
    /// The source of the option with this name.
    pub fn of(&self, name: &str) -> &Source {
        self.options.get(name).unwrap_or(&Source::Default)
    }

    /// Notes the origin of an option.
    pub fn set(&mut self, name: &'static str, source: Source) {
        self.options.insert(name, source);
    }

    /// The place of this option, for errors.
    pub fn describe(&self, name: &str) -> String {
        options::find(name).map_or(name.to_owned(), |definition| self.of(name).place(definition))
    }

    /// Notes that a key of a pool was changed while the server ran.
    pub fn change(&mut self, pool: &str, key: &'static str) {
        if pool == DEFAULT_POOL {
            self.options.insert(key, Source::Control);
        } else {
            self.pools.set(pool, key, Source::Control);
        }
    }

    /// The source of a key of a pool; without a name that of the default pool.
    pub fn of_pool(&self, pool: Option<&str>, key: &str) -> &Source {
        match pool {
            Some(pool) => self.pools.of(pool, Some(key)),
            None => self.of(key),
        }
    }

    /// The place of a key of a pool, for errors; without a name that of the default pool.
    pub(crate) fn describe_pool(&self, pool: Option<&str>, key: &str) -> String {
        match pool {
            Some(pool) => self.of_pool(Some(pool), key).place_in("pool", pool, Some(key)),
            None => self.describe(key),
        }
    }

    /// The place of a host, or of one of its keys, for errors.
    pub fn describe_host(&self, host: &str, key: Option<&str>) -> String {
        self.hosts.of(host, key).place_in("host", host, key)
    }

    /// The place of a key of a host; without a host, of the option outside of tables.
    pub fn describe_in(&self, host: Option<&str>, key: &str) -> String {
        host.map_or_else(|| self.describe(key), |host| self.describe_host(host, Some(key)))
    }

    /// The source of the rule at this position of the configuration.
    pub(crate) fn of_rule(&self, position: usize) -> &Source {
        self.rules.get(position).unwrap_or(&Source::Default)
    }

    /// The source of the filter at this position of the configuration.
    pub(crate) fn of_filter(&self, position: usize) -> &Source {
        self.filters.get(position).unwrap_or(&Source::Default)
    }

    /// The place of a pool, for errors.
    pub(crate) fn place_of_pool(&self, pool: &str) -> String {
        self.pools.of(pool, None).place_in("pool", pool, None)
    }
}
