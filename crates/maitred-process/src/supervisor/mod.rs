//! Several worker processes under a supervisor, which starts and replaces workers. The supervisor listens, and loads no application.
//!
//! ```text
//! mod.rs      the loop of the supervisor
//! process.rs  a worker, on the supervisor's side  worker.rs   a worker, in its own process
//! message.rs  messages between the two        relay.rs    questions of ctl to all workers
//! renewal.rs  new workers, a new program      leading.rs  the choice of workers, with a socket for each worker
//! stand_in.rs answers while no worker serves   upgrade.rs  a new program takes over
//! template.rs processes to fork workers from    preload.rs the use of templates
//! signals.rs  signals of the supervisor      developing.rs  new workers when files change
//! ```
//! The crate maitred-supervise decides when a worker is started, stopped and replaced.

mod developing;
mod leading;
mod message;
mod preload;
mod process;
mod relay;
mod renewal;
mod signals;
mod stand_in;
mod template;
mod upgrade;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use maitred_config::config::WorkersConfig;
use maitred_config::value::AcceptModel;
use maitred_config::{
    Checked, Config, EXIT_FAILURE, EXIT_SUCCESS, Inputs, Loaded, LogLevel, Origins, Problem, Wanted, options,
};
use maitred_control::{Control, Doors};
use maitred_io::child::{self, Child, Program};
use maitred_server::limits::ClientTable;
use maitred_server::{Bell, Log};
use maitred_supervise::{Action, Crew, Exit, Level, Limits, Settings, WorkerId};

use crate::certificates::Certificates;
use crate::development::{self, Watch};
use crate::early::{self, Early};
use crate::hooks::HookThread;
use crate::host::{Host, Signal, StopSignal, SupervisorSignal};
use crate::service::Service;
use crate::sockets::{Handed, Sockets};
use crate::{control, lifetime};
use message::{FromWorker, Setup, ToWorker};
use preload::Preload;
use process::Process;
use relay::Workers;
use stand_in::StandIn;
use upgrade::Successor;

pub(crate) use template::{AS_TEMPLATE, Preloading};
pub(crate) use upgrade::{AS_SUCCESSOR, Predecessor};
pub(crate) use worker::{AS_WORKER, Worker};

/// Time beyond the drain-timeout for the end of an application and of the process; then a worker is killed.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(6);

/// Time for the end of a worker after a second signal.
const AT_ONCE_GRACE: Duration = Duration::from_secs(3);

/// Number of SIGKILL (signal(7)), as the end of a worker that had to be killed before it had a process.
const SIGKILL: u8 = 9;

/// Time between two looks for ended orphans, in process 1 and in a process that adopts orphans.
const REAP: Duration = Duration::from_secs(1);

/// An event for the loop of the supervisor.
pub(crate) enum Happening {
    Signal(Signal),
    Said(WorkerId, FromWorker),
    Exit(WorkerId, Exit),
    /// The template with this number is ready, or has ended for this reason.
    Template(u64, Result<(), String>),
    /// The new program is ready, or has ended for this reason.
    Succeeded(Result<(), String>),
    /// The predecessor has closed its doors.
    Alone,
    /// An operator wants the end.
    Drain,
    Changed(BTreeSet<PathBuf>),
}

struct Supervisor {
    log: Arc<Log>,
    inputs: Inputs,
    config: Config,
    origins: Origins,
    checked: Checked,
    /// The setup of new workers, without their number and changes.
    setup: Setup,
    program: Program,
    listeners: Sockets,
    /// The workers that new connections are led to.
    led_to: Vec<usize>,
    /// Workers that do not serve any more, with the times at which their sockets are emptied.
    to_empty: Vec<(usize, Instant)>,
    preload: Preload,
    /// The bell by which workers wake each other.
    bell: Bell,
    clients: ClientTable,
    crew: Crew,
    processes: BTreeMap<WorkerId, Arc<Process>>,
    /// The reasons that workers gave for failed starts.
    causes: BTreeMap<WorkerId, String>,
    /// The workers, as the doors of the control see them.
    workers: Arc<Workers>,
    /// None before a predecessor has closed its doors, and after this process has closed its own.
    control: Option<Control>,
    sender: Sender<Happening>,
    stand_in: Option<StandIn>,
    successor: Option<Successor>,
    predecessor: Option<Predecessor>,
    hooks: Option<HookThread>,
    /// The start-up lines have been logged.
    introduced: bool,
    acts: Option<String>,
    ending: bool,
    service: Service,
    /// The end of drain-delay, while it lasts.
    holds_until: Option<Instant>,
    /// The service manager waits for the end of a reload.
    reloads: bool,
    watch: Option<Watch>,
    certificates: Certificates,
    /// The time of the last change of these files, until a worker serves them.
    changed_at: Option<Instant>,
}

/// The starting point: the work done with the rights of the start, the passed sockets, the predecessor, and the service manager.
pub(crate) type Here = (Option<Early>, Option<Vec<Option<OwnedFd>>>, Option<Predecessor>, Service);

/// Supervises until a signal ends it; returns the exit code.
pub(crate) fn run(
    loaded: &Loaded,
    inputs: Inputs,
    checked: Checked,
    (early, passed, mut predecessor, service): Here,
    (log, host): (&Arc<Log>, &dyn Host),
    hooks: Option<HookThread>,
) -> Result<u8, Problem> {
    let (config, origins) = (&loaded.config, &loaded.origins);
    check(config, &checked, origins)?;
    if let Some(problem) = predecessor.as_mut().and_then(Predecessor::take_problem) {
        log.error(format_args!("{problem}"));
    }
    let acts = early.as_ref().and(checked.wanted.as_ref()).map(Wanted::acts);
    let (listeners, mut doors) = match early {
        Some(Early { listeners, doors, warnings, .. }) => {
            warnings.iter().for_each(|warning| log.warn(format_args!("{warning}")));
            (listeners, doors)
        }
        None => {
            let doors = match predecessor {
                // The predecessor has the doors until this process is ready.
                Some(_) => Doors::default(),
                None => control::open_named(config, origins, None)?,
            };
            let addresses = checked.addresses();
            let passed = passed.unwrap_or_default().into_iter().map(|socket| socket.into_iter().collect());
            let mut sockets: Handed = passed.collect();
            sockets.resize_with(addresses.len(), Vec::new);
            let before = predecessor.as_mut().map(|before| before.take_sockets(&addresses));
            for (own, handed) in sockets.iter_mut().zip(before.unwrap_or_default()) {
                if own.is_empty() {
                    *own = handed;
                }
            }
            (Sockets::bind(config, &checked, origins, sockets)?, doors)
        }
    };
    host.supervises();
    // A new program relies on the preparations of its predecessor's hook.
    if let (Some(hooks), None) = (&hooks, &predecessor) {
        hooks.before_start(host)?;
    }
    let (sender, happenings) = mpsc::channel();
    let system = |what: &str, error: std::io::Error| {
        Problem::new(
            "supervisor",
            format!("{what}: {error}"),
            "see what limits this process (ulimit, control group)",
        )
    };
    signals::install(sender.clone()).map_err(|error| system("signals cannot be handled", error))?;
    service.handles_signals();
    while let Some(signal) = service.early_signal() {
        // The receiver is there until the end of this function.
        let _ = sender.send(Happening::Signal(signal));
    }
    let bell = match predecessor.as_mut().and_then(Predecessor::take_bell) {
        Some(bell) => bell,
        None => Bell::new().map_err(|error| system("workers cannot be told of each other", error))?,
    };
    let clients = match predecessor.as_mut().and_then(Predecessor::take_clients) {
        Some(clients) => clients,
        None => ClientTable::new().map_err(|error| system("workers cannot count clients together", error))?,
    };
    let workers = Arc::new(Workers::new(
        host.languages(),
        if listeners.is_own() { "reuseport" } else { "shared" },
        listeners.addresses().iter().map(ToString::to_string).collect(),
        sender.clone(),
        control::history(config, origins, log)?,
        log,
    ));
    relay::keep_history(&workers, log);
    let control = match predecessor {
        Some(_) => None,
        None => {
            control::open_own(config, &mut doors, log);
            relay::start(&workers, doors, log)
        }
    };
    let setup = Setup {
        version: message::Version::own(),
        workers: config.workers.number(),
        listeners: checked.listeners.len(),
        own: listeners.is_own(),
        passed: checked.listeners.iter().map(|listener| listener.passed.clone()).collect(),
        files: loaded.gathered.clone(),
        development: config.development.on.then(development::token).transpose()?,
        acts: acts.is_some() || predecessor.as_ref().is_some_and(Predecessor::acts),
        ..Setup::default()
    };
    let mut supervisor = Supervisor {
        log: Arc::clone(log),
        program: Program {
            command: host.command(),
            folder: inputs.started_in.clone(),
            environment: Vec::new(),
            // Workers set these variables themselves, from the values of their own start.
            without: hooks.iter().flat_map(HookThread::added).map(OsString::from).collect(),
            // A debugger in the application needs the terminal.
            at_terminal: config.development.on,
        },
        inputs,
        crew: Crew::new(settings(config), Instant::now()),
        config: config.clone(),
        origins: origins.clone(),
        checked,
        setup,
        listeners,
        led_to: Vec::new(),
        to_empty: Vec::new(),
        preload: Preload::default(),
        bell,
        clients,
        processes: BTreeMap::new(),
        causes: BTreeMap::new(),
        workers,
        control,
        sender,
        stand_in: None,
        successor: None,
        predecessor,
        hooks,
        introduced: false,
        acts,
        ending: false,
        service,
        holds_until: None,
        reloads: false,
        watch: None,
        certificates: Certificates::default(),
        changed_at: None,
    };
    supervisor.develop()?;
    let code = supervisor.supervise(&happenings);
    supervisor.workers.end_history();
    if let Some(hooks) = supervisor.hooks.take() {
        hooks.finish();
    }
    Ok(code)
}

/// Refuses options that do not work with several workers.
fn check(config: &Config, checked: &Checked, origins: &Origins) -> Result<(), Problem> {
    let is_passed = checked.listeners.iter().any(|listener| listener.passed.is_some());
    if config.workers.accept == AcceptModel::Reuseport && is_passed {
        return Err(Problem::new(
            origins.describe("accept"),
            "reuseport makes sockets of its own, and a service manager has passed some",
            "take shared, which is the default",
        ));
    }
    Ok(())
}

fn settings(config: &Config) -> Settings {
    let WorkersConfig { start_timeout, requests, lifetime, memory, stuck, unavailable_after, .. } =
        config.workers.clone();
    Settings {
        workers: config.workers.number(),
        start_timeout,
        stop_timeout: config.drain_timeout + STOP_GRACE,
        unavailable_after,
        limits: Limits { requests: requests as u64, lifetime, memory, stuck },
        seed: u64::from(std::process::id()),
        development: config.development.on,
    }
}

impl Supervisor {
    fn supervise(&mut self, happenings: &Receiver<Happening>) -> u8 {
        let is_first = std::process::id() == 1;
        loop {
            self.lead(Instant::now());
            let reaps = is_first || self.preload.adopts;
            while let Some(action) = self.crew.poll_action() {
                if let Some(code) = self.act(action) {
                    return code;
                }
            }
            if self.reloads && !self.crew.is_replacing() {
                self.reloads = false;
                if !self.crew.is_ending() && self.holds_until.is_none() {
                    self.service.ends_reload(&self.log);
                }
            }
            let now = Instant::now();
            let emptied = self.to_empty.iter().map(|(_, at)| *at).min();
            let own = [reaps.then(|| now + REAP), self.holds_until, self.service.due(), emptied];
            let due = self.crew.poll_timeout().into_iter().chain(own.into_iter().flatten()).min();
            let happened = match due {
                Some(at) => happenings.recv_timeout(at.saturating_duration_since(now)),
                None => happenings.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match happened {
                Ok(happening) => self.handle(happening),
                Err(RecvTimeoutError::Timeout) => {}
                // The supervisor has a sender of its own.
                Err(RecvTimeoutError::Disconnected) => return EXIT_FAILURE,
            }
            self.service.beat();
            if let Some(tls) = &self.checked.tls {
                // Its workers say something each second.
                tls.terms.forget_old_keys();
            }
            if self.holds_until.is_some_and(|end| end <= Instant::now()) {
                self.drain(StopSignal::Terminate, Instant::now());
            }
            self.crew.handle_timeout(Instant::now());
            if reaps {
                let is_worker = |pid| self.processes.values().any(|process| process.pid() == pid);
                let reap = || {
                    let is_own = |pid| is_worker(pid) || self.is_own_program(pid);
                    maitred_certificates::unless_hook_runs(|| child::reap_others(is_own));
                };
                // A running hook waits for its children itself.
                match &self.hooks {
                    Some(hooks) => hooks.unless_running(reap),
                    None => reap(),
                }
            }
            self.workers.show(&self.crew, &self.processes);
        }
    }

    /// Carries out an action of the crew. Returns the exit code if the supervisor ends.
    fn act(&mut self, action: Action) -> Option<u8> {
        match action {
            Action::Start { worker, number } => self.start(worker, number),
            Action::Stop(worker) => {
                if let Some(process) = self.processes.get(&worker) {
                    match (process.is_first_request(), self.ending) {
                        // This message also tells the worker to accept the connections that wait, since no other worker will.
                        (true, true) => process.send(&ToWorker::Last),
                        (true, false) => process.terminate(),
                        (false, _) => process.send(&ToWorker::AtOnce),
                    }
                } else {
                    self.end_waiting(worker, Exit::Code(EXIT_SUCCESS));
                }
            }
            Action::Kill(worker) => {
                if let Some(process) = self.processes.get(&worker) {
                    process.kill();
                } else {
                    self.end_waiting(worker, Exit::Signal(SIGKILL));
                }
            }
            Action::StandIn(true) => self.stand_in(),
            Action::StandIn(false) => self.stand_in = None,
            Action::Ready => self.ready(),
            Action::Say(level, text) => self.say(level, &text),
            // In development Ctrl-C is a normal end, also if it has cut requests off.
            Action::End(1) if self.config.development.on => return Some(EXIT_SUCCESS),
            Action::End(code) => return Some(code),
        }
        None
    }

    fn handle(&mut self, happening: Happening) {
        let now = Instant::now();
        match happening {
            Happening::Signal(signal) => self.hear(signal, now),
            Happening::Drain => self.stop(StopSignal::Terminate, now),
            Happening::Said(worker, FromWorker::Ready { what, served }) => {
                self.introduce(what, &served);
                if let Some(process) = self.processes.get(&worker) {
                    process.becomes_ready();
                    self.workers.add(process);
                    if self.holds_until.is_some() {
                        process.send(&ToWorker::Unready);
                    }
                    self.hooks.iter().for_each(|hooks| hooks.worker_ready(process.number, process.pid()));
                }
                self.crew.handle_ready(worker, now);
                self.note_change_served(now);
            }
            Happening::Said(worker, FromWorker::Failed(cause)) => _ = self.causes.insert(worker, cause),
            Happening::Said(worker, FromWorker::Beat(beat)) => {
                self.workers.note(worker, beat);
                self.crew.handle_beat(worker, beat, now);
            }
            Happening::Said(worker, FromWorker::Ask(id, question)) => {
                if let Some(process) = self.processes.get(&worker) {
                    self.workers.answer_worker(process, id, question);
                }
            }
            Happening::Said(_, FromWorker::Answer(..)) => {}
            Happening::Exit(worker, exit) => {
                if let Some(process) = self.processes.remove(&worker) {
                    process.give_back_clients(&self.clients);
                    self.workers.retire(&process);
                    if let Some(hooks) = &self.hooks {
                        hooks.worker_exit(process.number, process.pid(), code(exit));
                    }
                }
                // The worker may have been woken for a connection that it did not accept.
                self.bell.ring();
                let cause = self.causes.remove(&worker);
                self.crew.handle_exit(worker, exit, cause.as_deref(), now);
            }
            Happening::Template(number, outcome) => self.hear_template(number, outcome, now),
            Happening::Succeeded(outcome) => self.succeeded(outcome, now),
            Happening::Alone => self.open_doors(),
            Happening::Changed(files) => self.change(&files, now),
        }
    }

    fn start(&mut self, worker: WorkerId, number: usize) {
        if self.awaits_template(worker, number) {
            return;
        }
        self.renew_tls();
        let setup = Setup {
            number,
            workers: self.crew.wanted(),
            changes: self.workers.changes(worker),
            ..self.setup.clone()
        };
        let program = {
            let mut program = self.program.clone();
            program.command.push(AS_WORKER.into());
            program.command.extend(self.inputs.arguments.iter().map(OsString::from));
            program
        };
        let started = {
            let sockets = self.listeners.of_worker(number);
            let sockets = sockets.ok_or_else(|| std::io::Error::other("there is no socket for it"));
            sockets.and_then(|sockets| {
                let descriptors: Vec<BorrowedFd<'_>> = sockets
                    .into_iter()
                    .chain(self.bell.descriptors())
                    .chain([self.clients.as_fd()])
                    .collect();
                let template = self.preload.template.as_ref().filter(|_| self.preloads());
                let launch = |input: OwnedFd| match template {
                    Some(template) => template.fork(&input),
                    None => Child::start(&program, input),
                };
                Process::start(launch, (worker, number), &setup, &descriptors, &self.sender)
            })
        };
        match started {
            Ok(process) => {
                self.log.debug(format_args!("worker {number} is process {}", process.pid()));
                self.processes.insert(worker, process);
            }
            Err(error) => {
                self.preload.template = None;
                let cause = format!("the process cannot be started: {error}");
                self.crew.handle_exit(worker, Exit::Code(1), Some(&cause), Instant::now());
            }
        }
    }

    /// Reads the files of TLS again for the next worker. The known material stays if this process cannot read the files, or they are invalid.
    fn renew_tls(&mut self) {
        if let Some(known) = &self.checked.tls {
            let next = known.again(&self.config, &self.origins).ok();
            if let Some(next) = next.or_else(|| known.as_before(&self.config, &self.origins)) {
                self.checked.tls = Some(next);
            }
        }
        self.setup.tls = self.checked.tls.as_ref().map(|tls| tls.handed());
    }

    /// Logs a line, also if the same line was logged before: several workers may end alike, and an operator may repeat a command.
    fn say(&self, level: Level, text: &str) {
        let level = match level {
            // The developer has made the change, so its usual effects are no news.
            Level::Info if self.config.development.on => LogLevel::Debug,
            // Ctrl-C asks for an end at once.
            Level::Warning if self.config.development.on && self.ending => LogLevel::Debug,
            Level::Error => LogLevel::Error,
            Level::Warning => LogLevel::Warn,
            Level::Info => LogLevel::Info,
        };
        self.log.write_each(level, format_args!("{text}"));
    }

    /// Logs the start-up lines once, when the first worker is ready.
    fn introduce(&mut self, what: Option<String>, served: &[String]) {
        self.workers.set_application(what.clone());
        if std::mem::replace(&mut self.introduced, true) {
            return;
        }
        if self.predecessor.is_none() {
            self.service.write_pid_file(&self.log);
        }
        self.certificates = Certificates::begin(self.checked.acme.clone(), &self.config, &self.log);
        if self.config.log_level >= LogLevel::Info {
            self.say_start_up_lines(what.as_deref(), served);
        }
        if what.is_some() && !self.config.development.on {
            early::warn_of_root(&self.config, &self.log);
        }
    }

    fn say_start_up_lines(&self, what: Option<&str>, served: &[String]) {
        let workers = match self.config.workers.number() {
            1 => "1 worker".to_owned(),
            several => format!("{several} workers"),
        };
        let addresses = self.listeners.addresses();
        let admin = self.control.as_ref().and_then(|control| control.doors().admin());
        let lines = lifetime::start_up_lines(&self.config, &self.checked, what, served, &addresses, admin);
        let page = self.traceback_line(&addresses);
        for (position, line) in lines.into_iter().chain(page).chain(self.acts.clone()).enumerate() {
            match position {
                0 if self.config.development.on => self.log.plain(&line),
                0 => self.log.plain(&format!("{line} in {workers}")),
                _ => self.log.plain(&line),
            }
        }
    }

    fn ready(&mut self) {
        if !self.config.development.on {
            self.log.info(format_args!("all workers are ready"));
        }
        if let Some(mut predecessor) = self.predecessor.take() {
            self.service.take_over_pid_file(&self.config, predecessor.pid_file.take(), &self.log);
            // The predecessor leaves the files of Unix sockets to this process when it hears that; those of a service manager stay the manager's.
            let listeners = &self.checked.listeners;
            self.listeners.own_files(|index| listeners.get(index).is_some_and(|one| one.passed.is_none()));
            predecessor.tell_ready(self.sender.clone());
        }
        let what = format!("supervising {} workers", self.crew.wanted());
        self.service.serves(&what, &self.log);
    }

    fn stand_in(&mut self) {
        self.log.error(format_args!(
            "no worker is ready: clients get 503 with Retry-After until one is (unavailable-after)"
        ));
        match StandIn::start(&self.listeners, &self.config, &self.checked, &self.bell, &self.log) {
            Ok(stand_in) => self.stand_in = Some(stand_in),
            Err(error) => self.log.error(format_args!("clients wait: {error}")),
        }
    }

    fn hear(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Stop(signal) => self.stop(signal, now),
            Signal::Reload if self.ending || self.holds_until.is_some() => {}
            Signal::Reload if self.service.has_hung_up() => self.stop(StopSignal::Hangup, now),
            Signal::Reload => {
                self.service.begins_reload(&self.log);
                self.reload(now);
                self.reloads = true;
            }
            Signal::Reopen => {
                self.log.reopen();
                self.processes.values().for_each(|process| process.reopen_logs());
                self.log.info(format_args!("SIGUSR1: the log files are opened anew, also by the workers"));
            }
            Signal::ForSupervisor(SupervisorSignal::Upgrade)
                if self.crew.is_ending() || self.holds_until.is_some() =>
            {
                self.say(Level::Warning, "SIGUSR2: no new program is started, this one is ending");
            }
            Signal::ForSupervisor(SupervisorSignal::Upgrade) => self.upgrade(),
            Signal::ForSupervisor(SupervisorSignal::More) => {
                self.set_count(self.crew.wanted() + 1, "SIGTTIN", now)
            }
            Signal::ForSupervisor(SupervisorSignal::Fewer) => {
                self.set_count(self.crew.wanted() - 1, "SIGTTOU", now)
            }
        }
    }

    fn set_count(&mut self, workers: usize, signal: &str, now: Instant) {
        let most = self.listeners.most_workers().unwrap_or(options::MAX_WORKERS);
        if workers > most {
            return self.log.warn(format_args!(
                "{signal}: there are {most} workers at most until a restart (accept = reuseport)"
            ));
        }
        let workers = workers.clamp(1, options::MAX_WORKERS);
        self.log.info(format_args!("{signal}: workers {} -> {workers}", self.crew.wanted()));
        self.crew.set_count(workers, now);
    }

    fn stop(&mut self, signal: StopSignal, now: Instant) {
        if self.config.development.on && signal == StopSignal::Interrupt && !self.ending {
            self.end_crew(now);
            return self.crew.stop_at_once(EXIT_SUCCESS, AT_ONCE_GRACE, now);
        }
        if self.holds_until.is_some() {
            self.log.info(format_args!("{signal}: the delay ends"));
            return self.drain(signal, now);
        }
        if !self.ending && signal == StopSignal::Terminate && !self.config.drain_delay.is_zero() {
            return self.hold(now);
        }
        if self.ending {
            self.log.info(format_args!("{signal}: ending at once, running requests are cut off"));
            return self.crew.stop_at_once(128 + signal.number(), AT_ONCE_GRACE, now);
        }
        self.drain(signal, now);
    }

    /// Begins drain-delay: the workers answer "not ready" on their health paths and serve on until the delay is over.
    fn hold(&mut self, now: Instant) {
        let delay = self.config.drain_delay;
        self.holds_until = Some(now + delay);
        self.end_successor();
        self.service.stops("serving, until drain-delay is over", &self.log);
        self.processes.values().for_each(|process| process.send(&ToWorker::Unready));
        let seconds = delay.as_secs_f64();
        self.log.info(format_args!(
            "SIGTERM: not ready any more, draining in {seconds} s (drain-delay); another signal drains at once"
        ));
    }

    fn drain(&mut self, signal: StopSignal, now: Instant) {
        self.holds_until = None;
        self.service.stops("draining", &self.log);
        let seconds = self.config.drain_timeout.as_secs_f64();
        self.log.info(format_args!(
            "{signal}: the workers drain, at most {seconds} s for running requests; a second signal ends at once"
        ));
        self.end_crew(now);
    }

    /// Ends the workers. They accept the connections that wait, since no other process does.
    fn end_crew(&mut self, now: Instant) {
        self.ending = true;
        self.end_successor();
        self.stand_in = None;
        self.crew.stop(EXIT_SUCCESS, now);
        self.certificates.end();
        // Then only workers have descriptors, so a queue ends when they have emptied it.
        self.listeners = Sockets::default();
    }
}

/// The exit code as `subprocess` of Python has it: below zero for a signal.
fn code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code.into(),
        Exit::Signal(signal) => -i32::from(signal),
    }
}
