//! HTTP/1 by its events and bytes.

#![expect(clippy::indexing_slicing, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod limits;
mod misbehaviour;
mod refusals;
mod responses;
mod split;
mod support;
mod wire;
