//! Listening TCP sockets that do not block: listen, accept.
//!
//! Promises: no call waits; every result is a connection, nobody there, or an error.

mod backlog;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::SocketFlags;

use crate::transport::{SEND_AHEAD, Socket, note_receipts};

pub use backlog::Backlog;

/// A listening socket.
pub struct Listener {
    socket: OwnedFd,
    address: SocketAddr,
}

/// The longest queue of connections that wait to be accepted; the kernel cuts it to
/// net.core.somaxconn (4,096 by default since Linux 5.4).
pub const BACKLOG: i32 = 4096;

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
        note_receipts(&self.socket, noted);
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
                Accepted::Connection(Socket::from(socket), peer.unwrap_or(self.address))
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
