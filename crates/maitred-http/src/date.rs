//! Dates as HTTP writes them (RFC 9110 §5.6.7).
//!
//! Seconds since 1970-01-01T00:00:00Z in and out; there is no clock here. Writing allocates nothing.

use std::time::{Duration, UNIX_EPOCH};

/// The last second that four digits of year can say: 9999-12-31T23:59:59Z.
pub const LAST: u64 = 253_402_300_799;

const SECONDS_PER_DAY: u64 = 86_400;
/// Days from 0000-03-01 to 1970-01-01 in the proleptic Gregorian calendar.
const DAYS_TO_1970: u64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const DAYS_PER_ERA: u64 = 146_097;

/// The IMF-fixdate of `unix_seconds`, for example `Sun, 06 Nov 1994 08:49:37 GMT`. A time past
/// [`LAST`] is written as [`LAST`].
pub fn format(unix_seconds: u64) -> [u8; 29] {
    let seconds = unix_seconds.min(LAST);
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let (year, month, day) = civil(days);
    let weekday = weekday_name(days);
    let [y1, y2] = two_digits(year / 100);
    let [y3, y4] = two_digits(year % 100);
    let [d1, d2] = two_digits(day);
    let [h1, h2] = two_digits(second / 3600);
    let [m1, m2] = two_digits(second / 60 % 60);
    let [s1, s2] = two_digits(second % 60);
    let [w1, w2, w3] = *weekday;
    let [n1, n2, n3] = *month_name(month);
    [
        w1, w2, w3, b',', b' ', d1, d2, b' ', n1, n2, n3, b' ', y1, y2, y3, y4, b' ', h1, h2, b':', m1, m2,
        b':', s1, s2, b' ', b'G', b'M', b'T',
    ]
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

/// Year, month (1 to 12) and day (1 to 31) of a day counted from 1970-01-01. Years are counted from
/// March, so that the day of leap years is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + DAYS_TO_1970;
    let era = days / DAYS_PER_ERA;
    let day_of_era = days % DAYS_PER_ERA;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn two_digits(number: u64) -> [u8; 2] {
    [b'0' + (number / 10 % 10) as u8, b'0' + (number % 10) as u8]
}

/// 1970-01-01 was a Thursday.
fn weekday_name(days: u64) -> &'static [u8; 3] {
    match days % 7 {
        0 => b"Thu",
        1 => b"Fri",
        2 => b"Sat",
        3 => b"Sun",
        4 => b"Mon",
        5 => b"Tue",
        _ => b"Wed",
    }
}

fn month_name(month: u64) -> &'static [u8; 3] {
    match month {
        1 => b"Jan",
        2 => b"Feb",
        3 => b"Mar",
        4 => b"Apr",
        5 => b"May",
        6 => b"Jun",
        7 => b"Jul",
        8 => b"Aug",
        9 => b"Sep",
        10 => b"Oct",
        11 => b"Nov",
        _ => b"Dec",
    }
}
