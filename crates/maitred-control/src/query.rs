//! The context of a query or a change: server, owner, doors, history.

use std::time::Duration;

use maitred_server::Server;

use super::{Doors, Finder, Keeper, Owner};

pub(crate) struct QueryContext<'a> {
    pub(crate) server: &'a Server,
    pub(crate) owner: &'a dyn Owner,
    pub(crate) doors: &'a Doors,
    pub(crate) finder: &'a Finder,
    pub(crate) up: Duration,
    pub(crate) history: Option<&'a Keeper>,
}
