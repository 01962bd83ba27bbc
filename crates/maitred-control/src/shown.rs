//! Times as the answers show them, and words that several answers have.

use maitred_io::clock;
use maitred_log::write_iso_time;

/// Stands in `stats` for work that runs in no pool.
pub(super) const ENGINE: &str = "engine";

/// The state of a thread without a request.
pub(super) const IDLE: &str = "waits or serves";

/// A time of the monotonic clock as a date, and how long ago it was in seconds.
pub(super) fn moment(then: u64) -> (String, f64) {
    let ago = clock::monotonic().saturating_sub(then);
    let mut text = String::new();
    write_iso_time(&mut text, clock::unix_micros().saturating_sub(ago / 1_000));
    (text, ago as f64 / 1e9)
}
