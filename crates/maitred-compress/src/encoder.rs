//! The compressors, behind one interface: blocks go in, and the output can be decoded at once.
//!
//! Promises: the output of [`Encoder::block`] so far decodes to the whole input; nothing is held back. A thread keeps
//! one compressor of gzip and one of zstd for the next response, which takes over its memory.

use std::cell::RefCell;

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderStateStruct};
use flate2::{Compress, Compression as GzipLevel, FlushCompress, Status};
use maitred_http::coding::Coding;
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

/// The window of deflate is 32 KiB at most (RFC 1951 §2).
const GZIP_WINDOW_BITS: u8 = 15;

/// The window of zstd and brotli for a body of unknown length: many of them may be open for long. Four times that of
/// gzip.
const STREAM_WINDOW_BITS: u32 = 17;

/// The smallest and the largest window for a body that is there as a whole. Below the first, brotli takes tables for large ones;
/// the second is far below what every decoder has to take (RFC 9659: 8 MiB).
const MIN_WINDOW_BITS: u32 = 17;
const MAX_WINDOW_BITS: u32 = 20;

/// Output is made in steps of at least so many bytes. zlib asks for more than six, or repeats its flush marks.
const STEP: usize = 512;

/// A compressor that takes more, in bytes, is not kept for the next response: one of zstd is as large as its largest body has
/// made it.
const MAX_KEPT: usize = 4 * 1024 * 1024;

/// A compressor could not go on: the memory for it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed;

/// A response that is being compressed.
pub struct Encoder {
    /// Always there but while it is dropped.
    state: Option<State>,
    level: u8,
}

enum State {
    Gzip(Box<Compress>),
    Zstd(CCtx<'static>),
    Brotli(Box<BrotliEncoderStateStruct<StandardAlloc>>),
}

thread_local! {
    /// The compressors that the last responses of this thread have left, with their level.
    static SPARE: RefCell<[Option<(State, u8)>; 2]> = const { RefCell::new([None, None]) };
}

/// About how much memory the compressor of an unfinished response takes, in bytes.
pub(crate) fn memory(coding: Coding, level: u8) -> u64 {
    const KIB: u64 = 1024;
    match (coding, level) {
        (Coding::Identity, _) => 0,
        // Of zlib-rs: 64 KiB for the window, 64 and 128 for its tables, 80 for unwritten output, and the surrounding
        // structures.
        (Coding::Gzip, _) => 384 * KIB,
        // The size by ZSTD_sizeof_CCtx, rounded up.
        (Coding::Zstd, _) => 1792 * KIB,
        // The ring buffer, the table of hashes (of level 5 on 16 to 32 places in each of 16,384), commands.
        (Coding::Brotli, 0..=4) => 1536 * KIB,
        (Coding::Brotli, 5) => 2048 * KIB,
        (Coding::Brotli, _) => 3072 * KIB,
    }
}

/// Compresses a body that is there as a whole, and appends that to `out`. `coding` compresses.
///
/// # Errors
/// There is no memory for it.
pub fn whole(coding: Coding, level: u8, body: &[u8], out: &mut Vec<u8>) -> Result<(), Failed> {
    Encoder::new(coding, level, Some(body.len() as u64))?.last(body, out)
}

impl Encoder {
    /// A compressor for a body of `length` bytes, if that is known. `coding` compresses.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn new(coding: Coding, level: u8, length: Option<u64>) -> Result<Self, Failed> {
        let spare = SPARE.with_borrow_mut(|spare| spare.get_mut(place(coding)?)?.take());
        let spare = spare.filter(|(_, known)| *known == level).map(|(state, _)| state);
        let state = match (coding, spare) {
            (Coding::Gzip, Some(state)) => state,
            (Coding::Gzip | Coding::Identity, _) => {
                State::Gzip(Box::new(Compress::new_gzip(GzipLevel::new(level.into()), GZIP_WINDOW_BITS)))
            }
            (Coding::Zstd, spare) => {
                let context = match spare {
                    Some(State::Zstd(context)) => context,
                    _ => CCtx::try_create().ok_or(Failed)?,
                };
                State::Zstd(set_up_zstd(context, level, length)?)
            }
            (Coding::Brotli, _) => State::Brotli(brotli(level, length)),
        };
        Ok(Self { state: Some(state), level })
    }

    /// Compresses a part of the body. The bytes that are appended to `out` can be decoded without later ones.
    ///
    /// # Errors
    /// Nothing can be appended any more.
    pub fn block(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Failed> {
        if input.is_empty() {
            return Ok(());
        }
        match self.state.as_mut().ok_or(Failed)? {
            State::Gzip(deflate) => run_deflate(deflate, input, out, FlushCompress::Sync),
            State::Zstd(context) => run_zstd(context, input, out, ZSTD_EndDirective::ZSTD_e_flush),
            State::Brotli(state) => {
                run_brotli(state, input, out, BrotliEncoderOperation::BROTLI_OPERATION_FLUSH)
            }
        }
    }

    /// Compresses the last part of the body, and ends it.
    ///
    /// # Errors
    /// The end is missing.
    pub fn last(mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), Failed> {
        match self.state.as_mut().ok_or(Failed)? {
            State::Gzip(deflate) => run_deflate(deflate, input, out, FlushCompress::Finish),
            State::Zstd(context) => run_zstd(context, input, out, ZSTD_EndDirective::ZSTD_e_end),
            State::Brotli(state) => {
                run_brotli(state, input, out, BrotliEncoderOperation::BROTLI_OPERATION_FINISH)
            }
        }
    }
}

impl Drop for Encoder {
    /// Leaves its memory to the next response of this thread.
    fn drop(&mut self) {
        let Some(state) = self.state.take() else { return };
        let (coding, state) = match state {
            State::Gzip(mut deflate) => {
                deflate.reset();
                (Coding::Gzip, State::Gzip(deflate))
            }
            // It is reset before it is used.
            State::Zstd(context) if context.sizeof() <= MAX_KEPT => (Coding::Zstd, State::Zstd(context)),
            State::Zstd(_) | State::Brotli(_) => return,
        };
        let level = self.level;
        // A thread that ends has none any more.
        let _ = SPARE.try_with(|spare| {
            if let Some(place) = place(coding) {
                spare.borrow_mut()[place] = Some((state, level));
            }
        });
    }
}

/// Where a thread keeps a compressor for the next response. One of brotli cannot be used again.
fn place(coding: Coding) -> Option<usize> {
    match coding {
        Coding::Gzip => Some(0),
        Coding::Zstd => Some(1),
        Coding::Identity | Coding::Brotli => None,
    }
}

fn window_bits(length: Option<u64>) -> u32 {
    match length {
        None => STREAM_WINDOW_BITS,
        Some(length) => length.max(1).next_power_of_two().ilog2().clamp(MIN_WINDOW_BITS, MAX_WINDOW_BITS),
    }
}

fn set_up_zstd(mut context: CCtx<'static>, level: u8, length: Option<u64>) -> Result<CCtx<'static>, Failed> {
    let set_up = context.reset(ResetDirective::SessionAndParameters).and_then(|_| {
        context.set_parameter(CParameter::CompressionLevel(level.into()))?;
        // Where the length is known the tables are fitted to it.
        context.set_parameter(CParameter::WindowLog(window_bits(length)))?;
        if length.is_none() && level > 3 {
            // Those of level 3: from there on they grow to ten MiB, which a window of this size does not need.
            context.set_parameter(CParameter::HashLog(17))?;
            context.set_parameter(CParameter::ChainLog(16))?;
        }
        context.set_pledged_src_size(length)
    });
    set_up.map_err(|_| Failed)?;
    Ok(context)
}

fn brotli(level: u8, length: Option<u64>) -> Box<BrotliEncoderStateStruct<StandardAlloc>> {
    let mut state = Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default()));
    state.params.quality = level.into();
    state.params.lgwin = window_bits(length) as i32;
    state.params.size_hint = length.map_or(0, |length| usize::try_from(length).unwrap_or(usize::MAX));
    state
}

fn run_deflate(
    deflate: &mut Compress,
    mut input: &[u8],
    out: &mut Vec<u8>,
    flush: FlushCompress,
) -> Result<(), Failed> {
    loop {
        out.reserve(STEP.max(input.len() / 4));
        let before = deflate.total_in();
        let status = deflate.compress_vec(input, out, flush).map_err(|_| Failed)?;
        let taken = usize::try_from(deflate.total_in() - before).unwrap_or(usize::MAX);
        input = input.get(taken..).unwrap_or_default();
        let is_done = match flush {
            FlushCompress::Finish => status == Status::StreamEnd,
            // With room left over, nothing is held back.
            _ => input.is_empty() && out.len() < out.capacity(),
        };
        if is_done {
            return Ok(());
        }
    }
}

fn run_zstd(
    context: &mut CCtx<'static>,
    input: &[u8],
    out: &mut Vec<u8>,
    directive: ZSTD_EndDirective,
) -> Result<(), Failed> {
    let mut input = InBuffer::around(input);
    loop {
        out.reserve(STEP.max((input.src.len() - input.pos()) / 4));
        let filled = out.len();
        let mut output = OutBuffer::around_pos(out, filled);
        let left = context.compress_stream2(&mut output, &mut input, directive).map_err(|_| Failed)?;
        if left == 0 && input.pos() == input.src.len() {
            return Ok(());
        }
    }
}

fn run_brotli(
    state: &mut BrotliEncoderStateStruct<StandardAlloc>,
    input: &[u8],
    out: &mut Vec<u8>,
    operation: BrotliEncoderOperation,
) -> Result<(), Failed> {
    let (mut left, mut offset) = (input.len(), 0);
    loop {
        // Without room for output, the output stays in the encoder's own memory and is taken from there.
        let went_on = state.compress_stream(
            operation,
            &mut left,
            input,
            &mut offset,
            &mut 0,
            &mut [],
            &mut 0,
            &mut None,
            &mut |_, _, _, _| (),
        );
        if !went_on {
            return Err(Failed);
        }
        let mut size = 0;
        let made = state.take_output(&mut size);
        // It is a view of everything behind.
        out.extend_from_slice(made.get(..size).unwrap_or_default());
        // Taking output may have made room: only a call without output shows that all of it was taken.
        if left == 0 && size == 0 {
            let is_finish = operation == BrotliEncoderOperation::BROTLI_OPERATION_FINISH;
            return if is_finish && !state.is_finished() { Err(Failed) } else { Ok(()) };
        }
    }
}

#[cfg(test)]
#[path = "encoder_tests.rs"]
mod tests;
