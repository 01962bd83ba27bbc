//! A killed process loses the lines that wait in it, and no other ones.

use std::collections::BTreeMap;
use std::fs;

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
    let mut number = numbers();
    let mut others: Vec<Other> = (0..AT_ONCE).map(|number| Other::start(number, &task)).collect();
    let mut expected = BTreeMap::new();
    for next in AT_ONCE..KILLED + AT_ONCE {
        let at = usize::try_from(number(AT_ONCE)).expect("small");
        others[at].wait_for(1 + number(700));
        others[at].kill();
        let killed = std::mem::replace(&mut others[at], Other::start(next, &task));
        expected.insert(killed.number, killed.written());
    }
    for other in &mut others {
        other.wait_for(1);
        other.kill();
        expected.insert(other.number, other.written());
    }
    // After the last one that was killed.
    let last = KILLED + AT_ONCE;
    Other::start(last, &Task { lines: 1, ..task }).end();
    expected.insert(last, 1..=1);
    assert_complete(&lines_in(folder.path(), max_bytes), &expected);
}

#[test]
fn killed_processes_leave_whole_lines_in_a_file() {
    kill_some(0);
}

#[test]
fn killed_processes_leave_whole_lines_in_a_file_that_is_rotated() {
    kill_some(30_000);
}

/// The disk takes the beginning of a line.
#[test]
fn what_a_disk_takes_in_part_is_taken_back() {
    const COUNT: u64 = 100;
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    let mut other = Other::start(0, &Task { path: &path, lines: COUNT, max_bytes: 0, max_file: Some(5_000) });
    other.end();
    assert_complete(&lines_in(folder.path(), 5_000), &BTreeMap::from([(0, 10..=COUNT - 1)]));
}

/// What a file is after the line `next`, if it was `before`.
fn continued(before: &str) -> String {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("log");
    fs::write(&path, before).expect("file");
    let writer = writer(&Task { path: &path, lines: 0, max_bytes: 0, max_file: None });
    assert!(writer.write(b"next"));
    assert!(writer.flush(PLENTY));
    fs::read_to_string(&path).expect("file")
}

/// The kernel ends the write of a killed process between two pages.
#[test]
fn the_beginning_of_a_line_up_to_the_end_of_a_page_is_cut_off() {
    let whole = "whole\n".repeat(600);
    for pages in [1, 2, 16] {
        let begin = "b".repeat(pages * 4096 - whole.len());
        assert_eq!(continued(&format!("{whole}{begin}")), format!("{whole}next\n"), "{pages} pages");
    }
    // All of this was not one write.
    let long = "b".repeat(17 * 4096 - 6);
    assert_eq!(continued(&format!("whole\n{long}")), format!("whole\n{long}\nnext\n"));
}

#[test]
fn another_end_without_a_line_feed_stays_and_gets_one() {
    assert_eq!(continued("whole\nbeg"), "whole\nbeg\nnext\n");
    assert_eq!(continued(&"b".repeat(4096)), format!("{}\nnext\n", "b".repeat(4096)));
}
