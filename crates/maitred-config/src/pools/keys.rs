//! The keys of the table of a pool, and its name.

use super::rule::{self, MATCH};
use crate::forms::{Count, Field};
use crate::options::{self, Kind, MAX_THREADS, pool};
use crate::schema::{Key, Takes};
use crate::{BadValue, Definition, PoolConfig};

pub(super) fn keys() -> Vec<Key> {
    let rules = Key {
        name: MATCH,
        help: "Which requests it gets: \"/path\", \"METHOD /path\", or { path = \"...\" } with host, method, path, header, client, \
               client-certificate; a list of these.",
        takes: Takes::Rules {
            keys: rule::keys,
            form: "\"/path\", \"METHOD /path\" or { path = \"...\", ... }",
        },
    };
    let of_option = |option: &Definition| {
        Some(Key { takes: Takes::Value(value_of(option)?.facts()), ..Key::of_option(option)? })
    };
    std::iter::once(rules).chain(options::of_pools().filter_map(of_option)).collect()
}

/// Only the default pool needs a thread at all times, for polling.
const MIN_THREADS: &dyn Field<PoolConfig> = &pool(Count(0, MAX_THREADS), |pool| &mut pool.limits.min_threads);

pub(super) fn value_of(option: &Definition) -> Option<&'static dyn Field<PoolConfig>> {
    match option.kind {
        Kind::Pool(_) if option.name == "min-threads" => Some(MIN_THREADS),
        Kind::Pool(value) => Some(value),
        _ => None,
    }
}

/// Most bytes of a name: it is part of the names of threads, of which Linux shows 15 bytes, and of lines in logs.
const MAX_NAME: usize = 32;

pub(super) fn check_name(name: &str) -> Result<(), BadValue> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let plain = name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_plain);
    if plain && name.len() <= MAX_NAME {
        return Ok(());
    }
    let remedy = format!("write 1 to {MAX_NAME} letters, digits, '-' and '_', a letter first");
    Err(BadValue::new(format!("'{name}' is no name of a pool"), remedy))
}
