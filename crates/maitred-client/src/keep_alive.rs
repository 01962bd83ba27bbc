//! The field `Keep-Alive`: how long, and for how many requests, a server keeps a connection (RFC 2068 §19.7.1).

use std::time::Duration;

use maitred_http::FieldSet;

/// A server closes an idle connection by its own clock, and its FIN takes a while: so much earlier it counts as closed.
const EARLIER: Duration = Duration::from_secs(1);

/// The server's limits for a connection that it keeps; `None` where it has not named one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// How long the connection can be idle and is safe to use.
    pub idle: Option<Duration>,
    /// How many further requests it takes.
    pub requests: Option<u32>,
}

impl Kept {
    /// The limits in the fields of a response. A parameter that is no number counts as not there.
    pub(crate) fn of(fields: &FieldSet) -> Self {
        let mut kept = Self::default();
        for parameter in fields.all("keep-alive").flat_map(|value| value.split(|byte| *byte == b',')) {
            let mut parts = parameter.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
            let Some(number) = std::str::from_utf8(value).ok().and_then(|text| text.parse::<u32>().ok())
            else {
                continue;
            };
            if name.eq_ignore_ascii_case(b"timeout") {
                kept.idle = Some(Duration::from_secs(number.into()).saturating_sub(EARLIER));
            } else if name.eq_ignore_ascii_case(b"max") {
                kept.requests = Some(number);
            }
        }
        kept
    }

    /// Whether a further request can use the connection.
    pub(crate) fn allows_another(self) -> bool {
        self.idle != Some(Duration::ZERO) && self.requests != Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_and_everything_else_does_not() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        for (value, idle, requests) in [
            ("timeout=5, max=100", seconds(4), Some(100)),
            ("TIMEOUT = 75", seconds(74), None),
            ("timeout=1,max=0", seconds(0), Some(0)),
            ("max=2", None, Some(2)),
            ("timeout=-1, max=x, timeout", None, None),
            ("300", None, None),
        ] {
            let mut fields = FieldSet::new();
            fields.push("Keep-Alive", value);
            assert_eq!(Kept::of(&fields), Kept { idle, requests }, "{value}");
        }
    }
}
