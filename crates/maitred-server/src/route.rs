//! Which handler answers which path.

use std::sync::Arc;

use maitred_runtime::Handler;

use maitred_files::{CacheStatistics, Now, StaticFiles};

/// The handlers of a server: static mounts first, by longest prefix, then the application.
#[derive(Default)]
pub struct Routes {
    mounts: Vec<Mount>,
    application: Option<Arc<dyn Handler>>,
}

struct Mount {
    /// Without a slash at the end: empty for the root.
    prefix: String,
    files: StaticFiles,
}

/// Where a path leads.
pub enum Route<'a> {
    /// A file below a static mount; the path starts with a slash.
    Static(&'a StaticFiles, &'a [u8]),
    /// The application.
    Application(&'a Arc<dyn Handler>),
    /// The folder of a mount, without its slash: the slash is missing.
    Slash,
    /// The path has no normal form, and only files could answer.
    Bad,
    /// Nothing answers this path.
    Nothing,
}

impl Routes {
    /// No route: every request gets 404.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves everything below `prefix` (`/static`, or `/` for all) from `files`.
    #[must_use]
    pub fn with_static(mut self, prefix: &str, files: StaticFiles) -> Self {
        self.mounts.push(Mount { prefix: prefix.trim_end_matches('/').to_owned(), files });
        self.mounts.sort_by_key(|mount| std::cmp::Reverse(mount.prefix.len()));
        self
    }

    /// Sends everything else to `handler`.
    #[must_use]
    pub fn with_application(mut self, handler: Arc<dyn Handler>) -> Self {
        self.application = Some(handler);
        self
    }

    /// Whether any path leads to a static mount; if not, no path needs to be normalised.
    pub fn has_static(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// The patterns of the static mounts, `/static/*`, in the order of their numbers.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = String> {
        self.mounts.iter().map(|mount| format!("{}/*", mount.prefix))
    }

    /// The number of the static mount that answers a normalised path, its folder without a slash included.
    pub(crate) fn mount_of(&self, path: &[u8]) -> Option<usize> {
        let below = |mount: &Mount| {
            let rest = path.strip_prefix(mount.prefix.as_bytes());
            rest.is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
        };
        self.mounts.iter().position(below)
    }

    /// Sums of what the caches of the static mounts have done and hold.
    pub(crate) fn cache_statistics(&self) -> CacheStatistics {
        let mut sum = CacheStatistics::default();
        self.mounts.iter().for_each(|mount| sum.add(&mount.files.statistics()));
        sum
    }

    /// Whether there is an application.
    pub fn has_application(&self) -> bool {
        self.application.is_some()
    }

    /// The static mounts, the longest prefix first, which has no slash at its end.
    pub fn mounts(&self) -> impl Iterator<Item = (&str, &StaticFiles)> {
        self.mounts.iter().map(|mount| (&*mount.prefix, &mount.files))
    }

    /// Closes what static mounts have not used for a while.
    pub(crate) fn sweep(&self, now: Now) {
        for mount in &self.mounts {
            mount.files.sweep(now);
        }
    }

    /// A file became shorter while it was sent: the next request must not be told its old length.
    pub(crate) fn forget_open_files(&self) {
        for mount in &self.mounts {
            mount.files.forget_open_files();
        }
    }

    /// Finds the route of a normalised path.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> Route<'a> {
        for mount in &self.mounts {
            match path.strip_prefix(mount.prefix.as_bytes()) {
                Some([]) => return Route::Slash,
                Some(rest @ [b'/', ..]) => return Route::Static(&mount.files, rest),
                _ => {}
            }
        }
        self.application()
    }

    /// The route of a path without normal form: an application may understand it, files cannot.
    pub fn unnormal(&self) -> Route<'_> {
        self.application.as_ref().map_or(Route::Bad, Route::Application)
    }

    /// The route of a request that no static mount can answer.
    pub(crate) fn application(&self) -> Route<'_> {
        self.application.as_ref().map_or(Route::Nothing, Route::Application)
    }
}
