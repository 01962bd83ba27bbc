//! The figures of a server over time: the last hour by seconds, the last day by 10 seconds, the last 30 days by 10 minutes.
//!
//! ```text
//! figure.rs    the figures, by name      interval.rs   one interval, put together of samples
//! ring.rs      the newest rows of one step  latency.rs    buckets of times, which can be added
//! saved.rs     as bytes, for a file         lib.rs        samples in, tables out
//! by_route.rs  requests and times of each route by minute; starts and reloads of the server
//! ```
//! Promises: each count is in one row of each step, once; percentiles are those of all requests of the interval, not of
//! other percentiles. An interval without a look has no row, which is not a row of zeros. Memory is asked for with the
//! first sample, and never more than [`MAX_BYTES`]; rows that were never written take none. No clock: each sample has
//! its time.
//!
//! Leaves out: where figures come from, when they are looked at, and the file.

mod by_route;
mod figure;
mod interval;
pub mod latency;
mod ring;
mod saved;

use std::ops::Range;
use std::time::Duration;

use maitred_stats::{Distribution, Span};

pub use by_route::{ByRoute, Done, MINUTES, MOST, Mark};
use figure::OF_LATENCY;
pub use figure::{CLASSES, COUNTERS, Figure, GAUGES};
use interval::Interval;
use latency::BUCKETS;
use ring::{ROW_BYTES, Ring};
pub use saved::Damage;

/// Seconds of an interval, and how many intervals are kept: an hour, a day, 30 days.
pub const STEPS: [(u64, usize); 3] = [(1, 3600), (10, 8640), (600, 4320)];

/// Bytes that a [`History`] takes at most, without [`ByRoute`]: its rows, and four open intervals, each with eight
/// distributions of 54 powers of two.
pub const MAX_BYTES: usize =
    (STEPS[0].1 + STEPS[1].1 + STEPS[2].1) * ROW_BYTES + 4 * 8 * 54 * (DISTRIBUTION_ROW + 16);

/// Bytes of a distribution for each power of two.
const DISTRIBUTION_ROW: usize = 264;

const _: () = assert!(MAX_BYTES < 7_200_000);

/// A clock that goes back by less counts on in the newest interval.
const SMALL_STEP: u64 = 60;

/// Counts of one process or several, since the start or in an interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Requests by class of status.
    pub requests: [u64; CLASSES],
    /// The counts by [`COUNTERS`].
    pub counters: [u64; COUNTERS.len()],
    /// Body bytes of responses.
    pub bytes_out: u64,
    /// Processor time in the program and in the kernel, in nanoseconds.
    pub cpu_ns: [u64; 2],
    /// The spans of requests, in nanoseconds, in the order of [`Span::ALL`].
    pub spans: [Distribution; Span::ALL.len()],
    /// Their whole times.
    pub total: Distribution,
}

/// The present gauges, by [`GAUGES`]; none where one is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Gauges(pub [Option<u64>; GAUGES.len()]);

impl Counts {
    /// Adds those of another process, or of another time.
    pub fn merge(&mut self, other: &Self) {
        add(&mut self.requests, &other.requests);
        add(&mut self.counters, &other.counters);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        add(&mut self.cpu_ns, &other.cpu_ns);
        for (mine, theirs) in self.spans.iter_mut().zip(&other.spans) {
            mine.merge(theirs);
        }
        self.total.merge(&other.total);
    }

    /// The counts since `highest`, which becomes the largest that each count was. A count that has gone back counts on
    /// when it has reached that again.
    fn rise(&self, highest: &mut Self) -> Self {
        let mut rise = Self::default();
        for (at, count) in rise.requests.iter_mut().enumerate() {
            *count = risen(self.requests[at], &mut highest.requests[at]);
        }
        for (at, count) in rise.counters.iter_mut().enumerate() {
            *count = risen(self.counters[at], &mut highest.counters[at]);
        }
        rise.bytes_out = risen(self.bytes_out, &mut highest.bytes_out);
        rise.cpu_ns = std::array::from_fn(|at| risen(self.cpu_ns[at], &mut highest.cpu_ns[at]));
        let spans = rise.spans.iter_mut().zip(self.spans.iter().zip(&mut highest.spans));
        let total = (&mut rise.total, (&self.total, &mut highest.total));
        for (rise, (now, highest)) in spans.chain([total]) {
            if now.count() > highest.count() {
                *rise = now.since(highest);
                highest.clone_from(now);
            }
        }
        rise
    }
}

fn add(mine: &mut [u64], theirs: &[u64]) {
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        *mine = mine.saturating_add(*theirs);
    }
}

fn risen(now: u64, highest: &mut u64) -> u64 {
    let rise = now.saturating_sub(*highest);
    *highest = now.max(*highest);
    rise
}

/// A look at the server.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// When it was, since 1970.
    pub at: Duration,
    /// How long before that the last one was, or the start.
    pub covered: Duration,
    /// The counts since the start.
    pub counts: &'a Counts,
    /// The present gauges.
    pub gauges: &'a Gauges,
}

/// A part of the history, by figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Seconds of an interval.
    pub step: u64,
    /// When each interval begins, in seconds since 1970.
    pub times: Vec<u64>,
    /// The values of each figure that was asked for; none for an interval without a look, or an unknown value.
    pub values: Vec<Vec<Option<f64>>>,
}

/// How many requests took how long, in one interval: as many as there are [buckets](latency).
pub type Latency = [u32; BUCKETS];

/// See the module text.
pub struct History {
    highest: Counts,
    levels: [Level; STEPS.len()],
    /// The routes of each minute.
    pub routes: ByRoute,
}

struct Level {
    step: u64,
    ring: Ring,
    /// The interval of the last sample.
    open: Option<(u64, Interval)>,
    /// Whether its row is that of all samples.
    is_written: bool,
}

impl Default for History {
    fn default() -> Self {
        let level = |(step, room)| Level { step, ring: Ring::new(room), open: None, is_written: true };
        Self { highest: Counts::default(), levels: STEPS.map(level), routes: ByRoute::default() }
    }
}

impl History {
    /// Adds a sample: it counts for the interval in which the middle of its time was.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let rise = sample.counts.rise(&mut self.highest);
        let middle = self.in_order(sample.at.saturating_sub(sample.covered / 2).as_secs());
        for level in &mut self.levels {
            level.add(middle / level.step, &rise, sample.covered.as_secs_f64(), sample.gauges);
        }
        // The newest rows are complete at once.
        self.levels[0].write();
    }

    /// Notes counts of a time without looks, so that they are in no interval.
    pub fn skip(&mut self, counts: &Counts) {
        // Only counts above the highest are new then.
        let _ = counts.rise(&mut self.highest);
    }

    /// The second to count in. After a clock was set back, rows of its former future are removed.
    fn in_order(&mut self, second: u64) -> u64 {
        let newest = self.levels[0].ring.newest().unwrap_or_default();
        if second >= newest {
            return second;
        }
        if newest - second <= SMALL_STEP {
            return newest;
        }
        for level in &mut self.levels {
            level.ring.forget_after(second / level.step);
            if level.open.as_ref().is_some_and(|(interval, _)| *interval > second / level.step) {
                level.open = None;
            }
        }
        second
    }

    /// The finest step that still has a row for `from`, in seconds since 1970.
    pub fn step_from(&self, from: u64) -> u64 {
        let newest = self.newest().unwrap_or(from);
        let has = |(step, room): &&(u64, usize)| newest.saturating_sub(from) <= step * *room as u64;
        STEPS.iter().find(has).map_or(STEPS[STEPS.len() - 1].0, |(step, _)| *step)
    }

    /// The second of the newest row.
    pub fn newest(&self) -> Option<u64> {
        self.levels[0].ring.newest()
    }

    /// The intervals of this step that have a part from `from` to `to`, in seconds since 1970, as far as they are kept. None for a step that is none of
    /// [`STEPS`].
    pub fn table(&mut self, from: u64, to: u64, step: u64, figures: &[Figure]) -> Option<Table> {
        let (level, intervals) = self.within(from, to, step)?;
        let times = intervals.clone().map(|interval| interval * step).collect();
        let of = |figure: &Figure| {
            let value = |interval| level.ring.row(interval).and_then(|cells| figure.value(cells));
            intervals.clone().map(value).collect()
        };
        Some(Table { step, times, values: figures.iter().map(of).collect() })
    }

    /// The requests by their times in each of the same intervals; none for an interval without a look.
    pub fn latency(&mut self, from: u64, to: u64, step: u64) -> Option<Vec<Option<Latency>>> {
        let (level, intervals) = self.within(from, to, step)?;
        let of = |interval| level.ring.row(interval)?[OF_LATENCY].try_into().ok();
        Some(intervals.map(of).collect())
    }

    fn within(&mut self, from: u64, to: u64, step: u64) -> Option<(&Level, Range<u64>)> {
        let level = self.levels.iter_mut().find(|level| level.step == step)?;
        level.write();
        Some((level, level.ring.within(from / step..to / step + 1)))
    }
}

impl Level {
    fn add(&mut self, interval: u64, counts: &Counts, covered: f64, gauges: &Gauges) {
        if self.open.as_ref().is_none_or(|(open, _)| *open != interval) {
            self.write();
            self.open = Some((interval, Interval::after(self.ring.row(interval))));
        }
        if let Some((_, open)) = &mut self.open {
            open.add(counts, covered, gauges);
            self.is_written = false;
        }
    }

    /// Brings the rows up to date. A row costs some microseconds, so it is made when the interval is over, or for a
    /// query.
    fn write(&mut self) {
        if let Some((interval, open)) = self.open.as_ref().filter(|_| !self.is_written) {
            self.ring.write(*interval, &open.cells());
            self.is_written = true;
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
