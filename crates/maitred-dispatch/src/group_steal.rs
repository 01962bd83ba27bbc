//! Several groups: a scheduler's view of the others, and requests that leave their own group.
//!
//! ```text
//! group A: every thread there may be is in application code; the backup poller reads a request and queues it
//!     `--> offers its queue (one word), and calls an idle thread of a peer_group: a parked one, else one that polls
//! group B: own queue, ready list and poller have nothing --> takes from a queue that is offered
//! ```
//! Promises: a request leaves its group only when that has no thread for it; it is never forgotten while a thread of
//! another group is idle. The protocol is that of a group's own queue: the offer can be seen before an idle thread is
//! looked for, and a thread looks after it has counted itself as one that polls, or can be popped as parked. A thread
//! that was called and finds other work first passes the call on (`Scheduler::run`).
//!
//! Leaves out: connections, files and refusals, which stay where they are, as their group has a backup poller.

use std::sync::Arc;

use maitred_io::sync::atomic::Ordering;
use maitred_stats::Counter;

use crate::backup_poller::BackupPoller;
use crate::pollers::Pollers;
use crate::pool::{Pool, Queue};

/// The part of a scheduler that those of other groups see.
pub(super) struct PeerGroup<J> {
    pub(super) pool: Arc<Pool<J>>,
    pub(super) pollers: Arc<Pollers>,
    pub(super) backup_poller: Arc<BackupPoller>,
}

pub(super) struct PeerGroups<J> {
    /// The peer groups, beginning with the one behind this group.
    pub(super) all: Box<[PeerGroup<J>]>,
    /// Requests of peer groups that threads of this group have run.
    pub(super) migrations: Counter,
}

impl<J> Pool<J> {
    fn is_offered(&self) -> bool {
        self.offered.load(Ordering::SeqCst)
    }

    /// Offers the waiting requests to other groups. Whether there are any.
    fn offer(&self) -> bool {
        let queue = self.lock();
        let waits = !queue.jobs.is_empty();
        self.offered.store(waits, Ordering::SeqCst);
        waits
    }

    /// The offer ends before the length says so: a thread that sees an offer finds something, or a lock to wait for.
    pub(super) fn withdraw(&self, queue: &Queue<J>) {
        if queue.jobs.is_empty() && self.offered.load(Ordering::Relaxed) {
            self.offered.store(false, Ordering::SeqCst);
        }
    }
}

impl<J> PeerGroups<J> {
    /// Whether another group has requests and no thread for them. A load for each of the others.
    pub(super) fn is_offered(&self) -> bool {
        self.all.iter().any(|group| group.pool.is_offered())
    }

    /// No thread of this group, whose pool is `own`, is idle and none can be made. Has a thread of another group look at the requests here, or
    /// in a third group whose call has ended here.
    pub(super) fn call(&self, own: &Pool<J>, inside: usize) {
        if self.all.is_empty() {
            return;
        }
        // The next request finds no thread either.
        let offers = own.queued() > 0 && own.threads.is_exhausted(inside) && own.offer();
        if offers || self.is_offered() {
            self.wake();
        }
    }

    /// Calls an idle thread of another group; where there is none, the backup poller of one that may have more threads. It
    /// must not call back: where all groups are stuck it would be for ever.
    fn wake(&self) {
        let groups = || self.all.iter();
        if groups().any(|group| group.pool.wake_parked()) || groups().any(|group| group.pollers.wake()) {
            return;
        }
        if let Some(group) = groups().find(|group| group.pool.threads.has_room()) {
            group.backup_poller.release_polling();
        }
    }

    /// A request of a group that has no thread for it, for a thread of this one, whose pool is `own`, that has nothing else to do.
    pub(super) fn visit(&self, own: &Pool<J>) -> Option<J> {
        let job =
            self.all.iter().filter(|group| group.pool.is_offered()).find_map(|group| group.pool.pop())?;
        self.migrations.add(1);
        // One call may have stood for several requests. A thread that polls is woken when this one has entered.
        if self.is_offered() && !own.wake_parked() {
            self.wake();
        }
        Some(job)
    }
}
