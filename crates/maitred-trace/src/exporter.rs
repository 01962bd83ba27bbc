//! The way of one signal's items to a collector: a queue, batches, posts and retries, without I/O and without a clock.
//!
//! ```text
//!        push            due, or 512 items           2xx: sent; 3xx, 4xx: refused
//! Idle -------> Idle ------------------> Posting -----------------------------> Idle
//!                                         |   ^
//!   429, 502, 503, 504, or no answer      v   | after a pause
//!                                        Held-'  given up after minutes: dropped
//! ```
//! Promises: items and bytes stay below the limits of the settings; one post is under way; each item is sent, refused or
//! dropped, or waits, and the counts add up; a trouble is told once in ten minutes.
//!
//! Leaves out: the connection, and its time limits.

mod answer;
mod news;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use maitred_compress::whole;
use maitred_http::coding::Coding;
use maitred_http::date;

use crate::context::Ids;
use crate::encoding::{Envelope, Format, Limits, Signal};
pub use news::News;
use news::Told;

/// The first pause after a failure; it doubles with each.
const FIRST_PAUSE: u64 = 1_000_000_000;

/// The pause while the process ends.
const LAST_PAUSE: u64 = 250_000_000;

/// Doublings of the pause: 32 s at most.
const DOUBLINGS: u32 = 5;

/// Failures in a row after which a collector gets one more try while the process ends.
const HOPELESS: u32 = 3;

/// The longest pause that a collector may ask for by `Retry-After`.
const LONGEST_PAUSE: u64 = 600_000_000_000;

/// Bytes of a batch, before compression. Collectors take 4 MiB and more.
const BATCH_BYTES: usize = 512 * 1024;

/// The level for [`whole`]: a collector is near, so speed is worth more than size.
const GZIP_LEVEL: u8 = 1;

/// How an exporter works. Times are nanoseconds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The encoding, which that of the items has to be.
    pub format: Format,
    /// How much of an item is written, for those that encode it.
    pub limits: Limits,
    /// Posts are compressed.
    pub gzip: bool,
    /// The attributes of the resource.
    pub resource: Vec<(String, String)>,
    /// Its `process.pid`, which is a number.
    pub pid: Option<u32>,
    /// An item waits so long for others.
    pub delay: u64,
    /// Items of a batch.
    pub batch: usize,
    /// Items that wait or are under way.
    pub queue: usize,
    /// Bytes of these. Memory is at most the body of a post above it, and the spare room of a batch of 512 KiB.
    pub bytes: usize,
    /// A batch is dropped when it has failed for so long.
    pub give_up: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            format: Format::Protobuf,
            limits: Limits::default(),
            gzip: false,
            resource: Vec::new(),
            pid: None,
            delay: 5_000_000_000,
            batch: 512,
            queue: 2048,
            bytes: 4 * 1024 * 1024,
            give_up: 300_000_000_000,
        }
    }
}

/// The exporter of a signal. Times are nanoseconds of any clock that is not set back.
#[derive(Debug)]
pub struct Exporter {
    signal: Signal,
    settings: Settings,
    resource: Arc<Vec<(String, String)>>,
    queue: VecDeque<Batch>,
    state: State,
    /// No post begins before.
    paused_until: u64,
    /// Failures since the last answer that was none.
    failures: u32,
    counts: Counts,
    jitter: Ids,
    told: Told,
    /// No item is taken any more, and none waits behind this moment.
    deadline: Option<u64>,
    /// The next failure is that deadline.
    last_try: bool,
}

#[derive(Debug, Default)]
struct Batch {
    /// It is posted from here on, though it is not full.
    due: u64,
    items: usize,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum State {
    Idle,
    Posting(Outgoing),
    Held(Outgoing),
}

/// A batch that has been posted.
#[derive(Debug)]
struct Outgoing {
    items: usize,
    bytes: Arc<Vec<u8>>,
    /// The time of the first post.
    since: u64,
}

/// The next thing to do.
#[derive(Debug)]
pub enum Step {
    /// Start this post and come again at once, for the deadline of the end; when the post has ended, call
    /// [`answered`](Exporter::answered) or [`failed`](Exporter::failed), and come again.
    Post(Post),
    /// Come again at this time, if one is given, and when [`push`](Exporter::push) says so.
    WaitUntil(Option<u64>),
    /// All items are sent, refused or dropped, after [`finish`](Exporter::finish).
    Finished,
}

/// A request to the collector. Its URL, further fields and time limit are those of the [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct Post {
    signal: Signal,
    format: Format,
    gzip: bool,
    resource: Arc<Vec<(String, String)>>,
    pid: Option<u32>,
    items: Arc<Vec<u8>>,
}

impl Post {
    /// The value of `Content-Type`.
    #[must_use]
    pub fn content_type(&self) -> &'static str {
        self.format.media_type()
    }

    /// The value of `Content-Encoding`.
    #[must_use]
    pub fn content_encoding(&self) -> Option<&'static str> {
        self.gzip.then_some("gzip")
    }

    /// Makes the body, which takes a millisecond if it is compressed: outside of the exporter's lock. It is the same one when the
    /// post is repeated.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let Self { signal, pid, resource, items, .. } = self;
        let envelope = Envelope { signal: *signal, resource, pid: *pid, items };
        let body = envelope.encode(self.format);
        if !self.gzip {
            return body;
        }
        let mut small = Vec::new();
        // It fails where there is no memory at all; the collector refuses an empty body then.
        let _ = whole(Coding::Gzip, GZIP_LEVEL, &body, &mut small);
        small
    }
}

/// The fate of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It waits, and a call of [`next`](Exporter::next) is planned.
    Waits,
    /// It waits, and [`next`](Exporter::next) has something new to say.
    Wakes,
    /// It was dropped.
    Dropped,
}

/// Items and posts so far: `queued = sent + refused + dropped + waiting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Items that were pushed.
    pub queued: u64,
    /// Items that the collector has taken.
    pub sent: u64,
    /// Items that the collector does not want.
    pub refused: u64,
    /// Items that found no room, or could not be sent for too long.
    pub dropped: u64,
    /// Items that wait or are under way.
    pub waiting: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Posts.
    pub posts: u64,
    /// Posts without an answer, or with one that asks for another try.
    pub failed: u64,
}

impl Exporter {
    /// An exporter. The seed is for the length of pauses.
    #[must_use]
    pub fn new(signal: Signal, mut settings: Settings, seed: [u64; 2]) -> Self {
        Self {
            signal,
            resource: Arc::new(mem::take(&mut settings.resource)),
            settings,
            queue: VecDeque::new(),
            state: State::Idle,
            paused_until: 0,
            failures: 0,
            counts: Counts::default(),
            jitter: Ids::seeded(seed),
            told: Told::default(),
            deadline: None,
            last_try: false,
        }
    }

    /// The settings, but for the resource.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Takes an item, which `encode` has made in the format of the settings.
    pub fn push(&mut self, item: &[u8], now: u64) -> Pushed {
        self.counts.queued += 1;
        let full = self.counts.waiting >= self.settings.queue as u64
            || self.counts.bytes + item.len() as u64 > self.settings.bytes as u64;
        if full || self.deadline.is_some() {
            self.counts.dropped += 1;
            if full {
                self.told.dropping(self.signal, now);
            }
            return Pushed::Dropped;
        }
        let begins = self.make_room(item.len(), now);
        let Some(batch) = self.queue.back_mut() else { return Pushed::Dropped };
        let before = batch.bytes.len();
        if self.settings.format == Format::Json && batch.items > 0 {
            batch.bytes.push(b',');
        }
        batch.bytes.extend_from_slice(item);
        batch.items += 1;
        let filled = batch.items >= self.settings.batch;
        if filled {
            batch.due = now;
        }
        self.counts.waiting += 1;
        self.counts.bytes += (batch.bytes.len() - before) as u64;
        // Otherwise the end of the post or of the pause calls.
        let news = (begins || filled) && self.queue.len() <= 2 && matches!(self.state, State::Idle);
        if news { Pushed::Wakes } else { Pushed::Waits }
    }

    /// The last batch has room for an item of this length afterwards: whether it was begun for that.
    fn make_room(&mut self, length: usize, now: u64) -> bool {
        if let Some(last) = self.queue.back_mut() {
            if last.items < self.settings.batch && last.bytes.len() + length < BATCH_BYTES {
                return false;
            }
            last.due = last.due.min(now);
        }
        let due = now.saturating_add(self.settings.delay);
        self.queue.push_back(Batch { due, items: 0, bytes: Vec::new() });
        true
    }

    /// Posts what waits without waiting for more of it.
    pub fn flush(&mut self) {
        self.queue.iter_mut().for_each(|batch| batch.due = 0);
    }

    /// Drops what waits and is not under way: newer values of the same metrics follow.
    pub fn replace(&mut self) {
        for batch in mem::take(&mut self.queue) {
            self.drop_items(batch.items, batch.bytes.len());
        }
    }

    /// Takes nothing any more, and posts what waits, until the deadline at the latest.
    pub fn finish(&mut self, deadline: u64) {
        self.deadline = Some(deadline);
        self.last_try = self.failures >= HOPELESS;
        if self.last_try {
            self.paused_until = 0;
        }
        self.flush();
    }

    /// The next thing to do.
    pub fn next(&mut self, now: u64) -> Step {
        if let Some(deadline) = self.deadline
            && (now >= deadline || self.paused_until >= deadline || self.counts.waiting == 0)
        {
            self.give_up();
            return Step::Finished;
        }
        if matches!(self.state, State::Posting(_)) {
            return Step::WaitUntil(self.deadline);
        }
        if now < self.paused_until {
            return Step::WaitUntil(Some(self.paused_until));
        }
        let outgoing = match mem::replace(&mut self.state, State::Idle) {
            State::Held(outgoing) => outgoing,
            State::Idle | State::Posting(_) => match self.queue.front().map(|batch| batch.due) {
                None => return Step::WaitUntil(self.deadline),
                Some(due) if due > now => return Step::WaitUntil(Some(due)),
                Some(_) => {
                    let Batch { items, bytes, .. } = self.queue.pop_front().unwrap_or_default();
                    Outgoing { items, bytes: Arc::new(bytes), since: now }
                }
            },
        };
        self.counts.posts += 1;
        let post = Post {
            signal: self.signal,
            format: self.settings.format,
            gzip: self.settings.gzip,
            resource: Arc::clone(&self.resource),
            pid: self.settings.pid,
            items: Arc::clone(&outgoing.bytes),
        };
        self.state = State::Posting(outgoing);
        Step::Post(post)
    }

    /// The collector has answered the post. `retry_after` is that of the response, read by [`retry_after`]; `body` is at least
    /// its beginning.
    pub fn answered(&mut self, status: u16, retry_after: Option<Duration>, body: &[u8], now: u64) {
        if matches!(status, 429 | 502 | 503 | 504) {
            let pause = retry_after.map_or(0, |pause| pause.as_nanos().min(LONGEST_PAUSE.into()) as u64);
            self.again(&format!("it answers {status}{}", answer::reason(body)), pause, now);
            return;
        }
        let State::Posting(outgoing) = mem::replace(&mut self.state, State::Idle) else { return };
        self.failures = 0;
        let items = outgoing.items as u64;
        self.forget(outgoing.items, outgoing.bytes.len());
        if !(200..300).contains(&status) {
            self.counts.refused += items;
            self.told.refused(self.signal, status, answer::reason(body), now);
            return;
        }
        let (rejected, message) = answer::partial(body).unwrap_or_default();
        let rejected = rejected.min(items);
        self.counts.refused += rejected;
        self.counts.sent += items - rejected;
        if rejected > 0 || !message.is_empty() {
            self.told.partial(self.signal, rejected, message, now);
        }
        self.told.taken(self.signal, self.counts.dropped);
    }

    /// The post has no answer, for this reason: `connection refused`.
    pub fn failed(&mut self, why: &str, now: u64) {
        self.again(why, 0, now);
    }

    fn again(&mut self, why: &str, least_pause: u64, now: u64) {
        let State::Posting(outgoing) = mem::replace(&mut self.state, State::Idle) else { return };
        self.counts.failed += 1;
        let usual = FIRST_PAUSE << self.failures.min(DOUBLINGS);
        let base = if self.deadline.is_some() { LAST_PAUSE } else { usual };
        // From half to one and a half of it, so that workers do not come at the same time.
        let pause = base / 2 + self.jitter.number() % base;
        self.failures = self.failures.saturating_add(1);
        self.paused_until = now.saturating_add(pause.max(least_pause));
        self.told.failing(self.signal, why, self.counts.dropped, now);
        if self.last_try {
            self.deadline = Some(now);
        }
        if now.saturating_sub(outgoing.since) >= self.settings.give_up {
            self.drop_items(outgoing.items, outgoing.bytes.len());
        } else {
            self.state = State::Held(outgoing);
        }
    }

    /// Drops everything.
    fn give_up(&mut self) {
        self.replace();
        if let State::Posting(outgoing) | State::Held(outgoing) = mem::replace(&mut self.state, State::Idle) {
            self.drop_items(outgoing.items, outgoing.bytes.len());
        }
    }

    fn drop_items(&mut self, items: usize, bytes: usize) {
        self.forget(items, bytes);
        self.counts.dropped += items as u64;
    }

    fn forget(&mut self, items: usize, bytes: usize) {
        self.counts.waiting -= items as u64;
        self.counts.bytes -= bytes as u64;
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A trouble, or its end, that the log should have.
    pub fn news(&mut self) -> Option<News> {
        self.told.next()
    }
}

/// The pause that a value of `Retry-After` asks for: seconds, or a date, for which the present time is needed.
#[must_use]
pub fn retry_after(value: &[u8], unix_seconds: u64) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    Some(Duration::from_secs(date::parse(value)?.saturating_sub(unix_seconds)))
}
