//! A poll group: one readiness queue with everything that is served from it.
//!
//! Promises: each thread that waits on the group can serve every event; events fetched from the kernel are never kept
//! on the stack of one thread (the ready list belongs to the group).
//!
//! Section below: requests on their way through the scheduler.

pub(crate) mod groups;
mod resident;
mod resources;
pub(crate) mod slots;
pub(crate) mod thread_registry;
mod turns;
pub(crate) mod turnstile;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{fmt, io};

use arc_swap::ArcSwap;
use maitred_dispatch::{Scheduler, Serve, panic_text, run_reserve, work};
use maitred_exchange::pages::PLAIN;
use maitred_exchange::{Flags, Site};
use maitred_files::Now;
use maitred_http::{ResponseHead, Status};
use maitred_io::poller::{Alarm, Interest};
use maitred_io::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use maitred_io::timers::Timers;
use maitred_io::{clock, memory, process, thread_state};
use maitred_pool::RouteClass;
use maitred_runtime::lock_order::assert_outside;
use maitred_runtime::{Exchange, Handler, InvocationType, Tail, ThreadHost};
use maitred_turns::{Jobs, Signals};

use crate::listener::Listening;
use crate::pool_map::PoolMap;
use groups::Groups;
use slots::{Place, Slot, Slots, Token};
use thread_registry::{Role, enter, note_event, own_tid};
use turnstile::Side;

pub(crate) use resident::{Context, Occupant, Resident, Visitor};

/// The token of the group's timer; slot numbers stay far below, the scheduler's own tokens above.
const ALARM: u64 = u64::MAX - 2;

/// The token of the bell with which processes that accept from the same sockets call each other.
const BELL: u64 = u64::MAX - 3;

/// The group.
pub(crate) struct Group<R: Resident> {
    /// Number of the group.
    pub(crate) number: usize,
    pub(crate) groups: Arc<Groups<R>>,
    pub(crate) scheduler: Scheduler<Job>,
    /// The host of the threads that poll.
    pub(crate) host: Arc<dyn ThreadHost>,
    pub(crate) slots: Slots<Occupant<R>>,
    pub(crate) timers: Timers,
    alarm: Alarm,
    pub(crate) site: Arc<Site>,
    /// Map from requests to pools. Exchanged at run time, and not read while it is trivial.
    pool_map: ArcSwap<PoolMap>,
    is_mapped: AtomicBool,
    /// Number of requests that the event loop runs.
    on_loop: AtomicUsize,
}

/// Counts a request that the event loop runs, until dropped.
pub(crate) struct OnLoop<R: Resident>(Arc<Group<R>>);

impl<R: Resident> Drop for OnLoop<R> {
    fn drop(&mut self) {
        if self.0.on_loop.fetch_sub(1, Ordering::SeqCst) >= self.0.site.loop_requests {
            self.0.scheduler.go_on_held();
        }
    }
}

impl<R: Resident> Group<R> {
    pub(crate) fn new(
        site: Arc<Site>,
        (number, groups): (usize, &Arc<Groups<R>>),
        scheduler: Scheduler<Job>,
        pool_map: Arc<PoolMap>,
    ) -> io::Result<Self> {
        let group = Self {
            number,
            groups: Arc::clone(groups),
            scheduler,
            host: Arc::clone(groups.thread_hosts.of(0)),
            slots: Slots::new(),
            timers: Timers::new(),
            alarm: Alarm::new()?,
            site,
            is_mapped: AtomicBool::new(!pool_map.is_trivial()),
            on_loop: AtomicUsize::new(0),
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

    /// Starts or stops watching the bell of the processes that accept from the same sockets.
    pub(crate) fn watch_bell(&self, on: bool) -> io::Result<()> {
        let poller = &self.scheduler.poller;
        match self.groups.accept.bell() {
            Some(bell) if on => poller.add_waker(bell.waker(), BELL, Interest::ReadExclusive),
            Some(bell) => poller.remove(bell.waker()),
            None => Ok(()),
        }
    }

    /// Leaves the line of the processes that accept from the same sockets, and rings for them: the kernel may have
    /// woken this one for a connection that it does not take.
    pub(crate) fn leave_line(&self) {
        let mut line = self.groups.turnstile.lock();
        if let Side::Open = line.side {
            // The bell may be closed already where there are no shared listeners.
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

    /// Moves tokens with a passed deadline to the ready list.
    fn ring(&self) {
        let now = clock::monotonic();
        let time = Now { monotonic_ns: now, unix_seconds: clock::unix_seconds() };
        self.site.hosts.all().iter().for_each(|host| host.routes().sweep(time));
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

    /// Calls `find` with the map. With a trivial map, returns the default, which is the number of the default pool.
    pub(crate) fn pool_of<T: Default>(&self, find: impl FnOnce(&PoolMap) -> T) -> T {
        if !self.is_mapped.load(Ordering::Relaxed) {
            return T::default();
        }
        find(&self.pool_map.load())
    }

    /// The present map.
    pub(crate) fn pool_map(&self) -> Arc<PoolMap> {
        self.pool_map.load_full()
    }

    /// The slots of connections, with their numbers.
    pub(crate) fn connections(&self) -> impl Iterator<Item = (u32, &Slot<Occupant<R>>)> {
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

    /// Whether handlers of this group run on the thread of an event loop.
    pub(crate) fn is_looped(&self) -> bool {
        self.scheduler.is_looped()
    }

    /// The pool that runs a request for this handler, where the rules lead to `pool`.
    pub(crate) fn pool_for(&self, handler: &dyn Handler, pool: usize) -> usize {
        let pool = match self.site.beside_loop {
            _ if self.is_looped() && handler.runs_on_event_loop() => 0,
            Some(threads) if pool == 0 => threads,
            _ => pool,
        };
        self.groups.thread_hosts.pool_for(handler, pool)
    }

    /// The host of the threads of this pool.
    pub(crate) fn host_of(&self, pool: usize) -> &dyn ThreadHost {
        &**self.groups.thread_hosts.of(pool)
    }

    /// Whether the event loop runs the requests of the pool with this number.
    pub(crate) fn is_on_loop(&self, pool: usize) -> bool {
        pool == 0 && self.scheduler.is_looped()
    }

    /// Counts a request that the event loop runs, where there is a limit for that.
    pub(crate) fn enter_loop(self: &Arc<Self>, pool: usize) -> Option<OnLoop<R>> {
        (self.site.loop_requests > 0 && self.is_on_loop(pool)).then(|| {
            self.on_loop.fetch_add(1, Ordering::SeqCst);
            OnLoop(Arc::clone(self))
        })
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.groups.is_draining()
    }

    /// Takes the connections that wait at the listeners, and closes the listeners.
    pub(crate) fn close_listeners(self: &Arc<Self>) {
        for (slot, listening) in (0..).zip(self.listeners()) {
            R::close_listener(self, listening, Token { slot, generation: 0 });
        }
    }

    /// Shortens the idle time of the connections to a moment in which a request on its way still arrives.
    pub(crate) fn tell_idle(&self) {
        for slot in self.slots.numbers().skip(self.listeners().len()) {
            if let Some(found) = self.slots.find(slot) {
                let token = Token { slot, generation: found.generation() };
                self.scheduler.make_ready(token.to_u64(), Signals::DRAIN);
            }
        }
    }
}

// ---- Requests on their way through the scheduler ----
//
// The choice of their threads, and the lessons from their runs.

/// A handler that claims not to block and keeps its thread for longer than this, in nanoseconds, is suspected; one that is
/// suspected and sleeps or computes for as long counts as blocking. A thousand times the usual time of such a handler, and more than
/// a time slice of the system.
const BLOCKED: u64 = 20_000_000;

/// What the engine thinks of handlers that claim not to block.
pub(crate) mod trust {
    pub(crate) const FULL: u8 = 0;
    pub(crate) const SUSPECTED: u8 = 1;
    pub(crate) const NONE: u8 = 2;
}

/// Processor time of this thread, and for how long it has waited for a processor; both in nanoseconds.
fn account() -> (u64, u64) {
    (process::thread_processor_ns(), thread_state::own_starved_ns())
}

/// Name of the thread of an event loop in the registry.
const LOOP: &str = "maitred-loop";

/// A request that waits for, or is given to, an application thread.
pub(crate) struct Job {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Exchange,
    /// The exchange of the request.
    pub(crate) home: Place,
    /// Number of the pool.
    pub(crate) pool: usize,
    /// Flags of the exchange, where a time limit applies: they tell, also after the run, whether the time was over
    /// before the response began.
    pub(crate) limited: Option<Arc<Flags>>,
}

impl Job {
    /// Whether the engine has answered while the request waited; such a request is dropped. Costs one load.
    pub(crate) fn is_dead(&self) -> bool {
        self.limited.as_ref().is_some_and(|flags| flags.is_out())
    }

    /// A number for the route, equal for all requests of that route. No peer can foretell it.
    pub(crate) fn route(&self) -> u64 {
        self.exchange.request().head.shape_hash
    }

    /// A number for the connection; 0 where the connection has one exchange at a time.
    pub(crate) fn connection(&self) -> u64 {
        let Place { group, token, stream } = self.home;
        if stream == 0 { 0 } else { token ^ (group as u64).rotate_right(8) }
    }

    fn claims_not_to_block(&self) -> bool {
        self.handler.invocation_type() == InvocationType::NonBlocking
    }
}

impl<R: Resident> Serve for Group<R> {
    type Job = Job;
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
            // Behind the jobs of the same turn, which may take the thread that a connection needs.
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
        // The scheduler's own tokens find no slot.
        self.turn(token, signals, scratch)
    }

    fn send(self: &Arc<Self>, token: u64, now: u64) {
        let token = Token::from_u64(token);
        if let Some(slot) = self.slots.find(token.slot) {
            let mut place = slot.lock();
            if let Some(Occupant::Resident(connection)) = place.as_mut()
                && slot.generation() == token.generation
            {
                connection.send_what_waits(self, token, now);
                connection.account(self, token);
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
        job.claims_not_to_block() && self.groups.trust.load(Ordering::Relaxed) != trust::NONE
    }

    fn pool(&self, job: &Job) -> usize {
        job.pool
    }

    fn class(&self, job: &Job) -> RouteClass {
        let pool = self.scheduler.pool_at(job.pool);
        pool.class_of(clock::monotonic_coarse(), || job.route())
    }

    /// Runs a job, which may belong to another group.
    fn run(&self, job: Job, now: u64) -> Option<u64> {
        if job.is_dead() {
            return None;
        }
        let entered = self.is_non_blocking(&job).then(|| self.begin_claim());
        let Job { handler, mut exchange, home, pool, limited } = job;
        exchange.begin(now);
        let exchange = exchange.unless_left()?;
        if own_tid() == 0 {
            // The backup poller may have read the first requests of the loop.
            self.note_loop();
        }
        let _entered = enter(home, now);
        if let Some(flags) = &limited {
            flags.enter(self.number, now);
        }
        assert_outside("a handler is called");
        // The tail of a handler that has ended a response for another thread.
        drop(Tail::take());
        // The exchange is dropped by the unwinding and answers 500.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.handle(exchange))) {
            self.site.log.error(format_args!("a handler panicked: {}", panic_text(&*panic)));
        }
        let ended = clock::monotonic();
        if let Some(tail) = Tail::take() {
            tail.end(ended);
        }
        if limited.is_some_and(|flags| flags.leave()) {
            self.scheduler.find_thread(pool);
        }
        if let Some(entered) = entered {
            self.check_claim(entered);
        }
        Some(ended)
    }

    fn is_disk_behind(&self) -> bool {
        self.site.spilling.is_behind()
    }

    fn is_loop_full(&self) -> bool {
        let most = self.site.loop_requests;
        most > 0 && self.on_loop.load(Ordering::SeqCst) >= most
    }

    fn take_deferred(self: &Arc<Self>) -> bool {
        R::take_deferred(self)
    }

    fn refuse(&self, job: Job) {
        let text = "503 Service Unavailable: every thread is busy, and as many requests wait as may\n";
        let head = ResponseHead::new(Status::SERVICE_UNAVAILABLE)
            .with("Content-Type", PLAIN)
            .with("Retry-After", "1");
        // The peer may have left meanwhile; nothing is left to do then.
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
        self.host_of(pool).spawn(name, Box::new(body))
    }

    fn spawn_reserve(self: &Arc<Self>) {
        let own = Arc::clone(self);
        let name = match self.groups.count() {
            1 => "maitred-reserve".to_owned(),
            _ => format!("maitred-{}-reserve", self.number + 1),
        };
        let known = name.clone();
        let body = move || {
            own.groups.thread_registry.join(known, Role::Reserve);
            run_reserve(&own);
        };
        // A failed spawn is tried again later.
        let _ = self.host.spawn(name, Box::new(body));
    }

    fn report(&self, text: fmt::Arguments<'_>) {
        self.site.log.error(text);
    }
}

impl<R: Resident> Group<R> {
    /// Adds the calling thread to the registry if it is missing: the thread of an event loop, made by the language.
    fn note_loop(&self) {
        if self.scheduler.is_looped() {
            self.groups.thread_registry.join(LOOP.to_owned(), Role::EventLoop);
        }
    }

    /// The time, and the processor time of this thread and its waits for a processor if such handlers are suspected.
    fn begin_claim(&self) -> (u64, Option<(u64, u64)>) {
        let is_suspected = self.groups.trust.load(Ordering::Relaxed) == trust::SUSPECTED;
        (clock::monotonic(), is_suspected.then(account))
    }

    /// Checks the run of a handler that claims not to block. A busy machine may keep it from the processor for long, so a
    /// long run only makes it suspected; in a later one its sleep and its computing count.
    fn check_claim(&self, (entered, before): (u64, Option<(u64, u64)>)) {
        let nanos = clock::monotonic().saturating_sub(entered);
        if nanos < BLOCKED {
            return;
        }
        let trust = &self.groups.trust;
        let change =
            |from, to| trust.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let Some((computed_before, starved_before)) = before else {
            change(trust::FULL, trust::SUSPECTED);
            return;
        };
        let (computed, starved) = account();
        let starved = starved.saturating_sub(starved_before);
        let computed = computed.saturating_sub(computed_before);
        let slept = nanos.saturating_sub(computed + starved);
        if slept < BLOCKED && computed < BLOCKED {
            change(trust::SUSPECTED, trust::FULL);
        } else if change(trust::SUSPECTED, trust::NONE) {
            self.site.log.error(format_args!(
                "a handler that claims not to block has kept its thread for {} ms: it is run as one that may block from \
                 now on; have it say so (InvocationType::Blocking), or answer from another thread",
                nanos / 1_000_000
            ));
        }
    }
}
