//! Both ends of a session over a pair of sockets with little room, in one thread.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use maitred_tls::{
    ClientPolicy, HostClients, Identity, Session, Terms, TermsSettings, Tickets, UnknownName, Version,
    system_clock,
};
use rustix::net::sockopt;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::{Moved, Shaken, Socket, Tls};

const VERSIONS: [Version; 2] = [Version::V1_2, Version::V1_3];

/// A client, with the plaintext and the number of bytes that have come.
struct Client {
    stream: UnixStream,
    session: ClientConnection,
    plain: Vec<u8>,
    /// Bytes taken from the socket.
    taken: usize,
    /// The server has said that it sends no more.
    is_told: bool,
}

impl Client {
    /// Sends all that it has to say, which fits.
    fn send(&mut self) {
        while self.session.wants_write() {
            self.session.write_tls(&mut &self.stream).expect("there is room");
        }
    }

    /// The bytes that the client would send; they are not sent.
    fn unsent(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.session.wants_write() {
            self.session.write_tls(&mut bytes).expect("memory");
        }
        bytes
    }

    /// Takes up to so many bytes from the socket, and opens them. False when there is nothing.
    fn take(&mut self, most: usize) -> Result<bool, rustls::Error> {
        let mut bytes = vec![0; most];
        let count = match self.stream.read(&mut bytes) {
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => panic!("{error}"),
        };
        self.taken += count;
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            self.session.read_tls(&mut rest).expect("memory");
            let state = self.session.process_new_packets()?;
            self.is_told |= state.peer_has_closed();
            let before = self.plain.len();
            self.plain.resize(before + state.plaintext_bytes_to_read(), 0);
            self.session.reader().read_exact(&mut self.plain[before..]).expect("plaintext");
        }
        Ok(count > 0)
    }

    fn take_all(&mut self) {
        while self.take(65536).expect("records") {}
    }
}

/// A server and a client after a handshake; the sockets have room for some KiB.
fn met(version: Version) -> (Tls, Client) {
    let (identity, pem) =
        Identity::development(&["localhost".to_owned()], system_clock).expect("a certificate");
    let terms = TermsSettings {
        identities: vec![identity],
        unknown_name: UnknownName::Default,
        clients: ClientPolicy::None,
        hosts: HostClients::default(),
        tickets: Some(Tickets::random(system_clock).expect("random numbers")),
        minimum: Version::V1_2,
        alpn: Vec::new(),
        clock: system_clock,
    };
    let session = Session::new(&Terms::new(terms).expect("terms")).expect("a session");
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    for stream in [&ours, &theirs] {
        stream.set_nonblocking(true).expect("settable");
        sockopt::set_socket_send_buffer_size(stream, 4096).expect("settable");
    }
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("PEM")).expect("a root");
    let version = if version == Version::V1_2 { &rustls::version::TLS12 } else { &rustls::version::TLS13 };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]);
    let config = config.expect("a version").with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut client = Client { stream: theirs, session: client, plain: Vec::new(), taken: 0, is_told: false };
    client.session.set_buffer_limit(None);
    let mut server = Tls::new(Socket::from(OwnedFd::from(ours)));
    server.begin(session);
    loop {
        client.send();
        let shaken = server.shake_hands(&[]);
        client.take_all();
        match shaken {
            Shaken::Waits => {}
            Shaken::Done(_) => break,
            other => panic!("{other:?}"),
        }
    }
    client.take_all();
    client.taken = 0;
    (server, client)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

/// Numbers that are the same each time.
fn dice() -> impl FnMut(usize) -> usize {
    let mut state = 12345_u32;
    move |sides| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % sides
    }
}

fn moved(moved: Moved) -> usize {
    match moved {
        Moved::Bytes(count) => count,
        Moved::Blocked => 0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bytes_reported_as_moved_have_left_and_all_arrive() {
    for version in VERSIONS {
        let (mut server, mut client) = met(version);
        let (body, mut dice) = (pattern(1_500_000), dice());
        let mut sent = 0;
        while sent < body.len() {
            // Cut otherwise each time.
            let first = (sent + 1 + dice(40_000)).min(body.len());
            let second = (first + dice(200_000)).min(body.len());
            let parts = [IoSlice::new(&body[sent..first]), IoSlice::new(&body[first..second])];
            let count = moved(server.send_all(&parts, false));
            sent += count;
            assert!(sent <= second);
            if count == 0 {
                let _ = client.take(1 + dice(3000)).expect("records");
            }
        }
        // Everything is with the kernel, so that nothing has to be called any more.
        client.take_all();
        assert!(client.plain == body, "{} of {} bytes", client.plain.len(), body.len());
    }
}

#[test]
fn bytes_that_have_not_left_are_not_reported_as_moved() {
    let (mut server, mut client) = met(Version::V1_3);
    let body = pattern(300_000);
    let mut sent = 0;
    loop {
        match moved(server.send_all(&[IoSlice::new(&body[sent..])], false)) {
            0 => break,
            count => sent += count,
        }
    }
    assert!(sent > 0 && sent < body.len(), "{sent}");
    // Of the kernel's bytes the peer can open all but the last record, which is not whole.
    client.take_all();
    assert!(client.taken > sent, "{sent} bytes are said to have left, {} have", client.taken);
    assert_eq!(client.plain, body[..client.plain.len()]);
}

#[test]
fn files_are_sent_in_pieces() {
    for version in VERSIONS {
        let (mut server, mut client) = met(version);
        let body = pattern(400_000);
        let file = tempfile::tempfile().expect("a file");
        file.write_all_at(&body, 0).expect("written");
        let mut sent = 0;
        while sent < body.len() - 1000 {
            let most = (body.len() - 1000 - sent).min(100_000);
            let count = moved(server.send_file(&file, sent as u64, most));
            assert!(count <= most);
            sent += count;
            if count == 0 {
                let _ = client.take(1500).expect("records");
            }
        }
        client.take_all();
        assert!(client.plain == body[..body.len() - 1000]);
        assert!(matches!(server.send_file(&file, body.len() as u64, 1), Moved::End));
    }
}

#[test]
fn keys_change_in_the_middle() {
    let (mut server, mut client) = met(Version::V1_3);
    let (body, mut dice) = (pattern(800_000), dice());
    let (mut sent, mut changes, mut got) = (0, 0, Vec::new());
    while sent < body.len() {
        let count = moved(server.send_all(&[IoSlice::new(&body[sent..])], false));
        sent += count;
        if count == 0 {
            // Asks for new keys of the server, too, while some of its bytes have not left.
            client.session.refresh_traffic_keys().expect("TLS 1.3");
            client.session.writer().write_all(b"more").expect("memory");
            client.send();
            changes += 1;
            let mut buffer = [0; 3];
            loop {
                match moved(server.receive(&mut buffer)) {
                    0 => break,
                    count => got.extend_from_slice(&buffer[..count]),
                }
            }
            let _ = client.take(1 + dice(8000)).expect("records");
        }
    }
    client.take_all();
    assert!(client.plain == body);
    assert!(changes > 10, "{changes}");
    assert!(got == b"more".repeat(changes), "{} bytes", got.len());
}

#[test]
fn more_is_received_than_a_session_holds() {
    for version in VERSIONS {
        let (mut server, mut client) = met(version);
        let body = pattern(300_000);
        client.session.writer().write_all(&body).expect("memory");
        let sealed = client.unsent();
        let (mut rest, mut got, mut dice) = (&sealed[..], Vec::new(), dice());
        while got.len() < body.len() {
            if let Ok(count) = client.stream.write(rest) {
                rest = &rest[count..];
            }
            let room = 1 + dice(5000);
            let before = got.len();
            match server.receive_more(&mut got, room) {
                Moved::Bytes(count) => assert_eq!(got.len(), before + count),
                Moved::Blocked => assert!(server.is_emptied()),
                other => panic!("{other:?}"),
            }
        }
        assert!(got == body);
        assert!(matches!(server.receive(&mut [0; 10]), Moved::Blocked) && server.is_emptied());
    }
}

#[test]
fn a_short_read_of_opened_bytes_does_not_mean_an_empty_socket() {
    let (mut server, mut client) = met(Version::V1_3);
    client.session.writer().write_all(&[b'a'; 100]).expect("memory");
    client.send();
    assert_eq!(moved(server.receive(&mut [0; 10])), 10);
    assert!(!server.is_emptied(), "the rest is to be read");
    client.session.writer().write_all(&[b'b'; 50]).expect("memory");
    client.send();
    assert_eq!(moved(server.receive(&mut [0; 200])), 90);
    assert!(!server.is_emptied(), "more has come");
    assert_eq!(moved(server.receive(&mut [0; 200])), 50);
    assert!(server.is_emptied());
}

#[test]
fn an_end_that_is_said_and_one_that_is_not_are_both_an_end() {
    for version in VERSIONS {
        for said in [true, false] {
            let (mut server, mut client) = met(version);
            client.session.writer().write_all(b"last").expect("memory");
            if said {
                client.session.send_close_notify();
            }
            let mut sealed = client.unsent();
            // The end of a record that never comes.
            client.session.writer().write_all(b"cut").expect("memory");
            let cut = client.unsent();
            sealed.extend_from_slice(&cut[..cut.len() / 2]);
            client.stream.write_all(&sealed).expect("room");
            client.stream.shutdown(std::net::Shutdown::Write).expect("open");
            let mut got = Vec::new();
            assert_eq!(moved(server.receive_more(&mut got, 100)), 4);
            assert!(matches!(server.receive_more(&mut got, 100), Moved::End), "{said}");
            assert_eq!(got, b"last");
            // It can still be answered.
            assert_eq!(moved(server.send_all(&[IoSlice::new(b"answer")], false)), 6);
            drop(server);
            client.take_all();
            assert!(client.plain == b"answer" && client.is_told);
        }
    }
}

#[test]
fn the_end_is_said_only_behind_all_that_was_to_be_sent() {
    let (mut server, mut client) = met(Version::V1_3);
    let body = pattern(200_000);
    while moved(server.send_all(&[IoSlice::new(&body)], false)) > 0 {}
    drop(server);
    client.take_all();
    assert!(!client.is_told, "what is missing is no end");
    let (mut server, mut client) = met(Version::V1_3);
    server.shutdown_write();
    client.take_all();
    assert!(client.is_told);
    client.session.writer().write_all(b"still").expect("memory");
    client.send();
    assert_eq!(moved(server.receive(&mut [0; 10])), 5);
}

#[test]
fn a_record_that_was_changed_ends_the_session_with_an_alert() {
    for version in VERSIONS {
        let (mut server, mut client) = met(version);
        client.session.writer().write_all(b"whole").expect("memory");
        let whole = client.unsent();
        client.session.writer().write_all(b"changed").expect("memory");
        let mut changed = client.unsent();
        *changed.last_mut().expect("a byte") ^= 1;
        client.stream.write_all(&[whole, changed].concat()).expect("room");
        let mut got = Vec::new();
        let end = loop {
            match server.receive_more(&mut got, 3) {
                Moved::Bytes(_) => {}
                other => break other,
            }
        };
        assert!(
            matches!(&end, Moved::Failed(error) if error.kind() == io::ErrorKind::InvalidData),
            "{end:?}"
        );
        assert!(matches!(server.receive(&mut [0; 10]), Moved::End));
        let error = loop {
            match client.take(100) {
                Ok(true) => {}
                Ok(false) => panic!("no alert"),
                Err(error) => break error,
            }
        };
        assert_eq!(error, rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
        assert!(got.is_empty() || got == b"whole", "{got:?}");
    }
}
