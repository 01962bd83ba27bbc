//! Proxies.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use maitred_client::blocking::Client;
use maitred_client::key::{Key, Proxy, TlsIdentity};

use rustls::ServerConfig;

use super::kit::{Authority, Issued, LONG, Serve, Server, Wanted, answer, client, drain, get, head, secured};

/// A proxy by its URL; `identity` counts for https.
fn proxy(url: &str, port: u16, identity: &TlsIdentity) -> Option<Proxy> {
    Some(Proxy::of_url(&url.replace("PORT", &port.to_string()), identity.clone()).expect("a URL"))
}

/// Answers CONNECT with this text, if the client asks; the question.
fn ask(stream: &mut (impl Read + Write), answer: &str) -> String {
    let question = head(stream);
    if !question.is_empty() {
        stream.write_all(answer.as_bytes()).expect("sent");
        stream.flush().expect("sent");
    }
    question
}

const ESTABLISHED: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

/// A proxy that plays the server as well, behind its tunnel.
fn tunnels(server: &Issued, proxy: Option<&Issued>) -> (Serve, Receiver<String>) {
    let (inner, outer) = (server.plain_server(), proxy.map(Issued::plain_server));
    let (sender, receiver) = mpsc::channel();
    let serve = Box::new(move |stream: TcpStream| {
        let question = match outer {
            None => tunnel(stream, &inner),
            Some(outer) => tunnel(secured(stream, &outer), &inner),
        };
        _ = sender.send(question);
    });
    (serve, receiver)
}

fn tunnel(mut stream: impl Read + Write, server: &Arc<ServerConfig>) -> String {
    let question = ask(&mut stream, ESTABLISHED);
    let mut stream = secured(stream, server);
    if !head(&mut stream).is_empty() {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").expect("sent");
    }
    drain(&mut stream);
    question
}

#[test]
fn a_request_of_plain_http_goes_to_the_proxy_with_its_whole_url() {
    let (sender, receiver) = mpsc::channel();
    let server = Server::new(vec![Box::new(move |mut stream| {
        for (status, reason) in [("407 Who are you", "no"), ("200 OK", "ok")] {
            sender.send(head(&mut stream)).expect("a reader");
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\n{reason}").expect("sent");
        }
        drain(&mut stream);
    })]);
    let plain = Key::plain("server.example", 8080);
    let proxy = proxy("http://a:b@127.0.0.1:PORT", server.port, &TlsIdentity::default());
    let key = Arc::new(Key { proxy, ..plain });
    let client = client(LONG);
    // The response of a proxy to a request of plain HTTP is the response.
    assert_eq!(get(&client, &key), "407 no, kept");
    assert_eq!(get(&client, &key), "200 ok, kept");
    let expected = "GET http://server.example:8080/ HTTP/1.1\r\nHost: server.example:8080\r\nProxy-Authorization: Basic YTpi\r\n\r\n";
    assert_eq!([receiver.recv(), receiver.recv()], [Ok(expected.to_owned()), Ok(expected.to_owned())]);
    drop(client);
    server.end();
}

#[test]
fn tls_goes_through_a_tunnel() {
    let (authority, of_proxy) = (Authority::new("an authority"), Authority::new("that of the proxy"));
    let issued = authority.issue(Wanted { names: &["server.example"], ..Wanted::default() });
    let own = of_proxy.issue(Wanted::default());
    for (url, with_tls) in [("http://a:b@127.0.0.1:PORT", None), ("https://127.0.0.1:PORT", Some(&own))] {
        let (serve, receiver) = tunnels(&issued, with_tls);
        let server = Server::new(vec![serve]);
        let proxy = proxy(url, server.port, &of_proxy.trusting());
        let tls = Some(authority.trusting());
        let key = Arc::new(Key { proxy, tls, ..Key::plain("server.example", 443) });
        let client = client(LONG);
        assert_eq!(get(&client, &key), "200 next, kept", "{url}");
        drop(client);
        let question = receiver.recv().expect("a question");
        assert!(question.starts_with("CONNECT server.example:443 HTTP/1.1\r\nHost: server.example:443\r\n"));
        assert_eq!(question.contains("Proxy-Authorization: Basic YTpi\r\n"), with_tls.is_none());
        server.end();
    }
}

#[test]
fn a_long_response_comes_through_two_sessions() {
    let authority = Authority::new("an authority");
    let issued = authority.issue(Wanted::default());
    let (outer, inner) = (issued.plain_server(), issued.plain_server());
    let server = Server::new(vec![Box::new(move |stream| {
        let mut stream = secured(stream, &outer);
        ask(&mut stream, ESTABLISHED);
        let mut stream = secured(stream, &inner);
        answer(&mut stream, &"x".repeat(1_000_000));
        stream.flush().expect("sent");
        stream.sock.flush().expect("sent");
        drain(&mut stream);
    })]);
    let proxy = proxy("https://127.0.0.1:PORT", server.port, &authority.trusting());
    let key = Arc::new(Key { proxy, tls: Some(authority.trusting()), ..Key::plain("server.example", 443) });
    let client = client(LONG);
    assert_eq!(get(&client, &key).len(), 1_000_000 + "200 , kept".len());
    drop(client);
    server.end();
}

#[test]
fn a_proxy_that_refuses_or_breaks_has_a_name_and_the_next_call_is_right() {
    let authority = Authority::new("an authority");
    let issued = authority.issue(Wanted::default());
    let says = |text: &'static str| -> Serve {
        Box::new(move |mut stream| {
            ask(&mut stream, text);
        })
    };
    let tls_of =
        |authority: &Authority, server: &Issued| tunnels(&authority.issue(Wanted::default()), Some(server)).0;
    let stranger = Authority::new("a stranger");
    let plain: Serve = Box::new(|mut stream| {
        stream.read_exact(&mut [0; 9]).expect("a ClientHello");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("sent");
        drain(&mut stream);
    });
    let rows: Vec<(Serve, &str, &str)> = vec![
        (
            says("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno"),
            "http",
            "proxy: Refused(407, \"Proxy Authentication Required\")",
        ),
        (says("HTTP/1.1 502 No way\r\n\r\n"), "http", "proxy: Refused(502, \"No way\")"),
        (says("HTTP/1.1 301 Moved\r\nLocation: /\r\n\r\n"), "http", "proxy: Refused(301, \"Moved\")"),
        (says("SSH-2.0-OpenSSH\r\n"), "http", "proxy: Response(StatusLine)"),
        (says("HTTP/1.1 200 OK\r\n\r\nmore"), "http", "proxy: Surplus"),
        (says(""), "http", "proxy: Closed"),
        (says("HTTP/1.1 200 O"), "http", "proxy: Closed"),
        // The proxy makes the tunnel, and the server closes.
        (says(ESTABLISHED), "http", "tls: closed"),
        (plain, "https", "proxy: Tls(NotTls { is_http: true"),
        (tls_of(&authority, &stranger.issue(Wanted::default())), "https", "proxy: Tls(UnknownAuthority"),
        (tls_of(&stranger, &issued), "https", "tls: unknown-authority"),
    ];
    for (odd, scheme, expected) in rows {
        let of_proxy = (scheme == "https").then_some(&issued);
        let server = Server::new(vec![odd, tunnels(&issued, of_proxy).0]);
        let url = format!("{scheme}://127.0.0.1:PORT");
        let proxy = proxy(&url, server.port, &authority.trusting());
        let key =
            Arc::new(Key { proxy, tls: Some(authority.trusting()), ..Key::plain("server.example", 443) });
        let client = client(LONG);
        let result = get(&client, &key);
        assert!(result.starts_with(expected), "{result}, not {expected}");
        assert_eq!(get(&client, &key), "200 next, kept", "behind {expected}");
        drop(client);
        server.end();
    }
}

#[test]
fn a_handshake_with_a_proxy_has_its_time_limit() {
    let authority = Authority::new("an authority");
    let server = Server::new(vec![Box::new(|mut stream: TcpStream| drain(&mut stream))]);
    let proxy = proxy("https://127.0.0.1:PORT", server.port, &authority.trusting());
    let key = Arc::new(Key { proxy, ..Key::plain("server.example", 80) });
    let mut settings = client(Duration::from_millis(20)).settings();
    settings.times.connect = Some(LONG);
    assert_eq!(get(&Client::new(settings), &key), "timeout: Timeout(Proxy)");
    server.end();
}

#[test]
fn a_proxy_that_is_silent_ends_by_the_time_limit() {
    let authority = Authority::new("an authority");
    let server = Server::new(vec![
        Box::new(|mut stream: TcpStream| drain(&mut stream)),
        tunnels(&authority.issue(Wanted::default()), None).0,
    ]);
    let proxy = proxy("http://127.0.0.1:PORT", server.port, &TlsIdentity::default());
    let key = Arc::new(Key { proxy, tls: Some(authority.trusting()), ..Key::plain("server.example", 443) });
    assert_eq!(get(&client(Duration::from_millis(20)), &key), "timeout: Timeout(Proxy)");
    let client = client(LONG);
    assert_eq!(get(&client, &key), "200 next, kept");
    drop(client);
    server.end();
}
