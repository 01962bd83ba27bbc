//! The maitred command with a native handler whose work is chosen by the path (`work` says how): what the scheduling
//! benches measure. `workbench native --listen 127.0.0.1:8000`, and every option of the command.
//!
//! `workbench --count` prints the turns in a millisecond, for `BENCH_TURNS`.
//!
//! It leaves out the graceful end: a signal ends it at once.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use maitred_cli::{Application, ApplicationSpec, Host, LoadError, Signal, Signals};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Content, Exchange, Handler, NativeThreads};
use work::{HELLO, Work, Workload};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("--count") {
        return match writeln!(io::stdout(), "{}", work::count()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    ExitCode::from(maitred_cli::main(std::env::args_os().collect(), &Workbench))
}

struct Workbench;

impl Host for Workbench {
    fn load(&self, spec: &ApplicationSpec) -> Result<Application, LoadError> {
        if spec.target != "native" {
            let what = format!("there is no application '{}' in this program", spec.target);
            return Err(LoadError::new(what, "name 'native'"));
        }
        Ok(Application {
            handler: Arc::new(Bench::new()),
            threads: Arc::new(NativeThreads::new(|_| {})),
            description: "native workbench".to_owned(),
            runs_on: None,
        })
    }

    fn signals(&self) -> io::Result<Box<dyn Signals>> {
        Ok(Box::new(NoSignals))
    }

    fn languages(&self) -> &'static str {
        "native"
    }
}

/// None are taken: what a signal does to a process by default is enough here.
struct NoSignals;

impl Signals for NoSignals {
    fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
        std::thread::sleep(limit.unwrap_or(Duration::MAX));
        None
    }
}

struct Bench {
    workload: Workload,
    head: ResponseHead,
    unknown: ResponseHead,
}

impl Bench {
    fn new() -> Self {
        let head = |status| ResponseHead::new(status).with("Content-Type", "text/plain");
        Self {
            workload: Workload::from_environment(),
            head: head(Status::OK),
            unknown: head(Status::NOT_FOUND),
        }
    }
}

impl Handler for Bench {
    fn handle(&self, exchange: Exchange) {
        let (head, body) = match Work::of(exchange.request().head.path_and_query()) {
            Some(Work::Clock) => (&self.head, Content::from(work::clock_text(work::monotonic_ns()))),
            Some(Work::Large(bytes)) => (&self.head, Content::from(vec![b'x'; bytes])),
            Some(work) => {
                self.workload.perform(work);
                (&self.head, Content::from(HELLO))
            }
            None => (&self.unknown, Content::from("There is no such work.\n")),
        };
        // The peer may have gone meanwhile: nothing is left to do then.
        let _ = exchange.respond(head, body);
    }
}
