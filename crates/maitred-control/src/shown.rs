//! How the answers show peers and times.

use std::net::SocketAddr;

use maitred_io::clock;
use maitred_log::write_iso_time;

/// A time of the monotonic clock as a date, and how long ago it was in seconds.
pub(super) fn moment(then: u64) -> (String, f64) {
    let ago = clock::monotonic().saturating_sub(then);
    let mut text = String::new();
    write_iso_time(&mut text, clock::unix_micros().saturating_sub(ago / 1_000));
    (text, ago as f64 / 1e9)
}

/// A peer as text; an IPv4 client of a socket for both is shown as IPv4.
pub(super) fn shown_peer(peer: SocketAddr) -> String {
    SocketAddr::new(peer.ip().to_canonical(), peer.port()).to_string()
}
