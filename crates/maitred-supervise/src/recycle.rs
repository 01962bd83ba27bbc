//! When a worker has had enough: requests, age, memory, or no progress.

use std::time::{Duration, Instant};

use crate::backoff::Random;

/// The limits after which a worker is replaced; zero for never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests; each worker has up to a tenth less, so that not all are replaced together.
    pub requests: u64,
    /// The age of a worker, with the same spread.
    pub lifetime: Duration,
    /// Bytes of memory that are its own, as three beats in a row say it.
    pub memory: u64,
    /// Time without progress: requests wait, and none has ended; or without a word of it, then 5 s at least.
    pub stuck: Duration,
}

impl Limits {
    /// How long a worker says nothing until it counts as stuck.
    fn silence(&self) -> Duration {
        self.stuck.max(LEAST_SILENCE)
    }
}

/// A worker's regular report about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Beat {
    /// Requests that have ended since its start.
    pub requests: u64,
    /// Bytes of memory that are its own; zero where nothing tells.
    pub memory: u64,
    /// Requests that wait for a thread.
    pub waiting: u64,
}

/// Beats in a row beyond the limit of memory: one could be a single large response.
const MEMORY_BEATS: u32 = 3;

/// A worker says something each second; one that lacks a processor, or is being traced, later.
const LEAST_SILENCE: Duration = Duration::from_secs(5);

/// A report may be late: so much longer is it waited for.
const HEARING: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct Wear {
    limits: Limits,
    began: Instant,
    heavy: u32,
    spent: bool,
    /// Requests that had ended when that changed last or nothing waited, and when that was.
    progress: (u64, Instant),
    /// When it will have been silent for too long, and whether it has been already.
    silent: (Instant, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Requests(u64),
    Lifetime,
    Memory(u64),
    Stuck(Duration),
    Silent(Duration),
}

impl Wear {
    pub(crate) fn new(limits: Limits, random: &mut Random, now: Instant) -> Self {
        let mut less = |whole: u64| whole - if whole >= 10 { random.next() % (whole / 10) } else { 0 };
        let limits = Limits {
            requests: less(limits.requests),
            lifetime: Duration::from_millis(less(
                u64::try_from(limits.lifetime.as_millis()).unwrap_or(u64::MAX),
            )),
            ..limits
        };
        let silent = (now + limits.silence(), false);
        Self { limits, began: now, heavy: 0, spent: false, progress: (0, now), silent }
    }

    /// Whether the worker is spent, by this report.
    pub(crate) fn beat(&mut self, beat: Beat, now: Instant) -> Option<Reason> {
        let Limits { requests, memory, stuck, .. } = self.limits;
        self.heard(now);
        self.heavy = if memory > 0 && beat.memory > memory { self.heavy + 1 } else { 0 };
        if beat.requests != self.progress.0 || beat.waiting == 0 {
            self.progress = (beat.requests, now);
        }
        let still = now.saturating_duration_since(self.progress.1);
        let reason = if requests > 0 && beat.requests >= requests {
            Some(Reason::Requests(beat.requests))
        } else if self.heavy >= MEMORY_BEATS {
            Some(Reason::Memory(beat.memory))
        } else if !stuck.is_zero() && still >= stuck {
            Some(Reason::Stuck(still))
        } else {
            None
        };
        self.spent |= reason.is_some();
        reason
    }

    pub(crate) fn heard(&mut self, now: Instant) {
        self.silent = (now + self.limits.silence(), false);
    }

    /// When it is to be asked whether it is silent; none where that does not matter.
    pub(crate) fn silent_at(&self) -> Option<Instant> {
        (!self.spent && !self.limits.stuck.is_zero()).then_some(self.silent.0)
    }

    /// Whether the worker is spent, because it has been silent. A report may not have been read yet, so the caller asks
    /// twice.
    pub(crate) fn silence(&mut self, now: Instant) -> Option<Reason> {
        if self.silent_at().is_none_or(|at| at > now) {
            return None;
        }
        if !self.silent.1 {
            self.silent = (now + HEARING, true);
            return None;
        }
        self.spent = true;
        Some(Reason::Silent(self.limits.silence() + HEARING))
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    pub(crate) fn spend(&mut self) {
        self.spent = true;
    }

    /// When its age is enough; none for one that has had enough already.
    pub(crate) fn ends_at(&self) -> Option<Instant> {
        (!self.spent && !self.limits.lifetime.is_zero()).then(|| self.began + self.limits.lifetime)
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Requests(count) => write!(f, "has had {count} requests (worker-requests)"),
            Self::Lifetime => f.write_str("is old enough (worker-lifetime)"),
            Self::Memory(bytes) => {
                write!(f, "has {} MiB of memory of its own (worker-memory)", bytes / (1024 * 1024))
            }
            Self::Silent(time) => write!(f, "has said nothing for {} s (worker-timeout)", time.as_secs()),
            Self::Stuck(time) => {
                write!(f, "has ended no request for {} s while some wait (worker-timeout)", time.as_secs())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wear(limits: Limits, now: Instant) -> Wear {
        Wear::new(limits, &mut Random::new(9), now)
    }

    #[test]
    fn requests_and_age_are_spread_by_a_tenth_at_most() {
        let (now, mut random) = (Instant::now(), Random::new(3));
        let limits = Limits { requests: 1000, lifetime: Duration::from_secs(100), ..Limits::default() };
        let worn: Vec<Wear> = (0..20).map(|_| Wear::new(limits, &mut random, now)).collect();
        assert!(worn.iter().all(|wear| (901..=1000).contains(&wear.limits.requests)));
        assert!(worn.iter().all(|wear| wear.ends_at().is_some_and(|at| at > now + Duration::from_secs(89))));
        assert!(worn.iter().any(|wear| wear.limits.requests != worn[0].limits.requests));
    }

    #[test]
    fn one_heavy_beat_is_not_enough() {
        let now = Instant::now();
        let mut wear = wear(Limits { memory: 100, ..Limits::default() }, now);
        let beat = |memory| Beat { memory, ..Beat::default() };
        let said: Vec<bool> =
            [101, 101, 100, 200, 200, 200].map(|memory| wear.beat(beat(memory), now).is_some()).to_vec();
        assert_eq!(said, [false, false, false, false, false, true]);
    }

    #[test]
    fn no_progress_counts_only_while_requests_wait() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut wear = wear(Limits { stuck: Duration::from_secs(5), ..Limits::default() }, now);
        let beat = |requests, waiting| Beat { requests, waiting, memory: 0 };
        assert_eq!(wear.beat(beat(1, 3), at(1)), None);
        assert_eq!(wear.beat(beat(1, 0), at(9)), None, "nothing waits");
        assert_eq!(wear.beat(beat(1, 1), at(13)), None);
        assert_eq!(wear.beat(beat(2, 1), at(14)), None, "one has ended");
        assert_eq!(wear.beat(beat(2, 1), at(19)), Some(Reason::Stuck(Duration::from_secs(5))));
    }

    #[test]
    fn silence_counts_from_the_last_report_and_reports_may_be_late() {
        let now = Instant::now();
        let at = |seconds| now + Duration::from_secs(seconds);
        let mut wear = wear(Limits { stuck: Duration::from_secs(1), ..Limits::default() }, now);
        assert_eq!((wear.silent_at(), wear.silence(at(4))), (Some(at(5)), None));
        assert_eq!((wear.silence(at(5)), wear.silent_at()), (None, Some(at(7))), "it is asked once more");
        assert_eq!(wear.beat(Beat::default(), at(6)), None);
        assert_eq!((wear.silence(at(7)), wear.silent_at()), (None, Some(at(11))), "it was heard late");
        assert_eq!(wear.silence(at(11)), None);
        assert_eq!(wear.silence(at(13)), Some(Reason::Silent(Duration::from_secs(7))));
        assert_eq!(
            (wear.silence(at(99)), wear.silent_at(), wear.is_spent()),
            (None, None, true),
            "it is said once"
        );
    }

    #[test]
    fn without_limits_nothing_is_enough() {
        let now = Instant::now();
        let mut wear = wear(Limits::default(), now);
        let much = Beat { requests: u64::MAX, memory: u64::MAX, waiting: 9 };
        assert_eq!((wear.beat(much, now + Duration::from_secs(1 << 20)), wear.ends_at()), (None, None));
        assert_eq!((wear.silence(now + Duration::from_secs(1 << 30)), wear.silent_at()), (None, None));
    }
}
