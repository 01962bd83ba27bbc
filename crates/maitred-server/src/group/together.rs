//! Complete responses of several connections leave by one system call.
//!
//! Promises: what one of them is does not matter to the others; each is sent as if it were alone (`Resident::send_last`), but for the bytes that
//! have left already. Nobody waits for a slot's lock while more than one is held, and nothing else is sent meanwhile: files and what else may take long
//! are sent afterwards, one by one.

use std::sync::Arc;

use maitred_dispatch::Signals;
pub(super) use maitred_io::transport::together::MOST;
use maitred_io::transport::together::{self, Left};

use super::slots::{Occupied, Token};
use super::{Group, Resident};

/// Sends what these connections have left and can be sent together, at most [`MOST`] of them. The rest is for `Serve::send`, in any case.
pub(super) fn send<R: Resident>(group: &Arc<Group<R>>, tokens: &[(u64, Signals)]) {
    if tokens.len() < 2 {
        return;
    }
    let mut held: [Option<Occupied<'_, R>>; MOST] = std::array::from_fn(|place| {
        let token = Token::from_u64(tokens.get(place)?.0);
        let slot = group.slots.find(token.slot)?;
        let occupied = slot.try_lock().filter(|_| slot.generation() == token.generation)?;
        let offers = occupied.as_ref().is_some_and(|connection| connection.offer().is_some());
        offers.then_some(occupied)
    });
    let mut left = [Left::Bytes(0); MOST];
    let offers: [_; MOST] = std::array::from_fn(|place| held[place].as_ref()?.as_ref()?.offer());
    together::send(&offers, &mut left);
    // All of it first: what has left must not leave again.
    for ((occupied, left), (token, _)) in held.iter_mut().zip(left).zip(tokens) {
        if let Some(connection) = occupied.as_mut().and_then(|occupied| occupied.as_mut()) {
            connection.note_left(group, Token::from_u64(*token), left);
        }
    }
}
