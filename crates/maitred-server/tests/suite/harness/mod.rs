//! A server on a port of its own and clients that speak bytes.
#![allow(dead_code, reason = "every test file uses a part of it")]

pub(crate) mod asked;
pub(crate) mod door;
pub(crate) mod pools;

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_http::{ResponseHead, Status};
use maitred_runtime::{Exchange, Handler, InterpreterLock};
use maitred_server::figures::Format;
use maitred_server::inspect::State;
use maitred_server::listening::Address;
use maitred_server::{Level, Log, LogTarget, Routes, Server, Settings, StartError};
use maitred_testkit::client::{Client, by_tls, certificate, learn};
use maitred_tls::{
    ClientPolicy, HostClients, Identity, Terms, TermsSettings, UnknownName, Version, system_clock,
};

/// Longer than any step of a test takes; reached only when a test hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two checks: a busy loop would take the processor from the server.
pub(crate) const PAUSE: Duration = Duration::from_millis(1);

/// The lock of an interpreter that no thread ever takes.
pub(crate) struct FreeLock;

impl InterpreterLock for FreeLock {
    fn holder(&self) -> u64 {
        0
    }

    fn own(&self) -> u64 {
        1
    }

    fn is_waited_for(&self, _: i64, _: u64) -> bool {
        false
    }
}

pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
}

impl Running {
    /// A figure of a pool: `figure("reports", "queued")` is `maitred_pool_queued{pool="reports"}`.
    pub(crate) fn figure(&self, pool: &str, name: &str) -> u64 {
        figure_in(&self.server.figures().page(Format::Prometheus), pool, name)
    }

    /// States of the connections.
    pub(crate) fn states(&self) -> Vec<State> {
        let mut states = Vec::new();
        self.server.connections().each(|_, shown| states.push(shown.state));
        states
    }

    /// Waits until a figure of a pool has this value.
    pub(crate) fn wait_for_figure(&self, pool: &str, name: &str, value: u64) {
        wait_until(&format!("{name} of {pool} is {value}"), || self.figure(pool, name) == value);
    }
}

/// A figure of a pool in the text of `/metrics`.
pub(crate) fn figure_in(metrics: &str, pool: &str, name: &str) -> u64 {
    let start = format!("maitred_pool_{name}{{pool=\"{pool}\"}} ");
    let value = metrics.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start}in {metrics}")).parse().expect("a number")
}

/// Checks again and again until the condition holds: for state that the server only shows on request.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(PAUSE);
    }
}

pub(crate) fn settings(routes: Routes) -> Settings {
    let log = Log::open(Level::Error, LogTarget::Path("/dev/null".into()), None).expect("the log opens");
    let mut settings = Settings::new(routes, Arc::new(log));
    settings.listeners.push(SocketAddr::from(([127, 0, 0, 1], 0)).into());
    settings
}

/// Sets TLS for all listeners on ports, where the tests are to be by TLS and no test has decided otherwise.
fn secure(settings: &mut Settings) {
    if !by_tls() || settings.tls.is_some() {
        return;
    }
    settings.tls = Some(terms());
    for listener in &mut settings.listeners {
        listener.tls = matches!(listener.address, Address::Tcp(_)) && listener.redirect.is_none();
    }
}

/// TLS by the certificate of the tests.
pub(crate) fn terms() -> Arc<Terms> {
    let (certificate, key) = certificate();
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).expect("a certificate");
    let terms = TermsSettings {
        identities: vec![identity],
        unknown_name: UnknownName::Default,
        clients: ClientPolicy::None,
        hosts: HostClients::default(),
        // Session tickets would show up in a client's peek.
        tickets: None,
        minimum: Version::V1_2,
        alpn: vec![b"http/1.1".to_vec()],
        clock: system_clock,
    };
    Terms::new(terms).expect("terms")
}

/// Starts a server; the clients of the tests know from then on which of its ports speak TLS.
pub(crate) fn start_server(mut settings: Settings) -> Result<Server, StartError> {
    secure(&mut settings);
    let tls: Vec<bool> = settings.listeners.iter().map(|listener| listener.tls).collect();
    let server = Server::start(settings)?;
    for (address, tls) in server.addresses().iter().zip(tls) {
        if let Some(address) = address.tcp() {
            learn(address, tls);
        }
    }
    Ok(server)
}

pub(crate) fn start(settings: Settings) -> Running {
    let server = start_server(settings).expect("the server starts");
    let address = server.addresses()[0].tcp().expect("a port");
    Running { server, address }
}

pub(crate) fn serve(handler: impl Handler) -> Running {
    start(settings(Routes::new().with_application(Arc::new(handler))))
}

pub(crate) fn text(exchange: Exchange, text: impl Into<String>) {
    let head = ResponseHead::new(Status::OK).with("Content-Type", "text/plain");
    let _ = exchange.respond(head, text.into());
}

pub(crate) fn connect(address: SocketAddr) -> Client {
    let stream = Client::connect(address).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Sends a request, and does not wait for its answer.
pub(crate) fn ask(address: SocketAddr, path: &str) -> Client {
    let mut stream = connect(address);
    stream.write_all(&get(path)).expect("the server takes the request");
    stream
}

/// Sends `bytes` and reads until the server closes.
pub(crate) fn exchange(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("the server takes the request");
    read_all(&mut stream)
}

pub(crate) fn read_all(stream: &mut Client) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the server closes in time");
    String::from_utf8_lossy(&answer).into_owned()
}

/// One response with a Content-Length: head and body.
pub(crate) fn read_response(stream: &mut Client) -> (String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a whole response head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("an ASCII head");
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .map_or(0, |length| length.parse().expect("a number"));
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a whole response body");
    (head, body)
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n").into_bytes()
}

pub(crate) fn get_last(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").into_bytes()
}

/// A handler that reads bodies while they arrive.
pub(crate) struct Live<F>(pub(crate) F);

impl<F: Fn(Exchange) + Send + Sync + 'static> Handler for Live<F> {
    fn takes_live_bodies(&self) -> bool {
        true
    }

    fn handle(&self, exchange: Exchange) {
        (self.0)(exchange);
    }
}
