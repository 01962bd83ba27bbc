//! The chain of filters over real sockets: what each does, which one decides, and filters of a program's own.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maitred_files::{StaticFiles, StaticSettings};
use maitred_filters::{
    Access, Authentication, BasicAuth, Condition, Filter, FilterRequest, FilterRule, Place, Redirect,
    Rewrite, Side, Statuses, Step, Traced, Users, user_line,
};
use maitred_http::{RequestHead, ResponseHead, Status};
use maitred_log::Format;
use maitred_runtime::{Exchange, Handler};
use maitred_server::{
    AccessLogSettings, Level, ListenerSettings, Log, LogTarget, PoolRule, PoolSettings, Routes, Settings,
};
use maitred_testkit::client::Client;

use crate::harness::asked::Controlled;
use crate::harness::{
    PATIENCE, Running, connect, exchange, get, get_last, read_response, settings, start, text, wait_until,
};

/// Tells what the handler sees: method, path, user, some fields, the length of the body.
fn tell(exchange: Exchange) {
    let request = exchange.request();
    let head = &request.head;
    let field = |name| {
        head.fields.all(name).map(|value| value.escape_ascii().to_string()).collect::<Vec<_>>().join("+")
    };
    let length = request.body.to_vec().map_or(-1, |bytes| bytes.len() as i64);
    let answer = format!(
        "{} {} user={} kind={} body={length}",
        head.method.as_str(),
        head.path_and_query().escape_ascii(),
        head.user().escape_ascii(),
        field("x-kind"),
    );
    text(exchange, answer);
}

/// A filter for a path.
fn at(path: &str) -> FilterRule {
    FilterRule {
        when: Condition { path: path.parse().ok(), ..Condition::default() },
        ..FilterRule::default()
    }
}

fn access(rule: FilterRule, texts: &[&str]) -> FilterRule {
    FilterRule { access: Some(Access::parse(texts).expect("a list")), ..rule }
}

fn response(mut rule: FilterRule, field: &str) -> FilterRule {
    rule.response.set(Side::Response, field).expect("a field");
    rule
}

fn of_status(rule: FilterRule, statuses: &str) -> FilterRule {
    FilterRule { response_status: Some(Statuses::parse(statuses).expect("a list")), ..rule }
}

fn redirect(rule: FilterRule, to: &str) -> FilterRule {
    FilterRule { redirect: Some(Redirect::new(to, rule.when.path.as_ref(), 307).expect("a place")), ..rule }
}

fn rewrite(rule: FilterRule, to: &str) -> FilterRule {
    FilterRule { rewrite: Some(Rewrite::new(to, rule.when.path.as_ref()).expect("a path")), ..rule }
}

fn serve_with(filters: Vec<FilterRule>, change: impl FnOnce(&mut Settings)) -> Running {
    let mut settings = settings(Routes::new().with_application(Arc::new(tell)));
    settings.filters = filters;
    change(&mut settings);
    start(settings)
}

fn serve(filters: Vec<FilterRule>) -> Running {
    serve_with(filters, |_| {})
}

/// Logs of which the one of requests goes to this file, in this format.
fn access_log(path: &Path, format: &str) -> Log {
    let format = Format::parse(format).unwrap();
    let settings = AccessLogSettings { format, ..AccessLogSettings::new(LogTarget::Path(path.to_owned())) };
    let log = Log::open(Level::Error, LogTarget::Path("/dev/null".into()), None).unwrap();
    log.with_access(settings).unwrap()
}

/// The lines of a log when there are so many, which different threads may write in another order.
fn sorted_lines(path: &Path, count: usize) -> Vec<String> {
    let lines = || std::fs::read_to_string(path).unwrap();
    wait_until("the log has all", || lines().lines().count() == count);
    let mut lines: Vec<String> = lines().lines().map(ToOwned::to_owned).collect();
    lines.sort();
    lines
}

/// Head and body of the answer on this connection.
fn ask(stream: &mut Client, request: &[u8]) -> (String, String) {
    stream.write_all(request).expect("taken");
    let (head, body) = read_response(stream);
    (head, String::from_utf8(body).expect("text"))
}

fn post(path: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n{fields}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[test]
fn the_most_specific_filter_of_each_kind_decides() {
    let mut post_only = access(at("/a/*"), &["allow all"]);
    post_only.when.method = Some(maitred_http::Method::Post);
    let running = serve(vec![
        access(at("/a/open"), &["allow 127.0.0.0/8", "deny all"]),
        access(at("/a/*"), &["deny 127.0.0.0/8"]),
        post_only,
        access(at("/b"), &["allow all"]),
        access(at("/b"), &["deny all"]),
        response(at("/a/*"), "X-From: a"),
        response(at("/a/open"), "X-From: open"),
        response(FilterRule::default(), "X-All: yes"),
    ]);
    let mut stream = connect(running.address);
    for (request, status, from) in [
        (get("/a/1"), "403", Some("a")),
        (get("/a"), "403", Some("a")),
        (get("/a/open"), "200", Some("open")),
        (get("/%61/%31"), "403", Some("a")),
        (get("/a//1"), "403", Some("a")),
        (post("/a/1", "", b"x"), "200", Some("a")),
        (get("/b"), "403", None),
        (get("/c"), "200", None),
    ] {
        let shown = String::from_utf8_lossy(&request).into_owned();
        let (head, _) = ask(&mut stream, &request);
        assert_eq!(&head[9..12], status, "{shown}");
        let field = head.lines().find_map(|line| line.strip_prefix("X-From: "));
        assert_eq!(field, from, "{shown}");
        assert!(head.contains("X-All: yes\r\n"), "{shown}");
    }
}

#[test]
fn a_path_that_can_be_read_in_two_ways_is_refused_where_filters_ask_for_it() {
    let mut posts = response(at("/posts/*"), "X-From: posts");
    posts.when.method = Some(maitred_http::Method::Post);
    let all = FilterRule::default();
    let running = serve(vec![access(all, &["deny all"]), access(at("/pub/*"), &["allow all"]), posts]);
    for (path, status) in [
        ("/pub/x", "200"),
        ("/pub/a%2Fb", "200"),
        ("/pub//x", "200"),
        ("http://t/pub/x", "200"),
        ("/admin", "403"),
        ("/admin%2Fx//y", "403"),
        ("/admin/../pub/x", "400"),
        ("/pub/../admin", "400"),
        ("/pub/..%2fadmin", "400"),
        ("http://t/pub/..%2fadmin", "400"),
        ("/pub%2fx", "400"),
        ("//pub/x", "400"),
        ("/pub%5cx", "400"),
        ("/pub/x%00", "400"),
    ] {
        let answer = exchange(running.address, &get_last(path));
        assert_eq!(&answer[9..12], status, "{path}: {answer}");
        assert_eq!(status == "400", answer.contains("rules or filters "), "{path}: {answer}");
    }
    // Filters of other requests have no part in it.
    let mut posts = at("/posts/*");
    posts.when.method = Some(maitred_http::Method::Post);
    let running = serve(vec![response(posts, "X-From: posts")]);
    let answer = exchange(running.address, &get_last("/a/../b%2Fc"));
    assert!(answer.contains("GET /a/../b%2Fc "), "{answer}");
    let refused = exchange(running.address, &post("/a/../posts/1", "Connection: close\r\n", b""));
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
}

#[test]
fn redirects_keep_their_order_in_a_pipeline_and_the_connection() {
    let running = serve(vec![redirect(at("/old/*"), "/new/*")]);
    let mut stream = connect(running.address);
    let requests = [
        get("/old/1?a=b"),
        get("/new/2"),
        post("/old/3", "", &[b'x'; 1000]),
        get("/old"),
        get_last("/new/5"),
    ];
    stream.write_all(&requests.concat()).unwrap();
    for (status, location) in [
        ("307", Some("/new/1?a=b")),
        ("200", None),
        ("307", Some("/new/3")),
        ("307", Some("/new")),
        ("200", None),
    ] {
        let (head, _) = read_response(&mut stream);
        assert_eq!(&head[9..12], status, "{head}");
        assert_eq!(head.lines().find_map(|line| line.strip_prefix("Location: ")), location, "{head}");
    }
    let answer = exchange(running.address, b"HEAD /old/x HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    assert!(answer.contains("Location: /new/x\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
}

#[test]
fn a_list_of_statuses_says_which_responses_are_changed() {
    let running = serve(vec![
        of_status(response(FilterRule::default(), "X-Good: yes"), "200, 301-308"),
        of_status(response(at("/closed"), "X-Bad: yes"), "4xx"),
        access(at("/closed"), &["deny all"]),
        redirect(at("/old"), "/new"),
    ]);
    let mut stream = connect(running.address);
    for (path, status, good, bad) in
        [("/", "200", true, false), ("/old", "307", true, false), ("/closed", "403", false, true)]
    {
        let (head, _) = ask(&mut stream, &get(path));
        assert_eq!(&head[9..12], status, "{head}");
        assert_eq!(
            (head.contains("X-Good: yes\r\n"), head.contains("X-Bad: yes\r\n")),
            (good, bad),
            "{head}"
        );
    }
    // No request has met a filter here: an answer to what is none has the fields of those without a condition.
    let refused = exchange(running.address, b"GET / HTTP/1.1\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 400") && !refused.contains("X-Good"), "{refused}");
}

#[test]
fn a_rewritten_path_is_what_everything_behind_sees_and_no_filter() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.txt"), "a file").unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let log_path = folder.path().join("access.log");
    let log = access_log(&log_path, "$request_uri $path $pool $status");
    let routes = Routes::new().with_static("/files", files).with_application(Arc::new(tell));
    let mut settings = Settings::new(routes, Arc::new(log));
    settings.listeners.push("127.0.0.1:0".parse::<ListenerSettings>().unwrap());
    settings.pools = vec![PoolSettings::named("slow")];
    settings.rules =
        vec![PoolRule { pool: "slow".to_owned(), path: "/slow/*".parse().ok(), ..PoolRule::default() }];
    settings.filters = vec![
        rewrite(at("/app/*"), "/slow/*?by=filter"),
        rewrite(at("/f/*"), "/files/*.txt"),
        access(at("/slow/*"), &["deny all"]),
        rewrite(at("/keep/*"), "/kept/*"),
    ];
    let running = start(settings);
    let mut stream = connect(running.address);
    for (path, expected) in [
        ("/app/a%20b", "GET /slow/a%20b?by=filter user= kind= body=0"),
        ("/f/f?x=1", "a file"),
        ("/keep/x?y=1", "GET /kept/x?y=1 user= kind= body=0"),
        ("/kept/x", "GET /kept/x user= kind= body=0"),
        ("/slow/x", "403 Forbidden\n"),
    ] {
        assert_eq!(ask(&mut stream, &get(path)).1, expected);
    }
    assert_eq!(
        sorted_lines(&log_path, 5),
        [
            "/app/a%20b /slow/a%20b slow 200",
            "/f/f?x=1 /files/f.txt - 200",
            "/keep/x?y=1 /kept/x default 200",
            "/kept/x /kept/x default 200",
            "/slow/x /slow/x - 403",
        ]
    );
}

#[test]
fn fields_are_changed_on_both_sides() {
    let mut rule = at("/a/*");
    for (side, changes) in [(Side::Request, &mut rule.request), (Side::Response, &mut rule.response)] {
        changes.remove(side, "Content-Type").unwrap();
        changes.set(side, "X-Kind: set").unwrap();
        changes.add(side, "X-Kind: added").unwrap();
    }
    rule.response.set(Side::Response, "Server: another").unwrap();
    let running = serve(vec![rule]);
    let mut stream = connect(running.address);
    let request = |path: &str| post(path, "X-Kind: 1\r\nX-Kind: 2\r\nContent-Type: a/b\r\n", b"");
    let (head, body) = ask(&mut stream, &request("/a"));
    assert!(body.contains("kind=set+added"), "{body}");
    assert!(head.contains("X-Kind: set\r\n") && head.contains("X-Kind: added\r\n"), "{head}");
    assert!(head.contains("Server: another\r\n") && !head.contains("Content-Type"), "{head}");
    let (head, body) = ask(&mut stream, &request("/b"));
    assert!(body.contains("kind=1+2") && head.contains("Content-Type: text/plain"), "{head}{body}");
    assert!(!head.contains("X-Kind") && !head.contains("another"), "{head}");
}

#[test]
fn every_answer_has_the_fields_of_filters_without_a_condition() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.txt"), "a file").unwrap();
    let files = StaticFiles::open(folder.path(), StaticSettings::default()).unwrap();
    let hold: Arc<(Mutex<Receiver<()>>, Sender<()>)> = {
        let (go, wait) = mpsc::channel();
        Arc::new((Mutex::new(wait), go))
    };
    let held = Arc::clone(&hold);
    let handler = move |exchange: Exchange| {
        match exchange.request().head.path() {
            b"/hold" => drop(held.0.lock().unwrap().recv_timeout(PATIENCE)),
            b"/fail" => return,
            _ => {}
        }
        tell(exchange);
    };
    let mut settings = settings(Routes::new().with_static("/s", files).with_application(Arc::new(handler)));
    settings.health_path = Some("/health".to_owned());
    settings.max_body = 10;
    settings.pool.limits.request_timeout = Some(Duration::from_millis(100));
    settings.filters = vec![
        response(FilterRule::default(), "X-All: yes"),
        response(at("/*"), "X-Path: yes"),
        redirect(at("/old"), "/new"),
    ];
    let running = start(settings);
    for (request, status, has_met) in [
        (get_last("/"), "200", true),
        (get_last("/s/f.txt"), "200", true),
        (get_last("/s/none"), "404", true),
        (get_last("/health"), "200", true),
        (get_last("/old"), "307", true),
        (get_last("/fail"), "500", true),
        (post("/", "", b"more than ten"), "413", true),
        (get("/hold"), "504", true),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "400", false),
        (b"GET /\x01 HTTP/1.1\r\nHost: t\r\n\r\n".to_vec(), "400", false),
        (b"OPTIONS * HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".to_vec(), "204", false),
    ] {
        let shown = String::from_utf8_lossy(&request).into_owned();
        let answer = exchange(running.address, &request);
        assert_eq!(&answer[9..12], status, "{shown}");
        assert!(answer.contains("X-All: yes\r\n"), "{shown}{answer}");
        assert_eq!(answer.contains("X-Path: yes\r\n"), has_met, "{shown}{answer}");
        assert_eq!(
            answer.matches("Content-Length: ").count(),
            usize::from(status != "204"),
            "{shown}{answer}"
        );
    }
    hold.1.send(()).unwrap();
}

#[test]
fn a_body_has_the_limit_of_its_filter_declared_or_not() {
    let limit = |path: &str, max_body: u64| FilterRule { max_body: Some(max_body), ..at(path) };
    for read_ahead in [true, false] {
        let running = serve_with(vec![limit("/small/*", 100), limit("/small/large", 5000)], |settings| {
            settings.max_body = 1000;
            settings.body_memory = 10;
            settings.body_budget = 0;
            settings.listeners[0].read_ahead = Some(read_ahead);
        });
        let chunked = |path: &str, length: usize| {
            let head = format!("POST {path} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n");
            [head.as_bytes(), format!("{length:x}\r\n").as_bytes(), &vec![b'x'; length], b"\r\n0\r\n\r\n"]
                .concat()
        };
        let mut stream = connect(running.address);
        for (path, length) in [("/small/a", 100), ("/small/large", 5000), ("/else", 1000)] {
            for request in [post(path, "", &vec![b'x'; length]), chunked(path, length)] {
                let (_, body) = ask(&mut stream, &request);
                assert!(body.ends_with(&format!("body={length}")), "{path}: {body}");
            }
            // Before a byte of it, also for who waits for 100 with it.
            for fields in ["", "Expect: 100-continue\r\n"] {
                let length = length + 1;
                let head =
                    format!("POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n{fields}\r\n");
                let answer = exchange(running.address, head.as_bytes());
                assert!(answer.starts_with("HTTP/1.1 413 "), "{path}: {answer}");
                assert_eq!(answer.contains("max-body of a host or a filter"), path != "/else", "{answer}");
            }
            let answer = exchange(running.address, &chunked(path, length + 1));
            assert!(answer.starts_with("HTTP/1.1 413 "), "{path}: {answer}");
        }
    }
}

/// Reads bodies as they come.
struct Live;

impl Handler for Live {
    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn handle(&self, exchange: Exchange) {
        tell(exchange);
    }
}

#[test]
fn a_body_that_is_read_as_it_comes_has_the_limit_too() {
    let limit = FilterRule { max_body: Some(100), ..at("/small") };
    let mut settings = settings(Routes::new().with_application(Arc::new(Live)));
    settings.listeners[0].read_ahead = Some(false);
    settings.filters = vec![limit];
    let running = start(settings);
    for (path, length, read) in [("/small", 100, 100), ("/small", 101, -1), ("/else", 101, 101)] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        let body = [format!("{length:x}\r\n").as_bytes(), &vec![b'x'; length], b"\r\n0\r\n\r\n"].concat();
        let answer = exchange(running.address, &[head.as_bytes(), &body].concat());
        assert!(answer.ends_with(&format!("body={read}")), "{path} {length}: {answer}");
    }
}

#[test]
fn users_are_told_to_handlers_and_logs_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("users.txt");
    std::fs::write(&path, user_line("ann", b"open sesame").unwrap()).unwrap();
    let basic = BasicAuth::new(Users::open(&path).unwrap(), "Staff").unwrap();
    let log_path = folder.path().join("access.log");
    let log = access_log(&log_path, "$remote_user $status $path");
    let running = serve_with(Vec::new(), |settings| {
        settings.log = Arc::new(log);
        let staff = FilterRule { authentication: Some(Authentication::Basic(basic)), ..at("/staff/*") };
        let open = FilterRule { authentication: Some(Authentication::Off), ..at("/staff/open") };
        settings.filters = vec![staff, open];
    });
    let with =
        |path: &str, fields: &str| format!("GET {path} HTTP/1.1\r\nHost: t\r\n{fields}\r\n").into_bytes();
    const ANN: &str = "Authorization: Basic YW5uOm9wZW4gc2VzYW1l\r\n";
    let mut stream = connect(running.address);
    for (request, expected) in [
        (with("/staff/1", ANN), "GET /staff/1 user=ann kind= body=0"),
        (with("/staff/2", "Remote-User: ann\r\n"), "401 Unauthorized\n"),
        (with("/staff/3", "Authorization: Basic YW5uOm9wZW4=\r\n"), "401 Unauthorized\n"),
        (with("/staff/open", ANN), "GET /staff/open user= kind= body=0"),
        (with("/else", ANN), "GET /else user= kind= body=0"),
    ] {
        assert_eq!(ask(&mut stream, &request).1, expected);
    }
    assert_eq!(
        sorted_lines(&log_path, 5),
        ["- 200 /else", "- 200 /staff/open", "- 401 /staff/2", "- 401 /staff/3", "ann 200 /staff/1"]
    );
}

/// Notes where it is called, and answers where a request asks for it.
struct Own {
    name: &'static str,
    places: Vec<Place>,
    called: Arc<Mutex<Vec<String>>>,
    ended: Mutex<Sender<String>>,
}

impl Own {
    fn note(&self, place: &str, head: &RequestHead) -> Step {
        let path = head.path().escape_ascii().to_string();
        self.called.lock().unwrap().push(format!("{} {place} {path}", self.name));
        if path == format!("/{}/{place}", self.name) {
            return Step::Answer(ResponseHead::new(Status::IM_A_TEAPOT), path.into_bytes());
        }
        Step::Pass
    }
}

impl Filter for Own {
    fn name(&self) -> &str {
        self.name
    }

    fn places(&self) -> &[Place] {
        &self.places
    }

    fn before_authentication(&self, request: &mut FilterRequest<'_>) -> Step {
        request.head.fields.push("X-Kind", self.name);
        self.note("before", request.head)
    }

    fn after_authentication(&self, request: &mut FilterRequest<'_>) -> Step {
        assert!(request.peer.ip().is_some_and(|address| address.is_loopback()));
        self.note("after", request.head)
    }

    fn response(&self, request: &RequestHead, response: &mut ResponseHead) {
        let path = request.path().to_vec();
        response.fields.push("X-Own", [self.name.as_bytes(), b" ", &path].concat());
    }

    fn trace(&self, exchange: &Traced<'_>) {
        assert!(exchange.head.path() != b"/panic", "asked for");
        let spans = exchange.times.spans();
        let path = exchange.head.path().escape_ascii();
        let told = format!("{path} {} {} {}", exchange.status.code(), exchange.body_bytes, exchange.complete);
        assert!(spans.total() > 0);
        let _ = self.ended.lock().unwrap().send(told);
    }
}

#[test]
fn a_program_s_own_filters_are_called_at_their_places() {
    let called: Arc<Mutex<Vec<String>>> = Arc::default();
    let (ended, told) = mpsc::channel();
    let own = |name, places: &[Place]| {
        let (called, ended) = (Arc::clone(&called), Mutex::new(ended.clone()));
        Arc::new(Own { name, places: places.to_vec(), called, ended })
    };
    let all = [Place::BeforeAuthentication, Place::AfterAuthentication, Place::Response];
    let running =
        serve_with(vec![access(at("/denied"), &["deny all"]), rewrite(at("/r/*"), "/x/*")], |settings| {
            settings.native_filters =
                vec![own("one", &all), own("two", &all[1..2]), own("last", &[Place::Trace])];
        });
    let mut stream = connect(running.address);
    let mut check = |path: &str, expected: (&str, &str, Option<&str>), calls: &[&str]| {
        let (head, body) = ask(&mut stream, &get(path));
        assert_eq!((&head[9..12], &*body), (expected.0, expected.1), "{path}");
        let field = head.lines().find_map(|line| line.strip_prefix("X-Own: "));
        assert_eq!(field, expected.2, "{path}");
        assert_eq!(std::mem::take(&mut *called.lock().unwrap()), calls, "{path}");
        let told = told.recv_timeout(PATIENCE).expect("it is traced");
        assert!(told.contains(&format!(" {} {} true", expected.0, body.len())), "{told}");
        told.split(' ').next().unwrap().to_owned()
    };
    let passed = ["one before /a", "one after /a", "two after /a"];
    assert_eq!(check("/a", ("200", "GET /a user= kind=one body=0", Some("one /a")), &passed), "/a");
    let rewritten = ["one before /r/y", "one after /x/y", "two after /x/y"];
    assert_eq!(
        check("/r/y", ("200", "GET /x/y user= kind=one body=0", Some("one /x/y")), &rewritten),
        "/x/y"
    );
    check("/denied", ("403", "403 Forbidden\n", Some("one /denied")), &[]);
    check("/one/before", ("418", "/one/before", Some("one /one/before")), &["one before /one/before"]);
    let calls = ["one before /two/after", "one after /two/after", "two after /two/after"];
    check("/two/after", ("418", "/two/after", Some("one /two/after")), &calls);
    // A refusal is traced too, and a filter that panics there does no harm.
    let answer = exchange(running.address, b"GET / HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 ") && !answer.contains("X-Own"), "{answer}");
    assert!(told.recv_timeout(PATIENCE).unwrap().contains(" 400 "));
    let answer = exchange(running.address, &get_last("/panic"));
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(exchange(running.address, &get_last("/then")).ends_with("kind=one body=0"));
    assert!(told.recv_timeout(PATIENCE).unwrap().starts_with("/then 200 "));
}

#[test]
fn filters_are_exchanged_while_the_server_runs_and_listed_with_their_counts() {
    let mut settings = settings(Routes::new().with_application(Arc::new(tell)));
    settings.filters = vec![access(at("/a/*"), &["deny all"])];
    let (ended, _told) = mpsc::channel();
    settings.native_filters = vec![Arc::new(Own {
        name: "own",
        places: vec![Place::Trace],
        called: Arc::default(),
        ended: Mutex::new(ended),
    })];
    let controlled = Controlled::start(settings);
    let mut stream = connect(controlled.address());
    let mut status = |path: &str| ask(&mut stream, &get(path)).0[9..12].to_owned();
    assert_eq!([status("/a/1"), status("/a/2"), status("/b")], ["403", "403", "200"]);
    let list = controlled.query("/filters");
    let row = &list["filters"][0];
    assert_eq!(
        (&row["filter"], &row["path"], &row["does"]),
        (&"access".into(), &"/a/*".into(), &"deny all".into())
    );
    assert_eq!((&row["hits"], &row["answered"]), (&2.into(), &2.into()));
    assert_eq!(
        (&list["filters"][1]["filter"], &list["filters"][1]["place"]),
        (&"own".into(), &"trace".into())
    );
    let explained = controlled.query("/explain?method=GET&url=/a/1");
    assert_eq!((&explained["leads_to"], &explained["status"]), (&"filter".into(), &403.into()));
    controlled.server.settings().filters().set_rules(vec![redirect(at("/a/*"), "/b/*")]).unwrap();
    assert_eq!([status("/a/1"), status("/b")], ["307", "200"]);
    let explained = controlled.query("/explain?method=GET&url=/a/1");
    assert_eq!(explained["location"], "/b/1");
    controlled.server.settings().filters().set_rules(Vec::new()).unwrap();
    assert_eq!(status("/a/1"), "200");
    assert_eq!(controlled.query("/explain?method=GET&url=/a/1")["leads_to"], "application");
}
