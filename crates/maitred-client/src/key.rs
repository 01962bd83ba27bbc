//! The key of a pool: two calls share a connection only if all of it is the same.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The other end of a connection, and the way there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The server.
    pub place: Place,
    /// The proxy between.
    pub proxy: Option<Proxy>,
    /// How TLS knows the server and the client; `None` for plain HTTP.
    pub tls: Option<TlsIdentity>,
}

/// The server's place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A host, in lower case and ASCII, and its port.
    Host(Box<str>, u16),
    /// A Unix socket.
    Socket(PathBuf),
}

/// A proxy. A connection that was made with some credentials is never used for other ones.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Proxy {
    /// The host, in lower case and ASCII.
    pub host: Box<str>,
    /// The port.
    pub port: u16,
    /// Whether TLS is spoken to the proxy itself.
    pub tls: bool,
    /// The value of `Proxy-Authorization`.
    pub credentials: Option<Box<[u8]>>,
}

/// All that decides whom a TLS connection trusts, and as whom it speaks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsIdentity {
    /// Whether the certificate is verified.
    pub verify: bool,
    /// The authorities: a file, a folder or a digest; `None` for those of the system.
    pub authorities: Option<Box<str>>,
    /// The client's certificate, in the same form.
    pub certificate: Option<Box<str>>,
    /// The name that is sent and verified, where it is not the host.
    pub server_name: Option<Box<str>>,
    /// The protocols that are offered, in their order.
    pub protocols: Box<[Box<str>]>,
}

impl Key {
    /// Of plain HTTP to a host.
    pub fn plain(host: &str, port: u16) -> Self {
        Self { place: Place::Host(host.to_ascii_lowercase().into(), port), proxy: None, tls: None }
    }

    /// Of plain HTTP to `host:port`; an IPv6 address stands in brackets.
    ///
    /// # Errors
    /// The text names no host or no port.
    pub fn of_authority(authority: &str) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, format!("'{authority}' is not HOST:PORT"));
        let (host, port) = authority.rsplit_once(':').ok_or_else(wrong)?;
        if host.is_empty() {
            return Err(wrong());
        }
        Ok(Self::plain(host.trim_matches(['[', ']']), port.parse().map_err(|_| wrong())?))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        match &self.place {
            Place::Host(host, port) => write!(f, "{scheme}://{host}:{port}"),
            Place::Socket(path) => write!(f, "{scheme}+unix://{}", path.display()),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let credentials = if self.credentials.is_some() { "with credentials" } else { "without credentials" };
        write!(f, "{}:{} (TLS {}, {credentials})", self.host, self.port, self.tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_name_host_and_port() {
        let key = |authority| Key::of_authority(authority).ok();
        assert_eq!(key("Example.org:80"), Some(Key::plain("example.org", 80)));
        assert_eq!(key("[::1]:8000"), Some(Key::plain("::1", 8000)));
        for wrong in ["", "a", ":80", "a:", "a:b", "a:65536"] {
            assert_eq!(key(wrong), None, "{wrong}");
        }
    }
}
