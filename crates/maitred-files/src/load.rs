//! A file with its compressed siblings: found, opened, and made into ready answers.
//!
//! Promises: content in memory was read under one stamp or is marked unsettled; the prepared heads of a variant never
//! change. Leaves out: the choice of kept resources, and when they are checked again (`cache.rs`).

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use maitred_http::coding::Coding;
use maitred_http::{RequestHead, ResponseHead, Status, date, media_type};
use rustix::fs::fstat;
use rustix::io::Errno;

use crate::cache::{Payload, Resource, Variant};
use crate::root::{ObjectKind, Root};
use crate::stamp::Stamp;
use crate::{Now, StaticSettings, compressed};

/// The media type of a file whose name says nothing (RFC 9110 §8.3).
const UNKNOWN_TYPE: &str = "application/octet-stream";

/// The stamps of a file and its siblings, by coding.
pub(crate) type Stamps = [Option<Stamp>; 4];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The path below the root, the name of an index file included.
    pub(crate) name: Vec<u8>,
    pub(crate) stamps: Stamps,
}

impl Plan {
    /// The plan for the regular file `name`, with the siblings that are regular and not older, if there may be any.
    pub(crate) fn of(root: &Root, name: Vec<u8>, original: Stamp, may_have_siblings: bool) -> Self {
        let mut stamps: Stamps = [None; 4];
        stamps[Coding::Identity as usize] = Some(original);
        if may_have_siblings {
            for coding in Coding::COMPRESSED {
                // A sibling that cannot be looked at is no sibling: the original can be sent.
                if let Ok(ObjectKind::File(stamp)) = root.inspect(&sibling(&name, coding)) {
                    stamps[coding as usize] = stamp.is_as_new_as(&original).then_some(stamp);
                }
            }
        }
        Self { name, stamps }
    }
}

fn sibling(name: &[u8], coding: Coding) -> Vec<u8> {
    [name, suffix(coding).as_bytes()].concat()
}

pub(crate) fn suffix(coding: Coding) -> &'static str {
    match coding {
        Coding::Identity => "",
        Coding::Gzip => ".gz",
        Coding::Zstd => ".zst",
        Coding::Brotli => ".br",
    }
}

struct Opened {
    coding: Coding,
    stamp: Stamp,
    length: u64,
    payload: Payload,
    is_unsettled: bool,
}

impl Resource {
    /// Opens the files of `plan` and prepares the answers. The plan is brought up to date with the opened files; a
    /// sibling that has gone or is too old by then is left out.
    pub(crate) fn load(
        root: &Root,
        mut plan: Plan,
        settings: &StaticSettings,
        request: &RequestHead,
        now: Now,
    ) -> Result<Self, Errno> {
        // All of them in memory, or none: a large file's siblings do not count as small ones.
        let is_small = plan.stamps.iter().flatten().all(|stamp| stamp.size <= settings.max_cached_file);
        let max_in_memory = if is_small { settings.max_cached_file } else { 0 };
        let original = open(root, &plan.name, Coding::Identity, max_in_memory)?;
        plan.stamps[Coding::Identity as usize] = Some(original.stamp);
        let mut siblings = Vec::new();
        for coding in Coding::COMPRESSED {
            let Some(found) = &mut plan.stamps[coding as usize] else { continue };
            match open(root, &plan.name, coding, max_in_memory) {
                Ok(sibling) if sibling.stamp.is_as_new_as(&original.stamp) => {
                    *found = sibling.stamp;
                    siblings.push((coding, sibling));
                }
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => return Err(errno),
                _ => plan.stamps[coding as usize] = None,
            }
        }
        // Of those that a client likes alike the smallest is sent: which one that is depends on the levels they were made with.
        siblings.sort_by_key(|(_, sibling)| sibling.length);
        let is_compressible = siblings.is_empty()
            && !original.is_young(now)
            && compressed::may_be(settings, request, media_type_of(&plan.name), original.length);
        Ok(Self::prepare(plan, original, siblings, is_compressible, settings, now))
    }

    fn prepare(
        plan: Plan,
        original: Opened,
        siblings: Vec<(Coding, Opened)>,
        is_compressible: bool,
        settings: &StaticSettings,
        now: Now,
    ) -> Self {
        let (mut is_unsettled, mut bytes, mut descriptors) = (false, 0, 0);
        for opened in [&original].into_iter().chain(siblings.iter().map(|(_, sibling)| sibling)) {
            is_unsettled |= opened.is_young(now);
            match opened.payload {
                Payload::Memory(_) => bytes += opened.length,
                Payload::File(_) => descriptors += 1,
            }
        }
        let common = Common {
            media_type: media_type_of(&plan.name),
            varies: is_compressible || !siblings.is_empty(),
            cache_control: settings.cache_control.as_deref(),
            now,
        };
        Self {
            original: Variant::new(original, &common),
            siblings: siblings
                .into_iter()
                .map(|(coding, sibling)| (coding, Variant::new(sibling, &common)))
                .collect(),
            plan,
            is_compressible,
            checked_at: AtomicU64::new(now.monotonic_ns),
            load_ns: AtomicU64::new(0),
            is_unsettled,
            bytes,
            descriptors,
        }
    }

    /// The same file with one form more. Without a form, making one is not tried again.
    pub(crate) fn with_made(&self, made: Option<(Coding, Variant)>) -> Self {
        let mut siblings = self.siblings.clone();
        let is_compressible = made.is_some();
        let bytes = self.bytes + made.as_ref().map_or(0, |(_, variant)| variant.length);
        siblings.extend(made);
        let [checked_at, load_ns] =
            [&self.checked_at, &self.load_ns].map(|value| AtomicU64::new(value.load(Ordering::Relaxed)));
        let (plan, original) = (self.plan.clone(), self.original.clone());
        Self { plan, original, siblings, is_compressible, checked_at, load_ns, bytes, ..*self }
    }

    fn stamp(&self) -> Option<Stamp> {
        self.plan.stamps[Coding::Identity as usize]
    }

    pub(crate) fn content(&self) -> Option<Arc<[u8]>> {
        match &self.original.payload {
            Payload::Memory(bytes) => Some(Arc::clone(bytes)),
            Payload::File(file) => {
                let bytes = read(file, self.original.length).ok()?;
                let after = Stamp::of(&fstat(file).ok()?);
                (Some(after) == self.stamp() && bytes.len() as u64 == self.original.length).then_some(bytes)
            }
        }
    }
}

/// The common facts of all forms of one file.
struct Common<'a> {
    media_type: &'static str,
    /// Whether there are several forms.
    varies: bool,
    cache_control: Option<&'a str>,
    now: Now,
}

impl Opened {
    fn is_young(&self, now: Now) -> bool {
        self.is_unsettled || self.stamp.is_young(now.unix_seconds)
    }
}

impl Variant {
    fn new(opened: Opened, common: &Common<'_>) -> Self {
        let young = opened.is_young(common.now);
        let entity_tag = opened.stamp.entity_tag(opened.coding, young);
        let last_modified = opened.stamp.last_modified(young, common.now.unix_seconds);
        // RFC 9110 §15.4.5: a 304 repeats Cache-Control, ETag and Vary (and Date, which is not ours);
        // Last-Modified helps only a client without the tag.
        let mut not_modified = ResponseHead::new(Status::NOT_MODIFIED).with("ETag", entity_tag.as_bytes());
        if common.varies {
            not_modified = not_modified.with("Vary", "Accept-Encoding");
        }
        if let Some(cache_control) = common.cache_control {
            not_modified = not_modified.with("Cache-Control", cache_control);
        }
        let mut full = ResponseHead { status: Status::OK, ..not_modified.clone() }
            .with("Content-Type", common.media_type)
            .with("Accept-Ranges", "bytes");
        if let Some(token) = opened.coding.token() {
            full = full.with("Content-Encoding", token);
        }
        if let Some(seconds) = last_modified {
            full = full.with("Last-Modified", date::format(seconds));
        }
        Self {
            full: Arc::new(full),
            not_modified: Arc::new(not_modified),
            entity_tag,
            last_modified,
            media_type: common.media_type,
            length: opened.length,
            has_ranges: true,
            payload: opened.payload,
        }
    }

    /// The form that compressing this one has given. Another version of the compressor would give other bytes, so its
    /// entity tag is weak and no parts of it are sent.
    pub(crate) fn compressed(&self, coding: Coding, bytes: Vec<u8>) -> Self {
        let opaque = self.entity_tag.trim_start_matches("W/").trim_matches('"');
        let entity_tag: Box<str> = format!("W/\"{opaque}-{}\"", coding.name()).into();
        let with_tag = |head: &ResponseHead| {
            let mut head = head.clone();
            head.fields.set("ETag", entity_tag.as_bytes());
            head
        };
        let mut full = with_tag(&self.full);
        full.fields.remove("Accept-Ranges");
        full.fields.push("Content-Encoding", coding.name());
        Self {
            full: Arc::new(full),
            not_modified: Arc::new(with_tag(&self.not_modified)),
            entity_tag,
            length: bytes.len() as u64,
            has_ranges: false,
            payload: Payload::Memory(bytes.into()),
            ..*self
        }
    }
}

/// Opens one form, and reads it when it has at most `max_in_memory` bytes: it may have grown since
/// it was inspected.
fn open(root: &Root, name: &[u8], coding: Coding, max_in_memory: u64) -> Result<Opened, Errno> {
    let (file, stamp) = root.open_file(&sibling(name, coding))?;
    if stamp.size > max_in_memory {
        let payload = Payload::File(Arc::new(file));
        return Ok(Opened { coding, stamp, length: stamp.size, payload, is_unsettled: false });
    }
    let bytes = read(&file, stamp.size)?;
    // A change while reading leaves another stamp, or a length that is not the stamp's.
    let after = Stamp::of(&fstat(&file)?);
    let length = bytes.len() as u64;
    let is_unsettled = after != stamp || length != stamp.size;
    Ok(Opened { coding, stamp: after, length, payload: Payload::Memory(bytes), is_unsettled })
}

/// Up to `size` bytes from the start: fewer when the file became shorter meanwhile.
fn read(file: impl AsFd, size: u64) -> Result<Arc<[u8]>, Errno> {
    let mut bytes = vec![0; usize::try_from(size).map_err(|_| Errno::FBIG)?];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[filled..], filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok(bytes.into())
}

fn media_type_of(path: &[u8]) -> &'static str {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    media_type::for_name(&String::from_utf8_lossy(name)).unwrap_or(UNKNOWN_TYPE)
}
