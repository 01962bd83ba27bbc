//! Requests that wait for a password to be checked, over real sockets: the test decides how long a hash takes.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::harness::{Live, PAUSE, start_server};
use base64ct::{Base64, Encoding};
use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Handler};
use maitred_stats::Span;
use serde_json::Value;

use maitred_io::shared_memory::SharedMemory;
use maitred_limits::{ClientTable, LEDGER_BYTES, ProcessClients};

use maitred_filters::{Authentication, BasicAuth, Condition, FilterRule, Users};
use maitred_server::figures::Format;
use maitred_server::{Level, ListenerSettings, Log, LogTarget, Routes, Server, Settings, Trusted};
use maitred_testkit::client::Client;

/// Longer than anything here takes; reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

const USERS: &str =
    "ann:$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";

/// Every hash waits here until the test lets it go on.
struct Gate {
    entered: Receiver<()>,
    go: Sender<()>,
}

impl Gate {
    fn wait_for_one(&self) {
        self.entered.recv_timeout(PATIENCE).expect("a hash is being made");
    }

    fn open_once(&self) {
        self.go.send(()).expect("a hasher");
    }
}

struct Running {
    server: Server,
    address: SocketAddr,
    users: Arc<Users>,
    gate: Gate,
    _folder: tempfile::TempDir,
}

/// The password of everybody is `right`.
fn gated() -> (tempfile::TempDir, Arc<Users>, Gate) {
    let (entered, told) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let wait = Mutex::new(wait);
    let is_right = move |password: &[u8]| {
        // The test may have stopped listening, or holding it back.
        let _ = entered.send(());
        let _ = wait.lock().expect("not poisoned").recv();
        password == b"right"
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("users.txt");
    std::fs::write(&path, USERS).expect("room");
    let users = Users::open_judged(&path, is_right).expect("valid");
    (folder, users, Gate { entered: told, go })
}

/// One thread that polls and runs everything; `/in/*` is for users.
fn serve_with(handler: impl Handler, change: impl FnOnce(&mut Settings)) -> Running {
    let (folder, users, gate) = gated();
    let log = Log::open(Level::Error, LogTarget::Path("/dev/null".into()), None).expect("the log opens");
    let mut settings = Settings::new(Routes::new().with_application(Arc::new(handler)), Arc::new(log));
    settings.listeners.push(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings.pool.limits.max_threads = 1;
    settings.spool = folder.path().to_owned();
    settings.filters.push(FilterRule {
        when: Condition { path: Some("/in/*".parse().expect("a path")), ..Condition::default() },
        authentication: Some(Authentication::Basic(
            BasicAuth::new(Arc::clone(&users), "a \"quoted\" realm").expect("a realm"),
        )),
        ..FilterRule::default()
    });
    change(&mut settings);
    let server = start_server(settings).expect("the server starts");
    let address = server.addresses()[0].tcp().expect("a port");
    Running { server, address, users, gate, _folder: folder }
}

/// Tells who asks for what, and how long the body is.
fn tell(exchange: Exchange) {
    let request = exchange.request();
    let (user, path) = (request.head.user().escape_ascii(), request.head.path().escape_ascii());
    let text = format!("[{path} {user} {}]", request.body.to_vec().expect("readable").len());
    let _ = exchange.respond(ResponseHead::new(Status::OK), text);
}

fn serve() -> Running {
    serve_with(tell, |_| {})
}

fn connect(address: SocketAddr) -> Client {
    let stream = Client::connect(address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

fn basic(user: &str, password: &str) -> String {
    format!("Authorization: Basic {}\r\n", Base64::encode_string(format!("{user}:{password}").as_bytes()))
}

fn get(path: &str, fields: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: t\r\n{fields}\r\n")
}

fn post(path: &str, fields: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n{fields}\r\n")
}

fn send(stream: &mut Client, bytes: impl AsRef<[u8]>) {
    stream.write_all(bytes.as_ref()).expect("the server takes it");
}

/// A head, and the body with the length it says.
fn answer(stream: &mut Client) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("ASCII");
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().expect("a number"))];
    stream.read_exact(&mut body).expect("a whole body");
    (head, String::from_utf8(body).expect("ASCII"))
}

fn body(stream: &mut Client) -> String {
    answer(stream).1
}

fn rest(stream: &mut Client) -> String {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).expect("the server closes");
    String::from_utf8(all).expect("ASCII")
}

fn is_silent(stream: &Client) -> bool {
    stream.set_nonblocking(true).expect("settable");
    let silent = matches!(stream.peek(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock);
    stream.set_nonblocking(false).expect("settable");
    silent
}

/// The counts of password checks.
fn checks(server: &Server) -> Value {
    let filters: Value = serde_json::from_str(&server.settings().filters().list().to_string()).expect("JSON");
    filters["password_checks"].clone()
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(PAUSE);
    }
}

#[test]
fn while_a_password_is_checked_the_only_thread_serves_others() {
    let running = serve();
    let mut asking = connect(running.address);
    send(&mut asking, get("/in/1", &basic("ann", "right")));
    running.gate.wait_for_one();
    let mut other = connect(running.address);
    for _ in 0..3 {
        send(&mut other, get("/out", ""));
        assert_eq!(body(&mut other), "[/out  0]");
    }
    assert!(is_silent(&asking));
    running.gate.open_once();
    assert_eq!(body(&mut asking), "[/in/1 ann 0]");
    // Known now, on every connection.
    for stream in [&mut asking, &mut other] {
        send(stream, get("/in/2", &basic("ann", "right")));
        assert_eq!(body(stream), "[/in/2 ann 0]");
    }
    send(&mut other, get("/out", &basic("ann", "right")));
    assert_eq!(body(&mut other), "[/out  0]", "nobody was asked there");
}

#[test]
fn a_wrong_password_gets_401_and_keeps_the_connection() {
    let running = serve();
    let mut stream = connect(running.address);
    send(&mut stream, get("/in", ""));
    let (head, text) = answer(&mut stream);
    assert!(head.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{head}");
    let challenge = "WWW-Authenticate: Basic realm=\"a \\\"quoted\\\" realm\", charset=\"UTF-8\"\r\n";
    assert!(head.contains(challenge), "{head}");
    assert_eq!(text, "401 Unauthorized\n");
    send(&mut stream, get("/in", "Authorization: Bearer x\r\n"));
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
    for (user, password) in [("ann", "wrong"), ("bob", "right")] {
        send(&mut stream, get("/in", &basic(user, password)));
        running.gate.wait_for_one();
        running.gate.open_once();
        assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
        // Known to be wrong.
        send(&mut stream, get("/in", &basic(user, password)));
        assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
    }
    send(&mut stream, get("/out", "Connection: close\r\n"));
    assert!(rest(&mut stream).ends_with("[/out  0]"));
}

#[test]
fn pipelined_requests_wait_and_are_answered_in_order() {
    let running = serve();
    let mut stream = connect(running.address);
    let (right, wrong) = (basic("ann", "right"), basic("ann", "wrong"));
    let requests = [
        get("/out/1", ""),
        get("/in/2", &right),
        get("/in/3", ""),
        get("/out/4", ""),
        get("/in/5", &wrong),
        get("/in/6", &right),
    ];
    send(&mut stream, requests.concat());
    assert_eq!(body(&mut stream), "[/out/1  0]");
    running.gate.wait_for_one();
    assert!(is_silent(&stream));
    running.gate.open_once();
    assert_eq!(body(&mut stream), "[/in/2 ann 0]");
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
    assert_eq!(body(&mut stream), "[/out/4  0]");
    running.gate.wait_for_one();
    // More comes meanwhile, in two parts, and has to wait.
    let last = get("/out/7", "");
    let (first, second) = last.split_at(10);
    send(&mut stream, first);
    send(&mut stream, second);
    assert!(is_silent(&stream));
    running.gate.open_once();
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
    assert_eq!([body(&mut stream), body(&mut stream)], ["[/in/6 ann 0]", "[/out/7  0]"]);
}

#[test]
fn a_body_waits_for_its_password_wherever_it_goes() {
    for (read_ahead, length) in [(true, 10), (true, 1_000_000), (false, 10), (false, 1_000_000)] {
        let running = serve_with(Live(tell), |settings| {
            settings.body_memory = 10_000;
            settings.body_budget = 0;
            let address = settings.listeners[0].address.clone();
            settings.listeners[0] = ListenerSettings { read_ahead: Some(read_ahead), ..address.into() };
        });
        let mut stream = connect(running.address);
        let mut sending = stream.try_clone().expect("a descriptor");
        let request = post("/in/up", &basic("ann", "right"), length);
        let sender = std::thread::spawn(move || {
            send(
                &mut sending,
                [request.as_bytes(), &vec![b'x'; length], get("/out", "").as_bytes()].concat(),
            );
        });
        running.gate.wait_for_one();
        running.gate.open_once();
        assert_eq!(body(&mut stream), format!("[/in/up ann {length}]"), "{read_ahead}");
        assert_eq!(body(&mut stream), "[/out  0]");
        sender.join().expect("sent");
    }
}

#[test]
fn a_client_that_waits_for_100_gets_it_with_a_right_password() {
    let running = serve();
    let mut stream = connect(running.address);
    let expect = |fields: &str| post("/in", &format!("Expect: 100-continue\r\n{fields}"), 5);
    send(&mut stream, expect(&basic("ann", "right")));
    running.gate.wait_for_one();
    assert!(is_silent(&stream));
    running.gate.open_once();
    assert_eq!(answer(&mut stream).0, "HTTP/1.1 100 Continue\r\n\r\n");
    send(&mut stream, "12345");
    assert_eq!(body(&mut stream), "[/in ann 5]");
    send(&mut stream, expect(""));
    let answer = rest(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 401 ") && !answer.contains("100 Continue"), "{answer}");
    assert!(answer.contains("Connection: close\r\n"), "{answer}");
}

#[test]
fn the_rest_of_an_unwanted_body_is_dropped_or_ends_the_connection() {
    let running = serve();
    let mut stream = connect(running.address);
    for framing in ["length", "chunked"] {
        match framing {
            "length" => send(&mut stream, post("/in", "", 100_000)),
            _ => send(&mut stream, "POST /in HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"),
        }
        // Before a byte of the body has been sent.
        let (head, _) = answer(&mut stream);
        assert!(head.starts_with("HTTP/1.1 401 ") && !head.contains("Connection: close"), "{head}");
        let body_bytes = vec![b'x'; 100_000];
        match framing {
            "length" => send(&mut stream, &body_bytes),
            _ => send(&mut stream, [b"186a0\r\n".as_slice(), &body_bytes, b"\r\n0\r\n\r\n"].concat()),
        }
        send(&mut stream, get("/out", ""));
        assert_eq!(body(&mut stream), "[/out  0]", "{framing}");
    }
    send(&mut stream, post("/in", "", 1_000_000));
    let answer = rest(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.contains("Connection: close\r\n"), "{answer}");
}

#[test]
fn a_peer_that_leaves_meanwhile_leaves_nothing_behind() {
    let running = serve();
    let before = Arc::strong_count(&running.users);
    let mut stream = connect(running.address);
    // Unread bytes turn the close into a reset, which the server sees at once.
    send(&mut stream, [get("/out", ""), get("/in", &basic("ann", "right"))].concat());
    running.gate.wait_for_one();
    until("the answer is there", || !is_silent(&stream));
    drop(stream);
    until("the connection has ended", || running.server.figures().snapshot().open == 0);
    // And two that only end their side.
    let mut halves: Vec<_> = ["right", "wrong"].map(|password| (connect(running.address), password)).into();
    for (stream, password) in &mut halves {
        send(stream, get("/in/2", &basic("ann", password)));
        stream.shutdown(std::net::Shutdown::Write).expect("open");
    }
    drop(running.gate.go);
    assert!(rest(&mut halves[0].0).ends_with("[/in/2 ann 0]"));
    assert!(rest(&mut halves[1].0).starts_with("HTTP/1.1 401 "));
    until("the connections have ended", || running.server.figures().snapshot().open == 0);
    until("nothing of the checks is left", || Arc::strong_count(&running.users) == before);
}

#[test]
fn a_check_whose_peer_has_left_is_not_made() {
    let running = serve();
    let checks = || checks(&running.server);
    let threads = checks()["threads"].as_u64().expect("a number");
    let mut busy: Vec<_> = (0..threads).map(|_| connect(running.address)).collect();
    for (number, stream) in busy.iter_mut().enumerate() {
        send(stream, get("/in", &basic("ann", &number.to_string())));
        running.gate.wait_for_one();
    }
    let open = running.server.figures().snapshot().open;
    let mut leaving = connect(running.address);
    send(&mut leaving, [get("/out", ""), get("/in", &basic("ann", "left"))].concat());
    until("it waits", || checks()["waiting"] == 1);
    drop(leaving);
    until("the connection has ended", || running.server.figures().snapshot().open == open);
    let mut last = connect(running.address);
    send(&mut last, get("/in", &basic("ann", "right")));
    until("both wait", || checks()["waiting"] == 2);
    (0..=threads).for_each(|_| running.gate.open_once());
    assert_eq!(body(&mut last), "[/in ann 0]");
    running.gate.wait_for_one();
    assert!(running.gate.entered.try_recv().is_err(), "one hash more");
}

#[test]
fn what_finds_the_queue_full_gets_503_and_cached_users_are_let_in() {
    let running = serve_with(tell, behind_a_proxy);
    let mut known = connect(running.address);
    send(&mut known, get("/in", &basic("ann", "right")));
    running.gate.wait_for_one();
    running.gate.open_once();
    assert_eq!(body(&mut known), "[/in ann 0]");
    let checks = || checks(&running.server);
    let threads = checks()["threads"].as_u64().expect("a number");
    // Each is another client.
    let ask = |number: u64| {
        let mut stream = connect(running.address);
        let client = format!("X-Forwarded-For: 192.0.2.{number}\r\n");
        send(&mut stream, get("/in", &(client + &basic("ann", &number.to_string()))));
        stream
    };
    let mut waiting: Vec<Client> = (0..threads).map(ask).collect();
    (0..threads).for_each(|_| running.gate.wait_for_one());
    waiting.extend((threads..threads + 128).map(ask));
    until("all wait", || checks()["waiting"] == 128);
    let mut one_more = ask(250);
    let (head, text) = answer(&mut one_more);
    assert!(head.starts_with("HTTP/1.1 503 ") && head.contains("Retry-After: 1\r\n"), "{head}");
    assert_eq!(text, "503 Service Unavailable\n");
    send(&mut one_more, get("/in/now", &basic("ann", "right")));
    assert_eq!(body(&mut one_more), "[/in/now ann 0]");
    assert_eq!(checks()["refused"], 1);
    drop(running.gate.go);
    for stream in &mut waiting {
        assert!(answer(stream).0.starts_with("HTTP/1.1 401 "));
    }
}

/// Clients are as a proxy on this machine says.
fn behind_a_proxy(settings: &mut Settings) {
    settings.forwarding.trusted = Trusted::new(vec!["127.0.0.1".parse().expect("an address")], false);
}

/// Checks of one client that may wait or be made.
const SHARE: u64 = 32;

#[test]
fn a_client_has_one_share_of_the_checks_of_all_processes() {
    let table = ClientTable::new().expect("memory");
    let process = || {
        let ledger = Arc::new(SharedMemory::new(LEDGER_BYTES).expect("memory"));
        let clients = ProcessClients { table: table.clone(), ledger };
        serve_with(tell, |settings| {
            behind_a_proxy(settings);
            settings.clients = Some(clients);
        })
    };
    let [one, other] = [process(), process()];
    let of = |running: &Running, client: &str, number: u64| {
        let mut stream = connect(running.address);
        let fields = format!("X-Forwarded-For: {client}\r\n{}", basic("ann", &number.to_string()));
        send(&mut stream, get("/in", &fields));
        stream
    };
    let taken = |running: &Running| checks(&running.server)["waiting"].as_u64().expect("a number");
    let threads = checks(&one.server)["threads"].as_u64().expect("a number");
    let mut waiting: Vec<Client> = (0..SHARE - 1).map(|number| of(&one, "192.0.2.1", number)).collect();
    until("most of the share is taken", || taken(&one) == SHARE - 1 - threads);
    waiting.push(of(&other, "192.0.2.1", 0));
    other.gate.wait_for_one();
    for (running, number) in [(&one, 100), (&other, 101)] {
        assert!(answer(&mut of(running, "192.0.2.1", number)).0.starts_with("HTTP/1.1 429 "));
    }
    // The same credentials wait for the check that there is.
    waiting.push(of(&one, "192.0.2.1", 1));
    let somebody = of(&other, "192.0.2.2", 1);
    (0..3).for_each(|_| other.gate.open_once());
    for mut stream in [waiting.remove(SHARE as usize - 1), somebody] {
        assert!(answer(&mut stream).0.starts_with("HTTP/1.1 401 "));
    }
    let mut again = of(&other, "192.0.2.1", 102);
    assert!(answer(&mut again).0.starts_with("HTTP/1.1 401 "), "what has ended is not counted");
    drop(one.gate.go);
    for stream in &mut waiting {
        assert!(answer(stream).0.starts_with("HTTP/1.1 401 "));
    }
}

#[test]
fn a_client_with_wrong_passwords_does_not_keep_others_out() {
    let running = serve_with(tell, behind_a_proxy);
    let of = |client: &str, password: &str| {
        let mut stream = connect(running.address);
        let fields = format!("X-Forwarded-For: {client}\r\n{}", basic("ann", password));
        send(&mut stream, get("/in", &fields));
        stream
    };
    let checks = || checks(&running.server);
    let threads = checks()["threads"].as_u64().expect("a number");
    let mut waiting: Vec<Client> = (0..SHARE).map(|number| of("192.0.2.1", &number.to_string())).collect();
    until("the share is taken", || checks()["waiting"] == SHARE - threads);
    for number in 0..200 {
        let (head, text) = answer(&mut of("192.0.2.1", &format!("more {number}")));
        assert!(head.starts_with("HTTP/1.1 429 ") && head.contains("Retry-After: 1\r\n"), "{head}");
        assert_eq!(text, "429 Too Many Requests\n");
    }
    let mut right = of("2001:db8::1", "right");
    until("it waits", || checks()["waiting"] == SHARE - threads + 1);
    // Clients take turns: behind those that are being made there is one of the other before it.
    (0..threads + 2).for_each(|_| running.gate.open_once());
    assert_eq!(body(&mut right), "[/in ann 0]");
    drop(running.gate.go);
    for stream in &mut waiting {
        assert!(answer(stream).0.starts_with("HTTP/1.1 401 "));
    }
    assert_eq!(checks()["refused"], 200);
    let applied = |rule: &str| {
        let page = running.server.figures().page(Format::Prometheus);
        let series = format!("maitred_rules_applied_total{{rule=\"{rule}\"}} ");
        let count = page.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok());
        count.unwrap_or_else(|| panic!("{series} is not in\n{page}"))
    };
    assert_eq!((applied("password-share"), applied("wrong-password")), (200, SHARE));
}

#[test]
fn requests_of_a_client_with_the_same_password_wait_for_one_check() {
    let running = serve();
    let mut streams: Vec<Client> = (0..2 * SHARE)
        .map(|_| {
            let mut stream = connect(running.address);
            send(&mut stream, get("/in", &basic("ann", "right")));
            stream
        })
        .collect();
    running.gate.wait_for_one();
    until("all are there", || running.server.figures().snapshot().open == 2 * SHARE);
    // A client that leaves takes no place from another client.
    drop(streams.pop());
    running.gate.open_once();
    for stream in &mut streams {
        assert_eq!(body(stream), "[/in ann 0]");
    }
    assert!(running.gate.entered.try_recv().is_err(), "one hash more");
}

#[test]
fn a_check_that_takes_too_long_is_503() {
    let running = serve_with(tell, |settings| settings.timeouts.body = Duration::from_millis(50));
    let mut stream = connect(running.address);
    send(&mut stream, get("/in", &basic("ann", "right")));
    let answer = rest(&mut stream);
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("the password could not be checked in time"), "{answer}");
    running.gate.open_once();
}

#[test]
fn a_drain_waits_for_the_check() {
    let running = serve();
    let mut stream = connect(running.address);
    send(&mut stream, get("/in", &basic("ann", "right")));
    running.gate.wait_for_one();
    running.server.drain();
    assert!(!running.server.wait_drained(Duration::ZERO));
    running.gate.open_once();
    let answer = rest(&mut stream);
    assert!(answer.contains("Connection: close\r\n") && answer.ends_with("[/in ann 0]"), "{answer}");
    assert!(running.server.wait_drained(PATIENCE));
}

#[test]
fn the_time_of_a_check_is_time_in_filters() {
    let running = serve();
    for (password, path) in [("right", "/in"), ("wrong", "/in")] {
        let spans = || running.server.figures().statistics().server;
        let before = spans().requests;
        let sum = |span: Span| Duration::from_nanos(spans().spans[span as usize].sum());
        let filter = sum(Span::Filter);
        let mut stream = connect(running.address);
        send(&mut stream, get(path, &basic("ann", password)));
        running.gate.wait_for_one();
        let begun = Instant::now();
        std::thread::sleep(Duration::from_millis(5));
        let held = begun.elapsed();
        running.gate.open_once();
        answer(&mut stream);
        until("it is counted", || spans().requests == before + 1);
        assert!(sum(Span::Filter) - filter >= held, "{password}: {:?}", sum(Span::Filter) - filter);
    }
}

#[test]
fn the_server_ends_with_checks_under_way() {
    let running = serve();
    let mut streams: Vec<_> = (0..5).map(|_| connect(running.address)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        send(stream, get("/in", &basic("ann", &number.to_string())));
    }
    running.gate.wait_for_one();
    let Running { server, users, gate, .. } = running;
    server.stop();
    for stream in &mut streams {
        // An end or a reset.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    drop(gate);
    until("nothing of the checks is left", || Arc::strong_count(&users) == 1);
}
