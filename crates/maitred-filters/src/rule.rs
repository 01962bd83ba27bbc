//! A filter as it is configured: its conditions, and its effect on requests.

use std::net::IpAddr;

use maitred_http::{Method, RequestHead, Status};

use crate::access::Access;
use crate::basic::Authentication;
use crate::fields::FieldChanges;
use crate::statuses::Statuses;
use crate::template::{Redirect, Rewrite};
use maitred_match::{CertificatePattern, HeaderPattern, HostCondition, Network, PathPattern};

/// The effect on the requests that meet all of its conditions. A field that is `None` or empty leaves them alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterRule {
    /// The condition on requests.
    pub when: Condition,
    /// The clients that may ask.
    pub access: Option<Access>,
    /// Where they are sent instead.
    pub redirect: Option<Redirect>,
    /// The longest body in bytes, in the place of `Settings::max_body` of maitred-server.
    pub max_body: Option<u64>,
    /// Whether the body is read before the application runs, in the place of `ListenerSettings::read_ahead` of maitred-server.
    pub read_ahead: Option<bool>,
    /// Whether a user is asked for a password.
    pub authentication: Option<Authentication>,
    /// The path that everything behind the filters sees.
    pub rewrite: Option<Rewrite>,
    /// Changes of the request's fields.
    pub request: FieldChanges,
    /// Changes of the response's fields.
    pub response: FieldChanges,
    /// The responses that are changed; all of them unless given.
    pub response_status: Option<Statuses>,
}

impl FilterRule {
    /// Whether it changes fields of a response with this status.
    pub(crate) fn changes(&self, status: Status) -> bool {
        !self.response.is_empty()
            && self.response_status.as_ref().is_none_or(|statuses| statuses.contains(status))
    }
}

/// The facts about a client that conditions look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asker {
    /// The client's address, canonical; none without one.
    pub client: Option<IpAddr>,
    /// The request came by https.
    pub secure: bool,
}

/// The requests that a filter is for: those that meet all conditions it has, looked at as they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The virtual host.
    pub host: Option<HostCondition>,
    /// The path.
    pub path: Option<PathPattern>,
    /// The method. HEAD is not GET.
    pub method: Option<Method>,
    /// A header field.
    pub header: Option<HeaderPattern>,
    /// Where the peer's address is, as the connection has it.
    pub client: Option<Network>,
    /// The client's certificate.
    pub certificate: Option<CertificatePattern>,
    /// Whether the client came by https, to us or to a proxy that is believed.
    pub secure: Option<bool>,
}

impl Condition {
    /// Whether the rule holds for an answer to a request of which only the host and the scheme are known: it has no
    /// other condition.
    pub(crate) fn is_met_by(&self, host: u16, secure: bool) -> bool {
        let Self { host: of_host, secure: of_scheme, path, method, header, client, certificate } = self;
        let has_others = path.is_some()
            || method.is_some()
            || header.is_some()
            || client.is_some()
            || certificate.is_some();
        !has_others
            && of_host.as_ref().is_none_or(|of| of.number == host)
            && of_scheme.is_none_or(|of| of == secure)
    }

    /// Whether a request meets all conditions. The path is a reading of its own, the client canonical.
    pub(crate) fn is_met(&self, head: &RequestHead, path: &[u8], asker: Asker) -> bool {
        self.path.as_ref().is_none_or(|pattern| pattern.matches(path)) && self.is_met_but_path(head, asker)
    }

    pub(crate) fn is_met_but_path(&self, head: &RequestHead, asker: Asker) -> bool {
        self.host.as_ref().is_none_or(|host| host.number == head.host)
            && self.method.as_ref().is_none_or(|method| *method == head.method)
            && self
                .client
                .as_ref()
                .is_none_or(|network| asker.client.is_some_and(|client| network.contains(client)))
            && self.secure.is_none_or(|secure| secure == asker.secure)
            && self.header.as_ref().is_none_or(|pattern| pattern.matches(&head.fields))
            && self.certificate.as_ref().is_none_or(|pattern| pattern.matches(head.tls.as_deref()))
    }

    /// Whether there is a condition on the path, and no other one.
    pub(crate) fn asks_for_path_alone(&self) -> bool {
        self.path.is_some() && Self { path: None, ..self.clone() } == Self::default()
    }

    /// Compares like the list of `PoolMap` in maitred-server: greater is more specific.
    pub(crate) fn specificity(&self) -> impl Ord + use<> {
        (
            self.host.is_some(),
            self.path.as_ref().map(PathPattern::specificity),
            self.method.is_some(),
            self.header.as_ref().map(HeaderPattern::is_literal),
            self.client.as_ref().map(Network::prefix),
            self.certificate.as_ref().map(CertificatePattern::is_literal),
            self.secure.is_some(),
        )
    }
}
