//! Sockets in a child process that application code has forked: those that listen, and those of outgoing connections.
//!
//! Promises: a child that calls [`close_in_child`] and [`close_outgoing_in_child`] keeps none that is listed, so that a port ends
//! with its server and a connection with its user. Leaves out: sockets beyond the lengths of the lists, and programs that are started, which
//! have none (CLOEXEC).

use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::io::DupFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

/// More than a server listens on in practice. A child reads the list, and must take no lock for that.
const MOST: usize = 128;

const NONE: RawFd = -1;

static LISTED: [AtomicI32; MOST] = [const { AtomicI32::new(NONE) }; MOST];

/// Twice the usual limit of a pool: several pools, and several attempts to connect for one connection.
const MOST_OUTGOING: usize = 2048;

static LISTED_OUTGOING: [AtomicI32; MOST_OUTGOING] = [const { AtomicI32::new(NONE) }; MOST_OUTGOING];

/// A socket that children do not keep, for as long as this value lives.
#[derive(Debug)]
pub struct Unshared(RawFd);

impl Unshared {
    /// Lists this socket. The value is dropped before the socket is closed.
    pub fn new(socket: &impl AsFd) -> Self {
        let descriptor = socket.as_fd().as_raw_fd();
        let _ = LISTED.iter().find(|place| put(place, NONE, descriptor));
        Self(descriptor)
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        let _ = LISTED.iter().find(|place| put(place, self.0, NONE));
    }
}

/// A socket of an outgoing connection, which children do not keep, for as long as this value lives.
#[derive(Debug)]
pub struct Outgoing(Option<(usize, RawFd)>);

impl Outgoing {
    /// Lists this socket. The value is dropped before the socket is closed.
    pub fn new(socket: &impl AsFd) -> Self {
        let descriptor = socket.as_fd().as_raw_fd();
        // The number of a descriptor is a good guess for a free place.
        let first = usize::try_from(descriptor).unwrap_or(0);
        let places = (first..first + MOST_OUTGOING).map(|place| place % MOST_OUTGOING);
        let is_taken = |place: &usize| put(&LISTED_OUTGOING[*place], NONE, descriptor);
        Self(places.into_iter().find(is_taken).map(|place| (place, descriptor)))
    }
}

impl Drop for Outgoing {
    fn drop(&mut self) {
        if let Some((place, descriptor)) = self.0 {
            put(&LISTED_OUTGOING[place], descriptor, NONE);
        }
    }
}

fn put(place: &AtomicI32, old: RawFd, new: RawFd) -> bool {
    place.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Puts the null device in the place of the listening sockets. To be called in a child process only, also directly after
/// fork(2): it makes system calls and nothing else.
pub fn close_in_child() {
    replace(&LISTED);
}

/// Puts the null device in the place of the sockets of outgoing connections, as [`close_in_child`] does.
pub fn close_outgoing_in_child() {
    replace(&LISTED_OUTGOING);
}

/// A descriptor that leads to no peer: the null device, or, where a root folder has none, a socket of this process's own.
fn harmless() -> Option<OwnedFd> {
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let socket = |_| {
        let (family, flags) = (AddressFamily::UNIX, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK);
        rustix::net::socket_with(family, SocketType::STREAM, flags, None)
    };
    null.or_else(socket).ok()
}

fn replace(listed: &[AtomicI32]) {
    let mut spare = harmless();
    for place in listed {
        let descriptor = place.swap(NONE, Ordering::AcqRel);
        if descriptor == NONE {
            continue;
        }
        // SAFETY: the descriptor is open: the owner that listed it still has it. Other copies of the number in this memory
        // name an open descriptor behind this, too. Only a number that the limit excludes stays closed, and it comes to no
        // other file either.
        let mut socket = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(descriptor) });
        if let Some(spare) = &spare
            && rustix::io::dup3(spare, &mut socket, DupFlags::CLOEXEC).is_ok()
        {
            continue;
        }
        // All numbers that the process may have are taken: this one is free at once.
        drop(ManuallyDrop::into_inner(socket));
        if spare.is_some() {
            continue;
        }
        match harmless() {
            // The owner closes it.
            Some(new) if new.as_raw_fd() == descriptor => _ = new.into_raw_fd(),
            Some(new) => {
                // SAFETY: the number is free, and its owner closes it.
                unsafe { libc::dup3(new.as_raw_fd(), descriptor, libc::O_CLOEXEC) };
                spare = Some(new);
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
