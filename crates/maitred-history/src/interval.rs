//! What happens in one interval, put together of samples, and the row that it becomes.

use maitred_stats::{Distribution, Span};

use crate::series::{
    self, BYTES_OUT, CELLS, CLASSES, COUNTERS, COVERED, CPU, GAUGES, OF_COUNTERS, OF_GAUGES, OF_REQUESTS,
    OF_SPANS, OF_TOTALS, QUEUE, QUEUE_MAX, THREADS_GATE,
};
use crate::{Counts, Gauges};

/// An interval that is not over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interval {
    counts: Counts,
    covered: f64,
    gauges: [f64; GAUGES.len()],
    /// How often each gauge was known.
    known: [u32; GAUGES.len()],
    queue_max: Option<u64>,
}

impl Interval {
    /// Adds what was counted since the sample before, which was `covered` seconds ago, and what is there now.
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
        cells[BYTES_OUT] = counts.bytes_out as u32;
        cells[BYTES_OUT + 1] = (counts.bytes_out >> 32) as u32;
        let mut put = |at: usize, value: Option<f64>| {
            cells[at] = value.map_or(f32::NAN, |value| value as f32).to_bits();
        };
        put(COVERED, Some(self.covered));
        put(CPU, Some(counts.cpu_ns as f64 / 1e9));
        let total = &counts.total;
        put(OF_TOTALS.start, mean(total));
        for (at, percent) in (OF_TOTALS.start + 1..).zip([50.0, 90.0, 99.0]) {
            put(at, percentile(total, percent));
        }
        for (at, span) in counts.spans.iter().enumerate() {
            put(OF_SPANS.start + 2 * at, mean(span));
            put(OF_SPANS.start + 2 * at + 1, percentile(span, 99.0));
        }
        // As many waited at a time, on average, as their waits are longer than the interval.
        let waited = counts.spans[Span::Gate as usize].sum() as f64 / 1e9;
        put(THREADS_GATE, (self.covered > 0.0).then(|| waited / self.covered));
        for at in 0..GAUGES.len() {
            let known = self.known[at];
            put(OF_GAUGES.start + at, (known > 0).then(|| self.gauges[at] / f64::from(known)));
        }
        put(QUEUE_MAX, self.queue_max.map(|most| most as f64));
        debug_assert_eq!(series::CELLS, cells.len());
        cells
    }
}

fn mean(of: &Distribution) -> Option<f64> {
    (of.count() > 0).then(|| of.mean() / 1e9)
}

fn percentile(of: &Distribution, percent: f64) -> Option<f64> {
    (of.count() > 0).then(|| of.percentile(percent) as f64 / 1e9)
}
