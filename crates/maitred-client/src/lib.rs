//! HTTP client: exchanges and a pool of connections.
//!
//! Promises: [`exchange`] and [`pool`] do no I/O, and like [`call`] they read no clock: bytes and times are arguments, and the same client
//! serves a thread that waits, an event loop and the engine. A wrong response is an [`Error`] with a name, and its
//! connection is never used again; a connection that is not reusable says [why](exchange::NotReusable). A slot of the pool
//! is a guard: a call that ends in any way gives it back.
//!
//! [`call`] is the whole call as a state machine that never waits; a driver waits for its sockets. A thread that may wait uses
//! [`blocking`]; [`pushed`] is for the engine.
//!
//! Leaves out: the pollers of event loops and of the engine; decoding of bodies, redirects, cookies; HTTP/2.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

mod account;
pub mod allow;
pub mod blocking;
pub mod call;
mod client;
mod connect;
mod connection;
pub mod environment;
mod error;
mod establish;
pub mod exchange;
mod failure;
mod fork;
mod keep_alive;
pub mod key;
mod names;
pub mod pool;
mod proxy;
pub mod pushed;
mod reach;
mod report;
mod stream;
pub mod tls;
mod tunnel;

pub use client::{Client, Settings, Times};
pub use error::{Error, Phase};
pub use failure::CallError;
pub use fork::after_fork_in_child;
pub use keep_alive::Kept;
pub use maitred_h1::Malformed;
pub use maitred_match::Network;
pub use maitred_tls::ServerFault;
pub use names::Resolve;
pub use proxy::{ProxyFault, ProxyUrlError};
pub use report::{End, Observer, Report};
