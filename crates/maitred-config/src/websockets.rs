//! WebSocket: from the options to the server's settings.

use std::time::Duration;

use maitred_server::WebSocketSettings;

/// The options of WebSocket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebSocketConfig {
    /// Whether the server speaks WebSocket.
    pub on: bool,
    /// Most bytes of a message.
    pub max_message: u64,
    /// Silence of a client after which it gets a ping; zero for no pings.
    pub ping: Duration,
    /// Silence after a ping that ends the connection; zero for no limit.
    pub timeout: Duration,
    /// Whether messages are compressed.
    pub deflate: bool,
    /// Most bytes of all compression contexts together.
    pub contexts: u64,
}

/// The server's settings; none if WebSocket is off.
pub fn settings(config: &WebSocketConfig) -> Option<WebSocketSettings> {
    let WebSocketConfig { on, max_message, ping, timeout, deflate, contexts } = *config;
    on.then_some(WebSocketSettings { max_message, ping, timeout, deflate, contexts })
}
