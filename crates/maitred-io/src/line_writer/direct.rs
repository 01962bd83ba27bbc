//! Lines written by whoever has them, for comparison: a slow target keeps its caller.

use super::Target;
use super::sink::{Reopen, append_to};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Writes each line with a call of its own before it returns. Lines that cannot be written are dropped and counted.
pub struct DirectWriter {
    file: Mutex<OwnedFd>,
    target: Reopen,
    dropped: AtomicU64,
}

impl DirectWriter {
    /// Opens `target`.
    ///
    /// # Errors
    /// It cannot be opened, or is one that only a thread can write to: a rotated file, syslog.
    pub fn open(target: Target) -> io::Result<Self> {
        let target = match target {
            Target::Stdout => Reopen::Stdout,
            Target::Stderr => Reopen::Stderr,
            Target::Path(path) => {
                // A path is opened so that it blocks, as whoever wants this wants to see.
                let file = append_to(&path)?;
                rustix::io::ioctl_fionbio(&file, false)?;
                return Ok(Self::with(file, Reopen::Path(path)));
            }
            Target::File(file) => return Ok(Self::with(file.into(), Reopen::Nothing)),
            Target::Rotated(..) | Target::Syslog(_) | Target::SyslogUdp(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        };
        let file = target.open()?.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self::with(file, target))
    }

    fn with(file: OwnedFd, target: Reopen) -> Self {
        Self { file: Mutex::new(file), target, dropped: AtomicU64::new(0) }
    }

    /// Writes `line`, which ends in a line feed, however long that takes.
    ///
    /// # Errors
    /// It cannot be written, and is dropped.
    pub fn write(&self, line: &[u8]) -> io::Result<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = line;
        while !left.is_empty() {
            match rustix::io::write(&*file, left) {
                Ok(written @ 1..) => left = &left[written..],
                Err(rustix::io::Errno::INTR) => {}
                other => {
                    self.dropped.fetch_add(1, Relaxed);
                    return Err(other.err().map_or(io::ErrorKind::WriteZero.into(), io::Error::from));
                }
            }
        }
        Ok(())
    }

    /// Opens a path anew, after the file was renamed; if that fails the old one stays.
    pub fn reopen(&self) {
        if let Ok(Some(file)) = self.target.open() {
            let _ = rustix::io::ioctl_fionbio(&file, false);
            *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        }
    }

    /// Number of lines that could not be written.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }
}
