//! Sockets that listen before there is a server: one for each listener, or, of several workers with `accept = "reuseport"`, one for each worker.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use maitred_config::value::AcceptModel;
use maitred_config::{Checked, Config, Origins, Problem};
use maitred_server::listening::Address;
use maitred_server::{BoundListeners, WorkerListeners};

use crate::listeners;

/// Most workers that can be added while the server runs: a group of sockets cannot grow later.
const SPARE: usize = 8;

/// Sockets from another process or a service manager, by listener. A listener without any is bound here.
pub(crate) type Handed = Vec<Vec<OwnedFd>>;

/// See the module text.
pub(crate) enum Sockets {
    /// All processes accept from the same sockets.
    Shared(BoundListeners),
    /// Each worker accepts from its own sockets.
    Own(WorkerListeners),
}

impl Sockets {
    /// Binds the configured listeners, except those whose sockets have been handed over.
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

    /// The sockets of the only process.
    pub(crate) fn into_shared(self) -> BoundListeners {
        match self {
            Self::Shared(listeners) => listeners,
            // One process has no group of sockets.
            Self::Own(_) => BoundListeners::default(),
        }
    }

    /// Whether each worker has its own sockets.
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

    /// The sockets of the worker with this number, from 1 on; none if the group has no sockets for this worker.
    pub(crate) fn of_worker(&self, number: usize) -> Option<Vec<BorrowedFd<'_>>> {
        match self {
            Self::Shared(listeners) => Some(listeners.descriptors().collect()),
            Self::Own(listeners) => listeners.descriptors(number.checked_sub(1)?),
        }
    }

    /// The sockets from which only the worker with this number accepts, with the numbers of their listeners.
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

    /// Leads new connections to the workers with these numbers, if each worker has its own sockets; to the first worker if `present` is empty.
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

    /// All sockets by listener, for a process that takes over.
    pub(crate) fn all(&self) -> Vec<Vec<BorrowedFd<'_>>> {
        match self {
            Self::Shared(listeners) => listeners.descriptors().map(|socket| vec![socket]).collect(),
            Self::Own(listeners) => listeners.all_descriptors(),
        }
    }

    /// Removes the files of Unix sockets with these sockets from now on, except files that `is_own` denies.
    pub(crate) fn own_files(&mut self, is_own: impl Fn(usize) -> bool) {
        match self {
            Self::Shared(listeners) => listeners.own_files(is_own),
            // Adopted sockets own their files from the start.
            Self::Own(_) => {}
        }
    }

    /// Leaves the files of Unix sockets to another process, which has the sockets.
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
