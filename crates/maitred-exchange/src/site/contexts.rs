//! The memory budget of compression contexts (RFC 7692 §7.1.1) for all WebSockets together.
//!
//! A context makes similar small messages much shorter, and takes a multiple of everything else that an idle
//! WebSocket holds. So WebSockets get contexts as long as the budget has room; further WebSockets compress each
//! message by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Budget of all contexts.
pub struct Contexts {
    most: u64,
    taken: Arc<AtomicU64>,
}

/// The part of one WebSocket, until dropped.
pub struct Share {
    bytes: u64,
    taken: Arc<AtomicU64>,
}

impl Contexts {
    /// A budget of this many bytes.
    pub fn new(most: u64) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// Takes a part of the budget; none if there is no room.
    pub fn take(&self, bytes: u64) -> Option<Share> {
        let room = |taken: u64| taken.checked_add(bytes).filter(|all| *all <= self.most);
        let taken = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        taken.ok().map(|_| Share { bytes, taken: Arc::clone(&self.taken) })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_until_it_is_taken_and_again_when_it_is_given_back() {
        let contexts = Contexts::new(100);
        let (first, second) = (contexts.take(60), contexts.take(40));
        assert!(first.is_some() && second.is_some() && contexts.take(1).is_none());
        drop(first);
        assert!(contexts.take(61).is_none() && contexts.take(60).is_some());
    }
}
