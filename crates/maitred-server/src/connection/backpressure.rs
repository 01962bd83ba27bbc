//! Blocks the thread of a handler that streams until its output drains, or moves it to a file.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use maitred_runtime::{Flow, Observe, SendError};

use crate::connection::Group;
use crate::connection::Key;
use crate::connection::spilling;
use crate::spill::{Lot, Which};

/// Wakes the waiting thread on changes.
#[derive(Default)]
struct Room {
    made: Mutex<bool>,
    wake: Condvar,
}

impl Observe for Room {
    fn changed(&self) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.notify_all();
    }
}

/// The next step for a response.
enum Step {
    /// There is room.
    Go,
    /// Content that can be written to a file, which makes room.
    Write(Lot),
    Wait,
}

/// Waits until the queue of the response has room: as long as the disk takes to write queued bytes, or the peer to
/// read. With a limit of 0, only checks.
///
/// # Errors
/// The peer is gone.
pub(crate) fn wait(group: &Arc<Group>, key: Key, limit: Duration) -> Result<Flow, SendError> {
    let until = Instant::now() + limit;
    let room = Arc::new(Room::default());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let step = group.with_stream(key, |connection| {
            if connection.wire.is_dead() {
                return Err(SendError::Closed);
            }
            if !connection.is_full(group, key) {
                return Ok(Step::Go);
            }
            if left.is_zero() {
                // A call that does not wait keeps the present observer.
                return Ok(Step::Wait);
            }
            if let Some(lot) = connection.lend(group, Which::All) {
                return Ok(Step::Write(lot));
            }
            if let Some(stream) = connection.stream_of(key) {
                stream.observer = Some(Arc::clone(&room) as Arc<dyn Observe>);
            }
            Ok(Step::Wait)
        });
        match step.ok_or(SendError::Closed)?? {
            Step::Go => return Ok(Flow::Ready),
            // After a failed write no further content is lent.
            Step::Write(lot) => {
                group.scheduler.write_out(group, || spilling::write(group, key.token, lot));
            }
            Step::Wait if left.is_zero() => return Ok(Flow::Full),
            Step::Wait => {
                let mut made = room.made.lock().unwrap_or_else(PoisonError::into_inner);
                if !*made {
                    made = room.wake.wait_timeout(made, left).unwrap_or_else(PoisonError::into_inner).0;
                }
                *made = false;
            }
        }
    }
}
