//! A connection and the bytes that have been received by it.

use std::cell::Cell;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use maitred_io::forked::Outgoing;
use maitred_io::outgoing::{Wanted, is_quiet};

use crate::stream::{Received, Stream, StreamFault};

/// The first read of a response takes so much, further ones more: a large body needs few calls, a small one little memory.
const FIRST_READ: usize = 16 * 1024;
const READ: usize = 64 * 1024;

/// The most memory that a thread keeps for its next response.
const MOST_SPARE: usize = 2 * READ;

thread_local! {
    /// Memory that was cleared once, for the next response that begins on this thread. Idle connections have none.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A socket, whose calls do not wait.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Dropped first: a child process must not find a number that is another file's by then.
    _listed: Outgoing,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        Self { _listed: Outgoing::new(&stream), kind: Kind::Tcp(stream) }
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self { _listed: Outgoing::new(&stream), kind: Kind::Unix(stream) }
    }

    /// Whether connecting has ended well.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let Kind::Tcp(stream) = &self.kind else { return Ok(true) };
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream.peer_addr().is_ok()),
        }
    }

    #[cfg(test)]
    pub(crate) fn peer(&self) -> Option<std::net::SocketAddr> {
        match &self.kind {
            Kind::Tcp(stream) => stream.peer_addr().ok(),
            Kind::Unix(_) => None,
        }
    }
}

impl Read for Socket {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match &mut self.kind {
            Kind::Tcp(stream) => stream.read(room),
            Kind::Unix(stream) => stream.read(room),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.kind {
            Kind::Tcp(stream) => stream.write(bytes),
            Kind::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.kind {
            Kind::Tcp(stream) => stream.as_fd(),
            Kind::Unix(stream) => stream.as_fd(),
        }
    }
}

pub(crate) struct Connection {
    stream: Stream<Socket>,
    /// Bytes that were received stand from `consumed` to `filled`. The rest is room, which stays as it is: nothing is cleared
    /// for a read.
    memory: Vec<u8>,
    consumed: usize,
    filled: usize,
    /// Bytes at the start of the next ones to send that TLS has taken, and the socket not wholly: at most one.
    sealed: usize,
}

/// The result of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// So many bytes are gone.
    pub(crate) taken: usize,
    /// The socket has taken something, also where no byte counts as gone yet.
    pub(crate) moved: bool,
}

/// Without the bytes of a response.
impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let received = self.received().len();
        f.debug_struct("Connection").field("stream", &self.stream).field("received", &received).finish()
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream<Socket>) -> Self {
        Self { stream, memory: Vec::new(), consumed: 0, filled: 0, sealed: 0 }
    }

    /// The socket and the event that is waited for; `sends`: the caller has bytes to send.
    pub(crate) fn waits(&self, sends: bool) -> (BorrowedFd<'_>, Wanted) {
        let wanted = if sends || self.stream.has_unsent() { Wanted::Both } else { Wanted::Read };
        (self.stream.socket().as_fd(), wanted)
    }

    /// The bytes that were received and not consumed.
    pub(crate) fn received(&self) -> &[u8] {
        self.memory.get(self.consumed..self.filled).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Receives more bytes behind the present ones. The second part of the result: more may be there already.
    pub(crate) fn receive(&mut self) -> Result<(Received, bool), StreamFault> {
        self.memory.copy_within(self.consumed..self.filled, 0);
        self.filled -= self.consumed;
        self.consumed = 0;
        let room = if self.memory.is_empty() { FIRST_READ } else { READ };
        if self.memory.is_empty() {
            self.memory = SPARE.try_with(Cell::take).unwrap_or_default();
        }
        if self.memory.len() < self.filled + room {
            self.memory.resize(self.filled + room, 0);
        }
        let room = self.memory.get_mut(self.filled..).unwrap_or_default();
        let received = self.stream.read(room)?;
        let bytes = if let Received::Bytes(bytes) = received { bytes } else { 0 };
        let more = bytes == room.len() || self.stream.has_received();
        self.filled += bytes;
        Ok((received, more))
    }

    /// Sends `bytes`, which begin with those that were not taken before. While the socket has not taken all that TLS has taken,
    /// one byte counts as not taken: the time limit of a write goes on, and no byte goes out twice.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<Sent, StreamFault> {
        if !self.stream.is_secure() {
            let taken = self.stream.write(bytes)?;
            return Ok(Sent { taken, moved: taken > 0 });
        }
        let before = self.stream.sent();
        let sealed = if self.sealed == 0 {
            self.stream.write(bytes)?
        } else {
            self.stream.flush()?;
            self.sealed
        };
        self.sealed = usize::from(self.stream.has_unsent()).min(sealed);
        Ok(Sent { taken: sealed - self.sealed, moved: self.stream.sent() > before })
    }

    /// Whether it is idle and open.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let is_quiet = match self.stream.is_secure() {
            true => self.stream.is_quiet(),
            false => is_quiet(self.stream.socket()),
        };
        is_quiet && self.received().is_empty()
    }

    /// The memory of the last response goes to the next one of this thread.
    pub(crate) fn rest(&mut self) {
        self.stream.rest();
        let memory = std::mem::take(&mut self.memory);
        if memory.len() <= MOST_SPARE {
            // Not at the end of the thread.
            _ = SPARE.try_with(|spare| spare.set(memory));
        }
        (self.consumed, self.filled) = (0, 0);
    }
}
