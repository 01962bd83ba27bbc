//! The line writer against real files, pipes and devices.

use maitred_io::line_writer::{LineWriter, Options, Period, Reminder, Rotation, Severity, Target};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Far more than any of these steps needs; reached only by a defect.
const PLENTY: Duration = Duration::from_secs(20);
const ROOM: usize = 1 << 20;

/// A pipe: the read end, which blocks, and a writer on the write end, which has `flags`.
fn piped(flags: PipeFlags, capacity: usize) -> (File, LineWriter) {
    let (read, write) = rustix::pipe::pipe_with(flags | PipeFlags::CLOEXEC).expect("pipe");
    let read_flags = rustix::fs::fcntl_getfl(&read).expect("flags");
    rustix::fs::fcntl_setfl(&read, read_flags - OFlags::NONBLOCK).expect("blocking read end");
    let writer = LineWriter::open(Target::File(write.into()), capacity).expect("writer");
    (read.into(), writer)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("log file")
}

fn at(folder: &tempfile::TempDir, name: &str) -> PathBuf {
    folder.path().join(name)
}

#[test]
fn lines_arrive_in_order_from_each_producer() {
    const PRODUCERS: usize = 8;
    const LINES: usize = 5000;
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "log");
    let writer = LineWriter::open(Target::Path(path.clone()), 64 * ROOM).expect("writer");
    std::thread::scope(|scope| {
        for producer in 0..PRODUCERS {
            let writer = &writer;
            scope.spawn(move || {
                for line in 0..LINES {
                    assert!(writer.write(format!("{producer} {line}").as_bytes()));
                }
            });
        }
    });
    assert!(writer.flush(PLENTY));
    let mut next = [0; PRODUCERS];
    for line in text(&path).lines() {
        let (producer, number) = line.split_once(' ').expect("a whole line");
        let next = &mut next[producer.parse::<usize>().expect("producer")];
        assert_eq!(number.parse::<usize>().expect("number"), *next);
        *next += 1;
    }
    assert_eq!(next, [LINES; PRODUCERS]);
    assert_eq!(writer.dropped(), 0);
}

#[test]
fn lines_that_wait_for_others_leave_together_and_for_whoever_is_in_a_hurry_at_once() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "log");
    let writer = LineWriter::open(Target::Path(path.clone()), 64 * 1024).expect("writer");
    // For ever, as far as this test goes.
    writer.set_linger(Duration::from_secs(3600));
    for round in 1..=3 {
        for _ in 0..100 {
            assert!(writer.write(b"line"));
        }
        assert!(writer.flush(PLENTY));
        assert_eq!(text(&path).lines().count(), round * 100);
        assert_eq!(writer.writes(), round as u64);
    }
    // Half of the buffer does not wait.
    let begin = Instant::now();
    let long = [b'x'; 1000];
    let mut accepted = 0;
    while writer.writes() == 3 {
        accepted += usize::from(writer.write(&long));
        assert!(begin.elapsed() < PLENTY, "{accepted}");
    }
    drop(writer);
    while text(&path).lines().filter(|line| line.len() == 1000).count() < accepted {
        assert!(begin.elapsed() < PLENTY, "what waits is written at the end");
    }
}

#[test]
fn line_feeds_are_added_only_where_missing() {
    let (mut pipe, writer) = piped(PipeFlags::empty(), ROOM);
    assert!(writer.write(b"one"));
    assert!(writer.write(b"two\n"));
    assert!(writer.write(b""));
    assert!(writer.flush(PLENTY));
    drop(writer);
    let mut all = String::new();
    pipe.read_to_string(&mut all).expect("the thread closes the pipe at its end");
    assert_eq!(all, "one\ntwo\n\n");
}

/// Fills the writer until it refuses ten lines; returns the number accepted.
fn fill(writer: &LineWriter) -> u64 {
    let mut accepted = 0;
    let mut refused = 0;
    for number in 0_u64.. {
        if writer.write(format!("line {number} {}", "x".repeat(100)).as_bytes()) {
            // What is taken must be a prefix, or the reader could not tell what is missing where.
            if refused == 0 {
                accepted += 1;
            }
        } else {
            refused += 1;
            if refused == 10 {
                break;
            }
        }
    }
    accepted
}

/// A pipe that nobody reads: writes return, flush gives up, dropping does not wait; then somebody reads.
fn nobody_reads(flags: PipeFlags) {
    let (pipe, writer) = piped(flags, ROOM);
    let accepted = fill(&writer);
    assert!(accepted > 1000, "{accepted}");
    let begin = Instant::now();
    assert!(!writer.flush(Duration::from_millis(50)), "nobody reads");
    assert!(begin.elapsed() < PLENTY / 2, "flush keeps its limit");
    let before = writer.writes();
    assert!(!writer.flush(Duration::from_millis(300)));
    assert!(writer.writes() - before < 20, "no spinning");
    let dropped = writer.dropped();
    assert!(dropped >= 10);
    drop(writer);

    let mut lines = BufReader::new(pipe).lines().map(|line| line.expect("pipe"));
    let mut told = 0;
    let mut read = 0;
    for line in lines.by_ref() {
        if let Some(rest) = line.strip_prefix("maitred: ") {
            told += rest.split(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number");
        } else {
            assert!(line.starts_with(&format!("line {} ", read + told)), "{read} {told} {line}");
            read += 1;
        }
    }
    assert!(read >= accepted);
    assert_eq!(told, dropped);
}

#[test]
fn a_blocking_pipe_that_nobody_reads_stops_nobody() {
    nobody_reads(PipeFlags::empty());
}

#[test]
fn a_non_blocking_pipe_that_nobody_reads_stops_nobody() {
    nobody_reads(PipeFlags::NONBLOCK);
}

#[test]
fn a_slow_reader_gets_every_line() {
    let (pipe, writer) = piped(PipeFlags::NONBLOCK, 4 * ROOM);
    rustix::pipe::fcntl_setpipe_size(&pipe, 4096).expect("a small pipe");
    for number in 0..3000 {
        assert!(writer.write(format!("{number} {}", "x".repeat(number % 500)).as_bytes()));
    }
    let reader = std::thread::spawn(move || BufReader::with_capacity(512, pipe).lines().count());
    assert!(writer.flush(PLENTY));
    drop(writer);
    assert_eq!(reader.join().expect("reader"), 3000);
}

#[test]
fn after_a_closed_reader_lines_are_lost_counted_and_tried_again() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
        .expect("fifo");
    assert!(LineWriter::open(Target::Path(path.clone()), ROOM).is_err(), "no reader: refused, not blocked");

    let open_reader = || -> File {
        rustix::fs::open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .expect("read end")
            .into()
    };
    let reader = open_reader();
    let writer = LineWriter::open(Target::Path(path.clone()), ROOM).expect("writer");
    assert!(writer.write(b"first"));
    assert!(writer.flush(PLENTY));
    assert_eq!(BufReader::new(&reader).lines().next().expect("line").expect("pipe"), "first");

    drop(reader);
    assert!(writer.write(b"lost one"));
    assert!(writer.write(b"lost two"));
    assert!(writer.flush(PLENTY), "lost is settled");
    assert_eq!(writer.dropped(), 2);
    assert_eq!(
        writer.failure().and_then(|error| error.raw_os_error()),
        Some(rustix::io::Errno::PIPE.raw_os_error())
    );
    assert!(writer.writes() < 20, "no spinning");

    let reader = open_reader();
    assert!(writer.write(b"back"));
    assert!(writer.flush(PLENTY));
    let lines: Vec<String> = BufReader::new(&reader).lines().map_while(Result::ok).collect();
    assert_eq!(lines, ["maitred: 2 lines are missing here, the log could not be written", "back"]);
    assert!(writer.failure().is_none());
}

#[test]
fn a_pipe_whose_reader_has_gone_costs_no_cpu() {
    let (pipe, writer) = piped(PipeFlags::empty(), ROOM);
    drop(pipe);
    let begin = Instant::now();
    let mut written = 0_u64;
    while begin.elapsed() < Duration::from_millis(300) {
        writer.write(b"nobody will see this");
        written += 1;
        std::thread::yield_now();
    }
    assert!(writer.flush(PLENTY));
    assert_eq!(writer.dropped(), written);
    assert!(writer.writes() < 20, "{} calls", writer.writes());
}

/// The target is a symbolic link to /dev/full, and then to a file: nothing that was accepted is missing there.
#[test]
fn a_full_device_keeps_the_lines_until_there_is_space() {
    let folder = tempfile::tempdir().expect("folder");
    let (link, log) = (at(&folder, "link"), at(&folder, "log"));
    symlink("/dev/full", &link).expect("link");
    let writer = LineWriter::open(Target::Path(link.clone()), 4096).expect("writer");
    let accepted = fill(&writer);
    assert!(accepted > 10);
    assert!(!writer.flush(Duration::from_millis(300)));
    let failure = writer.failure().and_then(|error| error.raw_os_error());
    assert_eq!(failure, Some(rustix::io::Errno::NOSPC.raw_os_error()));
    assert!(writer.writes() < 20, "{} calls", writer.writes());
    let dropped = writer.dropped();
    assert!(dropped >= 10);

    fs::remove_file(&link).expect("link");
    symlink(&log, &link).expect("link");
    writer.reopen();
    assert!(writer.flush(PLENTY));
    assert!(writer.write(b"last"));
    assert!(writer.flush(PLENTY));
    let shown = text(&log);
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("line 0 "));
    assert!(lines[accepted as usize - 1].starts_with(&format!("line {} ", accepted - 1)));
    assert_eq!(lines.last(), Some(&"last"));
    assert!(shown.contains(&format!("maitred: {dropped} lines are missing here")), "{shown}");
    assert_eq!(writer.dropped(), dropped);
}

#[test]
fn reopening_after_a_rename_starts_a_new_file() {
    let folder = tempfile::tempdir().expect("folder");
    let (path, old) = (at(&folder, "log"), at(&folder, "log.1"));
    let writer = LineWriter::open(Target::Path(path.clone()), ROOM).expect("writer");
    assert!(writer.write(b"before"));
    assert!(writer.flush(PLENTY));
    fs::rename(&path, &old).expect("rename");
    assert!(writer.write(b"still the old file"));
    assert!(writer.flush(PLENTY));
    writer.reopen();
    assert!(writer.flush(PLENTY), "waits for the reopening too");
    assert!(writer.write(b"after"));
    assert!(writer.flush(PLENTY));
    assert_eq!(text(&old), "before\nstill the old file\n");
    assert_eq!(text(&path), "after\n");
}

#[test]
fn a_failed_reopening_keeps_the_old_file() {
    let folder = tempfile::tempdir().expect("folder");
    let (path, old) = (at(&folder, "log"), at(&folder, "log.1"));
    let writer = LineWriter::open(Target::Path(path.clone()), ROOM).expect("writer");
    fs::rename(&path, &old).expect("rename");
    fs::create_dir(&path).expect("a folder in the way");
    writer.reopen();
    assert!(writer.flush(PLENTY));
    assert!(writer.failure().is_some());
    assert!(writer.write(b"kept"));
    assert!(writer.flush(PLENTY));
    assert_eq!(text(&old), "kept\n");
}

#[test]
fn an_existing_file_is_appended_to() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "log");
    fs::write(&path, "old\n").expect("file");
    let writer = LineWriter::open(Target::Path(path.clone()), ROOM).expect("writer");
    assert!(writer.write(b"new"));
    assert!(writer.flush(PLENTY));
    assert_eq!(text(&path), "old\nnew\n");
}

#[test]
fn a_target_that_cannot_be_opened_is_an_error() {
    let folder = tempfile::tempdir().expect("folder");
    let error = LineWriter::open(Target::Path(at(&folder, "none/log")), ROOM).err().expect("no such folder");
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

/// strftime for these tests: the digits of the seconds, whatever is asked for.
fn digits(pattern: &str, second: u64) -> String {
    let width = |specifier| match specifier {
        'Y' => 4,
        'j' => 3,
        _ => 2,
    };
    pattern.split('%').skip(1).fold(pattern.split('%').next().unwrap_or_default().to_owned(), |out, part| {
        let specifier = part.chars().next().expect("a specifier");
        let digits = format!("{second:020}");
        out + &digits[digits.len() - width(specifier)..] + &part[1..]
    })
}

fn rotation(max_bytes: u64, keep: usize) -> Rotation {
    Rotation { max_bytes, period: None, keep, max_age: Duration::ZERO, strftime: digits }
}

/// The files of a folder whose name begins so, the closed ones in the order in which they were closed.
fn files(folder: &tempfile::TempDir, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.file_name().expect("name").to_str().expect("UTF-8").starts_with(name))
        .collect();
    files.sort_by_key(|path| (path == &at(folder, name), path.clone()));
    files
}

#[test]
fn rotation_by_size_loses_no_line_at_twenty_thousand_a_second() {
    const LINES: u64 = 20_000;
    let folder = tempfile::tempdir().expect("folder");
    let target = Target::Rotated(at(&folder, "log"), rotation(50_000, 0));
    let writer = LineWriter::open(target, ROOM).expect("writer");
    let begin = Instant::now();
    for number in 0..LINES {
        // As they would come in a second: a hundred at a time.
        while number % 100 == 0 && begin.elapsed() < Duration::from_micros(number * 50) {
            std::thread::yield_now();
        }
        assert!(writer.write(format!("{number} {}", "x".repeat(60)).as_bytes()));
    }
    assert!(writer.flush(PLENTY));
    assert_eq!(writer.dropped(), 0);
    let files = files(&folder, "log");
    assert!(files.len() > 20, "{} files", files.len());
    let mut next = 0;
    for file in &files {
        let shown = text(file);
        assert!(shown.len() <= 50_000 && shown.ends_with('\n'), "{}", file.display());
        for line in shown.lines() {
            assert_eq!(line.split(' ').next(), Some(next.to_string().as_str()), "{}", file.display());
            next += 1;
        }
    }
    assert_eq!(next, LINES);
}

#[test]
fn two_writers_of_a_file_rotate_it_together() {
    const LINES: usize = 3000;
    let folder = tempfile::tempdir().expect("folder");
    let open =
        || LineWriter::open(Target::Rotated(at(&folder, "log"), rotation(20_000, 0)), ROOM).expect("writer");
    let writers = [open(), open()];
    std::thread::scope(|scope| {
        for (number, writer) in writers.iter().enumerate() {
            scope.spawn(move || {
                for line in 0..LINES {
                    assert!(writer.write(format!("{number} {line} {}", "x".repeat(60)).as_bytes()));
                    if line % 50 == 0 {
                        assert!(writer.flush(PLENTY));
                    }
                }
            });
        }
    });
    for writer in &writers {
        assert!(writer.flush(PLENTY));
    }
    let all: String = files(&folder, "log").iter().map(|file| text(file)).collect();
    let mut lines: Vec<&str> =
        all.lines().map(|line| line.rsplit_once(' ').expect("a whole line").0).collect();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((lines.len(), all.lines().count()), (2 * LINES, 2 * LINES));
}

#[test]
fn closed_files_that_are_too_many_or_too_old_are_removed() {
    let folder = tempfile::tempdir().expect("folder");
    let old = at(&folder, "log.20200101-000000");
    fs::write(&old, "old\n").expect("file");
    let ancient = std::time::SystemTime::now() - Duration::from_secs(10 * 86_400);
    File::options().write(true).open(&old).expect("file").set_modified(ancient).expect("time");
    fs::write(at(&folder, "log.of-somebody-else"), "kept\n").expect("file");
    let rotation = Rotation { max_age: Duration::from_secs(9 * 86_400), ..rotation(100, 3) };
    let writer = LineWriter::open(Target::Rotated(at(&folder, "log"), rotation), ROOM).expect("writer");
    assert!(!old.exists(), "removed at the start");
    for number in 0..10 {
        assert!(writer.write(format!("{number} {}", "x".repeat(80)).as_bytes()));
        assert!(writer.flush(PLENTY));
    }
    let files = files(&folder, "log");
    assert_eq!(files.len(), 5, "three, the present one, and that of somebody else: {files:?}");
    assert!(text(&at(&folder, "log")).starts_with("9 "));
}

#[test]
fn a_name_with_the_time_in_it_changes_with_the_time() {
    let folder = tempfile::tempdir().expect("folder");
    let given = at(&folder, "log-%S");
    let writer = LineWriter::open(Target::Rotated(given, rotation(0, 0)), ROOM).expect("writer");
    let begin = Instant::now();
    let mut written = 0;
    while files(&folder, "log-").len() < 2 {
        assert!(begin.elapsed() < PLENTY);
        assert!(writer.write(format!("{written}").as_bytes()));
        assert!(writer.flush(PLENTY));
        written += 1;
    }
    let all: usize = files(&folder, "log-").iter().map(|file| text(file).lines().count()).sum();
    assert_eq!(all, written);
}

#[test]
fn a_period_that_was_over_at_the_start_ends_with_the_first_line() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "log");
    fs::write(&path, "of yesterday\n").expect("file");
    let yesterday = std::time::SystemTime::now() - Duration::from_secs(86_400 + 7);
    File::options().write(true).open(&path).expect("file").set_modified(yesterday).expect("time");
    let days = |_: &str, second: u64| format!("{:08}-000000", second / 86_400);
    let rotation = Rotation { period: Some(Period::Day), strftime: days, ..rotation(0, 0) };
    let writer = LineWriter::open(Target::Rotated(path.clone(), rotation), ROOM).expect("writer");
    assert!(writer.write(b"of today"));
    assert!(writer.flush(PLENTY));
    assert_eq!(text(&files(&folder, "log")[0]), "of yesterday\n");
    assert_eq!(text(&path), "of today\n");
}

#[test]
fn what_cannot_be_renamed_goes_on_and_says_so() {
    let folder = tempfile::tempdir().expect("folder");
    let (inner, path) = (at(&folder, "inner"), at(&folder, "inner/log"));
    fs::create_dir(&inner).expect("folder");
    let writer = LineWriter::open(Target::Rotated(path.clone(), rotation(100, 0)), ROOM).expect("writer");
    assert!(writer.write("x".repeat(90).as_bytes()));
    assert!(writer.flush(PLENTY));
    // The folder is gone: the open file has no name any more, and a new one cannot be made.
    let open = File::open(&path).expect("file");
    fs::remove_dir_all(&inner).expect("folder");
    assert!(writer.write(b"goes on, and would be too much"));
    assert!(writer.flush(PLENTY));
    assert!(writer.write(b"and on"));
    assert!(writer.flush(PLENTY));
    let lines: Vec<String> = BufReader::new(open).lines().map(|line| line.expect("line")).collect();
    assert_eq!(lines[1], "goes on, and would be too much");
    assert!(lines[2].starts_with("maitred: this log could not be rotated, and goes on: "), "{lines:?}");
    assert_eq!(lines[3..], ["and on"]);
}

#[test]
fn syslog_gets_a_message_for_each_line_and_may_be_started_again() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "syslog");
    let receive = |socket: &UnixDatagram| {
        let mut message = [0; 10_000];
        let length = socket.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let open = || {
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(PLENTY)).expect("a timeout");
        socket
    };
    let socket = open();
    let writer = LineWriter::open(Target::Syslog(path.clone()), ROOM).expect("writer");
    assert!(writer.write_as(Severity::Error, b"first"));
    let message = receive(&socket);
    assert!(message.starts_with("<27>1 20") && message.ends_with(" - - first"), "{message}");
    assert!(message.contains(&format!("Z {} maitred {} ", hostname(), std::process::id())), "{message}");
    assert!(writer.write(&[b'x'; 20_000]));
    assert_eq!(receive(&socket).len(), 8192);
    drop(socket);
    fs::remove_file(&path).expect("socket");
    assert!(writer.write(b"while it was away"));
    let socket = open();
    assert!(writer.write(b"last"));
    assert!(receive(&socket).ends_with("while it was away"));
    assert!(receive(&socket).ends_with("last"));
    assert_eq!(writer.dropped(), 0);
}

fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[test]
fn syslog_that_reads_nothing_stops_nobody() {
    let folder = tempfile::tempdir().expect("folder");
    let path = at(&folder, "syslog");
    let socket = UnixDatagram::bind(&path).expect("a socket");
    let writer = LineWriter::open(Target::Syslog(path), 64 * 1024).expect("writer");
    let accepted = fill(&writer);
    let dropped = writer.dropped();
    assert!(dropped >= 10);
    assert!(!writer.flush(Duration::from_millis(50)));
    let mut message = [0; 1000];
    let mut next = || {
        let length = socket.recv(&mut message).expect("a message");
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        text.split_once(" - - ").expect("a message of ours").1.to_owned()
    };
    for number in 0..accepted {
        assert!(next().starts_with(&format!("line {number} ")));
    }
    while !next().contains("lines are missing here") {}
}

#[test]
fn syslog_over_udp() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(PLENTY)).expect("a timeout");
    let address = socket.local_addr().expect("bound");
    let writer = LineWriter::open(Target::SyslogUdp(address), ROOM).expect("writer");
    assert!(writer.write(b"hello"));
    let mut message = [0; 1000];
    let length = socket.recv(&mut message).expect("a message");
    assert!(message[..length].starts_with(b"<30>1 ") && message[..length].ends_with(b" hello"));
}

#[test]
fn a_reminder_says_what_is_due() {
    let (pipe, write) = rustix::pipe::pipe().expect("pipe");
    let reminder: Reminder = Box::new(|say| {
        say(Severity::Info, b"due");
        None
    });
    let target = Target::File(write.into());
    let options = Options { reminder: Some(reminder), ..Options::default() };
    let writer = LineWriter::open_with(target, ROOM, options).expect("writer");
    writer.remind(Instant::now() + Duration::from_millis(20));
    let line = BufReader::new(File::from(pipe)).lines().next().expect("line").expect("pipe");
    assert_eq!(line, "due");
}
