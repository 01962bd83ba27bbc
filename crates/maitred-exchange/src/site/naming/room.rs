//! Room in the full table of routes for paths that come again and again: the rarest routes since the last look become
//! "other".

use std::collections::HashSet;
use std::sync::Mutex;

use maitred_stats::{Recorder, Routes};

/// Time between two looks, in nanoseconds. Each route has this time to come again.
const PAUSE: u64 = 60_000_000_000;

/// Result of the last look.
#[derive(Default)]
pub(crate) struct Room(Mutex<Looked>);

#[derive(Default)]
struct Looked {
    /// Earliest time of the next look, in monotonic nanoseconds.
    next: u64,
    /// Count of each route at that look, by number.
    counted: Vec<u64>,
}

impl Room {
    /// Makes room, if the last look is long enough ago. `forget` gets the numbers of the routes that go, before they
    /// are used again.
    pub(crate) fn make(
        &self,
        routes: &Routes,
        recorder: &Recorder,
        now: u64,
        forget: impl FnOnce(&HashSet<u32>),
    ) {
        // Another thread that makes room does so for all.
        let Ok(mut looked) = self.0.try_lock() else { return };
        if now < looked.next {
            return;
        }
        let counted = recorder.requests();
        let before = looked.counted.iter().copied().chain(std::iter::repeat(0));
        let uses: Vec<u64> =
            counted.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
        let moves = routes.make_room(&uses);
        forget(&moves.iter().map(|(number, _)| *number).collect());
        recorder.move_routes(&moves);
        *looked = Looked { next: now.saturating_add(PAUSE), counted: recorder.requests() };
        routes.set_free(&moves);
    }
}
