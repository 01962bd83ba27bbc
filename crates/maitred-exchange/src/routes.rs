//! Routes of a host: from paths to handlers.
//!
//! Promises: of all mounts that are a prefix of the path, the longest one gets the request; a path without a mount
//! goes to the application. Leaves out: the choice of the host (`hosts.rs`).

use std::sync::{Arc, OnceLock};

use maitred_files::{Now, StaticFiles};
use maitred_http::target;
use maitred_match::{RuleIndex, first_segment};
use maitred_runtime::Handler;

/// The handlers of a host: mounts first, by longest prefix, then the application.
#[derive(Default)]
pub struct Routes {
    mounts: Vec<Mount>,
    /// Index of the mounts, made at the first use.
    index: OnceLock<RuleIndex>,
    application: Option<Application>,
}

/// An application of a host.
pub struct Application {
    /// The handler of its requests.
    pub handler: Arc<dyn Handler>,
    /// Description for people; may be empty.
    pub name: Arc<str>,
    /// Prefix of its mount, without a slash at the end, and so empty for the root.
    pub prefix: String,
}

struct Mount {
    /// The prefix, without a slash at the end: empty for the root.
    prefix: String,
    content: Mounted,
}

/// Target of a mount.
enum Mounted {
    Files(Box<StaticFiles>),
    Application(Application),
}

impl Mount {
    fn files(&self) -> Option<&StaticFiles> {
        match &self.content {
            Mounted::Files(files) => Some(files),
            Mounted::Application(_) => None,
        }
    }

    /// The path below the prefix: empty, or with a slash first; none for other paths.
    fn below<'a>(&self, path: &'a [u8]) -> Option<&'a [u8]> {
        path.strip_prefix(self.prefix.as_bytes()).filter(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

/// Destination of a path.
pub enum Route<'a> {
    /// A file below a static mount.
    Static {
        /// The number of the mount.
        mount: usize,
        /// Its files.
        files: &'a StaticFiles,
        /// The path below the mount, which starts with a slash.
        below: &'a [u8],
    },
    /// An application.
    Application(&'a Application),
    /// The folder of a mount without its slash, to be redirected.
    Slash,
    /// The path has no normal form, and only files could answer.
    Bad,
    /// No handler has this path.
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
        self.mount(prefix, Mounted::Files(Box::new(files)));
        self
    }

    /// Sends everything below `prefix` (`/api`) to `handler`. The paths of the requests stay whole. `name` describes
    /// the handler for people.
    #[must_use]
    pub fn with_mounted(mut self, prefix: &str, name: &str, handler: Arc<dyn Handler>) -> Self {
        let plain = prefix.trim_end_matches('/').to_owned();
        let application = Application { handler, name: name.into(), prefix: plain };
        self.mount(prefix, Mounted::Application(application));
        self
    }

    fn mount(&mut self, prefix: &str, content: Mounted) {
        let prefix = prefix.trim_end_matches('/').to_owned();
        let place = self.mounts.partition_point(|mount| mount.prefix.len() >= prefix.len());
        self.mounts.insert(place, Mount { prefix, content });
        self.index.take();
    }

    /// The mounts that may match a path, the longest prefix first, with their numbers.
    fn mounts_for(&self, path: &[u8]) -> impl Iterator<Item = (usize, &Mount)> {
        let index = self.index.get_or_init(|| {
            RuleIndex::new(self.mounts.iter().map(|mount| (None, first_segment(mount.prefix.as_bytes()))))
        });
        index.candidates(0, path).map(|place| (place, &self.mounts[place]))
    }

    /// Sends all other paths to `handler`.
    #[must_use]
    pub fn with_application(self, handler: Arc<dyn Handler>) -> Self {
        self.with_root("", handler)
    }

    /// Sends all other paths to `handler`; `name` describes the handler for people.
    #[must_use]
    pub fn with_root(mut self, name: &str, handler: Arc<dyn Handler>) -> Self {
        self.application = Some(Application { handler, name: name.into(), prefix: String::new() });
        self
    }

    /// Whether any path leads to a mount.
    pub fn has_mounts(&self) -> bool {
        !self.mounts.is_empty()
    }

    /// Whether there are neither mounts nor an application.
    pub fn is_empty(&self) -> bool {
        self.mounts.is_empty() && self.application.is_none()
    }

    /// The patterns of the mounts, `/static/*`, in the order of their numbers.
    pub fn patterns(&self) -> impl Iterator<Item = String> {
        self.mounts.iter().map(|mount| format!("{}/*", mount.prefix))
    }

    /// The number of the mount that serves a normalised path, including its folder without a slash.
    pub fn mount_of(&self, path: &[u8]) -> Option<usize> {
        self.mounts_for(path).find(|(_, mount)| mount.below(path).is_some()).map(|(number, _)| number)
    }

    /// Whether there is an application.
    pub fn has_application(&self) -> bool {
        self.applications().next().is_some()
    }

    /// The applications: the mounted ones by the longest prefix, then that of the root.
    pub fn applications(&self) -> impl Iterator<Item = &Application> {
        let mounted = self.mounts.iter().filter_map(|mount| match &mount.content {
            Mounted::Application(application) => Some(application),
            Mounted::Files(_) => None,
        });
        mounted.chain(&self.application)
    }

    /// The static mounts, the longest prefix first; prefixes have no slash at their end.
    pub fn folders(&self) -> impl Iterator<Item = (&str, &StaticFiles)> {
        self.mounts.iter().filter_map(|mount| Some((&*mount.prefix, mount.files()?)))
    }

    /// Closes files that static mounts have not used for a while.
    pub fn sweep(&self, now: Now) {
        self.folders().for_each(|(_, files)| files.sweep(now));
    }

    /// Forgets open files after a file became shorter while it was sent: the next response must not have the old
    /// length.
    pub fn forget_open_files(&self) {
        self.folders().for_each(|(_, files)| files.forget_open_files());
    }

    /// Finds the route of a path as it was sent; `normal` is room for the normal form. Only a path that may lead to a
    /// mount and is not in normal form is normalised.
    pub fn find_sent<'a>(&'a self, path: &'a [u8], normal: &'a mut Vec<u8>) -> Route<'a> {
        if !self.has_mounts() {
            self.application()
        } else if target::is_plain(path) {
            self.find(path)
        } else if target::normalise(path, normal).is_ok() {
            self.find(normal)
        } else {
            target::normalise_decoded(path, normal);
            self.unnormal(normal)
        }
    }

    /// The files of the static mount with this number, and the part of a path below it; `normal` is room for the normal form of the path.
    pub fn files_at<'a>(
        &'a self,
        mount: usize,
        path: &'a [u8],
        normal: &'a mut Vec<u8>,
    ) -> Option<(&'a StaticFiles, &'a [u8])> {
        let mount = self.mounts.get(mount)?;
        let path = if target::is_plain(path) {
            path
        } else {
            target::normalise(path, normal).ok()?;
            normal
        };
        Some((mount.files()?, mount.below(path)?))
    }

    /// Finds the route of a normalised path.
    pub fn find<'a>(&'a self, path: &'a [u8]) -> Route<'a> {
        for (number, mount) in self.mounts_for(path) {
            match (mount.below(path), &mount.content) {
                (Some([]), Mounted::Files(_)) => return Route::Slash,
                (Some(below), Mounted::Files(files)) => return Route::Static { mount: number, files, below },
                (Some(_), Mounted::Application(application)) => return Route::Application(application),
                (None, _) => {}
            }
        }
        self.application()
    }

    /// The route of a path that [`normalise`](target::normalise) refuses, in the form that
    /// [`normalise_decoded`](target::normalise_decoded) gives it: an application may understand it, files cannot.
    pub fn unnormal(&self, decoded: &[u8]) -> Route<'_> {
        for (_, mount) in self.mounts_for(decoded) {
            if let Mounted::Application(application) = &mount.content
                && mount.below(decoded).is_some()
            {
                return Route::Application(application);
            }
        }
        self.application.as_ref().map_or(Route::Bad, Route::Application)
    }

    /// The route of a request that no mount can answer.
    fn application(&self) -> Route<'_> {
        self.application.as_ref().map_or(Route::Nothing, Route::Application)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_mounts_the_one_with_the_longest_prefix_has_a_path() {
        let handler: Arc<dyn Handler> = Arc::new(|_: maitred_runtime::Exchange| {});
        let mut routes = Routes::new().with_root("root", Arc::clone(&handler));
        let further: Vec<String> = (0..100).map(|number| format!("/x{number}")).collect();
        let named = ["/a", "/a/b", "/b/c", "/b"].into_iter().chain(further.iter().map(String::as_str));
        for prefix in named {
            routes = routes.with_mounted(prefix, prefix, Arc::clone(&handler));
        }
        let name = |path: &str| match routes.find(path.as_bytes()) {
            Route::Application(application) => application.name.to_string(),
            _ => "nothing".to_owned(),
        };
        for (path, expected) in [
            ("/a", "/a"),
            ("/a/b/c", "/a/b"),
            ("/a/bc", "/a"),
            ("/b/c/", "/b/c"),
            ("/ab", "root"),
            ("/x7/y", "/x7"),
            ("/x700", "root"),
            ("/", "root"),
        ] {
            assert_eq!(name(path), expected, "{path}");
        }
        let last = routes.with_mounted("/", "all", Arc::clone(&handler));
        assert!(matches!(last.find(b"/zzz"), Route::Application(found) if &*found.name == "all"));
        assert_eq!(last.mount_of(b"/a/b"), last.patterns().position(|pattern| pattern == "/a/b/*"));
    }
}
