//! Compression of an application's responses (RFC 9110 §8.4, §12.5.3).
//!
//! Promises: a body is compressed only for a client that accepts it, on the thread that sends it, and every block of a
//! stream can be decoded as soon as it is there; an uncompressed response says that it varies if it could have been
//! compressed; the compressors of unfinished responses take no more memory than they may together, and a thread keeps
//! two.
//!
//! Leaves out: when a response begins and ends (`responder/reshaped.rs` of maitred-server), files (`compressed.rs` of maitred-files).

mod encoder;
mod head;
mod metrics;
mod settings;

use std::sync::Arc;

use maitred_http::coding::{Accepted, Coding};
use maitred_http::{Method, RequestHead, ResponseHead, Status, target};
use maitred_io::sync::atomic::{AtomicU64, Ordering};
use maitred_stats::Counter;

pub use encoder::{Encoder, whole};
use head::Finding;
pub use head::decimal;
pub use settings::{CODINGS, CodingLevel, CompressionSettings, TYPES, TypePattern};

/// A body from this length on is compressed with the interpreter released: at 7 to 25 ns a byte that is 0.2 to 0.8 ms, while
/// getting the interpreter back costs microseconds, or 5 ms where another thread has taken it.
pub const RELEASED_FROM: usize = 32 * 1024;

/// Compression as it is in use.
pub struct Compression {
    settings: CompressionSettings,
    /// Bytes that compressors of unfinished responses take.
    used: Arc<AtomicU64>,
    /// The counters of gzip, zstd and br.
    figures: [Figures; 3],
}

/// The counters of one coding.
#[derive(Default)]
struct Figures {
    responses: Counter,
    /// Bytes of bodies before and behind.
    taken: Counter,
    made: Counter,
}

/// The decision about a response.
pub enum Opinion {
    /// The response stays as it is.
    None,
    /// The response is not compressed, and has another head.
    Plain(ResponseHead),
    /// The response answers HEAD with the head of GET, without the length, which is not known.
    Unmade(ResponseHead),
    /// The response is compressed, if its body turns out to be worth it; without that its head is `plain`.
    Coded {
        /// The head without it.
        plain: ResponseHead,
        /// How.
        coding: Coding,
    },
}

impl Compression {
    /// The compression of a server with these settings.
    #[must_use]
    pub fn new(settings: CompressionSettings) -> Self {
        Self { settings, used: Arc::default(), figures: Default::default() }
    }

    /// Decides about a response with this head. `length` is that of its body where it is known.
    pub fn consider(&self, request: &RequestHead, head: &ResponseHead, length: Option<u64>) -> Opinion {
        if head.status == Status::NOT_MODIFIED {
            return head::not_modified(request, head).map_or(Opinion::None, Opinion::Plain);
        }
        let length = match head::look_at(&self.settings, head, length) {
            Finding::Apart => return Opinion::None,
            Finding::Refused => return Opinion::Plain(head::without_wish(head)),
            Finding::Eligible { length } => length,
        };
        if is_excepted(&self.settings, request) {
            return Opinion::None;
        }
        let coding = chosen(&self.settings, request);
        // An application that answers HEAD often does not say how long a body GET would get, and so not whether it
        // would be compressed.
        let unknown = request.method == Method::Head && length.is_none();
        let plain = head::varying(head);
        if coding == Coding::Identity || unknown {
            return Opinion::Plain(plain);
        }
        if request.method == Method::Head {
            // The head of GET (RFC 9110 §9.3.2), without the length, which is not known before the body is made.
            return head::compressed(&plain, coding).map_or(Opinion::Plain(plain), Opinion::Unmade);
        }
        Opinion::Coded { plain, coding }
    }

    /// The head of a compressed response that has `plain` otherwise.
    pub fn head(&self, plain: &ResponseHead, coding: Coding) -> Option<ResponseHead> {
        head::compressed(plain, coding)
    }

    /// The shortest body that is compressed, in bytes.
    pub fn min_length(&self) -> u64 {
        self.settings.min_length.max(1)
    }

    /// How hard it tries with this coding, if it has it at all.
    pub fn level(&self, coding: Coding) -> Option<u8> {
        self.settings.level(coding)
    }

    /// A compressor for a body that comes in parts, if there is memory for one more.
    pub fn for_stream(&self, coding: Coding) -> Option<Compressing> {
        let level = self.settings.level(coding)?;
        let reserved = Reserved::new(&self.used, encoder::memory(coding, level), self.settings.memory)?;
        let encoder = Encoder::new(coding, level, None).ok()?;
        Some(Compressing { encoder, coding, _reserved: reserved })
    }

    /// Counts compressed responses, and their bytes before and behind.
    pub fn note(&self, coding: Coding, responses: u64, taken: u64, made: u64) {
        if let Some(figures) = self.figures.get((coding as usize).wrapping_sub(1)) {
            figures.responses.add(responses);
            figures.taken.add(taken);
            figures.made.add(made);
        }
    }
}

/// The coding for a request, or [`Coding::Identity`].
pub fn chosen(settings: &CompressionSettings, request: &RequestHead) -> Coding {
    let accepted = Accepted::of(request.fields.all("accept-encoding"));
    accepted.choose(settings.order(), |_| true)
}

/// Whether responses at the path of this request are not to be compressed.
pub fn is_excepted(settings: &CompressionSettings, request: &RequestHead) -> bool {
    if settings.except.is_empty() {
        return false;
    }
    let mut path = Vec::new();
    target::normalise_decoded(request.path(), &mut path);
    settings.except.iter().any(|pattern| pattern.matches(&path))
}

/// A response that is compressed while it comes.
pub struct Compressing {
    /// The encoder.
    pub encoder: Encoder,
    /// The coding of the encoder.
    pub coding: Coding,
    _reserved: Reserved,
}

/// Memory that an unfinished response may use, given back when it ends.
struct Reserved {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Reserved {
    fn new(used: &Arc<AtomicU64>, bytes: u64, limit: u64) -> Option<Self> {
        let reserved = used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|sum| *sum <= limit)
        });
        reserved.is_ok().then(|| Self { used: Arc::clone(used), bytes })
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(method: Method, path: &str, accept: &str) -> RequestHead {
        let mut head = RequestHead { method, ..RequestHead::default() };
        head.path_and_query = head.fields.adopt(path.as_bytes()).unwrap_or_default();
        head.fields.push("Accept-Encoding", accept);
        head
    }

    fn text() -> ResponseHead {
        ResponseHead::new(Status::OK).with("Content-Type", "text/plain").with("ETag", "\"a\"")
    }

    /// The coding, and the head as it would be sent.
    fn opinion(
        compression: &Compression,
        request: &RequestHead,
        length: Option<u64>,
    ) -> (Coding, ResponseHead) {
        match compression.consider(request, &text(), length) {
            Opinion::None => (Coding::Identity, text()),
            Opinion::Plain(head) | Opinion::Unmade(head) => (Coding::Identity, head),
            Opinion::Coded { plain, coding } => (coding, compression.head(&plain, coding).expect("short")),
        }
    }

    #[test]
    fn the_order_of_the_settings_decides_where_the_client_does_not() {
        let codings = ["gzip:1", "br:4"].map(|text| text.parse().expect("a coding")).to_vec();
        let compression = Compression::new(CompressionSettings { codings, ..Default::default() });
        for (accept, expected) in [
            ("gzip, deflate, br, zstd", Coding::Gzip),
            ("gzip;q=0.5, br", Coding::Brotli),
            ("zstd", Coding::Identity),
            ("gzip;q=0", Coding::Identity),
        ] {
            let (coding, head) = opinion(&compression, &request(Method::Get, "/", accept), None);
            assert_eq!(coding, expected, "{accept}");
            assert_eq!(head.fields.first("vary"), Some(&b"Accept-Encoding"[..]), "{accept}: for all clients");
        }
    }

    #[test]
    fn head_is_answered_with_the_known_head_of_get() {
        let compression = Compression::new(CompressionSettings::default());
        let asked = request(Method::Head, "/", "gzip");
        let (coding, head) = opinion(&compression, &asked, Some(5000));
        assert_eq!(coding, Coding::Identity, "there is nothing to compress");
        assert_eq!(head.fields.first("content-encoding"), Some(&b"gzip"[..]));
        assert_eq!(head.fields.first("etag"), Some(&b"W/\"a\""[..]));
        let (_, head) = opinion(&compression, &asked, None);
        assert!(!head.fields.contains("content-encoding") && head.fields.contains("vary"));
    }

    #[test]
    fn excepted_paths_are_found_however_they_are_written() {
        let except = vec!["/stream/*".parse().expect("a pattern")];
        let compression = Compression::new(CompressionSettings { except, ..Default::default() });
        for (path, expected) in [
            ("/stream/a?q=1", Coding::Identity),
            ("/%73tream/a", Coding::Identity),
            ("/a/../stream/b", Coding::Identity),
            ("/streams", Coding::Gzip),
        ] {
            let (coding, head) = opinion(&compression, &request(Method::Get, path, "gzip"), None);
            assert_eq!(coding, expected, "{path}");
            assert_eq!(head.fields.contains("vary"), expected != Coding::Identity, "{path}");
        }
    }

    #[test]
    fn streams_beyond_the_memory_are_not_compressed_and_give_it_back() {
        let memory = 2 * encoder::memory(Coding::Gzip, 6);
        let compression = Compression::new(CompressionSettings { memory, ..Default::default() });
        let first = compression.for_stream(Coding::Gzip).expect("the first");
        let second = compression.for_stream(Coding::Gzip).expect("the second");
        assert!(compression.for_stream(Coding::Gzip).is_none());
        drop(first);
        let third = compression.for_stream(Coding::Gzip).expect("in the place of the first");
        drop((second, third));
        assert_eq!(compression.used.load(Ordering::Relaxed), 0);
    }
}
