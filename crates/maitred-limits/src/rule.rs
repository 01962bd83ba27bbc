//! The rules that end peers, or refuse their requests: their names, and how often each was applied.

use maitred_http::Peer;
use maitred_stats::exposition::series;
use maitred_stats::{Arena, Counters};

use maitred_log::Log;

/// A rule, called as its option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The head of a request took too long.
    HeadTimeout,
    /// No byte of a request body came for too long.
    BodyTimeout,
    /// No byte of a response was taken for too long.
    SendTimeout,
    /// A request body came too slowly.
    MinRateIn,
    /// A response was taken too slowly.
    MinRateOut,
    /// A client has too many connections.
    ClientConnections,
    /// A client makes too many requests.
    ClientRate,
    /// Connections hold more memory than they may.
    BufferBudget,
    /// No byte of a response was taken for as long as the response itself has said.
    OwnSendTimeout,
    /// A TLS handshake took too long.
    HandshakeTimeout,
    /// A client begins too many TLS handshakes.
    HandshakeRate,
    /// Heads of requests hold more memory than they may.
    HeadBudget,
    /// A client has sent a wrong name or password.
    WrongPassword,
    /// Too many passwords of a client wait to be checked.
    PasswordShare,
    /// Too many passwords of all clients do.
    PasswordQueue,
    /// A client has shown the admin listener a wrong token.
    WrongToken,
    /// No byte of a response was taken while requests waited for the thread that makes it.
    HeldThread,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::HeadTimeout,
        Self::BodyTimeout,
        Self::SendTimeout,
        Self::MinRateIn,
        Self::MinRateOut,
        Self::ClientConnections,
        Self::ClientRate,
        Self::BufferBudget,
        Self::OwnSendTimeout,
        Self::HandshakeTimeout,
        Self::HandshakeRate,
        Self::HeadBudget,
        Self::WrongPassword,
        Self::PasswordShare,
        Self::PasswordQueue,
        Self::WrongToken,
        Self::HeldThread,
    ];

    /// The name in figures: that of the option, unless several rules have one.
    pub fn name(self) -> &'static str {
        match self {
            Self::SendTimeout => "body-timeout-out",
            Self::OwnSendTimeout => "own-send-timeout",
            Self::WrongPassword => "wrong-password",
            Self::PasswordShare => "password-share",
            Self::PasswordQueue => "password-queue",
            Self::WrongToken => "wrong-token",
            Self::HeldThread => "held-thread",
            other => other.option().trim_start_matches('-'),
        }
    }

    /// Where it is set: an option, or a field of the response.
    fn option(self) -> &'static str {
        match self {
            Self::HeadTimeout => "--head-timeout",
            Self::BodyTimeout | Self::SendTimeout => "--body-timeout",
            Self::MinRateIn => "--min-rate-in",
            Self::MinRateOut => "--min-rate-out",
            Self::ClientConnections => "--client-connections",
            Self::ClientRate => "--client-rate",
            Self::BufferBudget => "--buffer-budget",
            Self::OwnSendTimeout => "Maitred-Send-Timeout",
            Self::HandshakeTimeout => "--tls-handshake-timeout",
            Self::HandshakeRate => "--tls-handshake-rate",
            Self::HeadBudget => "--head-budget",
            Self::WrongPassword | Self::PasswordShare | Self::PasswordQueue => "basic-auth",
            Self::WrongToken => "--admin-token-file",
            Self::HeldThread => "--max-threads",
        }
    }

    /// The peer's behaviour, and the server's reaction.
    fn sentence(self) -> &'static str {
        match self {
            Self::HeadTimeout => "a request head was not complete in time; 408 and closed",
            Self::BodyTimeout => "a request body stood still; 408 and closed",
            Self::SendTimeout | Self::OwnSendTimeout => "nothing was taken of a response; closed",
            Self::MinRateIn => "a request body came too slowly; 408 and closed",
            Self::MinRateOut => "a response was taken too slowly; closed",
            Self::ClientConnections => "too many connections; closed",
            Self::ClientRate => "too many requests; 429",
            Self::HandshakeTimeout => "a TLS handshake was not complete in time; closed",
            Self::HandshakeRate => "too many TLS handshakes; closed",
            Self::BufferBudget => "a request while connections hold more than they may; 503 and closed",
            Self::HeadBudget => "requests while heads hold more than they may; refused",
            Self::WrongPassword => "a wrong name or password; 401",
            Self::PasswordShare => "too many of its passwords wait to be checked; 429",
            Self::PasswordQueue => "too many passwords of all clients wait to be checked; 503",
            Self::WrongToken => "a wrong token at the admin listener; 401",
            Self::HeldThread => {
                "nothing was taken of a response while requests waited for its thread; closed"
            }
        }
    }
}

/// How often each rule was applied.
#[derive(Default)]
pub struct Applied(Counters<{ Rule::ALL.len() }>);

/// How often each rule was applied, by its name.
pub const RULES_TOTAL: &str = "maitred_rules_applied_total";

impl Applied {
    /// Counters in memory in which other processes find them.
    pub(crate) fn in_arena(arena: &Arena) -> Self {
        Self(Counters::in_arena(arena, Rule::ALL.map(|rule| series(RULES_TOTAL, &[("rule", rule.name())]))))
    }

    /// A rule is applied to a peer. The line is the same for all connections of an address, so that the log folds them.
    pub fn note(&self, rule: Rule, peer: Peer, log: &Log) {
        self.0.add(rule as usize, 1);
        let peer = peer.without_port();
        log.warn(format_args!("{peer}: {} ({})", rule.sentence(), rule.option()));
    }

    /// How often one was applied.
    pub fn total(&self, rule: Rule) -> u64 {
        self.0.total(rule as usize)
    }

    /// Names and counts.
    pub fn totals(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Rule::ALL.into_iter().map(|rule| (rule.name(), self.0.total(rule as usize)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_counted_each_by_its_own_name() {
        for (position, rule) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, position);
            assert!(Rule::ALL[..position].iter().all(|other| other.name() != rule.name()), "{rule:?}");
        }
    }
}
