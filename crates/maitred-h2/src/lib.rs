//! HTTP/2 connection state machine: bytes in, events out; values in, frames out.
//!
//! Promises: server side of HTTP/2 (RFC 9113) with HPACK (RFC 7541) without I/O, without a clock and without a panic.
//!
//! Leaves out: queues and turns of streams, bodies, deadlines: the server has them.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

pub mod hpack;
