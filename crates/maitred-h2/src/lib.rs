//! HTTP/2 connection state machine: bytes in, events out; values in, frames out.
//!
//! Promises: server side of HTTP/2 (RFC 9113) with HPACK (RFC 7541) and priorities (RFC 9218), without I/O, without a
//! clock and without a panic. A [`Connection`] turns bytes into heads, data and other events of streams, the same
//! events however the bytes are cut. A request that two parsers could read in two ways resets the stream; input that
//! breaks the connection, or passes one of the [`Budgets`], ends it with the reason. It writes heads, and the frame
//! headers before data.
//!
//! Leaves out: buffers (the caller keeps unused bytes), queues and turns of streams, outward windows, deadlines, the
//! size of bodies: the server has them. Body bytes do not pass through here on their way out.

#![cfg_attr(
    test,
    expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by a panic")
)]

mod budgets;
mod connection;
mod counted;
mod error;
mod event;
mod frame;
mod head;
pub mod hpack;
mod preface;
mod priority;
mod settings;
mod streams;
mod upgrade;
mod window;

pub use budgets::{Budgets, Rate};
pub use connection::Connection;
pub use counted::{Counted, FRAME_TYPES};
pub use error::{ConnectionError, ErrorCode};
pub use event::{Event, HeadFacts};
pub use preface::{Preface, preface};
pub use priority::Priority;
pub use settings::Settings;
pub use upgrade::{Upgrade, upgrade};
