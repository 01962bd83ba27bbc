//! Where values come from, and how they are merged: default < file < drop-in files < environment
//! < command line. A later value replaces an earlier one, key by key also in named pools; lists are replaced whole, and
//! filters are collected.

pub(crate) mod command_line;
pub(crate) mod environment;
pub(crate) mod file;
mod filter_table;
mod pool_table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use maitred_server::DEFAULT_POOL;

use crate::config::Config;
use crate::filters;
use crate::options::renamed::Names;
use crate::options::{self, Definition, Kind};
use crate::pools;
use crate::problem::{Problem, nearest};
use crate::value::BadValue;
use command_line::Command;

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
            Self::Control => f.write_str("changed at run time"),
        }
    }
}

impl Source {
    /// How an error names the place.
    fn place(&self, definition: &Definition) -> String {
        match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                format!("{path}:{line}: {}", definition.name)
            }
            Self::Environment(name) => name.clone(),
            Self::Control => definition.name.to_owned(),
            Self::Default | Self::CommandLine if definition.is_positional() => definition.name.to_owned(),
            Self::Default | Self::CommandLine => definition.flag(),
        }
    }

    /// How an error names a named pool, or one of its keys.
    pub(crate) fn place_in_pool(&self, pool: &str, key: Option<&str>) -> String {
        let (pool, separator) = match self {
            Self::File { path, line } | Self::DropIn { path, line } => {
                (format!("{path}:{line}: pool.{pool}"), ".")
            }
            Self::Environment(name) => (format!("{name} {pool}"), ": "),
            Self::Control => (format!("pool.{pool}"), "."),
            Self::Default | Self::CommandLine => (format!("--pool {pool}"), ": "),
        };
        key.map_or(pool.clone(), |key| format!("{pool}{separator}{key}"))
    }
}

/// A value of an option as it was written.
pub(crate) struct Assignment {
    pub(crate) definition: &'static Definition,
    pub(crate) texts: Vec<String>,
    pub(crate) source: Source,
}

/// Where each value of a configuration came from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    options: BTreeMap<&'static str, Source>,
    pools: BTreeMap<String, PoolOrigin>,
    /// Those of the rules of the configuration, in the same order.
    pub(crate) rules: Vec<Source>,
    /// Those of its filters, likewise.
    pub(crate) filters: Vec<Source>,
}

#[derive(Clone, Debug)]
struct PoolOrigin {
    /// Where the pool was named first.
    named: Source,
    keys: BTreeMap<&'static str, Source>,
}

impl Origins {
    /// The source of the option with this name.
    pub(crate) fn of(&self, name: &str) -> &Source {
        self.options.get(name).unwrap_or(&Source::Default)
    }

    /// How an error names the place of this option.
    pub(crate) fn describe(&self, name: &str) -> String {
        crate::options::find(name).map_or(name.to_owned(), |definition| self.of(name).place(definition))
    }

    /// Notes where a pool is named; only the first place counts.
    pub(crate) fn name_pool(&mut self, pool: &str, source: Source) {
        self.pools
            .entry(pool.to_owned())
            .or_insert_with(|| PoolOrigin { named: source, keys: BTreeMap::new() });
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

/// What the process was started with.
pub(crate) struct Inputs {
    /// Without the name of the program.
    pub(crate) arguments: Vec<String>,
    /// The variables whose names start with `MAITRED_`.
    pub(crate) environment: Vec<(String, String)>,
    /// The folder in which `maitred.toml` is looked for.
    pub(crate) folder: PathBuf,
    /// Earlier names of options.
    pub(crate) earlier: Names,
}

/// The merged configuration and how it came about.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) command: Command,
    pub(crate) config: Config,
    pub(crate) origins: Origins,
    /// The files that were read, in order.
    pub(crate) files: Vec<String>,
    /// Lines for the user about what was ignored.
    pub(crate) warnings: Vec<String>,
}

/// Reads all sources and merges them. Every value is checked, also one that is replaced later.
pub(crate) fn load(inputs: &Inputs) -> Result<Loaded, Problem> {
    let line = command_line::parse(&inputs.arguments, inputs.earlier)?;
    let mut loaded = Loaded {
        command: line.command,
        config: Config::default(),
        origins: Origins::default(),
        files: Vec::new(),
        warnings: Vec::new(),
    };
    if !matches!(loaded.command, Command::Run | Command::Check) {
        return Ok(loaded);
    }
    let variables = environment::parse(&inputs.environment, inputs.earlier, &mut loaded.warnings);
    let named = line
        .config_file
        .map(|path| ("--config".to_owned(), path))
        .or(variables.config_file.map(|path| ("MAITRED_CONFIG".to_owned(), path)));
    let files = file::read(&inputs.folder, named, inputs.earlier)?;
    loaded.files = files.names;
    let mut renamed = files.renamed;
    renamed.extend(variables.renamed);
    renamed.extend(line.renamed);
    for part in files.pools {
        part.note_renamed(&mut renamed);
        part.merge(&mut loaded.config, &mut loaded.origins)?;
    }
    (loaded.config.filters, loaded.origins.filters) = files.filters.into_iter().unzip();
    for assignment in files.assignments.into_iter().chain(variables.assignments).chain(line.assignments) {
        let Assignment { definition, texts, source } = assignment;
        let wrong = |BadValue { what, remedy }| Problem::new(source.place(definition), what, remedy);
        if matches!(definition.kind, Kind::Pools) {
            for part in pools::parts(&texts, &source, inputs.earlier).map_err(wrong)? {
                part.note_renamed(&mut renamed);
                part.merge(&mut loaded.config, &mut loaded.origins)?;
            }
        } else {
            definition.set(&mut loaded.config, &texts).map_err(wrong)?;
        }
        loaded.origins.options.insert(definition.name, source);
    }
    loaded.warnings.extend(renamed.warnings());
    loaded.warnings.extend(pools::warnings(&loaded.config, &loaded.origins));
    loaded.warnings.extend(filters::warnings(&loaded.config, &loaded.origins));
    Ok(loaded)
}

/// The remedy for an unknown name: the nearest one, or where all are listed.
fn suggest(name: &str, known: impl Fn(&Definition) -> Option<String>) -> String {
    let names: Vec<String> = options::all().filter_map(known).collect();
    match nearest(name, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => "'maitred --help' lists the options".to_owned(),
    }
}

#[cfg(test)]
mod tests;
