//! The proxies' account of their clients: in fields of a request ([`forwarded`]), or in front of a connection
//! ([`proxy`]).
//!
//! Promises: no I/O, no clock, no panic, and no memory for the bytes of a peer beyond the name of one host. Only values
//! that the caller has named are believed: which addresses are proxies, which fields they set, and which listeners have
//! the PROXY protocol.
//!
//! Leaves out: the peer of a connection, how long a header may take to come, removing the fields of peers that are not
//! trusted, and the values that an application gets to see.

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
