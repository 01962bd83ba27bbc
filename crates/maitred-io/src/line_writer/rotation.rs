//! Another file now and then: by size, by time, or by a name that has the date in it; and the end of old ones.
//!
//! ```text
//! access.log            the present one
//! access.log.20261122-000000        closed at that time, renamed
//! access-%Y%m%d.log     each day a name of its own, nothing is renamed unless it becomes too long
//! ```
//!
//! Several processes may write to the same file: who renames it holds a lock on it, and the others find out that the name
//! leads to another file now. Where they know of each other ([`Options::several`](super::Options::several)) each of them has the lock
//! from its look at the name and the length of the file until it has written: then no file becomes too long, and all look before
//! each call.

mod names;

use super::batch::Batch;
use super::sink::append_to;
use super::tail::{self, Tail};
use names::{Piece, is_of, pieces, rendered};
use rustix::fs::{FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// After a rotation that failed, the next one is tried after so many seconds.
const RETRY: u64 = 60;

/// So often in a row a file is followed by another one before the last one is taken: on file systems that give it another number each
/// time it would go on for ever.
const MOST_FOLLOWED: usize = 100;

/// What a renamed file gets behind its name, in the digits of strftime.
const STAMP: &str = "%Y%m%d-%H%M%S";

/// When a file is followed by another one, and how many are kept.
#[derive(Clone, Copy, Debug)]
pub struct Rotation {
    /// A file that would become longer is closed; 0 for no such limit.
    pub max_bytes: u64,
    /// A file is closed at the first line of another such period, in local time.
    pub period: Option<Period>,
    /// Closed files that are kept; 0 for all.
    pub keep: usize,
    /// Closed files that have not been written to for longer are removed; zero for never.
    pub max_age: Duration,
    /// strftime in local time of seconds since 1970; of the file's name `%Y %m %d %H %M %S %j` are understood.
    pub strftime: fn(pattern: &str, unix_seconds: u64) -> String,
}

/// How long a file lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Until the end of the hour.
    Hour,
    /// Until midnight.
    Day,
}

impl Period {
    fn pattern(self) -> &'static str {
        match self {
            Self::Hour => "%Y%m%d%H",
            Self::Day => "%Y%m%d",
        }
    }
}

impl Rotation {
    /// Whether a file's name has the date or the time in it: a per cent sign before one of the letters above.
    pub fn is_pattern(name: &str) -> bool {
        pieces(name).any(|piece| matches!(piece, Piece::Digits(_)))
    }
}

/// The present file, and when it will not be any more.
pub(super) struct Rotated {
    rotation: Rotation,
    /// As it was given: the last component may be a pattern.
    given: PathBuf,
    path: PathBuf,
    file: OwnedFd,
    /// How much longer it may become, as far as was known before the last line.
    room: usize,
    period: String,
    /// There are lines of this period: nobody else can have begun the file in a later one.
    is_begun: bool,
    looked: u64,
    retry: u64,
    /// Other processes write to it, too.
    tail: Option<Tail>,
}

impl Rotated {
    pub(super) fn open(given: PathBuf, rotation: Rotation, several: bool) -> io::Result<Self> {
        let now = now();
        let path = rendered(&given, rotation, now);
        let file = if several { tail::open(&path)? } else { append_to(&path)? };
        let tail = if several { Tail::of(&file) } else { None };
        let period = String::new();
        let is_begun = false;
        let mut this =
            Self { rotation, given, path, file, room: 0, period, is_begun, looked: 0, retry: 0, tail };
        this.learn_period(now);
        this.prune(now);
        Ok(this)
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    pub(super) fn reopen(&mut self) -> io::Result<()> {
        match self.tail {
            Some(_) => self.follow(now())?,
            None => self.file = append_to(&self.path)?,
        }
        Ok(())
    }

    /// Writes the lines of `batch` that the file has room for, at least one; how much of them.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<usize, Errno> {
        let bytes = batch.chunk_within(self.room);
        let written = match &mut self.tail {
            Some(tail) => tail.append(&self.file, batch, bytes.len())?,
            None => rustix::io::write(&self.file, bytes)?,
        };
        self.room = self.room.saturating_sub(written);
        self.is_begun = true;
        Ok(written)
    }

    /// Begins another file if that is due before a line of `length` bytes. After an error the old one goes on, and for a
    /// minute nothing is tried. Of several processes it is the turn of this one afterwards.
    pub(super) fn rotate_if_due(&mut self, length: usize) -> Result<(), Errno> {
        loop {
            let followed = self.begin_turn();
            // Not before the turn: the wait for it may have gone into another period.
            let now = now();
            let is_due = self.is_other_time(now) | self.is_full(length)?;
            if now < self.retry {
                // It goes on, and becomes longer than it should.
                self.room = usize::MAX;
                return Ok(());
            }
            match followed.and_then(|()| if is_due { self.rotate(now) } else { Ok(false) }) {
                Ok(true) => {
                    self.learn_period(now);
                    self.prune(now);
                    if self.tail.is_none() {
                        self.is_full(length)?;
                        return Ok(());
                    }
                    // Others may have been at the new file already.
                }
                Ok(false) => {
                    if is_due {
                        // The period has not been left: it is looked at again with the next line.
                        self.looked = 0;
                    }
                    return Ok(());
                }
                Err(error) => {
                    self.retry = now + RETRY;
                    self.looked = 0;
                    return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
                }
            }
        }
    }

    /// Waits until nobody else writes to the present file, which another process may have replaced.
    fn begin_turn(&mut self) -> io::Result<()> {
        for _ in 0..MOST_FOLLOWED {
            let Some(tail) = &mut self.tail else { break };
            tail.begin(&self.file);
            if is_at(&self.file, &self.path)? || now() < self.retry {
                break;
            }
            self.follow(now())?;
        }
        Ok(())
    }

    fn follow(&mut self, now: u64) -> io::Result<()> {
        let path = rendered(&self.given, self.rotation, now);
        self.file = tail::open(&path)?;
        self.path = path;
        if let Some(tail) = &mut self.tail {
            tail.forget();
        }
        self.learn_period(now);
        self.looked = 0;
        Ok(())
    }

    fn is_other_time(&mut self, now: u64) -> bool {
        if now == self.looked {
            return false;
        }
        self.looked = now;
        let present = self.period_at(now);
        if self.tail.is_some() && present != self.period && !self.is_begun {
            // Others may have begun it in the meantime.
            self.learn_period(now);
        }
        present != self.period || rendered(&self.given, self.rotation, now) != self.path
    }

    /// Whether a line of `length` bytes is too much for the file. A single line may be longer than a file.
    fn is_full(&mut self, length: usize) -> Result<bool, Errno> {
        let most = self.rotation.max_bytes;
        if most == 0 {
            self.room = usize::MAX;
            return Ok(false);
        }
        let size = u64::try_from(rustix::fs::fstat(&self.file)?.st_size).unwrap_or(0);
        self.room = usize::try_from(most.saturating_sub(size)).unwrap_or(usize::MAX);
        Ok(size > 0 && length > self.room)
    }

    /// False if another process is about to do the same.
    fn rotate(&mut self, now: u64) -> io::Result<bool> {
        let next = rendered(&self.given, self.rotation, now);
        if next == self.path && is_at(&self.file, &self.path)? {
            if self.tail.is_none() {
                match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                    Err(Errno::AGAIN) => return Ok(false),
                    other => other?,
                }
            }
            // It may have been renamed between the look and the lock.
            if is_at(&self.file, &self.path)? {
                self.rename(now)?;
            }
        }
        let file = if self.tail.is_some() { tail::open(&next)? } else { append_to(&next)? };
        // As an operator may have changed it; of a file that others have made it is theirs to say.
        if let Ok(found) = rustix::fs::fstat(&self.file)
            && next == self.path
        {
            let _ = rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(found.st_mode));
        }
        (self.file, self.path) = (file, next);
        if let Some(tail) = &mut self.tail {
            tail.forget();
        }
        Ok(true)
    }

    /// Never over another file: of several in one second the later ones get a number.
    fn rename(&self, now: u64) -> io::Result<()> {
        let stamp = (self.rotation.strftime)(STAMP, now);
        for number in 0.. {
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{stamp}"));
            if number > 0 {
                name.push(format!("-{number:03}"));
            }
            match rename_to_new(&self.path, Path::new(&name)) {
                Err(Errno::EXIST) => {}
                other => return Ok(other?),
            }
        }
        Ok(())
    }

    /// Removes the closed files that are too many or too old. What cannot be removed stays: the next time may do.
    fn prune(&self, now: u64) {
        let Rotation { keep, max_age, .. } = self.rotation;
        if keep == 0 && max_age.is_zero() {
            return;
        }
        let folder = self.given.parent().filter(|folder| !folder.as_os_str().is_empty());
        let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return };
        let Some(pattern) = self.given.file_name().and_then(|name| name.to_str()) else { return };
        let mut closed: Vec<(u64, PathBuf)> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_str().is_some_and(|name| is_of(pattern, name)))
            .filter(|entry| Some(entry.file_name().as_os_str()) != self.path.file_name())
            .filter_map(|entry| {
                let found = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                Some((seconds_of(found.modified().ok()?), entry.path()))
            })
            .collect();
        // The youngest first; of those of one second the one with the greater number.
        closed.sort_by(|one, other| other.cmp(one));
        let oldest = if max_age.is_zero() { 0 } else { now.saturating_sub(max_age.as_secs()) };
        for (position, (modified, path)) in closed.iter().enumerate() {
            if (keep > 0 && position >= keep) || *modified < oldest {
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Lines of an earlier process are of their own time. What was written in this second, or in one to come, is of now.
    ///
    /// Only a file that was not begun here is judged by the time of its last line: between the look at the clock and the write of
    /// another process the period may end, and then that line would hide all those before it.
    fn learn_period(&mut self, now: u64) {
        let last_line = match rustix::fs::fstat(&self.file) {
            Ok(found) if found.st_size > 0 => Some(u64::try_from(found.st_mtime).unwrap_or(0).min(now)),
            _ => None,
        };
        self.is_begun = last_line.is_some();
        self.period = self.period_at(last_line.unwrap_or(now));
    }

    fn period_at(&self, second: u64) -> String {
        self.rotation
            .period
            .map_or(String::new(), |period| (self.rotation.strftime)(period.pattern(), second))
    }
}

fn is_at(file: &OwnedFd, path: &Path) -> io::Result<bool> {
    let own = rustix::fs::fstat(file)?;
    match rustix::fs::stat(path) {
        Ok(found) => Ok((found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// renameat2(2) that replaces nothing; where a file system cannot do that, a look before.
fn rename_to_new(old: &Path, new: &Path) -> Result<(), Errno> {
    let here = rustix::fs::CWD;
    match rustix::fs::renameat_with(here, old, here, new, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) if new.symlink_metadata().is_ok() => Err(Errno::EXIST),
        Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::rename(old, new),
        other => other,
    }
}

/// The path of a file that is rotated, with the date of now where its name has one.
pub fn present(given: &Path, rotation: Rotation) -> PathBuf {
    rendered(given, rotation, now())
}

/// By the clock that the times of files are from, so that a file that has just been written to is not of an earlier time.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    u64::try_from(now.tv_sec).unwrap_or(0)
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
