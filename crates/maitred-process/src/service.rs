//! The process as its starter sees it: a service manager, a container, a terminal, a script with a PID file.
//!
//! ```text
//! begin        sockets of the service manager are taken; the terminal is looked at; signals are kept (early_signals.rs)
//! starts       EXTEND_TIMEOUT_USEC, once
//! claim        the PID file is made and locked
//! serves       the PID file has the number; READY
//! SIGHUP       RELOADING, and READY again when the new configuration serves; or the end, if the terminal has hung up
//! waiting      WATCHDOG, at half of its time
//! stops        STOPPING; from then on EXTEND_TIMEOUT_USEC as long as it takes
//! ```
//! Serving and supervising processes do this alike. Leaves out: datagrams and files
//! (service_manager and pid_file of maitred-io).

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use maitred_config::{Checked, Config, Origins, Problem};
use maitred_server::Log;
use maitred_server::pid_file::{NotClaimed, PidFile};
use maitred_server::service_manager::{Handed, Notifier, Passing};
use maitred_server::terminal::Terminal;
use signal_hook::consts::SIGTERM;

use crate::early_signals::EarlySignals;
use crate::host::{Signal, Signals, StopSignal};
use crate::passed;

/// The first process of a container: the kernel drops signals that it does not handle (pid_namespaces(7)).
const FIRST_PROCESS: u32 = 1;

/// Extra time for the end with each message to the service manager, and the time between two messages.
const EXTENSION: Duration = Duration::from_secs(15);
const EXTEND_EVERY: Duration = Duration::from_secs(5);

/// Time of the start beyond `start-timeout`, for the steps before and after the start of the workers.
const START_GRACE: Duration = Duration::from_secs(10);

/// See the module text.
pub(crate) struct Service {
    notifier: Option<Notifier>,
    /// Sockets that were passed, until they are assigned to listeners.
    sockets: Passing,
    /// Warnings about sockets that cannot be used, for the log once there is one.
    warnings: RefCell<Vec<String>>,
    terminal: Terminal,
    early_signals: EarlySignals,
    pid_file: Option<PidFile>,
    /// The status text for the service manager.
    status: RefCell<String>,
    /// Whether SIGTERM ends the process at once.
    ends_at_once: Arc<AtomicBool>,
    next: Cell<Next>,
    /// In a worker, the flag by which its supervisor asks for an end at once. In other processes a second signal asks for that.
    at_once: Option<Arc<AtomicBool>>,
    /// The service manager knows that the process ends.
    stops: Cell<bool>,
    /// A message to the service manager has failed.
    failed: Cell<bool>,
}

/// Times of the next messages to the service manager.
#[derive(Clone, Copy, Default)]
struct Next {
    alive: Option<Instant>,
    extension: Option<Instant>,
}

impl Service {
    /// Begins. To be called first: while the process has one thread, and before signals are handled.
    pub(crate) fn begin() -> Self {
        let service = Self::with(Handed::take(), Terminal::at_start());
        if std::process::id() == FIRST_PROCESS {
            // SIGTERM has no other handler while the application is imported, and the kernel would drop it.
            let code = 128 + i32::from(StopSignal::Terminate.number());
            let flag = Arc::clone(&service.ends_at_once);
            // If this fails, SIGTERM has no effect until the server handles it.
            let _ = signal_hook::flag::register_conditional_shutdown(SIGTERM, code, flag);
        }
        service
    }

    /// Makes the service of a worker, without a service manager and a PID file: its supervisor has these.
    pub(crate) fn of_worker(at_once: Arc<AtomicBool>) -> Self {
        Self { at_once: Some(at_once), ..Self::with(Handed::default(), Terminal::default()) }
    }

    fn with(Handed { notifier, sockets, troubles }: Handed, terminal: Terminal) -> Self {
        let alive = notifier.as_ref().and_then(Notifier::watchdog).map(|beat| Instant::now() + beat);
        Self {
            notifier,
            sockets,
            warnings: RefCell::new(troubles),
            terminal,
            early_signals: EarlySignals::keep(terminal),
            pid_file: None,
            status: RefCell::default(),
            ends_at_once: Arc::new(AtomicBool::new(true)),
            next: Cell::new(Next { alive, extension: None }),
            at_once: None,
            stops: Cell::default(),
            failed: Cell::default(),
        }
    }

    /// Takes the sockets that were passed, once.
    pub(crate) fn take_sockets(&mut self) -> Passing {
        std::mem::take(&mut self.sockets)
    }

    /// Puts sockets that were passed in the place of the listeners that stand for them, as [`passed::assign`] says.
    ///
    /// # Errors
    /// As of [`passed::assign`].
    pub(crate) fn assign(
        &mut self,
        passing: Passing,
        checked: &mut Checked,
        origins: &Origins,
    ) -> Result<Option<Vec<Option<OwnedFd>>>, Problem> {
        passed::assign(checked, origins, passing, self.warnings.get_mut())
    }

    /// Makes the PID file, if one is asked for, with the rights that the process has so far.
    ///
    /// # Errors
    /// A live server has the file, or the file cannot be made.
    pub(crate) fn claim_pid_file(&mut self, config: &Config, origins: &Origins) -> Result<(), Problem> {
        let Some(path) = &config.pid_file else { return Ok(()) };
        let shown = path.display();
        let claimed = PidFile::claim(path).map_err(|error| {
            let (what, remedy) = match &error {
                NotClaimed::Held(holder) => (
                    format!("{shown} belongs to {holder}, which runs"),
                    match holder.process {
                        Some(process) => format!("stop it (kill {process}), or name another file"),
                        None => "stop it, or name another file".to_owned(),
                    },
                ),
                NotClaimed::SomethingElse => {
                    (format!("{shown} is no PID file: {error}"), "name another file".to_owned())
                }
                NotClaimed::System(error) => {
                    let remedy = "name one in a folder that exists and that this user may write to";
                    (format!("{shown} cannot be made: {error}"), remedy.to_owned())
                }
            };
            Problem::new(origins.describe("pid-file"), what, remedy)
        })?;
        self.pid_file = Some(claimed);
        Ok(())
    }

    /// The PID file, for a successor of this process.
    pub(crate) fn pid_file(&self) -> Option<BorrowedFd<'_>> {
        self.pid_file.as_ref().map(AsFd::as_fd)
    }

    /// Takes the PID file over from the process that this one replaces. If that process has none, or another one, claims the file.
    pub(crate) fn take_over_pid_file(&mut self, config: &Config, handed: Option<OwnedFd>, log: &Log) {
        let Some(path) = &config.pid_file else { return };
        let taken = handed.and_then(|file| PidFile::take_over(path, file).ok());
        let file = match taken.map_or_else(|| PidFile::claim(path), Ok) {
            Ok(file) => self.pid_file.insert(file),
            Err(error) => {
                return log
                    .error(format_args!("--pid-file: {} cannot be taken over: {error}", path.display()));
            }
        };
        if let Err(error) = file.write() {
            log.error(format_args!("--pid-file: the number of the process cannot be written: {error}"));
        }
    }

    /// Writes the number of the process into the PID file, when the process serves.
    pub(crate) fn write_pid_file(&self, log: &Log) {
        if let Some(Err(error)) = self.pid_file.as_ref().map(PidFile::write) {
            log.error(format_args!("--pid-file: the number of the process cannot be written: {error}"));
        }
    }

    /// Tells the service manager the longest time of the start; zero leaves that to the service manager.
    pub(crate) fn starts(&self, limit: Duration) {
        if let Some(notifier) = self.notifier.as_ref().filter(|_| !limit.is_zero()) {
            // A failure shows up again, and is logged, with READY.
            let _ = notifier.extend(limit + START_GRACE);
        }
    }

    /// Tells the service manager that the process serves. `systemctl status` shows `status`.
    pub(crate) fn serves(&self, status: &str, log: &Log) {
        self.warnings.take().iter().for_each(|warning| log.warn(format_args!("{warning}")));
        status.clone_into(&mut self.status.borrow_mut());
        self.tell(log, |notifier| notifier.ready(status));
    }

    /// Tells the service manager of a reload, before and after `read`.
    pub(crate) fn reloads(&self, log: &Log, read: impl FnOnce()) {
        self.begins_reload(log);
        read();
        self.ends_reload(log);
    }

    /// Tells the service manager that a reload begins; [`ends_reload`](Self::ends_reload) follows.
    pub(crate) fn begins_reload(&self, log: &Log) {
        self.tell(log, Notifier::reloading);
    }

    /// Tells the service manager that the process serves with the new configuration.
    pub(crate) fn ends_reload(&self, log: &Log) {
        self.tell(log, |notifier| notifier.ready(&self.status.borrow()));
    }

    /// Environment variables of the service manager, for the successor of this process.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        let variables = self.notifier.as_ref().map(Notifier::variables).unwrap_or_default();
        variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
    }

    /// Tells the service manager that another process is the main one of the service. This process sends nothing after that.
    pub(crate) fn hands_over(&mut self, process: u32, log: &Log) {
        self.tell(log, |notifier| notifier.main_process(process));
        self.notifier = None;
        self.next.take();
    }

    /// Tells the service manager that the process ends, and from then on asks for more time regularly.
    pub(crate) fn stops(&self, status: &str, log: &Log) {
        let is_known = self.stops.replace(true);
        self.tell(log, |notifier| if is_known { notifier.status(status) } else { notifier.stopping(status) });
        self.extend();
    }

    /// Wraps `inner`: a wait for signals also sends due messages to the service manager (beats, more time for the end). SIGHUP of a
    /// terminal that has hung up ends the process.
    pub(crate) fn signals<'a>(&'a self, inner: Box<dyn Signals>) -> Watched<'a> {
        self.handles_signals();
        Watched { service: self, inner, ends: false }
    }

    /// Ends the keeping of signals: the caller answers signals from now on, also those that [came before](Self::early_signal).
    pub(crate) fn handles_signals(&self) {
        self.ends_at_once.store(false, Ordering::Relaxed);
        self.early_signals.end();
    }

    /// Takes a signal that came before the process answered signals.
    pub(crate) fn early_signal(&self) -> Option<Signal> {
        self.early_signals.next()
    }

    /// Whether the terminal has hung up, which is the reason of a SIGHUP then.
    pub(crate) fn has_hung_up(&self) -> bool {
        self.terminal.has_hung_up()
    }

    /// The time of the next [`beat`](Self::beat).
    pub(crate) fn due(&self) -> Option<Instant> {
        let Next { alive, extension } = self.next.get();
        alive.into_iter().chain(extension).min()
    }

    /// Sends the messages that are due. A failure is noted here, without a line in the log.
    pub(crate) fn beat(&self) {
        let Some(notifier) = &self.notifier else { return };
        let now = Instant::now();
        let mut next = self.next.get();
        if next.alive.is_some_and(|at| at <= now) {
            self.note(notifier.alive());
            next.alive = notifier.watchdog().map(|beat| now + beat);
            self.next.set(next);
        }
        if next.extension.is_some_and(|at| at <= now) {
            self.extend();
        }
    }

    fn extend(&self) {
        let Some(notifier) = &self.notifier else { return };
        self.note(notifier.extend(EXTENSION));
        let extension = Some(Instant::now() + EXTEND_EVERY);
        self.next.set(Next { extension, ..self.next.get() });
    }

    fn note(&self, told: io::Result<()>) {
        self.failed.set(self.failed.get() || told.is_err());
    }

    fn tell(&self, log: &Log, what: impl FnOnce(&Notifier) -> io::Result<()>) {
        let Some(notifier) = &self.notifier else { return };
        if let Err(error) = what(notifier)
            && !self.failed.replace(true)
        {
            log.warn(format_args!("the service manager cannot be told anything (NOTIFY_SOCKET): {error}"));
        }
    }
}

/// Signals of a process that has a service manager, a terminal, or neither.
pub(crate) struct Watched<'a> {
    service: &'a Service,
    inner: Box<dyn Signals>,
    /// A signal that ends the process has come.
    ends: bool,
}

impl Signals for Watched<'_> {
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
        let deadline = limit.map(|limit| Instant::now() + limit);
        loop {
            self.service.beat();
            let at_once = self.service.at_once.as_ref();
            if self.ends && at_once.is_some_and(|at_once| at_once.swap(false, Ordering::Relaxed)) {
                return Some(Signal::Stop(StopSignal::Terminate));
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let due = self.service.due().map(|due| due.saturating_duration_since(Instant::now()));
            let next = left.into_iter().chain(due).min();
            match self.service.early_signal().or_else(|| self.inner.wait(next)) {
                // The shell and the kernel may both send SIGHUP: the second one has no meaning.
                Some(Signal::Reload) if !self.ends && self.service.has_hung_up() => {
                    self.ends = true;
                    return Some(Signal::Stop(StopSignal::Hangup));
                }
                // The supervisor and a service manager may both have sent one.
                Some(Signal::Stop(_)) if self.ends && at_once.is_some() => {}
                Some(signal) => {
                    self.ends |= matches!(signal, Signal::Stop(_));
                    return Some(signal);
                }
                None if left.is_some_and(|left| due.is_none_or(|due| left <= due)) => return None,
                None => {}
            }
        }
    }
}
