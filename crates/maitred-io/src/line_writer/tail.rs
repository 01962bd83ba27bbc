//! The end of a file that several processes append to: one of them writes at a time, and whole lines.
//!
//! Promises: the process that holds the lock of the file (flock(2)) writes, and knows how long the file is; a line that the disk has not
//! taken whole is taken back. The kernel gives the lock of a killed process away. No process waits longer for it than a second: a
//! process that is stopped, a child that has the descriptor of a killed one, and a file system without locks keep no lines. Then lines are
//! appended without the lock.
//!
//! A killed process can leave the beginning of a line at the end: the kernel ends its write between two pages of the file. The next process
//! cuts that off. An end without a line feed at another place was not left by a killed process: it stays, and gets a line feed.

use super::batch::{Batch, MAX_CHUNK};
use rustix::fs::{FileType, FlockOperation, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for the lock: more than any write of a disk that works, and less than a buffer of lines lasts.
const PATIENCE: Duration = Duration::from_secs(1);

/// After a wait in vain the process does not wait for so long.
const DISTRUST: Duration = Duration::from_secs(10);

/// First and longest pause between two looks at the lock; a turn takes some 10 µs.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// The smallest page of any processor; larger ones are multiples of it.
const PAGE: u64 = 4096;

pub(super) struct Tail {
    is_held: bool,
    in_vain: Option<Instant>,
}

impl Tail {
    /// Of `file`, if it is a regular one: nothing else can be told how long it is.
    pub(super) fn of(file: &OwnedFd) -> Option<Self> {
        let found = rustix::fs::fstat(file).ok()?;
        let is_file = FileType::from_raw_mode(found.st_mode).is_file();
        is_file.then_some(Self { is_held: false, in_vain: None })
    }

    /// Waits for the turn, if it has not begun. In a turn the file ends with a line.
    pub(super) fn begin(&mut self, file: &OwnedFd) {
        if !self.is_held {
            self.is_held = self.waits_for_lock(file);
            if self.is_held {
                end_with_a_line(file);
            }
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

    /// Appends the next `length` bytes of `batch`, which end at the end of a line, and ends the turn. Returns how many of them:
    /// all, or those up to the end of a line, if this is a turn.
    pub(super) fn append(&mut self, file: &OwnedFd, batch: &Batch, length: usize) -> Result<usize, Errno> {
        if !self.is_held {
            return rustix::io::write(file, &batch.rest()[..length]);
        }
        let appended = append_whole(file, batch, length);
        let _ = rustix::fs::flock(file, FlockOperation::Unlock);
        self.is_held = false;
        appended
    }

    /// The file has been closed, and its lock is gone with it.
    pub(super) fn forget(&mut self) {
        self.is_held = false;
    }
}

fn append_whole(file: &OwnedFd, batch: &Batch, length: usize) -> Result<usize, Errno> {
    let offset = size_of(file);
    let (written, error) = match write_all(file, &batch.rest()[..length]) {
        (written, None) => return Ok(written),
        (0, Some(error)) => return Err(error),
        (written, Some(error)) => (written, error),
    };
    let whole = batch.whole_lines_in(written);
    // Not if a process without the lock has written behind it.
    let is_last = size_of(file) == offset + written as u64;
    if !is_last || rustix::fs::ftruncate(file, offset + whole as u64).is_err() {
        return Ok(written);
    }
    if whole == 0 { Err(error) } else { Ok(whole) }
}

fn write_all(file: &OwnedFd, bytes: &[u8]) -> (usize, Option<Errno>) {
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

/// In a turn. A file that cannot be read is believed to end well.
fn end_with_a_line(file: &OwnedFd) {
    let mut last = [b'\n'];
    let size = size_of(file);
    if size == 0 || rustix::io::pread(file, &mut last, size - 1) != Ok(1) || last == *b"\n" {
        return;
    }
    let is_cut = size.is_multiple_of(PAGE)
        && end_of_lines(file, size).is_some_and(|end| rustix::fs::ftruncate(file, end).is_ok());
    if !is_cut {
        // If it fails, what is written next fails, too.
        let _ = rustix::io::write(file, b"\n");
    }
}

/// Where the last line ends in a file of `size` bytes. None if that is farther from the end than a write is long, or if a process without
/// the lock has written meanwhile.
fn end_of_lines(file: &OwnedFd, size: u64) -> Option<u64> {
    let mut bytes = vec![0; MAX_CHUNK];
    let begin = size.saturating_sub(MAX_CHUNK as u64);
    let read = rustix::io::pread(file, &mut bytes, begin).ok()?;
    let last = bytes[..read].iter().rposition(|byte| *byte == b'\n')?;
    (begin + read as u64 == size && size_of(file) == size).then_some(begin + last as u64 + 1)
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
