//! The application threads of a group: who runs, who is parked, what waits.
//!
//! A request runs on the thread that read it. It is queued here only when that thread may not run
//! it (the driver has no interpreter). Idle threads beyond the number that poll are parked,
//! last-in first-out, so that the ones at the bottom reach their idle timeout.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use maitred_io::parker::Parker;
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use maitred_io::sync::{Mutex, MutexGuard};

use super::gate::Gate;

/// What has to be done so that a queued request is run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// An idle thread has been unparked.
    Unparked,
    /// One more thread must be made; it is counted already.
    Spawn,
    /// Every thread there may be exists: the next one that finishes looks at the queue.
    Nothing,
}

/// The queue and the threads.
pub(crate) struct Pool<J> {
    state: Mutex<State<J>>,
    /// For a language with one interpreter; unused otherwise.
    pub(super) gate: Gate,
    /// The length of the queue, to look at without the lock.
    queued: AtomicUsize,
    min: usize,
    max: usize,
}

pub(super) struct State<J> {
    pub(super) queue: VecDeque<J>,
    pub(super) parked: Vec<Arc<Place>>,
    /// Threads that run or have been asked for.
    threads: usize,
    /// Threads asked for that have not begun.
    starting: usize,
    stopping: bool,
    /// Threads ever asked for, for their names.
    made: usize,
}

/// Where one thread sleeps.
#[derive(Default)]
pub(super) struct Place {
    pub(super) parker: Parker,
    /// It was called to watch.
    watch: AtomicBool,
}

impl Place {
    pub(super) fn call(&self) {
        self.parker.unpark();
    }

    pub(super) fn watch(&self) {
        self.watch.store(true, Ordering::SeqCst);
        self.parker.unpark();
    }

    /// Whether the thread was called to watch; asked once.
    pub(super) fn take_watch(&self) -> bool {
        self.watch.swap(false, Ordering::SeqCst)
    }
}

/// Why a parked thread goes on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// There is something to do.
    Called,
    /// It has been idle long enough and may end; it is not counted any more.
    Superfluous,
}

impl<J> Pool<J> {
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn new(min: usize, max: usize) -> io::Result<Self> {
        let state = State {
            queue: VecDeque::new(),
            parked: Vec::new(),
            threads: 0,
            starting: 0,
            stopping: false,
            made: 0,
        };
        Ok(Self { state: Mutex::new(state), gate: Gate::new()?, queued: AtomicUsize::new(0), min, max })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a request.
    pub(crate) fn submit(&self, job: J) -> Call {
        let mut state = self.lock();
        self.push(&mut state, job);
        let wanted = state.queue.len();
        self.call(&mut state, wanted)
    }

    pub(super) fn push(&self, state: &mut State<J>, job: J) {
        state.queue.push_back(job);
        self.queued.store(state.queue.len(), Ordering::SeqCst);
    }

    pub(super) fn pop_from(&self, state: &mut State<J>) -> Option<J> {
        let job = state.queue.pop_front();
        self.queued.store(state.queue.len(), Ordering::SeqCst);
        job
    }

    /// Calls a thread that can poll: the thread that did is stuck in application code.
    pub(crate) fn call_poller(&self) -> Call {
        self.call(&mut self.lock(), 1)
    }

    fn call(&self, state: &mut State<J>, wanted: usize) -> Call {
        if let Some(place) = state.parked.pop() {
            place.call();
            return Call::Unparked;
        }
        // A thread on its way will look at the queue: one for each waiting request is enough.
        if state.threads < self.max && state.starting < wanted && !state.stopping {
            state.threads += 1;
            state.starting += 1;
            return Call::Spawn;
        }
        Call::Nothing
    }

    /// Drops all waiting requests.
    pub(crate) fn discard(&self) {
        let mut state = self.lock();
        let queue = std::mem::take(&mut state.queue);
        self.queued.store(0, Ordering::SeqCst);
        // A request that is dropped is answered: not under the lock.
        drop(state);
        drop(queue);
    }

    /// The oldest waiting request.
    pub(crate) fn pop(&self) -> Option<J> {
        if self.queued.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.pop_from(&mut self.lock())
    }

    /// Counts a thread that must be made at the start.
    pub(crate) fn claim_initial(&self) -> bool {
        let mut state = self.lock();
        let wanted = state.threads < self.min;
        if wanted {
            state.threads += 1;
            state.starting += 1;
        }
        wanted
    }

    /// A number for the next thread's name.
    pub(crate) fn number(&self) -> usize {
        let mut state = self.lock();
        state.made += 1;
        state.made
    }

    /// A thread has begun.
    pub(crate) fn started(&self) {
        self.lock().starting -= 1;
    }

    /// A thread could not be made.
    pub(crate) fn not_started(&self) {
        let mut state = self.lock();
        state.starting -= 1;
        state.threads -= 1;
    }

    /// A thread has ended for a reason other than idleness.
    pub(crate) fn ended(&self) {
        self.lock().threads -= 1;
    }

    /// Sleeps until called, if `still_idle` says so under the lock, where it is told whether requests
    /// wait: a caller that made work before it looked for parked threads is not missed.
    pub(super) fn park(
        &self,
        place: &Arc<Place>,
        limit: Duration,
        still_idle: impl FnOnce(bool) -> bool,
    ) -> Parked {
        {
            let mut state = self.lock();
            if state.stopping || !still_idle(!state.queue.is_empty()) {
                return Parked::Called;
            }
            state.parked.push(Arc::clone(place));
        }
        if place.parker.park(Some(limit)) {
            return Parked::Called;
        }
        let mut state = self.lock();
        let Some(index) = state.parked.iter().position(|other| Arc::ptr_eq(other, place)) else {
            // Called in the moment in which the limit was reached: take the call.
            drop(state);
            place.parker.park(Some(Duration::ZERO));
            return Parked::Called;
        };
        state.parked.remove(index);
        if state.threads > self.min {
            state.threads -= 1;
            return Parked::Superfluous;
        }
        Parked::Called
    }

    /// No thread parks any more; all that do are called.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopping = true;
        for place in state.parked.drain(..) {
            place.call();
        }
    }

    /// Threads that exist or have been asked for.
    pub(crate) fn threads(&self) -> usize {
        self.lock().threads
    }

    /// Whether there is never more than one thread.
    pub(super) fn is_single(&self) -> bool {
        self.max == 1
    }

    /// Requests that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queued.load(Ordering::SeqCst)
    }
}
