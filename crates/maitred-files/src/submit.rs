//! Files that an application submits: it names one in its response, and the engine sends it in the place of the body.
//!
//! `X-Sendfile` names a file by its path, `X-Accel-Redirect` (nginx) by a URL path below the prefix of a folder. Promises: nothing
//! but regular files below the folders that were named is read, as static files are ([`StaticFiles`]): paths are compared
//! component by component, and no link leads out. The fields do not reach the client
//! (`X-Accel-Limit-Rate` is left for the server, which takes it out). Conditions and ranges of the request count where the
//! application has answered a GET or HEAD with 200. Leaves out: servers without such folders, where both fields are passed on,
//! for a proxy in front.

use std::path::{Path, PathBuf};
use std::str;

use maitred_http::{Method, RequestHead, ResponseHead, Status, target};
use maitred_io::clock;
use maitred_runtime::Content;

use crate::{Answer, Body, Now, StaticFiles};

/// A path of the file system.
const PATH: &str = "x-sendfile";
/// A URL path.
const URL: &str = "x-accel-redirect";

/// Fields about the body that the file has itself; with `X-Accel-` in front nginx takes orders.
const REPLACED: [&str; 6] =
    ["content-length", "etag", "last-modified", "accept-ranges", "content-range", "transfer-encoding"];
const ORDERS: &[u8] = b"x-accel-";
/// A field that the server takes from the sent head.
const LIMIT_RATE: &str = "x-accel-limit-rate";

/// The folders whose files an application may submit.
#[derive(Debug, Default)]
pub struct Submissions {
    /// The longest prefix first.
    roots: Vec<Root>,
}

#[derive(Debug)]
struct Root {
    prefix: String,
    /// Absolute.
    folder: PathBuf,
    files: StaticFiles,
}

/// The response that is sent in the place of the application's.
pub struct Submitted {
    /// The head of the response.
    pub head: ResponseHead,
    /// Bytes of the body.
    pub length: u64,
    /// The body, in order.
    pub parts: Vec<Content>,
    /// A line for the error log.
    pub note: Option<String>,
}

impl Submissions {
    /// Allows the files of a folder, which `X-Accel-Redirect` calls by paths below `prefix`.
    pub fn with_root(mut self, prefix: &str, files: StaticFiles) -> Self {
        let folder = std::path::absolute(files.folder()).unwrap_or_else(|_| files.folder().to_owned());
        self.roots.push(Root { prefix: prefix.trim_end_matches('/').to_owned(), folder, files });
        self.roots.sort_by_key(|root| std::cmp::Reverse(root.prefix.len()));
        self
    }

    /// Whether an application's fields for nginx are for this server.
    pub fn is_on(&self) -> bool {
        !self.roots.is_empty()
    }

    /// The file that this response submits, if it does.
    ///
    /// # Errors
    /// It is in none of the folders: the sentence for the log.
    pub fn find(&self, request: &RequestHead, head: &ResponseHead) -> Result<Option<Submitted>, String> {
        if !self.is_on() {
            return Ok(None);
        }
        let (name, value, found) = if let Some(value) = head.fields.first(PATH) {
            ("X-Sendfile", value, self.by_path(value))
        } else if let Some(value) = head.fields.first(URL) {
            ("X-Accel-Redirect", value, self.by_url(value))
        } else {
            return Ok(None);
        };
        let Some((files, path)) = found else {
            let value = value.escape_ascii();
            return Err(format!("{name} names {value}, which is in none of the folders of --sendfile"));
        };
        let now = Now { monotonic_ns: clock::monotonic(), unix_seconds: clock::unix_seconds() };
        let conditional = head.status == Status::OK && matches!(request.method, Method::Get | Method::Head);
        let answer = if conditional {
            files.answer(request, &path, now)
        } else {
            let method = if request.method == Method::Head { Method::Head } else { Method::Get };
            files.answer(&RequestHead { method, ..RequestHead::default() }, &path, now)
        };
        Ok(Some(merge(answer, head)))
    }

    fn by_path(&self, value: &[u8]) -> Option<(&StaticFiles, Vec<u8>)> {
        let path = Path::new(str::from_utf8(value).ok()?);
        let below = |path: &Path| {
            self.roots.iter().find_map(|root| {
                let rest = path.strip_prefix(&root.folder).ok()?;
                Some((&root.files, [b"/", rest.as_os_str().as_encoded_bytes()].concat()))
            })
        };
        let resolved = || {
            // By another name: a link to the folder, or in it.
            let path = path.canonicalize().ok()?;
            self.roots.iter().find_map(|root| {
                let rest = path.strip_prefix(root.folder.canonicalize().ok()?).ok()?;
                Some((&root.files, [b"/", rest.as_os_str().as_encoded_bytes()].concat()))
            })
        };
        path.is_absolute().then(|| below(path).or_else(resolved)).flatten().filter(|(_, path)| is_file(path))
    }

    fn by_url(&self, value: &[u8]) -> Option<(&StaticFiles, Vec<u8>)> {
        let raw = value.split(|byte| *byte == b'?').next().unwrap_or_default();
        let mut path = Vec::new();
        target::normalise(raw, &mut path).ok()?;
        self.roots.iter().find_map(|root| {
            let rest = path.strip_prefix(root.prefix.as_bytes())?;
            is_file(rest).then(|| (&root.files, rest.to_vec()))
        })
    }
}

/// Whether a path below a folder can name a file, and not the folder.
fn is_file(path: &[u8]) -> bool {
    path.len() > 1 && path.starts_with(b"/") && !path.ends_with(b"/")
}

/// The application's response with the file for its body. The application's fields about it (its type, how it may be
/// cached, its name) count; those that follow from the bytes are the file's.
fn merge(answer: Answer, head: &ResponseHead) -> Submitted {
    let Answer { head: own, length, body, note } = answer;
    let status = own.status;
    let of_file = matches!(status, Status::OK | Status::PARTIAL_CONTENT | Status::NOT_MODIFIED);
    if !of_file {
        // A folder is no file; the status shows the error.
        let is_folder = status == Status::MOVED_PERMANENTLY;
        let mut merged = ResponseHead::clone(&own);
        let (length, body) = if is_folder { (0, Body::Empty) } else { (length, body) };
        if is_folder {
            merged = ResponseHead::new(Status::NOT_FOUND);
        }
        let note = note.or_else(|| {
            let gone = matches!(merged.status, Status::NOT_FOUND);
            gone.then(|| "the application has submitted a file that is not there".to_owned())
        });
        return Submitted { head: merged, length, parts: parts(body), note };
    }
    let status = if status == Status::OK { head.status } else { status };
    let mut merged = ResponseHead::new(status);
    for (name, value) in head.fields.iter() {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        let is_order = name.get(..ORDERS.len()).is_some_and(|start| start.eq_ignore_ascii_case(ORDERS));
        if (!is_order || is(LIMIT_RATE)) && !is(PATH) && !REPLACED.into_iter().any(is) {
            merged.fields.push(name, value);
        }
    }
    let is_multipart = matches!(body, Body::Many(_));
    for (name, value) in own.fields.iter() {
        if let Ok(name) = str::from_utf8(name) {
            if is_multipart && name.eq_ignore_ascii_case("content-type") {
                merged.fields.remove(name);
            }
            merged.fields.push_missing(name, value);
        }
    }
    Submitted { head: merged, length, parts: parts(body), note }
}

fn parts(body: Body) -> Vec<Content> {
    match body {
        Body::Empty => Vec::new(),
        Body::One(content) => vec![content],
        Body::Many(parts) => parts,
    }
}
