//! The way from a connected socket to a connection for requests: TLS with the proxy, the tunnel, TLS with the server.
//!
//! ```text
//! socket --[TLS with the proxy]--[CONNECT]--[TLS with the server]--> stream
//! ```
//! Each part is left out where it is not needed. No call waits.
//!
//! Leaves out: time limits.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_h1::Limits;
use maitred_io::outgoing::Wanted;
use maitred_tls::{Handshaking, OutgoingSession, ServerFault};

use crate::error::{Error, Phase};
use crate::key::{Key, Place, TlsIdentity};
use crate::proxy::ProxyFault;
use crate::stream::{Received, Stream, StreamFault};
use crate::tls;
use crate::tunnel::Tunnel;

/// One read of a proxy's answer.
const READ: usize = 4 * 1024;

/// A connection that is being established.
#[derive(Debug)]
pub(crate) struct Establishing<S> {
    key: Arc<Key>,
    stream: Stream<S>,
    part: Part,
    begun: Instant,
    /// The time of the last handshake.
    handshake: Option<Duration>,
}

#[derive(Debug)]
enum Part {
    /// TLS with the proxy or the server.
    Tls {
        with_proxy: bool,
        wanted: Wanted,
    },
    Asking(Box<Tunnel>),
    Done,
}

impl<S: io::Read + io::Write> Establishing<S> {
    /// Over `socket`, which is connected to the [first place](Key::first_place) of `key`.
    ///
    /// # Errors
    /// The identity of `key` cannot be used.
    pub(crate) fn over(socket: S, key: &Arc<Key>, now: Instant) -> Result<Self, Error> {
        let (key, stream) = (Arc::clone(key), Stream::new(socket));
        let mut this = Self { key, stream, part: Part::Done, begun: now, handshake: None };
        let key = Arc::clone(&this.key);
        match key.proxy.as_ref().and_then(|proxy| Some((&proxy.host, proxy.tls.as_ref()?))) {
            Some((host, identity)) => this.secure(identity, Some(host), true, now)?,
            None => this.ask(now)?,
        }
        Ok(this)
    }

    /// Goes on as far as the socket allows: whether the connection is there.
    ///
    /// # Errors
    /// The proxy or the server has refused, or has gone.
    pub(crate) fn poll(&mut self, limits: &Limits, now: Instant) -> Result<bool, Error> {
        loop {
            match &mut self.part {
                Part::Done => return Ok(true),
                Part::Tls { with_proxy, wanted } => {
                    let with_proxy = *with_proxy;
                    let done = self.stream.handshake().map_err(|fault| failure(fault, with_proxy))?;
                    *wanted = match done {
                        Handshaking::WantsRead => Wanted::Read,
                        Handshaking::WantsWrite => Wanted::Write,
                        Handshaking::Done => {
                            self.handshake = Some(now.saturating_duration_since(self.begun));
                            if with_proxy {
                                self.ask(now)?
                            } else {
                                self.part = Part::Done
                            }
                            continue;
                        }
                    };
                    return Ok(false);
                }
                Part::Asking(tunnel) => {
                    if !answer(&mut self.stream, tunnel, limits)? {
                        return Ok(false);
                    }
                    self.secure_server(now)?;
                }
            }
        }
    }

    /// The event of the socket that is waited for.
    pub(crate) fn wanted(&self) -> Wanted {
        match &self.part {
            Part::Tls { wanted, .. } => *wanted,
            Part::Asking(tunnel) if tunnel.to_transmit().is_empty() && !self.stream.has_unsent() => {
                Wanted::Read
            }
            Part::Asking(_) => Wanted::Both,
            Part::Done => Wanted::Write,
        }
    }

    /// The part of a call that this is, for a time limit that has passed.
    pub(crate) fn phase(&self) -> Phase {
        match &self.part {
            Part::Tls { with_proxy: false, .. } | Part::Done => Phase::Tls,
            Part::Tls { with_proxy: true, .. } | Part::Asking(_) => Phase::Proxy,
        }
    }

    /// The beginning of the handshake that runs.
    pub(crate) fn handshake_begun(&self) -> Option<Instant> {
        matches!(self.part, Part::Tls { .. }).then_some(self.begun)
    }

    pub(crate) fn socket(&self) -> &S {
        self.stream.socket()
    }

    /// The stream, and the time of the handshake with the server, or else the one with the proxy.
    pub(crate) fn into_stream(self) -> (Stream<S>, Option<Duration>) {
        (self.stream, self.handshake)
    }

    /// Behind TLS with the proxy: a tunnel, if TLS with the server follows.
    fn ask(&mut self, now: Instant) -> Result<(), Error> {
        match (&self.key.proxy, &self.key.tls) {
            (Some(proxy), Some(_)) => self.part = Part::Asking(Box::new(Tunnel::to(&self.key, proxy)?)),
            (None, Some(_)) => return self.secure_server(now),
            (_, None) => self.part = Part::Done,
        }
        Ok(())
    }

    fn secure_server(&mut self, now: Instant) -> Result<(), Error> {
        let key = Arc::clone(&self.key);
        let host = if let Place::Host(host, _) = &key.place { Some(&**host) } else { None };
        match &key.tls {
            Some(identity) => self.secure(identity, host, false, now),
            None => Ok(()),
        }
    }

    fn secure(
        &mut self,
        identity: &TlsIdentity,
        host: Option<&str>,
        with_proxy: bool,
        now: Instant,
    ) -> Result<(), Error> {
        let name = identity.server_name.as_deref().or(host).ok_or_else(|| {
            Error::Identity("TLS over a Unix socket needs the name of the server; give it".into())
        })?;
        let terms = tls::terms(identity).map_err(|text| Error::Identity(text.into()))?;
        let session = OutgoingSession::new(&terms, name).map_err(|fault| Error::Tls(Box::new(fault)))?;
        self.stream.secure(session, with_proxy);
        self.begun = now;
        self.part = Part::Tls { with_proxy, wanted: Wanted::Write };
        Ok(())
    }
}

/// Sends the question and reads the answer: whether the tunnel is there.
fn answer<S: io::Read + io::Write>(
    stream: &mut Stream<S>,
    tunnel: &mut Tunnel,
    limits: &Limits,
) -> Result<bool, Error> {
    while !tunnel.to_transmit().is_empty() {
        match stream.write(tunnel.to_transmit()) {
            Ok(0) => break,
            Ok(taken) => tunnel.transmitted(taken),
            // A proxy that reads no further may have answered before.
            Err(StreamFault::Socket(_)) => break,
            Err(fault) => return Err(failure(fault, true)),
        }
    }
    if stream.has_unsent() {
        _ = stream.flush();
    }
    let mut part = [0; READ];
    loop {
        match stream.read(&mut part).map_err(|fault| failure(fault, true))? {
            Received::Nothing => return Ok(false),
            Received::End { .. } => return Err(ProxyFault::Closed.into()),
            Received::Bytes(count) => {
                let bytes = part.get(..count).unwrap_or_default();
                if tunnel.receive(bytes, limits)? {
                    return Ok(true);
                }
            }
        }
    }
}

fn failure(fault: StreamFault, with_proxy: bool) -> Error {
    match (fault, with_proxy) {
        (StreamFault::Tls(fault), true) => ProxyFault::Tls(fault).into(),
        (StreamFault::Tls(fault), false) => Error::Tls(Box::new(fault)),
        (StreamFault::Socket(_), true) => ProxyFault::Closed.into(),
        (StreamFault::Socket(_), false) => Error::Tls(Box::new(ServerFault::Closed)),
    }
}
