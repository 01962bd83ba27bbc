//! Listening sockets and their settings; `connection/accept.rs` takes connections from them.
//!
//! ```text
//! ListenerSettings --bind, adopt--> BoundListeners --Server::start--> Listening --shut, close--> closed, its file removed
//!                                        `--dropped without a server--> the same
//! ```

use std::io;
use std::net::{AddrParseError, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

use maitred_io::listener::{ActiveOptions, Address, Backlog, BindError, Listener, SocketOptions};
use maitred_io::poller::{Interest, Poller};
use maitred_io::sync::atomic::AtomicU64;
use maitred_log::Log;
use maitred_runtime::Local;

use crate::sharing::Accept;

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerSettings {
    /// Address of the listener.
    pub address: Address,
    /// Options of the sockets.
    pub options: SocketOptions,
    /// Connections speak TLS with [`Settings::tls`](crate::Settings::tls).
    pub tls: bool,
    /// Every request is answered with 308 to the same host and path by https, at this port. Not together with `tls`.
    pub redirect: Option<u16>,
    /// Each connection begins with a header of the PROXY protocol, which a trusted proxy sends. Others are closed.
    pub proxy_protocol: bool,
    /// Whether a request is received completely before its handler runs. `Some(false)`: a handler that [takes live
    /// bodies](maitred_runtime::Handler::takes_live_bodies) runs after the head and reads the body while it arrives,
    /// so that a slow peer keeps a thread. `None`: every body is received first, except bodies for an event loop that
    /// are longer than [`Settings::body_memory`](crate::Settings::body_memory), have no length, or come with `Expect: 100-continue`: a wait takes no thread there.
    pub read_ahead: Option<bool>,
    /// Whether the engine queues the bytes of a handler and sends them while the handler goes on. Without the queue,
    /// a handler that can wait waits until the kernel has taken everything, so that a slow reader keeps a thread.
    /// Handlers on an event loop cannot wait.
    pub writer: bool,
}

impl<A: Into<Address>> From<A> for ListenerSettings {
    fn from(address: A) -> Self {
        Self {
            address: address.into(),
            options: SocketOptions::default(),
            tls: false,
            redirect: None,
            proxy_protocol: false,
            read_ahead: None,
            writer: true,
        }
    }
}

impl FromStr for ListenerSettings {
    type Err = AddrParseError;

    /// Parses a socket address; the other fields have their defaults.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<SocketAddr>().map(Self::from)
    }
}

/// Sockets that listen already, for a server that is yet to be made; clients that connect wait. So a program can
/// listen while it has the rights, give them up, and load the application afterwards. Dropping the value without a
/// server closes the sockets and removes the files of those that were bound here.
#[derive(Default)]
pub struct BoundListeners(Vec<Listener>);

impl BoundListeners {
    /// Binds all listeners, in this order.
    ///
    /// # Errors
    /// Listening failed on this address; no socket stays bound.
    pub fn bind(settings: &[ListenerSettings]) -> Result<Self, (Address, BindError)> {
        Self::bind_or_adopt(settings, Vec::new())
    }

    /// Binds each listener without a socket at its position in `sockets`, and takes the sockets given there, which
    /// another process gives up. The files of all Unix sockets are removed at the end.
    ///
    /// # Errors
    /// Listening failed on this address, or its socket is another one; no socket stays bound.
    pub fn bind_or_adopt(
        settings: &[ListenerSettings],
        sockets: Vec<Option<OwnedFd>>,
    ) -> Result<Self, (Address, BindError)> {
        // A failure closes the earlier ones with this value.
        let mut bound = Self::default();
        let sockets = sockets.into_iter().chain(std::iter::repeat_with(|| None));
        for (ListenerSettings { address, options, .. }, socket) in settings.iter().zip(sockets) {
            let listener = match socket {
                Some(socket) => Listener::adopt(socket, address, options),
                None => Listener::bind(address, options),
            };
            bound.0.push(listener.map_err(|error| (address.clone(), error))?);
        }
        Ok(bound)
    }

    /// Takes sockets that another process has made, one for each of `settings`, in the same order. The process that
    /// bound a Unix socket removes its file.
    ///
    /// # Errors
    /// The address whose socket is another one, as [`Listener::adopt`] says, or is missing; or there are more sockets
    /// than listeners. All sockets are closed here, and go on in other processes that have them open.
    pub fn adopt(sockets: Vec<OwnedFd>, settings: &[ListenerSettings]) -> Result<Self, (Address, BindError)> {
        let count = sockets.len();
        if let Some(odd) = settings.get(count).or(settings.last().filter(|_| count != settings.len())) {
            let what = format!("{count} sockets are handed over for {} listeners", settings.len());
            let remedy = "hand over one for each listener, in their order, or none";
            return Err((odd.address.clone(), BindError::new(io::ErrorKind::InvalidInput, what, remedy)));
        }
        let mut adopted = Self::default();
        for (socket, ListenerSettings { address, options, .. }) in sockets.into_iter().zip(settings) {
            let listener = Listener::adopt(socket, address, options);
            adopted.0.push(listener.map_err(|error| (address.clone(), error))?);
        }
        Ok(adopted)
    }

    /// The sockets in their order, for other processes. They stay open here.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(AsFd::as_fd)
    }

    /// Takes over the files of Unix sockets at the places for which `is_own` is true: these files are removed at the
    /// end.
    pub fn own_files(&mut self, is_own: impl Fn(usize) -> bool) {
        let owned = self.0.iter_mut().enumerate().filter(|(place, _)| is_own(*place));
        owned.for_each(|(_, listener)| listener.own_file());
    }

    /// Leaves the files of Unix sockets in place: another process has the sockets, and will remove the files.
    pub fn disown_files(&mut self) {
        self.0.iter_mut().for_each(Listener::disown_file);
    }

    /// The addresses of the listeners, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.0.iter().map(Listener::address)
    }

    /// Makes the listeners of a server, with their settings.
    pub(crate) fn listen(mut self, settings: &[ListenerSettings], accept: &Accept) -> Vec<Listening> {
        let listeners = std::mem::take(&mut self.0);
        listeners
            .into_iter()
            .zip(settings)
            .map(|(listener, settings)| Listening::new(listener, settings, accept))
            .collect()
    }
}

impl Drop for BoundListeners {
    fn drop(&mut self) {
        for listener in &self.0 {
            // The log does not exist yet. The next server replaces the file.
            let _ = listener.remove_file();
        }
    }
}

/// The present state of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerState {
    /// Address of the listener.
    pub address: Address,
    /// Requested socket options.
    pub options: SocketOptions,
    /// Socket options in the kernel; none once the listener is closed.
    pub active: Option<ActiveOptions>,
    /// Connections speak TLS.
    pub tls: bool,
    /// Connections begin with a header of the PROXY protocol.
    pub proxy_protocol: bool,
    /// Port of https to which requests are redirected.
    pub redirect: Option<u16>,
    /// Requests are received completely before their handlers run; for an event loop only short ones.
    pub read_ahead: bool,
    /// The engine queues and sends on the bytes that peers do not take at once.
    pub writer: bool,
    /// The listener still accepts connections.
    pub accepts: bool,
}

/// A listening socket.
pub(crate) struct Listening {
    /// `None` once closed.
    pub(crate) listener: RwLock<Option<Listener>>,
    address: Address,
    /// The address as applications see it.
    local: Local,
    options: SocketOptions,
    /// Other processes accept from the socket.
    pub(crate) shared: bool,
    proxy_protocol: bool,
    tls: bool,
    redirect: Option<u16>,
    read_ahead: Option<bool>,
    writer: bool,
    /// Time of the last line in the log about a lack of descriptors, in monotonic nanoseconds.
    pub(crate) reported: AtomicU64,
}

impl Listening {
    fn new(listener: Listener, settings: &ListenerSettings, accept: &Accept) -> Self {
        let &ListenerSettings { ref options, proxy_protocol, tls, redirect, read_ahead, writer, .. } =
            settings;
        let address = listener.address().clone();
        let local = local_of(&address);
        let reported = AtomicU64::new(0);
        let shared = accept.shares(&address);
        Self {
            listener: RwLock::new(Some(listener)),
            address,
            local,
            options: *options,
            shared,
            proxy_protocol,
            tls,
            redirect,
            read_ahead,
            writer,
            reported,
        }
    }

    /// Whether requests are received completely before a handler runs; see [`ListenerSettings::read_ahead`].
    pub(crate) fn read_ahead(&self) -> Option<bool> {
        self.read_ahead
    }

    /// Whether the engine queues and sends on the bytes that peers do not take at once.
    pub(crate) fn has_writer(&self) -> bool {
        self.writer
    }

    /// The state for the control.
    pub(crate) fn state(&self) -> ListenerState {
        ListenerState {
            address: self.address.clone(),
            options: self.options,
            active: self.active(),
            tls: self.tls,
            proxy_protocol: self.proxy_protocol,
            redirect: self.redirect,
            read_ahead: self.read_ahead != Some(false),
            writer: self.writer,
            accepts: !self.is_closed(),
        }
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

    /// Whether connections begin with a TLS handshake.
    pub(crate) fn speaks_tls(&self) -> bool {
        self.tls
    }

    /// The port of https to which requests are redirected.
    pub(crate) fn redirect(&self) -> Option<u16> {
        self.redirect
    }

    /// The requested socket options.
    pub(crate) fn options(&self) -> SocketOptions {
        self.options
    }

    /// The socket options in the kernel; none once the listener is closed.
    pub(crate) fn active(&self) -> Option<ActiveOptions> {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(Listener::active)
    }

    /// Sets whether the kernel stamps received bytes of connections accepted from now on.
    pub(crate) fn set_receipts(&self, noted: bool) {
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            listener.set_receipts(noted);
        }
    }

    /// The queue of connections to be accepted; none once the listener is closed, or where the kernel does not tell.
    pub(crate) fn backlog(&self) -> Option<Backlog> {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.backlog()
    }

    /// Logs requested options without effect.
    pub(crate) fn warn(&self, log: &Log) {
        let opened = self.active().and_then(|active| active.fast_open);
        if let Some((own, trouble)) = opened.and_then(|own| Some((own, own.trouble()?))) {
            log.warn(format_args!("{}: fast-open={} has no effect: {trouble}", self.address, own.queue));
        }
    }

    pub(crate) fn watch(&self, poller: &Poller, token: u64) -> io::Result<()> {
        let interest = if self.shared { Interest::ReadExclusive } else { Interest::Read };
        match &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            Some(listener) => poller.add(listener, token, interest),
            None => Ok(()),
        }
    }

    /// Stops watching, if the listener is watched.
    pub(crate) fn unwatch(&self, poller: &Poller) {
        if let Some(listener) = &*self.listener.read().unwrap_or_else(PoisonError::into_inner) {
            let _ = poller.remove(listener);
        }
    }

    /// Closes the listener at once.
    pub(crate) fn shut(&self, poller: &Poller, log: &Log) {
        end(&mut self.listener.write().unwrap_or_else(PoisonError::into_inner), poller, log);
    }

    /// Whether the listener is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.listener.read().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

/// Closes a listener, and removes its file if it has one.
pub(crate) fn end(place: &mut Option<Listener>, poller: &Poller, log: &Log) {
    let Some(listener) = place.take() else { return };
    // Closing does not end the watch where other processes have the socket, too. The socket may be unwatched at this
    // moment.
    let _ = poller.remove(&listener);
    if let Err(error) = listener.remove_file() {
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
