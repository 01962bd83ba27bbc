//! How long a request was on its way from a proxy to us: from `X-Request-Start`, which balancers and proxies set to the
//! time at which they had it.

use maitred_http::FieldSet;
use maitred_io::clock;

const SECOND: u64 = 1_000_000_000;

/// Above it a time is no time but a clock that is wrong.
const MOST: u64 = 24 * 3600 * SECOND;

/// The time from there until `arrived`, both of the monotonic clock and in nanoseconds. None without the field, without a
/// time in it, and if it is not in the day before. It is what the sender says: any client may.
pub fn upstream_queue(fields: &FieldSet, arrived: u64) -> Option<u64> {
    let start = parse(fields.first("x-request-start")?)?;
    let outer = (arrived + clock::real_ahead()).checked_sub(start)?;
    (outer <= MOST).then_some(outer)
}

/// Nanoseconds since 1970. The unit is seen from the size, as all that are used are apart for centuries: seconds (nginx
/// `t=${msec}`, with a fraction), milliseconds (Heroku), microseconds (Apache `t=%t`) or nanoseconds.
fn parse(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let text = text.strip_prefix("t=").unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 19 || fraction.len() > 9 || !is_digits(whole) || !is_digits(fraction)
    {
        return None;
    }
    let unit = match whole.len() {
        9..=10 => SECOND,
        12..=13 => 1_000_000,
        15..=16 => 1_000,
        18..=19 => 1,
        _ => return None,
    };
    let parts = format!("{fraction:0<9}").parse::<u64>().ok()?;
    let below = u128::from(parts) * u128::from(unit) / u128::from(SECOND);
    whole.parse::<u64>().ok()?.checked_mul(unit)?.checked_add(u64::try_from(below).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_known_by_its_size() {
        let at = 1_795_320_000_250_000_000;
        for text in [
            "t=1795320000.25",
            "1795320000.250",
            "t=1795320000250",
            "1795320000250.0",
            "t=1795320000250000",
            "1795320000250000000",
        ] {
            assert_eq!(parse(text.as_bytes()), Some(at), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "",
            "t=",
            "t=x",
            "-1795320000",
            "1795320000.2.5",
            "17953",
            "1795320000.1234567890",
            "99999999999999999999",
            "\u{661}",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse(b"\xff"), None);
    }

    #[test]
    fn a_time_before_us_is_a_wait_and_one_of_another_day_is_none() {
        let arrived = clock::monotonic();
        let real = arrived + clock::real_ahead();
        let of = |at: u64| {
            let mut fields = FieldSet::default();
            fields.push("X-Request-Start", format!("t={at}"));
            upstream_queue(&fields, arrived)
        };
        let waited = of(real - SECOND).expect("a second");
        assert!(waited.abs_diff(SECOND) < SECOND / 10, "{waited}");
        assert_eq!(of(real + SECOND), None);
        assert_eq!(of(real - MOST - SECOND), None);
        assert_eq!(upstream_queue(&FieldSet::default(), arrived), None);
    }
}
