//! A model for shuttle: the shipped words, worker and backup poller, a simulated poller, and application code that waits for
//! events that only another thread can bring.
//!
//! A request that is forgotten leaves every thread asleep, which shuttle reports as a deadlock. The scenarios are in
//! `scenarios_shuttle.rs`.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::{Condvar, Mutex, schedules, thread};
use maitred_pool::RouteClass;
use maitred_pool::{PoolLimits, PoolSettings, Strategy};
use maitred_runtime::{EventLoop, InterpreterLock, Turned, Turns};
use maitred_turns::Jobs;
use maitred_turns::Signals;
use maitred_turns::TurnClock;
use shuttle::rand::Rng as _;
use shuttle::scheduler::RandomScheduler;

use super::{Scheduler, Serve, run_backup_poller, run_reserve, work};

/// Schedules tried for each scenario.
pub(crate) const SCHEDULES: usize = 2_000;

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The engine answers it.
    File,
    /// The engine answers it, and no thread of a pool but the first is made before.
    FileBeforeThreads,
    /// The application answers it.
    Page,
    /// The application answers it after every file has been answered.
    PageAfterFiles,
    /// The application answers it after every page has been answered.
    PageAfterPages,
    /// The application answers it, of a source that other processes have, too: only a process that is free takes it.
    Shared,
    /// The application may run on any thread.
    NonBlocking,
    /// The application answers it, of a route that is slow, after every page has been answered.
    SlowAfterPages,
    /// The application answers it, of a route that computes for long, after every page has been answered.
    LongAfterPages,
    /// The application's response is written to a disk that takes it after every page has been answered.
    WritesUntilPages,
    /// The application answers it on a thread of the other pool.
    Other,
    /// The application answers it on a thread of the other pool, after every page has been answered.
    OtherAfterPages,
    /// The application answers it on a thread of the other pool, after every [`Other`](Self::Other) has been answered.
    OtherAfterOthers,
    /// The application answers it on a thread of the other pool, and keeps the interpreter of that pool's language until every page has been
    /// answered.
    OtherHoldsUntilPages,
}

impl Kind {
    fn is_of_other(self) -> bool {
        matches!(
            self,
            Self::Other | Self::OtherAfterPages | Self::OtherAfterOthers | Self::OtherHoldsUntilPages
        )
    }

    fn class(self) -> RouteClass {
        match self {
            Self::SlowAfterPages => RouteClass::Blocking,
            Self::LongAfterPages | Self::OtherHoldsUntilPages => RouteClass::CpuBound,
            _ => RouteClass::Normal,
        }
    }

    /// The kind that has to be answered before.
    fn awaits(self) -> Option<Self> {
        match self {
            Self::PageAfterFiles => Some(Self::File),
            Self::PageAfterPages
            | Self::SlowAfterPages
            | Self::LongAfterPages
            | Self::WritesUntilPages
            | Self::OtherAfterPages
            | Self::OtherHoldsUntilPages => Some(Self::Page),
            Self::OtherAfterOthers => Some(Self::Other),
            Self::File
            | Self::FileBeforeThreads
            | Self::Page
            | Self::Shared
            | Self::Other
            | Self::NonBlocking => None,
        }
    }

    /// Whether it is run by one of the threads that poll.
    fn is_counted(self) -> bool {
        self != Self::NonBlocking && !self.is_of_other()
    }
}

/// One group.
pub(crate) struct Model {
    scheduler: Scheduler<usize>,
    own: std::sync::Weak<Self>,
    max: usize,
    running: AtomicUsize,
    threads: Mutex<Vec<thread::JoinHandle<()>>>,
    events: std::sync::Arc<Events>,
    /// Events that were turned away. No other process is there for them.
    turned_away: Mutex<Vec<u64>>,
}

/// An event that was turned away, or found the process free, is taken under this number more.
const TAKEN: u64 = 1000;

impl Model {
    /// Takes a deferred event if this process is free.
    fn take_turned_away(&self, turned_away: &mut Vec<u64>) -> bool {
        if !self.scheduler.is_free() {
            return false;
        }
        let taken = turned_away.pop();
        if let Some(token) = taken {
            self.scheduler.ready_next(TAKEN + token, Signals::READ);
        }
        self.scheduler.set_deferred(!turned_away.is_empty());
        taken.is_some()
    }

    /// Whether there may be one more thread: for others while all are in requests that take long.
    fn has_extra(&self) -> bool {
        self.max > 1
    }
}

/// The events of all groups.
pub(crate) struct Events {
    kinds: Vec<Kind>,
    /// The first event brings all others.
    is_batch: bool,
    /// The events in the order in which they have begun.
    begun: Mutex<Vec<usize>>,
    answered: Mutex<Vec<usize>>,
    changed: Condvar,
    /// The interpreter: held while application code runs, and not while it waits.
    interpreter: Mutex<()>,
    /// That of the other pool's language, which is held also while its code waits for [pages](Kind::OtherHoldsUntilPages).
    other_interpreter: Mutex<()>,
}

impl Events {
    fn answer(&self, event: usize) {
        self.answered.lock().expect("not poisoned")[event] += 1;
        self.changed.notify_all();
    }

    /// Waits until everything of this kind is answered.
    fn wait_for_all(&self, awaited: Kind) {
        self.wait_until(|answered| {
            answered.iter().zip(&self.kinds).all(|(count, kind)| *kind != awaited || *count > 0)
        });
    }

    fn wait_until(&self, wanted: impl Fn(&[usize]) -> bool) {
        let mut answered = self.answered.lock().expect("not poisoned");
        while !wanted(&answered) {
            answered = self.changed.wait(answered).expect("not poisoned");
        }
    }
}

impl Serve for Model {
    type Job = usize;
    type Context = TurnClock;

    fn scheduler(&self) -> &Scheduler<usize> {
        &self.scheduler
    }

    fn serve(self: &std::sync::Arc<Self>, token: u64, _: Signals, _: &mut Self::Context) -> Jobs<usize> {
        let taken = token >= TAKEN && token < 2 * TAKEN;
        let token = if taken { token - TAKEN } else { token };
        let event = usize::try_from(token).ok().filter(|event| *event < self.events.kinds.len());
        if let Some(event) = event.filter(|event| !taken && self.events.kinds[*event] == Kind::Shared) {
            let mut turned_away = self.turned_away.lock().expect("not poisoned");
            turned_away.push(event as u64);
            self.scheduler.set_deferred(true);
            // A thread may have become free before it could see that.
            self.take_turned_away(&mut turned_away);
            return Jobs::none();
        }
        let is_file =
            |event: &usize| matches!(self.events.kinds[*event], Kind::File | Kind::FileBeforeThreads);
        if let Some(event) = event.filter(is_file) {
            self.events.answer(event);
            return Jobs::none();
        }
        let batched = if self.events.is_batch && event.is_some() { 1..self.events.kinds.len() } else { 0..0 };
        let mut jobs = Jobs::from(event);
        batched.for_each(|event| jobs.push(event));
        jobs
    }

    fn send(self: &std::sync::Arc<Self>, token: u64, _: u64) {
        self.events.answer(token as usize);
    }

    fn prefetch(&self, _: u64) {}

    fn pool(&self, event: &usize) -> usize {
        usize::from(self.events.kinds[*event].is_of_other())
    }

    fn class(&self, event: &usize) -> RouteClass {
        self.events.kinds[*event].class()
    }

    fn take_deferred(self: &std::sync::Arc<Self>) -> bool {
        self.take_turned_away(&mut self.turned_away.lock().expect("not poisoned"))
    }

    fn refuse(&self, event: usize) {
        panic!("nothing is refused: {event}");
    }

    fn is_non_blocking(&self, event: &usize) -> bool {
        self.events.kinds[*event] == Kind::NonBlocking
    }

    fn run(&self, event: usize, _now: u64) -> Option<u64> {
        if self.events.kinds[event].is_counted() {
            let most = self.max + usize::from(self.has_extra());
            assert!(self.running.fetch_add(1, SeqCst) < most, "never more than the most threads");
        }
        self.events.begun.lock().expect("not poisoned").push(event);
        let holds = self.events.kinds[event] == Kind::OtherHoldsUntilPages;
        let interpreter =
            if holds { &self.events.other_interpreter } else { &self.events.interpreter }.lock();
        if let Some(awaited) = self.events.kinds[event].awaits() {
            let _held = holds.then_some(interpreter);
            let wait = || self.events.wait_for_all(awaited);
            match self.own.upgrade() {
                Some(own) if self.events.kinds[event] == Kind::WritesUntilPages => {
                    self.scheduler.write_out(&own, wait)
                }
                _ => wait(),
            }
        }
        if self.events.kinds[event].is_counted() {
            self.running.fetch_sub(1, SeqCst);
        }
        if self.scheduler.defers() {
            self.scheduler.send_later(event as u64);
        } else {
            self.events.answer(event);
        }
        Some(clock::monotonic())
    }

    fn spawn(self: &std::sync::Arc<Self>, pool: usize, _: &str, number: usize) -> io::Result<()> {
        let own = std::sync::Arc::clone(self);
        let body = move || {
            if number > 1 {
                own.events.wait_for_all(Kind::FileBeforeThreads);
            }
            work(&own, pool);
        };
        self.threads.lock().expect("not poisoned").push(thread::spawn(body));
        Ok(())
    }

    fn spawn_reserve(self: &std::sync::Arc<Self>) {
        assert!(self.has_extra(), "a pool of one thread has none");
        let own = std::sync::Arc::clone(self);
        self.threads.lock().expect("not poisoned").push(thread::spawn(move || run_reserve(&own)));
    }

    fn report(&self, text: fmt::Arguments<'_>) {
        panic!("nothing is to be reported: {text}");
    }
}

/// An interpreter lock with random answers.
struct MadeUpLock;

impl InterpreterLock for MadeUpLock {
    fn holder(&self) -> u64 {
        u64::from(shuttle::rand::thread_rng().gen_bool(0.5))
    }

    fn own(&self) -> u64 {
        1
    }

    fn is_waited_for(&self, _: i64, _: u64) -> bool {
        shuttle::rand::thread_rng().gen_bool(0.1)
    }
}

fn made_up_lock() -> std::sync::Arc<dyn InterpreterLock> {
    std::sync::Arc::new(MadeUpLock)
}

/// How events come.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// The poller.
    Poller,
    /// A thread that does not serve, as when an exchange is finished elsewhere.
    Elsewhere,
    /// A handler that sends its answer at the end of a turn.
    Unsent,
    /// All by one event of the poller, as streams of one connection.
    Batch,
}

/// Whether the language's interpreter is one lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    Free,
    Limited,
    /// So is that of the other pool's language, and it is another one.
    Apart,
}

pub(crate) fn scenario(
    kinds: &[Kind],
    max: usize,
    pollers: usize,
    threads: Threads,
    source: Source,
    forgetful: bool,
) {
    let mut scheduler = scheduler(Strategy::Adaptive, max, pollers, threads);
    scheduler.forgetful = forgetful;
    play(scheduler, kinds, max, source, |_| None);
}

/// A scheduler with a second pool of one thread.
pub(crate) fn scheduler(
    strategy: Strategy,
    max: usize,
    pollers: usize,
    threads: Threads,
) -> Scheduler<usize> {
    scheduler_with(0, 1, strategy, max, pollers, threads)
}

/// A scheduler with threads that end after so many requests, 0 for never, and a second pool of up to `others` threads.
pub(crate) fn scheduler_with(
    budget: u64,
    others: usize,
    strategy: Strategy,
    max: usize,
    pollers: usize,
    threads: Threads,
) -> Scheduler<usize> {
    let limits = PoolLimits {
        max_threads: max,
        low_mark: 0,
        // With a budget threads end anyway: the long idle time shows errors that a look of an idle thread would mend.
        thread_idle: if budget > 0 { Duration::from_secs(3600) } else { Duration::ZERO },
        thread_requests: budget,
        ..PoolLimits::default()
    };
    let first = PoolSettings { limits, strategy, ..PoolSettings::default() };
    let limits = PoolLimits { min_threads: 0, max_threads: others, ..limits };
    let thread_host = usize::from(threads == Threads::Apart);
    let other = PoolSettings { limits, thread_host, ..PoolSettings::named("other") };
    let lock = || (threads != Threads::Free).then(made_up_lock);
    Scheduler::new(&first, &[other], pollers, &[lock(), lock()]).expect("simulated")
}

/// Plays a scenario with this scheduler. `run_loop` may start a thread that ends with the scheduler.
pub(crate) fn play(
    scheduler: Scheduler<usize>,
    kinds: &[Kind],
    max: usize,
    source: Source,
    run_loop: impl FnOnce(&std::sync::Arc<Model>) -> Option<thread::JoinHandle<()>>,
) {
    let events: Vec<_> = kinds.iter().map(|kind| (0, *kind)).collect();
    play_groups(vec![scheduler], &events, max, source, run_loop);
}

/// Plays a scenario with several groups: each event comes to one of them.
pub(crate) fn play_groups(
    schedulers: Vec<Scheduler<usize>>,
    events: &[(usize, Kind)],
    max: usize,
    source: Source,
    run_loop: impl FnOnce(&std::sync::Arc<Model>) -> Option<thread::JoinHandle<()>>,
) {
    let shared = std::sync::Arc::new(Events {
        kinds: events.iter().map(|(_, kind)| *kind).collect(),
        is_batch: matches!(source, Source::Batch),
        begun: Mutex::default(),
        answered: Mutex::new(vec![0; events.len()]),
        changed: Condvar::new(),
        interpreter: Mutex::new(()),
        other_interpreter: Mutex::new(()),
    });
    let group = |scheduler| {
        std::sync::Arc::new_cyclic(|own| Model {
            scheduler,
            own: own.clone(),
            max,
            running: AtomicUsize::new(0),
            threads: Mutex::new(Vec::new()),
            events: std::sync::Arc::clone(&shared),
            turned_away: Mutex::new(Vec::new()),
        })
    };
    let models: Vec<_> = schedulers.into_iter().map(group).collect();
    let start_backup_poller = |model: &std::sync::Arc<Model>| {
        let own = std::sync::Arc::clone(model);
        thread::spawn(move || run_backup_poller(&own))
    };
    let backup_pollers: Vec<_> = models.iter().map(start_backup_poller).collect();
    for model in &models {
        // Each event has a route of its own.
        model.scheduler.sort_by(|event| *event as u64 + 1, |_| 0);
        model.scheduler.start(model).expect("simulated threads are made");
    }
    let looped = run_loop(&models[0]);
    let client = |(event, (group, _)): (usize, &(usize, Kind))| {
        let model = std::sync::Arc::clone(&models[*group]);
        thread::spawn(move || match source {
            Source::Batch if event > 0 => {}
            Source::Poller | Source::Batch => model.scheduler.poller.post(event as u64),
            Source::Elsewhere => model.scheduler.make_ready(event as u64, Signals::RESUME),
            Source::Unsent => model.scheduler.send_later(event as u64),
        })
    };
    let clients: Vec<_> = events.iter().enumerate().map(client).collect();
    for client in clients {
        client.join().expect("a client posts");
    }
    shared.wait_until(|answered| answered.iter().all(|count| *count > 0));
    models.iter().for_each(|model| model.scheduler.announce_stop());
    models.iter().for_each(|model| model.scheduler.stop());
    for backup_poller in backup_pollers {
        backup_poller.join().expect("a backup poller ends");
    }
    if let Some(looped) = looped {
        looped.join().expect("the loop ends");
    }
    for model in &models {
        // A thread may still be asked for while the others end.
        loop {
            let Some(thread) = model.threads.lock().expect("not poisoned").pop() else { break };
            thread.join().expect("a thread ends");
        }
    }
    assert!(
        shared.answered.lock().expect("not poisoned").iter().all(|count| *count == 1),
        "nothing runs twice"
    );
    let begun = shared.begun.lock().expect("not poisoned");
    assert!(max > 1 || !shared.is_batch || begun.is_sorted(), "they begin in their order: {begun:?}");
}

pub(crate) fn check(kinds: &'static [Kind], max: usize, pollers: usize, source: Source) {
    for threads in [Threads::Free, Threads::Limited] {
        check_random(move || scenario(kinds, max, pollers, threads, source, false));
    }
}

fn check_random(scenario: impl Fn() + Send + Sync + 'static) {
    run(RandomScheduler::new(schedules(SCHEDULES)), scenario);
}

/// Tries so many more schedules that a fault is found: it ends with the first one that shows it.
pub(crate) fn find_out(scenario: impl Fn() + Send + Sync + 'static) {
    run(RandomScheduler::new(50 * SCHEDULES), scenario);
}

pub(crate) fn run(
    order: impl shuttle::scheduler::Scheduler + 'static,
    scenario: impl Fn() + Send + Sync + 'static,
) {
    let mut config = shuttle::Config::new();
    // A scheduler that is moved a few times in a debug build needs more than the default.
    config.stack_size = 256 * 1024;
    shuttle::Runner::new(order, config).run(scenario);
}

/// Keeps its turns for the thread that plays the event loop.
#[derive(Default)]
struct Loop {
    turns: std::sync::Mutex<Option<Box<dyn Turns>>>,
}

impl EventLoop for Loop {
    fn attach(&self, turns: Box<dyn Turns>) {
        *self.turns.lock().expect("not poisoned") = Some(turns);
    }

    fn stands_still(&self, _: bool) {}
}

/// An event loop that does nothing but take its turns. With `deaf` it never wakes up by itself: all events are the
/// backup poller's.
fn looped(kinds: &[Kind], source: Source, deaf: bool) {
    let event_loop = std::sync::Arc::new(Loop::default());
    let beside = PoolLimits { min_threads: 0, max_threads: 2, ..PoolLimits::default() };
    let beside = PoolSettings { name: "threads".to_owned(), limits: beside, ..PoolSettings::default() };
    let others = if kinds.iter().any(|kind| kind.is_of_other()) { vec![beside] } else { Vec::new() };
    let scheduler =
        Scheduler::for_loop(event_loop.clone(), &PoolSettings::default(), &others, &[Some(made_up_lock())])
            .expect("simulated");
    play(scheduler, kinds, 1, source, |model| {
        let mut turns = event_loop.turns.lock().expect("not poisoned").take().expect("attached");
        let model = std::sync::Arc::clone(model);
        Some(thread::spawn(move || {
            let scheduler = &model.scheduler;
            if deaf {
                model.events.wait_until(|answered| answered.iter().all(|count| *count > 0));
                return;
            }
            loop {
                match turns.turn() {
                    Turned::Ended => return,
                    Turned::More => {}
                    Turned::Wait => scheduler.looped.as_ref().expect("a loop").wait(&scheduler.poller),
                }
            }
        }))
    });
}

pub(crate) fn check_looped(kinds: &'static [Kind], source: Source, deaf: bool) {
    check_random(move || looped(kinds, source, deaf));
}
