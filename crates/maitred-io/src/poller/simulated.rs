//! A readiness queue in memory, for tests under the shuttle scheduler. Sockets and timers are not
//! simulated: events are posted by the test, and wakers work as they do on Linux.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::{Interest, Readiness};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Events of one wait.
pub struct Events {
    list: Vec<(u64, Readiness)>,
    most: usize,
}

impl Events {
    /// Room for `most` events a wait.
    pub fn with_capacity(most: usize) -> Self {
        Self { list: Vec::new(), most }
    }

    /// The events of the last wait.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Readiness)> + Clone + '_ {
        self.list.iter().copied()
    }
}

/// A readiness queue.
#[derive(Default)]
pub struct Poller {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    edges: VecDeque<u64>,
    /// Tokens of wakers that are set and watched as a level.
    levels: Vec<u64>,
    /// Wake-ups of the waker that is watched beside the queue.
    watched: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no panic under the lock")
    }
}

impl Poller {
    /// A new queue.
    pub fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    /// Reports an edge under `token`.
    pub fn post(&self, token: u64) {
        self.shared.lock().edges.push_back(token);
        self.shared.changed.notify_all();
    }

    /// Sockets are not simulated.
    pub fn add(&self, _source: impl AsFd, _token: u64, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    /// Sockets are not simulated.
    pub fn modify(&self, _source: impl AsFd, _token: u64, _interest: Interest) -> io::Result<()> {
        Ok(())
    }

    /// Sockets are not simulated.
    pub fn remove(&self, _source: impl AsFd) -> io::Result<()> {
        Ok(())
    }

    /// Watches a waker under `token`.
    pub fn add_waker(&self, waker: &Waker, token: u64, interest: Interest) -> io::Result<()> {
        let level = interest == Interest::ReadLevel;
        waker.lock().watchers.push(Watcher { queue: Arc::clone(&self.shared), token, level });
        Ok(())
    }

    /// Waits until there is an event to fetch or `waker` is set.
    pub fn watch(&self, waker: &Waker) -> io::Result<()> {
        *waker.beside.lock().expect("no panic under the lock") = Some(Arc::clone(&self.shared));
        let mut queue = self.shared.lock();
        // A wake-up after this point raises the count under the lock; one before it has set the waker.
        let before = queue.watched;
        if waker.is_set() {
            return Ok(());
        }
        while queue.edges.is_empty() && queue.levels.is_empty() && queue.watched == before {
            queue = self.shared.changed.wait(queue).expect("no panic under the lock");
        }
        Ok(())
    }

    /// Whether there is an event to fetch.
    pub fn is_readable(&self) -> bool {
        let queue = self.shared.lock();
        !queue.edges.is_empty() || !queue.levels.is_empty()
    }

    /// Waits until something happens and fills `events`. Any limit counts as zero.
    pub fn wait(&self, events: &mut Events, limit: Option<Duration>) -> io::Result<()> {
        events.list.clear();
        let mut queue = self.shared.lock();
        while limit.is_none() && queue.edges.is_empty() && queue.levels.is_empty() {
            queue = self.shared.changed.wait(queue).expect("no panic under the lock");
        }
        events.list.extend(queue.levels.iter().map(|token| (*token, Readiness::READABLE)));
        while events.list.len() < events.most {
            let Some(token) = queue.edges.pop_front() else { break };
            events.list.push((token, Readiness::READABLE));
        }
        Ok(())
    }
}

/// Wakes a thread that waits on a poller.
#[derive(Default)]
pub struct Waker {
    state: Mutex<WakerState>,
    set: Mutex<bool>,
    beside: Mutex<Option<Arc<Shared>>>,
}

#[derive(Default)]
struct WakerState {
    watchers: Vec<Watcher>,
}

struct Watcher {
    queue: Arc<Shared>,
    token: u64,
    level: bool,
}

impl Waker {
    /// A waker, to be added to a poller by [`Poller::add_waker`].
    pub fn new() -> io::Result<Self> {
        Ok(Self::default())
    }

    fn lock(&self) -> MutexGuard<'_, WakerState> {
        self.state.lock().expect("no panic under the lock")
    }

    fn is_set(&self) -> bool {
        *self.set.lock().expect("no panic under the lock")
    }

    /// Wakes.
    pub fn wake(&self) {
        *self.set.lock().expect("no panic under the lock") = true;
        for watcher in &self.lock().watchers {
            let mut queue = watcher.queue.lock();
            if watcher.level {
                queue.levels.push(watcher.token);
            } else {
                queue.edges.push_back(watcher.token);
            }
            drop(queue);
            watcher.queue.changed.notify_all();
        }
        if let Some(queue) = &*self.beside.lock().expect("no panic under the lock") {
            queue.lock().watched += 1;
            queue.changed.notify_all();
        }
    }

    /// Takes all wake-ups back.
    pub fn clear(&self) {
        *self.set.lock().expect("no panic under the lock") = false;
    }
}

impl From<OwnedFd> for Waker {
    /// Nothing of a simulation has a descriptor.
    fn from(_event: OwnedFd) -> Self {
        Self::default()
    }
}

/// One timer; never rings.
#[derive(Default)]
pub struct Alarm;

impl Alarm {
    /// A timer that is not set.
    pub fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Timers are not simulated.
    pub fn set(&self, _deadline: u64) {}

    /// Over whenever the scheduler comes back to this thread.
    pub fn wait(&self) {
        crate::sync::thread::yield_now();
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        no_descriptor()
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        no_descriptor()
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        no_descriptor()
    }
}

/// Nothing of a simulation has a descriptor; this one is never used.
fn no_descriptor() -> std::os::fd::BorrowedFd<'static> {
    static STANDARD: std::sync::OnceLock<std::io::Stdin> = std::sync::OnceLock::new();
    STANDARD.get_or_init(std::io::stdin).as_fd()
}
