//! The destination of a request: the engine itself, the files of a mount, or an application.
//!
//! Promises: the destination is found once, when the head is complete and its host is known, and again only if a filter has given the
//! request another path. The engine's own paths come first, then the longest mount that fits, then the application, else nothing.

use std::cell::RefCell;
use std::sync::Arc;

use maitred_h1::{HeadFacts, TargetForm};
use maitred_http::{Method, RequestHead};
use maitred_runtime::Handler;

use crate::routes::Route;
use crate::site::Site;

/// The destination of a request.
#[derive(Clone, Default)]
pub enum Destination {
    /// The server as a whole: `OPTIONS *` (RFC 9110 §9.3.7).
    Server,
    /// The engine, at the health path.
    Health,
    /// The engine, at the metrics path.
    Metrics,
    /// The static mount with this number.
    Files(usize),
    /// An application.
    Application(Arc<dyn Handler>),
    /// The folder of a mount, without its slash.
    Slash,
    /// No normal form of the path exists, and only files could answer.
    Bad,
    /// No mount and no application has the path.
    #[default]
    Nothing,
}

impl Destination {
    /// Finds the destination of a request for the host in `head`: the engine's own paths first, then the longest mount that fits, then
    /// the application, else nothing.
    pub fn find(site: &Site, head: &RequestHead, facts: Option<HeadFacts>) -> Self {
        thread_local! {
            static NORMAL: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
        }
        if facts.is_some_and(|facts| facts.target_form == TargetForm::Asterisk) {
            return Self::Server;
        }
        if asks_for(site.health_path.as_deref(), head) {
            return Self::Health;
        }
        if asks_for(site.metrics_path.as_deref(), head) {
            return Self::Metrics;
        }
        let routes = site.hosts.of(head.host).routes();
        NORMAL.with_borrow_mut(|normal| match routes.find_sent(head.path(), normal) {
            Route::Static { mount, .. } => Self::Files(mount),
            Route::Application(application) => Self::Application(Arc::clone(&application.handler)),
            Route::Slash => Self::Slash,
            Route::Bad => Self::Bad,
            Route::Nothing => Self::Nothing,
        })
    }

    /// The handler of the application.
    pub fn application(&self) -> Option<&Arc<dyn Handler>> {
        if let Self::Application(handler) = self { Some(handler) } else { None }
    }

    /// Whether a handler takes the body.
    pub fn is_application(&self) -> bool {
        self.application().is_some()
    }

    /// Whether the engine answers this about itself.
    pub fn is_engine(&self) -> bool {
        matches!(self, Self::Health | Self::Metrics)
    }
}

/// Whether the engine answers this request about itself.
pub fn asks_engine(site: &Site, head: &RequestHead) -> bool {
    [&site.health_path, &site.metrics_path].into_iter().any(|path| asks_for(path.as_deref(), head))
}

/// Whether a request asks the engine at `path`. Other methods are the application's.
pub fn asks_for(path: Option<&str>, head: &RequestHead) -> bool {
    path.is_some_and(|path| path.as_bytes() == head.path())
        && matches!(head.method, Method::Get | Method::Head)
}
