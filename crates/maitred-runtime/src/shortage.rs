//! Threads that cannot be made: the time of the next attempt, and the log entries.
//!
//! No clock and no thread of its own: a [`ThreadHost`](crate::ThreadHost) brings the time, and waits.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The first and the longest pause between two tries. The longest bounds the load (one system call a second), and how long the
/// end of a shortage is not noticed.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time between two lines about a shortage.
const SAID_APART: Duration = Duration::from_secs(10);

/// A shortage, from the first thread that could not be made until one could.
#[derive(Debug, Default)]
pub struct Shortage {
    since: Option<Instant>,
    pause: Duration,
    said: Option<Instant>,
}

impl Shortage {
    /// A thread could not be made at `now`: how long to wait, and a line for the error log if it is time for one.
    pub fn fails(&mut self, now: Instant, error: &dyn Display) -> (Duration, Option<String>) {
        let since = *self.since.get_or_insert(now);
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        let is_due = self.said.is_none_or(|said| now.saturating_duration_since(said) >= SAID_APART);
        let line = is_due.then(|| {
            self.said = Some(now);
            let seconds = now.saturating_duration_since(since).as_secs();
            let lasts = if seconds == 0 { String::new() } else { format!(", for {seconds} s now") };
            format!("cannot make an application thread{lasts}: {error}; it is tried again")
        });
        (self.pause, line)
    }

    /// Notes that a thread could be made at `now`; a line for the log if a shortage was logged before.
    pub fn ends(&mut self, now: Instant) -> Option<String> {
        let since = self.since.take()?;
        self.pause = Duration::ZERO;
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let was_said = self.said.is_some_and(|said| said >= since);
        was_said.then(|| format!("application threads can be made again, after {seconds:.1} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_second_and_begin_anew() {
        let now = Instant::now();
        let mut shortage = Shortage::default();
        let pauses: Vec<u128> = (0..9).map(|_| shortage.fails(now, &"none").0.as_millis()).collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        shortage.ends(now);
        assert_eq!(shortage.fails(now, &"none").0.as_millis(), 10);
    }

    #[test]
    fn it_is_said_at_the_begin_then_every_ten_seconds_and_at_the_end() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut shortage = Shortage::default();
        assert_eq!(shortage.ends(begin), None, "there was none");
        let mut said: Vec<_> =
            (0..=21).filter_map(|seconds| shortage.fails(at(seconds), &"no memory").1).collect();
        said.extend(shortage.ends(at(22)));
        // A shortage that comes soon after is not logged, nor its end.
        said.extend(shortage.fails(at(23), &"no memory").1);
        said.extend(shortage.ends(at(24)));
        said.extend(shortage.fails(at(31), &"no memory").1);
        let expected = [
            "cannot make an application thread: no memory; it is tried again",
            "cannot make an application thread, for 10 s now: no memory; it is tried again",
            "cannot make an application thread, for 20 s now: no memory; it is tried again",
            "application threads can be made again, after 22.0 s",
            "cannot make an application thread: no memory; it is tried again",
        ];
        assert_eq!(said, expected);
    }
}
