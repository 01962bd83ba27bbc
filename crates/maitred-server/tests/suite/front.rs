//! Proxies in front of the server, and listeners on Unix sockets: who the client is, for everything that asks.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use crate::harness::{PATIENCE, Running, connect, read_response, start, text, wait_until};
use maitred_runtime::{Exchange, Local};
use maitred_server::figures::Format;
use maitred_server::limits::{ClientLimits, Limits};
use maitred_server::listening::UnixAddress;
use maitred_server::{
    Believed, Level, ListenerSettings, Log, LogTarget, PoolRule, Routes, Settings, Trusted,
};
use maitred_testkit::client::Client;
use tempfile::TempDir;

/// Tells who the client is, by which scheme and at which address, the host, and which fields have come.
fn tell(exchange: Exchange) {
    let request = exchange.request();
    let end = &request.endpoint;
    let scheme = if end.secure { "https" } else { "http" };
    let local = match &end.local {
        Local::Ip(address) => address.port().to_string(),
        Local::Unix(path) => path.rsplit('/').next().unwrap_or_default().to_owned(),
    };
    let host = String::from_utf8_lossy(request.head.fields.first("host").unwrap_or_default()).into_owned();
    let names: Vec<_> =
        request.head.fields.iter().map(|(name, _)| String::from_utf8_lossy(name).to_lowercase()).collect();
    let process = end.process.map_or(String::new(), |process| format!(" process {}", process.pid));
    let answer = format!("{} {scheme} {local} {host} [{}]{process}", end.peer, names.join(" "));
    text(exchange, answer);
}

/// A server whose first listener has a port, and whose second one a socket in `folder`.
fn serve(folder: &TempDir, change: impl FnOnce(&mut Settings)) -> Running {
    let log =
        Log::open(Level::Info, LogTarget::Path(folder.path().join("log")), None).expect("the log opens");
    let mut settings = Settings::new(Routes::new().with_application(Arc::new(tell)), Arc::new(log));
    settings.listeners.push("127.0.0.1:0".parse().expect("an address"));
    settings.listeners.push(ListenerSettings::from(UnixAddress::path(folder.path().join("s"))));
    change(&mut settings);
    start(settings)
}

fn trusting(networks: &[&str], unix: bool) -> Trusted {
    Trusted::new(networks.iter().map(|network| network.parse().expect("a network")).collect(), unix)
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn said(stream: &mut Client, fields: &str) -> String {
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: inner\r\n{fields}\r\n").as_bytes()).expect("taken");
    String::from_utf8(read_response(stream).1).expect("text")
}

fn logged(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).expect("a log")
}

const CLAIMS: &str = "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n\
                      X-Forwarded-Port: 8443\r\nForwarded: for=192.0.2.9\r\nX-Real-IP: 192.0.2.8\r\nX-Request-Start: t=1\r\n\
                      X_Forwarded_For: 192.0.2.6\r\nProxy: evil\r\nX-Else: 1\r\n";

#[test]
fn nobody_is_believed_unless_trusted_and_the_log_says_so_once() {
    let folder = folder();
    let running = serve(&folder, |_| {});
    let mut stream = connect(running.address);
    let own = stream.local_addr().unwrap();
    for _ in 0..2 {
        let port = running.address.port();
        assert_eq!(said(&mut stream, CLAIMS), format!("{own} http {port} inner [host x-else]"));
    }
    let count = || logged(folder.path()).matches("--trusted-proxies 127.0.0.1 (told once)").count();
    wait_until("the log tells of it", || count() > 0);
    let log = logged(folder.path());
    assert!(count() == 1 && log.contains("sent X-Forwarded-For, which was removed"), "{log}");
}

#[test]
fn a_trusted_proxy_says_who_the_client_is_request_by_request() {
    let folder = folder();
    let running = serve(&folder, |settings| {
        settings.forwarding.trusted = trusting(&["127.0.0.0/8", "10.0.0.0/8"], false);
    });
    let mut stream = connect(running.address);
    let (port, own) = (running.address.port(), stream.local_addr().unwrap());
    let names = "[host x-forwarded-for x-forwarded-proto]";
    let ask = |stream: &mut Client, client: &str, scheme: &str| {
        said(stream, &format!("X-Forwarded-For: {client}\r\nX-Forwarded-Proto: {scheme}\r\n"))
    };
    assert_eq!(ask(&mut stream, "192.0.2.7", "https"), format!("192.0.2.7 https 443 inner {names}"));
    assert_eq!(
        ask(&mut stream, "6.6.6.6, 192.0.2.8, 10.1.1.1", "http"),
        format!("192.0.2.8 http 80 inner {names}")
    );
    assert_eq!(
        ask(&mut stream, "[2001:db8::1]:99", "https"),
        format!("[2001:db8::1]:99 https 443 inner {names}")
    );
    assert_eq!(ask(&mut stream, "unknown", "gopher"), format!("{own} http {port} inner {names}"));
    // A proxy that speaks to its clients without TLS need not say so: the port is still the one that they have asked for.
    let client = |host: &str| format!("Host: {host}\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
    for (host, port) in [("shop.example", 80), ("shop.example:8080", 8080), ("shop.example:", 80)] {
        stream.write_all(format!("GET / HTTP/1.1\r\n{}", client(host)).as_bytes()).expect("taken");
        let told = String::from_utf8(read_response(&mut stream).1).expect("text");
        assert!(told.starts_with(&format!("192.0.2.7 http {port} {host} ")), "{told}");
    }
    // Fields passed on by nginx are not believed unless they are named.
    let host = said(&mut stream, "X-Forwarded-Host: evil.example\r\n");
    assert!(host.starts_with(&format!("{own} http {port} inner ")), "{host}");
}

#[test]
fn host_and_port_are_believed_where_they_are_named() {
    let folder = folder();
    let running = serve(&folder, |settings| {
        settings.forwarding.trusted = trusting(&["127.0.0.1"], false);
        settings.forwarding.believed = Believed { host: true, port: true, ..Believed::default() };
    });
    let mut stream = connect(running.address);
    let fields = "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Port: ";
    let told = said(&mut stream, &format!("{fields}8443\r\n"));
    assert!(told.contains(" https 8443 shop.example:8443 "), "{told}");
    let told = said(&mut stream, &format!("{fields}443\r\n"));
    assert!(told.contains(" https 443 shop.example "), "{told}");
    let told = said(&mut stream, "X-Forwarded-Host: shop.example:\r\nX-Forwarded-Port: 8443\r\n");
    assert!(told.contains(" http 8443 shop.example:8443 "), "{told}");
}

#[test]
fn the_standard_field_counts_in_the_place_of_the_others() {
    let folder = folder();
    let running = serve(&folder, |settings| {
        settings.forwarding.trusted = trusting(&["127.0.0.1"], false);
        let none = Believed { client: false, scheme: false, host: false, port: false, standard: true };
        settings.forwarding.believed = none;
    });
    let mut stream = connect(running.address);
    let fields = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.7, for=\"[2001:db8::7]:47\";proto=https;host=shop.example\r\n";
    let told = said(&mut stream, fields);
    assert!(told.starts_with("[2001:db8::7]:47 https 443 shop.example "), "{told}");
}

#[test]
fn rules_of_pools_and_limits_count_for_the_client_and_not_for_the_proxy() {
    let folder = folder();
    let running = serve(&folder, |settings| {
        settings.forwarding.trusted = trusting(&["127.0.0.1"], false);
        settings.limits = Limits {
            clients: ClientLimits { connections: 1, rate: 1, burst: 1, ..ClientLimits::default() },
            ..Limits::default()
        };
        settings.pools.push(maitred_server::PoolSettings { name: "office".to_owned(), ..Default::default() });
        let client = Some("192.0.2.0/24".parse().expect("a network"));
        settings.rules.push(PoolRule { pool: "office".to_owned(), client, ..PoolRule::default() });
    });
    // More connections than a client may have: they are those of a proxy.
    let mut streams: Vec<_> = (0..3).map(|_| connect(running.address)).collect();
    for (number, stream) in streams.iter_mut().enumerate() {
        let told = said(stream, &format!("X-Forwarded-For: 192.0.2.{number}\r\n"));
        assert!(told.starts_with(&format!("192.0.2.{number} ")), "{told}");
    }
    let told = said(&mut streams[0], "X-Forwarded-For: 192.0.2.1\r\n");
    assert!(told.starts_with("429 "), "its second request in a thousand seconds: {told}");
    wait_until("the pool has run them", || {
        running.server.figures().page(Format::Prometheus).contains("pool=\"office\"")
    });
}

/// A connection to a listener that takes PROXY headers, with what it sends first.
fn proxied(running: &Running, first: &[u8]) -> Client {
    let mut stream = connect(running.address);
    stream.write_all(first).expect("taken");
    stream
}

fn behind_proxy_headers(folder: &TempDir, networks: &[&str]) -> Running {
    serve(folder, |settings| {
        settings.listeners[0].proxy_protocol = true;
        settings.forwarding.trusted = trusting(networks, false);
    })
}

const V1: &[u8] = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 443\r\n";

/// From 2001:db8::7 port 1234 to 2001:db8::1 port 443, by TLS.
fn v2() -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x21".to_vec();
    let mut rest = Vec::new();
    for last in [7u8, 1] {
        rest.extend_from_slice(&[0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    rest.extend_from_slice(&1234u16.to_be_bytes());
    rest.extend_from_slice(&443u16.to_be_bytes());
    // PP2_TYPE_SSL: PP2_CLIENT_SSL, verified.
    rest.extend_from_slice(&[0x20, 0, 5, 1, 0, 0, 0, 0]);
    header.extend_from_slice(&(rest.len() as u16).to_be_bytes());
    [header, rest].concat()
}

#[test]
fn a_header_of_the_proxy_protocol_says_who_the_client_is() {
    let folder = folder();
    let running = behind_proxy_headers(&folder, &["127.0.0.1"]);
    let mut stream = proxied(&running, V1);
    for _ in 0..2 {
        assert_eq!(
            said(&mut stream, CLAIMS),
            "192.0.2.7:56324 http 443 inner [host x-else]",
            "it is no proxy itself"
        );
    }
    let mut stream = proxied(&running, &v2());
    assert_eq!(said(&mut stream, ""), "[2001:db8::7]:1234 https 443 inner [host]");
    let mut stream = proxied(&running, b"PROXY UNKNOWN\r\n");
    let own = stream.local_addr().unwrap();
    assert!(said(&mut stream, "").starts_with(&own.to_string()));
}

#[test]
fn a_header_may_come_byte_by_byte_and_with_the_request() {
    let folder = folder();
    let running = behind_proxy_headers(&folder, &["127.0.0.1"]);
    for header in [V1.to_vec(), v2()] {
        let mut stream = connect(running.address);
        stream.set_nodelay(true).unwrap();
        for byte in [&header[..], b"GET / HTTP/1.1\r\nHost: inner\r\n\r\n"].concat() {
            stream.write_all(&[byte]).expect("taken");
        }
        assert!(read_response(&mut stream).0.starts_with("HTTP/1.1 200"));
    }
}

/// Everything until the end of the connection, which may be a reset.
fn until_its_end(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn what_is_no_header_is_closed_without_an_answer() {
    let folder = folder();
    let running = behind_proxy_headers(&folder, &["127.0.0.1"]);
    let mut long = v2();
    long[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    for wrong in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..], b"PROXY TCP4 1.2.3.4\r\n", &long] {
        let mut stream = proxied(&running, wrong);
        assert_eq!(until_its_end(&mut stream), b"", "{}", wrong.escape_ascii());
    }
    let count = || logged(folder.path()).matches("no header of the PROXY protocol").count();
    wait_until("the log tells of each", || count() == 3);
}

/// Takes the 5 seconds that a header has.
#[test]
fn a_header_that_does_not_come_in_time_is_not_waited_for() {
    let folder = folder();
    let running = behind_proxy_headers(&folder, &["127.0.0.1"]);
    let mut streams = [b"", &V1[..V1.len() - 1]].map(|begun| proxied(&running, begun));
    for stream in &mut streams {
        assert_eq!(until_its_end(stream), b"");
    }
    let count = || logged(folder.path()).matches("no header of the PROXY protocol has come in time").count();
    wait_until("the log tells of each", || count() == 2);
}

#[test]
fn only_trusted_proxies_may_send_headers() {
    let folder = folder();
    let running = behind_proxy_headers(&folder, &["10.0.0.0/8"]);
    let mut stream = connect(running.address);
    let _ = stream.write_all(V1);
    assert_eq!(until_its_end(&mut stream), b"");
    wait_until("the log tells of it", || logged(folder.path()).contains("127.0.0.1: closed; 127.0.0.1:"));
}

fn at_socket(folder: &TempDir, fields: &str) -> String {
    let mut stream = UnixStream::connect(folder.path().join("s")).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
        .write_all(format!("GET / HTTP/1.1\r\nHost: inner\r\n{fields}Connection: close\r\n\r\n").as_bytes())
        .expect("taken");
    let mut all = String::new();
    stream.read_to_string(&mut all).expect("an answer");
    all.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

#[test]
fn a_unix_socket_serves_and_knows_its_peer() {
    let folder = folder();
    let running = serve(&folder, |_| {});
    let process = std::process::id();
    let told = at_socket(&folder, CLAIMS);
    assert_eq!(told, format!("unix: http s inner [host x-else connection] process {process}"));
    assert_eq!(running.server.addresses().len(), 2);
    let socket = folder.path().join("s");
    drop(running);
    assert!(!socket.exists(), "its file is removed at the end");
}

#[test]
fn a_trusted_proxy_at_a_unix_socket_is_believed() {
    let folder = folder();
    let _running = serve(&folder, |settings| settings.forwarding.trusted = trusting(&[], true));
    let told = at_socket(&folder, "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n");
    assert!(told.starts_with("192.0.2.7 https s inner "), "{told}");
}

#[test]
fn a_header_of_the_proxy_protocol_comes_by_a_unix_socket_too() {
    let folder = folder();
    let _running = serve(&folder, |settings| {
        settings.listeners[1].proxy_protocol = true;
        settings.forwarding.trusted = trusting(&[], true);
    });
    let mut stream = UnixStream::connect(folder.path().join("s")).expect("connects");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    let request = b"GET / HTTP/1.1\r\nHost: inner\r\nConnection: close\r\n\r\n";
    stream.write_all(&[&v2()[..], request].concat()).expect("taken");
    let all = String::from_utf8(until_its_end(&mut stream)).expect("text");
    assert!(all.contains("\r\n\r\n[2001:db8::7]:1234 https 443 inner "), "{all}");
}
