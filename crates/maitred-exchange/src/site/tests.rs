use std::net::SocketAddr;

use maitred_client::key::Key;
use maitred_client::{Observer, Report};
use maitred_files::{StaticFiles, StaticSettings};
use maitred_http::{FieldSet, Method, RequestHead, Status};
use maitred_log::{End, RequestId};
use maitred_match::Shape;
use maitred_runtime::{DatabaseCounts, OutgoingCounts};
use maitred_stats::exposition::{Page, whole};
use maitred_stats::{ARENA_BYTES, Leaf, MAX_ROUTES, Span, Times, memory};

use crate::pages::ErrorPages;
use crate::routes::Routes;
use crate::site::*;

fn head(method: &Method, path: &str) -> RequestHead {
    let mut head = RequestHead { method: method.clone(), ..RequestHead::default() };
    head.path_and_query = head.fields.adopt(path.as_bytes()).expect("room");
    head
}

struct Site {
    figures: Figures,
    hosts: Hosts,
}

impl Site {
    fn new() -> Self {
        let folder = std::env::temp_dir();
        let files = || StaticFiles::open(&folder, StaticSettings::default()).expect("the folder is there");
        let routes = Routes::new().with_static("/static", files()).with_static("/static/deep", files());
        let hosts =
            Hosts::new(routes, ErrorPages::default(), Vec::new()).unwrap_or_else(|error| panic!("{error}"));
        let names = Names {
            own: [&Some("/-/health".to_owned()), &None],
            listeners: vec!["[::1]:1".to_owned(), "[::1]:2".to_owned()],
            pools: vec!["default".to_owned(), "reports".to_owned()],
        };
        Self {
            figures: Figures::new(&hosts, names, &Arena::new(memory::private(ARENA_BYTES / 8 + 2048))),
            hosts,
        }
    }

    fn record(&self, pool: Option<u16>, path: &str, status: u16) {
        self.record_times(pool, path, status, Times::default(), false);
    }

    fn record_times(&self, pool: Option<u16>, path: &str, status: u16, times: Times, refused: bool) {
        let head = head(&Method::Get, path);
        let outcome = outcome_of(&head, pool, status, times);
        let of_engine = pool.is_none() && !refused;
        let route = of_engine.then(|| self.figures.route_of_engine(head.path(), 0, &self.hosts)).flatten();
        self.figures.record(&outcome, (route, None), true);
    }

    fn record_database(&self, pool: Option<u16>, path: &str, counts: DatabaseCounts) {
        let head = head(&Method::Get, path);
        self.figures.record_database(&outcome_of(&head, pool, 200, Times::default()), counts);
    }

    /// Route, class and number of requests.
    fn counts(&self) -> Vec<(String, String, u64)> {
        let leaves = self.figures.snapshot().leaves.into_iter();
        let mut counts: Vec<_> = leaves.map(|leaf| (leaf.route, leaf.class, leaf.requests)).collect();
        counts.sort();
        counts
    }
}

fn outcome_of(head: &RequestHead, pool: Option<u16>, status: u16, times: Times) -> Outcome<'_> {
    Outcome {
        head,
        id: RequestId::Made(1),
        peer: SocketAddr::from(([127, 0, 0, 1], 1)).into(),
        listener: 1,
        pool,
        route: None,
        told_route: "",
        status: Status::from_code(status).expect("a status"),
        body_bytes: 10,
        times,
        end: End::Complete,
        database: None,
        outgoing: None,
    }
}

fn of(route: &str, class: &str, requests: u64) -> (String, String, u64) {
    (route.to_owned(), class.to_owned(), requests)
}

#[test]
fn routes_are_shapes_mounts_and_the_engine_s_own_paths() {
    let site = Site::new();
    for path in ["/user/1/orders", "/user/2/orders?x=y"] {
        site.record(Some(0), path, 200);
    }
    site.record(None, "/static/a.css", 200);
    site.record(None, "/static/nothing", 404);
    site.record(None, "/static", 308);
    site.record(None, "/static/deep/x", 200);
    site.record(None, "/x/../static/%61.css", 200);
    site.record(None, "/-/health", 200);
    site.record(None, "/elsewhere", 404);
    let expected = [
        of("/-/health", "2xx", 1),
        of("/static/*", "2xx", 2),
        of("/static/*", "3xx", 1),
        of("/static/*", "4xx", 1),
        of("/static/deep/*", "2xx", 1),
        of("GET /user/*/orders", "2xx", 2),
        of("other", "4xx", 1),
    ];
    assert_eq!(site.counts(), expected);
}

#[test]
fn what_finds_nothing_makes_no_route() {
    let site = Site::new();
    site.record(Some(0), "/a", 404);
    site.record(Some(0), "/a", 200);
    site.record(Some(0), "/a", 404);
    for status in [400, 404, 405, 501] {
        site.record(Some(0), &format!("/invented/by{status}x/somebody"), status);
    }
    site.record_times(None, "/a", 413, Times::default(), true);
    let expected = [
        of("GET /a", "2xx", 1),
        of("GET /a", "4xx", 1),
        // Refused requests count for the engine, the rest for the pool.
        of("other", "4xx", 1),
        of("other", "4xx", 4),
        of("other", "5xx", 1),
    ];
    assert_eq!(site.counts(), expected);
}

impl Site {
    /// Records an exchange whose application gives this route name.
    fn record_told(&self, path: &str, route: &str, status: u16) {
        let head = head(&Method::Get, path);
        let outcome = Outcome { told_route: route, ..outcome_of(&head, Some(0), status, Times::default()) };
        self.figures.record(&outcome, (None, None), true);
    }

    fn name_of(&self, path: &str) -> String {
        self.figures.name_of(Shape { method: "GET", path: path.as_bytes(), host: 0 })
    }
}

#[test]
fn a_route_that_an_application_tells_has_its_name_also_before_it_is_told_again() {
    let site = Site::new();
    site.record_told("/order/7", "/order/<int:\"n\n\">", 200);
    // A request of this shape was cut before the application gave a route name, or still runs. Each is looked up at
    // once: another shape may take the place.
    site.record(Some(0), "/order/8", 504);
    assert_eq!(site.name_of("/order/9"), "GET /order/<int:\"n\\n\">");
    site.record_told("/users/nobody", "/users/{name}", 404);
    for name in ["bob", "ann"] {
        site.record_told(&format!("/users/{name}"), "/users/{name}", 200);
    }
    assert_eq!(site.name_of("/users/ann"), "GET /users/{name}");
    assert_eq!(site.name_of("/other/1"), "GET /other/*");
    let expected = [
        of("GET /order/<int:\"n\\n\">", "2xx", 1),
        of("GET /order/<int:\"n\\n\">", "5xx", 1),
        of("GET /users/{name}", "2xx", 2),
        of("GET /users/{name}", "4xx", 1),
    ];
    assert_eq!(site.counts(), expected);
}

#[test]
fn names_that_applications_invent_are_bounded() {
    let site = Site::new();
    for number in 0..5_000 {
        site.record_told("/a", &format!("/{number}"), 200);
    }
    let counts = site.counts();
    assert!(counts.len() <= MAX_ROUTES + 1);
    assert_eq!(counts.iter().map(|(.., requests)| requests).sum::<u64>(), 5_000);
}

#[test]
fn a_place_with_many_names_is_one_route_and_what_comes_often_keeps_its_own() {
    let site = Site::new();
    for _ in 0..40 {
        site.record(Some(0), "/users/login", 200);
    }
    for number in 0..200_u32 {
        let name: String = number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect();
        site.record(Some(0), &format!("/users/{name}"), 200);
        site.record(Some(0), &format!("/users/{name}/orders"), 200);
        site.record(Some(0), &format!("/{name}/{name}/photo/{name}"), 200);
    }
    site.record(Some(0), "/users/zoe", 404);
    let expected = [
        of("GET /*/*/photo/*", "2xx", 200),
        of("GET /users/*", "2xx", 200),
        of("GET /users/*", "4xx", 1),
        of("GET /users/*/orders", "2xx", 200),
        of("GET /users/login", "2xx", 40),
    ];
    assert_eq!(site.counts(), expected);
    assert_eq!(site.name_of("/users/new"), "GET /users/*");
    assert_eq!(site.name_of("/blog/new"), "GET /blog/new");
}

#[test]
fn pages_side_by_side_stay_routes_of_their_own() {
    let site = Site::new();
    for first in ["api", "shop", "blog"] {
        for page in 0..20_u8 {
            site.record(Some(0), &format!("/{first}/page{}", char::from(b'a' + page)), 200);
        }
    }
    assert_eq!(site.counts().len(), 60);
}

#[test]
fn listeners_pools_and_spans_have_their_figures() {
    let site = Site::new();
    let times = Times { arrived: 1_000, begun: 5_000, done: 105_000, written: 105_000, ..Times::default() };
    site.record_times(Some(0), "/a", 200, times, false);
    site.record_times(Some(1), "/a", 503, times, false);
    site.record_times(None, "/static/a", 200, times, false);
    let figures = site.figures.snapshot();
    let names = |of: &[(String, Leaf)]| {
        of.iter().map(|(name, leaf)| (name.clone(), leaf.requests)).collect::<Vec<_>>()
    };
    let named = |all: &[(&str, u64)]| {
        all.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(names(&figures.listeners), named(&[("[::1]:2", 3)]));
    assert_eq!(names(&figures.pools), named(&[("default", 1), ("reports", 1), ("engine", 1)]));
    assert_eq!(names(&figures.classes), named(&[("2xx", 2), ("5xx", 1)]));
    assert_eq!(names(&figures.routes), named(&[("/static/*", 1), ("GET /a", 2)]));
    assert_eq!((figures.server.requests, figures.server.bytes), (3, 30));
    let (run, queue) =
        (&figures.server.spans[Span::Run as usize], &figures.server.spans[Span::Queue as usize]);
    assert_eq!(
        (run.count(), run.sum(), queue.sum(), figures.server.total.sum()),
        (3, 300_000, 12_000, 312_000)
    );
    assert!(figures.bytes < figures.max_bytes);
}

#[test]
fn an_application_s_timings_are_counted_by_pool_route_and_name() {
    let site = Site::new();
    let mut fields = FieldSet::default();
    fields.push("Server-Timing", "db;dur=20;desc=\"38 statements\", cache;dur=1");
    fields.push("server-timing", "db;dur=30");
    let request = head(&Method::Post, "/order/7");
    site.figures.record_timings((1, Counted::default()), (&request, ""), Status::OK, &fields);
    site.figures.record_timings((1, Counted::default()), (&request, ""), Status::OK, &FieldSet::default());
    let timings = site.figures.snapshot().application;
    let shown: Vec<_> = timings
        .iter()
        .map(|timing| {
            (&*timing.pool, &*timing.route, &*timing.name, timing.durations.count(), timing.durations.sum())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("reports", "POST /order/*", "db", 2, 50_000_000),
            ("reports", "POST /order/*", "cache", 1, 1_000_000)
        ]
    );
}

#[test]
fn nothing_is_counted_while_it_is_off() {
    let site = Site::new();
    site.figures.set_on(false);
    site.record(Some(0), "/a", 200);
    assert_eq!(site.counts(), []);
    site.figures.set_on(true);
    site.record(Some(0), "/a", 200);
    assert_eq!(site.counts(), [of("GET /a", "2xx", 1)]);
}

#[test]
fn a_client_that_invents_paths_adds_nothing() {
    let site = Site::new();
    site.record(Some(0), "/known", 200);
    site.record(Some(0), "/known/not", 404);
    let before = site.figures.snapshot().bytes;
    let letters = |number: u32| -> String {
        (0..5).map(|digit| char::from(b'a' + (number / 10_u32.pow(digit) % 10) as u8)).collect()
    };
    for number in 0..100_000 {
        site.record(Some(0), &format!("/{}", letters(number)), 404);
    }
    let after = site.figures.snapshot();
    assert_eq!((after.bytes, after.routes.len(), after.server.requests), (before, 2, 100_002));
    // Also with an application that answers every path.
    for number in 0..100_000 {
        site.record(Some(0), &format!("/{}", letters(number)), 200);
    }
    let full = site.figures.snapshot();
    assert_eq!(full.server.requests, 200_002);
    assert!(full.routes.len() < 100, "a place where names vary is one route: {}", full.routes.len());
    for _ in 0..200 {
        site.record(Some(0), "/new/page", 200);
    }
    assert_eq!(site.figures.snapshot().routes.len(), full.routes.len() + 1);
    assert!(full.bytes <= full.max_bytes);
}

#[test]
fn a_scan_that_repeats_its_list_keeps_no_real_route_out() {
    let site = Site::new();
    let now = maitred_io::clock::monotonic();
    let later = |minutes: u64| {
        site.figures.naming.make_room(&site.figures.recorder, now + (1 + minutes * 61) * 1_000_000_000);
    };
    let mut all = 0;
    let mut ask = |number: u32| {
        site.record_told(&format!("/scan/{number}"), &format!("/scan/{number}"), 200);
        all += 1;
    };
    (0..300).for_each(|_| (0..2_000).for_each(&mut ask));
    // Of two routes that compete for a place neither has found one.
    let mut number = 2_000;
    while !site.figures.naming.routes.is_wanting() {
        (0..300).for_each(|_| ask(number));
        number += 1;
    }
    site.record_told("/used", "/used", 200);
    let real = ["/used", "/late/one", "/late/two"];
    let record = || real.iter().for_each(|route| (0..200).for_each(|_| site.record_told(route, route, 200)));
    record();
    later(1);
    for minutes in 2..4 {
        record();
        later(minutes);
    }
    record();
    let counts = site.counts();
    let of = |name: &str| {
        counts.iter().find(|(route, ..)| *route == format!("GET {name}")).map(|(.., requests)| *requests)
    };
    assert!(of("/late/one").is_some_and(|requests| requests > 100), "{:?}", of("/late/one"));
    assert!(of("/late/two").is_some());
    all += 1 + 4 * 600;
    assert_eq!(counts.iter().map(|(.., requests)| requests).sum::<u64>(), all, "nothing is lost");
    let snapshot = site.figures.snapshot();
    assert_eq!((snapshot.server.requests, snapshot.server.total.count()), (all, all));
    // Routes that came again are in use now: only the scan makes room.
    for minutes in 4..40 {
        record();
        later(minutes);
    }
    let counts = site.counts();
    assert!(real.iter().all(|name| counts.iter().any(|(route, ..)| *route == format!("GET {name}"))));
    assert!(snapshot.bytes <= snapshot.max_bytes);
}

#[test]
fn what_a_request_has_had_of_databases_is_counted_by_pool_and_route() {
    let site = Site::new();
    let counts = |statements, failed, nanos, wait_nanos, connections| DatabaseCounts {
        statements,
        failed,
        nanos,
        wait_nanos,
        connections,
    };
    site.record_database(Some(1), "/user/7", counts(12, 1, 3_000_000, 500_000, 4));
    site.record_database(Some(1), "/user/8", counts(14, 0, 5_000_000, 0, 2));
    site.record_database(None, "/user/8", counts(1, 0, 1, 0, 0));
    let statistics = site.figures.snapshot();
    let [one] = &*statistics.databases() else { panic!("one route of one pool") };
    assert_eq!((&*one.pool, &*one.route), ("reports", "GET /user/*"));
    assert_eq!((one.statements.count(), whole(one.statements.sum()), whole(one.failed.sum())), (2, 26, 1));
    assert_eq!((one.time.sum(), one.wait.sum(), whole(one.connections.max())), (8_000_000, 500_000, 4));
    // Numbers are no times.
    let names: Vec<_> =
        statistics.application.iter().filter(|one| one.is_duration()).map(|one| &*one.name).collect();
    assert_eq!(names, ["db", "db-wait"]);
    // The application's own value for the same span does not count a second time.
    let mut fields = FieldSet::default();
    fields.push("Server-Timing", "db;dur=20, cache;dur=1");
    let counted = Counted { database: true, outgoing: false };
    site.figures.record_timings((1, counted), (&head(&Method::Get, "/user/9"), ""), Status::OK, &fields);
    let said = site.figures.snapshot().application;
    let times = said.iter().filter(|one| one.is_duration()).map(|one| (&*one.name, one.durations.count()));
    assert_eq!(times.collect::<Vec<_>>(), [("db", 2), ("db-wait", 1), ("cache", 1)]);
    let mut page = Page::default();
    super::database::write(&statistics, &mut page);
    let text = page.text;
    let labels = r#"{pool="reports",route="GET /user/*"}"#;
    for line in ["maitred_database_statements_sum", "maitred_database_failed_statements_total"]
        .iter()
        .zip([26, 1])
        .map(|(name, value)| format!("{name}{labels} {value}\n"))
    {
        assert!(text.contains(&line), "{line}{text}");
    }
}

#[test]
fn the_calls_of_a_request_to_other_servers_are_counted_by_pool_and_route() {
    let site = Site::new();
    let record = |path: &str, calls, failed, nanos| {
        let head = head(&Method::Get, path);
        let counts = OutgoingCounts { calls, failed, nanos, ..OutgoingCounts::default() };
        site.figures.record_outgoing(&outcome_of(&head, Some(1), 200, Times::default()), counts);
    };
    record("/pay/7", 1, 0, 3_000_000);
    record("/pay/8", 3, 2, 5_000_000);
    let mut fields = FieldSet::default();
    fields.push("Server-Timing", "outgoing;dur=20, cache;dur=1");
    let counted = Counted { database: false, outgoing: true };
    site.figures.record_timings((1, counted), (&head(&Method::Get, "/pay/9"), ""), Status::OK, &fields);
    let statistics = site.figures.snapshot();
    let [one] = &*statistics.outgoing() else { panic!("one route of one pool") };
    assert_eq!((&*one.pool, &*one.route), ("reports", "GET /pay/*"));
    assert_eq!((one.calls.count(), whole(one.calls.sum()), whole(one.failed.sum())), (2, 4, 2));
    assert_eq!((one.time.count(), one.time.sum()), (2, 8_000_000));
}

#[test]
fn calls_are_counted_by_server_with_percentiles() {
    let site = Site::new();
    let key = Key::plain("api.example", 8080);
    for millis in 1..=100 {
        let number = site.figures.calls.begun(&key);
        let total = std::time::Duration::from_millis(millis);
        let report =
            Report { status: Some(200), end: maitred_client::End::Complete, total, ..Report::default() };
        let report = Report { first_byte: (millis > 50).then_some(total), ..report };
        site.figures.calls.ended(number, &key, &report);
    }
    let statistics = site.figures.snapshot();
    let [one] = &*statistics.upstreams else { panic!("one server") };
    assert_eq!((&*one.name, one.calls(), one.total.count()), ("http://api.example:8080", 100, 100));
    assert!(one.total.percentile(99.0).abs_diff(99_000_000) < 2_000_000, "{:?}", one.total);
    assert_eq!((one.first_byte.count(), one.first_byte.max()), (50, 100_000_000));
    assert!(statistics.application.is_empty(), "these are no times of an application");
    let mut both = statistics.clone();
    both.merge(&statistics);
    assert_eq!(
        (both.upstreams.len(), both.upstreams[0].calls(), both.upstreams[0].total.count()),
        (1, 200, 200)
    );
}
