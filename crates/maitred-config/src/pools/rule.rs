//! Rules as they are written: `/path`, `METHOD /path`, or condition by condition.

use maitred_http::Method;
use maitred_http::fields::is_token;
use maitred_server::{HostCondition, PoolRule};

use crate::forms::quoted;
use crate::value::{BadValue, pattern};

/// The conditions of a rule, in the order in which they are shown.
pub const CONDITIONS: [&str; 6] = ["host", "method", "path", "header", "client", "client-certificate"];

/// The warning about a condition that no client can meet, since clients are not asked for certificates.
pub(crate) const NOBODY_IS_ASKED: &str =
    "clients are not asked for certificates, so that nobody has one; set tls-client-auth";

/// The rule `/path` or `METHOD /path`.
pub(crate) fn short_rule(pool: &str, text: &str) -> Result<PoolRule, BadValue> {
    let mut rule = PoolRule { pool: pool.to_owned(), ..PoolRule::default() };
    let text = text.trim();
    let path = match text.split_once(' ') {
        // A space may be part of a path.
        Some((word, path)) if !word.starts_with(['/', '*']) => {
            set_condition(&mut rule, "method", word)?;
            path.trim_start()
        }
        _ if !matches!(Method::from_token(text), Method::Other(_)) => {
            let remedy = format!("write '{text} /path', or {{ method = \"{text}\" }} for all paths");
            return Err(BadValue::new(format!("'{text}' is a method without a path"), remedy));
        }
        _ => text,
    };
    set_condition(&mut rule, "path", path)?;
    Ok(rule)
}

/// Parses one of the [`CONDITIONS`] into a rule.
pub(crate) fn set_condition(rule: &mut PoolRule, condition: &str, text: &str) -> Result<(), BadValue> {
    match condition {
        // The number is set when all hosts are known.
        "host" => rule.host = Some(HostCondition { number: u16::MAX, name: text.into() }),
        "method" => rule.method = Some(method(text)?),
        "path" => rule.path = Some(pattern(text)?),
        "header" => rule.header = Some(pattern(text)?),
        "client" => rule.client = Some(pattern(text)?),
        "client-certificate" => rule.certificate = Some(pattern(text)?),
        other => return Err(BadValue::new(format!("'{other}' is no condition"), CONDITIONS.join(", "))),
    }
    Ok(())
}

/// Parses a method. Methods are case-sensitive (RFC 9110 §9.1): `get` is another one than `GET`, and surely a mistake.
fn method(text: &str) -> Result<Method, BadValue> {
    let upper = text.to_ascii_uppercase();
    let is_known = !matches!(Method::from_token(&upper), Method::Other(_));
    let remedy = match upper {
        upper if upper != text && is_known => format!("did you mean '{upper}'?"),
        _ if is_token(text.as_bytes()) => return Ok(Method::from_token(text)),
        _ => "write one, such as POST, or a path that starts with '/'".to_owned(),
    };
    Err(BadValue::new(format!("'{text}' is no method"), remedy))
}

/// The rule as an item of a `match` list.
pub fn show_rule(rule: &PoolRule) -> String {
    let PoolRule { pool: _, host, method, path, header, client, certificate } = rule;
    let is_short = host.is_none() && header.is_none() && client.is_none() && certificate.is_none();
    match (method, path) {
        (None, Some(path)) if is_short => quoted(&path.to_string()),
        (Some(method), Some(path)) if is_short => quoted(&format!("{method} {path}")),
        _ => {
            let texts = [
                host.as_ref().map(ToString::to_string),
                method.as_ref().map(ToString::to_string),
                path.as_ref().map(ToString::to_string),
                header.as_ref().map(ToString::to_string),
                client.as_ref().map(ToString::to_string),
                certificate.as_ref().map(ToString::to_string),
            ];
            let conditions = CONDITIONS.iter().zip(texts);
            let items: Vec<String> =
                conditions.filter_map(|(name, text)| Some(format!("{name} = {}", quoted(&text?)))).collect();
            format!("{{ {} }}", items.join(", "))
        }
    }
}
