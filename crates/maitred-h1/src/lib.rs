//! HTTP/1 connection state machine: bytes in, events out; commands in, bytes out.
//!
//! Promises: both sides of HTTP/1.0 and 1.1 (RFC 9112) without I/O, without a clock and without a panic. The
//! [`Receiver`] turns bytes into heads and decoded body data, the same events however the bytes are cut; a message that
//! two parsers could read in two ways is refused with the reason. A server's receives requests; a client's
//! (`Receiver<Responses>`) one response. The [`Sender`] frames one message and keeps the connection in step with any
//! declaration and behaviour of the application.
//!
//! Leaves out: buffers (the caller keeps unconsumed bytes), deadlines, the size of bodies (the server knows the route
//! and its limit), and body bytes on their way out, which never pass through here.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

mod chunked;
mod error;
mod extension;
mod hop_by_hop;
mod limits;
mod lines;
mod receiver;
mod request;
mod sender;
mod trailers;

pub use error::{HeadError, Malformed, RequestError};
pub use hop_by_hop::{TRAILER, hop_by_hop, is_forbidden_trailer, names_close};
pub use limits::Limits;
pub use receiver::{
    Asked, Event, HeadFacts, Receiver, ResponseFacts, Responses, Step, TargetForm, note_request_line,
};
pub use request::{OutgoingRequest, RequestReport};
pub use sender::{DataPlan, Finish, HeadReport, Sender};
