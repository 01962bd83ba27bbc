//! What an application thread does: look, poll, serve, run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use super::pool::{Parked, Parker};
use super::{SERVING, panic_text};
use crate::group::{Group, signals_of};
use crate::scratch::Scratch;

/// Events fetched by one wait where a single thread polls: nobody else could have taken them, and
/// the driver takes over the ready list if this thread stands still. With several pollers a wait
/// fetches one: a private batch strands requests behind a slow one.
const BATCH: usize = 64;

/// A parked thread above the minimum ends after this time.
const IDLE_LIMIT: Duration = Duration::from_secs(60);

/// The life of an application thread.
pub(super) fn run(group: &Arc<Group>) {
    SERVING.set(true);
    let dispatch = &group.dispatch;
    dispatch.pool.started();
    let parker = Arc::new(Parker::default());
    let mut scratch = Scratch::default();
    let mut events = Events::with_capacity(if dispatch.max_pollers == 1 { BATCH } else { 1 });
    while !group.is_stopping() {
        let round = AssertUnwindSafe(|| round(group, &parker, &mut events, &mut scratch));
        match catch_unwind(round) {
            Ok(Parked::Called) => {}
            Ok(Parked::Superfluous) => {
                SERVING.set(false);
                return;
            }
            Err(panic) => {
                let text = panic_text(&*panic);
                group.site.log.error(format_args!("internal error, please report it: {text}"));
            }
        }
    }
    SERVING.set(false);
    dispatch.pool.ended();
}

fn round(group: &Arc<Group>, parker: &Arc<Parker>, events: &mut Events, scratch: &mut Scratch) -> Parked {
    let dispatch = &group.dispatch;
    if let Some(job) = dispatch.pool.pop() {
        dispatch.run(job, group);
        return Parked::Called;
    }
    if let Some((token, signals)) = group.ready.pop() {
        serve(group, token, signals, scratch);
        return Parked::Called;
    }
    if dispatch.pollers.fetch_add(1, Ordering::SeqCst) >= dispatch.max_pollers {
        dispatch.pollers.fetch_sub(1, Ordering::SeqCst);
        return dispatch.pool.park(parker, IDLE_LIMIT, || {
            group.ready.is_empty() && dispatch.pollers.load(Ordering::SeqCst) >= dispatch.max_pollers
        });
    }
    dispatch.driver.dismiss();
    // Looked at again after the count: whoever made work before it saw no poller to wake.
    let waited = if group.ready.is_empty() && dispatch.pool.queued() == 0 && !group.is_stopping() {
        group.poller.wait(events, None)
    } else {
        group.poller.wait(events, Some(Duration::ZERO))
    };
    dispatch.pollers.fetch_sub(1, Ordering::SeqCst);
    if let Err(error) = waited {
        group.site.log.error(format_args!("waiting for events: {error}"));
    }
    let mut list = events.iter().map(|(token, readiness)| (token, signals_of(readiness)));
    let first = list.next();
    for (token, signals) in list {
        group.ready.push(token, signals);
    }
    if let Some((token, signals)) = first {
        serve(group, token, signals, scratch);
    }
    Parked::Called
}

fn serve(group: &Arc<Group>, token: u64, signals: crate::group::claim::Signals, scratch: &mut Scratch) {
    group.dispatch.progress.fetch_add(1, Ordering::Relaxed);
    if let Some(job) = group.serve(token, signals, scratch) {
        group.dispatch.run(job, group);
    }
}
