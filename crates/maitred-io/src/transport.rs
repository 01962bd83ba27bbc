//! The way of a connection's bytes to its peer and back: a plain socket, or a TLS session over one.
//!
//! Nothing else of a connection calls a socket. A caller asks before it relies on a property of plain bytes:
//! [`empties_by_a_short_read`](Transport::empties_by_a_short_read).
//!
//! Sections below: a plain socket; when the kernel had it.

pub(crate) mod tcp;
mod tls;
mod unacknowledged;

use std::fs::File;
use std::io::{self, IoSlice};
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, sockopt};

use maitred_tls::Session;

use crate::poller::{Interest, Poller};

pub use tls::{Shaken, Tls};

/// The way of a connection's bytes to its peer and back.
pub enum Transport {
    /// The peer receives the bytes as they are sent.
    Plain(Socket),
    /// The bytes are sealed for the peer, once the handshake has [begun](Self::begin_handshake).
    Tls(Box<Tls>),
    /// A connection without a network, for tests.
    #[cfg(feature = "memory")]
    Memory(Box<InMemory>),
}

/// A [`Pipe`] behind one pointer, so that a transport is as large as without it.
#[cfg(feature = "memory")]
pub struct InMemory(Box<dyn Pipe>);

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
    /// A connection in memory.
    #[cfg(feature = "memory")]
    pub fn memory(pipe: impl Pipe + 'static) -> Self {
        Self::Memory(Box::new(InMemory(Box::new(pipe))))
    }

    /// A socket that is to have a TLS session.
    pub fn tls(socket: Socket) -> Self {
        Self::Tls(Box::new(Tls::new(socket)))
    }

    /// Begins a handshake; without effect on a transport without TLS.
    pub fn begin_handshake(&mut self, session: Session) {
        if let Self::Tls(tls) = self {
            tls.begin(session);
        }
    }

    /// Whether a handshake has begun.
    pub fn has_session(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.has_session())
    }

    /// Goes on with the handshake as far as that is possible now. `received` has been received before it began.
    pub fn shake_hands(&mut self, received: &[u8]) -> Shaken {
        match self {
            Self::Tls(tls) => tls.shake_hands(received),
            _ => Shaken::Left,
        }
    }

    /// Reports the events of the connection with `token`.
    ///
    /// # Errors
    /// The system's: out of memory, or of watches (fs.epoll.max_user_watches).
    pub fn watch(&self, poller: &Poller, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Plain(socket) => poller.add(socket, token, interest),
            Self::Tls(tls) => poller.add(tls.socket(), token, interest),
            #[cfg(feature = "memory")]
            Self::Memory(_) => Ok(()),
        }
    }

    /// Changes the reported events; those that are already there are reported again.
    pub fn watch_for(&self, poller: &Poller, token: u64, interest: Interest) -> io::Result<()> {
        match self {
            Self::Plain(socket) => poller.modify(socket, token, interest),
            Self::Tls(tls) => poller.modify(tls.socket(), token, interest),
            #[cfg(feature = "memory")]
            Self::Memory(_) => Ok(()),
        }
    }

    /// Whether nothing more is there when a read brings less than there was room for. Of an encrypted connection that says
    /// nothing: a record may wait that is not complete, or one that has not been opened. A peer that sends urgent bytes, or
    /// passes descriptors along on a Unix socket, cuts a read short all the same, and holds up its own connection only.
    pub fn empties_by_a_short_read(&self) -> bool {
        match self {
            Self::Plain(_) => true,
            Self::Tls(tls) => tls.is_emptied(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => true,
        }
    }

    /// Receives what has come into `buffer`, deciphered where the transport speaks TLS. Never waits.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Moved {
        match self {
            Self::Plain(socket) => socket.receive(buffer),
            Self::Tls(tls) => tls.receive(buffer),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => moved(pipe.0.read(buffer)),
        }
    }

    /// Receives up to `most` bytes behind the content of `buffer`.
    pub fn receive_more(&mut self, buffer: &mut Vec<u8>, most: usize) -> Moved {
        match self {
            Self::Plain(socket) => socket.receive_more(buffer, most),
            Self::Tls(tls) => tls.receive_more(buffer, most),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => {
                let mut piece = vec![0; most];
                let moved = moved(pipe.0.read(&mut piece));
                if let Moved::Bytes(count) = moved {
                    buffer.extend_from_slice(&piece[..count]);
                }
                moved
            }
        }
    }

    /// [Receives](Self::receive), and returns when the kernel had the last of these bytes, in nanoseconds since 1970,
    /// where it has noted that.
    pub fn receive_with_receipt(&mut self, buffer: &mut [u8]) -> (Moved, Option<u64>) {
        match self {
            Self::Plain(socket) => socket.receive_with_receipt(buffer),
            Self::Tls(tls) => tls.receive_with_receipt(buffer),
            #[cfg(feature = "memory")]
            Self::Memory(_) => (self.receive(buffer), None),
        }
    }

    /// Says whether the kernel notes when it receives something. Without effect where it cannot.
    pub fn set_receipts(&self, noted: bool) {
        match self {
            Self::Plain(socket) => socket.set_receipts(noted),
            Self::Tls(tls) => tls.socket().set_receipts(noted),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Sends from `bytes`, which are not empty, enciphered where the transport speaks TLS. Never waits: the rest is for the next call. Bytes
    /// that are said to have moved are with the kernel, also by TLS.
    /// `more` says that more follows at once, so that the kernel may wait to fill a segment.
    pub fn send(&mut self, bytes: &[u8], more: bool) -> Moved {
        match self {
            Self::Plain(socket) => socket.send(bytes, more),
            Self::Tls(tls) => tls.send_all(&[IoSlice::new(bytes)], more),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => moved(pipe.0.write(bytes)),
        }
    }

    /// Sends from several buffers in one call; `more` as in [`send`](Self::send).
    pub fn send_all(&mut self, parts: &[IoSlice<'_>], more: bool) -> Moved {
        match self {
            Self::Plain(socket) => socket.send_all(parts, more),
            Self::Tls(tls) => tls.send_all(parts, more),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => {
                let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                moved(pipe.0.write(&whole))
            }
        }
    }

    /// Sends up to `most` bytes of `file` from `offset`. [`Moved::End`] means that the file is shorter than `offset`.
    pub fn send_file(&mut self, file: &File, offset: u64, most: usize) -> Moved {
        match self {
            Self::Plain(socket) => socket.send_file(file, offset, most),
            Self::Tls(tls) => tls.send_file(file, offset, most),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => {
                let mut piece = vec![0; most.min(64 * 1024)];
                match std::os::unix::fs::FileExt::read_at(file, &mut piece, offset) {
                    Ok(0) => Moved::End,
                    Ok(count) => moved(pipe.0.write(&piece[..count])),
                    Err(error) => Moved::Failed(error),
                }
            }
        }
    }

    /// Whether a part of a file goes from the system's cache to the socket; else it is read, and its bytes are changed.
    pub fn sends_files(&self) -> bool {
        matches!(self, Self::Plain(_))
    }

    /// Bytes on the wire that the peer has not acknowledged; 0 where the kernel does not tell.
    pub fn unacknowledged(&self) -> u64 {
        match self {
            Self::Plain(socket) => socket.unacknowledged(),
            Self::Tls(tls) => tls.socket().unacknowledged(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => 0,
        }
    }

    /// Has the kernel drop unacknowledged bytes when the connection is closed, and reset it. Otherwise it would keep
    /// them for minutes for a peer that takes nothing.
    pub fn reset_when_closed(&mut self) {
        match self {
            Self::Plain(socket) => socket.reset_when_closed(),
            Self::Tls(tls) => tls.reset_when_closed(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Says whether the kernel takes [`SEND_AHEAD`] only, or as much as it likes.
    pub fn set_send_ahead(&self, limited: bool) {
        match self {
            Self::Plain(socket) => socket.set_send_ahead(limited),
            Self::Tls(tls) => tls.socket().set_send_ahead(limited),
            #[cfg(feature = "memory")]
            Self::Memory(_) => {}
        }
    }

    /// Ends our sending side; the peer can still send.
    pub fn shutdown_write(&mut self) {
        match self {
            Self::Plain(socket) => socket.shutdown_write(),
            Self::Tls(tls) => tls.shutdown_write(),
            #[cfg(feature = "memory")]
            Self::Memory(pipe) => pipe.0.end(),
        }
    }

    /// Our own address on this connection; none without an internet address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Plain(socket) => socket.local_address(),
            Self::Tls(tls) => tls.socket().local_address(),
            #[cfg(feature = "memory")]
            Self::Memory(_) => None,
        }
    }
}

// ---- A plain socket ----
//
// No call waits; every result is one of bytes moved, end, would-block or an error. It is a TCP socket or a Unix stream
// socket; options of TCP are without effect on the other. Descriptors that the peer of a Unix socket passes along are
// never received: the kernel closes them, for no call offers room for them.

/// Bytes that the kernel takes for a connection beyond those on their way to the peer (TCP_NOTSENT_LOWAT, tcp(7)),
/// until the limit is [lifted](Socket::set_send_ahead). It would take up to 4 MiB (net.ipv4.tcp_wmem), over loopback
/// 2.5 MiB from the start, however slowly the peer reads. Bytes on their way are not limited, so a long fat network is
/// used to the full; but there are more wake-ups, for which a fast transfer over loopback needs half as much CPU time
/// again.
pub const SEND_AHEAD: u32 = 256 * 1024;

/// A connected socket.
pub struct Socket {
    fd: OwnedFd,
    /// Whether it is a Unix socket.
    local: bool,
    /// Whether the kernel may wait for bytes that follow at once.
    corks: bool,
}

/// The result of one attempt to receive or send.
#[derive(Debug)]
pub enum Moved {
    /// This many bytes, at least one.
    Bytes(usize),
    /// The peer sends no more; or, for a file, the file ends here.
    End,
    /// Nothing now: an edge will tell.
    Blocked,
    /// The connection is broken.
    Failed(io::Error),
}

impl Moved {
    fn of(result: Result<usize, Errno>) -> Self {
        match result {
            Ok(0) => Self::End,
            Ok(count) => Self::Bytes(count),
            Err(Errno::AGAIN) => Self::Blocked,
            Err(error) => Self::Failed(error.into()),
        }
    }
}

impl Socket {
    /// Receives into `buffer`.
    pub fn receive(&self, buffer: &mut [u8]) -> Moved {
        Moved::of(retry(|| {
            rustix::net::recv(&self.fd, &mut *buffer, RecvFlags::empty()).map(|(count, _)| count)
        }))
    }

    /// Receives up to `most` bytes behind the content of `buffer`.
    pub fn receive_more(&self, buffer: &mut Vec<u8>, most: usize) -> Moved {
        buffer.reserve(most);
        let length = buffer.len();
        let moved = Moved::of(retry(|| {
            let spare = buffer.spare_capacity_mut();
            let room = spare.len().min(most);
            rustix::net::recv(&self.fd, &mut spare[..room], RecvFlags::empty()).map(|(_, count)| count)
        }));
        if let Moved::Bytes(count) = moved {
            // SAFETY: the kernel has written so many bytes behind the length; the capacity holds them.
            unsafe { buffer.set_len(length + count) };
        }
        moved
    }

    /// Says whether the kernel notes when it receives something. Of a Unix socket it never does.
    pub fn set_receipts(&self, noted: bool) {
        if !self.local {
            note_receipts(&self.fd, noted);
        }
    }

    /// [Receives](Self::receive), and returns when the kernel had the last of these bytes, in nanoseconds since 1970,
    /// where it has noted that.
    pub fn receive_with_receipt(&self, buffer: &mut [u8]) -> (Moved, Option<u64>) {
        if self.local {
            // Room for a control message would be room for descriptors that the peer passes.
            return (self.receive(buffer), None);
        }
        let mut stamp = None;
        let moved = Moved::of(retry(|| {
            let (count, noted) = receive_with_stamp(&self.fd, buffer)?;
            stamp = noted;
            Ok(count)
        }));
        (moved, stamp)
    }

    /// Sends from `bytes`, which are not empty. `more` says that more follows at once, so that the
    /// kernel may wait to fill a segment (MSG_MORE, send(2)), unless its listener has `cork` off.
    pub fn send(&self, bytes: &[u8], more: bool) -> Moved {
        let flags = self.flags(more);
        Moved::of(retry(|| rustix::net::send(&self.fd, bytes, flags)))
    }

    /// Sends from several buffers in one call; `more` as in [`send`](Self::send). SIGPIPE must be ignored by the process (the
    /// Rust and Python start-up code both do).
    pub fn send_all(&self, parts: &[IoSlice<'_>], more: bool) -> Moved {
        if !(more && self.corks) {
            return Moved::of(retry(|| rustix::io::writev(&self.fd, parts)));
        }
        let flags = self.flags(more);
        Moved::of(retry(|| rustix::net::sendmsg(&self.fd, parts, &mut SendAncillaryBuffer::default(), flags)))
    }

    fn flags(&self, more: bool) -> SendFlags {
        if more && self.corks { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL }
    }

    /// Sends up to `most` bytes of `file` from `offset`. [`Moved::End`] means that the file is
    /// shorter than `offset`.
    pub fn send_file(&self, file: &File, offset: u64, most: usize) -> Moved {
        let mut position = offset;
        Moved::of(retry(|| rustix::fs::sendfile(&self.fd, file, Some(&mut position), most)))
    }

    /// Bytes that were sent and that the peer has not acknowledged, so that the kernel keeps them; 0 where it does not
    /// tell. Of a Unix socket: the kernel's memory for unread bytes, which is more than the bytes.
    pub fn unacknowledged(&self) -> u64 {
        unacknowledged::of(&self.fd)
    }

    /// Has the kernel drop unacknowledged bytes when the socket is closed, and reset the connection (SO_LINGER,
    /// socket(7)). Otherwise it would keep them for minutes for a peer that takes nothing. Without effect on a Unix
    /// socket, whose peer holds its unread bytes.
    pub fn reset_when_closed(&self) {
        // Without effect on a connection that is gone.
        let _ = sockopt::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }

    /// Says whether the kernel takes [`SEND_AHEAD`] only, or as much as it likes. Where it then takes more than before, an
    /// edge tells. Without effect on a Unix socket, which takes no more than net.core.wmem_default.
    pub fn set_send_ahead(&self, limited: bool) {
        if self.local {
            return;
        }
        // 0 is the system's default, which is no limit. Where the kernel does not know the option, there is none either.
        let _ = tcp::set_number(&self.fd, libc::TCP_NOTSENT_LOWAT, if limited { SEND_AHEAD } else { 0 });
    }

    /// Ends our sending side; the peer can still send.
    pub fn shutdown_write(&self) {
        // A socket that is not connected any more has nothing to shut down.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
    }

    /// Bytes of a full segment of this connection (TCP_MAXSEG, tcp(7)); the most of any where there are none.
    pub(crate) fn segment(&self) -> usize {
        if self.local {
            return usize::MAX;
        }
        tcp::get_number(&self.fd, libc::TCP_MAXSEG).map_or(usize::MAX, |bytes| bytes as usize)
    }

    /// Our own address on this connection; none on a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(rustix::net::getsockname(&self.fd).ok()?).ok()
    }
}

impl Socket {
    pub(crate) fn tcp(fd: OwnedFd, corks: bool) -> Self {
        Self { fd, local: false, corks }
    }

    pub(crate) fn unix(fd: OwnedFd) -> Self {
        Self { fd, local: true, corks: false }
    }
}

impl From<OwnedFd> for Socket {
    /// Takes a connected socket, which any code may have made.
    fn from(fd: OwnedFd) -> Self {
        let local = rustix::net::sockopt::socket_domain(&fd) == Ok(rustix::net::AddressFamily::UNIX);
        Self { fd, local, corks: !local }
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> Self {
        socket.fd
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn retry(mut call: impl FnMut() -> Result<usize, Errno>) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

// ---- When the kernel had it ----
//
// SO_TIMESTAMPNS, socket(7). While any socket of the system asks for it the kernel looks at the clock for each packet. rustix has no such control
// message.

/// Room for one control message with a `timespec`, aligned as such messages have to be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Asks for stamps, or no longer. Without effect where the kernel has none.
pub(crate) fn note_receipts(socket: impl AsFd, noted: bool) {
    let value = libc::c_int::from(noted);
    // SAFETY: the descriptor is open while it is borrowed; the pointer is to a value of the size said, which is only read.
    unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

/// Receives; how much, and the stamp of the last of it in nanoseconds since 1970.
fn receive_with_stamp(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Option<u64>), Errno> {
    let mut control = MaybeUninit::<Control>::uninit();
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: a structure of integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { MaybeUninit::zeroed().assume_init() };
    message.msg_iov = ptr::from_mut(&mut part);
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>() as _;
    // Not recvmsg(3): the C library makes it a point of cancellation, which costs a tenth of a microsecond.
    // SAFETY: the descriptor is open while it is borrowed; the message names one buffer and the room for control
    // messages, both with their sizes, and they live until the call is over.
    let count = unsafe {
        libc::syscall(libc::SYS_recvmsg, socket.as_fd().as_raw_fd(), ptr::from_mut(&mut message), 0)
    };
    let Ok(count) = usize::try_from(count) else {
        return Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO));
    };
    // SAFETY: the kernel has set the length of the written part of the room for control messages, which is aligned; the
    // functions give a header within that length, or null.
    let stamp = unsafe {
        libc::CMSG_FIRSTHDR(&raw const message).as_ref().and_then(|header| {
            let is_stamp = (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
            let whole = header.cmsg_len >= libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as _;
            (is_stamp && whole).then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
        })
    };
    Ok((count, stamp.and_then(stamp_nanos)))
}

fn stamp_nanos(time: libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod receipt_tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::{Duration, Instant, SystemTime};

    use super::*;

    fn now() -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    }

    #[test]
    fn the_stamp_is_of_the_receipt_and_not_of_the_reading() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        note_receipts(&server, true);
        let mut buffer = [0; 16];
        // The kernel begins to note a moment after it was asked to.
        let begin = Instant::now();
        loop {
            let before = now();
            client.write_all(b"some").unwrap();
            server.peek(&mut buffer).unwrap();
            let after = now();
            let (count, stamp) = receive_with_stamp(&server, &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"some");
            if let Some(stamp) = stamp {
                assert!((before..=after).contains(&stamp), "{before} {stamp} {after}");
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it never does");
        }
        note_receipts(&server, false);
        client.write_all(b"third").unwrap();
        assert_eq!(receive_with_stamp(&server, &mut buffer).unwrap(), (5, None));
    }
}
