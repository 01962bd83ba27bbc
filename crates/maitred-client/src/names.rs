//! Names: their addresses, looked up on helper threads and kept for a while.
//!
//! Promises: an address is used for 30 s and refreshed before that passes while its name is in use; a name without addresses
//! counts as one for 1 s; addresses serve 10 min more while the resolver fails. One look-up runs per name, and a resolver that hangs
//! holds one thread and the calls for its own name only. Addresses that took no connection come last for 30 s.
//!
//! Leaves out: addresses as text and `localhost`, which need no look-up ([`literal`]); the order by family (`connect`).

use std::collections::hash_map::{Entry as Place, HashMap};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

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
    inner: Mutex<Inner>,
    work: Condvar,
    resolve: Arc<Resolve>,
}

#[derive(Default)]
struct Inner {
    names: HashMap<Arc<str>, Name>,
    sunk: HashMap<SocketAddr, Instant>,
    queue: std::collections::VecDeque<Arc<str>>,
    threads: usize,
    idle: usize,
}

/// The addresses of a name, and its look-up.
struct Name {
    good: Option<(Arc<[SocketAddr]>, Instant)>,
    failed: Option<(ErrorKind, Arc<str>, Instant)>,
    /// The time at which the look-up was begun that runs or is queued.
    running: Option<Instant>,
    waiting: Vec<Waker>,
    used: Instant,
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
        Self(Arc::new(Shared { inner: Mutex::default(), work: Condvar::new(), resolve }))
    }

    /// The addresses of `host`, or the time until which to wait for them.
    ///
    /// # Errors
    /// The name has no address, the resolver fails, or too many calls wait.
    pub(crate) fn find(&self, host: &str, now: Instant, waker: &Waker) -> io::Result<Found> {
        let mut inner = self.0.lock();
        let (found, begins) = inner.find(host, now, waker)?;
        if let Some(name) = begins {
            inner.queue.push_back(name);
            self.0.work.notify_one();
            if inner.idle < inner.queue.len() && inner.threads < MOST_THREADS {
                self.add_thread(&mut inner)?;
            }
        }
        Ok(found)
    }

    fn add_thread(&self, inner: &mut Inner) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        let started = thread::Builder::new().name("names".to_owned()).spawn(move || shared.work());
        match started {
            Ok(_) => inner.threads += 1,
            // Another thread takes the name later.
            Err(_) if inner.threads > 0 => {}
            Err(error) => {
                let queued: Vec<_> = inner.queue.drain(..).collect();
                queued.iter().for_each(|name| drop(inner.names.remove(name)));
                return Err(error);
            }
        }
        Ok(())
    }

    /// `addresses` took no connection, or were slower than others.
    pub(crate) fn sink(&self, addresses: &[SocketAddr], now: Instant) {
        if !addresses.is_empty() {
            self.0.lock().sink(addresses, now);
        }
    }

    /// Moves the addresses that have sunk behind the others.
    pub(crate) fn order(&self, addresses: &mut [SocketAddr], now: Instant) {
        let inner = self.0.lock();
        if !inner.sunk.is_empty() {
            addresses.sort_by_key(|address| inner.sunk.get(address).is_some_and(|until| *until > now));
        }
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names")
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
            if let Some(name) = inner.queue.pop_front() {
                drop(inner);
                let result = (self.resolve)(&name);
                inner = self.lock();
                let woken = inner.complete(&name, result, Instant::now());
                drop(inner);
                woken.into_iter().for_each(Waker::wake);
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
    /// The answer, and the name if its look-up begins now.
    fn find(&mut self, host: &str, now: Instant, waker: &Waker) -> io::Result<(Found, Option<Arc<str>>)> {
        if !self.names.contains_key(host) {
            self.make_room()?;
            let name = Name { good: None, failed: None, running: None, waiting: Vec::new(), used: now };
            self.names.insert(host.into(), name);
        }
        let Some(name) = self.names.get_mut(host) else { return Err(ErrorKind::NotFound.into()) };
        name.used = now;
        // The time until which a call waits comes from these: too old ones would let it wait for a time that has passed.
        name.good.take_if(|(_, since)| now.saturating_duration_since(*since) >= STALE);
        let found = name.look(now)?;
        let refreshes = name.is_old(now) && name.running.is_none();
        if refreshes {
            name.running = Some(now);
        }
        let found = match found {
            Some(addresses) => Found::Addresses(addresses),
            None => Found::Pending(name.wait(waker)?),
        };
        Ok((found, refreshes.then(|| host.into())))
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
    fn complete(&mut self, host: &str, result: io::Result<Vec<SocketAddr>>, now: Instant) -> Vec<Waker> {
        let Place::Occupied(mut name) = self.names.entry(host.into()) else { return Vec::new() };
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
    fn wait(&mut self, waker: &Waker) -> io::Result<Option<Instant>> {
        if !self.waiting.iter().any(|other| other.will_wake(waker)) {
            if self.waiting.len() >= MOST_WAITING {
                return Err(io::Error::other(format!("{MOST_WAITING} calls wait for the resolver")));
            }
            self.waiting.push(waker.clone());
        }
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
