//! Full handshakes: the agreed parameters, and refusals.

use rustls::{AlertDescription, CipherSuite, Error};

use super::kit::{Authority, Client, Met, Wanted, meet, settings, unsent};
use crate::{Read, Reason, Session, SessionError, Suite, Terms, TermsError, UnknownName, Version};

fn refused(met: Met) -> SessionError {
    let error = met.server_result.expect_err("the server refuses");
    assert!(met.server.handshake().is_none());
    error
}

#[test]
fn both_versions_agree_on_the_best_parameters() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    for (version, suites) in [(Version::V1_3, (0x1301, 0x1303)), (Version::V1_2, (0xc02b, 0xcca9))] {
        let config = Client { version: Some(version), ..Client::trusting(&authority) }.config();
        let met = meet(&terms, &config, "shop.example").expect();
        let handshake = met.server.handshake().expect("complete");
        assert_eq!(handshake.version, version);
        assert!((suites.0..=suites.1).contains(&handshake.suite.number), "{:?}", handshake.suite);
        assert!(handshake.suite.name.starts_with("TLS_") && !handshake.suite.name.contains("13_"));
        let group = if version == Version::V1_3 { "X25519MLKEM768" } else { "X25519" };
        assert_eq!(handshake.group, Some(group));
        assert_eq!(handshake.sni.as_deref(), Some("shop.example"));
        assert_eq!(handshake.alpn.as_deref(), Some(&b"http/1.1"[..]));
        assert_eq!((handshake.resumed, handshake.retried, handshake.identity), (false, false, 0));
        assert!(handshake.client_chain.is_empty());
        assert!(!met.server.is_handshaking());
    }
}

#[test]
fn the_order_of_the_client_counts_among_suites() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    let mut client = Client::trusting(&authority);
    client
        .provider
        .cipher_suites
        .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let met = meet(&terms, &client.config(), "shop.example").expect();
    let suite = Suite { name: "TLS_CHACHA20_POLY1305_SHA256", number: 0x1303 };
    assert_eq!(met.server.handshake().expect("complete").suite, suite);
}

#[test]
fn a_client_that_guesses_another_group_is_asked_again() {
    use rustls::crypto::aws_lc_rs::kx_group::{MLKEM768, SECP384R1};
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    let mut client = Client { version: Some(Version::V1_3), ..Client::trusting(&authority) };
    client.provider.kx_groups = vec![MLKEM768, SECP384R1];
    let met = meet(&terms, &client.config(), "shop.example").expect();
    let handshake = met.server.handshake().expect("complete");
    assert!(handshake.retried && !handshake.resumed);
    assert_eq!(handshake.group, Some("secp384r1"));
}

#[test]
fn the_oldest_version_can_be_raised() {
    let authority = Authority::new("Tests");
    let mut settings = settings(vec![authority.identity(&Wanted::default())]);
    settings.minimum = Version::V1_3;
    let terms = Terms::new(settings).expect("terms");
    assert_eq!(terms.minimum(), Version::V1_3);
    let config = Client { version: Some(Version::V1_2), ..Client::trusting(&authority) }.config();
    let met = meet(&terms, &config, "shop.example");
    assert_eq!(met.client_result, Err(Error::AlertReceived(AlertDescription::ProtocolVersion)));
    let error = refused(met);
    assert_eq!(error, SessionError::NoCommonVersion { offered: Some(0x0303), minimum: Version::V1_3 });
    assert_eq!(error.to_string(), "the peer offers no common TLS version: TLS 1.3 or newer is needed");
}

#[test]
fn an_old_client_is_told_from_a_new_one() {
    // The ClientHello of TLS 1.0 with one suite and no extension.
    let mut hello = vec![0x16, 3, 1, 0, 45, 1, 0, 0, 41, 3, 1];
    hello.extend_from_slice(&[7; 32]);
    hello.extend_from_slice(&[0, 0, 2, 0xc0, 0x13, 1, 0]);
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    // However the bytes come.
    for size in [1, 5, hello.len()] {
        let mut session = Session::new(&terms).expect("a session");
        let error = hello.chunks(size).find_map(|bytes| session.feed(bytes).err()).expect("refused");
        assert_eq!(error.reason(), Reason::Version);
        assert_eq!(
            error.to_string(),
            "the peer offers no common TLS version: at most TLS 1.0, and TLS 1.2 is needed"
        );
        assert_eq!(session.feed(b"more"), Err(error));
        // Fatal, protocol_version.
        assert_eq!(unsent(&mut session)[5..], [2, 70]);
    }
}

#[test]
fn a_protocol_that_we_do_not_have_is_refused() {
    let authority = Authority::new("Tests");
    let identity = authority.identity(&Wanted::default());
    let terms = Terms::new(settings(vec![identity.clone()])).expect("terms");
    let h2 = || Client { alpn: &["h2"], ..Client::trusting(&authority) }.config();
    let met = meet(&terms, &h2(), "shop.example");
    assert_eq!(met.client_result, Err(Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
    assert_eq!(refused(met), SessionError::NoCommonProtocol);
    let silent = Client { alpn: &[], ..Client::trusting(&authority) }.config();
    assert_eq!(
        meet(&terms, &silent, "shop.example").expect().server.handshake().expect("complete").alpn,
        None
    );
    let mut settings = settings(vec![identity]);
    settings.alpn.clear();
    let terms = Terms::new(settings).expect("terms");
    assert_eq!(meet(&terms, &h2(), "shop.example").expect().server.handshake().expect("complete").alpn, None);
}

#[test]
fn an_error_names_the_parameter_that_is_not_common() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    // No group.
    let mut client = Client { version: Some(Version::V1_3), ..Client::trusting(&authority) };
    client.provider.kx_groups = vec![rustls::crypto::aws_lc_rs::kx_group::MLKEM768];
    assert_eq!(refused(meet(&terms, &client.config(), "shop.example")), SessionError::NoCommonGroup);
    // RSA only in TLS 1.2.
    let mut client = Client { version: Some(Version::V1_2), ..Client::trusting(&authority) };
    client
        .provider
        .cipher_suites
        .retain(|suite| suite.suite() == CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256);
    let error = refused(meet(&terms, &client.config(), "shop.example"));
    assert_eq!(error.reason(), Reason::Parameters, "{error:?}");
}

#[test]
fn a_client_that_does_not_trust_us_says_so() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    let config = Client::trusting(&Authority::new("Others")).config();
    let error = refused(meet(&terms, &config, "shop.example"));
    assert_eq!(error, SessionError::Alert { number: 48, in_handshake: true });
    assert!(error.to_string().contains("an intermediate certificate is missing"), "{error}");
}

#[test]
fn names_choose_certificates() {
    let authority = Authority::new("Tests");
    let wanted = |names| Wanted { names, ..Wanted::default() };
    let identities = vec![
        authority.identity(&wanted(&["default.example"])),
        authority.identity(&wanted(&["*.shop.example", "shop.example"])),
        authority.identity(&wanted(&["a.shop.example"])),
        authority.identity(&wanted(&["told.example"])).for_names(["Told.Example", "b.shop.example"]),
    ];
    let terms = Terms::new(settings(identities)).expect("terms");
    let config = Client::trusting(&authority).config();
    let chosen = |name: &str| meet(&terms, &config, name).server.handshake().map(|agreed| agreed.identity);
    for (name, identity) in [
        ("default.example", 0),
        ("shop.example", 1),
        ("x.shop.example", 1),
        ("A.Shop.Example", 2),
        ("told.example", 3),
    ] {
        assert_eq!(chosen(name), Some(identity), "{name}");
    }
    assert_eq!(terms.identities()[3].names, ["told.example", "b.shop.example"]);
    // The told name counts, not those in the certificate, so this client does not find its name.
    let met = meet(&terms, &config, "b.shop.example");
    assert!(matches!(met.client_result, Err(Error::InvalidCertificate(_))), "{:?}", met.client_result);
    assert_eq!(met.server_result, Err(SessionError::Alert { number: 42, in_handshake: true }));
}

#[test]
fn an_unknown_name_gets_the_first_certificate_or_an_alert() {
    let authority = Authority::new("Tests");
    let wanted = |names| Wanted { names, ..Wanted::default() };
    let config = Client::trusting(&authority).config();
    let terms = |names, unknown_name| {
        let mut settings = settings(vec![
            authority.identity(&wanted(&["other.example", "unknown.example"])).for_names(["other.example"]),
            authority.identity(&wanted(names)),
        ]);
        settings.unknown_name = unknown_name;
        Terms::new(settings).expect("terms")
    };
    let chosen = |met: Met| met.expect().server.handshake().expect("complete").identity;
    let lenient = terms(&["shop.example", "192.0.2.1"], UnknownName::Default);
    assert_eq!(chosen(meet(&lenient, &config, "unknown.example")), 0);
    let strict = terms(&["shop.example", "192.0.2.1"], UnknownName::Refuse);
    assert_eq!(chosen(meet(&strict, &config, "shop.example")), 1);
    assert_eq!(chosen(meet(&strict, &config, "192.0.2.1")), 1, "an address is no name");
    let met = meet(&strict, &config, "unknown.example");
    assert_eq!(met.client_result, Err(Error::AlertReceived(AlertDescription::UnrecognisedName)));
    let error = refused(met);
    assert_eq!(error.to_string(), "there is no certificate for the name unknown.example");
    assert_eq!(error.reason(), Reason::Name);
    let met = meet(&terms(&["shop.example"], UnknownName::Refuse), &config, "192.0.2.1");
    assert_eq!(
        met.client_result,
        Err(Error::AlertReceived(AlertDescription::Unknown(109))).or(met.client_result.clone())
    );
    assert_eq!(refused(met), SessionError::MissingName);
}

#[test]
fn of_two_kinds_of_key_the_client_gets_one_that_it_can_use() {
    let authority = Authority::new("Tests");
    let rsa = authority.identity(&Wanted { is_rsa: true, ..Wanted::default() });
    let ecdsa = authority.identity(&Wanted::default());
    let terms = Terms::new(settings(vec![rsa, ecdsa])).expect("terms");
    let chosen = |client: Client, name: &str| {
        meet(&terms, &client.config(), name).expect().server.handshake().map(|agreed| agreed.identity)
    };
    let only_rsa = |version| {
        let mut client = Client { version: Some(version), ..Client::trusting(&authority) };
        client
            .provider
            .cipher_suites
            .retain(|suite| suite.suite().as_str().is_some_and(|name| name.contains("_RSA_")));
        client
    };
    assert_eq!(chosen(Client::trusting(&authority), "shop.example"), Some(1), "ECDSA costs less");
    assert_eq!(chosen(only_rsa(Version::V1_2), "shop.example"), Some(0));
    // The default is found in the same way.
    let infos = terms.identities();
    assert_eq!((&*infos[0].certificate.key, &*infos[1].certificate.key), ("RSA 2048", "ECDSA P-256"));
}

#[test]
fn bytes_that_are_not_tls_are_reported_as_such() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    for (bytes, is_http) in [
        (&b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n"[..], true),
        (b"SSH-2.0-OpenSSH_9.6\r\n", false),
        (b"\x80\x2e\x01\x03\x01", false),
    ] {
        let mut session = Session::new(&terms).expect("a session");
        let error = session.feed(bytes).expect_err("refused");
        assert_eq!(error, SessionError::NotTls { is_http }, "{}", bytes.escape_ascii());
        assert_eq!(error.reason(), Reason::NotTls);
        assert_eq!(session.read(&mut [0; 10]), Read::Nothing);
    }
}

#[test]
fn a_hello_without_end_is_refused_with_an_alert() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    // Records of a ClientHello that says it has 16 MiB.
    let mut hello = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    hello.resize(5 + 0x4000, 0);
    let mut session = Session::new(&terms).expect("a session");
    let refused = (0..10).find_map(|_| {
        let refused = session.feed(&hello).err();
        hello[5..9].fill(0);
        refused
    });
    assert!(matches!(refused, Some(SessionError::Misbehaved(_))), "{refused:?}");
    assert_eq!(unsent(&mut session), [21, 3, 3, 0, 2, 2, 50], "{refused:?}");
}

#[test]
fn a_peer_that_goes_away_in_the_handshake_is_cut_off() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    let mut session = Session::new(&terms).expect("a session");
    assert_eq!(session.read(&mut [0; 10]), Read::Nothing);
    session.feed_end();
    assert_eq!(session.read(&mut [0; 10]), Read::Truncated);
    assert!(session.is_handshaking());
}

#[test]
fn terms_need_a_certificate_and_names_of_protocols() {
    assert_eq!(Terms::new(settings(Vec::new())).map(|_| ()), Err(TermsError::NoCertificate));
    let identity = Authority::new("Tests").identity(&Wanted::default());
    let mut settings = settings(vec![identity]);
    settings.alpn.push(Vec::new());
    assert_eq!(Terms::new(settings).map(|_| ()), Err(TermsError::Alpn));
}
