//! A listening socket and what it is told; how connections are taken from it says `connection/accept.rs`.
//!
//! ```text
//! ListenerSettings --bind--> BoundListeners --Server::start--> Listening --shut, close--> closed, its file removed
//!                                 `--dropped without a server--> the same
//! ```

use std::io;
use std::sync::{PoisonError, RwLock};

use maitred_io::listener::{ActiveOptions, Address, Backlog, BindError, Listener, SocketOptions};
use maitred_io::poller::{Interest, Poller};
use maitred_io::sync::atomic::AtomicU64;
use maitred_log::Log;
use maitred_runtime::Local;

use crate::settings::ListenerSettings;

/// Sockets that listen already, for a server that is yet to be made: who connects waits. So a program can listen while it may, give up
/// its rights, and load the application afterwards. Dropped without a server they are closed, and their files removed.
#[derive(Default)]
pub struct BoundListeners(Vec<Listener>);

impl BoundListeners {
    /// Listens at all of them, in this order.
    ///
    /// # Errors
    /// This one cannot be listened on; none is.
    pub fn bind(settings: &[ListenerSettings]) -> Result<Self, (Address, BindError)> {
        // Those before one that fails are closed with this.
        let mut bound = Self::default();
        for ListenerSettings { address, options, .. } in settings {
            let listener = Listener::bind(address, options);
            bound.0.push(listener.map_err(|error| (address.clone(), error))?);
        }
        Ok(bound)
    }

    /// The addresses listened on, with the ports the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.0.iter().map(Listener::address)
    }

    /// With what each is told besides.
    pub(crate) fn listen(mut self, settings: &[ListenerSettings]) -> Vec<Listening> {
        let listeners = std::mem::take(&mut self.0);
        listeners
            .into_iter()
            .zip(settings)
            .map(|(listener, settings)| Listening::new(listener, settings))
            .collect()
    }
}

impl Drop for BoundListeners {
    fn drop(&mut self) {
        for listener in &self.0 {
            // There is no log yet. The next server replaces the file.
            let _ = listener.remove_file();
        }
    }
}

/// A listening socket.
pub(crate) struct Listening {
    /// `None` once closed.
    pub(crate) listener: RwLock<Option<Listener>>,
    address: Address,
    /// The same as applications see it.
    local: Local,
    options: SocketOptions,
    proxy_protocol: bool,
    read_ahead: Option<bool>,
    writer: bool,
    /// When the log was told last that it is out of descriptors, in monotonic nanoseconds.
    pub(crate) reported: AtomicU64,
}

impl Listening {
    fn new(listener: Listener, settings: &ListenerSettings) -> Self {
        let ListenerSettings { options, proxy_protocol, read_ahead, writer, .. } = settings;
        let address = listener.address().clone();
        let local = local_of(&address);
        let reported = AtomicU64::new(0);
        Self {
            listener: RwLock::new(Some(listener)),
            address,
            local,
            options: *options,
            proxy_protocol: *proxy_protocol,
            read_ahead: *read_ahead,
            writer: *writer,
            reported,
        }
    }

    /// Whether its requests are received completely before a handler runs, as [`ListenerSettings::read_ahead`] says it.
    pub(crate) fn read_ahead(&self) -> Option<bool> {
        self.read_ahead
    }

    /// Whether the engine sends on what its peers do not take at once.
    pub(crate) fn has_writer(&self) -> bool {
        self.writer
    }

    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The address as applications see it.
    pub(crate) fn local(&self) -> Local {
        self.local.clone()
    }

    /// Whether connections begin with a header of the PROXY protocol.
    pub(crate) fn expects_proxy_header(&self) -> bool {
        self.proxy_protocol
    }

    /// The options of the socket that were asked for.
    pub(crate) fn options(&self) -> SocketOptions {
        self.options
    }

    /// What the kernel has of the options asked for; none once it is closed.
    pub(crate) fn active(&self) -> Option<ActiveOptions> {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Listener::active)
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

    /// Tells what was asked for and has no effect.
    pub(crate) fn warn(&self, log: &Log) {
        let opened = self.active().and_then(|active| active.fast_open);
        if let Some((own, trouble)) = opened.and_then(|own| Some((own, own.trouble()?))) {
            log.warn(format_args!("{}: fast-open={} has no effect: {trouble}", self.address, own.queue));
        }
    }

    pub(crate) fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        match &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            Some(listener) => poller.add(listener, token, Interest::Read),
            None => Ok(()),
        }
    }

    /// Closes the listener at once.
    pub(crate) fn shut(&self, log: &Log) {
        end(&mut self.listener.write().unwrap_or_else(PoisonError::into_inner), log);
    }

    /// Whether nothing is accepted any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// Closes a listener, and removes its file if it has one.
pub(crate) fn end(place: &mut Option<Listener>, log: &Log) {
    if let Some(listener) = place.take()
        && let Err(error) = listener.remove_file()
    {
        let address = listener.address();
        log.info(format_args!("the file of {address} stays ({error}); the next server there replaces it"));
    }
}

fn local_of(address: &Address) -> Local {
    match address {
        Address::Tcp(address) => Local::Ip(*address),
        Address::Unix(address) => {
            let text = address.to_string();
            Local::Unix(text.strip_prefix("unix:").unwrap_or(&text).into())
        }
    }
}
