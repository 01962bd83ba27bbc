//! Listeners against the system.

mod adopt;
mod group;
mod tcp;
mod unix;

use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// The connection that waits, or will in a moment.
fn accepted(listener: &Listener) -> (Socket, Remote) {
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Accepted::Connection(socket, remote) => return (socket, remote),
            Accepted::Empty => assert!(begun.elapsed() < PATIENCE, "nobody came"),
            Accepted::Exhausted(error) | Accepted::Failed(error) => panic!("{error}"),
        }
        std::thread::yield_now();
    }
}
