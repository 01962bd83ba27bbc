//! A connection and the bytes that have been received by it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use maitred_io::forked::Outgoing;
use maitred_io::outgoing::is_quiet;

/// The first read of a response takes so much, further ones more: a large body needs few calls, a small one little memory.
const FIRST_READ: usize = 16 * 1024;
const READ: usize = 64 * 1024;

/// A socket, whose calls do not wait.
#[derive(Debug)]
pub(crate) struct Socket {
    /// Dropped first: a child process must not find a number that is another file's by then.
    _listed: Outgoing,
    stream: Stream,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn tcp(stream: TcpStream) -> Self {
        Self { _listed: Outgoing::new(&stream), stream: Stream::Tcp(stream) }
    }

    pub(crate) fn unix(stream: UnixStream) -> Self {
        Self { _listed: Outgoing::new(&stream), stream: Stream::Unix(stream) }
    }

    /// Whether connecting has ended well.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let Stream::Tcp(stream) = &self.stream else { return Ok(true) };
        match stream.take_error()? {
            Some(error) => Err(error),
            None => Ok(stream.peer_addr().is_ok()),
        }
    }

    #[cfg(test)]
    pub(crate) fn peer(&self) -> Option<std::net::SocketAddr> {
        match &self.stream {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    pub(crate) fn read(&self, room: &mut [u8]) -> io::Result<usize> {
        match &self.stream {
            Stream::Tcp(stream) => (&mut &*stream).read(room),
            Stream::Unix(stream) => (&mut &*stream).read(room),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.stream {
            Stream::Tcp(stream) => (&mut &*stream).write(bytes),
            Stream::Unix(stream) => (&mut &*stream).write(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    /// Bytes that were received stand from `consumed` to `filled`. The rest is room, which stays as it is: nothing is cleared
    /// for a read.
    memory: Vec<u8>,
    consumed: usize,
    filled: usize,
}

impl Connection {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, memory: Vec::new(), consumed: 0, filled: 0 }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The bytes that were received and not consumed.
    pub(crate) fn received(&self) -> &[u8] {
        self.memory.get(self.consumed..self.filled).unwrap_or_default()
    }

    pub(crate) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Receives more bytes behind the present ones: how many, 0 at the end; and whether more may be there already.
    pub(crate) fn receive(&mut self) -> io::Result<(usize, bool)> {
        self.memory.copy_within(self.consumed..self.filled, 0);
        self.filled -= self.consumed;
        self.consumed = 0;
        let room = if self.memory.is_empty() { FIRST_READ } else { READ };
        if self.memory.len() < self.filled + room {
            self.memory.resize(self.filled + room, 0);
        }
        let room = self.memory.get_mut(self.filled..).unwrap_or_default();
        let read = self.socket.read(room)?;
        self.filled += read;
        Ok((read, read == room.len()))
    }

    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    /// Whether it is idle and open.
    pub(crate) fn is_quiet(&self) -> bool {
        self.received().is_empty() && is_quiet(&self.socket)
    }

    /// The memory of the last response goes.
    pub(crate) fn rest(&mut self) {
        self.memory = Vec::new();
        (self.consumed, self.filled) = (0, 0);
    }
}
