//! The body of a request: in memory, in a file that has no name any more, or still on its way.
//!
//! Promises: a body in memory or in a file is complete, and reading it never waits for the peer. Only a handler that
//! [takes live bodies](crate::Handler::takes_live_bodies) gets one that is not there yet. A handler that takes all kinds
//! alike reads with [`Body::reader`]; one that knows its bodies are small asks for [`Body::as_bytes`].

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::exchange::Observe;
use crate::long_memory;

/// Closes a file that is not read any more. Closing a large file without a name gives its blocks back, which may wait
/// for the disk; so the code that made the file decides which thread does it.
pub type CloseFile = Arc<dyn Fn(File) + Send + Sync>;

/// A body that is read from the connection as it comes. Unread bytes stay with the peer, beyond one window of HTTP/2.
pub trait LiveBody: Send {
    /// Waits until there are bytes, and moves some of them to `buffer`, which has room for at least one. Zero is the
    /// end.
    ///
    /// # Errors
    /// The rest will not come: the peer is gone or has sent nothing for too long, its bytes are no body or too many, or
    /// the exchange has ended. Every later call returns the same.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads without waiting. `None` when nothing is there: `observer` is told when it may be worth a look, at least once.
    ///
    /// # Errors
    /// As [`read`](Self::read); the timer of the connection ends a body that is late.
    fn poll_read(&mut self, buffer: &mut [u8], observer: &Arc<dyn Observe>) -> io::Result<Option<usize>>;
}

/// The body of a request.
#[derive(Debug)]
pub struct Body(BodySource);

#[derive(Debug)]
enum BodySource {
    Memory(Memory),
    File(Box<Spilled>),
    Live(Box<Live>),
}

/// Bytes whose memory is used for the next body.
#[derive(Debug, Default)]
struct Memory {
    bytes: Vec<u8>,
    /// The memory is used again.
    lent: Option<long_memory::Lent>,
    /// Dropped with the bytes, and after their memory is kept.
    keepsake: Option<Keepsake>,
}

/// A value that a body in memory holds as long as it is there: its share of a budget. The value's owner gives back the
/// memory of long bodies, which the next ones use (`long_memory.rs`).
pub type Keepsake = Box<dyn Any + Send + Sync>;

/// The memory of a body that its thread uses again: below it is not worth it, above it is for [all threads](long_memory).
const USED_AGAIN: RangeInclusive<usize> = 1024..=256 * 1024;

/// Bodies whose memory a thread keeps, and bytes of all of them.
const MAX_SPARE: usize = 8;
const MAX_SPARE_BYTES: usize = 512 * 1024;

thread_local! {
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// The most bytes that are received at once.
const PIECE: usize = 512 * 1024;

impl Memory {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, lent: None, keepsake: None }
    }

    fn reserve(&mut self, length: usize) {
        if self.bytes.capacity() == 0 && USED_AGAIN.contains(&length) {
            self.bytes = SPARE.with_borrow_mut(Vec::pop).unwrap_or_default();
        }
        self.bytes.reserve(length);
    }

    /// Makes room for the next piece of `more` bytes. Memory that the allocator hands out again is in use before it is
    /// written to, so a peer that announces much and sends little must not hold all that it has announced: there is room
    /// for as many bytes as have come, at least for one piece.
    fn grow(&mut self, more: usize) -> bool {
        let room = self.bytes.capacity() - self.bytes.len();
        room >= more.min(PIECE) || self.bytes.try_reserve_exact(more.min(self.bytes.len().max(PIECE))).is_ok()
    }

    fn try_reserve(&mut self, more: usize) -> bool {
        let wanted = self.bytes.len().saturating_add(more);
        if self.bytes.capacity() >= wanted {
            return true;
        }
        let long = if wanted > *USED_AGAIN.end() { long_memory::take(wanted) } else { None };
        let Some((mut long, lent)) = long else { return self.grow(more) };
        long.extend_from_slice(&self.bytes);
        drop(Self::new(std::mem::replace(&mut self.bytes, long)));
        self.lent = Some(lent);
        true
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes.capacity() > *USED_AGAIN.end() {
            // Memory of bodies that have no keepsake would not be given back.
            if self.keepsake.is_some() {
                long_memory::keep(std::mem::take(&mut self.bytes), self.lent.take());
            }
        } else if USED_AGAIN.contains(&self.bytes.capacity()) {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            // Not where the thread is at its end.
            let _ = SPARE.try_with(|spare| {
                let mut spare = spare.borrow_mut();
                let kept: usize = spare.iter().map(Vec::capacity).sum();
                if spare.len() < MAX_SPARE && kept + bytes.capacity() <= MAX_SPARE_BYTES {
                    spare.push(bytes);
                }
            });
        }
    }
}

struct Live {
    source: Mutex<Box<dyn LiveBody>>,
    length: Option<u64>,
}

impl Live {
    // A panic inside is the source's own affair: it has its state under a lock of its own.
    fn lock(&self) -> MutexGuard<'_, Box<dyn LiveBody>> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("length", &self.length).finish_non_exhaustive()
    }
}

struct Spilled {
    /// Present until it is handed to `close`.
    file: Option<File>,
    length: u64,
    close: CloseFile,
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            (self.close)(file);
        }
    }
}

impl fmt::Debug for Spilled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spilled").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Default for Body {
    /// Empty.
    fn default() -> Self {
        Self(BodySource::Memory(Memory::default()))
    }
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self(BodySource::Memory(Memory::new(bytes)))
    }
}

impl Body {
    /// The first `length` bytes of `file`, which goes to `close` in the end.
    pub fn in_file(file: File, length: u64, close: CloseFile) -> Self {
        Self(BodySource::File(Box::new(Spilled { file: Some(file), length, close })))
    }

    /// A body that `source` brings, of the length that the peer has declared.
    pub fn live(source: Box<dyn LiveBody>, length: Option<u64>) -> Self {
        Self(BodySource::Live(Box::new(Live { source: Mutex::new(source), length })))
    }

    /// Whether it is read from the connection: once, and with waits for the peer.
    pub fn is_live(&self) -> bool {
        matches!(self.0, BodySource::Live(_))
    }

    /// The number of bytes, if it is known before the body is read. A live body may end with an error before it.
    pub fn length(&self) -> Option<u64> {
        match &self.0 {
            BodySource::Live(live) => live.length,
            _ => Some(self.len()),
        }
    }

    /// The number of bytes that are here: none of a live body.
    pub fn len(&self) -> u64 {
        match &self.0 {
            BodySource::Memory(memory) => memory.bytes.len() as u64,
            BodySource::File(spilled) => spilled.length,
            BodySource::Live(_) => 0,
        }
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        !self.is_live() && self.len() == 0
    }

    /// The source of a live body.
    pub fn live_mut(&mut self) -> Option<&mut (dyn LiveBody + 'static)> {
        match &mut self.0 {
            BodySource::Live(live) => {
                Some(&mut **live.source.get_mut().unwrap_or_else(PoisonError::into_inner))
            }
            BodySource::Memory(_) | BodySource::File(_) => None,
        }
    }

    /// The bytes, if they are in memory.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            BodySource::Memory(memory) => Some(&memory.bytes),
            BodySource::File(_) | BodySource::Live(_) => None,
        }
    }

    /// Makes room for `length` bytes in memory, unless the body is elsewhere.
    pub fn reserve(&mut self, length: usize) {
        if let BodySource::Memory(memory) = &mut self.0 {
            memory.reserve(length);
        }
    }

    /// Makes room for the next of `more` bytes behind those in memory, and for no more than these. False if there is no memory, or the body is
    /// elsewhere.
    pub fn try_reserve(&mut self, more: usize) -> bool {
        match &mut self.0 {
            BodySource::Memory(memory) => memory.try_reserve(more),
            BodySource::File(_) | BodySource::Live(_) => false,
        }
    }

    /// Holds `keepsake` as long as its bytes are in memory.
    pub fn hold(&mut self, keepsake: Keepsake) {
        if let BodySource::Memory(memory) = &mut self.0 {
            memory.keepsake = Some(keepsake);
        }
    }

    /// The bytes to change or to add to, if they are in memory.
    pub fn memory_mut(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.0 {
            BodySource::Memory(memory) => Some(&mut memory.bytes),
            BodySource::File(_) | BodySource::Live(_) => None,
        }
    }

    /// Reads it from the start; may be asked for any number of times. Reading from a file can wait for the disk. Of a
    /// live body it reads the bytes that were not read yet, and waits for the peer.
    pub fn reader(&self) -> BodyReader<'_> {
        BodyReader { body: self, position: 0 }
    }

    /// Fills `buffer` with the bytes from `offset` on, as many as there are; returns how many that is, less than
    /// `buffer` has room for only at the end.
    ///
    /// # Errors
    /// The file cannot be read, or the body is live.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.is_live() {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "the body is read as it comes"));
        }
        let left = usize::try_from(self.len().saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        let buffer = &mut buffer[..count];
        if count == 0 {
            return Ok(0);
        }
        match &self.0 {
            // Not longer than usize: it is in memory.
            BodySource::Memory(memory) => {
                buffer.copy_from_slice(&memory.bytes[offset as usize..offset as usize + count])
            }
            BodySource::File(spilled) => {
                let file = spilled.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
                file.read_exact_at(buffer, offset)?;
            }
            BodySource::Live(_) => {}
        }
        Ok(count)
    }

    /// All bytes, copied into memory: as many as `--max-body` allows.
    ///
    /// # Errors
    /// The file cannot be read, or the live body did not come.
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        if self.is_live() {
            let mut bytes = Vec::new();
            self.reader().read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        let mut bytes = vec![0; usize::try_from(self.len()).map_err(io::Error::other)?];
        self.read_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Makes it empty. At most `keep` bytes of its memory are kept for the next one, but that of a long body for any other.
    pub fn clear(&mut self, keep: usize) {
        match &mut self.0 {
            BodySource::Memory(memory) if memory.bytes.capacity() <= *USED_AGAIN.end() => {
                memory.bytes.clear();
                memory.bytes.shrink_to(keep);
                memory.keepsake = None;
            }
            BodySource::Memory(_) | BodySource::File(_) | BodySource::Live(_) => *self = Self::default(),
        }
    }
}

/// Reads a [`Body`] in order.
#[derive(Debug)]
pub struct BodyReader<'a> {
    body: &'a Body,
    position: u64,
}

impl Read for BodyReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let BodySource::Live(live) = &self.body.0 {
            return if buffer.is_empty() { Ok(0) } else { live.lock().read(buffer) };
        }
        let count = self.body.read_at(buffer, self.position)?;
        self.position += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Mutex;

    use super::*;

    /// The same bytes in memory and in a file that has more of them, and the number of closed files.
    fn both(bytes: &[u8]) -> ([Body; 2], Arc<Mutex<usize>>) {
        let closed = Arc::new(Mutex::new(0));
        let count = Arc::clone(&closed);
        let close: CloseFile = Arc::new(move |_file| *count.lock().expect("not poisoned") += 1);
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("room");
        file.write_all(b"beyond").expect("room");
        let file = Body::in_file(file, bytes.len() as u64, close);
        ([Body::from(bytes.to_vec()), file], closed)
    }

    #[test]
    fn both_kinds_read_the_same() {
        for bytes in [&b""[..], b"a", b"some more bytes"] {
            let (bodies, _) = both(bytes);
            for body in &bodies {
                assert_eq!((body.len(), body.is_empty()), (bytes.len() as u64, bytes.is_empty()));
                assert_eq!(body.to_vec().expect("readable"), bytes);
                for size in 1..bytes.len() + 2 {
                    let (mut reader, mut read) = (body.reader(), Vec::new());
                    let mut part = vec![0; size];
                    loop {
                        match reader.read(&mut part).expect("readable") {
                            0 => break,
                            count => read.extend_from_slice(&part[..count]),
                        }
                    }
                    assert_eq!(read, bytes, "in parts of {size}");
                }
                assert_eq!(body.read_at(&mut [0; 4], u64::MAX).expect("nothing there"), 0);
            }
            assert_eq!((bodies[0].as_bytes(), bodies[1].as_bytes()), (Some(bytes), None));
        }
    }

    #[test]
    fn a_file_is_handed_back_once_when_the_body_is_gone() {
        let ([_, mut file], closed) = both(b"abc");
        assert_eq!(*closed.lock().expect("not poisoned"), 0);
        file.clear(10);
        assert_eq!((file.len(), file.as_bytes()), (0, Some(&b""[..])));
        assert_eq!(*closed.lock().expect("not poisoned"), 1);
        drop(file);
        assert_eq!(*closed.lock().expect("not poisoned"), 1);
    }

    /// Brings a byte at a time, then fails.
    struct Slow(&'static [u8]);

    impl LiveBody for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
            self.0 = rest;
            buffer[0] = *first;
            if *first == b'!' { Err(io::ErrorKind::TimedOut.into()) } else { Ok(1) }
        }

        fn poll_read(&mut self, buffer: &mut [u8], _: &Arc<dyn Observe>) -> io::Result<Option<usize>> {
            self.read(buffer).map(Some)
        }
    }

    #[test]
    fn a_live_body_is_read_once_and_reports_its_state() {
        let body = Body::live(Box::new(Slow(b"abc")), Some(3));
        assert_eq!((body.is_live(), body.is_empty(), body.length()), (true, false, Some(3)));
        assert_eq!(body.read_at(&mut [0], 0).expect_err("not by place").kind(), io::ErrorKind::Unsupported);
        assert_eq!(body.reader().read(&mut [0; 4]).expect("there"), 1);
        assert_eq!(body.to_vec().expect("whole"), b"bc");
        assert_eq!(body.to_vec().expect("the end"), b"");
        let mut body = Body::live(Box::new(Slow(b"a!")), None);
        assert_eq!((body.length(), body.as_bytes()), (None, None));
        assert_eq!(body.to_vec().expect_err("cut").kind(), io::ErrorKind::TimedOut);
        body.clear(0);
        assert!(body.is_empty());
    }

    #[test]
    fn the_memory_of_a_body_is_used_for_the_next_one() {
        let mut first = Body::default();
        first.reserve(10_000);
        let place = first.memory_mut().expect("in memory").as_ptr();
        first.memory_mut().expect("in memory").extend_from_slice(b"of the first");
        drop(first);
        let mut next = Body::default();
        next.reserve(2_000);
        assert_eq!(next.as_bytes(), Some(&b""[..]));
        assert_eq!(next.memory_mut().expect("in memory").as_ptr(), place);
        let large = Body::from(vec![b'x'; 300_000]);
        drop(large);
        let mut after = Body::default();
        after.reserve(10_000);
        assert!(after.memory_mut().expect("in memory").capacity() < 300_000);
    }

    #[test]
    fn a_cleared_body_keeps_no_more_memory_than_it_may() {
        let mut body = Body::from(vec![b'x'; 10_000]);
        body.clear(100);
        assert!(body.memory_mut().expect("in memory").capacity() < 10_000);
        assert!(body.is_empty());
    }
}
