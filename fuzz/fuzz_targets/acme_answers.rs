//! Answers of a CA to an order and to a question for a window. Input: answers one behind the other, with a line `---` between them; each is a status, fields, an
//! empty line, the body.
//!
//! Whatever the answers are, an order ends within its limits and with one line; requests go to URLs by https or to the directory, tokens are
//! names of files, and each challenge that was published is withdrawn.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use maitred_acme::{
    Account, Asked, Asking, Challenge, ChallengeKind, HttpRequest, HttpResponse, Identifier, Ordering,
    Settings, Step, check_chain,
};

const DIRECTORY: &str = "https://ca.example/directory";
const NOW: u64 = 1_800_000_000;

/// More steps than the limits of an order allow.
const MAX_STEPS: usize = 10_000;

fuzz_target!(|input: &[u8]| {
    let answers = answers(input);
    order(&answers);
    window(&answers);
    let _ = check_chain(input, input, &names(), NOW);
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(name) = text.parse::<Identifier>()
    {
        assert_eq!(name.to_string().parse(), Ok(name.clone()));
        assert!(!name.to_string().contains('/') && !name.to_string().starts_with('.'));
    }
});

fn order(answers: &[HttpResponse]) {
    let kinds = vec![ChallengeKind::Http01, ChallengeKind::TlsAlpn01, ChallengeKind::Dns01];
    let settings = Settings {
        directory: DIRECTORY.to_owned(),
        contact: None,
        external_account: None,
        profile: None,
        preferred_chain: Some("Root".to_owned()),
        challenges: kinds,
    };
    let mut order = Ordering::new(&settings, account(), names(), Some("aYhb.AIdl".to_owned()), 0);
    let mut answers = answers.iter();
    let mut open: Vec<Challenge> = Vec::new();
    for _ in 0..MAX_STEPS {
        match order.next(NOW) {
            Step::Send(request) => {
                check_request(&request);
                match answers.next() {
                    Some(answer) => order.answered(answer.clone()),
                    None => order.not_answered("there is no answer"),
                }
            }
            Step::Publish(challenge) => {
                let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
                assert!((1..=128).contains(&challenge.token.len()) && challenge.token.bytes().all(is_name));
                assert!(challenge.key_authorization.starts_with(&challenge.token));
                open.push(challenge);
            }
            Step::Withdraw(challenge) => assert_eq!(open.pop(), Some(challenge)),
            Step::Wait(time) => assert!((1..=1800).contains(&time.as_secs())),
            Step::Issued(_) => unreachable!("the key of the order is not in the input"),
            Step::Failed(fault) => {
                assert!(open.is_empty());
                let text = fault.to_string();
                assert!(text.len() < 8192 && !text.chars().any(char::is_control), "{text:?}");
                return;
            }
        }
    }
    panic!("the order does not end");
}

fn window(answers: &[HttpResponse]) {
    let mut asking = Asking::new(DIRECTORY, "aYhb.AIdl");
    for answer in answers.iter().chain(std::iter::repeat_n(&HttpResponse::default(), 2)) {
        match asking.next() {
            Asked::Send(request) => {
                check_request(&request);
                asking.answered(answer, NOW);
            }
            Asked::Done(window, _) => {
                if let Ok(Some(window)) = window {
                    assert!(window.start < window.end && window.id == "aYhb.AIdl");
                }
                return;
            }
        }
    }
}

fn check_request(request: &HttpRequest) {
    assert!(request.url == DIRECTORY || request.url.starts_with("https://"), "{}", request.url);
    assert!(request.url.bytes().all(|byte| byte.is_ascii_graphic()));
}

fn answers(input: &[u8]) -> Vec<HttpResponse> {
    let text = String::from_utf8_lossy(input);
    text.split("\n---\n").map(answer).collect()
}

fn answer(text: &str) -> HttpResponse {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(200);
    HttpResponse::new(status, lines.filter_map(|line| line.split_once(':')), body.as_bytes().to_vec())
}

fn names() -> Vec<Identifier> {
    ["shop.example", "*.shop.example", "203.0.113.5"].map(|name| name.parse().expect("a name")).to_vec()
}

fn account() -> Account {
    static ACCOUNT: OnceLock<Account> = OnceLock::new();
    ACCOUNT.get_or_init(|| Account::generate(DIRECTORY).expect("random numbers")).clone()
}
