//! What requests are compared with: patterns of paths and header fields, networks of clients, and the shape that stands for a
//! route. Pure: no I/O, no clock, no allocation for a request.

mod network;
mod pattern;
mod shape;

pub use network::Network;
pub use pattern::{BadPattern, HeaderPattern, PathPattern};
pub use shape::Shape;
