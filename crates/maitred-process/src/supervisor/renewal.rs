//! Replacement of all workers (SIGHUP) and of the program (SIGUSR2), on the supervisor's side.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Instant;

use maitred_config::tls::{self, From, Material};
use maitred_config::{Checked, Config, EXIT_SUCCESS, Origins, Problem};
use maitred_config::{options, sources, validation};
use maitred_control::Doors;
use maitred_supervise::Level;

use super::upgrade::{AS_SUCCESSOR, HandOver, Successor};
use super::{Supervisor, check, relay, settings};
use crate::control;
use crate::sockets::Sockets;

impl Supervisor {
    /// The configuration is read again, and all workers are replaced.
    pub(super) fn reload(&mut self, now: Instant) {
        if self.read_again("SIGHUP", now) {
            self.log.info(format_args!(
                "SIGHUP: the configuration has been read again; the workers are replaced one by one, each when its successor is ready"
            ));
            self.crew.replace_all(now);
            self.workers.mark_reload();
        }
    }

    /// Reads the configuration again, for workers that are started from now on. Returns whether the configuration is valid and workers can serve
    /// it. Log entries begin with `cause`.
    pub(super) fn read_again(&mut self, cause: &str, now: Instant) -> bool {
        let read = sources::load(&self.inputs).and_then(|loaded| {
            let checked = validation::check(&loaded.config, &loaded.origins)?;
            check(&loaded.config, &checked, &loaded.origins)?;
            let (tls, wrong) = self.read_tls(&loaded.config, &loaded.origins)?;
            Ok((loaded, Checked { tls, ..checked }, wrong))
        });
        let (loaded, checked, wrong) = match read {
            Ok(read) => read,
            Err(problem) => {
                let text = format!(
                    "{cause}: the configuration is not valid, nothing has changed and no worker is replaced: {problem}"
                );
                self.say(Level::Error, &text);
                return false;
            }
        };
        loaded.warnings.iter().for_each(|warning| self.log.warn(format_args!("{warning}")));
        if let Some(problem) = wrong {
            let text = format!("{cause}: TLS goes on as before, its files are not valid: {problem}");
            self.say(Level::Error, &text);
        }
        for (which, names) in
            [("a restart applies", OF_THE_START), ("SIGUSR2 or a restart applies", OF_THE_PROGRAM)]
        {
            let changed = changed(names, &self.config, &loaded.config);
            if !changed.is_empty() {
                self.log.warn(format_args!("changed, but only {which} it: {}", changed.join(", ")));
            }
        }
        let logs = changed(&["error-log", "access-log", "client-log"], &self.config, &loaded.config);
        if !logs.is_empty() {
            let names = logs.join(", ");
            self.log.warn(format_args!("changed for new workers; what the supervisor writes goes where it went until SIGUSR2 or a restart: {names}"));
        }
        if !changed(&["listen"], &self.config, &loaded.config).is_empty() {
            // New workers would look for sockets that are not there.
            let text = "no worker is replaced: the listeners are others (SIGUSR2 or a restart)";
            self.say(Level::Error, text);
            return false;
        }
        let before = self.config.workers.number();
        self.setup.files = loaded.gathered;
        self.workers.forget_changes();
        // The listeners have not changed, and only the old list knows the sockets that were passed.
        let listeners = std::mem::take(&mut self.checked.listeners);
        let checked = Checked { listeners, ..checked };
        (self.config, self.origins, self.checked) = (loaded.config, loaded.origins, checked);
        self.crew.set(settings(&self.config));
        self.certificates.read_again(&self.config, &self.origins, &self.log);
        self.forget_template();
        if self.config.workers.number() != before {
            self.set_count(self.config.workers.number(), cause, now);
        }
        true
    }

    /// Returns the TLS material of this configuration. The files are read again; if they are invalid, the known material stays, with the
    /// problem beside it.
    fn read_tls(
        &self,
        config: &Config,
        origins: &Origins,
    ) -> Result<(Option<Arc<Material>>, Option<Problem>), Problem> {
        let Some(known) = self.checked.tls.as_ref().filter(|_| tls::is_on(config)) else {
            return Material::read(config, origins, From::Disk).map(|tls| (tls, None));
        };
        match known.again(config, origins) {
            Ok(next) => Ok((Some(next), None)),
            Err(problem) => match known.as_before(config, origins) {
                Some(same) => Ok((Some(same), Some(problem))),
                None => Err(problem),
            },
        }
    }

    pub(super) fn upgrade(&mut self) {
        if self.successor.is_some() {
            return self.say(Level::Warning, "SIGUSR2: a new program is being started already");
        }
        if std::process::id() == 1 {
            let text =
                "SIGUSR2: this is process 1, with which its container ends; SIGHUP replaces the workers";
            return self.say(Level::Error, text);
        }
        let program = {
            let mut program = self.program.clone();
            program.command.push(AS_SUCCESSOR.into());
            program.environment = self.service.variables();
            program.command.extend(self.inputs.arguments.iter().map(OsString::from));
            program
        };
        let limit = self.config.workers.start_timeout;
        let hand_over = HandOver {
            listeners: &self.listeners,
            checked: &self.checked,
            acts: self.setup.acts,
            pid_file: self.service.pid_file(),
            tls: self.checked.tls.as_ref().map(|tls| tls.handed()),
            bell: &self.bell,
            clients: &self.clients,
        };
        self.workers.write_history();
        match Successor::start(&program, &hand_over, limit, self.sender.clone()) {
            Ok(successor) => {
                self.log.info(format_args!(
                    "SIGUSR2: a new program starts as process {}; this one serves until it is ready",
                    successor.pid()
                ));
                self.successor = Some(successor);
            }
            Err(error) => {
                self.say(Level::Error, &format!("SIGUSR2: the new program cannot be started: {error}"));
            }
        }
    }

    pub(super) fn succeeded(&mut self, outcome: Result<(), String>, now: Instant) {
        let Some(successor) = self.successor.take() else { return };
        match outcome {
            Ok(()) => {
                self.log.info(format_args!(
                    "process {} is ready and serves: this one drains and ends",
                    successor.pid()
                ));
                self.service.hands_over(successor.pid(), &self.log);
                // The successor waits for its lock.
                self.certificates.end();
                // The successor opens its doors when its channel is closed below.
                self.control = None;
                self.workers.leave_history();
                drop(successor);
                // The successor accepts the connections that wait.
                self.stand_in = None;
                self.crew.stop(EXIT_SUCCESS, now);
                self.listeners.disown_files();
                self.listeners = Sockets::default();
            }
            Err(why) => {
                successor.end();
                // A worker of the successor may have been woken for a connection that it did not accept.
                self.bell.ring();
                self.say(Level::Error, &format!("SIGUSR2: the new program {why}; this one serves on"));
            }
        }
    }

    /// Kills a successor that is not ready: it would go on after the end of this program.
    pub(super) fn end_successor(&mut self) {
        if let Some(successor) = self.successor.take() {
            successor.end();
        }
    }

    /// The doors of the predecessor are closed.
    pub(super) fn open_doors(&mut self) {
        if self.ending {
            return;
        }
        let opened = control::open_named(&self.config, &self.origins, None);
        let mut doors = opened.unwrap_or_else(|problem| {
            self.say(
                Level::Error,
                &format!("this program cannot be asked where the one before could: {problem}"),
            );
            Doors::default()
        });
        control::open_own(&self.config, &mut doors, &self.log);
        self.control = relay::start(&self.workers, doors, &self.log);
    }
}

/// Options that a process has for as long as it lives, and hands on to its successor.
const OF_THE_START: &[&str] = &["user", "group", "accept"];

/// Options whose values are the supervisor's own.
const OF_THE_PROGRAM: &[&str] =
    &["listen", "control", "admin", "admin-token-file", "chdir", "pid-file", "hooks", "history"];

/// The names of options whose values differ.
fn changed<'a>(names: &[&'a str], before: &Config, after: &Config) -> Vec<&'a str> {
    let differs =
        |name: &str| options::find(name).is_some_and(|option| option.show(before) != option.show(after));
    names.iter().copied().filter(|name| differs(name)).collect()
}
