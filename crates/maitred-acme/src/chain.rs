//! A certificate as a CA has given it: whether it is the one that was ordered.

use maitred_tls::{ClientIdentity, Identity};
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Kind};
use crate::identifier::Identifier;

/// The longest chain, in certificates.
const MAX_CHAIN: usize = 10;

/// The certificate that is in use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its name in renewal information (RFC 9773 §4.1); `None`: it has none.
    pub id: Option<String>,
    /// The start of its validity, in seconds since 1970.
    pub not_before: u64,
    /// The end of its validity, in seconds since 1970.
    pub not_after: u64,
}

/// Checks the certificate at the front of `chain` (PEM) before it replaces another one: the key belongs to it, it is for servers and
/// these names, has not expired, and each certificate behind it has issued the one before. A start in the future passes: the
/// clock of this machine is wrong then, and the clients' are not.
///
/// # Errors
/// The first of these that is not so.
pub fn check_chain(chain: &[u8], key: &[u8], identifiers: &[Identifier], now: u64) -> Result<Held, Fault> {
    Chain::check(chain, key, identifiers, now).map(|chain| chain.held)
}

/// A checked chain.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    pub(crate) held: Held,
    /// The certificates alone, whatever stood between them.
    pub(crate) pem: String,
    /// The issuer of the last certificate, by RFC 4514.
    issuer: String,
}

impl Chain {
    pub(crate) fn check(
        chain: &[u8],
        key: &[u8],
        identifiers: &[Identifier],
        now: u64,
    ) -> Result<Self, Fault> {
        let refused = |why: &str| Fault::new(Kind::Chain, &format!("the new certificate is not used: {why}"));
        let identity = Identity::from_pem(chain, key).map_err(|error| refused(&error.to_string()))?;
        let info = identity.info();
        let certificate = &info.certificate;
        let names: Vec<Identifier> = certificate.names.iter().filter_map(|name| name.parse().ok()).collect();
        if let Some(missing) = identifiers.iter().find(|wanted| !names.contains(wanted)) {
            return Err(refused("the name is not in it").of(missing));
        }
        if !certificate.is_for_servers {
            return Err(refused("it is not for servers"));
        }
        if info.chain > MAX_CHAIN {
            return Err(refused(&format!("its chain has {} certificates", info.chain)));
        }
        if let Some(gap) = info.chain_gap {
            return Err(refused(&format!("certificate {gap} of its chain was not issued by the next one")));
        }
        if now >= certificate.not_after {
            return Err(Fault::new(
                Kind::Clock,
                "the new certificate has expired already by the clock of this machine",
            ));
        }
        let held = Held {
            id: certificate.renewal_id.clone(),
            not_before: certificate.not_before,
            not_after: certificate.not_after,
        };
        let ders: Vec<Box<[u8]>> = identity.chain().map(Into::into).collect();
        let issuer = ders.last().and_then(|last| ClientIdentity::new(vec![last.clone()]));
        let issuer = issuer.map(|last| last.certificate.issuer).unwrap_or_default();
        let pem = ClientIdentity::new(ders).map(|chain| chain.chain_pem()).unwrap_or_default();
        Ok(Self { held, pem, issuer })
    }

    /// Whether its top is the authority with this common name.
    pub(crate) fn ends_at(&self, name: &str) -> bool {
        let mut attributes = self.issuer.split([',', '+']);
        attributes.any(|part| part.strip_prefix("CN=").is_some_and(|own| own.eq_ignore_ascii_case(name)))
    }
}

impl Held {
    pub(crate) fn life(&self) -> u64 {
        self.not_after.saturating_sub(self.not_before)
    }

    /// A sentence about the clock, if the certificate is not valid yet.
    pub fn warning(&self, now: u64) -> Option<&'static str> {
        (now < self.not_before)
            .then_some("the certificate is not valid yet: the clock of this machine is slow")
    }
}
