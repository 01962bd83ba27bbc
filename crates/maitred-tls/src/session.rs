//! The server's end of one TLS connection, without its socket: bytes go in, bytes come out.
//!
//! ```text
//!   socket ── feed ──▶ ┌─────────┐ ── read ──▶ application
//!                      │ Session │
//!   socket ◀─ unsent ─ └─────────┘ ◀─ write ── application
//! ```
//! ```text
//!   handshaking ──────▶ open ──────▶ closed by us (close), by the peer (Read::End), or both
//!        │                │
//!        └──▶ failed ◀────┘          the alert is unsent; nothing else happens any more
//! ```
//! Leaves out: time. The caller with the socket limits how long a handshake may take.

use std::io::{self, BufRead, IoSlice, Write};
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ServerConnection;

use crate::challenges::{self, Challenges};
use crate::distinguished_name;
use crate::errors::{ClientFault, SessionError};
use crate::handshake::Handshake;
use crate::hosts::{Beginning, Begun, Rules};
use crate::noted::{self, SessionNotes};
use crate::plain_http::is_plain_http;
use crate::terms::Terms;
use crate::x509::Certificate;

/// Most bytes of a small record on the wire: with the heads of IPv6, TCP and its options it fits into one packet, so
/// the peer can decrypt it as soon as that packet is there. For the first bytes of a response, while the window of TCP
/// is small.
pub const SMALL_RECORD: usize = 1_400;

/// Most bytes of a record on the wire (RFC 8446 §5.2).
pub const FULL_RECORD: usize = MAX_PLAIN + 256;

/// Most bytes of plaintext in a record (RFC 8446 §5.1).
const MAX_PLAIN: usize = 1 << 14;

/// Bytes of a record beside its plaintext: head, nonce and tag of TLS 1.2 with AES-GCM; TLS 1.3 has 22.
const OVERHEAD: usize = 29;

/// Buffers in one small record; more end it early.
const PIECES: usize = 16;

const _: () = assert!(SMALL_RECORD > OVERHEAD && SMALL_RECORD < FULL_RECORD);

/// The server's end of one TLS connection.
pub struct Session {
    /// The connection. Until the host is known, where rules for clients differ, nothing is fed to it.
    connection: ServerConnection,
    beginning: Option<Box<Beginning>>,
    rules: u16,
    terms: Arc<Terms>,
    challenges: Option<Arc<dyn Challenges>>,
    noted: SessionNotes,
    first: First,
    waiting: usize,
    has_ended: bool,
    is_closed: bool,
    failed: Option<Box<SessionError>>,
    /// The alert that is sent in the place of that of rustls.
    own_alert: Option<&'static [u8]>,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing is there; more has to be fed.
    Nothing,
    /// The peer sends no more (close_notify, RFC 8446 §6.1).
    End,
    /// The peer has closed its socket without close_notify before: an attacker may have cut off the end.
    Truncated,
}

impl Session {
    /// The start of a session.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(terms: &Arc<Terms>) -> Result<Self, SessionError> {
        let rules = 0;
        Ok(Self {
            connection: connection(terms, rules)?,
            beginning: terms.differ().then(|| Box::new(Beginning::new())),
            rules,
            terms: Arc::clone(terms),
            challenges: None,
            noted: SessionNotes::default(),
            first: First::default(),
            waiting: 0,
            has_ended: false,
            is_closed: false,
            failed: None,
            own_alert: None,
        })
    }

    /// The same session, which answers a challenge of a certificate authority by these: its first message is read twice, to tell a
    /// challenge from a client.
    #[must_use]
    pub fn with_challenges(mut self, challenges: Arc<dyn Challenges>) -> Self {
        self.beginning.get_or_insert_with(|| Box::new(Beginning::new()));
        self.challenges = Some(challenges);
        self
    }

    /// The same session at this address of the server, which chooses the certificate of a client that names no server.
    #[must_use]
    pub fn at(mut self, address: IpAddr) -> Self {
        self.noted.address = Some(address.to_canonical());
        self
    }

    /// Takes received bytes, and returns how many. All of them, or fewer while more than 16 KiB of plaintext wait: call
    /// [`read`](Self::read) then. Bytes behind the peer's close_notify are dropped (RFC 8446 §6.1).
    ///
    /// # Errors
    /// When the session has failed, now or earlier. An alert may be [unsent](Self::send_unsent) then; nothing can be read or written any more.
    pub fn feed(&mut self, ciphertext: &[u8]) -> Result<usize, SessionError> {
        if let Some(error) = &self.failed {
            return Err((**error).clone());
        }
        self.first.note(ciphertext);
        if let Some(beginning) = &mut self.beginning {
            let begun = beginning.feed(ciphertext);
            if matches!(begun, Begun::Waits) {
                return Ok(ciphertext.len());
            }
            let kept = self.beginning.take().map(|beginning| beginning.into_bytes()).unwrap_or_default();
            match self.begin(begun) {
                Ok(Some(connection)) => self.connection = connection,
                Ok(None) => {}
                Err(error) => return Err(self.fail(error)),
            }
            self.take_in(&kept)?;
            // No plaintext can wait before the handshake is complete, so all of it has been taken.
            return Ok(ciphertext.len());
        }
        self.take_in(ciphertext)
    }

    /// The connection by the settings that the ClientHello asks for, if they are other ones.
    fn begin(&mut self, begun: Begun) -> Result<Option<ServerConnection>, SessionError> {
        let Begun::Hello(hello) = begun else { return Ok(None) };
        self.rules = self.terms.rules_for(hello.name.as_deref());
        match &self.challenges {
            Some(challenges) if hello.is_challenge => {
                let name = hello.name.ok_or(SessionError::MissingName)?;
                let challenged = challenges::challenged(&name);
                let proof = challenges.tls_alpn(&challenged);
                let proof = proof
                    .ok_or_else(|| SessionError::UnknownName(name.escape_default().to_string().into()))?;
                let config = challenges::config(&challenged, &proof, self.terms.clock);
                config
                    .and_then(|config| ServerConnection::new(config).map_err(|error| error.to_string()))
                    .map(Some)
                    .map_err(|error| {
                        SessionError::Internal(
                            format!("the certificate of a challenge cannot be made: {error}").into(),
                        )
                    })
            }
            _ if self.rules == 0 => Ok(None),
            _ => connection(&self.terms, self.rules).map(Some),
        }
    }

    fn take_in(&mut self, ciphertext: &[u8]) -> Result<usize, SessionError> {
        let mut rest = ciphertext;
        while !rest.is_empty() {
            match self.connection.read_tls(&mut rest) {
                Ok(0) => return Ok(ciphertext.len()),
                Ok(_) => self.process()?,
                // Plaintext waits.
                Err(_) if self.waiting > 0 => break,
                Err(error) => return Err(self.fail(SessionError::Misbehaved(error.to_string().into()))),
            }
        }
        Ok(ciphertext.len() - rest.len())
    }

    /// The peer has closed its socket, or its sending half.
    pub fn feed_end(&mut self) {
        self.has_ended = true;
    }

    /// Reads plaintext into `buffer`, which is not empty. Nothing of a session that has failed.
    pub fn read(&mut self, buffer: &mut [u8]) -> Read {
        if self.failed.is_some() {
            return Read::Nothing;
        }
        let read = io::Read::read(&mut self.connection.reader(), buffer);
        self.outcome(read)
    }

    /// Reads up to `most` bytes of plaintext behind the content of `buffer`. `most` is not 0.
    pub fn read_more(&mut self, buffer: &mut Vec<u8>, most: usize) -> Read {
        if self.failed.is_some() {
            return Read::Nothing;
        }
        let mut reader = self.connection.reader();
        let mut left = most;
        let mut read = Ok(0);
        while left > 0 {
            match reader.fill_buf() {
                Ok([]) => break,
                Ok(chunk) => {
                    let piece = chunk.get(..left).unwrap_or(chunk);
                    buffer.extend_from_slice(piece);
                    let taken = piece.len();
                    reader.consume(taken);
                    left -= taken;
                    read = Ok(most - left);
                }
                Err(error) => {
                    if left == most {
                        read = Err(error);
                    }
                    break;
                }
            }
        }
        self.outcome(read)
    }

    fn outcome(&mut self, read: io::Result<usize>) -> Read {
        match read {
            Ok(0) => Read::End,
            Ok(count) => {
                self.waiting = self.waiting.saturating_sub(count);
                Read::Bytes(count)
            }
            Err(_) if self.has_ended => Read::Truncated,
            Err(_) => Read::Nothing,
        }
    }

    /// Whether plaintext waits to be read. No event of the socket tells of it.
    pub fn has_plaintext(&self) -> bool {
        self.waiting > 0
    }

    /// Encrypts from these buffers, in their order, and says how many bytes it has taken: none before the handshake is complete, and fewer than there are
    /// when 64 KiB are unsent. `record` is the most bytes of a record on the wire, from [`SMALL_RECORD`] to [`FULL_RECORD`].
    pub fn write(&mut self, parts: &[IoSlice<'_>], record: usize) -> usize {
        if self.connection.is_handshaking() || self.is_closed || self.failed.is_some() {
            return 0;
        }
        let mut writer = self.connection.writer();
        if record >= FULL_RECORD {
            // It joins the buffers to full records.
            writer.write_vectored(parts).unwrap_or(0)
        } else {
            let plain = record.saturating_sub(OVERHEAD).clamp(1, MAX_PLAIN);
            write_records(parts, plain, |pieces| writer.write_vectored(pieces).unwrap_or(0))
        }
    }

    /// Whether bytes are to be sent: of the handshake, an alert, or sealed ones.
    pub fn has_unsent(&self) -> bool {
        match self.own_alert {
            Some(rest) => !rest.is_empty(),
            None => self.connection.wants_write(),
        }
    }

    /// How many bytes are to be sent. The alert of a session that has failed does not count.
    pub fn unsent(&mut self) -> usize {
        // Nothing is there to be processed; rustls tells it in no other way.
        self.connection.process_new_packets().map_or(0, |state| state.tls_bytes_to_write())
    }

    /// Has `out` send the unsent bytes, until nothing is left, or `out` takes nothing or fails. Returns how many bytes
    /// were taken. `out` gets at most 64 buffers a call, and returns how many of their bytes it has taken.
    ///
    /// # Errors
    /// That of `out`, where it has taken nothing in this call.
    pub fn send_unsent(
        &mut self,
        out: &mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let mut sent = 0;
        while self.has_unsent() {
            let taken = match &mut self.own_alert {
                None => self.connection.write_tls(&mut Out(out)),
                Some(rest) => {
                    out(&[IoSlice::new(rest)]).inspect(|taken| *rest = rest.get(*taken..).unwrap_or_default())
                }
            };
            match taken {
                Ok(0) => break,
                Ok(taken) => sent += taken,
                Err(error) if sent == 0 => return Err(error),
                Err(_) => break,
            }
        }
        Ok(sent)
    }

    /// Queues close_notify, so that we send no more: [unsent](Self::send_unsent) behind all written bytes. Bytes of the
    /// peer can still be read.
    pub fn close(&mut self) {
        if !self.is_closed && self.failed.is_none() {
            self.is_closed = true;
            self.connection.send_close_notify();
        }
    }

    /// Whether the handshake is not complete.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// The result of the handshake, when it is complete. Made anew by each call.
    pub fn handshake(&self) -> Option<Handshake> {
        let identity = self.noted.identity.unwrap_or(0);
        let rules = self.terms.differ().then(|| Rules::new(&self.terms, self.rules));
        Handshake::new(&self.connection, (identity, self.terms.certificate(identity)), rules)
    }

    /// The rules of this session.
    pub fn terms(&self) -> &Arc<Terms> {
        &self.terms
    }

    /// Processes the bytes that were taken in. Callbacks make notes during the handshake only.
    fn process(&mut self) -> Result<(), SessionError> {
        let connection = &mut self.connection;
        let was_handshaking = connection.is_handshaking();
        let result = if was_handshaking {
            noted::during(&mut self.noted, || connection.process_new_packets())
        } else {
            connection.process_new_packets()
        };
        let error = match result {
            Ok(state) => {
                self.waiting = state.plaintext_bytes_to_read();
                if !was_handshaking || self.connection.is_handshaking() {
                    return Ok(());
                }
                match self.same_rules().and_then(|()| self.resumed_client()) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        self.connection.send_close_notify();
                        error
                    }
                }
            }
            Err(error) if self.first.is_not_tls() => {
                // Its error about the first record would not help.
                let _ = error;
                SessionError::NotTls { is_http: is_plain_http(self.first.bytes()) }
            }
            Err(error) => SessionError::new(&error, &self.noted, self.terms.minimum(), self.first.version())
                .in_handshake(was_handshaking),
        };
        Err(self.fail(error))
    }

    fn fail(&mut self, error: SessionError) -> SessionError {
        self.own_alert = match &error {
            SessionError::UnknownName(_) => Some(&UNRECOGNIZED_NAME),
            SessionError::MissingName => Some(&MISSING_EXTENSION),
            SessionError::NoCommonVersion { .. } => Some(&PROTOCOL_VERSION),
            SessionError::Misbehaved(_) if self.is_silent() => Some(&DECODE_ERROR),
            _ => None,
        };
        self.waiting = 0;
        self.failed = Some(Box::new(error.clone()));
        error
    }

    /// Whether there is no ClientHello yet, so that no alert can be sent.
    fn is_silent(&self) -> bool {
        self.connection.negotiated_cipher_suite().is_none() && !self.connection.wants_write()
    }

    /// A client that was verified by the rules of one host is let in to no other one, whatever name the ClientHello had
    /// before.
    fn same_rules(&self) -> Result<(), SessionError> {
        if self.terms.rules_for(self.connection.server_name()) == self.rules {
            return Ok(());
        }
        Err(SessionError::Internal("the name of the server is another one than at first".into()))
    }

    /// The certificate of a client stands in its ticket, and its dates have not been checked since (RFC 8446 §4.6.1
    /// leaves that to us).
    fn resumed_client(&self) -> Result<(), SessionError> {
        if self.connection.handshake_kind() != Some(rustls::HandshakeKind::Resumed) {
            return Ok(());
        }
        let Some(own) = self.connection.peer_certificates().and_then(<[_]>::first) else { return Ok(()) };
        let fault = |fault, subject| Err(SessionError::Client { fault, subject });
        let Ok(certificate) = Certificate::read(own) else {
            return fault(ClientFault::Form, None);
        };
        if (self.terms.clock)() > certificate.not_after {
            let subject = distinguished_name::text(&certificate.subject);
            return fault(ClientFault::Expired, Some(subject.into()));
        }
        Ok(())
    }
}

fn connection(terms: &Terms, rules: u16) -> Result<ServerConnection, SessionError> {
    let internal = |text: &str| SessionError::Internal(text.into());
    let config = terms.config(rules).ok_or_else(|| internal("there are no rules for clients"))?;
    ServerConnection::new(Arc::clone(config)).map_err(|error| internal(&error.to_string()))
}

/// Fatal alerts in a record of their own, not encrypted as nothing is at the ClientHello (RFC 8446 §5.1, §6). rustls
/// sends `access_denied` in the place of the first two, tells old clients which extension they lack, not that they are
/// old, and sends nothing for a ClientHello that is longer than 64 KiB.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
const MISSING_EXTENSION: [u8; 7] = [21, 3, 3, 0, 2, 2, 109];
const PROTOCOL_VERSION: [u8; 7] = [21, 3, 1, 0, 2, 2, 70];
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// The first bytes of the peer: the heads of its first record and message, and the version behind them, which clients before TLS 1.3 mean.
#[derive(Default)]
struct First {
    bytes: [u8; Self::LENGTH],
    count: u8,
}

impl First {
    const LENGTH: usize = 24;

    fn note(&mut self, bytes: &[u8]) {
        let Some(free) = self.bytes.get_mut(usize::from(self.count)..) else { return };
        for (free, byte) in free.iter_mut().zip(bytes) {
            *free = *byte;
            self.count += 1;
        }
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// Whether the bytes are no record of a handshake or an alert (RFC 8446 §5.1).
    fn is_not_tls(&self) -> bool {
        !matches!(self.bytes(), [] | [0x15 | 0x16] | [0x15 | 0x16, 3, ..])
    }

    /// `legacy_version` of the ClientHello.
    fn version(&self) -> Option<u16> {
        match self.bytes() {
            [0x16, 3, _, _, _, 1, _, _, _, major, minor, ..] => Some(u16::from_be_bytes([*major, *minor])),
            _ => None,
        }
    }
}

/// Cuts buffers into records of at most `most` bytes, until `write` takes less than all of one.
fn write_records(
    parts: &[IoSlice<'_>],
    most: usize,
    mut write: impl FnMut(&[IoSlice<'_>]) -> usize,
) -> usize {
    let mut parts = parts.iter().map(|part| &part[..]).filter(|part| !part.is_empty());
    let mut part: &[u8] = &[];
    let mut taken = 0;
    loop {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (mut count, mut size) = (0, 0);
        for place in &mut pieces {
            if part.is_empty() {
                part = parts.next().unwrap_or_default();
            }
            let (piece, rest) = part.split_at_checked(most - size).unwrap_or((part, &[]));
            if piece.is_empty() {
                break;
            }
            *place = IoSlice::new(piece);
            part = rest;
            count += 1;
            size += piece.len();
        }
        if size == 0 {
            return taken;
        }
        let written = write(pieces.get(..count).unwrap_or_default());
        taken += written;
        if written < size {
            return taken;
        }
    }
}

struct Out<'a>(&'a mut dyn FnMut(&[IoSlice<'_>]) -> io::Result<usize>);

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.0)(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        (self.0)(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
