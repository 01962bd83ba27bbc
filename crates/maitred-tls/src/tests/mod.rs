//! Sessions with a client in memory.

mod challenges;
mod client_certificates;
mod files;
mod handshakes;
mod hosts;
pub(crate) mod kit;
mod outgoing;
mod records;
mod resumption;
mod staples;
