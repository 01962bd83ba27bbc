//! A connection and the bytes that have been received by it.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use maitred_io::outgoing::{self, Wanted, is_quiet};

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
    /// Bytes that were received stand from `consumed` to `filled`. The rest is room, which stays as it is: nothing is cleared
    /// for a read.
    memory: Vec<u8>,
    consumed: usize,
    filled: usize,
}

impl Connection {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, memory: Vec::new(), consumed: 0, filled: 0 }
    }

    /// The bytes that were received and not consumed.
    pub(super) fn received(&self) -> &[u8] {
        self.memory.get(self.consumed..self.filled).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    /// Receives more bytes behind the present ones: how many, 0 at the end.
    pub(super) fn receive(&mut self) -> io::Result<usize> {
        self.memory.copy_within(self.consumed..self.filled, 0);
        self.filled -= self.consumed;
        self.consumed = 0;
        let room = if self.memory.is_empty() { FIRST_READ } else { READ };
        if self.memory.len() < self.filled + room {
            self.memory.resize(self.filled + room, 0);
        }
        let room = self.memory.get_mut(self.filled..).unwrap_or_default();
        let read = match &self.socket {
            Socket::Tcp(socket) => (&*socket).read(room),
            Socket::Unix(socket) => (&*socket).read(room),
        };
        self.filled += *read.as_ref().unwrap_or(&0);
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
        self.memory = Vec::new();
        (self.consumed, self.filled) = (0, 0);
    }

    /// Waits until it can be read, or written to if it is for `writing`: whether it can be read, or has ended.
    pub(super) fn wait(&self, writing: bool, limit: Option<Duration>) -> io::Result<bool> {
        let wanted = if writing { Wanted::Both } else { Wanted::Read };
        outgoing::wait(&[(self.descriptor(), wanted)], limit)
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(socket) => socket.as_fd(),
            Socket::Unix(socket) => socket.as_fd(),
        }
    }
}
