//! `snapshot`: the answers to all queries at one time, and the page that shows them without a server.

use maitred_io::clock;
use serde_json::{Map, Value, json};

use super::{Answered, Question, SNAPSHOT, WORKER, commands};

/// Stands in the place of values that may be secret.
pub const HIDDEN: &str = "(not shown)";

const WITH: [(&str, &str); 1] = [("logs", "last=200")];

/// The answers to all queries that need no arguments, by `ask`. `worker`: of that one only.
pub fn snapshot_of(worker: Option<usize>, ask: impl Fn(&Question) -> Answered) -> Value {
    let mut answers = Map::new();
    for command in commands() {
        let needs = command.arguments.iter().any(|argument| argument.required);
        if command.change || needs || command.name == SNAPSHOT {
            continue;
        }
        let own = WITH.iter().find(|(name, _)| *name == command.name).map_or("", |(_, query)| query);
        let name = if own.is_empty() { command.name.to_owned() } else { format!("{}?{own}", command.name) };
        let of_worker = worker.map(|number| format!("{WORKER}={number}"));
        let parts: Vec<&str> =
            Some(own).into_iter().chain(of_worker.as_deref()).filter(|part| !part.is_empty()).collect();
        let question = Question {
            query: parts.join("&"),
            ..Question::get(format!("/{}", command.name.replace(' ', "/")))
        };
        if let Some(mut answer) = ask(&question).value() {
            hide(&mut answer);
            answers.insert(name, answer);
        }
    }
    json!({ "taken": clock::unix_micros() as f64 / 1e6, "answers": answers })
}

/// Hides configured values of header fields, which may be secrets.
fn hide(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                match value {
                    Value::String(text) if is_of_fields(name) => *text = hidden(text),
                    Value::Array(items) if is_of_fields(name) => {
                        for item in items.iter_mut() {
                            if let Value::String(text) = item {
                                *text = hidden(text);
                            }
                        }
                    }
                    other => hide(other),
                }
            }
        }
        _ => {}
    }
}

fn is_of_fields(name: &str) -> bool {
    ["header", "set-request", "add-request", "set-response", "add-response"].contains(&name)
}

/// `Name: value` without the value.
fn hidden(text: &str) -> String {
    let name = text.split([':', '=']).next().unwrap_or_default();
    if name.len() == text.len() { text.to_owned() } else { format!("{name}: {HIDDEN}") }
}

/// One file that shows a snapshot, which needs no server.
pub fn snapshot_page(snapshot: &Value) -> String {
    maitred_dashboard::offline(&snapshot.to_string())
}

/// `maitred-20261125-101500.html`, in UTC, by the time when it was taken.
pub fn snapshot_name(snapshot: &Value, ending: &str) -> String {
    let seconds = snapshot["taken"].as_f64().unwrap_or_default() as i64;
    let taken = jiff::Timestamp::from_second(seconds).unwrap_or_default();
    format!("maitred-{}.{ending}", taken.strftime("%Y%m%d-%H%M%S"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_without_needed_arguments_is_asked_once() {
        let taken = snapshot_of(Some(2), |question| {
            Answered::json(200, &json!({ "asked": format!("{}?{}", question.path, question.query) }))
        });
        let answers = taken["answers"].as_object().expect("answers");
        assert_eq!(answers["status"]["asked"], "/status?worker=2");
        assert_eq!(answers["logs?last=200"]["asked"], "/logs?last=200&worker=2");
        for without in ["explain", "drain", "set", "stacks", SNAPSHOT] {
            assert!(!answers.contains_key(without), "{without}");
        }
        assert!(taken["taken"].as_f64().is_some_and(|taken| taken > 1.7e9));
        assert_eq!(snapshot_name(&json!({ "taken": 0.5 }), "html"), "maitred-19700101-000000.html");
    }

    #[test]
    fn configured_fields_are_shown_without_their_values() {
        let mut answer = json!({
            "rules": [{ "path": "/a", "header": "X-Key: s3cret" }],
            "filters": [{ "set-request": ["Authorization: Basic s3cret", "X-A"], "nested": { "header": "X: y" } }],
        });
        hide(&mut answer);
        assert!(!answer.to_string().contains("s3cret"));
        assert_eq!(answer["rules"][0], json!({ "path": "/a", "header": "X-Key: (not shown)" }));
        assert_eq!(answer["filters"][0]["set-request"][1], "X-A");
    }
}
