//! Times of the monotonic clock as people read them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use maitred_io::clock;

/// Lead of the real clock over the monotonic one in nanoseconds (0: not measured yet), and the second of the last
/// measurement.
static LEAD: AtomicU64 = AtomicU64::new(0);
static MEASURED_IN: AtomicU64 = AtomicU64::new(0);

/// A smaller change of the lead is not followed, in nanoseconds: a clock under correction moves at most 0.5 ms a second
/// (adjtimex(2)), and lines with one lead have the order of the monotonic clock.
const LEAD_MAY_BE_OFF: u64 = 1_000_000;

/// A monotonic time in microseconds since 1970, within a millisecond of the real clock.
pub(crate) fn wall_micros(monotonic: u64) -> u64 {
    wall_nanos(monotonic) / 1_000
}

/// A monotonic time in nanoseconds since 1970, within a millisecond of the real clock.
pub fn wall_nanos(monotonic: u64) -> u64 {
    let second = clock::unix_seconds();
    let is_old = MEASURED_IN.load(Ordering::Relaxed) != second;
    let known = LEAD.load(Ordering::Acquire);
    // Without a lead each thread measures: the thread that was first may not have stored the lead yet.
    if known == 0 || (is_old && MEASURED_IN.swap(second, Ordering::AcqRel) != second) {
        let lead = followed(known, clock::real_ahead());
        LEAD.store(lead, Ordering::Release);
    }
    monotonic + LEAD.load(Ordering::Acquire)
}

/// The lead behind a measurement.
fn followed(known: u64, measured: u64) -> u64 {
    if measured.abs_diff(known) > LEAD_MAY_BE_OFF { measured } else { known }
}

/// strftime(3) of seconds since 1970 in local time; a pattern it does not know is itself.
pub fn strftime(pattern: &str, unix_seconds: u64) -> String {
    let time = timestamp(unix_seconds.saturating_mul(1_000_000)).to_zoned(TimeZone::system());
    jiff::fmt::strtime::format(pattern, &time).unwrap_or_else(|_| pattern.to_owned())
}

pub(crate) fn timestamp(unix_micros: u64) -> Timestamp {
    let time = i64::try_from(unix_micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    time.unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Appends `2026-11-20T12:00:00.123456Z`.
pub fn write_iso_time(out: &mut String, unix_micros: u64) {
    let _ = write!(out, "{:.6}", timestamp(unix_micros));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_followed_and_one_under_correction_is_not() {
        const KNOWN: u64 = 1_700_000_000_000_000_000;
        assert_eq!(followed(0, KNOWN), KNOWN);
        assert_eq!([KNOWN - 900_000, KNOWN + 900_000].map(|measured| followed(KNOWN, measured)), [KNOWN; 2]);
        assert_eq!(followed(KNOWN, KNOWN + 2_000_000), KNOWN + 2_000_000);
        assert_eq!(followed(KNOWN, KNOWN - 3_600_000_000_000), KNOWN - 3_600_000_000_000);
    }

    #[test]
    fn the_error_log_s_time_is_utc_with_microseconds() {
        let mut out = String::new();
        write_iso_time(&mut out, 1_000_000_000_000_001);
        assert_eq!(out, "2001-09-09T01:46:40.000001Z");
    }
}
