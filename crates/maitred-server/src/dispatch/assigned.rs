//! What a thread does that has no part in polling: it runs what it is given, then what waits, and is idle else.

use std::sync::Arc;

use super::Serve;
use super::pool::{Call, Parked};
use super::scaling::After;

/// The life of a thread of the pool `index`.
pub(super) fn run<S: Serve>(server: &Arc<S>, index: usize) {
    let scheduler = server.scheduler();
    let pool = scheduler.pool_at(index);
    pool.started();
    if pool.follow() {
        scheduler.answer_call_of(index, &Call::Spawn, server);
    }
    let spot = pool.spot();
    let mut served = 0;
    while !scheduler.is_stopping() {
        let job = match pool.pop() {
            Some(job) => job,
            None => match pool.park(&spot, |waiting| !waiting) {
                Parked::Called => continue,
                Parked::Given(job) => job,
                Parked::Superfluous => return,
            },
        };
        scheduler.run_assigned(job, &**server);
        served += 1;
        if let After::End { replace } = pool.after_request(served) {
            if replace {
                scheduler.answer_call_of(index, &Call::Spawn, server);
            }
            return;
        }
    }
    pool.ended();
}
