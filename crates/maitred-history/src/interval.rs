//! One interval, put together of samples, and the row that it becomes.

use maitred_stats::{Distribution, Span};

use crate::figure::{
    self, BYTES_OUT, CELLS, CLASSES, COUNTERS, COVERED, GAUGES, OF_COUNTERS, OF_CPU, OF_GAUGES, OF_LATENCY,
    OF_REQUESTS, OF_SPANS, OF_TOTALS, QUEUE, QUEUE_MAX, THREADS_GATE, known, put,
};
use crate::{Counts, Gauges, latency};

const PERCENTS: [f64; 3] = [50.0, 90.0, 99.0];

/// The place of the largest time, behind the sum and the percentiles.
const MAX: usize = OF_TOTALS.end - 1;

/// An interval that is not over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    counts: Counts,
    covered: f64,
    gauges: [f64; GAUGES.len()],
    /// How often each gauge was known.
    known: [u32; GAUGES.len()],
    queue_max: Option<u64>,
    /// The row of an earlier process for the same interval.
    before: Option<Box<[u32; CELLS]>>,
}

impl Interval {
    pub(crate) fn after(row: Option<&[u32; CELLS]>) -> Self {
        Self { before: row.map(|row| Box::new(*row)), ..Self::default() }
    }

    /// Adds the counts since the sample before, which was `covered` seconds ago, and the present gauges.
    pub(crate) fn add(&mut self, counts: &Counts, covered: f64, gauges: &Gauges) {
        self.counts.merge(counts);
        self.covered += covered;
        for (at, value) in gauges.0.iter().enumerate() {
            if let Some(value) = value {
                self.gauges[at] += *value as f64;
                self.known[at] += 1;
            }
        }
        self.queue_max = self.queue_max.max(gauges.0[QUEUE]);
    }

    pub(crate) fn cells(&self) -> [u32; CELLS] {
        let cells = self.own_cells();
        self.before.as_deref().map_or(cells, |before| merged(before, &cells))
    }

    fn own_cells(&self) -> [u32; CELLS] {
        let counts = &self.counts;
        let mut cells = [0; CELLS];
        let count = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let requests = counts.requests.iter().fold(0, |sum: u64, class| sum.saturating_add(*class));
        cells[OF_REQUESTS.start] = count(requests);
        for class in 0..CLASSES {
            cells[OF_REQUESTS.start + 1 + class] = count(counts.requests[class]);
        }
        for at in 0..COUNTERS.len() {
            cells[OF_COUNTERS.start + at] = count(counts.counters[at]);
        }
        figure::put_bytes_out(&mut cells, counts.bytes_out);
        cells[OF_LATENCY].copy_from_slice(&latency::counted(&counts.total));
        let mut put = |at: usize, value: Option<f64>| put(&mut cells, at, value);
        put(COVERED, Some(self.covered));
        for (at, nanos) in OF_CPU.zip(counts.cpu_ns) {
            put(at, Some(seconds(nanos)));
        }
        let total = &counts.total;
        put(OF_TOTALS.start, Some(seconds(total.sum())));
        for (at, percent) in (OF_TOTALS.start + 1..).zip(PERCENTS) {
            put(at, percentile(total, percent));
        }
        put(MAX, percentile(total, 100.0));
        for (at, span) in counts.spans.iter().enumerate() {
            put(OF_SPANS.start + 2 * at, Some(seconds(span.sum())));
            put(OF_SPANS.start + 2 * at + 1, percentile(span, 99.0));
        }
        // As many waited at a time, on average, as their waits are longer than the interval.
        let waited = seconds(counts.spans[Span::Gate as usize].sum());
        put(THREADS_GATE, (self.covered > 0.0).then(|| waited / self.covered));
        for at in 0..GAUGES.len() {
            let known = self.known[at];
            put(OF_GAUGES.start + at, (known > 0).then(|| self.gauges[at] / f64::from(known)));
        }
        put(QUEUE_MAX, self.queue_max.map(|most| most as f64));
        cells
    }
}

/// The row of both together. Sums and counts are exact; percentiles are in the [bucket](latency) of the real ones, those of a span are the larger
/// of both.
pub(crate) fn merged(one: &[u32; CELLS], other: &[u32; CELLS]) -> [u32; CELLS] {
    let mut both = *one;
    for at in (OF_REQUESTS.start..BYTES_OUT).chain(OF_LATENCY) {
        both[at] = one[at].saturating_add(other[at]);
    }
    figure::put_bytes_out(&mut both, figure::bytes_out(one).saturating_add(figure::bytes_out(other)));
    let value = |cells: &[u32; CELLS], at: usize| known(cells, at).map(f64::from);
    let with = |at: usize, join: &dyn Fn(f64, f64) -> f64| match (value(one, at), value(other, at)) {
        (Some(one), Some(other)) => Some(join(one, other)),
        (one, other) => one.or(other),
    };
    let weights = (value(one, COVERED).unwrap_or_default(), value(other, COVERED).unwrap_or_default());
    let mean = |one: f64, other: f64| {
        let all = (weights.0 + weights.1).max(f64::MIN_POSITIVE);
        one * (weights.0 / all) + other * (weights.1 / all)
    };
    let sums = [COVERED, OF_TOTALS.start].into_iter().chain(OF_CPU).chain(OF_SPANS.step_by(2));
    sums.for_each(|at| put(&mut both, at, with(at, &|one, other| one + other)));
    let largest = [MAX, QUEUE_MAX].into_iter().chain(OF_SPANS.skip(1).step_by(2));
    largest.for_each(|at| put(&mut both, at, with(at, &f64::max)));
    OF_GAUGES.chain([THREADS_GATE]).for_each(|at| put(&mut both, at, with(at, &mean)));
    let most = value(&both, MAX).unwrap_or_default();
    for (at, percent) in (OF_TOTALS.start + 1..).zip(PERCENTS) {
        // Of one of them alone it is exact.
        let is_alone = value(one, at).is_none() || value(other, at).is_none();
        let alone = with(at, &f64::max);
        let all = if is_alone { alone } else { latency::percentile(&both[OF_LATENCY], percent, most) };
        put(&mut both, at, all);
    }
    both
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn percentile(of: &Distribution, percent: f64) -> Option<f64> {
    (of.count() > 0).then(|| seconds(of.percentile(percent)))
}
