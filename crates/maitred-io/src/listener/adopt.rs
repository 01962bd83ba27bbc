//! Listening sockets that another process has made and handed over.
//!
//! Promises: a descriptor that is no listening stream socket of the wanted address is refused, and the error says what
//! it is. The file of a Unix socket stays that of the process that bound it.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use rustix::net::{SocketAddrAny, SocketAddrUnix, SocketType, sockopt};

use super::unix::{self, NAME_PART};
use super::{Address, BindError, Listener, SocketOptions, UnixAddress, UnixName};

const REMEDY: &str =
    "hand over the sockets in the order of the listeners, or none, so that the program listens itself";

impl Listener {
    /// Takes a socket that listens already, at `address`; port 0 there stands for any port. Its options are set as
    /// [`bind`](Self::bind) sets them, and hold for all processes that have the socket; how many connections may wait stays as it
    /// is. A Unix socket's file is not this listener's: [`remove_file`](Self::remove_file) leaves it, unless
    /// [`own_file`](Self::own_file) was called.
    ///
    /// # Errors
    /// It is no listening stream socket, listens somewhere else, or refuses an option.
    pub fn adopt(socket: OwnedFd, address: &Address, options: &SocketOptions) -> Result<Self, BindError> {
        let refused = |what: &str| {
            let what = format!("the descriptor that is handed over for {address} is {what}");
            BindError::new(ErrorKind::InvalidInput, what, REMEDY)
        };
        let kind = sockopt::socket_type(&socket).map_err(|_| refused("no socket"))?;
        if kind != SocketType::STREAM {
            return Err(refused("no stream socket"));
        }
        if !sockopt::socket_acceptconn(&socket).unwrap_or(false) {
            return Err(refused("a socket that does not listen"));
        }
        let system = |error: rustix::io::Errno| {
            let error = io::Error::from(error);
            let what = format!("cannot use the socket that is handed over for {address} ({error})");
            BindError::new(error.kind(), what, "see what limits this process")
        };
        let found = rustix::net::getsockname(&socket).map_err(system)?;
        let own = own_address(address, found).map_err(|found| refused(&format!("one of {found}")))?;
        match &own {
            Address::Tcp(_) => options.set(&socket)?,
            Address::Unix(own) => unix::check_options(own, options)?,
        }
        // No call of a listener waits, and no program that is started has it.
        let flags = rustix::fs::fcntl_getfl(&socket).map_err(system)?;
        rustix::fs::fcntl_setfl(&socket, flags | OFlags::NONBLOCK).map_err(system)?;
        rustix::io::fcntl_setfd(&socket, FdFlags::CLOEXEC).map_err(system)?;
        let (queue, corks) = (options.queue(), options.cork.unwrap_or(true));
        Ok(Self::new(socket, own, None, (queue, corks)))
    }

    /// Takes over the file of a Unix socket, as if this listener had bound it: the process that did so ends without it.
    /// Nothing changes for other sockets.
    pub fn own_file(&mut self) {
        if let Address::Unix(UnixAddress { name: UnixName::Path(path), .. }) = &self.address {
            self.file = unix::OwnFile::at(path);
        }
    }

    /// The file of a Unix socket is not this listener's any more.
    pub fn disown_file(&mut self) {
        self.file = None;
    }
}

/// Where a socket listens, if that is `wanted`.
/// Errors: the address that it has.
fn own_address(wanted: &Address, found: SocketAddrAny) -> Result<Address, String> {
    if let Ok(found) = SocketAddr::try_from(found.clone()) {
        return match wanted {
            Address::Tcp(wanted) if is_at(*wanted, found) => Ok(Address::Tcp(found)),
            _ => Err(found.to_string()),
        };
    }
    let Ok(found) = SocketAddrUnix::try_from(found) else {
        return Err("an address of another family".to_owned());
    };
    match wanted {
        Address::Unix(asked) if has_name(&asked.name, &found) => Ok(wanted.clone()),
        _ => Err(shown(&found)),
    }
}

fn is_at(wanted: SocketAddr, found: SocketAddr) -> bool {
    wanted.ip() == found.ip() && (wanted.port() == 0 || wanted.port() == found.port())
}

/// Whether a socket is the one that is called so. A path may have been moved since: then its last part begins with that of the
/// wanted one and a dot, see `unix`. The folder may be called otherwise, by a descriptor or a link.
fn has_name(wanted: &UnixName, found: &SocketAddrUnix) -> bool {
    match wanted {
        UnixName::Abstract(name) => found.abstract_name() == Some(name),
        UnixName::Path(path) => {
            let last = |path: &Path| path.file_name().map(|name| name.as_bytes().to_vec());
            let found = found.path_bytes().map(|bytes| Path::new(std::ffi::OsStr::from_bytes(bytes)));
            let (Some(wanted), Some(found)) = (last(path), found.and_then(last)) else { return false };
            let begin = &wanted[..wanted.len().min(NAME_PART)];
            found == wanted || found.strip_prefix(begin).is_some_and(|rest| rest.starts_with(b"."))
        }
    }
}

fn shown(address: &SocketAddrUnix) -> String {
    match (address.path_bytes(), address.abstract_name()) {
        (Some(path), _) => format!("unix:{}", String::from_utf8_lossy(path)),
        (None, Some(name)) => format!("unix:@{}", name.escape_ascii()),
        (None, None) => "no address".to_owned(),
    }
}
