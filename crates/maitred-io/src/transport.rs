//! The way of a connection's bytes to its peer and back: a plain socket now; a TLS session will be another variant.
//!
//! Nothing else of a connection calls a socket. What is true of plain bytes only, a caller asks for:
//! [`empties_by_a_short_read`](Transport::empties_by_a_short_read).

use std::fs::File;
use std::io::{self, IoSlice};
use std::net::SocketAddr;

use crate::poller::{Interest, Poller};
use crate::socket::{Moved, Socket};

/// See the module text.
pub enum Transport {
    /// What is sent is what the peer receives.
    Plain(Socket),
    /// A connection without a network, for tests.
    #[cfg(feature = "memory")]
    Memory(Box<dyn Pipe>),
}

/// Both directions of a connection in memory; never waits, as a socket that does not block.
#[cfg(feature = "memory")]
pub trait Pipe: io::Read + io::Write + Send {
    /// Our side sends no more.
    fn end(&self);
}

#[cfg(feature = "memory")]
fn moved(result: io::Result<usize>) -> Moved {
    match result {
        Ok(0) => Moved::End,
        Ok(count) => Moved::Bytes(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Moved::Blocked,
        Err(error) => Moved::Failed(error),
    }
}

impl Transport {
    /// Reports what happens to the connection with `token`.
    ///
    /// # Errors
    /// The system's: out of memory, or of watches (fs.epoll.max_user_watches).
    pub fn watch(&self, poller: &Poller, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Plain(socket) => poller.add(socket, token, interest),
            #[cfg(feature = "memory")]
            Self::Memory(_) => Ok(()),
        }
    }

    /// Reports something else from now on; what is there already is reported again.
    ///
    /// # Errors
    /// As [`watch`](Self::watch).
    pub fn watch_for(&self, poller: &Poller, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Plain(socket) => poller.modify(socket, token, interest),
            #[cfg(feature = "memory")]
            Self::Memory(_) => Ok(()),
        }
    }

    /// Whether nothing more is there when a read brings less than there was room for. Of an encrypted connection that says
    /// nothing: a record may wait that is not complete, or one that has not been opened.
    pub fn empties_by_a_short_read(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            #[cfg(feature = "memory")]
            Self::Memory(_) => true,
        }
    }

    /// Receives into `buffer`.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Moved {
        match self {
            Self::Plain(socket) => socket.receive(buffer),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => moved(pipe.read(buffer)),
        }
    }

    /// As [`receive`](Self::receive), and when the kernel had the last of these bytes, in nanoseconds since 1970, where it
    /// has noted that.
    pub fn receive_with_receipt(&mut self, buffer: &mut [u8]) -> (Moved, Option<u64>) {
        match self {
            Self::Plain(socket) => socket.receive_with_receipt(buffer),
            #[cfg(feature = "memory")]
            Self::Memory(_) => (self.receive(buffer), None),
        }
    }

    /// Says whether the kernel notes when it receives something. Without effect where it cannot.
    pub fn set_receipts(&self, noted: bool) {
        match self {
            Self::Plain(socket) => socket.set_receipts(noted),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Sends from `bytes`, which are not empty. `more` says that more follows at once, so that the kernel may wait to fill a
    /// segment.
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Moved {
        match self {
            Self::Plain(socket) => socket.send(bytes, more),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => moved(pipe.write(bytes)),
        }
    }

    /// Sends from several buffers in one call.
    pub fn send_all(&mut self, parts: &[IoSlice<'_>]) -> Moved {
        match self {
            Self::Plain(socket) => socket.send_all(parts),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => {
                let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                moved(pipe.write(&whole))
            }
        }
    }

    /// Sends up to `most` bytes of `file` from `offset`. [`Moved::End`] means that the file is shorter than `offset`.
    pub fn send_file(&mut self, file: &File, offset: u64, most: usize) -> Moved {
        match self {
            Self::Plain(socket) => socket.send_file(file, offset, most),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => {
                let mut piece = vec![0; most.min(64 * 1024)];
                match std::os::unix::fs::FileExt::read_at(file, &mut piece, offset) {
                    Ok(0) => Moved::End,
                    Ok(count) => moved(pipe.write(&piece[..count])),
                    Err(error) => Moved::Failed(error),
                }
            }
        }
    }

    /// Bytes on the wire that the peer has not acknowledged; 0 where the kernel does not tell.
    pub fn unacknowledged(&self) -> u64 {
        match self {
            Self::Plain(socket) => socket.unacknowledged(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => 0,
        }
    }

    /// Has the kernel drop what the peer has not taken when the connection is closed, and reset it. Otherwise it would keep
    /// that for a peer that takes nothing for minutes.
    pub fn reset_when_closed(&self) {
        match self {
            Self::Plain(socket) => socket.reset_when_closed(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Says whether the kernel takes [`SEND_AHEAD`](crate::socket::SEND_AHEAD) only, or as much as it likes.
    pub fn set_send_ahead(&self, limited: bool) {
        match self {
            Self::Plain(socket) => socket.set_send_ahead(limited),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Ends our sending side; the peer can still send.
    pub fn shutdown_write(&mut self) {
        match self {
            Self::Plain(socket) => socket.shutdown_write(),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => pipe.end(),
        }
    }

    /// Our own address on this connection.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(socket) => socket.local_address(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => None,
        }
    }
}
