//! Certificates, and servers with TLS that are scripts.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64ct::{Base64, Encoding};
use maitred_client::blocking::{Body, Client, Request};
use maitred_client::exchange::{Reuse, Timeouts};
use maitred_client::key::{Authorities, Key, Pem, TlsIdentity};
use maitred_client::{CallError, Error, Settings, Times, pool};
use maitred_http::{FieldSet, Method};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyIdMethod,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

pub(super) const DAY: i64 = 24 * 60 * 60;

/// No test waits for so long.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) type Secured<S> = StreamOwned<ServerConnection, S>;

/// A key that signs certificates: rcgen's own needs a feature with further crates.
struct Signing {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

impl Signing {
    fn generate() -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random);
        let pkcs8 = made.expect("a key").as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &pkcs8).expect("a key");
        Self { pair, pkcs8 }
    }
}

impl rcgen::PublicKeyData for Signing {
    fn der_bytes(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Signing {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        let signature = self.pair.sign(&SystemRandom::new(), message);
        signature.map(|bytes| bytes.as_ref().to_vec()).map_err(|_| rcgen::Error::RemoteKeyError)
    }
}

pub(super) struct Authority(CertifiedIssuer<'static, Signing>);

/// A certificate and its key.
#[derive(Clone)]
pub(super) struct Issued {
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

/// The wanted properties of a certificate, times in seconds from now.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) names: &'a [&'a str],
    pub(super) common_name: &'a str,
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self { names: &["127.0.0.1", "server.example"], common_name: "a server", from: -DAY, until: DAY }
    }
}

fn params(names: &[&str], common_name: &str, signing: &Signing, from: i64, until: i64) -> CertificateParams {
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).expect("names");
    let mut number = signing.pair.public_key().as_ref()[2..18].to_vec();
    // Positive (RFC 5280 §4.1.2.2).
    number[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from(number.clone()));
    params.key_identifier_method = KeyIdMethod::PreSpecified(number);
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let at = |seconds: i64| {
        let at = now.cast_signed() + seconds;
        time::OffsetDateTime::from_unix_timestamp(at).expect("a time")
    };
    (params.not_before, params.not_after) = (at(from), at(until));
    params
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let signing = Signing::generate();
        let mut params = params(&[], name, &signing, -DAY, DAY);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, signing).expect("an authority"))
    }

    pub(super) fn issue(&self, wanted: Wanted<'_>) -> Issued {
        let signing = Signing::generate();
        let mut params = params(wanted.names, wanted.common_name, &signing, wanted.from, wanted.until);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&signing, &self.0).expect("a certificate");
        Issued { chain: vec![certificate.der().clone()], key: signing.pkcs8 }
    }

    pub(super) fn pem(&self) -> String {
        pem("CERTIFICATE", self.0.der())
    }

    /// An identity that trusts this authority.
    pub(super) fn trusting(&self) -> TlsIdentity {
        let authorities = Authorities::Pem(Pem(self.pem().into_bytes().into()));
        TlsIdentity { authorities, ..TlsIdentity::default() }
    }

    fn roots(&self) -> Arc<RootCertStore> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        Arc::new(roots)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", Base64::encode_string(der))
}

impl Issued {
    pub(super) fn certificate(&self) -> String {
        pem("CERTIFICATE", &self.chain[0])
    }

    pub(super) fn key(&self) -> String {
        pem("PRIVATE KEY", &self.key)
    }

    /// Settings of a server of these versions. `clients`: clients need a certificate of this authority.
    pub(super) fn server(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .expect("versions");
        let builder = match clients {
            Some(authority) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(authority.roots(), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
            None => builder.with_no_client_auth(),
        };
        let key = PrivatePkcs8KeyDer::from(self.key.clone()).into();
        Arc::new(builder.with_single_cert(self.chain.clone(), key).expect("a certificate"))
    }

    /// The same of all versions, for all clients.
    pub(super) fn plain_server(&self) -> Arc<ServerConfig> {
        self.server(rustls::ALL_VERSIONS, None)
    }
}

/// TLS over an accepted connection.
pub(super) fn secured<S: Read + Write>(stream: S, config: &Arc<ServerConfig>) -> Secured<S> {
    StreamOwned::new(ServerConnection::new(Arc::clone(config)).expect("a session"), stream)
}

/// The script of one connection.
pub(super) type Serve = Box<dyn FnOnce(TcpStream) + Send>;

pub(super) struct Server {
    pub(super) port: u16,
    thread: JoinHandle<()>,
}

impl Server {
    /// A server that gives each of its connections, in their order, to one of `connections`.
    pub(super) fn new(connections: Vec<Serve>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let thread = thread::spawn(move || {
            let served = connections.into_iter().map(|serve| {
                let stream = listener.accept().expect("a client").0;
                thread::spawn(move || serve(stream))
            });
            let served: Vec<_> = served.collect();
            served.into_iter().for_each(|thread| thread.join().expect("no panic"));
        });
        Self { port, thread }
    }

    /// The key of this server with TLS.
    pub(super) fn key(&self, identity: &TlsIdentity) -> Arc<Key> {
        Arc::new(Key { tls: Some(identity.clone()), ..Key::plain("127.0.0.1", self.port) })
    }

    /// All connections were served.
    pub(super) fn end(self) {
        self.thread.join().expect("no panic");
    }
}

/// Reads a head, up to its blank line; nothing of it if the peer has ended.
pub(super) fn head(stream: &mut impl Read) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return String::new(),
        }
    }
    String::from_utf8(head).expect("text")
}

/// Answers one request with this text, and waits for the end of the client.
pub(super) fn answer(stream: &mut (impl Read + Write), text: &str) {
    assert_ne!(head(stream), "");
    let length = text.len();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}").expect("a reader");
    stream.flush().expect("a reader");
}

/// Waits for the end of the client.
pub(super) fn drain(stream: &mut impl Read) {
    _ = std::io::copy(stream, &mut std::io::sink());
}

/// Answers the next request.
pub(super) fn good(config: &Arc<ServerConfig>) -> Serve {
    let config = Arc::clone(config);
    Box::new(move |stream| {
        let mut stream = secured(stream, &config);
        answer(&mut stream, "next");
        drain(&mut stream);
    })
}

pub(super) fn client(handshake: Duration) -> Client {
    let exchange = Timeouts { first_byte: Some(LONG), progress: Some(LONG), ..Timeouts::default() };
    let times = Times { slot: Some(LONG), connect: Some(handshake), tls: Some(handshake), exchange };
    let pool = pool::Settings { per_key: 1, idle: LONG, ..pool::Settings::default() };
    Client::new(Settings { pool, times, ..Settings::default() })
}

/// The result of a call in a line.
pub(super) fn get(client: &Client, key: &Arc<Key>) -> String {
    let request = Request {
        method: Method::Get,
        target: "/",
        authority: "server.example",
        fields: FieldSet::new(),
        body: Body::Bytes(b""),
        repeatable: None,
    };
    let called = client.send(key, request).and_then(|mut response| {
        let body = response.read_all(1 << 20)?;
        let reuse = match response.reuse() {
            Reuse::Yes(_) => "kept".to_owned(),
            Reuse::No(reason) => format!("{reason:?}"),
        };
        Ok(format!("{} {}, {reuse}", response.head().status.code(), String::from_utf8_lossy(&body)))
    });
    called.unwrap_or_else(|error| {
        let name = match &error {
            CallError::Exchange(Error::Tls(fault)) => fault.as_str().to_owned(),
            CallError::Exchange(Error::Proxy(fault)) => format!("{fault:?}"),
            CallError::Exchange(Error::Identity(text)) => text.to_string(),
            CallError::Exchange(error) => format!("{error:?}"),
            other => other.to_string(),
        };
        format!("{}: {name}", error.kind())
    })
}

/// A folder with these files.
pub(super) struct Files(tempfile::TempDir);

impl Files {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let this = Self(tempfile::tempdir().expect("a folder"));
        files.iter().for_each(|(name, content)| this.write(name, content));
        this
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).expect("a file");
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}
