//! From the configuration of pools to settings, and rules as they are written and shown.

use std::time::Duration;

use super::keys::check_name;
use super::rule::short_rule;
use super::*;
use crate::config::NamedPool;

#[test]
fn the_defaults_of_the_table_are_those_of_the_server() {
    let config = Config::with_defaults();
    assert_eq!(config.pool.settings(DEFAULT_POOL), PoolSettings::default());
    assert_eq!(PoolConfig::named().settings("reports"), PoolSettings::named("reports"));
    assert!(config.pools.is_empty() && config.rules.is_empty());
}

#[test]
fn lost_threads_are_as_many_as_threads_unless_it_is_said() {
    let mut pool = PoolConfig::named();
    pool.limits.max_threads = 3;
    assert_eq!(pool.settings("a").limits.max_lost, 3);
    let pool = PoolConfig { max_lost_threads: Some(0), ..pool };
    assert_eq!(pool.settings("a").limits.max_lost, 0);
}

#[test]
fn threads_of_all_pools_may_be_in_the_application_and_those_that_replace_lost_ones() {
    let mut config = Config::with_defaults();
    config.pool.limits.max_threads = 1;
    assert_eq!(config.most_threads(), 1);
    config.pools.push(NamedPool { name: "a".to_owned(), threads: PoolConfig::named() });
    assert_eq!(config.most_threads(), 11);
    config.pool.limits.request_timeout = Some(Duration::from_secs(1));
    assert_eq!(config.most_threads(), 12);
    config.pool.max_lost_threads = Some(0);
    assert_eq!(config.most_threads(), 11);
}

#[test]
fn zero_seconds_and_no_timeout_are_the_same() {
    let request_timeout = options::find("request-timeout").expect("an option");
    let mut config = Config::with_defaults();
    assert_eq!(config.pool.effective_limits().request_timeout, None);
    for (text, limit) in [("1.5", Some(Duration::from_millis(1500))), ("0", None)] {
        request_timeout.set(&mut config, &[text.to_owned()]).expect(text);
        assert_eq!(config.pool.effective_limits().request_timeout, limit);
        assert_eq!(request_timeout.show(&config).as_deref(), Some(text));
    }
}

#[test]
fn a_short_rule_is_shown_as_it_was_written() {
    for (text, shown) in [
        ("/report/*", "\"/report/*\""),
        ("*.pdf", "\"*.pdf\""),
        ("POST /jobs/*", "\"POST /jobs/*\""),
        (" PURGE   /a b ", "\"PURGE /a b\""),
        ("/a b", "\"/a b\""),
    ] {
        assert_eq!(show_rule(&short_rule("a", text).expect(text)), shown);
    }
}

#[test]
fn a_bad_short_rule_says_what_was_meant() {
    for (text, error) in [
        ("post /jobs", "'post' is no method; did you mean 'POST'?"),
        ("PO(ST /jobs", "'PO(ST' is no method; write one, such as POST, or a path that starts with '/'"),
        (
            "POST",
            "'POST' is a method without a path; write 'POST /path', or { method = \"POST\" } for all paths",
        ),
        ("jobs/*", "the path 'jobs/*' starts neither with '/' nor with '*'; did you mean '/jobs/*'?"),
        ("POST jobs", "the path 'jobs' starts neither with '/' nor with '*'; did you mean '/jobs'?"),
    ] {
        let BadValue { what, remedy } = short_rule("a", text).expect_err(text);
        assert_eq!(format!("{what}; {remedy}"), error);
    }
}

#[test]
fn names_of_pools_are_plain() {
    for name in ["a", "reports", "Reports-2_x", &"a".repeat(32)] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    for name in ["", "2a", "-a", "a b", "a.b", "é", "a=b", &"a".repeat(33)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}
