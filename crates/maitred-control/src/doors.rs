//! Where one may knock: a Unix socket for the owner of the process, and a listener for HTTP.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use maitred_io::forked::Unshared;
use maitred_io::listener::{Accepted, Address, BindError, Listener, SocketOptions, UnixAddress, UnixName};
use maitred_io::local::Credentials;

/// Where a server is to be controlled.
#[derive(Clone, Debug, Default)]
pub struct DoorSettings {
    /// The path of a Unix socket. Its file has mode 0600; besides, only its owner's and root's processes are answered.
    pub socket: Option<PathBuf>,
    /// The user and the group that its file is given to; those of the process without it.
    pub owner: Option<(u32, u32)>,
    /// The address of a listener for HTTP: a loopback one unless there is a token.
    pub admin: Option<SocketAddr>,
    /// The token that a client of that listener has to show (`Authorization: Bearer`), if any.
    pub token: Option<String>,
}

/// Why a door cannot be opened.
#[derive(Debug)]
pub enum NotOpened {
    /// The Unix socket.
    Socket(BindError),
    /// The listener for HTTP.
    Admin(SocketAddr, io::Error),
    /// The address lets users of other machines in, and there is no token.
    NeedsToken(SocketAddr),
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(error) => write!(f, "no control socket: {}", error.what()),
            Self::Admin(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::NeedsToken(address) => write!(f, "{address} is no loopback address, and there is no token"),
        }
    }
}

impl std::error::Error for NotOpened {}

/// The open ones. They close when this is dropped.
#[derive(Default)]
pub struct Doors {
    pub(super) local: Option<LocalDoor>,
    /// Before the socket.
    unshared: Option<Unshared>,
    pub(super) admin: Option<(TcpListener, SocketAddr)>,
    pub(super) token: Option<String>,
}

impl Doors {
    /// Opens the listeners. Connections wait in the backlog until [`Control::start`](super::Control::start).
    ///
    /// # Errors
    /// One of them cannot be opened; none is.
    pub fn open(settings: &DoorSettings) -> Result<Self, NotOpened> {
        let DoorSettings { socket, owner, admin, token } = settings;
        let mut doors = Self { token: token.clone(), ..Self::default() };
        if let Some(path) = socket {
            doors.local = Some(LocalDoor::open(path, *owner)?);
        }
        doors.admin = match admin {
            Some(address) if token.is_none() && !address.ip().to_canonical().is_loopback() => {
                return Err(NotOpened::NeedsToken(*address));
            }
            Some(address) => Some(listen(*address).map_err(|error| NotOpened::Admin(*address, error))?),
            None => None,
        };
        doors.unshared = doors.admin.as_ref().map(|(listener, _)| Unshared::new(listener));
        Ok(doors)
    }

    /// Opens the Unix socket as well.
    ///
    /// # Errors
    /// It cannot be opened; the others stay.
    pub fn open_socket(&mut self, path: &Path) -> Result<(), NotOpened> {
        self.local = Some(LocalDoor::open(path, None)?);
        Ok(())
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> Option<&std::path::Path> {
        self.local.as_ref().map(|local| &*local.path)
    }

    /// The address of the listener for HTTP, with the port the system chose.
    pub fn admin(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|(_, address)| *address)
    }

    /// All of them as text.
    pub fn places(&self) -> Vec<String> {
        let socket = self.socket().map(|path| path.display().to_string());
        socket.into_iter().chain(self.admin().map(|address| format!("http://{address}"))).collect()
    }
}

/// A Unix socket with a file of mode 0600, which is removed with it.
pub(super) struct LocalDoor {
    listener: Listener,
    pub(super) path: PathBuf,
}

impl LocalDoor {
    fn open(path: &Path, owner: Option<(u32, u32)>) -> Result<Self, NotOpened> {
        let (owner, group) = owner.unzip();
        let address = UnixAddress { name: UnixName::Path(path.to_owned()), mode: Some(0o600), owner, group };
        let listener = Listener::bind(&Address::Unix(address), &SocketOptions::default());
        Ok(Self { listener: listener.map_err(NotOpened::Socket)?, path: path.to_owned() })
    }

    /// The next client; none if there is none.
    pub(super) fn accept(&self) -> io::Result<Option<(UnixStream, Credentials)>> {
        match self.listener.accept() {
            Accepted::Connection(socket, _) => {
                let stream = UnixStream::from(OwnedFd::from(socket));
                stream.set_nonblocking(false)?;
                let peer = maitred_io::local::credentials(&stream)?;
                Ok(Some((stream, peer)))
            }
            Accepted::Empty => Ok(None),
            Accepted::Exhausted(error) | Accepted::Failed(error) => Err(error),
        }
    }

    /// Removes the file: no client finds the socket any more.
    pub(super) fn withdraw(&self) -> io::Result<()> {
        self.listener.remove_file()
    }
}

impl AsFd for LocalDoor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Drop for LocalDoor {
    fn drop(&mut self) {
        let _ = self.withdraw();
    }
}

fn listen(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

/// Wakes the thread that waits for knocks.
pub(crate) struct Bell {
    sender: UnixStream,
    receiver: UnixStream,
}

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        let (sender, receiver) = UnixStream::pair()?;
        sender.set_nonblocking(true)?;
        receiver.set_nonblocking(true)?;
        Ok(Self { sender, receiver })
    }

    pub(super) fn ring(&self) {
        // Full: it has been rung often enough.
        let _ = (&self.sender).write(&[0]);
    }

    pub(super) fn hear(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.receiver).read(&mut bytes), Ok(count) if count > 0) {}
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// Reads a token from a file: its first line, without white space around it.
///
/// # Errors
/// The file cannot be read, is empty, or others than its owner may read it.
pub fn read_token(path: &std::path::Path) -> Result<String, String> {
    use std::os::unix::fs::PermissionsExt;
    let shown = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| format!("the file {shown} cannot be read: {error}"))?;
    let mode = fs::metadata(path).map(|found| found.permissions().mode()).unwrap_or(0);
    if mode & 0o077 != 0 {
        return Err(format!("others than its owner may read or write the file {shown}: chmod 600 {shown}"));
    }
    match text.lines().next().map(str::trim) {
        Some(token) if token.len() >= MIN_TOKEN && token.bytes().all(|byte| byte.is_ascii_graphic()) => {
            Ok(token.to_owned())
        }
        _ => Err(format!("the first line of {shown} is no token: {MIN_TOKEN} or more printable characters")),
    }
}

/// The shortest token: 16 characters of 6 bits are 96 bits.
const MIN_TOKEN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_the_owners_alone_and_goes_with_the_socket() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s");
        let door = LocalDoor::open(&path, None).expect("bound");
        assert_eq!(fs::symlink_metadata(&path).expect("a file").permissions().mode() & 0o777, 0o600);
        let _client = UnixStream::connect(&path).expect("it listens");
        let (_, peer) = door.accept().expect("descriptors").expect("one came");
        assert_eq!(peer.uid, maitred_io::local::user());
        assert!(door.accept().expect("descriptors").is_none());
        assert!(matches!(LocalDoor::open(&path, None), Err(NotOpened::Socket(_))), "it is in use");
        drop(door);
        assert!(!path.exists());
    }
}
