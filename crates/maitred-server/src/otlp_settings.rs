//! The collector of a server: where each signal goes.

use std::sync::Arc;
use std::time::Duration;

use maitred_client::key::Key;
use maitred_http::FieldSet;
use maitred_trace::Signal;

/// The receiver of one signal.
#[derive(Clone, Debug)]
pub struct OtlpTarget {
    /// The signal.
    pub signal: Signal,
    /// The URL, without credentials, for people.
    pub shown: String,
    /// The collector.
    pub key: Arc<Key>,
    /// The value of `Host`.
    pub authority: String,
    /// The path.
    pub target: String,
    /// Fields of each post, such as those with credentials.
    pub fields: FieldSet,
    /// The time limit of a post.
    pub timeout: Duration,
}

/// The collector of a server.
#[derive(Clone, Debug, Default)]
pub struct OtlpSettings {
    /// Where the signals go, each at most once.
    pub targets: Vec<OtlpTarget>,
    /// The time between two readings of the figures.
    pub interval: Duration,
    /// Histograms have buckets by powers of a base instead of the usual ones.
    pub exponential: bool,
}
