//! TLS for a server: sessions, certificates by name, certificates of clients, tickets (RFC 8446, RFC 5246); and for a client
//! of other servers.
//!
//! Promises: no socket, no file, no thread, and no panic, with any bytes of a peer. The clock is handed in. No type of
//! rustls is public here.
//!
//! Leaves out: where files are, when they are read again, how long a handshake may take, and HTTP. There is no early
//! data (0-RTT), which an attacker can replay, no renegotiation, and nothing before TLS 1.2.

#![cfg_attr(test, expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by a panic"))]

mod certificate;
mod challenges;
mod client_identity;
mod clients;
mod clock;
mod der;
mod development;
mod distinguished_name;
mod encrypted_key;
mod errors;
mod handshake;
mod hosts;
mod identity;
mod key;
mod names;
mod noted;
mod ocsp;
mod outgoing;
mod outgoing_session;
mod pem;
mod plain_http;
mod provider;
mod request;
mod resolver;
mod server_fault;
mod session;
mod terms;
mod tickets;
mod x509;

pub use certificate::CertificateInfo;
pub use challenges::{Challenges, MAX_TOKEN, is_token};
pub use client_identity::{ClientIdentity, ClientName};
pub use clients::{ClientPolicy, CrlInfo, Trust, TrustError};
pub use clock::{Clock, system_clock};
pub use development::{DevelopmentError, Pem};
pub use errors::{ClientFault, Reason, SessionError};
pub use handshake::{Handshake, Suite, Version};
pub use hosts::{FindHost, HostClients, Rules};
pub use identity::{Identity, IdentityError, IdentityInfo};
pub use ocsp::{OcspFault, OcspTimes};
pub use outgoing::{Authorities, OutgoingSettings, OutgoingTerms};
pub use outgoing_session::{Handshaking, OutgoingError, OutgoingSession};
pub use pem::PemFault;
pub use plain_http::is_plain_http;
pub use request::{CertificateRequest, request};
pub use resolver::UnknownName;
pub use server_fault::ServerFault;
pub use session::{FULL_RECORD, Read, SMALL_RECORD, Session};
pub use terms::{Clients, Terms, TermsError, TermsSettings};
pub use tickets::{TicketKeyError, TicketSecret, Tickets};

#[cfg(test)]
mod tests;
