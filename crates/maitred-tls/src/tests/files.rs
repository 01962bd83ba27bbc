//! Certificates and keys from files: every form that is read, and the errors for all others.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use rcgen::CustomExtension;
use rustls::RootCertStore;

use super::kit::{Authority, Client, DAY, Issued, NOW, Wanted, meet, now, settings};
use crate::der::{INTEGER, OCTET_STRING, Reader, SEQUENCE};
use crate::key::Key;
use crate::{DevelopmentError, Identity, IdentityError, IdentityInfo, PemFault, Terms, pem};

/// The old form of a key (PKCS#1 or SEC 1) stands in the new one (PKCS#8, RFC 5208 §5).
fn old_form(issued: &Issued) -> Vec<u8> {
    let mut parts = Reader::new(issued.key_der.secret_der()).inside(SEQUENCE).expect("a sequence");
    parts.value(INTEGER).expect("a version");
    parts.value(SEQUENCE).expect("an algorithm");
    parts.content(OCTET_STRING).expect("a key").to_vec()
}

fn self_signed(key: &Key, extension: Option<CustomExtension>) -> Identity {
    let mut params = rcgen::CertificateParams::new(["shop.example".to_owned()]).expect("names");
    params.serial_number = Some(key.serial());
    params.custom_extensions.extend(extension);
    let certificate = params.self_signed(key).expect("a certificate");
    let certificate = pem::encode("CERTIFICATE", certificate.der());
    Identity::from_pem(certificate.as_bytes(), key.pem().as_bytes()).expect("an identity")
}

fn fault(certificate: &str, key: &str) -> IdentityError {
    Identity::from_pem(certificate.as_bytes(), key.as_bytes()).map(|_| ()).expect_err("a fault")
}

#[test]
fn keys_of_every_form_are_read() {
    let authority = Authority::new("Tests");
    let ecdsa = authority.issue(&Wanted::default());
    let rsa = authority.issue(&Wanted { is_rsa: true, ..Wanted::default() });
    let parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    let sec1 = parameters.to_owned() + &pem::encode("EC PRIVATE KEY", &old_form(&ecdsa));
    let pkcs1 = pem::encode("RSA PRIVATE KEY", &old_form(&rsa));
    for (issued, key, kind) in [
        (&ecdsa, &ecdsa.key, "ECDSA P-256"),
        (&ecdsa, &sec1, "ECDSA P-256"),
        (&rsa, &rsa.key, "RSA 2048"),
        (&rsa, &pkcs1, "RSA 2048"),
    ] {
        let identity =
            Identity::from_pem(issued.certificate.as_bytes(), key.as_bytes()).expect("an identity");
        assert_eq!(identity.info().certificate.key, kind);
    }
    // Both in one file, in both orders.
    for file in [ecdsa.certificate.clone() + &ecdsa.key, ecdsa.key.clone() + &ecdsa.certificate] {
        assert!(Identity::from_pem(file.as_bytes(), file.as_bytes()).is_ok());
    }
    let ed25519 = Ed25519KeyPair::generate_pkcs8v1(&SystemRandom::new()).expect("a key");
    let identity = self_signed(&Key::new(ed25519.as_ref()).expect("a key"), None);
    assert_eq!(identity.info().certificate.key, "Ed25519");
}

#[test]
fn fields_of_a_certificate_are_shown() {
    let authority = Authority::new("Tests");
    let wanted = Wanted {
        names: &["Shop.Example", "*.shop.example", "192.0.2.1", "2001:db8::1"],
        ..Wanted::default()
    };
    let issued = authority.issue(&wanted);
    let identity = issued.identity();
    let IdentityInfo { names, certificate, chain, chain_gap, ocsp, .. } = identity.info().clone();
    assert_eq!(names, ["shop.example", "*.shop.example", "192.0.2.1", "2001:db8::1"]);
    assert_eq!(certificate.names, names);
    assert_eq!((&*certificate.subject, &*certificate.issuer), ("CN=a server,O=Shop", "CN=Tests"));
    assert_eq!((certificate.not_before, certificate.not_after), (NOW - DAY, NOW + 30 * DAY));
    assert_eq!(certificate.serial, "c0ffee");
    assert_eq!(certificate.fingerprint.len(), 64);
    assert!(!certificate.is_self_signed && !certificate.is_authority && certificate.is_for_servers);
    assert_eq!((chain, chain_gap, ocsp), (1, None, None));
    assert_eq!(identity.chain().collect::<Vec<_>>(), [&*issued.der]);
}

#[test]
fn a_common_name_counts_where_there_is_nothing_else() {
    let authority = Authority::new("Tests");
    let with = |common_name| authority.identity(&Wanted { names: &[], common_name, ..Wanted::default() });
    assert_eq!(with("Old.Example").info().names, ["old.example"]);
    assert!(with("Fritz Box").info().names.is_empty());
    assert_eq!(
        with("old.example").info().warnings(NOW)[0],
        "the certificate has no name in it (subjectAltName), so clients refuse it"
    );
}

#[test]
fn files_that_were_exchanged_or_are_missing_something_are_told() {
    let issued = Authority::new("Tests").issue(&Wanted::default());
    let text = |certificate: &str, key: &str| fault(certificate, key).to_string();
    assert_eq!(
        text(&issued.key, &issued.certificate),
        "there is no certificate but PRIVATE KEY; have the files of certificate and key been exchanged?"
    );
    assert_eq!(
        text(&issued.certificate, &issued.certificate),
        "there is no private key but CERTIFICATE; it takes a section PRIVATE KEY, EC PRIVATE KEY or RSA PRIVATE KEY"
    );
    let request = pem::encode("CERTIFICATE REQUEST", b"x");
    assert!(
        text(&request, &issued.key).starts_with("there is a request for a certificate (CERTIFICATE REQUEST)")
    );
    let other = pem::encode("DH PARAMETERS", b"x");
    assert!(text(&other, &issued.key).starts_with("there is no section CERTIFICATE but DH PARAMETERS;"));
    assert_eq!(fault("", &issued.key), IdentityError::CertificateFile(PemFault::Empty));
    assert_eq!(fault(&issued.certificate, "secret"), IdentityError::KeyFile(PemFault::NoSection));
    assert_eq!(text(&issued.certificate, ""), "the key cannot be read: it is empty");
}

#[test]
fn keys_that_cannot_be_used_are_told() {
    let authority = Authority::new("Tests");
    let issued = authority.issue(&Wanted::default());
    let other = authority.issue(&Wanted::default());
    assert_eq!(fault(&issued.certificate, &other.key), IdentityError::OtherKey(None));
    assert_eq!(
        fault(&issued.certificate, &pem::encode("ENCRYPTED PRIVATE KEY", b"x")),
        IdentityError::Key(
            "the section ENCRYPTED PRIVATE KEY is broken or encrypted in an unknown way".to_owned()
        )
    );
    for label in ["PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"] {
        let error = fault(&issued.certificate, &pem::encode(label, b"nonsense"));
        assert_eq!(error, IdentityError::Key(format!("the section {label} is broken or of an unknown kind")));
    }
    let error = fault(&issued.certificate, &pem::encode("DSA PRIVATE KEY", b"x")).to_string();
    assert!(
        error.starts_with("the key cannot be used: it is of the form DSA PRIVATE KEY; it takes RSA"),
        "{error}"
    );
}

#[test]
fn a_chain_in_the_wrong_order_is_told() {
    let authority = Authority::new("Tests");
    let below = authority.intermediate("Below");
    let issued = below.issue(&Wanted::default());
    let (own, between, top) = (&issued.certificate, below.pem(), authority.pem());
    assert_eq!(fault(&(between.clone() + own), &issued.key), IdentityError::OtherKey(Some(2)));
    let info = |parts: &[&str]| {
        let identity = Identity::from_pem(parts.concat().as_bytes(), issued.key.as_bytes());
        identity.expect("an identity").info().clone()
    };
    let good = info(&[own, &between, &top]);
    assert_eq!((good.chain, good.chain_gap), (3, None));
    assert_eq!(good.warnings(NOW), Vec::<String>::new());
    assert_eq!(info(&[own, &top]).chain_gap, Some(1));
    let turned = info(&[own, &between, &between]);
    assert_eq!(turned.chain_gap, Some(2));
    assert_eq!(
        turned.warnings(NOW),
        ["certificate 2 of the chain was not issued by the next one; put each behind the one it has issued"]
    );
    let broken = own.clone() + &pem::encode("CERTIFICATE", b"nonsense");
    assert!(matches!(fault(&broken, &issued.key), IdentityError::Certificate(2, _)));
    let long = pem::encode("CERTIFICATE", &[&*issued.der, b"x"].concat());
    assert_eq!(
        fault(&long, &issued.key).to_string(),
        "certificate 1 of the file is broken: something stands behind its end"
    );
}

#[test]
fn certificates_that_clients_refuse_have_warnings() {
    let authority = Authority::new("Tests");
    let warnings = |wanted: Wanted<'_>, now| authority.identity(&wanted).info().warnings(now).concat();
    let alone = "the certificate stands alone; if an intermediate authority has issued it, put that certificate behind it";
    assert_eq!(warnings(Wanted::default(), NOW), alone);
    assert!(warnings(Wanted::default(), NOW + 30 * DAY).starts_with("the certificate has expired"));
    assert!(warnings(Wanted::default(), NOW - 2 * DAY).starts_with("the certificate is not valid yet"));
    let for_clients = Wanted { usage: rcgen::ExtendedKeyUsagePurpose::ClientAuth, ..Wanted::default() };
    assert!(warnings(for_clients, NOW).starts_with("the certificate is not for servers"));
    // One that asks for a staple.
    let staple = CustomExtension::from_oid_content(&[1, 3, 6, 1, 5, 5, 7, 1, 24], vec![0x30, 3, 2, 1, 5]);
    let info = self_signed(&Key::generate().expect("a key"), Some(staple)).info().clone();
    assert!(info.certificate.must_staple && info.certificate.is_self_signed);
    assert!(info.warnings(NOW)[0].starts_with("the certificate asks for a stapled OCSP response"));
}

#[test]
fn a_certificate_for_development_is_for_its_names_and_ninety_days() {
    let names = ["localhost", "127.0.0.1", "::1", "box.local"].map(str::to_owned);
    let (identity, text) = Identity::development(&names, now).expect("a certificate");
    let info = identity.info();
    assert_eq!(info.names, names);
    assert!(info.certificate.is_self_signed && !info.certificate.is_authority);
    assert_eq!((info.certificate.not_before, info.certificate.not_after), (NOW - DAY, NOW + 90 * DAY));
    assert_eq!(info.certificate.key, "ECDSA P-256");
    assert_eq!(info.warnings(NOW), Vec::<String>::new());
    let again = Identity::from_pem(text.certificate.as_bytes(), text.key.as_bytes()).expect("an identity");
    assert_eq!(again.info(), info);
    assert!(!format!("{text:?}").contains("PRIVATE"));
    // A client that has been told to trust it.
    let mut roots = RootCertStore::empty();
    roots.add(identity.plain.cert[0].clone()).expect("a root");
    let config = Client { roots, ..Client::trusting(&Authority::new("Others")) }.config();
    let terms = Terms::new(settings(vec![again])).expect("terms");
    for name in ["localhost", "127.0.0.1", "::1"] {
        let _ = meet(&terms, &config, name).expect();
    }
}

#[test]
fn a_certificate_for_development_needs_a_name_in_ascii() {
    let fault = |names: &[String]| Identity::development(names, now).map(|_| ()).expect_err("a fault");
    assert_eq!(fault(&[]), DevelopmentError::NoName);
    assert_eq!(
        fault(&["b\u{fc}ro.example".to_owned()]),
        DevelopmentError::Name("b\u{fc}ro.example".to_owned())
    );
}
