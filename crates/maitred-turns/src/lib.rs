//! A turn of a connection, or of whatever else has a slot: what its thread and its scheduler say to each other.
//!
//! | type | |
//! |---|---|
//! | [`Signals`] | what has happened |
//! | [`Claim`] | which thread has the turn; signals that come meanwhile are left for it |
//! | [`TurnClock`] | when the turn has begun: a turn behind another one does not ask the clock again |
//! | [`Jobs`] | the requests that the turn brings |
//!
//! Leaves out: which thread takes a turn and runs the requests (maitred-dispatch), and what the turn does (maitred-server).

mod claim;
mod jobs;
mod signals;
mod turn_clock;

pub use claim::Claim;
pub use jobs::Jobs;
pub use signals::Signals;
pub use turn_clock::{TurnClock, TurnContext};
