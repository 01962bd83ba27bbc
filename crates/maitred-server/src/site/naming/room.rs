//! Room in the full table of routes for paths that come again and again: the routes that came least since the last time become "other".

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;

use maitred_stats::Recorder;

use super::{NUMBER, Naming};

/// Between two looks, in nanoseconds: so long every route has for coming.
const PAUSE: u64 = 60_000_000_000;

/// What was found at the last look.
#[derive(Default)]
pub(super) struct Room(Mutex<Looked>);

#[derive(Default)]
struct Looked {
    /// When the next one may be, in monotonic nanoseconds.
    next: u64,
    /// How often each route had been counted, by number.
    counted: Vec<u64>,
}

impl Naming {
    /// Makes room, if that is wanted and the last time is long enough ago. One load if it is not wanted.
    pub(crate) fn make_room(&self, recorder: &Recorder, now: u64) {
        if !self.routes.is_wanting() {
            return;
        }
        // Another thread that is doing it does it for all.
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
