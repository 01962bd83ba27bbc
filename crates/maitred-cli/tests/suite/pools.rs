//! Pools and the host: the number of threads that the host gets, and an application without threads.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex};

use maitred_cli::main;
use maitred_config::output::{EXIT_FAILURE, EXIT_USAGE};
use maitred_process::host::{Application, ApplicationSpec, Host, LoadError, Signals};
use maitred_runtime::{Exchange, NativeThreads};

/// A host that notes the specification of the application. The server never serves, since this host has no signals.
struct Recording {
    event_loop: bool,
    max_threads: Mutex<Vec<usize>>,
}

impl Host for Recording {
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        self.max_threads.lock().unwrap().push(spec.max_threads);
        Ok(Application {
            handler: Arc::new(|exchange: Exchange| drop(exchange)),
            threads: Arc::new(NativeThreads::new(|_| {})),
            description: "an application".to_owned(),
            runs_on: self.event_loop.then(|| "one event loop".to_owned()),
        })
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Err(io::Error::other("there are none"))
    }

    fn languages(&self) -> &'static str {
        "none"
    }
}

/// Returns the exit code, and the numbers of threads that the host got.
fn run(event_loop: bool, arguments: &[&str]) -> (u8, Vec<usize>) {
    let host = Recording { event_loop, max_threads: Mutex::default() };
    let line = ["maitred", "app:app", "--listen", "127.0.0.1:0"].iter().chain(arguments);
    let code = main(line.map(OsString::from).collect(), &host);
    (code, host.max_threads.into_inner().unwrap())
}

#[test]
fn the_host_is_told_of_the_threads_of_all_pools() {
    assert_eq!(run(false, &["--max-threads=1"]), (EXIT_FAILURE, vec![1]));
    let pools = ["--max-threads=3", "--pool=a,max-threads=2,path=/a", "--pool=b,path=/b"];
    assert_eq!(run(false, &pools), (EXIT_FAILURE, vec![15]));
}

#[test]
fn an_application_on_an_event_loop_is_refused_pools() {
    assert_eq!(run(true, &["--max-threads=1"]), (EXIT_FAILURE, vec![1]));
    assert_eq!(run(true, &["--max-threads=1", "--pool=a,max-threads=2,path=/a"]), (EXIT_USAGE, vec![3]));
}
