//! Requests on their way through the scheduler: where they run, and what is learnt from it.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use maitred_http::{ResponseHead, Status};
use maitred_io::memory;
use maitred_io::sync::atomic::Ordering;
use maitred_runtime::lock_order::assert_outside;
use maitred_runtime::{Exchange, Handler, InvocationType};

use super::flags::Flags;
use super::slowness::{Measured, Watched};
use super::{ALARM, Group, Resident};
use crate::place::{Place, Token};
use crate::thread_registry::{self, Role};
use maitred_dispatch::{Jobs, Ran, Scheduler, Serve, Signals, Target, panic_text, run_extra, work};

/// A handler that says it does not block and runs for longer than this, in nanoseconds, counts as one that does: a thousand
/// times what such a handler takes, and no time slice of the system's either.
const BLOCKED: u64 = 20_000_000;

/// What the thread of an event loop is called here.
const LOOP: &str = "maitred-loop";

/// A request that waits for, or is given to, an application thread.
pub(crate) struct Job {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) exchange: Exchange,
    /// Whose it is.
    pub(crate) home: Place,
    pub(crate) target: Target,
    /// Its route, if routes are watched.
    pub(crate) watched: Option<Watched>,
    /// Whether its time was over before its response began, where there is a limit: to be asked also after it has run.
    pub(crate) limited: Option<Arc<Flags>>,
}

impl Job {
    /// Whether it has been answered while it waited: it is dropped then, and not run. One load.
    pub(crate) fn is_dead(&self) -> bool {
        self.limited.as_ref().is_some_and(|flags| flags.is_out())
    }

    fn claims_not_to_block(&self) -> bool {
        self.handler.invocation_type() == InvocationType::NonBlocking
    }
}

impl<R: Resident> Serve for Group<R> {
    type Job = Job;
    type Measured = Measured;
    type Context = R::Scratch;

    fn scheduler(&self) -> &Scheduler<Job> {
        &self.scheduler
    }

    fn serve(self: &Arc<Self>, token: u64, signals: Signals, scratch: &mut R::Scratch) -> Jobs<Job> {
        if !thread_registry::note_event(token) {
            self.note_loop();
        }
        if token == ALARM {
            self.ring();
            return Jobs::none();
        }
        let token = Token::from_u64(token);
        if let Some(listening) = self.listeners().get(token.slot as usize) {
            R::accept(self, listening, token);
            return Jobs::none();
        }
        // A token of the scheduler's own finds no slot.
        self.turn(token, signals, scratch)
    }

    fn send(self: &Arc<Self>, token: u64, now: u64) {
        let token = Token::from_u64(token);
        if let Some(slot) = self.slots.find(token.slot) {
            let mut place = slot.lock();
            if let Some(connection) = place.as_mut().filter(|_| slot.generation() == token.generation) {
                connection.send_last(self, token, now);
                connection.account(self);
            }
        }
    }

    fn prefetch(&self, token: u64) {
        let slot = Token::from_u64(token).slot;
        if let Some(found) = self.slots.find(slot) {
            memory::prefetch(found);
            self.timers.prefetch(slot);
        }
    }

    fn is_non_blocking(&self, job: &Job) -> bool {
        job.claims_not_to_block() && !self.groups.distrusts.load(Ordering::Relaxed)
    }

    fn target(&self, job: &Job) -> Target {
        job.target
    }

    /// The job may be that of another group.
    fn run(&self, job: Job, now: u64) -> Ran<Measured> {
        if job.is_dead() {
            return Ran::Not;
        }
        let entered = self.is_non_blocking(&job).then(maitred_io::clock::monotonic);
        let Job { handler, mut exchange, home, watched, limited, target } = job;
        exchange.begin(now);
        let Some(exchange) = exchange.unless_left() else { return Ran::Not };
        if thread_registry::own_tid() == 0 {
            // The driver may have read what the loop runs first.
            self.note_loop();
        }
        let _entered = thread_registry::enter(home, now);
        let watched = watched.or_else(|| self.groups.slowness.watch_late(&exchange.request().head, now));
        let measured = watched.map(Measured::begin);
        if let Some(flags) = &limited {
            flags.enter(self.number, now);
        }
        assert_outside("a handler is called");
        // The exchange is dropped by the unwinding and answers 500.
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| handler.handle(exchange))) {
            self.site.log.error(format_args!("a handler panicked: {}", panic_text(&*panic)));
        }
        if limited.is_some_and(|flags| flags.leave()) {
            self.scheduler.find_thread(target.pool);
        }
        if let Some(entered) = entered {
            self.check_claim(maitred_io::clock::monotonic().saturating_sub(entered));
        }
        Ran::Run(measured)
    }

    fn note_run(&self, measured: Option<Measured>, nanos: u64, now: u64) {
        self.groups.slowness.note(measured, nanos, now);
    }

    fn refuse(&self, job: Job) {
        let text = "503 Service Unavailable: every thread is busy, and as many requests wait as may\n";
        let head = ResponseHead::new(Status::SERVICE_UNAVAILABLE)
            .with("Content-Type", "text/plain; charset=utf-8")
            .with("Retry-After", "1");
        // The peer may have gone meanwhile: nothing is left to do then.
        let _ = job.exchange.respond(head, text);
    }

    fn attached(&self, act: &mut dyn FnMut()) {
        assert_outside("the interpreter is taken");
        self.host.with_interpreter(act);
    }

    fn spawn(self: &Arc<Self>, pool: usize, name: &str, number: usize) -> io::Result<()> {
        let own = Arc::clone(self);
        let name = match (pool, self.groups.count()) {
            (0, 1) => format!("maitred-{number}"),
            (0, _) => format!("maitred-{}-{number}", self.number + 1),
            _ => format!("maitred-{name}-{number}"),
        };
        let known = name.clone();
        let body = move || {
            own.groups.thread_registry.join_pool(known, pool);
            work(&own, pool);
        };
        self.host.spawn(name, Box::new(body))
    }

    fn spawn_extra(self: &Arc<Self>) -> io::Result<()> {
        let own = Arc::clone(self);
        let name = match self.groups.count() {
            1 => "maitred-extra".to_owned(),
            _ => format!("maitred-{}-extra", self.number + 1),
        };
        let known = name.clone();
        let body = move || {
            own.groups.thread_registry.join(known, Role::Extra);
            run_extra(&own);
        };
        self.host.spawn(name, Box::new(body))
    }

    fn long(&self) -> u64 {
        self.groups.slowness.long()
    }

    fn report(&self, text: fmt::Arguments<'_>) {
        self.site.log.error(text);
    }
}

impl<R: Resident> Group<R> {
    /// The calling thread is in no registry: that of an event loop, which the language has made.
    fn note_loop(&self) {
        if self.scheduler.is_looped() {
            self.groups.thread_registry.join(LOOP.to_owned(), Role::EventLoop);
        }
    }

    /// A handler that claims not to block has taken `nanos`.
    fn check_claim(&self, nanos: u64) {
        if nanos >= BLOCKED && !self.groups.distrusts.swap(true, Ordering::Relaxed) {
            self.site.log.error(format_args!(
                "a handler that claims not to block has kept its thread for {} ms: it is run as one that may block from \
                 now on; have it say so (InvocationType::Blocking), or answer from another thread",
                nanos / 1_000_000
            ));
        }
    }
}
