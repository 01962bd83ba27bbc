//! Counts of TLS handshakes.

use maitred_stats::exposition::{Metric, series};
use maitred_stats::{Arena, Counters};
use maitred_tls::{Handshake, Reason, SessionError, Version};

use super::rows::{self, Row};

/// Completed handshakes, by version and kind.
const HANDSHAKES_TOTAL: &str = "maitred_tls_handshakes_total";
/// Completed handshakes by cipher suite.
const SUITES_TOTAL: &str = "maitred_tls_suites_total";
/// Completed handshakes by group of the key exchange.
const GROUPS_TOTAL: &str = "maitred_tls_groups_total";
/// Connections without a completed handshake, by reason.
const FAILURES_TOTAL: &str = "maitred_tls_failures_total";

const VERSIONS: [&str; 2] = ["1.2", "1.3"];
/// Full; full after the client was asked for another group; resumed.
const KINDS: [&str; 3] = ["full", "retried", "resumed"];
/// Suites that can be agreed on; the last entry stands for all others.
const SUITES: [&str; 10] = [
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
    "other",
];
/// Groups; the last entry stands for resumption by TLS 1.2, which exchanges no keys again.
const GROUPS: [&str; 6] = ["X25519MLKEM768", "X25519", "secp256r1", "secp384r1", "other", "none"];
/// Further reasons beside those of sessions: HTTP without TLS, and a peer that has left.
const PLAIN_HTTP: &str = "plain-http";
const LEFT: &str = "left";
const REASONS: usize = Reason::ALL.len() + 2;

/// The counters.
pub struct Handshakes {
    done: Counters<{ VERSIONS.len() * KINDS.len() }>,
    suites: Counters<{ SUITES.len() }>,
    groups: Counters<{ GROUPS.len() }>,
    failed: Counters<REASONS>,
}

impl Handshakes {
    /// Counters in this memory.
    pub fn new(arena: &Arena) -> Self {
        Self {
            done: Counters::in_arena(arena, std::array::from_fn(|at| series(HANDSHAKES_TOTAL, &of_done(at)))),
            suites: Counters::in_arena(arena, SUITES.map(|suite| series(SUITES_TOTAL, &[("suite", suite)]))),
            groups: Counters::in_arena(arena, GROUPS.map(|group| series(GROUPS_TOTAL, &[("group", group)]))),
            failed: Counters::in_arena(
                arena,
                std::array::from_fn(|at| series(FAILURES_TOTAL, &[("reason", reason(at))])),
            ),
        }
    }

    /// Counts a completed handshake.
    pub fn note(&self, handshake: &Handshake) {
        let version = usize::from(handshake.version == Version::V1_3);
        let kind = match (handshake.resumed, handshake.retried) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => 0,
        };
        self.done.add(version * KINDS.len() + kind, 1);
        let place = |known: &[&str], name: &str, other: usize| {
            known.iter().position(|known| *known == name).unwrap_or(other)
        };
        self.suites.add(place(&SUITES, handshake.suite.name, SUITES.len() - 1), 1);
        let group = handshake.group.map_or(GROUPS.len() - 1, |group| place(&GROUPS, group, GROUPS.len() - 2));
        self.groups.add(group, 1);
    }

    /// Counts a failed handshake.
    pub fn note_failed(&self, error: &SessionError) {
        let reason = error.reason();
        let place = Reason::ALL.iter().position(|known| *known == reason);
        self.failed.add(place.unwrap_or(Reason::ALL.len() - 1), 1);
    }

    /// Counts a peer that speaks HTTP without TLS.
    pub fn note_plain_http(&self) {
        self.failed.add(Reason::ALL.len(), 1);
    }

    /// Counts a peer that has left before the end.
    pub fn note_left(&self) {
        self.failed.add(Reason::ALL.len() + 1, 1);
    }

    fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        let done = (0..VERSIONS.len() * KINDS.len())
            .map(|at| (HANDSHAKES_TOTAL, of_done(at).to_vec(), self.done.total(at)));
        let suites =
            (0..SUITES.len()).map(|at| (SUITES_TOTAL, vec![("suite", SUITES[at])], self.suites.total(at)));
        let groups =
            (0..GROUPS.len()).map(|at| (GROUPS_TOTAL, vec![("group", GROUPS[at])], self.groups.total(at)));
        let failed =
            (0..REASONS).map(|at| (FAILURES_TOTAL, vec![("reason", reason(at))], self.failed.total(at)));
        done.chain(suites).chain(groups).chain(failed)
    }

    /// Counts above zero, by series, for the control.
    pub fn totals(&self) -> Vec<(String, u64)> {
        rows::totals(self.rows())
    }

    /// Calls `show` with all counts as figures.
    pub fn with_metrics(&self, show: impl FnOnce(&[Metric<'_>])) {
        rows::with_metrics(self.rows(), help, show);
    }
}

fn of_done(at: usize) -> [(&'static str, &'static str); 2] {
    [("version", VERSIONS[at / KINDS.len()]), ("kind", KINDS[at % KINDS.len()])]
}

fn reason(at: usize) -> &'static str {
    match Reason::ALL.get(at) {
        Some(reason) => reason.as_str(),
        None if at == Reason::ALL.len() => PLAIN_HTTP,
        None => LEFT,
    }
}

fn help(name: &str) -> &'static str {
    match name {
        HANDSHAKES_TOTAL => "TLS handshakes completed.",
        SUITES_TOTAL => "TLS handshakes completed, by cipher suite.",
        GROUPS_TOTAL => "TLS handshakes completed, by group of the exchange of keys.",
        _ => "Connections without a complete TLS handshake, by why.",
    }
}
