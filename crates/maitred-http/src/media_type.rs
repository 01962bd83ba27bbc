//! Media types by the ending of a file name.
//!
//! The table is generated from `media_types/media_types.txt` by `media_types/generate.py`.

mod table;

use table::MEDIA_TYPES;

/// The media type of a file of this name, as `Content-Type` says it; `None` when the name has no
/// ending or an unknown one. Upper case counts as lower case.
///
/// Only the last ending counts (`a.tar.gz` is gzip), and a name that is nothing but an ending
/// (`.html`) has none. Types of text carry `charset=utf-8`: without it a browser may guess (RFC 9110
/// §8.3.2 leaves no default).
pub fn for_name(file_name: &str) -> Option<&'static str> {
    let name = file_name.rsplit('/').next()?;
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    let wanted = || extension.bytes().map(|byte| byte.to_ascii_lowercase());
    let place = MEDIA_TYPES.binary_search_by(|(known, _)| known.bytes().cmp(wanted())).ok()?;
    MEDIA_TYPES.get(place).map(|(_, media_type)| *media_type)
}
