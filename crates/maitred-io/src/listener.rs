//! Listening sockets that do not block, on TCP and on Unix stream sockets: listen, with options; accept.
//!
//! Promises: no call waits, but for a moment before a Unix socket's file appears; every result of accepting is a
//! connection, an empty queue, or an error. Options are set before the socket listens. An error about an address says
//! how to mend it.
//!
//! Leaves out: the set of sockets (maitred-server).
//!
//! | room | |
//! |---|---|
//! | address | addresses, peers, and errors |
//! | options | socket options, and the kernel's values of them |
//! | unix | the file of a Unix socket, or its name in the kernel |
//! | backlog | connections that wait to be accepted |
//! | adopt | a socket that another process has made |
//! | group | several sockets at one address |

mod address;
mod adopt;
mod backlog;
mod group;
mod options;
#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests;
mod unix;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use crate::forked::Unshared;
use crate::local;
use crate::transport::{Socket, note_receipts};

pub use address::{Address, BindError, Credentials, MODE, Remote, UnixAddress, UnixName};
pub use backlog::Backlog;
pub use group::{MAX_GROUP, ReusePortGroup};
pub use options::{ActiveOptions, BACKLOG, FastOpen, KeepAlive, SocketOptions};

/// A listening socket.
pub struct Listener {
    // Before the socket.
    unshared: Unshared,
    socket: OwnedFd,
    address: Address,
    /// The file of a Unix socket that has one.
    file: Option<unix::OwnFile>,
    /// The queue's length as given to listen(2).
    queue: i32,
    /// Whether its connections keep heads for the first segment of a file.
    corks: bool,
}

/// The result of one attempt to accept.
pub enum Accepted {
    /// A connection and its peer.
    Connection(Socket, Remote),
    /// No connection waits.
    Empty,
    /// The process or the system has no descriptor or memory left: try again later.
    Exhausted(io::Error),
    /// This connection was gone before it was accepted, or the listener is closed.
    Failed(io::Error),
}

impl Listener {
    /// Listens on `address`. Of TCP, SO_REUSEPORT is not set, so that a port held by any other socket is an error, with
    /// any options of the holder. Of a Unix socket, a file that a dead server left is replaced; that of a live one, or
    /// another sort of file, is an error. The file stays when the listener is dropped, until
    /// [`remove_file`](Self::remove_file).
    ///
    /// # Errors
    /// The address is in use, not available or not permitted; an option is refused.
    pub fn bind(address: &Address, options: &SocketOptions) -> Result<Self, BindError> {
        let (queue, corks) = (options.queue(), options.cork.unwrap_or(true));
        match address {
            Address::Tcp(asked) => {
                let (socket, address) = bind_tcp(*asked, options, false)?;
                Ok(Self::new(socket, Address::Tcp(address), None, (queue, corks)))
            }
            Address::Unix(asked) => {
                let (socket, file) = unix::bind(asked, options)?;
                Ok(Self::new(socket, address.clone(), file, (queue, corks)))
            }
        }
    }

    fn new(
        socket: OwnedFd,
        address: Address,
        file: Option<unix::OwnFile>,
        (queue, corks): (i32, bool),
    ) -> Self {
        Self { unshared: Unshared::new(&socket), socket, address, file, queue, corks }
    }

    /// Says whether the kernel notes when it receives something for the sockets accepted from now on; see
    /// [`Socket::receive_with_receipt`]. Of Unix sockets it never does.
    pub fn set_receipts(&self, noted: bool) {
        if matches!(self.address, Address::Tcp(_)) {
            note_receipts(&self.socket, noted);
        }
    }

    /// Connections that wait to be accepted; none where the kernel does not tell, as of Unix sockets.
    pub fn backlog(&self) -> Option<Backlog> {
        match self.address {
            Address::Tcp(_) => backlog::of(&self.socket),
            Address::Unix(_) => None,
        }
    }

    /// The address listened on, with the port the kernel chose where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The options that are in force, as the kernel tells them now.
    pub fn active(&self) -> ActiveOptions {
        match self.address {
            Address::Tcp(_) => {
                let backlog = self.backlog().map_or_else(|| options::cut(self.queue), |backlog| backlog.max);
                ActiveOptions { backlog, cork: Some(self.corks), ..options::active(&self.socket) }
            }
            Address::Unix(_) => {
                ActiveOptions { backlog: options::cut(self.queue), ..ActiveOptions::default() }
            }
        }
    }

    /// Takes one connection that waits.
    pub fn accept(&self) -> Accepted {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let accepted = match self.address {
            Address::Tcp(own) => rustix::net::acceptfrom_with(&self.socket, flags).map(|(socket, peer)| {
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                (Socket::tcp(socket, self.corks), Remote::Ip(peer.unwrap_or(own)))
            }),
            Address::Unix(_) => rustix::net::accept_with(&self.socket, flags).map(|socket| {
                let peer = local::credentials(&socket).ok();
                (Socket::unix(socket), Remote::Unix(peer))
            }),
        };
        match accepted {
            Ok((socket, peer)) => Accepted::Connection(socket, peer),
            Err(Errno::AGAIN) => Accepted::Empty,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                Accepted::Exhausted(error.into())
            }
            Err(error) => Accepted::Failed(error.into()),
        }
    }

    /// Removes the file of a Unix socket, unless another one is at its path by now, so that no client finds the socket
    /// any more. Connections in its queue can still be accepted. To be called once, at the end; nothing else of a
    /// listener removes the file.
    ///
    /// # Errors
    /// This user may not write to its folder. The file stays, and the next server replaces it.
    pub fn remove_file(&self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), unix::OwnFile::remove)
    }
}

/// `grouped`: others of this user may listen there, too.
fn bind_tcp(
    asked: SocketAddr,
    options: &SocketOptions,
    grouped: bool,
) -> Result<(OwnedFd, SocketAddr), BindError> {
    let refused = |error: Errno| not_bound(asked, &error.into());
    let family = if asked.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).map_err(refused)?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(refused)?;
    sockopt::set_socket_reuseport(&socket, grouped).map_err(refused)?;
    if asked.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true).map_err(refused)?;
    }
    options.set(&socket)?;
    net::bind(&socket, &asked).map_err(refused)?;
    net::listen(&socket, options.queue()).map_err(refused)?;
    let address = net::getsockname(&socket).map_err(refused)?;
    Ok((socket, SocketAddr::try_from(address).unwrap_or(asked)))
}

fn not_bound(address: SocketAddr, error: &io::Error) -> BindError {
    let (what, remedy) = match error.kind() {
        ErrorKind::AddrInUse => {
            (format!("{address} is in use"), "stop who listens there, or take another port")
        }
        ErrorKind::PermissionDenied => (
            format!("{address} must not be used by this user"),
            "take a port from 1024 on, or give the program CAP_NET_BIND_SERVICE",
        ),
        ErrorKind::AddrNotAvailable => (
            format!("{address} is not an address of this machine"),
            "take one that it has, or 0.0.0.0 or [::] for all",
        ),
        _ => (
            format!("cannot listen on {address} ({error})"),
            "see whether this machine has such addresses, and what limits this process",
        ),
    };
    BindError::new(error.kind(), what, remedy)
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> Self {
        drop(listener.unshared);
        listener.socket
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
