//! Workers that are forked from a template, in the place of being started (`preload`).
//!
//! A template is started with the first worker that needs one, and at SIGHUP; workers wait for it. The end of a template ends no worker: the
//! next start of a worker starts a new template.

use std::time::Instant;

use maitred_io::child;
use maitred_supervise::{Exit, WorkerId};

use super::Supervisor;
use super::template::{self, Template};

/// The current template, and the workers that wait for it.
#[derive(Default)]
pub(super) struct Preload {
    pub(super) template: Option<Template>,
    /// Workers that are started when the template is ready.
    waiting: Vec<(WorkerId, usize)>,
    /// Orphans become children of this process, from the first template on.
    pub(super) adopts: bool,
    last: u64,
}

impl Supervisor {
    /// Whether workers are forked: the option is set, and there is an application to share.
    pub(super) fn preloads(&self) -> bool {
        self.config.workers.preload && self.checked.programs().next().is_some()
    }

    /// Whether this worker waits for a template, or has failed to start because none can be started.
    pub(super) fn awaits_template(&mut self, worker: WorkerId, number: usize) -> bool {
        if !self.preloads() || self.preload.template.as_ref().is_some_and(|template| template.is_ready) {
            return false;
        }
        if self.preload.template.is_none() {
            self.preload.last += 1;
            let mut program = self.program.clone();
            program.command.extend(template::arguments(&self.inputs));
            let adopts = child::adopt_orphans();
            self.preload.adopts |= adopts.is_ok();
            let started =
                adopts.and_then(|()| Template::start(self.preload.last, &program, &self.setup, &self.sender));
            match started {
                Ok(template) => self.preload.template = Some(template),
                Err(error) => {
                    let cause = format!("the process that preloads cannot be started: {error}");
                    self.crew.handle_exit(worker, Exit::Code(1), Some(&cause), Instant::now());
                    return true;
                }
            }
        }
        self.preload.waiting.push((worker, number));
        true
    }

    /// Handles news of a template: it is ready, or it has ended for this reason.
    pub(super) fn hear_template(&mut self, number: u64, outcome: Result<(), String>, now: Instant) {
        let Some(template) = self.preload.template.as_mut().filter(|template| template.number == number)
        else {
            return;
        };
        match outcome {
            Ok(()) => {
                template.is_ready = true;
                self.log.info(format_args!(
                    "the application is preloaded: workers are forked from process {}",
                    template.pid()
                ));
                for (worker, number) in std::mem::take(&mut self.preload.waiting) {
                    self.start(worker, number);
                }
            }
            Err(cause) => {
                if template.is_ready {
                    self.log.warn(format_args!("{cause}; the next worker has a new one"));
                }
                self.preload.template = None;
                for (worker, _) in std::mem::take(&mut self.preload.waiting) {
                    self.crew.handle_exit(worker, Exit::Code(2), Some(&cause), now);
                }
            }
        }
    }

    /// Ends the start of a worker that waits for a template, and is not wanted any more or has waited too long.
    pub(super) fn end_waiting(&mut self, worker: WorkerId, exit: Exit) {
        let Some(at) = self.preload.waiting.iter().position(|(waiting, _)| *waiting == worker) else {
            return;
        };
        self.preload.waiting.remove(at);
        if self.preload.waiting.is_empty() {
            self.preload.template = None;
        }
        self.crew.handle_exit(worker, exit, None, Instant::now());
    }

    /// Drops the template, so that workers load the application anew. Waiting workers wait for the next template.
    pub(super) fn forget_template(&mut self) {
        self.preload.template = None;
        for (worker, number) in std::mem::take(&mut self.preload.waiting) {
            self.start(worker, number);
        }
    }

    /// Whether this process is the template or the successor: children that are no workers, and no orphans to reap.
    pub(super) fn is_own_program(&self, pid: u32) -> bool {
        self.preload.template.as_ref().is_some_and(|template| template.pid() == pid)
            || self.successor.as_ref().is_some_and(|successor| successor.pid() == pid)
    }
}
