//! Test tools: wire scripts, an in-memory connection pair, a virtual clock, a scripted handler, and behind a feature a client over TCP.
//!
//! Promises: nothing but that client opens a socket, nothing reads a clock, and nothing but that client and a [`disk`] waits; a test that uses it gives
//! the same result every time. Never published; a tool panics where a test would.

#[cfg(feature = "client")]
pub mod client;
mod clock;
pub mod disk;
mod handler;
mod pipe;
mod script;
pub mod wall;

pub use clock::VirtualClock;
pub use handler::{ScriptedHandler, Seen};
pub use pipe::{End, pair};
pub use script::{Peer, Script};
