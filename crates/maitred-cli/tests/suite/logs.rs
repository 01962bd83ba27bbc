//! Logs of the built binary: signals and places.

use std::fs;
use std::time::{Duration, Instant};

use crate::harness::{Serving, site};

/// Longest wait; reached only by a defect.
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn sigusr1_opens_renamed_logs_anew() {
    let folder = site();
    let path = |name: &str| folder.path().join(name);
    let mut serving =
        Serving::start(&folder, &["site/", "--access-log", "a.log", "--access-log-format", "$request_uri"]);
    assert_eq!(serving.fetch("/?1"), "hello");
    // The line is written a moment after the answer.
    let begin = Instant::now();
    while fs::read_to_string(path("a.log")).expect("a log").is_empty() {
        assert!(begin.elapsed() < PATIENCE, "no line");
    }
    fs::rename(path("a.log"), path("a.old")).expect("renamed");
    serving.signal("USR1");
    serving.wait_for("info SIGUSR1: the log files are opened anew");
    assert_eq!(serving.fetch("/?2"), "hello");
    serving.signal("TERM");
    assert_eq!(serving.end().code(), Some(0));
    assert_eq!(fs::read_to_string(path("a.old")).expect("the old one"), "/?1\n");
    assert_eq!(fs::read_to_string(path("a.log")).expect("the new one"), "/?2\n");
}

#[test]
fn files_are_rotated_by_the_binary() {
    let folder = site();
    let options =
        ["site/", "--access-log", "a.log", "--access-log-format", "$request_uri", "--log-rotate-size", "10"];
    let mut serving = Serving::start(&folder, &[&options[..], &["--log-keep", "2"]].concat());
    for number in 0..5 {
        assert_eq!(serving.fetch(&format!("/?{number}{}", "x".repeat(8))), "hello");
    }
    serving.signal("TERM");
    assert_eq!(serving.end().code(), Some(0));
    let names =
        fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let logs = names.filter(|name| name.to_string_lossy().starts_with("a.log")).count();
    assert!((1..=3).contains(&logs), "{logs}");
    let last = fs::read_to_string(folder.path().join("a.log")).expect("a log");
    assert!(last.starts_with('/') && last.ends_with("/?4xxxxxxxx\n"), "{last}");
}
