//! A client of a server under test: over TCP, and with TLS where the test's server speaks it.
//!
//! ```text
//! MAITRED_TEST_TLS=1   servers of the tests get the certificate of `certificate()`; `learn` says which ports speak TLS
//! Client::connect      does the handshake if the port does; then it is used like a TcpStream
//! ```
//! Promises: a thread may read while another one sends; `peek` takes nothing out of the socket. Leaves out: certificates that are wrong
//! (maitred-tls has clients for that).

use std::collections::{HashSet, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Bytes that are sealed at once.
const MOST: usize = 64 * 1024;

/// Whether the servers of the tests shall speak TLS: `MAITRED_TEST_TLS=1`.
#[must_use]
pub fn by_tls() -> bool {
    static WANTED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("MAITRED_TEST_TLS").is_some_and(|value| value == "1"));
    *WANTED
}

/// A certificate for `localhost` with its key, both PEM.
#[must_use]
pub fn certificate() -> (&'static str, &'static str) {
    (include_str!("localhost.pem"), include_str!("localhost-key.pem"))
}

static PORTS: LazyLock<Mutex<HashSet<SocketAddr>>> = LazyLock::new(Mutex::default);

static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| {
    let own = CertificateDer::from_pem_slice(certificate().0.as_bytes()).expect("a certificate in PEM");
    config(&own)
});

/// Believes this certificate, and no other.
fn config(certificate: &CertificateDer<'static>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a certificate");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Says whether the server that listens there now speaks TLS by [`certificate`].
pub fn learn(address: SocketAddr, tls: bool) {
    let mut ports = PORTS.lock().unwrap_or_else(PoisonError::into_inner);
    if tls {
        ports.insert(address);
    } else {
        ports.remove(&address);
    }
}

/// A connection to a server. Other methods are those of [`TcpStream`].
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    tls: Option<Arc<Tls>>,
}

#[derive(Debug)]
struct Tls {
    session: Mutex<ClientConnection>,
    /// Held by the receiving thread.
    receiving: Mutex<Opened>,
    /// Held by the sending thread; its bytes are sealed, and the socket has not taken them.
    sending: Mutex<Vec<u8>>,
}

/// Received bytes that were not read.
#[derive(Debug, Default)]
struct Opened {
    bytes: VecDeque<u8>,
    ended: bool,
}

impl Client {
    /// Connects, and does the handshake where the server speaks TLS.
    ///
    /// # Errors
    /// As [`TcpStream::connect`], and of kind `InvalidData` when the handshake fails. A server that closes before its end is met at the first read.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let tls = PORTS.lock().unwrap_or_else(PoisonError::into_inner).contains(&address);
        let mut stream = TcpStream::connect(address)?;
        if !tls {
            return Ok(Self { stream, tls: None });
        }
        let name = ServerName::try_from("localhost").expect("a name");
        let mut session = ClientConnection::new(Arc::clone(&CONFIG), name).map_err(io::Error::other)?;
        session.set_buffer_limit(None);
        let mut opened = Opened::default();
        while session.is_handshaking() || session.wants_write() {
            match session.complete_io(&mut stream) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error),
                // The server has closed it.
                Err(_) => {
                    opened.ended = true;
                    break;
                }
            }
        }
        let tls =
            Tls { session: Mutex::new(session), receiving: Mutex::new(opened), sending: Mutex::default() };
        Ok(Self { stream, tls: Some(Arc::new(tls)) })
    }

    /// Clones the client: one thread may read while another one sends.
    ///
    /// # Errors
    /// As [`TcpStream::try_clone`].
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()?, tls: self.tls.clone() })
    }

    /// Peeks as [`TcpStream::peek`] does. With TLS only whether there are bytes, not their number or content.
    ///
    /// # Errors
    /// As [`TcpStream::peek`].
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(tls) = &self.tls {
            let opened = lock(&tls.receiving);
            if !opened.bytes.is_empty() || opened.ended {
                return Ok(usize::from(!opened.bytes.is_empty()));
            }
        }
        self.stream.peek(buffer)
    }

    /// Shuts down as [`TcpStream::shutdown`] does. With TLS the end of the sending side is said before, by
    /// `close_notify`.
    ///
    /// # Errors
    /// As [`TcpStream::shutdown`].
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        if let (Some(tls), Shutdown::Write) = (&self.tls, how) {
            let mut sealed = lock(&tls.sending);
            let mut session = lock(&tls.session);
            session.send_close_notify();
            take_sealed(&mut session, &mut sealed)?;
            drop(session);
            send(&self.stream, &mut sealed)?;
        }
        self.stream.shutdown(how)
    }
}

impl Deref for Client {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.stream
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return self.stream.read(buffer) };
        let mut opened = lock(&tls.receiving);
        let mut received = [0; 16 * 1024];
        while opened.bytes.is_empty() && !opened.ended {
            let count = self.stream.read(&mut received)?;
            open(&mut lock(&tls.session), &received[..count], &mut opened)?;
        }
        opened.bytes.read(buffer)
    }
}

/// Opens received bytes; an empty slice is the end of the connection.
fn open(session: &mut ClientConnection, mut received: &[u8], opened: &mut Opened) -> io::Result<()> {
    // Without close_notify an end is one, too.
    opened.ended |= received.is_empty();
    while !received.is_empty() {
        session.read_tls(&mut received)?;
        let state = session.process_new_packets().map_err(invalid)?;
        if state.plaintext_bytes_to_read() > 0 {
            let mut bytes = vec![0; state.plaintext_bytes_to_read()];
            session.reader().read_exact(&mut bytes)?;
            opened.bytes.extend(bytes);
        }
        if state.peer_has_closed() {
            opened.ended = true;
            break;
        }
    }
    Ok(())
}

impl Write for Client {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &self.tls else { return self.stream.write(bytes) };
        let mut sealed = lock(&tls.sending);
        send(&self.stream, &mut sealed)?;
        let mut session = lock(&tls.session);
        let count = session.writer().write(&bytes[..bytes.len().min(MOST)])?;
        take_sealed(&mut session, &mut sealed)?;
        drop(session);
        match send(&self.stream, &mut sealed) {
            // The rest goes first the next time.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &self.tls {
            Some(tls) => send(&self.stream, &mut lock(&tls.sending)),
            None => self.stream.flush(),
        }
    }
}

fn take_sealed(session: &mut ClientConnection, sealed: &mut Vec<u8>) -> io::Result<()> {
    while session.wants_write() {
        session.write_tls(sealed)?;
    }
    Ok(())
}

fn send(mut stream: &TcpStream, sealed: &mut Vec<u8>) -> io::Result<()> {
    while !sealed.is_empty() {
        let count = stream.write(sealed)?;
        sealed.drain(..count);
    }
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
