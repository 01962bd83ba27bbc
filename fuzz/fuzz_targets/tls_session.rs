//! A TLS session. Input: a byte that chooses the kind of the rest, and the rest.
//!
//! 0: the first bytes of a client, in any pieces. 1: bytes behind a handshake in the place of records. 2: bytes that a
//! client writes and the server answers, in any pieces; they arrive as they were written. With the highest bit hosts
//! differ in their rules for clients. After an error a session returns the same error, takes nothing, and gives its
//! alert away once.
#![no_main]

use std::io::{IoSlice, Read as _, Write as _};
use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use maitred_tls::{
    ClientPolicy, FULL_RECORD, HostClients, Identity, Read, SMALL_RECORD, Session, Terms, TermsSettings,
    Tickets, Trust, UnknownName, Version, system_clock,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

fuzz_target!(|input: &[u8]| {
    let Some((kind, rest)) = input.split_first() else { return };
    let size = 1 + usize::from(kind >> 2) * 25;
    let both = setting(kind & 0x80 != 0);
    match kind & 3 {
        0 => {
            let mut session = Session::new(&both.terms).expect("a session");
            feed_anything(&mut session, rest, size);
        }
        1 => {
            let (mut session, _) = met(both);
            feed_anything(&mut session, rest, size);
        }
        _ => {
            let (mut session, mut client) = met(both);
            check_talk(&mut session, &mut client, rest, size);
        }
    }
});

fn feed_anything(session: &mut Session, bytes: &[u8], size: usize) {
    let mut plain = Vec::new();
    for piece in bytes.chunks(size) {
        let mut rest = piece;
        while !rest.is_empty() {
            match session.feed(rest) {
                Ok(taken) => {
                    assert!(taken > 0 || session.has_plaintext());
                    rest = &rest[taken..];
                }
                Err(error) => {
                    let text = error.to_string();
                    assert!(!text.is_empty() && !text.chars().any(char::is_control), "{text:?}");
                    assert_eq!(session.feed(b"more"), Err(error));
                    assert_eq!(session.write(&[IoSlice::new(b"late")], FULL_RECORD), 0);
                    assert_eq!(session.read_more(&mut plain, 100), Read::Nothing);
                    unsent(session);
                    assert!(!session.has_unsent() && !session.has_plaintext());
                    return;
                }
            }
            unsent(session);
            while let Read::Bytes(count) = session.read_more(&mut plain, 1000) {
                assert!(count > 0 && count <= 1000);
            }
        }
    }
    assert!(plain.is_empty(), "nobody else has the keys");
    session.feed_end();
    assert!(matches!(session.read(&mut [0; 10]), Read::Truncated | Read::End));
}

/// Both say the same words to each other, in pieces of `size` bytes.
fn check_talk(session: &mut Session, client: &mut ClientConnection, words: &[u8], size: usize) {
    let mut heard = Vec::new();
    for piece in words.chunks(size) {
        client.writer().write_all(piece).expect("memory");
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        for part in wire.chunks(size) {
            assert_eq!(session.feed(part), Ok(part.len()));
        }
        while let Read::Bytes(_) = session.read_more(&mut heard, size) {}
    }
    assert_eq!(heard, words);
    assert!(!session.has_plaintext());
    let (first, second) = words.split_at(words.len() / 3);
    let record = if size < 1_000 { SMALL_RECORD } else { FULL_RECORD };
    let mut written = session.write(&[IoSlice::new(first), IoSlice::new(second)], record);
    assert_eq!(written, words.len(), "less than 64 KiB");
    session.close();
    let wire = unsent(session);
    written = 0;
    let mut answer = vec![0; words.len() + 1];
    let mut rest = &wire[..];
    while !rest.is_empty() {
        client.read_tls(&mut rest).expect("memory");
        client.process_new_packets().expect("records");
        while let Ok(count @ 1..) = client.reader().read(&mut answer[written..]) {
            written += count;
        }
    }
    assert_eq!(&answer[..written], words);
    assert_eq!(client.reader().read(&mut answer).expect("an end that was said"), 0);
}

fn unsent(session: &mut Session) -> Vec<u8> {
    let mut sent = Vec::new();
    while session.has_unsent() {
        session
            .send_unsent(&mut |parts| {
                let before = sent.len();
                parts.iter().for_each(|part| sent.extend_from_slice(part));
                Ok(sent.len() - before)
            })
            .expect("memory");
    }
    sent
}

/// A handshake that is complete; most are resumed.
fn met(both: &Both) -> (Session, ClientConnection) {
    let mut session = Session::new(&both.terms).expect("a session");
    let name = ServerName::try_from("localhost").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(&both.client), name).expect("a client");
    loop {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        session.feed(&wire).expect("a handshake");
        let answer = unsent(&mut session);
        if wire.is_empty() && answer.is_empty() {
            assert!(session.handshake().is_some());
            return (session, client);
        }
        let mut rest = &answer[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).expect("memory");
            client.process_new_packets().expect("a handshake");
        }
    }
}

struct Both {
    terms: Arc<Terms>,
    client: Arc<ClientConfig>,
}

fn setting(differ: bool) -> &'static Both {
    static BOTH: [OnceLock<Both>; 2] = [const { OnceLock::new() }; 2];
    BOTH[usize::from(differ)].get_or_init(|| {
        let (identity, pem) =
            Identity::development(&["localhost".to_owned()], system_clock).expect("a certificate");
        let terms = Terms::new(TermsSettings {
            identities: vec![identity],
            unknown_name: UnknownName::Default,
            clients: ClientPolicy::None,
            hosts: if differ { hosts(pem.certificate.as_bytes()) } else { HostClients::default() },
            tickets: Some(Tickets::random(system_clock).expect("random numbers")),
            minimum: Version::V1_2,
            alpn: vec![b"http/1.1".to_vec()],
            clock: system_clock,
        });
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(pem.certificate.as_bytes()).expect("a certificate");
        roots.add(root).expect("a root");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Both { terms: terms.expect("terms"), client: Arc::new(client) }
    })
}

/// Clients that name localhost are asked for a certificate, and no others.
fn hosts(authority: &[u8]) -> HostClients {
    let mut trust = Trust::default();
    trust.add_authorities(authority).expect("an authority");
    HostClients {
        policies: vec![ClientPolicy::Optional(trust)],
        of_hosts: vec![0, 1],
        find: Some(Arc::new(|name| u16::from(name == "localhost"))),
    }
}
