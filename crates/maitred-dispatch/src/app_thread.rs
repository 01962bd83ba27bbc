//! The scheduler's record of one application thread: its permit, its request, and its activity at this moment.

use std::sync::Arc;

use maitred_io::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use maitred_io::thread_state::{Doing, ThreadState};
use maitred_pool::RouteClass;
use maitred_runtime::InterpreterLock;

use crate::costs;
use crate::numbers::{DETACHED, FIRST_PAUSE, LONG};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Permit {
    /// The thread is neither in application code nor entering.
    None,
    Normal,
    Long,
    /// The thread is in application code, or entering, and not counted: it does without the interpreter, or was let in beside the permit.
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    Holds,
    Wants,
    /// The thread runs, or would if it had a processor, without the interpreter: in the engine, or in C code that has given it up.
    Computes,
    /// The thread waits for something else, or its state is unknown.
    Waits,
}

pub(super) struct Seen {
    /// Time for which samples have seen the request compute, in nanoseconds.
    pub(super) computed: u64,
    /// The last samples in a row in which it neither held the interpreter nor wanted it.
    pub(super) detached: u64,
    pub(super) certainty: Certainty,
}

/// Whether a sample tells if a thread does without the interpreter. A thread that waits for the interpreter wakes to ask for it, and stands
/// in the run queue for milliseconds where all processors are busy: it looks like a thread that computes without the interpreter. The latter
/// has had a processor between two samples, and has not slept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    /// The thread has just begun to run: the next sample tells.
    Soon,
    /// The thread has had no processor since, or has slept.
    Open,
}

pub(super) struct AppThread {
    permit: AtomicU8,
    /// Permits in use in its pool.
    pub(super) permits: Arc<AtomicUsize>,
    /// When it entered application code, in monotonic nanoseconds; 0 while it is not there.
    entered: AtomicU64,
    class: AtomicU8,
    /// The route of the request; 0 if the route is not known.
    route: AtomicU64,
    samples: Samples,
    /// Since when the peer of its response has taken nothing, in monotonic nanoseconds; 0 while the thread does not wait for a peer.
    peer_idle: AtomicU64,
    state: ThreadState,
    /// The thread's identity in the interpreter's lock.
    key: u64,
}

/// The samples of a thread in application code with its present request. Times are in nanoseconds.
#[derive(Default)]
struct Samples {
    count: AtomicU64,
    /// How long they have seen it compute, and hold the interpreter.
    computed: AtomicU64,
    held: AtomicU64,
    /// The last of them has seen it wait.
    waits: AtomicBool,
    /// The processor time of the thread at the last of them; 0 before the first.
    processor: AtomicU64,
    /// Those that have seen it without the interpreter, and those of the latter that have seen it compute.
    without: AtomicU64,
    parallel: AtomicU64,
    /// The last ones in a row that have seen it neither hold the interpreter nor want it.
    detached: AtomicU64,
    /// How often it had gone to sleep, and one more, when it was first seen to run without the interpreter; 0 while it does not.
    slept: AtomicU64,
}

impl Samples {
    fn clear(&self) {
        let Self { count, computed, held, processor, without, parallel, waits, detached, slept } = self;
        for number in [count, computed, held, processor, without, parallel, detached, slept] {
            number.store(0, Ordering::Relaxed);
        }
        waits.store(false, Ordering::Relaxed);
    }
}

impl AppThread {
    pub(super) fn own(permits: &Arc<AtomicUsize>, lock: Option<&dyn InterpreterLock>) -> Arc<Self> {
        Arc::new(Self {
            permit: AtomicU8::new(Permit::None as u8),
            permits: Arc::clone(permits),
            entered: AtomicU64::new(0),
            class: AtomicU8::new(RouteClass::Normal as u8),
            route: AtomicU64::new(0),
            samples: Samples::default(),
            peer_idle: AtomicU64::new(0),
            state: ThreadState::own(),
            key: lock.map_or(0, InterpreterLock::own),
        })
    }

    pub(super) fn permit(&self) -> Permit {
        match self.permit.load(Ordering::SeqCst) {
            0 => Permit::None,
            1 => Permit::Normal,
            2 => Permit::Long,
            _ => Permit::Released,
        }
    }

    /// Changes the permit if it is still `from`. The thread itself and a thread that samples may do so at the same time.
    pub(super) fn change(&self, from: Permit, to: Permit) -> bool {
        self.permit.compare_exchange(from as u8, to as u8, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub(super) fn enter(&self, now: u64, route: u64, class: RouteClass) {
        self.samples.clear();
        self.peer_idle.store(0, Ordering::Relaxed);
        self.class.store(class as u8, Ordering::Relaxed);
        self.route.store(route, Ordering::Relaxed);
        // 0 says that it is not there.
        self.entered.store(now.max(1), Ordering::Release);
    }

    pub(super) fn leave(&self) {
        self.entered.store(0, Ordering::Release);
    }

    pub(super) fn in_application(&self) -> bool {
        self.entered.load(Ordering::Acquire) != 0
    }

    /// Notes since when the peer of its response has taken nothing; none if the thread does not wait for a peer.
    pub(super) fn note_peer(&self, idle_since: Option<u64>) {
        self.peer_idle.store(idle_since.map_or(0, |since| since.max(1)), Ordering::Relaxed);
    }

    /// The time noted by [`note_peer`](Self::note_peer).
    pub(super) fn peer_idle_since(&self) -> Option<u64> {
        let since = self.peer_idle.load(Ordering::Relaxed);
        (since != 0).then_some(since)
    }

    /// Whether its request had been in application code for long by `then`, and was not last seen to do without the interpreter.
    pub(super) fn has_long_wanted(&self, then: u64) -> bool {
        let entered = self.entered.load(Ordering::Acquire);
        entered != 0
            && then.saturating_sub(entered) >= LONG
            && self.samples.detached.load(Ordering::Relaxed) == 0
    }

    pub(super) fn is_of(&self, class: RouteClass) -> bool {
        self.class.load(Ordering::Relaxed) == class as u8
    }

    pub(super) fn waits(&self) -> bool {
        self.samples.waits.load(Ordering::Relaxed)
    }

    /// The route of its request, and for how long it has been in application code at `now`; `None` if it is not.
    pub(super) fn holding(&self, now: u64) -> Option<(u64, u64)> {
        let entered = self.entered.load(Ordering::Acquire);
        (entered != 0).then(|| (self.route.load(Ordering::Relaxed), now.saturating_sub(entered)))
    }

    /// As the kernel and the interpreter's lock report it now. Some microseconds.
    pub(super) fn activity(&self, lock: &dyn InterpreterLock) -> Activity {
        match self.state.now() {
            Doing::Runs if lock.holder() == self.key => Activity::Holds,
            Doing::Runs => Activity::Computes,
            Doing::Sleeps { call, argument } if lock.is_waited_for(call, argument) => Activity::Wants,
            Doing::Sleeps { .. } | Doing::Unknown => Activity::Waits,
        }
    }

    /// Notes a sample of the thread, `nanos` after its request has entered. From the first sample on the kernel counts
    /// the time on a processor; before that the thread may have waited.
    pub(super) fn note(&self, activity: Activity, nanos: u64) -> Seen {
        let Samples { count, computed, held, processor, without, parallel, waits, detached, slept } =
            &self.samples;
        let add = |number: &AtomicU64, more| number.fetch_add(more, Ordering::Relaxed) + more;
        let runs = matches!(activity, Activity::Holds | Activity::Computes);
        waits.store(activity == Activity::Waits, Ordering::Relaxed);
        let time = self.state.processor_ns();
        let before = match processor.swap(time, Ordering::Relaxed) {
            0 if runs => time.saturating_sub(nanos.min(FIRST_PAUSE)),
            0 => time,
            before => before,
        };
        let nanos = time.saturating_sub(before);
        let computed = add(computed, nanos);
        let row = detached.load(Ordering::Relaxed);
        let was_open = row == 0 && slept.load(Ordering::Relaxed) != 0;
        let certainty = self.certainty(activity, nanos);
        let is_certain = certainty == Certainty::Certain;
        // Without a certain sample, the last known activity stays.
        let is_away =
            if is_certain { !matches!(activity, Activity::Holds | Activity::Wants) } else { row > 0 };
        if row == 0 && !is_away {
            add(held, nanos);
        }
        if !is_certain {
            return Seen { computed, detached: row, certainty };
        }
        // The sample that has seen it begin to run without the interpreter counts now.
        let samples = if was_open && is_away { 2 } else { 1 };
        add(count, samples);
        add(without, if is_away { samples } else { 0 });
        add(parallel, if activity == Activity::Computes { samples } else { 0 });
        let row = if is_away { row + samples } else { 0 };
        detached.store(row, Ordering::Relaxed);
        Seen { computed, detached: row, certainty }
    }

    /// How far this activity can be trusted. The thread has had a processor for `nanos` since the last sample.
    fn certainty(&self, activity: Activity, nanos: u64) -> Certainty {
        if activity != Activity::Computes {
            self.samples.slept.store(0, Ordering::Relaxed);
            return Certainty::Certain;
        }
        let first = self.samples.slept.load(Ordering::Relaxed);
        match first {
            0 => {}
            _ if nanos == 0 => return Certainty::Open,
            // The answer is known since the first samples, and costs more than the rest of a sample.
            _ if self.samples.detached.load(Ordering::Relaxed) >= DETACHED => return Certainty::Certain,
            _ => {}
        }
        let slept = self.state.sleeps() + 1;
        self.samples.slept.store(slept, Ordering::Relaxed);
        match first {
            0 => Certainty::Soon,
            _ if first == slept => Certainty::Certain,
            _ => Certainty::Open,
        }
    }

    pub(super) fn tell(&self, request: &mut costs::Seen) {
        let Samples { count, computed, held, without, parallel, .. } = &self.samples;
        request.computed = computed.load(Ordering::Relaxed).min(request.nanos);
        request.held = held.load(Ordering::Relaxed).min(request.nanos);
        let samples = count.load(Ordering::Relaxed);
        if samples > 0 {
            (request.samples, request.without) = (samples, without.load(Ordering::Relaxed));
            request.parallel = parallel.load(Ordering::Relaxed);
        }
    }
}
