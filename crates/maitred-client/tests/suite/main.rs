//! The client against servers that are scripts.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod blocking;
mod calls;
mod exchange;
mod odd_servers;
mod pushed;
mod secure;
mod simulated;
