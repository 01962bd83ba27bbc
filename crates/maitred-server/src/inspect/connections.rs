//! Copies of connections and of waiting requests, each made under the lock of its connection or queue.

use std::sync::Arc;

use super::{ConnectionSnapshot, RequestSummary};
use crate::connection::{Group, Key};
use crate::group::Occupant;
use crate::group::slots::{Place, Token};

/// A request that waits for a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Place of the request.
    pub place: Place,
    /// Number of the pool.
    pub pool: usize,
    /// Begin of the wait, in monotonic nanoseconds.
    pub since: u64,
}

/// The connections of a server with their requests: what they do, and the end of one by an operator.
#[derive(Clone, Copy)]
pub struct Connections<'s>(pub(crate) &'s [Arc<Group>]);

impl Connections<'_> {
    /// The connection at a place, if it still exists.
    pub fn at(&self, place: Place) -> Option<ConnectionSnapshot> {
        let token = Token::from_u64(place.token);
        let group = self.0.get(place.group)?;
        let slot = group.slots.find(token.slot)?;
        let resident = slot.lock();
        match resident.as_ref() {
            Some(Occupant::Resident(connection)) if slot.generation() == token.generation => {
                Some(connection.show(group))
            }
            _ => None,
        }
    }

    /// The connection of an event of a thread ([`Member::event`](super::Member::event)), if it still exists.
    pub fn of_event(&self, event: u64) -> Option<(Place, ConnectionSnapshot)> {
        let mut places = (0..self.0.len()).map(|group| Place { group, token: event, stream: 0 });
        places.find_map(|place| Some((place, self.at(place)?)))
    }

    /// Calls `look` with every connection and its place.
    pub fn each(&self, mut look: impl FnMut(Place, ConnectionSnapshot)) {
        for group in self.0 {
            for (number, slot) in group.connections() {
                let shown = {
                    let resident = slot.lock();
                    match resident.as_ref() {
                        Some(Occupant::Resident(connection)) => {
                            Some((slot.generation(), connection.show(group)))
                        }
                        _ => None,
                    }
                };
                if let Some((generation, shown)) = shown {
                    let token = Token { slot: number, generation }.to_u64();
                    look(Place { group: group.number, token, stream: 0 }, shown);
                }
            }
        }
    }

    /// Calls `look` with every request that a handler has, and whether its connection has TLS, under the lock of the connection.
    pub(crate) fn each_request(&self, mut look: impl FnMut(&RequestSummary)) {
        for (_, slot) in self.0.iter().flat_map(|group| group.connections()) {
            if let Some(Occupant::Resident(connection)) = slot.lock().as_ref() {
                connection.each_request(&mut look);
            }
        }
    }

    /// Requests that wait for a thread, at most `max` of each poll group and pool.
    pub fn waiting(&self, max: usize) -> Vec<Waiting> {
        let mut found = Vec::new();
        for group in self.0 {
            let all = group.number == self.0[0].number;
            group.scheduler.look_at_waiting(all, max, |pool, job, since| {
                found.push(Waiting { place: job.home, pool, since });
            });
        }
        found
    }

    /// Ends the exchange at this place as if the peer had gone. Where a connection has one exchange at a time, the
    /// next turn closes the connection.
    pub fn end_exchange(&self, place: Place) {
        let Some(group) = self.0.get(place.group) else { return };
        let key = Key { token: Token::from_u64(place.token), stream: place.stream };
        group.with_connection(key.token, |connection| connection.end_by_operator(group, key));
    }
}
