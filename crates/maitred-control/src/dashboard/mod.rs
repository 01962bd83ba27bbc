//! The browser's part of the listener for HTTP: the page, a session, and answers as they change.
//!
//! ```text
//! GET  /dashboard/            the page and its files; they hold no data, and need no token
//! GET  /dashboard/session     whether the browser is signed in, and the value of X-CSRF-Token that changes have to carry (`csrf`)
//! POST /dashboard/session     the token, for a cookie
//! POST /dashboard/leave       ends the session
//! GET  /dashboard/snapshot    all answers in a page that needs no server, as a file
//! GET  /dashboard/feed?of=stats&of=threads    server-sent events: the answers of these queries, each second
//! ```

mod feed;

use maitred_http::{Method, RequestHead};
use serde_json::{Value, json};

use super::question::Answered;
use super::response::Answer;
use super::snapshot::{snapshot_name, snapshot_page};
pub(super) use feed::{Feed, Item};

const HERE: &str = "/dashboard";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The page, for an address without its last slash, and for the listener's own.
    Redirect,
    File(String),
    Session,
    Login,
    Leave,
    Feed,
    Snapshot,
}

impl Wanted {
    pub(super) fn of(head: &RequestHead) -> Option<Self> {
        let path = String::from_utf8_lossy(head.path());
        let is_post = head.method == Method::Post;
        if path == "/" && !is_post && wants_a_page(head) {
            return Some(Self::Redirect);
        }
        let below = path.strip_prefix(HERE)?;
        Some(match (below, is_post) {
            ("", _) => Self::Redirect,
            ("/session", true) => Self::Login,
            ("/session", false) => Self::Session,
            ("/leave", true) => Self::Leave,
            ("/feed", false) => Self::Feed,
            ("/snapshot", false) => Self::Snapshot,
            (file, _) if file.starts_with('/') => Self::File(file[1..].to_owned()),
            _ => return None,
        })
    }
}

/// A browser that goes there, and no program that asks for JSON.
fn wants_a_page(head: &RequestHead) -> bool {
    head.fields.all("accept").any(|value| value.windows(9).any(|part| part == b"text/html"))
}

pub(super) fn redirect() -> Answer {
    Answer::error(308, "the page is at /dashboard/").with("Location", "/dashboard/")
}

pub(super) fn file(path: &str, head: &RequestHead) -> Answer {
    if !matches!(head.method, Method::Get | Method::Head) {
        return Answer::error(405, "a file is asked for with GET").with("Allow", "GET, HEAD");
    }
    let Some(asset) = maitred_dashboard::find(path) else {
        return Answer::error(404, "the page has no such file; it is at /dashboard/");
    };
    let names = |field: &str, what: &str| {
        let mut values = head.fields.all(field).flat_map(|value| value.split(|byte| *byte == b','));
        values.any(|value| value.trim_ascii() == what.as_bytes())
    };
    let tag = asset.tag();
    let is_known = names("if-none-match", &tag);
    let takes_gzip =
        head.fields.all("accept-encoding").any(|value| value.windows(4).any(|part| part == b"gzip"));
    let mut answer = Answer::bytes(if is_known { 304 } else { 200 }, asset.media_type, Vec::new());
    if !is_known && takes_gzip {
        answer = answer.with("Content-Encoding", "gzip");
        answer.body = asset.gzip().to_vec();
    } else if !is_known {
        answer.body = asset.bytes.to_vec();
    }
    answer
        .with("ETag", &tag)
        .with("Vary", "Accept-Encoding")
        .with("Cache-Control", "no-cache")
        .with("Content-Security-Policy", maitred_dashboard::POLICY)
        .with("Referrer-Policy", "no-referrer")
        .with("Cross-Origin-Opener-Policy", "same-origin")
        .with("Cross-Origin-Resource-Policy", "same-origin")
}

pub(super) fn snapshot(taken: &Value) -> Answer {
    let name = snapshot_name(taken, "html");
    Answer::bytes(200, "text/html; charset=utf-8", snapshot_page(taken).into_bytes())
        .with("Content-Disposition", &format!("attachment; filename=\"{name}\""))
}

pub(super) fn shown_token(body: &[u8]) -> Option<String> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return None };
    fields.get("token")?.as_str().map(str::to_owned)
}

pub(super) fn session(csrf: &str, has_token: bool) -> Answer {
    Answered::json(200, &json!({ "csrf": csrf, "token": has_token })).into()
}
