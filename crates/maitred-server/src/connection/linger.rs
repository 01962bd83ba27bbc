//! The end after a last response: our side is closed, and what the peer still sends is read and
//! dropped, so that the reset that would follow does not take the response away (RFC 9112 §9.6).

use maitred_io::transport::Moved;

use super::wire::{MAX_RECEIVES_A_TURN, Phase, Wire};
use super::{Context, Turn};

/// After a last response the peer may still be sending; what it sends is read and dropped until
/// nothing has come for this long, so that the reset that would follow does not take the response
/// away (RFC 9112 §9.6).
const LINGER: u64 = 2_000_000_000;

impl Wire {
    /// Ends our side after the last response, and reads on if the peer may still be sending. `is_between`: no incomplete
    /// request has been received.
    pub(super) fn end_gently(&mut self, context: &mut Context<'_>, is_between: bool) -> Turn {
        if self.input.is_empty() && is_between && !self.unread {
            return Turn::Close;
        }
        self.transport.shutdown_write();
        self.listen_again(context.group, context.token);
        self.phase = Phase::Lingering;
        self.input = Vec::new();
        self.unread = true;
        self.grant_linger(context);
        self.linger(context)
    }

    /// Grants the peer another slice of lingering time.
    pub(super) fn grant_linger(&mut self, context: &Context<'_>) {
        self.lingers += 1;
        self.lingering = false;
        self.set_deadline(context, context.now + LINGER);
    }

    /// Reads and drops bytes of the peer. Returns `Close` when the peer has ended its side, else the turn in which more may come.
    pub(super) fn linger(&mut self, context: &mut Context<'_>) -> Turn {
        let mut buffer = context.scratch.take_receive();
        let turn = (|| {
            for _ in 0..MAX_RECEIVES_A_TURN {
                match self.transport.receive(&mut buffer) {
                    Moved::Bytes(_) => self.lingering = true,
                    Moved::Blocked => return Turn::Wait,
                    Moved::End | Moved::Failed(_) => return Turn::Close,
                }
            }
            Turn::Later
        })();
        context.scratch.return_receive(buffer);
        turn
    }
}
