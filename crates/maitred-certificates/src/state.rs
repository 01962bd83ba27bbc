//! The state of the certificate of one name: kept in its file, and shown to operators.

use serde::{Deserialize, Serialize};

/// The state as it is kept. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct State {
    /// The URL of the directory that has said all this.
    pub directory: String,
    /// The URL of the directory that has issued the present certificate.
    pub issuer: Option<String>,
    /// The rules' own part.
    pub schedule: serde_json::Value,
    /// The end of the present certificate.
    pub until: Option<u64>,
    /// An order runs.
    pub ordering: bool,
    /// The last fault, until an order succeeds.
    pub fault: Option<Fault>,
    /// The time of the next attempt.
    pub next: Option<u64>,
}

/// A fault of an order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The time.
    pub at: u64,
    /// The fault and the remedy, in a line.
    pub text: String,
}

/// The status of one name, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The host, or the IP address.
    pub name: String,
    /// In a word: `none`, `ordering`, `valid` or `failing`.
    pub state: String,
    /// The end of the present certificate, in seconds since 1970.
    pub until: Option<u64>,
    /// The last fault, with its remedy, until an order succeeds.
    pub fault: Option<Fault>,
    /// The time of the next attempt, in seconds since 1970.
    pub next: Option<u64>,
}

impl State {
    pub(crate) fn status(self, name: &str) -> Status {
        let state = match (&self.fault, self.ordering, self.until) {
            (_, true, _) => "ordering",
            (Some(_), ..) => "failing",
            (None, _, Some(_)) => "valid",
            (None, _, None) => "none",
        };
        let Self { until, fault, next, .. } = self;
        Status { name: name.to_owned(), state: state.to_owned(), until, fault, next }
    }
}
