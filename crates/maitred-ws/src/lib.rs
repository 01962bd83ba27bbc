//! WebSocket for a server: bytes in, messages out; messages in, frames out.
//!
//! Promises: server side of RFC 6455 with permessage-deflate (RFC 7692), without I/O, without a clock and without a
//! panic. A [`Receiver`] turns bytes into messages and control frames, the same ones however the bytes are cut, and
//! keeps none of a message: the payload goes to the caller's buffer, unmasked and inflated. Input that breaks a rule or
//! passes one of the [`Limits`] is a [`Failure`] with the code to close with. The functions `put_*` write frames.
//!
//! Leaves out: the request and response of the handshake, when to ping and how long to wait, the close handshake's order,
//! queues: the server has them.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

mod control;
mod deflate;
mod failure;
mod frame;
mod handshake;
mod mask;
mod receiver;
mod sender;
mod token;
mod utf8;

pub use control::{Control, Reason};
pub use deflate::{Compressor, Deflate, DeflateSettings, negotiate};
pub use failure::Failure;
pub use frame::Opcode;
pub use handshake::{Malformed, accept_key, subprotocols};
pub use receiver::{Event, Kind, Limits, Receiver};
pub use sender::{is_close_code, put_close, put_frame_head, put_ping, put_pong};
pub use utf8::Utf8;
