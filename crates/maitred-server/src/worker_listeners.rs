//! The listening sockets of a server whose worker processes have queues of their own (SO_REUSEPORT): all sockets stay
//! open in the supervisor, so that no queue is ever closed with connections in it.
//!
//! ```text
//! worker i starts, or a successor:   descriptors(i)
//! worker i is gone, and comes again: its queue waits for the successor; steer() leads new connections past it meanwhile
//! there are fewer workers:           steer() first; another worker empties the queues of those that are gone (Server::empty)
//! there are more:                    descriptors(i), and steer() when it accepts
//! ```
//! Sockets for the largest number of workers are made at the start: after the process has given up rights none can be
//! added, since all sockets of a group must belong to one user. A socket without connections costs one descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use maitred_io::listener::{Address, BindError, Listener, ReusePortGroup};

use crate::listener::ListenerSettings;

/// The sockets of each listener.
enum Sockets {
    /// One socket for each worker.
    Group(ReusePortGroup),
    /// One socket that all workers share: a Unix socket.
    Shared(Listener),
}

impl Sockets {
    /// The socket of the worker with this number.
    fn of(&self, worker: usize) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Group(group) => group.descriptor(worker),
            Self::Shared(listener) => Some(listener.as_fd()),
        }
    }

    fn all(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Group(group) => group.sockets().iter().map(AsFd::as_fd).collect(),
            Self::Shared(listener) => vec![listener.as_fd()],
        }
    }
}

/// Listening sockets of workers; see the module text. The drop closes them and removes the files of Unix sockets.
pub struct WorkerListeners {
    listeners: Vec<Sockets>,
    most: usize,
}

impl WorkerListeners {
    /// Binds all listeners, in this order, for up to `most` workers. Connections go to the first worker until a call
    /// of [`steer`](Self::steer).
    ///
    /// # Errors
    /// Listening failed on this address; no socket stays bound.
    pub fn bind(settings: &[ListenerSettings], most: usize) -> Result<Self, (Address, BindError)> {
        let mut bound = Self { listeners: Vec::with_capacity(settings.len()), most };
        for ListenerSettings { address, options, .. } in settings {
            let sockets = match address {
                Address::Tcp(_) => ReusePortGroup::bind(address, options, most).map(Sockets::Group),
                Address::Unix(_) => Listener::bind(address, options).map(Sockets::Shared),
            };
            bound.listeners.push(sockets.map_err(|error| (address.clone(), error))?);
        }
        bound.steer_first()
    }

    /// Takes sockets that another process has bound in this way, as in its
    /// [`all_descriptors`](Self::all_descriptors). These listeners remove the files of Unix sockets from now on.
    ///
    /// # Errors
    /// The address whose sockets differ from the settings; all sockets are closed here, and go on in other processes
    /// that have them open.
    pub fn adopt(
        sockets: Vec<Vec<OwnedFd>>,
        settings: &[ListenerSettings],
    ) -> Result<Self, (Address, BindError)> {
        let most = sockets.iter().map(Vec::len).max().unwrap_or(1);
        let mut adopted = Self { listeners: Vec::with_capacity(settings.len()), most };
        let mut sockets = sockets.into_iter();
        for ListenerSettings { address, options, .. } in settings {
            let own = sockets.next().unwrap_or_default();
            let count = own.len();
            let listener = match address {
                Address::Tcp(_) if count == most => {
                    ReusePortGroup::adopt(own, address, options).map(Sockets::Group)
                }
                Address::Unix(_) if count == 1 => own
                    .into_iter()
                    .map(|socket| Listener::adopt(socket, address, options))
                    .collect::<Result<Vec<_>, _>>()
                    .map(|mut one| {
                        let mut listener = one.remove(0);
                        listener.own_file();
                        Sockets::Shared(listener)
                    }),
                _ => {
                    let what = format!("{count} sockets are handed over for {address}, for {most} workers");
                    let remedy = "hand over all that the other process has, in their order, or none";
                    Err(BindError::new(io::ErrorKind::InvalidInput, what, remedy))
                }
            };
            adopted.listeners.push(listener.map_err(|error| (address.clone(), error))?);
        }
        Ok(adopted)
    }

    fn steer_first(self) -> Result<Self, (Address, BindError)> {
        match self.steer(&[0]) {
            Ok(()) => Ok(self),
            Err(error) => {
                let address = self.addresses().next().cloned().unwrap_or(Address::Tcp(([0; 4], 0).into()));
                let what =
                    format!("cannot lead connections to one of several sockets at {address} ({error})");
                Err((address, BindError::new(error.kind(), what, "let the workers share one socket")))
            }
        }
    }

    /// The addresses of the listeners, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().filter_map(|sockets| match sockets {
            Sockets::Group(group) => group.address(),
            Sockets::Shared(listener) => Some(listener.address()),
        })
    }

    /// The largest number of workers.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The sockets of the worker with this number, from 0 on, in the order of the listeners, for that worker; none if
    /// there are fewer workers.
    pub fn descriptors(&self, worker: usize) -> Option<Vec<BorrowedFd<'_>>> {
        (worker < self.most).then(|| self.listeners.iter().filter_map(|sockets| sockets.of(worker)).collect())
    }

    /// The sockets that only this worker accepts from, with the numbers of their listeners. Another worker
    /// [empties](crate::Server::empty) them when this one is gone for good, once [`steer`](Self::steer) does not name
    /// it any more. A connection that began before that may come a moment later, so the call is repeated after some
    /// seconds.
    pub fn own_descriptors(&self, worker: usize) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.listeners.iter().enumerate().filter_map(move |(number, sockets)| match sockets {
            Sockets::Group(group) => Some((number, group.descriptor(worker)?)),
            Sockets::Shared(_) => None,
        })
    }

    /// All sockets by listener, for a process that takes over.
    pub fn all_descriptors(&self) -> Vec<Vec<BorrowedFd<'_>>> {
        self.listeners.iter().map(Sockets::all).collect()
    }

    /// Leads connections that begin from now on to the workers with these numbers, which accept.
    ///
    /// # Errors
    /// The list is empty, or names a worker without sockets.
    pub fn steer(&self, present: &[usize]) -> io::Result<()> {
        self.listeners.iter().try_for_each(|sockets| match sockets {
            Sockets::Group(group) => group.steer(present),
            Sockets::Shared(_) => Ok(()),
        })
    }

    /// Leaves the files of Unix sockets in place: another process has the sockets, and will remove the files.
    pub fn disown_files(&mut self) {
        for sockets in &mut self.listeners {
            if let Sockets::Shared(listener) = sockets {
                listener.disown_file();
            }
        }
    }
}

impl Drop for WorkerListeners {
    fn drop(&mut self) {
        for sockets in &self.listeners {
            if let Sockets::Shared(listener) = sockets {
                // A process that ends reports no error of this. The next server replaces the file.
                let _ = listener.remove_file();
            }
        }
    }
}
