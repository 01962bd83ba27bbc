//! Sessions that go on with a ticket: of one server and of two, and where that ends.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rcgen::ExtendedKeyUsagePurpose;
use rustls::ClientConfig;

use super::kit::{Authority, Client, DAY, Met, NOW, Wanted, meet, now, pump, settings};
use crate::{
    ClientFault, ClientPolicy, Clock, Identity, Read, SessionError, Terms, TermsSettings, TicketSecret,
    Tickets, Trust, Version,
};

/// How long a period of ticket keys is, in seconds.
const PERIOD: u64 = 8 * 60 * 60;

const VERSIONS: [Version; 2] = [Version::V1_2, Version::V1_3];

fn with_tickets(identity: &Identity, tickets: &Tickets) -> TermsSettings {
    let mut settings = settings(vec![identity.clone()]);
    settings.tickets = Some(tickets.clone());
    settings
}

fn terms(identity: &Identity, tickets: &Tickets) -> Arc<Terms> {
    Terms::new(with_tickets(identity, tickets)).expect("terms")
}

fn client(authority: &Authority, version: Version) -> Arc<ClientConfig> {
    Client { version: Some(version), ..Client::trusting(authority) }.config()
}

fn is_resumed(met: Met) -> bool {
    met.expect().server.handshake().expect("complete").resumed
}

#[test]
fn a_client_comes_back_with_a_ticket() {
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted::default());
    let terms = terms(&identity, &Tickets::random(now).expect("random numbers"));
    assert!(terms.has_tickets());
    for version in VERSIONS {
        let config = client(&authority, version);
        assert!(!is_resumed(meet(&terms, &config, "shop.example")));
        let mut met = meet(&terms, &config, "shop.example").expect();
        let handshake = met.server.handshake().expect("complete");
        assert!(handshake.resumed && !handshake.retried);
        assert_eq!((handshake.version, handshake.identity), (version, 0));
        assert_eq!(handshake.sni.as_deref(), Some("shop.example"));
        // TLS 1.3 exchanges keys anew, TLS 1.2 does not.
        assert_eq!(handshake.group, (version == Version::V1_3).then_some("X25519MLKEM768"));
        met.client.writer().write_all(b"question").expect("memory");
        pump(&mut met);
        assert_eq!(met.server.read(&mut [0; 20]), Read::Bytes(8));
    }
}

#[test]
fn a_client_of_tls_1_3_gets_two_tickets_and_comes_back_with_each() {
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted::default());
    let terms = terms(&identity, &Tickets::random(now).expect("random numbers"));
    let config = client(&authority, Version::V1_3);
    let first = meet(&terms, &config, "shop.example").expect();
    assert_eq!(first.client.tls13_tickets_received(), 2);
}

#[test]
fn without_tickets_nothing_is_resumed() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    assert!(!terms.has_tickets());
    for version in VERSIONS {
        let config = client(&authority, version);
        for _ in 0..2 {
            assert!(!is_resumed(meet(&terms, &config, "shop.example")));
        }
    }
}

#[test]
fn a_client_comes_back_to_another_worker() {
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted::default());
    let supervisor = Tickets::random(now).expect("random numbers");
    let handed_over = supervisor.secret().to_bytes();
    let workers = [(), ()]
        .map(|()| terms(&identity, &Tickets::from_secret(&TicketSecret::from_bytes(&handed_over), now)));
    let stranger = terms(&identity, &Tickets::random(now).expect("random numbers"));
    for version in VERSIONS {
        let config = client(&authority, version);
        assert!(!is_resumed(meet(&workers[0], &config, "shop.example")));
        assert!(is_resumed(meet(&workers[1], &config, "shop.example")));
        assert!(!is_resumed(meet(&stranger, &config, "shop.example")));
    }
}

#[test]
fn a_ticket_lives_over_a_change_of_keys_and_no_longer() {
    static CLOCK: AtomicU64 = AtomicU64::new(NOW);
    fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted::default());
    let secret = Tickets::random(clock).expect("random numbers").secret();
    for version in VERSIONS {
        let later = |periods: u64| {
            CLOCK.store(NOW, Ordering::Relaxed);
            let terms = terms(&identity, &Tickets::from_secret(&secret, clock));
            let config = client(&authority, version);
            assert!(!is_resumed(meet(&terms, &config, "shop.example")));
            CLOCK.fetch_add(periods * PERIOD, Ordering::Relaxed);
            terms.forget_old_keys();
            is_resumed(meet(&terms, &config, "shop.example"))
        };
        assert!(later(0));
        assert!(later(1));
        assert!(!later(2));
    }
}

#[test]
fn a_ticket_is_for_one_name() {
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted { names: &["*.shop.example"], ..Wanted::default() });
    let terms = terms(&identity, &Tickets::random(now).expect("random numbers"));
    for version in VERSIONS {
        let config = client(&authority, version);
        assert!(!is_resumed(meet(&terms, &config, "a.shop.example")));
        assert!(!is_resumed(meet(&terms, &config, "b.shop.example")));
        assert!(is_resumed(meet(&terms, &config, "a.shop.example")));
    }
}

fn for_clients(until: u64) -> Wanted<'static> {
    Wanted { usage: ExtendedKeyUsagePurpose::ClientAuth, until, ..Wanted::default() }
}

fn trust(authority: &Authority) -> Trust {
    let mut trust = Trust::default();
    trust.add_authorities(authority.pem().as_bytes()).expect("an authority");
    trust
}

/// A client with a certificate that is valid until then.
fn certified(server: &Authority, clients: &Authority, until: u64, version: Version) -> Arc<ClientConfig> {
    let issued = clients.issue(&for_clients(until));
    let identity = Some((vec![issued.der], issued.key_der));
    Client { version: Some(version), identity, ..Client::trusting(server) }.config()
}

#[test]
fn a_resumed_client_is_known_by_its_certificate() {
    let (server, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let mut settings =
        with_tickets(&server.identity(&Wanted::default()), &Tickets::random(now).expect("random numbers"));
    settings.clients = ClientPolicy::Required(trust(&clients));
    let terms = Terms::new(settings).expect("terms");
    for version in VERSIONS {
        let config = certified(&server, &clients, NOW + DAY, version);
        let first = meet(&terms, &config, "shop.example").expect().server.handshake().expect("complete");
        let second = meet(&terms, &config, "shop.example").expect().server.handshake().expect("complete");
        assert!(!first.resumed && second.resumed);
        assert!(!first.client_chain.is_empty());
        assert_eq!(first.client_chain, second.client_chain);
    }
}

#[test]
fn another_policy_for_clients_resumes_nothing() {
    let (server, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let tickets = Tickets::random(now).expect("random numbers");
    let identity = server.identity(&Wanted::default());
    let with = |clients: ClientPolicy| {
        let mut settings = with_tickets(&identity, &tickets);
        settings.clients = clients;
        Terms::new(settings).expect("terms")
    };
    let mut both = trust(&clients);
    both.add_authorities(Authority::new("Others").pem().as_bytes()).expect("an authority");
    let first = with(ClientPolicy::Optional(trust(&clients)));
    let others = [
        with(ClientPolicy::None),
        with(ClientPolicy::Required(trust(&clients))),
        with(ClientPolicy::Optional(both)),
    ];
    let again = with(ClientPolicy::Optional(trust(&clients)));
    for version in VERSIONS {
        for other in &others {
            let config = certified(&server, &clients, NOW + DAY, version);
            assert!(!is_resumed(meet(&first, &config, "shop.example")));
            assert!(!is_resumed(meet(other, &config, "shop.example")));
        }
        let config = certified(&server, &clients, NOW + DAY, version);
        assert!(!is_resumed(meet(&first, &config, "shop.example")));
        assert!(is_resumed(meet(&again, &config, "shop.example")), "a reload of the same files");
    }
}

#[test]
fn nothing_is_resumed_when_a_list_of_revoked_certificates_is_out_of_date() {
    static CLOCK: AtomicU64 = AtomicU64::new(NOW);
    fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    let (server, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let mut trust = trust(&clients);
    trust.add_crls(&clients.crl(NOW + 60, vec![])).expect("a list");
    let mut settings =
        with_tickets(&server.identity(&Wanted::default()), &Tickets::random(clock).expect("random numbers"));
    settings.clients = ClientPolicy::Required(trust);
    settings.clock = clock;
    let terms = Terms::new(settings).expect("terms");
    for version in VERSIONS {
        CLOCK.store(NOW, Ordering::Relaxed);
        let config = certified(&server, &clients, NOW + DAY, version);
        assert!(!is_resumed(meet(&terms, &config, "shop.example")));
        assert!(is_resumed(meet(&terms, &config, "shop.example")));
        CLOCK.store(NOW + 61, Ordering::Relaxed);
        let met = meet(&terms, &config, "shop.example");
        let is_old = |error: &SessionError| {
            matches!(error, SessionError::Client { fault: ClientFault::OldRevocationList, .. })
        };
        assert!(met.server_result.as_ref().is_err_and(is_old), "{:?}", met.server_result);
    }
}

#[test]
fn a_client_whose_certificate_has_expired_meanwhile_is_refused() {
    static CLOCK: AtomicU64 = AtomicU64::new(NOW);
    fn clock() -> u64 {
        CLOCK.load(Ordering::Relaxed)
    }
    let (server, clients) = (Authority::new("Servers"), Authority::new("Clients"));
    let with_clock = |clock: Clock| {
        let tickets = Tickets::random(clock).expect("random numbers");
        let mut settings = with_tickets(&server.identity(&Wanted::default()), &tickets);
        settings.clients = ClientPolicy::Optional(trust(&clients));
        settings.clock = clock;
        Terms::new(settings).expect("terms")
    };
    let terms = with_clock(clock);
    for version in VERSIONS {
        CLOCK.store(NOW, Ordering::Relaxed);
        let config = certified(&server, &clients, NOW + 60, version);
        assert!(!is_resumed(meet(&terms, &config, "shop.example")));
        assert!(is_resumed(meet(&terms, &config, "shop.example")));
        CLOCK.store(NOW + 61, Ordering::Relaxed);
        let mut met = meet(&terms, &config, "shop.example");
        let expired = |error: &SessionError| matches!(error, SessionError::Client { fault: ClientFault::Expired, subject: Some(subject) } if **subject == *"CN=a server,O=Shop");
        assert!(met.server_result.as_ref().is_err_and(expired), "{:?}", met.server_result);
        met.client.writer().write_all(b"question").expect("memory");
        pump(&mut met);
        assert_eq!(met.server.read(&mut [0; 20]), Read::Nothing);
    }
}
