//! Log targets that take nothing: who is told, and how long a rotated file becomes when many lines leave together.

use maitred_io::line_writer::{LineWriter, Options, Rotation, Target, Tell, Trouble};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Far more than any of these steps needs; reached only by a defect.
const PLENTY: Duration = Duration::from_secs(20);

fn told(target: Target, capacity: usize) -> (LineWriter, Receiver<Trouble>) {
    let (sender, receiver) = channel();
    let tell: Tell = Box::new(move |trouble| _ = sender.send(trouble));
    let options = Options { trouble: Some(tell), ..Options::default() };
    (LineWriter::open_with(target, capacity, options).expect("writer"), receiver)
}

fn turn(link: &Path, to: &Path) {
    let _ = fs::remove_file(link);
    symlink(to, link).expect("link");
}

#[test]
fn a_full_disk_is_told_of_once_when_it_begins_and_once_with_the_count_when_it_is_over() {
    let folder = tempfile::tempdir().expect("folder");
    let (link, log) = (folder.path().join("link"), folder.path().join("log"));
    turn(&link, Path::new("/dev/full"));
    let (writer, troubles) = told(Target::Path(link.clone()), 1000);
    for round in 0..2 {
        while writer.write(b"a line of some length, until nothing more is taken") {}
        assert!(!writer.write(b"another line of that length, for which there is no room"));
        assert!(!writer.flush(Duration::from_millis(50)));
        // The buffer may be full before the thread has tried.
        let begin = troubles.recv_timeout(PLENTY).expect("told");
        match &begin {
            Trouble::Fails(error) => assert_eq!(error.raw_os_error(), Some(Errno::NOSPC.raw_os_error())),
            other => assert!(matches!(other, Trouble::Full), "{begin:?}"),
        }
        turn(&link, &log);
        writer.reopen();
        assert!(writer.flush(PLENTY));
        let over = troubles.recv_timeout(PLENTY).expect("told");
        assert!(matches!(over, Trouble::Over { dropped: 2 }), "round {round}: {over:?}");
        turn(&link, Path::new("/dev/full"));
        writer.reopen();
        // What is missing is told here too, into the full disk again.
        writer.flush(Duration::from_millis(1));
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_told_of_when_the_first_line_is_dropped() {
    let (read, write) = std::io::pipe().expect("pipe");
    let target = Target::File(File::from(std::os::fd::OwnedFd::from(write)));
    let (writer, troubles) = told(target, 1000);
    while writer.write(&[b'x'; 500]) {}
    assert!(matches!(troubles.recv_timeout(PLENTY), Ok(Trouble::Full)));
    writer.write(&[b'y'; 500]);
    let reader = std::thread::spawn(move || BufReader::new(read).lines().count());
    let over = troubles.recv_timeout(PLENTY);
    assert!(matches!(over, Ok(Trouble::Over { dropped: 1 | 2 })), "{over:?}");
    drop(writer);
    reader.join().expect("reader");
}

#[test]
fn what_cannot_be_written_at_the_end_is_counted() {
    let (writer, _troubles) = told(Target::Path("/dev/full".into()), 1000);
    for _ in 0..7 {
        assert!(writer.write(b"lost"));
    }
    assert!(!writer.flush(Duration::from_millis(50)));
    assert_eq!(writer.unwritten(), 7);
}

/// They wait for one another, so that they leave in one batch.
#[test]
fn many_lines_at_once_make_no_file_longer_than_it_may_be() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let stamp = |_: &str, second: u64| format!("{:08}-{:06}", second / 86_400, second % 86_400);
    let rotation =
        Rotation { max_bytes: 2000, period: None, keep: 0, max_age: Duration::ZERO, strftime: stamp };
    let writer = LineWriter::open(Target::Rotated(path, rotation), 1 << 20).expect("writer");
    writer.set_linger(Duration::from_secs(3600));
    for number in 0..300 {
        assert!(writer.write(format!("{number} {}", "x".repeat(90)).as_bytes()));
    }
    assert!(writer.write(&[b'l'; 3000]), "longer than a file");
    assert!(writer.write(b"last"));
    assert!(writer.flush(PLENTY));
    let mut lines = 0;
    for entry in fs::read_dir(folder.path()).expect("folder") {
        let shown = fs::read_to_string(entry.expect("entry").path()).expect("file");
        lines += shown.lines().count();
        assert!(shown.len() <= 2000 || shown.lines().count() == 1, "{} bytes", shown.len());
        assert!(shown.len() <= 2000 || shown.starts_with('l'), "{} bytes", shown.len());
    }
    assert_eq!(lines, 302);
}
