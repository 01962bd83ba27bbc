//! Sockets for users of the machine: a Unix socket that only its owner can connect to, and the credentials of the other
//! side.
//!
//! Promises: the socket's file is never open to others, not even for a moment; a file that a server left behind is
//! replaced, one behind which a server answers is not.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::forked::Unshared;

const BACKLOG: i32 = 16;

/// A listening Unix socket with a file of mode 0600, which is removed with it.
#[derive(Debug)]
pub struct LocalListener {
    // Before the socket.
    _unshared: Unshared,
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file: another one at the same path is not ours to remove.
    file: Option<(u64, u64)>,
}

/// Why there is no socket at a path.
#[derive(Debug)]
pub enum NotBound {
    /// A process answers there.
    InUse,
    /// The file there is something else.
    NotASocket,
    /// The path is longer than a socket's may be (107 bytes on Linux).
    TooLong,
    /// The system refuses.
    System(io::Error),
}

impl fmt::Display for NotBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("another process answers there"),
            Self::NotASocket => f.write_str("the file there is no socket"),
            Self::TooLong => f.write_str("the path is too long for a socket"),
            Self::System(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotBound {}

impl LocalListener {
    /// Listens at `path`; calls of it never wait.
    ///
    /// # Errors
    /// As [`NotBound`] says; nothing has changed then.
    pub fn bind(path: &Path) -> Result<Self, NotBound> {
        let address = SocketAddrUnix::new(path).map_err(|_| NotBound::TooLong)?;
        match fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => return Err(NotBound::NotASocket),
            Ok(_) if is_live(path) => return Err(NotBound::InUse),
            Ok(_) => fs::remove_file(path).map_err(NotBound::System)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(NotBound::System(error)),
        }
        let listener = listen(&address).map_err(|error| NotBound::System(error.into()))?;
        let file = fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()));
        Ok(Self { _unshared: Unshared::new(&listener), listener, path: path.to_owned(), file })
    }

    /// The next connection; none if there is none.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                Ok(Some(stream))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives its file to another user, who may then connect, too.
    ///
    /// # Errors
    /// The process is not root, or another file is at the path.
    pub fn give_to(&self, uid: u32, gid: u32) -> io::Result<()> {
        // Other users that may write to the folder could put another file there, so it is held.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, &self.path, flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        if Some((found.st_dev as u64, found.st_ino as u64)) != self.file || found.st_nlink != 1 {
            return Err(Errno::STALE.into());
        }
        let (user, group) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        Ok(rustix::fs::chownat(&file, "", user, group, AtFlags::EMPTY_PATH)?)
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for LocalListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl LocalListener {
    /// Removes its file, if it is still its own: no client finds the socket any more.
    ///
    /// # Errors
    /// This user may not write to its folder. The file stays, and the next server replaces it.
    pub fn withdraw(&self) -> io::Result<()> {
        let present = fs::symlink_metadata(&self.path).ok().map(|file| (file.dev(), file.ino()));
        if present.is_some() && present == self.file { fs::remove_file(&self.path) } else { Ok(()) }
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let _ = self.withdraw();
    }
}

fn listen(address: &SocketAddrUnix) -> rustix::io::Result<UnixListener> {
    let socket = stream()?;
    // Linux gives the file the mode of the socket: it is never open to others (net/unix/af_unix.c, unix_bind).
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Whether a process listens at this socket. Does not wait, also where that process has stopped accepting.
pub fn is_live(path: &Path) -> bool {
    match SocketAddrUnix::new(path).and_then(|address| knock(&address)) {
        Ok(_) => true,
        // Full, or of another user: a process is there.
        Err(error) => !matches!(error, Errno::CONNREFUSED | Errno::NOENT | Errno::NAMETOOLONG),
    }
}

/// Connects, unless that would have to wait.
pub(crate) fn knock(address: &SocketAddrUnix) -> rustix::io::Result<OwnedFd> {
    let socket = stream()?;
    rustix::net::connect(&socket, address)?;
    Ok(socket)
}

/// A Unix stream socket that does not block.
pub(crate) fn stream() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// The process at the other end of a Unix socket, as of its connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The user.
    pub uid: u32,
    /// The process.
    pub pid: i32,
}

/// Asks the system for the [`Peer`] (`SO_PEERCRED`).
///
/// # Errors
/// The system does not say.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let Credentials { pid, uid, gid: _ } = credentials(stream)?;
    Ok(Peer { uid, pid })
}

/// A process at the other end of a Unix socket, with its user and group: as of its connecting, or of its beginning to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The process; 0 where it is in a PID namespace that we do not see.
    pub pid: i32,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// Asks the system for the [`Credentials`] (`SO_PEERCRED`, unix(7)). rustix has no process 0.
///
/// # Errors
/// The system does not say.
pub(crate) fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
    let mut found = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed; the pointers are to room of the size said, and to that size,
    // which the call only writes to.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            ptr::from_mut(&mut found).cast(),
            &raw mut length,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Credentials { pid: found.pid, uid: found.uid, gid: found.gid })
}

/// The user that this process acts as.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The group of this process.
pub fn group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Waits until one of `descriptors` can be read or accepted from, at most for `limit`; which ones, in their order.
///
/// # Errors
/// The system refuses.
pub fn wait_readable(descriptors: &[BorrowedFd<'_>], limit: Duration) -> io::Result<Vec<bool>> {
    let mut wanted: Vec<PollFd<'_>> =
        descriptors.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN)).collect();
    match poll(&mut wanted, Some(&timespec(limit))) {
        Ok(_) => Ok(wanted.iter().map(|found| !found.revents().is_empty()).collect()),
        Err(rustix::io::Errno::INTR) => Ok(vec![false; descriptors.len()]),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a user has typed at `terminal`, at most for `limit`: whether there is something to read.
///
/// # Errors
/// The terminal has hung up: further reading gives nothing, for ever. Or the system refuses.
pub fn wait_typed(terminal: BorrowedFd<'_>, limit: Duration) -> io::Result<bool> {
    let mut wanted = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
    match poll(&mut wanted, Some(&timespec(limit))) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let found = wanted[0].revents();
    if found.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        return Err(io::Error::new(ErrorKind::UnexpectedEof, "the terminal has hung up"));
    }
    Ok(found.contains(PollFlags::IN))
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;

    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn one_that_has_hung_up_is_no_terminal_to_read_from() {
        let (own, mut peer) = UnixStream::pair().expect("a pair");
        assert!(!wait_typed(own.as_fd(), Duration::ZERO).expect("it is there"));
        io::Write::write_all(&mut peer, b"q").expect("typed");
        assert!(wait_typed(own.as_fd(), Duration::ZERO).expect("it is there"));
        drop(peer);
        let hung_up = wait_typed(own.as_fd(), Duration::from_secs(3600)).expect_err("nobody is there");
        assert_eq!(hung_up.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn the_file_is_the_owners_alone_and_goes_with_the_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let listener = LocalListener::bind(&path).expect("bound");
        assert_eq!(fs::symlink_metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let client = UnixStream::connect(&path).expect("it listens");
        let readable = wait_readable(&[listener.as_fd()], Duration::from_secs(9)).expect("poll");
        assert_eq!(readable, [true]);
        let served = listener.accept().expect("descriptors").expect("one came");
        let own = Peer { uid: user(), pid: i32::try_from(std::process::id()).expect("small") };
        assert_eq!((peer(&served).expect("told"), peer(&client).expect("told")), (own, own));
        assert!(listener.accept().expect("descriptors").is_none());
        drop(listener);
        assert!(!path.exists());
    }

    #[test]
    fn a_server_that_has_stopped_accepting_is_live_and_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let _listener = LocalListener::bind(&path).expect("bound");
        let address = SocketAddrUnix::new(&path).expect("short");
        let waiting: Vec<_> = std::iter::from_fn(|| knock(&address).ok()).take(1000).collect();
        assert!(waiting.len() < 1000, "the queue is full");
        let (told, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(is_live(&path)));
        assert!(answer.recv_timeout(Duration::from_secs(9)).expect("nobody is waited for"));
    }

    #[test]
    fn a_left_file_is_replaced_and_one_in_use_is_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        drop(UnixListener::bind(&path).expect("bound"));
        assert!(path.exists() && !is_live(&path));
        let first = LocalListener::bind(&path).expect("the old one is replaced");
        assert!(matches!(LocalListener::bind(&path), Err(NotBound::InUse)));
        // Its file belongs to another one now.
        fs::remove_file(&path).expect("removed");
        let second = LocalListener::bind(&path).expect("bound");
        drop(first);
        assert!(is_live(&path));
        drop(second);
        fs::write(&path, "").expect("a file");
        assert!(matches!(LocalListener::bind(&path), Err(NotBound::NotASocket)));
        let long = folder.path().join("x".repeat(200));
        assert!(matches!(LocalListener::bind(&long), Err(NotBound::TooLong)));
    }
}
