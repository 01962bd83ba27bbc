//! The vocabulary of HTTP, shared by every protocol version.
//!
//! Promises: no I/O, no clock, no panic on peer input; every limit has a name and a source.
//! Leaves out: framing (the protocol crates) and sending (the server).

pub mod authority;
pub mod body;
pub mod coding;
pub mod conditional;
pub mod date;
pub mod fields;
pub mod head;
pub mod limits;
pub mod media_type;
pub mod method;
pub mod multipart;
pub mod peer;
pub mod proxied;
pub mod range;
pub mod status;
pub mod target;
pub mod tls;
pub mod trace;

pub use body::BodyLength;
pub use fields::FieldSet;
pub use head::{RequestHead, ResponseHead, Version};
pub use method::Method;
pub use peer::Peer;
pub use proxied::Proxied;
pub use status::Status;
pub use tls::{TlsClient, TlsSession};
pub use trace::TracePlace;
