//! Complete responses of several connections leave by one system call.
//!
//! Promises: what one of them is does not matter to the others; each is sent as if it were alone (`Resident::send_last`), but for the bytes that
//! have left already. Of the slots' locks only one is waited for at a time: a connection whose lock somebody has is sent afterwards.

use std::sync::Arc;

use maitred_dispatch::{Serve, Signals};
use maitred_io::transport::together::{self, Left, MOST};

use super::slots::{Occupied, Token};
use super::{Group, Resident};

/// Sends what these connections have left, at `now` in monotonic nanoseconds.
pub(super) fn send<R: Resident>(group: &Arc<Group<R>>, tokens: &[(u64, Signals)], now: u64) {
    for some in tokens.chunks(MOST) {
        send_some(group, some, now);
    }
}

/// No more than [`MOST`].
fn send_some<R: Resident>(group: &Arc<Group<R>>, tokens: &[(u64, Signals)], now: u64) {
    let mut held: [Option<Occupied<'_, R>>; MOST] = std::array::from_fn(|place| {
        let token = Token::from_u64(tokens.get(place)?.0);
        let slot = group.slots.find(token.slot)?;
        slot.try_lock().filter(|_| slot.generation() == token.generation)
    });
    let mut left = [Left::Bytes(0); MOST];
    let offers: [_; MOST] = std::array::from_fn(|place| held[place].as_ref()?.as_ref()?.offer());
    together::send(&offers, &mut left);
    let mut others = [false; MOST];
    for (place, (token, _)) in tokens.iter().enumerate() {
        // The lock is given back after each.
        let Some(mut occupied) = held[place].take() else {
            others[place] = true;
            continue;
        };
        let Some(connection) = occupied.as_mut() else { continue };
        let token = Token::from_u64(*token);
        connection.note_left(group, token, left[place]);
        connection.send_last(group, token, now);
        connection.account(group);
    }
    let others = tokens.iter().zip(others).filter(|(_, is_other)| *is_other);
    others.for_each(|((token, _), _)| group.send(*token, now));
}
