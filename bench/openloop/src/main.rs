//! A load generator with a fixed schedule: request `i` is due at `start + i / rate`, whatever the answers do.
//!
//! Latency counts from the scheduled time, never from the time of sending, so that a stalled server (or a late
//! generator) is charged for every request it delayed. A request that is due while every connection is busy waits
//! for one, and its clock runs. Nothing is sampled or bucketed: every latency is kept.
//!
//! With `--closed DEPTH` it is a closed loop instead: every connection always has DEPTH requests on their way.
//!
//! With `--poisson SEED` the due times are those of a Poisson process with the same rate, the same for every run with that
//! seed. With `--requests FILE` the requests of a file are sent in turn instead of one path.
//! With `--class` several kinds of requests are sent at once, each in a closed loop or on a schedule of its own.
//!
//! It leaves out TLS, HTTP/2, chunked bodies and addresses other than loopback.

mod closed;
mod connection;
mod generator;
mod mix;
mod plan;
mod report;
mod requests;

use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to do when the error itself cannot be written.
            let _ = writeln!(io::stderr(), "openloop: {error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> io::Result<()> {
    let plan = plan::Plan::from_arguments(std::env::args().skip(1))?;
    if !plan.classes.is_empty() {
        return io::stdout().write_all(mix::Mix::new(&plan)?.run()?.as_bytes());
    }
    let outcome = match plan.closed {
        Some(depth) => closed::Closed::new(&plan, depth)?.run()?,
        None => generator::Generator::new(&plan)?.run()?,
    };
    if let Some(path) = &plan.dump {
        std::fs::write(path, outcome.latency_bytes())?;
    }
    io::stdout().write_all(outcome.text().as_bytes())
}
