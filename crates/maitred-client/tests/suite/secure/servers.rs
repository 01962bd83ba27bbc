//! Servers with TLS.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use maitred_client::blocking::{Body, Request};
use maitred_client::exchange::Timeouts;
use maitred_client::key::{Authorities, ClientCertificate, Key, Pem, TlsIdentity};
use maitred_client::{Settings, Times};
use maitred_http::{FieldSet, Method};
use rustls::version::{TLS12, TLS13};

use super::kit::{
    Authority, DAY, Files, Issued, LONG, Serve, Server, Wanted, answer, client, drain, get, good, head,
    secured,
};

/// One call to a server whose first connection is `odd`, and a second one, which is good.
fn holds(authority: &Authority, identity: &TlsIdentity, odd: Serve, expected: &str) {
    let next = good(&authority.issue(Wanted::default()).plain_server());
    let server = Server::new(vec![odd, next]);
    let (client, key) = (client(LONG), server.key(identity));
    assert_eq!(get(&client, &key), expected);
    assert_eq!(get(&client, &key), "200 next, kept", "behind {expected}");
    drop(client);
    server.end();
}

/// A connection that speaks TLS with this certificate.
fn with(issued: &Issued) -> Serve {
    let config = issued.plain_server();
    Box::new(move |stream| {
        let mut stream = secured(stream, &config);
        if !head(&mut stream).is_empty() {
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok")
                .expect("sent");
        }
    })
}

#[test]
fn certificates_are_verified() {
    let authority = Authority::new("an authority");
    let identity = authority.trusting();
    for (wanted, expected) in [
        (Wanted::default(), "200 ok, ServerCloses"),
        (Wanted { until: -60, from: -DAY, ..Wanted::default() }, "tls: certificate-expired"),
        (Wanted { from: 600, ..Wanted::default() }, "tls: certificate-not-yet-valid"),
        (Wanted { names: &["127.0.0.2", "a.example"], ..Wanted::default() }, "tls: certificate-name"),
        (Wanted { names: &[], common_name: "127.0.0.1", ..Wanted::default() }, "tls: certificate-name"),
    ] {
        holds(&authority, &identity, with(&authority.issue(wanted)), expected);
    }
    let stranger = Authority::new("a stranger");
    holds(&authority, &identity, with(&stranger.issue(Wanted::default())), "tls: unknown-authority");
}

#[test]
fn authorities_are_given_as_text_a_file_or_a_folder() {
    let (authority, other) = (Authority::new("an authority"), Authority::new("another"));
    let files = Files::new(&[("ca.pem", &authority.pem())]);
    let folder = Files::new(&[("a.pem", &other.pem()), ("b.pem", &authority.pem()), ("c.txt", "no PEM")]);
    let both = format!("{}\n# another\n{}", other.pem(), authority.pem());
    for authorities in [
        Authorities::At(files.path("ca.pem")),
        Authorities::At(folder.path("")),
        Authorities::Pem(Pem(both.into_bytes().into())),
    ] {
        let identity = TlsIdentity { authorities, ..TlsIdentity::default() };
        let odd = with(&authority.issue(Wanted::default()));
        holds(&authority, &identity, odd, "200 ok, ServerCloses");
    }
    let wrong = |authorities| {
        let identity = TlsIdentity { authorities, ..TlsIdentity::default() };
        maitred_client::tls::check(&identity).expect_err("no authority")
    };
    assert!(
        wrong(Authorities::At(files.path("none.pem")))
            .contains("none.pem: the authorities cannot be read: No such file")
    );
    assert!(
        wrong(Authorities::At(folder.path("c.txt"))).contains("c.txt: it has no certificate of an authority")
    );
    assert!(wrong(Authorities::Pem(Pem(b"x"[..].into()))).contains("no certificate"));
}

#[test]
fn a_server_is_not_verified_where_that_is_said_and_only_there() {
    let (authority, stranger) = (Authority::new("an authority"), Authority::new("a stranger"));
    let config =
        stranger.issue(Wanted { until: -60, from: -DAY, names: &["a.example"], ..Wanted::default() });
    let any = TlsIdentity { verify: false, ..TlsIdentity::default() };
    let server = Server::new(vec![good(&config.plain_server()), with(&config)]);
    let client = client(LONG);
    assert_eq!(get(&client, &server.key(&any)), "200 next, kept");
    // The connection that is idle now is not used for a call that verifies.
    assert_eq!(client.idle(), 1);
    assert_eq!(get(&client, &server.key(&authority.trusting())), "tls: certificate-expired");
    drop(client);
    server.end();
}

#[test]
fn the_name_that_is_verified_can_be_another_one() {
    let authority = Authority::new("an authority");
    let issued = authority.issue(Wanted { names: &["server.example"], ..Wanted::default() });
    let server_name = Some("server.example".into());
    let identity = TlsIdentity { server_name, ..authority.trusting() };
    let (sender, receiver) = mpsc::channel();
    let config = issued.plain_server();
    let server = Server::new(vec![Box::new(move |stream| {
        let mut stream = secured(stream, &config);
        answer(&mut stream, "ok");
        sender.send(stream.conn.server_name().map(str::to_owned)).expect("a reader");
        drain(&mut stream);
    })]);
    let client = client(LONG);
    assert_eq!(get(&client, &server.key(&identity)), "200 ok, kept");
    assert_eq!(receiver.recv().expect("a name").as_deref(), Some("server.example"));
    drop(client);
    server.end();
}

#[test]
fn what_is_no_tls_has_a_name() {
    let authority = Authority::new("an authority");
    let identity = authority.trusting();
    let sends = |bytes: &'static [u8]| -> Serve {
        Box::new(move |mut stream: TcpStream| {
            let mut hello = [0; 5];
            stream.read_exact(&mut hello).expect("a ClientHello");
            let mut rest = vec![0; usize::from(u16::from_be_bytes([hello[3], hello[4]]))];
            stream.read_exact(&mut rest).expect("a ClientHello");
            stream.write_all(bytes).expect("sent");
        })
    };
    // A ServerHello of TLS 1.1 with TLS_RSA_WITH_AES_128_CBC_SHA.
    const OLD: &[u8] = b"\x16\x03\x02\0\x2a\x02\0\0\x26\x03\x020123456789abcdef0123456789abcdef\0\0\x2f\0";
    for (bytes, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "tls: not-tls"),
        (b"220 mail.example ESMTP\r\n", "tls: not-tls"),
        (b"\x15\x03\x03\0\x02\x02\x28", "tls: alert"),
        (b"\x15\x03\x03\0\x02\x02\x70", "tls: alert"),
        (b"\x15\x03\x02\0\x02\x02\x46", "tls: version"),
        (b"\x15\x03\x03\0\x02\x02\x78", "tls: protocol"),
        (OLD, "tls: version"),
        (b"", "tls: closed"),
    ] {
        holds(&authority, &identity, sends(bytes), expected);
    }
}

#[test]
fn a_handshake_that_stalls_ends_by_its_time_limit() {
    let authority = Authority::new("an authority");
    let server = Server::new(vec![
        Box::new(|mut stream: TcpStream| drain(&mut stream)),
        good(&authority.issue(Wanted::default()).plain_server()),
    ]);
    let key = server.key(&authority.trusting());
    assert_eq!(get(&client(Duration::from_millis(20)), &key), "timeout: Timeout(Tls)");
    let client = client(LONG);
    assert_eq!(get(&client, &key), "200 next, kept");
    drop(client);
    server.end();
}

#[test]
fn a_server_that_wants_a_certificate_gets_it() {
    let (authority, other) = (Authority::new("an authority"), Authority::new("another"));
    let (own, wrong) = (authority.issue(Wanted::default()), other.issue(Wanted::default()));
    let both = own.certificate() + &own.key();
    let files = Files::new(&[
        ("own.pem", &own.certificate()),
        ("own-key.pem", &own.key()),
        ("both.pem", &both),
        ("wrong.pem", &(wrong.certificate() + &wrong.key())),
    ]);
    let with = |certificate: &str, key: Option<&str>| TlsIdentity {
        certificate: Some(ClientCertificate {
            certificate: files.path(certificate),
            key: key.map(|key| files.path(key)),
            password: None,
        }),
        ..authority.trusting()
    };
    for version in [&TLS12, &TLS13] {
        let issued = authority.issue(Wanted::default());
        for (identity, expected) in [
            (with("own.pem", Some("own-key.pem")), "200 ok, ServerCloses"),
            (with("both.pem", None), "200 ok, ServerCloses"),
            (authority.trusting(), "tls: client-certificate-wanted"),
            (with("wrong.pem", None), "tls: client-certificate-refused"),
        ] {
            let config = issued.server(&[version], Some(&authority));
            let odd = Box::new(move |stream: TcpStream| {
                let mut stream = secured(stream, &config);
                if !head(&mut stream).is_empty() {
                    let text = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
                    stream.write_all(text.as_bytes()).expect("sent");
                }
                _ = stream.conn.complete_io(&mut stream.sock);
                drain(&mut stream.sock);
            });
            holds(&authority, &identity, odd, expected);
        }
    }
    let check = |identity| maitred_client::tls::check(&identity).expect_err("it cannot be used");
    assert!(check(with("own.pem", None)).contains("own.pem: there is no private key"));
    assert!(check(with("own.pem", Some("wrong.pem"))).contains("does not belong to the certificate"));
    assert!(check(with("none.pem", None)).contains("none.pem: the certificate of the client cannot be read"));
}

#[test]
fn a_certificate_of_the_client_that_was_renewed_is_used_from_the_next_connection_on() {
    let authority = Authority::new("an authority");
    let (old, new) = (authority.issue(Wanted::default()), authority.issue(Wanted::default()));
    let files = Files::new(&[("own.pem", &(old.certificate() + &old.key()))]);
    let certificate =
        Some(ClientCertificate { certificate: files.path("own.pem"), key: None, password: None });
    let identity = TlsIdentity { certificate, ..authority.trusting() };
    let config = authority.issue(Wanted::default()).server(&[&TLS13], Some(&authority));
    let (sender, receiver) = mpsc::channel();
    let serve = || -> Serve {
        let (config, sender) = (Arc::clone(&config), sender.clone());
        Box::new(move |stream| {
            let mut stream = secured(stream, &config);
            answer(&mut stream, "ok");
            let shown = stream.conn.peer_certificates().expect("a certificate")[0].to_vec();
            sender.send((shown, stream.conn.handshake_kind())).expect("a reader");
            drain(&mut stream);
        })
    };
    let server = Server::new(vec![serve(), serve(), serve()]);
    let key = server.key(&identity);
    let call = || {
        assert_eq!(get(&client(LONG), &key), "200 ok, kept");
        let (shown, kind) = receiver.recv().expect("a call");
        (shown, kind == Some(rustls::HandshakeKind::Resumed))
    };
    let first = call();
    // Terms and tickets of an identity are kept for all clients of the process.
    assert_eq!(call(), (first.0.clone(), true));
    // A new file, so that its number differs whatever its time is.
    files.write("new.pem", &(new.certificate() + &new.key()));
    std::fs::rename(files.path("new.pem"), files.path("own.pem")).expect("renamed");
    let last = call();
    assert!(last.0 != first.0 && !last.1);
    server.end();
}

#[test]
fn the_end_of_a_response_is_told_from_a_cut() {
    let authority = Authority::new("an authority");
    let config = authority.issue(Wanted::default()).plain_server();
    let answers = |head_and_body: &'static str, closes: bool| -> Serve {
        let config = Arc::clone(&config);
        Box::new(move |stream| {
            let mut stream = secured(stream, &config);
            assert_ne!(head(&mut stream), "");
            stream.write_all(head_and_body.as_bytes()).expect("sent");
            if closes {
                stream.conn.send_close_notify();
            }
            stream.flush().expect("sent");
            stream.sock.shutdown(std::net::Shutdown::Write).expect("open");
            drain(&mut stream.sock);
        })
    };
    let until_close = "HTTP/1.1 200 OK\r\n\r\nall";
    let with_length = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nall";
    for (text, closes, expected) in [
        (until_close, true, "200 all, UntilClose"),
        (until_close, false, "protocol: NotClosed"),
        (with_length, true, "200 all, ServerCloses"),
        (with_length, false, "200 all, ServerCloses"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nall", false, "protocol: Response(ShortBody)"),
    ] {
        holds(&authority, &authority.trusting(), answers(text, closes), expected);
    }
}

#[test]
fn a_connection_with_tls_is_used_again_until_it_ends() {
    let authority = Authority::new("an authority");
    let config = authority.issue(Wanted::default()).plain_server();
    let (twice, own) = (Arc::clone(&config), Arc::clone(&config));
    let (sender, receiver) = mpsc::channel();
    let (leaves, left) = mpsc::channel();
    let server = Server::new(vec![
        Box::new(move |stream| {
            let mut stream = secured(stream, &twice);
            answer(&mut stream, "one");
            answer(&mut stream, "two");
            stream.conn.send_close_notify();
            stream.flush().expect("sent");
            sender.send(()).expect("a reader");
            drain(&mut stream.sock);
            leaves.send(()).expect("a reader");
        }),
        Box::new(move |stream| {
            // The connection that was left is closed before this one begins.
            left.recv().expect("left");
            let mut stream = secured(stream, &own);
            answer(&mut stream, "next");
            drain(&mut stream);
        }),
    ]);
    let (client, key) = (client(LONG), server.key(&authority.trusting()));
    assert_eq!(get(&client, &key), "200 one, kept");
    assert_eq!(get(&client, &key), "200 two, kept");
    receiver.recv().expect("closed");
    assert_eq!(get(&client, &key), "200 next, kept");
    drop(client);
    server.end();
}

#[test]
fn a_long_body_goes_out_and_comes_back_through_tls() {
    let authority = Authority::new("an authority");
    let config = authority.issue(Wanted::default()).plain_server();
    let body: Vec<u8> = (0..3_000_000u32).map(|number| (number % 251) as u8).collect();
    let length = body.len();
    let server = Server::new(vec![Box::new(move |stream| {
        let mut stream = secured(stream, &config);
        assert!(head(&mut stream).contains("Content-Length: 3000000"));
        let mut body = vec![0; length];
        stream.read_exact(&mut body).expect("a body");
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").expect("sent");
        stream.write_all(&body).expect("sent");
        drain(&mut stream);
    })]);
    let (client, key) = (client(LONG), server.key(&authority.trusting()));
    let request = Request {
        method: Method::Put,
        target: "/",
        authority: "server.example",
        fields: FieldSet::new(),
        body: Body::Bytes(&body),
        repeatable: None,
    };
    let mut response = client.send(&key, request).expect("a response");
    assert!(response.read_all(length).expect("a body") == body);
    assert!(response.report().tls.is_some());
    drop((response, client));
    server.end();
}

#[test]
fn a_server_that_reads_no_further_is_left_by_the_time_limit_of_a_write() {
    let authority = Authority::new("an authority");
    let config = authority.issue(Wanted::default()).plain_server();
    let (sender, receiver) = mpsc::channel::<()>();
    let server = Server::new(vec![Box::new(move |stream| {
        let mut stream = secured(stream, &config);
        assert_ne!(head(&mut stream), "");
        // The connection stays open until the call has ended.
        _ = receiver.recv();
    })]);
    let exchange = Timeouts { progress: Some(Duration::from_millis(50)), ..Timeouts::default() };
    let times = Times { exchange, ..Times::default() };
    let client = maitred_client::Client::new(Settings { times, ..Settings::default() });
    let mut body = std::io::repeat(7);
    let request = Request {
        method: Method::Put,
        target: "/",
        authority: "server.example",
        fields: FieldSet::new(),
        body: Body::Stream(&mut body),
        repeatable: None,
    };
    let key: Arc<Key> = server.key(&authority.trusting());
    let error = client.send(&key, request).expect_err("the server reads no further");
    assert_eq!(error.phase(), Some(maitred_client::Phase::Write), "{error}");
    drop(sender);
    server.end();
}
