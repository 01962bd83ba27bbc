//! A thread that has no part in polling: it runs the request that it is given, then waiting ones, and is idle otherwise.
//!
//! At a [limiter](super::limiter) a request that may not enter waits in the queue, and the first thread that finds it there monitors.

use std::sync::Arc;

use maitred_io::clock;

use crate::app_thread::AppThread;
use crate::limiter::Admitted;
use crate::pool::{Errand, Pool, Slot, WakeAction};
use crate::worker::monitor;
use crate::{Scheduler, Serve};

pub(super) fn run<S: Serve>(server: &Arc<S>, index: usize) {
    let scheduler = server.scheduler();
    let pool = scheduler.pool_at(index);
    pool.threads.started();
    let mut own = Assigned { server, index, pool, thread: pool.limiter.add(), served: 0, done: false };
    if pool.grow_behind_start() {
        scheduler.perform(index, WakeAction::Spawn, server);
    }
    let slot = Slot::default();
    let mut given = None;
    while !scheduler.is_stopping() && !own.done {
        let job = match given.take() {
            Some(job) => own.arrive(job),
            None => own.look(),
        };
        if let Some(job) = job {
            given = own.serve(job);
            continue;
        }
        match pool.park(&slot, |waiting| !waiting || (pool.exclusive && pool.limiter.is_monitored())) {
            Errand::Look => {}
            Errand::Run(job) => given = Some(job),
            Errand::Monitor => given = own.monitor().and_then(|job| own.serve(job)),
            Errand::End => return,
        }
    }
    // A request that is left is to drop it answers 500.
    drop(given);
    if !own.done {
        pool.threads.ended();
    }
}

struct Assigned<'a, S: Serve> {
    server: &'a Arc<S>,
    index: usize,
    pool: &'a Pool<S::Job>,
    thread: Arc<AppThread>,
    served: u64,
    /// The thread is not counted any more, and ends.
    done: bool,
}

impl<S: Serve> Drop for Assigned<'_, S> {
    fn drop(&mut self) {
        self.thread.leave();
        self.pool.limiter.remove(&self.thread);
    }
}

impl<'a, S: Serve> Assigned<'a, S> {
    fn scheduler(&self) -> &'a Scheduler<S::Job> {
        self.server.scheduler()
    }

    /// Enters with a request it has, or with an older one; none when this one waits.
    fn arrive(&self, job: S::Job) -> Option<S::Job> {
        if !self.pool.exclusive {
            return Some(job);
        }
        let class = self.server.class(&job);
        self.act_on(self.pool.arrive(job, class, &self.thread, clock::monotonic()))
    }

    fn look(&self) -> Option<S::Job> {
        if !self.pool.exclusive {
            return self.pool.pop();
        }
        self.pool.look(&self.thread).and_then(|admitted| self.act_on(admitted))
    }

    fn act_on(&self, admitted: Admitted<S::Job>) -> Option<S::Job> {
        match admitted {
            Admitted::Run(job) => Some(job),
            Admitted::Monitor => self.monitor(),
            Admitted::Park => None,
            Admitted::Refuse(job) => {
                self.server.refuse(job);
                None
            }
        }
    }

    fn monitor(&self) -> Option<S::Job> {
        monitor(self.scheduler(), self.pool, &self.thread, || self.pool.taken())
    }

    /// Runs a request, and at the limiter those that wait for as long as it has a permit. A request that is left then.
    fn serve(&mut self, job: S::Job) -> Option<S::Job> {
        let (scheduler, pool, mut next) = (self.scheduler(), self.pool, Some(job));
        while let Some(job) = next {
            if pool.exclusive {
                // No thread enters while a request waits that no thread monitors, unless none is left.
                if pool.queued() > 0 && !pool.limiter.is_monitored() && !pool.wake_monitor() {
                    scheduler.perform(self.index, pool.wake_for_queue(), self.server);
                }
                if !pool.limiter.admit_next(&self.thread, self.server.class(&job)) {
                    return Some(job);
                }
            }
            scheduler.run_assigned(job, clock::monotonic(), &**self.server, pool);
            self.served += 1;
            if scheduler.ends_after(self.index, self.served, self.server) {
                self.done = true;
                pool.limiter.give_back(&self.thread);
                if pool.limiter.is_monitored() {
                    pool.limiter.timer.fire_now(clock::monotonic());
                } else if pool.exclusive && pool.queued() > 0 {
                    scheduler.perform(self.index, pool.wake_for_queue(), self.server);
                }
                return None;
            }
            if !pool.exclusive || !pool.limiter.may_go_on(&self.thread) {
                return None;
            }
            next = pool.next_in_turn(&self.thread).or_else(|| pool.leave(&self.thread));
        }
        None
    }
}
