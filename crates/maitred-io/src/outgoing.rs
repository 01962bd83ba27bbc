//! Sockets of a client: connecting, waiting for several, a look at an idle one.
//!
//! Leaves out: names, and the order of addresses (maitred-client).

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, ipproto};

/// Begins to connect. The socket can be written to when that has ended: [`TcpStream::take_error`] tells how.
///
/// # Errors
/// The system refuses at once.
pub fn connect(address: &SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    match rustix::net::connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS) => {}
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Connects to a Unix socket, whose calls do not wait afterwards.
///
/// # Errors
/// There is none, this user has no right to it, or (`WouldBlock`) its queue is full now: no event tells when it has room.
pub fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &address)?;
    Ok(UnixStream::from(socket))
}

/// Events that are waited for, besides an end or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Bytes can be read.
    Read,
    /// Bytes can be written.
    Write,
    /// Either.
    Both,
}

/// Waits until one of `sockets` is ready, at most for `limit`, or until a signal: whether one has more than room to write,
/// that is bytes, an end or an error. Which one has to be tried.
///
/// # Errors
/// The system refuses.
pub fn wait(sockets: &[(BorrowedFd<'_>, Wanted)], limit: Option<Duration>) -> io::Result<bool> {
    let limit = limit.map(|limit| Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(limit.subsec_nanos()),
    });
    let (mut single, mut many);
    let polled: &mut [PollFd<'_>] = match sockets {
        [socket] => {
            single = [poll_of(socket)];
            &mut single
        }
        _ => {
            many = sockets.iter().map(poll_of).collect::<Vec<_>>();
            &mut many
        }
    };
    match poll(polled, limit.as_ref()) {
        Ok(_) => Ok(polled.iter().any(|socket| !(socket.revents() - PollFlags::OUT).is_empty())),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn poll_of<'a>((socket, wanted): &(BorrowedFd<'a>, Wanted)) -> PollFd<'a> {
    let flags = match wanted {
        Wanted::Read => PollFlags::IN,
        Wanted::Write => PollFlags::OUT,
        Wanted::Both => PollFlags::IN | PollFlags::OUT,
    };
    PollFd::from_borrowed_fd(*socket, flags)
}

/// Whether an idle connection is open and its peer has sent nothing.
pub fn is_quiet(socket: impl AsFd) -> bool {
    let mut byte = [0u8; 1];
    let looked = rustix::net::recv(socket, &mut byte, RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(looked, Err(Errno::AGAIN | Errno::INTR))
}
