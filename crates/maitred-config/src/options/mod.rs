//! Every option, once. From these tables come the command line, the environment variables, the keys
//! of `maitred.toml`, `--help`, `maitred check` and docs/operations/configuration.md.

mod acme;
mod application;
mod compression;
mod control;
mod definition;
pub(crate) mod development;
pub(crate) mod familiar;
mod http2;
mod insight;
mod limits;
mod logs;
mod process;
mod proxies;
pub mod renamed;
mod requests;
mod responses;
mod serving;
mod threads;
pub mod tls;
mod traces;
mod websockets;
mod workers;

use crate::{Config, did_you_mean};
pub(crate) use definition::pool;
pub use definition::{Definition, Kind, Reload};
pub(crate) use threads::MAX_THREADS;
pub use workers::MAX_WORKERS;

/// In the order of the help text.
const TABLES: [&[Definition]; 21] = [
    serving::OPTIONS,
    tls::OPTIONS,
    acme::OPTIONS,
    http2::OPTIONS,
    websockets::OPTIONS,
    proxies::OPTIONS,
    threads::POOL,
    threads::NAMED,
    threads::GROUPS,
    workers::OPTIONS,
    application::OPTIONS,
    development::OPTIONS,
    requests::OPTIONS,
    responses::OPTIONS,
    limits::OPTIONS,
    compression::OPTIONS,
    insight::OPTIONS,
    traces::OPTIONS,
    logs::OPTIONS,
    control::OPTIONS,
    process::OPTIONS,
];

impl Config {
    /// The defaults of the options.
    pub fn with_defaults() -> Self {
        let mut config = Self::default();
        for definition in all().filter(|definition| !definition.default.is_empty()) {
            let texts: Vec<String> = definition.default.iter().map(ToString::to_string).collect();
            let set = definition.set(&mut config, &texts);
            debug_assert!(set.is_ok(), "the default of {} is not valid", definition.name);
        }
        config
    }
}

/// The options, in the order of the help text.
pub fn all() -> impl Iterator<Item = &'static Definition> {
    TABLES.into_iter().flatten()
}

/// The options beside those of pools that hold at once when they are changed while the server runs.
pub fn live() -> impl Iterator<Item = &'static Definition> {
    all().filter(|option| option.is_live())
}

/// The options that are also the keys of a named pool.
pub fn of_pools() -> impl Iterator<Item = &'static Definition> {
    all().filter(|option| matches!(option.kind, Kind::Pool(_)))
}

/// The option with this name.
pub fn find(name: &str) -> Option<&'static Definition> {
    all().find(|definition| definition.name == name)
}

/// The remedy for an unknown name: the nearest one, or where all are listed.
pub(crate) fn suggest(name: &str, known: impl Fn(&Definition) -> Option<String>) -> String {
    let names: Vec<String> = all().filter_map(known).collect();
    did_you_mean(name, names.iter().map(String::as_str), "'maitred --help all' lists the options")
}

#[cfg(test)]
mod tests;
