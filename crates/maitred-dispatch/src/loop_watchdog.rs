//! The backup poller of an event loop: it stands by, and takes over when the loop does not come back.
//!
//! ```text
//! resting --something comes--> looking --pending and no progress for 10 ms--> polls --progress--> looking
//!    ^                            |
//!    `-----nothing for a while----'
//! ```
//! A loop that stands still is no fault as long as nothing waits: it may sleep in its own wait. So two things must both
//! be old: the waiting work, and the loop's last step.

use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::sync::atomic::Ordering;

use super::Serve;
use super::backup_poller::poll_while;
use super::event_loop::Looped;
use crate::numbers::{IDLE_LOOKS, STUCK};

/// How long something waits and the loop makes no step until the backup poller takes over, in nanoseconds.
const STANDSTILL: u64 = 2 * STUCK;

/// Rests until something comes, and looks until nothing has come for a while.
pub(super) fn standby<S: Serve>(server: &Arc<S>, looped: &Looped, context: &mut S::Context) {
    let scheduler = server.scheduler();
    let is_pending =
        || !scheduler.ready.is_empty() || !looped.unsent.is_empty() || scheduler.poller.is_readable();
    if let Err(error) = scheduler.backup_poller.rest(&scheduler.poller, is_pending) {
        server.report(format_args!("watching for events: {error}"));
    }
    let mut idle_looks = 0;
    let mut progress = scheduler.pollers.progress.load(Ordering::SeqCst);
    let mut since = None;
    while idle_looks < IDLE_LOOKS && !scheduler.is_stopping() {
        scheduler.backup_poller.sleep.park(Some(Duration::from_nanos(STUCK)));
        let now = clock::monotonic();
        let before = std::mem::replace(&mut progress, scheduler.pollers.progress.load(Ordering::SeqCst));
        if progress != before {
            since = None;
        }
        if !is_pending() {
            since = None;
            // A handler that has been called and does not come back may leave something at any time.
            idle_looks = if scheduler.inside.load(Ordering::SeqCst) > 0 { 0 } else { idle_looks + 1 };
            continue;
        }
        idle_looks = 0;
        if now.saturating_sub(*since.get_or_insert(now)) < STANDSTILL {
            continue;
        }
        since = None;
        looped.event_loop.stands_still(true);
        // Work that is served here would have called the loop: without a turn an idle loop would seem to stand still until
        // the next request.
        looped.wake();
        poll_while(server, context, || {
            scheduler.pollers.progress.load(Ordering::SeqCst) == progress && !scheduler.is_stopping()
        });
        // At the end of the server it may stand still yet.
        if !scheduler.is_stopping() {
            looped.event_loop.stands_still(false);
        }
    }
}
