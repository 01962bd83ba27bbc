//! One interpreter, shared by the limiters of all pools of a host: the threads that run application code, and samples of their
//! activity. Threads of another host neither are sampled here nor wait for these permits.
//!
//! A sample asks the kernel for the activity of each thread in application code, and moves permits accordingly:
//!
//! ```text
//!                 holds or wants the interpreter            runs without it, or waits
//! Normal          stays; Long once it has computed for long   Released
//! Long            stays                                     Released
//! Released        Normal again, or Long                     stays
//! ```
//! A permit belongs to a pool, so that no pool waits for another one. The permit of long computations belongs to all pools of the host.

use std::sync::{Arc, PoisonError};

use maitred_io::clock;
use maitred_io::sync::Mutex;
use maitred_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use maitred_pool::RouteClass;
use maitred_runtime::InterpreterLock;

use crate::app_thread::{Activity, AppThread, Certainty, Permit, Seen};
use crate::numbers::{DETACHED, LONG};

#[derive(Default)]
pub(super) struct Interpreter {
    lock: Option<Arc<dyn InterpreterLock>>,
    threads: Mutex<Threads>,
    /// Threads in application code that do not poll otherwise: those of named pools, and the reserve thread.
    pub(super) beside: AtomicUsize,
    processors: usize,
    /// Permits of long computations in use.
    longs: AtomicUsize,
    /// When the last of them was given back, in monotonic nanoseconds.
    long_ended: AtomicU64,
}

#[derive(Default)]
struct Threads {
    all: Vec<Arc<AppThread>>,
    /// When the last sample was taken, in monotonic nanoseconds.
    sampled: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Threads in application code that compute or want the interpreter.
    pub(super) busy: usize,
    /// When the one before was taken, in monotonic nanoseconds.
    pub(super) before: u64,
    /// A thread with a permit was seen without the interpreter for the first time: the next sample tells.
    pub(super) unsure: bool,
    /// A long computation may not enter before these requests have had their turn, or have gone to sleep. Only a sample tells the latter.
    pub(super) owed: bool,
}

impl Threads {
    fn inside(&self) -> impl Iterator<Item = &AppThread> {
        self.all.iter().map(|thread| &**thread).filter(|thread| thread.in_application())
    }
}

impl Interpreter {
    /// An interpreter with this lock. Without a lock threads run side by side.
    pub(super) fn new(lock: Option<Arc<dyn InterpreterLock>>) -> Self {
        Self { lock, processors: maitred_io::machine::processors(), ..Self::default() }
    }

    pub(super) fn has_lock(&self) -> bool {
        self.lock.is_some()
    }

    /// Notes the calling thread, of the pool that counts its permits there.
    pub(super) fn add(&self, permits: &Arc<AtomicUsize>) -> Arc<AppThread> {
        let thread = AppThread::own(permits, self.lock.as_deref());
        self.with_threads(|threads| threads.all.push(Arc::clone(&thread)));
        thread
    }

    pub(super) fn remove(&self, thread: &Arc<AppThread>) {
        self.with_threads(|threads| threads.all.retain(|other| !Arc::ptr_eq(thread, other)));
    }

    fn with_threads<T>(&self, act: impl FnOnce(&mut Threads) -> T) -> T {
        act(&mut self.threads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Calls `ask` with the threads in application code.
    pub(super) fn ask_inside<T>(&self, ask: impl FnOnce(&mut dyn Iterator<Item = &AppThread>) -> T) -> T {
        self.with_threads(|threads| ask(&mut threads.inside()))
    }

    /// Whether a thread in application code, other than `own`, computes or wants to. Some microseconds for each thread there.
    pub(super) fn is_busy_beside(&self, own: Option<&AppThread>) -> bool {
        let Some(lock) = self.lock.as_deref() else { return false };
        let is_busy_other = |thread: &AppThread| {
            own.is_none_or(|own| !std::ptr::eq(own, thread)) && thread.activity(lock) != Activity::Waits
        };
        self.with_threads(|threads| threads.inside().any(is_busy_other))
    }

    /// Takes the permit of long computations, if it is free and no request is owed a turn. C code may have kept the interpreter all the
    /// time; then Python gives it to any of those that want it, and one of them would wait for many long computations.
    pub(super) fn take_long(&self) -> bool {
        !self.has_long()
            && !self.with_threads(|threads| threads.inside().any(|thread| self.is_owed_a_turn(thread)))
            && self.claim_long()
    }

    /// Whether a request that computes without the interpreter may enter. A long computation needs a processor as well: as one of ten threads
    /// on two processors it would get a fifth of one.
    pub(super) fn has_processor(&self) -> bool {
        let computes = |thread: &&AppThread| thread.is_of(RouteClass::Parallel) && !thread.waits();
        !self.has_long()
            || self.with_threads(|threads| threads.inside().filter(computes).count()) < self.processors
    }

    fn claim_long(&self) -> bool {
        self.longs.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether its request has waited for long while the last long computation ran, and may want the interpreter still.
    fn is_owed_a_turn(&self, thread: &AppThread) -> bool {
        !thread.is_of(RouteClass::CpuBound) && thread.has_long_wanted(self.long_ended.load(Ordering::SeqCst))
    }

    pub(super) fn give_long_back(&self) {
        self.long_ended.store(clock::monotonic(), Ordering::SeqCst);
        self.longs.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether a long computation holds the interpreter or wants it.
    pub(super) fn has_long(&self) -> bool {
        self.longs.load(Ordering::SeqCst) > 0
    }

    /// As [`sample`](Self::sample), if there was none for [`LONG`].
    pub(super) fn sample_if_due(&self, now: u64) {
        if self.with_threads(|threads| now.saturating_sub(threads.sampled) >= LONG) {
            self.sample(now);
        }
    }

    /// Takes a sample at `now`, in monotonic nanoseconds, and moves permits as it follows.
    pub(super) fn sample(&self, now: u64) -> Sample {
        let Some(lock) = self.lock.as_deref() else { return Sample::default() };
        self.with_threads(|threads| {
            let before = std::mem::replace(&mut threads.sampled, now);
            let (mut busy, mut unsure, mut owed) = (0, false, false);
            for thread in threads.inside() {
                let activity = thread.activity(lock);
                busy += usize::from(activity != Activity::Waits);
                let seen = thread.note(activity, thread.holding(now).map_or(0, |(_, nanos)| nanos));
                let soon = seen.certainty == Certainty::Soon || seen.detached == 1;
                unsure |= soon && matches!(thread.permit(), Permit::Normal | Permit::Long);
                if seen.certainty == Certainty::Certain {
                    self.move_permit(thread, &seen);
                }
                owed |= !self.has_long() && self.is_owed_a_turn(thread);
            }
            Sample { busy, before, unsure, owed }
        })
    }

    fn move_permit(&self, thread: &AppThread, seen: &Seen) {
        match thread.permit() {
            Permit::Normal | Permit::Long if seen.detached >= DETACHED => _ = self.release(thread),
            Permit::Normal if seen.detached == 0 && seen.computed >= LONG && self.claim_long() => {
                if thread.change(Permit::Normal, Permit::Long) {
                    thread.permits.fetch_sub(1, Ordering::SeqCst);
                } else {
                    self.give_long_back();
                }
            }
            Permit::Released if seen.detached == 0 => self.regain(thread),
            _ => {}
        }
    }

    /// Takes the permit from a thread in application code. Whether it had one.
    pub(super) fn release(&self, thread: &AppThread) -> bool {
        if thread.change(Permit::Normal, Permit::Released) {
            thread.permits.fetch_sub(1, Ordering::SeqCst);
            return true;
        }
        let was_long = thread.change(Permit::Long, Permit::Released);
        if was_long {
            self.give_long_back();
        }
        was_long
    }

    /// A thread without a permit uses the interpreter again: it has one again, also one more than there may be.
    fn regain(&self, thread: &AppThread) {
        let (count, permit) = match thread.is_of(RouteClass::CpuBound) {
            true => (&self.longs, Permit::Long),
            false => (&*thread.permits, Permit::Normal),
        };
        count.fetch_add(1, Ordering::SeqCst);
        if !thread.change(Permit::Released, permit) {
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::sync::mpsc;
    use std::thread;

    use super::*;
    use crate::costs;

    /// A lock whose holder the test says; each thread is its own number.
    #[derive(Default)]
    struct Told(AtomicU64);

    fn own_number() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local!(static OWN: u64 = NEXT.fetch_add(1, Ordering::Relaxed));
        OWN.with(|own| *own)
    }

    impl InterpreterLock for Told {
        fn holder(&self) -> u64 {
            self.0.load(Ordering::SeqCst)
        }

        fn own(&self) -> u64 {
            own_number()
        }

        fn is_waited_for(&self, _: i64, _: u64) -> bool {
            false
        }
    }

    /// A thread in application code with a permit, which computes or waits until the sender is dropped.
    struct Inside {
        thread: Arc<AppThread>,
        number: u64,
        /// A message has a thread that computes sleep until the next one.
        end: mpsc::Sender<()>,
        handle: thread::JoinHandle<()>,
    }

    fn enter(interpreter: &Arc<Interpreter>, permits: &Arc<AtomicUsize>, computes: bool) -> Inside {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let (interpreter, permits) = (Arc::clone(interpreter), Arc::clone(permits));
        let begun = Arc::new(AtomicBool::new(false));
        let handle = thread::spawn(move || {
            let own = interpreter.add(&permits);
            permits.fetch_add(1, Ordering::SeqCst);
            assert!(own.change(Permit::None, Permit::Normal));
            own.enter(1, 0, RouteClass::Normal);
            tell.send((own, own_number())).unwrap();
            if computes {
                loop {
                    match ended.try_recv() {
                        Ok(()) => _ = ended.recv(),
                        Err(mpsc::TryRecvError::Empty) => begun.store(true, Ordering::Relaxed),
                        Err(mpsc::TryRecvError::Disconnected) => break,
                    }
                }
            } else {
                ended.recv().unwrap_err();
            }
        });
        let (thread, number) = told.recv().unwrap();
        Inside { thread, number, end, handle }
    }

    /// Samples until the thread does this.
    fn sample_until(interpreter: &Interpreter, inside: &Inside, activity: Activity) {
        let lock = interpreter.lock.as_deref().unwrap();
        while inside.thread.activity(lock) != activity {
            thread::yield_now();
        }
    }

    /// Whether samples have seen it without the interpreter for most of the time.
    fn told(thread: &AppThread) -> bool {
        let mut seen = costs::Seen { nanos: LONG, ..costs::Seen::default() };
        thread.tell(&mut seen);
        seen.without * 2 > seen.samples
    }

    fn leave(inside: Inside) {
        drop(inside.end);
        inside.handle.join().unwrap();
    }

    #[test]
    fn two_samples_without_the_interpreter_take_the_permit_and_using_it_gives_it_back() {
        let lock = Arc::new(Told::default());
        let interpreter = Arc::new(Interpreter::new(Some(lock.clone())));
        let permits = Arc::new(AtomicUsize::new(0));
        for (computes, activity) in [(false, Activity::Waits), (true, Activity::Computes)] {
            let inside = enter(&interpreter, &permits, computes);
            sample_until(&interpreter, &inside, activity);
            assert!(interpreter.sample(1_000_000).unsure);
            assert_eq!((inside.thread.permit(), permits.load(Ordering::SeqCst)), (Permit::Normal, 1));
            if !computes {
                assert!(!interpreter.sample(1_050_000).unsure);
            }
            // One that has no processor hangs the test.
            while inside.thread.permit() == Permit::Normal {
                assert!(!interpreter.sample(1_050_000).unsure);
            }
            assert_eq!((inside.thread.permit(), permits.load(Ordering::SeqCst)), (Permit::Released, 0));
            assert!(told(&inside.thread));
            if computes {
                lock.0.store(inside.number, Ordering::SeqCst);
                sample_until(&interpreter, &inside, Activity::Holds);
                interpreter.sample(1_100_000);
                assert_eq!((inside.thread.permit(), permits.load(Ordering::SeqCst)), (Permit::Normal, 1));
            }
            interpreter.remove(&inside.thread);
            leave(inside);
        }
    }

    #[test]
    fn a_thread_that_has_slept_may_have_been_woken_to_ask_for_the_interpreter() {
        let interpreter = Arc::new(Interpreter::new(Some(Arc::new(Told::default()))));
        let permits = Arc::new(AtomicUsize::new(0));
        let inside = enter(&interpreter, &permits, true);
        for round in 0..10 {
            sample_until(&interpreter, &inside, Activity::Computes);
            let sample = interpreter.sample(1_000_000);
            assert_eq!(sample, Sample { busy: 1, before: sample.before, unsure: round == 0, owed: false });
            assert_eq!(inside.thread.permit(), Permit::Normal);
            inside.end.send(()).unwrap();
            sample_until(&interpreter, &inside, Activity::Waits);
            inside.end.send(()).unwrap();
        }
        let mut seen = costs::Seen::default();
        inside.thread.tell(&mut seen);
        assert_eq!((seen.samples, seen.without), (0, 0), "that tells nothing of it");
        leave(inside);
    }

    #[test]
    fn computed_time_is_processor_time_however_far_apart_samples_are() {
        let lock = Arc::new(Told::default());
        let interpreter = Arc::new(Interpreter::new(Some(lock.clone())));
        let permits = Arc::new(AtomicUsize::new(0));
        let inside = enter(&interpreter, &permits, true);
        let held = || {
            let mut seen = costs::Seen { nanos: u64::MAX, ..costs::Seen::default() };
            inside.thread.tell(&mut seen);
            seen.held
        };
        lock.0.store(inside.number, Ordering::SeqCst);
        sample_until(&interpreter, &inside, Activity::Holds);
        interpreter.sample(10 * LONG);
        assert!(held() < LONG, "it may have waited for it before");
        interpreter.sample(1000 * LONG);
        assert!(held() < 500 * LONG, "time that passes is not what it has computed");
        while held() < LONG {
            interpreter.sample(1000 * LONG);
        }
        leave(inside);
    }

    #[test]
    fn a_long_computation_gives_its_permit_to_others_and_there_is_one() {
        let lock = Arc::new(Told::default());
        let interpreter = Arc::new(Interpreter::new(Some(lock.clone())));
        let permits = Arc::new(AtomicUsize::new(0));
        let inside = enter(&interpreter, &permits, true);
        lock.0.store(inside.number, Ordering::SeqCst);
        sample_until(&interpreter, &inside, Activity::Holds);
        let mut now = 1_000_000;
        interpreter.sample(now);
        while inside.thread.permit() == Permit::Normal {
            now += 500_000;
            interpreter.sample(now);
        }
        assert_eq!((inside.thread.permit(), permits.load(Ordering::SeqCst)), (Permit::Long, 0));
        assert!(interpreter.has_long() && !interpreter.take_long());
        assert!(!told(&inside.thread));
        // It computes without the interpreter then: another one may compute for long.
        lock.0.store(0, Ordering::SeqCst);
        while interpreter.has_long() {
            interpreter.sample(now + 50_000);
        }
        assert!(interpreter.take_long());
        leave(inside);
    }
}
