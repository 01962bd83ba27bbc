//! Orders that end with a certificate.

use serde_json::json;

use super::authority::{
    Authority, DAY, NOW, account, document, finish, identifiers, ordering, problem, settings,
};
use crate::{Account, ChallengeKind, ExternalAccount, HttpResponse, Ordering, Step, check_chain};

#[test]
fn an_order_takes_these_requests() {
    let mut authority = Authority::new();
    let mut order = ordering(&settings(), &["shop.example"]);
    let (issued, _) = finish(&mut order, &mut authority);
    let issued = issued.expect("a certificate");
    assert_eq!(
        authority.log,
        [
            "Get directory",
            "Head nonce",
            "Post account",
            "Post order",
            "Post authorization/0/0",
            "Post challenge/0/0/http-01",
            "Post authorization/0/0",
            "Post order/0",
            "Post finalize/0",
            "Post certificate/0/0",
        ]
    );
    assert_eq!(authority.payloads["account"]["contact"], json!(["mailto:ada@shop.example"]));
    assert_eq!(
        authority.payloads["order"],
        json!({ "identifiers": [{ "type": "dns", "value": "shop.example" }] })
    );
    let held = check_chain(
        issued.chain_pem.as_bytes(),
        issued.key_pem.as_bytes(),
        &identifiers(&["shop.example"]),
        NOW,
    );
    assert_eq!(held, Ok(issued.held.clone()));
    assert_eq!((issued.held.not_before, issued.held.not_after), (NOW - 3600, NOW - 3600 + 90 * DAY));
    // 87 65 43 21 is negative without a zero byte in front of it.
    assert!(issued.held.id.expect("an id").ends_with(".AIdlQyE"));
    assert_eq!(issued.notes, Vec::<String>::new());
}

#[test]
fn an_account_is_made_once_and_kept_as_json() {
    let mut authority = Authority::new();
    let mut first = ordering(&settings(), &["shop.example"]);
    finish(&mut first, &mut authority).0.expect("a certificate");
    let kept = serde_json::to_string(first.account()).expect("JSON");
    let account: Account = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(account.url.as_deref(), Some("https://ca.example/accounts/0"));
    authority.log.clear();
    let mut second = Ordering::new(&settings(), account.clone(), identifiers(&["shop.example"]), None, 0);
    finish(&mut second, &mut authority).0.expect("a certificate");
    assert!(!authority.log.contains(&"Post account".to_owned()));
    // The URL is lost: the CA knows the key.
    let mut third = Ordering::new(
        &settings(),
        Account { url: None, ..account.clone() },
        identifiers(&["shop.example"]),
        None,
        0,
    );
    finish(&mut third, &mut authority).0.expect("a certificate");
    assert_eq!(third.account().url.as_deref(), Some("https://ca.example/accounts/0"));
    // The CA is a new one behind the same directory.
    authority.accounts.clear();
    let mut fourth =
        Ordering::new(&settings(), third.account().clone(), identifiers(&["shop.example"]), None, 0);
    finish(&mut fourth, &mut authority).0.expect("a certificate");
    // The host of the directory has another name by now.
    for word in ["malformed", "unauthorized"] {
        let mut kept = true;
        authority.script = Box::new(move |path, _| {
            let refuses = path == "order" && kept;
            kept &= path != "order";
            refuses.then(|| problem(400, word, "the kid has another prefix"))
        });
        let mut fifth = Ordering::new(&settings(), account.clone(), identifiers(&["shop.example"]), None, 0);
        finish(&mut fifth, &mut authority).0.expect("a certificate");
    }
    assert!(serde_json::from_str::<Account>(&kept.replace("\"key\":\"MI", "\"key\":\"MM")).is_err());
}

#[test]
fn a_customer_of_the_ca_binds_the_account() {
    let mut authority = Authority::new();
    authority.external = Some(vec![0xfb, 0xef, 0xbe, 7]);
    authority.directory["meta"]["externalAccountRequired"] = true.into();
    let mut settings = settings();
    let fault =
        finish(&mut ordering(&settings, &["shop.example"]), &mut authority).0.expect_err("no key of the CA");
    assert!(fault.to_string().contains("acme-eab"), "{fault}");
    for text in ["customer:----Bw", "customer:++++Bw==\n"] {
        settings.external_account = ExternalAccount::parse(text);
        assert_eq!(settings.external_account.as_ref().map(|account| account.hmac.len()), Some(4));
        finish(&mut ordering(&settings, &["shop.example"]), &mut authority).0.expect("a certificate");
    }
    for text in ["", "customer", ":AAAA", "customer:", "customer:a b"] {
        assert_eq!(ExternalAccount::parse(text), None, "{text}");
    }
}

#[test]
fn names_and_addresses_stand_in_one_certificate_of_the_profile_for_addresses() {
    let mut authority = Authority::new();
    authority.slow = 2;
    let names = ["shop.example", "203.0.113.5", "[2001:db8::7]"];
    finish(&mut ordering(&settings(), &names), &mut authority).0.expect("a certificate");
    assert_eq!(authority.payloads["order"]["profile"], "shortlived");
    assert_eq!(
        authority.payloads["order"]["identifiers"][2],
        json!({ "type": "ip", "value": "2001:db8::7" })
    );
    let mut settings = settings();
    settings.profile = Some("classic".to_owned());
    finish(&mut ordering(&settings, &["shop.example"]), &mut authority).0.expect("a certificate");
    assert_eq!(authority.payloads["order"]["profile"], "classic");
    settings.profile = Some("clasic".to_owned());
    let fault =
        finish(&mut ordering(&settings, &["shop.example"]), &mut authority).0.expect_err("no such profile");
    assert!(fault.to_string().contains("no profile clasic; it has classic, shortlived"), "{fault}");
}

#[test]
fn every_try_begins_with_another_challenge() {
    let mut authority = Authority::new();
    for (attempt, kind) in [(0, "http-01"), (1, "tls-alpn-01"), (2, "http-01")] {
        let mut order = Ordering::new(&settings(), account(), identifiers(&["shop.example"]), None, attempt);
        authority.log.clear();
        finish(&mut order, &mut authority).0.expect("a certificate");
        assert!(authority.log.iter().any(|line| line.starts_with("Post challenge/") && line.ends_with(kind)));
    }
    authority.kinds = vec!["dns-persist-01", "tls-alpn-01"];
    finish(&mut ordering(&settings(), &["shop.example"]), &mut authority).0.expect("a certificate");
    authority.kinds = vec!["dns-01"];
    let fault =
        finish(&mut ordering(&settings(), &["shop.example"]), &mut authority).0.expect_err("no challenge");
    assert!(fault.said.contains("offers the challenges dns-01"), "{fault}");
}

#[test]
fn a_pattern_is_verified_by_dns() {
    let mut authority = Authority::new();
    let mut settings = settings();
    let names = ["*.shop.example", "shop.example"];
    let fault = finish(&mut ordering(&settings, &names), &mut authority).0.expect_err("no challenge");
    assert_eq!(fault.identifier.as_deref(), Some("shop.example"));
    settings.challenges.push(ChallengeKind::Dns01);
    let mut order = ordering(&settings, &names);
    let published = loop {
        match order.next(NOW) {
            Step::Send(request) => order.answered(authority.answer(&request)),
            Step::Publish(challenge) => break challenge,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        (published.kind, published.dns_name().as_str()),
        (ChallengeKind::Dns01, "_acme-challenge.shop.example")
    );
    assert_eq!(published.dns_value().len(), 43);
    finish(&mut ordering(&settings, &names), &mut authority).0.expect("a certificate");
}

#[test]
fn a_refused_nonce_is_replaced_at_once() {
    let mut authority = Authority::new();
    authority.refuse_nonce = Some(3);
    let (issued, waited) =
        finish(&mut ordering(&settings(), &["shop.example", "203.0.113.5"]), &mut authority);
    issued.expect("a certificate");
    assert!(waited <= 4, "{waited}");
}

#[test]
fn a_nonce_is_asked_for_when_an_answer_has_none() {
    let mut authority = Authority::new();
    authority.spares_nonces = true;
    finish(&mut ordering(&settings(), &["shop.example"]), &mut authority).0.expect("a certificate");
    assert_eq!(authority.log.iter().filter(|line| *line == "Head nonce").count(), 8);
}

#[test]
fn a_certificate_that_is_replaced_already_is_ordered_without_saying_so() {
    let replacing = |authority: &mut Authority| {
        let mut order = Ordering::new(
            &settings(),
            account(),
            identifiers(&["shop.example"]),
            Some("aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE".to_owned()),
            0,
        );
        finish(&mut order, authority).0.expect("a certificate");
        authority.payloads["order"].get("replaces").is_some()
    };
    let mut authority = Authority::new();
    assert!(replacing(&mut authority));
    for status in [409, 404, 403] {
        let mut left = 1;
        authority.script = Box::new(move |path, _| {
            let refuses = path == "order" && left > 0;
            left -= usize::from(refuses);
            refuses.then(|| problem(status, "alreadyReplaced", "it was replaced before"))
        });
        assert!(!replacing(&mut authority));
    }
    authority.script = Box::new(|_, _| None);
    authority.directory.as_object_mut().expect("an object").remove("renewalInfo");
    assert!(!replacing(&mut authority));
}

#[test]
fn the_preferred_chain_is_taken_if_there_is_one() {
    let mut authority = Authority::new();
    authority.roots = vec!["Root One", "Root Three", "Root Two"];
    let mut settings = settings();
    let mut chosen = |authority: &mut Authority, name: &str| {
        settings.preferred_chain = Some(name.to_owned());
        authority.log.clear();
        let issued = finish(&mut ordering(&settings, &["shop.example"]), authority).0.expect("a certificate");
        let fetched = authority.log.iter().filter(|line| line.contains("certificate/")).count();
        (fetched, issued.notes)
    };
    assert_eq!(chosen(&mut authority, "root one"), (1, Vec::new()));
    assert_eq!(chosen(&mut authority, "Root Two"), (3, Vec::new()));
    let (fetched, notes) = chosen(&mut authority, "Root");
    assert_eq!(fetched, 3);
    assert!(notes[0].contains("no chain that ends at \"Root\""), "{notes:?}");
    // A chain that cannot be had does not lose the one that is here.
    authority.script = Box::new(|path, _| {
        let is_other = path.starts_with("certificate/") && !path.ends_with("/0");
        is_other.then(|| HttpResponse { status: 503, ..HttpResponse::default() })
    });
    assert_eq!(chosen(&mut authority, "Root Two").1.len(), 1);
}

#[test]
fn the_ca_says_how_long_a_wait_is() {
    let mut authority = Authority::new();
    authority.slow = 3;
    authority.retry_after = Some("7".to_owned());
    let (issued, waited) = finish(&mut ordering(&settings(), &["shop.example"]), &mut authority);
    issued.expect("a certificate");
    assert_eq!(waited, 7 * 7);
    let at = String::from_utf8(maitred_http::date::format(NOW + 20).to_vec()).expect("ASCII");
    authority.slow = 0;
    authority.retry_after = Some(at);
    let (issued, waited) = finish(&mut ordering(&settings(), &["shop.example"]), &mut authority);
    issued.expect("a certificate");
    assert_eq!(waited, 20);
}

#[test]
fn a_glitch_while_waiting_does_not_end_the_order() {
    let mut authority = Authority::new();
    authority.script = Box::new(|path, asked| {
        let fails =
            path.starts_with("authorization") && asked == 1 || path.starts_with("certificate") && asked == 0;
        fails.then(|| document(502, &json!("<html>Bad gateway")))
    });
    finish(&mut ordering(&settings(), &["shop.example"]), &mut authority).0.expect("a certificate");
}

#[test]
fn a_clock_that_is_slow_is_told() {
    let mut authority = Authority::new();
    authority.valid_from = NOW + 7200;
    let issued =
        finish(&mut ordering(&settings(), &["shop.example"]), &mut authority).0.expect("a certificate");
    assert!(issued.notes[0].contains("not valid yet: the clock"), "{:?}", issued.notes);
}
