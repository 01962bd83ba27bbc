//! Logs of a running server: what is in them, and targets that take nothing.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_log::{Format, Mask};
use maitred_runtime::Exchange;
use maitred_server::{AccessLogSettings, Level, Log, LogTarget, Routes, Settings};
use maitred_testkit::client::Client;

use crate::harness::door::{Door, Opened, guarded};
use crate::harness::{PATIENCE, Running, ask, connect, get, read_response, start, text, wait_until};

fn logged(log: Log) -> Running {
    let routes = Routes::new().with_application(Arc::new(|exchange: Exchange| text(exchange, "hello")));
    let mut settings = Settings::new(routes, Arc::new(log));
    // One after the other also where the lines are made, which is after the answer has been sent.
    settings.pool.limits.max_threads = 1;
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    start(settings)
}

fn with_access(settings: AccessLogSettings) -> Log {
    let log = Log::open(Level::Info, LogTarget::Path("/dev/null".into()), None).expect("the log opens");
    log.with_access(settings).expect("the access log opens")
}

fn numbered(stream: &mut Client, number: usize) {
    stream.write_all(&get(&format!("/{number}/{}", "x".repeat(400)))).expect("the server takes the request");
    assert_eq!(read_response(stream).1, b"hello");
}

fn dropped(server: &Running) -> u64 {
    let metrics = server.server.figures().page(maitred_server::figures::Format::Prometheus);
    let start = "maitred_log_dropped_total{log=\"access\"} ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

/// Reads lines until that of `last`: the numbers that are there, and how many are told to be missing. Each gap is told
/// of where it is.
fn check_order(lines: impl Iterator<Item = String>, last: usize) -> u64 {
    let (mut next, mut told) = (0, 0);
    for line in lines {
        if let Some(rest) = line.strip_prefix("maitred: ") {
            let missing: usize = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            next += missing;
            told += missing as u64;
            continue;
        }
        let number = line.split('/').nth(1).and_then(|n| n.parse::<usize>().ok());
        assert_eq!(number, Some(next), "{line}");
        next += 1;
        if number == Some(last) {
            return told;
        }
    }
    panic!("the line of {last} is missing");
}

#[test]
fn a_pipe_that_nobody_reads_stops_no_request_and_shows_every_gap() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let settings = AccessLogSettings {
        format: Format::parse("$request_uri").expect("a format"),
        ..AccessLogSettings::new(LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))))
    };
    let server = logged(with_access(settings));
    let mut stream = connect(server.address);
    let mut sent = 0;
    while dropped(&server) < 10 {
        for _ in 0..100 {
            numbered(&mut stream, sent);
            sent += 1;
        }
    }
    // A reader comes: what is sent from now on arrives, as soon as there is room.
    let (line, lines) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for text in BufReader::new(read).lines() {
            let _ = line.send(text.expect("a line"));
        }
    });
    let missing = dropped(&server);
    let mut at_last = missing;
    for attempt in 0.. {
        assert!(attempt < 100_000, "nothing is accepted");
        let before = dropped(&server);
        numbered(&mut stream, sent);
        sent += 1;
        server.server.log().flush(PATIENCE);
        at_last = dropped(&server);
        if at_last == before {
            break;
        }
    }
    let told = check_order(lines.iter().take(sent + 100), sent - 1);
    assert_eq!(told, at_last);
    drop(server);
    reader.join().expect("the log is closed");
}

/// The place of a log: a link to a disk that is full, and later to a file.
struct Disk {
    link: PathBuf,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Disk {
    fn full() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (link, path) = (folder.path().join("link"), folder.path().join("log"));
        std::os::unix::fs::symlink("/dev/full", &link).expect("a link");
        Self { link, path, _folder: folder }
    }

    fn make_room(&self, server: &Running) {
        std::fs::remove_file(&self.link).expect("the link");
        std::os::unix::fs::symlink(&self.path, &self.link).expect("a link");
        server.server.log().reopen();
        server.server.log().flush(PATIENCE);
    }
}

/// Sends requests, the first one with the number `sent`, until ten lines or more have been dropped; the number of the next one.
fn fill(server: &Running, stream: &mut Client, mut sent: usize) -> usize {
    // A look at the figures takes longer than a request.
    while dropped(server) < 10 {
        (sent..sent + 50).for_each(|number| numbered(stream, number));
        sent += 50;
    }
    sent
}

#[test]
fn a_full_disk_stops_no_request_and_the_lines_are_there_when_there_is_room() {
    let disk = Disk::full();
    let (link, path) = (disk.link.clone(), disk.path.clone());
    let settings = AccessLogSettings {
        format: Format::parse("$request_uri").expect("a format"),
        ..AccessLogSettings::new(LogTarget::Path(link.clone()))
    };
    let server = logged(with_access(settings));
    let mut stream = connect(server.address);
    let sent = fill(&server, &mut stream, 0);
    disk.make_room(&server);
    numbered(&mut stream, sent);
    wait_until("the line is accepted", || {
        server.server.log().flush(Duration::from_secs(1));
        std::fs::read_to_string(&path).is_ok_and(|all| all.contains(&format!("/{sent}/")))
    });
    let all = std::fs::read_to_string(&path).expect("a log");
    assert_eq!(check_order(all.lines().map(str::to_owned), sent), dropped(&server));
}

#[test]
fn lines_have_the_names_of_pools_and_listeners_and_no_whole_addresses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    let settings = AccessLogSettings {
        format: Format::parse("$remote_addr $pool $status $ended").expect("a format"),
        mask: Some(Mask::default()),
        ..AccessLogSettings::new(LogTarget::Path(path.clone()))
    };
    let server = logged(with_access(settings));
    numbered(&mut connect(server.address), 1);
    wait_until("the line is written", || {
        std::fs::read_to_string(&path).is_ok_and(|all| all == "127.0.0.0 default 200 complete\n")
    });
}

#[test]
fn repeated_entries_are_folded_and_levels_change_while_it_runs() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let log = Log::open(Level::Info, LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))), None)
        .expect("the log opens");
    for _ in 0..1000 {
        log.error(format_args!("the same"));
    }
    // A line that an operator asked for is written each time.
    log.write_each(Level::Error, format_args!("---"));
    log.write_each(Level::Error, format_args!("---"));
    log.info(format_args!("done"));
    log.info(format_args!("done"));
    log.debug(format_args!("not seen"));
    log.set_level(Level::Debug);
    assert_eq!(log.level(), Level::Debug);
    log.debug(format_args!("seen"));
    log.set_level(Level::Error);
    log.warn(format_args!("not seen either"));
    log.flush(PATIENCE);
    drop(log);
    let lines: Vec<String> = BufReader::new(read).lines().map(|line| line.expect("a line")).collect();
    let texts: Vec<&str> = lines.iter().map(|line| line.split_once(' ').expect("a time").1).collect();
    assert_eq!(
        texts[..6],
        ["error the same", "error ---", "error ---", "info done", "info done", "debug seen"]
    );
    assert!(texts[6].starts_with("error 999 times more in the last "), "{texts:?}");
    assert!(texts[6].ends_with(" s: the same") && texts.len() == 7, "{texts:?}");
}

#[test]
fn entries_cannot_be_forged_and_lines_of_the_application_have_a_mark_at_every_level() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let log = Log::open(Level::Error, LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))), None)
        .expect("the log opens");
    let forged = "a\n2026-01-01T00:00:00Z error b\x1b[31m";
    log.plain(forged);
    log.error(format_args!("{forged}"));
    log.application(forged.lines().last().expect("a line"));
    log.application("again");
    log.application("again");
    log.info(format_args!("not seen"));
    log.flush(PATIENCE);
    drop(log);
    let lines: Vec<String> = BufReader::new(read).lines().map(|line| line.expect("a line")).collect();
    let second = "  2026-01-01T00:00:00Z error b\\x1b[31m";
    assert_eq!((lines[0].as_str(), lines[1].as_str(), lines[3].as_str()), ("a", second, second));
    let texts: Vec<&str> = lines[2..].iter().map(|line| line.split_once("Z ").expect("a time").1).collect();
    assert_eq!(texts[0], "error a");
    assert_eq!(texts[2], "app 2026-01-01T00:00:00Z error b\\x1b[31m");
    assert_eq!(texts[3..], ["app again", "app again"]);
}

/// The access log's target is a symbolic link to /dev/full, and then to a file.
#[test]
fn an_access_log_on_a_full_disk_is_told_of_in_the_error_log() {
    let disk = Disk::full();
    let link = disk.link.clone();
    let (read, write) = std::io::pipe().expect("a pipe");
    let log = Log::open(Level::Warn, LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))), None)
        .and_then(|log| log.with_access(AccessLogSettings::new(LogTarget::Path(link.clone()))))
        .expect("the logs open");
    let server = logged(log);
    let mut said = BufReader::new(read).lines().map(|line| line.expect("a line"));
    let mut stream = connect(server.address);
    numbered(&mut stream, 0);
    let begin = said.next().expect("a line");
    assert!(begin.contains(" error the access log cannot be written (No space left on device"), "{begin}");
    let sent = fill(&server, &mut stream, 1);
    disk.make_room(&server);
    let over = said.next().expect("a line");
    // A line that was on its way may be one more.
    let lost = dropped(&server);
    assert!(
        over.ends_with(&format!(" warn the access log is written again; {lost} lines were dropped")),
        "{over}"
    );
    assert!(lost >= 10 && lost <= sent as u64, "{lost} of {sent}");
}

#[test]
fn the_dispatch_trace_tells_who_waited_and_is_switched_while_it_runs() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let log = Log::open(Level::Error, LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))), None)
        .expect("the log opens");
    let log = Arc::new(log);
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_application(Arc::new(guarded(&door)));
    let mut settings = Settings::new(routes, Arc::clone(&log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    settings.pool.limits.max_threads = 1;
    let running = start(settings);
    let _opened = Opened(Arc::clone(&door));
    assert_eq!(read_response(&mut ask(running.address, "/untraced")).1, b"/untraced on maitred-1");
    log.set_trace(true);
    let mut first = ask(running.address, "/wait/1");
    door.wait_for_inside(1);
    let mut second = ask(running.address, "/wait/2");
    running.wait_for_figure("default", "queued", 1);
    door.open();
    read_response(&mut first);
    read_response(&mut second);
    // The thread that runs the next one has written down those before.
    log.set_trace(false);
    read_response(&mut ask(running.address, "/untraced-too"));
    drop(running);
    log.flush(PATIENCE);
    drop(log);
    let lines: Vec<String> = BufReader::new(read).lines().map(|line| line.expect("a line")).collect();
    let of = |path: &str| {
        let line = lines.iter().find(|line| line.contains(&format!(" GET {path}: ")));
        line.unwrap_or_else(|| panic!("no {path} in {lines:?}"))
    };
    // The only thread may still be with the request before: the backup poller reads this one then.
    let (begin, first) = (": pool default, 0 waiting, 1 threads, 0 idle, budget 9999, ", of("/wait/1"));
    let ways = ["direct; queue 0.", "from the queue; queue 0."];
    assert!(ways.iter().any(|way| first.contains(&format!("{begin}{way}"))), "{first}");
    assert!(of("/wait/2").contains(", 1 threads, 0 idle, budget 9998, from the queue; queue "), "{lines:?}");
    assert!(of("/wait/2").contains(" trace ") && lines.len() == 2, "{lines:?}");
}

/// Three requests run, three wait: each of these waits at least as long as the door was shut with all six there, and so
/// long each of the first three ran.
#[test]
fn the_queue_time_of_the_last_three_is_the_run_time_of_the_first_three() {
    let (read, write) = std::io::pipe().expect("a pipe");
    let settings = AccessLogSettings {
        format: Format::parse("$path $start $accept $queue $run").expect("a format"),
        ..AccessLogSettings::new(LogTarget::File(File::from(std::os::fd::OwnedFd::from(write))))
    };
    let log = Arc::new(with_access(settings));
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_application(Arc::new(guarded(&door)));
    let mut settings = Settings::new(routes, Arc::clone(&log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    settings.pool.limits.max_threads = 3;
    let running = start(settings);
    let _opened = Opened(Arc::clone(&door));
    let mut streams: Vec<Client> = (0..6)
        .map(|number: usize| {
            let stream = ask(running.address, &format!("/wait/{number}"));
            door.wait_for((number + 1).min(3));
            running.wait_for_figure("default", "queued", (number as u64).saturating_sub(2));
            stream
        })
        .collect();
    let shut = Instant::now();
    door.wait_for_inside(3);
    while shut.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    let shut = shut.elapsed().as_secs_f64();
    door.open();
    for stream in &mut streams {
        read_response(stream);
    }
    drop(running);
    log.flush(PATIENCE);
    drop(log);
    let mut lines: Vec<(String, f64, f64, f64)> = BufReader::new(read)
        .lines()
        .map(|line| {
            let line = line.expect("a line");
            let parts: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| parts[at].parse::<f64>().expect("a number");
            // By TLS the handshake is a part of what comes before the queue.
            (parts[0].to_owned(), number(1) + number(2), number(3), number(4))
        })
        .collect();
    lines.sort_by(|one, other| one.1.total_cmp(&other.1));
    let paths: Vec<&str> = lines.iter().map(|line| &*line.0).collect();
    assert_eq!(
        paths,
        (0..6).map(|number| format!("/wait/{number}")).collect::<Vec<_>>(),
        "the order of arrival"
    );
    for (path, _, _, run) in &lines[..3] {
        assert!(*run >= shut - 1e-6, "{path} ran {run}");
    }
    for (path, start, queue, _) in &lines[3..] {
        assert!(*queue >= shut - 1e-6, "{path} waited {queue}");
        // It began when one of the first three had ended, and not before.
        let first_end =
            lines[..3].iter().map(|(_, start, queue, run)| start + queue + run).fold(f64::MAX, f64::min);
        assert!(start + queue >= first_end - 1e-4, "{path} began before a thread was free");
    }
}
