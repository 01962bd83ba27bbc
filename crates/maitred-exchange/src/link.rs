//! The interface between an exchange and the connection that carries it, for the length of a turn.
//!
//! ```text
//! connection                                       exchange
//!   head_received, data_received, request_received ---->    pipeline.rs: the parts of a request as they arrive
//!   pass_filters, advance_spool  ---------------------->    what a request has waited for is there
//!   send_own, send_continue, run  <---------------------    pipeline.rs, stages.rs: the engine answers, or a handler
//!   drop_rest, close_behind, shape  <-------------------    rest of a body, end of the connection, rate of a response
//! ```
//! An implementor is a connection in its turn, or a test. The time of deadlines is a value of the turn; nothing here waits.

use std::sync::Arc;

use maitred_h1::HeadFacts;
use maitred_http::{Peer, TlsSession};
use maitred_match::Ambiguity;
use maitred_runtime::Handler;
use maitred_turns::Turn;

use crate::client::{Client, Ends};
use crate::response::Response;
use crate::scratch::Scratch;
use crate::site::Site;
use crate::stream::Stream;

/// State of an exchange after a received part.
pub enum Received {
    /// The exchange can receive more.
    Goes(Box<Stream>),
    /// The exchange waits for the check of a password or for the disk; its further parts wait, too.
    Waits(Box<Stream>),
    /// The engine has answered the request.
    Answered,
    /// A handler has the request.
    HandedOver,
    /// The whole of an unwanted body has arrived; the response was given before.
    Dropped,
    /// The response is the last one of the connection.
    Ended(Turn),
}

impl Received {
    /// Returns the turn that follows if nothing else was received.
    pub fn turn(self) -> Turn {
        match self {
            Self::Ended(turn) => turn,
            _ => Turn::Wait,
        }
    }
}

/// Whether a server wants requests, for the health check.
pub enum Readiness {
    /// The server serves.
    Ready,
    /// The server is about to drain.
    Stopping,
    /// The server drains.
    Draining,
}

/// See the module text.
pub trait Link<'a> {
    // ---- Facts of the turn and of the connection ----

    /// The state that all connections share.
    fn site(&self) -> &'a Arc<Site>;

    /// Begin of the turn, in monotonic nanoseconds.
    fn now(&self) -> u64;

    /// Time at which the kernel had the last of the received bytes, in monotonic nanoseconds.
    fn received(&self) -> u64;

    /// The peer of the connection.
    fn peer(&self) -> Peer;

    /// Facts about both ends beside the address.
    fn ends(&self) -> Option<&Ends>;

    /// The port to which the listener redirects requests without TLS, if it does.
    fn redirect_port(&self) -> Option<u16>;

    /// Whether bodies are read before the handler runs, if the listener says so.
    fn read_ahead(&self) -> Option<bool>;

    /// Whether the server wants requests.
    fn readiness(&self) -> Readiness;

    /// The number of the pool whose threads run a request.
    fn pool_for(&mut self, stream: &Stream, handler: &dyn Handler) -> usize;

    /// The ambiguity of a path for which the choice of the pool depends on the reader; none for other paths.
    fn ambiguous_pool(&self, stream: &Stream) -> Option<Ambiguity>;

    /// Whether the heads of the connection hold too much memory for this one.
    fn lacks_room(&self, stream: &Stream) -> bool;

    /// Memory that the thread reuses from turn to turn.
    fn memory(&mut self) -> &mut Scratch;

    /// Brings the connection another turn, from any thread.
    fn waker(&self) -> impl Fn() + Send + Sync + 'static;

    // ---- Verbs of an exchange ----

    /// Sends a response of the engine to a request that no handler has.
    fn send_own(&mut self, stream: Box<Stream>, response: Response) -> Received;

    /// Asks the peer for the body of its request (RFC 9110 §10.1.1).
    fn send_continue(&mut self, stream: &mut Stream);

    /// Gives the request to a handler, which runs after the turn on a thread of this pool.
    fn run(&mut self, stream: Box<Stream>, handler: Arc<dyn Handler>, pool: usize) -> Received;

    /// Has the rest of a body dropped as it comes, because its request has been answered.
    fn drop_rest(&mut self, facts: HeadFacts);

    /// Ends the connection when everything has left.
    fn close_behind(&mut self);

    /// Sets the rate limit of a response that begins; the pool is none for the engine's own.
    fn limit_rate(&mut self, pool: Option<usize>, stream: &mut Stream);

    /// Runs `act`, which may take long: without the interpreter, so that other threads may have it, where that cannot block this turn.
    fn beside_interpreter(&self, act: &mut dyn FnMut());

    // ---- Provided ----

    /// Returns the client of a request, or the peer of the connection before the head is complete.
    fn client_of(&self, stream: &Stream) -> Client {
        stream.client.unwrap_or_else(|| Client::at_the_end(self.peer(), self.ends()))
    }

    /// The TLS session of the connection.
    fn session(&self) -> Option<Arc<TlsSession>> {
        self.ends().and_then(|ends| ends.session.clone())
    }
}
