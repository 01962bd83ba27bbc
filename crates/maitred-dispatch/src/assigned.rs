//! What a thread does that has no part in polling: it runs what it is given, then what waits, and is idle else.
//!
//! Where there is one interpreter its pool has a gate too (see [`gate`](super::gate)): a request that may not enter waits in
//! the queue, and the first thread that finds it there watches those inside.

use std::sync::Arc;

use maitred_io::clock;

use crate::gate::{Arrival, Left, Seat, Watched};
use crate::pool::{Call, Parked, Pool};
use crate::scaling::After;
use crate::{Scheduler, Serve};

/// The life of a thread of the pool `index`.
pub(super) fn run<S: Serve>(server: &Arc<S>, index: usize) {
    let scheduler = server.scheduler();
    let pool = scheduler.pool_at(index);
    pool.started();
    let mut thread = Assigned { server, index, pool, seat: pool.gate.seat(), served: 0, done: false };
    if pool.follow() {
        thread.answer(&Call::Spawn);
    }
    let spot = pool.spot();
    let mut given = None;
    while !scheduler.is_stopping() && !thread.done {
        let job = match given.take() {
            Some(job) => thread.arrive(job),
            None if spot.take_watch() => thread.watch(),
            None => thread.look(),
        };
        if let Some(job) = job {
            given = thread.serve(job);
            continue;
        }
        match pool.park(&spot, |waiting| !waiting || (pool.exclusive && pool.gate.is_watched())) {
            Parked::Called => {}
            Parked::Given(job) => given = Some(job),
            Parked::Superfluous => return,
        }
    }
    // A request that is left is dropped unanswered: a 500.
    drop(given);
    if !thread.done {
        pool.ended();
    }
}

/// One such thread.
struct Assigned<'a, S: Serve> {
    server: &'a Arc<S>,
    index: usize,
    pool: &'a Pool<S::Job>,
    /// At the gate, where there is one.
    seat: Arc<Seat>,
    /// Requests it has run.
    served: u64,
    /// It is not counted any more, and ends.
    done: bool,
}

impl<S: Serve> Drop for Assigned<'_, S> {
    fn drop(&mut self) {
        self.seat.leave();
        self.pool.gate.unseat(&self.seat);
    }
}

impl<'a, S: Serve> Assigned<'a, S> {
    fn scheduler(&self) -> &'a Scheduler<S::Job> {
        self.server.scheduler()
    }

    fn answer(&self, call: &Call) {
        self.scheduler().answer_call_of(self.index, call, self.server);
    }

    /// Enters with a request it has, or with an older one; none when this one waits.
    fn arrive(&self, job: S::Job) -> Option<S::Job> {
        if !self.pool.exclusive {
            return Some(job);
        }
        self.follow(self.pool.arrive(job, &self.seat, clock::monotonic()))
    }

    /// A request that waits and may enter.
    fn look(&self) -> Option<S::Job> {
        if !self.pool.exclusive {
            return self.pool.pop();
        }
        self.pool.look(&self.seat).and_then(|arrival| self.follow(arrival))
    }

    fn follow(&self, arrival: Arrival<S::Job>) -> Option<S::Job> {
        match arrival {
            Arrival::Run(job) => Some(job),
            Arrival::Watch => self.watch(),
            Arrival::Park => None,
            Arrival::Refuse(job) => {
                self.server.refuse(job);
                None
            }
        }
    }

    /// Watches until a request may enter or none waits.
    fn watch(&self) -> Option<S::Job> {
        let began = clock::monotonic();
        while !self.scheduler().is_stopping() {
            match self.pool.watch(&self.seat, began, self.server.long()) {
                Watched::Run(job) => return Some(job),
                Watched::Idle => return None,
                Watched::Sleep(nanos) => self.pool.gate.pause(clock::monotonic(), nanos),
            }
        }
        self.pool.end_watch();
        None
    }

    /// Runs a request, and at the gate those that wait for as long as it has its permit. A request that is left then.
    fn serve(&mut self, job: S::Job) -> Option<S::Job> {
        let mut next = Some(job);
        while let Some(job) = next {
            if self.pool.exclusive {
                self.call_for_those_that_wait();
                if !self.pool.gate.may_enter(&self.seat) {
                    return Some(job);
                }
            }
            let now = clock::monotonic();
            self.seat.enter(now);
            let ended = self.scheduler().run_assigned(job, now, &**self.server, self.pool);
            self.seat.leave();
            self.served += 1;
            if let After::End { replace } = self.pool.after_request(self.served) {
                self.done = true;
                if replace {
                    self.answer(&Call::Spawn);
                }
                self.make_way();
                return None;
            }
            if self.pool.exclusive {
                self.pool.look_unwatched(ended, self.server.long());
            }
            if !self.pool.exclusive || !self.pool.gate.may_go_on(&self.seat) {
                return None;
            }
            next = match self.pool.pop() {
                Some(job) => Some(job),
                None => match self.pool.leave(&self.seat) {
                    Left::Next(job) => Some(job),
                    Left::Gone => None,
                },
            };
        }
        None
    }

    /// Nobody enters while a request waits that nobody watches for, unless no thread is left.
    fn call_for_those_that_wait(&self) {
        if self.pool.queued() > 0 && !self.pool.gate.is_watched() && !self.pool.call_watcher() {
            self.answer(&self.pool.call_for_queue());
        }
    }

    /// Gives up the permit although something may wait.
    fn make_way(&self) {
        let pool = self.pool;
        if pool.exclusive && !pool.step_aside(&self.seat, clock::monotonic()) && pool.queued() > 0 {
            self.answer(&pool.call_for_queue());
        }
    }
}
