//! Static files: a folder answers GET and HEAD.
//!
//! Promises:
//! - Nothing outside the root is read, and nothing but regular files: no FIFO, socket or device is
//!   ever opened, so a call here waits for nothing but the disk. Hidden names (a leading dot) do
//!   not exist, `.well-known` (RFC 8615) excepted.
//! - Conditional and range requests by RFC 9110 §13 and §14; precompressed siblings `name.br`,
//!   `name.zst`, `name.gz` by `Accept-Encoding` (§12.5.3), each with an entity tag of its own; with
//!   [`StaticSettings::compression`] small files without siblings are compressed once.
//! - Small files come from memory and larger ones from descriptors that stay open, bounded and
//!   looked at again at most once per [`StaticSettings::validate_after`]. A file that changed within
//!   the last two seconds is never cached: its times may not show the next change. It has a weak
//!   entity tag of its own and no `Last-Modified` until it has settled.
//!
//! Leaves out: the mount (`path` is below it), framing, sending, and the log; an answer that the
//! operator should know of carries a note for the error log.
//!
//! Sections below: the answer of a resource.

mod cache;
mod compressed;
mod folders;
mod listing;
mod load;
pub mod partial;
mod path;
mod refusal;
mod root;
mod stamp;
mod submit;

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_compress as compress;
use maitred_compress::CompressionSettings;
use maitred_http::coding::{Accepted, Coding};
use maitred_http::conditional::{Validators, Verdict};
use maitred_http::multipart::Parts;
use maitred_http::range::{ByteRange, Ranges};
use maitred_http::{FieldSet, Method, RequestHead, ResponseHead, Status, conditional, multipart, range};
use maitred_runtime::Content;
use maitred_stats::LockSnapshot;
use rustix::io::Errno;
use rustix::process::{Resource as Limit, getrlimit};

use cache::{LookUp, Resource, ResourceCache, Variant};
use folders::Folders;
use load::Plan;
use root::{CurrentRoot, ObjectKind, Root};

pub use cache::CacheStatistics;
pub use path::folder_location;
pub use submit::{Submissions, Submitted};

/// The part of the process's descriptor limit that cached files of one root may take: one eighth,
/// the rest is for connections.
const DESCRIPTOR_SHARE: u64 = 8;

/// How a folder is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticSettings {
    /// The names tried in this order for a folder. Default: `index.html`.
    pub index: Vec<String>,
    /// Whether a folder without an index file is listed. Default: no, it is then 404.
    pub listing: bool,
    /// The path that answers, with 200, where there is no file: `/index.html` for a program that has paths of its own in
    /// the browser. Default: none.
    pub fallback: Option<Vec<u8>>,
    /// Whether siblings `.br`, `.zst` and `.gz` that are not older than the file are sent to peers
    /// that accept them. Costs three look-ups per load and check in a folder that has any such names.
    /// Default: yes.
    pub precompressed: bool,
    /// The value of `Cache-Control` on every file. Default: none.
    pub cache_control: Option<String>,
    /// The largest file kept in memory, in bytes; larger ones leave by sendfile, which is cheaper than
    /// the copy from 16 KiB on (measured: 0.89 at 16 KiB, 0.83 at 64 KiB). Default: 8 KiB.
    pub max_cached_file: u64,
    /// The budget of the cache, in bytes; 0 turns it off. An entry takes its content and about 1 KiB,
    /// an open descriptor its share of this. Default: 64 MiB.
    pub max_cache_bytes: u64,
    /// The most files that are cached. Default: 16,384.
    pub max_cache_entries: usize,
    /// The most descriptors of larger files kept open, at most an eighth of the process's limit.
    /// Default: 512.
    pub max_descriptors: u64,
    /// How files are compressed that have no siblings: those of up to 1 MiB, once, when a client asks for it first. They are kept
    /// in memory beside the file. Default: not at all.
    pub compression: Option<Arc<CompressionSettings>>,
    /// How long a cached file is believed before its times are looked at again. Default: 1 s.
    pub validate_after: Duration,
}

impl Default for StaticSettings {
    fn default() -> Self {
        Self {
            index: vec!["index.html".to_owned()],
            listing: false,
            fallback: None,
            precompressed: true,
            cache_control: None,
            max_cached_file: 8 * 1024,
            max_cache_bytes: 64 * 1024 * 1024,
            max_cache_entries: 16 * 1024,
            max_descriptors: 512,
            compression: None,
            validate_after: Duration::from_secs(1),
        }
    }
}

/// The time of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds of a clock that never goes back.
    pub monotonic_ns: u64,
    /// Seconds since 1970-01-01T00:00:00Z, as file times count.
    pub unix_seconds: u64,
}

/// An answer that is complete but for framing.
#[derive(Debug)]
pub struct Answer {
    /// The head without `Date`, `Content-Length` and `Connection`, which the protocol adds.
    pub head: Arc<ResponseHead>,
    /// The bytes of the body; for HEAD those that GET would send. 0 for 304.
    pub length: u64,
    /// The body; empty for HEAD.
    pub body: Body,
    /// The line for the error log: the reason of a 403, 500 or 503.
    pub note: Option<String>,
}

/// The body of an [`Answer`].
#[derive(Debug)]
pub enum Body {
    /// Nothing.
    Empty,
    /// One piece.
    One(Content),
    /// Several pieces in this order (multipart/byteranges).
    Many(Vec<Content>),
}

impl Body {
    /// The number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::One(content) => content.len(),
            Self::Many(contents) => contents.iter().map(Content::len).sum(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A folder that is served.
#[derive(Debug)]
pub struct StaticFiles {
    settings: StaticSettings,
    root: CurrentRoot,
    folders: Folders,
    cache: ResourceCache,
}

enum Target {
    File(Box<Plan>),
    Folder,
    FolderWithoutSlash,
}

impl StaticFiles {
    /// Opens the folder at `root`. When `root` is, or leads through, a symbolic link that is changed
    /// later, the new folder is served after `validate_after`.
    ///
    /// # Errors
    ///
    /// The error of opening the folder: not found, not a folder, no permission.
    pub fn open(root: &Path, settings: StaticSettings) -> io::Result<Self> {
        let validate_after_ns = u64::try_from(settings.validate_after.as_nanos()).unwrap_or(u64::MAX);
        let root = CurrentRoot::open(root, validate_after_ns)?;
        let limit = getrlimit(Limit::Nofile).current.unwrap_or(u64::MAX);
        let cache = ResourceCache::new(&settings, settings.max_descriptors.min(limit / DESCRIPTOR_SHARE));
        Ok(Self { settings, root, folders: Folders::new(validate_after_ns), cache })
    }

    /// The answer to `request` for `path`, the normalised path below the mount, which starts with a
    /// slash. Waits for nothing but the disk; a cached file makes no system call.
    pub fn answer(&self, request: &RequestHead, path: &[u8], now: Now) -> Answer {
        use maitred_http::Method::{Get, Head};
        if !matches!(request.method, Get | Head) {
            return refusal::method_not_allowed(&request.method);
        }
        if path.len() <= 1 && path::lacks_slash(request.path()) {
            return redirect(request);
        }
        let answer = self.answer_at(request, path, now);
        match &self.settings.fallback {
            Some(fallback) if answer.head.status == Status::NOT_FOUND && is_page(request, path) => {
                self.answer_at(request, fallback, now)
            }
            _ => answer,
        }
    }

    fn answer_at(&self, request: &RequestHead, path: &[u8], now: Now) -> Answer {
        match self.cache.look_up(path, now) {
            LookUp::Fresh(resource) => self.reply(&resource, request, path),
            LookUp::Due(resource) => self.check(request, path, now, &resource),
            LookUp::Absent => self.load(request, path, now),
        }
    }

    /// The folder: the path that was named, made absolute.
    pub fn folder(&self) -> &Path {
        self.root.path()
    }

    /// The regular file that answers `path`, the normalised path below the mount: its real path, an index file of a
    /// folder included. None if there is none.
    pub fn file_at(&self, path: &[u8], now: Now) -> Option<PathBuf> {
        let Ok(Target::File(plan)) = self.find(&self.root.at(now), path, now) else { return None };
        let below = plan.name.strip_prefix(b"/").unwrap_or(&plan.name);
        let named = self.folder().join(OsStr::from_bytes(below));
        Some(std::fs::canonicalize(&named).unwrap_or(named))
    }

    /// The file that is sent where there is none.
    pub fn fallback_file(&self, now: Now) -> Option<PathBuf> {
        self.file_at(self.settings.fallback.as_deref()?, now)
    }

    /// The contents and counters of the cache.
    pub fn statistics(&self) -> CacheStatistics {
        self.cache.statistics()
    }

    /// The counts of the lock around the known folders.
    pub fn lock_snapshot(&self) -> LockSnapshot {
        self.folders.lock_snapshot()
    }

    /// Closes descriptors of files that were not asked for in the last minute. Requests that find something not cached
    /// do this too; a timer that calls it every ten seconds or more serves the time without requests.
    pub fn sweep(&self, now: Now) {
        self.cache.sweep(now);
    }

    /// Forgets every file that is kept open, after one of them has changed.
    pub fn forget_open_files(&self) {
        self.cache.release_descriptors();
    }

    /// Answers from a cached resource if it is still equal to the file.
    fn check(&self, request: &RequestHead, path: &[u8], now: Now, cached: &Arc<Resource>) -> Answer {
        let unchanged = match self.find(&self.root.at(now), path, now) {
            Ok(Target::File(plan)) => cached.matches(&plan),
            // No descriptor for the check: a resource that was right a moment ago is better than a 503.
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => true,
            Ok(Target::Folder | Target::FolderWithoutSlash) | Err(_) => false,
        };
        if unchanged {
            self.cache.note_revalidated();
            return self.reply(cached, request, path);
        }
        self.cache.invalidate(path, cached);
        self.load(request, path, now)
    }

    /// Answers from the file system and keeps the resource where it may be kept.
    fn load(&self, request: &RequestHead, path: &[u8], now: Now) -> Answer {
        if !path::is_servable(path) {
            return refusal::not_found(&request.method);
        }
        self.cache.sweep(now);
        let started = Instant::now();
        let root = self.root.at(now);
        let mut loaded = self.try_load(&root, request, path, now);
        if matches!(loaded, Err(Errno::MFILE)) && self.cache.release_descriptors() {
            loaded = self.try_load(&root, request, path, now);
        }
        match loaded {
            Ok(Loaded::Resource(resource)) => {
                self.cache.insert(path, &resource, started.elapsed());
                self.reply(&resource, request, path)
            }
            Ok(Loaded::Folder) if self.settings.listing => list(&root, request, path),
            Ok(Loaded::Folder) => refusal::not_found(&request.method),
            Ok(Loaded::FolderWithoutSlash) => redirect(request),
            Err(errno) => refusal::fault(&request.method, path, errno),
        }
    }

    /// The answer from a resource, in a form that is made for it if there may be one.
    fn reply(&self, resource: &Arc<Resource>, request: &RequestHead, path: &[u8]) -> Answer {
        let Some(settings) = self.settings.compression.as_ref().filter(|_| resource.is_compressible) else {
            return best_answer(resource, request);
        };
        let coding = compress::chosen(settings, request);
        if resource.has(coding) {
            return answer_in(resource, coding, request);
        }
        let made = Arc::new(resource.with_made(compressed::make(settings, resource, coding)));
        self.cache.replace(path, &made);
        answer_in(&made, coding, request)
    }

    fn try_load(&self, root: &Root, request: &RequestHead, path: &[u8], now: Now) -> Result<Loaded, Errno> {
        Ok(match self.find(root, path, now)? {
            Target::File(plan) => {
                Loaded::Resource(Arc::new(Resource::load(root, *plan, &self.settings, request, now)?))
            }
            Target::Folder => Loaded::Folder,
            Target::FolderWithoutSlash => Loaded::FolderWithoutSlash,
        })
    }

    /// The object at `path`: a regular file, an index file of the folder, or the folder.
    fn find(&self, root: &Root, path: &[u8], now: Now) -> Result<Target, Errno> {
        let plan = |name: Vec<u8>, stamp| {
            let has = self.settings.precompressed && self.folders.may_have_siblings(root, &name, now);
            Target::File(Box::new(Plan::of(root, name, stamp, has)))
        };
        if !path.is_empty() && !path.ends_with(b"/") {
            return match root.inspect(path)? {
                ObjectKind::File(stamp) => Ok(plan(path.to_vec(), stamp)),
                ObjectKind::Folder => Ok(Target::FolderWithoutSlash),
                ObjectKind::Other => Err(Errno::NOENT),
            };
        }
        for index in &self.settings.index {
            let name = if path.is_empty() { b"/" } else { path };
            let name = [name, index.as_bytes()].concat();
            match root.inspect(&name) {
                Ok(ObjectKind::File(stamp)) => return Ok(plan(name, stamp)),
                Ok(ObjectKind::Folder | ObjectKind::Other)
                | Err(Errno::NOENT | Errno::LOOP | Errno::XDEV) => {}
                Err(errno) => return Err(errno),
            }
        }
        match root.inspect(path)? {
            ObjectKind::Folder => Ok(Target::Folder),
            ObjectKind::File(_) | ObjectKind::Other => Err(Errno::NOENT),
        }
    }
}

/// Whether a path without a file may be one of a program in the browser: a script or picture that is missing is missing.
fn is_page(request: &RequestHead, path: &[u8]) -> bool {
    let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let wants_page = || {
        let mut accepted = request.fields.all("accept");
        accepted.any(|value| value.windows(9).any(|part| part.eq_ignore_ascii_case(b"text/html")))
    };
    path::is_servable(path) && (!last.contains(&b'.') || wants_page())
}

enum Loaded {
    Resource(Arc<Resource>),
    Folder,
    FolderWithoutSlash,
}

/// Sends the peer to the folder's own path, from which relative links work. 301 rather than 308:
/// for GET and HEAD they mean the same, and every client knows the older one.
fn redirect(request: &RequestHead) -> Answer {
    let Some(location) = path::folder_location(request.path(), request.query()) else {
        return refusal::not_found(&request.method);
    };
    let head = refusal::text_head(Status::MOVED_PERMANENTLY).with("Location", location);
    refusal::text(&request.method, &Arc::new(head), "301 Moved Permanently\n")
}

fn list(root: &Root, request: &RequestHead, path: &[u8]) -> Answer {
    let mut title = Vec::new();
    if maitred_http::target::normalise(request.path(), &mut title).is_err() {
        title = path.to_vec();
    }
    match listing::page(root, path, &title) {
        Ok(page) => {
            let head = ResponseHead::new(Status::OK)
                .with("Content-Type", "text/html; charset=utf-8")
                .with("Cache-Control", "no-cache");
            let is_head = request.method == maitred_http::Method::Head;
            let length = page.len() as u64;
            let body = if is_head { Body::Empty } else { Body::One(Content::Bytes(page)) };
            Answer { head: Arc::new(head), length, body, note: None }
        }
        Err(errno) => refusal::fault(&request.method, path, errno),
    }
}

// ---- The answer of a resource ----
//
// Which form, under which conditions, which ranges.

fn best_answer(resource: &Resource, request: &RequestHead) -> Answer {
    let asked = DecidingFields::of(&request.fields);
    let variant = if asked.codings && resource.varies() {
        let accepted = Accepted::of(request.fields.all("accept-encoding"));
        resource.variant(accepted.choose(resource.siblings.iter().map(|(coding, _)| *coding), |_| true))
    } else {
        resource.original()
    };
    answer_with(variant, &asked, request)
}

fn answer_in(resource: &Resource, coding: Coding, request: &RequestHead) -> Answer {
    answer_with(resource.variant(coding), &DecidingFields::of(&request.fields), request)
}

fn answer_with(variant: &Variant, asked: &DecidingFields, request: &RequestHead) -> Answer {
    if !asked.conditions {
        return whole(variant, &request.method);
    }
    let validators = Validators { etag: Some(&variant.entity_tag), last_modified: variant.last_modified };
    match conditional::evaluate(&request.method, &request.fields, &validators) {
        Verdict::NotModified => {
            Answer { head: Arc::clone(&variant.not_modified), length: 0, body: Body::Empty, note: None }
        }
        Verdict::PreconditionFailed => refusal::precondition_failed(&request.method),
        Verdict::Proceed { ranges: true } if variant.has_ranges => ranged(variant, request),
        Verdict::Proceed { .. } => whole(variant, &request.method),
    }
}

/// The fields of the request that matter for a representation, found in one pass.
#[derive(Default)]
struct DecidingFields {
    codings: bool,
    /// There is a `Range` or a condition (every condition's name starts with `If-`).
    conditions: bool,
}

impl DecidingFields {
    fn of(fields: &FieldSet) -> Self {
        let mut asked = Self::default();
        for (name, _) in fields.iter() {
            match name {
                [b'i' | b'I', b'f' | b'F', b'-', ..] => asked.conditions = true,
                [b'r' | b'R', ..] => asked.conditions |= name.eq_ignore_ascii_case(b"range"),
                [b'a' | b'A', ..] => asked.codings |= name.eq_ignore_ascii_case(b"accept-encoding"),
                _ => {}
            }
        }
        asked
    }
}

fn whole(variant: &Variant, method: &Method) -> Answer {
    let body = if *method == Method::Head { Body::Empty } else { Body::One(variant.whole()) };
    Answer { head: Arc::clone(&variant.full), length: variant.length, body, note: None }
}

fn ranged(variant: &Variant, request: &RequestHead) -> Answer {
    let field = request.fields.first("range").unwrap_or_default();
    match range::parse(field, variant.length) {
        Ranges::Ignored => whole(variant, &request.method),
        Ranges::Unsatisfiable => unsatisfiable(variant),
        Ranges::Satisfiable(ranges) => match ranges[..] {
            [] => whole(variant, &request.method),
            [range] => single(variant, range),
            _ => several(variant, &ranges),
        },
    }
}

fn unsatisfiable(variant: &Variant) -> Answer {
    let head = refusal::text_head(Status::RANGE_NOT_SATISFIABLE)
        .with("Content-Range", multipart::unsatisfied_range(variant.length));
    refusal::text(&Method::Get, &Arc::new(head), "416 Range Not Satisfiable\n")
}

fn single(variant: &Variant, range: ByteRange) -> Answer {
    let mut head = ResponseHead::clone(&variant.full);
    head.status = Status::PARTIAL_CONTENT;
    head.fields.push("Content-Range", multipart::content_range(range, variant.length));
    let content = variant.part(range.first, range.len());
    Answer { head: Arc::new(head), length: range.len(), body: Body::One(content), note: None }
}

fn several(variant: &Variant, ranges: &[ByteRange]) -> Answer {
    let parts = Parts::new(Some(variant.media_type), variant.length, ranges, partial::boundary());
    let mut head = ResponseHead::clone(&variant.full);
    head.status = Status::PARTIAL_CONTENT;
    head.fields.remove("Content-Type");
    head.fields.push("Content-Type", parts.content_type());
    let mut body = Vec::with_capacity(2 * ranges.len() + 1);
    for (part_head, range) in parts.iter() {
        body.push(Content::Bytes(part_head.to_vec()));
        body.push(variant.part(range.first, range.len()));
    }
    body.push(Content::Bytes(parts.closing().to_vec()));
    Answer { head: Arc::new(head), length: parts.content_length(), body: Body::Many(body), note: None }
}
