//! Certificates by ACME: the folder that keeps them, and the thread that orders them.
//!
//! ```text
//! the orderer, in one process --order by maitred-acme, calls by maitred-client--> the authority
//!      | writes
//!      v
//! the folder: challenges, certificates, states --read by all processes--> handshakes, requests, views
//! ```
//! Promises: the start of a server waits for nothing here. Leaves out: the protocol and its rules (maitred-acme), and the terms of TLS that
//! certificates become part of (maitred-config).

mod folder;
mod name;
mod on_demand;
mod orderer;
mod preflight;
mod state;
mod wishes;
mod work;
mod world;

pub use folder::{Folder, Lock, Mark};
pub use maitred_acme::{
    ChallengeKind, ExternalAccount, Held, Identifier, LETS_ENCRYPT, LETS_ENCRYPT_STAGING, check_chain,
};
pub use name::is_public;
pub use on_demand::Heard;
pub use orderer::Orderer;
pub use preflight::{Told, preflight};
pub use state::{Fault, State, Status};
pub use wishes::{Wishes, is_on_demand};
pub use world::unless_hook_runs;

#[cfg(test)]
mod tests;
