//! Another file now and then: by size, by time, or by a name that has the date in it; and the end of old ones.
//!
//! ```text
//! access.log            the present one
//! access.log.20261122-000000        closed at that time, renamed
//! access-%Y%m%d.log     each day a name of its own, nothing is renamed unless it becomes too long
//! ```
//!
//! Several processes may write to the same file: who renames it holds a lock on it, and the others find out that the name
//! leads to another file now.

use super::batch::Batch;
use super::sink::append_to;
use rustix::fs::{FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// After a rotation that failed, the next one is tried after so many seconds.
const RETRY: u64 = 60;

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
    #[must_use]
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
    /// The period of its lines.
    period: String,
    /// The second in which time was looked at last.
    looked: u64,
    /// Not before this second.
    retry: u64,
}

impl Rotated {
    pub(super) fn open(given: PathBuf, rotation: Rotation) -> io::Result<Self> {
        let now = seconds_of(SystemTime::now());
        let path = rendered(&given, rotation, now);
        let file = append_to(&path)?;
        let mut this =
            Self { rotation, given, path, file, room: 0, period: String::new(), looked: 0, retry: 0 };
        // Lines of an earlier process are of their own time.
        let found = fs::metadata(&this.path)?;
        let since = if found.len() > 0 { found.modified().map_or(now, seconds_of) } else { now };
        this.period = this.period_at(since);
        this.prune(now);
        Ok(this)
    }

    pub(super) fn file(&self) -> &OwnedFd {
        &self.file
    }

    pub(super) fn reopen(&mut self) -> io::Result<()> {
        self.file = append_to(&self.path)?;
        Ok(())
    }

    /// Writes the lines of `batch` that the file has room for, at least one; how much of them.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<usize, Errno> {
        let written = rustix::io::write(&self.file, batch.chunk_within(self.room))?;
        self.room = self.room.saturating_sub(written);
        Ok(written)
    }

    /// Begins another file if that is due before a line of `length` bytes. After an error the old one goes on, and for a
    /// minute nothing is tried.
    pub(super) fn rotate_if_due(&mut self, length: usize) -> Result<(), Errno> {
        let now = seconds_of(SystemTime::now());
        let is_other_time = now != self.looked && {
            self.looked = now;
            self.period_at(now) != self.period || rendered(&self.given, self.rotation, now) != self.path
        };
        let is_full = self.is_full(length)?;
        if now < self.retry {
            // It goes on, and becomes longer than it should.
            self.room = usize::MAX;
            return Ok(());
        }
        if !(is_other_time || is_full) {
            return Ok(());
        }
        match self.rotate(now) {
            Ok(done) => {
                if done {
                    self.is_full(length)?;
                    self.period = self.period_at(now);
                    self.prune(now);
                } else {
                    // The period has not been left: it is looked at again with the next line.
                    self.looked = 0;
                }
                Ok(())
            }
            Err(error) => {
                self.retry = now + RETRY;
                self.looked = 0;
                Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
            }
        }
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
        if next == self.path && self.is_at(&self.path)? {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::AGAIN) => return Ok(false),
                other => other?,
            }
            // It may have been renamed between the look and the lock.
            if self.is_at(&self.path)? {
                self.rename(now)?;
            }
        }
        let file = append_to(&next)?;
        // As an operator may have changed it; of a file that others have made it is theirs to say.
        if let Ok(found) = rustix::fs::fstat(&self.file)
            && next == self.path
        {
            let _ = rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(found.st_mode));
        }
        (self.file, self.path) = (file, next);
        Ok(true)
    }

    /// Whether the open file has this name.
    fn is_at(&self, path: &Path) -> io::Result<bool> {
        let own = rustix::fs::fstat(&self.file)?;
        match rustix::fs::stat(path) {
            Ok(found) => Ok((found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
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

    fn period_at(&self, second: u64) -> String {
        self.rotation
            .period
            .map_or(String::new(), |period| (self.rotation.strftime)(period.pattern(), second))
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

/// The path now.
pub(super) fn present(given: &Path, rotation: Rotation) -> PathBuf {
    rendered(given, rotation, seconds_of(SystemTime::now()))
}

/// The path at that time.
fn rendered(given: &Path, rotation: Rotation, second: u64) -> PathBuf {
    match given.file_name().and_then(|name| name.to_str()) {
        Some(name) if Rotation::is_pattern(name) => {
            let rendered: String = pieces(name)
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Digits(specifier) => (rotation.strftime)(specifier, second),
                })
                .collect();
            given.with_file_name(rendered)
        }
        _ => given.to_owned(),
    }
}

/// Whether `name` is one that `pattern` gives, or one of a file that had such a name and was closed.
fn is_of(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    for piece in pieces(pattern) {
        let after = match piece {
            Piece::Text(text) => rest.strip_prefix(text),
            Piece::Digits(specifier) => without_digits(rest, digits_of(specifier)),
        };
        match after {
            Some(after) => rest = after,
            None => return false,
        }
    }
    if rest.is_empty() {
        return Rotation::is_pattern(pattern);
    }
    let stamp = |rest: &str| {
        let rest = without_digits(rest.strip_prefix('.')?, 8)?;
        let rest = without_digits(rest.strip_prefix('-')?, 6)?;
        let number = rest.strip_prefix('-').unwrap_or("0");
        Some((rest.is_empty() || rest.starts_with('-')) && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    stamp(rest).unwrap_or(false)
}

fn without_digits(text: &str, count: usize) -> Option<&str> {
    let (digits, rest) = text.split_at_checked(count)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
}

fn digits_of(specifier: &str) -> usize {
    match specifier {
        "%Y" => 4,
        "%j" => 3,
        _ => 2,
    }
}

enum Piece<'a> {
    Text(&'a str),
    Digits(&'a str),
}

/// A per cent sign before anything else stands for itself.
fn pieces(name: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let specifier = |at: usize| {
            let text = rest.get(at..at + 2)?;
            matches!(text.as_bytes(), [b'%', b'Y' | b'm' | b'd' | b'H' | b'M' | b'S' | b'j']).then_some(text)
        };
        let (piece, length) = match specifier(0) {
            Some(text) => (Piece::Digits(text), 2),
            None => {
                let end = (1..rest.len()).find(|at| specifier(*at).is_some()).unwrap_or(rest.len());
                (Piece::Text(&rest[..end]), end)
            }
        };
        let left = (length > 0).then(|| &rest[length..])?;
        rest = left;
        Some(piece)
    })
}

fn seconds_of(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_log_are_taken_for_closed_ones() {
        for (pattern, name, is) in [
            ("a.log", "a.log.20261122-000000", true),
            ("a.log", "a.log.20261122-000000-012", true),
            ("a.log", "a.log", false),
            ("a.log", "a.log.1", false),
            ("a.log", "a.log.20261122-000000.gz", false),
            ("a.log", "b.log.20261122-000000", false),
            ("site-%Y%m%d.log", "site-20261122.log", true),
            ("site-%Y%m%d.log", "site-20261122.log.20261122-101112", true),
            ("site-%Y%m%d.log", "site-errors00.log", false),
            ("site-%Y-%j", "site-2026-031", true),
            ("100%", "100%", false),
        ] {
            assert_eq!(is_of(pattern, name), is, "{pattern} {name}");
        }
    }
}
