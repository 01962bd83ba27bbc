//! Authorities, certificates, and a client in memory.

use std::sync::Arc;

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyUsagePurpose, RevocationReason, RevokedCertParams,
    SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use time::OffsetDateTime;

use crate::clock::Time;
use crate::key::Key;
use crate::pem;
use crate::{
    ClientPolicy, HostClients, Identity, Session, SessionError, Terms, TermsSettings, UnknownName, Version,
};

/// January 2027.
pub(crate) const NOW: u64 = 1_800_000_000;

pub(crate) const DAY: u64 = 24 * 60 * 60;

pub(crate) fn now() -> u64 {
    NOW
}

pub(crate) fn time(seconds: u64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).expect("small")).expect("a time")
}

pub(crate) struct Authority(pub(crate) CertifiedIssuer<'static, Key>);

/// A certificate and its key, both PEM, and both DER.
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: CertificateDer<'static>,
    pub(crate) key_der: PrivateKeyDer<'static>,
}

/// The wanted properties of a certificate.
pub(crate) struct Wanted<'a> {
    pub(crate) names: &'a [&'a str],
    pub(crate) common_name: &'a str,
    pub(crate) is_rsa: bool,
    pub(crate) usage: ExtendedKeyUsagePurpose,
    pub(crate) from: u64,
    pub(crate) until: u64,
    pub(crate) serial: u64,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self {
            names: &["shop.example"],
            common_name: "a server",
            is_rsa: false,
            usage: ExtendedKeyUsagePurpose::ServerAuth,
            from: NOW - DAY,
            until: NOW + 30 * DAY,
            serial: 0x00c0_ffee,
        }
    }
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = Key::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(authority_params(name, &key), key).expect("an authority"))
    }

    /// An authority below this one.
    pub(crate) fn intermediate(&self, name: &str) -> Self {
        let key = Key::generate().expect("a key");
        Self(CertifiedIssuer::signed_by(authority_params(name, &key), key, &self.0).expect("an authority"))
    }

    pub(crate) fn pem(&self) -> String {
        pem::encode("CERTIFICATE", self.0.der())
    }

    pub(crate) fn issue(&self, wanted: &Wanted<'_>) -> Issued {
        let key = if wanted.is_rsa { rsa_key() } else { Key::generate().expect("a key") };
        let mut params =
            CertificateParams::new(wanted.names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .expect("names");
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::OrganizationName, "Shop");
        params.distinguished_name.push(DnType::CommonName, wanted.common_name);
        params.not_before = time(wanted.from);
        params.not_after = time(wanted.until);
        params.serial_number = Some(SerialNumber::from(wanted.serial));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![wanted.usage.clone()];
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Issued {
            certificate: pem::encode("CERTIFICATE", certificate.der()),
            key: key.pem(),
            der: certificate.der().clone(),
            key_der: key.der,
        }
    }

    /// A list of revoked certificates, in PEM.
    pub(crate) fn crl(&self, until: u64, revoked: Vec<SerialNumber>) -> Vec<u8> {
        let revoked = revoked.into_iter().map(|serial_number| RevokedCertParams {
            serial_number,
            revocation_time: time(NOW - DAY),
            reason_code: Some(RevocationReason::KeyCompromise),
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: time(NOW - DAY),
            next_update: time(until),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::PreSpecified(self.0.key().short_digest()),
        };
        let list = params.signed_by(&self.0).expect("a list");
        pem::encode("X509 CRL", list.der()).into_bytes()
    }

    pub(crate) fn identity(&self, wanted: &Wanted<'_>) -> Identity {
        self.issue(wanted).identity()
    }
}

fn rsa_key() -> Key {
    let key = rsa::KeyPair::generate(rsa::KeySize::Rsa2048).expect("a key");
    let pkcs8: Pkcs8V1Der<'_> = key.as_der().expect("a key");
    Key::new(pkcs8.as_ref()).expect("a key")
}

fn authority_params(name: &str, key: &Key) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.serial_number = Some(key.serial());
    params.key_identifier_method = KeyIdMethod::PreSpecified(key.short_digest());
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = time(NOW - 100 * DAY);
    params.not_after = time(NOW + 1000 * DAY);
    params
}

impl Issued {
    pub(crate) fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).expect("an identity")
    }
}

/// Settings that ask for nothing special.
pub(crate) fn settings(identities: Vec<Identity>) -> TermsSettings {
    TermsSettings {
        identities,
        unknown_name: UnknownName::Default,
        clients: ClientPolicy::None,
        hosts: HostClients::default(),
        tickets: None,
        minimum: Version::V1_2,
        alpn: vec![b"http/1.1".to_vec()],
        clock: now,
    }
}

/// The wanted properties of a client.
pub(crate) struct Client {
    /// `None`: both.
    pub(crate) version: Option<Version>,
    pub(crate) alpn: &'static [&'static str],
    pub(crate) provider: rustls::crypto::CryptoProvider,
    pub(crate) identity: Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>,
    pub(crate) roots: RootCertStore,
}

impl Client {
    pub(crate) fn trusting(authority: &Authority) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(authority.0.der().clone()).expect("a root");
        Self {
            version: None,
            alpn: &["http/1.1"],
            provider: rustls::crypto::aws_lc_rs::default_provider(),
            identity: None,
            roots,
        }
    }

    pub(crate) fn config(self) -> Arc<ClientConfig> {
        let versions: &[_] = match self.version {
            Some(Version::V1_2) => &[&TLS12],
            Some(Version::V1_3) => &[&TLS13],
            None => &[&TLS13, &TLS12],
        };
        let builder = ClientConfig::builder_with_details(Arc::new(self.provider), Arc::new(Time(now)))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(self.roots);
        let mut config = match self.identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).expect("a certificate"),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = self.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// The result of a handshake.
pub(crate) struct Met {
    pub(crate) server: Session,
    pub(crate) client: ClientConnection,
    pub(crate) server_result: Result<(), SessionError>,
    pub(crate) client_result: Result<(), rustls::Error>,
}

impl Met {
    pub(crate) fn expect(self) -> Self {
        assert_eq!((&self.server_result, &self.client_result), (&Ok(()), &Ok(())));
        self
    }
}

pub(crate) fn meet(terms: &Arc<Terms>, config: &Arc<ClientConfig>, name: &str) -> Met {
    let server = Session::new(terms).expect("a session");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let client = ClientConnection::new(Arc::clone(config), name).expect("a client");
    let mut met = Met { server, client, server_result: Ok(()), client_result: Ok(()) };
    pump(&mut met);
    met
}

/// Carries bytes in both directions until no more come.
pub(crate) fn pump(met: &mut Met) {
    loop {
        let mut to_server = Vec::new();
        while met.client.wants_write() {
            met.client.write_tls(&mut to_server).expect("memory");
        }
        if !to_server.is_empty() && met.server_result.is_ok() {
            met.server_result = met.server.feed(&to_server).map(|taken| assert_eq!(taken, to_server.len()));
        }
        let to_client = unsent(&mut met.server);
        let mut rest = &to_client[..];
        while !rest.is_empty() && met.client_result.is_ok() {
            met.client.read_tls(&mut rest).expect("memory");
            met.client_result = met.client.process_new_packets().map(|_| ());
        }
        if to_server.is_empty() && to_client.is_empty() {
            return;
        }
    }
}

/// The bytes that the server has to send.
pub(crate) fn unsent(server: &mut Session) -> Vec<u8> {
    let mut sent = Vec::new();
    let taken = server
        .send_unsent(&mut |parts| {
            let before = sent.len();
            parts.iter().for_each(|part| sent.extend_from_slice(part));
            Ok(sent.len() - before)
        })
        .expect("memory");
    assert_eq!(taken, sent.len());
    assert!(!server.has_unsent());
    sent
}
