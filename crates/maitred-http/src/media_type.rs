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

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = include_str!("../media_types/media_types.txt");

    /// The table that `generate.py` makes.
    fn listed() -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        for line in LIST.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let Some(media_type) = words.next() else { continue };
            let charset = if media_type.starts_with("text/") { "; charset=utf-8" } else { "" };
            rows.extend(words.map(|ending| (ending, format!("{media_type}{charset}"))));
        }
        rows.sort_unstable();
        rows
    }

    #[test]
    fn the_table_is_the_list_sorted_by_ending() {
        let table: Vec<_> = MEDIA_TYPES.iter().map(|(ending, name)| (*ending, name.to_string())).collect();
        assert_eq!(table, listed());
        assert!(MEDIA_TYPES.is_sorted_by(|one, next| one.0 < next.0), "an ending stands there twice");
        assert!(MEDIA_TYPES.len() >= 150);
    }

    #[test]
    fn every_row_is_found_in_any_case() {
        for (ending, media_type) in MEDIA_TYPES {
            assert_eq!(for_name(&format!("a.{ending}")), Some(*media_type));
            assert_eq!(for_name(&format!("a.{}", ending.to_uppercase())), Some(*media_type));
            assert!(ending.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()));
            assert_eq!(media_type.split(';').next().unwrap_or_default().matches('/').count(), 1);
        }
    }

    #[test]
    fn the_types_of_the_web_are_the_current_ones() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("data.json", "application/json"),
            ("site.webmanifest", "application/manifest+json"),
            ("module.wasm", "application/wasm"),
            ("a.avif", "image/avif"),
            ("a.webp", "image/webp"),
            ("a.svg", "image/svg+xml"),
            ("favicon.ico", "image/vnd.microsoft.icon"),
            ("a.woff2", "font/woff2"),
            ("README.md", "text/markdown; charset=utf-8"),
            ("robots.txt", "text/plain; charset=utf-8"),
            ("a.tar.gz", "application/gzip"),
            ("clip.mp4", "video/mp4"),
        ] {
            assert_eq!(for_name(name), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_name_without_a_known_ending_has_no_type() {
        for name in [
            "",
            ".",
            "..",
            "Makefile",
            ".html",
            "a.",
            "a.nosuch",
            "a.html/b",
            "folder.html/.css",
            "a.\u{212a}",
        ] {
            assert_eq!(for_name(name), None, "{name}");
        }
    }
}
