//! Requests that were answered before they were complete, and whose rest is still on its way.
//!
//! A server may end such a stream by a reset without an error behind its answer (RFC 9113 section 8.1). Some clients drop an answer that they have
//! not yet looked at when they find the reset (curl 7.88 while it sends). So the reset waits until the peer has used the stream's window up: it
//! has read what was sent to it by then, or it would send more if it could.

use maitred_h2::{Connection, ErrorCode};

/// How many resets may wait; for a further one the oldest is sent.
const MOST: usize = 8;

/// A peer that may send no more than this is told: some clients send whole frames only (RFC 9113 section 4.2: 16,384 bytes).
const LITTLE: u32 = 16_384;

/// The numbers of their streams, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Unwanted(Vec<u32>);

impl Unwanted {
    /// The answer to `stream` is complete, and its request is not.
    pub(super) fn begin(&mut self, stream: u32, http2: &mut Connection, out: &mut Vec<u8>) {
        self.0.push(stream);
        if self.0.len() > MOST {
            http2.put_reset(self.0.remove(0), ErrorCode::NoError, out);
        }
        self.look(stream, http2, out);
    }

    /// More of `stream` has come.
    pub(super) fn look(&mut self, stream: u32, http2: &mut Connection, out: &mut Vec<u8>) {
        if http2.window_of(stream) <= LITTLE && self.end(stream) {
            http2.put_reset(stream, ErrorCode::NoError, out);
        }
    }

    /// The peer has ended `stream`; whether it was one of these.
    pub(super) fn end(&mut self, stream: u32) -> bool {
        let place = self.0.iter().position(|number| *number == stream);
        place.map(|place| self.0.remove(place)).is_some()
    }
}
