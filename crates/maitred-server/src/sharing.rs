//! Sharing of addresses with other processes that accept, and the bell between them.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maitred_io::listener::Address;
use maitred_io::poller::Waker;
use maitred_io::shared_memory::SharedMemory;

/// The way in which this process takes connections; see decision 0051.
#[derive(Clone, Debug, Default)]
pub enum Accept {
    /// This process alone has the sockets: connections that wait at its end are taken and served first.
    #[default]
    Single,
    /// Other processes accept from the same sockets. A process takes a connection when it has a thread for it;
    /// otherwise it rings and leaves the connection to the others, as it leaves those that wait at its end.
    Shared(Bell),
    /// Each process has TCP sockets of its own, of a group with SO_REUSEPORT. The queue of a socket goes to the
    /// successor at the end of the process. Unix sockets are shared.
    Own(Bell),
}

impl Accept {
    /// Whether other processes accept from the socket with this address.
    pub(crate) fn shares(&self, address: &Address) -> bool {
        match self {
            Self::Single => false,
            Self::Shared(_) => true,
            Self::Own(_) => matches!(address, Address::Unix(_)),
        }
    }

    /// The bell to ring when connections wait that this process does not take.
    pub(crate) fn bell(&self) -> Option<&Bell> {
        match self {
            Self::Single => None,
            Self::Shared(bell) | Self::Own(bell) => Some(bell),
        }
    }
}

/// The bell with which processes that accept from the same sockets call each other, and the note of the process that
/// has taken the last connection. Each process has it. A process that hears the bell looks for waiting connections.
#[derive(Clone)]
pub struct Bell(Arc<Parts>);

struct Parts {
    waker: Waker,
    /// One word: the process that has taken the last connection.
    last: SharedMemory,
}

impl Bell {
    /// Makes a bell of this process and of those that get its descriptors.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let (waker, last) = (Waker::new()?, SharedMemory::new(size_of::<u64>())?);
        Ok(Self(Arc::new(Parts { waker, last })))
    }

    /// Opens the bell of another process, from its [descriptors](Self::descriptors).
    ///
    /// # Errors
    /// The descriptors are not those of a bell.
    pub fn open([waker, last]: [OwnedFd; 2]) -> io::Result<Self> {
        let last = SharedMemory::open(last)?;
        Ok(Self(Arc::new(Parts { waker: Waker::from(waker), last })))
    }

    /// The descriptors for another process.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.0.waker.as_fd(), self.0.last.as_fd()]
    }

    /// Calls a process with a thread for a connection, if there is one. Also to be called after the death of a
    /// process that accepted: the kernel may have woken it for a connection that it did not take.
    pub fn ring(&self) {
        self.0.waker.wake();
    }

    /// Notes that this process has taken a connection. Returns whether it has taken the previous one, too.
    pub(crate) fn note_taken(&self) -> bool {
        let own = u64::from(std::process::id());
        self.0.last.words().first().is_some_and(|last| last.swap(own, Ordering::Relaxed) == own)
    }

    /// The descriptor for a poller.
    pub(crate) fn waker(&self) -> &Waker {
        &self.0.waker
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}
