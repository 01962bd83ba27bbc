//! Sockets that a service manager has made and passed: descriptors from 3 on, without a gap (sd_listen_fds(3)).

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use rustix::net::{SocketAddrUnix, SocketType, sockopt};

use crate::listener::{Address, UnixAddress};

const FIRST: RawFd = 3;

/// The most: a service manager has some few. A larger number is a mistake.
const MOST: RawFd = 4096;

const NEITHER: &str = "neither a TCP nor a Unix stream socket";

/// The sockets in the environment.
#[derive(Debug, Default)]
pub enum Passing {
    /// No socket.
    #[default]
    Nothing,
    /// Sockets for another process, with its number if the service manager gives one.
    ForAnother(Option<u32>),
    /// Sockets for this one, in their order: at least one.
    Sockets(Vec<PassedSocket>),
}

/// A descriptor that was passed. It is closed in programs that this one starts.
#[derive(Debug)]
pub struct PassedSocket {
    /// The number that it was passed as.
    pub number: RawFd,
    /// The name that the service manager gives it: as a rule that of its unit (`FileDescriptorName=` of systemd.socket(5)).
    pub name: String,
    /// Itself.
    pub socket: OwnedFd,
}

pub(super) fn take(
    text: &dyn Fn(&str) -> Option<String>,
    process: u32,
    troubles: &mut Vec<String>,
) -> Passing {
    let Some(count) = text("LISTEN_FDS") else { return Passing::Nothing };
    let meant = text("LISTEN_PID").and_then(|text| text.parse().ok());
    if meant != Some(process) {
        return Passing::ForAnother(meant);
    }
    let Some(count) = count.parse().ok().filter(|count| (0..=MOST).contains(count)) else {
        troubles.push(format!("LISTEN_FDS is '{count}', which is no number of descriptors"));
        return Passing::Nothing;
    };
    let names = text("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut sockets = Vec::new();
    for number in FIRST..FIRST + count {
        let name = names.next().filter(|name| !name.is_empty()).unwrap_or("unknown").to_owned();
        match own(number) {
            Ok(socket) => sockets.push(PassedSocket { number, name, socket }),
            Err(error) => troubles.push(format!(
                "LISTEN_FDS is {count}, but descriptor {number} ({name}) cannot be used: {error}"
            )),
        }
    }
    if sockets.is_empty() { Passing::Nothing } else { Passing::Sockets(sockets) }
}

fn own(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers; a descriptor that is not open is an error.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and was made for this process before the process began, so that nothing else in it owns it. The
    // variables are read once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

impl PassedSocket {
    /// The address from which connections can be accepted.
    ///
    /// # Errors
    /// It is no such socket: what it is instead, in words that follow "it is".
    pub fn address(&self) -> Result<Address, &'static str> {
        let socket = &self.socket;
        match sockopt::socket_type(socket) {
            Err(_) => return Err("no socket"),
            Ok(SocketType::DGRAM) => return Err("a datagram socket"),
            Ok(SocketType::STREAM) => {}
            Ok(_) => return Err(NEITHER),
        }
        if !sockopt::socket_acceptconn(socket).unwrap_or(false) {
            return Err("a socket that does not listen");
        }
        let found = rustix::net::getsockname(socket).map_err(|_| NEITHER)?;
        if let Ok(address) = SocketAddr::try_from(found.clone()) {
            return Ok(Address::Tcp(address));
        }
        let found = SocketAddrUnix::try_from(found).map_err(|_| NEITHER)?;
        match (found.path_bytes(), found.abstract_name()) {
            (Some(path), _) => Ok(Address::Unix(UnixAddress::path(OsStr::from_bytes(path)))),
            (None, Some(name)) => Ok(Address::Unix(UnixAddress::abstract_name(name))),
            (None, None) => Err("a Unix socket without a name"),
        }
    }
}

impl fmt::Display for PassedSocket {
    /// `socket 3 (http)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socket {} ({})", self.number, self.name)
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::{AsRawFd, IntoRawFd};
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use rustix::io::FdFlags;

    use super::*;

    fn address(socket: impl Into<OwnedFd>) -> Result<String, &'static str> {
        let socket = PassedSocket { number: 3, name: "http".to_owned(), socket: socket.into() };
        socket.address().map(|address| address.to_string())
    }

    #[test]
    fn taken_sockets_are_closed_in_other_programs() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let given = rustix::io::fcntl_dupfd_cloexec(&listener, 500).unwrap();
        rustix::io::fcntl_setfd(&given, FdFlags::empty()).unwrap();
        let number = given.into_raw_fd();
        let taken = own(number).unwrap();
        assert_eq!(taken.as_raw_fd(), number);
        assert_eq!(rustix::io::fcntl_getfd(&taken).unwrap(), FdFlags::CLOEXEC);
        assert!(own(60_000).is_err(), "it is not open");
    }

    #[test]
    fn only_listening_stream_sockets_are_taken() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap();
        let connected = TcpStream::connect(own).unwrap();
        assert_eq!(address(connected), Err("a socket that does not listen"));
        assert_eq!(address(listener), Ok(own.to_string()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let expected = format!("unix:{}", path.display());
        assert_eq!(address(UnixListener::bind(path).unwrap()), Ok(expected));
        assert_eq!(address(UdpSocket::bind("127.0.0.1:0").unwrap()), Err("a datagram socket"));
        assert_eq!(address(UnixDatagram::unbound().unwrap()), Err("a datagram socket"));
        assert_eq!(address(std::fs::File::open("/dev/null").unwrap()), Err("no socket"));
    }
}
