//! Several sends by one system call.
//!
//! What is written to a socket of this machine wakes its reader, and a reader that sleeps takes the processor when the system call ends. Of many
//! writes each one is interrupted so, and each time both programs find cold caches. The kernel's asynchronous input and output (io_submit(2)) does
//! several writes before it returns. For sockets it is not asynchronous: all of them are done then.
//!
//! Promises: the caller learns how many bytes of each have left, and sends the rest as usual. Where the system has no such call, forbids it, or does not
//! do it for sockets, the rest is everything; and so it is while the process does not ignore SIGPIPE, which such a write may raise.

use std::cell::{Cell, OnceCell};
use std::io::IoSlice;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;

use super::{Socket, Transport};

/// The most sends by one call.
pub const MOST: usize = 16;

/// An offer has at most so many parts: a head, a body, and the framing around it.
const PARTS: usize = 4;

/// An offer has at most so many bytes: more takes long, and the other connections wait meanwhile.
const MOST_BYTES: usize = 64 * 1024;

/// What one connection is to send.
pub struct Offer<'a> {
    socket: &'a Socket,
    parts: [IoSlice<'a>; PARTS],
    count: usize,
}

impl<'a> Offer<'a> {
    /// All of these parts, in this order, none of which is empty. None where they are too many or too much, where there are none, and where
    /// bytes do not go to a socket as they are.
    pub fn new(transport: &'a Transport, parts: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let Transport::Plain(socket) = transport else { return None };
        let mut offer = Self { socket, parts: std::array::from_fn(|_| IoSlice::new(&[])), count: 0 };
        let mut bytes = 0;
        for part in parts {
            bytes += part.len();
            *offer.parts.get_mut(offer.count)? = IoSlice::new(part);
            offer.count += 1;
        }
        (offer.count > 0 && bytes <= MOST_BYTES).then_some(offer)
    }
}

/// What has become of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// So many bytes have left; 0 also where it was not tried.
    Bytes(usize),
    /// The connection is broken: this error of the system.
    Failed(i32),
}

/// Sends what is offered, the first [`MOST`] of it; `left` says in the same order what has become of it. A single one is the caller's.
pub fn send(offers: &[Option<Offer<'_>>], left: &mut [Left]) {
    thread_local! {
        static QUEUE: OnceCell<Option<Queue>> = const { OnceCell::new() };
    }
    left.fill(Left::Bytes(0));
    if offers.iter().take(MOST).flatten().count() < 2 || !ignores_broken_pipes() {
        return;
    }
    QUEUE.with(|queue| {
        if let Some(queue) = queue.get_or_init(Queue::new) {
            queue.send(offers, left);
        }
    });
}

/// Whether SIGPIPE is ignored: applications may have said otherwise at any time.
fn ignores_broken_pipes() -> bool {
    // SAFETY: all zero is a value of it, made of numbers and empty sets.
    let mut present: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: nothing is set; the call writes to a value of that type.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut present) };
    asked == 0 && present.sa_sigaction == libc::SIG_IGN
}

/// A thread's queue in the kernel. It is empty but for the time of a call.
struct Queue {
    number: libc::c_ulong,
    /// Something may be left in it, which the next call would take for its own.
    is_broken: Cell<bool>,
}

impl Queue {
    /// None where the system does not have it, or allows it not: containers may be told so.
    fn new() -> Option<Self> {
        let mut number: libc::c_ulong = 0;
        // SAFETY: the pointer is to a value of that type, which the call sets.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, MOST as libc::c_uint, &raw mut number) };
        if made != 0 {
            return None;
        }
        let queue = Self { number, is_broken: Cell::new(false) };
        queue.writes_to_sockets().then_some(queue)
    }

    /// Tries it: there are systems that have the calls, and files are all that they write to (gVisor).
    fn writes_to_sockets(&self) -> bool {
        let Ok((ours, _peer)) = UnixStream::pair() else { return false };
        let transport = Transport::Plain(Socket::from(OwnedFd::from(ours)));
        let mut left = [Left::Bytes(0)];
        self.send(&[Offer::new(&transport, [&b"?"[..]].into_iter())], &mut left);
        left == [Left::Bytes(1)]
    }

    fn send(&self, offers: &[Option<Offer<'_>>], left: &mut [Left]) {
        if self.is_broken.get() {
            return;
        }
        let mut blocks = [Block::default(); MOST];
        let mut count = 0;
        for (place, offer) in offers.iter().enumerate().take(MOST) {
            if let (Some(offer), Some(block)) = (offer, blocks.get_mut(count)) {
                *block = Block::write(place, offer);
                count += 1;
            }
        }
        let mut pointers = [ptr::null_mut(); MOST];
        for (pointer, block) in pointers.iter_mut().zip(&mut blocks[..count]) {
            *pointer = ptr::from_mut(block);
        }
        // Fewer where one is refused: that one and those behind it have not begun.
        let Ok(begun) = self.submit(&mut pointers[..count]) else { return };
        for block in &blocks[..begun] {
            if let Some(left) = left.get_mut(block.place as usize) {
                // Should the system not tell what has left, nothing can follow it.
                *left = Left::Failed(libc::EIO);
            }
        }
        let mut completed = [Completion::default(); MOST];
        let mut done = 0;
        while done < begun {
            let Ok(more) = self.completed(begun - done, &mut completed[..begun - done]) else {
                self.is_broken.set(true);
                return;
            };
            for completion in &completed[..more] {
                if let Some(left) = left.get_mut(completion.place as usize) {
                    *left = completion.left();
                }
            }
            done += more;
        }
    }

    /// Begins these, whose pointers are valid; how many.
    fn submit(&self, blocks: &mut [*mut Block]) -> Result<usize, ()> {
        // SAFETY: the pointers are to blocks that live until the call is over, and so do the buffers that they name: `send` waits for all that has
        // begun. The kernel reads the buffers, and writes to the blocks no more than a key of its own.
        retry(|| unsafe {
            libc::syscall(libc::SYS_io_submit, self.number, blocks.len(), blocks.as_mut_ptr())
        })
    }

    /// Waits until `least` are done, and takes them.
    fn completed(&self, least: usize, into: &mut [Completion]) -> Result<usize, ()> {
        let (least, most) = (least as libc::c_long, into.len() as libc::c_long);
        let (into, no_limit) = (into.as_mut_ptr(), ptr::null_mut::<libc::timespec>());
        // SAFETY: the kernel writes to no more than `most` completions, for which there is room.
        retry(|| unsafe { libc::syscall(libc::SYS_io_getevents, self.number, least, most, into, no_limit) })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the number is that of a queue of this thread, which nobody uses any more.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.number) };
    }
}

fn retry(mut call: impl FnMut() -> libc::c_long) -> Result<usize, ()> {
    loop {
        match usize::try_from(call()) {
            Ok(count) => return Ok(count),
            Err(_) if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return Err(()),
        }
    }
}

/// `IOCB_CMD_PWRITEV`.
const WRITE_PARTS: u16 = 8;

/// `struct iocb` of linux/aio_abi.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Block {
    /// Comes back with the completion.
    place: u64,
    /// Their order depends on the processor's; both are 0.
    key_and_flags: [u32; 2],
    operation: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    count: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

impl Block {
    fn write(place: usize, offer: &Offer<'_>) -> Self {
        Self {
            place: place as u64,
            operation: WRITE_PARTS,
            descriptor: offer.socket.as_fd().as_raw_fd().unsigned_abs(),
            // An IoSlice is an iovec, says the standard library.
            buffer: offer.parts.as_ptr() as u64,
            count: offer.count as u64,
            ..Self::default()
        }
    }
}

/// `struct io_event` of the same.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Completion {
    place: u64,
    block: u64,
    /// Bytes, or an error below 0.
    result: i64,
    second_result: i64,
}

impl Completion {
    /// An error that says that the peer is gone ends the connection. After any other error the caller sends the bytes itself, and gets the error if it
    /// still holds.
    fn left(self) -> Left {
        match usize::try_from(self.result) {
            Ok(bytes) => Left::Bytes(bytes),
            Err(_) => [libc::EPIPE, libc::ECONNRESET, libc::ETIMEDOUT]
                .into_iter()
                .find(|error| self.result == -i64::from(*error))
                .map_or(Left::Bytes(0), Left::Failed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn tcp() -> (TcpStream, Transport) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        (client, Transport::Plain(Socket::from(std::os::fd::OwnedFd::from(server))))
    }

    fn received(peer: &mut impl Read, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        peer.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn each_peer_gets_its_own_and_the_caller_knows_what_has_left() {
        let (mut one, first) = tcp();
        let (gone, second) = tcp();
        let (mut other, ours) = UnixStream::pair().unwrap();
        let third = Transport::Plain(Socket::from(std::os::fd::OwnedFd::from(ours)));
        // The reset has come before we send: a peer that closes with bytes unread sends one at once.
        socket2::SockRef::from(&gone).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(gone);
        let offer = |transport, parts: &[&'static [u8]]| Offer::new(transport, parts.iter().copied());
        for round in 0..3 {
            let offers = [
                offer(&first, &[b"head ", b"body"]),
                None,
                offer(&second, &[b"nobody is there"]),
                offer(&third, &[b"third"]),
            ];
            let mut left = [Left::Bytes(1); 4];
            send(&offers, &mut left);
            // The socket tells of the reset once.
            let error = if round == 0 { libc::ECONNRESET } else { libc::EPIPE };
            assert_eq!(left, [Left::Bytes(9), Left::Bytes(0), Left::Failed(error), Left::Bytes(5)]);
            assert_eq!(
                (received(&mut one, 9), received(&mut other, 5)),
                (b"head body".into(), b"third".into())
            );
        }
    }

    #[test]
    fn a_full_socket_takes_a_part_or_nothing_and_holds_up_nobody() {
        let (mut slow, full) = tcp();
        let (mut quick, free) = tcp();
        let piece = [b'x'; MOST_BYTES];
        let mut sent = 0;
        loop {
            let offers =
                [Offer::new(&full, [&piece[..]].into_iter()), Offer::new(&free, [&b"y"[..]].into_iter())];
            let mut left = [Left::Bytes(9); 2];
            send(&offers, &mut left);
            assert_eq!((left[1], received(&mut quick, 1)), (Left::Bytes(1), b"y".into()));
            let Left::Bytes(count) = left[0] else { panic!("{left:?}") };
            sent += count;
            if count == 0 {
                break;
            }
        }
        assert!(sent > 0 && received(&mut slow, sent).iter().all(|byte| *byte == b'x'));
    }

    #[test]
    fn what_is_too_much_or_nothing_is_not_offered() {
        let (_peer, transport) = tcp();
        let offered = |parts: &[&[u8]]| Offer::new(&transport, parts.iter().copied()).is_some();
        let large = vec![0; MOST_BYTES];
        assert!(offered(&[&large]) && offered(&[&b"a"[..]; PARTS]));
        assert!(!offered(&[&large, b"a"]) && !offered(&[&b"a"[..]; PARTS + 1]) && !offered(&[]));
    }

    #[test]
    fn an_error_that_says_nothing_of_the_peer_leaves_the_bytes_to_the_caller() {
        let left = |result| Completion { result, ..Completion::default() }.left();
        for error in [libc::ESPIPE, libc::EINVAL, libc::EOPNOTSUPP, libc::EPERM, libc::EINTR, libc::EAGAIN] {
            assert_eq!(left(-i64::from(error)), Left::Bytes(0), "{error}");
        }
        assert_eq!((left(-i64::from(libc::EPIPE)), left(7)), (Left::Failed(libc::EPIPE), Left::Bytes(7)));
    }

    #[test]
    fn a_single_one_is_the_caller_s_and_a_queue_that_may_not_be_empty_is_not_used() {
        let (mut peer, first) = tcp();
        let (_other, second) = tcp();
        let offer = |transport| Offer::new(transport, [&b"x"[..]].into_iter());
        let mut left = [Left::Bytes(9); 2];
        send(&[None, offer(&first)], &mut left);
        assert_eq!(left, [Left::Bytes(0); 2]);
        let queue = Queue::new().unwrap();
        queue.send(&[offer(&first), offer(&second)], &mut left);
        assert_eq!((left, received(&mut peer, 1)), ([Left::Bytes(1); 2], b"x".into()));
        queue.is_broken.set(true);
        left = [Left::Bytes(0); 2];
        queue.send(&[offer(&first), offer(&second)], &mut left);
        assert_eq!(left, [Left::Bytes(0); 2]);
    }

    #[test]
    fn the_structures_are_the_kernel_s() {
        assert_eq!((size_of::<Block>(), size_of::<Completion>()), (64, 32));
        assert_eq!((std::mem::offset_of!(Block, descriptor), std::mem::offset_of!(Block, buffer)), (20, 24));
        assert_eq!((std::mem::offset_of!(Block, event_descriptor), size_of::<IoSlice>()), (60, 16));
    }
}
