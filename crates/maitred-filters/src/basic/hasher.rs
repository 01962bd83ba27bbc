//! The threads that check passwords, and their queue.
//!
//! ```text
//!   connection                                   hasher
//!   head: credentials ──── check, queue ───────► look at the file if nobody has for two seconds
//!      │ nothing is read                           hash, unless somebody has waited for the same
//!      ◄─────────────────── wake ──────────────────┘
//!   401, or the request goes on
//! ```
//! Promises: a hash is made by no thread that polls or runs requests. The queue is bounded; what finds it full is refused. A
//! check whose connection is gone is not made.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_io::machine;

use super::Credentials;
use super::cache::{Found, Tag};
use super::users::Users;
use maitred_io::work_queue::WorkQueue;
use maitred_log::Log;

/// Each hash takes a processor: with more threads, or more than half of the processors, others would wait for those.
const MAX_THREADS: usize = 2;

/// Checks that may wait: with the hashes of `maitred passwd` the last one waits for some seconds.
const MAX_WAITING: usize = 128;

/// The threads and their queue.
pub struct Hasher(Arc<Own>);

struct Own {
    checks: WorkQueue<Arc<Check>>,
    log: Arc<Log>,
    threads: usize,
    made: AtomicU64,
    refused: AtomicU64,
}

struct Check {
    users: Arc<Users>,
    credentials: Credentials,
    tag: Tag,
    result: Mutex<Option<Found>>,
    abandoned: AtomicBool,
    /// Tells the connection that there is a result.
    wake: Box<dyn Fn() + Send + Sync>,
}

/// What the threads have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    pub threads: usize,
    pub waiting: usize,
    pub made: u64,
    pub refused: u64,
}

impl Hasher {
    /// Starts the threads. They do not survive a fork(2).
    pub fn start(log: Arc<Log>) -> io::Result<Self> {
        let threads = (machine::processors() / 2).clamp(1, MAX_THREADS);
        let (made, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        // Those that run end with it if a later one cannot be made.
        let hasher = Self(Arc::new(Own { checks: WorkQueue::new(MAX_WAITING), log, threads, made, refused }));
        for number in 1..=threads {
            let own = Arc::clone(&hasher.0);
            std::thread::Builder::new()
                .name(format!("maitred-hash-{number}"))
                .spawn(move || own.checks.work(|check| own.take(&check)))?;
        }
        Ok(hasher)
    }

    /// Has credentials checked; `wake` is called, on a thread of ours, when [`Ticket::result`] has something. An `urgent` one
    /// is known, and only has the file looked at. None when too many wait.
    pub(super) fn begin(
        &self,
        users: &Arc<Users>,
        credentials: Credentials,
        tag: Tag,
        urgent: bool,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Ticket> {
        let check = Arc::new(Check {
            users: Arc::clone(users),
            credentials,
            tag,
            result: Mutex::default(),
            abandoned: AtomicBool::new(false),
            wake,
        });
        let checks = &self.0.checks;
        let own = Arc::clone(&check);
        let is_in = if urgent { checks.push_first(own) } else { checks.push(own) };
        if is_in {
            return Some(Ticket(check));
        }
        self.0.refused.fetch_add(1, Ordering::Relaxed);
        None
    }

    pub fn figures(&self) -> Figures {
        let Own { threads, made, refused, .. } = &*self.0;
        let [made, refused] = [made, refused].map(|count| count.load(Ordering::Relaxed));
        Figures { threads: *threads, waiting: self.0.checks.waiting(), made, refused }
    }

    /// Ends the threads once they have made the hash they are making; what waits is dropped.
    pub fn end(&self) {
        self.0.checks.end();
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Own {
    fn take(&self, check: &Check) {
        if !check.abandoned.load(Ordering::Relaxed) {
            self.make(check);
        }
    }

    fn make(&self, check: &Check) {
        if check.users.is_due() {
            self.look(&check.users);
        }
        // A hash that panics is a wrong one; the thread is needed for others.
        let found = catch_unwind(AssertUnwindSafe(|| check.users.check(&check.credentials, check.tag)));
        let found = found.unwrap_or_default();
        self.made.fetch_add(1, Ordering::Relaxed);
        *check.lock() = Some(found);
        (check.wake)();
    }

    fn look(&self, users: &Users) {
        tell(users, &users.look(), &self.log);
    }
}

/// Says in the log what a look at the file has brought.
pub(crate) fn tell(users: &Users, looked: &Result<Option<usize>, super::BadUsers>, log: &Log) {
    let path = users.path().display();
    match looked {
        Ok(None) => {}
        Ok(Some(count)) => log.info(format_args!("{path} has been read again: {count} users")),
        Err(error) => log.error(format_args!("{path}: {error}; the users are those it had before")),
    }
}

impl Check {
    fn lock(&self) -> MutexGuard<'_, Option<Found>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The connection's side of a check. Dropped, it is not made, unless it is being made.
pub(crate) struct Ticket(Arc<Check>);

impl Ticket {
    /// What came of it, once.
    pub(crate) fn result(&self) -> Option<Found> {
        self.0.lock().take()
    }

    /// Whether there is something.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.lock().is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.abandoned.store(true, Ordering::Relaxed);
    }
}
