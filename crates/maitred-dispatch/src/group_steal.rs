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

use maitred_io::poller::Waker;
use maitred_io::sync::atomic::{AtomicUsize, Ordering};

use crate::Scheduler;
use crate::backup_poller::BackupPoller;
use crate::pool::{Pool, Queue};

/// The part of a scheduler that those of other groups see.
pub(super) struct PeerGroup<J> {
    pool: Arc<Pool<J>>,
    pollers: Arc<AtomicUsize>,
    waker: Arc<Waker>,
    backup_poller: Arc<BackupPoller>,
}

impl<J> PeerGroup<J> {
    fn wake(&self) -> bool {
        let polled = self.pollers.load(Ordering::SeqCst) > 0;
        if polled {
            self.waker.wake();
        }
        polled
    }
}

impl<J> Pool<J> {
    fn is_offered(&self) -> bool {
        self.offered.load(Ordering::SeqCst)
    }

    /// Offers the waiting requests to threads of other groups, too. Returns whether there are any.
    fn offer(&self) -> bool {
        let queue = self.lock();
        let waits = !queue.is_empty();
        self.offered.store(waits, Ordering::SeqCst);
        waits
    }

    /// The offer ends when nothing waits any more, before the length says so: a thread that sees an offer finds something, or
    /// a lock to wait for.
    pub(super) fn withdraw(&self, queue: &Queue<J>) {
        if queue.is_empty() && self.offered.load(Ordering::Relaxed) {
            self.offered.store(false, Ordering::SeqCst);
        }
    }
}

impl<J: Send> Scheduler<J> {
    /// Has each of these see the others, the next one first.
    pub(super) fn link(schedulers: &mut [Self]) {
        let count = schedulers.len();
        for index in 0..count {
            let peer_groups =
                (1..count).map(|step| schedulers[(index + step) % count].as_peer_group()).collect();
            schedulers[index].peer_groups = peer_groups;
        }
    }

    fn as_peer_group(&self) -> PeerGroup<J> {
        PeerGroup {
            pool: Arc::clone(&self.pool),
            pollers: Arc::clone(&self.pollers),
            waker: Arc::clone(&self.waker),
            backup_poller: Arc::clone(&self.backup_poller),
        }
    }

    /// Whether another group has requests and no thread for them. A load for each of the others.
    pub(super) fn is_offered(&self) -> bool {
        self.peer_groups.iter().any(|peer_group| peer_group.pool.is_offered())
    }

    /// Whether every thread there may be is in application code: the next request finds none.
    fn is_stuck(&self) -> bool {
        self.pool.threads.is_exhausted(self.inside.load(Ordering::SeqCst))
    }

    /// No thread of this group is idle and none can be made. Has a thread of another group look at the requests here,
    /// or in a third group whose call has ended here.
    pub(super) fn wake_peer_group(&self) {
        if self.peer_groups.is_empty() {
            return;
        }
        let offers = self.pool.queued() > 0 && self.is_stuck() && self.pool.offer();
        if offers || self.is_offered() {
            self.wake_elsewhere();
        }
    }

    /// Calls an idle thread of another group; where there is none, the backup poller of one that may have more threads. It
    /// must not call back: where all groups are stuck it would be for ever.
    fn wake_elsewhere(&self) {
        let called = self.peer_groups.iter().any(|peer_group| peer_group.pool.wake_parked())
            || self.peer_groups.iter().any(PeerGroup::wake);
        if !called
            && let Some(peer_group) =
                self.peer_groups.iter().find(|peer_group| peer_group.pool.threads.has_room())
        {
            peer_group.backup_poller.release_polling();
        }
    }

    /// A request of a group that has no thread for it, for a thread of this one that has nothing else to do.
    pub(super) fn visit(&self) -> Option<J> {
        let offering =
            |peer_group: &PeerGroup<J>| peer_group.pool.is_offered().then(|| peer_group.pool.pop()).flatten();
        let job = self.peer_groups.iter().find_map(offering)?;
        self.migrations.add(1);
        // One call may have stood for several requests. A thread that polls is woken when this one has entered.
        if self.is_offered() && !self.pool.wake_parked() {
            self.wake_elsewhere();
        }
        Some(job)
    }

    /// Requests of other groups that threads of this one have run.
    pub fn migrations(&self) -> u64 {
        self.migrations.total()
    }
}
