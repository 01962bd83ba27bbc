//! What a benched request does, chosen by its path: the same for every native server that is compared, and with the
//! same paths as `bench/apps/work_wsgi.py`.
//!
//! | path | work |
//! |---|---|
//! | `/` | none |
//! | `/cpu/N` | N µs of CPU |
//! | `/sleep/N` | sleeps N ms |
//! | `/report`, `/report?burn` | sleeps [`REPORT`]; takes as much CPU |
//! | `/large/N` | answers N MiB instead of [`HELLO`], at most [`MOST_LARGE`] |
//! | `/clock` | answers [`monotonic_ns`] at the entry instead of [`HELLO`] |
//!
//! CPU is a counted number of turns, not a span of the clock: a thread that loses its core in the middle has not done
//! its work meanwhile.

use std::hint::black_box;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The body of every answer but that of `/clock`.
pub const HELLO: &str = "Hello, world!";
/// Of the answers of `/large/N`, in bytes.
pub const MOST_LARGE: usize = 64 << 20;
/// What a report takes.
pub const REPORT: Duration = Duration::from_millis(100);
/// The variable with the turns in a millisecond, as [`count`] found them; the same for all servers of a run.
pub const VARIABLE: &str = "BENCH_TURNS";

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Nothing,
    /// So much CPU.
    Compute(Duration),
    /// So long away from the core.
    Sleep(Duration),
    /// None, but so many bytes to answer.
    Large(usize),
    /// The time of the entry.
    Clock,
}

impl Work {
    /// The work of a request target; `None` if there is no such path.
    pub fn of(target: &[u8]) -> Option<Self> {
        match target {
            b"/" => Some(Self::Nothing),
            b"/report" => Some(Self::Sleep(REPORT)),
            b"/report?burn" => Some(Self::Compute(REPORT)),
            b"/clock" => Some(Self::Clock),
            _ => {
                let (kind, number) = std::str::from_utf8(target).ok()?.strip_prefix('/')?.split_once('/')?;
                let number: u64 = number.parse().ok()?;
                match kind {
                    "cpu" => Some(Self::Compute(Duration::from_micros(number))),
                    "sleep" => Some(Self::Sleep(Duration::from_millis(number))),
                    "large" => {
                        let bytes = usize::try_from(number).ok()?.checked_mul(1 << 20)?;
                        (bytes <= MOST_LARGE).then_some(Self::Large(bytes))
                    }
                    _ => None,
                }
            }
        }
    }
}

/// Does the work.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    turns_per_ms: u64,
}

impl Workload {
    /// With the turns that [`VARIABLE`] names; without it they are counted now.
    pub fn from_environment() -> Self {
        let told = std::env::var(VARIABLE).ok().and_then(|text| text.parse().ok());
        Self { turns_per_ms: told.unwrap_or_else(count) }
    }

    /// Does it, and comes back when it is done. There is nothing to do where only the answer is another.
    pub fn perform(&self, work: Work) {
        match work {
            Work::Nothing | Work::Large(_) | Work::Clock => {}
            Work::Sleep(length) => std::thread::sleep(length),
            Work::Compute(length) => {
                let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
                spin(self.turns_per_ms.saturating_mul(micros) / 1000);
            }
        }
    }
}

/// Turns that take a millisecond of CPU: from the fastest of many tries.
pub fn count() -> u64 {
    /// Some microseconds: short enough for most tries to be undisturbed.
    const TURNS: u64 = 20_000;
    const TRIES: usize = 500;
    let shortest = (0..TRIES)
        .map(|_| {
            let start = Instant::now();
            spin(TURNS);
            start.elapsed()
        })
        .min()
        .unwrap_or_default();
    let nanos = u64::try_from(shortest.as_nanos()).unwrap_or(u64::MAX).max(1);
    (TURNS * 1_000_000 / nanos).max(1)
}

/// A chain of multiplications that stays in registers: how long a turn takes depends neither on where the code lies nor on
/// the stack, which differ between the programs that are compared.
#[inline(never)]
fn spin(turns: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..turns {
        value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 7;
    }
    black_box(value);
}

/// `CLOCK_MONOTONIC` in nanoseconds: what Python's `time.monotonic_ns()` reads, so that a client can compare.
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The body of an answer to `/clock`: always as long, so that no length has to be read.
pub fn clock_text(nanos: u64) -> String {
    format!("{nanos:020}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_its_work() {
        for (target, work) in [
            ("/", Some(Work::Nothing)),
            ("/cpu/20", Some(Work::Compute(Duration::from_micros(20)))),
            ("/sleep/50", Some(Work::Sleep(Duration::from_millis(50)))),
            ("/report", Some(Work::Sleep(REPORT))),
            ("/report?burn", Some(Work::Compute(REPORT))),
            ("/large/8", Some(Work::Large(8 << 20))),
            ("/large/65", None),
            ("/clock", Some(Work::Clock)),
            ("/cpu/", None),
            ("/cpu/-1", None),
            ("/other/1", None),
            ("", None),
            ("*", None),
        ] {
            assert_eq!(Work::of(target.as_bytes()), work, "{target}");
        }
    }

    #[test]
    fn the_clock_is_that_of_instants_and_its_text_has_one_length() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
        assert_eq!(clock_text(before).len(), clock_text(u64::MAX).len());
        assert_eq!(clock_text(before).parse(), Ok(before));
    }
}
