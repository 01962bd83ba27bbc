//! Blocks the thread of a handler that streams until its output drains, or moves it to a file.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use maitred_dispatch::{has_to_give_up_peer, note_idle_peer};
use maitred_exchange::{Lot, Which};
use maitred_io::clock;
use maitred_runtime::{Flow, Observe, SendError};

use crate::connection::carrier::{Carrier, see_carrier};
use crate::connection::{Connection, Group, Key, spilling};

/// So often a thread that waits looks whether requests wait for it.
const LOOK: Duration = Duration::from_millis(250);

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
/// The peer is gone, or is given up: it takes nothing while requests wait for this thread.
pub(crate) fn wait(group: &Arc<Group>, key: Key, limit: Duration) -> Result<Flow, SendError> {
    let until = Instant::now() + limit;
    let room = Arc::new(Room::default());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let step = group.with_stream(key, |connection| {
            let step = next_step(connection, group, key, (left.is_zero(), clock::monotonic()))?;
            if let (Step::Wait, Some(stream)) = (&step, connection.stream_of(key).filter(|_| !left.is_zero()))
            {
                stream.observer = Some(Arc::clone(&room) as Arc<dyn Observe>);
            }
            Ok(step)
        });
        let Some(step) = step else {
            note_idle_peer(None);
            return Err(SendError::Closed);
        };
        match step? {
            Step::Go => return Ok(Flow::Ready),
            // After a failed write no further content is lent.
            Step::Write(lot) => {
                group.scheduler.write_out(group, || spilling::write(group, key.token, lot));
            }
            Step::Wait if left.is_zero() => return Ok(Flow::Full),
            Step::Wait => {
                let mut made = room.made.lock().unwrap_or_else(PoisonError::into_inner);
                if !*made {
                    made = room
                        .wake
                        .wait_timeout(made, left.min(LOOK))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0;
                }
                *made = false;
            }
        }
    }
}

/// The next step at `now`. One that `only_checks` writes nothing and gives up no peer.
///
/// # Errors
/// As of [`wait`].
fn next_step(
    connection: &mut Connection,
    group: &Group,
    key: Key,
    (only_checks, now): (bool, u64),
) -> Result<Step, SendError> {
    if connection.wire.is_dead() {
        note_idle_peer(None);
        return Err(SendError::Closed);
    }
    let idle_since = connection.peer_idle_since(key, now);
    let is_full = see_carrier!(connection, |carrier, wire| carrier.is_full(wire, group, key));
    if !is_full || only_checks {
        // The handler goes on. Its peer holds the thread only if the handler makes blocks far ahead of it.
        note_idle_peer(idle_since.filter(|_| connection.is_far_ahead(key)));
        return Ok(if is_full { Step::Wait } else { Step::Go });
    }
    note_idle_peer(idle_since);
    let gives_up = idle_since.is_some_and(|since| has_to_give_up_peer(&group.scheduler, since, now));
    // A response that the application is still making holds its thread by itself, until much more of it is made than was taken.
    if (!gives_up || !connection.is_far_ahead(key))
        && let Some(lot) = spilling::lend(connection, group, Which::All)
    {
        return Ok(Step::Write(lot));
    }
    if gives_up && !connection.has_lent(key) {
        connection.give_up_peer(group, key);
        return Err(SendError::Closed);
    }
    Ok(Step::Wait)
}

#[cfg(test)]
mod tests;
