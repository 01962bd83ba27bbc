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
        assert!(report.starts_with("6 requests in 0.000050 s\n"), "{report}");
        assert!(
            report.contains("\n3 requests waited longer than 0.001000 s for a thread, 3 of them while"),
            "{report}"
        );
        assert!(report.contains("\npool default: at most 3 at once\n"), "{report}");
        assert_eq!(
            line(&report, "queue")[1..],
            ["6", "0.000000", "0.500000", "0.500000", "0.000000", "1.000000", "1.000000", "1.000000"]
        );
        assert_eq!(line(&report, "run")[1..4], ["6", "1.000000", "1.000000"]);
        // The queue time of the last is the run time of the first.
        let (first, last) = (request(&report, 1), request(&report, 6));
        assert_eq!((first[6], first[3]), ("1.000000", "0.000000"));
        assert_eq!(last[3], first[6]);
        assert!(last.join(" ").ends_with("GET /slow, id r5, a.log:6, waited for 1"), "{last:?}");
        assert!(report.contains("100.0%         6"), "{report}");
        let cascade = line(&report, "3    3.000000");
        assert_eq!(cascade[..4], ["3", "3.000000", "1.000000", "1.000000"]);
    }
}

#[test]
fn with_two_threads_the_wait_grows_in_steps() {
    let report = reported(&example(2, 6, false), &["--requests"]);
    assert!(
        report.contains("\n4 requests waited longer than 0.001000 s for a thread, 4 of them while"),
        "{report}"
    );
    assert!(report.contains("\npool default: at most 2 at once\n"), "{report}");
    let queue: Vec<&str> = (1..=6).map(|number| request(&report, number)[3]).collect();
    assert_eq!(queue, ["0.000000", "0.000000", "1.000000", "1.000000", "2.000000", "2.000000"]);
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

#[test]
fn the_longest_of_those_that_held_the_threads_is_named() {
    let request = |id: &str, start: &str, queue: &str, run: &str, pool: &str| {
        format!("\"GET /{id} HTTP/1.1\" 200 id={id} pool={pool} start={start} queue={queue} run={run}\n")
    };
    let text = request("report", "1.000000", "0", "9", "default")
        + &request("quick", "2.000000", "0", "1", "default")
        + &request("waits", "2.100000", "0.9", "0.1", "default")
        + &request("elsewhere", "2.200000", "0", "50", "other")
        + &request("waits-too", "9.900000", "0.2", "0.1", "default")
        + &request("later", "9.800000", "0", "0.3", "default");
    let report = reported(&text, &["--json"]);
    let cascades = report.split_once("\"cascades\":").expect("cascades").1;
    assert!(cascades.starts_with("[{\"waits\":2,\"waited\":1.100000,\"longest\":0.900000,"), "{cascades}");
    assert!(cascades.contains("\"id\":\"report\"") && !cascades.contains("elsewhere"), "{cascades}");
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
    let nothing = reported("hello\n", &[]);
    assert!(nothing.contains("There is nothing to report"), "{nothing}");
}

#[test]
fn nothing_in_a_log_tells_the_terminal_what_to_do() {
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
