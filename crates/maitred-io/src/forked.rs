//! Listening sockets in a child process that application code has forked.
//!
//! Promises: a child that calls [`close_in_child`] keeps none that is listed, so that a port ends with its server. Leaves out: sockets
//! beyond `MOST`, and programs that are started, which have none (CLOEXEC).

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::DupFlags;

/// More than a server listens on in practice. A child reads the list, and must take no lock for that.
const MOST: usize = 128;

const NONE: RawFd = -1;

static LISTED: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// A socket that children do not keep, for as long as this value lives.
#[derive(Debug)]
pub struct Unshared(RawFd);

impl Unshared {
    /// Lists this socket. The value is dropped before the socket is closed.
    pub fn new(socket: &impl AsFd) -> Self {
        let descriptor = socket.as_fd().as_raw_fd();
        let free = |place: &&AtomicI32| {
            place.compare_exchange(NONE, descriptor, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let _ = LISTED.iter().find(free);
        Self(descriptor)
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        let own = |place: &&AtomicI32| {
            place.compare_exchange(self.0, NONE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let _ = LISTED.iter().find(own);
    }
}

/// Puts the null device in the place of the listed sockets. To be called in a child process only, also directly after
/// fork(2): it makes system calls and nothing else.
pub fn close_in_child() {
    let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    for place in &LISTED {
        let descriptor = place.swap(NONE, Ordering::AcqRel);
        if descriptor == NONE {
            continue;
        }
        // SAFETY: the descriptor is open: the owner that listed it still has it. It is closed here only where nothing
        // can be put in its place.
        let mut socket = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(descriptor) });
        // Other copies of the number in this memory still name an open descriptor.
        let replaced =
            null.as_ref().is_ok_and(|null| rustix::io::dup3(null, &mut socket, DupFlags::CLOEXEC).is_ok());
        if !replaced {
            drop(ManuallyDrop::into_inner(socket));
        }
    }
}
