//! What was measured, as lines of `name value`.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// From the due time to the last byte, right answers only.
    pub(crate) latencies: Vec<Duration>,
    /// The same of background requests.
    pub(crate) background: Vec<Duration>,
    /// From the due time to the sending: the generator's own share, and waits for an idle connection.
    pub(crate) lag: Vec<Duration>,
    /// Answers with another status or length.
    pub(crate) wrong: usize,
    /// Requests whose connection ended.
    pub(crate) broken: usize,
    /// Requests without an answer (or unsent) at the end.
    pub(crate) missing: usize,
    pub(crate) reconnects: usize,
    pub(crate) seconds: f64,
    /// Right answers of a closed loop in the measured time.
    pub(crate) answered: usize,
    scheduled: usize,
}

impl Outcome {
    pub(crate) fn with_capacity(requests: usize) -> Self {
        Self { latencies: Vec::with_capacity(requests), lag: Vec::with_capacity(requests), ..Self::default() }
    }

    pub(crate) fn finish(&mut self, scheduled: usize) {
        self.scheduled = scheduled;
        self.missing = scheduled.saturating_sub(self.right() + self.wrong + self.broken);
        self.latencies.sort_unstable();
        self.background.sort_unstable();
        self.lag.sort_unstable();
    }

    fn right(&self) -> usize {
        self.latencies.len() + self.background.len()
    }

    /// Tenths of a microsecond, little-endian 32 bits each, sorted.
    pub(crate) fn latency_bytes(&self) -> Vec<u8> {
        let tenths = |latency: &Duration| u32::try_from(latency.as_nanos() / 100).unwrap_or(u32::MAX);
        self.latencies.iter().flat_map(|latency| tenths(latency).to_le_bytes()).collect()
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let success = self.right() as f64 / self.scheduled.max(1) as f64;
        let mut line = |name: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {value}");
        };
        line("scheduled", self.scheduled.to_string());
        line("answered", self.answered.to_string());
        line("ok", self.right().to_string());
        line("wrong", self.wrong.to_string());
        line("broken", self.broken.to_string());
        line("missing", self.missing.to_string());
        line("reconnects", self.reconnects.to_string());
        line("success_percent", format!("{:.4}", 100.0 * success));
        line("seconds", format!("{:.3}", self.seconds));
        let mean = self.latencies.iter().map(Duration::as_secs_f64).sum::<f64>()
            / self.latencies.len().max(1) as f64;
        line("mean_us", format!("{:.1}", mean * 1e6));
        for (name, share) in
            [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)]
        {
            line(&format!("{name}_us"), micros(percentile(&self.latencies, share)));
        }
        line("background", self.background.len().to_string());
        line("background_p50_us", micros(percentile(&self.background, 0.5)));
        line("lag_p50_us", micros(percentile(&self.lag, 0.5)));
        line("lag_p99_us", micros(percentile(&self.lag, 0.99)));
        text
    }
}

/// The smallest value that at least `share` of all values do not exceed; zero of none.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

pub(crate) fn micros(duration: Duration) -> String {
    format!("{:.1}", duration.as_secs_f64() * 1e6)
}

/// A line on standard output at once.
pub(crate) fn say(word: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    writeln!(output, "{word}")?;
    output.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values() {
        let values: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!(percentile(&values, 0.5), Duration::from_micros(50));
        assert_eq!(percentile(&values, 0.999), Duration::from_micros(100));
        assert_eq!(percentile(&values, 1.0), Duration::from_micros(100));
        assert_eq!(percentile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn what_did_not_come_is_missing() {
        let mut outcome =
            Outcome { latencies: vec![Duration::ZERO; 90], wrong: 3, broken: 2, ..Outcome::default() };
        outcome.finish(100);
        assert_eq!(outcome.missing, 5);
        assert!(outcome.text().contains("success_percent 90.0000\n"));
    }
}
