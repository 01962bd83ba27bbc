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
    /// Calls that have ended: the sum over their ends.
    #[must_use]
    pub fn calls(&self) -> u64 {
        let sum =
            |counts: &BTreeMap<String, u64>| counts.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        [sum(&self.statuses), sum(&self.timeouts), sum(&self.failures), self.dropped]
            .into_iter()
            .fold(0, u64::saturating_add)
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
mod tests {
    use super::*;
    use crate::memory;
    use proptest::prelude::*;

    fn call(end: CallEnd) -> EndedCall {
        EndedCall {
            end,
            reused: false,
            retried: false,
            sent: 100,
            received: 1000,
            total: Duration::from_micros(13),
            parts: [None; Part::ALL.len()],
        }
    }

    /// Far from each other, as a keyed hash has them.
    fn hash(number: u64) -> u64 {
        (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn counted(ends: &[(CallEnd, u64)]) -> Upstream {
        let upstreams = Upstreams::new();
        let number = upstreams.number(hash(0), || "https://api.example:443".to_owned());
        for (end, times) in ends {
            for _ in 0..*times {
                upstreams.begin(number);
                upstreams.end(number, &call(*end));
            }
        }
        upstreams.read().swap_remove(1)
    }

    fn status(code: u16, times: u64) -> (CallEnd, u64) {
        (CallEnd::Status(code), times)
    }

    /// Published tables of outgoing calls: the columns of statuses add up to the requests; a time-out stood there as 408.
    #[test]
    fn published_rows_add_up() {
        let rows: [(u64, &[(CallEnd, u64)]); 6] = [
            (3974, &[status(200, 2532), status(400, 7), status(429, 1435)]),
            (8275, &[status(200, 8274), (CallEnd::TimedOut("first-byte"), 1)]),
            (136, &[status(200, 67), status(201, 23), status(202, 46)]),
            (483, &[status(200, 482), status(403, 1)]),
            (5, &[status(200, 4), status(201, 1)]),
            (3, &[status(200, 1), status(204, 1), status(404, 1)]),
        ];
        for (requests, ends) in rows {
            let row = counted(ends);
            assert_eq!((row.calls(), row.running), (requests, 0), "{row:?}");
            for (end, times) in ends {
                let count = match end {
                    CallEnd::Status(code) => row.statuses.get(&code.to_string()),
                    CallEnd::TimedOut(phase) => row.timeouts.get(*phase),
                    CallEnd::Failed(kind) => row.failures.get(*kind),
                    CallEnd::Dropped => Some(&row.dropped),
                };
                assert_eq!(count, Some(times), "{end:?}");
            }
            assert_eq!((row.sent, row.received, row.mean()), (requests * 100, requests * 1000, 13_000.0));
        }
    }

    fn ends() -> impl Strategy<Value = CallEnd> {
        prop_oneof![
            (0..1000_u16).prop_map(CallEnd::Status),
            prop::sample::select(vec!["slot", "connect", "first-byte"]).prop_map(CallEnd::TimedOut),
            prop::sample::select(vec!["refused", "reset", "connect"]).prop_map(CallEnd::Failed),
            Just(CallEnd::Dropped),
        ]
    }

    proptest! {
        #[test]
        fn each_call_has_exactly_one_end(ends in prop::collection::vec(ends(), 0..300), open in 0..3_u64) {
            let counts: Vec<_> = ends.iter().map(|end| (*end, 1)).collect();
            let upstreams = Upstreams::new();
            for (end, _) in &counts {
                upstreams.begin(OTHER_UPSTREAM);
                upstreams.end(OTHER_UPSTREAM, &call(*end));
            }
            (0..open).for_each(|_| upstreams.begin(OTHER_UPSTREAM));
            let row = upstreams.read().swap_remove(0);
            prop_assert_eq!((row.calls(), row.running), (ends.len() as u64, open));
            let answered = ends.iter().filter(|end| matches!(end, CallEnd::Status(_))).count() as u64;
            prop_assert_eq!(row.statuses.values().sum::<u64>(), answered);
        }
    }

    #[test]
    fn servers_beyond_the_limit_are_one() {
        let upstreams = Upstreams::new();
        for server in 0..1000_u64 {
            let number = upstreams.number(hash(server), || format!("http://{server}:80"));
            assert_eq!(number == OTHER_UPSTREAM, server >= MAX_UPSTREAMS as u64, "{server}");
            upstreams.begin(number);
            upstreams.end(number, &call(CallEnd::Status(200)));
        }
        let rows = upstreams.read();
        assert_eq!((rows.len(), &*rows[0].name, rows[0].calls()), (MAX_UPSTREAMS + 1, "other", 744));
        assert!(rows[1..].iter().all(|row| row.calls() == 1));
        assert_eq!(upstreams.name(7), "http://6:80");
        assert_eq!(upstreams.number(hash(6), || panic!("the server is known")), 7);
    }

    #[test]
    fn kinds_of_ends_and_statuses_without_a_place_still_count() {
        const NAMES: [&str; 30] = [
            "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s",
            "t", "u", "v", "w", "x", "y", "z", "aa", "bb", "cc", "dd",
        ];
        let failed = NAMES.map(|name| (CallEnd::Failed(name), 2));
        let row = counted(&failed);
        assert_eq!((row.calls(), row.failures.len(), row.failures["other"]), (60, MAX_ENDS, 14));
        let statuses: Vec<_> = (400..430).map(|code| status(code, 3)).collect();
        let row = counted(&statuses);
        assert_eq!((row.calls(), row.statuses.len(), row.statuses["4xx"]), (90, CODES + 1, 42));
    }

    #[test]
    fn another_process_reads_them_and_a_killed_one_runs_no_call() {
        let memory = memory::private(UPSTREAMS_BYTES / 8 + ALIGN);
        let arena = Arena::new(memory.clone());
        let upstreams = Upstreams::in_arena(&arena);
        let number = upstreams.number(hash(1), || "http+unix:///run/x".to_owned());
        upstreams.begin(number);
        upstreams.begin(number);
        let mut ended = call(CallEnd::Status(503));
        ended.parts[Part::Connect as usize] = Some(Duration::from_nanos(70));
        ended.reused = true;
        upstreams.end(number, &ended);
        let words: &[AtomicU64] = (*memory).as_ref();
        let running = read_upstreams(words, Owner::Runs);
        assert_eq!(running, upstreams.read());
        assert_eq!((running[1].running, running[1].reused, running[1].parts[2]), (1, 1, (70, 1)));
        let killed = read_upstreams(words, Owner::Ended);
        assert_eq!((killed[1].running, killed[1].calls()), (0, 1));
        let mut both = killed[1].clone();
        both.merge(&running[1]);
        assert_eq!((both.calls(), both.running, both.statuses["503"], both.parts[2]), (2, 1, 2, (140, 2)));
        assert!(read_upstreams(&[], Owner::Runs).is_empty());
    }

    #[test]
    fn calls_of_several_threads_are_all_counted() {
        let upstreams = Upstreams::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u16 {
                let upstreams = &upstreams;
                scope.spawn(move || {
                    for round in 0..1000_u64 {
                        let number = upstreams.number(hash(round % 3), || format!("http://{}:1", round % 3));
                        upstreams.begin(number);
                        upstreams.end(number, &call(CallEnd::Status(200 + thread)));
                    }
                });
            }
        });
        let rows = upstreams.read();
        assert_eq!((rows.len(), rows.iter().map(Upstream::calls).sum::<u64>()), (4, 4000));
        assert!(rows[1..].iter().all(|row| row.statuses.len() == 4 && row.running == 0));
    }
}
