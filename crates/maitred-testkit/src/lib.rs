//! Test tools: wire scripts, an in-memory connection pair, a virtual clock, a scripted handler.
//!
//! Promises: nothing here waits, opens a socket or reads a clock; a test that uses it gives the same
//! result every time. Never published; a tool panics where a test would.

mod clock;
mod handler;
mod pipe;
mod script;

pub use clock::VirtualClock;
pub use handler::{ScriptedHandler, Seen};
pub use pipe::{End, pair};
pub use script::{Peer, Script};
