//! The choice of the thread that runs a request.
//!
//! The thread that gets an event reads, parses, runs the handler and writes the answer itself (`worker`). As many threads poll as there
//! are processors (`pollers`); further ones are parked (`pool`). The backup poller, a thread of the engine, watches while the last thread that polls is in
//! application code. When that thread stands still, the backup poller wakes a parked thread or makes one, and polls itself until one does.
//!
//! Where the interpreter of a pool's language is one lock, a request enters application code by a limiter (`limiter`), and the backup poller only looks
//! at the poller now and then while threads of the polling pool's interpreter compute. Pools of one host share an interpreter; a pool of
//! another host has the one of that host, or none. Where the language brings an event loop, that loop's thread is the only one that
//! polls and runs application code (`event_loop`), and the backup poller stands by (`loop_watchdog`).
//!
//! Three strategies are there to compare with the adaptive one, in the words of Jetty, and without a limiter:
//! - PC, produce, consume: one thread polls, reads and runs every request. It is the adaptive one with a single thread.
//! - PEC, produce, execute, consume: the backup poller polls and reads, and hands every request to a thread that does not (`assigned`).
//! - EPC, execute, produce, consume ("eat what you kill"): one thread at a time polls; when it has a request it wakes another one to poll,
//!   and runs the request itself. It is the adaptive one that takes every request for one that waits.
//!
//! Promises (checked under shuttle on this code, see `limiter_shuttle`, `model_shuttle` and `scenarios_shuttle`): nothing that is ready is
//! forgotten while a thread is idle; never more than the most threads; with every application thread in application code, or none made
//! yet, the backup poller serves.

#![allow(clippy::missing_const_for_thread_local, reason = "the simulated one takes no const block")]

mod admission;
mod app_thread;
mod assigned;
mod backup_poller;
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
mod pollers;
mod pool;
mod pool_threads;
mod ready;
mod reserve_thread;
mod sample_timer;
#[cfg(all(test, shuttle))]
mod scenarios_shuttle;
mod serve;
mod trace;
mod worker;
mod writing;

use std::io;
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::{Interest, Poller, Waker};
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use maitred_pool::scaling::After;
use maitred_pool::{PoolLimits, PoolSettings, RouteClass, Strategy};
use maitred_runtime::EventLoop;
use maitred_stats::Counter;
use maitred_turns::Signals;

use backup_poller::{BackupPoller, LOOK};
use event_loop::{LoopTurns, Looped};
use group_steal::{PeerGroup, PeerGroups};
use interpreters::Interpreters;
use limiter::Limiter;
use numbers::USUAL;
use pollers::Counted;
use pollers::Pollers;
use pool::{Sorting, WakeAction};
use ready::Ready;
use reserve_thread::ReserveThread;
use writing::with_own_thread;

pub use held_threads::{Inside, has_to_give_up_peer, note_idle_peer};
pub use interpreters::Locks;
pub use pool::Pool;
pub use reserve_thread::run as run_reserve;
pub use serve::Serve;
pub use trace::Trace;

/// The scheduler's own tokens; those of its user stay below.
const WAKER: u64 = u64::MAX;
const STOP: u64 = u64::MAX - 1;

/// Chooses the thread of a group that runs a request: the one that has read it, one that is woken, or one that finds it in the queue.
pub struct Scheduler<J> {
    /// The poller of the group's threads.
    pub poller: Poller,
    pollers: Arc<Pollers>,
    backup_poller: Arc<BackupPoller>,
    ready: Ready,
    strategy: Strategy,
    /// The pool whose threads poll.
    pool: Arc<Pool<J>>,
    /// Its threads in application code.
    inside: AtomicUsize,
    /// A thread for its usual requests while all are in slow ones.
    reserve: ReserveThread,
    /// The other pools, which all groups share: their threads run the requests that they are given.
    others: Arc<[Pool<J>]>,
    peer_groups: PeerGroups<J>,
    /// An event loop polls; there are no other application threads.
    looped: Option<Looped>,
    /// Work was turned away, see [`set_deferred`](Self::set_deferred).
    deferred: AtomicBool,
    stopping: AtomicBool,
    /// Wakes all threads that poll, for the end.
    stop: Waker,
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
        Ok(Self::linked(std::slice::from_ref(first), others, max_pollers, locks)?.remove(0))
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
        let mut locks = locks.to_vec();
        for first in firsts.iter().filter(|first| first.strategy != Strategy::Adaptive) {
            // Only the adaptive strategy has a limiter.
            locks.get_mut(first.thread_host).map(Option::take);
        }
        let interpreters = Interpreters::new(&locks);
        let others = named(others, &interpreters)?;
        let one = |first| Self::with_others(first, &others, max_pollers, &interpreters, None);
        let mut all = firsts.iter().map(one).collect::<io::Result<Vec<_>>>()?;
        for index in 0..all.len() {
            let (before, rest) = all.split_at(index);
            let peers = rest[1..].iter().chain(before).map(|peer| PeerGroup {
                pool: Arc::clone(&peer.pool),
                pollers: Arc::clone(&peer.pollers),
                backup_poller: Arc::clone(&peer.backup_poller),
            });
            let peers = peers.collect();
            all[index].peer_groups.all = peers;
        }
        Ok(all)
    }

    /// A scheduler for an event loop, whose thread runs all requests outside the pools of `others`: limits of threads of `first` do not hold.
    /// The threads of pools of the same host take turns with it: they hold the same interpreter.
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
        let looped = Some(Looped::new(event_loop)?);
        Self::with_others(&none, &named(others, &interpreters)?, 1, &interpreters, looped)
    }

    fn with_others(
        first: &PoolSettings,
        others: &Arc<[Pool<J>]>,
        max_pollers: usize,
        interpreters: &Interpreters,
        looped: Option<Looped>,
    ) -> io::Result<Self> {
        let interpreter = interpreters.of(first)?;
        // The one thread of an event loop needs no permit.
        let limited = interpreter.has_lock() && looped.is_none();
        let limiter = Limiter::new(interpreter)?;
        let width = match first.strategy {
            Strategy::Epc => 1,
            // While one is in application code, a second one polls, and monitors if it reads a request that may not enter.
            _ => max_pollers.max(if limited { 2 } else { 1 }),
        };
        let scheduler = Self {
            poller: Poller::new()?,
            pollers: Arc::new(Pollers::new(width, first.limits.max_threads)?),
            backup_poller: Arc::new(BackupPoller::new()?),
            ready: Ready::new("ready"),
            strategy: first.strategy,
            pool: Arc::new(Pool::new(&first.name, first.limits, limited, limiter)),
            inside: AtomicUsize::new(0),
            reserve: ReserveThread::default(),
            others: Arc::clone(others),
            peer_groups: PeerGroups { all: Box::default(), migrations: Counter::new() },
            looped,
            deferred: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            stop: Waker::new()?,
            #[cfg(shuttle)]
            forgetful: false,
        };
        scheduler.poller.add_waker(&scheduler.pollers.waker, WAKER, Interest::Read)?;
        scheduler.poller.add_waker(&scheduler.stop, STOP, Interest::ReadLevel)?;
        Ok(scheduler)
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
        for (index, pool) in self.pools().enumerate() {
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

    /// All pools, the one whose threads poll first.
    pub fn pools(&self) -> impl Iterator<Item = &Pool<J>> {
        std::iter::once(&*self.pool).chain(&*self.others)
    }

    /// The pool of this number.
    pub fn pool_at(&self, index: usize) -> &Pool<J> {
        match index.checked_sub(1) {
            None => &self.pool,
            Some(index) => &self.others[index],
        }
    }

    /// Whether an event loop polls.
    pub fn is_looped(&self) -> bool {
        self.looped.is_some()
    }

    fn spawn<S: Serve<Job = J>>(&self, index: usize, server: &Arc<S>) -> io::Result<()> {
        let pool = self.pool_at(index);
        server.spawn(index, &pool.name, pool.threads.number())
    }

    /// Does what the pool `index` needs so that a thread runs a waiting request.
    fn perform<S: Serve<Job = J>>(&self, index: usize, call: WakeAction, server: &Arc<S>) {
        match call {
            WakeAction::Nothing if index == 0 => {
                self.peer_groups.call(&self.pool, self.inside.load(Ordering::SeqCst));
            }
            WakeAction::Nothing | WakeAction::Woken => {}
            WakeAction::Spawn => {
                // One that cannot be made is tried again, and stays counted.
                if let Err(error) = self.spawn(index, server) {
                    let name = &self.pool_at(index).name;
                    server.report(format_args!(
                        "pool {name}: no thread can be made now: {error}; it is tried again"
                    ));
                }
            }
        }
    }

    fn wake_poller<S: Serve<Job = J>>(&self, server: &Arc<S>) {
        self.perform(0, self.pool.wake_poller(), server);
    }

    /// Whether a thread of the pool `index` that has run `served` requests ends, and is not counted any more.
    fn ends_after<S: Serve<Job = J>>(&self, index: usize, served: u64, server: &Arc<S>) -> bool {
        let After::End { replace } = self.pool_at(index).after_request(served) else { return false };
        if replace {
            self.perform(index, WakeAction::Spawn, server);
        }
        true
    }

    /// A request that this thread, which polls or did, may run; one of another pool is passed on.
    fn assign<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) -> Option<J> {
        let pool = server.pool(&job);
        if pool == 0 {
            return Some(job);
        }
        let class = server.class(&job);
        match self.pool_at(pool).submit(job, class, clock::monotonic()) {
            Ok(call) => self.perform(pool, call, server),
            Err(job) => server.refuse(job),
        }
        None
    }

    /// Has a request run by application threads; called by a thread that may not run it.
    fn submit<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        let Some(job) = self.assign(job, server) else { return };
        let class = server.class(&job);
        self.allow_bursts(server);
        match self.pool.submit(job, class, clock::monotonic()) {
            Err(job) => server.refuse(job),
            Ok(call) => {
                let looks = self.strategy != Strategy::Pec && self.pollers.any();
                if call == WakeAction::Nothing && (self.looped.is_some() || looks) {
                    self.wake();
                }
                self.perform(0, call, server);
                self.wake_reserve(class != RouteClass::Blocking, server);
            }
        }
    }

    /// Queues a request for this thread, which looks at the queue next.
    fn queue<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        let (class, now) = (server.class(&job), clock::monotonic());
        self.allow_bursts(server);
        let queued = self.pool.push(&mut self.pool.lock(), job, class, now);
        queued.unwrap_or_else(|job| server.refuse(job));
        if self.pool.exclusive && class.does_without() {
            // It may enter at once, and this thread may find another one first.
            self.pool.limiter.timer.fire_now(now);
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
        let is_watched = || self.pollers.any() || self.pool.limiter.is_monitored();
        if (class != RouteClass::Normal || self.strategy == Strategy::Epc) && !is_watched() {
            self.wake_poller(server);
        }
    }

    /// Runs application code on this thread, which polls otherwise, from `now` on, in monotonic nanoseconds. Returns the end.
    fn run<S: Serve<Job = J>>(&self, job: J, class: RouteClass, now: u64, server: &Arc<S>) -> u64 {
        self.inside.fetch_add(1, Ordering::SeqCst);
        self.pollers.note_progress();
        let ended = if self.looped.is_some() {
            // Events that this thread has fetched are on the ready list, and the poller does not know of them.
            self.backup_poller.wake_from_standby();
            // The request goes on in a task; the loop notes what the call has cost.
            server.run(job, now).unwrap_or_else(clock::monotonic)
        } else {
            // After it is counted: a thread that queues a request looks at the count behind that.
            self.wake_reserve(false, server);
            if !self.pollers.any() {
                self.backup_poller.watch();
            } else if !self.pool.exclusive && (!self.ready.is_empty() || self.peer_groups.is_offered()) {
                // Left for this thread, or offered to it, which is away now; those that poll have looked already.
                self.pollers.waker.wake();
            }
            run_timed(job, class, now, &**server, &self.pool)
        };
        self.pollers.note_progress();
        self.inside.fetch_sub(1, Ordering::SeqCst);
        // To set a timer for each long request would cost more than that the backup poller looks.
        let is_looked_at =
            self.pool.exclusive && (ended.saturating_sub(now) >= USUAL || self.pollers.are_late(ended));
        if self.looped.is_none() && !is_looked_at {
            self.backup_poller.timer.defer(ended, LOOK);
        }
        ended
    }

    /// As [`run`](Self::run), on a thread that has no part in polling.
    fn run_assigned<S: Serve<Job = J>>(&self, job: J, now: u64, server: &S, pool: &Pool<J>) -> u64 {
        let _beside = pool.exclusive.then(|| Counted::begin(&pool.limiter.interpreter.beside));
        let class = server.class(&job);
        run_timed(job, class, now, server, pool)
    }

    /// Puts something on the ready list, from a turn: this thread looks there next.
    pub fn ready_next(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        // A backup poller that polls shares the list.
        self.backup_poller.release_polling();
    }

    /// Puts something on the ready list, from application code or from a thread that does not serve. A thread that serves looks there when
    /// it leaves application code, and the backup poller if that takes long; any other thread wakes one.
    pub fn make_ready(&self, token: u64, signals: Signals) {
        self.ready.push(token, signals);
        let served_here = self.pollers.are_served_here();
        if let Some(looped) = &self.looped {
            // A turn looks at the list before its end.
            if !served_here {
                looped.wake();
            }
            self.backup_poller.wake_from_standby();
        } else if served_here {
            self.backup_poller.watch();
        } else if !self.pollers.wake() {
            self.backup_poller.kick();
        }
    }

    /// Whether a complete response of this thread waits for the end of the event loop's turn.
    pub fn defers(&self) -> bool {
        self.looped.is_some() && Looped::is_here()
    }

    /// Sends the complete response of a connection at the end of the turn.
    pub fn send_later(&self, token: u64) {
        if let Some(looped) = &self.looped {
            looped.unsent.push(token, Signals::RESUME);
            self.backup_poller.wake_from_standby();
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
            None => self.pollers.waker.wake(),
        }
    }

    /// Whether there is nothing to do but to wait. Asked after the caller has counted itself as a poller: a thread that made work before
    /// that saw no poller to wake.
    fn is_idle(&self) -> bool {
        #[cfg(shuttle)]
        if self.forgetful {
            return true;
        }
        self.ready.is_empty()
            && self.pool.queued() == 0
            && !self.peer_groups.is_offered()
            && !self.is_stopping()
    }

    fn is_stopping(&self) -> bool {
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
}

/// For tests that serve by hand, in the order that they like.
impl<J: Send> Scheduler<J> {
    /// The next entry of the ready list.
    pub fn next_ready(&self) -> Option<(u64, Signals)> {
        self.ready.pop()
    }

    /// Gives a request to its pool, as a thread does that has read it.
    pub fn give<S: Serve<Job = J>>(&self, job: J, server: &Arc<S>) {
        self.submit(job, server);
    }

    /// The next request that waits in the pool whose threads poll.
    pub fn next_queued(&self) -> Option<J> {
        self.pool.pop()
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

fn run_timed<S: Serve>(job: S::Job, class: RouteClass, now: u64, server: &S, pool: &Pool<S::Job>) -> u64 {
    let route = pool.route_if_it_matters(&job, now);
    let _away = class.does_without().then(|| Counted::begin(&pool.away));
    with_own_thread(|own| own.map(|own| own.enter(now, route, class)));
    // Clears the mark of an earlier request.
    writing::has_written();
    let end = server.run(job, now);
    let ended = end.unwrap_or_else(clock::monotonic);
    let nanos = ended.saturating_sub(now);
    let mut seen = pool.seen(nanos, ended);
    with_own_thread(|own| {
        let Some(own) = own else { return };
        own.leave();
        own.tell(&mut seen);
    });
    pool.costs.watch(nanos, ended);
    if route > 0 && end.is_some() {
        pool.costs.note(route, seen);
    }
    ended
}

/// The life of an application thread of a pool.
pub fn work<S: Serve>(server: &Arc<S>, pool: usize) {
    match server.scheduler().strategy {
        Strategy::Adaptive | Strategy::Pc | Strategy::Epc if pool == 0 => worker::run(server),
        _ => assigned::run(server, pool),
    }
}

/// The life of the engine's own thread: it stands by where application threads poll, and polls where they do not.
pub fn run_backup_poller<S: Serve>(server: &Arc<S>) {
    admission::set_backup_poller();
    match server.scheduler().strategy {
        Strategy::Pec => backup_poller::run_pec(server),
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
