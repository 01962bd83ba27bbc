//! Memory limits of responses that wait for slow readers; the rest goes to files without a name.
//!
//! ```text
//!   writer   [ head | block | block | block ]      more in memory than one response may hold
//!              lent ---- write(2), without any lock ---> file
//!   writer   [ head | range of the file .... ]      exchanged where it stands; what has left meanwhile is passed over
//! ```
//! Writing threads: the application thread that would have to wait for its reader writes, for as long as the disk
//! takes. The spooler writes content that no thread waits for (a complete body whose handler is an event loop's, or
//! gone); when a loop makes bodies faster than that, the loop writes its own bodies before it makes more. A stream of
//! an event loop is not written at all: its `send` awaits the reader, which costs no thread, and unread content is
//! not made.
//!
//! Promises: the order of a connection's bytes never changes; no file is written, opened or closed under the lock of
//! a slot. The space of a file is given back when its last byte has left or is dropped: each file is a part of a
//! response, of [`MAX_FILE`] bytes and one lot at most. (Holes would give the space back earlier, but a hole can zero
//! pages that the socket of a peer on the same machine still refers to.)
//!
//! Leaves out: the queues (`writer.rs`), and the decisions of connections to lend content (`connection/spilling.rs` of maitred-server).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use maitred_io::clock;
use maitred_runtime::{CloseFile, Content};

use maitred_log::Log;
use maitred_spool::Spooler;

/// Length from which a file gets no further content, in bytes: the response goes on in another file. A response that is so far ahead of an
/// idle peer holds its thread in vain.
pub const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Content up to this size is not counted as referenced: such content is copied behind its head.
pub const MIN_COUNTED: u64 = 16 * 1024;

/// Shortest time between two lines about a disk that takes nothing in the error log, in nanoseconds.
const TELL_EVERY: u64 = 60_000_000_000;

/// Limits of the output queues of slow readers. May be changed while the server works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// Bytes of a streamed response that wait in memory. Default: 256 KiB, twice the largest step in which Linux makes a
    /// send buffer larger, so that a fast reader never sees a gap.
    pub memory: u64,
    /// Bytes of one response that wait in files without a name. Beyond that, and if it is 0, a handler that streams waits
    /// for its reader. Default: 1 GiB.
    pub file: u64,
    /// Bytes of complete bodies in memory that all responses together refer to while they wait; further ones go to
    /// files, up to `file`. An object that several responses refer to counts once, bodies up to 16 KiB do not count.
    /// Default: 32 MiB: with four threads that make bodies of 8 MiB at the same time a server stays below 64.
    pub budget: u64,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self { memory: 256 * 1024, file: 1024 * 1024 * 1024, budget: 32 * 1024 * 1024 }
    }
}

/// The limits, which may change at any time, and the present use.
pub struct Spilling {
    memory: AtomicU64,
    file: AtomicU64,
    budget: AtomicU64,
    referenced: Arc<Referenced>,
    /// Time of the last line in the log, in coarse monotonic nanoseconds.
    told: AtomicU64,
    /// Held by the thread that writes.
    turn: Mutex<()>,
    /// Number of requests to the spooler without an attempt so far.
    asked: AtomicUsize,
}

impl Spilling {
    /// With these settings, and nothing in use.
    pub fn new(settings: WriterSettings) -> Self {
        let WriterSettings { memory, file, budget } = settings;
        Self {
            memory: memory.into(),
            file: file.into(),
            budget: budget.into(),
            referenced: Arc::default(),
            told: AtomicU64::new(0),
            turn: Mutex::new(()),
            asked: AtomicUsize::new(0),
        }
    }

    /// Changes the settings.
    pub fn set(&self, settings: WriterSettings) {
        let WriterSettings { memory, file, budget } = settings;
        self.memory.store(memory, Ordering::Relaxed);
        self.file.store(file, Ordering::Relaxed);
        self.budget.store(budget, Ordering::Relaxed);
    }

    /// The present settings.
    pub fn get(&self) -> WriterSettings {
        let [memory, file, budget] =
            [&self.memory, &self.file, &self.budget].map(|limit| limit.load(Ordering::Relaxed));
        WriterSettings { memory, file, budget }
    }

    /// Bytes of a streamed response that wait in memory before its handler waits, or the disk gets them.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of one response that wait in files.
    pub fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    /// Whether writers refer to more bytes of bodies, each object counted once, than the budget.
    pub fn is_over(&self) -> bool {
        self.referenced.total.load(Ordering::Relaxed) > self.budget.load(Ordering::Relaxed)
    }

    /// Whether writers exceed the budget although the spooler is at work.
    pub fn is_behind(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0 && self.is_over()
    }

    /// Counts a request to the spooler.
    pub fn ask(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the count of a request after the spooler's attempt.
    pub fn note_done(&self) {
        self.asked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether writers refer to more than one and a half times the budget: the spooler does not keep up.
    pub fn is_far_over(&self) -> bool {
        let budget = self.budget.load(Ordering::Relaxed);
        self.referenced.total.load(Ordering::Relaxed) > budget.saturating_add(budget / 2)
    }

    /// Counts waiting content, until the result is dropped. None for content that takes little or no memory by
    /// waiting.
    pub fn count(&self, content: &Content) -> Option<Counted> {
        if matches!(content, Content::Static(_) | Content::File(_)) || content.len() <= MIN_COUNTED {
            return None;
        }
        let bytes = content.bytes()?;
        Some(Counted::new(&self.referenced, bytes))
    }

    /// Waits until no other thread writes. Several writing threads fill the disk's queue no faster than one, and
    /// leave no processor to the threads that serve.
    pub fn await_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs the reason why content stays in memory.
    pub fn tell(&self, log: &Log, error: &io::Error) {
        let (now, before) = (clock::monotonic_coarse().max(1), self.told.load(Ordering::Relaxed));
        let due = before == 0 || now.saturating_sub(before) >= TELL_EVERY;
        if due && self.told.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            log.error(format_args!(
                "responses to slow readers cannot be kept in the spool folder (--spool): {error}; they stay in memory, and \
                 those that are still made wait for their readers (told once a minute)"
            ));
        }
    }
}

/// The bodies that writers refer to.
#[derive(Default)]
struct Referenced {
    total: AtomicU64,
    /// Length and number of references, by address. An object that many responses share takes its memory once.
    objects: Mutex<HashMap<usize, (u64, u32)>>,
}

impl Referenced {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (u64, u32)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reference to a counted body, until dropped.
pub struct Counted {
    all: Arc<Referenced>,
    address: usize,
}

impl Counted {
    fn new(all: &Arc<Referenced>, bytes: &[u8]) -> Self {
        let address = bytes.as_ptr() as usize;
        let mut objects = all.lock();
        match objects.entry(address) {
            Entry::Occupied(mut known) => known.get_mut().1 += 1,
            Entry::Vacant(place) => {
                let length = bytes.len() as u64;
                place.insert((length, 1));
                all.total.fetch_add(length, Ordering::Relaxed);
            }
        }
        Self { all: Arc::clone(all), address }
    }

    /// Whether no other response refers to the same body, so that writing it to a file frees its memory.
    pub fn is_only(&self) -> bool {
        self.all.lock().get(&self.address).is_none_or(|(_, count)| *count == 1)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut objects = self.all.lock();
        if let Entry::Occupied(mut known) = objects.entry(self.address) {
            let (length, count) = known.get_mut();
            *count -= 1;
            if *count == 0 {
                self.all.total.fetch_sub(*length, Ordering::Relaxed);
                known.remove();
            }
        }
    }
}

/// A file with a part of a response.
pub struct Spilled {
    /// None only after the end.
    file: Option<Arc<File>>,
    close: CloseFile,
    length: AtomicU64,
    /// A thread writes to it.
    busy: AtomicBool,
}

impl Spilled {
    fn new(file: File, close: CloseFile) -> Self {
        let (length, busy) = (AtomicU64::new(0), AtomicBool::new(true));
        Self { file: Some(Arc::new(file)), close, length, busy }
    }

    /// The file, for sending.
    pub fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }

    /// Whether more may be written to the file, by the calling thread alone; the caller resets `busy`.
    fn claim(&self) -> bool {
        self.length.load(Ordering::Relaxed) < MAX_FILE && !self.busy.swap(true, Ordering::Acquire)
    }
}

impl Drop for Spilled {
    /// Closes the file on a thread that may wait.
    fn drop(&mut self) {
        if let Some(file) = self.file.take().and_then(Arc::into_inner) {
            (self.close)(file);
        }
    }
}

/// The content in memory that goes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// All content: the response exceeds its limit.
    All,
    /// Bodies that no other response refers to: all responses together exceed the budget.
    Referenced,
}

/// A part of a response, lent by a writer for writing to a file.
pub struct Part {
    /// Number under which the writer finds the part again.
    pub ticket: u64,
    /// The content.
    pub content: Content,
    /// Bytes of the content that had left.
    pub done: u64,
}

/// The parts lent by a writer, in order, and the file of the content before them.
pub struct Lot {
    /// The parts, in their order.
    pub parts: Vec<Part>,
    pub(crate) file: Option<Arc<Spilled>>,
}

/// The places of the parts of a lot in their file.
pub struct Written {
    pub(crate) file: Arc<Spilled>,
    pub(crate) places: Vec<Place>,
}

/// Ticket of a part, its offset in the file, and the number of bytes that had left before and are not in the file.
pub type Place = (u64, u64, u64);

impl Lot {
    /// Writes the parts.
    ///
    /// # Errors
    /// The disk takes none.
    pub fn write(&self, spooler: &Spooler) -> io::Result<Written> {
        let known = self.file.clone().filter(|file| file.claim());
        let spilled = match known {
            Some(known) => known,
            None => Arc::new(Spilled::new(spooler.open_file()?, spooler.closer())),
        };
        let start = spilled.length.load(Ordering::Relaxed);
        let written = match &spilled.file {
            Some(file) => self.write_at(file, start),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        match written {
            Ok((places, end)) => {
                spilled.length.store(end, Ordering::Relaxed);
                spilled.busy.store(false, Ordering::Release);
                Ok(Written { file: spilled, places })
            }
            Err(error) => {
                // The space of the written part is given back. If that fails too, the next lot overwrites it.
                let _ = spilled.file.as_ref().map(|file| file.set_len(start));
                spilled.busy.store(false, Ordering::Release);
                Err(error)
            }
        }
    }

    fn write_at(&self, file: &File, mut at: u64) -> io::Result<(Vec<Place>, u64)> {
        let mut places = Vec::with_capacity(self.parts.len());
        for Part { ticket, content, done } in &self.parts {
            let rest = content.bytes().and_then(|bytes| bytes.get(*done as usize..)).unwrap_or_default();
            file.write_all_at(rest, at)?;
            places.push((*ticket, at, *done));
            at += rest.len() as u64;
        }
        Ok((places, at))
    }
}

#[cfg(test)]
mod tests;
