//! `maitred report`: reads access logs that have the times of requests (formats `times` and `json`, or others with `start=`
//! and spans), rebuilds the order of arrival, and tells where the time went.
//!
//! Promises: a line that is not understood is counted, and no error unless all are. Leaves out: following a log that grows. All
//! requests are kept in memory, some 150 bytes each.

mod cascades;
mod figures;
mod read;
mod show;
mod together;

use std::fs::File;
use std::io::{self, BufRead, BufReader};

use maitred_config::{Problem, nearest};
use read::Log;

pub(crate) const USAGE: &str = "\
usage: maitred report [--json] [--requests] [--top NUMBER] [--wait SECONDS] LOG...

Reads access logs written with --access-log-format times or json; - is standard input.

  --json            the report as JSON
  --requests        also every request, in the order of arrival
  --top NUMBER      so many routes and cascades, 0 for all [default: 10]
  --wait SECONDS    a request waited if its queue time was longer [default: 0.001]
";

#[derive(Debug, PartialEq)]
struct ReportOptions {
    json: bool,
    requests: bool,
    top: usize,
    /// The time in microseconds.
    wait: u64,
    logs: Vec<String>,
    help: bool,
}

/// The report, for standard output. `arguments` are those behind the command's name.
///
/// # Errors
/// They are not understood, a log cannot be read, or no line of it has the times of a request.
pub fn report(arguments: &[String]) -> Result<String, Problem> {
    let asked = parse(arguments)?;
    if asked.help {
        return Ok(USAGE.to_owned());
    }
    let mut log = Log::default();
    for name in &asked.logs {
        let read = if name == "-" {
            read_all(&mut log, name, &mut io::stdin().lock())
        } else {
            File::open(name).and_then(|file| read_all(&mut log, name, &mut BufReader::new(file)))
        };
        read.map_err(|error| {
            Problem::new(
                name,
                format!("cannot be read: {error}"),
                "name an access log, or - for standard input",
            )
        })?;
    }
    understood(&log)?;
    Ok(of(log, &asked))
}

fn understood(log: &Log) -> Result<(), Problem> {
    match &log.first_not_understood {
        Some((name, line, begin)) if log.requests.is_empty() => Err(Problem::new(
            format!("{name}:{line}"),
            format!(
                "no line has the start of a request and its times (start= and queue=, run=, total=, or the same in JSON), \
                 the first one is: {}",
                printable(begin)
            ),
            "write the log with --access-log-format times or json",
        )),
        _ => Ok(()),
    }
}

fn of(mut log: Log, asked: &ReportOptions) -> String {
    log.requests.sort_by_key(|request| request.start);
    let found = cascades::find(&log, asked.wait);
    let report = show::Report {
        spans: figures::of_spans(&log.requests),
        routes: figures::of_routes(&log),
        cascades: found,
        holders: together::find(&log),
        log,
        top: if asked.top == 0 { usize::MAX } else { asked.top },
        wait: asked.wait,
        requests: asked.requests,
    };
    if asked.json { format!("{}\n", report.json()) } else { printable(&report.text()) }
}

/// Removes control characters, so that text of peers gives no orders to a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|each| !each.is_control() || *each == '\n').collect()
}

fn read_all(log: &mut Log, name: &str, input: &mut dyn BufRead) -> io::Result<()> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += 1;
        log.add(name, number, &String::from_utf8_lossy(&line));
    }
}

fn parse(arguments: &[String]) -> Result<ReportOptions, Problem> {
    const OPTIONS: [&str; 5] = ["--json", "--requests", "--top", "--wait", "--help"];
    let mut asked =
        ReportOptions { json: false, requests: false, top: 10, wait: 1_000, logs: Vec::new(), help: false };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let (option, attached) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (argument.as_str(), None),
        };
        let mut value = |example: &str| {
            let value = attached.or_else(|| rest.next().map(String::as_str));
            value.ok_or_else(|| {
                Problem::new(option, "needs a value", format!("for example {option} {example}"))
            })
        };
        match option {
            "--json" => asked.json = true,
            "--requests" => asked.requests = true,
            "--help" | "-h" => asked.help = true,
            "--top" => {
                let value = value("20")?;
                asked.top = value.parse().map_err(|_| {
                    Problem::new(
                        option,
                        format!("'{value}' is not a whole number"),
                        "give one, for example 20",
                    )
                })?;
            }
            "--wait" => {
                let value = value("0.001")?;
                asked.wait = read::micros(value).ok_or_else(|| {
                    Problem::new(
                        option,
                        format!("'{value}' is no time in seconds"),
                        "give one, for example 0.001",
                    )
                })?;
            }
            _ if argument.starts_with("--") => {
                let remedy = match nearest(option, OPTIONS) {
                    Some(meant) => format!("did you mean {meant}?"),
                    None => "maitred report --help lists the options".to_owned(),
                };
                return Err(Problem::new(option, "unknown option", remedy));
            }
            _ => asked.logs.push(argument.clone()),
        }
    }
    if asked.logs.is_empty() && !asked.help {
        return Err(Problem::new(
            "report",
            "no log was named",
            "for example: maitred report access.log, or - for standard input",
        ));
    }
    Ok(asked)
}

#[cfg(test)]
mod tests;
