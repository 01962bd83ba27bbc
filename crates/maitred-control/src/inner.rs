//! The way of a question to its answer: by a server of this process, or by a relay to others.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use maitred_server::{Rule, Server};

use super::doors::Bell;
use super::sessions::Sessions;
use super::strangers::Strangers;
use super::watch::SpinWatch;
use super::{
    Answered, Caller, Doors, FINDING, Finder, Keeper, Owner, QueryContext, Question, SNAPSHOT, answer,
    picture_of,
};

/// The part of a control that its threads share.
pub(crate) struct Inner {
    pub(super) answers: Answers,
    pub(super) doors: Doors,
    pub(super) bell: Bell,
    pub(super) sessions: Option<Sessions>,
    pub(super) strangers: Strangers,
    pub(super) finder: Finder,
}

pub(super) enum Answers {
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

impl Inner {
    /// Calls `ask` while the server stays; none after the end, and where there is none.
    pub(super) fn with_server<T>(&self, ask: impl FnOnce(&QueryContext<'_>) -> T) -> Option<T> {
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

    /// Lets go of the server, which the first call returns.
    pub(super) fn end(&self) -> Option<Arc<Server>> {
        match &self.answers {
            Answers::Server { server, .. } => server.write().unwrap_or_else(PoisonError::into_inner).take(),
            Answers::Relay { relay, .. } => {
                relay.write().unwrap_or_else(PoisonError::into_inner).take();
                None
            }
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
                    self.with_server(|asking| asking.finder.keep(picture_of(asking)));
                    self.finder.wait();
                }
                self.with_server(|asking| answer::answer(asking, question, &caller)).unwrap_or_else(ended)
            }
            Answers::Relay { relay, .. } => {
                // Not held while others are asked: the end would wait for them.
                let relay = relay.read().unwrap_or_else(PoisonError::into_inner).clone();
                relay.map_or_else(ended, |relay| relay(question, &caller))
            }
        }
    }
}
