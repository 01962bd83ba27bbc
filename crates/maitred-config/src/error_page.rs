//! Error pages as they are written, `404=pages/404.html`, and as the server has them.

use std::fmt;
use std::path::{Path, PathBuf};

use maitred_server::{ErrorPage, ErrorPages, PageFor};

use crate::BadValue;

/// A file that is sent with errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorPageFile {
    /// The errors of the page.
    pub which: PageFor,
    /// The file; relative to the current directory where it is not absolute.
    pub file: PathBuf,
}

/// Most bytes of a page: pages are kept in memory, and every request for a missing path gets one.
const MAX_PAGE: u64 = 1024 * 1024;

impl fmt::Display for ErrorPageFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.which {
            PageFor::Status(status) => write!(f, "{status}={}", self.file.display()),
            PageFor::Class(class) => write!(f, "{class}xx={}", self.file.display()),
        }
    }
}

/// A status or a class of them, and a file.
pub(crate) fn error_page(text: &str) -> Result<ErrorPageFile, BadValue> {
    let remedy = "write STATUS=FILE, for example 404=pages/404.html or 5xx=pages/failed.html";
    let bad = |why: &str| BadValue::new(format!("'{text}' {why}"), remedy);
    let (which, file) = text.split_once('=').ok_or_else(|| bad("has no '='"))?;
    let which = match which {
        "4xx" => PageFor::Class(4),
        "5xx" => PageFor::Class(5),
        number => number
            .parse()
            .ok()
            .filter(|status| (400..600).contains(status))
            .map(PageFor::Status)
            .ok_or_else(|| bad("does not begin with a status from 400 to 599, 4xx or 5xx"))?,
    };
    match file {
        "" => Err(bad("names no file")),
        file => Ok(ErrorPageFile { which, file: PathBuf::from(file) }),
    }
}

/// Reads the pages.
///
/// # Errors
/// A file cannot be read, or is too long.
pub fn read(files: &[ErrorPageFile]) -> Result<ErrorPages, BadValue> {
    files.iter().try_fold(ErrorPages::default(), |pages, ErrorPageFile { which, file }| {
        let shown = file.display();
        let wrong = |error: std::io::Error| {
            BadValue::new(
                format!("the page {shown} cannot be read: {error}"),
                "create it or correct the path",
            )
        };
        let length = std::fs::metadata(file).map_err(wrong)?.len();
        if length > MAX_PAGE {
            let what = format!("the page {shown} has {length} bytes, and pages are kept in memory");
            return Err(BadValue::new(what, format!("name one of at most {MAX_PAGE} bytes")));
        }
        let body = std::fs::read(file).map_err(wrong)?;
        Ok(pages.with(*which, ErrorPage { content_type: content_type(file).into(), body: body.into() }))
    })
}

fn content_type(file: &Path) -> &'static str {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("json") => "application/json",
        _ => "text/plain; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_for_a_status_or_a_class() {
        for text in ["404=a/b.html", "4xx=b", "5xx=c=d"] {
            assert_eq!(error_page(text).map(|page| page.to_string()), Ok(text.to_owned()));
        }
        for text in ["404", "404=", "200=a", "600=a", "3xx=a", "=a", "4xx"] {
            assert!(error_page(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let page =
            |name: &str| vec![ErrorPageFile { which: PageFor::Class(4), file: folder.path().join(name) }];
        std::fs::write(folder.path().join("a.html"), "<h1>").expect("written");
        assert!(!read(&page("a.html")).expect("a page").is_empty());
        let BadValue { what, .. } = read(&page("b.html")).expect_err("no file");
        assert!(what.contains("b.html cannot be read"), "{what}");
    }
}
