//! Handles to the parts of a running server: connections, requests, threads, routes, figures.
//!
//! Promises: each connection is copied under its own lock, and no two locks are held at once. So a request may be
//! missing in two lists, or end, while the others are read.

mod connections;
mod figures;
mod routing;
mod threads;

pub use connections::{Connections, Waiting};
pub use figures::{ServerFigures, Snapshot};
pub use routing::Routing;
pub use threads::Threads;

pub use crate::connection::snapshot::{ConnectionSnapshot, State};
pub use crate::group::thread_registry::{Inside, Member, Role, Times};
pub use crate::listener::ListenerState;
pub use crate::live_settings::LiveSettings;
pub use crate::pools::Pools;
pub use crate::roles::{ProcessThread, ThreadList};
pub use maitred_exchange::record::RequestSummary;
pub use maitred_exchange::site::{RecentRequest, RecentRequests};
pub use maitred_exchange::traced::Dispatched;
pub use maitred_exchange::writer::Delivery;
pub use maitred_exchange::writer::Marks;
