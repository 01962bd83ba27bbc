//! The choice of the pool of a request: the rules of a server, in the order in which they are tried.
//!
//! Promises: no clock, no lock, no allocation for a request; the same request always finds the same pool. Leaves out:
//! pools (`dispatch`), and the place where rules are written (maitred-config).

use std::cmp::Reverse;
use std::fmt;
use std::net::IpAddr;

use maitred_http::{RequestHead, target};
use maitred_match::{Ambiguity, CertificatePattern, HeaderPattern, Network, PathPattern, RuleIndex, decide};

use crate::settings::{DEFAULT_POOL, PoolRule};

/// Map from requests to pools. Immutable: a change replaces the whole map.
///
/// Of the rules that a request meets, the most specific one decides. That is the first difference in this order:
///
/// 1. a host, before none;
/// 2. the path: one without `*`; then a pattern, with more bytes before its first `*`, then with more bytes that are
///    not `*`; then none;
/// 3. a method, before none;
/// 4. a header field: a value without `*`, then one with `*`; then none;
/// 5. a client: the longer prefix, so that an address comes before a network; then none;
/// 6. a certificate of the client: a name without `*`, then one with `*`; then none;
/// 7. the later rule.
#[derive(Clone, Debug, Default)]
pub struct PoolMap {
    /// The rules, the most specific one first.
    rules: Box<[Entry]>,
    index: RuleIndex,
}

#[derive(Clone, Debug)]
struct Entry {
    rule: PoolRule,
    pool: usize,
}

impl PoolMap {
    /// The map of `rules` for the pools with these `names`, in addition to the default pool, which is named
    /// [`DEFAULT_POOL`] and is not among them.
    ///
    /// # Errors
    /// A rule leads to a pool that does not exist; no map is made.
    pub fn new(names: &[&str], rules: &[PoolRule]) -> Result<Self, UnknownPool> {
        let entry = |(position, rule): (usize, &PoolRule)| {
            let pool = match names.iter().position(|name| *name == rule.pool) {
                Some(named) => named + 1,
                None if rule.pool == DEFAULT_POOL => 0,
                None => return Err(UnknownPool { rule: position + 1, pool: rule.pool.clone() }),
            };
            Ok(Entry { rule: rule.clone(), pool })
        };
        let mut entries = rules.iter().enumerate().map(entry).collect::<Result<Vec<_>, _>>()?;
        // The sort is stable: of two equal rules the later one has to stand first before it.
        entries.reverse();
        entries.sort_by_cached_key(|entry| Reverse(specificity(&entry.rule)));
        let index = RuleIndex::new(entries.iter().map(|entry| {
            let PoolRule { host, path, .. } = &entry.rule;
            (host.as_ref().map(|host| host.number), path.as_ref().and_then(PathPattern::first_segment))
        }));
        Ok(Self { rules: entries.into(), index })
    }

    /// Whether every request belongs to the default pool, so that no fact about a request is needed.
    pub fn is_trivial(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rules in the order in which they are tried.
    pub fn rules(&self) -> impl ExactSizeIterator<Item = &PoolRule> {
        self.rules.iter().map(|entry| &entry.rule)
    }

    /// The rule that decides on a request, as in [`find`](Self::find), and its position among all, from 1 on.
    pub fn find_rule(
        &self,
        head: &RequestHead,
        path: &[u8],
        client: Option<IpAddr>,
    ) -> Option<(usize, &PoolRule)> {
        let client = client.map(|client| client.to_canonical());
        (1..).zip(self.rules()).find(|(_, rule)| rule.is_met(head, path, client))
    }

    /// The pool of a request: 0 is the default pool, `i + 1` the pool with the name `names[i]`.
    ///
    /// `path` is the path without its query, in the form that [`normalise_decoded`](maitred_http::target::normalise_decoded) gives it.
    /// `client` is its client's address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn find(&self, head: &RequestHead, path: &[u8], client: Option<IpAddr>) -> usize {
        if self.is_trivial() {
            return 0;
        }
        let client = client.map(|client| client.to_canonical());
        let mut candidates = self.index.candidates(head.host, path).map(|place| &self.rules[place]);
        candidates.find(|entry| entry.rule.is_met(head, path, client)).map_or(0, |entry| entry.pool)
    }

    /// The ambiguity of a path as sent, if the choice of the pool depends on the reader of the path.
    pub fn ambiguity(&self, head: &RequestHead, client: Option<IpAddr>) -> Option<Ambiguity> {
        if target::is_plain(head.path()) {
            return None;
        }
        let canonical = client.map(|client| client.to_canonical());
        let asks = |rule: &PoolRule| rule.path.is_some() && rule.is_met_but_path(head, canonical);
        if !self.rules().any(asks) {
            return None;
        }
        decide(head.path(), &mut Vec::new(), |path| self.find(head, path, client)).err()
    }
}

impl PoolRule {
    /// Whether the rule has no condition, so that every request meets it.
    pub fn is_unconditional(&self) -> bool {
        self.host.is_none()
            && self.method.is_none()
            && self.path.is_none()
            && self.header.is_none()
            && self.client.is_none()
            && self.certificate.is_none()
    }

    /// Whether a request meets all conditions. The path is the one of [`PoolMap::find`], the client canonical.
    fn is_met(&self, head: &RequestHead, path: &[u8], client: Option<IpAddr>) -> bool {
        self.path.as_ref().is_none_or(|pattern| pattern.matches(path)) && self.is_met_but_path(head, client)
    }

    fn is_met_but_path(&self, head: &RequestHead, client: Option<IpAddr>) -> bool {
        self.host.as_ref().is_none_or(|host| host.number == head.host)
            && self.method.as_ref().is_none_or(|method| *method == head.method)
            && self
                .client
                .as_ref()
                .is_none_or(|network| client.is_some_and(|client| network.contains(client)))
            && self.header.as_ref().is_none_or(|pattern| pattern.matches(&head.fields))
            && self.certificate.as_ref().is_none_or(|pattern| pattern.matches(head.tls.as_deref()))
    }
}

/// Compares like the list of [`PoolMap`]: the greater rule is tried first.
fn specificity(rule: &PoolRule) -> impl Ord + use<> {
    (
        rule.host.is_some(),
        rule.path.as_ref().map(PathPattern::specificity),
        rule.method.is_some(),
        rule.header.as_ref().map(HeaderPattern::is_literal),
        rule.client.as_ref().map(Network::prefix),
        rule.certificate.as_ref().map(CertificatePattern::is_literal),
    )
}

/// Error: a rule leads to a pool that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPool {
    /// The position of the rule, from 1 on.
    pub rule: usize,
    /// The pool named by the rule.
    pub pool: String,
}

impl fmt::Display for UnknownPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} leads to the pool '{}', which does not exist", self.rule, self.pool)
    }
}

impl std::error::Error for UnknownPool {}
