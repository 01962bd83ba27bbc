//! Who makes application threads. A language that must own its threads brings its own host.

use std::io;
use std::sync::Arc;

use crate::event_loop::EventLoop;

/// What an application thread does until the server ends it.
pub type ThreadBody = Box<dyn FnOnce() + Send + 'static>;

/// Makes application threads. `spawn` may return before the thread runs, and must not wait for
/// application code: it is called by the thread that polls.
pub trait ThreadHost: Send + Sync + 'static {
    /// Starts a thread with this name that runs `body` once.
    ///
    /// # Errors
    /// When the thread cannot be made; `body` is dropped then.
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()>;

    /// Whether only one of these threads can run application code at a time, because the language's
    /// interpreter is one lock. The server then lets one thread run request after request and others
    /// take over when it waits for something.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// The lock of that interpreter, as other threads can look at it. `None` where that is not known: then the server lets
    /// threads run side by side.
    fn interpreter_lock(&self) -> Option<Arc<dyn InterpreterLock>> {
        None
    }

    /// Calls `act`, on a thread of this host, with the interpreter held all the time: what would take it for each
    /// request needs not take it. Not called where `act` could wait.
    fn with_interpreter(&self, act: &mut dyn FnMut()) {
        act();
    }

    /// Calls `act`, which may wait for a disk, with the interpreter released if this thread holds it. `act` calls
    /// no application code.
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
    /// Its name in the language.
    pub name: String,
    /// What else there is to say of it, or why there is no stack.
    pub state: String,
    /// The innermost call last. A frame may have several lines.
    pub frames: Vec<String>,
}

/// Plain operating-system threads, for native handlers.
#[derive(Debug, Default)]
pub struct NativeThreads;

impl ThreadHost for NativeThreads {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        std::thread::Builder::new().name(name).spawn(body).map(drop)
    }
}
