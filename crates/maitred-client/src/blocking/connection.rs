//! A connection and the bytes that have been received by it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use maitred_io::outgoing::{Wanted, is_quiet};

/// The first read of a response takes so much, further ones more: a large body needs few calls, a small one little memory.
const FIRST_READ: usize = 16 * 1024;
const READ: usize = 64 * 1024;

#[derive(Debug)]
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    received: Vec<u8>,
    consumed: usize,
}

impl Connection {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, received: Vec::new(), consumed: 0 }
    }

    /// The bytes that were received and not consumed.
    pub(super) fn received(&self) -> &[u8] {
        self.received.get(self.consumed..).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Receives more bytes behind the present ones: how many, 0 at the end.
    pub(super) fn receive(&mut self) -> io::Result<usize> {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        let held = self.received.len();
        let room = if self.received.capacity() == 0 { FIRST_READ } else { READ };
        self.received.resize(held + room, 0);
        let room = self.received.get_mut(held..).unwrap_or_default();
        let read = match &self.socket {
            Socket::Tcp(socket) => (&*socket).read(room),
            Socket::Unix(socket) => (&*socket).read(room),
        };
        self.received.truncate(held + *read.as_ref().unwrap_or(&0));
        read
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.socket {
            Socket::Tcp(socket) => (&*socket).write(bytes),
            Socket::Unix(socket) => (&*socket).write(bytes),
        }
    }

    /// Whether it is idle and open.
    pub(super) fn is_quiet(&self) -> bool {
        self.received().is_empty() && is_quiet(self.descriptor())
    }

    /// The memory of the last response goes.
    pub(super) fn rest(&mut self) {
        self.received = Vec::new();
        self.consumed = 0;
    }

    pub(super) fn wants(&self, writing: bool) -> (BorrowedFd<'_>, Wanted) {
        (self.descriptor(), if writing { Wanted::Both } else { Wanted::Read })
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}
