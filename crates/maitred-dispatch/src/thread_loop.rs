//! What all threads that serve have in common, whatever the strategy: rounds until the end, and waiting for events.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::poller::Events;
use maitred_io::sync::atomic::Ordering;

use super::{Serve, panic_text};

/// What follows a round of a thread.
pub(super) enum Round {
    /// The next one.
    GoOn,
    /// The end: the thread is superfluous, and not counted any more.
    End,
}

/// Takes round after round until the server stops, or the thread is superfluous. Catches panics of the engine. Returns whether
/// the caller must still take the thread off the count.
pub(super) fn run_rounds<S: Serve>(server: &Arc<S>, mut round: impl FnMut() -> Round) -> bool {
    server.scheduler().set_serving(true);
    let mut counted = true;
    while counted && !server.scheduler().is_stopping() {
        match catch_unwind(AssertUnwindSafe(&mut round)) {
            Ok(Round::GoOn) => {}
            Ok(Round::End) => counted = false,
            Err(panic) => {
                server.report(format_args!("internal error, please report it: {}", panic_text(&*panic)));
            }
        }
    }
    server.scheduler().set_serving(false);
    counted
}

/// Waits for events, unless there is something else to do. The caller has counted itself as one who polls, and is not
/// counted afterwards.
pub(super) fn poll<S: Serve>(server: &Arc<S>, events: &mut Events) {
    let scheduler = server.scheduler();
    scheduler.driver.dismiss();
    let limit = if scheduler.is_idle() { None } else { Some(Duration::ZERO) };
    let waited = scheduler.poller.wait(events, limit);
    scheduler.pollers.fetch_sub(1, Ordering::SeqCst);
    if let Err(error) = waited {
        server.report(format_args!("waiting for events: {error}"));
    }
}
