//! Which pool runs which request: the order of the rules, and the map against one that takes each condition by its word.

use std::cmp::Ordering;
use std::net::IpAddr;
use std::sync::Arc;

use maitred_http::{Method, RequestHead, TlsClient, TlsSession};
use maitred_server::{HostCondition, PoolMap, PoolRule};
use proptest::prelude::*;

/// A rule as it is written; empty texts are no conditions.
#[derive(Clone, Debug, Default)]
struct Written {
    pool: usize,
    method: &'static str,
    path: String,
    header: &'static str,
    client: &'static str,
    certificate: &'static str,
}

const NAMES: [&str; 3] = ["one", "two", "three"];

impl Written {
    fn path(pool: usize, path: &str) -> Self {
        Self { pool, path: path.to_owned(), ..Self::default() }
    }

    fn rule(&self) -> PoolRule {
        let some = |text: &'static str| Some(text).filter(|text| !text.is_empty());
        PoolRule {
            host: None,
            pool: if self.pool == 0 { "default".to_owned() } else { NAMES[self.pool - 1].to_owned() },
            method: some(self.method).map(Method::from_token),
            path: Some(&self.path).filter(|path| !path.is_empty()).map(|path| path.parse().unwrap()),
            header: some(self.header).map(|header| header.parse().unwrap()),
            client: some(self.client).map(|client| client.parse().unwrap()),
            certificate: some(self.certificate).map(|name| name.parse().unwrap()),
        }
    }
}

/// The session of a client with a certificate.
fn till() -> Arc<TlsSession> {
    let client = TlsClient { common_name: Some("till".into()), ..TlsClient::default() };
    Arc::new(TlsSession { client: Some(client), ..TlsSession::default() })
}

#[derive(Clone, Debug)]
struct Asked {
    method: &'static str,
    path: String,
    kinds: Vec<&'static str>,
    client: &'static str,
}

impl Asked {
    fn get(path: &str) -> Self {
        Self { method: "GET", path: path.to_owned(), kinds: Vec::new(), client: "127.0.0.1" }
    }

    fn pool(&self, rules: &[Written]) -> usize {
        let method = Method::from_token(self.method);
        let mut head = RequestHead { method, tls: Some(till()), ..RequestHead::default() };
        for kind in &self.kinds {
            head.fields.push("X-Kind", kind);
        }
        let map = PoolMap::new(&NAMES, &rules.iter().map(Written::rule).collect::<Vec<_>>()).unwrap();
        assert_eq!(map.is_trivial(), rules.is_empty());
        map.find(&head, self.path.as_bytes(), Some(self.client.parse::<IpAddr>().unwrap()))
    }
}

#[test]
fn without_rules_everything_is_the_default_pool_s() {
    assert_eq!(Asked::get("/a").pool(&[]), 0);
    assert!(PoolMap::default().is_trivial());
}

#[test]
fn a_rule_for_a_pool_that_does_not_exist_is_an_error() {
    let rules = [PoolRule::default(), PoolRule { pool: "thre".to_owned(), ..PoolRule::default() }];
    let known = PoolRule { pool: "one".to_owned(), ..PoolRule::default() };
    let error = PoolMap::new(&NAMES, &[known, rules[1].clone()]).unwrap_err();
    assert_eq!(error.to_string(), "rule 2 leads to the pool 'thre', which does not exist");
}

#[test]
fn all_conditions_of_a_rule_have_to_be_met() {
    let rule = Written {
        pool: 2,
        method: "POST",
        path: "/jobs/*".to_owned(),
        header: "x-kind: batch*",
        client: "10.0.0.0/8",
        certificate: "till",
    };
    let met =
        Asked { method: "POST", path: "/jobs/1".to_owned(), kinds: vec!["a", "batch 7"], client: "10.1.2.3" };
    let pool = |asked: &Asked| asked.pool(std::slice::from_ref(&rule));
    assert_eq!(pool(&met), 2);
    assert_eq!(pool(&Asked { client: "::ffff:10.1.2.3", ..met.clone() }), 2);
    for other in [
        Asked { method: "GET", ..met.clone() },
        Asked { path: "/job".to_owned(), ..met.clone() },
        Asked { kinds: vec!["a"], ..met.clone() },
        Asked { kinds: Vec::new(), ..met.clone() },
        Asked { client: "11.1.2.3", ..met.clone() },
        Asked { client: "::10.1.2.3", ..met.clone() },
    ] {
        assert_eq!(pool(&other), 0, "{other:?}");
    }
}

#[test]
fn the_more_specific_rule_decides_wherever_it_stands() {
    let asked =
        Asked { method: "GET", path: "/user/7/export".to_owned(), kinds: vec!["batch"], client: "10.1.2.3" };
    let every = |path: &str| Written {
        path: path.to_owned(),
        method: "GET",
        header: "X-Kind: batch",
        client: "10.1.2.3",
        ..Written::default()
    };
    let none = Written::default();
    // Each one before the next.
    for pair in [
        [Written::path(0, "/user/7/export"), every("/user/7/expor*")],
        [Written::path(0, "/user/7/*"), every("/user/*/export")],
        [Written::path(0, "/user/*/export"), every("/user/*")],
        [Written::path(0, "/user/*"), every("/user*")],
        [Written::path(0, "/*"), every("*/export")],
        [Written::path(0, "*/export"), every("*export")],
        [Written::path(0, "*"), every("")],
        [
            Written { method: "GET", ..none.clone() },
            Written { header: "X-Kind: batch", client: "10.1.2.3", ..none.clone() },
        ],
        [
            Written { header: "X-Kind: batch", ..none.clone() },
            Written { header: "X-Kind: batc*", client: "10.1.2.3", ..none.clone() },
        ],
        [Written { header: "X-Kind: *", ..none.clone() }, Written { client: "10.1.2.3", ..none.clone() }],
        [Written { client: "10.1.2.3", ..none.clone() }, Written { client: "10.1.2.0/24", ..none.clone() }],
        [Written { client: "0.0.0.0/0", ..none.clone() }, Written { certificate: "till", ..none.clone() }],
        [Written { certificate: "till", ..none.clone() }, Written { certificate: "til*", ..none.clone() }],
        [Written { certificate: "*", ..none.clone() }, none.clone()],
    ] {
        let [first, second] = pair;
        let (first, second) = (Written { pool: 1, ..first }, Written { pool: 2, ..second });
        assert_eq!(asked.pool(&[first.clone(), second.clone()]), 1, "{first:?} {second:?}");
        assert_eq!(asked.pool(&[second.clone(), first.clone()]), 1, "{second:?} {first:?}");
    }
}

#[test]
fn a_rule_of_a_host_comes_before_all_that_have_none() {
    let host = |number: u16| Some(HostCondition { number, name: "shop".into() });
    let rules = [
        PoolRule { host: host(1), ..Written::path(1, "").rule() },
        PoolRule { host: host(1), ..Written::path(2, "/a/*").rule() },
        Written::path(3, "/a/b").rule(),
    ];
    let map = PoolMap::new(&NAMES, &rules).unwrap();
    let pool = |host, path: &str| {
        let head = RequestHead { host, ..RequestHead::default() };
        map.find(&head, path.as_bytes(), None)
    };
    assert_eq!([pool(1, "/a/b"), pool(1, "/x"), pool(0, "/a/b"), pool(2, "/x")], [2, 1, 3, 0]);
}

#[test]
fn who_has_no_certificate_meets_no_rule_about_one() {
    let rules =
        [Written { certificate: "*", ..Written::path(1, "") }, Written::path(2, "")].map(|rule| rule.rule());
    let map = PoolMap::new(&NAMES, &rules).unwrap();
    let pool = |tls| map.find(&RequestHead { tls, ..RequestHead::default() }, b"/", None);
    assert_eq!([pool(None), pool(Some(Arc::default())), pool(Some(till()))], [2, 2, 1]);
    assert!(!rules[0].is_unconditional());
}

#[test]
fn of_two_equal_rules_the_later_one_decides() {
    let rules = [Written::path(1, "/a/*"), Written::path(2, "/b/*"), Written::path(3, "/a/*")];
    assert_eq!(Asked::get("/a/b").pool(&rules), 3);
    // An exception leads back.
    let rules = [Written::path(0, "/a/quick"), Written::path(1, "/a/*")];
    assert_eq!((Asked::get("/a/quick").pool(&rules), Asked::get("/a/slow").pool(&rules)), (0, 1));
}

/// The text of the documentation, character by character: what is left of the pattern against what is left of the path.
fn stands_for(pattern: &[u8], path: &[u8], crosses: bool) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => {
            let crosses = crosses || rest.is_empty();
            (0..=path.len())
                .take_while(|taken| crosses || !path[..*taken].contains(&b'/'))
                .any(|taken| stands_for(rest, &path[taken..], false))
        }
        (Some((wanted, pattern)), Some((found, path))) if wanted == found => stands_for(pattern, path, false),
        _ => false,
    }
}

fn meets(rule: &Written, asked: &Asked) -> bool {
    let (pattern, path) = (rule.path.as_bytes(), asked.path.as_bytes());
    let is_folder = pattern.strip_suffix(b"/*").is_some_and(|folder| stands_for(folder, path, false));
    // `*.pdf` alone begins with what crosses slashes.
    let path = pattern.is_empty() || is_folder || stands_for(pattern, path, pattern.starts_with(b"*"));
    let kinds: &[&str] = match rule.header {
        "" => &[],
        "x-kind: a*" => &["a", "ab"],
        "X-Kind: *b" => &["ab", "b"],
        "X-KIND: ab" => &["ab"],
        other => unreachable!("{other}"),
    };
    let clients: &[&str] = match rule.client {
        "" => &CLIENTS,
        "10.0.0.0/8" => &["10.0.0.1", "::ffff:10.0.0.1", "10.0.1.1"],
        "10.0.0.0/24" => &["10.0.0.1", "::ffff:10.0.0.1"],
        "10.0.0.1" => &["10.0.0.1", "::ffff:10.0.0.1"],
        "::/0" => &["::1"],
        other => unreachable!("{other}"),
    };
    path && (rule.method.is_empty() || rule.method == asked.method)
        && (rule.header.is_empty() || asked.kinds.iter().any(|kind| kinds.contains(kind)))
        && clients.contains(&asked.client)
        && matches!(rule.certificate, "" | "till" | "t*l")
}

const CLIENTS: [&str; 5] = ["10.0.0.1", "::ffff:10.0.0.1", "10.0.1.1", "11.0.0.1", "::1"];

/// The list in the documentation of the map, item by item.
fn compare(one: &Written, other: &Written) -> Ordering {
    let stars = |rule: &Written| rule.path.matches('*').count();
    let is_literal = |rule: &Written| !rule.path.is_empty() && stars(rule) == 0;
    let before = |rule: &Written| rule.path.split('*').next().map_or(0, str::len);
    let has = |text: &str| !text.is_empty();
    let prefix = |rule: &Written| match rule.client {
        "" => -1,
        "10.0.0.0/8" => 8,
        "10.0.0.0/24" => 24,
        "10.0.0.1" => 32,
        _ => 0,
    };
    let exact_header = |rule: &Written| has(rule.header) && !rule.header.contains('*');
    let exact_name = |rule: &Written| has(rule.certificate) && !rule.certificate.contains('*');
    is_literal(one)
        .cmp(&is_literal(other))
        .then(has(&one.path).cmp(&has(&other.path)))
        .then(before(one).cmp(&before(other)))
        .then((one.path.len() - stars(one)).cmp(&(other.path.len() - stars(other))))
        .then(has(one.method).cmp(&has(other.method)))
        .then(exact_header(one).cmp(&exact_header(other)))
        .then(has(one.header).cmp(&has(other.header)))
        .then(prefix(one).cmp(&prefix(other)))
        .then(exact_name(one).cmp(&exact_name(other)))
        .then(has(one.certificate).cmp(&has(other.certificate)))
}

fn slow(rules: &[Written], asked: &Asked) -> usize {
    let mut best: Option<&Written> = None;
    for rule in rules.iter().filter(|rule| meets(rule, asked)) {
        if best.is_none_or(|best| compare(rule, best) != Ordering::Less) {
            best = Some(rule);
        }
    }
    best.map_or(0, |rule| rule.pool)
}

fn written() -> impl Strategy<Value = Written> {
    let path = prop_oneof![
        2 => Just(String::new()),
        6 => "(/[ab*]{1,3}){1,3}/?",
        1 => "\\*(/?[ab]){0,3}",
    ];
    let path = path.prop_filter("two stars in a row", |path| !path.contains("**"));
    let header =
        prop_oneof![3 => Just(""), 1 => Just("x-kind: a*"), 1 => Just("X-Kind: *b"), 1 => Just("X-KIND: ab")];
    let client = prop_oneof![
        3 => Just(""),
        1 => Just("10.0.0.0/8"),
        1 => Just("10.0.0.0/24"),
        1 => Just("10.0.0.1"),
        1 => Just("::/0"),
    ];
    let certificate =
        prop_oneof![3 => Just(""), 1 => Just("till"), 1 => Just("t*l"), 1 => Just("tills"), 1 => Just("b*")];
    let method = prop_oneof![Just(""), Just("GET"), Just("POST")];
    (0..=NAMES.len(), method, path, header, client, certificate).prop_map(
        |(pool, method, path, header, client, certificate)| Written {
            pool,
            method,
            path,
            header,
            client,
            certificate,
        },
    )
}

fn asked() -> impl Strategy<Value = Asked> {
    let kinds = proptest::collection::vec(prop_oneof![Just("a"), Just("b"), Just("ab"), Just("c")], 0..3);
    let client = (0..CLIENTS.len()).prop_map(|index| CLIENTS[index]);
    (prop_oneof![Just("GET"), Just("POST")], "(/[ab]{0,3}){1,3}|\\*", kinds, client)
        .prop_map(|(method, path, kinds, client)| Asked { method, path, kinds, client })
}

proptest! {
    #[test]
    fn the_map_finds_what_a_slow_look_at_every_rule_finds(
        rules in proptest::collection::vec(written(), 0..6),
        asked in proptest::collection::vec(asked(), 1..8),
    ) {
        for asked in &asked {
            prop_assert_eq!(asked.pool(&rules), slow(&rules, asked), "{:?}", asked);
        }
    }
}
