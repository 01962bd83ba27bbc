//! The clients of one listener: their number is limited. When all places are taken and a further client connects, the
//! one that has been silent for longest is disconnected.
//!
//! Promises: silent clients, however many, delay no client that asks; a client whose question is being answered is
//! never disconnected.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::net::{Shutdown, shutdown};

use crate::lock;

/// Connections at a time, of each door.
const MAX_GUESTS: usize = 32;

#[derive(Clone, Default)]
pub(super) struct Guests(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    count: usize,
    /// The clients that have not asked yet, the one first that has been connected for longest.
    silent: Vec<(u64, OwnedFd)>,
    /// Clients whose connection was shut down, and whose thread has not ended yet.
    leaving: Vec<u64>,
    next: u64,
}

/// A connected client; dropping it gives the place back.
pub(super) struct Guest {
    guests: Guests,
    id: u64,
}

impl Guests {
    pub(super) fn count(&self) -> usize {
        lock(&self.0).count
    }

    /// Whether a further client has room now or soon. Otherwise the listener need not be polled.
    pub(super) fn may_have_room(&self) -> bool {
        let state = lock(&self.0);
        state.count < MAX_GUESTS || (state.leaving.is_empty() && !state.silent.is_empty())
    }

    /// Whether a client has room now. If not, and one `knocks`, the client that has been silent for longest is
    /// disconnected.
    pub(super) fn make_room(&self, knocks: impl FnOnce() -> bool) -> bool {
        let mut state = lock(&self.0);
        if state.count < MAX_GUESTS {
            return true;
        }
        if state.leaving.is_empty() && !state.silent.is_empty() && knocks() {
            let (id, socket) = state.silent.remove(0);
            state.leaving.push(id);
            // It may be gone by itself.
            let _ = shutdown(&socket, Shutdown::Both);
        }
        false
    }

    /// Takes a place for a client.
    /// Errors: out of descriptors; no place is taken.
    pub(super) fn enter(&self, socket: BorrowedFd<'_>) -> io::Result<Guest> {
        let socket = socket.try_clone_to_owned()?;
        let mut state = lock(&self.0);
        let id = state.next;
        state.next += 1;
        state.count += 1;
        state.silent.push((id, socket));
        Ok(Guest { guests: self.clone(), id })
    }
}

impl Guest {
    pub(super) fn has_asked(&self) {
        lock(&self.guests.0).silent.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = lock(&self.guests.0);
        state.count -= 1;
        state.silent.retain(|(id, _)| *id != self.id);
        state.leaving.retain(|id| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_further_client_displaces_the_one_that_is_silent_for_longest() {
        let guests = Guests::default();
        let pairs: Vec<_> = (0..MAX_GUESTS).map(|_| UnixStream::pair().expect("descriptors")).collect();
        let mut inside: Vec<_> =
            pairs.iter().map(|(own, _)| guests.enter(own.as_fd()).expect("room")).collect();
        // The first one is being answered.
        inside[0].has_asked();
        assert!(guests.may_have_room() && !guests.make_room(|| false), "nobody knocks");
        assert!(!guests.make_room(|| true));
        assert_eq!((&pairs[1].1).read(&mut [0]).expect("the end"), 0);
        assert!(!guests.may_have_room(), "one is enough");
        assert!(!guests.make_room(|| true));
        inside.remove(1);
        assert!(guests.make_room(|| panic!("there is room")));
        let (own, _other) = UnixStream::pair().expect("descriptors");
        inside.push(guests.enter(own.as_fd()).expect("room"));
        inside.iter().for_each(Guest::has_asked);
        assert!(!guests.may_have_room(), "all are being answered");
        inside.clear();
        assert_eq!((guests.count(), guests.may_have_room()), (0, true));
    }
}
