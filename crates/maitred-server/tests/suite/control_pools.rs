//! Questions about one pool, and what is counted of each.

use std::io::Write;
use std::sync::Arc;

use maitred_control::commands;
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::Exchange;
use maitred_server::{PoolLimits, Routes};
use serde_json::Value;

use crate::harness::asked::{Controlled, texts};
use crate::harness::door::{Door, Opened, guarded};
use crate::harness::pools::with_reports;
use crate::harness::{ask, connect, read_response, settings, wait_until};

/// One thread in each of the two pools; requests wait at the door.
fn loaded() -> (Controlled, Opened) {
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_application(Arc::new(guarded(&door)));
    let settings = with_reports(settings(routes), |settings| {
        settings.pool.limits = PoolLimits { max_threads: 1, ..settings.pool.limits };
        settings.pools[0].limits.max_threads = 1;
        settings.poll_groups = 1;
    });
    (Controlled::start(settings), Opened(door))
}

fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let rows = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}: {list}"))
}

#[test]
fn every_query_takes_a_pool_and_shows_what_is_of_it() {
    let (controlled, door) = loaded();
    let mut clients = Vec::new();
    for (count, path) in (1..).zip(["/wait/1", "/report/1"]) {
        clients.push(ask(controlled.address(), path));
        door.0.wait_for(count);
    }
    for path in ["/wait/2", "/report/2", "/report/3"] {
        clients.push(ask(controlled.address(), path));
    }
    wait_until("three wait", || controlled.query("/queued")["total"] == 3);
    // This server has no certificates to show, and keeps no history.
    let are_there = commands().iter().filter(|command| !["tls", "history"].contains(&command.name));
    for command in are_there.filter(|command| !command.change) {
        let needed = if command.name == "explain" { "method=GET&url=/report/1&" } else { "" };
        let path = format!("/{}?{needed}pool=", command.name.replace(' ', "/"));
        controlled.query(&format!("{path}reports"));
        let (status, refused) = controlled.ask("GET", &format!("{path}report"));
        assert_eq!(
            (status, &refused["error"]),
            (404, &"there is no pool 'report'; did you mean 'reports'?".into())
        );
    }
    let of = |what: &str| controlled.query(&format!("/{what}?pool=reports"));
    assert_eq!(texts(&of("active")["active"], "path"), ["/report/1"]);
    // In any order: by TLS the handshake before is a part of how long each is there.
    let mut queued = texts(&of("queued")["queued"], "path");
    queued.sort_unstable();
    assert_eq!(queued, ["/report/2", "/report/3"]);
    assert_eq!(of("queued")["total"], 2);
    let all = of("all");
    assert_eq!(all["total"], 3);
    assert_eq!([texts(&all["active"], "path").len(), texts(&all["queued"], "path").len()], [1, 2]);
    assert_eq!(controlled.query("/all")["total"], 5);
    assert_eq!(of("connections")["connections"][0]["running"], 3);
    assert_eq!(texts(&of("threads")["threads"], "name"), ["maitred-reports-1"]);
    assert_eq!(texts(&of("threads")["threads"], "pool"), ["reports"]);
    assert_eq!(texts(&of("pools")["pools"], "name"), ["reports"]);
    assert_eq!(texts(&of("map")["rules"], "pool"), ["reports"]);
    assert_eq!(texts(&of("handlers")["handlers"], "path"), ["/report*"]);
    assert_eq!(texts(&of("locks")["locks"], "name"), ["reports.queue", "reports.threads"]);
    let explained = controlled.query("/explain?method=GET&url=/other&pool=reports");
    assert_eq!((&explained["pool"], &explained["is_in_pool"]), (&"default".into(), &false.into()));
    assert_eq!(controlled.query("/map?pool=default")["rules"], serde_json::json!([]));
    drop(door);
    for client in &mut clients {
        read_response(client);
    }
    wait_until("all is counted", || of("stats")["requests"] == 3);
    let stats = of("stats");
    assert!(stats["queued"].as_u64().is_some_and(|queued| queued >= 2), "{stats}");
    assert_eq!((&stats["dropped"], &stats["spooled"]), (&0.into(), &0.into()));
    assert_eq!(texts(&stats["routes"], "name"), ["GET /report/*"]);
    assert_eq!(named_span(&stats, "queue")["count"], 3);
    let pools = &controlled.query("/stats")["pools"];
    let [queue, run] = ["queue_seconds", "run_seconds"].map(|name| named(pools, "reports")[name].as_f64());
    assert!(queue.is_some_and(|mean| mean > 0.0) && run.is_some_and(|mean| mean > 0.0), "{pools}");
}

fn named_span<'a>(stats: &'a Value, name: &str) -> &'a Value {
    stats["spans"].as_array().unwrap().iter().find(|row| row["span"] == name).unwrap()
}

#[test]
fn bodies_in_files_and_the_application_s_own_times_are_counted_by_pool() {
    let handler = |exchange: Exchange| {
        let head = ResponseHead::new(Status::OK).with("Server-Timing", "db;dur=12.5");
        let _ = exchange.respond(head, "x");
    };
    let mut settings = with_reports(settings(Routes::new().with_application(Arc::new(handler))), |_| {});
    settings.body_memory = 10;
    settings.body_budget = 0;
    let folder = tempfile::tempdir().unwrap();
    settings.spool = folder.path().to_owned();
    let controlled = Controlled::start(settings);
    for (path, length) in [("/report/1", 11), ("/report/2", 10), ("/other", 5)] {
        let mut client = connect(controlled.address());
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).unwrap();
        client.write_all(&vec![b'x'; length]).unwrap();
        assert!(read_response(&mut client).0.starts_with("HTTP/1.1 200 "));
    }
    wait_until("all is counted", || controlled.query("/stats")["requests"] == 3);
    let stats = controlled.query("/stats");
    let spooled = |pool: &str| named(&stats["pools"], pool)["spooled"].clone();
    assert_eq!([spooled("reports"), spooled("default")], [1, 0]);
    let timings = &stats["application_timings"];
    assert_eq!(texts(timings, "name"), ["db"; 2], "by pool and route: {timings}");
    let of_pool = &controlled.query("/stats?pool=reports")["application_timings"];
    let sum: f64 = of_pool.as_array().unwrap().iter().map(|row| row["sum_seconds"].as_f64().unwrap()).sum();
    assert_eq!((texts(of_pool, "pool"), sum), (vec!["reports".to_owned()], 0.025));
}

#[test]
fn dispatch_traces_are_kept_while_they_are_on() {
    let (controlled, door) = loaded();
    door.0.open();
    let get = |path: &str| read_response(&mut ask(controlled.address(), path));
    get("/wait/untraced");
    controlled.server.log().set_trace(true);
    // A trace is written down after its response: the next request waits for that.
    for (count, path) in [(1, "/wait/1"), (2, "/report/1")] {
        get(path);
        wait_until("it is there", || texts(&controlled.query("/traces")["traces"], "path").len() == count);
    }
    let traces = controlled.query("/traces");
    assert_eq!(traces["dispatch_trace"], "on");
    assert_eq!(texts(&traces["traces"], "path"), ["/report/1", "/wait/1"]);
    let of_pool = &controlled.query("/traces?pool=default")["traces"];
    assert_eq!(texts(of_pool, "pool"), ["default"]);
    let entry = &of_pool[0];
    assert_eq!((&entry["method"], &entry["status"]), (&"GET".into(), &200.into()));
    // The only thread may still be with the request before: the backup poller reads this one then.
    assert!(["direct", "from the queue"].contains(&entry["got"].as_str().unwrap()), "{entry}");
    assert!(entry["run_seconds"].as_f64().is_some() && entry["threads"] == 1, "{entry}");
}

#[test]
fn locks_of_folders_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "a").unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let settings = settings(Routes::new().with_static("/", files));
    let controlled = Controlled::start(settings);
    assert!(read_response(&mut ask(controlled.address(), "/a.txt")).0.starts_with("HTTP/1.1 200 "));
    let locks = &controlled.query("/locks")["locks"];
    let count = named(locks, "static.folders")["acquisitions"].as_u64();
    assert!(count.is_some_and(|count| count > 0), "{locks}");
}

#[test]
fn idle_threads_while_requests_wait_are_shown() {
    let (controlled, _door) = loaded();
    for pool in controlled.query("/pools")["pools"].as_array().unwrap() {
        let idle = &pool["idle_while_waiting"];
        assert_eq!(
            (&idle["requests"], &idle["total_seconds"], &idle["longest_seconds"]),
            (&0.into(), &0.0.into(), &0.0.into())
        );
    }
}

#[test]
fn an_explained_file_is_the_real_one() {
    let folder = tempfile::tempdir().unwrap();
    let real = std::fs::canonicalize(folder.path()).unwrap();
    std::fs::create_dir(real.join("release")).unwrap();
    std::fs::write(real.join("release/index.html"), "start").unwrap();
    std::os::unix::fs::symlink("release", real.join("current")).unwrap();
    let files = StaticFiles::open(&real.join("current"), StaticSettings::default()).unwrap();
    let controlled = Controlled::start(settings(Routes::new().with_static("/", files)));
    let file = controlled.query("/explain?method=GET&url=/");
    assert_eq!(file["file"], real.join("release/index.html").to_str().unwrap());
    assert_eq!(file["folder"], real.join("current").to_str().unwrap());
    let none = controlled.query("/explain?method=GET&url=/none");
    assert_eq!((&none["status"], &none["file"]), (&404.into(), &Value::Null));
}
