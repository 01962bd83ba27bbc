//! HTTP/2: from the options to the server's settings and the protocols that TLS offers.

use maitred_server::Http2Settings;

use crate::Config;
use crate::value::Http2;

/// The server's settings; none if HTTP/2 is off.
pub fn settings(config: &Config) -> Option<Http2Settings> {
    (config.http2 != Http2::Off).then(|| Http2Settings {
        // The range of the option fits.
        streams: u32::try_from(config.http2_streams).unwrap_or(u32::MAX),
        only: config.http2 == Http2::Only,
        upgrade: config.http2_upgrade,
    })
}

/// The protocols that TLS offers to clients, in the server's order (RFC 7301).
pub(crate) fn protocols(config: &Config) -> Vec<Vec<u8>> {
    let all: &[&[u8]] = match config.http2 {
        Http2::On => &[b"h2", b"http/1.1", b"http/1.0"],
        Http2::Off => &[b"http/1.1", b"http/1.0"],
        Http2::Only => &[b"h2"],
    };
    all.iter().map(|name| name.to_vec()).collect()
}

/// The protocols in the start-up lines of listeners.
pub fn spoken(config: &Config) -> &'static str {
    match config.http2 {
        Http2::On => "HTTP/1.1, HTTP/2",
        Http2::Off => "HTTP/1.1",
        Http2::Only => "HTTP/2",
    }
}
