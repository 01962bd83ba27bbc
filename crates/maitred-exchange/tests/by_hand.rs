//! Exchanges that a test carries by hand: no socket, no thread, and the time is what the test says.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use maitred_client::key::Key;
use maitred_client::{Observer, Report};
use maitred_exchange::client::Ends;
use maitred_exchange::hosts::Hosts;
use maitred_exchange::link::{Link, Readiness, Received};
use maitred_exchange::pages::ErrorPages;
use maitred_exchange::pipeline::{data_received, head_received, request_received};
use maitred_exchange::proxies::{Forwarding, Proxies};
use maitred_exchange::record::{Kept, Record};
use maitred_exchange::response::Response;
use maitred_exchange::routes::Routes;
use maitred_exchange::scratch::Scratch;
use maitred_exchange::site::{
    Contexts, Counters, Figures, Handshakes, Http2Counters, Insight, Measures, Names, Recent, Site, Timeouts,
    WebSocketCounters,
};
use maitred_exchange::spill::{Spilling, WriterSettings};
use maitred_exchange::stream::Stream;
use maitred_exchange::traced::Traced;
use maitred_exchange::tracing::{TracePhases, TraceRules, TraceTrust, Tracing};
use maitred_files::{Body, Submissions};
use maitred_filters::Filters;
use maitred_forward::forwarded::Trusted;
use maitred_h1::{Event, HeadFacts, Receiver};
use maitred_http::{Peer, RequestHead, Status, TracePlace};
use maitred_limits::minimum::Late;
use maitred_limits::{Guard, Limits};
use maitred_log::{End, Level, Log};
use maitred_match::Ambiguity;
use maitred_runtime::{Begun, CallFacts, CallSpan, Exchange, Handler, Outgoing, Request};
use maitred_spool::BodyMemory;
use maitred_stats::{ARENA_BYTES, Arena, Times, memory};
use maitred_tls::Challenges;
use maitred_trace::{Exporter, Format, Sampler, Signal, Step, exporter};
use maitred_turns::Turn;

const SECOND: u64 = 1_000_000_000;

/// What the exchanges of a test share: an application at `/app`, `/health`, bodies of at most 10 bytes.
fn site(limits: &Limits) -> Arc<Site> {
    site_with(limits, None, None)
}

fn site_with(
    limits: &Limits,
    tracing: Option<Tracing>,
    challenges: Option<Arc<dyn Challenges>>,
) -> Arc<Site> {
    let routes = Routes::new().with_mounted("/app", "", Arc::new(|exchange: Exchange| drop(exchange)));
    let hosts = Hosts::new(routes, ErrorPages::default(), Vec::new()).expect("one host");
    let arena = Arena::new(memory::private(ARENA_BYTES / 8 + 2048));
    let log =
        Arc::new(Log::open(Level::Error, maitred_io::line_writer::Target::Stderr, None).expect("a log"));
    let health_path = Some("/health".to_owned());
    let names = Names {
        own: [&health_path, &None],
        listeners: vec!["a".to_owned()],
        pools: vec!["default".to_owned()],
    };
    let figures = Figures::new(&hosts, names, &arena);
    Arc::new(Site {
        hosts,
        beside_loop: None,
        loop_requests: 0,
        filters: Filters::new(Vec::new(), Vec::new(), &log).expect("no filters"),
        health_path,
        metrics_path: None,
        metrics_handler: None,
        language: String::new(),
        limits: maitred_h1::Limits::default(),
        proxies: Proxies::new(Forwarding::default()),
        guard: Guard::new(limits, [0].into_iter(), None),
        timeouts: Timeouts::default(),
        tls: ArcSwapOption::empty(),
        challenges,
        http2: None,
        http2_counters: Http2Counters::new(&arena),
        websockets: None,
        websocket_counters: WebSocketCounters::new(&arena),
        contexts: Contexts::new(0),
        handshakes: Handshakes::new(&arena),
        polling: None,
        max_body: 10,
        body_memory: 1024,
        body_budget: BodyMemory::new(0),
        spooler: None,
        compression: None,
        spilling: Spilling::new(WriterSettings::default()),
        submissions: Submissions::default(),
        own_name: || None,
        log,
        counters: Counters::new(&arena),
        counted: arena.memory(),
        measures: Measures::new(Insight::default()),
        figures,
        traced: Traced::default(),
        recent: Recent::default(),
        tracing,
        metrics: OnceLock::new(),
    })
}

/// A connection that keeps what its exchanges say.
struct Hand<'a> {
    site: &'a Arc<Site>,
    peer: Peer,
    now: u64,
    memory: Scratch,
    redirect_port: Option<u16>,
    readiness: fn() -> Readiness,
    wakes: Arc<AtomicUsize>,
    /// Statuses and texts of the engine's responses, and whether another request may follow.
    own: Vec<(u16, String, bool)>,
    /// Paths and bodies of the requests that a handler has got, and the numbers of the pools.
    run: Vec<(String, Vec<u8>, usize)>,
    /// Verbs without an answer, in their order.
    said: Vec<&'static str>,
    /// The head that a handler has got last.
    given: Option<RequestHead>,
}

impl<'a> Hand<'a> {
    fn new(site: &'a Arc<Site>) -> Self {
        let (memory, wakes) = (Scratch::default(), Arc::default());
        let (own, run, said) = (Vec::new(), Vec::new(), Vec::new());
        let readiness = || Readiness::Ready;
        let given = None;
        let peer = Peer::Ip(([127, 0, 0, 1], 4000).into());
        Self { site, peer, now: SECOND, memory, redirect_port: None, readiness, wakes, own, run, said, given }
    }

    /// Brings a head, and returns what becomes of its exchange.
    fn head(&mut self, text: &str) -> Received {
        let mut stream = Stream::blank();
        stream.begin(1, self.now, self.now);
        let step =
            Receiver::default().poll_event(text.as_bytes(), &mut stream.request.head, &self.site.limits);
        let Ok(Event::Head(facts)) = step.map(|step| step.event) else { panic!("no head: {text}") };
        head_received(self, stream, facts)
    }
}

impl<'a> Link<'a> for Hand<'a> {
    fn site(&self) -> &'a Arc<Site> {
        self.site
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn received(&self) -> u64 {
        self.now
    }

    fn peer(&self) -> Peer {
        self.peer
    }

    fn ends(&self) -> Option<&Ends> {
        None
    }

    fn redirect_port(&self) -> Option<u16> {
        self.redirect_port
    }

    fn read_ahead(&self) -> Option<bool> {
        None
    }

    fn readiness(&self) -> Readiness {
        (self.readiness)()
    }

    fn pool_for(&mut self, _: &Stream, _: &dyn Handler) -> usize {
        3
    }

    fn ambiguous_pool(&self, _: &Stream) -> Option<Ambiguity> {
        None
    }

    fn lacks_room(&self, _: &Stream) -> bool {
        false
    }

    fn memory(&mut self) -> &mut Scratch {
        &mut self.memory
    }

    fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let wakes = Arc::clone(&self.wakes);
        move || {
            wakes.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn send_own(&mut self, stream: Box<Stream>, response: Response) -> Received {
        let Body::One(content) = &response.body else { panic!("a text") };
        let text = String::from_utf8_lossy(content.bytes().expect("in memory")).into_owned();
        self.own.push((response.head.status.code(), text, response.keep_alive));
        Stream::give_back(stream);
        if response.keep_alive { Received::Answered } else { Received::Ended(Turn::Close) }
    }

    fn send_continue(&mut self, _: &mut Stream) {
        self.said.push("continue");
    }

    fn run(&mut self, stream: Box<Stream>, _: Arc<dyn Handler>, pool: usize) -> Received {
        let path = String::from_utf8_lossy(stream.request.head.path()).into_owned();
        self.run.push((path, stream.request.body.as_bytes().expect("in memory").to_vec(), pool));
        self.given = Some(stream.request.head.clone());
        Received::HandedOver
    }

    fn drop_rest(&mut self, _: HeadFacts) {
        self.said.push("drop the rest");
    }

    fn close_behind(&mut self) {
        self.said.push("close");
    }

    fn limit_rate(&mut self, pool: Option<usize>, _: &mut Stream) {
        self.said.push(if pool.is_some() { "shape for a pool" } else { "shape" });
    }

    fn beside_interpreter(&self, act: &mut dyn FnMut()) {
        act();
    }
}

#[test]
fn a_handler_gets_the_whole_request_and_is_asked_for_with_100_continue() {
    let site = site(&Limits::default());
    let mut hand = Hand::new(&site);
    let head = "POST /app/up HTTP/1.1\r\nHost: t\r\nContent-Length: 7\r\nExpect: 100-continue\r\n\r\n";
    let Received::Goes(stream) = hand.head(head) else { panic!("a body follows") };
    assert_eq!(hand.said, ["continue"]);
    let Received::Goes(stream) = data_received(&mut hand, stream, b"one") else { panic!("more follows") };
    let Received::Goes(stream) = data_received(&mut hand, stream, b" two") else { panic!("the end follows") };
    assert!(hand.run.is_empty(), "no handler runs before the end");
    assert!(matches!(request_received(&mut hand, stream), Received::HandedOver));
    assert_eq!(hand.run, [("/app/up".to_owned(), b"one two".to_vec(), 3)]);
    assert_eq!((hand.said, hand.own), (vec!["continue", "shape for a pool"], vec![]));
}

#[test]
fn the_engine_answers_without_a_handler() {
    let site = site(&Limits::default());
    let mut hand = Hand::new(&site);
    let answers = [
        ("GET /health HTTP/1.1\r\nHost: t\r\n\r\n", (200, "ok\n", true)),
        ("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n", (404, "404 Not Found\n", true)),
        (
            "POST /nothing HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
            (404, "404 Not Found\n", true),
        ),
        (
            "POST /app HTTP/1.1\r\nHost: t\r\nContent-Length: 11\r\n\r\n",
            (413, "413 Content Too Large: the request body is larger than the limit (--max-body)\n", false),
        ),
    ];
    for (head, (status, text, keeps)) in answers {
        hand.head(head);
        assert_eq!(hand.own.pop(), Some((status, text.to_owned(), keeps)), "{head}");
    }
    assert!(hand.run.is_empty() && hand.said.is_empty(), "no body is asked for: {:?}", hand.said);
    hand.readiness = || Readiness::Draining;
    hand.head("GET /health HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(hand.own, [(503, "draining\n".to_owned(), false)]);
}

#[test]
fn a_chunked_body_beyond_its_limit_ends_the_connection() {
    let site = site(&Limits::default());
    let mut hand = Hand::new(&site);
    let head = "POST /app HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    let Received::Goes(stream) = hand.head(head) else { panic!("a body follows") };
    let Received::Goes(stream) = data_received(&mut hand, stream, &[b'a'; 10]) else {
        panic!("as much as may")
    };
    assert!(matches!(data_received(&mut hand, stream, b"a"), Received::Ended(Turn::Close)));
    assert_eq!(hand.own.first().map(|(status, _, keeps)| (*status, *keeps)), Some((413, false)));
}

#[test]
fn the_rate_of_a_client_is_over_the_time_of_the_turns() {
    let mut limits = Limits::default();
    (limits.clients.rate, limits.clients.burst) = (1000, 3);
    let site = site(&limits);
    let mut hand = Hand::new(&site);
    let statuses = |hand: &mut Hand<'_>| {
        hand.head("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n");
        hand.own.last().map_or(0, |(status, ..)| *status)
    };
    while statuses(&mut hand) != 429 {
        assert!(hand.own.len() < 1000, "no limit");
    }
    assert_eq!(statuses(&mut hand), 429);
    hand.now += 2 * SECOND;
    assert_eq!(statuses(&mut hand), 404);
}

#[test]
fn a_body_that_pauses_is_late_when_its_time_is_over() {
    let site = site(&Limits::default());
    let mut hand = Hand::new(&site);
    let head = "POST /app HTTP/1.1\r\nHost: t\r\nContent-Length: 7\r\n\r\n";
    let Received::Goes(mut stream) = hand.head(head) else { panic!("a body follows") };
    let due = stream.body_due(&site, hand.now);
    assert!(due > hand.now && stream.check_body(&site, due - 1).is_ok());
    assert_eq!(stream.check_body(&site, due), Err(Late::Silent));
}

struct Open;

impl Challenges for Open {
    fn http(&self, token: &str) -> Option<String> {
        (token == "to-ken_1").then(|| "to-ken_1.thumbprint".to_owned())
    }

    fn tls_alpn(&self, _: &str) -> Option<String> {
        None
    }
}

#[test]
fn a_challenge_is_answered_before_hosts_redirects_and_limits() {
    let mut limits = Limits::default();
    (limits.clients.rate, limits.clients.burst) = (1, 1);
    let (asked, off) = (site_with(&limits, None, Some(Arc::new(Open))), site(&Limits::default()));
    let mut hand = Hand::new(&asked);
    hand.redirect_port = Some(443);
    for line in [
        "GET /.well-known/acme-challenge/to-ken_1 HTTP/1.1\r\nHost: t",
        "HEAD /.well-known/acme-challenge/to-ken_1 HTTP/1.1\r\nHost: t",
        "GET http://other.example/.well-known/acme-challenge/to-ken_1?a=b HTTP/1.1\r\nHost: t",
        "GET /.well-known/acme-challenge/to-ken_1 HTTP/1.0",
        "GET /.well-known/acme-challenge/to-ken_1 HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: upgrade",
    ] {
        hand.head(&format!("{line}\r\n\r\n"));
        let answer = hand.own.pop().map(|(status, text, _)| (status, text));
        assert_eq!(answer, Some((200, "to-ken_1.thumbprint".to_owned())), "{line}");
    }
    // No application, and the rate of the client counts.
    hand.redirect_port = None;
    let statuses = |hand: &mut Hand<'_>, path: &str| {
        hand.head(&format!("{path} HTTP/1.1\r\nHost: t\r\n\r\n"));
        hand.now += 3000 * SECOND;
        hand.own.pop().map_or(0, |(status, ..)| status)
    };
    for path in [
        "GET /.well-known/acme-challenge/other",
        "GET /.well-known/acme-challenge/to-ken_1/",
        "GET /.well-known/acme-challenge/%74o-ken_1",
        "GET /.well-known/acme-challenge/",
        "GET /.well-known/acme-challenge",
        "GET /x/.well-known/acme-challenge/to-ken_1",
        "POST /.well-known/acme-challenge/to-ken_1",
    ] {
        assert_eq!(statuses(&mut hand, path), 404, "{path}");
    }
    assert_eq!(statuses(&mut Hand::new(&off), "GET /.well-known/acme-challenge/to-ken_1"), 404);
}

fn tracing(trust: TraceTrust, sampler: &str, signals: &[Signal]) -> Tracing {
    tracing_with(trust, sampler, signals, None)
}

fn tracing_with(trust: TraceTrust, sampler: &str, signals: &[Signal], except: Option<&str>) -> Tracing {
    let rules = TraceRules {
        query: false,
        mask: except.map(|_| maitred_log::Mask::default()),
        except: except.iter().map(|path| path.parse().expect("a pattern")).collect(),
        trust,
        sampler: Sampler::parse(sampler, None).expect("a sampler"),
        slow: std::time::Duration::from_secs(1),
        phases: TracePhases::Events,
        limits: maitred_trace::Limits::default(),
    };
    let exporter = |signal: &Signal| {
        let settings = exporter::Settings { format: Format::Json, ..exporter::Settings::default() };
        (*signal, Format::Json, Exporter::new(*signal, settings, [1, 2]))
    };
    Tracing::new(rules, signals.iter().map(exporter).collect())
}

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// The head that the application gets for a request with these fields.
fn given(site: &Arc<Site>, fields: &str) -> RequestHead {
    given_by(site, Peer::Ip(([127, 0, 0, 1], 4000).into()), fields)
}

fn given_by(site: &Arc<Site>, peer: Peer, fields: &str) -> RequestHead {
    let mut hand = Hand { peer, ..Hand::new(site) };
    hand.head(&format!("GET /app/a?token=secret HTTP/1.1\r\nHost: t:81\r\n{fields}\r\n"));
    hand.given.expect("a handler has it")
}

fn field(head: &RequestHead, name: &str) -> Vec<String> {
    head.fields.all(name).map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

#[test]
fn the_application_gets_one_parent_which_is_our_span() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::All, "always_off", &[Signal::Traces])), None);
    let head = given(&site, &format!("traceparent: {PARENT}\r\ntracestate: a=1\r\n"));
    let place = head.trace.expect("a place");
    let [parent] = &field(&head, "traceparent")[..] else { panic!("one field") };
    assert_eq!(parent.as_bytes(), place.parent_field(place.span));
    assert!(
        parent.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && parent.ends_with("-00"),
        "{parent}"
    );
    assert_eq!(
        (place.parent, field(&head, "tracestate")),
        (*b"\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", vec!["a=1".to_owned()])
    );
    // Two fields are none, and a trace of its own begins.
    let head =
        given(&site, &format!("traceparent: {PARENT}\r\ntraceparent: {PARENT}\r\ntracestate: a=1\r\n"));
    let place = head.trace.expect("a place");
    assert_eq!((place.parent, place.link, field(&head, "tracestate").len()), ([0; 8], None, 0));
    assert_eq!(field(&head, "traceparent").len(), 1);
}

#[test]
fn the_parent_of_a_peer_without_trust_is_a_link() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::None, "always_on", &[Signal::Traces])), None);
    let place = given(&site, &format!("traceparent: {PARENT}\r\n")).trace.expect("a place");
    let (trace, span) = place.link.expect("a link");
    assert!(trace[0] == 0x4b && span[1] == 0xf0 && place.trace != trace && place.is_sampled());
}

#[test]
fn the_parent_of_a_trusted_proxy_alone_is_ours_by_default() {
    let is_parent = |trusted: Trusted, peer: Peer| {
        let tracing = tracing(TraceTrust::default(), "always_on", &[Signal::Traces]);
        let mut site = site_with(&Limits::default(), Some(tracing), None);
        let forwarding = Forwarding { trusted, ..Forwarding::default() };
        Arc::get_mut(&mut site).expect("one owner").proxies = Proxies::new(forwarding);
        let head = given_by(&site, peer, &format!("traceparent: {PARENT}\r\n"));
        let place = head.trace.expect("a place");
        assert_eq!(place.link.is_some(), place.parent == [0; 8]);
        place.link.is_none()
    };
    let far = Peer::Ip(([203, 0, 113, 9], 4000).into());
    let near = Peer::Ip(([127, 0, 0, 1], 4000).into());
    let proxy = || Trusted::new(vec!["203.0.113.0/24".parse().expect("a network")], false);
    for peer in [far, near, Peer::Unix] {
        assert!(!is_parent(Trusted::default(), peer), "{peer:?}");
    }
    assert!(is_parent(proxy(), far) && !is_parent(proxy(), near));
    assert!(is_parent(Trusted::new(Vec::new(), true), Peer::Unix));
}

#[test]
fn without_spans_the_parent_passes_as_it_came() {
    for tracing in [None, Some(tracing(TraceTrust::All, "always_on", &[Signal::Metrics]))] {
        let site = site_with(&Limits::default(), tracing, None);
        let head = given(&site, &format!("traceparent: {PARENT}\r\n"));
        assert_eq!((head.trace, field(&head, "traceparent")), (None, vec![PARENT.to_owned()]));
    }
}

fn record() -> Record {
    Record {
        request: Kept::Request(Box::default()),
        number: 1,
        peer: Peer::Ip(([192, 0, 2, 1], 4000).into()),
        listener: 0,
        pool: Some(0),
        status: Status::OK,
        body_bytes: 2,
        times: Times::default(),
        end: End::Complete,
        refused: false,
        trace: None,
        route: None,
    }
}

/// Notes a request that took so many milliseconds, and returns what goes to the collector.
fn noted(site: &Arc<Site>, status: u16, millis: u64, end: End, call: Option<CallSpan>) -> String {
    let outgoing = Arc::new(Outgoing::of(1));
    call.into_iter().for_each(|call| _ = outgoing.add_span(call));
    let head = given(site, &format!("traceparent: {PARENT}\r\n"));
    let at = |part: u64| SECOND + millis * part * 1_000_000 / 4;
    let times = Times { arrived: SECOND, complete: at(1), begun: at(2), done: at(3), ..Times::default() };
    let request =
        Request { head, outgoing: Some(outgoing), route: "/a/{name}".to_owned(), ..Request::default() };
    let status = Status::from_code(status).expect("a status");
    let record = Record { request: Kept::Request(Box::new(request)), status, times, end, ..record() };
    site.note(record, at(4));
    sent(site)
}

/// The spans that go to the collector.
fn sent(site: &Site) -> String {
    let mut exporter =
        site.tracing.as_ref().and_then(|all| all.waiting(Signal::Traces)).expect("spans").exporter.lock();
    exporter.flush();
    match exporter.next(u64::MAX / 2) {
        Step::Post(post) => {
            exporter.answered(200, None, b"", u64::MAX / 2);
            String::from_utf8(post.body()).expect("JSON")
        }
        _ => String::new(),
    }
}

/// A call to a server with this number, 0 of those that are counted together.
fn call(server: u16) -> CallSpan {
    let facts =
        CallFacts { span: [7; 8], method: maitred_http::Method::Post, path: b"/charge".as_slice().into() };
    let (facts, status) = (Box::new(facts), Some(503));
    CallSpan { facts, server, begun: SECOND, nanos: 5, status, failure: "", retried: false }
}

#[test]
fn a_call_tells_nothing_that_is_not_known() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::All, "always_on", &[Signal::Traces])), None);
    let refused = CallSpan { status: None, failure: "refused", ..call(0) };
    let sent = noted(&site, 200, 8, End::Complete, Some(refused));
    let call = sent.split(r#""spanId":"0707070707070707""#).nth(1).expect("a call");
    for key in ["url.full", "server.address", "server.port", "network.protocol.version"] {
        assert!(!call.contains(key), "{key}\n{call}");
    }
}

#[test]
fn calls_have_spans_also_where_the_engine_has_answered_or_the_response_has_ended() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::All, "always_on", &[Signal::Traces])), None);
    site.trace_late_calls();
    let head = given(&site, &format!("traceparent: {PARENT}\r\n"));
    let outgoing = Arc::new(Outgoing::of(1).traced(head.trace));
    assert!(outgoing.add_span(call(0)).is_none());
    let request = Request { head, outgoing: Some(Arc::clone(&outgoing)), ..Request::default() };
    site.note_late(Record { request: Kept::Request(Box::new(request)), ..record() });
    let late = sent(&site);
    assert!(late.contains(r#""spanId":"0707070707070707""#) && late.contains("4bf92f3577b34da6"), "{late}");
    // A background task.
    outgoing.end();
    maitred_runtime::outgoing::set_running(|| BEGUN.take());
    BEGUN.set(Some(Begun { outgoing, call: Some(call(0).facts) }));
    let key = Key::plain("api.example", 80);
    let number = site.figures.calls.begun(&key);
    site.figures.calls.ended(number, &key, &Report::default());
    let late = sent(&site);
    assert!(late.contains("http://api.example:80/charge") && late.contains("4bf92f3577b34da6"), "{late}");
}

thread_local! {
    static BEGUN: std::cell::RefCell<Option<Begun>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn the_rules_of_the_access_log_hold_for_the_collector() {
    let signals = [Signal::Traces, Signal::Logs];
    for (except, address, records) in
        [(None, "192.0.2.1", 1), (Some("/other"), "192.0.2.0", 1), (Some("/app/*"), "192.0.2.0", 0)]
    {
        let tracing = tracing_with(TraceTrust::All, "always_on", &signals, except);
        let site = site_with(&Limits::default(), Some(tracing), None);
        let span = noted(&site, 200, 1, End::Complete, None);
        assert!(span.contains(&format!("\"{address}\"")) && !span.contains("secret"), "{span}");
        let waiting = site.tracing.as_ref().and_then(|all| all.waiting(Signal::Logs)).expect("records");
        assert_eq!(waiting.exporter.lock().counts().queued, records);
    }
}

#[test]
fn the_span_of_a_request_has_its_route_its_parts_and_its_calls() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::All, "always_on", &[Signal::Traces])), None);
    let call = call(site.figures.calls.begun(&Key::plain("::1", 8080)) as u16);
    let sent = noted(&site, 200, 8, End::Complete, Some(call));
    for part in [
        r#""name":"GET /a/{name}""#,
        r#""parentSpanId":"00f067aa0ba902b7""#,
        r#"{"key":"client.address","value":{"stringValue":"192.0.2.1"}}"#,
        r#"{"key":"network.peer.address","value":{"stringValue":"127.0.0.1"}}"#,
        r#"{"key":"server.port","value":{"intValue":"81"}}"#,
        r#""name":"accept""#,
        r#""name":"queue""#,
        r#""name":"run""#,
        r#""name":"write""#,
        r#""spanId":"0707070707070707""#,
        r#"{"key":"url.full","value":{"stringValue":"http://[::1]:8080/charge"}}"#,
        r#"{"key":"server.address","value":{"stringValue":"::1"}}"#,
        r#"{"key":"error.type","value":{"stringValue":"503"}}"#,
    ] {
        assert!(sent.contains(part), "{part}\n{sent}");
    }
    let length = |name: &str| {
        let number = sent.split(name).nth(1).and_then(|rest| rest.split('"').nth(1)).expect("a time");
        number.parse::<u64>().expect("nanoseconds")
    };
    assert_eq!(length("endTimeUnixNano\":") - length("startTimeUnixNano\":"), 8_000_000);
}

#[test]
fn the_slow_and_the_failed_are_kept_whatever_the_sampling_says() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::None, "always_off", &[Signal::Traces])), None);
    for (status, millis, end, kept) in [
        // Half of the time is that of the client: the first part and the last one.
        (200, 1999, End::Complete, false),
        (404, 5, End::Complete, false),
        (200, 2000, End::Complete, true),
        (500, 5, End::Complete, true),
        (200, 5, End::Cut, true),
        (200, 5, End::PeerGone, false),
        (200, 5, End::TooSlow, false),
        // A WebSocket lasts as long as both sides want.
        (101, 60_000, End::Complete, false),
    ] {
        let sent = noted(&site, status, millis, end, None);
        assert_eq!(!sent.is_empty(), kept, "{status} {millis} {end:?}");
        assert!(!sent.contains(r#""flags":1"#), "the decision of the sampler stands: {sent}");
    }
}

#[test]
fn metrics_count_without_statistics_and_without_websockets() {
    let site =
        site_with(&Limits::default(), Some(tracing(TraceTrust::None, "always_on", &[Signal::Metrics])), None);
    site.figures.set_on(false);
    for status in [Status::OK, Status::SWITCHING_PROTOCOLS] {
        let head = given(&site, "");
        let request = Request { head, route: "/a/{name}".to_owned(), ..Request::default() };
        site.note(Record { request: Kept::Request(Box::new(request)), status, ..record() }, SECOND);
    }
    let statistics = site.figures.snapshot();
    let [requests] = &statistics.http[..] else { panic!("{:?}", statistics.http) };
    assert_eq!((&*requests.route, requests.duration.count(), requests.status), ("/a/{name}", 1, 200));
    assert_eq!(statistics.server.requests, 0);
}

#[test]
fn a_place_is_small() {
    assert!(size_of::<Option<TracePlace>>() <= 64);
}
