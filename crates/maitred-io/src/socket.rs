//! Non-blocking TCP sockets: listen, accept, receive, send, send a file.
//!
//! Promises: no call waits; every result is one of bytes moved, end, would-block or an error.

mod backlog;
mod receipt;
mod unacknowledged;

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, SocketFlags};

pub use backlog::Backlog;

/// A listening socket.
pub struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
}

/// The longest queue of connections that wait to be accepted; the kernel cuts it to
/// net.core.somaxconn (4,096 by default since Linux 5.4).
pub const BACKLOG: i32 = 4096;

/// Bytes that the kernel takes for a connection beyond what is on its way to the peer (TCP_NOTSENT_LOWAT, tcp(7)), until that
/// is [lifted](Socket::set_send_ahead). It would take up to 4 MiB (net.ipv4.tcp_wmem), over loopback 2.5 MiB from the start,
/// however slowly the peer reads. What is on its way is not limited, so a long fat network is used to the full; but there are
/// more wake-ups, for which a fast transfer over loopback needs half as much CPU time again.
pub const SEND_AHEAD: u32 = 256 * 1024;

/// What one attempt to accept brought.
pub enum Accepted {
    /// A connection and its peer.
    Connection(Socket, SocketAddr),
    /// Nobody waits.
    Empty,
    /// The process or the system has no descriptor or memory left: try again later.
    Exhausted(io::Error),
    /// This connection was gone before it was accepted, or the listener is closed.
    Failed(io::Error),
}

impl Listener {
    /// Listens on `address`. SO_REUSEPORT is not set, so that a port held by anybody else is an
    /// error, whatever options the holder uses.
    ///
    /// # Errors
    /// The kernel's: address in use, not available, permission denied.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        use socket2::{Domain, Protocol, Socket as Setup, Type};
        let setup =
            Setup::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        setup.set_reuse_address(true)?;
        if address.is_ipv6() {
            setup.set_only_v6(true)?;
        }
        // Accepted sockets inherit it on Linux, which saves a system call a connection.
        setup.set_tcp_nodelay(true)?;
        // Accepted sockets have it from their listener. Where the kernel does not know it, it holds more.
        let _ = setup.set_tcp_notsent_lowat(SEND_AHEAD);
        setup.bind(&address.into())?;
        setup.listen(BACKLOG)?;
        let address = setup
            .local_addr()?
            .as_socket()
            .ok_or_else(|| io::Error::other("the listener has no internet address"))?;
        Ok(Self { socket: setup.into(), address })
    }

    /// Says whether the kernel notes when it receives something for the sockets accepted from now on; see
    /// [`Socket::receive_with_receipt`].
    pub fn set_receipts(&self, noted: bool) {
        receipt::set(&self.socket, noted);
    }

    /// What waits to be accepted; none where the kernel does not tell.
    pub fn backlog(&self) -> Option<Backlog> {
        backlog::of(&self.socket)
    }

    /// The address listened on, with the port the kernel chose where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes one connection that waits.
    pub fn accept(&self) -> Accepted {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::acceptfrom_with(&self.socket, flags) {
            Ok((socket, peer)) => {
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                Accepted::Connection(Socket { fd: socket }, peer.unwrap_or(self.address))
            }
            Err(Errno::AGAIN) => Accepted::Empty,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                Accepted::Exhausted(error.into())
            }
            Err(error) => Accepted::Failed(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A connected socket.
pub struct Socket {
    fd: OwnedFd,
}

/// What one attempt to receive or send brought.
#[derive(Debug)]
pub enum Moved {
    /// This many bytes, at least one.
    Bytes(usize),
    /// The peer sends no more; or, for a file, the file ends here.
    End,
    /// Nothing now: an edge will tell.
    Blocked,
    /// The connection is broken.
    Failed(io::Error),
}

impl Moved {
    fn of(result: Result<usize, Errno>) -> Self {
        match result {
            Ok(0) => Self::End,
            Ok(count) => Self::Bytes(count),
            Err(Errno::AGAIN) => Self::Blocked,
            Err(error) => Self::Failed(error.into()),
        }
    }
}

impl Socket {
    /// Receives into `buffer`.
    pub fn receive(&self, buffer: &mut [u8]) -> Moved {
        Moved::of(retry(|| {
            rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()).map(|(count, _)| count)
        }))
    }

    /// Says whether the kernel notes when it receives something.
    pub fn set_receipts(&self, noted: bool) {
        receipt::set(&self.fd, noted);
    }

    /// As [`receive`](Self::receive), and when the kernel had the last of these bytes, in nanoseconds since 1970, where it
    /// has noted that.
    pub fn receive_with_receipt(&self, buffer: &mut [u8]) -> (Moved, Option<u64>) {
        let mut stamp = None;
        let moved = Moved::of(retry(|| {
            let (count, noted) = receipt::receive(&self.fd, buffer)?;
            stamp = noted;
            Ok(count)
        }));
        (moved, stamp)
    }

    /// Sends from `bytes`, which are not empty. `more` says that more follows at once, so that the
    /// kernel may wait to fill a segment (MSG_MORE).
    pub fn send(&self, bytes: &[u8], more: bool) -> Moved {
        let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        Moved::of(retry(|| rustix::net::send(&self.fd, bytes, flags)))
    }

    /// Sends from several buffers in one call. SIGPIPE must be ignored by the process (the Rust
    /// and Python start-up code both do).
    pub fn send_all(&self, parts: &[IoSlice<'_>]) -> Moved {
        Moved::of(retry(|| rustix::io::writev(&self.fd, parts)))
    }

    /// Sends up to `most` bytes of `file` from `offset`. [`Moved::End`] means that the file is
    /// shorter than `offset`.
    pub fn send_file(&self, file: &File, offset: u64, most: usize) -> Moved {
        let mut position = offset;
        Moved::of(retry(|| rustix::fs::sendfile(&self.fd, file, Some(&mut position), most)))
    }

    /// Bytes that were sent and that the peer has not acknowledged, so that the kernel keeps them; 0 where it does not
    /// tell.
    pub fn unacknowledged(&self) -> u64 {
        unacknowledged::of(&self.fd)
    }

    /// Has the kernel drop what the peer has not taken when the socket is closed, and reset the connection
    /// (SO_LINGER, socket(7)). Otherwise it would keep that for a peer that takes nothing for minutes.
    pub fn reset_when_closed(&self) {
        // Without effect on a connection that is gone.
        let _ = socket2::SockRef::from(&self.fd).set_linger(Some(Duration::ZERO));
    }

    /// Says whether the kernel takes [`SEND_AHEAD`] only, or as much as it likes. Where it then takes more than before, an
    /// edge tells.
    pub fn set_send_ahead(&self, limited: bool) {
        // 0 is the system's default, which is no limit. Where the kernel does not know the option, there is none either.
        let _ = socket2::SockRef::from(&self.fd).set_tcp_notsent_lowat(if limited { SEND_AHEAD } else { 0 });
    }

    /// Ends our sending side; the peer can still send.
    pub fn shutdown_write(&self) {
        // A socket that is not connected any more has nothing to shut down.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// Our own address on this connection.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.fd).ok()?).ok()
    }
}

impl From<OwnedFd> for Socket {
    /// A connected socket, whoever made it.
    fn from(fd: OwnedFd) -> Self {
        Self { fd }
    }
}

fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn an_accepted_socket_keeps_little_in_the_kernel_for_a_peer_that_does_not_read() {
        let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a listener");
        let peer = TcpStream::connect(listener.address()).expect("connects");
        let socket = loop {
            match listener.accept() {
                Accepted::Connection(socket, _) => break socket,
                Accepted::Empty => std::thread::yield_now(),
                Accepted::Exhausted(error) | Accepted::Failed(error) => panic!("{error}"),
            }
        };
        let limit = || socket2::SockRef::from(&socket).tcp_notsent_lowat().expect("Linux");
        assert_eq!(limit(), SEND_AHEAD);
        socket.set_send_ahead(false);
        assert_eq!(limit(), 0);
        socket.set_send_ahead(true);
        assert_eq!(limit(), SEND_AHEAD);
        drop(peer);
    }
}
