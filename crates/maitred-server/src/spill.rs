//! What responses may hold in memory, and what becomes of the rest: it goes to files without a name.
//!
//! ```text
//!   writer   [ head | block | block | block ]      more in memory than one response may hold
//!              lent ---- write(2), without any lock ---> file
//!   writer   [ head | range of the file .... ]      exchanged where it stands; what has left meanwhile is passed over
//! ```
//! Who writes: the application thread that would have to wait for its reader, for as long as the disk takes. What nobody waits
//! for (a complete body whose handler is an event loop's, or gone) is the spooler's; when a loop makes bodies faster than that, it
//! writes what it has made itself before it makes more. A stream of an event loop is not written at all: its `send` awaits the
//! reader, which costs no thread, and what is not read is not made.
//!
//! Promises: the order of what a connection sends never changes; nothing is written, opened or closed under a slot's lock. The
//! space of a file is given back with the last byte in it that has left, or that nobody takes any more: each file is a part of a
//! response, of [`MAX_FILE`] bytes and one lot at most. (Holes would give it back earlier, but a hole can zero pages that the
//! socket of a peer on the same machine still refers to.)
//!
//! Leaves out: what is held (`writer.rs`), and when a connection gives it away (`connection/spilling.rs`).

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

/// A file that has become this long is not written to any more: the response goes on in another one.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Content up to this size is not counted as referenced: it is copied behind its head, or as small as what is.
pub(crate) const MIN_COUNTED: u64 = 16 * 1024;

/// The error log tells of a disk that takes nothing once in this time, in nanoseconds.
const TELL_EVERY: u64 = 60_000_000_000;

/// What waits for slow readers, and where. May be changed while the server works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterSettings {
    /// Bytes of a streamed response that wait in memory. Default: 256 KiB, twice the largest step in which Linux makes a
    /// send buffer larger, so that a fast reader never sees a gap.
    pub memory: u64,
    /// Bytes of one response that wait in files without a name. Beyond that, and if it is 0, a handler that streams waits
    /// for its reader. Default: 1 GiB.
    pub file: u64,
    /// Bytes of complete bodies in memory that all responses together refer to while they wait; what comes on top goes to
    /// files, up to `file`. An object that several responses refer to counts once, bodies up to 16 KiB do not count.
    /// Default: 32 MiB: with what four threads make of 8 MiB bodies at the same time a server stays below 64.
    pub budget: u64,
}

impl Default for WriterSettings {
    fn default() -> Self {
        Self { memory: 256 * 1024, file: 1024 * 1024 * 1024, budget: 32 * 1024 * 1024 }
    }
}

/// What may be held, and what is; the limits may change at any time.
pub(crate) struct Spilling {
    memory: AtomicU64,
    file: AtomicU64,
    budget: AtomicU64,
    referenced: Arc<Referenced>,
    /// When the log was told last, in coarse monotonic nanoseconds.
    told: AtomicU64,
    /// Held by the thread that writes.
    turn: Mutex<()>,
    /// What the spooler has been asked to write and has not tried yet.
    asked: AtomicUsize,
}

impl Spilling {
    pub(crate) fn new(settings: WriterSettings) -> Self {
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

    pub(crate) fn set(&self, settings: WriterSettings) {
        let WriterSettings { memory, file, budget } = settings;
        self.memory.store(memory, Ordering::Relaxed);
        self.file.store(file, Ordering::Relaxed);
        self.budget.store(budget, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> WriterSettings {
        let [memory, file, budget] =
            [&self.memory, &self.file, &self.budget].map(|limit| limit.load(Ordering::Relaxed));
        WriterSettings { memory, file, budget }
    }

    /// Bytes of a streamed response that wait in memory before its handler waits, or the disk gets them.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// Bytes of one response that wait in files.
    pub(crate) fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    /// Whether writers refer to more bytes of bodies, each object counted once, than they may.
    pub(crate) fn is_over(&self) -> bool {
        self.referenced.total.load(Ordering::Relaxed) > self.budget.load(Ordering::Relaxed)
    }

    /// Whether writers refer to more than they may, and the spooler is at it.
    pub(crate) fn is_behind(&self) -> bool {
        self.asked.load(Ordering::SeqCst) > 0 && self.is_over()
    }

    /// The spooler is asked to write something.
    pub(crate) fn ask(&self) {
        self.asked.fetch_add(1, Ordering::SeqCst);
    }

    /// It has done so, or cannot.
    pub(crate) fn note_done(&self) {
        self.asked.fetch_sub(1, Ordering::SeqCst);
    }

    /// Whether they refer to half as much again: the spooler does not keep up.
    pub(crate) fn is_far_over(&self) -> bool {
        let budget = self.budget.load(Ordering::Relaxed);
        self.referenced.total.load(Ordering::Relaxed) > budget.saturating_add(budget / 2)
    }

    /// Counts content that has to wait, until the result is dropped. None for what takes no memory by waiting, or little.
    pub(crate) fn count(&self, content: &Content) -> Option<Counted> {
        if matches!(content, Content::Static(_) | Content::File(_)) || content.len() <= MIN_COUNTED {
            return None;
        }
        let bytes = content.bytes()?;
        Some(Counted::new(&self.referenced, bytes))
    }

    /// Waits until no other thread writes. Several that do so at once fill the disk's queue no faster than one, and leave no
    /// processor to those that serve.
    pub(crate) fn await_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was to be written is kept in memory, because of this.
    pub(crate) fn tell(&self, log: &Log, error: &io::Error) {
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
    /// By their addresses: how long, and how often. An object that many responses share takes its memory once.
    objects: Mutex<HashMap<usize, (u64, u32)>>,
}

impl Referenced {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, (u64, u32)>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reference to a body, as long as it is there.
pub(crate) struct Counted {
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

    /// Whether no other response refers to the same: its memory is free when this one does not need it.
    pub(crate) fn is_only(&self) -> bool {
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
pub(crate) struct Spilled {
    /// Taken out by the end.
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

    /// The file, to be sent from.
    pub(crate) fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }

    /// Whether more may be written to it, by the calling thread alone; `busy` is the caller's to take back.
    fn claim(&self) -> bool {
        self.length.load(Ordering::Relaxed) < MAX_FILE && !self.busy.swap(true, Ordering::Acquire)
    }
}

impl Drop for Spilled {
    /// Where closing may take its time.
    fn drop(&mut self) {
        if let Some(file) = self.file.take().and_then(Arc::into_inner) {
            (self.close)(file);
        }
    }
}

/// Which of the bytes in memory go to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// All: their response holds more than it may.
    All,
    /// Bodies that nobody else refers to: all responses together hold more than they may.
    Referenced,
}

/// A part of a response that a writer has lent to whoever writes it to a file.
pub(crate) struct Part {
    /// How the writer finds it again.
    pub(crate) ticket: u64,
    pub(crate) content: Content,
    /// Bytes of it that had left.
    pub(crate) done: u64,
}

/// What a writer has lent, in its order, and the file that what stands before it is in.
pub(crate) struct Lot {
    pub(crate) parts: Vec<Part>,
    pub(crate) file: Option<Arc<Spilled>>,
}

/// Where the parts of a lot are now.
pub(crate) struct Written {
    pub(crate) file: Arc<Spilled>,
    pub(crate) places: Vec<Place>,
}

/// Ticket of a part, its place in the file, and the bytes that had left before: they are not there.
pub(crate) type Place = (u64, u64, u64);

impl Lot {
    pub(crate) fn write(&self, spooler: &Spooler) -> io::Result<Written> {
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
                // What was written of it is given back. If that fails too, the next lot is written over it.
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
