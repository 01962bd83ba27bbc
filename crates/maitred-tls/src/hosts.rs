//! Rules for clients that differ from host to host: the name in the ClientHello (SNI) decides, which comes before the
//! request for a certificate. The protocols there tell a challenge of an authority.
//!
//! ```text
//! ClientHello --name--> host --its rules--> settings of rustls: verifier and keys of tickets
//! request ----name----> host --other rules than those of the session--> 421 (RFC 9110 §15.5.20), by maitred-server
//! ```
//! rustls takes its settings before it has read anything. So the first bytes are kept until they are a whole ClientHello, and are given to a connection with
//! the settings of its host then.

use std::fmt;
use std::sync::Arc;

use rustls::server::Acceptor;

use crate::challenges::PROTOCOL;
use crate::clients::ClientPolicy;
use crate::terms::Terms;

/// Finds the number of the host of a name; 0 is the default host.
pub type FindHost = Arc<dyn Fn(&str) -> u16 + Send + Sync>;

/// Hosts with rules for clients of their own. The default is none.
#[derive(Clone, Default)]
pub struct HostClients {
    /// The rules, each once.
    pub policies: Vec<ClientPolicy>,
    /// The number of the rules by the number of a host: 0 for the rules of [`TermsSettings`](crate::TermsSettings),
    /// else the number of its rules in `policies`, from 1 on. Hosts behind the end have 0.
    pub of_hosts: Vec<u16>,
    /// Finds the host of a name. `None`: all are the default host's.
    pub find: Option<FindHost>,
}

impl fmt::Debug for HostClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostClients").field("policies", &self.policies).finish_non_exhaustive()
    }
}

/// The rules for clients by which a session was made.
#[derive(Clone)]
pub struct Rules {
    terms: Arc<Terms>,
    number: u16,
}

impl Rules {
    pub(crate) fn new(terms: &Arc<Terms>, number: u16) -> Self {
        Self { terms: Arc::clone(terms), number }
    }

    /// Whether the host with this number has the same rules.
    pub fn are_those_of(&self, host: u16) -> bool {
        self.terms.rules_of(host) == self.number
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number && Arc::ptr_eq(&self.terms, &other.terms)
    }
}

impl Eq for Rules {}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.number).finish()
    }
}

/// The most bytes that are kept: a ClientHello of the greatest length that rustls takes, in records of half a KiB.
const MAX_KEPT: usize = 80 * 1024;

/// The first bytes of a peer, which are not a whole ClientHello yet.
pub(crate) struct Beginning {
    acceptor: Acceptor,
    kept: Vec<u8>,
}

pub(crate) enum Begun {
    Waits,
    /// The ClientHello is whole.
    Hello(Hello),
    /// The bytes are no ClientHello. The session that reads them reports the fault.
    Broken,
}

pub(crate) struct Hello {
    /// The server that the client names.
    pub(crate) name: Option<String>,
    /// The only protocol that the client offers is that of challenges (RFC 8737 §3).
    pub(crate) is_challenge: bool,
}

impl Beginning {
    pub(crate) fn new() -> Self {
        Self { acceptor: Acceptor::default(), kept: Vec::new() }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Begun {
        self.kept.extend_from_slice(bytes);
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.acceptor.read_tls(&mut rest) {
                Ok(1..) => {}
                _ => return Begun::Broken,
            }
            match self.acceptor.accept() {
                Ok(None) => {}
                Ok(Some(accepted)) => {
                    let hello = accepted.client_hello();
                    return Begun::Hello(Hello {
                        name: hello.server_name().map(str::to_owned),
                        is_challenge: hello.alpn().is_some_and(|offered| offered.eq([PROTOCOL])),
                    });
                }
                Err(_) => return Begun::Broken,
            }
        }
        if self.kept.len() > MAX_KEPT { Begun::Broken } else { Begun::Waits }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.kept
    }
}
