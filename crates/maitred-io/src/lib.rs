//! The edge to the operating system: waiting, sending, sleeping and time.
//!
//! Promises: no call of a socket waits; a readiness queue that any number of threads share; deadlines that cost one
//! store to extend; lines that are written without a thread that waits for the disk. Everything that a test has to
//! schedule is behind [`sync`] and [`poller`], which have a second form under `--cfg shuttle`.
//!
//! Leaves out: HTTP, and the work of threads (maitred-server). Sockets of connections are TCP or Unix streams; no
//! served file is mapped into memory.

pub mod accounts;
pub mod background;
pub mod channel;
pub mod child;
pub mod clock;
pub mod forked;
pub mod line_writer;
#[cfg(not(shuttle))]
pub mod listener;
pub mod local;
pub mod machine;
pub mod memory;
#[cfg(not(shuttle))]
pub mod names;
#[cfg(not(shuttle))]
pub mod outgoing;
pub mod parker;
pub mod parking;
pub mod pid_file;
pub mod poller;
pub mod private_memory;
pub mod process;
pub mod random;
pub mod rights;
#[cfg(not(shuttle))]
pub mod service_manager;
pub mod shared_memory;
pub mod standard_streams;
pub mod sync;
pub mod tasks;
pub mod terminal;
pub mod thread_state;
pub mod timers;
#[cfg(not(shuttle))]
pub mod transport;
mod usage;
#[cfg(not(shuttle))]
pub mod waiting;
pub mod work_queue;
