//! The figures of compression as text for Prometheus and its kin.

use maitred_http::coding::Coding;
use maitred_stats::exposition::{Metric, Sink, Value, series};
use maitred_stats::{Arena, Counter};

use crate::{Compression, Figures, Ordering};

/// A figure of a coding: name, sentence, value.
type Figure = (&'static str, &'static str, fn(&Figures) -> u64);

/// The codings in the order of their figures.
const CODINGS: [Coding; 3] = [Coding::Gzip, Coding::Zstd, Coding::Brotli];

const OF_CODINGS: [Figure; 3] = [
    ("maitred_compressed_responses_total", "Responses of the application that were compressed.", |of| {
        of.responses.total()
    }),
    ("maitred_compressed_input_bytes_total", "Bytes of their bodies before.", |of| of.taken.total()),
    ("maitred_compressed_output_bytes_total", "Bytes of their bodies behind.", |of| of.made.total()),
];

impl Compression {
    /// Counts in memory in which others find it, from now on.
    pub fn count_in(&mut self, arena: &Arena) {
        self.figures = CODINGS.map(|coding| {
            let counter =
                |(name, ..): &Figure| Counter::in_arena(arena, &series(name, &[("coding", coding.name())]));
            let [responses, taken, made] = OF_CODINGS.each_ref().map(counter);
            Figures { responses, taken, made }
        });
    }

    /// Appends the figures.
    pub fn write_metrics(&self, out: &mut dyn Sink) {
        let names = CODINGS.map(|coding| [("coding", coding.name())]);
        let mut metrics = Vec::new();
        for (name, help, value) in OF_CODINGS {
            for (figures, labels) in self.figures.iter().zip(&names) {
                metrics.push(Metric { name, help, labels, value: Value::Counter(value(figures)) });
            }
        }
        metrics.push(Metric {
            name: "maitred_compressing_bytes",
            help: "Memory of the compressors of unfinished responses.",
            labels: &[],
            value: Value::gauge(self.used.load(Ordering::Relaxed)),
        });
        out.take(&metrics);
    }
}
