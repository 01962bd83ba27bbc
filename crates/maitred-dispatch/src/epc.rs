//! EPC, execute, produce, consume ("eat what you kill"): one thread at a time is the producer; when it has a request it
//! wakes another one to take over, and runs the request itself.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use crate::Serve;
use crate::parking::ParkSlot;
use crate::pool::{Parked, WakeAction};
use crate::scaling::After;
use crate::turn_clock::TurnContext;
use crate::worker::{Round, run_rounds, serve, serve_batch};

/// The life of one of the threads.
pub(super) fn run<S: Serve>(server: &Arc<S>) {
    let scheduler = server.scheduler();
    scheduler.pool.started();
    let mut member = Member {
        server,
        slot: scheduler.pool.slot(),
        context: S::Context::default(),
        // One: what a producer leaves behind would wait for its successor's wake-up.
        events: Events::with_capacity(1),
        served: 0,
    };
    if run_rounds(server, || member.round()) {
        scheduler.pool.ended();
    }
}

struct Member<'a, S: Serve> {
    server: &'a Arc<S>,
    slot: ParkSlot<'a, S::Job>,
    context: S::Context,
    events: Events,
    served: u64,
}

impl<S: Serve> Member<'_, S> {
    /// What waits, then production if nobody does that, else idleness.
    fn round(&mut self) -> Round {
        let scheduler = self.server.scheduler();
        if let Some(job) = scheduler.pool.pop() {
            return self.consume(job, clock::monotonic());
        }
        if !scheduler.producing.swap(true, Ordering::SeqCst) {
            scheduler.followed.store(false, Ordering::SeqCst);
            let produced = Seat { server: self.server }.hold(|| self.produce());
            return produced.map_or(Round::GoOn, |job| self.execute(job));
        }
        let busy = || scheduler.producing.load(Ordering::SeqCst);
        match scheduler.pool.park(&self.slot, |waiting| !waiting && busy()) {
            Parked::Woken => Round::GoOn,
            Parked::Superfluous => Round::End,
            Parked::Given(job) => self.consume(job, clock::monotonic()),
        }
    }

    /// Polls and reads until there is a request, or something else to look at.
    fn produce(&mut self) -> Option<S::Job> {
        let scheduler = self.server.scheduler();
        self.context.clock_mut().set_now(None);
        for _ in 0..scheduler.ready.len() {
            let (token, signals) = scheduler.ready.pop()?;
            if let Some(job) = serve(self.server, token, signals, &mut self.context) {
                return Some(job);
            }
        }
        let took = scheduler.take_deferred(self.server);
        let limit = if scheduler.is_idle() && !took { None } else { Some(Duration::ZERO) };
        if let Err(error) = scheduler.poller.wait(&mut self.events, limit) {
            self.server.report(format_args!("waiting for events: {error}"));
        }
        self.context.clock_mut().set_now(None);
        serve_batch(self.server, &self.events, &mut self.context)
    }

    /// Another thread takes over production before the request runs; one wake-up at a time is on its way.
    fn execute(&mut self, job: S::Job) -> Round {
        let scheduler = self.server.scheduler();
        let Some(job) = scheduler.assign(job, self.server) else {
            return Round::GoOn;
        };
        if !scheduler.producing.load(Ordering::SeqCst) && !scheduler.followed.swap(true, Ordering::SeqCst) {
            let call = scheduler.pool.wake_poller();
            if call == WakeAction::Nothing {
                scheduler.followed.store(false, Ordering::SeqCst);
            }
            scheduler.perform(&call, self.server);
        }
        self.consume(job, self.context.clock().turn_began())
    }

    fn consume(&mut self, job: S::Job, now: u64) -> Round {
        let scheduler = self.server.scheduler();
        scheduler.run(job, now, self.server);
        self.served += 1;
        let After::End { replace } = scheduler.pool.after_request(self.served) else {
            return Round::GoOn;
        };
        if replace {
            scheduler.perform(&WakeAction::Spawn, self.server);
        }
        Round::End
    }
}

/// The role of the producer, given up also in a panic.
struct Seat<'a, S: Serve> {
    server: &'a Arc<S>,
}

impl<S: Serve> Seat<'_, S> {
    fn hold<T>(self, act: impl FnOnce() -> T) -> T {
        let scheduler = self.server.scheduler();
        scheduler.pollers.fetch_add(1, Ordering::SeqCst);
        scheduler.driver.release_polling();
        act()
    }
}

impl<S: Serve> Drop for Seat<'_, S> {
    fn drop(&mut self) {
        let scheduler = self.server.scheduler();
        scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
        scheduler.producing.store(false, Ordering::SeqCst);
    }
}
