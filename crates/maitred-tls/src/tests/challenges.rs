//! Challenges of a certificate authority in the handshake (RFC 8737), as the authority meets them; and certificates of addresses.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use super::kit::{Authority, Client, Met, Wanted, now, pump, settings};
use crate::x509::{Certificate, GeneralName};
use crate::{
    Challenges, ClientPolicy, Identity, Read, Session, SessionError, Terms, Tickets, Trust, UnknownName,
    Version,
};

const VERSIONS: [Version; 2] = [Version::V1_2, Version::V1_3];

/// id-pe-acmeIdentifier, 1.3.6.1.5.5.7.1.31.
const ACME_IDENTIFIER: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 1, 0x1f];

struct Open;

impl Challenges for Open {
    fn http(&self, _: &str) -> Option<String> {
        None
    }

    fn tls_alpn(&self, name: &str) -> Option<String> {
        ["shop.example", "192.0.2.7", "2001:db8::7"]
            .contains(&name)
            .then(|| format!("token-of-{name}.thumbprint"))
    }
}

/// An authority takes any certificate, and looks at it afterwards.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
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

/// A server that requires certificates of clients, resumes sessions, and refuses unknown names.
fn terms(authority: &Authority) -> Arc<Terms> {
    let mut trust = Trust::default();
    trust.add_authorities(authority.pem().as_bytes()).expect("an authority");
    let mut settings = settings(vec![authority.identity(&Wanted::default())]);
    settings.clients = ClientPolicy::Required(trust);
    settings.tickets = Some(Tickets::random(now).expect("random numbers"));
    settings.unknown_name = UnknownName::Refuse;
    Terms::new(settings).expect("terms")
}

fn validator(authority: &Authority, version: Version, alpn: &'static [&'static str]) -> Arc<ClientConfig> {
    let client = Client { version: Some(version), alpn, ..Client::trusting(authority) };
    let mut config = (*client.config()).clone();
    config.dangerous().set_certificate_verifier(Arc::new(AnyCertificate));
    Arc::new(config)
}

fn meet(server: Session, config: &Arc<ClientConfig>, name: &str) -> Met {
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let client = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut met = Met { server, client, server_result: Ok(()), client_result: Ok(()) };
    pump(&mut met);
    met
}

fn session(terms: &Arc<Terms>) -> Session {
    Session::new(terms).expect("a session").with_challenges(Arc::new(Open))
}

#[test]
fn a_challenge_gets_its_certificate_and_nothing_else() {
    let authority = Authority::new("Servers");
    let terms = terms(&authority);
    let reverse = format!("7.{}8.b.d.0.1.0.0.2.ip6.arpa", "0.".repeat(23));
    for version in VERSIONS {
        let config = validator(&authority, version, &["acme-tls/1"]);
        for (asked, name, address) in [
            ("shop.example", "shop.example", None),
            ("7.2.0.192.in-addr.arpa", "192.0.2.7", Some(&[192, 0, 2, 7][..])),
            (
                reverse.as_str(),
                "2001:db8::7",
                Some(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7][..]),
            ),
        ] {
            let mut met = meet(session(&terms), &config, asked).expect();
            let handshake = met.server.handshake().expect("complete");
            assert!(handshake.is_challenge() && !handshake.resumed, "{version} {name}");
            assert!(handshake.client_chain.is_empty(), "no certificate of a client is asked for");
            assert_eq!(met.client.alpn_protocol(), Some(&b"acme-tls/1"[..]));
            assert_eq!(met.client.tls13_tickets_received(), 0);
            let chain = met.client.peer_certificates().expect("a certificate");
            assert_eq!(chain.len(), 1);
            let certificate = Certificate::read(&chain[0]).expect("a certificate");
            let names = certificate.alternative_names();
            match (&names[..], address) {
                ([GeneralName::Dns(found)], None) => assert_eq!(*found, name),
                ([GeneralName::Address(found)], Some(address)) => assert_eq!(*found, address),
                _ => unreachable!("{name} has other names"),
            }
            let proof = digest(&SHA256, format!("token-of-{name}.thumbprint").as_bytes());
            let proof = [&[4, 32], proof.as_ref()].concat();
            assert!(certificate.extensions.contains(&(&ACME_IDENTIFIER, &proof)), "{version} {name}");
            // Critical: the identifier is followed by TRUE.
            let critical = [&[6, 8][..], &ACME_IDENTIFIER, &[1, 1, 0xff]].concat();
            assert!(chain[0].windows(critical.len()).any(|part| part == critical));
            met.server.close();
            pump(&mut met);
            assert_eq!(met.server.read(&mut [0; 16]), Read::Nothing);
        }
    }
}

#[test]
fn a_challenge_that_is_not_open_gets_the_alert_of_an_unknown_name() {
    let authority = Authority::new("Servers");
    let terms = terms(&authority);
    for version in VERSIONS {
        let config = validator(&authority, version, &["acme-tls/1"]);
        for name in ["other.example", "8.2.0.192.in-addr.arpa"] {
            let met = meet(session(&terms), &config, name);
            assert_eq!(met.server_result, Err(SessionError::UnknownName(name.into())));
            let alert = Error::AlertReceived(rustls::AlertDescription::UnrecognisedName);
            assert_eq!(met.client_result, Err(alert), "{version}");
        }
        let met = meet(session(&terms), &config, "192.0.2.7");
        assert_eq!(met.server_result, Err(SessionError::MissingName), "an address is no name of a server");
    }
}

#[test]
fn only_the_protocol_of_challenges_alone_is_a_challenge() {
    let authority = Authority::new("Servers");
    let terms = terms(&authority);
    for version in VERSIONS {
        for alpn in [&["acme-tls/1", "http/1.1"][..], &["http/1.1"], &["acme-tls/1.1", "http/1.1"], &[]] {
            let met = meet(session(&terms), &validator(&authority, version, alpn), "shop.example");
            assert!(matches!(met.server_result, Err(SessionError::Client { .. })), "{version} {alpn:?}");
        }
        let config = validator(&authority, version, &["acme-tls/1"]);
        let met = meet(Session::new(&terms).expect("a session"), &config, "shop.example");
        assert_eq!(met.server_result, Err(SessionError::NoCommonProtocol), "no certificate is ordered");
    }
}

#[test]
fn a_hello_in_pieces_is_the_same_challenge() {
    let authority = Authority::new("Servers");
    let config = validator(&authority, Version::V1_3, &["acme-tls/1"]);
    let name = "shop.example".try_into().expect("a name");
    let mut client = ClientConnection::new(config, name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    let mut server = session(&terms(&authority));
    for byte in &hello {
        assert_eq!(server.feed(&[*byte]), Ok(1));
    }
    let mut met = Met { server, client, server_result: Ok(()), client_result: Ok(()) };
    pump(&mut met);
    assert!(met.expect().server.handshake().expect("complete").is_challenge());
}

#[test]
fn a_client_that_names_no_server_gets_the_certificate_of_the_address() {
    let authority = Authority::new("Servers");
    let identity = |names: &[&str], told: &[&str]| -> Identity {
        authority.identity(&Wanted { names, ..Wanted::default() }).for_names(told)
    };
    for unknown in [UnknownName::Default, UnknownName::Refuse] {
        let mut settings = settings(vec![
            identity(&["shop.example"], &["shop.example"]),
            identity(&["192.0.2.7"], &[]),
            identity(&["2001:db8::7"], &[]),
        ]);
        settings.unknown_name = unknown;
        let terms = Terms::new(settings).expect("terms");
        assert!(terms.has_addresses());
        for (address, name, expected) in [
            ("192.0.2.7", "192.0.2.7", 1),
            ("::ffff:192.0.2.7", "192.0.2.7", 1),
            ("2001:db8::7", "192.0.2.7", 2),
            // The address of a server behind NAT is another one than the one that clients know.
            ("10.0.0.5", "192.0.2.7", 1),
            ("192.0.2.7", "shop.example", 0),
        ] {
            let server = Session::new(&terms).expect("a session").at(address.parse().expect("an address"));
            let met = meet(server, &validator(&authority, Version::V1_3, &["http/1.1"]), name).expect();
            assert_eq!(met.server.handshake().expect("complete").identity, expected, "{address} {name}");
        }
    }
    let plain = Terms::new(settings(vec![identity(&["shop.example"], &[])])).expect("terms");
    assert!(!plain.has_addresses());
}
