//! The hosts that make application threads: one for each language, each with pools of its own.
//!
//! Promises: a handler that may block is called on threads of its language only, whichever pool the rules say. Leaves out: handlers
//! that do not block, which the thread that read the request calls (`InvocationType`), the interpreters and their limiters
//! (maitred-dispatch), and the way a language is found (maitred-process).

use std::fmt;
use std::sync::Arc;

use maitred_dispatch::Locks;
use maitred_pool::PoolSettings;
use maitred_runtime::{Handler, InterpreterLock, ThreadHost};

use maitred_exchange::routes::Application;

/// The hosts, and the pools whose threads each of them makes.
#[derive(Default)]
pub(crate) struct ThreadHosts {
    all: Box<[Arc<dyn ThreadHost>]>,
    /// The number of each pool's host, the default pool first.
    of_pools: Box<[usize]>,
}

impl ThreadHosts {
    /// The hosts of these pools, the default one first.
    ///
    /// # Errors
    /// A pool names a host that does not exist, or the event loop of a host has no pool.
    pub(crate) fn new<'a>(
        all: Vec<Arc<dyn ThreadHost>>,
        pools: impl Iterator<Item = &'a PoolSettings>,
    ) -> Result<Self, HostMismatch> {
        let of_pools = pools
            .map(|pool| match pool.thread_host {
                number if number < all.len() => Ok(number),
                number => Err(HostMismatch::NoHost { pool: pool.name.clone(), number }),
            })
            .collect::<Result<Box<[usize]>, _>>()?;
        let polls = of_pools.first().copied().unwrap_or_default();
        for (_, host) in all.iter().enumerate().filter(|(number, _)| *number != polls) {
            if host.event_loop().is_some() {
                return Err(HostMismatch::LoopBeside { language: host.language() });
            }
        }
        Ok(Self { all: all.into(), of_pools })
    }

    /// Checks that each application has a pool.
    ///
    /// # Errors
    /// No pool has threads of the language of an application.
    pub(crate) fn check<'a>(
        &self,
        applications: impl Iterator<Item = &'a Application>,
    ) -> Result<(), HostMismatch> {
        for Application { handler, name, prefix } in applications {
            if !self.runs(&**handler, self.pool_for(&**handler, 0)) {
                let (prefix, name) = (format!("{prefix}/"), name.to_string());
                return Err(HostMismatch::NoPool { prefix, name, language: handler.language() });
            }
        }
        Ok(())
    }

    /// The number of the host of this pool.
    pub(crate) fn number_of(&self, pool: usize) -> usize {
        self.of_pools[pool]
    }

    /// The host of this pool.
    pub(crate) fn of(&self, pool: usize) -> &Arc<dyn ThreadHost> {
        &self.all[self.of_pools[pool]]
    }

    /// All hosts, by number.
    pub(crate) fn all(&self) -> &[Arc<dyn ThreadHost>] {
        &self.all
    }

    /// The locks of the interpreters, by the number of the host.
    pub(crate) fn locks(&self) -> Box<Locks> {
        self.all.iter().map(|host| host.interpreter_lock()).collect()
    }

    /// Whether a thread of an interpreter waits in this system call, with this first argument, for that interpreter.
    pub(crate) fn is_interpreter_waited_for(&self, call: i64, argument: u64) -> bool {
        let waits = |lock: Arc<dyn InterpreterLock>| lock.is_waited_for(call, argument);
        self.all.iter().filter_map(|host| host.interpreter_lock()).any(waits)
    }

    /// The pool that runs requests for this handler where the rules lead to `pool`: that one if its threads are of the language of the
    /// handler, else the first pool whose threads are.
    pub(crate) fn pool_for(&self, handler: &dyn Handler, pool: usize) -> usize {
        if self.runs(handler, pool) {
            return pool;
        }
        (0..self.of_pools.len()).find(|other| self.runs(handler, *other)).unwrap_or(pool)
    }

    /// Whether threads of this pool may call the handler. A single host makes threads for all.
    fn runs(&self, handler: &dyn Handler, pool: usize) -> bool {
        if self.all.len() == 1 {
            return true;
        }
        let language = handler.language();
        // A number of no pool stands for the one that rules would lead to.
        let Some(host) = self.of_pools.get(pool) else { return true };
        language.is_empty() || language == self.all[*host].language()
    }
}

/// Hosts, pools and applications that do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMismatch {
    /// A pool names a host that does not exist.
    NoHost {
        /// Name of the pool.
        pool: String,
        /// The number that it names.
        number: usize,
    },
    /// No pool has threads of the language of an application.
    NoPool {
        /// Prefix of the application, with a slash at the end.
        prefix: String,
        /// Description of the application; may be empty.
        name: String,
        /// The language.
        language: &'static str,
    },
    /// A host has an event loop, and the default pool is another host's.
    LoopBeside {
        /// The language of the loop.
        language: &'static str,
    },
}

impl fmt::Display for HostMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoHost { pool, number } => {
                write!(f, "pool {pool}: no host of threads has the number {number}")
            }
            Self::NoPool { prefix, name, language } => {
                let of = if name.is_empty() { String::new() } else { format!(" ({name})") };
                write!(
                    f,
                    "the application at {prefix}{of} needs threads of {language}, and no pool has such threads"
                )
            }
            Self::LoopBeside { language } => {
                write!(f, "the event loop of {language} needs the default pool, which is another language's")
            }
        }
    }
}

impl std::error::Error for HostMismatch {}
