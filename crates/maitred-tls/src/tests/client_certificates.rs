//! Clients with certificates: the verification, and the facts known of them.

use std::sync::Arc;

use rcgen::{ExtendedKeyUsagePurpose, SerialNumber};

use super::kit::{Authority, Client, DAY, Issued, Met, NOW, Wanted, meet, settings};
use crate::x509::Certificate;
use crate::{
    ClientFault, ClientIdentity, ClientName, ClientPolicy, Clients, Reason, SessionError, Terms, Trust,
    TrustError, Version,
};

fn wanted() -> Wanted<'static> {
    Wanted {
        names: &["ada.shop.example"],
        common_name: "Ada, \"the\" client",
        usage: ExtendedKeyUsagePurpose::ClientAuth,
        ..Wanted::default()
    }
}

fn trust(authority: &Authority) -> Trust {
    let mut trust = Trust::default();
    trust.add_authorities(authority.pem().as_bytes()).expect("an authority");
    trust
}

fn terms(server: &Authority, clients: ClientPolicy) -> Arc<Terms> {
    let mut settings = settings(vec![server.identity(&Wanted::default())]);
    settings.clients = clients;
    Terms::new(settings).expect("terms")
}

/// A client of both versions with this certificate and others behind it.
fn try_both(
    server: &Authority,
    terms: &Arc<Terms>,
    issued: Option<&Issued>,
    behind: &[&Authority],
) -> [Met; 2] {
    [Version::V1_2, Version::V1_3].map(|version| {
        let identity = issued.map(|issued| {
            let chain = [issued.der.clone()].into_iter();
            let chain = chain.chain(behind.iter().map(|authority| authority.0.der().clone())).collect();
            (chain, issued.key_der.clone_key())
        });
        let client = Client { version: Some(version), identity, ..Client::trusting(server) };
        meet(terms, &client.config(), "shop.example")
    })
}

fn faults(met: [Met; 2]) -> (ClientFault, Option<Box<str>>) {
    let [old, new] = met.map(|met| match met.server_result {
        Err(SessionError::Client { fault, subject }) => (fault, subject),
        other => unreachable!("{other:?}"),
    });
    assert_eq!(old, new);
    new
}

const SUBJECT: &str = r#"CN=Ada\, \"the\" client,O=Shop"#;

#[test]
fn a_client_with_a_certificate_is_known() {
    let (server, authority) = (Authority::new("Servers"), Authority::new("Clients"));
    let issued = authority.issue(&wanted());
    for policy in [ClientPolicy::Required(trust(&authority)), ClientPolicy::Optional(trust(&authority))] {
        let terms = terms(&server, policy);
        for met in try_both(&server, &terms, Some(&issued), &[]) {
            let handshake = met.expect().server.handshake().expect("complete");
            assert_eq!(handshake.client_chain, [Box::from(&*issued.der)]);
            let client = ClientIdentity::new(handshake.client_chain).expect("a certificate");
            assert_eq!(client.certificate.subject, SUBJECT);
            assert_eq!(client.certificate.common_name.as_deref(), Some("Ada, \"the\" client"));
            assert_eq!(client.certificate.issuer, "CN=Clients");
            assert_eq!(client.certificate.serial, "c0ffee");
            assert_eq!(client.certificate.not_after, NOW + 30 * DAY);
            assert_eq!(client.names, [ClientName::Dns("ada.shop.example".to_owned())]);
            assert_eq!(client.names[0].to_string(), "DNS:ada.shop.example");
            assert_eq!(client.pem().replace("\r\n", "\n"), issued.certificate.replace("\r\n", "\n"));
            assert_eq!(client.chain_pem(), client.pem());
        }
    }
}

#[test]
fn a_client_without_a_certificate_is_let_in_where_it_is_optional() {
    let (server, authority) = (Authority::new("Servers"), Authority::new("Clients"));
    let optional = terms(&server, ClientPolicy::Optional(trust(&authority)));
    assert_eq!(optional.clients(), Clients::Asked);
    for met in try_both(&server, &optional, None, &[]) {
        assert!(met.expect().server.handshake().expect("complete").client_chain.is_empty());
    }
    let required = terms(&server, ClientPolicy::Required(trust(&authority)));
    assert_eq!(required.clients(), Clients::Required);
    assert_eq!(faults(try_both(&server, &required, None, &[])), (ClientFault::Absent, None));
    assert_eq!(ClientIdentity::new(Vec::new()), None);
}

#[test]
fn a_certificate_that_cannot_be_verified_is_refused_and_said_whose_it_is() {
    let (server, authority) = (Authority::new("Servers"), Authority::new("Clients"));
    let others = Authority::new("Others");
    let below = authority.intermediate("Below");
    for policy in [ClientPolicy::Required(trust(&authority)), ClientPolicy::Optional(trust(&authority))] {
        let terms = terms(&server, policy);
        let fault = |issuer: &Authority, wanted: Wanted<'_>| {
            let (fault, subject) = faults(try_both(&server, &terms, Some(&issuer.issue(&wanted)), &[]));
            assert_eq!(subject.as_deref(), Some(SUBJECT));
            fault
        };
        let expired = Wanted { until: NOW - 1, ..wanted() };
        let early = Wanted { from: NOW + 1, ..wanted() };
        let for_servers = Wanted { usage: ExtendedKeyUsagePurpose::ServerAuth, ..wanted() };
        assert_eq!(fault(&authority, expired), ClientFault::Expired);
        assert_eq!(fault(&authority, early), ClientFault::NotYetValid);
        assert_eq!(fault(&authority, for_servers), ClientFault::Purpose);
        assert_eq!(fault(&others, wanted()), ClientFault::UnknownIssuer);
        assert_eq!(fault(&below, wanted()), ClientFault::UnknownIssuer, "without the one between");
        for met in try_both(&server, &terms, Some(&below.issue(&wanted())), &[&below]) {
            assert_eq!(met.expect().server.handshake().expect("complete").client_chain.len(), 2);
        }
    }
}

#[test]
fn revoked_certificates_are_refused_and_every_authority_needs_a_current_list() {
    let (server, authority) = (Authority::new("Servers"), Authority::new("Clients"));
    let below = authority.intermediate("Below");
    let (good, bad) = (below.issue(&wanted()), below.issue(&Wanted { serial: 7, ..wanted() }));
    let try_with = |lists: &[Vec<u8>], issued: &Issued| {
        let mut trust = trust(&authority);
        for list in lists {
            trust.add_crls(list).expect("a list");
        }
        let terms = terms(&server, ClientPolicy::Required(trust));
        try_both(&server, &terms, Some(issued), &[&below])
    };
    let later = NOW + DAY;
    let (top, bottom) = (authority.crl(later, vec![]), below.crl(later, vec![6.into(), 7.into()]));
    for met in try_with(&[top.clone(), bottom.clone()], &good) {
        let _ = met.expect();
    }
    let subject = Some(Box::from(SUBJECT));
    let fault = |lists: &[Vec<u8>], issued| faults(try_with(lists, issued));
    assert_eq!(fault(&[top.clone(), bottom.clone()], &bad), (ClientFault::Revoked, subject.clone()));
    assert_eq!(fault(std::slice::from_ref(&bottom), &good), (ClientFault::NoRevocationList, subject.clone()));
    let old = authority.crl(NOW - 1, vec![]);
    assert_eq!(fault(&[old, bottom], &good), (ClientFault::OldRevocationList, subject.clone()));
    let serial = Certificate::read(below.0.der()).expect("DER").serial.to_vec();
    let revoking = authority.crl(later, vec![SerialNumber::from_slice(&serial)]);
    let bottom = below.crl(later, vec![]);
    assert_eq!(fault(&[revoking, bottom], &good), (ClientFault::Revoked, subject));
}

#[test]
fn trusted_authorities_are_shown() {
    let authority = Authority::new("Clients");
    let mut trust = trust(&authority);
    trust.add_authorities(Authority::new("Others").0.der()).expect("DER");
    trust.add_crls(&authority.crl(NOW + 9 * DAY, vec![1.into(), 2.into(), 3.into()])).expect("a list");
    trust.add_crls(&authority.crl(NOW + 5 * DAY, vec![])).expect("a list");
    let subjects: Vec<&str> = trust.authorities().iter().map(|info| &*info.subject).collect();
    assert_eq!(subjects, ["CN=Clients", "CN=Others"]);
    assert!(trust.authorities()[0].is_authority);
    let [first, _] = trust.crls() else { unreachable!("two") };
    assert_eq!((&*first.issuer, first.revoked, first.next_update), ("CN=Clients", 3, NOW + 9 * DAY));
    assert_eq!(first.this_update, NOW - DAY);
    assert_eq!(trust.until(), Some(NOW + 5 * DAY));
}

/// A list that OpenSSL 3.0 has made, whose configuration had no `crlnumber`.
const OF_VERSION_1: &str = "\
-----BEGIN X509 CRL-----\n\
MIHIMHEwCgYIKoZIzj0EAwIwHDENMAsGA1UECgwEVGVzdDELMAkGA1UEAwwCQ0EX\n\
DTI2MTEyNDEyMTkzMVoXDTI2MTEyOTEyMTkzMVowJzAlAhQOYKHpALu3RoTI5/0m\n\
hQGxE9v9yBcNMjYxMTI0MTIxODM3WjAKBggqhkjOPQQDAgNHADBEAiBkMIKsH/eV\n\
JSbuvS6za9UFovetz0M7RIRutGnbzWNWfgIgXwiLY/0QWS48I9I3sHEYuwGXze8r\n\
4L0QgPyvoXEXTVE=\n\
-----END X509 CRL-----\n";

#[test]
fn other_files_are_refused_by_their_kind() {
    let authority = Authority::new("Clients");
    let issued = authority.issue(&wanted());
    let authorities =
        |file: &str| Trust::default().add_authorities(file.as_bytes()).expect_err("a fault").to_string();
    assert_eq!(
        authorities(&issued.key),
        "there is no section CERTIFICATE but PRIVATE KEY; it takes the certificates of authorities in PEM"
    );
    assert_eq!(authorities(""), "the authorities for clients cannot be read: it is empty");
    let nonsense = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
    let second = authorities(&(authority.pem() + nonsense));
    assert!(second.starts_with("certificate 2 of the file cannot be an authority for clients: "), "{second}");
    let lists = |file: &[u8]| Trust::default().add_crls(file).expect_err("a fault").to_string();
    assert_eq!(
        lists(authority.pem().as_bytes()),
        "there is no section X509 CRL but CERTIFICATE; it takes lists of revoked certificates in PEM or DER"
    );
    assert!(lists(b"0\0").starts_with("list 1 of revoked certificates cannot be used: "));
    assert_eq!(
        lists(OF_VERSION_1.as_bytes()),
        "list 1 of revoked certificates cannot be used: it is of version 1; `openssl ca -gencrl` writes version 2 if there is a `crlnumber` in its configuration"
    );
    let mut settings = settings(vec![authority.identity(&Wanted::default())]);
    settings.clients = ClientPolicy::Required(Trust::default());
    let error = Terms::new(settings).expect_err("nobody is trusted");
    assert_eq!(error, crate::TermsError::Clients(TrustError::Nobody));
}

#[test]
fn reasons_tell_no_certificate_from_a_bad_one() {
    let reason = |fault| SessionError::Client { fault, subject: None }.reason();
    assert_eq!(reason(ClientFault::Absent), Reason::NoClientCertificate);
    assert_eq!(reason(ClientFault::Expired), Reason::ClientCertificate);
}
