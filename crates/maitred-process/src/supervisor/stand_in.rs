//! Answers clients while no worker serves: 503 with Retry-After, on the sockets that the workers will have again.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use maitred_config::{Checked, Config};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::{Accept, Bell, BoundListeners, Log, Routes, Server, Settings};

use crate::listeners;
use crate::sockets::Sockets;

/// Value of Retry-After, in seconds.
const RETRY_AFTER: &str = "2";

/// Time for clients of the stand-in when a worker serves again.
const DRAIN: Duration = Duration::from_millis(500);

/// A server that answers 503 while no worker serves. Dropping it drains it.
pub(crate) struct StandIn {
    server: Server,
}

impl StandIn {
    /// Begins to answer.
    ///
    /// # Errors
    /// No descriptor or thread can be had.
    pub(crate) fn start(
        listeners: &Sockets,
        config: &Config,
        checked: &Checked,
        bell: &Bell,
        log: &Arc<Log>,
    ) -> io::Result<Self> {
        // If each worker has its own sockets, new connections are led to those of the first worker.
        listeners.steer(&[])?;
        let sockets = listeners.of_worker(1).unwrap_or_default().into_iter();
        let sockets = sockets.map(|socket: BorrowedFd<'_>| socket.try_clone_to_owned());
        let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
        let routes = Routes::new().with_root("no worker is ready", Arc::new(unavailable));
        let mut settings = Settings::new(routes, Arc::clone(log));
        settings.listeners = listeners::settings(checked);
        settings.tls = checked.tls.as_ref().map(|tls| Arc::clone(&tls.terms));
        settings.timeouts.handshake = config.tls.handshake_timeout;
        let bound = BoundListeners::adopt(sockets, &settings.listeners);
        settings.bound = Some(bound.map_err(|(_, error)| io::Error::other(error.what().to_owned()))?);
        settings.accept = Accept::Shared(bell.clone());
        settings.spool = config.spool.clone();
        if config.hosts.is_empty() {
            // hsts holds here, too. Of several hosts each may have its own, and this server knows none of them.
            settings.filters = config.host_filters().collect();
        }
        let server = Server::start(settings).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self { server })
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        self.server.drain();
        self.server.wait_drained(DRAIN);
    }
}

/// Answers 503 and closes the connection, so that the next request of this client reaches a worker.
fn unavailable(exchange: Exchange) {
    let head = ResponseHead::new(Status::SERVICE_UNAVAILABLE)
        .with("Content-Type", "text/plain")
        .with("Retry-After", RETRY_AFTER)
        .with("Connection", "close");
    // The peer may have gone meanwhile: nothing is left to do then.
    let _ = exchange.respond(head, "The application is not available at this moment.\n");
}
