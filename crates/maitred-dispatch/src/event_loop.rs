//! An event loop of the language polls and runs all application code: its turns, and the waker for it.
//!
//! ```text
//! loop thread: turn() = { queue, ready list, poller: serve; handler; ... ; unsent responses }, then other tasks
//! backup poller:      stands by (see `loop_watchdog`)
//! elsewhere:   make_ready --> ready list, waker
//! ```
//! A response that a handler completes on the loop's thread leaves at the end of the turn, or by the backup poller if the loop
//! stands still meanwhile. A response that is sent at once wakes its peer in the middle of the turn, and the sending of
//! one finds nothing of the other in the caches.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use maitred_io::clock;
use maitred_io::poller::{Events, Waker};
use maitred_io::sync::atomic::{AtomicBool, Ordering};
use maitred_runtime::{EventLoop, Later, Turned, Turns};
use maitred_turns::TurnContext;

use crate::Serve;
use crate::backup_poller::{fetch_for_all, serve_ready};
use crate::numbers::{EVENTS, FEW_EVENTS, LONG, LOOKS, SWITCH};
use crate::ready::Ready;
use crate::worker::{fetch, serve_batch, serve_listed};
use crate::writing::has_written;

/// Handlers called in one turn before the loop's other tasks get theirs.
const MAX_JOBS: u32 = EVENTS as u32;

/// The handlers of one turn take so long or little more, in nanoseconds: then the loop looks round, and so do we.
const SPAN: u64 = 2 * LONG;

maitred_io::sync::thread_local! {
    static IS_LOOP: Cell<bool> = Cell::new(false);
}

pub(super) struct Looped {
    pub(super) event_loop: Arc<dyn EventLoop>,
    waker: Waker,
    /// The waker has been used, and the loop has not taken a turn since.
    woken: AtomicBool,
    /// The requests in the queue wait for a disk, or for the end of a request.
    held: AtomicBool,
    /// Connections whose complete response has not been sent.
    pub(super) unsent: Ready,
}

impl Looped {
    pub(super) fn new(event_loop: Arc<dyn EventLoop>) -> io::Result<Self> {
        let (woken, held) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Self { event_loop, waker: Waker::new()?, woken, held, unsent: Ready::new("unsent") })
    }

    pub(super) fn wake(&self) {
        if !self.woken.swap(true, Ordering::SeqCst) {
            self.waker.wake();
        }
    }

    pub(super) fn go_on_held(&self) {
        if self.held.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The loop looks for work after this, so that no wake is lost.
    fn clear_waker(&self) {
        if self.woken.load(Ordering::SeqCst) {
            // In this order: the turn finds work of a wake in between, and the next wake writes again.
            self.waker.clear();
            self.woken.store(false, Ordering::SeqCst);
        }
    }

    pub(super) fn is_here() -> bool {
        IS_LOOP.with(Cell::get)
    }

    pub(super) fn send_unsent<S: Serve>(&self, server: &Arc<S>) {
        if self.unsent.is_empty() {
            return;
        }
        let now = clock::monotonic();
        while let Some((token, _)) = self.unsent.pop() {
            server.send(token, now);
        }
    }

    #[cfg(all(test, shuttle))]
    pub(super) fn wait(&self, poller: &maitred_io::poller::Poller) {
        poller.watch(&self.waker).expect("simulated");
    }
}

/// The time since which work waits, as the loop has seen it.
#[derive(Default)]
struct Age(Option<u64>);

impl Age {
    fn is_over(&mut self, waiting: usize, now: u64) -> bool {
        let since = *self.0.get_or_insert(now);
        waiting >= FEW_EVENTS || now.saturating_sub(since) >= SWITCH
    }
}

pub(super) struct LoopTurns<S: Serve> {
    server: Arc<S>,
    context: S::Context,
    events: Events,
    age: Age,
    /// The last turn has left some: all that can be read is read before one is chosen.
    has_backlog: bool,
}

impl<S: Serve> LoopTurns<S> {
    pub(super) fn new(server: &Arc<S>) -> Self {
        Self {
            server: Arc::clone(server),
            context: S::Context::default(),
            events: Events::with_capacity(EVENTS),
            age: Age::default(),
            has_backlog: false,
        }
    }

    fn looped(&self) -> &Looped {
        self.server.scheduler().looped.as_ref().expect("only a looped scheduler has turns")
    }

    fn serve_all(&mut self) -> Turned {
        let server = Arc::clone(&self.server);
        let scheduler = server.scheduler();
        let event_loop = Arc::clone(&self.looped().event_loop);
        let most_later = most_later(event_loop.begin_turn());
        let mut looks = 0;
        let began = clock::monotonic();
        let mut now = began;
        if self.has_backlog {
            self.gather();
        }
        for _ in 0..MAX_JOBS {
            if now.saturating_sub(began) >= SPAN || event_loop.later().handlers >= most_later {
                break;
            }
            let Some(job) = self.next_job(&mut looks) else {
                self.has_backlog = false;
                return self.rest();
            };
            if server.pool(&job) > 0 {
                scheduler.submit(job, &server);
                continue;
            }
            if server.is_loop_full() {
                // This request goes behind those that wait, and the loop takes the next one from the queue.
                scheduler.queue(job, &server);
                continue;
            }
            let route = scheduler.pool.charged_route(&job);
            // The request's bytes from the poller have just been read.
            let entered = now.max(self.context.clock().turn_began());
            // Clears the mark of an earlier request.
            has_written();
            let class = server.class(&job);
            now = scheduler.run(job, class, entered, &server);
            if route > 0 {
                scheduler.pool.costs.note(route, scheduler.pool.seen(now.saturating_sub(entered), now));
            }
            let unsent = self.looped().unsent.len();
            if unsent == 0 || self.age.is_over(unsent, now) {
                self.send_unsent();
            }
        }
        self.has_backlog = true;
        self.send_unsent();
        self.rest()
    }

    /// Reads all connections with events, and queues the requests, so that the next one is chosen among all.
    fn gather(&mut self) {
        let (server, scheduler) = (&self.server, self.server.scheduler());
        let begin = || {
            scheduler.pollers.note_progress();
            true
        };
        for look in 0..=LOOKS {
            serve_ready(server, &mut self.context, begin, |job| match server.pool(&job) {
                0 => scheduler.queue(job, server),
                _ => scheduler.submit(job, server),
            });
            if look == LOOKS {
                return;
            }
            fetch_for_all(server, &mut self.events, false);
            if self.events.iter().len() == 0 {
                return;
            }
        }
    }

    fn rest(&self) -> Turned {
        let scheduler = self.server.scheduler();
        let waits = scheduler.pool.queued() > 0 && !self.looped().held.load(Ordering::SeqCst);
        let more = waits
            || !scheduler.ready.is_empty()
            || !self.looped().unsent.is_empty()
            || scheduler.is_deferred();
        if more { Turned::More } else { Turned::Wait }
    }

    /// From the queue, the ready list, the poller; responses leave before the poller is looked at.
    fn next_job(&mut self, looks: &mut u32) -> Option<S::Job> {
        let server = Arc::clone(&self.server);
        let scheduler = server.scheduler();
        loop {
            if let Some(job) = self.pop() {
                return Some(job);
            }
            // The present entries only: connections that come back to the list wait for the next look.
            if let Some(job) = serve_listed(&server, &mut scheduler.ready.len(), &mut self.context) {
                return Some(job);
            }
            self.send_unsent();
            if *looks == LOOKS {
                return None;
            }
            *looks += 1;
            let took = scheduler.take_deferred(&server);
            fetch(&server, &mut self.events, false);
            if self.events.iter().len() == 0 && !took {
                return None;
            }
            if let Some(job) = serve_batch(&server, &self.events, &mut self.context) {
                return Some(job);
            }
        }
    }

    /// The request whose turn it is. One whose response will have to be written to a disk waits while that is behind: the loop
    /// would have to write itself otherwise, or memory would grow.
    fn pop(&self) -> Option<S::Job> {
        let scheduler = self.server.scheduler();
        if scheduler.pool.queued() == 0 {
            return None;
        }
        let held = &self.looped().held;
        // Asked again behind the store: a thread that has just ended it may not have seen that requests wait.
        let goes_on = |waits: &dyn Fn() -> bool| {
            held.store(true, Ordering::SeqCst);
            waits()
        };
        if self.server.is_loop_full() && goes_on(&|| self.server.is_loop_full()) {
            return None;
        }
        if self.server.is_disk_behind() {
            let light = scheduler.pool.pop_light(|_, _| true);
            if light.is_some() || goes_on(&|| self.server.is_disk_behind()) {
                return light;
            }
        }
        held.store(false, Ordering::SeqCst);
        scheduler.pool.pop()
    }

    fn send_unsent(&mut self) {
        self.age = Age::default();
        self.looped().send_unsent(&self.server);
    }

    fn serving<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> T {
        let scheduler = self.server.scheduler();
        // The backup poller watches this counter.
        scheduler.pollers.progress.fetch_add(1, Ordering::SeqCst);
        scheduler.backup_poller.release_polling();
        IS_LOOP.with(|cell| cell.set(true));
        scheduler.pollers.set_serving(true);
        let result = act(self);
        let scheduler = self.server.scheduler();
        scheduler.pollers.set_serving(false);
        scheduler.pollers.progress.fetch_add(1, Ordering::SeqCst);
        result
    }
}

/// The limit of handlers in a turn that begin after it, from the time that those of the last turn took.
fn most_later(last: Later) -> u32 {
    // Not many more than have been seen to be short.
    let seen = last.handlers.saturating_mul(2).max(LOOKS);
    let fit = (u64::from(last.handlers) * SPAN).checked_div(last.nanos).unwrap_or(u64::MAX);
    u32::try_from(fit).unwrap_or(MAX_JOBS).min(seen).clamp(1, MAX_JOBS)
}

impl<S: Serve> Turns for LoopTurns<S> {
    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.server.scheduler().poller.as_fd(), self.looped().waker.as_fd()]
    }

    fn turn(&mut self) -> Turned {
        if self.server.scheduler().is_stopping() {
            return Turned::Ended;
        }
        self.looped().clear_waker();
        self.serving(Self::serve_all)
    }

    fn flush(&mut self) {
        self.serving(Self::send_unsent);
        if self.rest() == Turned::More {
            self.looped().wake();
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn responses_leave_when_they_are_many_or_old() {
        let mut age = Age::default();
        assert!(!age.is_over(1, 5) && !age.is_over(2, 500_004));
        assert!(age.is_over(3, 500_005), "the first is old");
        assert!(!Age::default().is_over(15, 5) && Age::default().is_over(16, 5), "enough");
    }

    #[test]
    fn a_turn_calls_as_many_handlers_as_fit() {
        let most = |handlers, nanos| most_later(Later { handlers, nanos });
        assert_eq!(most(0, 0), LOOKS, "nothing is known");
        assert_eq!(most(64, 200_000_000), 1, "3 ms each: at least one");
        assert_eq!(most(1, 3_000_000), 1);
        assert_eq!(most(8, 8_000_000), 4);
        assert_eq!(most(2, 40_000), LOOKS, "short ones, but few were seen");
        assert_eq!([8, 16, 32, 64].map(|handlers| most(handlers, 1000)), [16, 32, 64, 64]);
    }
}
