//! A CA in memory: it verifies each signature, nonce and request for a certificate, and can be told to behave badly.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED, EcdsaKeyPair, KeyPair,
    UnparsedPublicKey,
};
use base64ct::{Base64UrlUnpadded, Encoding};
use maitred_tls::ClientIdentity;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    PKCS_ECDSA_P256_SHA256, PublicKeyData, SerialNumber, SignatureAlgorithm,
};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{
    Account, Challenge, ChallengeKind, Fault, HttpRequest, HttpResponse, Identifier, Issued, Method,
    Ordering, Settings, Step,
};

pub(super) const DIRECTORY: &str = "https://ca.example/directory";
pub(super) const NOW: u64 = 1_800_000_000;
pub(super) const DAY: u64 = 24 * 60 * 60;

/// An answer in place of the CA's own one; by the path, and how often that was asked before.
type Script = Box<dyn FnMut(&str, usize) -> Option<HttpResponse>>;

pub(super) struct Authority {
    pub(super) script: Script,
    pub(super) directory: Value,
    pub(super) kinds: Vec<&'static str>,
    pub(super) external: Option<Vec<u8>>,
    /// Every so many nonces is refused.
    pub(super) refuse_nonce: Option<usize>,
    /// Answers have no nonce but those that were asked for one.
    pub(super) spares_nonces: bool,
    /// How often an authorisation or an order is in work before it is done.
    pub(super) slow: usize,
    pub(super) retry_after: Option<String>,
    pub(super) valid_from: u64,
    pub(super) valid_days: u64,
    /// Certificates are for these names instead.
    pub(super) wrong_names: Option<Vec<String>>,
    pub(super) wrong_key: bool,
    /// Common names of the authorities at the end of the chains.
    pub(super) roots: Vec<&'static str>,
    /// The answers to challenges that are published now, by their tokens.
    pub(super) published: BTreeMap<String, Challenge>,
    /// Method and path of every request.
    pub(super) log: Vec<String>,
    pub(super) payloads: BTreeMap<String, Value>,
    pub(super) accounts: BTreeMap<String, Vec<u8>>,
    nonces: BTreeSet<String>,
    made: usize,
    orders: Vec<Placed>,
    asked: BTreeMap<String, usize>,
}

#[derive(Default)]
struct Placed {
    identifiers: Vec<Identifier>,
    done: Vec<bool>,
    failed: Option<usize>,
    left: usize,
    request: Option<Vec<u8>>,
}

impl Authority {
    pub(super) fn new() -> Self {
        let url = |path: &str| format!("https://ca.example/{path}");
        Self {
            script: Box::new(|_, _| None),
            directory: json!({
                "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("order"),
                "renewalInfo": url("renewal/"),
                "meta": { "profiles": { "classic": "usual", "shortlived": "six days" } },
                "kvwuGWfPzHs": "https://community.example/random-entry",
            }),
            kinds: vec!["http-01", "tls-alpn-01", "dns-01"],
            external: None,
            refuse_nonce: None,
            spares_nonces: false,
            slow: 0,
            retry_after: None,
            valid_from: NOW - 3600,
            valid_days: 90,
            wrong_names: None,
            wrong_key: false,
            roots: vec!["Root One"],
            published: BTreeMap::new(),
            log: Vec::new(),
            payloads: BTreeMap::new(),
            accounts: BTreeMap::new(),
            nonces: BTreeSet::new(),
            made: 0,
            orders: Vec::new(),
            asked: BTreeMap::new(),
        }
    }

    pub(super) fn answer(&mut self, request: &HttpRequest) -> HttpResponse {
        let Some(path) = request.url.strip_prefix("https://ca.example/").map(str::to_owned) else {
            return HttpResponse { status: 404, ..HttpResponse::default() };
        };
        self.log.push(format!("{:?} {path}", request.method));
        assert_eq!(request.content_type.is_some(), request.method == Method::Post);
        let asked = self.asked.entry(path.clone()).or_default();
        *asked += 1;
        let scripted = (self.script)(&path, *asked - 1);
        let mut response = match scripted {
            Some(response) => response,
            None => match request.method {
                Method::Get if path == "directory" => document(200, &self.directory),
                Method::Get => document(404, &json!({})),
                Method::Head => document(200, &json!({})),
                Method::Post => self.posted(request, &path),
            },
        };
        let has_nonce =
            request.method == Method::Head || request.method == Method::Post && !self.spares_nonces;
        if has_nonce && response.nonce.is_none() {
            self.made += 1;
            let nonce = format!("nonce-{}", self.made);
            self.nonces.insert(nonce.clone());
            response.nonce = Some(nonce);
        }
        response
    }

    fn posted(&mut self, request: &HttpRequest, path: &str) -> HttpResponse {
        assert_eq!(request.content_type, Some("application/jose+json"));
        let jws: Value = serde_json::from_slice(&request.body).expect("JSON");
        let protected: Value = serde_json::from_slice(&decode(&jws["protected"])).expect("JSON");
        assert_eq!(protected["alg"], "ES256");
        assert_eq!(protected["url"], request.url.as_str());
        let nonce = protected["nonce"].as_str().expect("a nonce");
        assert!(self.nonces.remove(nonce), "{nonce} is used twice");
        if self.refuse_nonce.is_some_and(|every| self.log.len().is_multiple_of(every)) {
            return problem(400, "badNonce", "no such nonce");
        }
        let public = match (path, protected["kid"].as_str()) {
            ("account", None) => point(&protected["jwk"]),
            (_, Some(account)) if path != "account" => match self.accounts.get(account) {
                Some(public) => public.clone(),
                None => return problem(400, "accountDoesNotExist", "no such account"),
            },
            _ => return problem(403, "unauthorized", "no account"),
        };
        verify(&public, &jws);
        let payload = match jws["payload"].as_str() {
            Some("") => Value::Null,
            _ => serde_json::from_slice(&decode(&jws["payload"])).expect("JSON"),
        };
        self.payloads.insert(path.to_owned(), payload.clone());
        let parts: Vec<&str> = path.split('/').collect();
        let number = |index: usize| parts.get(index).and_then(|part| part.parse::<usize>().ok());
        let order = number(1).filter(|order| *order < self.orders.len());
        let name = number(2).filter(|name| order.is_some_and(|order| *name < self.orders[order].done.len()));
        match (parts.as_slice(), order, name) {
            (["account"], ..) => self.account(&protected, &payload, public),
            (["order"], ..) => self.place(&payload),
            (["order", _], Some(order), _) => self.order(order),
            (["authorization", ..], Some(order), Some(name)) => self.authorization(order, name),
            (["challenge", _, _, kind], Some(order), Some(name)) => {
                self.challenge(order, name, kind, &public)
            }
            (["finalize", _], Some(order), _) => self.finalize(order, &payload),
            (["certificate", _, root], Some(order), _)
                if root.parse::<usize>().is_ok_and(|root| root < self.roots.len()) =>
            {
                self.certificate(order, root.parse().expect("a number"))
            }
            _ => problem(404, "malformed", "no such page"),
        }
    }

    fn account(&mut self, protected: &Value, payload: &Value, public: Vec<u8>) -> HttpResponse {
        assert_eq!(payload["termsOfServiceAgreed"], true);
        if let Some(secret) = &self.external {
            let binding = &payload["externalAccountBinding"];
            let header: Value = serde_json::from_slice(&decode(&binding["protected"])).expect("JSON");
            assert_eq!(header, json!({ "alg": "HS256", "kid": "customer", "url": protected["url"] }));
            let bound: Value = serde_json::from_slice(&decode(&binding["payload"])).expect("JSON");
            assert_eq!(bound, protected["jwk"]);
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            hmac::verify(&key, &signed(binding), &decode(&binding["signature"])).expect("the right key");
        }
        let known = self.accounts.iter().find(|(_, other)| **other == public).map(|(url, _)| url.clone());
        let status = if known.is_some() { 200 } else { 201 };
        let url = known.unwrap_or_else(|| format!("https://ca.example/accounts/{}", self.accounts.len()));
        self.accounts.insert(url.clone(), public);
        let mut response = document(status, &json!({ "status": "valid" }));
        response.location = Some(url);
        response
    }

    fn place(&mut self, payload: &Value) -> HttpResponse {
        let names = payload["identifiers"].as_array().expect("a list");
        let identifiers: Vec<Identifier> = names
            .iter()
            .map(|name| name["value"].as_str().expect("a name").parse().expect("a name"))
            .collect();
        let done = vec![false; identifiers.len()];
        self.orders.push(Placed { identifiers, done, left: self.slow, ..Placed::default() });
        let number = self.orders.len() - 1;
        let mut response = self.order(number);
        response.status = 201;
        response.location = Some(format!("https://ca.example/order/{number}"));
        response
    }

    fn order(&mut self, number: usize) -> HttpResponse {
        let order = &mut self.orders[number];
        let is_ready = order.done.iter().all(|done| *done);
        let status = match (&order.request, is_ready) {
            (Some(_), _) if order.left == 0 => "valid",
            (Some(_), _) => {
                order.left -= 1;
                "processing"
            }
            (None, true) => "ready",
            (None, false) => "pending",
        };
        let authorizations: Vec<String> = (0..order.done.len())
            .map(|index| format!("https://ca.example/authorization/{number}/{index}"))
            .collect();
        let mut body = json!({
            "status": status, "authorizations": authorizations, "finalize": format!("https://ca.example/finalize/{number}"),
        });
        if status == "valid" {
            body["certificate"] = format!("https://ca.example/certificate/{number}/0").into();
        }
        self.waiting(document(200, &body))
    }

    fn authorization(&mut self, number: usize, index: usize) -> HttpResponse {
        let order = &mut self.orders[number];
        let identifier = order.identifiers[index].checked();
        let is_pattern = identifier != order.identifiers[index];
        let status = match (order.failed == Some(index), order.done[index]) {
            (true, _) => "invalid",
            (_, true) if order.left == 0 => "valid",
            (_, true) => {
                order.left -= 1;
                "pending"
            }
            _ => "pending",
        };
        let offers: Vec<Value> = self
            .kinds
            .iter()
            .filter(|kind| !is_pattern || **kind == "dns-01")
            .map(|kind| {
                let mut offer = json!({
                    "type": kind, "status": status, "token": format!("token_{number}-{index}-{kind}"),
                    "url": format!("https://ca.example/challenge/{number}/{index}/{kind}"),
                });
                if status == "invalid" {
                    offer["error"] = json!({
                        "type": "urn:ietf:params:acme:error:unauthorized",
                        "detail": "192.0.2.7: Invalid response\r\nfrom \u{1b}[31mhttp://shop.example: 404",
                    });
                }
                offer
            })
            .collect();
        let kind = if matches!(identifier, Identifier::Ip(_)) { "ip" } else { "dns" };
        let mut body = json!({
            "status": status, "identifier": { "type": kind, "value": identifier.to_string() }, "challenges": offers,
        });
        if is_pattern {
            body["wildcard"] = true.into();
        }
        self.waiting(document(200, &body))
    }

    fn challenge(&mut self, number: usize, index: usize, kind: &str, public: &[u8]) -> HttpResponse {
        let token = format!("token_{number}-{index}-{kind}");
        let jwk = format!(
            r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#,
            encode(&public[1..33]),
            encode(&public[33..])
        );
        let wanted = format!("{token}.{}", encode(digest(&SHA256, jwk.as_bytes()).as_ref()));
        let order = &mut self.orders[number];
        let is_right = self.published.get(&token).is_some_and(|challenge| {
            challenge.key_authorization == wanted
                && challenge.kind.as_str() == kind
                && challenge.identifier == order.identifiers[index].checked()
        });
        if is_right {
            order.done[index] = true;
        } else {
            order.failed = Some(index);
        }
        self.waiting(document(200, &json!({ "status": "pending", "url": "", "type": kind })))
    }

    fn finalize(&mut self, number: usize, payload: &Value) -> HttpResponse {
        let order = &mut self.orders[number];
        assert!(order.done.iter().all(|done| *done));
        order.left = self.slow;
        order.request = Some(decode(&payload["csr"]));
        self.order(number)
    }

    fn certificate(&mut self, number: usize, root: usize) -> HttpResponse {
        let order = &self.orders[number];
        let request = order.request.as_ref().expect("a request");
        let names = order.identifiers.iter().map(ToString::to_string).collect();
        let mut public = requested_key(request, &order.identifiers);
        if self.wrong_key {
            public = Key::new().public();
        }
        let pem = self.issue(&public, self.wrong_names.clone().unwrap_or(names), self.roots[root]);
        let mut response = HttpResponse { status: 200, body: pem.into_bytes(), ..HttpResponse::default() };
        let others = (0..self.roots.len()).filter(|other| *other != root);
        response.links = others
            .map(|other| format!("<https://ca.example/certificate/{number}/{other}>;rel=\"alternate\""))
            .collect();
        response.links.push("<https://ca.example/directory>;rel=\"index\"".to_owned());
        response
    }

    /// A certificate, and that of the authority between it and `root`.
    pub(super) fn issue(&self, public: &[u8], names: Vec<String>, root: &str) -> String {
        let key = Key::new();
        let authority = |name: &str| {
            let mut params = CertificateParams::new(Vec::new()).expect("no names");
            params.distinguished_name = DistinguishedName::new();
            params.distinguished_name.push(DnType::OrganizationName, "Root Two");
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.serial_number = Some(SerialNumber::from(vec![1]));
            params
        };
        let (root, between) = (authority(root), authority("Between"));
        let root = Issuer::from_params(&root, &key);
        let intermediate = between.signed_by(&key, &root).expect("a certificate");
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name = DistinguishedName::new();
        let date = |seconds: u64| OffsetDateTime::from_unix_timestamp(seconds as i64).expect("a date");
        params.not_before = date(self.valid_from);
        params.not_after = date(self.valid_from + self.valid_days * DAY);
        params.serial_number = Some(SerialNumber::from(vec![0x87, 0x65, 0x43, 0x21]));
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let own = params
            .signed_by(&Public(public.to_vec()), &Issuer::from_params(&between, &key))
            .expect("a certificate");
        let chain = vec![own.der().as_ref().into(), intermediate.der().as_ref().into()];
        ClientIdentity::new(chain).expect("certificates").chain_pem()
    }

    fn waiting(&self, mut response: HttpResponse) -> HttpResponse {
        response.retry_after.clone_from(&self.retry_after);
        response
    }
}

/// The key of a request for a certificate, whose signature is right, which has these names and an empty subject.
fn requested_key(request: &[u8], identifiers: &[Identifier]) -> Vec<u8> {
    let (whole, _) = value(request);
    let (info, rest) = value(whole);
    let (_, signature) = value(rest);
    let (signature, _) = value(signature);
    let signed = &whole[..whole.len() - rest.len()];
    let (_, fields) = value(info);
    let (subject, fields) = value(fields);
    assert!(subject.is_empty());
    let (key, _) = value(fields);
    let (_, bits) = value(key);
    let public = value(bits).0[1..].to_vec();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &public)
        .verify(signed, &signature[1..])
        .expect("the right key");
    for identifier in identifiers {
        let wanted = match identifier {
            Identifier::Dns(name) => name.as_bytes().to_vec(),
            Identifier::Ip(IpAddr::V4(address)) => address.octets().to_vec(),
            Identifier::Ip(IpAddr::V6(address)) => address.octets().to_vec(),
        };
        assert!(info.windows(wanted.len()).any(|window| window == wanted), "{identifier}");
    }
    public
}

/// The content of the first value in DER, and the bytes behind it.
fn value(der: &[u8]) -> (&[u8], &[u8]) {
    let (length, start) = match der[1] {
        0x81 => (usize::from(der[2]), 3),
        0x82 => (usize::from(der[2]) << 8 | usize::from(der[3]), 4),
        length => (usize::from(length), 2),
    };
    (&der[start..start + length], &der[start + length..])
}

fn point(jwk: &Value) -> Vec<u8> {
    assert_eq!((&jwk["kty"], &jwk["crv"]), (&json!("EC"), &json!("P-256")));
    [vec![4], decode(&jwk["x"]), decode(&jwk["y"])].concat()
}

fn verify(public: &[u8], jws: &Value) {
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public);
    key.verify(&signed(jws), &decode(&jws["signature"])).expect("the signature of the account");
}

fn signed(jws: &Value) -> Vec<u8> {
    let part = |name: &str| jws[name].as_str().expect("text");
    format!("{}.{}", part("protected"), part("payload")).into_bytes()
}

fn decode(text: &Value) -> Vec<u8> {
    Base64UrlUnpadded::decode_vec(text.as_str().expect("text")).expect("base64url")
}

fn encode(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

pub(super) fn document(status: u16, body: &Value) -> HttpResponse {
    HttpResponse { status, body: body.to_string().into_bytes(), ..HttpResponse::default() }
}

pub(super) fn problem(status: u16, word: &str, detail: &str) -> HttpResponse {
    document(status, &json!({ "type": format!("urn:ietf:params:acme:error:{word}"), "detail": detail }))
}

/// A key of the CA, or of another server.
pub(super) struct Key(EcdsaKeyPair, Vec<u8>);

impl Key {
    pub(super) fn new() -> Self {
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new())
            .expect("a key");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref()).expect("a key");
        let public = key.public_key().as_ref().to_vec();
        Self(key, public)
    }

    pub(super) fn public(&self) -> Vec<u8> {
        self.1.clone()
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

pub(super) fn settings() -> Settings {
    Settings {
        directory: DIRECTORY.to_owned(),
        contact: Some("ada@shop.example".to_owned()),
        external_account: None,
        profile: None,
        preferred_chain: None,
        challenges: vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01],
    }
}

pub(super) fn ordering(settings: &Settings, names: &[&str]) -> Ordering {
    Ordering::new(settings, account(), identifiers(names), None, 0)
}

pub(super) fn account() -> Account {
    Account::generate(DIRECTORY).expect("random numbers")
}

pub(super) fn identifiers(names: &[&str]) -> Vec<Identifier> {
    names.iter().map(|name| name.parse().expect("a name")).collect()
}

/// Does every step until the end. Returns the seconds that the order has waited, too.
pub(super) fn finish(ordering: &mut Ordering, authority: &mut Authority) -> (Result<Issued, Fault>, u64) {
    let mut now = NOW;
    let end = loop {
        match ordering.next(now) {
            Step::Send(request) => ordering.answered(authority.answer(&request)),
            Step::Publish(challenge) => {
                assert!(authority.published.insert(challenge.token.clone(), challenge).is_none());
            }
            Step::Withdraw(challenge) => {
                assert_eq!(authority.published.remove(&challenge.token), Some(challenge));
            }
            Step::Wait(time) => now += time.as_secs(),
            Step::Issued(issued) => break Ok(*issued),
            Step::Failed(fault) => break Err(*fault),
        }
        assert!(authority.log.len() <= 3000, "the order does not end");
    };
    assert!(authority.published.is_empty(), "a challenge is left: {:?}", authority.published);
    (end, now - NOW)
}
