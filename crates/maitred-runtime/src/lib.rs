//! The language seam: handlers, their invocation types, and the exchange that they get.
//!
//! Promises: nothing here knows a protocol version, a socket or a scheduler; a language adapter
//! and a native handler see the same exchange. Leaves out: how a reply reaches the peer (the
//! server implements [`Respond`]).

mod body;
mod content;
mod database;
mod event_loop;
mod exchange;
mod handler;
pub mod lock_order;
pub mod long_memory;
pub mod outgoing;
mod request;
mod shortage;
mod tail;
mod threads;
mod websocket;

pub use body::{Body, BodyReader, CloseFile, Keepsake, LiveBody};
pub use content::{Content, FileRange, Last, Lend, Owner};
pub use database::{Database, DatabaseCounts};
pub use event_loop::{EventLoop, Later, Turned, Turns};
pub use exchange::{Exchange, Flow, MAX_LABEL, Observe, Respond, SendError, Stream};
pub use handler::{Handler, InvocationType};
pub use outgoing::{Begun, CallFacts, CallSpan, Outgoing, OutgoingCounts, Slowest};
pub use request::{Endpoint, Local, Process, Request};
pub use shortage::Shortage;
pub use tail::{CountTail, Tail};
pub use threads::{InterpreterLock, NativeThreads, ThreadBody, ThreadHost, ThreadStack};
pub use websocket::{Closed, Incoming, MessageKind, Messages, WebSocket, is_close_code};
