//! A connection without a network: two ends, each with a bounded buffer towards the other.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Two connected ends. Each direction holds at most `capacity` bytes, so that back-pressure can be
/// tested; `capacity` is at least 1.
pub fn pair(capacity: usize) -> (End, End) {
    let there = Arc::new(Mutex::new(Direction::default()));
    let back = Arc::new(Mutex::new(Direction::default()));
    let capacity = capacity.max(1);
    (
        End { incoming: back.clone(), outgoing: there.clone(), capacity },
        End { incoming: there, outgoing: back, capacity },
    )
}

#[derive(Debug, Default)]
struct Direction {
    bytes: VecDeque<u8>,
    /// The writer will write no more.
    ended: bool,
    /// The reader will read no more.
    abandoned: bool,
}

/// One end of a connection, like a non-blocking socket: reading with nothing there and writing with
/// no room are [`ErrorKind::WouldBlock`]; a peer that is gone is [`ErrorKind::BrokenPipe`].
#[derive(Debug)]
pub struct End {
    incoming: Arc<Mutex<Direction>>,
    outgoing: Arc<Mutex<Direction>>,
    capacity: usize,
}

fn lock(direction: &Mutex<Direction>) -> MutexGuard<'_, Direction> {
    // A panic elsewhere in the test is reported there.
    direction.lock().unwrap_or_else(PoisonError::into_inner)
}

impl End {
    /// Ends this side's half of the connection; the peer reads the rest and then the end.
    pub fn shutdown_write(&self) {
        lock(&self.outgoing).ended = true;
    }

    /// The number of bytes that can be read.
    pub fn readable(&self) -> usize {
        lock(&self.incoming).bytes.len()
    }

    /// Whether the peer writes no more and all was read.
    pub fn is_at_end(&self) -> bool {
        let incoming = lock(&self.incoming);
        incoming.ended && incoming.bytes.is_empty()
    }
}

impl Read for End {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = lock(&self.incoming);
        if incoming.bytes.is_empty() && !incoming.ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        incoming.bytes.read(buffer)
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut outgoing = lock(&self.outgoing);
        if outgoing.abandoned || outgoing.ended {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let room = self.capacity - outgoing.bytes.len();
        if room == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = &bytes[..room.min(bytes.len())];
        outgoing.bytes.extend(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        lock(&self.outgoing).ended = true;
        let mut incoming = lock(&self.incoming);
        incoming.abandoned = true;
        incoming.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arrive_in_order_and_the_buffer_is_bounded() {
        let (mut client, mut server) = pair(4);
        assert_eq!(client.write(b"hello").unwrap(), 4);
        assert_eq!(client.write(b"o").unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut buffer = [0; 8];
        assert_eq!(server.read(&mut buffer).unwrap(), 4);
        assert_eq!(&buffer[..4], b"hell");
        assert_eq!(server.read(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn the_end_is_seen_behind_the_last_byte() {
        let (mut client, mut server) = pair(8);
        client.write_all(b"bye").unwrap();
        client.shutdown_write();
        assert_eq!(client.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        let mut text = String::new();
        server.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), server.is_at_end()), ("bye", true));
        server.write_all(b"still open").unwrap_err();
        assert_eq!(client.readable(), 8);
    }

    #[test]
    fn writing_to_a_peer_that_is_gone_fails() {
        let (mut client, server) = pair(8);
        drop(server);
        assert_eq!(client.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
}
