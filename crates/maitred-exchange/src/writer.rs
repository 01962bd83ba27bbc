//! The output queue of one connection.
//!
//! Content goes in, and the transport makes bytes for the socket of it (TLS encrypts). The socket takes as much as it
//! can. The rest stays here, and the next edge of the descriptor sends on; no thread waits for the peer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maitred_io::clock;
use maitred_io::transport::SEND_AHEAD;
use maitred_limits::minimum::RateWatch;
use maitred_runtime::{Content, FileRange, Last, Owner};

use crate::memory::{MAX_SPARE, recycle_buffer, spare_buffer};
use crate::record::{Record, RequestSummary};
use crate::spill::{Counted, Lot, MIN_COUNTED, Part, Spilled, Spilling, Which, Written};

/// Most segments for which a writer kept for reuse has room.
const MAX_KEPT_SEGMENTS: usize = 64;

/// Largest size of a segment to which small parts are appended. With one segment for each short message, a stream to
/// a slow reader would take many times its length in memory, and one segment of the call for each message.
const MAX_JOINED: usize = 16 * 1024;

/// Largest buffer that is copied behind the bytes before it; a larger one becomes a segment of its own.
const COPIED: u64 = 4 * 1024;

/// A peer that takes this many bytes within [`LONG`] reads fast: 4 Mbit/s. The kernel takes half of them without any
/// reading, so a peer that reaches the number has read.
const SWIFT: u64 = 2 * SEND_AHEAD as u64;

/// The time of one measurement of the peer's speed, in nanoseconds.
const LONG: u64 = 1_000_000_000;

/// The queued bytes and file ranges of a connection, in order.
#[derive(Default)]
pub struct Writer {
    segments: VecDeque<Segment>,
    /// Queued bytes in memory.
    held: u64,
    /// Queued bytes that were in memory and are in files now.
    filed: u64,
    /// The queue has content that [`count`](Self::count) has not looked at.
    uncounted: bool,
    /// The spooler has been asked to write the queue to a file.
    pub asked: bool,
    /// Writing to a file has failed: the queue stays in memory.
    keeps: bool,
    /// System number of the thread that queued bytes last; 0 for none.
    pub thread: i32,
    /// The application's label for the response.
    pub label: Option<Arc<str>>,
    /// Bytes that have left since `since`.
    sent: u64,
    /// Begin of the present use, in nanoseconds of the coarse monotonic clock.
    since: u64,
    /// Time of the last answer of [`is_swift`](Self::is_swift), on the same clock, and `sent` at that time.
    looked: (u64, u64),
    /// No byte has left since the last call of [`is_stuck`](Self::is_stuck).
    stuck: bool,
    /// The socket is full, and no turn has come since. The turn of an edge clears this.
    blocked: bool,
    /// The time that the peer has left to take the queue; none while the queue does not wait for the peer.
    pub patience: Option<RateWatch>,
    /// Records of the exchanges whose last bytes are in the queue.
    pub records: Vec<Record>,
}

struct Segment {
    content: Content,
    /// Bytes of the content that have left.
    done: u64,
    /// The file of the content, if it was in memory before. The field stands behind `content`, so that it is dropped
    /// later.
    spilled: Option<Arc<Spilled>>,
    counted: Option<Counted>,
    /// Number under which the segment is being written to a file; 0 while it is not.
    ticket: u64,
}

/// Queued bytes by place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in files that were in memory before.
    pub file: u64,
}

/// State of an output queue.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Begin of the delivery, in nanoseconds of the coarse monotonic clock.
    pub since: u64,
    /// Bytes that have left since then.
    pub sent: u64,
    /// Bytes that have not left.
    pub remaining: u64,
    /// Rate limit in bytes a second, if any.
    pub limit: Option<u64>,
    /// Unsent bytes in memory, and unsent bytes moved from memory to a file.
    pub marks: Marks,
    /// System number of the thread that queued bytes last; 0 for the engine's own answers.
    pub thread: i32,
    /// The application's label for the response.
    pub label: Option<Arc<str>>,
    /// The request of the response, the last one of several; and the number of its pool, none for the engine's own
    /// answers.
    pub answers: Option<(RequestSummary, Option<usize>)>,
}

impl Writer {
    /// Queued bytes in memory.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Queued bytes in memory and in files.
    pub fn marks(&self) -> Marks {
        Marks { memory: self.held, file: self.filed }
    }

    /// Bytes that have left since the present use began.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Queued bytes, up to `most`.
    pub fn waiting(&self, most: u64) -> u64 {
        let mut waiting = 0;
        for segment in &self.segments {
            waiting += segment.content.len() - segment.done;
            if waiting >= most {
                return most;
            }
        }
        waiting
    }

    /// Begins a new use.
    pub fn begin(&mut self) {
        self.since = clock::monotonic_coarse();
        self.looked = (self.since, 0);
    }

    /// Returns a view of the sent and queued bytes.
    pub fn show(&self) -> Delivery {
        let remaining = self.segments.iter().map(|segment| segment.content.len() - segment.done).sum();
        let (marks, label) = (self.marks(), self.label.clone());
        Delivery {
            since: self.since,
            sent: self.sent,
            remaining,
            limit: None,
            marks,
            thread: self.thread,
            label,
            answers: None,
        }
    }

    /// Whether no byte has left since the last call.
    pub fn is_stuck(&mut self) -> bool {
        std::mem::replace(&mut self.stuck, true)
    }

    /// Whether another attempt at the socket is in vain.
    pub fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// Notes that the socket takes no more.
    pub fn note_blocked(&mut self) {
        self.blocked = true;
    }

    /// Notes a turn: the socket may have room.
    pub fn note_turn(&mut self) {
        self.blocked = false;
    }

    /// Whether the peer reads fast; none until the peer has taken `SWIFT` bytes or `LONG` has passed.
    pub fn is_swift(&mut self) -> Option<bool> {
        let now = clock::monotonic_coarse();
        let (then, sent) = self.looked;
        let has_taken = self.sent - sent >= SWIFT;
        if !has_taken && now.saturating_sub(then) < LONG {
            return None;
        }
        self.looked = (now, self.sent);
        Some(has_taken && now.saturating_sub(then) <= LONG)
    }

    /// Empties the writer for the next use. Returns false when the writer holds too much memory to be kept.
    pub fn clear(&mut self) -> bool {
        self.segments.clear();
        (self.held, self.filed, self.sent, self.patience) = (0, 0, 0, None);
        (self.stuck, self.uncounted, self.asked, self.keeps) = (false, false, false, false);
        self.blocked = false;
        (self.thread, self.label) = (0, None);
        self.segments.capacity() <= MAX_KEPT_SEGMENTS
    }

    /// Appends `content` without its first `done` bytes, which have left already.
    pub fn push(&mut self, content: Content, done: u64) {
        self.sent += done;
        if done < content.len() {
            if !matches!(content, Content::File(_)) {
                self.held += content.len() - done;
                self.uncounted |= content.len() > MIN_COUNTED;
            }
            self.segments.push_back(Segment { content, done, spilled: None, counted: None, ticket: 0 });
        }
    }

    /// Moves `bytes` to the queue and leaves an empty vector.
    pub fn push_all(&mut self, bytes: &mut Vec<u8>) {
        if let Some(Segment { content: Content::Bytes(last), .. }) = self.segments.back_mut()
            && last.len() + bytes.len() <= MAX_JOINED
        {
            self.held += bytes.len() as u64;
            last.append(bytes);
        } else {
            self.push(std::mem::take(bytes).into(), 0);
        }
    }

    /// Appends a copy of `bytes`.
    fn push_copy(&mut self, bytes: &[u8]) {
        if let Some(Segment { content: Content::Bytes(last), .. }) = self.segments.back_mut()
            && last.len() + bytes.len() <= MAX_JOINED
        {
            self.held += bytes.len() as u64;
            last.extend_from_slice(bytes);
        } else {
            self.push(bytes.to_vec().into(), 0);
        }
    }

    /// The queued contents, each with its number of bytes that have left.
    pub fn contents(&self) -> impl ExactSizeIterator<Item = (&Content, u64)> {
        self.segments.iter().map(|segment| (&segment.content, segment.done))
    }

    /// Prepares the first `count` bytes for [`move_to`](Self::move_to) and returns their number, at most one part of
    /// a file. With `reads` the beginning of a file part is read: a transport that changes bytes reads it anyway, and
    /// head and data of a frame become one record.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    pub fn prepare(&mut self, count: u64, reads: bool) -> io::Result<u64> {
        let Some(first) = self.segments.front_mut() else { return Ok(0) };
        let Content::File(range) = &first.content else { return Ok(count) };
        let here = count.min(range.length - first.done);
        if !reads {
            // A failure in the middle of a frame would come too late: no frame could follow.
            let is_there = range.file.metadata()?.len() >= range.offset + first.done + here;
            return if is_there { Ok(here) } else { Err(shortened(io::ErrorKind::UnexpectedEof.into())) };
        }
        let mut bytes = spare_buffer();
        // At most the length of a frame.
        bytes.resize(here as usize, 0);
        range.file.read_exact_at(&mut bytes, range.offset + first.done).map_err(shortened)?;
        first.done += here;
        if first.spilled.is_some() {
            self.filed -= here;
        }
        if first.done == first.content.len() {
            self.segments.pop_front();
        }
        self.held += here;
        let content = Content::Bytes(bytes);
        self.segments.push_front(Segment { content, done: 0, spilled: None, counted: None, ticket: 0 });
        Ok(here)
    }

    /// Moves the first `count` bytes, which must exist, to another writer: parts of files as ranges, bytes in memory
    /// as a copy or as a whole buffer.
    pub fn move_to(&mut self, other: &mut Self, mut count: u64) {
        while let Some(first) = self.segments.front_mut() {
            let here = count.min(first.content.len() - first.done);
            if here == 0 {
                break;
            }
            match &mut first.content {
                Content::Bytes(bytes) if first.done == 0 && here == bytes.len() as u64 && here > COPIED => {
                    let whole = std::mem::take(bytes);
                    other.push(Content::Bytes(whole), 0);
                    self.segments.pop_front();
                    self.held -= here;
                    self.sent += here;
                }
                Content::File(range) => {
                    let offset = range.offset + first.done;
                    let file = FileRange { file: Arc::clone(&range.file), offset, length: here };
                    other.push(Content::File(file), 0);
                    self.advance(here);
                }
                _ => {
                    if let Some(bytes) = first.rest() {
                        other.push_copy(&bytes[..here as usize]);
                    }
                    self.advance(here);
                }
            }
            count -= here;
        }
        self.stuck = false;
    }

    /// Notes that so many bytes have left.
    pub fn advance(&mut self, mut count: u64) {
        self.stuck = false;
        self.sent += count;
        while let Some(first) = self.segments.front_mut() {
            let left = first.content.len() - first.done;
            let here = left.min(count);
            match (&first.content, &first.spilled) {
                (Content::File(_), Some(_)) => self.filed -= here,
                (Content::File(_), None) => {}
                _ => self.held -= here,
            }
            if here < left {
                first.done += here;
                return;
            }
            count -= here;
            if let Some(Segment { content: Content::Bytes(bytes), .. }) = self.segments.pop_front() {
                recycle_buffer(bytes);
            }
            if count == 0 {
                return;
            }
        }
    }
}

impl Writer {
    /// Counts the queued content in the memory of slow readers.
    pub fn count(&mut self, spilling: &Spilling) {
        if !std::mem::take(&mut self.uncounted) {
            return;
        }
        for segment in &mut self.segments {
            if segment.counted.is_none() {
                segment.counted = spilling.count(&segment.content);
            }
        }
    }

    /// Whether some queued content is counted.
    pub fn has_counted(&self) -> bool {
        self.segments.iter().any(|segment| segment.counted.is_some())
    }

    /// Lends the content in memory that is not being written to a file, as long as at most `most` bytes are in files
    /// afterwards.
    pub fn lend(&mut self, which: Which, most: u64) -> Option<Lot> {
        static NEXT_TICKET: AtomicU64 = AtomicU64::new(1);
        let mut room = if self.keeps { 0 } else { most.saturating_sub(self.filed) };
        let mut parts = Vec::new();
        for segment in self.segments.iter_mut().filter(|segment| segment.is_wanted(which)) {
            let left = segment.content.len() - segment.done;
            if left > room {
                break;
            }
            room -= left;
            segment.ticket = NEXT_TICKET.fetch_add(1, Ordering::Relaxed);
            let content = segment.share();
            parts.push(Part { ticket: segment.ticket, content, done: segment.done });
        }
        let file = self.segments.iter().rev().find_map(|segment| segment.spilled.clone());
        (!parts.is_empty()).then_some(Lot { parts, file })
    }

    /// Replaces lent content by the ranges of the file that holds it now.
    pub fn exchange(&mut self, written: &Written) {
        let Some(file) = written.file.file() else { return };
        let mut kept: VecDeque<Segment> = VecDeque::with_capacity(self.segments.len());
        for mut segment in self.segments.drain(..) {
            // Tickets rise within a lot. Content that has left meanwhile has no segment.
            if let Ok(place) = written.places.binary_search_by_key(&segment.ticket, |(ticket, ..)| *ticket) {
                let (_, offset, before) = written.places[place];
                let left = segment.content.len() - segment.done;
                self.held -= left;
                self.filed += left;
                let (offset, length) = (offset + segment.done - before, left);
                if let Some(Segment { content: Content::File(range), spilled: Some(last), .. }) =
                    kept.back_mut()
                    && Arc::ptr_eq(last, &written.file)
                    && range.offset + range.length == offset
                {
                    range.length += length;
                    continue;
                }
                let content = Content::File(FileRange { file: Arc::clone(&file), offset, length });
                let spilled = Some(Arc::clone(&written.file));
                segment = Segment { content, done: 0, spilled, counted: None, ticket: 0 };
            }
            kept.push_back(segment);
        }
        self.segments = kept;
    }

    /// Whether content is being written to a file.
    pub fn has_lent(&self) -> bool {
        self.segments.iter().any(|segment| segment.ticket != 0)
    }

    /// Takes back lent content that could not be written; the writer stays in memory from then on.
    pub fn take_back(&mut self, parts: &[Part]) {
        for segment in &mut self.segments {
            if parts.iter().any(|part| part.ticket == segment.ticket) {
                segment.ticket = 0;
                self.keeps = true;
            }
        }
    }
}

impl Segment {
    /// Whether `which` includes this segment and no writing to a file is under way.
    fn is_wanted(&self, which: Which) -> bool {
        self.ticket == 0
            && !matches!(self.content, Content::File(_))
            && (which == Which::All || self.counted.as_ref().is_some_and(Counted::is_only))
    }

    /// Returns the content as a shared handle, without a copy.
    fn share(&mut self) -> Content {
        if let Content::Bytes(bytes) = &mut self.content {
            self.content = Content::Owned(Owner::new(std::mem::take(bytes)));
        }
        self.content.clone()
    }

    /// The bytes that have not left; `None` for a file.
    fn rest(&self) -> Option<&[u8]> {
        self.content.bytes().map(|bytes| &bytes[self.done as usize..])
    }
}

thread_local! {
    #[expect(clippy::vec_box, reason = "it moves in and out of connections by its pointer")]
    static SPARE: RefCell<Vec<Box<Writer>>> = const { RefCell::new(Vec::new()) };
}

/// An empty writer.
pub fn spare_writer() -> Box<Writer> {
    let mut writer = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
    writer.begin();
    writer
}

/// Keeps the memory of a writer.
pub fn recycle_writer(mut writer: Box<Writer>) {
    if writer.clear() {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < MAX_SPARE {
                spare.push(writer);
            }
        });
    }
}

/// Names the cause of a file that ended too early; returns other errors unchanged.
pub fn shortened(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    io::Error::new(error.kind(), "the file has become shorter while it was being sent")
}

/// The bytes of content in memory; `None` for a file.
pub fn last_bytes<'a>(last: &'a Last<'_>) -> Option<&'a [u8]> {
    match last {
        Last::Given(content) => content.bytes(),
        Last::Lent(lender) => Some(lender.bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_small_parts_cost_no_more_than_twice_their_bytes() {
        let (mut writer, mut expected) = (Writer::default(), Vec::new());
        for number in 0..100_000_u32 {
            let mut part = number.to_le_bytes().to_vec();
            expected.extend_from_slice(&part);
            writer.push_all(&mut part);
            assert!(part.is_empty());
            if number % 10_000 == 0 {
                writer.push(Content::Static(b"between"), 0);
                expected.extend_from_slice(b"between");
            }
        }
        assert_eq!(writer.held(), expected.len() as u64);
        let kept: Vec<u8> = writer.segments.iter().filter_map(Segment::rest).flatten().copied().collect();
        assert!(kept == expected, "in their order");
        let memory = |segment: &Segment| match &segment.content {
            Content::Bytes(bytes) => bytes.capacity(),
            _ => 0,
        };
        let memory: usize = writer.segments.iter().map(memory).sum();
        assert!(memory + size_of_val(writer.segments.as_slices().0) < 2 * expected.len(), "{memory}");
    }
}
