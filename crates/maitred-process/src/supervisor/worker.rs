//! A process as a worker: its setup, and its messages to and from the supervisor.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread;
use std::time::{Duration, Instant};

use maitred_config::Problem;
use maitred_control::{Answered, Caller, Control, Counted, ProcessFigures, Question, lock};
use maitred_http::{ResponseHead, Status};
use maitred_io::channel::Channel;
use maitred_io::process;
use maitred_io::terminal;
use maitred_runtime::{Exchange, Handler, InvocationType};
use maitred_server::figures::SharedMemory;
use maitred_server::limits::{ClientTable, ProcessClients};
use maitred_server::service_manager::Passing;
use maitred_server::{Accept, Bell, BoundListeners, ListenerSettings, Server, Settings};
use maitred_supervise::Beat;

use super::message::{
    COUNTED, FromWorker, LOOKED, OWN_PAGE, PICTURE, Setup, ToWorker, read, read_setup, to_text,
};
use crate::logs::Writer;
use crate::passed::passing;

/// The first argument of a worker.
pub(crate) const AS_WORKER: &str = "--as-worker";

/// Time between two beats.
const BEAT: Duration = Duration::from_secs(1);

/// Time beyond the drain-timeout after which a worker without a supervisor aborts.
const GRACE: Duration = Duration::from_secs(10);

const UNREADABLE: &str = "a message of the supervisor cannot be read, so it is of another version: send SIGUSR2 to the supervisor, or restart the server";

/// This process as a worker.
pub(crate) struct Worker {
    pub(crate) setup: Setup,
    /// The sockets in the order of the configuration, until the server takes them.
    listeners: Mutex<Vec<OwnedFd>>,
    bell: Bell,
    /// The figures of this worker.
    figures: Arc<SharedMemory>,
    /// The table of clients, which all workers share.
    clients: ProcessClients,
    link: Arc<Link>,
}

/// The channel to the supervisor, with the state that the threads of a worker share.
struct Link {
    sending: Mutex<Channel>,
    /// Set when the worker serves.
    serving: OnceLock<Serving>,
    /// Longest drain after the end of the supervisor.
    drain_limit: OnceLock<Duration>,
    /// Clients that wait for the figures of all workers.
    awaited: Mutex<Awaited>,
    /// The supervisor has asked for the end at once.
    at_once: Arc<AtomicBool>,
}

/// Questions that the supervisor has not answered, by number.
#[derive(Default)]
struct Awaited {
    last: u64,
    clients: BTreeMap<u64, Exchange>,
}

/// Answers with the figures of all workers, which the supervisor knows.
struct FiguresOfAll(Arc<Link>);

impl Handler for FiguresOfAll {
    fn invocation_type(&self) -> InvocationType {
        InvocationType::NonBlocking
    }

    fn handle(&self, exchange: Exchange) {
        let accept = exchange
            .request()
            .head
            .fields
            .all("accept")
            .map(|value| String::from_utf8_lossy(value).into_owned());
        let question =
            Question { accept: accept.collect::<Vec<_>>().join(", "), ..Question::get("/metrics") };
        let mut awaited = lock(&self.0.awaited);
        awaited.last += 1;
        let id = awaited.last;
        awaited.clients.insert(id, exchange);
        drop(awaited);
        self.0.say(&FromWorker::Ask(id, question));
    }
}

struct Serving {
    since: Instant,
    server: Weak<Server>,
    control: Weak<Control>,
}

impl Worker {
    /// Receives the setup from the supervisor, and begins to listen to it.
    pub(crate) fn join() -> Result<Self, Problem> {
        let wrong = |what: String| {
            Problem::new(AS_WORKER, what, "it is the supervisor's; start 'maitred --workers N …' instead")
        };
        let channel = Channel::take_standard_input()
            .map_err(|error| wrong(format!("this process has no supervisor: {error}")))?;
        let received =
            channel.receive().map_err(|error| wrong(format!("the supervisor is gone: {error}")))?;
        let setup = read_setup(AS_WORKER, &received.text).inspect_err(|problem| {
            // The supervisor logs this. If the supervisor cannot read this, standard error has it.
            let _ = channel.send(&to_text(&FromWorker::Failed(problem.to_string())), &[]);
        })?;
        if received.descriptors.len() < setup.listeners {
            return Err(wrong("the supervisor has sent too few sockets".to_owned()));
        }
        if setup.development.is_some() {
            terminal::become_standard_input();
        }
        let receiving = channel.try_clone().map_err(|error| wrong(error.to_string()))?;
        let mut listeners = received.descriptors;
        let mut others = listeners.split_off(setup.listeners).into_iter();
        let (Some(waker), Some(last), Some(table)) = (others.next(), others.next(), others.next()) else {
            return Err(wrong("the supervisor has sent no bell and no table of clients".to_owned()));
        };
        let bell = Bell::open([waker, last]).map_err(|error| wrong(format!("its bell: {error}")))?;
        let mut memory = || {
            let descriptor = others.next().ok_or(ErrorKind::NotFound)?;
            SharedMemory::open(descriptor).map(Arc::new)
        };
        let memory = memory().and_then(|figures| Ok((figures, memory()?)));
        let (figures, ledger) = memory.map_err(|error| wrong(format!("its memory: {error}")))?;
        let table = ClientTable::open(table).map_err(|error| wrong(format!("its clients: {error}")))?;
        let clients = ProcessClients { table, ledger };
        let link = Arc::new(Link {
            sending: Mutex::new(channel),
            serving: OnceLock::new(),
            drain_limit: OnceLock::new(),
            awaited: Mutex::default(),
            at_once: Arc::default(),
        });
        let own = Arc::clone(&link);
        let listens = thread::Builder::new().name("maitred-supervisor".to_owned());
        listens.spawn(move || own.listen(&receiving)).map_err(|error| wrong(error.to_string()))?;
        Ok(Self { setup, listeners: Mutex::new(listeners), bell, figures, clients, link })
    }

    /// Changes the settings of the server for a worker: sockets, bell, figures and clients are those of the supervisor.
    ///
    /// # Errors
    /// The sockets are not those of the configuration.
    pub(crate) fn settle(&self, settings: &mut Settings) -> Result<(), Problem> {
        settings.bound = Some(self.take_listeners(&settings.listeners)?);
        let bell = self.bell.clone();
        settings.accept = if self.setup.own { Accept::Own(bell) } else { Accept::Shared(bell) };
        settings.several = self.setup.workers > 1;
        settings.metrics_handler = Some(Arc::new(FiguresOfAll(Arc::clone(&self.link))));
        settings.figures = Some(Arc::clone(&self.figures));
        settings.clients = Some(self.clients.clone());
        Ok(())
    }

    /// The flag for an end at once, which only the supervisor sets. A second signal does not set it: service managers send signals to workers, too.
    pub(crate) fn at_once(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.link.at_once)
    }

    /// Returns the sockets of this worker that a service manager has passed to the supervisor.
    pub(crate) fn passing(&self) -> Passing {
        let listeners = lock(&self.listeners);
        let named = listeners.iter().zip(&self.setup.passed);
        passing(named.filter_map(|(socket, name)| Some((name.clone()?, socket.try_clone().ok()?))))
    }

    /// Takes the sockets to serve, once.
    ///
    /// # Errors
    /// The sockets are not those of the configuration.
    fn take_listeners(&self, settings: &[ListenerSettings]) -> Result<BoundListeners, Problem> {
        let sockets = std::mem::take(&mut *lock(&self.listeners));
        BoundListeners::adopt(sockets, settings)
            .map_err(|(_, error)| Problem::new(AS_WORKER, error.what(), error.remedy()))
    }

    /// Returns how the logs of this worker are opened.
    pub(crate) fn log_writer(&self) -> Writer {
        Writer::Worker(u32::try_from(self.setup.number).unwrap_or(u32::MAX))
    }

    /// Sets the longest drain after the end of the supervisor.
    pub(crate) fn set_drain_limit(&self, limit: Duration) {
        // Set once.
        let _ = self.link.drain_limit.set(limit);
    }

    /// Tells the supervisor that this worker serves, after the changes of the setup have been made.
    pub(crate) fn serves(
        &self,
        server: &Arc<Server>,
        control: Option<&Arc<Control>>,
        what: Option<String>,
        served: Vec<String>,
    ) {
        let control = control.map_or_else(Weak::new, Arc::downgrade);
        let _ =
            self.link.serving.set(Serving { since: Instant::now(), server: Arc::downgrade(server), control });
        if let Some(control) = self.link.control() {
            for change in &self.setup.changes {
                control.ask(change, Caller::Relayed("as changed before".to_owned()));
            }
        }
        self.link.say(&FromWorker::Ready { what, served });
        let own = Arc::clone(&self.link);
        let beats = thread::Builder::new().name("maitred-beat".to_owned());
        if let Err(error) = beats.spawn(move || own.beat()) {
            let text = "this worker is not replaced for its memory or its requests";
            server.log().error(format_args!("{text}: no thread can be made: {error}"));
        }
    }

    /// Tells the supervisor that this worker cannot start.
    pub(crate) fn failed(&self, problem: &Problem) {
        self.link.say(&FromWorker::Failed(problem.to_string()));
    }
}

impl Link {
    fn say(&self, message: &FromWorker) {
        // If the supervisor is gone, the listening thread notices it.
        let _ = lock(&self.sending).send(&to_text(message), &[]);
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
                Ok(received) => match (read(&received.text), self.server()) {
                    (Some(message), _) => self.hear(message, received.descriptors),
                    (None, Some(server)) => server.log().error(format_args!("{UNREADABLE}")),
                    (None, None) => maitred_config::output::say(UNREADABLE),
                },
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.end_without_supervisor(),
            }
        }
    }

    fn hear(&self, message: ToWorker, descriptors: Vec<OwnedFd>) {
        match message {
            ToWorker::Ask(id, question, caller) => {
                let own = self.server().and_then(|server| self.own_figures(&server, &question));
                let answer = own
                    .or_else(|| Some(self.control()?.ask(&question, Caller::Relayed(caller))))
                    .unwrap_or_else(|| Answered::error(503, "the worker does not serve"));
                self.say(&FromWorker::Answer(id, answer));
            }
            ToWorker::Answer(id, answered) => {
                let client = lock(&self.awaited).clients.remove(&id);
                if let Some(client) = client {
                    answer(client, answered);
                }
            }
            ToWorker::Unready => {
                if let Some(server) = self.server() {
                    server.set_unready();
                }
            }
            ToWorker::AtOnce => {
                self.at_once.store(true, Ordering::Relaxed);
                terminate();
            }
            ToWorker::Empty(listener) => {
                if let (Some(server), Some(socket)) = (self.server(), descriptors.into_iter().next())
                    && let Err((_, error)) = server.empty(listener, socket)
                {
                    let text = "connections that wait for a worker that is gone are not taken yet";
                    server.log().warn(format_args!("{text}: {error}"));
                }
            }
            ToWorker::Last => match (self.serving.get(), self.server()) {
                (None, _) => terminate(),
                (Some(_), Some(server)) => {
                    let is_known = server.is_draining();
                    server.drain_last();
                    if !is_known {
                        terminate();
                    }
                }
                // The server has ended by an earlier request, and its signal handlers are gone.
                (Some(_), None) => {}
            },
        }
    }

    /// Answers the questions that only the supervisor asks: counts, the picture, and this worker's part of the page of figures. The shared
    /// memory is up to date afterwards.
    fn own_figures(&self, server: &Server, question: &Question) -> Option<Answered> {
        match &*question.path {
            COUNTED => {
                server.figures().settle();
                let up = self.serving.get().map(|serving| serving.since.elapsed()).unwrap_or_default();
                Some(Answered::json(200, &Counted::of(server, up)))
            }
            LOOKED => {
                server.figures().settle();
                Some(Answered::json(200, &ProcessFigures::at(server)))
            }
            PICTURE => Some(Answered::json(200, &self.control()?.picture()?)),
            OWN_PAGE => {
                server.figures().settle();
                let format = question.format();
                let media_type = format.media_type().to_owned();
                Some(Answered {
                    status: 200,
                    body: server.figures().own_page(format),
                    media_type,
                    allow: None,
                })
            }
            _ => None,
        }
    }

    /// Drains and ends this process after the end of the supervisor, which otherwise would end it.
    fn end_without_supervisor(&self) {
        if self.serving.get().is_none() {
            // No client has been served.
            std::process::exit(1);
        }
        if let Some(server) = self.server().filter(|server| !server.is_draining()) {
            server.log().error(format_args!("the supervisor is gone: this worker ends"));
            // No other worker is sure to accept the connections that wait.
            server.drain_last();
        }
        terminate();
        thread::sleep(self.drain_limit.get().copied().unwrap_or_default() + GRACE);
        std::process::abort();
    }

    fn beat(&self) {
        while let Some(server) = self.server() {
            let beat = Beat {
                requests: server.figures().snapshot().requests,
                memory: process::anonymous_bytes().unwrap_or(0),
                waiting: server.pools().figures().iter().map(|pool| pool.queued as u64).sum(),
            };
            drop(server);
            let text = to_text(&FromWorker::Beat(beat));
            if lock(&self.sending).send(&text, &[]).is_err() {
                return;
            }
            thread::sleep(BEAT);
        }
    }
}

fn answer(client: Exchange, answered: Answered) {
    let status = Status::from_code(answered.status).unwrap_or(Status::INTERNAL_SERVER_ERROR);
    let head = ResponseHead::new(status)
        .with("Content-Type", answered.media_type)
        .with("Vary", "Accept")
        .with("Cache-Control", "no-store");
    // The client may have gone meanwhile: nothing is left to do then.
    let _ = client.respond(head, answered.body);
}

/// Has this process end as SIGTERM does. A failure leaves the end to its supervisor.
fn terminate() {
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
}
