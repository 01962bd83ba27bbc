//! Messages between two processes of one server, with descriptors: a stream socket pair.
//!
//! ```text
//! message: length of the text, number of descriptors (4 bytes each, little-endian) | text
//! ```
//! The descriptors come with the first bytes. Promises: a message arrives whole or not at all; received descriptors are
//! closed on exec; an end of the other side is an error that says so. Reading waits, and so does writing while the
//! other side does not read. Leaves out: the meaning of texts.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// The longest text: a page of figures of a large site has less.
pub const MAX_TEXT: usize = 64 * 1024 * 1024;

/// Descriptors of one message (unix(7): SCM_MAX_FD is 253).
pub const MAX_DESCRIPTORS: usize = 253;

const HEADER: usize = 8;

/// A message as it was received.
#[derive(Debug)]
pub struct Message {
    /// The text.
    pub text: Vec<u8>,
    /// The descriptors that came with it, in order.
    pub descriptors: Vec<OwnedFd>,
}

/// One side of a channel.
#[derive(Debug)]
pub struct Channel {
    stream: UnixStream,
}

impl Channel {
    /// Makes both sides of a channel.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = UnixStream::pair()?;
        Ok((Self { stream: one }, Self { stream: other }))
    }

    /// The side that another process has handed over as standard input. The null device takes its place there, so that
    /// no other code reads from it.
    ///
    /// # Errors
    /// Standard input is no such socket, or there is no null device.
    pub fn take_standard_input() -> io::Result<Self> {
        let input = io::stdin();
        let domain = rustix::net::sockopt::socket_domain(&input)?;
        if domain != rustix::net::AddressFamily::UNIX {
            return Err(io::Error::new(ErrorKind::InvalidInput, "standard input is no channel"));
        }
        let own = input.as_fd().try_clone_to_owned()?;
        let null = std::fs::File::open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        Ok(Self { stream: own.into() })
    }

    /// Puts the side that was received into the place of standard input, for [`take_standard_input`](Self::take_standard_input).
    pub fn give_standard_input(side: &OwnedFd) -> io::Result<()> {
        Ok(rustix::stdio::dup2_stdin(side)?)
    }

    /// Clones this side, for another thread: one sends, the other receives.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { stream: self.stream.try_clone()? })
    }

    /// The descriptor, to be handed to another process.
    pub fn into_descriptor(self) -> OwnedFd {
        self.stream.into()
    }

    /// How long a message waits for the other side to read; for ever without.
    pub fn set_send_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.set_write_timeout(limit)
    }

    /// How long [`receive`](Self::receive) waits; for ever without.
    pub fn set_receive_limit(&self, limit: Option<Duration>) -> io::Result<()> {
        self.stream.set_read_timeout(limit)
    }

    /// Ends both directions: a thread that waits in [`receive`](Self::receive) on either side returns.
    pub fn shut_down(&self) {
        // It may have been ended by the other side.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Sends a message. Of one side only one thread sends at a time.
    ///
    /// # Errors
    /// The other side is gone, or does not read; the message is too long. After part of it the channel is of no use any more.
    pub fn send(&self, text: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        if text.len() > MAX_TEXT || descriptors.len() > MAX_DESCRIPTORS {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long for the channel"));
        }
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
        header[4..].copy_from_slice(&(descriptors.len() as u32).to_le_bytes());
        let mut sent = 0;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        while sent == 0 {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
                return Err(io::Error::new(ErrorKind::InvalidInput, "too many descriptors"));
            }
            match sendmsg(&self.stream, &[IoSlice::new(&header)], &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => sent = count,
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        (&self.stream).write_all(&header[sent..])?;
        (&self.stream).write_all(text)
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// `UnexpectedEof`: the other side has ended. `InvalidData`: this is no message. `WouldBlock`: none within the limit.
    pub fn receive(&self) -> io::Result<Message> {
        let mut header = [0; HEADER];
        let mut descriptors = Vec::new();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut count = 0;
        while count == 0 {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.stream, &mut [IoSliceMut::new(&mut header)], &mut control, flags) {
                Ok(message) if message.bytes == 0 => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(message) => count = message.bytes,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(received) = message {
                    descriptors.extend(received);
                }
            }
        }
        (&self.stream).read_exact(&mut header[count..])?;
        let [length, announced] = [0, 4]
            .map(|at| header[at..].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize);
        if length > MAX_TEXT || announced != descriptors.len() {
            return Err(io::Error::new(ErrorKind::InvalidData, "this is no message of the channel"));
        }
        let mut text = vec![0; length];
        (&self.stream).read_exact(&mut text)?;
        Ok(Message { text, descriptors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_in_order_with_their_descriptors() {
        let (one, other) = Channel::pair().expect("a pair");
        let file = tempfile::tempfile().expect("a file");
        let sender = std::thread::spawn(move || {
            one.send(b"first", &[]).expect("sent");
            one.send(b"", &[file.as_fd(), file.as_fd()]).expect("sent");
            one.send(&vec![7; 3_000_000], &[]).expect("sent");
        });
        let first = other.receive().expect("a message");
        assert_eq!((first.text.as_slice(), first.descriptors.len()), (&b"first"[..], 0));
        let second = other.receive().expect("a message");
        assert_eq!((second.text.len(), second.descriptors.len()), (0, 2));
        for descriptor in &second.descriptors {
            let flags = rustix::io::fcntl_getfd(descriptor).expect("open");
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
        assert_eq!(other.receive().expect("a message").text.len(), 3_000_000);
        sender.join().expect("sent");
        assert_eq!(other.receive().expect_err("the end").kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn bytes_that_are_no_message_are_an_error() {
        let (one, other) = Channel::pair().expect("a pair");
        (&one.stream).write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
        assert_eq!(other.receive().expect_err("no message").kind(), ErrorKind::InvalidData);
        let (one, other) = Channel::pair().expect("a pair");
        (&one.stream).write_all(&[9, 0, 0]).expect("sent");
        drop(one);
        assert_eq!(other.receive().expect_err("half a header").kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_end_wakes_a_waiting_receiver() {
        let (one, other) = Channel::pair().expect("a pair");
        let own = one.try_clone().expect("a copy");
        let waiting = std::thread::spawn(move || own.receive().expect_err("the end").kind());
        one.shut_down();
        assert_eq!(waiting.join().expect("told"), ErrorKind::UnexpectedEof);
        assert!(other.send(b"x", &[]).is_err());
    }
}
