//! The end of a file that several processes append to: one of them writes at a time, and whole lines.
//!
//! Promises: who holds the lock of the file (flock(2)) writes, and knows how long the file is; a line that the disk has not taken
//! whole is taken back. The kernel gives the lock of a killed process away. Nobody waits longer for it than a second: a process
//! that is stopped, a child that has the descriptor of a killed one, and a file system without locks keep no lines. Then lines are
//! appended without the lock.
//!
//! A killed process can leave the beginning of a line at the end. Who finds it leaves it for a moment to the process that
//! [adopts](super::LineWriter::adopt) what the killed one has left, and then ends it with a line feed.

use super::batch::Batch;
use super::kept::{Kept, Place};
use rustix::fs::{FileType, FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for the lock: more than any write of a disk that works, and less than a buffer of lines lasts.
const PATIENCE: Duration = Duration::from_secs(1);

/// After a wait in vain nobody waits for so long.
const DISTRUST: Duration = Duration::from_secs(10);

/// How long the beginning of a line is left to who completes it: a supervisor sees the end of a process within milliseconds.
const COMPLETION: Duration = Duration::from_secs(1);

/// First and longest pause between two looks at the lock; a turn takes some 10 µs.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// See the module text.
pub(super) struct Tail {
    /// Where it is noted what is about to be written.
    kept: Option<Kept>,
    is_held: bool,
    in_vain: Option<Instant>,
    /// Since when there has been the beginning of a line at the end.
    torn: Option<Instant>,
}

impl Tail {
    /// Of `file`, if it is a regular one: nothing else can be told how long it is.
    pub(super) fn of(file: &OwnedFd, kept: Option<Kept>) -> Option<Self> {
        let found = rustix::fs::fstat(file).ok()?;
        FileType::from_raw_mode(found.st_mode).is_file().then_some(Self::new(kept))
    }

    pub(super) fn new(kept: Option<Kept>) -> Self {
        Self { kept, is_held: false, in_vain: None, torn: None }
    }

    /// Waits for the turn, if it has not begun.
    pub(super) fn begin(&mut self, file: &OwnedFd) {
        if !self.is_held {
            self.is_held = self.waits_for_lock(file);
        }
    }

    fn waits_for_lock(&mut self, file: &OwnedFd) -> bool {
        let (mut since, mut pause) = (None, PAUSE_MIN);
        loop {
            match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    self.in_vain = None;
                    return true;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                // There are no locks here.
                Err(_) => return false,
            }
            let since = *since.get_or_insert_with(Instant::now);
            if self.in_vain.is_some_and(|at| at.elapsed() < DISTRUST) {
                return false;
            }
            if since.elapsed() >= PATIENCE {
                self.in_vain = Some(Instant::now());
                return false;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// In the turn: whether the file ends with a line. If not, the turn is over: somebody may complete the line. After some time it is
    /// ended here.
    pub(super) fn is_whole(&mut self, file: &OwnedFd) -> bool {
        if !self.is_held || !ends_within_a_line(file) {
            self.torn = None;
            return true;
        }
        if self.torn.get_or_insert_with(Instant::now).elapsed() < COMPLETION {
            self.end(file);
            return false;
        }
        self.torn = None;
        // If it fails, what is written next fails, too.
        let _ = rustix::io::write(file, b"\n");
        true
    }

    /// Appends the next `length` bytes of `batch`, which end at the end of a line, and ends the turn. Returns how many of them:
    /// all, or those up to the end of a line, if this is a turn.
    pub(super) fn append(&mut self, file: &OwnedFd, batch: &Batch, length: usize) -> Result<usize, Errno> {
        if !self.is_held {
            return rustix::io::write(file, &batch.rest()[..length]);
        }
        let appended = self.append_whole(file, batch, length);
        self.end(file);
        appended
    }

    fn append_whole(&self, file: &OwnedFd, batch: &Batch, length: usize) -> Result<usize, Errno> {
        let bytes = &batch.rest()[..length];
        let found = rustix::fs::fstat(file)?;
        let offset = u64::try_from(found.st_size).unwrap_or(0);
        if let Some(kept) = &self.kept {
            let length = length as u64;
            kept.note(Place { device: found.st_dev, inode: found.st_ino, offset, length });
        }
        let written = match write_all(file, bytes) {
            (written, None) => return Ok(written),
            (0, Some(error)) => return Err(error),
            (written, Some(error)) => {
                let (whole, _) = batch.line_around(written);
                // Not if somebody without the lock has written behind it.
                let is_last = size_of(file) == offset + written as u64;
                if is_last && rustix::fs::ftruncate(file, offset + whole as u64).is_ok() {
                    if whole == 0 {
                        return Err(error);
                    }
                    whole
                } else {
                    written
                }
            }
        };
        Ok(written)
    }

    /// Whether this is a turn: nobody else writes.
    pub(super) fn is_held(&self) -> bool {
        self.is_held
    }

    /// Ends the turn without having written.
    pub(super) fn end(&mut self, file: &OwnedFd) {
        if self.is_held {
            let _ = rustix::fs::flock(file, FlockOperation::Unlock);
            self.is_held = false;
        }
    }

    /// The file has been closed, and its lock is gone with it.
    pub(super) fn forget(&mut self) {
        self.is_held = false;
    }
}

/// Writes until everything is written or an error comes.
pub(super) fn write_all(file: &OwnedFd, bytes: &[u8]) -> (usize, Option<Errno>) {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(file, &bytes[written..]) {
            Ok(0) => return (written, Some(Errno::IO)),
            Ok(more) => written += more,
            Err(Errno::INTR) => {}
            Err(error) => return (written, Some(error)),
        }
    }
    (written, None)
}

fn size_of(file: &OwnedFd) -> u64 {
    rustix::fs::fstat(file).map_or(0, |found| u64::try_from(found.st_size).unwrap_or(0))
}

/// A file that cannot be read is believed to end well.
fn ends_within_a_line(file: &OwnedFd) -> bool {
    let mut last = [b'\n'];
    let size = size_of(file);
    size > 0 && rustix::io::pread(file, &mut last, size - 1) == Ok(1) && last != *b"\n"
}

/// Opens `path` as [`append_to`](super::sink::append_to) does, and so that it can be read, too, if it is a file that may be.
pub(super) fn open(path: &Path) -> std::io::Result<OwnedFd> {
    let file = super::sink::append_to(path)?;
    let found = rustix::fs::fstat(&file)?;
    // Of a FIFO this process would become a reader itself.
    if !FileType::from_raw_mode(found.st_mode).is_file() {
        return Ok(file);
    }
    let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let readable = rustix::fs::open(path, flags, rustix::fs::Mode::empty());
    let is_same = |other: &OwnedFd| {
        rustix::fs::fstat(other)
            .is_ok_and(|other| (other.st_dev, other.st_ino) == (found.st_dev, found.st_ino))
    };
    Ok(readable.ok().filter(is_same).unwrap_or(file))
}
