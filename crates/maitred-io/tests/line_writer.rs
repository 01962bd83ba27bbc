//! The line writer against real files, pipes and devices.

use maitred_io::line_writer::{LineWriter, Target};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::PipeFlags;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::symlink;
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
