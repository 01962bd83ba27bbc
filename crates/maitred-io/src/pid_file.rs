//! The file that has the number of a server's process.
//!
//! Promises: the file belongs to one live server at a time, which holds a lock of it (flock(2)) until it ends, however it ends. So the
//! file of a server that is gone is replaced, also when its number is that of another program by now; that of a live one is an
//! error, and so is a file that holds anything but a number. At the end it is removed, or emptied where this user may not.
//!
//! ```text
//! claim: made, empty, locked --write: the number--> dropped: removed
//!                                       `--a successor has written its own--> dropped: left alone
//! ```

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

/// The file's permissions: all users may read it (start-stop-daemon(8)).
const MODE: u32 = 0o644;

/// Bytes that such a file has at most: a number with a line feed.
const LONGEST: u64 = 16;

/// How often another server may be in the way before this is given up.
const ATTEMPTS: u32 = 100;

/// How often the kernel's list of locks is looked at.
const LOOKS: u32 = 5;

/// A PID file that belongs to this process.
#[derive(Debug)]
pub struct PidFile {
    file: File,
    /// Absolute.
    path: PathBuf,
    /// The process that claimed it: a child that was forked removes nothing.
    process: u32,
}

/// Why there is none.
#[derive(Debug)]
pub enum NotClaimed {
    /// A live server has it.
    Held(Holder),
    /// The file has other content, or is no plain file.
    SomethingElse,
    /// The system refuses.
    System(io::Error),
}

/// The server that has a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The process of the holder; none where it cannot be told.
    pub process: Option<u32>,
    /// The name of its program.
    pub name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process} ({})", self.name),
            None => f.write_str("another process"),
        }
    }
}

impl fmt::Display for NotClaimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(holder) => write!(f, "it belongs to {holder}, which runs"),
            Self::SomethingElse => f.write_str("it holds something else than the number of a process"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotClaimed {}

impl From<io::Error> for NotClaimed {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<Errno> for NotClaimed {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

impl PidFile {
    /// Makes the file, or takes over that of a server which is gone. It is empty until [`write`](Self::write).
    ///
    /// # Errors
    /// As [`NotClaimed`] says; the file is as it was.
    pub fn claim(path: &Path) -> Result<Self, NotClaimed> {
        let path = std::path::absolute(path)?;
        for _ in 0..ATTEMPTS {
            let file = open(&path)?;
            if !is_pid_file(&file)? {
                return Err(NotClaimed::SomethingElse);
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // The one that was opened may have been removed before it was locked.
                Ok(()) if !is_at(&file, &path) => {}
                Ok(()) => {
                    file.set_len(0)?;
                    file.set_permissions(fs::Permissions::from_mode(MODE))?;
                    return Ok(Self { file, path, process: std::process::id() });
                }
                Err(Errno::WOULDBLOCK) => match holder(&file) {
                    Some(holder) => return Err(NotClaimed::Held(holder)),
                    // A child that a dead server has left holds the lock. Its own file goes; a server that was as quick
                    // has made another one.
                    None if is_at(&file, &path) => fs::remove_file(&path)?,
                    None => {}
                },
                Err(error) => return Err(error.into()),
            }
        }
        Err(NotClaimed::System(io::Error::other("others make and remove it all the time")))
    }

    /// Takes it over from the process that this one replaces, which has handed on its own descriptor ([`AsFd`]) with the lock, and
    /// writes the number of this process.
    ///
    /// # Errors
    /// It is another file than the one at `path`, or cannot be written.
    pub fn take_over(path: &Path, file: OwnedFd) -> Result<Self, NotClaimed> {
        let path = std::path::absolute(path)?;
        let file = File::from(file);
        // It is this lock already, unless the earlier process has let go of it.
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let taken = Self { file, path, process: std::process::id() };
        taken.write()?;
        Ok(taken)
    }

    /// Writes the number of this process, with a line feed behind it. A process that has handed the file on takes it
    /// back in this way, while it lives.
    ///
    /// # Errors
    /// Another file is at its path by now, or the disk is full.
    pub fn write(&self) -> io::Result<()> {
        if !is_at(&self.file, &self.path) {
            return Err(io::Error::other("another file is in its place"));
        }
        let text = format!("{}\n", std::process::id());
        // In this order its first line is a whole number at any time.
        self.file.write_all_at(text.as_bytes(), 0)?;
        self.file.set_len(text.len() as u64)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for PidFile {
    /// The descriptor for a successor, which [takes it over](Self::take_over).
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let is_ours = self.process == std::process::id()
            && is_at(&self.file, &self.path)
            && number(&self.file).is_ok_and(|number| number.is_none_or(|number| number == self.process));
        if is_ours && fs::remove_file(&self.path).is_err() {
            // This user may not write to its folder. A file without a number says the same.
            let _ = self.file.set_len(0);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(MODE))?))
}

/// Whether it is a plain file with one name that is empty or holds a number.
fn is_pid_file(file: &File) -> io::Result<bool> {
    let found = file.metadata()?;
    Ok(found.is_file() && found.nlink() <= 1 && found.len() <= LONGEST && number(file).is_ok())
}

/// The number in it; none in an empty one.
fn number(mut file: &File) -> Result<Option<u32>, ()> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.take(LONGEST + 1).read_to_string(&mut text)).map_err(drop)?;
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(drop),
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let [own, found] = [file.metadata(), fs::symlink_metadata(path)].map(|found| found.ok().map(id));
    own.is_some() && own == found
}

fn id(metadata: fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The live process that a locked file belongs to: the one whose number is in it, or which has locked it. None if that is gone.
fn holder(file: &File) -> Option<Holder> {
    let process = match number(file) {
        Ok(Some(number)) => number,
        // It has not begun to serve, or does not say.
        _ => match locker(file) {
            Some(process) => process,
            None => return Some(Holder { process: None, name: String::new() }),
        },
    };
    let pid = Pid::from_raw(i32::try_from(process).ok()?)?;
    // A process that this one may not signal exists, too.
    let lives = rustix::process::test_kill_process(pid) != Err(Errno::SRCH);
    let name = || fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default().trim().to_owned();
    lives.then(|| Holder { process: Some(process), name: name() })
}

/// The process that has locked it, as /proc/locks says (proc_locks(5)).
fn locker(file: &File) -> Option<u32> {
    let inode = file.metadata().ok()?.ino();
    // A lock that others let go of while the list is read may hide the next one.
    (0..LOOKS).find_map(|_| locked_by(&fs::read_to_string("/proc/locks").ok()?, inode))
}

/// `1: FLOCK  ADVISORY  WRITE 30045 fe:00:1234 0 EOF`. The device there is not the one of stat(2) on every file system.
fn locked_by(table: &str, inode: u64) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (kind, process, place) = (words.next()?, words.nth(2)?, words.next()?);
        let found = place.rsplit(':').next()?.parse::<u64>().ok()?;
        (kind == "FLOCK" && found == inode).then(|| process.parse().ok()).flatten()
    })
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// Larger than any process has (pid_max is at most 2^22).
    const NOBODY: u32 = 99_999_999;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("maitred.pid");
        (folder, path)
    }

    fn own() -> String {
        format!("{}\n", std::process::id())
    }

    #[test]
    fn it_is_there_from_the_claim_on_has_the_number_when_it_is_written_and_is_removed() {
        let (_folder, path) = place();
        let claimed = PidFile::claim(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        claimed.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
        drop(claimed);
        assert!(!path.exists());
        // Also before it has been written.
        drop(PidFile::claim(&path).unwrap());
        assert!(!path.exists());
    }

    #[test]
    fn that_of_a_live_server_is_an_error_that_names_it() {
        let (_folder, path) = place();
        let first = PidFile::claim(&path).unwrap();
        for _ in 0..2 {
            let Err(NotClaimed::Held(holder)) = PidFile::claim(&path) else { panic!("taken twice") };
            assert_eq!(holder.process, Some(std::process::id()), "before and after it is written");
            first.write().unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), own());
    }

    #[test]
    fn a_stale_one_is_replaced_also_when_its_number_is_used_again() {
        for number in [NOBODY, 1, std::process::id()] {
            let (_folder, path) = place();
            fs::write(&path, format!("{number}\n")).unwrap();
            let claimed = PidFile::claim(&path).unwrap();
            claimed.write().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), own());
        }
    }

    #[test]
    fn a_lock_that_a_dead_server_s_child_holds_is_stale() {
        let (_folder, path) = place();
        fs::write(&path, format!("{NOBODY}\n")).unwrap();
        let child = open(&path).unwrap();
        rustix::fs::flock(&child, FlockOperation::LockExclusive).unwrap();
        let claimed = PidFile::claim(&path).unwrap();
        claimed.write().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), own());
    }

    #[test]
    fn a_file_that_is_no_pid_file_is_left_alone() {
        let (folder, path) = place();
        let other = folder.path().join("other");
        for text in ["secret", "12 34", "1234567890123456789"] {
            fs::write(&path, text).unwrap();
            assert!(matches!(PidFile::claim(&path), Err(NotClaimed::SomethingElse)), "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        fs::remove_file(&path).unwrap();
        fs::write(&other, "").unwrap();
        symlink(&other, &path).unwrap();
        assert!(matches!(PidFile::claim(&path), Err(NotClaimed::System(_))));
        fs::remove_file(&path).unwrap();
        fs::hard_link(&other, &path).unwrap();
        assert!(matches!(PidFile::claim(&path), Err(NotClaimed::SomethingElse)));
    }

    #[test]
    fn another_file_in_its_place_is_not_removed() {
        let (_folder, path) = place();
        let claimed = PidFile::claim(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let second = PidFile::claim(&path).unwrap();
        assert!(claimed.write().is_err());
        drop(claimed);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }

    #[test]
    fn a_successor_takes_it_over_with_its_lock() {
        let (_folder, path) = place();
        let before = PidFile::claim(&path).unwrap();
        before.write().unwrap();
        let handed = before.as_fd().try_clone_to_owned().unwrap();
        let after = PidFile::take_over(&path, handed).unwrap();
        // As if another process had written it.
        fs::write(&path, format!("{}\n", NOBODY)).unwrap();
        drop(before);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{NOBODY}\n"), "it is the successor's");
        after.write().unwrap();
        assert!(matches!(PidFile::claim(&path), Err(NotClaimed::Held(_))), "the lock is the same");
        drop(after);
        assert!(!path.exists());
    }

    #[test]
    fn the_holder_of_a_lock_is_read() {
        let table = "1: POSIX  ADVISORY  WRITE 11 fe:00:1234 0 EOF\n2: FLOCK  ADVISORY  WRITE 22 fe:00:1234 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 33 fe:00:1234 0 EOF\n";
        assert_eq!((locked_by(table, 1234), locked_by(table, 1)), (Some(22), None));
    }
}
