//! Answers that carry no file: refusals, and the status a failed system call leads to.

use std::sync::{Arc, LazyLock};

use maitred_http::{Method, ResponseHead, Status};
use maitred_runtime::Content;
use rustix::io::Errno;

use crate::{Answer, Body};

/// The time that clients are told to wait when descriptors are exhausted, in seconds: they are held by transfers, some
/// of which end within a second on any loaded server.
const RETRY_AFTER: &str = "1";

/// The prepared refusals: a flood of requests for nothing allocates nothing.
struct Refusals {
    not_found: Arc<ResponseHead>,
    forbidden: Arc<ResponseHead>,
    method_not_allowed: Arc<ResponseHead>,
    precondition_failed: Arc<ResponseHead>,
    failure: Arc<ResponseHead>,
    unavailable: Arc<ResponseHead>,
}

static REFUSALS: LazyLock<Refusals> = LazyLock::new(|| Refusals {
    not_found: Arc::new(text_head(Status::NOT_FOUND)),
    forbidden: Arc::new(text_head(Status::FORBIDDEN)),
    method_not_allowed: Arc::new(text_head(Status::METHOD_NOT_ALLOWED).with("Allow", "GET, HEAD")),
    precondition_failed: Arc::new(text_head(Status::PRECONDITION_FAILED)),
    failure: Arc::new(text_head(Status::INTERNAL_SERVER_ERROR)),
    unavailable: Arc::new(text_head(Status::SERVICE_UNAVAILABLE).with("Retry-After", RETRY_AFTER)),
});

/// A head for a line of plain text.
pub(crate) fn text_head(status: Status) -> ResponseHead {
    ResponseHead::new(status).with("Content-Type", "text/plain; charset=utf-8")
}

pub(crate) fn not_found(method: &Method) -> Answer {
    text(method, &REFUSALS.not_found, "404 Not Found\n")
}

pub(crate) fn method_not_allowed(method: &Method) -> Answer {
    text(method, &REFUSALS.method_not_allowed, "405 Method Not Allowed\n")
}

pub(crate) fn precondition_failed(method: &Method) -> Answer {
    text(method, &REFUSALS.precondition_failed, "412 Precondition Failed\n")
}

/// The answer to a failed system call on `path`. An error that only means that nothing is there for the peer is 404 (a
/// link that leads out of the root included: EXDEV); an error that the operator must know of carries a note.
pub(crate) fn fault(method: &Method, path: &[u8], errno: Errno) -> Answer {
    let mut answer = match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NAMETOOLONG => {
            return not_found(method);
        }
        // A socket took the place of a file that had been inspected.
        Errno::NXIO => return not_found(method),
        Errno::ACCESS => text(method, &REFUSALS.forbidden, "403 Forbidden\n"),
        // AGAIN: renames met every attempt to resolve the path.
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
            text(method, &REFUSALS.unavailable, "503 Service Unavailable\n")
        }
        _ => text(method, &REFUSALS.failure, "500 Internal Server Error\n"),
    };
    answer.note = Some(format!("static file {}: {errno}", path.escape_ascii()));
    answer
}

pub(crate) fn text(method: &Method, head: &Arc<ResponseHead>, line: &'static str) -> Answer {
    let content = Content::from(line);
    Answer {
        head: Arc::clone(head),
        length: content.len(),
        body: if *method == Method::Head { Body::Empty } else { Body::One(content) },
        note: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_status_and_only_ours_leave_a_note() {
        for (errno, code, noted) in [
            (Errno::NOENT, 404, false),
            (Errno::NOTDIR, 404, false),
            (Errno::LOOP, 404, false),
            (Errno::XDEV, 404, false),
            (Errno::NAMETOOLONG, 404, false),
            (Errno::ACCESS, 403, true),
            (Errno::MFILE, 503, true),
            (Errno::NFILE, 503, true),
            (Errno::IO, 500, true),
        ] {
            let answer = fault(&Method::Get, b"/a\nb", errno);
            assert_eq!(answer.head.status.code(), code, "{errno}");
            assert_eq!(answer.note.is_some(), noted, "{errno}");
            assert_eq!(answer.head.fields.contains("retry-after"), code == 503);
            assert!(!answer.note.unwrap_or_default().contains('\n'), "a path cannot break a log line");
        }
    }
}
