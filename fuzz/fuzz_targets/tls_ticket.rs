//! Tickets. Input: a ticket as a client sends it, or a state to be sealed.
//!
//! Only tickets that were sealed here are opened, and give the same state; no bit of them may be another one.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use maitred_tls::{
    ClientPolicy, HostClients, Identity, Terms, TermsSettings, TicketSecret, Tickets, UnknownName, Version,
};

fuzz_target!(|input: &[u8]| {
    let terms = terms();
    if let Some(state) = terms.open_ticket(input) {
        // One of the seeds; the same byte for byte, or it would not have been opened.
        assert_eq!(input.len(), 16 + 32 + state.len() + 16);
    }
    let ticket = terms.seal_ticket(input).expect("there are keys");
    assert_eq!(terms.open_ticket(&ticket).as_deref(), Some(input));
    let place = input.iter().fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let mut changed = ticket.clone();
    changed[place % ticket.len()] ^= 1 << (place % 8);
    assert_eq!(terms.open_ticket(&changed), None);
    assert_eq!(terms.open_ticket(&ticket[..place % ticket.len()]), None);
});

/// The seeds were made with this clock and this secret.
fn terms() -> &'static Arc<Terms> {
    static TERMS: OnceLock<Arc<Terms>> = OnceLock::new();
    TERMS.get_or_init(|| {
        let clock = || 1_800_000_000;
        let mut secret = [7; TicketSecret::LENGTH];
        secret[..8].copy_from_slice(&(1_800_000_000_u64 / 28_800).to_be_bytes());
        let (identity, _) = Identity::development(&["localhost".to_owned()], clock).expect("a certificate");
        Terms::new(TermsSettings {
            identities: vec![identity],
            unknown_name: UnknownName::Default,
            clients: ClientPolicy::None,
            hosts: HostClients::default(),
            tickets: Some(Tickets::from_secret(&TicketSecret::from_bytes(&secret), clock)),
            minimum: Version::V1_2,
            alpn: Vec::new(),
            clock,
        })
        .expect("terms")
    })
}
