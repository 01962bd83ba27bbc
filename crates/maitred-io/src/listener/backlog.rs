//! Connections that wait to be accepted (TCP_INFO, tcp(7)). rustix has no such option.

use std::mem::{MaybeUninit, offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};

/// The queue of a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// Connections that wait to be accepted.
    pub waiting: u32,
    /// The most that may wait; the kernel drops further ones.
    pub max: u32,
}

pub(super) fn of(socket: impl AsFd) -> Option<Backlog> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed; the pointers are to room of the size said, and to that size,
    // which the call only writes to.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if failed != 0 || (length as usize) < offset_of!(libc::tcp_info, tcpi_lost) {
        return None;
    }
    // SAFETY: a value of integers only, which was zeroed.
    let info = unsafe { info.assume_init() };
    // The kernel reports both in fields that a listening socket does not use otherwise.
    Some(Backlog { waiting: info.tcpi_unacked, max: info.tcpi_sacked })
}
