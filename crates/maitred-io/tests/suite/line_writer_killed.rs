//! What a killed process has accepted is written by another one.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Instant;

use maitred_io::line_writer::{Kept, LineWriter, Options, Reminder, Severity, Target, left_behind};
use maitred_io::shared_memory::SharedMemory;

use crate::line_writer_processes::{Other, PLENTY, Task, assert_complete, lines_in, writer};

/// Some numbers, the same each time; what happens at them is not.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn kill_some(max_bytes: u64) {
    const AT_ONCE: u64 = 3;
    const KILLED: u64 = 24;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: u64::MAX, max_bytes, max_file: None };
    let supervisor = writer(&task, None);
    let mut number = numbers();
    let mut others: Vec<Other> = (0..AT_ONCE).map(|number| Other::start(number, &task)).collect();
    let mut expected = BTreeMap::new();
    let mut adopted = 0;
    for next in AT_ONCE..KILLED + AT_ONCE {
        let at = usize::try_from(number(AT_ONCE)).expect("small");
        others[at].wait_for(1 + number(700));
        others[at].kill();
        let killed = std::mem::replace(&mut others[at], Other::start(next, &task));
        adopted += supervisor.adopt(killed.kept());
        expected.insert(killed.number, killed.accepted()..=killed.accepted() + 1);
        assert_eq!(supervisor.adopt(killed.kept()), 0, "once");
    }
    for other in &mut others {
        other.wait_for(1);
        other.kill();
        adopted += supervisor.adopt(other.kept());
        expected.insert(other.number, other.accepted()..=other.accepted() + 1);
    }
    assert!(supervisor.flush(PLENTY));
    assert!(adopted > 0, "none was killed with a line in its memory");
    assert_complete(&lines_in(folder.path(), max_bytes), &expected);
}

#[test]
fn killed_processes_lose_nothing_in_a_file() {
    kill_some(0);
}

#[test]
fn killed_processes_lose_nothing_in_a_file_that_is_rotated() {
    kill_some(30_000);
}

/// The disk takes the beginning of a line, and another process has room later.
#[test]
fn what_a_disk_takes_in_part_is_taken_back_and_left_to_another_process() {
    const COUNT: u64 = 100;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let task = Task { path: &path, lines: COUNT, max_bytes: 0, max_file: Some(5_000) };
    let mut other = Other::start(0, &task);
    other.end();
    let there = lines_in(folder.path(), 5_000).len() as u64;
    let supervisor = writer(&task, None);
    assert_eq!(supervisor.adopt(other.kept()), COUNT - there);
    assert!(supervisor.flush(PLENTY));
    assert!(there > 10 && there < COUNT, "{there}");
    assert_complete(&lines_in(folder.path(), 0), &BTreeMap::from([(0, COUNT..=COUNT)]));
}

/// What nobody completes is ended after a while, so that the next line is one.
#[test]
fn the_beginning_of_a_line_is_ended_before_the_next_one() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    fs::write(&path, "whole\nbeg").expect("file");
    let writer = writer(&Task { path: &path, lines: 0, max_bytes: 0, max_file: None }, None);
    assert!(writer.write(b"next"));
    assert!(writer.flush(PLENTY));
    assert_eq!(fs::read_to_string(&path).expect("file"), "whole\nbeg\nnext\n");
}

fn kept() -> Kept {
    Kept::whole(Arc::new(SharedMemory::new(Kept::bytes(2_000)).expect("memory")))
}

/// Nothing takes the lines: what was accepted is all there, with the number of those that were not.
#[test]
fn what_nobody_takes_is_left_with_the_number_of_lines_that_are_missing() {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).expect("pipe");
    while rustix::io::write(&write, &[b'.'; 4096]).is_ok() {}
    let kept = kept();
    let options = Options { kept: Some(kept.clone()), ..Options::default() };
    let writer = LineWriter::open_with(Target::File(write.into()), 2_000, options).expect("writer");
    let accepted = (0..500).filter(|number| writer.write_as(Severity::Notice, number.to_string().as_bytes()));
    let accepted: Vec<String> = accepted.map(|number| number.to_string()).collect();
    assert!(accepted.len() > 50 && accepted.len() < 150, "{}", accepted.len());
    let left = left_behind(kept.words());
    assert_eq!(left.key(), Target::File(fs::File::open("/dev/null").expect("a device")).key());
    assert_eq!(left.missing, 500 - accepted.len() as u64);
    let lines: Vec<&str> =
        left.lines.iter().map(|(_, line)| str::from_utf8(line).expect("a number")).collect();
    assert_eq!(lines, accepted);
    assert!(left.lines.iter().all(|(severity, _)| *severity == Severity::Notice));

    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let heir = LineWriter::open(Target::Path(path.clone()), 100).expect("writer");
    assert_eq!(heir.adopt(&kept), accepted.len() as u64, "however small its own buffer is");
    assert!(heir.flush(PLENTY));
    let shown = fs::read_to_string(&path).expect("file");
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown[..accepted.len()], accepted);
    let missing = format!("maitred: {} lines are missing here, the log could not be written", left.missing);
    assert_eq!(shown[accepted.len()..], [missing]);
    drop(read);
}

/// A child by fork(2) has the memory of its parent.
#[test]
fn a_child_leaves_the_memory_of_its_parent_alone() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let kept = kept();
    // The thread is in here while the child is made, and has no lock.
    let ((arrived, arrives), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let goes_on = Mutex::new(goes_on);
    let reminder: Reminder = Box::new(move |_| {
        arrived.send(()).expect("this test");
        goes_on.lock().expect("the lock").recv().expect("this test");
        None
    });
    let options = Options { kept: Some(kept.clone()), reminder: Some(reminder), ..Options::default() };
    let writer = LineWriter::open_with(Target::Path(path.clone()), 2_000, options).expect("writer");
    assert!(writer.write(b"before"));
    assert!(writer.flush(PLENTY));
    writer.remind(Instant::now());
    arrives.recv().expect("the thread");
    // SAFETY: the child calls what needs no lock of another thread, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        for _ in 0..10 {
            writer.write(b"of the child");
        }
        // SAFETY: nothing of the parent's is run.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: it is a child of this process, and `status` a number.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(left_behind(kept.words()).is_empty());
    go_on.send(()).expect("the thread");
    assert!(writer.write(b"after"));
    assert!(writer.flush(PLENTY));
    assert_eq!(fs::read_to_string(&path).expect("file"), "before\nafter\n");
}
