//! Supervision of worker processes: when one is started, stopped and replaced. No process, no clock, no signal: time is
//! an argument, and the decisions come out as [`Action`]s.
//!
//! ```text
//!            Start                    ready
//! (nothing) -------> Starting ---------------------> Serving --Stop--> Stopping --exit--> (gone)
//!     ^                 | exit, or start-timeout: Kill   | exit             | over its time: Kill
//!     |                 v                                v                  |
//!     `---- back-off ---+--------------------------------'                  '
//! ```
//! Promises: a worker that is replaced serves until its successor is ready, and for ever if that does not become ready.
//! A worker that cannot start before any was ready ends the whole crew; later it costs one attempt, and the next one
//! waits longer. Nothing is started again at full speed. A crew that ends leaves no process.
//!
//! Leaves out: processes and signals (maitred-io), the work of a worker (maitred-process).

mod backoff;
mod crew;
mod exit;
mod recycle;
mod restarts;
mod slot;

pub use crew::{Action, Crew, Level, Settings};
pub use exit::Exit;
pub use recycle::{Beat, Limits};
pub use slot::{Phase, WorkerId, WorkerView};
