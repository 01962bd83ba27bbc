//! A thread that has no part in polling: it runs the request that it is given, then waiting ones, and is idle
//! otherwise.
//!
//! Where there is one interpreter its pool has a [limiter](super::limiter) too: a request that may not enter waits in the queue, and
//! the first thread that finds it there monitors.

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
        own.perform(WakeAction::Spawn);
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

    fn perform(&self, call: WakeAction) {
        self.scheduler().perform(self.index, call, self.server);
    }

    /// Enters with a request it has, or with an older one; none when this one waits.
    fn arrive(&self, job: S::Job) -> Option<S::Job> {
        if !self.pool.exclusive {
            return Some(job);
        }
        let class = self.server.target(&job).class;
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
        let mut next = Some(job);
        while let Some(job) = next {
            if self.pool.exclusive {
                self.wake_for_queued();
                let class = self.server.target(&job).class;
                if !self.pool.limiter.admit_next(&self.thread, class) {
                    return Some(job);
                }
            }
            self.scheduler().run_assigned(job, clock::monotonic(), &**self.server, self.pool);
            self.served += 1;
            if self.scheduler().ends_after(self.index, self.served, self.server) {
                self.done = true;
                self.make_way();
                return None;
            }
            if !self.pool.exclusive || !self.pool.limiter.may_go_on(&self.thread) {
                return None;
            }
            next = self.pool.next_in_turn(&self.thread).or_else(|| self.pool.leave(&self.thread));
        }
        None
    }

    /// No thread enters while a request waits that no thread monitors, unless none is left.
    fn wake_for_queued(&self) {
        if self.pool.queued() > 0 && !self.pool.limiter.is_monitored() && !self.pool.wake_monitor() {
            self.perform(self.pool.wake_for_queue());
        }
    }

    fn make_way(&self) {
        let pool = self.pool;
        pool.limiter.give_back(&self.thread);
        if pool.limiter.is_monitored() {
            pool.limiter.timer.fire_now(clock::monotonic());
        } else if pool.exclusive && pool.queued() > 0 {
            self.perform(pool.wake_for_queue());
        }
    }
}
