//! Virtual hosts: which one a request is for, and what each has of its own.

use std::path::Path;
use std::sync::Arc;

use crate::harness::{Running, exchange, read_response, start, text, wait_until};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_filters::{Condition, FilterRule};
use maitred_runtime::{Exchange, Handler};
use maitred_server::{
    AccessLogSettings, ErrorPage, ErrorPages, HostCondition, HostSettings, Level, Log, LogTarget, PageFor,
    PoolLimits, PoolRule, PoolSettings, Routes, Settings, StartError,
};
use tempfile::TempDir;

fn says(what: &'static str) -> Arc<dyn Handler> {
    Arc::new(move |exchange: Exchange| {
        let head = &exchange.request().head;
        match head.path() {
            b"/fails" => drop(exchange),
            _ => {
                let pool = std::thread::current().name().unwrap_or_default().contains("-shop-");
                text(exchange, format!("{what}{}", if pool { " in shop" } else { "" }));
            }
        }
    })
}

fn page(text: &str) -> ErrorPage {
    ErrorPage { content_type: "text/html".into(), body: text.as_bytes().into() }
}

fn host(names: &[&str], routes: Routes) -> HostSettings {
    HostSettings {
        name: names[0].into(),
        names: names.iter().map(|name| name.parse().expect("a name")).collect(),
        routes,
        pages: ErrorPages::default(),
    }
}

fn files(folder: &Path) -> StaticFiles {
    StaticFiles::open(folder, StaticSettings::default()).expect("the folder is there")
}

/// Two hosts with applications, one with files, and the wildcard of the first.
fn settings(folder: &TempDir, default: Routes) -> Settings {
    std::fs::write(folder.path().join("a.txt"), "a file").expect("written");
    let log = Log::open(Level::Error, LogTarget::Path("/dev/null".into()), None).expect("the log opens");
    let mut settings = Settings::new(default, Arc::new(log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    let shop = Routes::new()
        .with_mounted("/api", "api", says("shop api"))
        .with_static("/api/files", files(folder.path()))
        .with_application(says("shop"));
    settings.hosts.push(host(&["shop.example", "www.shop.example"], shop));
    settings.hosts.push(host(&["*.shop.example"], Routes::new().with_application(says("any shop"))));
    settings.hosts.push(host(&["files.example"], Routes::new().with_static("/", files(folder.path()))));
    settings
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// The status line and the body.
fn asked(running: &Running, host: &str, path: &str) -> (u16, String) {
    asked_with(running, host, path, "")
}

fn asked_with(running: &Running, host: &str, path: &str, more: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n");
    let answer = exchange(running.address, request.as_bytes());
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head[9..12].parse().expect("a status"), body.to_owned())
}

#[test]
fn each_host_has_its_applications_and_files() {
    let folder = folder();
    let running = start(settings(&folder, Routes::new().with_application(says("default"))));
    for (host, path, status, body) in [
        ("shop.example", "/", 200, "shop"),
        ("SHOP.example.:8000", "/x", 200, "shop"),
        ("www.shop.example", "/apis", 200, "shop"),
        ("shop.example", "/api", 200, "shop api"),
        ("shop.example", "/api/", 200, "shop api"),
        ("shop.example", "/%61pi/x", 200, "shop api"),
        ("shop.example", "/x/../api/x", 200, "shop api"),
        ("shop.example", "/api/a%2Fb", 200, "shop api"),
        ("shop.example", "/api/../x", 200, "shop"),
        ("shop.example", "/api/files/a.txt", 200, "a file"),
        ("a.b.shop.example", "/api", 200, "any shop"),
        ("files.example", "/a.txt", 200, "a file"),
        ("files.example", "/api", 404, ""),
        ("elsewhere.example", "/api", 200, "default"),
        ("127.0.0.1", "/a.txt", 200, "default"),
    ] {
        let answer = asked(&running, host, path);
        assert_eq!(answer.0, status, "{host} {path}: {answer:?}");
        assert!(status != 200 || answer.1 == body, "{host} {path}: {answer:?}");
    }
    // The target says which host, whatever the field says (RFC 9112 section 3.2.2).
    let absolute = asked(&running, "elsewhere.example", "http://shop.example/");
    assert_eq!(absolute, (200, "shop".to_owned()));
}

#[test]
fn the_slash_that_a_mount_lacks_is_added_on_this_host() {
    let folder = folder();
    let running = start(settings(&folder, Routes::new()));
    for (path, location) in [
        ("/api/files", "/api/files/"),
        ("/api/files?a=1", "/api/files/?a=1"),
        ("//evil.example/../api/files", "/api/files/"),
        ("//evil.example/%2e%2e/api/files?a=1", "/api/files/?a=1"),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
        let answer = exchange(running.address, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 308 "), "{path}: {answer}");
        assert!(answer.contains(&format!("\r\nLocation: {location}\r\n")), "{path}: {answer}");
    }
}

#[test]
fn hosts_that_are_not_listed_are_misdirected_where_there_is_no_default() {
    let folder = folder();
    let mut settings = settings(&folder, Routes::new());
    settings.health_path = Some("/-/health".to_owned());
    settings.pages = ErrorPages::default().with(PageFor::Class(4), page("not here"));
    let running = start(settings);
    assert_eq!(asked(&running, "elsewhere.example", "/"), (421, "not here".to_owned()));
    let old = exchange(running.address, b"GET / HTTP/1.0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.1 421 "), "{old}");
    assert_eq!(asked(&running, "elsewhere.example", "/-/health").0, 200, "the balancer knows no host");
    assert_eq!(asked(&running, "shop.example", "/").0, 200);
    let body = "Content-Length: 5\r\n";
    assert_eq!(asked_with(&running, "elsewhere.example", "/", body).0, 421, "before the body");
}

#[test]
fn error_pages_are_those_of_the_host() {
    let folder = folder();
    let mut settings = settings(&folder, Routes::new().with_application(says("default")));
    settings.pages = ErrorPages::default().with(PageFor::Status(500), page("<p>default failed"));
    for host in &mut settings.hosts {
        host.pages = ErrorPages::default()
            .with(PageFor::Status(404), page(&format!("<h1>{} has none", host.name)))
            .with(PageFor::Class(4), page("<p>no"))
            .with(PageFor::Class(5), page("<p>failed"));
    }
    settings.max_body = 3;
    let running = start(settings);
    assert_eq!(asked(&running, "files.example", "/none"), (404, "<h1>files.example has none".to_owned()));
    assert_eq!(asked(&running, "shop.example", "/api/files/none").1, "<h1>shop.example has none");
    assert_eq!(asked(&running, "shop.example", "/fails"), (500, "<p>failed".to_owned()));
    assert_eq!(asked(&running, "other.example", "/fails"), (500, "<p>default failed".to_owned()));
    let long = asked_with(&running, "shop.example", "/", "Content-Length: 4\r\n");
    assert_eq!(long, (413, "<p>no".to_owned()), "refused");
    let plain = asked_with(&running, "other.example", "/", "Content-Length: 4\r\n");
    assert!(plain.1.starts_with("413 "), "{plain:?}");
    let head = "HEAD /none HTTP/1.1\r\nHost: files.example\r\nConnection: close\r\n\r\n";
    let head = exchange(running.address, head.as_bytes());
    assert!(head.contains("Content-Type: text/html\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains("Content-Length: 26\r\n"), "{head}");
}

#[test]
fn a_connection_may_ask_for_one_host_after_the_other() {
    let folder = folder();
    let running = start(settings(&folder, Routes::new().with_application(says("default"))));
    let mut stream = crate::harness::connect(running.address);
    for (host, body) in [("shop.example", "shop"), ("else.example", "default"), ("files.example", "a file")] {
        let request = format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("taken");
        assert_eq!(read_response(&mut stream).1, body.as_bytes());
    }
}

#[test]
fn rules_of_pools_and_filters_know_the_host() {
    let folder = folder();
    let mut settings = settings(&folder, Routes::new().with_application(says("default")));
    let shop = || Some(HostCondition { number: 1, name: "shop.example".into() });
    settings.pools.push(PoolSettings { name: "shop".to_owned(), ..PoolSettings::default() });
    settings.pools[0].limits = PoolLimits { min_threads: 1, max_threads: 1, ..PoolLimits::default() };
    settings.rules.push(PoolRule { pool: "shop".to_owned(), host: shop(), ..PoolRule::default() });
    let when = Condition { host: shop(), ..Condition::default() };
    settings.filters.push(FilterRule { when, max_body: Some(3), ..FilterRule::default() });
    let running = start(settings);
    assert_eq!(asked(&running, "shop.example", "/").1, "shop in shop");
    assert_eq!(asked(&running, "a.shop.example", "/").1, "any shop");
    let long = "Content-Length: 4\r\n";
    assert_eq!(asked_with(&running, "shop.example", "/", long).0, 413);
    let sent = b"GET / HTTP/1.1\r\nHost: else.example\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
    assert!(exchange(running.address, sent).ends_with("default"));
}

#[test]
fn a_host_has_its_access_log_and_routes_name_it() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let settings_of = |name: &str| AccessLogSettings::new(LogTarget::Path(place(name)));
    let mut settings = settings(&folder, Routes::new().with_application(says("default")));
    let log =
        Log::open(Level::Error, LogTarget::Path("/dev/null".into()), Some(LogTarget::Path(place("all"))))
            .and_then(|log| log.with_access_of_host(1, Some(settings_of("shop"))))
            .and_then(|log| log.with_access_of_host(3, None));
    settings.log = Arc::new(log.expect("the logs open"));
    let running = start(settings);
    for (host, path) in [
        ("shop.example", "/in-shop"),
        ("else.example", "/in-all"),
        ("files.example", "/a.txt"),
        ("x.shop.example", "/any"),
    ] {
        asked(&running, host, path);
    }
    let lines = |name: &str| std::fs::read_to_string(place(name)).unwrap_or_default();
    wait_until("both logs have their lines", || {
        lines("shop").contains("/in-shop") && lines("all").contains("/any")
    });
    assert_eq!((lines("shop").lines().count(), lines("all").lines().count()), (1, 2), "{}", lines("all"));
    std::fs::rename(place("shop"), place("old")).expect("renamed");
    running.server.log().reopen();
    asked(&running, "shop.example", "/anew");
    wait_until("the log is opened anew", || lines("shop").contains("/anew"));
    let mut routes: Vec<String> =
        running.server.figures().statistics().routes.into_iter().map(|(route, _)| route).collect();
    routes.sort();
    routes.dedup();
    for route in ["GET shop.example/in-shop", "GET /in-all", "files.example/*", "GET *.shop.example/any"] {
        assert!(routes.iter().any(|own| own == route), "{route} in {routes:?}");
    }
}

#[test]
fn two_hosts_with_one_name_do_not_start() {
    let folder = folder();
    let mut settings = settings(&folder, Routes::new());
    settings.hosts.push(host(&["other.example", "shop.example"], Routes::new()));
    let error = maitred_server::Server::start(settings).err().expect("refused");
    assert!(matches!(error, StartError::Host(_)), "{error}");
    assert!(error.to_string().contains("shop.example is a name of two hosts"), "{error}");
}
