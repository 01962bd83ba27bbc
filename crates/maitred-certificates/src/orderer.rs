//! The thread that orders certificates.
//!
//! ```text
//! waits for the lock --free--> works <--new wishes--
//!        `------------------------`--dropped--> ends, within a moment (entries of the DNS: some seconds)
//! ```
//! One process of a folder works; the others wait for the lock, and read what that one has ordered.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use maitred_log::{Level, Log};

use crate::Lock;
use crate::state::{Fault, State};
use crate::wishes::Wishes;
use crate::work::Work;
use crate::world::{Outside, Stop};

/// Time between two looks at the lock that another process has, or at a folder that cannot be used.
const LOOK: Duration = Duration::from_secs(5);

/// Seconds between two looks at the wishes of clients and operators.
const LOOK_AT_WISHES: u64 = 1;

/// Looks between two lines about the same: a day.
const LOOKS_TOLD: u32 = 24 * 60 * 60 / 5;

/// Looks until the process with the lock has begun to order all of its names: five minutes.
const LOOKS_UNTIL_BEGUN: u32 = 5 * 60 / 5;

/// An orderer. Dropping this ends the thread.
#[derive(Debug)]
pub struct Orderer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    wishes: Mutex<Wishes>,
    changed: Condvar,
    stop: Stop,
}

impl Orderer {
    /// Begins to order.
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(wishes: Wishes, log: &Arc<Log>) -> io::Result<Self> {
        let shared =
            Arc::new(Shared { wishes: Mutex::new(wishes), changed: Condvar::new(), stop: Stop::default() });
        let (own, log) = (Arc::clone(&shared), Arc::clone(log));
        let thread = thread::Builder::new().name("maitred-acme".to_owned()).spawn(move || own.run(&log))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Changes what is wished.
    pub fn set(&self, wishes: Wishes) {
        *self.shared.wishes() = wishes;
        self.shared.changed.notify_all();
    }
}

impl Drop for Orderer {
    fn drop(&mut self) {
        {
            let _wishes = self.shared.wishes();
            self.shared.stop.set();
        }
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// The reasons why the process with the lock orders no certificates for names of this process. Such names get a fault.
pub(crate) fn warnings(wishes: &Wishes) -> Vec<String> {
    let folder = &wishes.folder;
    let has_directory = |name: &String| folder.state(name).is_some_and(|state| !state.directory.is_empty());
    let unknown: Vec<&String> = wishes.names.iter().filter(|name| !has_directory(name)).collect();
    let gone = folder.gone_holder().map(|pid| {
        let shown = folder.path().display();
        format!("process {pid}, which has ordered certificates in {shown}, has ended, and a process that it has begun keeps its lock; end that one (fuser {shown}/lock)")
    });
    if gone.is_some() || unknown.is_empty() {
        return gone.into_iter().collect();
    }
    let text = format!(
        "another process orders certificates in {}, and not for this name; give each server a folder of its own (acme-folder), \
         or all of them the same names",
        folder.path().display()
    );
    let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    for name in &unknown {
        // Without a directory: the first orderer of the name begins anew.
        let state = State { fault: Some(Fault { at, text: text.clone() }), ..State::default() };
        let _ = folder.save_state(name, &state);
    }
    unknown.iter().map(|name| format!("{name}: {text}")).collect()
}

impl Shared {
    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, log: &Arc<Log>) {
        while !self.stop.is_set() {
            let wishes = self.wishes().clone();
            if let Some(lock) = self.wait_for_lock(&wishes, log) {
                self.work(wishes, log);
                drop(lock);
            }
        }
    }

    /// Waits until this process may order; none if the wishes are others before, or the server ends.
    fn wait_for_lock(&self, wishes: &Wishes, log: &Log) -> Option<Lock> {
        let mut looks = 0;
        loop {
            match wishes.folder.prepare().and_then(|()| wishes.folder.lock()) {
                Ok(Some(lock)) => return Some(lock),
                Ok(None) if looks == 0 => log.info(format_args!(
                    "acme: another process orders certificates for {}; this one uses them",
                    wishes.folder.path().display()
                )),
                Err(error) if looks % LOOKS_TOLD == 0 => log.error(format_args!(
                    "acme: the folder {} cannot be used: {error}; no certificate is ordered until this user can write there",
                    wishes.folder.path().display()
                )),
                Ok(None) if looks % LOOKS_TOLD == LOOKS_UNTIL_BEGUN => {
                    warnings(wishes).iter().for_each(|line| log.warn(format_args!("acme: {line}")));
                }
                _ => {}
            }
            looks += 1;
            if self.wait(wishes, LOOK) {
                return None;
            }
        }
    }

    /// Orders until the server ends, or the wishes are for another folder or authority.
    fn work(&self, mut wishes: Wishes, log: &Arc<Log>) {
        let world = Outside::new(wishes.authorities.as_deref(), &self.stop);
        let own = Arc::clone(log);
        let say = Box::new(move |level: Level, text: &str| own.write(level, format_args!("{text}")));
        let mut work = Work::new(wishes.clone(), world, say, LOOK_AT_WISHES);
        loop {
            let wait = work.turn();
            if self.wait(&wishes, wait) {
                let next = self.wishes().clone();
                let same = next.folder == wishes.folder && next.authorities == wishes.authorities;
                if !same || self.stop.is_set() {
                    return work.remove_dns();
                }
                work.set(next.clone());
                wishes = next;
            }
        }
    }

    /// Waits, and returns whether the wishes are others now, or the server ends.
    fn wait(&self, known: &Wishes, limit: Duration) -> bool {
        let guard = self.wishes();
        let is_same = |wishes: &mut Wishes| *wishes == *known && !self.stop.is_set();
        let waited = self.changed.wait_timeout_while(guard, limit, is_same);
        let (mut wishes, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_same(&mut wishes)
    }
}
