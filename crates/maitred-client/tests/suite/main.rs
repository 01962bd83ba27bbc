//! The client against servers that are scripts.

#![expect(clippy::expect_used, reason = "a test fails by a panic")]

mod exchange;
mod odd_servers;
mod simulated;
