//! Where the thread writes: a descriptor, a file that is rotated, or syslog.

use super::Target;
use super::batch::Batch;
use super::rotation::Rotated;
use super::syslog::Syslog;
use super::tail::{self, Tail};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// So much a pipe takes at once or not at all (pipe(7): PIPE_BUF).
const PIPE_BUF: usize = 4096;

pub(super) enum Sink {
    Stream(Stream),
    Rotated(Box<Rotated>),
    /// A datagram for each line.
    Syslog(Syslog),
}

pub(super) struct Stream {
    file: OwnedFd,
    target: Reopen,
    others: Others,
}

/// What is done about other processes that write to the same descriptor or file.
enum Others {
    /// There are none, or the kernel keeps the lines of a call together.
    Ignored,
    /// It would mix the parts of a longer call with theirs.
    SmallCalls,
    Turns(Tail),
}

impl Sink {
    /// With `several`, other processes write to the same target.
    pub(super) fn open(target: Target, several: bool) -> io::Result<Self> {
        let reopen = match target {
            Target::File(file) => {
                let file: OwnedFd = file.into();
                let others = if several { Others::of_pipe(&file) } else { Others::Ignored };
                return Ok(Self::Stream(Stream { file, target: Reopen::Nothing, others }));
            }
            Target::Rotated(path, rotation) => {
                return Ok(Self::Rotated(Box::new(Rotated::open(path, rotation, several)?)));
            }
            Target::Syslog(path) => return Syslog::local(path).map(Self::Syslog),
            Target::SyslogUdp(address) => return Syslog::udp(address).map(Self::Syslog),
            Target::Stdout => Reopen::Stdout,
            Target::Stderr => Reopen::Stderr,
            Target::Path(path) if several => Reopen::Shared(path),
            Target::Path(path) => Reopen::Path(path),
        };
        let file = reopen.open()?.ok_or(io::ErrorKind::Unsupported)?;
        let others = match &reopen {
            _ if !several => Others::Ignored,
            Reopen::Shared(_) => Tail::of(&file).map_or_else(|| Others::of_pipe(&file), Others::Turns),
            // Of an inherited descriptor all processes would have the lock together. The kernel has one position for all of
            // them, and moves it by one call at a time.
            _ => Others::of_pipe(&file),
        };
        Ok(Self::Stream(Stream { file, target: reopen, others }))
    }

    pub(super) fn write(&mut self, batch: &Batch) -> Result<usize, Errno> {
        match self {
            Self::Stream(stream) => stream.write(batch),
            Self::Rotated(rotated) => rotated.write(batch),
            Self::Syslog(syslog) => {
                let (severity, line) = batch.next_line();
                syslog.send(severity, line).map(|()| line.len())
            }
        }
    }

    /// Between two lines: waits for the turn of this process, and begins another file where it is time for one before a line of `length`
    /// bytes.
    pub(super) fn prepare(&mut self, length: usize) -> Result<(), Errno> {
        match self {
            Self::Rotated(rotated) => return rotated.rotate_if_due(length),
            Self::Stream(Stream { file, others: Others::Turns(tail), .. }) => tail.begin(file),
            Self::Stream(_) | Self::Syslog(_) => {}
        }
        Ok(())
    }

    /// Opens it again; false where that is not possible.
    pub(super) fn reopen(&mut self) -> io::Result<bool> {
        match self {
            Self::Stream(stream) => match stream.target.open()? {
                Some(opened) => {
                    stream.file = opened;
                    if let Others::Turns(tail) = &mut stream.others {
                        tail.forget();
                    }
                }
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
            Self::Stream(stream) => Some(&stream.file),
            Self::Rotated(rotated) => Some(rotated.file()),
            Self::Syslog(syslog) => syslog.descriptor(),
        }
    }
}

impl Stream {
    fn write(&mut self, batch: &Batch) -> Result<usize, Errno> {
        match &mut self.others {
            Others::Ignored => rustix::io::write(&self.file, batch.chunk()),
            Others::SmallCalls => rustix::io::write(&self.file, batch.chunk_within(PIPE_BUF)),
            Others::Turns(tail) => tail.append(&self.file, batch, batch.chunk().len()),
        }
    }
}

impl Others {
    fn of_pipe(file: &OwnedFd) -> Self {
        let found = rustix::fs::fstat(file);
        let is_file = found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_file());
        if is_file { Self::Ignored } else { Self::SmallCalls }
    }
}

pub(super) enum Reopen {
    Stdout,
    Stderr,
    Path(PathBuf),
    Shared(PathBuf),
    Nothing,
}

impl Reopen {
    /// A descriptor of its own, so that nobody else closes it.
    pub(super) fn open(&self) -> io::Result<Option<OwnedFd>> {
        Ok(Some(match self {
            Self::Stdout => io::stdout().as_fd().try_clone_to_owned()?,
            Self::Stderr => io::stderr().as_fd().try_clone_to_owned()?,
            Self::Path(path) => append_to(path)?,
            Self::Shared(path) => tail::open(path)?,
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
