//! Pools of a running server: whose thread runs which request, and what is changed while it runs.

mod harness;

use std::sync::Arc;

use harness::{Running, connect, get, get_last, read_response, settings, start, text};
use maitred_runtime::Exchange;
use maitred_server::{PoolRule, PoolSettings, Routes, Settings};

/// Answers with the name of the thread it runs on.
fn whose(exchange: Exchange) {
    let thread = std::thread::current();
    text(exchange, thread.name().unwrap_or_default());
}

fn rule(pool: &str, path: &str) -> PoolRule {
    PoolRule { pool: pool.to_owned(), path: Some(path.parse().unwrap()), ..PoolRule::default() }
}

fn with_reports() -> Settings {
    let mut settings = settings(Routes::new().with_application(Arc::new(whose)));
    settings.pools.push(PoolSettings::named("reports"));
    settings.rules.push(rule("reports", "/report/*"));
    settings
}

fn is_of_reports(running: &Running, path: &str) -> bool {
    let answer = harness::exchange(running.address, &get_last(path));
    assert!(answer.contains("\r\n\r\nmaitred-"), "{path}: {answer}");
    answer.contains("\r\n\r\nmaitred-reports-")
}

#[test]
fn no_spelling_of_a_path_leads_past_its_rule() {
    let running = start(with_reports());
    for path in [
        "/report/a",
        "/%72eport/a",
        "/./x/../report//a?b",
        "/report/a%2Fb",
        "/%72eport/a%2Fb",
        "/report%2fa",
        "/%72eport/%5c",
        "/%72eport/%00",
        "/%72eport/%",
        "/%72eport/a%2Fb?c=%",
    ] {
        assert!(is_of_reports(&running, path), "{path}");
    }
    for path in ["/", "/a/report/b", "/%2572eport/a%2Fb", "/x/../report/a%2Fb", "//report/a%2Fb"] {
        assert!(!is_of_reports(&running, path), "{path}");
    }
}

#[test]
fn rules_are_exchanged_on_open_connections() {
    use std::io::Write;

    let running = start(with_reports());
    let mut stream = connect(running.address);
    let mut ask = |path: &str| {
        stream.write_all(&get(path)).unwrap();
        String::from_utf8(read_response(&mut stream).1).unwrap().contains("-reports-")
    };
    assert!(ask("/report/a") && !ask("/export/a"));
    running.server.set_rules(&[rule("reports", "/export/*")]).unwrap();
    assert!(!ask("/report/a") && ask("/export/a"));
    let error = running.server.set_rules(&[rule("report", "/report/*")]).unwrap_err();
    assert_eq!(error.to_string(), "rule 1 leads to the pool 'report', which does not exist");
    assert!(!ask("/report/a") && ask("/export/a"));
    running.server.set_rules(&[]).unwrap();
    assert!(!ask("/report/a") && !ask("/export/a"));
}
