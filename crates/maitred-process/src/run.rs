//! Serving: from the configuration to a running server.
//!
//! The only file of the command that runs a server. It maps the server's refusals to errors with a remedy; `settings` maps the
//! configuration to the server's settings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maitred_config::output::say_plain;
use maitred_config::tls::{From, Material};
use maitred_config::{
    Checked, Config, EXIT_FAILURE, EXIT_USAGE, Inputs, Loaded, LogLevel, LogPlace, Problem, Wanted, acme,
    pools, validation,
};
use maitred_control::{Doors, lock};
use maitred_server::{BoundListeners, Log, Server, StartError};

use crate::certificates::Certificates;
use crate::early::{self, Early};
use crate::hooks::HookThread;
use crate::host::{Application, ErrorLog, Host, Signal, Voice};
use crate::lifetime::{self, Drain, Limits};
use crate::loading::{Importing, load};
use crate::operator::Operator;
use crate::part::{Kind, Part};
use crate::reload::Reload;
use crate::service::Service;
use crate::supervisor::{self, Predecessor, Worker};
use crate::tls_terms::Running;
use crate::tls_watch::Watch;
use crate::{certificates, control, listeners, logs, settings};

/// Longest wait for the logs at the end of the process: a disk needs less, and a pipe without a reader
/// would take for ever.
const FLUSH_LIMIT: Duration = Duration::from_secs(1);

/// Serves, or supervises processes that serve, until a signal ends the process; returns the exit code. SIGHUP has `inputs` read again.
///
/// # Errors
/// The server cannot start with this configuration.
pub fn run(loaded: &Loaded, inputs: Inputs, part: Part, host: &dyn Host) -> Result<u8, Problem> {
    match part.0 {
        Kind::Worker(worker) => {
            worker.set_drain_limit(loaded.config.drain_timeout);
            let ended = run_here(loaded, inputs, Some(&worker), None, host);
            ended.inspect_err(|problem| worker.failed(problem))
        }
        Kind::Successor(predecessor) => run_here(loaded, inputs, None, Some(predecessor), host),
        Kind::First => run_here(loaded, inputs, None, None, host),
    }
}

fn run_here(
    loaded: &Loaded,
    inputs: Inputs,
    worker: Option<&Worker>,
    mut predecessor: Option<Predecessor>,
    host: &dyn Host,
) -> Result<u8, Problem> {
    let mut checked = validation::check(&loaded.config, &loaded.origins)?;
    if checked.is_empty() {
        return Err(nothing_to_serve());
    }
    // Read before the process gives up root's rights, which the files may need.
    let from = match (worker.and_then(|worker| worker.setup.tls.as_ref()), &predecessor) {
        (Some(handed), _) => From::Handed(handed),
        (None, Some(predecessor)) => From::DiskOr(predecessor.tls.as_ref()),
        (None, None) => From::Disk,
    };
    checked.tls = Material::read(&loaded.config, &loaded.origins, from)?;
    checked.acme = match (worker, &predecessor) {
        (Some(_), _) => None,
        // The rights of the start are gone, and mostly the account is known by now.
        (None, Some(_)) => acme::wishes(&loaded.config, &loaded.origins)
            .unwrap_or_else(|_| acme::wishes_again(&loaded.config, None)),
        (None, None) => acme::wishes(&loaded.config, &loaded.origins)?,
    };
    let mut service = match worker {
        Some(worker) => Service::of_worker(worker.at_once()),
        None => Service::begin(),
    };
    if predecessor.is_none() {
        service.starts(loaded.config.workers.start_timeout);
    }
    let passing = match (worker, &mut predecessor) {
        (Some(worker), _) => worker.passing(),
        (None, Some(predecessor)) => predecessor.take_passed(),
        (None, None) => service.take_sockets(),
    };
    let mut sockets = service.assign(passing, &mut checked, &loaded.origins)?;
    let early = match worker {
        Some(_) => None,
        None => {
            if predecessor.is_none() {
                service.claim_pid_file(&loaded.config, &loaded.origins)?;
            }
            let early = early::give_up(loaded, &inputs.folder, &checked, host, &mut sockets)?;
            certificates::check(&loaded.config, &loaded.origins)?;
            early
        }
    };
    let several = loaded.config.workers.number() > 1 || loaded.config.development.on;
    let supervises = worker.is_none() && (predecessor.is_some() || several);
    let writer = match worker {
        Some(worker) => worker.log_writer(),
        None if supervises => logs::Writer::Supervisor,
        None => logs::Writer::Only,
    };
    let with_logging = logs::with_logging(&loaded.config, &writer, host).map_err(|error| {
        Problem::new("error-log", format!("logging cannot be used: {error}"), "raise the limit of open files")
    })?;
    let places = with_logging.as_ref().unwrap_or(&loaded.config);
    let log = logs::open(places, &loaded.origins, &writer)?;
    // The lines of a supervisor have time and level from the start: they stand among those of its workers.
    let serving = Arc::new(AtomicBool::new(supervises));
    host.use_error_log(error_log(Arc::clone(&log), Arc::clone(&serving), places));
    let became = early.as_ref().is_some_and(|early| early.became);
    let hooks = match worker {
        Some(_) => Ok(None),
        None => HookThread::load(host, loaded, &checked, became, &log),
    };
    let code = hooks.and_then(|hooks| {
        if supervises {
            let here = (early, sockets, predecessor, service);
            return supervisor::run(loaded, inputs, checked, here, (&log, host), hooks);
        }
        // Before the application is imported, so that connections meanwhile wait and are not refused.
        let binds = worker.is_none() && early.is_none();
        let bound = binds
            .then(|| listeners::bind(&checked, &loaded.origins, sockets.unwrap_or_default()))
            .transpose()?;
        let start = Start {
            loaded,
            checked: &checked,
            worker,
            log: &log,
            service: &service,
            host,
            serving: &serving,
        };
        match hooks {
            Some(hooks) => start.serve_with(hooks, inputs, early, bound),
            None => start.serve(inputs, early, bound, None),
        }
    });
    // Also before an error is printed: lines that the application wrote during its import come first.
    log.finish(FLUSH_LIMIT);
    host.end_logging(FLUSH_LIMIT);
    code
}

/// Makes the error log of the host. Until the server serves, entries (a traceback, and the error line after it) are written for the user at
/// the terminal, without time and level. Later entries have both, except those of the application in development.
fn error_log(log: Arc<Log>, serving: Arc<AtomicBool>, config: &Config) -> ErrorLog {
    let wanted = config.log_level;
    // The user at the terminal does not see entries that go to logging.
    let is_elsewhere = matches!(config.error_log, LogPlace::LoggingAt(_));
    let is_watched = config.development.on && !is_elsewhere;
    let plain = move |log: &Log, entry: &str| if is_elsewhere { say_plain(entry) } else { log.plain(entry) };
    Arc::new(move |voice, entry: &str| {
        let serves = serving.load(Ordering::Relaxed);
        let level = match voice {
            Voice::Server(level) => level,
            Voice::Application if serves && !is_watched => return log.application(entry),
            Voice::Application => return plain(&log, entry),
        };
        if !serves {
            if level <= wanted {
                plain(&log, entry);
            }
            return;
        }
        // Single lines may belong to one output, so each is written. A text of several lines, as a rule a traceback, is an entry of its own.
        if !entry.contains('\n') {
            return log.write_each(level, format_args!("{entry}"));
        }
        log.write(level, format_args!("{entry}"));
    })
}

/// A process that is to serve, with all that it has by then.
struct Start<'a> {
    loaded: &'a Loaded,
    checked: &'a Checked,
    worker: Option<&'a Worker>,
    log: &'a Arc<Log>,
    service: &'a Service,
    host: &'a dyn Host,
    /// Set when the server serves.
    serving: &'a AtomicBool,
}

impl Start<'_> {
    /// Serves in the only process, with hooks before and after.
    fn serve_with(
        &self,
        hooks: HookThread,
        inputs: Inputs,
        early: Option<Early>,
        bound: Option<BoundListeners>,
    ) -> Result<u8, Problem> {
        // Listens first: if another server has the address, hooks must not touch the files that it uses.
        let early = match early {
            Some(early) => early,
            None => early::listen(self.loaded, self.checked, bound)?,
        };
        hooks.before_start(self.host)?;
        let code = self.serve(inputs, Some(early), None, Some(&hooks));
        let number = *code.as_ref().unwrap_or(&EXIT_USAGE);
        hooks.worker_exit(1, std::process::id(), number.into());
        hooks.finish();
        code
    }

    fn serve(
        &self,
        inputs: Inputs,
        early: Option<Early>,
        bound: Option<BoundListeners>,
        hooks: Option<&HookThread>,
    ) -> Result<u8, Problem> {
        let Self { checked, worker, log, host, .. } = *self;
        let config = &self.loaded.config;
        let becomes = early.as_ref().is_some_and(|early| early.became)
            || worker.is_some_and(|worker| worker.setup.acts);
        let development = worker.and_then(|worker| worker.setup.development.as_deref());
        let tells = !config.development.on && worker.is_none_or(|worker| worker.setup.number == 1);
        let names = checked.programs().map(|program| program.name.clone());
        let importing = Importing::begin(names.collect(), log, tells && config.log_level >= LogLevel::Info);
        let applications = checked
            .programs()
            .map(|program| load(program, config, checked, (becomes, development), host))
            .collect::<Result<Vec<_>, _>>();
        drop(importing);
        let applications = applications.inspect_err(|_| end_now(host))?;
        let looped = applications.iter().filter(|application| application.runs_on.is_some()).count();
        let reload = Reload {
            inputs,
            configured: config.clone(),
            running: config.clone(),
            origins: self.loaded.origins.clone(),
            single: !applications.is_empty() && config.most_threads() == 1,
            looped: looped > 0 && looped == applications.len(),
            tls: checked.tls.as_ref().map(|tls| Running::new(Arc::clone(tls), config, worker.is_some())),
            certificates: Certificates::default(),
        };
        let ended = self.serve_loaded(reload, early, bound, hooks, applications);
        match &ended {
            Ok(Ended::Waited(_)) => {}
            Ok(Ended::AtOnce(_)) => host.end_application(Duration::ZERO),
            Err(_) => end_now(host),
        }
        ended.map(|(Ended::Waited(code) | Ended::AtOnce(code))| code)
    }

    fn serve_loaded(
        &self,
        mut reload: Reload,
        early: Option<Early>,
        bound: Option<BoundListeners>,
        hooks: Option<&HookThread>,
        applications: Vec<Application>,
    ) -> Result<Ended, Problem> {
        let Self { checked, worker, log, service, host, serving, .. } = *self;
        let (config, origins) = (&reload.configured.clone(), &reload.origins.clone());
        if reload.looped {
            pools::refuse_with_event_loop(config, origins)?;
        }
        let what = lifetime::what(config, &applications);
        let served = lifetime::served(config, checked, &applications);
        let mut settings = settings::make(config, origins, checked, applications, log)?;
        settings.language = host.languages().to_owned();
        // After the application is imported, before the first request is accepted.
        let mut signals = match host.signals() {
            Ok(signals) => service.signals(signals),
            Err(error) => {
                log.error(format_args!("the signal handlers cannot be installed: {error}"));
                return Ok(Ended::AtOnce(EXIT_FAILURE));
            }
        };
        let acts = early.as_ref().filter(|early| early.became).and(checked.wanted.as_ref()).map(Wanted::acts);
        let mut doors = match early {
            Some(Early { listeners, doors, warnings, .. }) => {
                settings.bound = Some(listeners.into_shared());
                warnings.iter().for_each(|warning| log.warn(format_args!("{warning}")));
                doors
            }
            None if worker.is_none() => {
                settings.bound = bound;
                control::open_named(config, origins, None)?
            }
            // The supervisor has the doors.
            None => Doors::default(),
        };
        match worker {
            None => control::open_own(config, &mut doors, log),
            Some(worker) => worker.settle(&mut settings)?,
        }
        // The supervisor keeps the history of all workers.
        let history = match worker {
            None => control::own_history(config, origins, &doors, log)?,
            Some(_) => None,
        };
        serving.store(true, Ordering::Relaxed);
        let prepared = |server: &Server| host.use_calls(server.figures().calls().clone());
        let server = match Server::start_after(settings, prepared) {
            Ok(server) => Arc::new(server),
            Err(StartError::Listen(address, error)) => {
                return Err(listeners::not_bound(&address, &error, origins));
            }
            Err(error) => {
                log.error(format_args!("the server {error}"));
                end_now(host);
                return Ok(Ended::Waited(EXIT_FAILURE));
            }
        };
        service.write_pid_file(log);
        if config.log_level >= LogLevel::Info && worker.is_none() {
            let lines = lifetime::start_up_lines(
                config,
                checked,
                what.as_deref(),
                &served,
                &server.addresses(),
                doors.admin(),
            );
            lines.into_iter().chain(acts).for_each(|line| log.plain(&line));
        }
        if what.is_some() && worker.is_none() {
            early::warn_of_root(config, log);
        }
        // In development workers are replaced at each change, so their ends are no news.
        let is_replaced = worker.is_some() && config.development.on;
        let mut say = |line: &str| match is_replaced {
            true => log.debug(format_args!("{line}")),
            false => log.info(format_args!("{line}")),
        };
        if worker.is_none() {
            reload.certificates = Certificates::begin(checked.acme.clone(), config, log);
        }
        let reload = Arc::new(Mutex::new(reload));
        let operator = Operator {
            reload: Arc::clone(&reload),
            log: Arc::clone(log),
            about: control::about(host, what.clone()),
        };
        let control = control::start(&server, doors, operator, history, log).map(Arc::new);
        // All workers see the same changes of files: one of them logs these.
        let tells = worker.is_none_or(|worker| worker.setup.number == 1);
        let watch = checked.tls.as_ref().and_then(|_| {
            let watch = Watch::start(&reload, &server, log, tells);
            watch
                .inspect_err(|error| log.error(format_args!("the files of TLS are not watched: {error}")))
                .ok()
        });
        if worker.is_none() && config.workers.count.is_none() {
            log.info(format_args!(
                "workers = auto: one processor, so this is one process without a supervisor"
            ));
        }
        service.serves(&format!("serving {}", what.as_deref().unwrap_or("static files")), log);
        if let Some(worker) = worker {
            worker.serves(&server, control.as_ref(), what, served);
        }
        hooks.iter().for_each(|hooks| hooks.worker_ready(1, std::process::id()));
        let mut answer = |signal| self.answer(signal, &reload, &server);
        let Config { drain_delay: delay, drain_timeout: drain, events_timeout: events, .. } = *config;
        // The supervisor waits for drain-delay before it ends a worker.
        let delay = if worker.is_some() { Duration::ZERO } else { delay };
        let limits = Limits { delay, drain, events };
        let told = Told { server: &server, service, log, reload: &reload };
        let (mut code, mut left) = lifetime::wait_for_end(&told, &mut signals, limits, &mut answer, &mut say);
        drop(watch);
        if code <= EXIT_FAILURE {
            match lifetime::finish_otlp(&told, &mut signals, left, &mut say) {
                Ok(rest) => left = rest,
                Err(second) => code = second,
            }
        }
        // The control owns the server, too, and the server ends with its last owner.
        drop(control);
        drop(server);
        if code > EXIT_FAILURE {
            return Ok(Ended::AtOnce(code));
        }
        Ok(match lifetime::end_application(host, &mut signals, left, &mut say) {
            Some(second) => Ended::AtOnce(second),
            None => Ended::Waited(code),
        })
    }

    /// Answers a signal that does not end the server.
    fn answer(&self, signal: Signal, reload: &Mutex<Reload>, server: &Server) {
        let Self { worker, log, service, .. } = *self;
        match signal {
            Signal::Reload => service.reloads(log, || {
                lock(reload).again(server, log, worker.is_none());
            }),
            Signal::Reopen => {
                log.reopen();
                log.info(format_args!("SIGUSR1: the log files are opened anew"));
            }
            Signal::ForSupervisor(signal) if worker.is_some() => {
                let supervisor = std::os::unix::process::parent_id();
                log.warn(format_args!(
                    "{signal}: nothing happens, this is a worker; send it to its supervisor, process {supervisor}"
                ));
            }
            Signal::ForSupervisor(signal) => log.warn(format_args!(
                "{signal}: nothing happens, this one process has no supervisor; start it with --workers 2 or more"
            )),
            Signal::Stop(_) => {}
        }
    }
}

/// Ends the applications that have been loaded, before the server has served.
fn end_now(host: &dyn Host) {
    host.end_application(lifetime::MIN_TIME_TO_END);
    host.wait_application_ended(lifetime::MIN_TIME_TO_END);
}

/// The end of the server, with the exit code.
enum Ended {
    /// The application has had its time to end.
    Waited(u8),
    AtOnce(u8),
}

/// A server that reports its end to the service manager.
struct Told<'a> {
    server: &'a Server,
    reload: &'a Mutex<Reload>,
    service: &'a Service,
    log: &'a Log,
}

impl Drain for Told<'_> {
    fn set_unready(&self) {
        self.service.stops("serving, until drain-delay is over", self.log);
        self.server.set_unready();
    }

    fn drain(&self) {
        self.service.stops("draining", self.log);
        self.server.drain();
        lock(self.reload).certificates.end();
    }

    fn wait_drained(&self, limit: Duration) -> bool {
        self.server.wait_drained(limit)
    }

    fn has_only_abandoned(&self) -> bool {
        self.server.has_only_abandoned()
    }

    fn end_events(&self) {
        self.server.end_events();
    }

    fn finish_otlp(&self, limit: Duration) {
        self.server.finish_otlp(limit);
    }

    fn wait_otlp_finished(&self, limit: Duration) -> bool {
        self.server.wait_otlp_finished(limit)
    }
}

fn nothing_to_serve() -> Problem {
    Problem::new(
        "nothing to serve",
        "no application was given",
        "for example: maitred app:app, maitred path/to/app.py, maitred folder/, or application = \
         \"app:app\" in maitred.toml",
    )
}
