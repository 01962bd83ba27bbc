//! SIGHUP: the built binary reads its configuration again while it serves.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

use crate::harness::{Serving, site};

const FILE: &str = "\
metrics-path = \"/metrics\"
max-threads = 20

[pool.reports]
max-threads = 2
match = \"/report/*\"
";

fn serving(file: &str) -> (TempDir, Serving) {
    let folder = site();
    fs::write(folder.path().join("maitred.toml"), file).expect("a file");
    let serving = Serving::start(&folder, &["site/"]);
    (folder, serving)
}

impl Serving {
    /// The figure of a pool that `/metrics` shows.
    fn figure(&self, name: &str, pool: &str) -> String {
        let metrics = self.fetch("/metrics");
        let start = format!("{name}{{pool=\"{pool}\"}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&start)).expect(&start).to_owned()
    }

    fn most_threads(&self) -> [String; 2] {
        ["default", "reports"].map(|pool| self.figure("maitred_pool_threads_max", pool))
    }

    fn reload(&self, folder: &TempDir, file: &str) {
        fs::write(folder.path().join("maitred.toml"), file).expect("a file");
        self.signal("HUP");
    }
}

#[test]
fn limits_of_pools_are_changed_and_the_rest_is_named() {
    let (folder, mut serving) = serving(FILE);
    assert_eq!(serving.most_threads(), ["20", "2"]);
    let file = FILE.replace("= 20", "= 30\nkeep-alive = 3").replace("= 2\n", "= 4\nmin-threads = 3\n");
    serving.reload(&folder, &file);
    serving.wait_for("info SIGHUP: the configuration has been read again");
    serving.wait_for("info pool default: max-threads 20 -> 30");
    serving.wait_for("info pool reports: min-threads 0 -> 3");
    serving.wait_for("info pool reports: max-threads 2 -> 4");
    serving.wait_for("warn changed, but only a restart applies it: keep-alive");
    assert_eq!(serving.most_threads(), ["30", "4"]);
    assert_eq!(serving.figure("maitred_pool_threads", "reports"), "3");
    serving.reload(&folder, FILE);
    serving.wait_for("info pool reports: max-threads 4 -> 2");
    assert_eq!(serving.most_threads(), ["20", "2"]);
    serving.signal("HUP");
    serving.wait_for("info nothing has changed");
    serving.signal("TERM");
    serving.wait_for("drained");
    assert_eq!(serving.end().code(), Some(0));
}

#[test]
fn a_configuration_that_is_not_valid_changes_nothing() {
    let (folder, mut serving) = serving(FILE);
    serving.reload(&folder, &FILE.replace("= 20", "= 30").replace("= 2\n", "= many\n"));
    let line = serving.wait_for(" error SIGHUP: ");
    assert!(line.contains("not valid, nothing has changed: maitred.toml:5"), "{line}");
    serving.reload(&folder, &FILE.replace("= 20", "= 30").replace("= 2\n", "= 2\nmin-threads = 3\n"));
    let line = serving.wait_for(" error SIGHUP: ");
    assert!(line.contains("maitred.toml:6: pool.reports.min-threads: "), "{line}");
    assert_eq!(serving.most_threads(), ["20", "2"]);
}

#[test]
fn the_files_are_those_of_the_folder_it_was_started_in() {
    let folder = site();
    let write = |queue: usize| {
        let text = format!("chdir = \"site\"\nmetrics-path = \"/m\"\napplication = \".\"\nqueue = {queue}\n");
        fs::write(folder.path().join("own.toml"), text).expect("a file");
    };
    write(10);
    let mut serving = Serving::start(&folder, &["--config", "own.toml"]);
    write(20);
    serving.signal("HUP");
    serving.wait_for("info pool default: queue 10 -> 20");
    fs::create_dir(folder.path().join("own.toml.d")).expect("a folder");
    fs::write(folder.path().join("own.toml.d/1.toml"), "queue = 30\n").expect("a file");
    serving.signal("HUP");
    serving.wait_for("info pool default: queue 20 -> 30");
}

#[test]
fn requests_are_answered_all_the_while() {
    /// Number of changes; the log has each one before the next is made.
    const CHANGES: usize = 20;
    let (folder, mut serving) = serving(FILE);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                let mut stream = serving.connect();
                let done = &done;
                scope.spawn(move || {
                    let mut answers = BufReader::new(stream.try_clone().expect("a descriptor"));
                    let mut count = 0;
                    while !done.load(Ordering::Relaxed) || count == 0 {
                        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
                        let mut line = String::new();
                        while line != "\r\n" {
                            line.clear();
                            assert!(answers.read_line(&mut line).expect("an answer") > 0, "it closed");
                        }
                        let mut body = [0; 5];
                        answers.read_exact(&mut body).expect("a body");
                        assert_eq!(&body, b"hello");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for change in 0..CHANGES {
            let [from, to] = if change % 2 == 0 { [20, 1] } else { [1, 20] };
            serving.reload(&folder, &FILE.replace("= 20", &format!("= {to}")));
            serving.wait_for(&format!("info pool default: max-threads {from} -> {to}"));
        }
        done.store(true, Ordering::Relaxed);
        assert!(clients.into_iter().all(|client| client.join().expect("every request was answered") > 0));
    });
    serving.signal("TERM");
    assert_eq!(serving.end().code(), Some(0));
}
