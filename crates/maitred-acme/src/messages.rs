//! The documents of a CA, as far as they are read. Unknown fields are passed over.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Named, Problem};

/// The directory (RFC 8555 §7.1.1).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Directory {
    pub(crate) new_nonce: String,
    pub(crate) new_account: String,
    pub(crate) new_order: String,
    pub(crate) renewal_info: Option<String>,
    #[serde(default)]
    pub(crate) meta: Meta,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Meta {
    pub(crate) external_account_required: bool,
    pub(crate) profiles: BTreeMap<String, serde::de::IgnoredAny>,
}

/// An order (§7.1.3).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OrderDocument {
    pub(crate) status: Status,
    #[serde(default)]
    pub(crate) authorizations: Vec<String>,
    pub(crate) finalize: String,
    pub(crate) certificate: Option<String>,
    pub(crate) error: Option<Problem>,
}

/// The state of an order, an authorisation or a challenge (§7.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Pending,
    Ready,
    Processing,
    Valid,
    Invalid,
    #[serde(other)]
    Other,
}

/// An authorisation (§7.1.4).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Authorization {
    pub(crate) status: Status,
    pub(crate) identifier: Named,
    #[serde(default)]
    pub(crate) challenges: Vec<Offered>,
}

/// A challenge that the CA offers (§7.1.5, §8).
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Offered {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) token: String,
    pub(crate) error: Option<Problem>,
}

/// Renewal information (RFC 9773 §4.2).
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RenewalInfo {
    suggested_window: Span,
    #[serde(rename = "explanationURL")]
    explanation: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Span {
    start: String,
    end: String,
}

/// When a CA wants a certificate to be renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// The certificate to which it belongs, by its [`id`](crate::Held::id).
    pub id: String,
    /// Its start, in seconds since 1970.
    pub start: u64,
    /// Its end, in seconds since 1970; behind the start.
    pub end: u64,
    /// A page of the CA that tells why.
    pub explanation: Option<String>,
}

impl RenewalInfo {
    pub(crate) fn window(self, id: &str) -> Result<Window, Fault> {
        let Span { start, end } = &self.suggested_window;
        let explanation = self
            .explanation
            .filter(|url| url.len() <= 500 && url.bytes().all(|byte| byte.is_ascii_graphic()));
        match (time(start), time(end)) {
            (Some(start), Some(end)) if start < end => {
                Ok(Window { id: id.to_owned(), start, end, explanation })
            }
            _ => Err(Fault::unreadable("the window of renewal has no times, or ends before it begins")),
        }
    }
}

/// A time by RFC 3339 in seconds since 1970; parts of a second are left out.
fn time(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let separators = [(4, '-'), (7, '-'), (13, ':'), (16, ':')];
    let is_at = |&(at, wanted): &(usize, char)| text.get(at..)?.starts_with(wanted).then_some(());
    separators.iter().try_for_each(is_at)?;
    matches!(text.as_bytes().get(10)?, b'T' | b't' | b' ').then_some(())?;
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let valid =
        (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    valid.then_some(())?;
    let rest = text.get(19..)?;
    let zone = match rest.strip_prefix('.') {
        Some(parts) => parts.trim_start_matches(|char: char| char.is_ascii_digit()),
        None => rest,
    };
    let offset = match zone.split_at_checked(1)? {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), digits) => {
            let (hours, minutes) = digits.split_once(':')?;
            let part =
                |text: &str| (text.len() == 2).then(|| text.parse::<u8>().ok()).flatten().map(i64::from);
            let seconds = part(hours)? * 3600 + part(minutes)? * 60;
            if sign == "+" { seconds } else { -seconds }
        }
        _ => return None,
    };
    // Years begin in March, so that the day that comes and goes is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    u64::try_from(days * 86_400 + hour * 3600 + minute * 60 + second - offset).ok()
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times_are_read() {
        assert_eq!(time("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(time("2026-11-29T16:45:30Z"), Some(1_795_970_730));
        assert_eq!(time("2028-02-29T23:59:59.123456789Z"), Some(1_835_481_599));
        assert_eq!(time("2026-11-29T17:45:30+01:00"), Some(1_795_970_730));
        for wrong in [
            "",
            "2026-11-29",
            "2026-13-29T16:45:30Z",
            "2026-11-29T16:45:30",
            "2026-11-29T16:45:30é",
            "1960-01-01T00:00:00Z",
            "2026-11-29T16:45:30+é1:00",
            "+026-11-29T16:45:30Z",
        ] {
            assert_eq!(time(wrong), None, "{wrong}");
        }
    }
}
