//! Counts of calls to other servers, by server: a bounded number, each known by a hash.
//!
//! ```text
//! word 0      how many servers           word 1    how many names of ends       then [`MAX_ENDS`] names
//! a server    its name, and from word COUNTS on a word for each count; OTHER is the first
//! ```
//! Promises: a call ends in exactly one of a status, a time-out, a failure or a drop, so their sum is the number of calls. Counting
//! takes no lock, but for the first call to a server and the first failure of a kind. Leaves out: percentiles, which a
//! [`Recorder`](crate::Recorder) has under the numbers of the servers.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::arena::{ALIGN, Arena, Kind, run_words, runs};
use crate::distribution::Distribution;
use crate::foreign::Owner;
use crate::memory::{Run, load, read_text, text_words, write_text};

/// Servers with a row of their own: more than applications call, and all of them take 180 KiB.
pub const MAX_UPSTREAMS: usize = 256;

/// The number of all further servers together.
pub const OTHER_UPSTREAM: u16 = 0;

/// Bytes of a name; a longer one is cut.
const MAX_NAME: usize = 160;

/// Kinds of time-outs and failures; further ones are the last, "other".
const MAX_ENDS: usize = 24;

/// Bytes of the name of such a kind.
const MAX_END: usize = 24;

/// Stands before the phase of a time-out.
const TIMEOUT: &str = "timeout ";

/// Statuses of a server with a count of their own; further ones count by their class.
const CODES: usize = 16;

/// Classes of status: 0 to 5.
const CLASSES: usize = 6;

const COUNTS: usize = 24;
const BEGUN: usize = COUNTS;
const SENT: usize = BEGUN + 1;
const RECEIVED: usize = SENT + 1;
const REUSED: usize = RECEIVED + 1;
const TOTAL: usize = REUSED + 1;
/// Each word has the status above and its count below.
const CODE: usize = TOTAL + 1;
const CLASS: usize = CODE + CODES;
const DROPPED: usize = CLASS + CLASSES;
const RETRIED: usize = DROPPED + 1;
/// Nanoseconds and count of each part.
const PARTS: usize = RETRIED + 1;
const END: usize = PARTS + 2 * Part::ALL.len();
const STRIDE: usize = (END + MAX_ENDS).next_multiple_of(8);

const _: () = assert!(text_words(MAX_NAME) <= COUNTS);

const STATUS: u32 = 48;
const COUNT: u64 = (1 << STATUS) - 1;

const FIRST: usize = (2 + MAX_ENDS * text_words(MAX_END)).next_multiple_of(8);
const WORDS: usize = FIRST + (MAX_UPSTREAMS + 1) * STRIDE;

/// Places of the hashes: at most a quarter is taken.
const PLACES: usize = 1024;
const NUMBER: u64 = 0xffff;

const _: () = assert!(MAX_UPSTREAMS * 4 <= PLACES);

const NAME: &str = "upstreams";

/// Bytes of an [`Arena`] that the counts take.
pub const UPSTREAMS_BYTES: usize = run_words(NAME, WORDS) * size_of::<u64>();

/// A part of the time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// Waiting for a slot of the pool.
    Slot,
    /// Looking the name up.
    Resolve,
    /// Connecting.
    Connect,
    /// The TLS handshake.
    Tls,
    /// From the first byte of the request to the first byte of the response.
    FirstByte,
    /// The rest of the response.
    Body,
}

impl Part {
    /// All parts, in the order in which they pass.
    pub const ALL: [Self; 6] =
        [Self::Slot, Self::Resolve, Self::Connect, Self::Tls, Self::FirstByte, Self::Body];

    /// The name in logs and figures.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slot => "slot",
            Self::Resolve => "resolve",
            Self::Connect => "connect",
            Self::Tls => "tls",
            Self::FirstByte => "first byte",
            Self::Body => "body",
        }
    }
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    /// A response was read to its end.
    Status(u16),
    /// A time limit has passed, in the phase of this name.
    TimedOut(&'static str),
    /// The call has failed in the way of this name.
    Failed(&'static str),
    /// The caller gave the call up.
    Dropped,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedCall {
    /// The end.
    pub end: CallEnd,
    /// The connection had served another call.
    pub reused: bool,
    /// The request was sent twice.
    pub retried: bool,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// The whole time.
    pub total: Duration,
    /// The parts that occurred, in the order of [`Part::ALL`].
    pub parts: [Option<Duration>; Part::ALL.len()],
}

/// The calls to one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Upstream {
    /// `https://api.example:443`; `other` stands for all servers beyond [`MAX_UPSTREAMS`].
    pub name: String,
    /// Calls that have not ended.
    pub running: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Calls on a connection that had served another one.
    pub reused: u64,
    /// Calls that were sent twice.
    pub retried: u64,
    /// The whole time of all calls, in nanoseconds.
    pub nanos: u64,
    /// Responses by status: `200`, or `4xx` for those without a count of their own.
    pub statuses: BTreeMap<String, u64>,
    /// Time-outs by phase.
    pub timeouts: BTreeMap<String, u64>,
    /// Failures by name.
    pub failures: BTreeMap<String, u64>,
    /// Calls that their callers gave up.
    pub dropped: u64,
    /// Nanoseconds and number of the parts, in the order of [`Part::ALL`].
    pub parts: [(u64, u64); Part::ALL.len()],
    /// The whole time of a call, in nanoseconds, of calls while statistics were on.
    pub total: Distribution,
    /// The time to the first byte, likewise.
    pub first_byte: Distribution,
}

impl Upstream {
    /// The kinds of ends, the ends, and how many calls ended so; together all calls.
    pub fn ends(&self) -> impl Iterator<Item = (&'static str, &str, u64)> {
        let kinds = [("status", &self.statuses), ("time-out", &self.timeouts), ("failure", &self.failures)];
        let counted = kinds
            .into_iter()
            .flat_map(|(kind, counts)| counts.iter().map(move |(end, calls)| (kind, end.as_str(), *calls)));
        counted.chain((self.dropped > 0).then_some(("dropped", "dropped", self.dropped)))
    }

    /// Calls that have ended: the sum over their ends.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.ends().fold(0, |sum, (.., calls)| sum.saturating_add(calls))
    }

    /// The mean time of a call, in nanoseconds.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.nanos as f64 / self.calls().max(1) as f64
    }

    /// Adds the calls of another process.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.running, other.running),
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
            (&mut self.reused, other.reused),
            (&mut self.retried, other.retried),
            (&mut self.nanos, other.nanos),
            (&mut self.dropped, other.dropped),
        ] {
            *mine = mine.saturating_add(theirs);
        }
        for (mine, theirs) in [
            (&mut self.statuses, &other.statuses),
            (&mut self.timeouts, &other.timeouts),
            (&mut self.failures, &other.failures),
        ] {
            for (name, count) in theirs {
                let sum = mine.entry(name.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        for (mine, theirs) in self.parts.iter_mut().zip(other.parts) {
            *mine = (mine.0.saturating_add(theirs.0), mine.1.saturating_add(theirs.1));
        }
        self.total.merge(&other.total);
        self.first_byte.merge(&other.first_byte);
    }
}

/// Names, numbers and counts of servers.
///
/// ```
/// use maitred_stats::{CallEnd, EndedCall, Upstreams};
/// use std::time::Duration;
///
/// let upstreams = Upstreams::new();
/// let number = upstreams.number(7, || "http://api.example:80".to_owned());
/// upstreams.begin(number);
/// assert_eq!((upstreams.read()[1].running, upstreams.read()[1].calls()), (1, 0));
/// upstreams.end(number, &EndedCall {
///     end: CallEnd::Status(200), reused: false, retried: false, sent: 90, received: 300,
///     total: Duration::from_millis(3), parts: [None; 6],
/// });
/// assert_eq!((upstreams.read()[1].running, upstreams.read()[1].calls()), (0, 1));
/// ```
pub struct Upstreams {
    run: Run,
    places: Box<[AtomicU64]>,
    /// Kinds of ends, by number. A thread that adds a server or a kind holds the lock.
    ends: Mutex<Vec<(bool, &'static str)>>,
}

impl Upstreams {
    /// No servers, in memory of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::in_arena(&Arena::private(ALIGN + run_words(NAME, WORDS)))
    }

    /// No servers, in this memory.
    pub fn in_arena(arena: &Arena) -> Self {
        let upstreams = Self {
            run: arena.take(Kind::Upstreams, 0, NAME, WORDS),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
            ends: Mutex::default(),
        };
        upstreams.push("other");
        upstreams
    }

    /// The number of the server with this hash, whose name is made if it is new; [`OTHER_UPSTREAM`] where there is no place. The
    /// hash must be keyed.
    pub fn number(&self, hash: u64, name: impl FnOnce() -> String) -> u16 {
        if let Some(known) = self.find(hash) {
            return known;
        }
        if self.count() > MAX_UPSTREAMS {
            return OTHER_UPSTREAM;
        }
        let _adding = self.lock();
        // Another thread may have been first.
        if let Some(known) = self.find(hash) {
            return known;
        }
        let number = self.push(&name());
        if number != OTHER_UPSTREAM
            && let Some(place) = self.places_of(hash).find(|place| place.load(Relaxed) == 0)
        {
            place.store(hash & !NUMBER | u64::from(number), Relaxed);
        }
        number
    }

    fn find(&self, hash: u64) -> Option<u16> {
        for place in self.places_of(hash) {
            let word = place.load(Relaxed);
            if word == 0 {
                return None;
            }
            if (word ^ hash) & !NUMBER == 0 {
                return Some((word & NUMBER) as u16);
            }
        }
        None
    }

    fn places_of(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = (hash >> NUMBER.count_ones()) as usize;
        (0..PLACES).filter_map(move |step| self.places.get((first + step) % PLACES))
    }

    /// A call to the server with this number begins.
    pub fn begin(&self, number: u16) {
        self.add(number, BEGUN, 1);
    }

    /// A call to the server with this number has ended.
    pub fn end(&self, number: u16, call: &EndedCall) {
        self.add(number, SENT, call.sent);
        self.add(number, RECEIVED, call.received);
        self.add(number, REUSED, call.reused.into());
        self.add(number, TOTAL, nanos(call.total));
        self.add(number, RETRIED, call.retried.into());
        for (which, part) in call.parts.iter().enumerate() {
            if let Some(time) = part {
                self.add(number, PARTS + 2 * which, nanos(*time));
                self.add(number, PARTS + 2 * which + 1, 1);
            }
        }
        match call.end {
            CallEnd::Status(status) => self.count_status(number, status),
            CallEnd::TimedOut(phase) => self.add(number, END + self.end_number(true, phase), 1),
            CallEnd::Failed(kind) => self.add(number, END + self.end_number(false, kind), 1),
            CallEnd::Dropped => self.add(number, DROPPED, 1),
        }
    }

    fn count_status(&self, number: u16, status: u16) {
        let own = u64::from(status) << STATUS;
        let codes = words_of(self.run.words(), number).get(CODE..CODE + CODES).unwrap_or_default();
        for word in codes {
            let mut there = word.load(Relaxed);
            if there == 0 {
                match word.compare_exchange(0, own | 1, Relaxed, Relaxed) {
                    Ok(_) => return,
                    Err(other) => there = other,
                }
            }
            if there & !COUNT == own {
                word.fetch_add(1, Relaxed);
                return;
            }
        }
        self.add(number, CLASS + (usize::from(status) / 100).min(CLASSES - 1), 1);
    }

    /// The number of a kind of ends, which is also written to the memory when it is new.
    fn end_number(&self, timeout: bool, name: &'static str) -> usize {
        let mut ends = self.lock();
        let wanted = (timeout, name);
        if let Some(number) = ends.iter().position(|known| *known == wanted) {
            return number;
        }
        let number = ends.len();
        let Some(place) = end_names(self.run.words()).nth(number).filter(|_| number < MAX_ENDS - 1) else {
            return MAX_ENDS - 1;
        };
        write_text(place, &if timeout { format!("{TIMEOUT}{name}") } else { name.to_owned() });
        ends.push(wanted);
        if let Some(count) = self.run.words().get(1) {
            count.store(ends.len() as u64, Release);
        }
        number
    }

    fn add(&self, number: u16, which: usize, amount: u64) {
        if amount > 0
            && let Some(word) = words_of(self.run.words(), number).get(which)
        {
            word.fetch_add(amount, Relaxed);
        }
    }

    /// The name of a server.
    #[must_use]
    pub fn name(&self, number: u16) -> String {
        words_of(self.run.words(), number).get(..COUNTS).map_or_else(String::new, read_text)
    }

    /// The servers by their numbers, without percentiles; [`OTHER_UPSTREAM`] is the first.
    #[must_use]
    pub fn read(&self) -> Vec<Upstream> {
        read(self.run.words(), Owner::Runs)
    }

    fn count(&self) -> usize {
        load(self.run.words(), 0) as usize
    }

    fn push(&self, name: &str) -> u16 {
        let number = self.count();
        let own = words_of(self.run.words(), number as u16);
        let Some(text) = own.get(..COUNTS).filter(|_| number <= MAX_UPSTREAMS) else { return OTHER_UPSTREAM };
        let end = (0..=MAX_NAME.min(name.len())).rev().find(|end| name.is_char_boundary(*end));
        write_text(text, &name[..end.unwrap_or_default()]);
        if let Some(count) = self.run.words().first() {
            count.store(number as u64 + 1, Release);
        }
        number as u16
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(bool, &'static str)>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Upstreams {
    fn default() -> Self {
        Self::new()
    }
}

/// The servers that another process has in this memory, by their numbers; none where there are none.
#[must_use]
pub fn read_upstreams(words: &[AtomicU64], owner: Owner) -> Vec<Upstream> {
    let found = runs(words).find(|found| found.kind == Kind::Upstreams as u8);
    found.map_or_else(Vec::new, |found| read(found.content, owner))
}

fn read(words: &[AtomicU64], owner: Owner) -> Vec<Upstream> {
    let count = words.first().map_or(0, |count| count.load(Acquire)).min(MAX_UPSTREAMS as u64 + 1);
    let ends = words.get(1).map_or(0, |count| count.load(Acquire)).min(MAX_ENDS as u64) as usize;
    let ends: Vec<String> = end_names(words).take(ends).map(read_text).collect();
    (0..count as u16).map(|number| read_one(words_of(words, number), &ends, owner)).collect()
}

fn read_one(own: &[AtomicU64], ends: &[String], owner: Owner) -> Upstream {
    // Read before the ends, so that a call that ends meanwhile is not counted as a running one for ever.
    let begun = load(own, BEGUN);
    let mut upstream = Upstream {
        name: own.get(..COUNTS).map_or_else(String::new, read_text),
        sent: load(own, SENT),
        received: load(own, RECEIVED),
        reused: load(own, REUSED),
        retried: load(own, RETRIED),
        nanos: load(own, TOTAL),
        dropped: load(own, DROPPED),
        parts: std::array::from_fn(|which| (load(own, PARTS + 2 * which), load(own, PARTS + 2 * which + 1))),
        ..Upstream::default()
    };
    let add = |counts: &mut BTreeMap<String, u64>, name: String, count: u64| {
        if count > 0 {
            *counts.entry(name).or_default() += count;
        }
    };
    for word in (CODE..CODE + CODES).map(|at| load(own, at)) {
        add(&mut upstream.statuses, (word >> STATUS).to_string(), word & COUNT);
    }
    for class in 0..CLASSES {
        add(&mut upstream.statuses, format!("{class}xx"), load(own, CLASS + class));
    }
    for number in 0..MAX_ENDS {
        let name = ends.get(number).map_or("other", |name| name);
        let (counts, name) = match name.strip_prefix(TIMEOUT) {
            Some(phase) => (&mut upstream.timeouts, phase),
            None => (&mut upstream.failures, name),
        };
        add(counts, name.to_owned(), load(own, END + number));
    }
    if owner == Owner::Runs {
        upstream.running = begun.saturating_sub(upstream.calls());
    }
    upstream
}

fn words_of(words: &[AtomicU64], number: u16) -> &[AtomicU64] {
    let start = FIRST + usize::from(number) * STRIDE;
    words.get(start..start + STRIDE).unwrap_or_default()
}

fn end_names(words: &[AtomicU64]) -> impl Iterator<Item = &[AtomicU64]> {
    words.get(2..FIRST).unwrap_or_default().chunks_exact(text_words(MAX_END)).take(MAX_ENDS)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "upstreams_tests.rs"]
mod tests;
