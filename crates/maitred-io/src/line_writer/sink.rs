//! Where the thread writes: a descriptor, a file that is rotated, or syslog.

use super::Target;
use super::batch::Batch;
use super::rotation::Rotated;
use super::syslog::Syslog;
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// An open target.
pub(super) enum Sink {
    /// Bytes, one after the other.
    Stream(OwnedFd, Reopen),
    /// The same, with another file now and then.
    Rotated(Box<Rotated>),
    /// A datagram for each line.
    Syslog(Syslog),
}

impl Sink {
    pub(super) fn open(target: Target) -> io::Result<Self> {
        let reopen = match target {
            Target::File(file) => return Ok(Self::Stream(file.into(), Reopen::Nothing)),
            Target::Rotated(path, rotation) => {
                return Rotated::open(path, rotation).map(|file| Self::Rotated(Box::new(file)));
            }
            Target::Syslog(path) => return Syslog::local(path).map(Self::Syslog),
            Target::SyslogUdp(address) => return Syslog::udp(address).map(Self::Syslog),
            Target::Stdout => Reopen::Stdout,
            Target::Stderr => Reopen::Stderr,
            Target::Path(path) => Reopen::Path(path),
        };
        let file = reopen.open()?.ok_or(io::ErrorKind::Unsupported)?;
        Ok(Self::Stream(file, reopen))
    }

    /// Writes the next of `batch`; how much of it.
    pub(super) fn write(&mut self, batch: &Batch) -> Result<usize, Errno> {
        match self {
            Self::Stream(file, _) => rustix::io::write(file, batch.chunk()),
            Self::Rotated(rotated) => rotated.write(batch),
            Self::Syslog(syslog) => {
                let (severity, line) = batch.next_line();
                syslog.send(severity, line).map(|()| line.len())
            }
        }
    }

    /// Begins another file where it is time for one before a line of `length` bytes.
    pub(super) fn rotate_if_due(&mut self, length: usize) -> Result<(), Errno> {
        match self {
            Self::Rotated(rotated) => rotated.rotate_if_due(length),
            Self::Stream(..) | Self::Syslog(_) => Ok(()),
        }
    }

    /// Opens it again; false where that is not possible.
    pub(super) fn reopen(&mut self) -> io::Result<bool> {
        match self {
            Self::Stream(file, target) => match target.open()? {
                Some(opened) => *file = opened,
                None => return Ok(false),
            },
            Self::Rotated(rotated) => rotated.reopen()?,
            Self::Syslog(syslog) => syslog.connect()?,
        }
        Ok(true)
    }

    /// To wait until it takes something.
    pub(super) fn descriptor(&self) -> Option<&OwnedFd> {
        match self {
            Self::Stream(file, _) => Some(file),
            Self::Rotated(rotated) => Some(rotated.file()),
            Self::Syslog(syslog) => syslog.descriptor(),
        }
    }
}

/// What is opened again on request.
pub(super) enum Reopen {
    Stdout,
    Stderr,
    Path(PathBuf),
    Nothing,
}

impl Reopen {
    /// A descriptor of its own, so that nobody else closes it.
    pub(super) fn open(&self) -> io::Result<Option<OwnedFd>> {
        Ok(Some(match self {
            Self::Stdout => io::stdout().as_fd().try_clone_to_owned()?,
            Self::Stderr => io::stderr().as_fd().try_clone_to_owned()?,
            Self::Path(path) => append_to(path)?,
            Self::Nothing => return Ok(None),
        }))
    }
}

/// Without waiting: the opening of a FIFO that has no reader would block for ever.
pub(super) fn append_to(path: &Path) -> io::Result<OwnedFd> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    Ok(OpenOptions::new().append(true).create(true).custom_flags(flags).open(path)?.into())
}
