//! The interpreter's lock as other threads see it, on the version of Python that the tests are built for.

use std::sync::{Arc, mpsc};
use std::thread;

use _engine::PythonThreads;
use maitred_io::thread_state::{Doing, ThreadState};
use maitred_runtime::{InterpreterLock, ThreadHost};
use pyo3::prelude::*;

fn lock() -> Arc<dyn InterpreterLock> {
    Python::initialize();
    let host = PythonThreads::new(Arc::new(|_: &str| {})).expect("descriptors are left");
    host.interpreter_lock().expect("its place is found")
}

#[test]
fn a_thread_that_holds_the_interpreter_and_one_that_wants_it_are_seen() {
    let lock = lock();
    let (tell, told) = mpsc::channel();
    let asks = {
        let lock = Arc::clone(&lock);
        move || {
            tell.send(ThreadState::own()).expect("the other thread waits for it");
            Python::attach(|_| assert_eq!(lock.holder(), lock.own()));
        }
    };
    Python::attach(|py| {
        let own = lock.own();
        assert_ne!(own, 0);
        assert_eq!(lock.holder(), own);
        let asking = thread::spawn(asks);
        let state = told.recv().expect("it has begun");
        // A thread that is never seen to wait makes the test hang.
        while !matches!(state.now(), Doing::Sleeps { call, argument } if lock.is_waited_for(call, argument)) {
            assert_eq!(lock.holder(), own, "it is not given up");
        }
        py.detach(|| {
            asking.join().expect("it has had the interpreter");
            assert_ne!(lock.holder(), own);
        });
        assert_eq!(lock.holder(), own);
    });
    assert!(!lock.is_waited_for(-1, 0));
}
