//! Bodies that are there as a whole, made gzip in one call by libdeflate: it sees all of the body before it writes any of
//! it, and has no state to keep from one call to the next.
//!
//! A thread keeps what it needs for the next body.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor};

use super::encoder::Failed;

/// The largest body, in bytes: with the room for it a thread keeps at most a little more than twice that. Larger ones are made as
/// streams are.
pub(super) const MAX_BODY: usize = 1024 * 1024;

/// More room is not kept for the next body: most are smaller.
const MAX_KEPT: usize = 256 * 1024;

struct Kept {
    level: u8,
    compressor: Compressor,
    /// Where it writes: it wants room for the most that can come out.
    room: Vec<u8>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// Appends the body in the format of gzip (RFC 1952).
pub(super) fn gzip(level: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failed> {
    KEPT.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|kept| kept.level != level) {
            let known = CompressionLvl::new(level.into()).map_err(|_| Failed)?;
            *kept = Some(Kept { level, compressor: Compressor::new(known), room: Vec::new() });
        }
        let Some(Kept { compressor, room, .. }) = kept else { return Err(Failed) };
        let bound = compressor.gzip_compress_bound(body.len());
        if room.len() < bound {
            // Made anew rather than grown: nobody needs what is in it.
            *room = vec![0; bound];
        }
        let made = compressor.gzip_compress(body, room).map_err(|_| Failed)?;
        out.extend_from_slice(room.get(..made).ok_or(Failed)?);
        if room.len() > MAX_KEPT {
            *room = Vec::new();
        }
        Ok(())
    })
}
