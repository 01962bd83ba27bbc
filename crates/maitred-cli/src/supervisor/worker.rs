//! A process as a worker: what it gets from its supervisor, and what it tells it.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use maitred_control::{Answered, Caller, Control};
use maitred_io::channel::Channel;
use maitred_io::process;
use maitred_server::Server;
use maitred_supervise::Beat;

use super::message::{FromWorker, Setup, ToWorker};
use crate::problem::Problem;

/// The first argument of a worker.
pub(crate) const AS_WORKER: &str = "--as-worker";

/// How often it says how it is.
const BEAT: Duration = Duration::from_secs(1);

/// What a worker has beyond its drain-timeout when its supervisor is gone; then it ends itself.
const GRACE: Duration = Duration::from_secs(10);

/// This process as a worker.
pub(crate) struct Worker {
    pub(crate) setup: Setup,
    /// In the order of the configuration.
    pub(crate) listeners: Vec<OwnedFd>,
    link: Arc<Link>,
}

/// What the threads of a worker share.
struct Link {
    sending: Mutex<Channel>,
    /// There from the time on when it serves.
    serving: OnceLock<Serving>,
    /// For the drain, if the supervisor is gone.
    drain_limit: OnceLock<Duration>,
    ends: AtomicBool,
}

struct Serving {
    server: Weak<Server>,
    control: Weak<Control>,
}

impl Worker {
    /// What the supervisor has handed over; `arguments` are those behind the first one.
    pub(crate) fn join() -> Result<Self, Problem> {
        let wrong = |what: String| {
            Problem::new(AS_WORKER, what, "it is the supervisor's; start 'maitred --workers N …' instead")
        };
        let channel = Channel::take_standard_input()
            .map_err(|error| wrong(format!("this process has no supervisor: {error}")))?;
        let received = channel.receive().map_err(|error| wrong(format!("the supervisor is gone: {error}")))?;
        let setup = Setup::read(&received.text)
            .filter(|setup| received.descriptors.len() >= setup.listeners)
            .ok_or_else(|| wrong("the supervisor is of another version".to_owned()))?;
        let receiving = channel.try_clone().map_err(|error| wrong(error.to_string()))?;
        let mut listeners = received.descriptors;
        listeners.truncate(setup.listeners);
        let link = Arc::new(Link {
            sending: Mutex::new(channel),
            serving: OnceLock::new(),
            drain_limit: OnceLock::new(),
            ends: AtomicBool::new(false),
        });
        let own = Arc::clone(&link);
        let listens = thread::Builder::new().name("maitred-supervisor".to_owned());
        listens.spawn(move || own.listen(&receiving)).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { setup, listeners, link })
    }

    /// For the time when the supervisor should be gone.
    pub(crate) fn set_drain_limit(&self, limit: Duration) {
        // Set once.
        let _ = self.link.drain_limit.set(limit);
    }

    /// It serves.
    pub(crate) fn serves(
        &self,
        server: &Arc<Server>,
        control: Option<&Arc<Control>>,
        what: Option<String>,
        served: Vec<String>,
    ) {
        let control = control.map_or_else(Weak::new, Arc::downgrade);
        let _ = self.link.serving.set(Serving { server: Arc::downgrade(server), control });
        if let Some(control) = self.link.control() {
            for change in &self.setup.changes {
                control.ask(change, Caller::Relayed("as changed before".to_owned()));
            }
        }
        self.link.say(&FromWorker::Ready { what, served });
        let own = Arc::clone(&self.link);
        let beats = thread::Builder::new().name("maitred-beat".to_owned());
        // Without it the worker is not replaced for its memory or its requests.
        let _ = beats.spawn(move || own.beat());
    }

    /// It cannot start.
    pub(crate) fn failed(&self, problem: &Problem) {
        self.link.say(&FromWorker::Failed(problem.to_string()));
    }

    /// From now on it ends, also if the supervisor goes.
    pub(crate) fn ends(&self) {
        self.link.ends.store(true, Ordering::Release);
    }
}

impl Link {
    fn say(&self, message: &FromWorker) {
        // Whoever is gone is noticed by who listens.
        let _ = self.sending.lock().unwrap_or_else(PoisonError::into_inner).send(&message.to_text(), &[]);
    }

    fn control(&self) -> Option<Arc<Control>> {
        self.serving.get()?.control.upgrade()
    }

    fn server(&self) -> Option<Arc<Server>> {
        self.serving.get()?.server.upgrade()
    }

    fn listen(&self, channel: &Channel) {
        loop {
            match channel.receive() {
                Ok(received) => {
                    if let Some(message) = ToWorker::read(&received.text) {
                        self.hear(message);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.end_without_supervisor(),
            }
        }
    }

    fn hear(&self, message: ToWorker) {
        match message {
            ToWorker::Ask(id, question, caller) => {
                let answer = match self.control() {
                    Some(control) => control.ask(&question, Caller::Relayed(caller)),
                    None => Answered::error(503, "the worker does not serve"),
                };
                self.say(&FromWorker::Answer(id, answer));
            }
            ToWorker::Answer(..) => {}
            ToWorker::Unready => {
                if let Some(server) = self.server() {
                    server.set_unready();
                }
            }
            ToWorker::Last => {
                if let Some(server) = self.server() {
                    server.set_last();
                }
            }
        }
    }

    /// The supervisor is gone: nobody else would end this process.
    fn end_without_supervisor(&self) {
        if self.serving.get().is_none() {
            // It has not served anybody.
            std::process::exit(1);
        }
        if let Some(server) = self.server().filter(|_| !self.ends.load(Ordering::Acquire)) {
            server.log().error(format_args!("the supervisor is gone: this worker ends"));
            // What waits to be accepted has nobody else.
            server.set_last();
        }
        // A failure leaves the end to the time limit.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
        thread::sleep(self.drain_limit.get().copied().unwrap_or_default() + GRACE);
        std::process::abort();
    }

    fn beat(&self) {
        while let Some(server) = self.server() {
            let beat = Beat {
                requests: server.snapshot().requests,
                memory: process::own_memory().unwrap_or(0),
                waiting: server.waiting(),
            };
            drop(server);
            let text = FromWorker::Beat(beat).to_text();
            if self.sending.lock().unwrap_or_else(PoisonError::into_inner).send(&text, &[]).is_err() {
                return;
            }
            thread::sleep(BEAT);
        }
    }
}
