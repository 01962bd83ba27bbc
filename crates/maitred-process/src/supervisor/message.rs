//! Messages between a supervisor and its workers, as JSON over a channel.
//!
//! ```text
//! supervisor                                         worker
//!     ---- setup, with descriptors -------------------->
//!     <--- ready (applications), or failed (why) -------
//!     <--- beat, each second ---------------------------
//!     ---- ask (a question of ctl) --> answer <---------
//!     <--- ask (figures of all) ----> answer ---------->
//!     ---- unready, last, at once, empty (with a socket) ->
//! ```

use maitred_config::sources::file::SourceFile;
use maitred_config::tls::Handed;
use maitred_config::validation::PassedName;
use maitred_control::{Answered, Question};
use maitred_supervise::Beat;
use serde_json::{Value, json};

/// Questions that only the supervisor asks: the counts of a worker, and the worker's part of the page of figures.
pub(crate) const COUNTED: &str = "/worker/counted";
pub(crate) const LOOKED: &str = "/worker/looked";
/// A picture of the process, for `finding`.
pub(crate) const PICTURE: &str = "/worker/picture";
pub(crate) const OWN_PAGE: &str = "/worker/metrics";

/// The first message to a worker. The descriptors come with this message: the listeners in the order of the configuration, the bell of all
/// workers, the table of clients of all workers, and the worker's own memory of figures and of its counts in that table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setup {
    /// The number of the worker, from 1 on.
    pub(crate) number: usize,
    /// Number of workers.
    pub(crate) workers: usize,
    /// Number of descriptors that are listeners.
    pub(crate) listeners: usize,
    /// The listeners are the worker's own, with queues that no other worker accepts from.
    pub(crate) own: bool,
    /// The listeners that a service manager has passed, by position.
    pub(crate) passed: Vec<Option<PassedName>>,
    /// The configuration files as the supervisor has read them.
    pub(crate) files: Vec<SourceFile>,
    /// The process has become another user.
    pub(crate) acts: bool,
    /// Changes that operators have made, in this order.
    pub(crate) changes: Vec<Question>,
    /// Certificates, keys and the ticket secret. The supervisor reads them: the worker may lack the right to.
    pub(crate) tls: Option<Handed>,
    /// The token of the page with tracebacks, in development.
    pub(crate) development: Option<String>,
}

/// From a worker.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FromWorker {
    /// The worker serves: the application and the addresses, for the start-up lines.
    Ready {
        what: Option<String>,
        served: Vec<String>,
    },
    /// The worker cannot start, for this reason.
    Failed(String),
    Beat(Beat),
    /// The answer to the question with this number.
    Answer(u64, Answered),
    /// A question for the supervisor.
    Ask(u64, Question),
}

/// To a worker that has been set up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToWorker {
    Ask(u64, Question, String),
    Answer(u64, Answered),
    /// The health path of the worker shall answer "not ready" from now on.
    Unready,
    /// This worker is among the last ones: it shall accept the connections that wait, then end.
    Last,
    /// The worker shall accept the connections that wait at the socket in this message, as if they waited at the listener with this number.
    Empty(usize),
    /// The worker shall end at once and cut requests off.
    AtOnce,
}

fn question(question: &Question) -> Value {
    let Question { method, path, query, body, accept } = question;
    json!({ "method": method, "path": path, "query": query, "body": body, "accept": accept })
}

fn answered(answered: &Answered) -> Value {
    let Answered { status, body, media_type, allow } = answered;
    json!({ "status": status, "body": body, "type": media_type, "allow": allow })
}

/// Null for a listener of our own.
pub(super) fn passed_name(passed: Option<&PassedName>) -> Value {
    passed.map_or(Value::Null, |PassedName { number, name }| json!({ "number": number, "name": name }))
}

pub(super) fn read_passed_names(value: &Value) -> Vec<Option<PassedName>> {
    let read = |value: &Value| {
        let number = i32::try_from(value["number"].as_i64()?).ok()?;
        Some(PassedName { number, name: text(value, "name") })
    };
    value.as_array().into_iter().flatten().map(read).collect()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

fn read_question(value: &Value) -> Question {
    let text = |name| text(value, name);
    Question {
        method: text("method"),
        path: text("path"),
        query: text("query"),
        body: text("body"),
        accept: text("accept"),
    }
}

fn read_answered(value: &Value) -> Answered {
    Answered {
        status: u16::try_from(number(value, "status")).unwrap_or(500),
        body: text(value, "body"),
        media_type: text(value, "type"),
        allow: value["allow"].as_str().map(ToOwned::to_owned),
    }
}

impl Setup {
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let Self { number, workers, listeners, own, passed, files, acts, changes, tls, development } = self;
        let files = files.iter().map(|file| {
            // Files that are no text have been refused before.
            let text = String::from_utf8_lossy(&file.bytes);
            json!({ "name": file.name, "text": text, "drop_in": file.is_drop_in })
        });
        let changes = changes.iter().map(question);
        json!({
            "number": number,
            "workers": workers,
            "listeners": listeners,
            "own": own,
            "passed": passed.iter().map(Option::as_ref).map(passed_name).collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
            "acts": acts,
            "changes": changes.collect::<Vec<_>>(),
            "tls": tls.as_ref().map(Handed::to_json),
            "development": development,
        })
        .to_string()
        .into_bytes()
    }

    /// None for bytes that are no such message.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let count = |name: &str| value[name].as_u64().and_then(|count| usize::try_from(count).ok());
        let files = value["files"].as_array()?.iter().map(|file| SourceFile {
            name: text(file, "name"),
            bytes: text(file, "text").into_bytes(),
            is_drop_in: file["drop_in"].as_bool().unwrap_or_default(),
        });
        Some(Self {
            number: count("number")?,
            workers: count("workers")?,
            listeners: count("listeners")?,
            own: value["own"].as_bool()?,
            passed: read_passed_names(&value["passed"]),
            files: files.collect(),
            acts: value["acts"].as_bool()?,
            changes: value["changes"].as_array()?.iter().map(read_question).collect(),
            tls: Handed::from_json(&value["tls"]),
            development: value["development"].as_str().map(ToOwned::to_owned),
        })
    }
}

impl FromWorker {
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let value = match self {
            Self::Ready { what, served } => json!({ "ready": { "what": what, "served": served } }),
            Self::Failed(line) => json!({ "failed": line }),
            Self::Beat(Beat { requests, memory, waiting }) => {
                json!({ "beat": { "requests": requests, "memory": memory, "waiting": waiting } })
            }
            Self::Answer(id, answer) => json!({ "answer": answered(answer), "id": id }),
            Self::Ask(id, asked) => json!({ "ask": question(asked), "id": id }),
        };
        value.to_string().into_bytes()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let id = number(&value, "id");
        if let Some(ready) = value.get("ready") {
            let served = ready["served"].as_array().into_iter().flatten();
            return Some(Self::Ready {
                what: ready["what"].as_str().map(ToOwned::to_owned),
                served: served.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
            });
        }
        if let Some(line) = value["failed"].as_str() {
            return Some(Self::Failed(line.to_owned()));
        }
        if let Some(beat) = value.get("beat") {
            let [requests, memory, waiting] =
                ["requests", "memory", "waiting"].map(|name| number(beat, name));
            return Some(Self::Beat(Beat { requests, memory, waiting }));
        }
        if let Some(answer) = value.get("answer") {
            return Some(Self::Answer(id, read_answered(answer)));
        }
        value.get("ask").map(|asked| Self::Ask(id, read_question(asked)))
    }
}

impl ToWorker {
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let value = match self {
            Self::Ask(id, asked, caller) => json!({ "ask": question(asked), "id": id, "caller": caller }),
            Self::Answer(id, answer) => json!({ "answer": answered(answer), "id": id }),
            Self::Unready => json!({ "unready": true }),
            Self::Last => json!({ "last": true }),
            Self::Empty(listener) => json!({ "empty": listener }),
            Self::AtOnce => json!({ "at_once": true }),
        };
        value.to_string().into_bytes()
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let id = number(&value, "id");
        if let Some(asked) = value.get("ask") {
            return Some(Self::Ask(id, read_question(asked), text(&value, "caller")));
        }
        if let Some(answer) = value.get("answer") {
            return Some(Self::Answer(id, read_answered(answer)));
        }
        if let Some(listener) = value["empty"].as_u64() {
            return usize::try_from(listener).ok().map(Self::Empty);
        }
        let is = |name: &str| value[name].as_bool() == Some(true);
        let known = [("unready", Self::Unready), ("last", Self::Last), ("at_once", Self::AtOnce)];
        known.into_iter().find_map(|(name, message)| is(name).then_some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_messages_are_read_as_they_were() {
        let asked =
            Question { method: "POST".into(), path: "/set".into(), body: "{}".into(), ..Question::default() };
        let file =
            SourceFile { name: "maitred.toml".into(), bytes: b"listen = \":1\"".to_vec(), is_drop_in: false };
        let setup = Setup {
            number: 2,
            workers: 3,
            listeners: 2,
            own: true,
            passed: vec![None, Some(PassedName { number: 3, name: "http".to_owned() })],
            files: vec![file],
            acts: true,
            changes: vec![asked.clone()],
            tls: Some(Handed::default()),
            development: Some("token".to_owned()),
        };
        assert_eq!(Setup::read(&setup.to_text()), Some(setup));
        let answer = Answered { allow: Some("GET".into()), ..Answered::error(405, "no") };
        for message in [
            FromWorker::Ready { what: Some("WSGI".into()), served: vec!["/ x".into()] },
            FromWorker::Failed("no module".into()),
            FromWorker::Beat(Beat { requests: 7, memory: 8, waiting: 9 }),
            FromWorker::Answer(3, answer.clone()),
            FromWorker::Ask(4, asked.clone()),
        ] {
            assert_eq!(FromWorker::read(&message.to_text()), Some(message));
        }
        for message in [
            ToWorker::Ask(1, asked, "user 0".into()),
            ToWorker::Answer(2, answer),
            ToWorker::Unready,
            ToWorker::Last,
            ToWorker::Empty(3),
            ToWorker::AtOnce,
        ] {
            assert_eq!(ToWorker::read(&message.to_text()), Some(message));
        }
        for other in ["", "7", "{}", "[1]"] {
            assert_eq!((ToWorker::read(other.as_bytes()), Setup::read(other.as_bytes())), (None, None));
            assert_eq!(FromWorker::read(other.as_bytes()), None);
        }
    }
}
