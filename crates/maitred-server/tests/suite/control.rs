//! Every query and change that needs no owner, against a server whose threads are all in the application.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use maitred_control::{DoorSettings, Doors, NotOpened, commands, read_token};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_server::{Level, Log, LogTarget, PoolLimits, Routes, Settings};
use maitred_testkit::client::Client;

use crate::harness::asked::{Controlled, answer, texts};
use crate::harness::door::{Door, Opened, guarded};
use crate::harness::pools::with_reports;
use crate::harness::{PATIENCE, ask, connect, get, settings, wait_until};

/// One thread for `/report...`, two for the rest, and a metrics path; all wait at the door.
fn loaded(change: impl FnOnce(&mut DoorSettings)) -> (Controlled, Opened) {
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_application(Arc::new(guarded(&door)));
    let settings = with_reports(settings(routes), |settings| {
        settings.pool.limits = PoolLimits { max_threads: 2, ..settings.pool.limits };
        settings.pools[0].limits.max_threads = 1;
        settings.poll_groups = 1;
    });
    (Controlled::with(settings, change), Opened(door))
}

/// Fills all threads and lets two more requests wait. The requests of a pool are of one route: beside those of another route the
/// reserve thread may run one.
fn fill(controlled: &Controlled, door: &Door) -> Vec<Client> {
    let mut clients = Vec::new();
    for (count, path) in (1..).zip(["/wait/1?q=1", "/wait/2", "/report/1"]) {
        clients.push(ask(controlled.address(), path));
        door.wait_for(count);
    }
    for path in ["/wait/3", "/report/2"] {
        clients.push(ask(controlled.address(), path));
    }
    wait_until("two wait", || controlled.query("/queued")["total"] == 2);
    clients
}

#[test]
fn requests_in_the_application_and_in_the_queue_are_shown_while_every_thread_is_busy() {
    let (controlled, door) = loaded(|_| {});
    let clients = fill(&controlled, &door.0);
    let active = controlled.query("/active");
    assert_eq!(active["total"], 3);
    assert_eq!(texts(&active["active"], "path"), ["/wait/1", "/wait/2", "/report/1"]);
    assert_eq!(texts(&active["active"], "pool"), ["default", "default", "reports"]);
    let peers: Vec<_> = clients.iter().map(|client| client.local_addr().unwrap().to_string()).collect();
    assert_eq!(texts(&active["active"], "peer"), peers[..3]);
    assert_eq!(active["active"][0]["method"], "GET");
    assert_eq!(active["active"][2]["thread"], "maitred-reports-1");
    let queued = controlled.query("/queued");
    // By TLS the handshake before is a part of how long each is there, so the second may be the first one.
    let mut waiting: Vec<_> =
        texts(&queued["queued"], "path").into_iter().zip(texts(&queued["queued"], "peer")).collect();
    waiting.sort_unstable();
    assert_eq!(
        waiting,
        [("/report/2".to_owned(), peers[4].clone()), ("/wait/3".to_owned(), peers[3].clone())]
    );
    assert!(queued["queued"][0]["for_seconds"].as_f64().unwrap() >= 0.0);
    let connections = controlled.query("/connections");
    assert_eq!((&connections["total"], &connections["connections"][0]["running"]), (&5.into(), &5.into()));
    // A thread is what it is called, which it says itself when it begins.
    let has_spooler =
        |threads: &serde_json::Value| texts(&threads["roles"], "role").contains(&"spooler".to_owned());
    wait_until("the spooler has begun", || has_spooler(&controlled.query("/threads")));
    let threads = controlled.query("/threads");
    let of_role = |role: &str| {
        let all = threads["threads"].as_array().unwrap().iter();
        all.filter(|thread| thread["role"] == role).collect::<Vec<_>>()
    };
    let mut paths: Vec<_> = of_role("worker").iter().map(|thread| thread["path"].as_str().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/report/1", "/wait/1", "/wait/2"]);
    assert_eq!((of_role("backup poller").len(), of_role("backup poller")[0]["path"].is_null()), (1, true));
    assert!(!of_role("control").is_empty());
    assert!(texts(&threads["roles"], "role").contains(&"worker".to_owned()));
    let pools = controlled.query("/pools");
    assert_eq!(texts(&pools["pools"], "name"), ["default", "reports"]);
    let [default, reports] = [&pools["pools"][0], &pools["pools"][1]];
    assert_eq!(
        (&default["threads"], &default["max_threads"], &default["queued"]),
        (&2.into(), &2.into(), &1.into())
    );
    assert_eq!((&reports["threads"], &reports["queued"]), (&1.into(), &1.into()));
    let status = controlled.query("/status");
    assert_eq!((&status["draining"], &status["connections"]), (&false.into(), &5.into()));
    assert_eq!(status["pid"], std::process::id());
    assert_eq!(controlled.query("/stats")["connections"], 5);
    assert!(texts(&controlled.query("/locks")["locks"], "name").contains(&"reports.queue".to_owned()));
    assert_eq!(controlled.query("/settings")["settings"], serde_json::json!([]));
}

#[test]
fn with_the_answer_a_request_is_gone_from_the_lists() {
    let (controlled, door) = loaded(|_| {});
    let clients = fill(&controlled, &door.0);
    drop(door);
    for mut client in clients {
        crate::harness::read_response(&mut client);
    }
    wait_until("none is active", || controlled.query("/active")["total"] == 0);
    let stats = controlled.query("/stats");
    assert_eq!(stats["requests"], 5);
    assert_eq!(texts(&stats["pools"], "name"), ["default", "reports"]);
    assert_eq!(texts(&stats["spans"], "span").last().map(String::as_str), Some("total"));
    let of_route = controlled.query("/stats?route=GET%20/wait/*");
    assert_eq!((&of_route["requests"], &of_route["spans"][6]["count"]), (&3.into(), &3.into()));
    let (status, unknown) = controlled.ask("GET", "/stats?route=GET%20/wiat/*");
    assert_eq!(status, 404);
    assert!(unknown["error"].as_str().unwrap().ends_with("did you mean 'GET /wait/*'?"), "{unknown}");
    assert_eq!(controlled.query("/queued")["total"], 0);
    let threads = controlled.query("/threads");
    assert!(threads["threads"].as_array().unwrap().iter().all(|thread| thread["path"].is_null()));
}

/// The whole answer to a request for the figures at the listener for HTTP.
fn scraped(controlled: &Controlled, fields: &str) -> String {
    let mut stream = TcpStream::connect(controlled.control.doors().admin().unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\n{fields}\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "12345").unwrap();
    std::fs::write(folder.path().join("large"), vec![b'x'; 32 << 20]).unwrap();
    folder
}

fn with_files(folder: &tempfile::TempDir) -> Settings {
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_static("/files", files).with_application(Arc::new(guarded(&door)));
    with_reports(settings(routes), |settings| settings.health_path = Some("/healthy".to_owned()))
}

#[test]
fn where_a_request_is_led_is_explained_and_it_is_not_made() {
    let folder = folder();
    let controlled = Controlled::start(with_files(&folder));
    let explain = |rest: &str| controlled.query(&format!("/explain?{rest}"));
    let file = explain("method=GET&url=/files/x/../a.txt");
    let real = std::fs::canonicalize(folder.path().join("a.txt")).unwrap();
    assert_eq!((&file["leads_to"], &file["file"]), (&"static files".into(), &real.to_str().unwrap().into()));
    assert_eq!((&file["status"], &file["length_bytes"]), (&200.into(), &5.into()));
    assert_eq!(explain("method=GET&url=/files/none")["status"], 404);
    assert_eq!(explain("method=GET&url=/files")["status"], 308);
    let report = explain("method=POST&url=/report/1%3Fa%3Db&from=192.0.2.7");
    assert_eq!((&report["leads_to"], &report["pool"]), (&"application".into(), &"reports".into()));
    assert_eq!(report["rule"]["path"], "/report*");
    assert_eq!(explain("method=GET&url=/other")["pool"], "default");
    let unclear = explain("method=GET&url=/other/..%252freport/1");
    assert_eq!((&unclear["leads_to"], &unclear["status"]), (&"nothing".into(), &400.into()));
    assert!(unclear["why"].to_string().contains("a segment '.' or '..'"), "{unclear}");
    assert_eq!(explain("method=GET&url=/healthy")["leads_to"], "engine");
    assert_eq!(explain("method=POST&url=/healthy")["leads_to"], "application");
    assert_eq!(controlled.query("/stats")["requests"], 0);
    assert_eq!(controlled.query("/map")["rules"][0]["pool"], "reports");
    let handlers = controlled.query("/handlers");
    assert_eq!(
        texts(&handlers["handlers"], "leads_to"),
        ["engine", "engine", "static files", "application", "application"]
    );
    assert_eq!(controlled.query("/caches")["caches"][0]["name"], "files of /files/");
}

#[test]
fn what_is_wrong_is_answered_with_the_values_there_are() {
    let controlled = Controlled::start(with_files(&folder()));
    let refused = |method: &str, path: &str| {
        let (status, value) = controlled.ask(method, path);
        (status, value["error"].as_str().unwrap_or_else(|| panic!("{path}: {value}")).to_owned())
    };
    let (status, text) = refused("GET", "/treads");
    assert_eq!((status, &*text), (404, "there is no command 'treads'; did you mean 'threads'?"));
    assert_eq!(refused("GET", "/explain?method=GET").0, 400);
    assert_eq!(refused("GET", "/explain?method=GET&url=/a%0d%0aX:%20b").0, 400);
    assert!(refused("GET", "/explain?method=GET&url=/&from=me").1.contains("192.0.2.7"));
    let (status, text) = refused("POST", "/log-level?level=wran");
    assert_eq!((status, &*text), (400, "'wran' is none of error, warn, info or debug; did you mean 'warn'?"));
    assert_eq!(controlled.query("/status")["log_level"], "error");
    assert_eq!(refused("POST", "/deliveries/end?id=7").0, 400);
    assert_eq!(refused("POST", "/deliveries/end?id=0.7.1").0, 404);
    assert_eq!(refused("POST", "/stacks?tid=x").0, 400);
    assert_eq!(refused("POST", "/stacks?tid=2147483647").0, 404);
    // Rust has none.
    assert_eq!(refused("POST", "/stacks").0, 409);
    assert_eq!(refused("POST", "/set?name=x&value=1").0, 404);
    assert_eq!(refused("GET", "/status?verbose=1").0, 400);
}

#[test]
fn changes_are_asked_with_post_only_and_queries_without() {
    let controlled = Controlled::start(with_files(&folder()));
    for command in commands() {
        let path = format!("/{}", command.name.replace(' ', "/"));
        let method = if command.change { "GET" } else { "POST" };
        assert_eq!(controlled.ask(method, &path).0, 405, "{path}");
    }
    assert_eq!(controlled.query("/")["commands"].as_array().unwrap().len(), commands().len());
}

#[test]
fn a_change_is_in_the_log_with_its_author() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("errors");
    let log = Arc::new(Log::open(Level::Info, LogTarget::Path(path.clone()), None).unwrap());
    let settings = Settings { log: Arc::clone(&log), ..with_files(&self::folder()) };
    let controlled = Controlled::start(settings);
    let changed = controlled.change("/log-level?level=debug");
    assert_eq!(changed["changed"][0], "log-level info -> debug");
    log.flush(PATIENCE);
    std::fs::rename(&path, folder.path().join("errors.1")).unwrap();
    controlled.change("/reopen");
    controlled.change("/log-level?level=warn");
    assert_eq!(controlled.query("/status")["log_level"], "warn");
    log.flush(PATIENCE);
    let before = std::fs::read_to_string(folder.path().join("errors.1")).unwrap();
    let who = format!("(user {}, process {})", maitred_io::local::user(), std::process::id());
    assert!(before.contains(&format!("control: log-level info -> debug {who}")), "{before}");
    let after = std::fs::read_to_string(&path).unwrap();
    assert!(after.contains("control: log-level debug -> warn"), "whatever the level is: {after}");
}

#[test]
fn a_slow_delivery_is_listed_and_ended() {
    let folder = folder();
    let controlled = Controlled::start(with_files(&folder));
    let mut client = connect(controlled.address());
    client.write_all(&get("/files/large")).unwrap();
    wait_until("it is listed", || controlled.query("/deliveries")["total"] == 1);
    let delivery = &controlled.query("/deliveries")["deliveries"][0];
    assert_eq!(delivery["peer"], client.local_addr().unwrap().to_string());
    let [sent, remaining] = ["sent_bytes", "remaining_bytes"].map(|name| delivery[name].as_u64().unwrap());
    assert!(sent > 0 && remaining > 0 && sent + remaining >= 32 << 20, "{delivery}");
    assert_eq!(
        [&delivery["method"], &delivery["path"], &delivery["route"]],
        ["GET", "/files/large", "/files/*"]
    );
    assert!(delivery["pool"].is_null() && delivery["thread"].is_null() && delivery["label"].is_null());
    assert_eq!(controlled.query("/connections")["connections"][0]["sending"], 1);
    let id = delivery["id"].as_str().unwrap();
    controlled.change(&format!("/deliveries/end?id={id}"));
    let mut received = 0;
    let mut buffer = vec![0; 1 << 20];
    // The rest of what the kernel had taken, then the end; or it is reset.
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        received += count;
    }
    assert!(received < 32 << 20, "{received}");
    wait_until("it is gone", || controlled.query("/deliveries")["total"] == 0);
    assert_eq!(controlled.ask("POST", &format!("/deliveries/end?id={id}")).0, 404);
}

#[test]
fn what_the_application_delivers_is_shown_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let handler = |exchange: maitred_runtime::Exchange| {
        let head = maitred_http::ResponseHead::new(maitred_http::Status::OK);
        if exchange.request().head.path() == b"/whole/7" {
            let _ = exchange.respond(head, vec![b'x'; 16 << 20]);
            return;
        }
        let mut stream = exchange.start(head, None).unwrap();
        stream.set_label(&format!("tenant 7\n{}", "x".repeat(200)));
        while stream.send(vec![b'x'; 1 << 20]).is_ok() {
            if stream.wait(PATIENCE).is_err() {
                break;
            }
        }
    };
    let mut settings = crate::harness::settings(Routes::new().with_application(Arc::new(handler)));
    settings.spool = folder.path().to_owned();
    settings.writer.file = 4 << 20;
    let controlled = Controlled::start(settings);
    let _slow = [ask(controlled.address(), "/stream/7"), ask(controlled.address(), "/whole/7")];
    let listed = |path: &str| {
        let all = controlled.query("/deliveries")["deliveries"].clone();
        all.as_array().unwrap().iter().find(|delivery| delivery["path"] == path).cloned()
    };
    let number = |delivery: &serde_json::Value, name: &str| delivery[name].as_u64().unwrap();
    wait_until("as much is in a file as may be", || {
        listed("/stream/7").is_some_and(|delivery| number(&delivery, "spooled_bytes") > 2 << 20)
    });
    wait_until("the other one is listed", || listed("/whole/7").is_some());
    let (stream, whole) = (listed("/stream/7").unwrap(), listed("/whole/7").unwrap());
    assert_eq!([&stream["route"], &stream["pool"]], ["GET /stream/*", "default"]);
    assert_eq!(stream["label"], format!("tenant 7 {}", "x".repeat(119)));
    assert_eq!([&whole["route"], &whole["pool"]], ["GET /whole/*", "default"]);
    assert!(whole["label"].is_null() && number(&whole, "memory_bytes") > 8 << 20);
    assert!(
        [&stream, &whole].iter().all(|delivery| delivery["thread"].as_str().unwrap().starts_with("maitred-"))
    );
}

#[test]
fn a_drain_is_begun_and_seen() {
    let (controlled, door) = loaded(|_| {});
    let _waiting = ask(controlled.address(), "/wait");
    door.0.wait_for(1);
    controlled.change("/drain");
    assert_eq!(controlled.query("/status")["draining"], true);
    assert_eq!(controlled.ask("POST", "/drain").0, 409);
    assert!(!controlled.server.wait_drained(std::time::Duration::ZERO), "a request is being answered");
    drop(door);
    assert!(controlled.server.wait_drained(PATIENCE));
}

#[test]
fn the_socket_is_the_owners_and_goes_with_the_control() {
    let (controlled, _door) = loaded(|_| {});
    let mode = std::fs::metadata(&controlled.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A connection without a query does not keep the control alive. The control accepts it before the next one.
    let _silent = UnixStream::connect(&controlled.socket).unwrap();
    controlled.query("/status");
    let Controlled { control, server, socket, .. } = controlled;
    control.end();
    assert!(!socket.exists());
    assert_eq!(Arc::strong_count(&server), 1, "the control has let go of the server");
}

#[test]
fn a_slow_client_does_not_keep_others_waiting() {
    let (controlled, _door) = loaded(|_| {});
    // As many as are answered at a time, but one.
    let slow: Vec<_> = (0..7)
        .map(|_| {
            let mut stream = UnixStream::connect(&controlled.socket).unwrap();
            stream.write_all(b"GET /sta").unwrap();
            stream
        })
        .collect();
    for _ in 0..20 {
        controlled.query("/status");
    }
    drop(slow);
}

#[test]
fn a_request_that_is_none_is_refused() {
    let (controlled, _door) = loaded(|_| {});
    let knock = |text: &str| answer(&mut UnixStream::connect(&controlled.socket).unwrap(), text).0;
    assert_eq!(knock("nonsense\r\n\r\n"), 400);
    let long =
        format!("POST /set HTTP/1.1\r\nHost: x\r\nContent-Length: 70000\r\n\r\n{}", " ".repeat(70_000));
    assert_eq!(knock(&long), 413);
    let body = r#"{"level": "debug"}"#;
    let length = body.len();
    let post = format!("POST /log-level HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    assert_eq!(knock(&post), 200);
    assert_eq!(controlled.query("/status")["log_level"], "debug");
}

#[test]
fn the_listener_answers_this_machine_and_clients_with_the_token() {
    let admin = |doors: &mut DoorSettings| doors.admin = Some("127.0.0.1:0".parse().unwrap());
    let (controlled, _door) = loaded(admin);
    assert_eq!(controlled.ask_admin("GET", "/status", "Host: localhost\r\n").0, 200);
    assert_eq!(controlled.ask_admin("GET", "/status", "Host: evil.example\r\n").0, 403);
    let foreign = "Host: localhost\r\nOrigin: http://evil.example\r\nContent-Length: 0\r\n";
    assert_eq!(controlled.ask_admin("POST", "/drain", foreign).0, 403);
    let figures = scraped(&controlled, "Host: localhost\r\n");
    assert!(
        figures.starts_with("HTTP/1.1 200 ") && figures.contains("\nmaitred_requests_total "),
        "{figures}"
    );
    assert!(scraped(&controlled, "Host: evil.example\r\n").starts_with("HTTP/1.1 403 "));
    assert_eq!(controlled.ask_admin("GET", "/drain", "Host: localhost\r\n").0, 405);
    assert_eq!(controlled.query("/status")["draining"], false);

    let (controlled, _door) = loaded(|doors| {
        admin(doors);
        doors.token = Some("0123456789abcdef".to_owned());
    });
    let host = "Host: somewhere.example\r\n";
    assert_eq!(controlled.ask_admin("GET", "/status", host).0, 401);
    let fields = format!("{host}Authorization: Bearer 0123456789abcdef\r\n");
    assert_eq!(controlled.ask_admin("GET", "/status", &fields).0, 200);
    let wrong = format!("{host}Authorization: Bearer 0123456789abcdeg\r\n");
    assert_eq!(controlled.ask_admin("GET", "/status", &wrong).0, 401);
}

#[test]
fn without_a_token_nothing_but_loopback_is_listened_on() {
    let doors = DoorSettings { admin: Some("0.0.0.0:0".parse().unwrap()), ..DoorSettings::default() };
    assert!(matches!(Doors::open(&doors), Err(NotOpened::NeedsToken(_))));
}

#[test]
fn a_token_is_kept_from_others_and_is_long() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    let with = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        read_token(&path)
    };
    assert_eq!(with("0123456789abcdef\n", 0o600).as_deref(), Ok("0123456789abcdef"));
    assert!(with("0123456789abcdef", 0o640).unwrap_err().contains("chmod 600"));
    assert!(with("short", 0o600).unwrap_err().contains("16 or more"));
    assert!(read_token(&folder.path().join("none")).is_err());
}
