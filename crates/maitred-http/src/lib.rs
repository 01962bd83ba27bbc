//! The vocabulary of HTTP, shared by every protocol version.
//!
//! Promises: no I/O, no clock, no panic on peer input; every limit has a name and a source.
//! Leaves out: framing (the protocol crates) and sending (the server).

pub mod body;
pub mod fields;
pub mod head;
pub mod method;
pub mod status;

pub use body::BodyLength;
pub use fields::FieldSet;
pub use head::{RequestHead, ResponseHead, Version};
pub use method::Method;
pub use status::Status;
