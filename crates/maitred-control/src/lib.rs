//! Control of a running server: queries and changes over a Unix socket, and over HTTP on a listener of its own.
//!
//! Promises: a thread of its own that needs no application thread: with all of them stuck it answers. A query takes the
//! lock of a connection only to copy its state, and nothing waits for a query. A refused change has changed nothing; a
//! change that was made is in the error log with its caller.
//!
//! Leaves out: the command line (`maitred ctl`, in maitred-tools), and the valid values of settings, which the [`Owner`]
//! checks.

mod access;
mod change;
mod counted;
mod dashboard;
mod deliveries;
mod doors;
mod explain;
mod finding;
mod guests;
mod history;
mod http;
mod http2;
mod logs;
mod memory;
mod nearest;
pub mod own_sockets;
mod owner;
mod pool;
mod question;
mod recent;
mod requests;
mod shown;
mod snapshot;
mod sockets;
mod stats;
mod status;
mod strangers;
mod table;
mod threads;
mod tls;
mod watch;
mod websockets;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dashboard::{Feed, Sessions};
use doors::Bell;
use maitred_server::{Rule, Server};
use strangers::Strangers;
use watch::SpinWatch;

pub use access::Caller;
pub use counted::{Counted, PoolCounted};
pub use doors::{DoorSettings, Doors, NotOpened, read_token};
pub use finding::{FINDING, Finder, add_place, picture_from_json, picture_of, picture_to_json};
pub use history::{CounterSums, Keeper, Look, ProcessFigures, counts_of};
pub use logs::{LOGS, merge_logs};
pub use maitred_io::local;
pub use memory::{MEMORY, process_row};
pub use nearest::nearest;
pub use owner::{Configured, Done, NoOwner, Owner, Refusal, Setting};
pub use question::{Answered, Question, help};
pub use recent::{RECENT, merge_recent};
pub use snapshot::{HIDDEN, SNAPSHOT, snapshot_name, snapshot_of, snapshot_page};
pub use stats::stats_of;
pub use table::{Argument, Command, Given, WORKER, commands, find};

/// A server that can be asked and changed, until [`end`](Self::end) or its drop.
pub struct Control {
    inner: Arc<Inner>,
    thread: Option<JoinHandle<()>>,
}

pub(crate) struct Inner {
    answers: Answers,
    doors: Doors,
    bell: Bell,
    sessions: Option<Sessions>,
    strangers: Strangers,
    feed: Feed,
    finder: Finder,
}

enum Answers {
    Server {
        /// None after the end.
        server: RwLock<Option<Arc<Server>>>,
        owner: Arc<dyn Owner>,
        began: Instant,
        /// None when another process keeps the history, or when it is off.
        history: Option<Box<Keeper>>,
    },
    Relay {
        relay: RwLock<Option<Relay>>,
        wrong_token: WrongToken,
    },
}

/// Is called with the address of a client that has shown a wrong token.
pub type WrongToken = Box<dyn Fn(SocketAddr) + Send + Sync>;

/// Answers questions by asking others.
pub type Relay = Arc<dyn Fn(&Question, &Caller) -> Answered + Send + Sync>;

/// How often one without a server of its own looks whether it has ended.
const RELAY_LOOKS: Duration = Duration::from_secs(3600);

pub(crate) struct QueryContext<'a> {
    pub(crate) server: &'a Server,
    pub(crate) owner: &'a dyn Owner,
    pub(crate) doors: &'a Doors,
    pub(crate) finder: &'a Finder,
    pub(crate) up: Duration,
    pub(crate) history: Option<&'a Keeper>,
}

impl Control {
    /// Begins to answer. `owner` answers for the program around the server; `history` is none when another process
    /// keeps it, or when it is off.
    ///
    /// # Errors
    /// The process has no thread or descriptor left.
    pub fn start(
        server: &Arc<Server>,
        doors: Doors,
        owner: Arc<dyn Owner>,
        history: Option<Keeper>,
    ) -> io::Result<Self> {
        let server = RwLock::new(Some(Arc::clone(server)));
        let history = history.map(Box::new);
        Self::start_with(Answers::Server { server, owner, began: Instant::now(), history }, doors)
    }

    /// Begins to answer through `relay`; `wrong_token` is called for each client that shows a wrong one.
    pub fn relay(doors: Doors, relay: Relay, wrong_token: WrongToken) -> io::Result<Self> {
        Self::start_with(Answers::Relay { relay: RwLock::new(Some(relay)), wrong_token }, doors)
    }

    fn start_with(answers: Answers, doors: Doors) -> io::Result<Self> {
        let sessions = doors.admin().map(|address| Sessions::new(address.port())).transpose()?;
        let (feed, finder) = (Feed::default(), Finder::new());
        let (bell, strangers) = (Bell::new()?, Strangers::default());
        let inner = Arc::new(Inner { answers, doors, bell, sessions, strangers, feed, finder });
        let own = Arc::clone(&inner);
        let thread = std::thread::Builder::new().name(maitred_server::CONTROL.to_owned());
        let thread = thread.spawn(move || http::serve(&own))?;
        Ok(Self { inner, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn doors(&self) -> &Doors {
        &self.inner.doors
    }

    /// The answer to a question that came another way than by a door.
    pub fn ask(&self, question: &Question, caller: Caller) -> Answered {
        self.inner.answer(question, caller)
    }

    /// Lets go of the server: questions that are being answered are, later ones are not.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        // The last figures before the end belong in the file. Only the first call finds a server.
        self.inner.with_server(|asking| {
            if let Some(history) = asking.history {
                history.look_now(asking.server);
                history.note_routes(&asking.server.figures().statistics());
                history.write();
            }
        });
        let server = match &self.inner.answers {
            Answers::Server { server, .. } => server.write().unwrap_or_else(PoisonError::into_inner).take(),
            Answers::Relay { relay, .. } => {
                relay.write().unwrap_or_else(PoisonError::into_inner).take();
                None
            }
        };
        // A guest that is still being answered has a part in the doors.
        if let Some(socket) = &self.inner.doors.local
            && let Err(error) = socket.withdraw()
            && let Some(server) = &server
        {
            let path = socket.path.display();
            server
                .log()
                .info(format_args!("the file {path} stays ({error}); the next server there replaces it"));
        }
        drop(server);
        self.inner.feed.end();
        self.inner.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Inner {
    /// Calls `ask` while the server stays; none after the end, and where there is none.
    fn with_server<T>(&self, ask: impl FnOnce(&QueryContext<'_>) -> T) -> Option<T> {
        let Answers::Server { server, owner, began, history } = &self.answers else { return None };
        let server = server.read().unwrap_or_else(PoisonError::into_inner);
        let up = began.elapsed();
        let history = history.as_deref();
        server.as_deref().map(|server| {
            let (owner, doors, finder) = (&**owner, &self.doors, &self.finder);
            ask(&QueryContext { server, owner, doors, finder, up, history })
        })
    }

    /// Looks at the threads and the figures of the server; when to look again, none after the end.
    pub(crate) fn look(&self, watch: &mut SpinWatch) -> Option<Duration> {
        match &self.answers {
            Answers::Server { .. } => self.with_server(|asking| {
                let next = watch.look(asking.server, Instant::now());
                // Both at the same time: the thread wakes once a second.
                asking.history.map_or(next, |history| history.look(asking.server))
            }),
            Answers::Relay { relay, .. } => {
                relay.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|_| RELAY_LOOKS)
            }
        }
    }

    pub(crate) fn note_wrong_token(&self, peer: SocketAddr) {
        self.strangers.note(peer.ip(), Instant::now());
        match &self.answers {
            Answers::Server { .. } => {
                self.with_server(|QueryContext { server, .. }| {
                    let applied = &server.settings().guard().applied;
                    applied.note(Rule::WrongToken, peer.into(), server.log());
                });
            }
            Answers::Relay { wrong_token, .. } => wrong_token(peer),
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        match &self.answers {
            Answers::Server { server, .. } => server.read().unwrap_or_else(PoisonError::into_inner).is_none(),
            Answers::Relay { relay, .. } => relay.read().unwrap_or_else(PoisonError::into_inner).is_none(),
        }
    }

    pub(crate) fn answer(&self, question: &Question, caller: Caller) -> Answered {
        let ended = || Answered::error(503, "the server has ended");
        match &self.answers {
            Answers::Server { .. } => {
                if [FINDING, SNAPSHOT].contains(&&*question.name())
                    && question.is_query()
                    && self.finder.is_first()
                {
                    self.with_server(|asking| asking.finder.keep(picture_of(asking.server)));
                    self.finder.wait();
                }
                self.with_server(|asking| question::answer(asking, question, &caller)).unwrap_or_else(ended)
            }
            Answers::Relay { relay, .. } => {
                // Not held while others are asked: the end would wait for them.
                let relay = relay.read().unwrap_or_else(PoisonError::into_inner).clone();
                relay.map_or_else(ended, |relay| relay(question, &caller))
            }
        }
    }
}
