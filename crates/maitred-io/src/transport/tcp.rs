//! Options of TCP (tcp(7)) that are numbers, and that rustix has no functions for.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Errors: the system refuses the value, or does not know the option.
pub(crate) fn set_number(socket: impl AsFd, option: libc::c_int, value: u32) -> io::Result<()> {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open while it is borrowed; the pointer is to a value of the size said, which is only read.
    let failed = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            ptr::from_ref(&value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if failed != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// None where the socket has no such number.
pub(crate) fn get_number(socket: impl AsFd, option: libc::c_int) -> Option<u32> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the descriptor is open while it is borrowed; the pointers are to room of the size said, and to that size,
    // which the call only writes to.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            option,
            ptr::from_mut(&mut value).cast(),
            &raw mut length,
        )
    };
    if failed != 0 { None } else { u32::try_from(value).ok() }
}
