//! The part that a process has among the processes of a server.

use std::ops::ControlFlow;

use maitred_config::{Inputs, Problem};

use crate::host::Host;
use crate::supervisor::{AS_SUCCESSOR, AS_TEMPLATE, AS_WORKER, Predecessor, Preloading, Worker};

/// The part of this process among the processes of a server.
pub struct Part(pub(crate) Kind);

pub(crate) enum Kind {
    /// The only process, or the supervisor.
    First,
    Worker(Worker),
    /// The supervisor that takes over from another one.
    Successor(Predecessor),
}

impl Part {
    /// Reads the part from the first argument and takes that argument out. Only a supervisor gives such arguments. A process from which workers
    /// are forked returns here as one of them, or with its exit code.
    ///
    /// # Errors
    /// The supervisor is gone, or the applications cannot be preloaded.
    pub fn of(inputs: &mut Inputs, host: &dyn Host) -> Result<ControlFlow<u8, Self>, Problem> {
        match inputs.arguments.first().map(String::as_str) {
            Some(AS_WORKER) => {
                inputs.arguments.remove(0);
                Self::worker(inputs)
            }
            Some(AS_TEMPLATE) => {
                inputs.arguments.remove(0);
                if let Some(code) = Preloading::join()?.run(inputs, host)? {
                    return Ok(ControlFlow::Break(code));
                }
                Self::worker(inputs)
            }
            Some(AS_SUCCESSOR) => {
                inputs.arguments.remove(0);
                Predecessor::join().map(|predecessor| Self(Kind::Successor(predecessor)))
            }
            _ => Ok(Self(Kind::First)),
        }
        .map(ControlFlow::Continue)
    }

    fn worker(inputs: &mut Inputs) -> Result<Self, Problem> {
        let worker = Worker::join()?;
        inputs.files = Some(worker.setup.files.clone());
        inputs.workers = Some(worker.setup.workers);
        Ok(Self(Kind::Worker(worker)))
    }

    /// Whether this process serves for a supervisor.
    pub fn is_worker(&self) -> bool {
        matches!(self.0, Kind::Worker(_))
    }

    /// In a worker, tells the supervisor why this process does not start.
    pub fn failed(&self, problem: &Problem) {
        if let Kind::Worker(worker) = &self.0 {
            worker.failed(problem);
        }
    }
}
