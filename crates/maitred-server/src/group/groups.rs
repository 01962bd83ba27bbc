//! Shared state of the poll groups of a server: listeners, distribution of connections, the drain.
//!
//! One group accepts. A connection belongs to the group with the fewest open ones for all its life. The reason for
//! one listening group:
//! [decision 0024](../../../../docs/decisions/0024-one-group-listens-and-gives-connections-away.md).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use maitred_io::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::thread_registry::ThreadRegistry;
use super::turnstile::Turnstile;
use super::{Group, Resident};
use crate::listener::Listening;
use crate::sharing::{Accept, Bell};
use crate::thread_hosts::ThreadHosts;

/// Number of the group that accepts: it gets the events of the listeners, too.
const ACCEPTING: usize = 0;

/// Processors per group: the epoll descriptor of many threads is a lock that all of them take.
const PROCESSORS: usize = 8;

/// The number of groups: `wanted`, or as many as fit the processors, but no more than threads.
pub(crate) fn count(wanted: usize, processors: usize, max_threads: usize) -> usize {
    let count = if wanted == 0 { processors.div_ceil(PROCESSORS) } else { wanted };
    count.clamp(1, max_threads.max(1))
}

/// The part of `whole` for group `index` of `count`: the first groups get the remainder.
pub(crate) fn share(whole: usize, index: usize, count: usize) -> usize {
    whole / count + usize::from(index < whole % count)
}

/// Shared state of all groups.
pub(crate) struct Groups<R: Resident> {
    pub(crate) listeners: Vec<Listening>,
    /// All threads that serve.
    pub(crate) thread_registry: Arc<ThreadRegistry>,
    /// Whether claims of handlers not to block are believed ([`trust`](super::trust)).
    pub(crate) trust: AtomicU8,
    /// The health check answers that no new requests should come.
    unready: AtomicBool,
    draining: AtomicBool,
    /// Whether other processes accept at the same addresses.
    pub(crate) accept: Accept,
    pub(crate) turnstile: Turnstile,
    /// The makers of application threads.
    pub(crate) thread_hosts: ThreadHosts,
    /// A drain takes the connections that wait at the listeners before it closes them.
    takes_rest: AtomicBool,
    /// A drain ends streams of events, whether or not their handlers have been told.
    ends_events: AtomicBool,
    /// Number of open connections that only wait for their handlers: their peers are gone.
    abandoned: AtomicUsize,
    /// Numbers of open connections, by group.
    open: Box<[Open]>,
    /// Held from the check of the open connections until the next one is counted, so that threads that accept at the
    /// same time keep to the limit.
    accepting: Mutex<()>,
    drained: (Mutex<()>, Condvar),
    members: OnceLock<Box<[Weak<Group<R>>]>>,
}

/// 128 bytes: processors fetch pairs of 64-byte lines, and each group counts its own.
#[derive(Default)]
#[repr(align(128))]
struct Open(AtomicUsize);

impl<R: Resident> Groups<R> {
    pub(crate) fn new(
        count: usize,
        listeners: Vec<Listening>,
        accept: Accept,
        thread_hosts: ThreadHosts,
    ) -> Self {
        Self {
            takes_rest: AtomicBool::new(matches!(accept, Accept::Single)),
            accept,
            turnstile: Turnstile::default(),
            thread_hosts,
            listeners,
            thread_registry: Arc::default(),
            trust: AtomicU8::new(super::trust::FULL),
            unready: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            ends_events: AtomicBool::new(false),
            abandoned: AtomicUsize::new(0),
            open: (0..count).map(|_| Open::default()).collect(),
            accepting: Mutex::new(()),
            drained: (Mutex::new(()), Condvar::new()),
            members: OnceLock::new(),
        }
    }

    /// Sets the groups, once, before any of them serves.
    pub(crate) fn introduce(&self, members: &[Arc<Group<R>>]) {
        let known = self.members.set(members.iter().map(Arc::downgrade).collect());
        debug_assert!(known.is_ok(), "the groups are introduced once");
    }

    /// Number of groups.
    pub(crate) fn count(&self) -> usize {
        self.open.len()
    }

    /// The group with this number; none at the end of the server.
    pub(crate) fn find(&self, number: usize) -> Option<Arc<Group<R>>> {
        self.members.get()?.get(number)?.upgrade()
    }

    /// All groups.
    pub(crate) fn all(&self) -> impl Iterator<Item = Arc<Group<R>>> + '_ {
        (0..self.count()).filter_map(|number| self.find(number))
    }

    /// All groups but the one with this number.
    pub(crate) fn others(&self, number: usize) -> impl Iterator<Item = Arc<Group<R>>> + '_ {
        (0..self.count()).filter(move |other| *other != number).filter_map(|other| self.find(other))
    }

    /// The listeners whose events are those of this group.
    pub(crate) fn listeners_of(&self, number: usize) -> &[Listening] {
        if number == ACCEPTING { &self.listeners } else { &[] }
    }

    pub(crate) fn count_opened(&self, number: usize) {
        self.open[number].0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count_closed(&self, number: usize) {
        if self.open[number].0.fetch_sub(1, Ordering::SeqCst) == 1 && self.is_draining() {
            self.tell_drained();
        }
    }

    /// Counts a connection that only waits for its handler.
    pub(crate) fn abandon(&self) {
        self.abandoned.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the count of such a connection, which is about to close.
    pub(crate) fn count_abandoned_closed(&self) {
        self.abandoned.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether all listeners are closed and all open connections only wait for their handlers.
    pub(crate) fn has_only_abandoned(&self) -> bool {
        // `abandoned` never exceeds the number of open connections: it falls first.
        self.listeners.iter().all(Listening::is_closed)
            && self.open() <= self.abandoned.load(Ordering::SeqCst)
    }

    /// Ends streams of events from now on.
    pub(crate) fn end_events(&self) {
        self.ends_events.store(true, Ordering::SeqCst);
    }

    /// Whether streams of events are ended.
    pub(crate) fn ends_events(&self) -> bool {
        self.ends_events.load(Ordering::SeqCst)
    }

    /// Locks out other threads until this one has counted the connection that it accepts.
    pub(crate) fn accept_alone(&self) -> MutexGuard<'_, ()> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of open connections in all groups.
    pub(crate) fn open(&self) -> usize {
        self.open.iter().map(|open| open.0.load(Ordering::SeqCst)).sum()
    }

    /// Causes a turn of a listener that checks the resources, since the budget of buffers is used up.
    pub(crate) fn look_at_resources(&self) {
        if let Some(group) = self.find(ACCEPTING).filter(|group| !group.listeners().is_empty()) {
            // A time in the past is due at once.
            group.set_deadline(0, 1);
        }
    }

    /// The group with the fewest connections; `own` if no other one has fewer.
    pub(crate) fn emptiest(&self, own: usize) -> usize {
        let open = |number: usize| self.open[number].0.load(Ordering::Relaxed);
        (0..self.count()).min_by_key(|number| (open(*number), *number != own)).unwrap_or(own)
    }

    /// Makes the health check answer that no new requests should come.
    pub(crate) fn set_unready(&self) {
        self.unready.store(true, Ordering::Release);
    }

    /// Whether the health check answers that requests may come.
    pub(crate) fn is_ready(&self) -> bool {
        !self.unready.load(Ordering::Acquire) && !self.is_draining()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Whether a drain takes the connections that wait at the listeners; otherwise other processes take them.
    pub(crate) fn takes_rest(&self) -> bool {
        self.takes_rest.load(Ordering::SeqCst)
    }

    /// Makes a drain take the waiting connections, since no other process will.
    pub(crate) fn take_rest(&self) {
        self.takes_rest.store(true, Ordering::SeqCst);
    }

    /// Rings for another process, if there are any: the kernel may have woken this one for a connection that it does
    /// not take.
    pub(crate) fn ring(&self) {
        if let Some(bell) = self.accept.bell() {
            bell.ring();
        }
    }

    /// Whether other processes accept at the same addresses.
    pub(crate) fn has_others(&self) -> bool {
        self.accept.bell().is_some()
    }

    /// Notes that this process has taken a connection from a shared listener. Returns whether the previous one was
    /// taken by this process, too.
    pub(crate) fn note_taken(&self) -> bool {
        self.accept.bell().is_some_and(Bell::note_taken)
    }

    /// Begins the drain. Returns false when the drain had begun already.
    pub(crate) fn begin_drain(&self) -> bool {
        !self.draining.swap(true, Ordering::SeqCst)
    }

    /// Whether no connection can be accepted and none is open except abandoned ones.
    fn is_drained(&self) -> bool {
        self.listeners.iter().all(Listening::is_closed) && self.open() == 0
    }

    /// Wakes the thread that waits for the end of the drain.
    pub(crate) fn tell_drained(&self) {
        drop(self.drained.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.drained.1.notify_all();
    }

    /// Waits until the last connection has ended, at most for `limit`. Returns whether the last one has ended.
    pub(crate) fn wait_drained(&self, limit: Duration) -> bool {
        let guard = self.drained.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_guard, timeout) = self
            .drained
            .1
            .wait_timeout_while(guard, limit, |()| !self.is_drained())
            .unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_for_eight_processors_and_none_without_a_thread() {
        let counts = [1, 2, 8, 9, 16, 17, 64].map(|processors| count(0, processors, 10));
        assert_eq!(counts, [1, 1, 1, 2, 2, 3, 8]);
        assert_eq!((count(0, 64, 4), count(3, 2, 10), count(5, 2, 4), count(0, 0, 0)), (4, 3, 4, 1));
    }

    #[test]
    fn what_cannot_be_shared_evenly_goes_to_the_first_ones() {
        assert_eq!([0, 1, 2].map(|index| share(10, index, 3)), [4, 3, 3]);
        assert_eq!([0, 1, 2].map(|index| share(2, index, 3)), [1, 1, 0]);
    }

    #[test]
    fn the_emptiest_group_is_the_own_one_on_a_tie() {
        let groups = Groups::<crate::connection::Connection>::new(
            3,
            Vec::new(),
            Accept::Single,
            ThreadHosts::default(),
        );
        assert_eq!((groups.emptiest(0), groups.emptiest(2)), (0, 2));
        for number in [0, 0, 1, 2] {
            groups.count_opened(number);
        }
        assert_eq!((groups.emptiest(0), groups.emptiest(2), groups.open()), (1, 2, 4));
        groups.count_closed(0);
        assert_eq!((groups.emptiest(0), groups.open()), (0, 3));
    }
}
