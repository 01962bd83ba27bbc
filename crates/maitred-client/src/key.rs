//! The key of a pool: two calls share a connection only if all of it is the same.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::allow::Allow;

/// The other end of a connection, and the way there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// The server.
    pub place: Place,
    /// The proxy between.
    pub proxy: Option<Proxy>,
    /// How TLS knows the server and the client; `None` for plain HTTP.
    pub tls: Option<TlsIdentity>,
    /// The addresses that may be connected. It is here because a connection is used again.
    pub allow: Allow,
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
    /// How TLS is spoken to the proxy itself; `None`: it is not.
    pub tls: Option<TlsIdentity>,
    /// The value of `Proxy-Authorization`.
    pub credentials: Option<Box<[u8]>>,
    /// Further fields for the proxy, names and values.
    pub fields: Box<[Field]>,
}

/// A field: its name and its value.
pub type Field = (Box<str>, Box<[u8]>);

/// All that decides which servers a TLS connection trusts, and as which client it speaks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsIdentity {
    /// Whether the certificate is verified.
    pub verify: bool,
    /// The authorities that are trusted.
    pub authorities: Authorities,
    /// The client's certificate.
    pub certificate: Option<ClientCertificate>,
    /// The name that is sent and verified, where it is not the host.
    pub server_name: Option<Box<str>>,
    /// The protocols that are offered (ALPN), in their order.
    pub protocols: Box<[Box<str>]>,
}

/// The authorities that are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Authorities {
    /// Those of the system.
    #[default]
    System,
    /// Those in a file, or in the files of a folder, in PEM.
    At(PathBuf),
    /// These, in PEM.
    Pem(Pem),
}

/// Certificates as text.
#[derive(Clone)]
pub struct Pem(pub Arc<[u8]>);

/// The client's certificate: files in PEM.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ClientCertificate {
    /// The certificate with its chain.
    pub certificate: PathBuf,
    /// The key; `None`: it stands in the file of the certificate.
    pub key: Option<PathBuf>,
    /// The password of the key.
    pub password: Option<Box<str>>,
}

impl Default for TlsIdentity {
    /// The system's authorities, no client certificate, HTTP/1.1.
    fn default() -> Self {
        Self {
            verify: true,
            authorities: Authorities::System,
            certificate: None,
            server_name: None,
            protocols: ["http/1.1".into()].into(),
        }
    }
}

impl Pem {
    /// A bundle can have some hundred thousand bytes, and a key is hashed at each call: the end stands for the whole.
    fn end(&self) -> &[u8] {
        self.0.get(self.0.len().saturating_sub(128)..).unwrap_or_default()
    }
}

impl PartialEq for Pem {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Pem {}

impl Hash for Pem {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0.len(), self.end()).hash(state);
    }
}

impl Key {
    /// Of plain HTTP to a host.
    pub fn plain(host: &str, port: u16) -> Self {
        Self {
            place: Place::Host(host.to_ascii_lowercase().into(), port),
            proxy: None,
            tls: None,
            allow: Allow::All,
        }
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
        let (host, port, fields) = (&self.host, self.port, self.fields.len());
        write!(f, "{host}:{port} (TLS {}, {credentials}, {fields} fields)", self.tls.is_some())
    }
}

impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl fmt::Debug for ClientCertificate {
    /// Without the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (password {})", self.certificate.display(), self.password.is_some())
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

    #[test]
    fn authorities_as_text_are_the_same_by_their_content() {
        let pem = |text: &str| Pem(text.as_bytes().into());
        assert_eq!(pem("a"), pem("a"));
        assert_ne!(pem("a"), pem("b"));
    }
}
