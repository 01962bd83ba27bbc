//! The seam of the scheduler: its calls to its user.

use std::fmt;
use std::io;
use std::sync::Arc;

use maitred_pool::RouteClass;
use maitred_turns::{Jobs, Signals, TurnContext};

use super::Scheduler;

/// The user of a scheduler: it serves connections and runs requests on the scheduler's threads.
pub trait Serve: Send + Sync + Sized + 'static {
    /// A request that needs an application thread.
    type Job: Send;
    /// The state of a serving thread between its turns.
    type Context: TurnContext;

    /// The scheduler of this.
    fn scheduler(&self) -> &Scheduler<Self::Job>;

    /// Serves one token of a wait or of the ready list; returns the requests that have to be run. Never waits, never runs application code.
    fn serve(self: &Arc<Self>, token: u64, signals: Signals, context: &mut Self::Context) -> Jobs<Self::Job>;

    /// Sends the complete response that a handler has left with `token`; see [`Scheduler::send_later`].
    fn send(self: &Arc<Self>, token: u64, now: u64);

    /// Loads the memory that serving `token` touches; the token is served soon.
    fn prefetch(&self, token: u64);

    /// Whether `job` never blocks: the thread that has read it runs it at once, without a permit, also the last one that polls.
    fn is_non_blocking(&self, job: &Self::Job) -> bool;

    /// The number of the pool that runs `job`; 0 is the one whose threads poll.
    fn pool(&self, job: &Self::Job) -> usize;

    /// The class of the route of `job`, as it is known now.
    fn class(&self, job: &Self::Job) -> RouteClass;

    /// Runs application code from `now` on. Returns its end, both in monotonic nanoseconds; none if no client waited for it any more, and it
    /// was not run.
    fn run(&self, job: Self::Job, now: u64) -> Option<u64>;

    /// Whether too many bytes of responses wait for a disk. A server that says so calls [`go_on_held`](Scheduler::go_on_held) when that is over.
    fn is_disk_behind(&self) -> bool {
        false
    }

    /// Whether the event loop runs as many requests as it may. A server that says so calls [`go_on_held`](Scheduler::go_on_held) later.
    fn is_loop_full(&self) -> bool {
        false
    }

    /// Takes deferred work, see [`Scheduler::set_deferred`], for a thread that has nothing else to do. Whether there was some.
    fn take_deferred(self: &Arc<Self>) -> bool {
        false
    }

    /// Answers that there is no room for `job`.
    fn refuse(&self, job: Self::Job);

    /// Calls `act` while the thread is attached to the language, as application code needs it.
    fn attached(&self, act: &mut dyn FnMut()) {
        act();
    }

    /// Has a thread made, the `number`th of the pool called `name`, that calls [`work`](crate::work) with `pool`. One that
    /// cannot be made is tried again until it is.
    ///
    /// # Errors
    /// It is known already that it cannot be made now.
    fn spawn(self: &Arc<Self>, pool: usize, name: &str, number: usize) -> io::Result<()>;

    /// Has a thread made that calls [`run_reserve`](crate::run_reserve), likewise.
    fn spawn_reserve(self: &Arc<Self>);

    /// Writes to the error log.
    fn report(&self, text: fmt::Arguments<'_>);
}
