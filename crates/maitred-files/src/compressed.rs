//! Small files that have no compressed siblings: compressed once, and kept beside the file.
//!
//! Leaves out: where they are kept (`cache.rs`), and their heads (`load.rs`).

use maitred_compress as compress;
use maitred_compress::{CompressionSettings, is_excepted};
use maitred_http::RequestHead;
use maitred_http::coding::Coding;

use crate::StaticSettings;
use crate::cache::{Resource, Variant};

/// The longest file that is compressed here, in bytes: a thread that also polls is busy with it for about 20 ms, once. For longer
/// ones there are siblings.
const MAX_LENGTH: u64 = 1024 * 1024;

/// Whether a file of this type and length, at the path of this request, may be compressed.
pub(crate) fn may_be(
    settings: &StaticSettings,
    request: &RequestHead,
    media_type: &str,
    length: u64,
) -> bool {
    // Without a cache it would be done for every request.
    let Some(compression) = settings.compression.as_ref().filter(|_| settings.max_cache_bytes > 0) else {
        return false;
    };
    (compression.min_length.max(1)..=MAX_LENGTH).contains(&length)
        && compression.has_type(media_type.as_bytes())
        && !settings.cache_control.as_ref().is_some_and(|value| value.contains("no-transform"))
        && !is_excepted(compression, request)
}

/// The file in this coding; `None` if that takes no fewer bytes, or the file has changed.
pub(crate) fn make(
    settings: &CompressionSettings,
    resource: &Resource,
    coding: Coding,
) -> Option<(Coding, Variant)> {
    let content = resource.content()?;
    let mut made = Vec::with_capacity(content.len() / 3);
    compress::whole(coding, settings.level(coding)?, &content, &mut made).ok()?;
    made.shrink_to_fit();
    (made.len() < content.len()).then(|| (coding, resource.original().compressed(coding, made)))
}
