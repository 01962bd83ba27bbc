//! Whether other processes take connections at the same addresses, and how they call each other.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use maitred_io::listener::Address;
use maitred_io::poller::Waker;
use maitred_io::shared_memory::SharedMemory;

/// How this process takes connections; see decision 0051.
#[derive(Clone, Debug, Default)]
pub enum Accept {
    /// The sockets are this process's alone: what waits when it ends is taken and served first.
    #[default]
    Single,
    /// Other processes accept from the same sockets. One takes a connection when it has a thread for it, else it rings and leaves
    /// it to the others; what waits when it ends is theirs.
    Shared(Bell),
    /// Each process has TCP sockets of its own, of a group with SO_REUSEPORT, whose queue is its successor's when it ends. Unix
    /// sockets are shared.
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

    /// What is rung where connections wait that this process does not take.
    pub(crate) fn bell(&self) -> Option<&Bell> {
        match self {
            Self::Single => None,
            Self::Shared(bell) | Self::Own(bell) => Some(bell),
        }
    }
}

/// What the processes that accept from the same sockets call each other by, and where the one that has taken a connection last says so: each of
/// them has it. Who hears it looks whether somebody waits.
#[derive(Clone)]
pub struct Bell(Arc<Parts>);

struct Parts {
    waker: Waker,
    /// One word: the process that has taken a connection last.
    last: SharedMemory,
}

impl Bell {
    /// A new one, of this process and those that it is handed to.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub fn new() -> io::Result<Self> {
        let (waker, last) = (Waker::new()?, SharedMemory::new(size_of::<u64>())?);
        Ok(Self(Arc::new(Parts { waker, last })))
    }

    /// That of another process, by its [descriptors](Self::descriptors).
    ///
    /// # Errors
    /// They are not those of a bell.
    pub fn open([waker, last]: [OwnedFd; 2]) -> io::Result<Self> {
        let last = SharedMemory::open(last)?;
        Ok(Self(Arc::new(Parts { waker: Waker::from(waker), last })))
    }

    /// To be handed to another process.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.0.waker.as_fd(), self.0.last.as_fd()]
    }

    /// Calls a process that has a thread for a connection, if one has. To be rung also when a process that accepted has died: it may
    /// have been woken for a connection that it did not take.
    pub fn ring(&self) {
        self.0.waker.wake();
    }

    /// This process has taken a connection: whether it has taken the one before, too.
    pub(crate) fn note_taken(&self) -> bool {
        let own = u64::from(std::process::id());
        self.0.last.words().first().is_some_and(|last| last.swap(own, Ordering::Relaxed) == own)
    }

    /// What it is to a poller.
    pub(crate) fn waker(&self) -> &Waker {
        &self.0.waker
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bell")
    }
}
