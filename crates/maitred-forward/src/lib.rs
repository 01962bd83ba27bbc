//! What proxies say of their clients: in fields of a request ([`forwarded`]), or in front of a connection ([`proxy`]).
//!
//! Promises: no I/O, no clock, no panic, and no memory for what a peer sends beyond the name of one host. Nothing is believed
//! that its caller has not named: which addresses are proxies, which fields they set, and which listeners have the PROXY protocol.
//!
//! Leaves out: who the peer of a connection is, how long a header may take to come, removing the fields of peers that are not
//! trusted, and what an application gets to see.

#![cfg_attr(
    test,
    expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by a panic")
)]

mod crc32c;
mod error;
mod node;
mod standard;
mod tlv;

pub mod forwarded;
pub mod proxy;
