//! Room in the full table of routes for paths that come again and again: the rarest routes since the last look become
//! "other".

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use maitred_stats::Recorder;

use super::{NUMBER, Naming};

/// Time between two looks, in nanoseconds. Each route has this time to come again.
const PAUSE: u64 = 60_000_000_000;

/// Result of the last look.
#[derive(Default)]
pub(super) struct Room(Mutex<Looked>);

#[derive(Default)]
struct Looked {
    /// Earliest time of the next look, in monotonic nanoseconds.
    next: u64,
    /// Count of each route at that look, by number.
    counted: Vec<u64>,
}

impl Naming {
    /// Makes room, if wanted and if the last look is long enough ago. Costs one load if not wanted.
    pub(crate) fn make_room(&self, recorder: &Recorder, now: u64) {
        if !self.routes.is_wanting() {
            return;
        }
        // Another thread that makes room does so for all.
        let Ok(mut looked) = self.room.0.try_lock() else { return };
        if now < looked.next {
            return;
        }
        let counted = recorder.requests();
        let before = looked.counted.iter().copied().chain(std::iter::repeat(0));
        let uses: Vec<u64> =
            counted.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
        let moves = self.routes.make_room(&uses);
        let gone: HashSet<u32> = moves.iter().map(|(number, _)| *number).collect();
        for word in self.told.iter().filter(|word| gone.contains(&((word.load(Relaxed) & NUMBER) as u32))) {
            word.store(0, Relaxed);
        }
        self.guesses.forget(&gone);
        recorder.move_routes(&moves);
        *looked = Looked { next: now.saturating_add(PAUSE), counted: recorder.requests() };
        self.routes.set_free(&moves);
    }
}
