//! The kinds of tables in `maitred.toml`. A further kind is a file with its schema and its meaning, and a line in [`ALL`].

use crate::schema::{Shown, Table};
use crate::{Config, Origins, Problem};
use crate::{filters, hosts, pools};

/// All kinds of tables, in the order in which they are checked and shown.
pub(crate) const ALL: [&Table; 3] = [&pools::TABLE, &hosts::TABLE, &filters::TABLE];

/// The kind of tables with this key.
pub(crate) fn find(key: &str) -> Option<&'static Table> {
    ALL.into_iter().find(|table| table.names[0] == key)
}

/// All tables of a configuration.
pub(crate) fn shown(config: &Config, origins: &Origins) -> impl Iterator<Item = Shown> {
    ALL.into_iter().flat_map(|table| (table.show)(config, origins))
}

/// Checks the tables of each kind together, and with the rest of the configuration.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    ALL.into_iter().try_for_each(|table| (table.check)(config, origins))
}

/// Warns of tables without effect.
pub(crate) fn warnings(config: &Config, origins: &Origins) -> Vec<String> {
    ALL.into_iter().flat_map(|table| (table.warnings)(config, origins)).collect()
}
