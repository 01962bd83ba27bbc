//! An account at a CA, and signed requests (JWS, RFC 7515, by ES256; the CA's own account by HS256).

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use base64ct::{Base64UrlUnpadded, Encoding};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An account at the CA of one directory. It is kept as JSON, readable for the server only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The URL of the directory.
    pub directory: String,
    /// The URL of the account; `None`: the CA does not know it yet, or this machine does not.
    pub url: Option<String>,
    /// The key.
    pub key: AccountKey,
}

/// The key of an account: ECDSA on P-256. As text it is PKCS#8 in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AccountKey(Vec<u8>);

/// An account that the CA has given to its customer in another way (RFC 8555 §7.3.4).
#[derive(Clone, PartialEq, Eq)]
pub struct ExternalAccount {
    /// The identifier of the key.
    pub kid: String,
    /// The key.
    pub hmac: Vec<u8>,
}

impl Account {
    /// A new account, with a new key. `None`: the system has no random numbers.
    pub fn generate(directory: &str) -> Option<Self> {
        let key =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).ok()?;
        Some(Self { directory: directory.to_owned(), url: None, key: AccountKey(key.as_ref().to_vec()) })
    }
}

impl AccountKey {
    fn pair(&self) -> Option<EcdsaKeyPair> {
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &self.0).ok()
    }

    /// The public key as a JWK, its members in the order of their names (RFC 7638 §3).
    fn jwk(&self) -> Option<Value> {
        let pair = self.pair()?;
        // 4, then x and y (SEC 1 §2.3.3).
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        Some(json!({ "crv": "P-256", "kty": "EC", "x": base64url(x), "y": base64url(y) }))
    }

    /// The text that answers a challenge (RFC 8555 §8.1).
    pub(crate) fn authorize(&self, token: &str) -> Option<String> {
        let jwk = self.jwk()?;
        let member = |name: &str| jwk.get(name).and_then(Value::as_str).unwrap_or_default();
        // By hand: whether a map keeps the order is a feature of serde_json.
        let text = format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, member("x"), member("y"));
        Some(format!("{token}.{}", base64url(digest(&SHA256, text.as_bytes()).as_ref())))
    }

    /// A signed request to `url`. Without the URL of an account it has the public key instead. `None` as the payload asks for a document
    /// (POST-as-GET).
    pub(crate) fn sign(
        &self,
        account: Option<&str>,
        url: &str,
        nonce: &str,
        payload: Option<&Value>,
    ) -> Option<Vec<u8>> {
        let protected = match account {
            Some(account) => json!({ "alg": "ES256", "nonce": nonce, "url": url, "kid": account }),
            None => json!({ "alg": "ES256", "nonce": nonce, "url": url, "jwk": self.jwk()? }),
        };
        let signing =
            |input: &[u8]| Some(self.pair()?.sign(&SystemRandom::new(), input).ok()?.as_ref().to_vec());
        signed(&protected, payload, signing).map(|jws| jws.to_string().into_bytes())
    }
}

impl ExternalAccount {
    /// Reads `KID:HMAC`, the latter in base64url, as CAs show it. `None`: it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let (kid, hmac) = text.trim().rsplit_once(':')?;
        let hmac = hmac.trim_end_matches('=').replace('+', "-").replace('/', "_");
        let hmac = Base64UrlUnpadded::decode_vec(&hmac).ok().filter(|key| !key.is_empty())?;
        (!kid.is_empty()).then(|| Self { kid: kid.to_owned(), hmac })
    }

    /// The binding of the account with this key, for the request to `url`.
    pub(crate) fn bind(&self, key: &AccountKey, url: &str) -> Option<Value> {
        let protected = json!({ "alg": "HS256", "kid": self.kid, "url": url });
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.hmac);
        signed(&protected, Some(&key.jwk()?), |input| Some(hmac::sign(&secret, input).as_ref().to_vec()))
    }
}

fn signed(
    protected: &Value,
    payload: Option<&Value>,
    sign: impl FnOnce(&[u8]) -> Option<Vec<u8>>,
) -> Option<Value> {
    let protected = base64url(protected.to_string().as_bytes());
    let payload = payload.map(|payload| base64url(payload.to_string().as_bytes())).unwrap_or_default();
    let signature = base64url(&sign(format!("{protected}.{payload}").as_bytes())?);
    Some(json!({ "protected": protected, "payload": payload, "signature": signature }))
}

pub(crate) fn base64url(bytes: &[u8]) -> String {
    Base64UrlUnpadded::encode_string(bytes)
}

impl TryFrom<String> for AccountKey {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let key = Base64UrlUnpadded::decode_vec(&text).map(Self).map_err(|_| "the key is not base64url")?;
        key.pair().is_some().then_some(key).ok_or("the key is no ECDSA key on P-256 in PKCS#8")
    }
}

impl From<AccountKey> for String {
    fn from(key: AccountKey) -> Self {
        base64url(&key.0)
    }
}

impl fmt::Debug for AccountKey {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountKey")
    }
}

impl fmt::Debug for ExternalAccount {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalAccount").field("kid", &self.kid).finish_non_exhaustive()
    }
}
