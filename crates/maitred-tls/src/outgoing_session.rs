//! The client's end of one TLS connection over a socket that does not wait.
//!
//! ```text
//! handshake --Done--> open --close--> half closed --Read::End, Read::Truncated--> ended
//!     |                |
//!     `--> failed <----'      each further call returns the fault
//! ```
//! Promises: no call waits, and none panics with any bytes of a server. A call makes a bounded number of reads. The socket
//! is an argument: it can be one in another session, as a proxy has it that speaks TLS itself.
//!
//! Leaves out: time limits; the caller with the socket has them.

use std::fmt;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind, ProtocolVersion};

use crate::handshake::Version;
use crate::noted::{self, SessionNotes};
use crate::outgoing::OutgoingTerms;
use crate::server_fault::{Circumstances, ServerFault};
use crate::session::Read;

/// One read of the socket takes so much: two full records.
const INBOX: usize = 32 * 1024;

/// How often one call reads the socket without having bytes for the caller: a server that sends records without content
/// must not keep a thread from its time limits.
const MAX_READS: usize = 16;

/// The most plaintext that one call encrypts.
const MAX_WRITE: usize = 64 * 1024;

/// How many first bytes are kept for errors.
const FIRST: usize = 16;

/// The client's end of one TLS connection.
pub struct OutgoingSession {
    connection: ClientConnection,
    terms: OutgoingTerms,
    host: Box<str>,
    noted: SessionNotes,
    first: Vec<u8>,
    /// Bytes of the socket that were not decrypted yet stand from `taken` to `filled`.
    inbox: Vec<u8>,
    taken: usize,
    filled: usize,
    /// How many bytes of plaintext wait to be read.
    waiting: usize,
    sent: u64,
    /// The application has received a byte.
    has_read: bool,
    /// The socket has ended.
    has_ended: bool,
    is_closed: bool,
    failed: Option<ServerFault>,
}

/// The state of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshaking {
    /// The handshake is complete.
    Done,
    /// More bytes of the server have to come.
    WantsRead,
    /// The socket has to take more bytes.
    WantsWrite,
}

/// Why a call on a session has failed.
#[derive(Debug)]
pub enum OutgoingError {
    /// The fault of the session.
    Tls(ServerFault),
    /// The fault of the socket.
    Socket(io::Error),
}

impl fmt::Display for OutgoingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tls(fault) => fault.fmt(f),
            Self::Socket(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OutgoingError {}

impl From<ServerFault> for OutgoingError {
    fn from(fault: ServerFault) -> Self {
        Self::Tls(fault)
    }
}

impl fmt::Debug for OutgoingSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingSession").field("host", &self.host).finish_non_exhaustive()
    }
}

impl OutgoingSession {
    /// The start of a session with `host`, a name or an address without brackets.
    ///
    /// # Errors
    /// It is neither a name nor an address, or the system has no random numbers.
    pub fn new(terms: &OutgoingTerms, host: &str) -> Result<Self, ServerFault> {
        let wrong =
            |_| ServerFault::Internal(format!("'{}' is no name of a server", host.escape_debug()).into());
        let name = ServerName::try_from(host.to_owned()).map_err(wrong)?;
        let internal = |error: rustls::Error| ServerFault::Internal(error.to_string().into());
        Ok(Self {
            connection: ClientConnection::new(Arc::clone(&terms.config), name).map_err(internal)?,
            terms: terms.clone(),
            host: host.into(),
            noted: SessionNotes::default(),
            first: Vec::new(),
            inbox: Vec::new(),
            taken: 0,
            filled: 0,
            waiting: 0,
            sent: 0,
            has_read: false,
            has_ended: false,
            is_closed: false,
            failed: None,
        })
    }

    /// Goes on with the handshake as far as `socket` allows.
    ///
    /// # Errors
    /// The handshake has failed. The server was sent an alert if the socket took it.
    pub fn handshake(
        &mut self,
        socket: &mut (impl io::Read + io::Write),
    ) -> Result<Handshaking, OutgoingError> {
        self.check()?;
        for _ in 0..MAX_READS {
            // A server that refuses the client may have sent an alert before its end: it says more than a broken pipe.
            let sent = self.flush(socket);
            if !self.connection.is_handshaking() {
                return Ok(if sent? { Handshaking::Done } else { Handshaking::WantsWrite });
            }
            if let Ok(false) = sent {
                return Ok(Handshaking::WantsWrite);
            }
            if self.received().is_empty() {
                match self.receive(socket) {
                    Ok(0) => return Err(self.fail(socket, ServerFault::Closed)),
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        return sent.map(|_| Handshaking::WantsRead);
                    }
                    Err(error) => return Err(OutgoingError::Socket(error)),
                }
            }
            self.decrypt(socket)?;
        }
        Ok(Handshaking::WantsRead)
    }

    /// Reads plaintext into `buffer`, which is not empty. [`Read::Nothing`]: wait until the socket can be read, and also
    /// written to if there are bytes [unsent](Self::has_unsent).
    ///
    /// # Errors
    /// The session or the socket has failed.
    pub fn read(
        &mut self,
        socket: &mut (impl io::Read + io::Write),
        buffer: &mut [u8],
    ) -> Result<Read, OutgoingError> {
        self.check()?;
        for _ in 0..MAX_READS {
            match self.connection.reader().read(buffer) {
                Ok(0) => return Ok(Read::End),
                Ok(count) => {
                    self.has_read = true;
                    self.waiting = self.waiting.saturating_sub(count);
                    return Ok(Read::Bytes(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Ok(Read::Truncated),
            }
            if self.received().is_empty() {
                match self.receive(socket) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        _ = self.flush(socket);
                        return Ok(Read::Nothing);
                    }
                    Err(error) => return Err(OutgoingError::Socket(error)),
                }
            }
            self.decrypt(socket)?;
        }
        Ok(Read::Nothing)
    }

    /// Encrypts bytes and sends them, and says how many were taken: none while the socket takes nothing. The rest of those that
    /// were taken is [unsent](Self::has_unsent).
    ///
    /// # Errors
    /// The session has failed or was closed, or the socket has failed.
    pub fn write(
        &mut self,
        socket: &mut (impl io::Read + io::Write),
        bytes: &[u8],
    ) -> Result<usize, OutgoingError> {
        self.check()?;
        if self.is_closed {
            return Err(OutgoingError::Socket(ErrorKind::BrokenPipe.into()));
        }
        if !self.flush(socket)? {
            return Ok(0);
        }
        let bytes = bytes.get(..MAX_WRITE).unwrap_or(bytes);
        let taken = self.connection.writer().write(bytes).map_err(OutgoingError::Socket)?;
        // The bytes are taken: a socket that fails now fails in the next call, too.
        _ = self.flush(socket);
        Ok(taken)
    }

    /// Sends what is unsent: whether all of it is gone.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn flush(&mut self, socket: &mut impl io::Write) -> Result<bool, OutgoingError> {
        while self.connection.wants_write() {
            match self.connection.write_tls(socket) {
                Ok(0) => return Err(OutgoingError::Socket(ErrorKind::WriteZero.into())),
                Ok(count) => self.sent += count as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(OutgoingError::Socket(error)),
            }
        }
        Ok(true)
    }

    /// Whether bytes wait until the socket takes them.
    pub fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    /// How many bytes the socket has taken in all.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether bytes wait to be [read](Self::read) that no event of the socket tells.
    pub fn has_received(&self) -> bool {
        self.waiting > 0 || !self.received().is_empty()
    }

    /// Whether the server has sent nothing for the application, and no end. Messages of TLS itself, such as tickets, are
    /// taken in. A byte for the application is lost.
    pub fn is_quiet(&mut self, socket: &mut (impl io::Read + io::Write)) -> bool {
        matches!(self.read(socket, &mut [0]), Ok(Read::Nothing))
    }

    /// Says that we send no more (close_notify, RFC 8446 §6.1). Bytes of the server can still be read.
    pub fn close(&mut self, socket: &mut impl io::Write) {
        if !self.is_closed && self.failed.is_none() {
            self.is_closed = true;
            self.connection.send_close_notify();
            _ = self.flush(socket);
        }
    }

    /// Gives memory back that an idle connection does not need.
    pub fn rest(&mut self) {
        if self.received().is_empty() {
            self.inbox = Vec::new();
            (self.taken, self.filled) = (0, 0);
        }
    }

    /// The version, when the handshake is complete.
    pub fn version(&self) -> Option<Version> {
        match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_3 => Some(Version::V1_3),
            _ => Some(Version::V1_2),
        }
    }

    /// The protocol that was agreed on (ALPN).
    pub fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// Whether the session goes on with an earlier one's secret (a ticket).
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn check(&self) -> Result<(), OutgoingError> {
        self.failed.clone().map_or(Ok(()), |fault| Err(fault.into()))
    }

    fn received(&self) -> &[u8] {
        self.inbox.get(self.taken..self.filled).unwrap_or_default()
    }

    /// Reads the socket, when all earlier bytes are decrypted. 0: it has ended.
    fn receive(&mut self, socket: &mut impl io::Read) -> io::Result<usize> {
        if self.has_ended {
            return Ok(0);
        }
        if self.inbox.is_empty() {
            self.inbox = vec![0; INBOX];
        }
        (self.taken, self.filled) = (0, 0);
        let read = loop {
            match socket.read(&mut self.inbox) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.filled = read;
        self.has_ended = read == 0;
        let missing = FIRST.saturating_sub(self.first.len());
        let first = self.inbox.get(..read.min(missing)).unwrap_or_default();
        self.first.extend_from_slice(first);
        Ok(read)
    }

    /// Decrypts the received bytes, until plaintext waits.
    fn decrypt(&mut self, socket: &mut impl io::Write) -> Result<(), OutgoingError> {
        loop {
            let mut rest = self.inbox.get(self.taken..self.filled).unwrap_or_default();
            // An empty read tells the connection of the end, if there is one.
            let fed = self.connection.read_tls(&mut rest);
            self.taken = self.filled - rest.len();
            if let Err(error) = fed {
                return Err(self.fail(socket, ServerFault::Misbehaved(error.to_string().into())));
            }
            let in_handshake = self.connection.is_handshaking();
            let connection = &mut self.connection;
            let result = noted::during(&mut self.noted, || connection.process_new_packets());
            let state = match result {
                Ok(state) => state,
                Err(error) => {
                    let fault = ServerFault::new(&error, &self.circumstances(in_handshake));
                    return Err(self.fail(socket, fault));
                }
            };
            self.waiting = state.plaintext_bytes_to_read();
            if state.peer_has_closed() {
                // Bytes behind close_notify do not count (RFC 8446 §6.1).
                self.taken = self.filled;
            }
            if self.waiting > 0 || self.received().is_empty() {
                return Ok(());
            }
        }
    }

    fn circumstances(&self, in_handshake: bool) -> Circumstances<'_> {
        Circumstances {
            noted: &self.noted,
            host: &self.host,
            is_new: !self.has_read,
            in_handshake,
            has_certificate: self.terms.has_certificate,
            first: &self.first,
        }
    }

    fn fail(&mut self, socket: &mut impl io::Write, fault: ServerFault) -> OutgoingError {
        _ = self.flush(socket);
        self.failed = Some(fault.clone());
        fault.into()
    }
}
