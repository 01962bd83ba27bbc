//! Limits that an application asks for its own response by fields of the head: a rate, and a send timeout.
//!
//! Promises: the fields are removed, whatever their values; a malformed value causes a warning and counts as absent.
//! Leaves out: general limits (`stream/data_rate.rs`, and `shaped.rs` of maitred-server).

use std::str;

use maitred_http::ResponseHead;
use maitred_limits::Shaper;

/// Field for the rate: bytes a second, or `off`.
const BANDWIDTH: &str = "Maitred-Bandwidth";

/// nginx's field for the rate. Without folders for submitted files the field is passed on, as nginx's other fields
/// are.
const LIMIT_RATE: &str = "X-Accel-Limit-Rate";

/// Field for the send timeout, in seconds.
const SEND_TIMEOUT: &str = "Maitred-Send-Timeout";

/// Longest send timeout that an application can ask for, in seconds: a peer that takes nothing holds a connection and
/// its queued bytes.
const MAX_SEND_TIMEOUT: u32 = 3600;

/// Limits of one response; see the module text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLimits {
    /// Bytes a second; 0 and none: no own limit.
    pub bandwidth: Option<u64>,
    /// Send timeout in milliseconds, at least 1.
    pub send_timeout: Option<u32>,
}

impl OwnLimits {
    /// Sets these limits for a response.
    pub fn set(self, shaper: &mut Option<Box<Shaper>>, send_timeout: &mut u32) {
        *send_timeout = self.send_timeout.unwrap_or(0);
        match self.bandwidth {
            Some(bytes @ 1..) => {
                shaper.get_or_insert_with(|| Box::new(Shaper::default())).limit_response(bytes);
            }
            _ => shaper.iter_mut().for_each(|shaper| shaper.limit_response(0)),
        }
    }
}

/// A head with such fields.
pub struct Found {
    /// The head without these fields.
    pub head: ResponseHead,
    /// The limits.
    pub limits: OwnLimits,
    /// Warnings for the error log.
    pub warnings: Vec<String>,
}

/// Takes such fields out of a head, if any; nginx's too where `obeyed`. Of several values the lowest rate and the
/// shortest time count.
pub fn take(head: &ResponseHead, obeyed: bool) -> Option<Found> {
    let known = |name: &[u8]| {
        // Most names differ in their lengths already.
        let mut names = [BANDWIDTH, SEND_TIMEOUT, LIMIT_RATE].into_iter().take(if obeyed { 3 } else { 2 });
        names.find(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    };
    if !head.fields.iter().any(|(name, _)| known(name).is_some()) {
        return None;
    }
    let mut found = Found { head: head.clone(), limits: OwnLimits::default(), warnings: Vec::new() };
    for (name, value) in head.fields.iter() {
        let Some(known) = known(name) else { continue };
        found.head.fields.remove(known);
        let text = str::from_utf8(value).unwrap_or_default().trim();
        let OwnLimits { bandwidth, send_timeout } = &mut found.limits;
        let understood = if known == SEND_TIMEOUT {
            milliseconds(text)
                .map(|time| *send_timeout = Some(send_timeout.map_or(time, |own| own.min(time))))
        } else {
            bytes(text).map(|bytes| {
                let lowest = [bandwidth.unwrap_or(0), bytes].into_iter().filter(|own| *own > 0).min();
                *bandwidth = Some(lowest.unwrap_or(0));
            })
        };
        if understood.is_none() {
            let remedy = if known == SEND_TIMEOUT {
                format!("write seconds from 0.001 to {MAX_SEND_TIMEOUT}")
            } else {
                "write bytes a second in digits, or off".to_owned()
            };
            let value = value.escape_ascii();
            found.warnings.push(format!("{known} cannot be '{value}', so it has no effect: {remedy}"));
        }
    }
    Some(found)
}

fn bytes(text: &str) -> Option<u64> {
    if text.eq_ignore_ascii_case("off") {
        return Some(0);
    }
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// Parses seconds such as `5` or `0.25`.
fn milliseconds(text: &str) -> Option<u32> {
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let milliseconds = (text.parse::<f64>().ok()? * 1000.0).round();
    // Numbers within these limits fit.
    (1.0..=f64::from(MAX_SEND_TIMEOUT) * 1000.0).contains(&milliseconds).then_some(milliseconds as u32)
}

#[cfg(test)]
mod tests {
    use maitred_http::Status;

    use super::*;

    fn taken(fields: &[(&str, &str)], obeyed: bool) -> Option<(OwnLimits, Vec<String>, usize)> {
        let mut head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
        for (name, value) in fields {
            head = head.with(name, value);
        }
        let found = take(&head, obeyed)?;
        Some((found.limits, found.warnings, found.head.fields.len()))
    }

    fn limits(bandwidth: Option<u64>, send_timeout: Option<u32>) -> OwnLimits {
        OwnLimits { bandwidth, send_timeout }
    }

    #[test]
    fn the_fields_are_taken_out_and_say_what_they_say() {
        for (fields, obeyed, expected) in [
            (&[("maitred-bandwidth", "20000")][..], false, limits(Some(20_000), None)),
            (&[("Maitred-Bandwidth", " off ")], false, limits(Some(0), None)),
            (&[("X-Accel-Limit-Rate", "7")], true, limits(Some(7), None)),
            (&[("X-Accel-Limit-Rate", "7"), ("Maitred-Bandwidth", "5")], true, limits(Some(5), None)),
            (&[("X-Accel-Limit-Rate", "7"), ("Maitred-Bandwidth", "0")], true, limits(Some(7), None)),
            (&[("Maitred-Send-Timeout", "0.25")], false, limits(None, Some(250))),
            (&[("Maitred-Send-Timeout", "3600")], false, limits(None, Some(3_600_000))),
            (
                &[("Maitred-Send-Timeout", "9"), ("MAITRED-SEND-TIMEOUT", "8"), ("Maitred-Bandwidth", "1")],
                false,
                limits(Some(1), Some(8000)),
            ),
        ] {
            assert_eq!(taken(fields, obeyed), Some((expected, vec![], 1)), "{fields:?}");
        }
        assert_eq!(taken(&[("X-Other", "1")], true), None);
        assert_eq!(taken(&[("X-Accel-Limit-Rate", "7")], false), None, "it is for a proxy in front");
    }

    #[test]
    fn what_means_nothing_is_told_and_without_effect() {
        for value in ["", "20k", "-1", "1e3", "+5", "99999999999999999999", "no"] {
            let (own, warnings, left) = taken(&[("Maitred-Bandwidth", value)], false).expect("taken");
            assert_eq!((own, left), (OwnLimits::default(), 1), "{value}");
            let expected = format!(
                "Maitred-Bandwidth cannot be '{value}', so it has no effect: write bytes a second in digits, or off"
            );
            assert_eq!(warnings, [expected]);
        }
        for value in ["", "0", "0.0001", "3600.1", "-1", "inf", "NaN", "1e3", ".", "1.2.3", "5s"] {
            let (own, warnings, left) = taken(&[("Maitred-Send-Timeout", value)], false).expect("taken");
            assert_eq!((own, left), (OwnLimits::default(), 1), "{value}");
            let expected = format!(
                "Maitred-Send-Timeout cannot be '{value}', so it has no effect: write seconds from 0.001 to 3600"
            );
            assert_eq!(warnings, [expected]);
        }
        let (own, warnings, _) =
            taken(&[("Maitred-Bandwidth", "x"), ("Maitred-Bandwidth", "9")], false).expect("taken");
        assert_eq!((own, warnings.len()), (limits(Some(9), None), 1));
    }
}
