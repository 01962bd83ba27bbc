//! The settings of all orders at a directory, and the requests that follow from them.

use serde_json::{Map, Value, json};

use crate::account::{AccountKey, ExternalAccount};
use crate::challenge::ChallengeKind;
use crate::fault::{Fault, Kind};
use crate::identifier::Identifier;
use crate::messages::Directory;

/// The profile with which Let's Encrypt certifies addresses.
const PROFILE_OF_ADDRESSES: &str = "shortlived";

/// The settings of all orders at a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The URL of the directory.
    pub directory: String,
    /// The e-mail address of the account.
    pub contact: Option<String>,
    /// The account that the CA has given in another way.
    pub external_account: Option<ExternalAccount>,
    /// The profile of the certificates; `None`: the CA's default, and the one for addresses if the order has some.
    pub profile: Option<String>,
    /// The common name of the authority at the end of the chain, if the CA offers several chains.
    pub preferred_chain: Option<String>,
    /// The challenges that can be answered, the best first.
    pub challenges: Vec<ChallengeKind>,
}

impl Settings {
    pub(crate) fn account_payload(&self, key: &AccountKey, directory: &Directory) -> Result<Value, Fault> {
        let mut payload = Map::new();
        payload.insert("termsOfServiceAgreed".to_owned(), true.into());
        if let Some(contact) = &self.contact {
            payload.insert("contact".to_owned(), json!([format!("mailto:{contact}")]));
        }
        if let Some(external) = &self.external_account {
            let binding = external.bind(key, &directory.new_account);
            let binding =
                binding.ok_or_else(|| Fault::new(Kind::Account, "the key of the account cannot be read"))?;
            payload.insert("externalAccountBinding".to_owned(), binding);
        } else if directory.meta.external_account_required {
            let mut fault = Fault::new(Kind::Account, "accounts need a key that the CA has given before");
            fault.problem = Some("externalAccountRequired".to_owned());
            return Err(fault);
        }
        Ok(Value::Object(payload))
    }

    pub(crate) fn order_payload(
        &self,
        identifiers: &[Identifier],
        replaces: Option<&str>,
        directory: &Directory,
    ) -> Result<Value, Fault> {
        let named = |identifier: &Identifier| match identifier {
            Identifier::Dns(name) => json!({ "type": "dns", "value": name }),
            Identifier::Ip(address) => json!({ "type": "ip", "value": address.to_string() }),
        };
        let mut payload = Map::new();
        payload.insert("identifiers".to_owned(), identifiers.iter().map(named).collect());
        let profiles = &directory.meta.profiles;
        let has_address = identifiers.iter().any(|identifier| matches!(identifier, Identifier::Ip(_)));
        let of_addresses =
            || has_address.then_some(PROFILE_OF_ADDRESSES).filter(|name| profiles.contains_key(*name));
        match self.profile.as_deref() {
            Some(profile) if !profiles.contains_key(profile) => {
                let known: Vec<&str> = profiles.keys().map(String::as_str).take(20).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let mut fault =
                    Fault::new(Kind::Order, &format!("there is no profile {profile}; it has {known}"));
                fault.problem = Some("invalidProfile".to_owned());
                return Err(fault);
            }
            chosen => {
                if let Some(profile) = chosen.or_else(of_addresses) {
                    payload.insert("profile".to_owned(), profile.into());
                }
            }
        }
        // A CA without renewal information may not know the member.
        if let Some(replaces) = replaces.filter(|_| directory.renewal_info.is_some()) {
            payload.insert("replaces".to_owned(), replaces.into());
        }
        Ok(Value::Object(payload))
    }
}
