//! Orders that end without a certificate: what the CA says, what is missing, what is too much.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::authority::{
    Authority, DAY, Key, NOW, document, finish, identifiers, ordering, problem, settings,
};
use crate::{
    Asked, Asking, Fault, HttpRequest, HttpResponse, Identifier, Kind, MAX_RESPONSE, Method, Step, Window,
    check_chain,
};

fn fault(authority: &mut Authority) -> Fault {
    finish(&mut ordering(&settings(), &["shop.example"]), authority).0.expect_err("no certificate")
}

/// The fault when the CA answers this at `path`.
fn fault_at(path: &'static str, response: HttpResponse) -> Fault {
    let mut authority = Authority::new();
    authority.script = Box::new(move |asked, _| asked.starts_with(path).then(|| response.clone()));
    fault(&mut authority)
}

#[test]
fn a_wrong_challenge_ends_with_the_words_of_the_ca() {
    let mut authority = Authority::new();
    let mut order = ordering(&settings(), &["shop.example", "www.shop.example"]);
    let fault = loop {
        match order.next(NOW) {
            Step::Send(request) => order.answered(authority.answer(&request)),
            // Another server answers.
            Step::Publish(challenge) if challenge.identifier.to_string().starts_with("www") => {}
            Step::Publish(challenge) => {
                authority.published.insert(challenge.token.clone(), challenge);
            }
            Step::Withdraw(challenge) => {
                authority.published.remove(&challenge.token);
            }
            Step::Wait(_) => {}
            Step::Failed(fault) => break fault,
            Step::Issued(_) => panic!("a certificate without a proof"),
        }
    };
    assert_eq!(fault.kind, Kind::Challenge);
    assert_eq!(
        fault.to_string(),
        "www.shop.example: the CA says: 192.0.2.7: Invalid response  from  [31mhttp://shop.example: 404 (unauthorized); another server has answered: every address of the name has to lead to this one; `maitred check --acme` tells what answers on port 80"
    );
}

#[test]
fn problems_have_a_kind_and_advice() {
    for (word, kind, advice) in [
        ("caa", Kind::Challenge, "CAA record"),
        ("dns", Kind::Challenge, "A and AAAA"),
        ("connection", Kind::Challenge, "port 80"),
        ("tls", Kind::Challenge, "undecrypted"),
        ("rateLimited", Kind::RateLimited, "waits"),
        ("userActionRequired", Kind::Account, "open the page"),
        ("unauthorized", Kind::Account, "acme-eab"),
        ("invalidContact", Kind::Account, "e-mail"),
        ("rejectedIdentifier", Kind::Order, "acme = off"),
        ("invalidProfile", Kind::Order, "acme-profile"),
        ("serverInternal", Kind::Broken, "fault of its own"),
        ("badCSR", Kind::Order, "report it"),
    ] {
        let mut response = problem(403, word, "the words");
        response.retry_after = Some("3600".to_owned());
        let fault = fault_at("order", response);
        assert_eq!((fault.kind, fault.said.as_str()), (kind, "the words"));
        assert_eq!(fault.retry_after, Some(Duration::from_secs(3600)));
        assert!(fault.advice().contains(advice), "{word}: {fault}");
    }
    let compound = json!({
        "type": "urn:ietf:params:acme:error:compound", "detail": "Several problems",
        "subproblems": [
            { "type": "urn:ietf:params:acme:error:caa", "detail": "CAA says no", "identifier": { "type": "dns", "value": "www.shop.example" } },
        ],
    });
    let fault = fault_at("order", document(403, &compound));
    assert_eq!(fault.kind, Kind::Challenge);
    assert!(
        fault.to_string().starts_with("www.shop.example: the CA says: Several problems; CAA says no (caa);"),
        "{fault}"
    );
    let mut action =
        json!({ "type": "urn:ietf:params:acme:error:userActionRequired", "detail": "New terms" });
    action["instance"] = "https://ca.example/terms".into();
    let fault = fault_at("order", document(403, &action));
    assert!(
        fault.to_string().contains("New terms; https://ca.example/terms (userActionRequired)"),
        "{fault}"
    );
    let fault = fault_at("order", HttpResponse { status: 429, ..HttpResponse::default() });
    assert_eq!((fault.kind, fault.said.as_str()), (Kind::RateLimited, "status 429"));
}

#[test]
fn nonces_that_are_never_right_end_the_order() {
    let mut authority = Authority::new();
    authority.refuse_nonce = Some(1);
    assert_eq!(fault(&mut authority).problem.as_deref(), Some("badNonce"));
    assert!(authority.log.len() < 15, "{:?}", authority.log);
}

#[test]
fn a_ca_that_never_ends_is_left_after_half_an_hour() {
    let mut authority = Authority::new();
    authority.slow = usize::MAX;
    let (end, waited) = finish(&mut ordering(&settings(), &["shop.example"]), &mut authority);
    assert_eq!(end.expect_err("slow").kind, Kind::Slow);
    assert!((1700..=1800).contains(&waited), "{waited}");
    assert!(authority.log.len() < 250);
    authority.retry_after = Some(u64::MAX.to_string());
    let (end, waited) = finish(&mut ordering(&settings(), &["shop.example"]), &mut authority);
    assert_eq!((end.expect_err("slow").retry_after, waited), (Some(Duration::from_secs(u64::MAX)), 0));
}

#[test]
fn a_chain_that_was_not_ordered_is_refused() {
    let mut authority = Authority::new();
    authority.wrong_names = Some(vec!["other.example".to_owned()]);
    assert!(fault(&mut authority).said.contains("the name is not in it"));
    authority.wrong_names = None;
    authority.wrong_key = true;
    assert!(fault(&mut authority).said.contains("the key does not belong"));
    authority.wrong_key = false;
    authority.valid_from = NOW - 91 * DAY;
    let fault = fault(&mut authority);
    assert_eq!(fault.kind, Kind::Clock);
    assert!(fault.advice().contains("set the clock"));
}

#[test]
fn a_file_on_disk_is_checked_in_the_same_way() {
    let authority = Authority::new();
    let pem = authority.issue(&Key::new().public(), vec!["shop.example".to_owned()], "Root");
    let check = |pem: &[u8], key: &[u8]| {
        check_chain(pem, key, &identifiers(&["shop.example"]), NOW).expect_err("broken").said
    };
    assert!(check(b"", b"").contains("it is empty"));
    assert!(check(pem.as_bytes(), pem.as_bytes()).contains("no private key"));
    assert!(check(&pem.as_bytes()[..200], b"").contains("does not end"));
}

#[test]
fn an_answer_beyond_the_rules_or_a_limit_is_not_read() {
    let at = |path: &'static str, name: &str, value: Value| {
        let mut body = json!({
            "status": "pending", "authorizations": [], "finalize": "https://ca.example/finalize/0",
            "identifier": { "type": "dns", "value": "shop.example" },
            "newNonce": "https://ca.example/nonce", "newAccount": "https://ca.example/account", "newOrder": "https://ca.example/order",
        });
        body[name] = value;
        let mut response = document(200, &body);
        response.location = Some("https://ca.example/order/0".to_owned());
        fault_at(path, response)
    };
    let offer = |token: &str, url: &str| json!([{ "type": "http-01", "token": token, "url": url }]);
    for fault in [
        at(
            "order",
            "authorizations",
            json!(["https://ca.example/authorization/0/0", "https://ca.example/authorization/0/0"]),
        ),
        at("order", "finalize", json!("http://ca.example/finalize/0")),
        at("order", "finalize", json!("file:///etc/passwd")),
        at("order", "finalize", json!("https://ca.example/a b")),
        at("order", "finalize", json!("https:///")),
        at("order", "finalize", json!(format!("https://ca.example/{}", "a".repeat(2048)))),
        at("order", "status", json!("valid")),
        at("authorization", "challenges", offer("../../etc/passwd", "https://ca.example/")),
        at("authorization", "challenges", offer(&"a".repeat(129), "https://ca.example/")),
        at("authorization", "challenges", offer("", "https://ca.example/")),
        at("authorization", "challenges", offer("token", "http://127.0.0.1/")),
        at("authorization", "identifier", json!({ "type": "dns", "value": "other.example" })),
        at("directory", "newNonce", json!("http://10.0.0.1/")),
        at("directory", "newOrder", json!(7)),
        fault_at(
            "directory",
            HttpResponse { status: 200, body: b"<html>".to_vec(), ..HttpResponse::default() },
        ),
        fault_at(
            "order",
            document(201, &json!({ "status": "ready", "finalize": "https://ca.example/finalize/0" })),
        ),
        fault_at("account", document(201, &json!({}))),
        fault_at(
            "directory",
            HttpResponse { status: 200, body: vec![b' '; MAX_RESPONSE + 1], ..HttpResponse::default() },
        ),
        fault_at(
            "nonce",
            HttpResponse { status: 200, nonce: Some("a b".to_owned()), ..HttpResponse::default() },
        ),
    ] {
        assert_eq!(fault.kind, Kind::Unreadable, "{fault}");
        assert!(!fault.to_string().contains('\n'));
    }
    let huge = HttpResponse { status: 200, body: vec![b'-'; MAX_RESPONSE + 1], ..HttpResponse::default() };
    assert!(fault_at("certificate", huge).said.contains("longer than"));
}

#[test]
fn a_directory_without_tls_may_name_its_own_origin_only() {
    let own = "http://127.0.0.1:14000/dir";
    let url = |url: &str| crate::wire::checked_url(url, own).is_ok();
    assert!(url("http://127.0.0.1:14000/order") && url("https://ca.example/order"));
    for other in [
        "http://127.0.0.1/order",
        "http://127.0.0.1:14000@ca.example/",
        "http://127.0.0.1:140001/",
        "ftp://127.0.0.1:14000/",
        "127.0.0.1:14000",
    ] {
        assert!(!url(other), "{other}");
    }
}

#[test]
fn an_order_ends_whichever_request_has_no_answer() {
    let run = |lost: usize| {
        let mut authority = Authority::new();
        let mut order = ordering(&settings(), &["shop.example"]);
        let (mut sent, mut open) = (0, 0);
        loop {
            match order.next(NOW) {
                Step::Send(request) => {
                    if sent == lost {
                        order.not_answered("the connection was reset");
                    } else {
                        order.answered(authority.answer(&request));
                    }
                    sent += 1;
                }
                Step::Publish(challenge) => {
                    open += 1;
                    authority.published.insert(challenge.token.clone(), challenge);
                }
                Step::Withdraw(_) => open -= 1,
                Step::Wait(_) => {}
                Step::Issued(_) => break assert_eq!(open, 0),
                Step::Failed(fault) => {
                    assert_eq!((fault.kind, open), (Kind::Unreachable, 0));
                    break assert!(
                        fault.to_string().contains("the connection was reset; see that acme-directory")
                    );
                }
            }
        }
    };
    (0..12).for_each(run);
}

#[test]
fn a_ca_that_is_broken_is_no_fault_of_the_network() {
    let broken = fault_at("directory", HttpResponse { status: 503, ..HttpResponse::default() });
    assert_eq!(broken.said, "status 503");
    assert!(broken.advice().contains("fault of its own") && !broken.advice().contains("acme-ca"), "{broken}");
}

#[test]
fn a_challenge_that_cannot_be_published_ends_the_order() {
    let mut authority = Authority::new();
    let mut order = ordering(&settings(), &["shop.example"]);
    let mut withdrawn = false;
    let fault = loop {
        match order.next(NOW) {
            Step::Send(request) => order.answered(authority.answer(&request)),
            Step::Publish(_) => order.not_published("no space left on device"),
            Step::Withdraw(_) => withdrawn = true,
            Step::Failed(fault) => break fault,
            other => panic!("{other:?}"),
        }
    };
    assert!(withdrawn);
    assert_eq!(fault.kind, Kind::Publishing);
    assert!(
        fault.to_string().starts_with("shop.example: the challenge cannot be published: no space left"),
        "{fault}"
    );
}

#[test]
fn a_window_is_asked_for() {
    let id = "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE";
    let ask = |id: &str, base: Option<&str>, answer: HttpResponse| {
        let mut asking = Asking::new("https://ca.example/directory", id);
        let plain = |url: &str| Asked::Send(HttpRequest::plain(Method::Get, url));
        assert_eq!(asking.next(), plain("https://ca.example/directory"));
        let mut directory = Authority::new().directory;
        directory["renewalInfo"] = json!(base);
        asking.answered(&document(200, &directory), NOW);
        if let Asked::Send(request) = asking.next() {
            assert_eq!(request.url, format!("https://ca.example/renewal/{id}"));
            asking.answered(&answer, NOW);
        }
        match asking.next() {
            Asked::Done(window, wait) => (window, wait),
            other => panic!("{other:?}"),
        }
    };
    let info = |start: &str| json!({ "suggestedWindow": { "start": start, "end": "2027-01-16T00:00:00Z" }, "explanationURL": "https://ca.example/why" });
    let mut answer = document(200, &info("2027-01-15T08:00:00Z"));
    answer.retry_after = Some("21600".to_owned());
    let (window, wait) = ask(id, Some("https://ca.example/renewal/"), answer.clone());
    let explanation = Some("https://ca.example/why".to_owned());
    assert_eq!(window, Ok(Some(Window { id: id.to_owned(), start: NOW, end: NOW + 57_600, explanation })));
    assert_eq!(wait, Some(Duration::from_secs(21_600)));
    assert_eq!(ask(id, None, answer.clone()).0, Ok(None));
    assert_eq!(ask("../account", Some("https://ca.example/renewal"), answer).0, Ok(None));
    let backwards = document(200, &info("2027-01-17T00:00:00Z"));
    assert_eq!(
        ask(id, Some("https://ca.example/renewal"), backwards).0.expect_err("none").kind,
        Kind::Unreadable
    );
    let mut down = HttpResponse { status: 503, ..HttpResponse::default() };
    down.retry_after = Some("60".to_owned());
    let (window, wait) = ask(id, Some("https://ca.example/renewal"), down);
    assert_eq!((window.expect_err("down").kind, wait), (Kind::Broken, Some(Duration::from_secs(60))));
    let mut asking = Asking::new("https://ca.example/directory", id);
    asking.not_answered("no route");
    assert!(matches!(asking.next(), Asked::Done(Err(_), None)));
}

#[test]
fn names_are_read_as_a_ca_takes_them() {
    let read = |text: &str| text.parse::<Identifier>().map(|name| name.to_string());
    for (text, name) in [
        ("Shop.Example.", "shop.example"),
        ("*.shop.example", "*.shop.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("203.0.113.5", "203.0.113.5"),
        ("[2001:DB8:0::7]", "2001:db8::7"),
    ] {
        assert_eq!(read(text), Ok(name.to_owned()));
    }
    for text in [
        "",
        ".",
        "localhost",
        "bücher.example",
        "a b.example",
        "a_b.example",
        "*.*.example",
        "a..example",
        "../x.example",
        "-a.example",
        "1.2.3",
        &"a.".repeat(130),
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever of an answer is cut, doubled or changed: the order ends, with one line, and no challenge is left.
    #[test]
    fn any_answer_ends_the_order(seed in prop::collection::vec((0usize..14, any::<u16>(), any::<u8>(), 100u16..600), 1..4)) {
        let mut authority = Authority::new();
        let mut order = ordering(&settings(), &["shop.example"]);
        let (mut sent, mut open) = (0, 0);
        for _ in 0..1000 {
            match order.next(NOW) {
                Step::Send(request) => {
                    let mut answer = authority.answer(&request);
                    for &(_, place, byte, status) in seed.iter().filter(|(at, ..)| *at == sent) {
                        if answer.body.is_empty() || byte < 64 {
                            answer.status = status;
                        } else {
                            let at = usize::from(place) % answer.body.len();
                            match byte % 3 {
                                0 => answer.body.truncate(at),
                                1 => answer.body[at] = byte,
                                _ => answer.body.insert(at, byte),
                            }
                        }
                    }
                    order.answered(answer);
                    sent += 1;
                }
                Step::Publish(challenge) => {
                    open += 1;
                    authority.published.insert(challenge.token.clone(), challenge);
                }
                Step::Withdraw(_) => open -= 1,
                Step::Wait(_) => {}
                Step::Issued(_) => { prop_assert_eq!(open, 0); return Ok(()); }
                Step::Failed(fault) => {
                    prop_assert_eq!(open, 0);
                    prop_assert!(!fault.to_string().contains('\n'));
                    return Ok(());
                }
            }
        }
        prop_assert!(false, "no end");
    }
}
