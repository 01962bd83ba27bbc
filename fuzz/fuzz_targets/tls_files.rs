//! Files with certificates, keys, lists of revoked certificates and OCSP responses. Input: a file, and the same bytes as a client's certificate.
//!
//! Accepted files are the same when they are written and read again; an error has one line; no name has a control
//! character.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use maitred_tls::{CertificateInfo, ClientIdentity, Identity, Trust};

fuzz_target!(|input: &[u8]| {
    match Identity::from_pem(input, input) {
        Ok(identity) => check_identity(&identity),
        Err(error) => one_line(&error),
    }
    let mut trust = Trust::default();
    for result in [trust.add_authorities(input), trust.add_crls(input)] {
        if let Err(error) = result {
            one_line(&error);
        }
    }
    trust.authorities().iter().for_each(check_certificate);
    for list in trust.crls() {
        no_control(&list.issuer);
    }
    assert!(trust.until().is_none() == trust.crls().is_empty());
    if let Err(error) = development().clone().with_ocsp(input.to_vec()) {
        one_line(&error);
    }
    if let Some(client) = ClientIdentity::new(vec![input.into()]) {
        check_client(&client);
    }
});

fn check_identity(identity: &Identity) {
    let info = identity.info();
    check_certificate(&info.certificate);
    assert_eq!(identity.chain().count(), info.chain);
    for name in &info.names {
        assert!(!name.bytes().any(|byte| byte.is_ascii_uppercase()), "{name}");
    }
    info.warnings(1_800_000_000).iter().for_each(|warning| assert!(!warning.is_empty()));
    let chain: Vec<Box<[u8]>> = identity.chain().map(Into::into).collect();
    let client = ClientIdentity::new(chain.clone()).expect("it was read before");
    check_client(&client);
    let mut trust = Trust::default();
    if trust.add_authorities(client.chain_pem().as_bytes()).is_ok() {
        assert_eq!(trust.authorities()[0], info.certificate);
        assert_eq!(trust.authorities().len(), chain.len());
    }
}

fn check_client(client: &ClientIdentity) {
    check_certificate(&client.certificate);
    client.names.iter().for_each(|name| no_control(&name.to_string()));
    assert!(client.chain_pem().starts_with(&client.pem()));
}

fn check_certificate(certificate: &CertificateInfo) {
    no_control(&certificate.subject);
    no_control(&certificate.issuer);
    assert!(certificate.fingerprint.len() == 64);
    assert!(certificate.serial.bytes().all(|byte| byte.is_ascii_hexdigit()));
}

fn no_control(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

fn one_line(error: &dyn std::fmt::Display) {
    let text = error.to_string();
    assert!(!text.is_empty());
    no_control(&text);
}

fn development() -> &'static Identity {
    static IDENTITY: OnceLock<Identity> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        Identity::development(&["localhost".to_owned()], || 1_800_000_000).expect("a certificate").0
    })
}
