//! What waits to be sent on one connection, and how it leaves.
//!
//! A chain: content goes in, the transform (none yet: TLS will be one) makes bytes for the socket
//! of it, the socket takes what it takes. What it does not take stays here, and the next edge of
//! the descriptor sends on; no thread waits for the reader.

use std::collections::VecDeque;
use std::io;
use std::io::IoSlice;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maitred_io::clock;
use maitred_io::transport::Transport;
use maitred_io::transport::{Moved, SEND_AHEAD};
use maitred_limits::minimum::RateWatch;
use maitred_runtime::{Content, FileRange, Last, Owner};

use super::snapshot::Delivery;
use super::stream::Record;
use super::{recycle_buffer, spare_buffer};
use crate::spill::{Counted, Lot, MIN_COUNTED, Part, Spilled, Spilling, Which, Written};

/// Segments offered to the kernel in one call. Pipelined heads and bodies alternate, so this is
/// eight responses; the kernel's own limit is 1,024 (IOV_MAX).
const MAX_SEGMENTS_A_CALL: usize = 16;

/// Bytes sent in one turn before others get theirs, reached or passed by one call: half of Linux's largest send buffer
/// (net.ipv4.tcp_wmem, 4 MiB), about 0.2 ms of copying.
pub(super) const MAX_BYTES_A_TURN: u64 = 2 * 1024 * 1024;

/// A writer that is kept for the next response has room for at most so many segments.
const MAX_KEPT_SEGMENTS: usize = 64;

/// A segment that small parts are appended to grows up to this size. A stream of short messages to a slow reader would
/// otherwise take many times their length in memory, and a segment of the call above for each.
const MAX_JOINED: usize = 16 * 1024;

/// A buffer up to this size is copied behind what stands before it; a larger one becomes a segment of its own.
const COPIED: u64 = 4 * 1024;

/// A reader is fast if it takes so many bytes within [`LONG`]: 4 Mbit/s. It is twice what the kernel takes without knowing that, so that a
/// peer has read when it is reached.
const SWIFT: u64 = 2 * SEND_AHEAD as u64;

/// In nanoseconds.
const LONG: u64 = 1_000_000_000;

/// How a turn of sending ended.
#[derive(Debug)]
pub(crate) enum Sent {
    /// Everything has left.
    All,
    /// The socket takes no more now: an edge will tell.
    Blocked,
    /// The turn's budget is used up: go on after the others.
    Budget,
    /// A limit holds back the rest: a timer will tell.
    Held,
    /// Nothing more can be sent.
    Broken(io::Error),
}

/// The bytes and file ranges that wait, in order.
#[derive(Default)]
pub(crate) struct Writer {
    segments: VecDeque<Segment>,
    /// Bytes in memory among them.
    held: u64,
    /// Bytes among them that were in memory, and are in files now.
    filed: u64,
    /// Among them is content that [`count`](Self::count) has not looked at.
    uncounted: bool,
    /// The spooler has been asked to write what is in memory to a file.
    pub(crate) asked: bool,
    /// It cannot be written: it stays in memory.
    keeps: bool,
    /// The thread that gave it something last, as the system numbers it; 0 for none.
    pub(crate) thread: i32,
    /// What the application calls what it sends.
    pub(crate) label: Option<Arc<str>>,
    /// Bytes that have left.
    sent: u64,
    /// When its use began, in nanoseconds of the coarse monotonic clock.
    since: u64,
    /// When [`is_swift`](Self::is_swift) has told, on the same clock, and how much had left.
    looked: (u64, u64),
    /// Nothing has left since [`is_stuck`](Self::is_stuck) was asked.
    stuck: bool,
    /// The socket has taken no more, and no turn has come since, which an edge brings: until then it takes none.
    blocked: bool,
    /// The time that the peer has left to take what waits; none while nothing waits for it.
    pub(crate) patience: Option<RateWatch>,
    /// The exchanges whose last bytes are here.
    pub(crate) records: Vec<Record>,
}

struct Segment {
    content: Content,
    /// Bytes of it that have left.
    done: u64,
    /// The file whose range the content is, if it was in memory before. Behind the content, so that it is dropped later.
    spilled: Option<Arc<Spilled>>,
    counted: Option<Counted>,
    /// Whoever writes it to a file names it so; 0 while nobody does.
    ticket: u64,
}

/// How much waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in files that were in memory before.
    pub file: u64,
}

impl Writer {
    /// Bytes in memory that wait.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// The same, and what was in memory before.
    pub(crate) fn marks(&self) -> Marks {
        Marks { memory: self.held, file: self.filed }
    }

    /// Bytes that have left since its use began.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Bytes that wait, up to `most`.
    pub(crate) fn waiting(&self, most: u64) -> u64 {
        let mut waiting = 0;
        for segment in &self.segments {
            waiting += segment.content.len() - segment.done;
            if waiting >= most {
                return most;
            }
        }
        waiting
    }

    /// Its use begins.
    pub(crate) fn begin(&mut self) {
        self.since = clock::monotonic_coarse();
        self.looked = (self.since, 0);
    }

    /// What has left, and what waits.
    pub(crate) fn show(&self) -> Delivery {
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

    /// Whether nothing has left since this was last asked.
    pub(crate) fn is_stuck(&mut self) -> bool {
        std::mem::replace(&mut self.stuck, true)
    }

    /// Whether to try the socket again is in vain.
    pub(crate) fn is_blocked(&self) -> bool {
        self.blocked
    }

    /// A turn comes: the socket may have room.
    pub(crate) fn note_turn(&mut self) {
        self.blocked = false;
    }

    /// Whether the peer reads fast, if that can be told again: it has taken [`SWIFT`] bytes, or [`LONG`] has passed.
    pub(crate) fn is_swift(&mut self) -> Option<bool> {
        let now = clock::monotonic_coarse();
        let (then, sent) = self.looked;
        let has_taken = self.sent - sent >= SWIFT;
        if !has_taken && now.saturating_sub(then) < LONG {
            return None;
        }
        self.looked = (now, self.sent);
        Some(has_taken && now.saturating_sub(then) <= LONG)
    }

    /// Empties it for the next use. False when it has too much memory to be kept.
    pub(crate) fn clear(&mut self) -> bool {
        self.segments.clear();
        (self.held, self.filed, self.sent, self.patience) = (0, 0, 0, None);
        (self.stuck, self.uncounted, self.asked, self.keeps) = (false, false, false, false);
        self.blocked = false;
        (self.thread, self.label) = (0, None);
        self.segments.capacity() <= MAX_KEPT_SEGMENTS
    }

    /// Appends `content`, of which `done` bytes have left already.
    pub(crate) fn push(&mut self, content: Content, done: u64) {
        self.sent += done;
        if done < content.len() {
            if !matches!(content, Content::File(_)) {
                self.held += content.len() - done;
                self.uncounted |= content.len() > MIN_COUNTED;
            }
            self.segments.push_back(Segment { content, done, spilled: None, counted: None, ticket: 0 });
        }
    }

    /// Appends `bytes` and leaves them empty.
    pub(crate) fn push_all(&mut self, bytes: &mut Vec<u8>) {
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

    /// Sends what the socket takes.
    pub(crate) fn send(&mut self, transport: &mut Transport) -> Sent {
        self.send_within(transport, MAX_BYTES_A_TURN, false)
    }

    /// Sends what the socket takes of the next `most` bytes; [`Sent::Budget`] when these have left and more waits.
    pub(crate) fn send_up_to(&mut self, transport: &mut Transport, most: u64) -> Sent {
        self.send_within(transport, most, true)
    }

    /// Goes on until `budget` bytes have left: exactly, or so that one call may pass it.
    fn send_within(&mut self, transport: &mut Transport, mut budget: u64, exact: bool) -> Sent {
        while let Some(first) = self.segments.front() {
            if budget == 0 {
                return Sent::Budget;
            }
            let moved = match &first.content {
                Content::File(range) => {
                    let left = range.length - first.done;
                    let most = usize::try_from(left.min(budget)).unwrap_or(usize::MAX);
                    transport.send_file(&range.file, range.offset + first.done, most)
                }
                _ => self.send_memory(transport, if exact { budget } else { u64::MAX }),
            };
            match moved {
                Moved::Bytes(count) => {
                    budget = budget.saturating_sub(count as u64);
                    self.advance(count as u64);
                }
                Moved::Blocked => {
                    self.blocked = true;
                    return Sent::Blocked;
                }
                Moved::Failed(error) => return Sent::Broken(error),
                Moved::End => return Sent::Broken(shortened(io::ErrorKind::UnexpectedEof.into())),
            }
        }
        Sent::All
    }

    fn send_memory(&self, transport: &mut Transport, most: u64) -> Moved {
        let mut most = usize::try_from(most).unwrap_or(usize::MAX);
        if let [only] = self.segments.as_slices().0
            && self.segments.len() == 1
            && let Some(bytes) = only.rest()
        {
            return transport.send(&bytes[..bytes.len().min(most)], false);
        }
        let mut parts: [IoSlice<'_>; MAX_SEGMENTS_A_CALL] = std::array::from_fn(|_| IoSlice::new(&[]));
        let mut count = 0;
        let mut file_follows = false;
        for segment in &self.segments {
            let Some(bytes) = segment.rest() else {
                // Unless a limit holds it back.
                file_follows = most > 0;
                break;
            };
            let Some(part) = parts.get_mut(count).filter(|_| most > 0) else { break };
            let bytes = &bytes[..bytes.len().min(most)];
            most -= bytes.len();
            *part = IoSlice::new(bytes);
            count += 1;
        }
        match &parts[..count] {
            [only] => transport.send(only, file_follows),
            parts => transport.send_all(parts, file_follows),
        }
    }

    /// Makes the first `count` bytes ready to be moved; how many they are, no more than a part of a file has. If `reads`, what begins a file's
    /// part is read: where a transport changes bytes it is in any case, and then head and data of a frame are one record.
    ///
    /// # Errors
    /// The file cannot be read, or has become shorter.
    pub(crate) fn prepare(&mut self, count: u64, reads: bool) -> io::Result<u64> {
        let Some(first) = self.segments.front_mut() else { return Ok(0) };
        let Content::File(range) = &first.content else { return Ok(count) };
        let here = count.min(range.length - first.done);
        if !reads {
            // In the middle of a frame it would be too late: nothing could follow that.
            let is_there = range.file.metadata()?.len() >= range.offset + first.done + here;
            return if is_there { Ok(here) } else { Err(shortened(io::ErrorKind::UnexpectedEof.into())) };
        }
        let mut bytes = spare_buffer();
        // No more than a frame has.
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

    /// Moves the first `count` bytes, of which there are as many, to another one: parts of files as they are, what is in memory as a
    /// copy, or a whole buffer as it is.
    pub(crate) fn move_to(&mut self, other: &mut Self, mut count: u64) {
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

    pub(crate) fn advance(&mut self, mut count: u64) {
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
    /// Counts what has to wait.
    pub(crate) fn count(&mut self, spilling: &Spilling) {
        if !std::mem::take(&mut self.uncounted) {
            return;
        }
        for segment in &mut self.segments {
            if segment.counted.is_none() {
                segment.counted = spilling.count(&segment.content);
            }
        }
    }

    /// Whether something of it is counted.
    pub(crate) fn has_counted(&self) -> bool {
        self.segments.iter().any(|segment| segment.counted.is_some())
    }

    /// Hands out what is in memory and nobody writes to a file yet, as long as no more than `most` bytes are in files then.
    pub(crate) fn lend(&mut self, which: Which, most: u64) -> Option<Lot> {
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

    /// What was lent is in a file.
    pub(crate) fn exchange(&mut self, written: &Written) {
        let Some(file) = written.file.file() else { return };
        let mut kept: VecDeque<Segment> = VecDeque::with_capacity(self.segments.len());
        for mut segment in self.segments.drain(..) {
            // Tickets rise within a lot. What has left meanwhile is missing here.
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

    /// What was lent could not be written, and neither will what follows.
    pub(crate) fn take_back(&mut self, parts: &[Part]) {
        for segment in &mut self.segments {
            if parts.iter().any(|part| part.ticket == segment.ticket) {
                segment.ticket = 0;
                self.keeps = true;
            }
        }
    }
}

#[cfg(test)]
impl Writer {
    /// What waits, with the bytes of each that have left.
    pub(crate) fn contents(&self) -> impl Iterator<Item = (&Content, u64)> {
        self.segments.iter().map(|segment| (&segment.content, segment.done))
    }
}

impl Segment {
    /// Whether it is among these, and nobody writes it to a file yet.
    fn is_wanted(&self, which: Which) -> bool {
        self.ticket == 0
            && !matches!(self.content, Content::File(_))
            && (which == Which::All || self.counted.as_ref().is_some_and(Counted::is_only))
    }

    /// The content for somebody else too, without a copy.
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

/// What is said of a file that ends too early; other errors are as they are.
fn shortened(error: io::Error) -> io::Error {
    if error.kind() != io::ErrorKind::UnexpectedEof {
        return error;
    }
    io::Error::new(error.kind(), "the file has become shorter while it was being sent")
}

/// The bytes of what is in memory; `None` for a file.
pub(crate) fn last_bytes<'a>(last: &'a Last<'_>) -> Option<&'a [u8]> {
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
