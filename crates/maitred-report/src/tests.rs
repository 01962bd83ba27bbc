//! The worked example: requests sent at once to a pool with fewer threads.

use super::*;

/// Requests of a second, sent at once, `threads` of them at a time; in the order in which they end.
fn example(threads: u64, requests: u64, json: bool) -> String {
    let mut text = String::new();
    for number in 0..requests {
        let start = format!("1700000000.{:06}", number * 10);
        let queue = format!("{}.{:06}", number / threads, 0);
        let (id, path) = (format!("r{number}"), format!("/slow?{number}"));
        text += &if json {
            format!(
                "{{\"start\":{start},\"id\":\"{id}\",\"method\":\"GET\",\"target\":\"{path}\",\"status\":200,\
                 \"pool\":\"default\",\"route\":\"\",\"accept\":0.000000,\"queue\":{queue},\"gate\":0.000000,\
                 \"filter\":0.000000,\"run\":1.000000,\"write\":0.000050,\"total\":9.9}}\n"
            )
        } else {
            format!(
                "127.0.0.1 - - [now] \"GET {path} HTTP/1.1\" 200 5 \"-\" \"start=7 \\\" run=8\" id={id} pool=default \
                 listener=127.0.0.1:80 route=\"-\" ended=complete start={start} accept=0.000000 queue={queue} \
                 gate=0.000000 filter=0.000000 run=1.000000 write=0.000050 total=9.9\n"
            )
        };
    }
    text
}

fn reported(text: &str, arguments: &[&str]) -> String {
    let arguments: Vec<String> =
        arguments.iter().map(ToString::to_string).chain(["a.log".to_owned()]).collect();
    let mut log = Log::default();
    read_all(&mut log, "a.log", &mut text.as_bytes()).expect("memory can be read");
    of(log, &parse(&arguments).expect("arguments"))
}

fn line<'a>(report: &'a str, start: &str) -> Vec<&'a str> {
    let line = report.lines().find(|line| line.trim_start().starts_with(start));
    line.unwrap_or_else(|| panic!("no {start} in\n{report}")).split_whitespace().collect()
}

/// A request, by its number in the order of arrival.
fn request(report: &str, number: usize) -> Vec<&str> {
    line(report.split_once("Requests in the order of arrival").expect("requests").1, &format!("{number} "))
}

#[test]
fn with_three_threads_the_last_three_of_six_wait_as_long_as_the_first_three_run() {
    for json in [false, true] {
        let report = reported(&example(3, 6, json), &["--requests"]);
        // From the arrival of the first to the end of the last.
        assert!(report.starts_with("6 requests in 2.0 s\n"), "{report}");
        assert!(
            report.contains("\n3 requests waited longer than 1.000 ms for a thread, 3 of them while"),
            "{report}"
        );
        assert!(report.contains("\npool default: at most 3 at once\n"), "{report}");
        assert_eq!(
            line(&report, "queue")[1..],
            ["6", "0.000", "500.000", "500.000", "0.000", "1000.000", "1000.000", "1000.000"]
        );
        assert_eq!(line(&report, "run")[1..4], ["6", "1000.000", "1000.000"]);
        // The queue time of the last is the run time of the first.
        let (first, last) = (request(&report, 1), request(&report, 6));
        assert_eq!((first[6], first[3]), ("1000.000", "0.000"));
        assert_eq!(last[3], first[6]);
        assert!(last.join(" ").ends_with("GET /slow, id r5, a.log:6, waited for 3"), "{last:?}");
        assert!(report.contains("100.0%        6"), "{report}");
        let cascade = line(&report, "1    1000.000");
        assert_eq!(cascade[..4], ["1", "1000.000", "1000.000", "1000.000"]);
    }
}

#[test]
fn with_two_threads_the_wait_grows_in_steps() {
    let report = reported(&example(2, 6, false), &["--requests"]);
    assert!(
        report.contains("\n4 requests waited longer than 1.000 ms for a thread, 4 of them while"),
        "{report}"
    );
    assert!(report.contains("\npool default: at most 2 at once\n"), "{report}");
    let queue: Vec<&str> = (1..=6).map(|number| request(&report, number)[3]).collect();
    assert_eq!(queue, ["0.000", "0.000", "1000.000", "1000.000", "2000.000", "2000.000"]);
}

#[test]
fn the_order_is_that_of_arrival_whatever_that_of_the_lines() {
    let text = example(3, 6, false);
    let turned: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    let starts = |text: &str| {
        let report = reported(text, &["--requests"]);
        (1..=6).map(|number| request(&report, number)[1].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(starts(&text), starts(&turned));
}

/// A line of a request, with times in microseconds.
fn logged(id: &str, pool: &str, [start, queue, run]: [u64; 3]) -> String {
    let seconds = |micros: u64| format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let [start, queue, run] = [start, queue, run].map(seconds);
    format!(
        "\"GET /{id} HTTP/1.1\" 200 id={id} pool={pool} start={start} accept=0.000000 queue={queue} run={run}\n"
    )
}

/// The request that each request waited for, by its id.
fn causes(log: &Log, found: &cascades::WaitReport) -> Vec<(String, Option<String>)> {
    let id = |index: usize| log.requests[index].id.to_string();
    (0..log.requests.len()).map(|index| (id(index), found.cause[index].map(id))).collect()
}

fn found(text: &str, least: u64) -> (Log, cascades::WaitReport) {
    let mut log = Log::default();
    read_all(&mut log, "a.log", &mut text.as_bytes()).expect("memory can be read");
    log.requests.sort_by_key(|request| request.start);
    let found = cascades::find(&log, least);
    (log, found)
}

/// NaviServer's worked example: two threads, and requests that take 0.64, 0.245, 0.43 s and so on.
#[test]
fn each_request_waited_for_the_one_that_freed_its_thread() {
    let text = logged("a", "default", [1_000_000, 0, 640_000])
        + &logged("b", "default", [1_005_000, 0, 245_000])
        + &logged("c", "default", [1_020_000, 230_000, 430_000])
        + &logged("d", "default", [1_030_000, 610_000, 100_000])
        + &logged("e", "default", [1_040_000, 640_000, 200_000])
        + &logged("f", "default", [1_050_000, 690_000, 50_000])
        + &logged("g", "default", [2_000_000, 0, 9_000_000]);
    let (log, found) = found(&text, 1000);
    let told: Vec<String> = (causes(&log, &found).into_iter())
        .map(|(id, cause)| format!("{id}<{}", cause.unwrap_or_default()))
        .collect();
    assert_eq!(told, ["a<", "b<", "c<b", "d<a", "e<c", "f<d", "g<"]);
    assert_eq!((found.waits, found.held, found.most.as_slice()), (4, 4, [2].as_slice()));
    let cascade = |id: &str| {
        let own = found.cascades.iter().find(|cascade| &*log.requests[cascade.request].id == id).expect(id);
        (own.waits, own.waited, own.longest)
    };
    assert_eq!(cascade("a"), (2, 610_000 + 590_000, 610_000));
    assert_eq!(cascade("b"), (2, 230_000 + 210_000, 230_000));
    assert_eq!((cascade("c"), cascade("d")), ((1, 430_000, 430_000), (1, 100_000, 100_000)));
    assert_eq!(found.cascades.len(), 4);
}

/// A sequence of numbers that depends on its seed only (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// The longest time between two requests of a thread, in microseconds.
const CHANGE: u64 = 250;

/// A random schedule of some threads with one queue: lines, and for each request that waited longer than a millisecond
/// the one that had its thread before it.
fn schedule(seed: u64, pool: &str) -> (Vec<String>, Vec<(String, Option<String>)>) {
    let mut numbers = Numbers(seed);
    let threads = 1 + numbers.below(6) as usize;
    // Between two requests of a thread.
    let change = [0, 3, 40, CHANGE][numbers.below(4) as usize];
    // When each thread is free, and its last request.
    let mut free: Vec<(u64, Option<String>)> = vec![(0, None); threads];
    let (mut lines, mut causes, mut now) = (Vec::new(), Vec::new(), 1_000_000);
    for number in 0..200 {
        // In bursts, at a rate at which the queue is empty now and then.
        now += if numbers.below(8) == 0 { numbers.below(500_000) } else { numbers.below(2000) };
        let longest = if numbers.below(10) == 0 { 900_000 } else { 40_000 };
        let run = 1 + numbers.below(longest) * threads as u64 / 3;
        let thread = (0..threads).min_by_key(|thread| free[*thread].0).expect("a thread");
        let begun = now.max(free[thread].0);
        let id = format!("{pool}{number}");
        lines.push(logged(&id, pool, [now, begun - now, run]));
        let before = free[thread].1.replace(id.clone());
        causes.push((id, before.filter(|_| begun - now > 1000)));
        free[thread].0 = begun + run + change;
    }
    (lines, causes)
}

#[test]
fn in_a_hundred_schedules_every_wait_is_for_the_request_before_on_that_thread() {
    let mut waits = 0;
    for seed in 0..100 {
        let (mut lines, mut expected) = schedule(seed, "one");
        let (others, more) = schedule(seed + 1000, "two");
        lines.extend(others);
        expected.extend(more);
        // Lines are in the order of the ends, more or less.
        let mut numbers = Numbers(seed);
        for at in (1..lines.len()).rev() {
            lines.swap(at, numbers.below(at as u64 + 1) as usize);
        }
        let (log, found) = found(&lines.concat(), 1000);
        let mut told = causes(&log, &found);
        told.sort();
        expected.sort();
        assert_eq!(told, expected, "seed {seed}");
        let waited: u64 = log.requests.iter().map(read::Request::queue).filter(|queue| *queue > 1000).sum();
        let told: u64 = found.cascades.iter().map(|cascade| cascade.waited).sum();
        // A thread has no request while it changes from one to the next.
        assert!((told..=told + CHANGE).contains(&waited), "seed {seed}: {told} of {waited}");
        waits += found.waits;
    }
    assert!(waits > 5000, "{waits} waits are too few to tell");
}

#[test]
fn a_wait_in_which_nothing_ended_belongs_to_no_request() {
    let text = logged("a", "default", [1_000_000, 0, 9_000_000])
        + &logged("other", "other", [1_000_000, 0, 200_000])
        + &logged("b", "default", [1_100_000, 300_000, 100_000]);
    let (log, found) = found(&text, 1000);
    assert!(causes(&log, &found).iter().all(|(_, cause)| cause.is_none()));
    assert_eq!((found.waits, found.held, found.cascades.len()), (1, 0, 0));
}

#[test]
fn lines_that_are_not_understood_are_counted_and_the_first_is_shown() {
    let text = "hello\n\n127.0.0.1 - - [now] \"GET / HTTP/1.1\" 200 5\n{\"start\":}\n".to_owned()
        + "maitred: 17 lines are missing here, the log could not be written\n{\"notice\":\"x\",\"missing\":3}\n"
        + &example(1, 1, true);
    let report = reported(&text, &[]);
    assert!(report.contains("\n3 lines were not understood, the first one a.log:1: hello\n"), "{report}");
    assert!(report.contains("\n20 lines are missing in the log, it says\n"), "{report}");
    assert!(report.starts_with("1 requests"), "{report}");
    let nothing = reported("", &[]);
    assert!(nothing.contains("There is nothing to report"), "{nothing}");
}

#[test]
fn a_log_of_which_no_line_is_understood_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let name = log.to_str().expect("UTF-8").to_owned();
    std::fs::write(&log, "\n127.0.0.1 - - [now] \"GET / HTTP/1.1\" 200 5\n").expect("a file");
    for arguments in [vec![name.clone()], vec!["--json".to_owned(), name.clone()]] {
        let error = report(&arguments).expect_err("nothing is understood").to_string();
        assert!(
            error.starts_with(&format!("{name}:2: no line has the start of a request and its times")),
            "{error}"
        );
        assert!(error.ends_with("; write the log with --access-log-format times or json"), "{error}");
    }
    std::fs::write(&log, "").expect("a file");
    assert!(report(&[name]).expect("nothing has come yet").starts_with("0 requests\n"));
}

#[test]
fn a_log_gives_no_orders_to_the_terminal() {
    let text = "odd \u{1b}[2J\n{\"start\":1.5,\"run\":1.0,\"route\":\"GET /\\u001b[2J\"}\n";
    let report = reported(text, &[]);
    assert!(
        report.contains("odd [2J") && report.contains("GET /[2J") && !report.contains('\u{1b}'),
        "{report}"
    );
}

#[test]
fn json_is_json() {
    let report = reported(&example(3, 6, true), &["--json", "--requests", "--top", "1"]);
    assert!(report.starts_with(
        "{\"requests\":6,\"missing\":0,\"not_understood\":0,\"spans\":{\"accept\":{\"count\":6,"
    ));
    assert!(
        report.contains("\"most_at_once\":{\"default\":3}") && report.contains("\"waited_for\":1"),
        "{report}"
    );
    let depth = report.chars().fold(0, |depth, character| match character {
        '{' | '[' => depth + 1,
        '}' | ']' => depth - 1,
        _ => depth,
    });
    assert_eq!(depth, 0);
}

#[test]
fn wrong_arguments_come_with_a_remedy() {
    let error = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        report(&arguments).expect_err("wrong").to_string()
    };
    assert_eq!(error(&["--jsn", "a"]), "--jsn: unknown option; did you mean --json?");
    assert_eq!(error(&["--top"]), "--top: needs a value; for example --top 20");
    assert_eq!(
        error(&["--wait", "soon", "a"]),
        "--wait: 'soon' is no time in seconds; give one, for example 0.001"
    );
    assert!(error(&[]).starts_with("report: no log was named; "));
    assert!(error(&["/nowhere/at/all"]).starts_with("/nowhere/at/all: cannot be read: "));
    assert_eq!(report(&["--help".to_owned()]).expect("help"), USAGE);
}
