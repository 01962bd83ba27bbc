//! A connection's bytes: a socket, and up to two sessions of TLS over it, with the proxy and with the server.
//!
//! Promises: no call waits.

use std::io::{self, ErrorKind};

use maitred_tls::{Handshaking, OutgoingError, OutgoingSession, Read, ServerFault};

/// A socket with its sessions. `S` is a socket whose calls do not wait.
#[derive(Debug)]
pub(crate) struct Stream<S> {
    below: Below<S>,
    session: Option<Box<OutgoingSession>>,
}

/// The socket, and the session with a proxy that speaks TLS itself.
#[derive(Debug)]
struct Below<S> {
    socket: S,
    session: Option<Box<OutgoingSession>>,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing is there.
    Nothing,
    /// The peer sends no more. `clean`: by TLS it has said so.
    End { clean: bool },
}

/// Why a call on a stream has failed.
#[derive(Debug)]
pub(crate) enum StreamFault {
    /// The fault of a session.
    Tls(ServerFault),
    /// The fault of the socket.
    Socket(io::Error),
}

impl From<OutgoingError> for StreamFault {
    /// A session in another one sees the faults of that one as those of its socket.
    fn from(error: OutgoingError) -> Self {
        match error {
            OutgoingError::Tls(fault) => Self::Tls(fault),
            OutgoingError::Socket(error) => match error.downcast::<ServerFault>() {
                Ok(fault) => Self::Tls(fault),
                Err(error) => Self::Socket(error),
            },
        }
    }
}

impl<S: io::Read + io::Write> Stream<S> {
    /// Without TLS.
    pub(crate) fn new(socket: S) -> Self {
        Self { below: Below { socket, session: None }, session: None }
    }

    pub(crate) fn socket(&self) -> &S {
        &self.below.socket
    }

    /// Goes on through TLS with the other end, a proxy if `to_proxy`.
    pub(crate) fn secure(&mut self, session: OutgoingSession, to_proxy: bool) {
        let place = if to_proxy { &mut self.below.session } else { &mut self.session };
        *place = Some(Box::new(session));
    }

    /// Goes on with the handshake of the last session.
    pub(crate) fn handshake(&mut self) -> Result<Handshaking, StreamFault> {
        match (&mut self.session, &mut self.below.session) {
            (Some(session), _) => Ok(session.handshake(&mut self.below)?),
            (None, Some(session)) => Ok(session.handshake(&mut self.below.socket)?),
            (None, None) => Ok(Handshaking::Done),
        }
    }

    /// Reads into `buffer`, which is not empty. Behind [`Received::Nothing`] the socket is waited for.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<Received, StreamFault> {
        if let Some(session) = &mut self.session {
            return Ok(received(session.read(&mut self.below, buffer)?));
        }
        if let Some(session) = &mut self.below.session {
            return Ok(received(session.read(&mut self.below.socket, buffer)?));
        }
        match self.below.socket.read(buffer) {
            Ok(0) => Ok(Received::End { clean: true }),
            Ok(count) => Ok(Received::Bytes(count)),
            Err(error) if is_later(&error) => Ok(Received::Nothing),
            Err(error) => Err(StreamFault::Socket(error)),
        }
    }

    /// Writes, and says how many bytes were taken: 0 while there is no room.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, StreamFault> {
        if let Some(session) = &mut self.session {
            return Ok(session.write(&mut self.below, bytes)?);
        }
        if let Some(session) = &mut self.below.session {
            return Ok(session.write(&mut self.below.socket, bytes)?);
        }
        match self.below.socket.write(bytes) {
            Err(error) if is_later(&error) => Ok(0),
            result => result.map_err(StreamFault::Socket),
        }
    }

    /// Sends what the sessions hold back. It is called when the socket can be written to and [`has_unsent`](Self::has_unsent).
    pub(crate) fn flush(&mut self) -> Result<(), StreamFault> {
        if let Some(session) = &mut self.session {
            session.flush(&mut self.below)?;
        }
        if let Some(session) = &mut self.below.session {
            session.flush(&mut self.below.socket)?;
        }
        Ok(())
    }

    /// Whether written bytes wait until the socket takes them.
    pub(crate) fn has_unsent(&self) -> bool {
        let has_unsent = |session: &Option<Box<OutgoingSession>>| {
            session.as_ref().is_some_and(|session| session.has_unsent())
        };
        has_unsent(&self.session) || has_unsent(&self.below.session)
    }

    /// How many bytes of TLS the socket has taken.
    pub(crate) fn sent(&self) -> u64 {
        let session = self.below.session.as_ref().or(self.session.as_ref());
        session.map_or(0, |session| session.sent())
    }

    /// Whether bytes are there that no event of the socket tells.
    pub(crate) fn has_received(&self) -> bool {
        let has = |session: &Option<Box<OutgoingSession>>| {
            session.as_ref().is_some_and(|session| session.has_received())
        };
        has(&self.session) || has(&self.below.session)
    }

    /// Whether TLS is spoken with the server or the proxy.
    pub(crate) fn is_secure(&self) -> bool {
        self.session.is_some() || self.below.session.is_some()
    }

    /// Whether a stream with TLS is idle and open. Messages of TLS itself do not count, and are taken in.
    pub(crate) fn is_quiet(&mut self) -> bool {
        matches!(self.read(&mut [0]), Ok(Received::Nothing))
    }

    /// Gives memory back that an idle connection does not need.
    pub(crate) fn rest(&mut self) {
        for session in [&mut self.session, &mut self.below.session].into_iter().flatten() {
            session.rest();
        }
    }
}

fn received(read: Read) -> Received {
    match read {
        Read::Bytes(count) => Received::Bytes(count),
        Read::Nothing => Received::Nothing,
        Read::End => Received::End { clean: true },
        Read::Truncated => Received::End { clean: false },
    }
}

fn is_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn as_io(error: OutgoingError) -> io::Error {
    match error {
        OutgoingError::Tls(fault) => io::Error::other(fault),
        OutgoingError::Socket(error) => error,
    }
}

impl<S: io::Read + io::Write> io::Read for Below<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.read(buffer) };
        match session.read(&mut self.socket, buffer).map_err(as_io)? {
            Read::Bytes(count) => Ok(count),
            Read::Nothing => Err(ErrorKind::WouldBlock.into()),
            // The session above has an end of its own.
            Read::End | Read::Truncated => Ok(0),
        }
    }
}

impl<S: io::Read + io::Write> io::Write for Below<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(session) = &mut self.session else { return self.socket.write(bytes) };
        match session.write(&mut self.socket, bytes).map_err(as_io)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            taken => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
