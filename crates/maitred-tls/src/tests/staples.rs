//! OCSP responses: which are stapled, and when clients get them.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::digest;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::kit::{Authority, DAY, NOW, Wanted, meet, settings};
use crate::x509::Certificate;
use crate::{Identity, IdentityError, OcspFault, OcspTimes, Terms};

fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = u16::try_from(content.len()).expect("short").to_be_bytes();
    match length {
        [0, short @ 0..0x80] => [&[tag, short], &content[..]].concat(),
        [0, short] => [&[tag, 0x81, short], &content[..]].concat(),
        [high, low] => [&[tag, 0x82, high, low], &content[..]].concat(),
    }
}

/// January 15th of 2027 at 8 o'clock and so many hours (fewer than 16): `NOW` is that day, at eight.
fn generalized(hours: u8) -> Vec<u8> {
    tagged(0x18, &[format!("20270115{:02}0000Z", 8 + hours).as_bytes()])
}

const SHA1: &[u8] = &[6, 5, 0x2b, 0x0e, 3, 2, 0x1a];
const SHA256: &[u8] = &[6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, 1];
const GOOD: &[u8] = &[0x80, 0];
const UNKNOWN: &[u8] = &[0x82, 0];

fn single(identity: &Identity, hash: &[u8], status: &[u8], until: Option<u8>) -> Vec<u8> {
    let own = Certificate::read(&identity.plain.cert[0]).expect("a certificate");
    let algorithm = if hash == SHA1 { &digest::SHA1_FOR_LEGACY_USE_ONLY } else { &digest::SHA256 };
    let issuer = digest::digest(algorithm, own.issuer.whole);
    let id = tagged(
        0x30,
        &[
            &tagged(0x30, &[hash, &[5, 0]]),
            &tagged(4, &[issuer.as_ref()]),
            &tagged(4, &[b"the hash of a key"]),
            &tagged(2, &[own.serial]),
        ],
    );
    let until = until.map(|hours| tagged(0xa0, &[&generalized(hours)])).unwrap_or_default();
    tagged(0x30, &[&id, status, &generalized(0), &until])
}

fn response(singles: &[Vec<u8>]) -> Vec<u8> {
    let singles: Vec<&[u8]> = singles.iter().map(Vec::as_slice).collect();
    let responder = tagged(0xa2, &[&tagged(4, &[b"a key"])]);
    let data = tagged(0x30, &[&responder, &generalized(0), &tagged(0x30, &singles)]);
    let basic = tagged(0x30, &[&data, &tagged(0x30, &[SHA256]), &tagged(3, &[b"\0a signature"])]);
    let kind = [6, 9, 0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
    let bytes = tagged(0xa0, &[&tagged(0x30, &[&kind, &tagged(4, &[&basic])])]);
    tagged(0x30, &[&[10, 1, 0], &bytes])
}

fn identity(authority: &Authority, serial: u64) -> Identity {
    authority.identity(&Wanted { serial, ..Wanted::default() })
}

#[test]
fn a_good_response_is_taken() {
    let authority = Authority::new("Tests");
    let (own, other) = (identity(&authority, 7), identity(&authority, 8));
    for hash in [SHA1, SHA256] {
        let stapled = own
            .clone()
            .with_ocsp(response(&[single(&other, hash, GOOD, None), single(&own, hash, GOOD, Some(3))]));
        let times = OcspTimes { from: NOW, until: Some(NOW + 3 * 3600) };
        assert_eq!(stapled.expect("stapled").info().ocsp, Some(times));
    }
    let endless = own.clone().with_ocsp(response(&[single(&own, SHA1, GOOD, None)])).expect("stapled");
    assert_eq!(endless.info().ocsp, Some(OcspTimes { from: NOW, until: None }));
    let info = endless.info();
    assert!(!info.warnings(NOW - 1).concat().is_empty());
    assert!(!info.warnings(NOW + DAY).concat().contains("OCSP"));
}

#[test]
fn other_responses_are_refused_with_their_status() {
    let authority = Authority::new("Tests");
    let own = identity(&authority, 7);
    let fault = |response: Vec<u8>| match own.clone().with_ocsp(response) {
        Err(IdentityError::Ocsp(fault)) => fault,
        other => unreachable!("{other:?}"),
    };
    let revoked = tagged(0xa1, &[&generalized(0)]);
    assert_eq!(fault(response(&[single(&own, SHA1, &revoked, None)])), OcspFault::Revoked);
    assert_eq!(fault(response(&[single(&own, SHA1, UNKNOWN, None)])), OcspFault::Unknown);
    assert_eq!(fault(response(&[])), OcspFault::OtherCertificate);
    let other = identity(&authority, 8);
    assert_eq!(fault(response(&[single(&other, SHA1, GOOD, None)])), OcspFault::OtherCertificate);
    let namesake = identity(&Authority::new("Others"), 7);
    assert_eq!(fault(response(&[single(&namesake, SHA1, GOOD, None)])), OcspFault::OtherCertificate);
    assert_eq!(fault(vec![0x30, 3, 10, 1, 3]), OcspFault::Refused(3));
    assert!(OcspFault::Refused(3).to_string().contains("tryLater"));
    assert_eq!(fault(b"-----BEGIN OCSP RESPONSE-----\n".to_vec()), OcspFault::Text);
    assert_eq!(fault(Vec::new()), OcspFault::Form);
    let good = response(&[single(&own, SHA1, GOOD, Some(1))]);
    for end in 0..good.len() {
        assert_eq!(fault(good[..end].to_vec()), OcspFault::Form, "{end}");
    }
}

/// Believes everybody, and keeps the staple.
#[derive(Debug)]
struct Keeps(Mutex<Vec<u8>>);

impl ServerCertVerifier for Keeps {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        staple: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.0.lock().expect("no panic") = staple.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

#[test]
fn clients_get_the_response_while_it_is_current() {
    static CLOCK: AtomicU64 = AtomicU64::new(NOW);
    fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    let own = identity(&Authority::new("Tests"), 7);
    let staple = response(&[single(&own, SHA1, GOOD, Some(1))]);
    let mut settings = settings(vec![own.with_ocsp(staple.clone()).expect("stapled")]);
    settings.clock = clock;
    let terms = Terms::new(settings).expect("terms");
    let verifier = Arc::new(Keeps(Mutex::default()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .expect("versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::clone(&verifier) as _)
            .with_no_client_auth();
        let config = Arc::new(config);
        for (now, is_sent) in [(NOW - 1, false), (NOW, true), (NOW + 3599, true), (NOW + 3600, false)] {
            CLOCK.store(now, Ordering::Relaxed);
            let _ = meet(&terms, &config, "shop.example").expect();
            let got = std::mem::take(&mut *verifier.0.lock().expect("no panic"));
            assert_eq!(got, if is_sent { staple.clone() } else { Vec::new() }, "{now}");
        }
    }
}
