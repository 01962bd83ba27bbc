//! When the kernel received what a TCP socket has (SO_TIMESTAMPNS, socket(7)).
//!
//! While any socket of the system asks for it the kernel looks at the clock for each packet. rustix has no such control
//! message.

use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::io::Errno;

/// Room for one control message with a `timespec`, aligned as such messages have to be.
#[repr(C, align(8))]
struct Control([u8; 64]);

/// Asks for stamps, or no longer. Without effect where the kernel has none.
pub(super) fn set(socket: impl AsFd, noted: bool) {
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
pub(super) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> Result<(usize, Option<u64>), Errno> {
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
    // SAFETY: the kernel has set the length of what it wrote into the room for control messages, which is aligned; the
    // functions give a header within that length, or null.
    let stamp = unsafe {
        libc::CMSG_FIRSTHDR(&raw const message).as_ref().and_then(|header| {
            let is_stamp = (header.cmsg_level, header.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
            let whole = header.cmsg_len >= libc::CMSG_LEN(size_of::<libc::timespec>() as u32) as _;
            (is_stamp && whole).then(|| libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned())
        })
    };
    Ok((count, stamp.and_then(nanos)))
}

fn nanos(time: libc::timespec) -> Option<u64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
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
        set(&server, true);
        let mut buffer = [0; 16];
        // The kernel begins to note a moment after it was asked to.
        let begin = Instant::now();
        loop {
            let before = now();
            client.write_all(b"some").unwrap();
            server.peek(&mut buffer).unwrap();
            let after = now();
            let (count, stamp) = receive(&server, &mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"some");
            if let Some(stamp) = stamp {
                assert!((before..=after).contains(&stamp), "{before} {stamp} {after}");
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "it never does");
        }
        set(&server, false);
        client.write_all(b"third").unwrap();
        assert_eq!(receive(&server, &mut buffer).unwrap(), (5, None));
    }
}
