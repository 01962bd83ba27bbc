//! The figures that the history reads in one look: of a server of this process, or reported by a worker.

use maitred_history::{COUNTERS, Counts, Gauges};
use maitred_io::process;
use maitred_server::Server;
use maitred_server::figures::Totals;
use maitred_stats::pool::PoolFigures;
use serde::{Deserialize, Serialize};

/// The series that each count is made of, in the order of [`COUNTERS`]; the lines that a log has dropped are counted elsewhere.
const OF_COUNTERS: [&str; COUNTERS.len() - 1] = [
    "maitred_errors_total",
    "maitred_timeouts_total",
    "maitred_cut_total",
    "maitred_refused_total",
    "maitred_pool_refused_total",
    "maitred_rules_applied_total",
    "maitred_connections_accepted_total",
    "maitred_http2_connections_total",
    "maitred_websockets_accepted_total",
    "maitred_tls_handshakes_total",
];

/// The figures that a process reports itself, beside the counters in shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFigures {
    /// The gauges at this moment.
    pub gauges: Gauges,
    /// Processor time so far, in the program and in the kernel, in nanoseconds.
    pub cpu_ns: [u64; 2],
    /// Lines of the logs that could not be written so far.
    pub log_dropped: u64,
}

impl ProcessFigures {
    /// Looks at this process.
    pub fn at(server: &Server) -> Self {
        let pools = server.pools().figures();
        let sum = |of: fn(&PoolFigures) -> usize| pools.iter().map(of).sum::<usize>() as u64;
        let inside =
            server.threads().members().iter().filter(|member| member.inside().is_some()).count() as u64;
        let stuck = sum(|pool| pool.lost);
        let busy = inside.saturating_sub(stuck);
        let (errors, access) = server.log().dropped();
        let (memory, resident) = process::memory_bytes();
        Self {
            gauges: Gauges([
                Some(server.figures().snapshot().open),
                Some(server.figures().http2_open()),
                Some(server.figures().websockets_open()),
                Some(sum(|pool| pool.queued)),
                Some(sum(|pool| pool.threads).saturating_sub(busy + stuck)),
                Some(busy),
                Some(stuck),
                memory,
                resident,
            ]),
            cpu_ns: process::processor_ns(),
            log_dropped: errors + access.unwrap_or_default(),
        }
    }

    /// Adds the gauges of another process.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.gauges.0.iter_mut().zip(other.gauges.0) {
            if let Some(theirs) = theirs {
                *mine.get_or_insert_default() += theirs;
            }
        }
        self.add_counts(other, &Self::default());
    }

    /// Adds the counts of this process since the state `earlier`.
    pub fn add_counts(&mut self, now: &Self, earlier: &Self) {
        for (sum, (now, earlier)) in self.cpu_ns.iter_mut().zip(now.cpu_ns.iter().zip(earlier.cpu_ns)) {
            *sum += now.saturating_sub(earlier);
        }
        self.log_dropped += now.log_dropped.saturating_sub(earlier.log_dropped);
    }
}

/// Sums of the counters in shared memory, beside exchanges.
#[derive(Clone, Copy, Debug, Default)]
pub struct CounterSums([u64; OF_COUNTERS.len()]);

impl CounterSums {
    /// Adds a counter, by its series as a page has it. Labels do not matter.
    pub fn add(&mut self, series: &str, count: u64) {
        let name = series.split('{').next().unwrap_or_default();
        if let Some(at) = OF_COUNTERS.iter().position(|own| *own == name) {
            self.0[at] = self.0[at].saturating_add(count);
        }
    }
}

/// All counts of a sample.
pub fn counts_of(totals: Totals, counters: &CounterSums, looked: &ProcessFigures) -> Counts {
    let mut counts = Counts {
        requests: totals.classes,
        bytes_out: totals.all.bytes,
        cpu_ns: looked.cpu_ns,
        spans: totals.all.spans,
        total: totals.all.total,
        ..Counts::default()
    };
    counts.counters[..OF_COUNTERS.len()].copy_from_slice(&counters.0);
    counts.counters[OF_COUNTERS.len()] = looked.log_dropped;
    counts
}

#[cfg(test)]
mod tests {
    use maitred_history::GAUGES;

    use super::*;

    #[test]
    fn figures_survive_the_way_to_the_supervisor() {
        let mut gauges = Gauges::default();
        gauges.0[2] = Some(5);
        let looked = ProcessFigures { gauges, cpu_ns: [7, 1], log_dropped: 9 };
        let text = serde_json::to_string(&looked).expect("json");
        assert_eq!(serde_json::from_str::<ProcessFigures>(&text).expect("json"), looked);
        let mut sum = looked.clone();
        sum.merge(&looked);
        assert_eq!((sum.gauges.0[2], sum.gauges.0[0], sum.cpu_ns), (Some(10), None, [14, 2]));
        sum.add_counts(&looked, &ProcessFigures { cpu_ns: [4, 9], ..ProcessFigures::default() });
        assert_eq!((sum.cpu_ns, sum.log_dropped), ([17, 2], 27));
        assert_eq!(GAUGES[2], "websockets_open");
    }

    #[test]
    fn series_with_labels_are_added() {
        let mut counters = CounterSums::default();
        for (series, count) in [
            ("maitred_errors_total", 2),
            ("maitred_pool_refused_total{pool=\"a\"}", 3),
            ("maitred_pool_refused_total{pool=\"b\"}", 4),
            ("maitred_refused_total_other", 100),
        ] {
            counters.add(series, count);
        }
        let counts = counts_of(
            Totals::default(),
            &counters,
            &ProcessFigures { log_dropped: 1, ..ProcessFigures::default() },
        );
        assert_eq!(counts.counters, [2, 0, 0, 0, 7, 0, 0, 0, 0, 0, 1]);
    }
}
