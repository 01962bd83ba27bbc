//! The address of a listener, the peers of its connections, and the error when it cannot listen.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;

pub use crate::local::Credentials;

/// Where to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// An address and a port; port 0 lets the kernel choose one.
    Tcp(SocketAddr),
    /// A Unix stream socket.
    Unix(UnixAddress),
}

/// A Unix socket, and the permissions of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixAddress {
    /// The path or name that clients connect to.
    pub name: UnixName,
    /// Permissions of the file, up to 0o777; none: [`MODE`]. Users that may write to the file may connect. The umask
    /// does not count.
    pub mode: Option<u32>,
    /// The user that the file belongs to; none: the one that this process acts as.
    pub owner: Option<u32>,
    /// The group that the file belongs to; none: as the system has it. With [`MODE`], its members may connect.
    pub group: Option<u32>,
}

/// The permissions of a socket's file where nothing else is asked for: its owner and its group may connect. A proxy that is
/// another user needs its group on the file, or 0o666.
pub const MODE: u32 = 0o660;

/// The name of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnixName {
    /// A file, of at most 107 bytes.
    Path(PathBuf),
    /// A name in the kernel, without the zero byte that begins it, of at most 107 bytes. All processes in the network
    /// namespace may connect.
    Abstract(Vec<u8>),
}

impl Address {
    /// The address and the port; none of a Unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl UnixAddress {
    /// A file with the default permissions.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self { name: UnixName::Path(path.into()), mode: None, owner: None, group: None }
    }

    /// A name in the kernel.
    pub fn abstract_name(name: impl Into<Vec<u8>>) -> Self {
        Self { name: UnixName::Abstract(name.into()), mode: None, owner: None, group: None }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<UnixAddress> for Address {
    fn from(address: UnixAddress) -> Self {
        Self::Unix(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(address) => address.fmt(f),
        }
    }
}

impl fmt::Display for UnixAddress {
    /// The name, without permissions and owner.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            UnixName::Path(path) => write!(f, "unix:{}", path.display()),
            UnixName::Abstract(name) => write!(f, "unix:@{}", name.escape_ascii()),
        }
    }
}

/// The other end of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remote {
    /// An address and a port.
    Ip(SocketAddr),
    /// A process of this machine; none where the system does not say which.
    Unix(Option<Credentials>),
}

/// Why nothing listens: the fault, and its remedy.
#[derive(Clone, Debug)]
pub struct BindError {
    kind: ErrorKind,
    what: String,
    remedy: String,
}

impl BindError {
    /// An error with its fault and its remedy.
    pub fn new(kind: ErrorKind, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { kind, what: what.into(), remedy: remedy.into() }
    }

    /// The request cannot be met on any system.
    pub(super) fn invalid(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidInput, what, remedy)
    }

    /// The sort of trouble, as the system's errors have it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The fault; it names the address or the option.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// The remedy.
    pub fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.remedy)
    }
}

impl std::error::Error for BindError {}

impl From<BindError> for io::Error {
    fn from(error: BindError) -> Self {
        Self::new(error.kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_configured() {
        let tcp = |text: &str| Address::Tcp(text.parse().unwrap()).to_string();
        assert_eq!(tcp("127.0.0.1:80"), "127.0.0.1:80");
        assert_eq!(tcp("[::1]:80"), "[::1]:80");
        assert_eq!(Address::from(UnixAddress::path("/run/app.sock")).to_string(), "unix:/run/app.sock");
        assert_eq!(Address::from(UnixAddress::abstract_name("app\n")).to_string(), "unix:@app\\n");
    }

    #[test]
    fn an_error_keeps_its_kind_and_its_text_in_an_error_of_the_system() {
        let error = io::Error::from(BindError::new(ErrorKind::AddrInUse, "taken", "take another"));
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::AddrInUse, "taken: take another"));
    }
}
