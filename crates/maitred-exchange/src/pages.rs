//! Error pages: bodies that a host sends in the place of the engine's own one-line texts.
//!
//! Leaves out: error responses of applications.

use std::sync::Arc;

use maitred_http::{ResponseHead, Status};
use maitred_runtime::Content;

/// The type of the texts that have no page.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// The error pages of a host, by status and by class of status.
#[derive(Clone, Debug, Default)]
pub struct ErrorPages {
    pages: Vec<(PageFor, ErrorPage)>,
}

/// The errors that a page is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFor {
    /// Errors with this status, from 400 to 599.
    Status(u16),
    /// Errors of this class, 4 or 5, whose status has no page of its own.
    Class(u8),
}

/// The body of an error response.
#[derive(Clone, Debug)]
pub struct ErrorPage {
    /// Content-Type of the body.
    pub content_type: Arc<str>,
    /// Bytes of the body.
    pub body: Arc<[u8]>,
}

impl ErrorPages {
    /// Adds a page. Of two pages for the same errors the later one counts.
    #[must_use]
    pub fn with(mut self, which: PageFor, page: ErrorPage) -> Self {
        self.pages.retain(|(other, _)| *other != which);
        self.pages.push((which, page));
        self
    }

    /// Whether the host has no error pages.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The page for this status, if there is one.
    pub fn find(&self, status: Status) -> Option<&ErrorPage> {
        let code = status.code();
        let of = |which| self.pages.iter().find(|(own, _)| *own == which).map(|(_, page)| page);
        of(PageFor::Status(code)).or_else(|| of(PageFor::Class((code / 100) as u8)))
    }

    /// The head and the body with the page for the status of `head`, if there is one.
    pub fn replace(&self, head: &ResponseHead) -> Option<(ResponseHead, Content)> {
        let page = self.find(head.status)?;
        let mut head = head.clone();
        head.fields.set("Content-Type", &*page.content_type);
        Some((head, Content::Shared(Arc::clone(&page.body))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_status_comes_before_that_of_its_class() {
        let page = |text: &str| ErrorPage { content_type: "text/html".into(), body: text.as_bytes().into() };
        let pages = ErrorPages::default()
            .with(PageFor::Class(4), page("class"))
            .with(PageFor::Status(404), page("first"))
            .with(PageFor::Status(404), page("nothing here"));
        let found = |code| {
            let page = pages.find(Status::from_code(code).expect("a status"));
            page.map(|page| String::from_utf8_lossy(&page.body).into_owned())
        };
        assert_eq!(found(404).as_deref(), Some("nothing here"));
        assert_eq!(found(403).as_deref(), Some("class"));
        assert_eq!(found(503), None);
        assert_eq!(found(200), None);
    }
}
