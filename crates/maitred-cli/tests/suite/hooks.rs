//! Hooks of a Rust program, beside an application that never serves.

use std::ffi::OsString;
use std::io;
use std::sync::{Arc, Mutex};

use maitred_cli::main;
use maitred_config::output::{EXIT_FAILURE, EXIT_USAGE};
use maitred_process::host::{Application, ApplicationSpec, Hooks, HooksSpec, Host, LoadError, Signals};
use maitred_runtime::{Exchange, NativeThreads};

type Said = Arc<Mutex<Vec<String>>>;

/// A host that notes calls. It has no signals, so every start fails after the hook `before_start`.
struct Program {
    said: Said,
    /// The hook `before_start`.
    before: fn() -> Result<(), LoadError>,
}

struct Noting {
    said: Said,
    before: fn() -> Result<(), LoadError>,
}

impl Host for Program {
    fn load(&self, _: &ApplicationSpec) -> Result<Application, LoadError> {
        self.said.lock().unwrap().push("load".to_owned());
        Ok(Application {
            handler: Arc::new(|exchange: Exchange| drop(exchange)),
            threads: Arc::new(NativeThreads::new(|_| {})),
            description: "an application".to_owned(),
            runs_on: None,
        })
    }

    fn hooks(&self, spec: Option<&HooksSpec>) -> Result<Option<Box<dyn Hooks>>, LoadError> {
        self.said.lock().unwrap().push(format!("hooks {:?}", spec.map(|spec| &spec.target)));
        Ok(Some(Box::new(Noting { said: Arc::clone(&self.said), before: self.before })))
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Err(io::Error::other("there are none"))
    }

    fn languages(&self) -> &'static str {
        "none"
    }
}

impl Hooks for Noting {
    fn before_start(&self) -> Result<(), LoadError> {
        self.said.lock().unwrap().push("before".to_owned());
        (self.before)()
    }

    fn worker_exit(&self, worker: usize, pid: u32, code: i32) {
        assert_eq!(pid, std::process::id());
        self.said.lock().unwrap().push(format!("exit {worker} {code}"));
    }
}

/// Returns the exit code, and the calls in their order.
fn run(before: fn() -> Result<(), LoadError>, arguments: &[&str]) -> (u8, Vec<String>) {
    let program = Program { said: Said::default(), before };
    let line = ["maitred", "app:app", "--listen", "127.0.0.1:0"].iter().chain(arguments);
    let code = main(line.map(OsString::from).collect(), &program);
    let said = program.said.lock().unwrap().clone();
    (code, said)
}

#[test]
fn a_program_may_have_hooks_without_an_option() {
    let (code, said) = run(|| Ok(()), &[]);
    assert_eq!(
        (code, said),
        (EXIT_FAILURE, ["hooks None", "before", "load", "exit 1 1"].map(str::to_owned).to_vec())
    );
    let (_, said) = run(|| Ok(()), &["--hooks", "named"]);
    assert_eq!(said[0], "hooks Some(\"named\")");
}

#[test]
fn an_error_or_a_panic_before_the_start_ends_it() {
    let called = ["hooks None", "before"].map(str::to_owned).to_vec();
    assert_eq!(run(|| Err(LoadError::new("no", "let it")), &[]), (EXIT_USAGE, called.clone()));
    assert_eq!(run(|| panic!("no"), &[]), (EXIT_USAGE, called));
}
