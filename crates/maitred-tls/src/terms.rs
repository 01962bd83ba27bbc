//! The rules of a server's sessions: certificates, versions, clients, tickets.

use std::fmt;
use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::{ServerConfig, version};

use crate::clients::{self, ClientPolicy, TrustError};
use crate::clock::{Clock, Time};
use crate::handshake::Version;
use crate::hosts::{FindHost, HostClients};
use crate::identity::{Identity, IdentityInfo};
use crate::pem;
use crate::provider::provider;
use crate::resolver::{Resolver, UnknownName};
use crate::tickets::{Ticketer, Tickets};

/// How many tickets a client gets with a full handshake in TLS 1.3: browsers open two connections (RFC 8446 §C.4: a ticket is used once).
const TICKETS: usize = 2;

/// The rules of sessions. They are never changed: a reload puts others in their place, and sessions that are open go
/// on.
pub struct Terms {
    /// The rules for clients, those of the default host first; never empty.
    rules: Vec<ForClients>,
    /// The place of its rules by the number of a host. Hosts behind the end have the first ones.
    of_hosts: Vec<u16>,
    find: Option<FindHost>,
    pub(crate) clock: Clock,
    identities: Vec<IdentityInfo>,
    certificates: Vec<Arc<str>>,
    minimum: Version,
    has_addresses: bool,
}

struct ForClients {
    config: Arc<ServerConfig>,
    ticketer: Option<Arc<Ticketer>>,
    policy: ClientPolicy,
    generation: [u8; 32],
}

/// The certificate that clients are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clients {
    /// No certificate.
    NotAsked,
    /// A certificate, if they have one.
    Asked,
    /// A certificate.
    Required,
}

impl Clients {
    /// The request for certificates by these rules.
    pub const fn of(policy: &ClientPolicy) -> Self {
        match policy {
            ClientPolicy::None => Self::NotAsked,
            ClientPolicy::Optional(_) => Self::Asked,
            ClientPolicy::Required(_) => Self::Required,
        }
    }
}

/// The settings of [`Terms`].
#[derive(Debug)]
pub struct TermsSettings {
    /// The certificates, at least one. The first is the default; where two are for the same name, the one that comes
    /// first counts, ECDSA before RSA.
    pub identities: Vec<Identity>,
    /// The answer to a client that asks for an unknown name.
    pub unknown_name: UnknownName,
    /// Whether clients are asked for certificates.
    pub clients: ClientPolicy,
    /// Hosts that have other rules for that.
    pub hosts: HostClients,
    /// `None`: no session is resumed.
    pub tickets: Option<Tickets>,
    /// The oldest version that is allowed.
    pub minimum: Version,
    /// The protocols of this server, the preferred one first, such as `http/1.1`. A client that offers some and none of
    /// these is refused (RFC 7301 §3.2). Empty: none is agreed on with any client.
    pub alpn: Vec<Vec<u8>>,
    /// The clock for the dates of certificates and tickets.
    pub clock: Clock,
}

/// Why there are no terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermsError {
    /// No certificate was given.
    NoCertificate,
    /// A protocol name is empty or longer than 255 bytes.
    Alpn,
    /// The authorities for clients, or their lists of revoked certificates, cannot be used.
    Clients(TrustError),
    /// The library refuses something.
    Library(String),
}

impl fmt::Display for TermsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate => f.write_str("TLS takes at least one certificate"),
            Self::Alpn => f.write_str("the name of a protocol (ALPN) has 1 to 255 bytes"),
            Self::Clients(error) => error.fmt(f),
            Self::Library(error) => write!(f, "TLS cannot be set up: {error}"),
        }
    }
}

impl std::error::Error for TermsError {}

impl Terms {
    /// Checks the settings and makes the rules of them.
    ///
    /// # Errors
    /// When there is no certificate, or clients are asked for certificates that no authority can verify.
    pub fn new(settings: TermsSettings) -> Result<Arc<Self>, TermsError> {
        let TermsSettings { identities, unknown_name, clients, hosts, tickets, minimum, alpn, clock } =
            settings;
        if identities.is_empty() {
            return Err(TermsError::NoCertificate);
        }
        if alpn.iter().any(|name| name.is_empty() || name.len() > 255) {
            return Err(TermsError::Alpn);
        }
        let infos = identities.iter().map(|identity| identity.info().clone()).collect();
        let own =
            |identity: &Identity| identity.chain().next().map(|der| pem::encode("CERTIFICATE", der).into());
        let certificates = identities.iter().filter_map(own).collect();
        let has_addresses = identities.iter().any(Identity::has_address);
        let resolver = Arc::new(Resolver::new(identities, unknown_name, clock));
        let mut rules: Vec<ForClients> = Vec::with_capacity(1 + hosts.policies.len());
        // Rules that say the same are the same ones, wherever they are written.
        let mut numbers = Vec::with_capacity(1 + hosts.policies.len());
        for policy in std::iter::once(clients).chain(hosts.policies) {
            let generation = clients::generation(&policy);
            let number = rules.iter().position(|known| known.generation == generation);
            numbers.push(u16::try_from(number.unwrap_or(rules.len())).unwrap_or_default());
            if number.is_none() {
                let common = (Arc::clone(&resolver), minimum, alpn.clone(), clock);
                rules.push(ForClients::new(&policy, generation, common, tickets.clone())?);
            }
        }
        let number = |own: u16| numbers.get(usize::from(own)).copied().unwrap_or_default();
        let of_hosts = hosts.of_hosts.into_iter().map(number).collect();
        Ok(Arc::new(Self {
            rules,
            of_hosts,
            find: hosts.find,
            clock,
            identities: infos,
            certificates,
            minimum,
            has_addresses,
        }))
    }

    /// The rules for clients, each once, by number: those of the default host first.
    pub fn rules(&self) -> impl Iterator<Item = &ClientPolicy> {
        self.rules.iter().map(|rules| &rules.policy)
    }

    pub(crate) fn differ(&self) -> bool {
        self.rules.len() > 1
    }

    pub(crate) fn rules_for(&self, name: Option<&str>) -> u16 {
        let host = self.find.as_ref().and_then(|find| Some(find(name?)));
        self.rules_of(host.unwrap_or_default())
    }

    /// The number of the [rules](Self::rules) of the host with this number. A request for a host with other ones than those of its session gets 421.
    pub fn rules_of(&self, host: u16) -> u16 {
        self.of_hosts.get(usize::from(host)).copied().unwrap_or_default()
    }

    /// The settings of rustls for a connection. There are always rules with number 0.
    pub(crate) fn config(&self, rules: u16) -> Option<&Arc<ServerConfig>> {
        self.rules.get(usize::from(rules)).or(self.rules.first()).map(|rules| &rules.config)
    }

    /// The certificates, in the order of the settings.
    pub fn identities(&self) -> &[IdentityInfo] {
        &self.identities
    }

    pub(crate) fn certificate(&self, identity: usize) -> Arc<str> {
        self.certificates.get(identity).cloned().unwrap_or_default()
    }

    /// The certificate that clients of the default host are asked for.
    pub fn clients(&self) -> Clients {
        self.clients_of(0)
    }

    /// The certificate that clients of the host with this number are asked for.
    pub fn clients_of(&self, host: u16) -> Clients {
        let rules = self.rules.get(usize::from(self.rules_of(host)));
        rules.map_or(Clients::NotAsked, |rules| Clients::of(&rules.policy))
    }

    /// The oldest version that is allowed.
    pub fn minimum(&self) -> Version {
        self.minimum
    }

    /// Whether a certificate is for an address, so that the [address](crate::Session::at) of a connection says which is chosen.
    pub fn has_addresses(&self) -> bool {
        self.has_addresses
    }

    /// Whether sessions are resumed.
    pub fn has_tickets(&self) -> bool {
        self.ticketers().next().is_some()
    }

    /// Forgets ticket keys that are over. The next handshake does the same; calling this now and then forgets them also
    /// while there is none.
    pub fn forget_old_keys(&self) {
        self.ticketers().for_each(|ticketer| ticketer.forget_old_keys());
    }

    fn ticketers(&self) -> impl Iterator<Item = &Arc<Ticketer>> {
        self.rules.iter().filter_map(|rules| rules.ticketer.as_ref())
    }
}

impl ForClients {
    fn new(
        policy: &ClientPolicy,
        generation: [u8; 32],
        (resolver, minimum, alpn, clock): (Arc<Resolver>, Version, Vec<Vec<u8>>, Clock),
        tickets: Option<Tickets>,
    ) -> Result<Self, TermsError> {
        let versions: &[_] = match minimum {
            Version::V1_2 => &[&version::TLS13, &version::TLS12],
            Version::V1_3 => &[&version::TLS13],
        };
        let verifier = clients::verifier(policy).map_err(TermsError::Clients)?;
        let mut config = ServerConfig::builder_with_details(Arc::clone(provider()), Arc::new(Time(clock)))
            .with_protocol_versions(versions)
            .map_err(|error| TermsError::Library(error.to_string()))?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(resolver);
        config.alpn_protocols = alpn;
        // No memory of sessions: tickets only, so every worker can resume.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // An attacker can replay early data (RFC 8446 §8).
        config.max_early_data_size = 0;
        config.send_tls13_tickets = 0;
        let until = policy.trust().and_then(clients::Trust::until);
        let ticketer = tickets.map(|tickets| Arc::new(Ticketer::new(tickets, generation, until)));
        if let Some(ticketer) = &ticketer {
            config.ticketer = Arc::clone(ticketer) as _;
            config.send_tls13_tickets = TICKETS;
        }
        Ok(Self { config: Arc::new(config), ticketer, policy: policy.clone(), generation })
    }
}

/// The steps of sessions, for tests from outside.
#[doc(hidden)]
impl Terms {
    /// The ticket of a session with this state.
    pub fn seal_ticket(&self, state: &[u8]) -> Option<Vec<u8>> {
        self.ticketers().next()?.encrypt(state)
    }

    /// The state in a ticket. `None`: the ticket is none of ours, or too old.
    pub fn open_ticket(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.ticketers().next()?.decrypt(ticket)
    }
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terms")
            .field("identities", &self.identities)
            .field("clients", &self.clients())
            .field("minimum", &self.minimum)
            .finish_non_exhaustive()
    }
}
