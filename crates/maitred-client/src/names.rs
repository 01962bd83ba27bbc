//! Names: their addresses, looked up on helper threads and kept for a while.
//!
//! Promises: an address is used for 30 s and refreshed before that passes while its name is in use; a name without addresses
//! counts as one for 1 s; addresses serve 10 min more while the resolver fails. One look-up runs per name, and a resolver that hangs
//! holds one thread and the calls for its own name only. A name for which no call waits any more is not looked up, and names in
//! use come first. Addresses that took no connection come last for 30 s.
//!
//! Leaves out: addresses as text and `localhost`, which need no look-up ([`literal`]); the order by family (`connect`).

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry as Place, HashMap};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use crate::fork;

/// How long addresses are used. The resolver tells no time to live; source: most names of cloud services change within a minute.
const GOOD: Duration = Duration::from_secs(30);
/// The age from which addresses are looked up again while they are used.
const REFRESH: Duration = Duration::from_secs(24);
/// How long a name without addresses, or a failure of the resolver, stands.
const NEGATIVE: Duration = Duration::from_secs(1);
/// How long addresses are used while the resolver fails.
const STALE: Duration = Duration::from_secs(630);
/// How long a call waits for the resolver while there are addresses that are stale.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long an address that took no connection comes last.
const SINKS: Duration = Duration::from_secs(30);

/// The most names, and the most addresses that have sunk.
const MOST_NAMES: usize = 1000;
/// The most calls that wait for one name.
const MOST_WAITING: usize = 4096;
/// The most helper threads: so many look-ups can hang before a name that is not known waits for them.
const MOST_THREADS: usize = 4;
/// How long a helper thread waits for the next name before it ends.
const REST: Duration = Duration::from_secs(10);

/// The addresses of a name, in the order of the system (RFC 6724); their port does not count. An error of the kind `NotFound` means
/// that the name has none, each other one that the resolver fails.
pub type Resolve = dyn Fn(&str) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// The names of a client.
pub(crate) struct Names(Arc<Shared>);

struct Shared {
    /// Of the process that has made it.
    forks: u64,
    inner: Mutex<Inner>,
    work: Condvar,
    resolve: Arc<Resolve>,
}

#[derive(Default)]
struct Inner {
    names: HashMap<Arc<str>, Name>,
    sunk: HashMap<SocketAddr, Instant>,
    /// The names that wait for a thread.
    queue: BTreeMap<Turn, Arc<str>>,
    threads: usize,
    idle: usize,
    /// The last number of a waiter or a turn.
    last: u64,
}

/// A place in the queue: names without addresses come behind those that are refreshed.
type Turn = (bool, u64);

/// The addresses of a name, and its look-up.
struct Name {
    good: Option<(Arc<[SocketAddr]>, Instant)>,
    failed: Option<(ErrorKind, Arc<str>, Instant)>,
    /// The time at which the look-up was begun that runs or is queued.
    running: Option<Instant>,
    queued: Option<Turn>,
    waiting: Waiting,
    used: Instant,
}

/// The calls that wait for one name, by their numbers.
type Waiting = HashMap<u64, Waker>;

/// A call that waits for a name, until this is dropped.
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    host: Arc<str>,
    number: u64,
}

/// The answer to a question for a name.
#[derive(Debug)]
pub(crate) enum Found {
    /// Its addresses.
    Addresses(Arc<[SocketAddr]>),
    /// The waker will be woken; at this time there is an answer even without that.
    Pending(Option<Instant>),
}

/// The addresses of a text that needs no look-up: an IP address or `localhost`.
pub(crate) fn literal(host: &str) -> Option<Vec<IpAddr>> {
    if host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
    }
    host.parse().ok().map(|address| vec![address])
}

impl Names {
    pub(crate) fn new(resolve: Arc<Resolve>) -> Self {
        let (forks, inner, work) = (fork::count(), Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { forks, inner, work, resolve }))
    }

    /// The addresses of `host`, or the time until which to wait for them. `waiter` is the call's place among those that wait.
    ///
    /// # Errors
    /// The name has no address, the resolver fails, or too many calls wait.
    pub(crate) fn find(
        &self,
        host: &str,
        now: Instant,
        waker: &Waker,
        waiter: &mut Option<Waiter>,
    ) -> io::Result<Found> {
        let mut inner = self.0.lock();
        let number = waiter.as_ref().map_or_else(|| inner.number(), |waiter| waiter.number);
        let (found, begins) = inner.find(host, now, waker, number)?;
        if matches!(found, Found::Pending(_)) && waiter.is_none() {
            *waiter = Some(Waiter { shared: Arc::clone(&self.0), host: host.into(), number });
        }
        let mut woken = Vec::new();
        let mut found = Ok(found);
        if begins {
            self.0.work.notify_one();
            if inner.idle < inner.queue.len() && inner.threads < MOST_THREADS {
                let shared = Arc::clone(&self.0);
                let begun = thread::Builder::new().name("names".to_owned()).spawn(move || shared.work());
                match begun {
                    Ok(_) => inner.threads += 1,
                    // Another thread takes the name later.
                    Err(_) if inner.threads > 0 => {}
                    Err(error) => {
                        woken = inner.fail_queued(&error, now);
                        found = inner.find(host, now, waker, number).map(|(found, _)| found);
                    }
                }
            }
        }
        drop(inner);
        woken.into_iter().for_each(Waker::wake);
        found
    }

    /// `addresses` took no connection, or were slower than others.
    pub(crate) fn sink(&self, addresses: &[SocketAddr], now: Instant) {
        if !addresses.is_empty() {
            self.0.lock().sink(addresses, now);
        }
    }

    /// The addresses that have not sunk, and those that have.
    pub(crate) fn parted(&self, addresses: Vec<SocketAddr>, now: Instant) -> [Vec<SocketAddr>; 2] {
        let inner = self.0.lock();
        let is_sunk = |address: &SocketAddr| inner.sunk.get(address).is_some_and(|until| *until > now);
        let (sunk, good) = addresses.into_iter().partition(is_sunk);
        [good, sunk]
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names")
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.forks != fork::count() {
            // A thread of the parent may have been changing them at the fork.
            std::mem::forget(std::mem::take(&mut self.inner));
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        // A child process must not wait for the lock.
        if self.shared.forks == fork::count() {
            self.shared.lock().leave(&self.host, self.number);
        }
    }
}

impl fmt::Debug for Waiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "waiter {} for {}", self.number, self.host)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of a helper thread.
    fn work(&self) {
        let mut inner = self.lock();
        loop {
            if let Some(name) = inner.begin() {
                drop(inner);
                let result = catch_unwind(AssertUnwindSafe(|| (self.resolve)(&name)))
                    .unwrap_or_else(|_| Err(io::Error::other("the resolver has panicked")));
                inner = self.lock();
                let woken = inner.complete(&name, result, Instant::now());
                drop(inner);
                woken.into_values().for_each(Waker::wake);
                inner = self.lock();
                continue;
            }
            inner.idle += 1;
            let waited = self.work.wait_timeout(inner, REST).unwrap_or_else(PoisonError::into_inner);
            inner = waited.0;
            inner.idle -= 1;
            if waited.1.timed_out() && inner.queue.is_empty() {
                inner.threads -= 1;
                return;
            }
        }
    }
}

impl Inner {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The answer, and whether the look-up of the name is queued now. `waiter` is the number of the call.
    fn find(&mut self, host: &str, now: Instant, waker: &Waker, waiter: u64) -> io::Result<(Found, bool)> {
        if !self.names.contains_key(host) {
            self.make_room()?;
            self.names.insert(host.into(), Name::new(now));
        }
        let turn = self.number();
        let Some(name) = self.names.get_mut(host) else { return Err(ErrorKind::NotFound.into()) };
        name.used = now;
        // The time until which a call waits comes from these: too old ones would let it wait for a time that has passed.
        name.good.take_if(|(_, since)| now.saturating_duration_since(*since) >= STALE);
        let found = name.look(now)?;
        let refreshes = name.is_old(now) && name.running.is_none();
        if refreshes {
            let turn = (name.good.is_none(), turn);
            (name.running, name.queued) = (Some(now), Some(turn));
            self.queue.insert(turn, host.into());
        }
        let found = match found {
            Some(addresses) => Found::Addresses(addresses),
            None => Found::Pending(name.wait(waker, waiter)?),
        };
        Ok((found, refreshes))
    }

    /// The name whose turn it is.
    fn begin(&mut self) -> Option<Arc<str>> {
        let (_, host) = self.queue.pop_first()?;
        if let Some(name) = self.names.get_mut(&host) {
            name.queued = None;
        }
        Some(host)
    }

    /// No thread can be started: that counts as a failure of the resolver. The wakers of those that wait.
    fn fail_queued(&mut self, error: &io::Error, now: Instant) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(host) = self.begin() {
            let error = io::Error::new(error.kind(), format!("no thread for the resolver: {error}"));
            woken.extend(self.complete(&host, Err(error), now).into_values());
        }
        woken
    }

    /// This call waits no more. A look-up that would be for nothing is not begun.
    fn leave(&mut self, host: &str, waiter: u64) {
        let Some(name) = self.names.get_mut(host) else { return };
        name.waiting.remove(&waiter);
        if name.waiting.is_empty()
            && name.good.is_none()
            && let Some(turn) = name.queued.take()
        {
            self.queue.remove(&turn);
            name.running = None;
        }
    }

    /// Forgets the name that was used least lately. Only at the limit of names: this walks all.
    fn make_room(&mut self) -> io::Result<()> {
        if self.names.len() < MOST_NAMES {
            return Ok(());
        }
        let resting = self.names.iter().filter(|(_, name)| name.running.is_none());
        let oldest = resting.min_by_key(|(_, name)| name.used).map(|(host, _)| Arc::clone(host));
        match oldest {
            Some(host) => drop(self.names.remove(&host)),
            None => return Err(io::Error::other(format!("{MOST_NAMES} names wait for the resolver"))),
        }
        Ok(())
    }

    /// The wakers of those that wait.
    fn complete(&mut self, host: &str, result: io::Result<Vec<SocketAddr>>, now: Instant) -> Waiting {
        let Place::Occupied(mut name) = self.names.entry(host.into()) else { return Waiting::new() };
        let name = name.get_mut();
        name.running = None;
        match result {
            Ok(addresses) if !addresses.is_empty() => {
                name.good = Some((addresses.into(), now));
                name.failed = None;
            }
            Ok(_) => name.fail(&io::Error::new(ErrorKind::NotFound, "it has none"), now),
            Err(error) => name.fail(&error, now),
        }
        std::mem::take(&mut name.waiting)
    }

    fn sink(&mut self, addresses: &[SocketAddr], now: Instant) {
        for address in addresses {
            if self.sunk.len() >= MOST_NAMES {
                self.sunk.retain(|_, until| *until > now);
            }
            if let Some(until) = now.checked_add(SINKS).filter(|_| self.sunk.len() < MOST_NAMES) {
                self.sunk.insert(*address, until);
            }
        }
    }
}

impl Name {
    fn new(used: Instant) -> Self {
        Self { good: None, failed: None, running: None, queued: None, waiting: Waiting::new(), used }
    }

    /// The addresses to use, or none if the resolver has to be waited for.
    fn look(&self, now: Instant) -> io::Result<Option<Arc<[SocketAddr]>>> {
        let age = |since: Instant| now.saturating_duration_since(since);
        let failed = self.failed.as_ref().filter(|(_, _, since)| age(*since) < NEGATIVE);
        match (&self.good, failed) {
            (Some((addresses, since)), _) if age(*since) < GOOD => Ok(Some(Arc::clone(addresses))),
            // The resolver fails or takes its time.
            (Some((addresses, since)), failed)
                if failed.is_some() || self.running.is_some_and(|since| age(since) >= PATIENCE) =>
            {
                Ok(Some(Arc::clone(addresses)))
            }
            (_, Some((kind, text, _))) => Err(io::Error::new(*kind, &**text)),
            _ => Ok(None),
        }
    }

    /// Whether a look-up is due.
    fn is_old(&self, now: Instant) -> bool {
        let age = |since: Instant| now.saturating_duration_since(since);
        self.good.as_ref().is_none_or(|(_, since)| age(*since) >= REFRESH)
            && self.failed.as_ref().is_none_or(|(_, _, since)| age(*since) >= NEGATIVE)
    }

    /// The time at which there is an answer even without the resolver.
    fn wait(&mut self, waker: &Waker, waiter: u64) -> io::Result<Option<Instant>> {
        if self.waiting.len() >= MOST_WAITING && !self.waiting.contains_key(&waiter) {
            return Err(io::Error::other(format!("{MOST_WAITING} calls wait for the resolver")));
        }
        self.waiting.insert(waiter, waker.clone());
        Ok(self.running.filter(|_| self.good.is_some()).and_then(|since| since.checked_add(PATIENCE)))
    }

    fn fail(&mut self, error: &io::Error, now: Instant) {
        if error.kind() == ErrorKind::NotFound {
            self.good = None;
        }
        self.failed = Some((error.kind(), error.to_string().into(), now));
    }
}

#[cfg(test)]
mod tests;
