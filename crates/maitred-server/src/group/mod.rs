//! A poll group: one readiness queue with everything that is served from it.
//!
//! Promises: whoever waits on the group can serve whatever the wait brings; nothing that was
//! fetched from the kernel stays on one thread's stack (the ready list belongs to the group).
//!
//! Sections below: requests on their way through the scheduler; which threads there are.

pub(crate) mod groups;
mod resident;
mod resources;
pub(crate) mod slots;
pub(crate) mod slowness;
mod together;
pub(crate) mod turnstile;

use std::any::Any;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fmt, io};

use arc_swap::ArcSwap;
use maitred_dispatch::{
    Jobs, Ran, Scheduler, Serve, Signals, Target, TurnContext, panic_text, run_extra, work,
};
use maitred_files::Now;
use maitred_http::{ResponseHead, Status};
use maitred_io::poller::{Alarm, Interest};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_io::timers::Timers;
use maitred_io::{clock, memory, tasks};
use maitred_runtime::lock_order::assert_outside;
use maitred_runtime::{Exchange, Handler, InvocationType, ThreadHost};

use crate::listener::Listening;
use crate::pages::PLAIN;
use crate::pool_map::PoolMap;
use crate::site::Site;
use groups::Groups;
use slots::{Flags, Place, Slot, Slots, Token};
use slowness::Measured;
use turnstile::Side;

pub(crate) use resident::{Context, Resident, Turn};
pub(crate) use slowness::Watched;

/// The token of the group's timer; slot numbers stay far below, the scheduler's own tokens above.
const ALARM: u64 = u64::MAX - 2;

/// The token of what processes that accept from the same sockets call each other by.
const BELL: u64 = u64::MAX - 3;

/// The group.
pub(crate) struct Group<R: Resident> {
    /// Which one of all.
    pub(crate) number: usize,
    pub(crate) groups: Arc<Groups<R>>,
    pub(crate) scheduler: Scheduler<Job>,
    pub(crate) host: Arc<dyn ThreadHost>,
    pub(crate) slots: Slots<R>,
    pub(crate) timers: Timers,
    alarm: Alarm,
    pub(crate) site: Arc<Site>,
    /// Which pool runs what. Exchanged at run time, and not looked at while it says nothing.
    pool_map: ArcSwap<PoolMap>,
    is_mapped: AtomicBool,
}

impl<R: Resident> Group<R> {
    pub(crate) fn new(
        site: Arc<Site>,
        (number, groups): (usize, &Arc<Groups<R>>),
        scheduler: Scheduler<Job>,
        host: Arc<dyn ThreadHost>,
        pool_map: Arc<PoolMap>,
    ) -> io::Result<Self> {
        let group = Self {
            number,
            groups: Arc::clone(groups),
            scheduler,
            host,
            slots: Slots::new(),
            timers: Timers::new(),
            alarm: Alarm::new()?,
            site,
            is_mapped: AtomicBool::new(!pool_map.is_trivial()),
            pool_map: ArcSwap::new(pool_map),
        };
        group.scheduler.poller.add(&group.alarm, ALARM, Interest::Read)?;
        for listening in group.listeners() {
            let (slot, _) = group.slots.take().ok_or(io::ErrorKind::OutOfMemory)?;
            let token = Token { slot, generation: 0 };
            listening.watch(&group.scheduler.poller, token.to_u64())?;
        }
        if group.shared_listeners().next().is_some() {
            group.watch_bell(true)?;
        }
        Ok(group)
    }

    /// The slots of listeners from which other processes accept, too.
    pub(crate) fn shared_listeners(&self) -> impl Iterator<Item = u32> {
        (0..).zip(self.listeners()).filter_map(|(slot, listening)| listening.shared.then_some(slot))
    }

    /// Whether this is an event of a source that other processes watch, too.
    fn is_shared(&self, token: u64) -> bool {
        let listening = || self.listeners().get(Token::from_u64(token).slot as usize);
        token == BELL || listening().is_some_and(|listening| listening.shared)
    }

    /// Begins or ends to hear the bell of the processes that accept from the same sockets.
    pub(crate) fn watch_bell(&self, on: bool) -> io::Result<()> {
        let poller = &self.scheduler.poller;
        match self.groups.accept.bell() {
            Some(bell) if on => poller.add_waker(bell.waker(), BELL, Interest::ReadExclusive),
            Some(bell) => poller.remove(bell.waker()),
            None => Ok(()),
        }
    }

    /// Takes no turns any more with the processes that accept from the same sockets, and calls them: this one may have been woken
    /// for a connection that it does not take.
    pub(crate) fn leave_line(&self) {
        let mut line = self.groups.turnstile.lock();
        if let Side::Open = line.side {
            // It may be closed already where there are no shared listeners.
            let _ = self.watch_bell(false);
        }
        line.side = Side::Closed { due: u64::MAX };
        self.scheduler.set_deferred(false);
        drop(line);
        self.groups.ring();
    }

    /// The listeners whose events are this group's: listener `i` has slot `i`.
    pub(crate) fn listeners(&self) -> &[Listening] {
        self.groups.listeners_of(self.number)
    }

    /// The group that a new connection belongs to.
    pub(crate) fn for_connection(self: &Arc<Self>) -> Arc<Self> {
        let emptiest = self.groups.emptiest(self.number);
        let other = if emptiest == self.number { None } else { self.groups.find(emptiest) };
        other.unwrap_or_else(|| Arc::clone(self))
    }

    /// Takes turns on a connection until nothing has happened to it meanwhile.
    fn turn(self: &Arc<Self>, token: Token, signals: Signals, scratch: &mut R::Scratch) -> Jobs<Job> {
        let mut jobs = Jobs::none();
        let Some(slot) = self.slots.find(token.slot) else { return jobs };
        if !slot.claim.signal(token.generation, signals) {
            return jobs;
        }
        let mut ended = false;
        let now = scratch.clock_mut().now();
        loop {
            let signals = slot.claim.take();
            let mut place = slot.lock();
            if let Some(resident) = place.as_mut() {
                let mut context =
                    Context { group: self, token, now, scratch: &mut *scratch, jobs: Jobs::none() };
                let turn = catch_unwind(AssertUnwindSafe(|| resident.turn(&mut context, signals)));
                resident.account(self);
                // Taken out whatever happened: an exchange must not be dropped under the lock.
                jobs.append(context.jobs);
                match turn.unwrap_or_else(|panic| self.note_panic(&*panic, scratch)) {
                    Turn::Wait => {}
                    Turn::Later => self.scheduler.ready_next(token.to_u64(), Signals::RESUME),
                    Turn::Close => {
                        ended = true;
                        self.slots.retire(slot);
                        self.timers.cancel(token.slot);
                        if let Some(mut resident) = place.take() {
                            resident.leave(self);
                        }
                    }
                }
            }
            drop(place);
            R::end_turn(self, scratch, now);
            if slot.claim.release() {
                break;
            }
        }
        if ended {
            self.slots.give_back(token.slot);
            self.count_closed();
        }
        jobs
    }

    /// A turn that panicked ends its connection, and nothing else.
    fn note_panic(&self, panic: &(dyn Any + Send), scratch: &mut R::Scratch) -> Turn {
        let text = panic_text(panic);
        let log = &self.site.log;
        log.error(format_args!("internal error, please report it: {text}; a connection was closed"));
        R::clear(scratch);
        Turn::Close
    }

    /// Moves what is due to the ready list.
    fn ring(&self) {
        let now = clock::monotonic();
        let time = Now { monotonic_ns: now, unix_seconds: clock::unix_seconds() };
        self.site.hosts.all().iter().for_each(|host| host.routes().sweep(time));
        self.groups.slowness.sweep(now);
        let mut due = Vec::new();
        self.timers.expire(now, &mut due);
        for slot in due {
            let generation = self.slots.find(slot).map_or(0, slots::Slot::generation);
            self.scheduler.ready_next(Token { slot, generation }.to_u64(), Signals::TIMER);
        }
        self.reset_alarm();
    }

    fn reset_alarm(&self) {
        self.timers.arm_with(|earliest| {
            if let Some(earliest) = earliest {
                self.alarm.set(earliest);
            }
        });
    }

    /// Sets the deadline of a slot, in monotonic nanoseconds.
    pub(crate) fn set_deadline(&self, slot: u32, deadline: u64) {
        if self.timers.set(slot, deadline) {
            self.reset_alarm();
        }
    }

    /// Goes on with a connection whose exchange has ended, from whatever thread ended it.
    pub(crate) fn resume(&self, token: Token) {
        self.scheduler.make_ready(token.to_u64(), Signals::RESUME);
    }

    /// Calls `act` with a connection, if it is still there. Slot and generation are looked at under the lock, where the
    /// connection is taken out too.
    pub(crate) fn with_connection<T>(&self, token: Token, act: impl FnOnce(&mut R) -> T) -> Option<T> {
        let slot = self.slots.find(token.slot)?;
        let mut place = slot.lock();
        let own = |_: &&mut R| slot.generation() == token.generation;
        place.as_mut().filter(own).map(|connection| {
            let result = act(connection);
            connection.account(self);
            result
        })
    }

    /// The pool that `find` finds in the map.
    pub(crate) fn pool_of(&self, find: impl FnOnce(&PoolMap) -> usize) -> usize {
        if !self.is_mapped.load(Ordering::Relaxed) {
            return 0;
        }
        find(&self.pool_map.load())
    }

    /// The map as it is now.
    pub(crate) fn pool_map(&self) -> Arc<PoolMap> {
        self.pool_map.load_full()
    }

    /// The slots of connections, with their numbers.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, &Slot<R>)> {
        let numbers = self.slots.numbers().skip(self.listeners().len());
        numbers.filter_map(|number| Some((number, self.slots.find(number)?)))
    }

    /// Exchanges the map; requests that wait stay where they are.
    pub(crate) fn set_pool_map(&self, map: Arc<PoolMap>) {
        let trivial = map.is_trivial();
        self.pool_map.store(map);
        self.is_mapped.store(!trivial, Ordering::Relaxed);
    }

    pub(crate) fn count_opened(&self) {
        self.groups.count_opened(self.number);
    }

    fn count_closed(&self) {
        self.groups.count_closed(self.number);
    }

    /// Whether its handlers run on the thread of an event loop.
    pub(crate) fn is_looped(&self) -> bool {
        self.scheduler.is_looped()
    }

    /// The pool that runs a request for this handler, where the rules lead to `pool`.
    pub(crate) fn pool_for(&self, handler: &dyn Handler, pool: usize) -> usize {
        match self.site.beside_loop {
            _ if self.is_looped() && handler.runs_on_event_loop() => 0,
            Some(threads) if pool == 0 => threads,
            _ => pool,
        }
    }

    /// Whether the event loop runs what the pool with this number gets.
    pub(crate) fn is_on_loop(&self, pool: usize) -> bool {
        pool == 0 && self.scheduler.is_looped()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.groups.is_draining()
    }

    /// Takes what waits in the listeners' queues, and closes them.
    pub(crate) fn close_listeners(self: &Arc<Self>) {
        for (slot, listening) in (0..).zip(self.listeners()) {
            R::close_listener(self, listening, Token { slot, generation: 0 });
        }
    }

    /// Tells the connections that they may be idle for a moment only, in which a request that is on its way still
    /// arrives.
    pub(crate) fn tell_idle(&self) {
        for slot in self.slots.numbers().skip(self.listeners().len()) {
            if let Some(found) = self.slots.find(slot) {
                let token = Token { slot, generation: found.generation() };
                self.scheduler.make_ready(token.to_u64(), Signals::DRAIN);
            }
        }
    }

    /// Ends at once: requests that wait for a thread are refused, connections are cut. Called when
    /// nothing is served any more, but application code may still run.
    pub(crate) fn cut(&self) {
        // Each waiting request holds this group through its responder.
        self.scheduler.discard_queue();
        for slot in self.slots.numbers().skip(self.listeners().len()).filter_map(|slot| self.slots.find(slot))
        {
            let mut place = slot.lock();
            if let Some(mut resident) = place.take() {
                self.slots.retire(slot);
                resident.leave(self);
                resident.cut();
                self.count_closed();
            }
        }
    }
}

// ---- Requests on their way through the scheduler ----
//
// Where they run, and what is learnt from it.

/// A handler that says it does not block and runs for longer than this, in nanoseconds, counts as one that does: a thousand
/// times what such a handler takes, and no time slice of the system's either.
const BLOCKED: u64 = 20_000_000;

/// What the thread of an event loop is called here.
const LOOP: &str = "maitred-loop";

/// A request that waits for, or is given to, an application thread.
pub(crate) struct Job {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Exchange,
    /// Whose it is.
    pub(crate) home: Place,
    pub(crate) target: Target,
    /// Its route, if routes are watched.
    pub(crate) watched: Option<Watched>,
    /// Whether its time was over before its response began, where there is a limit: to be asked also after it has run.
    pub(crate) limited: Option<Arc<Flags>>,
}

impl Job {
    /// Whether it has been answered while it waited: it is dropped then, and not run. One load.
    pub(crate) fn is_dead(&self) -> bool {
        self.limited.as_ref().is_some_and(|flags| flags.is_out())
    }

    /// A number for its route.
    pub(crate) fn route(&self) -> u64 {
        slowness::route(&self.exchange.request().head)
    }

    fn claims_not_to_block(&self) -> bool {
        self.handler.invocation_type() == InvocationType::NonBlocking
    }
}

impl<R: Resident> Serve for Group<R> {
    type Job = Job;
    type Measured = Measured;
    type Context = R::Scratch;

    fn scheduler(&self) -> &Scheduler<Job> {
        &self.scheduler
    }

    fn serve(self: &Arc<Self>, token: u64, signals: Signals, scratch: &mut R::Scratch) -> Jobs<Job> {
        if !note_event(token) {
            self.note_loop();
        }
        if token == ALARM {
            self.ring();
            return Jobs::none();
        }
        if signals.any(Signals::READ) && self.is_shared(token) {
            // After what came with it, which may take the thread that a connection needs.
            self.scheduler.ready_next(token, Signals::RESUME);
            return Jobs::none();
        }
        if token == BELL {
            if let Some(bell) = self.groups.accept.bell() {
                bell.waker().clear();
            }
            R::take_deferred(self);
            return Jobs::none();
        }
        let token = Token::from_u64(token);
        if let Some(listening) = self.listeners().get(token.slot as usize) {
            R::accept(self, listening, token);
            return Jobs::none();
        }
        // A token of the scheduler's own finds no slot.
        self.turn(token, signals, scratch)
    }

    fn send(self: &Arc<Self>, token: u64, now: u64) {
        let token = Token::from_u64(token);
        if let Some(slot) = self.slots.find(token.slot) {
            let mut place = slot.lock();
            if let Some(connection) = place.as_mut().filter(|_| slot.generation() == token.generation) {
                connection.send_last(self, token, now);
                connection.account(self);
            }
        }
    }

    fn send_all(self: &Arc<Self>, tokens: &mut &[(u64, Signals)], now: u64) {
        while !tokens.is_empty() {
            let (some, behind) = tokens.split_at(tokens.len().min(together::MOST));
            together::send(self, some);
            while let Some(((token, _), rest)) = tokens.split_first().filter(|_| tokens.len() > behind.len())
            {
                *tokens = rest;
                self.send(*token, now);
            }
        }
    }

    fn prefetch(&self, token: u64) {
        let slot = Token::from_u64(token).slot;
        if let Some(found) = self.slots.find(slot) {
            memory::prefetch(found);
        }
    }

    fn is_non_blocking(&self, job: &Job) -> bool {
        job.claims_not_to_block() && !self.groups.distrusts.load(Ordering::Relaxed)
    }

    fn target(&self, job: &Job) -> Target {
        job.target
    }

    /// The job may be that of another group.
    fn run(&self, job: Job, now: u64) -> Ran<Measured> {
        if job.is_dead() {
            return Ran::Not;
        }
        let entered = self.is_non_blocking(&job).then(maitred_io::clock::monotonic);
        let Job { handler, mut exchange, home, watched, limited, target } = job;
        exchange.begin(now);
        let Some(exchange) = exchange.unless_left() else { return Ran::Not };
        if own_tid() == 0 {
            // The driver may have read what the loop runs first.
            self.note_loop();
        }
        let _entered = enter(home, now);
        let watched = watched.or_else(|| self.groups.slowness.watch_late(&exchange.request().head, now));
        let measured = watched.map(Measured::begin);
        if let Some(flags) = &limited {
            flags.enter(self.number, now);
        }
        assert_outside("a handler is called");
        // The exchange is dropped by the unwinding and answers 500.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.handle(exchange))) {
            self.site.log.error(format_args!("a handler panicked: {}", panic_text(&*panic)));
        }
        if limited.is_some_and(|flags| flags.leave()) {
            self.scheduler.find_thread(target.pool);
        }
        if let Some(entered) = entered {
            self.check_claim(maitred_io::clock::monotonic().saturating_sub(entered));
        }
        Ran::Run(measured)
    }

    fn note_run(&self, measured: Option<Measured>, nanos: u64, now: u64) {
        self.groups.slowness.note(measured, nanos, now);
    }

    fn is_disk_behind(&self) -> bool {
        self.site.spilling.is_behind()
    }

    fn take_deferred(self: &Arc<Self>) -> bool {
        R::take_deferred(self)
    }

    fn refuse(&self, job: Job) {
        let text = "503 Service Unavailable: every thread is busy, and as many requests wait as may\n";
        let head = ResponseHead::new(Status::SERVICE_UNAVAILABLE)
            .with("Content-Type", PLAIN)
            .with("Retry-After", "1");
        // The peer may have gone meanwhile: nothing is left to do then.
        let _ = job.exchange.respond_error(head, text);
    }

    fn attached(&self, act: &mut dyn FnMut()) {
        assert_outside("the interpreter is taken");
        self.host.with_interpreter(act);
    }

    fn spawn(self: &Arc<Self>, pool: usize, name: &str, number: usize) -> io::Result<()> {
        let own = Arc::clone(self);
        let name = match (pool, self.groups.count()) {
            (0, 1) => format!("maitred-{number}"),
            (0, _) => format!("maitred-{}-{number}", self.number + 1),
            _ => format!("maitred-{name}-{number}"),
        };
        let known = name.clone();
        let body = move || {
            own.groups.thread_registry.join_pool(known, pool);
            work(&own, pool);
        };
        self.host.spawn(name, Box::new(body))
    }

    fn spawn_extra(self: &Arc<Self>) -> io::Result<()> {
        let own = Arc::clone(self);
        let name = match self.groups.count() {
            1 => "maitred-extra".to_owned(),
            _ => format!("maitred-{}-extra", self.number + 1),
        };
        let known = name.clone();
        let body = move || {
            own.groups.thread_registry.join(known, Role::Extra);
            run_extra(&own);
        };
        self.host.spawn(name, Box::new(body))
    }

    fn long(&self) -> u64 {
        self.groups.slowness.long()
    }

    fn report(&self, text: fmt::Arguments<'_>) {
        self.site.log.error(text);
    }
}

impl<R: Resident> Group<R> {
    /// The calling thread is in no registry: that of an event loop, which the language has made.
    fn note_loop(&self) {
        if self.scheduler.is_looped() {
            self.groups.thread_registry.join(LOOP.to_owned(), Role::EventLoop);
        }
    }

    /// A handler that claims not to block has taken `nanos`.
    fn check_claim(&self, nanos: u64) {
        if nanos >= BLOCKED && !self.groups.distrusts.swap(true, Ordering::Relaxed) {
            self.site.log.error(format_args!(
                "a handler that claims not to block has kept its thread for {} ms: it is run as one that may block from \
                 now on; have it say so (InvocationType::Blocking), or answer from another thread",
                nanos / 1_000_000
            ));
        }
    }
}

// ---- Which threads there are ----
//
// And what each of them is doing, written by the threads themselves.
//
// Promises: a thread writes with plain stores into a place of its own and waits for nobody; who reads takes what it
// finds, and notices when it was changed meanwhile (the time of entry is the sequence number). Leaves out: threads
// that neither poll nor run requests, which the system's list has.

/// What a thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It runs requests, and polls for them.
    Worker,
    /// The language's event loop.
    EventLoop,
    /// It runs usual requests while all workers are in slow ones.
    Extra,
    /// It polls where nobody else can.
    Driver,
}

impl Role {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::EventLoop => "event loop",
            Self::Extra => "extra",
            Self::Driver => "driver",
        }
    }
}

/// All that have begun and not ended.
#[derive(Default)]
pub(crate) struct ThreadRegistry {
    members: Mutex<Vec<Arc<Member>>>,
    ended: Mutex<Ended>,
}

/// The threads that have left.
#[derive(Clone, Default)]
pub(crate) struct Ended {
    /// What they took, by role.
    pub(crate) times: Vec<(Role, Times)>,
    /// The last of them, which the system may list for a moment more.
    last: VecDeque<Arc<Member>>,
}

impl Ended {
    /// Whether this thread, and this member if it was one when it was looked up, has left.
    pub(crate) fn has(&self, tid: i32, member: Option<&Arc<Member>>) -> bool {
        self.last.iter().any(|left| member.map_or(left.tid == tid, |member| Arc::ptr_eq(left, member)))
    }

    fn add(&mut self, member: &Arc<Member>, took: Times) {
        match self.times.iter_mut().find(|(role, _)| *role == member.role) {
            Some((_, times)) => times.add(took),
            None => self.times.push((member.role, took)),
        }
        if self.last.len() == LAST_ENDED {
            self.last.pop_front();
        }
        self.last.push_back(Arc::clone(member));
    }
}

/// More than can be between their last line and their end.
const LAST_ENDED: usize = 64;

/// Processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// In the program.
    pub user: Duration,
    /// In the kernel for it.
    pub system: Duration,
}

impl Times {
    pub(crate) fn add(&mut self, other: Self) {
        self.user += other.user;
        self.system += other.system;
    }
}

/// One thread.
pub struct Member {
    /// What it is called.
    pub name: String,
    /// What it is for.
    pub role: Role,
    /// The system's number of it.
    pub tid: i32,
    /// The number of the pool whose requests it runs, if it runs any.
    pub pool: Option<usize>,
    /// Rises with every event it serves and every request it runs.
    steps: AtomicU64,
    /// The token of the event it has served last.
    event: AtomicU64,
    /// When it entered the application, in monotonic nanoseconds; 0 while it is not there.
    entered: AtomicU64,
    /// Whose request it runs: the group and the token of the connection.
    home: AtomicU32,
    token: AtomicU64,
    stream: AtomicU32,
}

/// A request, as a thread names it that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inside {
    /// When it entered the application, in monotonic nanoseconds.
    pub since: u64,
    /// Where the request is.
    pub place: Place,
}

thread_local! {
    static OWN: OnceCell<Own> = const { OnceCell::new() };
}

impl ThreadRegistry {
    /// Notes the calling thread until it ends.
    pub(crate) fn join(self: &Arc<Self>, name: String, role: Role) {
        // An event loop runs what the default pool gets.
        self.note(name, role, (role == Role::EventLoop).then_some(0));
    }

    /// The same for a thread of this pool.
    pub(crate) fn join_pool(self: &Arc<Self>, name: String, pool: usize) {
        self.note(name, Role::Worker, Some(pool));
    }

    fn note(self: &Arc<Self>, name: String, role: Role, pool: Option<usize>) {
        OWN.with(|own| {
            let member = Arc::new(Member {
                name,
                role,
                tid: tasks::own(),
                pool,
                steps: AtomicU64::new(0),
                event: AtomicU64::new(u64::MAX),
                entered: AtomicU64::new(0),
                home: AtomicU32::new(0),
                token: AtomicU64::new(0),
                stream: AtomicU32::new(0),
            });
            // A thread serves one server for all its life.
            if own.set(Own { registry: Arc::clone(self), member: Arc::clone(&member) }).is_ok() {
                self.lock().push(member);
            }
        });
    }

    pub(crate) fn members(&self) -> Vec<Arc<Member>> {
        self.lock().clone()
    }

    pub(crate) fn ended(&self) -> Ended {
        self.lock_ended().clone()
    }

    fn lock_ended(&self) -> MutexGuard<'_, Ended> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A panic elsewhere cannot leave the list half-changed.
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The calling thread as the system numbers it; 0 if it is in no registry.
pub(crate) fn own_tid() -> i32 {
    OWN.with(|own| own.get().map_or(0, |own| own.member.tid))
}

/// What the calling thread is called; none if it is in no registry.
pub(crate) fn own_name() -> Option<String> {
    OWN.with(|own| own.get().map(|own| own.member.name.clone()))
}

/// The calling thread serves an event. False if it is in no registry.
pub(crate) fn note_event(token: u64) -> bool {
    OWN.with(|own| {
        let Some(Own { member, .. }) = own.get() else { return false };
        member.event.store(token, Ordering::Relaxed);
        member.step();
        true
    })
}

/// The calling thread runs a request from `now` on, in monotonic nanoseconds or 0 for the present time, until the result
/// is dropped.
#[must_use]
pub(crate) fn enter(place: Place, now: u64) -> Entered {
    OWN.with(|own| {
        if let Some(Own { member, .. }) = own.get() {
            member.step();
            // A reader that sees any of the two also sees that the earlier request has ended.
            fence(Ordering::Release);
            member.home.store(place.group as u32, Ordering::Relaxed);
            member.token.store(place.token, Ordering::Relaxed);
            member.stream.store(place.stream, Ordering::Relaxed);
            let since = if now == 0 { clock::monotonic_coarse() } else { now };
            member.entered.store(since.max(1), Ordering::Release);
        }
    });
    Entered { not_send: PhantomData }
}

/// The calling thread runs a request.
pub(crate) struct Entered {
    // It must end on the thread on which it began.
    not_send: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        OWN.with(|own| {
            if let Some(Own { member, .. }) = own.get() {
                member.entered.store(0, Ordering::Relaxed);
            }
        });
    }
}

impl Member {
    /// Only the thread itself counts: no other store can come between.
    fn step(&self) {
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// What rises as long as it gets on.
    pub fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The event it has served last.
    pub fn event(&self) -> Option<u64> {
        Some(self.event.load(Ordering::Relaxed)).filter(|token| *token != u64::MAX)
    }

    /// The request it runs, if it runs one.
    pub fn inside(&self) -> Option<Inside> {
        let since = self.entered.load(Ordering::Acquire);
        let place = Place {
            group: self.home.load(Ordering::Relaxed) as usize,
            token: self.token.load(Ordering::Relaxed),
            stream: self.stream.load(Ordering::Relaxed),
        };
        fence(Ordering::Acquire);
        let same = since != 0 && self.entered.load(Ordering::Relaxed) == since;
        same.then_some(Inside { since, place })
    }
}

/// The place of a thread, in the list as long as the thread lives.
struct Own {
    registry: Arc<ThreadRegistry>,
    member: Arc<Member>,
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(task) = tasks::read(self.member.tid) {
            let took = Times { user: task.user, system: task.system };
            self.registry.lock_ended().add(&self.member, took);
        }
        self.registry.lock().retain(|member| !Arc::ptr_eq(member, &self.member));
    }
}

#[cfg(test)]
mod thread_registry_tests {
    use super::*;

    #[test]
    fn a_thread_is_known_while_it_lives_and_so_is_its_request() {
        let thread_registry = Arc::new(ThreadRegistry::default());
        let own = Arc::clone(&thread_registry);
        let seen = std::thread::spawn(move || {
            assert!(!note_event(1), "not yet");
            own.join("one".to_owned(), Role::Worker);
            assert!(note_event(7));
            let member = own.members().pop().expect("listed");
            assert_eq!((member.tid, member.event(), member.inside()), (tasks::own(), Some(7), None));
            let place = Place { group: 3, token: 9, stream: 1 };
            let entered = enter(place, 5);
            let inside = member.inside().expect("inside");
            assert_eq!(inside, Inside { since: 5, place });
            drop(entered);
            (member.inside(), member.steps(), own.members().len())
        });
        assert_eq!(seen.join().expect("no panic"), (None, 2, 1));
        assert!(thread_registry.members().is_empty());
    }

    #[test]
    fn the_time_of_a_thread_that_has_ended_is_kept() {
        let thread_registry = Arc::new(ThreadRegistry::default());
        for _ in 0..2 {
            let own = Arc::clone(&thread_registry);
            let burner = std::thread::spawn(move || {
                own.join("burner".to_owned(), Role::Worker);
                // The system counts in steps of 10 ms.
                let mut work = 0_u64;
                while tasks::read(tasks::own()).is_some_and(|task| (task.user + task.system).as_millis() < 20)
                {
                    work = std::hint::black_box(work + 1);
                }
            });
            burner.join().expect("no panic");
        }
        let ended = thread_registry.ended();
        assert_eq!((ended.times.len(), ended.last.len()), (1, 2));
        assert!(
            ended
                .times
                .iter()
                .all(|(role, took)| *role == Role::Worker && (took.user + took.system).as_millis() >= 40)
        );
    }
}
