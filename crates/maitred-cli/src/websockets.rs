//! WebSocket: what the server is told of its options.

use std::time::Duration;

use maitred_server::WebSocketSettings;

/// How WebSocket is spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebSocketConfig {
    /// It is spoken.
    pub on: bool,
    /// Bytes of a message.
    pub max_message: u64,
    /// How long a client may be silent before it gets a ping; zero: it gets none.
    pub ping: Duration,
    /// How long it may be silent then; zero: for ever.
    pub timeout: Duration,
    /// Messages are compressed.
    pub deflate: bool,
    /// Bytes that the compression may remember, of all.
    pub contexts: u64,
}

/// What the server is told; none where it is not spoken.
pub(crate) fn settings(config: &WebSocketConfig) -> Option<WebSocketSettings> {
    let WebSocketConfig { on, max_message, ping, timeout, deflate, contexts } = *config;
    on.then_some(WebSocketSettings { max_message, ping, timeout, deflate, contexts })
}
