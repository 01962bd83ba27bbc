//! A poll group: one readiness queue with everything that is served from it.
//!
//! Promises: whoever waits on the group can serve whatever the wait brings; nothing that was
//! fetched from the kernel stays on one thread's stack (the ready list belongs to the group).

pub(crate) mod claim;
pub(crate) mod flags;
pub(crate) mod groups;
mod jobs;
mod resident;
mod resources;
pub(crate) mod slots;
pub(crate) mod slowness;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arc_swap::ArcSwap;
use maitred_io::clock;
use maitred_io::poller::{Alarm, Interest};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_io::timers::Timers;
use maitred_runtime::ThreadHost;

use crate::listener::Listening;
use crate::place::Token;
use crate::pool_map::PoolMap;
use crate::site::Site;
use groups::Groups;
pub(crate) use jobs::Job;
use maitred_dispatch::{Jobs, Scheduler, Signals, TurnContext, panic_text};
use maitred_files::Now;
pub(crate) use resident::{Context, Resident, Turn};
use slots::{Slot, Slots};
pub(crate) use slowness::Watched;

/// The token of the group's timer; slot numbers stay far below, the scheduler's own tokens above.
const ALARM: u64 = u64::MAX - 2;

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
        Ok(group)
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
        self.site.routes.sweep(Now { monotonic_ns: now, unix_seconds: clock::unix_seconds() });
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
