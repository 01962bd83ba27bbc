//! Connections that are kept, and slots for those that may be made.
//!
//! ```text
//!                  .-- idle connection, the youngest first --.
//! check_out(key) --+-- room for a new one -------------------+--> Slot --give_back--> idle, or the next waiter
//!                  `-- full: wait(key), woken in turn -------'      `---drop--------> room, or the next waiter
//! ```
//!
//! A check-out costs one look-up of its key, however many connections there are. A [`Slot`] is a guard: it counts in the limits
//! until it is dropped, and so does one that was handed to a waiter who has gone. Connections are dropped outside the
//! lock, because closing one may take time.
//!
//! Leaves out: making and looking at connections; `C` is any type.

use std::collections::hash_map::{Entry, HashMap};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

mod holders;
mod sweep;

use crate::fork;
use crate::keep_alive::Kept;
use crate::key::Key;

pub use holders::Holder;
pub(crate) use holders::named;

/// The limits of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The most connections to one key, used and idle.
    pub per_key: usize,
    /// The most connections in all. An idle one of another key gives way.
    pub total: usize,
    /// How long a connection is kept idle whose server has not said how long it keeps it. Source: below the 5 s of Node.js
    /// and uvicorn, so that a request rarely meets the server's FIN.
    pub idle: Duration,
    /// The longest time idle, whatever a server has said.
    pub max_idle: Duration,
    /// The age at which a connection is not used again: its name may point elsewhere by now.
    pub age: Duration,
}

/// The time between two looks at the idle connections of all keys.
const SWEEP: Duration = Duration::from_secs(10);

impl Default for Settings {
    fn default() -> Self {
        Self {
            per_key: 100,
            total: 1000,
            idle: Duration::from_secs(4),
            max_idle: Duration::from_secs(120),
            age: Duration::from_secs(300),
        }
    }
}

/// A pool, which its clones share.
#[derive(Debug)]
pub struct Pool<C>(Arc<Shared<C>>);

#[derive(Debug)]
struct Shared<C> {
    settings: Settings,
    /// Of the process that has made the pool.
    forks: u64,
    inner: Mutex<Inner<C>>,
}

#[derive(Debug)]
struct Inner<C> {
    places: HashMap<Arc<Key>, Place<C>>,
    /// Connections and rooms for them: used and idle ones, all keys.
    open: usize,
    waiting: usize,
    /// The keys that are waited for, by the numbers of their first waiters.
    firsts: BTreeMap<u64, Arc<Key>>,
    next: u64,
    holders: HashMap<u64, Holder>,
    /// The next look at the idle connections of all keys.
    sweeps: Option<Instant>,
}

/// The connections of one key.
#[derive(Debug)]
struct Place<C> {
    /// The longest idle is the first.
    idle: VecDeque<Idle<C>>,
    open: usize,
    waiting: Queue<C>,
}

/// Waiters with their numbers, which rise.
type Queue<C> = VecDeque<(u64, Arc<Ticket<C>>)>;

#[derive(Debug)]
struct Idle<C> {
    connection: C,
    life: Life,
    since: Instant,
    until: Instant,
}

/// The past of a connection, and the server's limit for its future.
#[derive(Clone, Copy, Debug)]
struct Life {
    made: Instant,
    requests: Option<u32>,
}

/// The reason why a slot is not free at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// All connections that the key may have are used.
    Key,
    /// All connections that the pool may have are used.
    Pool,
}

/// The right to one connection.
#[derive(Debug)]
pub struct Slot<C> {
    shared: Arc<Shared<C>>,
    key: Arc<Key>,
    number: u64,
    connection: Option<C>,
    life: Option<Life>,
    reused: bool,
}

/// A place in the queue for a slot, which is left when this is dropped.
#[derive(Debug)]
pub struct Waiting<C> {
    shared: Arc<Shared<C>>,
    key: Arc<Key>,
    number: u64,
    ticket: Arc<Ticket<C>>,
}

#[derive(Debug)]
struct Ticket<C> {
    caller: u64,
    state: Mutex<TicketState<C>>,
}

#[derive(Debug)]
struct TicketState<C> {
    slot: Option<Slot<C>>,
    waker: Waker,
}

impl<C> Ticket<C> {
    fn lock(&self) -> MutexGuard<'_, TicketState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Clone for Pool<C> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<C> Pool<C> {
    /// An empty pool.
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Shared { settings, forks: fork::count(), inner: Mutex::new(Inner::new()) }))
    }

    /// A slot for `key`, with an idle connection if there is one. `caller` is a number that [`holders`](Self::holders) show.
    ///
    /// # Errors
    /// No slot is free.
    pub fn check_out(&self, key: &Arc<Key>, caller: u64, now: Instant) -> Result<Slot<C>, Full> {
        let mut old = Vec::new();
        let mut inner = self.0.lock();
        let found = inner.find(&self.0, key, caller, now, &mut old);
        drop(inner);
        found
    }

    /// As [`check_out`](Self::check_out), or a place in the queue: `waker` is woken when it has a slot.
    ///
    /// # Errors
    /// No slot is free; the error is the place in the queue.
    pub fn check_out_or_wait(
        &self,
        key: &Arc<Key>,
        caller: u64,
        now: Instant,
        waker: Waker,
    ) -> Result<Slot<C>, Waiting<C>> {
        let mut old = Vec::new();
        let mut inner = self.0.lock();
        if let Ok(slot) = inner.find(&self.0, key, caller, now, &mut old) {
            drop(inner);
            return Ok(slot);
        }
        let ticket = Arc::new(Ticket { caller, state: Mutex::new(TicketState { slot: None, waker }) });
        let number = inner.number();
        inner.waiting += 1;
        inner.change_queue(key, |queue| queue.push_back((number, Arc::clone(&ticket))));
        drop(inner);
        Err(Waiting { shared: Arc::clone(&self.0), key: Arc::clone(key), number, ticket })
    }

    /// The holders of slots that are out, in no order.
    pub fn holders(&self) -> Vec<Holder> {
        self.0.lock().holders.values().cloned().collect()
    }

    /// The number of connections that are idle.
    pub fn idle(&self) -> usize {
        let inner = self.0.lock();
        inner.open - inner.holders.len()
    }
}

impl<C> Drop for Shared<C> {
    fn drop(&mut self) {
        if self.is_of_parent() {
            // A thread of the parent may have been changing it at the fork.
            std::mem::forget(std::mem::replace(&mut self.inner, Mutex::new(Inner::new())));
        }
    }
}

impl<C> Shared<C> {
    /// Whether this is a child process, which must not wait for the lock.
    fn is_of_parent(&self) -> bool {
        self.forks != fork::count()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<C>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A slot and the waiter that gets it, once the lock is free.
type Handed<C> = (Arc<Ticket<C>>, Slot<C>);

fn hand_over<C>((ticket, slot): Handed<C>) {
    let mut state = ticket.lock();
    state.slot = Some(slot);
    let waker = state.waker.clone();
    drop(state);
    waker.wake();
    // If the waiter has gone meanwhile, the ticket is dropped here, and its slot serves the next one.
}

impl<C> Place<C> {
    /// Moves the longest idle connections whose time has passed to `old`: how many.
    fn drop_expired(&mut self, now: Instant, old: &mut Vec<C>) -> usize {
        let before = self.idle.len();
        while self.idle.front().is_some_and(|idle| idle.until <= now) {
            old.extend(self.idle.pop_front().map(|idle| idle.connection));
        }
        before - self.idle.len()
    }
}

impl<C> Inner<C> {
    fn new() -> Self {
        let (places, holders, firsts) = (HashMap::new(), HashMap::new(), BTreeMap::new());
        Self { places, open: 0, waiting: 0, firsts, next: 0, holders, sweeps: None }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn place(&mut self, key: &Arc<Key>) -> &mut Place<C> {
        let empty = || Place { idle: VecDeque::new(), open: 0, waiting: VecDeque::new() };
        self.places.entry(Arc::clone(key)).or_insert_with(empty)
    }

    /// Changes the queue of a key, and its place among those of the other keys.
    fn change_queue<T>(&mut self, key: &Arc<Key>, change: impl FnOnce(&mut Queue<C>) -> T) -> T {
        let queue = &mut self.place(key).waiting;
        let first = |queue: &Queue<C>| queue.front().map(|(number, _)| *number);
        let before = first(queue);
        let result = change(queue);
        let now = first(queue);
        if before != now {
            before.and_then(|number| self.firsts.remove(&number));
            self.firsts.extend(now.map(|number| (number, Arc::clone(key))));
        }
        result
    }

    fn forget_if_empty(&mut self, key: &Arc<Key>) {
        if let Entry::Occupied(place) = self.places.entry(Arc::clone(key))
            && place.get().open == 0
            && place.get().waiting.is_empty()
        {
            place.remove();
        }
    }

    /// Connections that turn out to be too old go to `old`.
    fn find(
        &mut self,
        shared: &Arc<Shared<C>>,
        key: &Arc<Key>,
        caller: u64,
        now: Instant,
        old: &mut Vec<C>,
    ) -> Result<Slot<C>, Full> {
        if self.sweeps.is_none_or(|at| at <= now) {
            self.drop_all_expired(now, old);
        }
        let place = self.place(key);
        let mut gone = 0;
        let mut found = None;
        while let Some(idle) = place.idle.pop_back() {
            if idle.until > now {
                found = Some((idle.connection, idle.life));
                break;
            }
            old.push(idle.connection);
            gone += 1;
        }
        gone += place.drop_expired(now, old);
        place.open -= gone;
        let is_full = place.open >= shared.settings.per_key;
        self.open -= gone;
        if found.is_none() {
            if is_full {
                return Err(Full::Key);
            }
            if self.open >= shared.settings.total && !self.close_longest_idle(old) {
                self.forget_if_empty(key);
                return Err(Full::Pool);
            }
            self.open += 1;
            self.place(key).open += 1;
        }
        Ok(self.slot(shared, key, caller, found, now))
    }

    fn slot(
        &mut self,
        shared: &Arc<Shared<C>>,
        key: &Arc<Key>,
        caller: u64,
        found: Option<(C, Life)>,
        now: Instant,
    ) -> Slot<C> {
        let number = self.number();
        self.holders.insert(number, Holder { key: Arc::clone(key), caller, since: now });
        let (connection, life) =
            found.map_or((None, None), |(connection, life)| (Some(connection), Some(life)));
        let reused = connection.is_some();
        Slot { shared: Arc::clone(shared), key: Arc::clone(key), number, connection, life, reused }
    }

    /// A server that is not called any more would keep its connections for ever. This walks the keys, and is rare.
    fn drop_all_expired(&mut self, now: Instant, old: &mut Vec<C>) {
        self.sweeps = now.checked_add(SWEEP);
        let mut gone = 0;
        self.places.retain(|_, place| {
            let dropped = place.drop_expired(now, old);
            place.open -= dropped;
            gone += dropped;
            place.open > 0 || !place.waiting.is_empty()
        });
        self.open -= gone;
    }

    /// Only at the limit of all connections: this walks the keys.
    fn close_longest_idle(&mut self, old: &mut Vec<C>) -> bool {
        let idle = self.places.iter().filter_map(|(key, place)| Some((place.idle.front()?.since, key)));
        let Some(key) = idle.min_by_key(|(since, _)| *since).map(|(_, key)| Arc::clone(key)) else {
            return false;
        };
        let place = self.place(&key);
        old.extend(place.idle.pop_front().map(|idle| idle.connection));
        place.open -= 1;
        self.open -= 1;
        self.forget_if_empty(&key);
        true
    }

    /// Gives `freed`, a connection that is still counted, or else a free room, to the waiter that waits longest and can have it.
    /// `freed` goes back to the idle ones if no waiter wants it.
    fn serve(
        &mut self,
        shared: &Arc<Shared<C>>,
        freed: Option<(&Arc<Key>, Idle<C>)>,
        now: Instant,
        old: &mut Vec<C>,
    ) -> Option<Handed<C>> {
        if self.waiting == 0 {
            if let Some((own, idle)) = freed {
                self.place(own).idle.push_back(idle);
            }
            return None;
        }
        let settings = &shared.settings;
        let has_room = self.open < settings.total || freed.is_some();
        let own = freed.as_ref().map(|(key, _)| Arc::clone(key));
        let has_place =
            |key: &Arc<Key>| self.places.get(key).is_some_and(|place| place.open < settings.per_key);
        let may_have = |key: &&Arc<Key>| own.as_ref() == Some(*key) || (has_room && has_place(key));
        let next = self.firsts.values().find(may_have).cloned();
        let waiter = next.and_then(|key| Some((self.change_queue(&key, VecDeque::pop_front)?.1, key)));
        let Some((ticket, key)) = waiter else {
            if let Some((own, idle)) = freed {
                self.place(own).idle.push_back(idle);
            }
            return None;
        };
        self.waiting -= 1;
        let found = match freed {
            Some((own, idle)) if *own == key => Some((idle.connection, idle.life)),
            Some((own, idle)) => {
                old.push(idle.connection);
                self.place(own).open -= 1;
                self.place(&key).open += 1;
                self.forget_if_empty(own);
                None
            }
            None => {
                self.open += 1;
                self.place(&key).open += 1;
                None
            }
        };
        let slot = self.slot(shared, &key, ticket.caller, found, now);
        Some((ticket, slot))
    }
}

impl<C> Slot<C> {
    /// The connection, if it has been there or was [put](Self::put).
    pub fn connection(&mut self) -> Option<&mut C> {
        self.connection.as_mut()
    }

    /// The connection, to look at.
    pub fn look(&self) -> Option<&C> {
        self.connection.as_ref()
    }

    /// Whether the connection was idle in the pool before.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    /// The key.
    pub fn key(&self) -> &Arc<Key> {
        &self.key
    }

    /// Drops the connection. The slot stays.
    pub fn clear(&mut self) {
        self.connection = None;
    }

    /// Puts a new connection in the place of the present one, which is dropped.
    pub fn put(&mut self, connection: C, now: Instant) -> &mut C {
        self.life = Some(Life { made: now, requests: None });
        self.reused = false;
        self.connection.insert(connection)
    }

    /// Gives the connection back as one that can be used again, within the limits of its server.
    pub fn give_back(mut self, kept: Kept, now: Instant) {
        let settings = self.shared.settings;
        let Some((connection, life)) = self.connection.take().zip(self.life) else { return };
        // A server that names a number each time counts down; one that has named it once is counted here.
        let requests = kept.requests.or(life.requests.map(|left| left.saturating_sub(1)));
        let idle = kept.idle.unwrap_or(settings.idle).min(settings.max_idle);
        let until =
            now.checked_add(idle).zip(life.made.checked_add(settings.age)).map_or(now, |(a, b)| a.min(b));
        if until <= now || requests == Some(0) {
            return;
        }
        self.release(Some(Idle { connection, life: Life { requests, ..life }, since: now, until }));
    }

    fn release(&mut self, idle: Option<Idle<C>>) {
        if self.shared.is_of_parent() {
            return;
        }
        let mut old = Vec::new();
        let mut inner = self.shared.lock();
        let Some(holder) = inner.holders.remove(&self.number) else { return };
        let idle = match idle {
            // The usual end takes one look-up of the key.
            Some(idle) if inner.waiting == 0 => {
                let (now, place) = (idle.since, inner.place(&self.key));
                place.idle.push_back(idle);
                let gone = place.drop_expired(now, &mut old);
                place.open -= gone;
                inner.open -= gone;
                return;
            }
            idle => idle,
        };
        if idle.is_none() {
            inner.open -= 1;
            inner.place(&self.key).open -= 1;
        }
        // A drop knows no time; the one of the check-out only shows in the list of holders.
        let now = idle.as_ref().map_or(holder.since, |idle| idle.since);
        let freed = idle.map(|idle| (&self.key, idle));
        let handed = inner.serve(&self.shared, freed, now, &mut old);
        let gone = inner.place(&self.key).drop_expired(now, &mut old);
        inner.place(&self.key).open -= gone;
        inner.open -= gone;
        inner.forget_if_empty(&self.key);
        drop(inner);
        handed.into_iter().for_each(hand_over);
    }
}

impl<C> Drop for Slot<C> {
    fn drop(&mut self) {
        self.release(None);
    }
}

impl<C> Waiting<C> {
    /// The slot, once it is there.
    pub fn take(&self) -> Option<Slot<C>> {
        self.ticket.lock().slot.take()
    }

    /// The slot if it is there; else `waker` is the one that is woken from now on.
    pub fn take_or_wake(&self, waker: &Waker) -> Option<Slot<C>> {
        let mut state = self.ticket.lock();
        if state.slot.is_none() {
            state.waker.clone_from(waker);
        }
        state.slot.take()
    }
}

impl<C> Drop for Waiting<C> {
    fn drop(&mut self) {
        if self.shared.is_of_parent() {
            return;
        }
        let mut inner = self.shared.lock();
        // A slot that was handed over is in the ticket, and goes with it.
        let left = inner.change_queue(&self.key, |queue| {
            let at = queue.binary_search_by_key(&self.number, |(number, _)| *number).ok()?;
            queue.remove(at)
        });
        inner.waiting -= usize::from(left.is_some());
        inner.forget_if_empty(&self.key);
    }
}

#[cfg(test)]
mod tests;
