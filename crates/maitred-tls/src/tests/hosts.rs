//! Hosts that ask their clients for certificates by rules of their own.

use std::sync::Arc;

use rustls::ClientConfig;

use super::kit::{Authority, Client, Issued, Met, Wanted, meet, now, settings, unsent};
use crate::{
    ClientFault, ClientPolicy, Clients, HostClients, Session, SessionError, Terms, Tickets, Trust, Version,
};
use rcgen::ExtendedKeyUsagePurpose;

const VERSIONS: [Version; 2] = [Version::V1_2, Version::V1_3];

fn trust(authority: &Authority) -> Trust {
    let mut trust = Trust::default();
    trust.add_authorities(authority.pem().as_bytes()).expect("an authority");
    trust
}

fn number(name: &str) -> u16 {
    match name {
        "staff.shop.example" => 1,
        "tills.shop.example" => 2,
        "same.shop.example" => 3,
        "open.shop.example" => 4,
        _ => 0,
    }
}

/// Server's certificates, and those of clients of two kinds.
struct Site {
    server: Authority,
    staff: Authority,
    tills: Authority,
}

impl Site {
    fn new() -> Self {
        Self {
            server: Authority::new("Servers"),
            staff: Authority::new("Staff"),
            tills: Authority::new("Tills"),
        }
    }

    fn terms(&self, tickets: &Tickets) -> Arc<Terms> {
        let names = &["shop.example", "*.shop.example"];
        let mut settings = settings(vec![self.server.identity(&Wanted { names, ..Wanted::default() })]);
        settings.tickets = Some(tickets.clone());
        settings.hosts = HostClients {
            policies: vec![
                ClientPolicy::Required(trust(&self.staff)),
                ClientPolicy::Optional(trust(&self.tills)),
                ClientPolicy::Required(trust(&self.staff)),
                ClientPolicy::None,
            ],
            of_hosts: vec![0, 1, 2, 3, 4],
            find: Some(Arc::new(number)),
        };
        Terms::new(settings).expect("terms")
    }

    fn client(&self, version: Version, issued: Option<&Issued>) -> Arc<ClientConfig> {
        let identity = issued.map(|issued| (vec![issued.der.clone()], issued.key_der.clone_key()));
        Client { version: Some(version), identity, ..Client::trusting(&self.server) }.config()
    }
}

fn issue(authority: &Authority) -> Issued {
    authority.issue(&Wanted { usage: ExtendedKeyUsagePurpose::ClientAuth, ..Wanted::default() })
}

fn fault(met: Met) -> Option<ClientFault> {
    match met.server_result {
        Ok(()) => None,
        Err(SessionError::Client { fault, .. }) => Some(fault),
        Err(other) => unreachable!("{other:?}"),
    }
}

#[test]
fn each_host_asks_by_its_own_rules() {
    let site = Site::new();
    let terms = site.terms(&Tickets::random(now).expect("random numbers"));
    let asked = [0, 1, 2, 3, 4, 5].map(|host| terms.clients_of(host));
    let (not, required) = (Clients::NotAsked, Clients::Required);
    assert_eq!(asked, [not, required, Clients::Asked, required, not, not]);
    let (ada, till) = (issue(&site.staff), issue(&site.tills));
    let strange = Some(ClientFault::UnknownIssuer);
    for version in VERSIONS {
        for (name, issued, expected) in [
            ("shop.example", None, None),
            ("other.shop.example", None, None),
            ("staff.shop.example", None, Some(ClientFault::Absent)),
            ("staff.shop.example", Some(&ada), None),
            ("staff.shop.example", Some(&till), strange),
            ("STAFF.shop.example", None, Some(ClientFault::Absent)),
            ("same.shop.example", Some(&ada), None),
            ("tills.shop.example", None, None),
            ("tills.shop.example", Some(&till), None),
            ("tills.shop.example", Some(&ada), strange),
            // A client that is not asked shows none.
            ("open.shop.example", Some(&ada), None),
        ] {
            let met = meet(&terms, &site.client(version, issued), &name.to_lowercase());
            let shown = met.server.handshake().map(|handshake| handshake.client_chain.len());
            assert_eq!(fault(met), expected, "{version} {name}");
            let is_shown = issued.is_some() && !name.starts_with("open");
            assert_eq!(shown, expected.is_none().then_some(usize::from(is_shown)), "{version} {name}");
        }
    }
}

#[test]
fn a_connection_is_for_the_hosts_with_its_rules() {
    let site = Site::new();
    let terms = site.terms(&Tickets::random(now).expect("random numbers"));
    let ada = issue(&site.staff);
    for version in VERSIONS {
        for (name, hosts) in [
            ("shop.example", [true, false, false, false, true]),
            ("staff.shop.example", [false, true, false, true, false]),
            ("same.shop.example", [false, true, false, true, false]),
        ] {
            let met = meet(&terms, &site.client(version, Some(&ada)), name).expect();
            let rules = met.server.handshake().expect("complete").rules.expect("they differ");
            assert_eq!([0, 1, 2, 3, 4].map(|host| rules.are_those_of(host)), hosts, "{version} {name}");
        }
    }
}

#[test]
fn a_ticket_of_one_host_opens_no_other_one() {
    let site = Site::new();
    let tickets = Tickets::random(now).expect("random numbers");
    let terms = site.terms(&tickets);
    for version in VERSIONS {
        let config = site.client(version, Some(&issue(&site.staff)));
        let resumed = |name: &str| {
            let handshake = meet(&terms, &config, name).expect().server.handshake().expect("complete");
            handshake.resumed
        };
        assert!(!resumed("staff.shop.example") && resumed("staff.shop.example"));
        assert!(!resumed("shop.example"));
    }
    // A client can do nothing with its ticket there: the keys differ.
    let ticket = terms.seal_ticket(b"state").expect("the default host's");
    let mut others = settings(vec![site.server.identity(&Wanted::default())]);
    (others.tickets, others.clients) = (Some(tickets), ClientPolicy::Required(trust(&site.staff)));
    let staff = Terms::new(others).expect("terms");
    assert_eq!(staff.open_ticket(&ticket), None);
    assert!(terms.open_ticket(&ticket).is_some());
}

#[test]
fn a_hello_that_comes_byte_by_byte_is_the_same_one() {
    let site = Site::new();
    let terms = site.terms(&Tickets::random(now).expect("random numbers"));
    let name = "staff.shop.example".try_into().expect("a name");
    let mut client = rustls::ClientConnection::new(site.client(Version::V1_3, None), name).expect("a client");
    let mut hello = Vec::new();
    client.write_tls(&mut hello).expect("memory");
    let mut server = Session::new(&terms).expect("a session");
    for byte in &hello[..hello.len() - 1] {
        assert_eq!(server.feed(&[*byte]), Ok(1));
        assert!(!server.has_unsent() && server.is_handshaking());
    }
    assert_eq!(server.feed(&hello[hello.len() - 1..]), Ok(1));
    assert!(!unsent(&mut server).is_empty());
}

#[test]
fn a_broken_hello_is_reported_as_without_hosts() {
    let site = Site::new();
    let terms = site.terms(&Tickets::random(now).expect("random numbers"));
    let error = |bytes: &[u8]| {
        let mut server = Session::new(&terms).expect("a session");
        let error = server.feed(bytes).expect_err("it is none");
        (error, unsent(&mut server))
    };
    let (fault, alert) = error(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(fault, SessionError::NotTls { is_http: true });
    assert_eq!(alert, [21, 3, 3, 0, 2, 2, 50], "decode_error");
    // A message that only servers send.
    let (fault, _) = error(&[22, 3, 1, 0, 4, 2, 0, 0, 0]);
    assert!(matches!(fault, SessionError::Misbehaved(_)), "{fault:?}");
    // Half a hello waits.
    let mut server = Session::new(&terms).expect("a session");
    assert_eq!(server.feed(&[22, 3, 1, 1, 0, 1, 0, 0, 0xfc]), Ok(9));
    assert!(!server.has_unsent());
}
