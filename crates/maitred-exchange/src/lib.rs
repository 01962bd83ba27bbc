//! An exchange: a request with its response, whatever connection carries it.
//!
//! ```text
//!            head                    body                       response              last byte has left
//! receiving ------> filters, route -------> answered by the engine ------> stages -----------------------> record
//!                                   `-----> with a handler -------------------^
//! ```
//! Promises: no function here waits for a peer, or knows a socket; the connection calls with what has come and with the time by which
//! deadlines count, and is called by one interface, [`Link`]. So a test can drive an exchange by hand. Spans are measured by the clock.
//!
//! Leaves out: bytes of protocols and turns of connections (maitred-server), and the threads that run handlers.

pub mod admission;
pub mod challenge;
pub mod client;
pub mod destination;
pub mod filter;
pub mod flags;
pub mod hosts;
pub mod link;
pub mod memory;
pub mod own_limits;
pub mod pages;
pub mod pipeline;
pub mod proxies;
pub mod record;
pub mod response;
pub mod routes;
pub mod scratch;
pub mod site;
pub mod spill;
pub mod stages;
pub mod stream;
pub mod traced;
pub mod tracing;
pub mod writer;

pub use client::Ends;
pub use flags::Flags;
pub use link::{Link, Received};
pub use own_limits::OwnLimits;
pub use record::{Kept, Record};
pub use response::{Endless, Response};
pub use routes::Routes;
pub use scratch::Scratch;
pub use site::Site;
pub use spill::{Lot, Which};
pub use stream::Stream;
pub use stream::awaited::Awaited;
pub use stream::body::Keeping;
pub use stream::queue::{Heads, Queue, Values};
pub use stream::websocket::{Offer, Socket};
pub use writer::{Writer, last_bytes, recycle_writer, spare_writer};

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// A duration in nanoseconds.
pub fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}
