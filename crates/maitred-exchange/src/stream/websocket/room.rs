//! Memory of messages: the limit of one WebSocket, and of all together.
//!
//! ```text
//!   0 ......... INBOX ...... half the budget ....... twice the budget
//!   each may    all read         sockets without a message   who wants more than INBOX
//!   have that   ahead            read for a waiting handler  is closed with 1013
//! ```
//! A waiting handler gets its next message also when others hold the budget, so no WebSocket stands still. Bodies
//! hold at most the budget; beyond it only messages grow.

use maitred_io::clock;
use maitred_runtime::Messages;

use super::{INBOX, Socket};
use crate::site::Site;

/// Bytes inflated at once when there is little room; they become 66 KB at most.
const LITTLE: usize = 64;

/// Number of messages of the longest kind that fit beyond the budget, however small the budget is.
const LEAST: u64 = 4;

impl Socket {
    /// Whether more may be read. Notes otherwise that the handler has to ask for messages first.
    pub fn takes_more(&mut self) -> bool {
        let waits = self.awaited && self.inbox.is_empty();
        let has_room = waits || self.kept.held() == 0 || !self.kept.memory().is_half_held();
        let more = self.closed.is_none() && self.inbox.waiting() <= INBOX && has_room;
        self.stopped = !more;
        more
    }

    /// The part of `data` that is decoded before the next look at the budget.
    pub fn step_of<'a>(&self, data: &'a [u8]) -> &'a [u8] {
        let is_little = self.compressed && self.kept.memory().is_half_held();
        if is_little { data.get(..LITTLE).unwrap_or(data) } else { data }
    }

    /// Whether the next message has no room although the handler waits.
    pub fn has_no_room(&self, site: &Site) -> bool {
        let figures = self.kept.memory().figures();
        let longest = site.websockets.as_ref().map_or(0, |settings| settings.max_message);
        let most = figures.most.max(longest.saturating_mul(LEAST)).saturating_mul(2);
        self.kept.held() > 0 && figures.held > most
    }

    /// Reports the memory of the messages to the budget.
    pub fn count(&mut self) {
        self.kept.change((self.inbox.held() + self.given).saturating_sub(INBOX) as u64);
    }

    /// Moves whole messages to the handler. Returns whether reading had stopped and may go on.
    pub fn hand_out(&mut self, into: &mut Messages) -> bool {
        self.inbox.move_to(into);
        self.inbox.release();
        self.given = into.held();
        self.awaited = into.is_empty();
        self.count();
        let goes_on = self.stopped && self.takes_more();
        if goes_on {
            // The peer could not be heard meanwhile.
            (self.heard, self.asked) = (clock::monotonic(), 0);
        }
        goes_on
    }
}
