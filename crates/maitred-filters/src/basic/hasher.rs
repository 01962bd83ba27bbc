//! The threads that check passwords, and their queue.
//!
//! ```text
//!   connection                                   hasher
//!   head: credentials ──── check, queue ───────► read the file again if the last look is two seconds old
//!      │ nothing is read                           hash, unless the same check has been made
//!      ◄─────────────────── wake ──────────────────┘
//!   401, or the request goes on
//! ```
//! Promises: a hash is made by no thread that polls or runs requests. The queue is bounded, no client has more than a
//! share of it, here and in all processes of the server together, and clients take turns: a client that sends wrong
//! passwords keeps no other one out. Requests of one client with the same credentials wait for one check. A check
//! without a waiting request is not made.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_io::machine;

use super::Credentials;
use super::cache::{CheckedUser, Tag};
use super::users::Users;
use maitred_io::work_queue::WorkQueue;
use maitred_log::Log;

/// Each hash takes a processor: with more threads, or more than half of the processors, others would wait for those.
const MAX_THREADS: usize = 2;

/// Checks that may wait: with the hashes of `maitred passwd` the last one waits for some seconds.
const MAX_WAITING: usize = 128;

/// Checks of one client that wait or are being made, in all processes: an office behind one address may come back at once after a restart.
const MAX_OF_CLIENT: usize = 32;

/// The threads and their queue.
pub struct Hasher(Arc<Own>);

struct Own {
    turns: WorkQueue<Turn>,
    shares: Mutex<Shares>,
    log: Arc<Log>,
    threads: usize,
    made: AtomicU64,
    refused: AtomicU64,
}

enum Turn {
    /// A check that belongs to no client's share.
    Check(Arc<Check>),
    /// The first waiting check of this client, which has one turn at a time.
    Client(u128),
}

#[derive(Default)]
struct Shares {
    clients: HashMap<u128, Share>,
    waiting: usize,
}

#[derive(Default)]
struct Share {
    /// Checks that wait, and those that are being made.
    all: Vec<Arc<Check>>,
    waiting: VecDeque<Arc<Check>>,
}

struct Check {
    users: Arc<Users>,
    credentials: Credentials,
    tag: Tag,
    client: Option<u128>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    result: Option<CheckedUser>,
    waiting: usize,
    counted: Option<Counted>,
    wakes: Vec<Wake>,
}

pub(super) type Wake = Box<dyn Fn() + Send + Sync>;

/// A check is counted among those of its client in all processes, as long as this lives.
pub(super) type Counted = Box<dyn Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Queue,
    Share,
}

/// The counters of the threads.
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
        // Each check that waits has a turn at most, and so has each that is known already.
        let (turns, shares) = (WorkQueue::new(2 * MAX_WAITING), Mutex::default());
        // Those that run end with it if a later one cannot be made.
        let hasher = Self(Arc::new(Own { turns, shares, log, threads, made, refused }));
        for number in 1..=threads {
            let own = Arc::clone(&hasher.0);
            std::thread::Builder::new()
                .name(format!("maitred-hash-{number}"))
                .spawn(move || own.turns.work(|turn| own.take(turn)))?;
        }
        Ok(hasher)
    }

    /// Has credentials checked; `wake` is called, on a thread of ours, when [`Ticket::result`] has something. `client` is in whose share
    /// that is; none for one without limits, and for credentials that are known: then only the file is looked at, before all that waits.
    /// `count` counts one among those of the client in all processes; none if there are as many as it is told.
    /// Errors: too many wait.
    pub(super) fn begin(
        &self,
        users: &Arc<Users>,
        credentials: Credentials,
        tag: Tag,
        (client, is_known): (Option<u128>, bool),
        count: &dyn Fn(u32) -> Option<Counted>,
        wake: Wake,
    ) -> Result<Ticket, Full> {
        let own = &self.0;
        let client = client.filter(|_| !is_known);
        let state = Mutex::new(State { waiting: 1, wakes: vec![wake], ..State::default() });
        let check = Check { users: Arc::clone(users), credentials, tag, client, state };
        let begun = own.begin(check, is_known, count);
        if begun.is_err() {
            own.refused.fetch_add(1, Ordering::Relaxed);
        }
        begun.map(Ticket)
    }

    pub fn figures(&self) -> Figures {
        let Own { threads, made, refused, .. } = &*self.0;
        let [made, refused] = [made, refused].map(|count| count.load(Ordering::Relaxed));
        Figures { threads: *threads, waiting: self.0.shares().waiting, made, refused }
    }

    /// Ends the threads after their present hash; waiting checks are dropped.
    pub fn end(&self) {
        self.0.turns.end();
        let waiting = std::mem::take(&mut *self.0.shares());
        drop(waiting);
    }
}

impl Drop for Hasher {
    fn drop(&mut self) {
        self.end();
    }
}

impl Own {
    /// Joins this check to the queue, or to the same one that waits already; returns the check that the request waits
    /// for.
    fn begin(
        &self,
        check: Check,
        is_known: bool,
        count: &dyn Fn(u32) -> Option<Counted>,
    ) -> Result<Arc<Check>, Full> {
        let mut shares = self.shares();
        if let Some(same) = shares.same(&check) {
            let mut state = same.lock();
            state.waiting += 1;
            state.wakes.append(&mut check.lock().wakes);
            drop(state);
            return Ok(same);
        }
        if !is_known && shares.waiting >= MAX_WAITING {
            return Err(Full::Queue);
        }
        let check = Arc::new(check);
        let (turn, is_first) = match check.client {
            None => (Turn::Check(Arc::clone(&check)), true),
            Some(client) => {
                if shares.clients.get(&client).is_some_and(|share| share.all.len() >= MAX_OF_CLIENT) {
                    return Err(Full::Share);
                }
                let Some(counted) = count(MAX_OF_CLIENT as u32) else { return Err(Full::Share) };
                check.lock().counted = Some(counted);
                let share = shares.clients.entry(client).or_default();
                share.all.push(Arc::clone(&check));
                share.waiting.push_back(Arc::clone(&check));
                (Turn::Client(client), share.waiting.len() == 1)
            }
        };
        let is_in = match turn {
            _ if !is_first => true,
            turn if is_known => self.turns.push_first(turn),
            turn => self.turns.push(turn),
        };
        if !is_in {
            shares.release(&check);
            return Err(Full::Queue);
        }
        shares.waiting += 1;
        Ok(check)
    }

    fn take(&self, turn: Turn) {
        let mut shares = self.shares();
        let check = match turn {
            Turn::Check(check) => check,
            Turn::Client(client) => {
                let Some(share) = shares.clients.get_mut(&client) else { return };
                let Some(check) = share.waiting.pop_front() else { return };
                // Behind those of others. At the end nothing is taken any more.
                if !share.waiting.is_empty() {
                    self.turns.push(Turn::Client(client));
                }
                check
            }
        };
        shares.waiting = shares.waiting.saturating_sub(1);
        // Under the lock: no request joins a check that is not going to be made.
        let is_wanted = check.lock().waiting > 0;
        if !is_wanted {
            shares.release(&check);
        }
        drop(shares);
        match is_wanted {
            true => self.make(&check),
            false => drop(check.uncount()),
        }
    }

    fn make(&self, check: &Arc<Check>) {
        if check.users.is_due() {
            self.look(&check.users);
        }
        // A hash that panics is a wrong one; the thread is needed for others.
        let found = catch_unwind(AssertUnwindSafe(|| check.users.check(&check.credentials, check.tag)));
        let found = found.unwrap_or_default();
        self.made.fetch_add(1, Ordering::Relaxed);
        self.shares().release(check);
        drop(check.uncount());
        let wakes = {
            let mut state = check.lock();
            state.result = Some(found);
            std::mem::take(&mut state.wakes)
        };
        wakes.iter().for_each(|wake| wake());
    }

    fn shares(&self) -> MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, users: &Users) {
        tell(users, &users.look(), &self.log);
    }
}

pub(crate) fn tell(users: &Users, looked: &Result<Option<usize>, super::BadUsers>, log: &Log) {
    let path = users.path().display();
    match looked {
        Ok(None) => {}
        Ok(Some(count)) => log.info(format_args!("{path} has been read again: {count} users")),
        Err(error) => log.error(format_args!("{path}: {error}; the users are those it had before")),
    }
}

impl Shares {
    fn same(&self, check: &Check) -> Option<Arc<Check>> {
        let share = self.clients.get(&check.client?)?;
        share.all.iter().find(|other| other.is_same(check)).cloned()
    }

    fn release(&mut self, check: &Arc<Check>) {
        let Some(client) = check.client else { return };
        let Some(share) = self.clients.get_mut(&client) else { return };
        share.all.retain(|other| !Arc::ptr_eq(other, check));
        share.waiting.retain(|other| !Arc::ptr_eq(other, check));
        if share.all.is_empty() {
            self.clients.remove(&client);
        }
    }
}

impl Check {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn uncount(&self) -> Option<Counted> {
        self.lock().counted.take()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.tag.is(&other.tag) && Arc::ptr_eq(&self.users, &other.users)
    }
}

/// A request's side of a check. When all are dropped it is not made, unless it is being made.
pub(crate) struct Ticket(Arc<Check>);

impl Ticket {
    pub(crate) fn result(&self) -> Option<CheckedUser> {
        self.0.lock().result.clone()
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.0.lock().result.is_some()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.waiting = state.waiting.saturating_sub(1);
        // The callbacks hold on to the group of their connection.
        let wakes = if state.waiting == 0 { std::mem::take(&mut state.wakes) } else { Vec::new() };
        drop(state);
        drop(wakes);
    }
}
