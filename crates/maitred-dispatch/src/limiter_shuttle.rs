//! The rule of the limiter, sentence by sentence, and its counts under many interleavings. The tests give the results
//! of samples.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use maitred_io::sync::{schedules, thread};
use maitred_pool::PoolLimits;
use maitred_pool::RouteClass::{self, Blocking, CpuBound, Normal, Parallel};
use maitred_runtime::InterpreterLock;

use crate::app_thread::{AppThread, Permit};
use crate::interpreter::Interpreter;
use crate::limiter::{Admitted, Limiter, Monitored, Monitoring};
use crate::numbers::{FIRST_PAUSE, LONG};
use crate::pool::{Errand, Pool, Slot};
use crate::sample_timer::Pause;

/// Later than the simulated clock, which all tests of the process move: a request that begins then has lasted for no
/// time at all.
const FUTURE: u64 = u64::MAX / 2;

/// The number of samples after which it is known that a thread does without the interpreter: between two of them it may
/// have had no processor.
const SURE: usize = 10;

/// All threads in application code have or want the interpreter, or none.
#[derive(Default)]
struct Told(AtomicBool);

impl InterpreterLock for Told {
    fn holder(&self) -> u64 {
        self.0.load(SeqCst).into()
    }

    fn own(&self) -> u64 {
        1
    }

    fn is_waited_for(&self, _: i64, _: u64) -> bool {
        self.0.load(SeqCst)
    }
}

struct Rig {
    lock: Arc<Told>,
    pool: Arc<Pool<u32>>,
}

impl Rig {
    /// A pool of up to four threads; `attached`: samples say that all of them have or want the interpreter.
    fn new(attached: bool) -> Self {
        let lock = Arc::new(Told(AtomicBool::new(attached)));
        let interpreter = Arc::new(Interpreter::new(Some(lock.clone())));
        let limits =
            PoolLimits { max_threads: 4, thread_idle: Duration::from_secs(3600), ..PoolLimits::default() };
        let pool = Pool::new("rig", limits, true, Limiter::new(&interpreter).expect("simulated"));
        Self { lock, pool: Arc::new(pool) }
    }

    /// A thread in application code with a request of this class.
    fn enter(&self, class: RouteClass) -> Arc<AppThread> {
        let thread = self.pool.limiter.add();
        assert!(self.pool.limiter.admit(&thread, class), "{class:?} enters");
        thread.enter(FUTURE, 0, class);
        thread
    }

    fn arrive(&self, job: u32, class: RouteClass) -> (Arc<AppThread>, Admitted<u32>) {
        let thread = self.pool.limiter.add();
        let admitted = self.pool.arrive(job, class, &thread, 1);
        (thread, admitted)
    }

    fn permits(&self) -> usize {
        self.pool.limiter.permits.load(SeqCst)
    }

    fn is_at_rest(&self) -> bool {
        let limiter = &self.pool.limiter;
        self.permits() == 0 && !limiter.interpreter.has_long() && !limiter.is_monitored()
    }
}

fn check(scenario: impl Fn() + Send + Sync + 'static) {
    shuttle::check_random(scenario, schedules(1_000));
}

#[test]
fn a_usual_request_enters_when_the_permit_is_free() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        let (_, first) = rig.arrive(1, Normal);
        let (_, second) = rig.arrive(2, Normal);
        assert_eq!((first, second), (Admitted::Monitor, Admitted::Park));
        assert!(rig.pool.limiter.is_monitored() && rig.pool.wake_monitor(), "one is enough");
        inside.leave();
        // The thread that leaves has the permit again with the request that has come first.
        assert_eq!(rig.pool.leave(&inside), Some(1));
        assert_eq!((inside.permit(), rig.permits()), (Permit::Normal, 1));
        assert_eq!((rig.pool.leave(&inside), rig.pool.leave(&inside)), (Some(2), None));
        assert_eq!((inside.permit(), rig.permits()), (Permit::None, 0));
    });
}

#[test]
fn a_usual_request_enters_beside_a_long_computation() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        let long = rig.enter(CpuBound);
        assert_eq!(rig.arrive(1, CpuBound).1, Admitted::Monitor, "one long computation at a time");
        assert_eq!(rig.permits(), 1, "it needs no permit of usual ones");
        let (thread, admitted) = rig.arrive(2, Normal);
        // The first request in the queue has no right to enter, and the usual one is passed on.
        assert_eq!((admitted, thread.permit()), (Admitted::Run(2), Permit::Released));
        long.leave();
        assert_eq!(rig.pool.leave(&long), Some(1));
        assert_eq!(long.permit(), Permit::Long);
        for thread in [&inside, &long, &thread] {
            rig.pool.limiter.give_back(thread);
        }
        assert!(rig.permits() == 0 && !rig.pool.limiter.interpreter.has_long());
    });
}

#[test]
fn a_long_computation_lets_requests_go_first_that_waited_for_the_last_one() {
    check(|| {
        let rig = Rig::new(true);
        let began = clock::monotonic();
        let (long, kept) = (rig.enter(CpuBound), rig.enter(Normal));
        kept.enter(began, 0, Normal);
        while clock::monotonic() < began + LONG {}
        let (monitor, admitted) = rig.arrive(1, CpuBound);
        assert_eq!(admitted, Admitted::Monitor);
        long.leave();
        assert_eq!(rig.pool.leave(&long), None, "C code has kept the interpreter");
        let mut monitoring = Monitoring::begin(FUTURE);
        let mut step = |moving| rig.pool.monitor(&monitor, &mut monitoring, moving);
        assert!(
            matches!(step(false), Monitored::Pause(Pause { nanos: FIRST_PAUSE, .. })),
            "the next sample decides"
        );
        assert!(!rig.pool.limiter.interpreter.has_long());
        // It has had its turn, and waits for something else.
        rig.lock.0.store(false, SeqCst);
        assert!((0..SURE).any(|_| matches!(step(true), Monitored::Run(1))), "although others begin and end");
        assert_eq!(monitor.permit(), Permit::Long);
        for thread in [&monitor, &kept] {
            rig.pool.limiter.give_back(thread);
        }
        assert!(rig.is_at_rest());
        let young = rig.enter(Normal);
        young.enter(clock::monotonic(), 0, Normal);
        assert!(rig.pool.limiter.interpreter.take_long(), "it has not waited for long");
    });
}

#[test]
fn a_request_that_waits_enters_at_once_and_from_the_queue_too() {
    check(|| {
        let rig = Rig::new(true);
        let _inside = rig.enter(Normal);
        let (thread, admitted) = rig.arrive(1, Blocking);
        assert_eq!((admitted, thread.permit(), rig.permits()), (Admitted::Run(1), Permit::Released, 1));
        assert_eq!(rig.arrive(2, Normal).1, Admitted::Monitor);
        let (thread, admitted) = rig.arrive(3, Blocking);
        assert_eq!((admitted, thread.permit()), (Admitted::Run(3), Permit::Released), "it is passed over");
    });
}

#[test]
fn a_long_computation_has_a_processor_beside_requests_that_compute_without_the_interpreter() {
    check(|| {
        let rig = Rig::new(true);
        let processors = maitred_io::machine::processors();
        let mut inside: Vec<_> = (0..=processors).map(|_| rig.enter(Parallel)).collect();
        let long = rig.enter(CpuBound);
        let (thread, admitted) = rig.arrive(1, Parallel);
        assert_eq!((admitted, thread.permit()), (Admitted::Monitor, Permit::None));
        for _ in 0..2 {
            let thread = inside.pop().expect("one more than there are processors");
            assert!(!rig.pool.limiter.admit_next(&rig.pool.limiter.add(), Parallel));
            thread.leave();
            rig.pool.limiter.give_back(&thread);
        }
        assert!(rig.pool.limiter.admit_next(&thread, Parallel));
        rig.pool.end_monitoring();
        rig.pool.limiter.give_back(&long);
        inside.push(thread);
        inside.push(rig.enter(Parallel));
        inside.push(rig.enter(Parallel));
        assert!(inside.iter().all(|thread| thread.permit() == Permit::Released));
    });
}

#[test]
fn the_last_thread_takes_the_first_request() {
    check(|| {
        let rig = Rig::new(true);
        let _inside = rig.enter(Normal);
        for (job, class) in [(1, Normal), (2, Blocking)] {
            assert!(rig.pool.enqueue_limited(job, class, 1).is_ok());
        }
        let thread = rig.pool.limiter.add();
        assert_eq!(rig.pool.look(&thread), Some(Admitted::Run(1)));
        assert_eq!(thread.permit(), Permit::Released);
    });
}

#[test]
fn a_thread_that_goes_on_leaves_other_classes_to_others_if_there_are_any() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        for (job, class) in [(1, Blocking), (2, CpuBound), (3, Normal)] {
            assert!(rig.pool.enqueue_limited(job, class, job.into()).is_ok());
        }
        assert!(rig.pool.begin_monitoring());
        assert_eq!(rig.pool.next_in_turn(&inside), Some(3));
        assert_eq!((inside.permit(), rig.permits()), (Permit::Normal, 1));
        rig.pool.end_monitoring();
        assert_eq!(rig.pool.next_in_turn(&inside), Some(1));
        assert_eq!((inside.permit(), rig.permits()), (Permit::Released, 0));
        rig.pool.limiter.give_back(&inside);
        let other = rig.enter(Normal);
        assert_eq!(rig.pool.next_in_turn(&other), Some(2));
        assert_eq!((other.permit(), rig.permits()), (Permit::Long, 0));
        assert!(rig.pool.limiter.interpreter.has_long());
    });
}

#[test]
fn a_monitor_enters_when_samples_see_no_thread_with_the_interpreter() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        let (thread, admitted) = rig.arrive(1, Normal);
        assert_eq!(admitted, Admitted::Monitor);
        let mut monitoring = Monitoring::begin(FUTURE);
        let mut step = || rig.pool.monitor(&thread, &mut monitoring, false);
        assert!(matches!(step(), Monitored::Pause(_)) && rig.permits() == 1);
        rig.lock.0.store(false, SeqCst);
        assert!(matches!(step(), Monitored::Pause(_)), "one sample is chance");
        assert_eq!((inside.permit(), rig.permits()), (Permit::Normal, 1));
        assert!((0..SURE).any(|_| matches!(step(), Monitored::Run(1))));
        assert_eq!((inside.permit(), thread.permit(), rig.permits()), (Permit::Released, Permit::Normal, 1));
        assert!(!rig.pool.limiter.is_monitored());
        // It uses the interpreter again: there is one permit too many, and the next one that ends gives it up.
        rig.lock.0.store(true, SeqCst);
        rig.pool.limiter.interpreter.sample(LONG);
        assert_eq!((inside.permit(), rig.permits()), (Permit::Normal, 2));
        inside.leave();
        assert!(!rig.pool.limiter.may_go_on(&inside), "too many");
        assert!(rig.pool.limiter.may_go_on(&thread), "one");
        rig.pool.limiter.give_back(&thread);
        assert!(rig.is_at_rest());
    });
}

#[test]
fn a_monitor_ends_when_nothing_waits_and_lets_one_enter_when_all_stands_still() {
    check(|| {
        let rig = Rig::new(true);
        // The samples do not see this thread.
        let hidden = rig.pool.limiter.add();
        assert!(rig.pool.limiter.admit(&hidden, Normal));
        let (thread, _) = rig.arrive(1, Normal);
        let mut monitoring = Monitoring::begin(clock::monotonic());
        let mut step = || rig.pool.monitor(&thread, &mut monitoring, false);
        assert!((0..1_000).any(|_| matches!(step(), Monitored::Run(1))), "whatever samples say");
        assert_eq!((thread.permit(), rig.permits()), (Permit::Released, 1));
        rig.pool.limiter.give_back(&thread);
        assert!(rig.pool.begin_monitoring() && !rig.pool.begin_monitoring());
        let mut monitoring = Monitoring::begin(clock::monotonic());
        assert!(matches!(rig.pool.monitor(&thread, &mut monitoring, false), Monitored::Idle));
        rig.pool.limiter.give_back(&hidden);
        assert!(rig.is_at_rest());
    });
}

#[test]
fn one_parked_thread_is_woken_to_monitor() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        let pool = Arc::clone(&rig.pool);
        let parked = thread::spawn(move || {
            let errand = pool.park(&Slot::default(), |_| !pool.limiter.is_monitored());
            // It may have seen by itself that there is a monitor, but only it can have been made one.
            assert!(matches!(errand, Errand::Monitor), "it is the one");
            assert!(pool.limiter.is_monitored());
            pool.end_monitoring();
        });
        while !rig.pool.wake_monitor() {
            thread::yield_now();
        }
        parked.join().expect("no thread fails");
        inside.leave();
        rig.pool.limiter.give_back(&inside);
        assert!(rig.is_at_rest());
    });
}

/// Threads enter, go on and leave while samples say now this, now that: nothing is counted twice, or not at all.
#[test]
fn the_counts_of_permits_are_those_of_threads_that_have_one() {
    const CLASSES: [[RouteClass; 3]; 3] =
        [[Normal, Normal, CpuBound], [Normal, Blocking, Normal], [CpuBound, Normal, CpuBound]];
    // With `forces` there are more permits than there may be, as the reserve thread has one.
    let scenario = |forces: bool| {
        let rig = Rig::new(true);
        let left = Arc::new(AtomicUsize::new(CLASSES.len()));
        let threads = CLASSES.map(|classes| {
            let (pool, left) = (Arc::clone(&rig.pool), Arc::clone(&left));
            thread::spawn(move || {
                let own = pool.limiter.add();
                for class in classes {
                    match pool.limiter.admit_next(&own, class) {
                        true => {}
                        false if forces => pool.limiter.force(&own),
                        false => continue,
                    }
                    own.enter(1, 0, class);
                    thread::yield_now();
                    own.leave();
                    pool.limiter.may_go_on(&own);
                }
                pool.limiter.remove(&own);
                left.fetch_sub(1, SeqCst);
            })
        });
        let mut now = 1;
        while left.load(SeqCst) > 0 {
            rig.pool.limiter.interpreter.sample(now);
            now += LONG;
            rig.lock.0.fetch_xor(true, SeqCst);
        }
        threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        assert!(rig.is_at_rest(), "{} permits are left", rig.permits());
    };
    check(move || scenario(false));
    check(move || scenario(true));
}

/// Without samples that move permits there is one usual request in application code, and one long computation.
#[test]
fn one_thread_at_a_time_has_a_permit() {
    check(|| {
        let rig = Rig::new(true);
        let inside = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let threads = [[Normal, CpuBound], [CpuBound, Normal], [Normal, Normal]].map(|classes| {
            let (pool, inside) = (Arc::clone(&rig.pool), Arc::clone(&inside));
            thread::spawn(move || {
                let own = pool.limiter.add();
                for class in classes {
                    if !pool.limiter.admit_next(&own, class) {
                        continue;
                    }
                    let counter = match own.permit() {
                        Permit::Normal => &inside[0],
                        Permit::Long => &inside[1],
                        Permit::Released => continue,
                        Permit::None => panic!("it has entered"),
                    };
                    assert_eq!(counter.fetch_add(1, SeqCst), 0, "one at a time");
                    thread::yield_now();
                    counter.fetch_sub(1, SeqCst);
                }
                pool.limiter.remove(&own);
            })
        });
        threads.into_iter().for_each(|thread| thread.join().expect("no thread fails"));
        assert!(rig.is_at_rest());
    });
}

/// A thread leaves while another one arrives: one of the two sees the request.
#[test]
fn a_request_that_comes_while_the_permit_is_given_back_is_seen() {
    check(|| {
        let rig = Rig::new(true);
        let inside = rig.enter(Normal);
        let pool = Arc::clone(&rig.pool);
        let other = thread::spawn(move || {
            let own = pool.limiter.add();
            let admitted = pool.arrive(1, Normal, &own, 1);
            let runs = admitted == Admitted::Run(1);
            assert!(runs || admitted == Admitted::Monitor);
            pool.limiter.remove(&own);
            runs
        });
        inside.leave();
        let taken = rig.pool.leave(&inside);
        let runs = other.join().expect("no thread fails");
        assert!(runs != taken.is_some(), "one of them runs it");
    });
}
