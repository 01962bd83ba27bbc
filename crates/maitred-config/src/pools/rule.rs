//! Rules as they are written: `/path`, `METHOD /path`, or condition by condition.

use maitred_http::Method;
use maitred_server::PoolRule;

use crate::forms::{At, CERTIFICATE, Form, HEADER, HOST, METHOD, Maybe, NETWORK, PATH, quoted};
use crate::schema::{Item, Key, Own};
use crate::{BadValue, Problem, Source, value};

pub(super) const POOL: &str = "pool";

pub(super) const MATCH: &str = "match";

/// The conditions of a rule, in the order in which they are shown.
const CONDITIONS: [Own<PoolRule>; 6] = [
    Own::new("host", &rule(Maybe(HOST), |rule| &mut rule.host), "The name of a virtual host."),
    Own::new("method", &rule(Maybe(METHOD), |rule| &mut rule.method), "A method, in capitals."),
    Own::new("path", &rule(Maybe(PATH), |rule| &mut rule.path), "A pattern such as /staff/*."),
    Own::new("header", &rule(Maybe(HEADER), |rule| &mut rule.header), "'Name: value'; each * is anything."),
    Own::new("client", &rule(Maybe(NETWORK), |rule| &mut rule.client), "An address or a network."),
    Own::new(
        "client-certificate",
        &rule(Maybe(CERTIFICATE), |rule| &mut rule.certificate),
        "A name in a verified certificate.",
    ),
];

const fn rule<F: Form>(form: F, field: fn(&mut PoolRule) -> &mut F::Value) -> At<PoolRule, F> {
    At { form, field }
}

/// The warning about a condition that no client can meet, since clients are not asked for certificates.
pub(crate) const NOBODY_IS_ASKED: &str =
    "clients are not asked for certificates, so that nobody has one; set tls-client-auth";

pub(super) fn keys() -> Vec<Key> {
    CONDITIONS.iter().map(Own::key).collect()
}

/// The names of the conditions.
pub fn conditions() -> String {
    CONDITIONS.each_ref().map(|own| own.name).join(", ")
}

/// Reads an item of `match` in the table of a pool.
pub(super) fn read(pool: &str, item: &Item) -> Result<(PoolRule, Source), Problem> {
    match item {
        Item::Text(text, source) => {
            let rule = short_rule(pool, text);
            let rule = rule.map_err(|bad| bad.at(source.place_in(POOL, pool, Some(MATCH))))?;
            Ok((rule, source.clone()))
        }
        Item::Table(part) => {
            let mut rule = PoolRule { pool: pool.to_owned(), ..PoolRule::default() };
            for given in &part.given {
                let Some(own) = CONDITIONS.iter().find(|own| own.name == given.key) else { continue };
                given.set(own.value, &mut rule).map_err(|(bad, source)| {
                    // On the command line a condition stands beside the keys of the pool.
                    let inside = format!("{MATCH}.{}", own.name);
                    let key = if source.is_file() { &inside } else { own.name };
                    bad.at(source.place_in(POOL, pool, Some(key)))
                })?;
            }
            if rule.is_unconditional() {
                let place = part.source.place_in(POOL, pool, Some(MATCH));
                return Err(Problem::new(
                    place,
                    "a rule has no condition",
                    format!("it has {}", conditions()),
                ));
            }
            Ok((rule, part.source.clone()))
        }
    }
}

/// The rule `/path` or `METHOD /path`.
pub(super) fn short_rule(pool: &str, text: &str) -> Result<PoolRule, BadValue> {
    let mut rule = PoolRule { pool: pool.to_owned(), ..PoolRule::default() };
    let text = text.trim();
    let path = match text.split_once(' ') {
        // A space may be part of a path.
        Some((word, path)) if !word.starts_with(['/', '*']) => {
            rule.method = Some(value::method(word)?);
            path.trim_start()
        }
        _ if !matches!(Method::from_token(text), Method::Other(_)) => {
            let remedy = format!("write '{text} /path', or {{ method = \"{text}\" }} for all paths");
            return Err(BadValue::new(format!("'{text}' is a method without a path"), remedy));
        }
        _ => text,
    };
    rule.path = Some(value::pattern(path)?);
    Ok(rule)
}

/// The rule as an item of a `match` list.
pub fn show_rule(rule: &PoolRule) -> String {
    let PoolRule { pool: _, host, method, path, header, client, certificate } = rule;
    let is_short = host.is_none() && header.is_none() && client.is_none() && certificate.is_none();
    match (method, path) {
        (None, Some(path)) if is_short => quoted(&path.to_string()),
        (Some(method), Some(path)) if is_short => quoted(&format!("{method} {path}")),
        _ => {
            let shown = |own: &Own<PoolRule>| Some(format!("{} = {}", own.name, own.value.show(rule)?));
            format!("{{ {} }}", CONDITIONS.iter().filter_map(shown).collect::<Vec<_>>().join(", "))
        }
    }
}
