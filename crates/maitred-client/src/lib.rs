//! HTTP client: exchanges and a pool of connections.
//!
//! Promises: [`exchange`] and [`pool`] do no I/O and read no clock: bytes and times are arguments, and the same client
//! serves a thread that waits, an event loop and the engine. A wrong response is an [`Error`] with a name, and its
//! connection is never used again; a connection that is not reusable says [why](exchange::NotReusable). A slot of the pool
//! is a guard: a call that ends in any way gives it back.
//!
//! A thread that may wait uses [`blocking`].
//!
//! Leaves out: drivers for event loops and for the engine, TLS; decoding of bodies, redirects, cookies; HTTP/2.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

pub mod blocking;
pub mod environment;
mod error;
#[expect(dead_code, reason = "calls do not use it yet")]
mod establish;
pub mod exchange;
mod keep_alive;
pub mod key;
pub mod pool;
#[expect(dead_code, reason = "calls do not use it yet")]
mod proxy;
mod report;
#[expect(dead_code, reason = "calls do not use it yet")]
mod stream;
pub mod tls;
mod tunnel;

pub use error::{Error, Phase};
pub use keep_alive::Kept;
pub use maitred_h1::Malformed;
pub use maitred_tls::ServerFault;
pub use proxy::{ProxyFault, ProxyUrlError};
pub use report::{End, Observer, Report};
