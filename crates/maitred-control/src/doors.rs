//! Where one may knock: a Unix socket for the owner of the process, and a listener for HTTP.

use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use maitred_io::forked::Unshared;
use maitred_io::local::{LocalListener, NotBound};

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
    Socket(PathBuf, NotBound),
    /// The listener for HTTP.
    Admin(SocketAddr, io::Error),
    /// The address lets users of other machines in, and there is no token.
    NeedsToken(SocketAddr),
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(path, error) => write!(f, "no control socket at {}: {error}", path.display()),
            Self::Admin(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::NeedsToken(address) => write!(f, "{address} is no loopback address, and there is no token"),
        }
    }
}

impl std::error::Error for NotOpened {}

/// The open ones. They close when this is dropped.
#[derive(Debug, Default)]
pub struct Doors {
    pub(super) local: Option<LocalListener>,
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
            doors.open_socket(path)?;
        }
        if let (Some(local), Some((uid, gid))) = (&doors.local, owner) {
            let given = local.give_to(*uid, *gid).map_err(NotBound::System);
            given.map_err(|error| NotOpened::Socket(local.path().to_owned(), error))?;
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
        let bound = LocalListener::bind(path).map_err(|error| NotOpened::Socket(path.to_owned(), error))?;
        self.local = Some(bound);
        Ok(())
    }

    /// The path of the Unix socket.
    pub fn socket(&self) -> Option<&std::path::Path> {
        self.local.as_ref().map(LocalListener::path)
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
