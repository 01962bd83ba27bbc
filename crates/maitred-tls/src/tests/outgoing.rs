//! Sessions with servers, over a socket in memory.

use std::io::{self, ErrorKind, IoSlice};
use std::sync::Arc;

use proptest::prelude::{ProptestConfig, any, prop_assert_eq, proptest};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod};
use rustls::version::{TLS12, TLS13};

use super::kit::{Authority, DAY, NOW, Wanted, now, settings, time, unsent};
use crate::key::Key;
use crate::{
    Authorities, ClientPolicy, FULL_RECORD, Handshaking, Identity, OutgoingError, OutgoingSession,
    OutgoingSettings, OutgoingTerms, Read, ServerFault, Session, Terms, TermsSettings, Tickets, Trust,
    Version,
};

/// The server's end of a connection as the client's socket.
struct Wire {
    /// `None`: the server is `script` alone.
    server: Option<Session>,
    /// Bytes on their way to the client.
    script: Vec<u8>,
    /// How many bytes one read gives.
    step: usize,
    /// How many bytes the socket takes until it is given more room.
    room: usize,
    has_ended: bool,
}

impl Wire {
    fn to(terms: &Arc<Terms>) -> Self {
        Self { server: Some(Session::new(terms).expect("a session")), ..Self::script(b"", false) }
    }

    fn script(bytes: &[u8], has_ended: bool) -> Self {
        Self { server: None, script: bytes.to_vec(), step: usize::MAX, room: usize::MAX, has_ended }
    }

    fn server(&mut self) -> &mut Session {
        self.server.as_mut().expect("a server")
    }

    fn answer(&mut self, text: &[u8]) {
        assert_eq!(self.server().write(&[IoSlice::new(text)], FULL_RECORD), text.len());
    }

    fn request(&mut self) -> Vec<u8> {
        let mut request = Vec::new();
        while let Read::Bytes(_) = self.server().read_more(&mut request, 1 << 20) {}
        request
    }
}

impl io::Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(server) = &mut self.server {
            self.script.extend(unsent(server));
        }
        let count = self.script.len().min(buffer.len()).min(self.step);
        if count == 0 && !self.has_ended {
            return Err(ErrorKind::WouldBlock.into());
        }
        buffer[..count].copy_from_slice(&self.script[..count]);
        self.script.drain(..count);
        Ok(count)
    }
}

impl io::Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(self.room);
        if count == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        self.room -= count;
        if let Some(server) = &mut self.server {
            // The client sees a fault of the server by its alert.
            _ = server.feed(&bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn authorities(pem: &str) -> Option<Authorities> {
    let mut authorities = Authorities::default();
    assert_eq!(authorities.add(pem.as_bytes()), 1);
    Some(authorities)
}

fn trusting(authority: &Authority) -> OutgoingSettings<'static> {
    OutgoingSettings {
        authorities: authorities(&authority.pem()),
        protocols: vec![b"http/1.1".to_vec()],
        clock: now,
        ..OutgoingSettings::default()
    }
}

fn terms(settings: OutgoingSettings<'_>) -> OutgoingTerms {
    OutgoingTerms::new(settings).expect("terms")
}

/// Terms that take any certificate.
fn any_server() -> OutgoingTerms {
    terms(OutgoingSettings { authorities: None, ..OutgoingSettings::default() })
}

/// The same in each version alone.
fn both(settings: &OutgoingSettings<'_>) -> [(Version, OutgoingTerms); 2] {
    [(Version::V1_2, &TLS12), (Version::V1_3, &TLS13)]
        .map(|(version, of)| (version, OutgoingTerms::with_versions(settings.clone(), &[of]).expect("terms")))
}

fn server(settings: TermsSettings) -> Arc<Terms> {
    Terms::new(settings).expect("terms")
}

/// A session whose handshake goes on until it is complete or fails. A client that is asked for a certificate in TLS 1.3 fails when it
/// reads.
fn meet(terms: &OutgoingTerms, wire: &mut Wire) -> Result<OutgoingSession, ServerFault> {
    let fault = |error| match error {
        OutgoingError::Tls(fault) => fault,
        OutgoingError::Socket(error) => unreachable!("{error}"),
    };
    let mut session = OutgoingSession::new(terms, "shop.example")?;
    loop {
        match session.handshake(wire).map_err(fault)? {
            Handshaking::Done => break,
            Handshaking::WantsRead => {}
            Handshaking::WantsWrite => wire.room = 10,
        }
    }
    assert_eq!(session.read(wire, &mut [0]).map_err(fault)?, Read::Nothing);
    Ok(session)
}

fn fault(terms: &OutgoingTerms, wire: &mut Wire) -> ServerFault {
    meet(terms, wire).expect_err("a fault")
}

#[test]
fn a_request_and_a_response_pass_in_both_versions() {
    let authority = Authority::new("an authority");
    for ((version, terms), step) in both(&trusting(&authority)).into_iter().zip([1, usize::MAX]) {
        let mut wire = Wire::to(&server(settings(vec![authority.identity(&Wanted::default())])));
        (wire.step, wire.room) = (step, 0);
        let mut session = meet(&terms, &mut wire).expect("a session");
        assert_eq!((session.version(), session.protocol()), (Some(version), Some(&b"http/1.1"[..])));
        wire.room = 0;
        assert_eq!(session.write(&mut wire, b"request").expect("taken"), 7);
        assert!(session.has_unsent());
        assert_eq!(session.write(&mut wire, b"more").expect("no room"), 0);
        wire.room = usize::MAX;
        assert!(session.flush(&mut wire).expect("room"));
        assert_eq!(wire.request(), b"request");
        let body = vec![7; 100_000];
        let (mut left, mut got) = (&body[..], Vec::new());
        while got.len() < body.len() {
            let taken = wire.server().write(&[IoSlice::new(left)], FULL_RECORD);
            left = &left[taken..];
            let mut part = [0; 5_000];
            while let Read::Bytes(count) = session.read(&mut wire, &mut part).expect("a body") {
                got.extend_from_slice(&part[..count]);
            }
        }
        assert!(got == body);
        session.rest();
        assert!(session.is_quiet(&mut wire));
        session.close(&mut wire);
        assert_eq!(wire.server().read(&mut [0]), Read::End);
        wire.answer(b"behind our end");
        wire.step = usize::MAX;
        assert_eq!(session.read(&mut wire, &mut [0; 99]).expect("half closed"), Read::Bytes(14));
        wire.server().close();
        assert_eq!(session.read(&mut wire, &mut [0]).expect("an end"), Read::End);
    }
}

#[test]
fn an_end_without_close_notify_is_told() {
    let authority = Authority::new("an authority");
    let mut wire = Wire::to(&server(settings(vec![authority.identity(&Wanted::default())])));
    let mut session = meet(&terms(trusting(&authority)), &mut wire).expect("a session");
    wire.answer(b"x");
    wire.has_ended = true;
    let mut part = [0; 9];
    assert_eq!(session.read(&mut wire, &mut part).expect("a byte"), Read::Bytes(1));
    for _ in 0..2 {
        assert_eq!(session.read(&mut wire, &mut part).expect("an end"), Read::Truncated);
    }
}

#[test]
fn an_idle_session_is_quiet_until_the_server_sends_or_ends() {
    let authority = Authority::new("an authority");
    let quiet = |change: fn(&mut Wire)| {
        let mut wire = Wire::to(&server(settings(vec![authority.identity(&Wanted::default())])));
        let mut session = meet(&terms(trusting(&authority)), &mut wire).expect("a session");
        change(&mut wire);
        session.is_quiet(&mut wire)
    };
    assert!(quiet(|_| {}));
    assert!(!quiet(|wire| wire.answer(b"x")));
    assert!(!quiet(|wire| wire.server().close()));
    assert!(!quiet(|wire| wire.has_ended = true));
    assert!(!quiet(|wire| wire.script = b"no record".to_vec()));
}

#[test]
fn sessions_of_the_same_terms_are_resumed_and_others_are_not() {
    let authority = Authority::new("an authority");
    let server = server(TermsSettings {
        tickets: Some(Tickets::random(now).expect("random")),
        ..settings(vec![authority.identity(&Wanted::default())])
    });
    let (one, other) = (terms(trusting(&authority)), terms(trusting(&authority)));
    let resumed = |terms| meet(terms, &mut Wire::to(&server)).expect("a session").is_resumed();
    assert_eq!([resumed(&one), resumed(&one), resumed(&other)], [false, true, false]);
}

#[test]
fn certificates_that_are_refused_have_names() {
    let (authority, stranger) = (Authority::new("an authority"), Authority::new("a stranger"));
    let trusting = terms(trusting(&authority));
    let of = |authority: &Authority, wanted: Wanted<'_>| {
        let server = server(settings(vec![authority.identity(&wanted)]));
        meet(&any_server(), &mut Wire::to(&server)).expect("without verification all is taken");
        fault(&trusting, &mut Wire::to(&server))
    };
    let until = Wanted { until: NOW - 60, from: NOW - DAY, ..Wanted::default() };
    assert_eq!(of(&authority, until), ServerFault::Expired(NOW - 60));
    let from = Wanted { from: NOW + 60, ..Wanted::default() };
    assert_eq!(of(&authority, from), ServerFault::NotYetValid(NOW + 60));
    let wrong = |names: &[&str], common_name: &str| ServerFault::WrongName {
        wanted: "shop.example".into(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
        common_name: Some(common_name.into()),
    };
    let names = &["a.example", "192.0.2.1"];
    assert_eq!(of(&authority, Wanted { names, ..Wanted::default() }), wrong(names, "a server"));
    let only_common = Wanted { names: &[], common_name: "shop.example", ..Wanted::default() };
    assert_eq!(of(&authority, only_common), wrong(&[], "shop.example"));
    let unknown = of(&stranger, Wanted::default());
    assert_eq!(
        unknown,
        ServerFault::UnknownAuthority { issuer: "CN=a stranger".into(), is_self_signed: false }
    );
    let usage = Wanted { usage: ExtendedKeyUsagePurpose::ClientAuth, ..Wanted::default() };
    assert!(of(&authority, usage).to_string().contains("serverAuth"));
}

#[test]
fn a_certificate_that_has_signed_itself_is_its_own_authority() {
    let stranger = Authority::new("a stranger");
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let of = |name: &str, until: u64| {
            let key = Key::generate().expect("a key");
            let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
            params.is_ca = is_ca;
            params.serial_number = Some(key.serial());
            params.key_identifier_method = KeyIdMethod::PreSpecified(key.short_digest());
            (params.not_before, params.not_after) = (time(NOW - DAY), time(until));
            let pem = crate::pem::encode("CERTIFICATE", params.self_signed(&key).expect("signed").der());
            (Identity::from_pem(pem.as_bytes(), key.pem().as_bytes()).expect("an identity"), pem)
        };
        let meets = |(identity, pem): (Identity, String), trusts: Option<&str>| {
            let authorities = authorities(trusts.unwrap_or(&pem));
            let terms = terms(OutgoingSettings { authorities, clock: now, ..OutgoingSettings::default() });
            meet(&terms, &mut Wire::to(&server(settings(vec![identity])))).map(|_| ())
        };
        assert_eq!(meets(of("shop.example", NOW + DAY), None), Ok(()));
        let unknown = meets(of("shop.example", NOW + DAY), Some(&stranger.pem())).expect_err("unknown");
        assert!(
            unknown.as_str().contains("authority") || unknown.to_string().contains("authority"),
            "{unknown}"
        );
        let name = meets(of("other.example", NOW + DAY), None).expect_err("another name");
        assert_eq!(name.as_str(), "certificate-name");
        assert_eq!(meets(of("shop.example", NOW - 60), None), Err(ServerFault::Expired(NOW - 60)));
    }
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_it_or_the_error_says_so() {
    let (authority, other) = (Authority::new("an authority"), Authority::new("another"));
    let mut trust = Trust::default();
    trust.add_authorities(authority.pem().as_bytes()).expect("an authority");
    let server =
        |clients| server(TermsSettings { clients, ..settings(vec![authority.identity(&Wanted::default())]) });
    let required = server(ClientPolicy::Required(trust.clone()));
    let client = Wanted { usage: ExtendedKeyUsagePurpose::ClientAuth, ..Wanted::default() };
    let optional = server(ClientPolicy::Optional(trust));
    let with = |identity: Option<&Identity>, server: &Arc<Terms>| {
        let settings = OutgoingSettings { identity, ..trusting(&authority) };
        both(&settings).map(|(_, terms)| meet(&terms, &mut Wire::to(server)).map(|_| ()))
    };
    let (good, bad) = (authority.identity(&client), other.identity(&client));
    assert_eq!(with(Some(&good), &required), [Ok(()), Ok(())]);
    assert_eq!(with(None, &required), [const { Err(ServerFault::ClientCertificateWanted) }; 2]);
    assert_eq!(with(Some(&bad), &required), [const { Err(ServerFault::ClientCertificateRefused(48)) }; 2]);
    assert_eq!(with(None, &optional), [Ok(()), Ok(())]);
}

#[test]
fn servers_that_speak_something_else_have_names() {
    let terms = any_server();
    let fault = |script: &[u8], has_ended| fault(&terms, &mut Wire::script(script, has_ended)).as_str();
    assert_eq!(fault(b"HTTP/1.1 400 Bad Request\r\n\r\n", false), "not-tls");
    assert_eq!(fault(b"SSH-2.0-OpenSSH_9.2\r\n", false), "not-tls");
    assert_eq!(fault(b"", true), "closed");
    assert_eq!(fault(&[0x16, 3, 3, 0, 90, 2], true), "closed");
    // Alerts: handshake_failure, protocol_version, no_application_protocol.
    assert_eq!(fault(&[21, 3, 3, 0, 2, 2, 40], false), "alert");
    assert_eq!(fault(&[21, 3, 1, 0, 2, 2, 70], false), "version");
    assert_eq!(fault(&[21, 3, 3, 0, 2, 2, 120], false), "protocol");
    // A ServerHello of TLS 1.1 with TLS_RSA_WITH_AES_128_CBC_SHA.
    let mut hello = vec![0x16, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
    hello.extend([7; 32]);
    hello.extend([0, 0, 0x2f, 0]);
    assert_eq!(fault(&hello, false), "version");
}

#[test]
fn a_failed_session_stays_failed() {
    let terms = any_server();
    let mut session = OutgoingSession::new(&terms, "127.0.0.1").expect("an address is a host");
    let mut wire = Wire::script(b"HTTP/1.1 400\r\n", false);
    let mut faults = vec![session.handshake(&mut wire).expect_err("no TLS").to_string()];
    faults.push(session.read(&mut wire, &mut [0]).expect_err("failed").to_string());
    faults.push(session.write(&mut wire, b"x").expect_err("failed").to_string());
    assert!(faults.iter().all(|fault| fault.contains("clear text")), "{faults:?}");
    assert!(OutgoingSession::new(&terms, "no name").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_of_a_server_make_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        is_changed in any::<bool>(),
        at in 0usize..4000,
        step in 1usize..2000,
    ) {
        let authority = Authority::new("an authority");
        let mut wire = Wire::to(&server(settings(vec![authority.identity(&Wanted::default())])));
        let mut session = OutgoingSession::new(&terms(trusting(&authority)), "shop.example").expect("a session");
        wire.step = 0;
        prop_assert_eq!(session.handshake(&mut wire).expect("begun"), Handshaking::WantsRead);
        let mut answer = std::mem::take(&mut wire.script);
        if is_changed {
            let at = at % answer.len();
            answer.iter_mut().skip(at).zip(&bytes).for_each(|(to, from)| *to ^= from);
        } else {
            answer = bytes;
        }
        let mut wire = Wire { step, ..Wire::script(&answer, true) };
        _ = session.handshake(&mut wire);
        _ = session.read(&mut wire, &mut [0; 99]);
        _ = session.write(&mut wire, b"x");
    }
}
