//! The platform edge: poller, sockets, timers, clock, buffers.

pub mod clock;
pub mod line_writer;
pub mod machine;
pub mod parker;
pub mod poller;
pub mod socket;
pub mod sync;
pub mod timers;
