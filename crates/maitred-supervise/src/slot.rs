//! The place of a worker, and the processes that have it: one that serves, perhaps its successor, and those that end.

use std::time::Instant;

use crate::backoff::Backoff;
use crate::recycle::{Reason, Wear};
use crate::restarts::Cause;

/// One process; numbers are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u64);

/// The phase of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The worker loads the application.
    Starting,
    /// The worker takes connections.
    Serving,
    /// The worker has been asked to end.
    Stopping,
}

/// A worker as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// The number of the worker, from 1 on; a successor has the same.
    pub number: usize,
    /// The process.
    pub id: WorkerId,
    /// The phase of the worker.
    pub phase: Phase,
    /// The start of the phase.
    pub since: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) id: WorkerId,
    pub(crate) phase: Phase,
    pub(crate) since: Instant,
    pub(crate) wear: Wear,
    pub(crate) killed: bool,
    pub(crate) late: bool,
    /// The worker has been asked to end before it was ready.
    pub(crate) unserved: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Slot {
    pub(crate) current: Option<Member>,
    /// The successor takes the place of `current` when it is ready.
    pub(crate) successor: Option<Member>,
    pub(crate) leaving: Vec<Member>,
    pub(crate) backoff: Backoff,
    /// When the next attempt is made, where there is no `current`; or one for a successor, where there is.
    pub(crate) start_at: Option<Instant>,
    /// Why `current` is to be replaced, until its successor is started.
    pub(crate) worn: Option<Reason>,
    /// Why `successor` is to take its place, also while one is tried again.
    pub(crate) cause: Option<Cause>,
    /// Processes that have ended without being asked.
    pub(crate) failures: u64,
}

impl Slot {
    pub(crate) fn members(&self) -> impl Iterator<Item = &Member> {
        self.current.iter().chain(&self.successor).chain(&self.leaving)
    }

    pub(crate) fn members_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.current.iter_mut().chain(&mut self.successor).chain(&mut self.leaving)
    }

    pub(crate) fn serves(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.phase == Phase::Serving)
    }

    /// Whether the worker serves, and has no successor.
    pub(crate) fn is_settled(&self) -> bool {
        self.serves() && self.successor.is_none()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members().next().is_none()
    }
}
