//! Dates as HTTP writes them (RFC 9110 §5.6.7).
//!
//! Seconds since 1970-01-01T00:00:00Z in and out; there is no clock here. Writing allocates nothing.

use std::io::Write as _;
use std::time::{Duration, UNIX_EPOCH};

/// The last second that four digits of year can say: 9999-12-31T23:59:59Z.
pub const LAST: u64 = 253_402_300_799;

/// The IMF-fixdate of `unix_seconds`, for example `Sun, 06 Nov 1994 08:49:37 GMT`. A time past
/// [`LAST`] is written as [`LAST`].
pub fn format(unix_seconds: u64) -> [u8; 29] {
    let time = httpdate::HttpDate::from(UNIX_EPOCH + Duration::from_secs(unix_seconds.min(LAST)));
    let mut text = [b' '; 29];
    // A date has as many bytes.
    let _ = write!(&mut text[..], "{time}");
    text
}

/// The seconds `text` says in one of the three forms of RFC 9110 §5.6.7: IMF-fixdate, the obsolete
/// RFC 850 form and asctime's. `None` for anything else, and for a day that does not exist. White
/// space around it does no harm.
///
/// A two-digit year below 70 is of this century, any other of the last one: the rule of the RFC
/// (not more than 50 years ahead) would need a clock.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
    let time = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok().as_ref().map(Duration::as_secs)
}
