//! A certificate authority in memory that believes every signature, and asks for one file by HTTP-01.

use std::collections::BTreeSet;
use std::path::Path;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64ct::{Base64UrlUnpadded, Encoding};
use maitred_acme::{HttpRequest, HttpResponse, Method};
use maitred_tls::ClientIdentity;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, SerialNumber, SignatureAlgorithm,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

pub(super) const DIRECTORY: &str = "https://ca.example/directory";
const DAY: u64 = 24 * 60 * 60;

/// The end of the DER of a key on P-256 before its point (RFC 5480 §2).
const BEFORE_POINT: [u8; 10] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42];

#[derive(Default)]
pub(super) struct Authority {
    /// Names that are refused.
    pub(super) refused: BTreeSet<String>,
    /// The problem of these, if not `rejectedIdentifier`.
    pub(super) problem: Option<&'static str>,
    /// The name of each order.
    pub(super) orders: Vec<String>,
    /// Kinds of challenges that are offered, if not HTTP-01.
    pub(super) kind: Option<&'static str>,
    requests: Vec<Vec<u8>>,
    valid: BTreeSet<usize>,
}

impl Authority {
    /// Answers a request at this time. `files` is the folder of the answers to HTTP-01.
    pub(super) fn answer(&mut self, request: &HttpRequest, files: &Path, now: u64) -> HttpResponse {
        let path = request.url.strip_prefix("https://ca.example/").expect("a page of the authority");
        let parts: Vec<&str> = path.split('/').collect();
        let number = parts.get(1).and_then(|part| part.parse::<usize>().ok()).unwrap_or_default();
        let mut response = match (request.method, parts[0]) {
            (Method::Get, "directory") => document(200, &directory()),
            (Method::Get, _) => document(404, &json!({})),
            (_, "nonce") => document(200, &json!({})),
            (_, "account") => document(201, &json!({ "status": "valid" })),
            (_, "new") => self.place(&payload(request)),
            (_, "order") => document(200, &self.order(number)),
            (_, "name") => self.name(number),
            (_, "challenge") => {
                let is_there = self.kind.is_none() && files.join(format!("token_{number}")).is_file();
                if is_there {
                    self.valid.insert(number);
                }
                document(200, &json!({ "status": "processing" }))
            }
            (_, "finalize") => {
                let request = payload(request)["csr"].as_str().map(Base64UrlUnpadded::decode_vec);
                self.requests[number] = request.expect("a request").expect("base64url");
                document(200, &self.order(number))
            }
            (_, "certificate") => HttpResponse {
                body: issue(&self.requests[number], &self.orders[number], now).into_bytes(),
                ..document(200, &Value::Null)
            },
            (_, other) => panic!("{other}"),
        };
        response.nonce = Some("nonce".to_owned());
        response.location = response.location.or_else(|| Some("https://ca.example/account/1".to_owned()));
        response
    }

    fn place(&mut self, payload: &Value) -> HttpResponse {
        let name = payload["identifiers"][0]["value"].as_str().expect("a name").to_owned();
        let is_refused = self.refused.contains(&name);
        self.orders.push(name);
        self.requests.push(Vec::new());
        if is_refused {
            let word = self.problem.unwrap_or("rejectedIdentifier");
            let kind = format!("urn:ietf:params:acme:error:{word}");
            return document(400, &json!({ "type": kind, "detail": "not this one" }));
        }
        let number = self.orders.len() - 1;
        let location = Some(format!("https://ca.example/order/{number}"));
        HttpResponse { location, ..document(201, &self.order(number)) }
    }

    fn order(&self, number: usize) -> Value {
        let status = match (self.valid.contains(&number), self.requests[number].is_empty()) {
            (false, _) => "pending",
            (true, true) => "ready",
            (true, false) => "valid",
        };
        json!({
            "status": status,
            "authorizations": [format!("https://ca.example/name/{number}")],
            "finalize": format!("https://ca.example/finalize/{number}"),
            "certificate": format!("https://ca.example/certificate/{number}"),
        })
    }

    fn name(&self, number: usize) -> HttpResponse {
        let name = self.orders[number].trim_start_matches("*.");
        let status = if self.valid.contains(&number) { "valid" } else { "pending" };
        let body = json!({
            "status": status,
            "wildcard": self.orders[number].starts_with("*."),
            "identifier": { "type": "dns", "value": name },
            "challenges": [{
                "type": self.kind.unwrap_or("http-01"),
                "token": format!("token_{number}"),
                "url": format!("https://ca.example/challenge/{number}"),
            }],
        });
        document(200, &body)
    }
}

fn directory() -> Value {
    let url = |path: &str| format!("https://ca.example/{path}");
    json!({ "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("new") })
}

fn document(status: u16, body: &Value) -> HttpResponse {
    HttpResponse { status, body: body.to_string().into_bytes(), ..HttpResponse::default() }
}

fn payload(request: &HttpRequest) -> Value {
    let jws: Value = serde_json::from_slice(&request.body).expect("JSON");
    let payload = jws["payload"].as_str().map(Base64UrlUnpadded::decode_vec);
    serde_json::from_slice(&payload.expect("a payload").expect("base64url")).expect("JSON")
}

/// A certificate of 90 days for the key of a request, with that of the authority behind it.
fn issue(request: &[u8], name: &str, now: u64) -> String {
    let at =
        request.windows(BEFORE_POINT.len()).position(|part| part == BEFORE_POINT).expect("a key on P-256");
    let point = &request[at + BEFORE_POINT.len() + 1..][..65];
    let key = Key::new();
    let mut authority = CertificateParams::new(Vec::new()).expect("no names");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.serial_number = Some(SerialNumber::from(vec![1]));
    let issuer = Issuer::from_params(&authority, &key);
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
    let date = |seconds: u64| OffsetDateTime::from_unix_timestamp(seconds as i64).expect("a date");
    params.not_before = date(now - 3600);
    params.not_after = date(now - 3600 + 90 * DAY);
    params.serial_number = Some(SerialNumber::from(now));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let own = params.signed_by(&Public(point.to_vec()), &issuer).expect("a certificate");
    let above = authority.self_signed(&key).expect("a certificate");
    let chain = vec![own.der().as_ref().into(), above.der().as_ref().into()];
    ClientIdentity::new(chain).expect("certificates").chain_pem()
}

struct Key(EcdsaKeyPair, Vec<u8>);

impl Key {
    fn new() -> Self {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).expect("a key");
        let public = key.public_key().as_ref().to_vec();
        Self(key, public)
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        &self.1
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.0.sign(&SystemRandom::new(), message).expect("a signature").as_ref().to_vec())
    }
}

struct Public(Vec<u8>);

impl PublicKeyData for Public {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}
