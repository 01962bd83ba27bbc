//! Counters of a connection, for statistics.

/// Frame types with a count of their own: those of RFC 9113 §6 by their numbers 0 to 9, then PRIORITY_UPDATE, then all others.
pub const FRAME_TYPES: [&str; 12] = [
    "data",
    "headers",
    "priority",
    "rst_stream",
    "settings",
    "push_promise",
    "ping",
    "goaway",
    "window_update",
    "continuation",
    "priority_update",
    "other",
];

/// Counts since the last call of [`Connection::counted`](crate::Connection::counted).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Frames received, in the order of [`FRAME_TYPES`].
    pub received: [u64; FRAME_TYPES.len()],
    /// Frames sent, in the same order.
    pub sent: [u64; FRAME_TYPES.len()],
    /// Streams that the peer has refused by RST_STREAM while they were open.
    pub resets_received: u64,
    /// Streams that this side has reset.
    pub resets_sent: u64,
    /// Streams that were refused because too many were open.
    pub refused: u64,
    /// Bytes of header blocks received, as they came, and the names and values in them.
    pub heads_received: (u64, u64),
    /// Bytes of header blocks sent: as they left, and the names and values in them.
    pub heads_sent: (u64, u64),
}

impl Counted {
    pub(crate) fn note_received(&mut self, kind: u8) {
        count(&mut self.received, kind);
    }

    pub(crate) fn note_sent(&mut self, kind: u8) {
        count(&mut self.sent, kind);
    }
}

fn count(counts: &mut [u64; FRAME_TYPES.len()], kind: u8) {
    let place = match kind {
        0..=9 => usize::from(kind),
        crate::frame::PRIORITY_UPDATE => 10,
        _ => 11,
    };
    if let Some(count) = counts.get_mut(place) {
        *count += 1;
    }
}
