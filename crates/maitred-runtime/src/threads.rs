//! The maker of application threads. A language that must own its threads brings its own host, and a server has one for each language.

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::event_loop::EventLoop;
use crate::shortage::Shortage;

/// The work of an application thread until the server ends it.
pub type ThreadBody = Box<dyn FnOnce() + Send + 'static>;

/// Makes application threads. `spawn` may return before the thread runs, and must not wait for
/// application code: it is called by the thread that polls.
pub trait ThreadHost: Send + Sync + 'static {
    /// Starts a thread with this name that runs `body` once. A thread that the system refuses is tried again until it
    /// is made: the caller does not ask twice.
    ///
    /// # Errors
    /// The thread cannot be made now. A host whose threads another thread makes knows that at the start only.
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()>;

    /// The language of these threads, such as `Python`: handlers [of it](crate::Handler::language) are called on them. Empty: the
    /// threads have no language, and only handlers without one are called on them, where a server has several hosts.
    fn language(&self) -> &'static str {
        ""
    }

    /// Whether only one of these threads can run application code at a time, because the language's
    /// interpreter is one lock. The server then lets one thread of each of their pools run request after request and others
    /// take over when it waits for something. Threads of other hosts are not held up.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// The lock of that interpreter, as other threads can look at it. `None` where that is not known: then the server lets
    /// threads run side by side.
    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        None
    }

    /// Calls `act`, on a thread of this host, with the interpreter held all the time: code that would take it for each
    /// request need not do so. Not called where `act` could wait.
    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        act();
    }

    /// Calls `act`, which may wait for a disk, with the interpreter released if this thread holds it. `act` calls
    /// no application code. Called on threads of this host, those that the application has made, and threads of the engine.
    fn without_interpreter(&self, act: &mut dyn FnMut()) {
        act();
    }

    /// The stacks of threads that run application code: of the one with this number, or of all. `serving` are the
    /// numbers of the server's threads that are in it now. `None` where the language has none to show. Called by a thread of
    /// the engine; may wait some seconds, also while application code keeps the interpreter.
    fn stacks(&self, _only: Option<i32>, _serving: &[i32]) -> Option<Vec<ThreadStack>> {
        None
    }

    /// An event loop: it polls, and handlers that [run on it](crate::Handler::runs_on_event_loop) are called on its thread. The
    /// server asks for threads only if there are other handlers.
    fn event_loop(&self) -> Option<Arc<dyn EventLoop>> {
        None
    }
}

/// The lock of an interpreter, looked at by threads that do not take it.
pub trait InterpreterLock: Send + Sync {
    /// The thread that holds it, by its key; 0 while none does.
    fn holder(&self) -> u64;

    /// The key of the calling thread; 0 if the language does not know the thread.
    fn own(&self) -> u64;

    /// Whether a thread that sleeps in the system call of this number, with this first argument, waits for the lock.
    fn is_waited_for(&self, call: i64, argument: u64) -> bool;
}

/// Where a thread is in application code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStack {
    /// The system's number of the thread.
    pub tid: i32,
    /// The name of the thread in the language.
    pub name: String,
    /// Further notes on it, or why there is no stack.
    pub state: String,
    /// The innermost call last. A frame may have several lines.
    pub frames: Vec<String>,
}

/// A thread that was asked for, with its name.
type Wanted = (String, ThreadBody);

/// Plain operating-system threads, for native handlers.
pub struct NativeThreads {
    say: Arc<dyn Fn(&str) + Send + Sync>,
    /// The way to the thread that makes those that could not be made at once. That thread is there before the first
    /// one: later it might be refused, too.
    refused: Mutex<Option<Sender<Wanted>>>,
}

impl NativeThreads {
    /// A host without threads, which tells `say` when none can be made.
    pub fn new(say: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { say: Arc::new(say), refused: Mutex::default() }
    }

    fn refused(&self) -> io::Result<Sender<Wanted>> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(refused) = &*refused {
            return Ok(refused.clone());
        }
        let (sender, wanted) = mpsc::channel();
        let say = Arc::clone(&self.say);
        let again = move || make_refused(&wanted, make, thread::sleep, &*say);
        thread::Builder::new().name("maitred-maker".to_owned()).spawn(again)?;
        Ok(refused.insert(sender).clone())
    }
}

impl ThreadHost for NativeThreads {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        let refused = self.refused()?;
        make((name, body)).map_err(|(error, wanted)| {
            // Without a receiver when that thread has panicked.
            let _ = refused.send(wanted);
            error
        })
    }
}

/// Makes a thread, or gives back its name and body.
fn make((name, body): Wanted) -> Result<(), (io::Error, Wanted)> {
    // The body is kept here, too: if the thread cannot be made, its closure is dropped.
    let body = Arc::new(Mutex::new(Some(body)));
    let take = |body: &Mutex<Option<ThreadBody>>| body.lock().unwrap_or_else(PoisonError::into_inner).take();
    let own = Arc::clone(&body);
    let run = move || take(&own).into_iter().for_each(|body| body());
    match thread::Builder::new().name(name.clone()).spawn(run) {
        Ok(_) => Ok(()),
        Err(error) => take(&body).map_or(Ok(()), |body| Err((error, (name, body)))),
    }
}

/// Makes each thread that was refused, however long that takes.
fn make_refused(
    wanted: &Receiver<Wanted>,
    mut make: impl FnMut(Wanted) -> Result<(), (io::Error, Wanted)>,
    mut pause: impl FnMut(Duration),
    say: &dyn Fn(&str),
) {
    let mut shortage = Shortage::default();
    for mut next in wanted {
        while let Err((error, again)) = make(next) {
            let (moment, line) = shortage.fails(Instant::now(), &error);
            line.iter().for_each(|line| say(line));
            pause(moment);
            next = again;
        }
        shortage.ends(Instant::now()).iter().for_each(|line| say(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_refused_is_made_as_soon_as_it_can_be() {
        let (refused, wanted) = mpsc::channel::<Wanted>();
        let (ran, runs) = mpsc::channel();
        for number in 1..=2 {
            let ran = ran.clone();
            refused.send((format!("thread {number}"), Box::new(move || ran.send(number).unwrap()))).unwrap();
        }
        drop((refused, ran));
        let (mut refusals, mut pauses, said) = (3, Vec::new(), Mutex::new(Vec::new()));
        let attempt = |wanted| {
            if refusals > 0 {
                refusals -= 1;
                return Err((io::ErrorKind::WouldBlock.into(), wanted));
            }
            make(wanted)
        };
        let say = |line: &str| said.lock().unwrap().push(line.to_owned());
        make_refused(&wanted, attempt, |pause| pauses.push(pause.as_millis()), &say);
        let mut ran: Vec<i32> = runs.iter().collect();
        ran.sort_unstable();
        assert_eq!((ran, pauses), (vec![1, 2], vec![10, 20, 40]));
        let said = said.into_inner().unwrap();
        assert!(said[0].starts_with("cannot make an application thread: "), "{said:?}");
        assert!(said.len() == 2 && said[1].starts_with("application threads can be made again"), "{said:?}");
    }
}
