//! A listening socket and what it is told; how connections are taken from it says `connection/accept.rs`.

use std::io;
use std::net::SocketAddr;
use std::sync::{PoisonError, RwLock};

use maitred_io::listener::{Backlog, Listener};
use maitred_io::poller::{Interest, Poller};
use maitred_io::sync::atomic::AtomicU64;

use crate::settings::ListenerSettings;

/// A listening socket.
pub(crate) struct Listening {
    /// `None` once closed.
    pub(crate) listener: RwLock<Option<Listener>>,
    address: SocketAddr,
    read_ahead: Option<bool>,
    writer: bool,
    /// When the log was told last that it is out of descriptors, in monotonic nanoseconds.
    pub(crate) reported: AtomicU64,
}

impl Listening {
    pub(crate) fn bind(settings: ListenerSettings) -> io::Result<Self> {
        let ListenerSettings { address, read_ahead, writer } = settings;
        let listener = Listener::bind(address)?;
        let address = listener.address();
        let reported = AtomicU64::new(0);
        Ok(Self { listener: RwLock::new(Some(listener)), address, read_ahead, writer, reported })
    }

    /// Whether its requests are received completely before a handler runs, as [`ListenerSettings::read_ahead`] says it.
    pub(crate) fn read_ahead(&self) -> Option<bool> {
        self.read_ahead
    }

    /// Whether the engine sends on what its peers do not take at once.
    pub(crate) fn has_writer(&self) -> bool {
        self.writer
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says whether the kernel notes when it receives something for connections accepted from now on.
    pub(crate) fn set_receipts(&self, noted: bool) {
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            listener.set_receipts(noted);
        }
    }

    /// What waits to be accepted; none once it is closed, or where the kernel does not tell.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.backlog()
    }

    pub(crate) fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        match &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            Some(listener) => poller.add(listener, token, Interest::Read),
            None => Ok(()),
        }
    }

    /// Closes the listener at once.
    pub(crate) fn shut(&self) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Whether nothing is accepted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}
