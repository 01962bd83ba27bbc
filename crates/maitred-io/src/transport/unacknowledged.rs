//! Sent bytes that the peer has not acknowledged (SIOCOUTQ, tcp(7) and unix(7)). rustix has no such request.

use std::os::fd::{AsFd, AsRawFd};

/// Bytes in the kernel that the peer has not acknowledged, sent or not; 0 where the kernel does not tell.
pub(super) fn of(socket: impl AsFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the descriptor is open while it is borrowed; the request writes one integer to where the pointer leads.
    let failed = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if failed != 0 { 0 } else { u64::try_from(bytes).unwrap_or(0) }
}
