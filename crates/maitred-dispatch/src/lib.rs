//! The choice of the thread that runs a request.
//!
//! The thread that gets an event reads, parses, runs the handler and writes the answer itself (`worker`). As many threads poll as there
//! are processors; further ones are parked (`pool`). The backup poller, a thread of the engine, watches while the last thread that polls is in
//! application code. When that thread stands still, the backup poller wakes a parked thread or makes one, and polls itself until one does.
//!
//! Where the interpreter of a pool's language is one lock, a request enters application code by a limiter (`limiter`), and the backup poller only looks
//! at the poller now and then while threads of the polling pool's interpreter compute. Pools of one host share an interpreter; a pool of
//! another host has the one of that host, or none. Where the language brings an event loop, that loop's thread is the only one that
//! polls and runs application code (`event_loop`), and the backup poller stands by (`loop_watchdog`).
//!
//! A request that waits while another one waits for a database and a third one computes: it was read by a thread that found the permit
//! taken, and is in the queue; that thread monitors. Its next samples see the first thread without the interpreter, which
//! frees the permit if that thread has it, and the monitor enters. If the computing thread has the permit, a usual request waits until
//! it ends, or has computed for long.
//!
//! Promises (checked under shuttle on this code, see `limiter_shuttle`, `model_shuttle` and `scenarios_shuttle`): nothing that is ready is forgotten
//! while a thread is idle; never more than the most threads; with every application thread in
//! application code, or none made yet, the backup poller serves.

mod admission;
mod app_thread;
mod assigned;
mod backup_poller;
mod by_hand;
mod costs;
mod event_loop;
mod figures;
mod group_steal;
mod held_threads;
mod interpreter;
mod interpreters;
mod limiter;
#[cfg(all(test, shuttle))]
mod limiter_shuttle;
mod loop_watchdog;
#[cfg(all(test, shuttle))]
mod model_shuttle;
mod numbers;
mod pool;
mod pool_threads;
mod ready;
mod reserve_thread;
mod sample_timer;
#[cfg(all(test, shuttle))]
mod scenarios_shuttle;
mod serve;
mod strategies;
mod trace;
mod worker;
mod writing;

use std::cell::Cell;
use std::io;
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::{Interest, Poller, Waker};
use maitred_io::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use maitred_pool::scaling::After;
use maitred_pool::{PoolLimits, PoolSettings, RouteClass, Strategy};
use maitred_runtime::EventLoop;
use maitred_stats::pool::MIGRATIONS_TOTAL;
use maitred_stats::{Arena, Counter};
use maitred_turns::Signals;

use backup_poller::BackupPoller;
use event_loop::{LoopTurns, Looped};
use group_steal::PeerGroup;
use interpreter::Interpreter;
use interpreters::Interpreters;
use limiter::Limiter;
use numbers::{LONG, USUAL};
use pool::{Pool, Sorting, WakeAction};
use ready::Ready;
use reserve_thread::ReserveThread;
use writing::{Counted, with_own_thread};

pub use by_hand::Inside;
pub use held_threads::{has_to_give_up_peer, note_idle_peer};
pub use interpreters::Locks;
pub use reserve_thread::run as run_reserve;
pub use serve::{Serve, Target};
pub use trace::Trace;

/// The scheduler's own tokens; those of its user stay below.
const WAKER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

maitred_io::sync::thread_local! {
    /// The address of the scheduler that this thread serves, whose ready list it looks at by itself; 0 for none.
    #[allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]
    static SERVING: Cell<usize> = Cell::new(0);
}

/// The threads of a group, the requests that wait for them, and their states.
pub struct Scheduler<J> {
    /// The poller of the group's threads.
    pub poller: Poller,
    /// Wakes one thread that polls.
    waker: Arc<Waker>,
    /// Wakes all of them, for the end.
    stop: Waker,
    stopping: AtomicBool,
    ready: Ready,
    strategy: Strategy,
    /// The pool whose threads poll.
    pool: Arc<Pool<J>>,
    /// The other pools, which all groups share: their threads run the requests that they are given.
    others: Arc<[Pool<J>]>,
    peer_groups: Box<[PeerGroup<J>]>,
    /// Requests taken from them.
    migrations: Counter,
    /// Application threads that wait on the poller.
    pollers: Arc<AtomicUsize>,
    /// Threads that may poll at once now, and the most, whatever the number of threads.
    max_pollers: AtomicUsize,
    width: usize,
    /// Threads of the pool that polls in application code.
    inside: AtomicUsize,
    /// Work was turned away, see [`set_deferred`](Self::set_deferred).
    deferred: AtomicBool,
    /// EPC: a thread is the producer.
    producing: AtomicBool,
    /// EPC: a thread has been woken to become it.
    successor_woken: AtomicBool,
    /// Rises whenever an application thread begins or ends something. The backup poller takes over when it stands still.
    progress: AtomicU64,
    /// The last look at the poller by a thread between two requests, or by the backup poller while threads compute, in monotonic nanoseconds.
    polled: AtomicU64,
    backup_poller: Arc<BackupPoller>,
    /// A thread for usual requests while all are in slow ones.
    reserve: ReserveThread,
    /// An event loop polls; there are no other application threads.
    looped: Option<Looped>,
    /// The mutation of the model test: see [`is_idle`](Self::is_idle).
    #[cfg(shuttle)]
    forgetful: bool,
}

impl<J: Send> Scheduler<J> {
    /// A scheduler for the threads of `first`, of which `max_pollers` poll at once, and of `others`. `locks` has the lock of
    /// each host's interpreter.
    ///
    /// # Errors
    /// Out of descriptors, or a pool names a host that does not exist.
    pub fn new(
        first: &PoolSettings,
        others: &[PoolSettings],
        max_pollers: usize,
        locks: &Locks,
    ) -> io::Result<Self> {
        let mut interpreters = Interpreters::new(locks);
        if first.strategy != Strategy::Adaptive {
            // Only the adaptive strategy has a limiter.
            interpreters.run_side_by_side(first);
        }
        let interpreter = interpreters.of(first)?;
        let limited = interpreter.has_lock();
        Self::with_others(first, &named(others, &interpreters)?, max_pollers, limited, interpreter)
    }

    /// Schedulers of several groups, each for the threads of one of `firsts`, which run side by side, and all for those of `others`.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn linked(
        firsts: &[PoolSettings],
        others: &[PoolSettings],
        max_pollers: usize,
        locks: &Locks,
    ) -> io::Result<Vec<Self>> {
        let interpreters = Interpreters::new(locks);
        let others = named(others, &interpreters)?;
        let one = |first| Self::with_others(first, &others, max_pollers, false, interpreters.of(first)?);
        let mut all = firsts.iter().map(one).collect::<io::Result<Vec<_>>>()?;
        Self::link(&mut all);
        Ok(all)
    }

    fn with_others(
        first: &PoolSettings,
        others: &Arc<[Pool<J>]>,
        max_pollers: usize,
        limited: bool,
        interpreter: &Arc<Interpreter>,
    ) -> io::Result<Self> {
        let scheduler = Self {
            poller: Poller::new()?,
            waker: Arc::new(Waker::new()?),
            stop: Waker::new()?,
            stopping: AtomicBool::new(false),
            ready: Ready::new("ready"),
            strategy: first.strategy,
            pool: Arc::new(Pool::new(&first.name, first.limits, limited, Limiter::new(interpreter)?)),
            others: Arc::clone(others),
            peer_groups: Box::default(),
            migrations: Counter::new(),
            pollers: Arc::default(),
            max_pollers: AtomicUsize::new(0),
            // While one is in application code, a second one polls, and monitors if it reads a request that may not enter.
            width: max_pollers.max(if limited { 2 } else { 1 }),
            inside: AtomicUsize::new(0),
            deferred: AtomicBool::new(false),
            producing: AtomicBool::new(false),
            successor_woken: AtomicBool::new(false),
            progress: AtomicU64::new(0),
            polled: AtomicU64::new(0),
            backup_poller: Arc::new(BackupPoller::new()?),
            reserve: ReserveThread::default(),
            looped: None,
            #[cfg(shuttle)]
            forgetful: false,
        };
        scheduler.max_pollers.store(scheduler.pollers_of(first.limits.max_threads), Ordering::SeqCst);
        scheduler.poller.add_waker(&scheduler.waker, WAKER, Interest::Read)?;
        scheduler.poller.add_waker(&scheduler.stop, STOP, Interest::ReadLevel)?;
        Ok(scheduler)
    }

    /// A scheduler for an event loop, whose thread runs all requests outside the pools of `others`; of the limits of
    /// its own pool, `first`, those of threads do not hold. The threads of pools of the same host take turns with it: they hold
    /// the same interpreter.
    ///
    /// # Errors
    /// As of [`new`](Self::new).
    pub fn for_loop(
        event_loop: Arc<dyn EventLoop>,
        first: &PoolSettings,
        others: &[PoolSettings],
        locks: &Locks,
    ) -> io::Result<Self> {
        let none = PoolSettings {
            limits: without_threads(first.limits),
            strategy: Strategy::default(),
            ..first.clone()
        };
        let interpreters = Interpreters::new(locks);
        let others = named(others, &interpreters)?;
        let scheduler = Self::with_others(&none, &others, 1, false, interpreters.of(first)?)?;
        Ok(Self { looped: Some(Looped::new(event_loop)?), ..scheduler })
    }

    fn possible(&self, index: usize, limits: PoolLimits) -> PoolLimits {
        if self.looped.is_some() && index == 0 {
            return without_threads(limits);
        }
        let max_threads = limits.max_threads.max(1);
        PoolLimits { max_threads, min_threads: limits.min_threads.min(max_threads), ..limits }
    }

    /// Whether an event loop polls.
    pub fn is_looped(&self) -> bool {
        self.looped.is_some()
    }

    fn pollers_of(&self, threads: usize) -> usize {
        self.width.min(threads.max(1))
    }

    fn max_pollers(&self) -> usize {
        self.max_pollers.load(Ordering::Relaxed)
    }

    /// Counts in memory in which others find it, from now on: before the start. Of the pools that groups share one of them says so.
    pub fn count_in(&mut self, arena: &Arena, shared: bool) {
        self.migrations = Counter::in_arena(arena, MIGRATIONS_TOTAL);
        let others = if shared { &*self.others } else { &[] };
        [&*self.pool].into_iter().chain(others).for_each(|pool| pool.count_in(arena));
    }

    /// Where much waits, threads take turns between the routes of its requests, and within a route between connections. `route_of`
    /// says a number for each: equal for two requests of one route, and unknown to peers; `connection_of` one for its connection,
    /// 0 if that has no other request. Without them all are of one route. To be called once.
    pub fn sort_by(&self, route_of: fn(&J) -> u64, connection_of: fn(&J) -> u64) {
        self.pools().for_each(|pool| _ = pool.sorting.set(Sorting { route_of, connection_of }));
    }

    /// Makes the threads there are from the start, or attaches the event loop.
    ///
    /// # Errors
    /// A pool that has threads from the start would have none.
    pub fn start<S: Serve<Job = J>>(&self, server: &Arc<S>) -> io::Result<()> {
        if let Some(looped) = &self.looped {
            looped.event_loop.attach(Box::new(LoopTurns::new(server)));
        }
        for index in 0..=self.others.len() {
            let pool = self.pool_at(index);
            let mut is_first = true;
            while pool.threads.claim_initial() {
                let made = self.spawn(index, server);
                if std::mem::take(&mut is_first) {
                    made.map_err(|error| {
                        io::Error::new(error.kind(), format!("pool {}: {error}", pool.name))
                    })?;
                }
            }
        }
        Ok(())
    }

    fn pool_at(&self, index: usize) -> &Pool<J> {
        match index.checked_sub(1) {
            None => &self.pool,
            Some(index) => &self.others[index],
        }
    }

    fn pools(&self) -> impl Iterator<Item = &Pool<J>> {
        std::iter::once(&*self.pool).chain(&*self.others)
    }

    fn spawn<S: Serve<Job = J>>(&self, index: usize, server: &Arc<S>) -> io::Result<()> {
        let pool = self.pool_at(index);
        server.spawn(index, &pool.name, pool.threads.number())
    }

    fn perform<S: Serve<Job = J>>(&self, call: &WakeAction, server: &Arc<S>) {
        if *call == WakeAction::Nothing {
            self.wake_peer_group();
        }
        self.perform_in(0, call, server);
    }

    /// Has a thread poll: the last one that did is in application code.
    fn wake_poller<S: Serve<Job = J>>(&self, server: &Arc<S>) -> WakeAction {
        let call = self.pool.wake_poller();
        self.perform(&call, server);
        call
    }

    /// Whether a thread of the pool `index` that has run `served` requests ends, and is not counted any more.
    fn ends_after<S: Serve<Job = J>>(&self, index: usize, served: u64, server: &Arc<S>) -> bool {
        let After::End { replace } = self.pool_at(index).after_request(served) else { return false };
        if replace {
            self.perform_in(index, &WakeAction::Spawn, server);
        }
        true
    }

    fn perform_in<S: Serve<Job = J>>(&self, index: usize, call: &WakeAction, server: &Arc<S>) {
        if *call == WakeAction::Spawn {
            // One that cannot be made is tried again, and stays counted.
            if let Err(error) = self.spawn(index, server) {
                let name = &self.pool_at(index).name;
                server.report(format_args!(
                    "pool {name}: no thread can be made now: {error}; it is tried again"
                ));
            }
        }
    }

    /// A request that this thread, which polls or did, may run; one of another pool is passed on.
    fn assign<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) -> Option<J> {
        let target = server.target(&job);
        if target.pool == 0 {
            return Some(job);
        }
        match self.pool_at(target.pool).submit(job, target.class, clock::monotonic()) {
            Ok(call) => self.perform_in(target.pool, &call, server),
            Err(job) => server.refuse(job),
        }
        None
    }

    /// The class of this route in this pool, at `now` in monotonic nanoseconds. `route` is called only if the class of
    /// any route is known.
    pub fn class_of(&self, pool: usize, now: u64, route: impl FnOnce() -> u64) -> RouteClass {
        let costs = &self.pool_at(pool).costs;
        if costs.is_watching(now) { costs.class(route(), now) } else { RouteClass::Normal }
    }

    /// Has a request run by application threads; called by a thread that may not run it.
    fn submit<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        let Some(job) = self.assign(job, server) else { return };
        let class = server.target(&job).class;
        self.allow_bursts(server);
        match self.pool.submit(job, class, clock::monotonic()) {
            Err(job) => server.refuse(job),
            Ok(call) => {
                let looks = self.strategy != Strategy::Pec && self.pollers.load(Ordering::SeqCst) > 0;
                if call == WakeAction::Nothing && (self.looped.is_some() || looks) {
                    self.wake();
                }
                self.perform(&call, server);
                self.wake_reserve(class != RouteClass::Blocking, server);
            }
        }
    }

    /// Queues a request for this thread, which looks at the queue next.
    fn queue<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        let (class, now) = (server.target(&job).class, clock::monotonic());
        self.allow_bursts(server);
        let queued = self.pool.push(&mut self.pool.lock(), job, class, now);
        queued.unwrap_or_else(|job| server.refuse(job));
        if self.pool.exclusive && class.does_without() {
            // It may enter at once, and this thread may find another one first.
            self.pool.limiter.fire_now(now);
        }
    }

    /// An event loop reads all there is before it begins requests: a queue that it has made itself is not full before it has had time.
    fn allow_bursts<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        if self.looped.is_some() {
            self.pool.bursts.store(!server.is_loop_full(), Ordering::Relaxed);
        }
    }

    /// A request enters application code on this thread. If it takes long, another one polls meanwhile, or is asked for.
    fn leave_polling_to_another<S: Serve<Job = J>>(&self, class: RouteClass, server: &Arc<S>) {
        let watched = self.pollers.load(Ordering::SeqCst) > 0 || self.pool.limiter.is_monitored();
        if class != RouteClass::Normal && !watched && self.strategy == Strategy::Adaptive {
            self.wake_poller(server);
        }
    }

    /// The disk has caught up: an event loop goes on with the requests that have waited for it.
    pub fn go_on_held(&self) {
        if let Some(looped) = &self.looped {
            looped.go_on_held();
        }
    }

    fn wake(&self) {
        match &self.looped {
            Some(looped) => looped.wake(),
            None => self.waker.wake(),
        }
    }

    /// Where two threads do so at once one of the steps may be lost: the backup poller only looks whether there were any.
    fn note_progress(&self) {
        let steps = self.progress.load(Ordering::Relaxed);
        self.progress.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// Runs application code on this thread, which polls otherwise. `now` is a time before that, in monotonic
    /// nanoseconds; the end is returned.
    fn run<S: Serve<Job = J>>(&self, job: J, now: u64, server: &Arc<S>) -> u64 {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.note_progress();
        if self.looped.is_none() {
            // After it is counted: a thread that queues a request looks at the count behind that.
            self.wake_reserve(false, server);
        }
        if self.looped.is_some() {
            // Events that this thread has fetched are on the ready list, and the poller does not know of them.
            self.backup_poller.wake_from_standby();
        } else if self.pollers.load(Ordering::SeqCst) == 0 {
            self.backup_poller.watch();
        } else if !self.pool.exclusive && (!self.ready.is_empty() || self.is_offered()) {
            // Left for this thread, or offered to it, which is away now; those that poll have looked already.
            self.waker.wake();
        }
        let ended = match self.looped {
            None => run_timed(job, now, &**server, &self.pool),
            Some(_) => {
                // The request goes on in a task; how long the call took says nothing.
                server.run(job, now);
                now
            }
        };
        self.note_progress();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        // To set a timer for each long request would cost more than that the backup poller looks.
        let puts_off =
            !self.pool.exclusive || (ended.saturating_sub(now) < USUAL && !self.is_unpolled_for_long(ended));
        if self.looped.is_none() && puts_off {
            self.backup_poller.defer(ended);
        }
        ended
    }

    /// The threads inside have not looked at the poller for long: they have enough to do, and work without the
    /// application waits.
    fn is_unpolled_for_long(&self, now: u64) -> bool {
        self.pool.exclusive && now.saturating_sub(self.polled.load(Ordering::Relaxed)) > LONG
    }

    fn note_poll(&self, now: u64) {
        self.polled.store(now, Ordering::Relaxed);
    }

    /// Runs application code from `now` on, in monotonic nanoseconds, on a thread that has no part in polling.
    /// The end is returned.
    fn run_assigned<S: Serve<Job = J>>(&self, job: J, now: u64, server: &S, pool: &Pool<J>) -> u64 {
        let _beside = pool.exclusive.then(|| Counted::begin(&pool.limiter.interpreter.beside));
        run_timed(job, now, server, pool)
    }

    /// Whether no other thread with this interpreter is in application code.
    fn is_nobody_inside(&self) -> bool {
        self.inside.load(Ordering::SeqCst) == 0
            && self.pool.limiter.interpreter.beside.load(Ordering::SeqCst) == 0
    }

    /// Puts something on the ready list, from a turn: this thread looks there next.
    pub fn ready_next(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        // A backup poller that polls shares the list.
        self.backup_poller.release_polling();
    }

    /// Puts something on the ready list, from application code or from a thread that does not serve.
    /// A thread that serves looks there when it leaves application code, and the backup poller if that takes
    /// long; any other thread wakes one.
    pub fn make_ready(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        if let Some(looped) = &self.looped {
            // A turn looks at the list before its end.
            if !self.is_served_here() {
                looped.wake();
            }
            self.backup_poller.wake_from_standby();
        } else if self.is_served_here() {
            self.backup_poller.watch();
        } else if self.pollers.load(Ordering::SeqCst) > 0 {
            self.waker.wake();
        } else {
            self.backup_poller.kick();
        }
    }

    fn set_serving(&self, serving: bool) {
        SERVING.with(|cell| cell.set(if serving { self.address() } else { 0 }));
    }

    fn is_served_here(&self) -> bool {
        SERVING.with(Cell::get) == self.address()
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Whether there is nothing to do but to wait. Asked after the caller has counted itself as a
    /// poller: a thread that made work before that saw no poller to wake.
    fn is_idle(&self) -> bool {
        #[cfg(shuttle)]
        if self.forgetful {
            return true;
        }
        self.ready.is_empty() && self.pool.queued() == 0 && !self.is_offered() && !self.is_stopping()
    }

    /// Whether the server stops. Every thread that serves returns then.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Says that [`stop`](Self::stop) comes: to all groups first, as threads of named pools end with the pool.
    pub fn announce_stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Ends every thread that is not in application code.
    pub fn stop(&self) {
        self.announce_stop();
        self.stop.wake();
        self.pools().for_each(Pool::stop);
        self.reserve.wake(true);
        if let Some(looped) = &self.looped {
            looped.wake();
        }
        self.backup_poller.kick();
    }

    /// Drops the requests that wait for a thread, after the end.
    pub fn discard_queue(&self) {
        self.pools().for_each(Pool::discard);
    }

    /// Application threads that exist or have been asked for: those that poll, or the others.
    pub fn threads(&self, others: bool) -> usize {
        match &self.looped {
            _ if others => self.others.iter().map(|pool| pool.threads.count()).sum(),
            Some(_) => 1,
            None => self.pool.threads.count(),
        }
    }
}

/// Pools with these settings; those of a host with a lock have a limiter.
fn named<J>(settings: &[PoolSettings], interpreters: &Interpreters) -> io::Result<Arc<[Pool<J>]>> {
    let one = |pool: &PoolSettings| {
        let interpreter = interpreters.of(pool)?;
        Ok(Pool::new(&pool.name, pool.limits, interpreter.has_lock(), Limiter::new(interpreter)?))
    };
    settings.iter().map(one).collect()
}

/// An event loop's thread is no thread of a pool.
fn without_threads(limits: PoolLimits) -> PoolLimits {
    PoolLimits { min_threads: 0, max_threads: 0, ..limits }
}

fn run_timed<S: Serve>(job: S::Job, now: u64, server: &S, pool: &Pool<S::Job>) -> u64 {
    let class = server.target(&job).class;
    let route = pool.route_if_it_matters(&job, now);
    let _blocked = class.does_without().then(|| Counted::begin(&pool.blocked));
    with_own_thread(|own| own.map(|own| own.enter(now, route, class)));
    // Clears the mark of an earlier request.
    writing::has_written();
    let was_run = server.run(job, now);
    let ended = clock::monotonic();
    let nanos = ended.saturating_sub(now);
    let mut seen = pool.seen(nanos, ended);
    with_own_thread(|own| {
        let Some(own) = own else { return };
        own.leave();
        own.tell(&mut seen);
    });
    pool.costs.watch(nanos, ended);
    if route > 0 && was_run {
        pool.costs.note(route, seen);
    }
    ended
}

/// The life of an application thread of a pool.
pub fn work<S: Serve>(server: &Arc<S>, pool: usize) {
    match server.scheduler().strategy {
        _ if pool > 0 => assigned::run(server, pool),
        Strategy::Adaptive => worker::run(server),
        Strategy::Pc => strategies::run_pc(server),
        Strategy::Pec => assigned::run(server, pool),
        Strategy::Epc => strategies::run_epc(server),
    }
}

/// The life of the engine's own thread: it stands by where application threads poll, and polls where they do not.
pub fn run_backup_poller<S: Serve>(server: &Arc<S>) {
    admission::set_backup_poller();
    match server.scheduler().strategy {
        Strategy::Pec if server.scheduler().looped.is_none() => strategies::run_pec(server),
        _ => backup_poller::run(server),
    }
}

/// The message of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "no message",
    }
}
