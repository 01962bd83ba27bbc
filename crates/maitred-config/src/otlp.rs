//! The values of the options of OpenTelemetry.

use std::fmt;
use std::time::Duration;

use maitred_server::{TracePhases, TraceTrust};
pub use maitred_trace::Signal;

use crate::limits::items;
use crate::{BadValue, did_you_mean};

/// The values of the options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtlpConfig {
    /// The receiver.
    pub to: OtlpTo,
    /// The signals that are sent.
    pub signals: Vec<Signal>,
    /// Requests of this time are kept whatever the sampling says; zero: none.
    pub slow: Duration,
    /// The peers whose traceparent is the parent.
    pub trust: TraceTrust,
    /// The form of a request's parts.
    pub phases: TracePhases,
    /// Queries are sent.
    pub query: bool,
}

/// The receiver of spans and figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OtlpTo {
    /// There is none.
    #[default]
    Off,
    /// As the variables say.
    On,
    /// This URL, to which the path of each signal is added.
    Url(String),
}

impl fmt::Display for OtlpTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Url(url) => url,
        })
    }
}

const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

pub(crate) fn to(text: &str) -> Result<OtlpTo, BadValue> {
    match text {
        "off" | "false" => Ok(OtlpTo::Off),
        "on" | "true" => Ok(OtlpTo::On),
        url if url.starts_with("http://") || url.starts_with("https://") => Ok(OtlpTo::Url(url.to_owned())),
        _ => {
            let what = format!("'{text}' is neither off nor on nor the URL of a collector");
            Err(BadValue::new(what, "write one of them, for example http://localhost:4318"))
        }
    }
}

pub(crate) fn signals(texts: &[String]) -> Result<Vec<Signal>, BadValue> {
    let one = |text: &str| {
        SIGNALS.into_iter().find(|signal| signal.name() == text).ok_or_else(|| {
            let names = SIGNALS.map(Signal::name);
            let remedy = did_you_mean(text, names, "write one of them");
            BadValue::new(format!("'{text}' is none of {}", names.join(", ")), remedy)
        })
    };
    let mut signals = Vec::with_capacity(SIGNALS.len());
    for text in items(texts) {
        let signal = one(text)?;
        if !signals.contains(&signal) {
            signals.push(signal);
        }
    }
    Ok(signals)
}
