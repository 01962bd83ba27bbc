//! Applications of two languages in one command: each answers from threads of its own.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maitred_cli::main;
use maitred_config::output::{EXIT_SUCCESS, EXIT_USAGE};
use maitred_http::{ResponseHead, Status};
use maitred_process::host::{Application, ApplicationSpec, Host, LoadError, Signal, Signals, StopSignal};
use maitred_runtime::{Exchange, Handler, NativeThreads, ThreadBody, ThreadHost};

/// A program with two languages: the target of an application is its language.
struct TwoLanguages {
    socket: PathBuf,
    answers: Arc<Mutex<Vec<String>>>,
}

struct Threads(&'static str);

impl ThreadHost for Threads {
    fn spawn(&self, name: String, body: ThreadBody) -> io::Result<()> {
        NativeThreads::new(|_| {}).spawn(format!("{} {name}", self.0), body)
    }

    fn language(&self) -> &'static str {
        self.0
    }
}

/// Answers with the name of its thread.
struct Named(&'static str);

impl Handler for Named {
    fn language(&self) -> &'static str {
        self.0
    }

    fn handle(&self, exchange: Exchange) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        let _ = exchange.respond(ResponseHead::new(Status::OK), thread);
    }
}

impl Host for TwoLanguages {
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        let language = if spec.target == "first" { "First" } else { "Second" };
        Ok(Application {
            handler: Arc::new(Named(language)),
            threads: Arc::new(Threads(language)),
            description: spec.target.clone(),
            runs_on: None,
        })
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Ok(Box::new(Asking { socket: self.socket.clone(), answers: Arc::clone(&self.answers) }))
    }

    fn languages(&self) -> &'static str {
        "First, Second"
    }
}

/// Asks both applications while the server serves, and ends it.
struct Asking {
    socket: PathBuf,
    answers: Arc<Mutex<Vec<String>>>,
}

impl Signals for Asking {
    fn wait(&mut self, _: Option<Duration>) -> Option<Signal> {
        let mut answers = self.answers.lock().unwrap();
        if answers.is_empty() {
            for path in ["/", "/b/"] {
                let mut stream = UnixStream::connect(&self.socket).expect("it listens");
                write!(stream, "GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n").unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                let answer = answer.rsplit("\r\n").next().unwrap_or_default();
                // A slow machine may have made a second thread of the pool, which answers.
                answers.push(answer.trim_end_matches(|last: char| last.is_ascii_digit()).to_owned());
            }
        }
        Some(Signal::Stop(StopSignal::Terminate))
    }
}

/// The exit code, and the threads that have answered `/` and `/b/`, without their numbers.
fn run(arguments: &[&str]) -> (u8, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let host = TwoLanguages { socket: folder.path().join("socket"), answers: Arc::default() };
    let listen = format!("--listen=unix:{}", host.socket.display());
    let line = ["maitred", "first", &listen].into_iter().chain(arguments.iter().copied());
    let code = main(line.map(OsString::from).collect(), &host);
    let answers = host.answers.lock().unwrap().clone();
    (code, answers)
}

#[test]
fn each_language_answers_from_threads_of_its_own() {
    let answers = |second: &str| vec!["First maitred-".to_owned(), format!("Second {second}")];
    assert_eq!(run(&["--mount=/b=second"]), (EXIT_SUCCESS, answers("maitred-second-")));
    let own = ["--mount=/b=second,pool=own", "--pool=own,max-threads=2"];
    assert_eq!(run(&own), (EXIT_SUCCESS, answers("maitred-own-")));
}

#[test]
fn two_languages_in_one_pool_do_not_start() {
    let both = ["--mount=/a=first,pool=own", "--mount=/b=second,pool=own", "--pool=own,max-threads=2"];
    assert_eq!(run(&both), (EXIT_USAGE, Vec::new()));
}
