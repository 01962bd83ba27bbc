//! A turn of a connection, or of another object with a slot: the interface between its thread and its scheduler.
//!
//! | type | |
//! |---|---|
//! | [`Signals`] | events of a connection |
//! | [`Claim`] | the thread that has the turn; signals that come meanwhile are left for it |
//! | [`TurnClock`] | the start of the turn: a turn behind another one does not ask the clock again |
//! | [`Turn`], [`Jobs`] | how the turn ended, and the requests that it brings |
//!
//! Leaves out: the choice of the thread for turns and requests (maitred-dispatch), and the work of a turn
//! (maitred-server).

mod claim;
mod jobs;
mod signals;
mod turn_clock;

pub use claim::Claim;
pub use jobs::{Jobs, Turn};
pub use signals::Signals;
pub use turn_clock::{TurnClock, TurnContext};
