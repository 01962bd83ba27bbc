//! The listening sockets of a server of several processes whose workers have queues of their own (SO_REUSEPORT): all of them stay
//! open in the process that supervises, so that no queue is ever closed with connections in it.
//!
//! ```text
//! worker i starts, or a successor:   descriptors(i)
//! worker i is gone, and comes again: its queue waits for the successor; steer() leads new connections past it meanwhile
//! there are fewer workers:           steer() first; another worker empties the queues of those that are gone (Server::empty)
//! there are more:                    descriptors(i), and steer() when it accepts
//! ```
//! Sockets for the most workers that there may be are made at the start: after rights are given up none can be added, since all of a
//! group have to be those of one user, and one that nobody is led to costs a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use maitred_io::listener::{Address, BindError, Listener, ReusePortGroup};

use crate::settings::ListenerSettings;

/// The sockets of each listener.
enum Sockets {
    /// One for each worker.
    Group(ReusePortGroup),
    /// One that all share: a Unix socket.
    Shared(Listener),
}

impl Sockets {
    /// That of the worker with this number.
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

/// See the module text. Dropped they are closed, and the files of Unix sockets removed.
pub struct WorkerListeners {
    listeners: Vec<Sockets>,
    most: usize,
}

impl WorkerListeners {
    /// Listens at all of them, in this order, for up to `most` workers. Connections are led to the first worker until
    /// [`steer`](Self::steer) says otherwise.
    ///
    /// # Errors
    /// This one cannot be listened on; none is.
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

    /// Takes the sockets that another process has bound so, as [`all_descriptors`](Self::all_descriptors) has them there. The files
    /// of Unix sockets are these listeners' from now on.
    ///
    /// # Errors
    /// This one has other sockets than there should be; all are closed here, and go on where else they are open.
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

    /// The addresses listened on, with the ports that the system chose.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.listeners.iter().filter_map(|sockets| match sockets {
            Sockets::Group(group) => group.address(),
            Sockets::Shared(listener) => Some(listener.address()),
        })
    }

    /// The most workers that have sockets.
    pub fn most(&self) -> usize {
        self.most
    }

    /// The sockets of the worker with this number, from 0 on, in the order of the listeners, to be handed to it; none if there are
    /// not as many.
    pub fn descriptors(&self, worker: usize) -> Option<Vec<BorrowedFd<'_>>> {
        (worker < self.most).then(|| self.listeners.iter().filter_map(|sockets| sockets.of(worker)).collect())
    }

    /// Those of them that no other worker accepts from, with the numbers of their listeners: what another worker
    /// [empties](crate::Server::empty) when this one is gone for good, once [`steer`](Self::steer) does not name it any more. A
    /// connection that began before that may come a moment later, so it is done again after some seconds.
    pub fn own_descriptors(&self, worker: usize) -> impl Iterator<Item = (usize, BorrowedFd<'_>)> {
        self.listeners.iter().enumerate().filter_map(move |(number, sockets)| match sockets {
            Sockets::Group(group) => Some((number, group.descriptor(worker)?)),
            Sockets::Shared(_) => None,
        })
    }

    /// All sockets by listener, to be handed to a process that takes over.
    pub fn all_descriptors(&self) -> Vec<Vec<BorrowedFd<'_>>> {
        self.listeners.iter().map(Sockets::all).collect()
    }

    /// Leads connections that begin from now on to the workers with these numbers: those that accept.
    ///
    /// # Errors
    /// None is named, or one that has no sockets.
    pub fn steer(&self, present: &[usize]) -> io::Result<()> {
        self.listeners.iter().try_for_each(|sockets| match sockets {
            Sockets::Group(group) => group.steer(present),
            Sockets::Shared(_) => Ok(()),
        })
    }

    /// The files of Unix sockets stay at the end of these: another process has the sockets, and will remove them.
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
                // Who ends has said what there is to say. The next server replaces the file.
                let _ = listener.remove_file();
            }
        }
    }
}
