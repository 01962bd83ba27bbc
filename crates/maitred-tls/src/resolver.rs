//! The choice of a client's certificate: by the name that it asks for, and by the signatures that it can verify.

use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::clock::Clock;
use crate::identity::Identity;
use crate::names::Names;
use crate::noted::{RefusedName, note};

/// The answer to a client that asks for a name without a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownName {
    /// The first certificate.
    #[default]
    Default,
    /// The alert `unrecognized_name` (RFC 6066 §3); `missing_extension` (RFC 8446 §9.2) for a client that asks for no name, where no certificate
    /// is for an address.
    Refuse,
}

/// The longest name that is shown in an error, in bytes: the longest name of a host.
const MAX_SHOWN: usize = 253;

#[derive(Debug)]
pub(crate) struct Resolver {
    identities: Vec<Identity>,
    names: Names,
    unknown: Option<Vec<usize>>,
    nameless: Option<Vec<usize>>,
    clock: Clock,
}

impl Resolver {
    /// `identities` is not empty.
    pub(crate) fn new(identities: Vec<Identity>, unknown: UnknownName, clock: Clock) -> Self {
        // Where a name has several certificates, the ones that cost less come first, in their order otherwise.
        let mut order: Vec<usize> = (0..identities.len()).collect();
        order.sort_by_key(|&number| identities.get(number).is_some_and(Identity::is_rsa));
        let mut names = Names::default();
        for &number in &order {
            let Some(identity) = identities.get(number) else { continue };
            for name in &identity.info.names {
                if identity.told.is_empty() {
                    names.certify(name, number);
                } else {
                    names.tell(name, number);
                }
            }
        }
        // The first, and the certificates for the same names with another kind of key.
        let like = |number: usize| -> Vec<usize> {
            let named = |number: usize| identities.get(number).map(|identity| &identity.info.names);
            order.iter().copied().filter(|&other| other == number || named(other) == named(number)).collect()
        };
        let unknown = (unknown == UnknownName::Default).then(|| like(0));
        // Clients that connect to an address name no server, and behind NAT the address of the connection is another one.
        let nameless =
            identities.iter().position(Identity::has_address).map(like).or_else(|| unknown.clone());
        Self { identities, names, unknown, nameless, clock }
    }

    fn choose(
        &self,
        name: Option<&str>,
        can_verify: impl Fn(&CertifiedKey) -> bool,
    ) -> Result<usize, RefusedName> {
        let candidates = match name {
            Some(name) => match self.names.find(name) {
                Some(found) => found,
                None => self.unknown.as_deref().ok_or_else(|| RefusedName::Unknown(shown(name)))?,
            },
            None => {
                let address = note(|noted| noted.address).map(|address| address.to_string());
                let own = address.and_then(|address| self.names.find(&address));
                own.or(self.nameless.as_deref()).ok_or(RefusedName::Missing)?
            }
        };
        let usable = |number: &&usize| {
            self.identities.get(**number).is_some_and(|identity| can_verify(&identity.plain))
        };
        // Where the client can use none, rustls says so.
        candidates.iter().find(usable).or(candidates.first()).copied().ok_or(RefusedName::Missing)
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // In TLS 1.2 rustls leaves those schemes only for which there is a cipher suite, too.
        let can_verify = |key: &CertifiedKey| key.key.choose_scheme(hello.signature_schemes()).is_some();
        match self.choose(hello.server_name(), can_verify) {
            Ok(number) => {
                note(|noted| noted.identity = Some(number));
                let identity = self.identities.get(number)?;
                if let (Some(hearer), Some(name)) = (&identity.hearer, hello.server_name()) {
                    (hearer.0)(name);
                }
                Some(Arc::clone(identity.at((self.clock)())))
            }
            Err(refused) => {
                note(|noted| noted.refused = Some(refused));
                None
            }
        }
    }
}

fn shown(name: &str) -> Box<str> {
    name.chars().take(MAX_SHOWN).flat_map(char::escape_default).collect::<String>().into()
}
