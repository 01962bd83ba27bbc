//! Sessions with a client in memory.

mod client_certificates;
mod handshakes;
pub(crate) mod kit;
mod records;
