//! An event loop of the language polls and runs all application code: its turns, and the bell that calls it.
//!
//! ```text
//! loop thread: turn() = { queue, ready list, poller: serve; handler; ... ; what is unsent }, then other tasks
//! driver:      stands by (see `loop_watchdog`)
//! elsewhere:   make_ready --> ready list, bell
//! ```
//! What handlers answer completely on the loop's thread leaves at the end of a turn (see `response_batch`), or by the
//! driver if the loop stands still meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use maitred_io::clock;
use maitred_io::poller::{Events, Waker};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_runtime::{EventLoop, Turned, Turns};

use crate::turn_clock::TurnContext;
use crate::worker::{serve, serve_batch};
use crate::{Age, Serve, set_defers};

/// Events fetched by one look at the poller; they go to the ready list before a handler is called.
const BATCH: usize = 64;

/// Looks at the poller in one turn. A client that is answered sends its next request within microseconds,
/// and coming back from the loop costs more than a look.
const MAX_LOOKS: u32 = 8;

/// Handlers called in one turn before the loop's other tasks get theirs.
const MAX_JOBS: u32 = 64;

/// What a scheduler has if an event loop polls for it.
pub(super) struct Looped {
    pub(super) event_loop: Arc<dyn EventLoop>,
    bell: Waker,
    /// The bell has been rung and not been heard.
    rung: AtomicBool,
}

impl Looped {
    pub(super) fn new(event_loop: Arc<dyn EventLoop>) -> io::Result<Self> {
        let rung = AtomicBool::new(false);
        Ok(Self { event_loop, bell: Waker::new()?, rung })
    }

    /// Has the loop take a turn.
    pub(super) fn ring(&self) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            self.bell.wake();
        }
    }

    /// Before whoever rang made the work, if the loop looks for it afterwards.
    fn hear(&self) {
        if self.rung.load(Ordering::SeqCst) {
            // In this order: a ring in between is heard by what follows, and the next one rings again.
            self.bell.clear();
            self.rung.store(false, Ordering::SeqCst);
        }
    }

    /// Waits as a loop does.
    #[cfg(all(test, shuttle))]
    pub(super) fn wait(&self, poller: &maitred_io::poller::Poller) {
        poller.watch(&self.bell).expect("simulated");
    }
}

/// The turns of one scheduler.
pub(super) struct LoopTurns<S: Serve> {
    server: Arc<S>,
    context: S::Context,
    events: Events,
    age: Age,
}

impl<S: Serve> LoopTurns<S> {
    pub(super) fn new(server: &Arc<S>) -> Self {
        Self {
            server: Arc::clone(server),
            context: S::Context::default(),
            events: Events::with_capacity(BATCH),
            age: Age::default(),
        }
    }

    fn looped(&self) -> &Looped {
        self.server.scheduler().looped.as_ref().expect("only a looped scheduler has turns")
    }

    /// Serves and runs until there is nothing or the turn is long enough.
    fn serve_all(&mut self) -> Turned {
        let mut looks = 0;
        let mut now = clock::monotonic();
        for _ in 0..MAX_JOBS {
            let Some(job) = self.next_job(&mut looks) else { return self.rest() };
            let server = Arc::clone(&self.server);
            // What came from the poller has just been read.
            server.scheduler().run(job, now.max(self.context.clock().turn_began()), &*server);
            now = clock::monotonic();
            server.scheduler().send_unsent_in_time(&server, now, &mut self.age);
        }
        self.send_unsent();
        self.rest()
    }

    /// What a turn leaves behind.
    fn rest(&self) -> Turned {
        let scheduler = self.server.scheduler();
        let more = scheduler.pool.queued() > 0 || !scheduler.ready.is_empty() || !scheduler.unsent.is_empty();
        if more { Turned::More } else { Turned::Wait }
    }

    /// The next request: from the queue, the ready list, the poller; responses leave before the poller is
    /// looked at.
    fn next_job(&mut self, looks: &mut u32) -> Option<S::Job> {
        let server = Arc::clone(&self.server);
        let scheduler = server.scheduler();
        loop {
            if let Some(job) = scheduler.pool.pop() {
                return Some(job);
            }
            // As many as there are: what comes back to the list waits for the next look.
            for _ in 0..scheduler.ready.len() {
                let Some((token, signals)) = scheduler.ready.pop() else { break };
                if let Some(job) = serve(&server, token, signals, &mut self.context) {
                    return Some(job);
                }
            }
            self.send_unsent();
            if *looks == MAX_LOOKS {
                return None;
            }
            *looks += 1;
            if let Err(error) = scheduler.poller.wait(&mut self.events, Some(Duration::ZERO)) {
                server.report(format_args!("waiting for events: {error}"));
                return None;
            }
            if self.events.iter().len() == 0 {
                return None;
            }
            if let Some(job) = serve_batch(&server, &self.events, &mut self.context) {
                return Some(job);
            }
        }
    }

    fn send_unsent(&mut self) {
        let scheduler = self.server.scheduler();
        self.age = Age::default();
        if !scheduler.unsent.is_empty() {
            scheduler.send_unsent(&self.server, clock::monotonic());
        }
    }

    /// Calls `act` as a thread that serves.
    fn serving<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let scheduler = self.server.scheduler();
        // What the driver looks for.
        scheduler.progress.fetch_add(1, Ordering::SeqCst);
        scheduler.driver.dismiss();
        set_defers(true);
        scheduler.set_serving(true);
        let result = act(self);
        let scheduler = self.server.scheduler();
        scheduler.set_serving(false);
        scheduler.progress.fetch_add(1, Ordering::SeqCst);
        result
    }
}

impl<S: Serve> Turns for LoopTurns<S> {
    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.server.scheduler().poller.as_fd(), self.looped().bell.as_fd()]
    }

    fn turn(&mut self) -> Turned {
        if self.server.scheduler().is_stopping() {
            return Turned::Ended;
        }
        self.looped().hear();
        self.serving(Self::serve_all)
    }

    fn flush(&mut self) {
        self.serving(Self::send_unsent);
        if self.rest() == Turned::More {
            self.looped().ring();
        }
    }
}
