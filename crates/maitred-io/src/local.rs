//! Sockets for users of the machine: whether a process listens at a path, and the credentials of the other side.

use std::io::{self, ErrorKind};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::ptr;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

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

pub(crate) fn stream() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
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
pub fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
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

    use std::os::unix::net::{UnixListener, UnixStream};

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
    fn a_server_that_has_stopped_accepting_is_live_and_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let _listener = UnixListener::bind(&path).expect("bound");
        let address = SocketAddrUnix::new(&path).expect("short");
        let waiting: Vec<_> = std::iter::from_fn(|| knock(&address).ok()).take(10_000).collect();
        assert!(waiting.len() < 10_000, "the queue is full");
        let (told, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(is_live(&path)));
        assert!(answer.recv_timeout(Duration::from_secs(9)).expect("nobody is waited for"));
    }

    #[test]
    fn the_other_side_is_known() {
        let (one, _other) = UnixStream::pair().expect("a pair");
        let own = (user(), i32::try_from(std::process::id()).expect("small"));
        let found = credentials(&one).expect("told");
        assert_eq!((found.uid, found.pid), own);
    }
}
