//! A question and its answer as plain data, so that a supervisor can hand them on.

use maitred_http::target;
use maitred_stats::exposition::Format;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Given, Refusal};

pub(super) const METRICS: &str = "metrics";

/// A question, as it came by HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// `GET` or `POST`.
    pub method: String,
    /// `/stats`, `/deliveries/end`.
    pub path: String,
    /// The query behind the question mark, still encoded.
    pub query: String,
    /// Arguments of a change: an object of JSON, or nothing.
    pub body: String,
    /// The media types that are taken.
    pub accept: String,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The status of HTTP.
    pub status: u16,
    /// The body.
    pub body: String,
    /// The media type of the body.
    pub media_type: String,
    /// Methods that would be right.
    pub allow: Option<String>,
}

impl Answered {
    /// A value, which has no maps but those with texts as keys.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        let body = serde_json::to_string(value).unwrap_or_default() + "\n";
        Self { status, body, media_type: "application/json".to_owned(), allow: None }
    }

    /// An error with a line that names it.
    pub fn error(status: u16, text: &str) -> Self {
        Self::json(status, &json!({ "error": text }))
    }

    /// The JSON value of the body, also of an error; none when it is no JSON.
    pub fn value(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }

    /// The value of the body; none when the question is refused, or of another body.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        if self.status == 200 { serde_json::from_str(&self.body).ok() } else { None }
    }
}

impl From<Refusal> for Answered {
    fn from(refusal: Refusal) -> Self {
        Self::error(refusal.status, &refusal.text)
    }
}

impl Question {
    /// A query without arguments.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), path: path.into(), ..Self::default() }
    }

    /// A change, or a query that is asked by `POST`, without arguments.
    pub fn post(path: impl Into<String>) -> Self {
        Self { method: "POST".to_owned(), ..Self::get(path) }
    }

    /// The name of the command, `deliveries end`; empty where nothing is asked for.
    pub fn name(&self) -> String {
        self.path.trim_matches('/').replace('/', " ")
    }

    /// Whether it changes nothing.
    pub fn is_query(&self) -> bool {
        matches!(&*self.method, "GET" | "HEAD")
    }

    /// Whether it is for the page of figures.
    pub fn is_for_metrics(&self) -> bool {
        self.name() == METRICS && self.is_query()
    }

    /// The form in which the page of figures is wanted.
    pub fn format(&self) -> Format {
        Format::accepted([self.accept.as_bytes()])
    }

    /// The arguments of the question.
    ///
    /// # Errors
    /// The body is no object.
    pub fn given(&self) -> Result<Given, Answered> {
        let mut given = in_query(self.query.as_bytes());
        if !self.is_query() && !self.body.is_empty() {
            given.0.extend(in_body(self.body.as_bytes())?.0);
        }
        Ok(given)
    }
}

/// `name=value&name=value`, as a form sends it.
pub(super) fn in_query(query: &[u8]) -> Given {
    let decode = |part: &[u8]| {
        let plain: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        let mut decoded = Vec::new();
        target::percent_decode(&plain, &mut decoded);
        String::from_utf8_lossy(&decoded).into_owned()
    };
    let parts = query.split(|byte| *byte == b'&').filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        let mut sides = part.splitn(2, |byte| *byte == b'=');
        let mut next = || decode(sides.next().unwrap_or_default());
        (next(), next())
    });
    Given(pairs.collect())
}

/// An object of JSON whose values are texts, numbers or switches.
fn in_body(body: &[u8]) -> Result<Given, Answered> {
    let wrong = || Answered::error(400, "the body is no JSON object of names with their values");
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return Err(wrong()) };
    let pair = |(name, value): (String, Value)| match value {
        Value::String(text) => Ok((name, text)),
        Value::Number(_) | Value::Bool(_) => Ok((name, value.to_string())),
        _ => Err(wrong()),
    };
    Ok(Given(fields.into_iter().map(pair).collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_from_the_query_and_from_a_body() {
        let given = in_query(b"url=%2Fa%3Fb%3D1&header=X:+y&header=Z:%2B&&from");
        assert_eq!(given.value("url"), Some("/a?b=1"));
        assert_eq!(given.all("header").collect::<Vec<_>>(), ["X: y", "Z:+"]);
        assert_eq!(given.value("from"), Some(""));
        let given = in_body(br#"{"name": "pool.default.queue", "value": 7}"#).expect("an object");
        assert_eq!((given.value("name"), given.value("value")), (Some("pool.default.queue"), Some("7")));
        for wrong in ["", "7", "[]", r#"{"a": {}}"#, r#"{"a": null}"#] {
            assert!(in_body(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
