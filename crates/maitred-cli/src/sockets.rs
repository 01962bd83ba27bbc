//! Sockets that listen before there is a server: one for each listener, or, of several workers with `accept = "reuseport"`, one for each worker.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use maitred_server::listening::Address;
use maitred_server::{BoundListeners, WorkerListeners};

use crate::config::Config;
use crate::listeners;
use crate::origins::Origins;
use crate::problem::Problem;
use crate::validation::Checked;
use crate::value::AcceptModel;

/// Beyond the workers that are configured so many can be added while the server runs: a group of sockets cannot grow later.
const SPARE: usize = 8;

/// What another process has handed over, or a service manager passed: of each listener its sockets, none where it is to listen itself.
pub(crate) type Handed = Vec<Vec<OwnedFd>>;

/// See the module text.
pub(crate) enum Sockets {
    /// All processes accept from the same ones.
    Shared(BoundListeners),
    /// Each worker accepts from its own.
    Own(WorkerListeners),
}

impl Sockets {
    /// Listens as the configuration says it, where nothing has been handed over.
    pub(crate) fn bind(
        config: &Config,
        checked: &Checked,
        origins: &Origins,
        handed: Handed,
    ) -> Result<Self, Problem> {
        let workers = config.workers.number();
        if config.workers.accept == AcceptModel::Reuseport && workers > 1 {
            let settings = listeners::owned_settings(checked);
            let own = if handed.iter().all(Vec::is_empty) {
                WorkerListeners::bind(&settings, workers + SPARE)
            } else {
                WorkerListeners::adopt(handed, &settings)
            };
            let own = own.map_err(|(address, error)| listeners::not_bound(&address, &error, origins));
            return own.map(Self::Own);
        }
        let sockets = handed.into_iter().map(|sockets| match <[OwnedFd; 1]>::try_from(sockets) {
            Ok([socket]) => Ok(Some(socket)),
            Err(sockets) if sockets.is_empty() => Ok(None),
            Err(_) => Err(Problem::new(
                origins.describe("accept"),
                "the program before had a socket for each worker",
                "change accept with a restart, not with SIGUSR2",
            )),
        });
        let sockets = sockets.collect::<Result<_, Problem>>()?;
        listeners::bind(checked, origins, sockets).map(Self::Shared)
    }

    /// Those of the only process.
    pub(crate) fn into_shared(self) -> BoundListeners {
        match self {
            Self::Shared(listeners) => listeners,
            // There is none with one process.
            Self::Own(_) => BoundListeners::default(),
        }
    }

    /// Whether each worker has its own.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// The addresses listened on, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> Vec<Address> {
        match self {
            Self::Shared(listeners) => listeners.addresses().cloned().collect(),
            Self::Own(listeners) => listeners.addresses().cloned().collect(),
        }
    }

    /// Those of the worker with this number, from 1 on; none if it cannot have any.
    pub(crate) fn of_worker(&self, number: usize) -> Option<Vec<BorrowedFd<'_>>> {
        match self {
            Self::Shared(listeners) => Some(listeners.descriptors().collect()),
            Self::Own(listeners) => listeners.descriptors(number.checked_sub(1)?),
        }
    }

    /// Those that only the worker with this number accepts from, with the numbers of their listeners.
    pub(crate) fn only_of_worker(&self, number: usize) -> Vec<(usize, BorrowedFd<'_>)> {
        match self {
            Self::Shared(_) => Vec::new(),
            Self::Own(listeners) => listeners.own_descriptors(number.saturating_sub(1)).collect(),
        }
    }

    /// The most workers that can have sockets; none for any number.
    pub(crate) fn most_workers(&self) -> Option<usize> {
        match self {
            Self::Shared(_) => None,
            Self::Own(listeners) => Some(listeners.most()),
        }
    }

    /// Leads new connections to the workers with these numbers, if each has its own; to the first one if there is none.
    pub(crate) fn steer(&self, present: &[usize]) -> io::Result<()> {
        match self {
            Self::Shared(_) => Ok(()),
            Self::Own(listeners) if present.is_empty() => listeners.steer(&[0]),
            Self::Own(listeners) => {
                let present: Vec<usize> = present.iter().map(|number| number.saturating_sub(1)).collect();
                listeners.steer(&present)
            }
        }
    }

    /// All of them by listener, for a process that takes over.
    pub(crate) fn all(&self) -> Vec<Vec<BorrowedFd<'_>>> {
        match self {
            Self::Shared(listeners) => listeners.descriptors().map(|socket| vec![socket]).collect(),
            Self::Own(listeners) => listeners.all_descriptors(),
        }
    }

    /// The files of Unix sockets are removed with these from now on, but for those that `is_own` denies.
    pub(crate) fn own_files(&mut self, is_own: impl Fn(usize) -> bool) {
        match self {
            Self::Shared(listeners) => listeners.own_files(is_own),
            // They are when they are adopted.
            Self::Own(_) => {}
        }
    }

    /// The files of Unix sockets stay: another process has the sockets.
    pub(crate) fn disown_files(&mut self) {
        match self {
            Self::Shared(listeners) => listeners.disown_files(),
            Self::Own(listeners) => listeners.disown_files(),
        }
    }
}

impl Default for Sockets {
    /// None.
    fn default() -> Self {
        Self::Shared(BoundListeners::default())
    }
}
