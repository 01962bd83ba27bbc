//! Certificates by ACME (RFC 8555, addresses by RFC 8738, renewal information by RFC 9773).
//!
//! Promises: no socket, no file, no thread and no clock, and no panic with any answer of a CA. An [`Ordering`] is one
//! certificate, from the directory to the checked chain; its caller does one [`Step`] after the other. A [`Schedule`]
//! says when the certificate of a name is ordered, and never lets anything order more than its rules allow. All that a
//! CA sends has a limit.
//!
//! Leaves out: the place of accounts and certificates, the answers to challenges, HTTP itself, revocation, and new keys
//! for an account.

#![cfg_attr(
    test,
    expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test fails by a panic")
)]

mod account;
mod asking;
mod chain;
mod challenge;
mod fault;
mod identifier;
mod messages;
mod ordering;
mod schedule;
mod settings;
mod wire;

pub use account::{Account, AccountKey, ExternalAccount};
pub use asking::{Asked, Asking};
pub use chain::{Held, check_chain};
pub use challenge::{Challenge, ChallengeKind};
pub use fault::{Fault, Kind};
pub use identifier::{Identifier, IdentifierError};
pub use messages::Window;
pub use ordering::{Issued, Ordering, Step};
pub use schedule::{Due, Now, Order, Pace, Schedule, To};
pub use settings::Settings;
pub use wire::{HttpRequest, HttpResponse, MAX_RESPONSE, Method};

/// The directory of Let's Encrypt.
pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// The directory of Let's Encrypt for tries: browsers do not trust its certificates.
pub const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";

/// The directory at which retries are tried before they go to `directory`; `None`: none is known.
pub fn staging_of(directory: &str) -> Option<&'static str> {
    (directory == LETS_ENCRYPT).then_some(LETS_ENCRYPT_STAGING)
}

#[cfg(test)]
mod tests;
