//! A TLS session over a socket.
//!
//! ```text
//! socket --received into the thread's buffer--> session --opened--> caller
//! caller --sealed--> session --as far as it takes them--> socket
//! ```
//! Promises: bytes that are reported as moved are with the kernel: sealed bytes that have not left count as not sent,
//! so a caller keeps them, and offers them again. It offers the same bytes in the same order; their cuts may change.
//! Leaves out: the handshake's time limit, and the consequences of its outcome (maitred-server).

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;

use maitred_tls::{FULL_RECORD, Handshake, Read, SMALL_RECORD, Session, SessionError};

use super::{Moved, Socket};
use crate::clock;

/// Bytes received or read from a file by one call: some records.
const BYTES: usize = 64 * 1024;

/// Bytes that a record adds at most: TLS 1.2 with AES-GCM 29, TLS 1.3 22 (RFC 5288 §3, RFC 8446 §5.2).
const OVERHEAD: usize = 29;

/// Bytes that the session may send of its own between records: an answer to a key update.
const OWN: usize = 64;

/// Bytes that are sent in records of one segment each, of which the peer can open the first before the others have
/// come; after that a lost segment costs less than the records.
const FIRST: usize = 64 * 1024;

/// The pause in nanoseconds after which it begins with such records again, as the kernel does with its window.
const PAUSE: u64 = 1_000_000_000;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// See the module text.
pub struct Tls {
    socket: Socket,
    /// None before the handshake begins: until then it is a plain socket.
    open: Option<Box<Open>>,
}

struct Open {
    session: Session,
    /// Received bytes, to be opened when all opened ones are read.
    left: Vec<u8>,
    /// Bytes that are sealed and, as the caller has been told, not sent.
    owed: usize,
    emptied: bool,
    ended: bool,
    /// Opening has failed: nothing is received any more.
    failed: bool,
    /// The most bytes of it that may be no plaintext, and how many of it have left.
    beside: usize,
    left_sealed: usize,
    /// The longest record that fits a segment, and how much is sent in such.
    segment: usize,
    first: usize,
    /// When something was sealed last, in monotonic nanoseconds.
    sealed: u64,
    silent: bool,
}

/// The result of a step of the handshake.
#[derive(Debug)]
pub enum Shaken {
    /// The peer is to send something, or to take it: an edge will tell.
    Waits,
    /// Application data can be exchanged; these are the agreed parameters.
    Done(Box<Handshake>),
    /// The handshake failed; the peer has been told as far as possible.
    Failed(SessionError),
    /// The peer has left.
    Left,
}

impl Tls {
    pub(super) fn new(socket: Socket) -> Self {
        Self { socket, open: None }
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(super) fn has_session(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn begin(&mut self, session: Session) {
        let segment = self.socket.segment().clamp(SMALL_RECORD, FULL_RECORD);
        self.open = Some(Box::new(Open {
            session,
            left: Vec::new(),
            owed: 0,
            beside: 0,
            left_sealed: 0,
            emptied: false,
            ended: false,
            failed: false,
            segment,
            first: FIRST,
            sealed: 0,
            silent: false,
        }));
    }

    /// Goes on with the handshake; `received` has come before.
    pub(super) fn shake_hands(&mut self, received: &[u8]) -> Shaken {
        match &mut self.open {
            Some(open) => open.shake_hands(&self.socket, received),
            None => Shaken::Waits,
        }
    }

    pub(super) fn is_emptied(&self) -> bool {
        self.open
            .as_ref()
            .is_none_or(|open| open.emptied && open.left.is_empty() && !open.session.has_plaintext())
    }

    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> Moved {
        match &mut self.open {
            Some(open) => open.receive_by(&self.socket, false, |session| session.read(buffer)).0,
            None => self.socket.receive(buffer),
        }
    }

    pub(super) fn receive_with_receipt(&mut self, buffer: &mut [u8]) -> (Moved, Option<u64>) {
        match &mut self.open {
            Some(open) => open.receive_by(&self.socket, true, |session| session.read(buffer)),
            None => self.socket.receive_with_receipt(buffer),
        }
    }

    pub(super) fn receive_more(&mut self, buffer: &mut Vec<u8>, most: usize) -> Moved {
        match &mut self.open {
            Some(open) => open.receive_by(&self.socket, false, |session| session.read_more(buffer, most)).0,
            None => self.socket.receive_more(buffer, most),
        }
    }

    pub(super) fn send_all(&mut self, parts: &[IoSlice<'_>], more: bool) -> Moved {
        match &mut self.open {
            Some(open) => open.send_all(&self.socket, parts),
            None => self.socket.send_all(parts, more),
        }
    }

    pub(super) fn send_file(&mut self, file: &File, offset: u64, most: usize) -> Moved {
        match &mut self.open {
            Some(open) => open.send_file(&self.socket, file, offset, most),
            None => self.socket.send_file(file, offset, most),
        }
    }

    pub(super) fn shutdown_write(&mut self) {
        self.say_end();
        self.socket.shutdown_write();
    }

    fn say_end(&mut self) {
        if let Some(open) = &mut self.open {
            open.say_end(&self.socket);
        }
    }

    pub(super) fn reset_when_closed(&mut self) {
        if let Some(open) = &mut self.open {
            open.silent = true;
        }
        self.socket.reset_when_closed();
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.say_end();
    }
}

impl Open {
    fn shake_hands(&mut self, socket: &Socket, received: &[u8]) -> Shaken {
        if let Err(error) = self.feed(received) {
            return self.fail(socket, error);
        }
        loop {
            if let Moved::Failed(_) = self.send_sealed(socket) {
                return Shaken::Left;
            }
            if let Some(handshake) = self.session.handshake() {
                return Shaken::Done(Box::new(handshake));
            }
            match self.fill(socket, false).0 {
                Ok(Moved::Bytes(_)) => {}
                Ok(Moved::Blocked) => return Shaken::Waits,
                Ok(Moved::End | Moved::Failed(_)) => return Shaken::Left,
                Err(error) => return self.fail(socket, error),
            }
        }
    }

    fn fail(&mut self, socket: &Socket, error: SessionError) -> Shaken {
        self.failed = true;
        // The alert: a peer that takes nothing does not get it.
        let _ = self.send_sealed(socket);
        Shaken::Failed(error)
    }

    fn feed(&mut self, mut bytes: &[u8]) -> Result<(), SessionError> {
        while !bytes.is_empty() {
            let count = self.session.feed(bytes)?;
            if count == 0 {
                self.left.extend_from_slice(bytes);
                break;
            }
            bytes = &bytes[count..];
        }
        Ok(())
    }

    /// Receives once from the socket, and opens that; and when the kernel had it, if that is `wanted`.
    fn fill(&mut self, socket: &Socket, wanted: bool) -> (Result<Moved, SessionError>, Option<u64>) {
        if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            return (self.feed(&left).map(|()| Moved::Bytes(left.len())), None);
        }
        with_buffer(|buffer| {
            let (moved, stamp) =
                if wanted { socket.receive_with_receipt(buffer) } else { (socket.receive(buffer), None) };
            let opened = match &moved {
                Moved::Bytes(count) => {
                    self.emptied = *count < buffer.len();
                    self.feed(&buffer[..*count])
                }
                Moved::Blocked => {
                    self.emptied = true;
                    Ok(())
                }
                Moved::End => {
                    self.ended = true;
                    self.session.feed_end();
                    Ok(())
                }
                Moved::Failed(_) => Ok(()),
            };
            (opened.map(|()| moved), stamp)
        })
    }

    fn receive_by(
        &mut self,
        socket: &Socket,
        receipt: bool,
        mut read: impl FnMut(&mut Session) -> Read,
    ) -> (Moved, Option<u64>) {
        let mut stamp = None;
        // Bytes that were opened before say nothing about the socket: more may have come since, and its edge may be
        // over.
        self.emptied = false;
        loop {
            match read(&mut self.session) {
                Read::Bytes(count) => return (Moved::Bytes(count), stamp),
                // Without close_notify (Truncated) the end may have been cut off (RFC 8446 §6.1); a request shows its
                // end itself.
                Read::End | Read::Truncated => return (Moved::End, stamp),
                Read::Nothing if self.ended || self.failed => return (Moved::End, stamp),
                Read::Nothing => {}
            }
            let (moved, received) = self.fill(socket, receipt);
            stamp = received.or(stamp);
            // Tickets, key updates and alerts are the session's own.
            let answered = self.send_sealed(socket);
            match moved {
                Ok(Moved::Bytes(_) | Moved::End) => {}
                Ok(Moved::Blocked) => return (Moved::Blocked, stamp),
                Ok(Moved::Failed(error)) => return (Moved::Failed(error), stamp),
                Err(error) => {
                    self.failed = true;
                    return (Moved::Failed(io::Error::new(io::ErrorKind::InvalidData, error)), stamp);
                }
            }
            if let Moved::Failed(error) = answered {
                return (Moved::Failed(error), stamp);
            }
        }
    }

    fn send_all(&mut self, socket: &Socket, parts: &[IoSlice<'_>]) -> Moved {
        let length = parts.iter().map(|part| part.len()).sum();
        if let Some(moved) = self.send_earlier(socket, length) {
            return moved;
        }
        self.seal(parts);
        self.send_owed(socket, length)
    }

    fn send_file(&mut self, socket: &Socket, file: &File, offset: u64, most: usize) -> Moved {
        if let Some(moved) = self.send_earlier(socket, most) {
            return moved;
        }
        let read = with_buffer(|buffer| {
            let room = buffer.len().min(most);
            let count = file.read_at(&mut buffer[..room], offset)?;
            self.seal(&[IoSlice::new(&buffer[..count])]);
            Ok(count)
        });
        match read {
            Ok(0) => Moved::End,
            Ok(_) => self.send_owed(socket, most),
            Err(error) => Moved::Failed(error),
        }
    }

    /// Sends the bytes that were sealed earlier; none if all of them have left.
    fn send_earlier(&mut self, socket: &Socket, most: usize) -> Option<Moved> {
        if self.owed > 0 {
            return Some(self.send_owed(socket, most));
        }
        match self.send_sealed(socket) {
            Moved::Failed(error) => Some(Moved::Failed(error)),
            _ if self.session.has_unsent() => Some(Moved::Blocked),
            _ => None,
        }
    }

    /// Seals some of these bytes; nothing waits.
    fn seal(&mut self, parts: &[IoSlice<'_>]) {
        let now = clock::monotonic_coarse();
        if now.saturating_sub(self.sealed) > PAUSE {
            self.first = FIRST;
        }
        self.sealed = now;
        let record = if self.first > 0 { self.segment } else { FULL_RECORD };
        self.owed = self.session.write(parts, record);
        self.first = self.first.saturating_sub(self.owed);
        let plain = (record - OVERHEAD).min(16 * 1024);
        (self.beside, self.left_sealed) = (self.owed.div_ceil(plain) * OVERHEAD + OWN, 0);
    }

    /// Sends sealed bytes. Returns how many of the caller's next `most` bytes have certainly left by that.
    fn send_owed(&mut self, socket: &Socket, most: usize) -> Moved {
        if let Moved::Failed(error) = self.send_sealed(socket) {
            return Moved::Failed(error);
        }
        // Before all has left it is not known how much of it is plaintext; as much at least.
        let left =
            if self.session.has_unsent() { self.left_sealed.saturating_sub(self.beside) } else { self.owed };
        match left.min(self.owed).min(most) {
            0 => Moved::Blocked,
            count => {
                self.owed -= count;
                self.left_sealed = self.left_sealed.saturating_sub(count);
                Moved::Bytes(count)
            }
        }
    }

    fn send_sealed(&mut self, socket: &Socket) -> Moved {
        while self.session.has_unsent() {
            let mut moved = Moved::Blocked;
            let sent = self.session.send_unsent(&mut |parts| {
                moved = socket.send_all(parts, false);
                match &moved {
                    Moved::Bytes(count) => Ok(*count),
                    _ => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            self.left_sealed += sent.unwrap_or(0);
            match moved {
                Moved::Bytes(_) => {}
                other => return other,
            }
        }
        Moved::Blocked
    }

    fn say_end(&mut self, socket: &Socket) {
        if !self.silent && !self.failed && self.owed == 0 {
            self.session.close();
            // A peer that takes nothing does not hear it.
            let _ = self.send_sealed(socket);
        }
        self.silent = true;
    }
}

fn with_buffer<T>(use_it: impl FnOnce(&mut [u8]) -> T) -> T {
    BUFFER.with_borrow_mut(|buffer| {
        if buffer.is_empty() {
            buffer.resize(BYTES, 0);
        }
        use_it(buffer)
    })
}

#[cfg(test)]
mod tests;
