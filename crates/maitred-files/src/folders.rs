//! Folders that have no compressed siblings at all: with this knowledge three look-ups for each file are saved.
//!
//! Promises: a change of a folder is seen as soon as that of a cached file would be; an unknown folder counts as one
//! with siblings. Memory: [`MAX_FOLDERS`] paths. Leaves out: the siblings of each file (`load.rs`).

use std::collections::HashMap;
use std::fmt;

use maitred_http::coding::Coding;
use maitred_io::sync::NamedLock;
use maitred_stats::LockSnapshot;
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::Now;
use crate::load::suffix;
use crate::root::Root;
use crate::stamp::Stamp;

/// The most names that are read of a folder: about a millisecond. Of a larger one nothing is known.
const MAX_NAMES: usize = 4096;

/// The most folders something is known of; they are all forgotten when there are more.
const MAX_FOLDERS: usize = 1024;

/// How long a folder with the same times is believed to have the same names: there are file systems in user space that do
/// not change them.
const READ_AGAIN_AFTER_NS: u64 = 60_000_000_000;

pub(crate) struct Folders {
    validate_after_ns: u64,
    known: NamedLock<HashMap<Box<[u8]>, Folder>>,
}

#[derive(Clone, Copy, Debug)]
struct Folder {
    /// None when it has to be read again.
    stamp: Option<Stamp>,
    may_have_siblings: bool,
    checked_at: u64,
    read_at: u64,
}

impl fmt::Debug for Folders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Folders").finish_non_exhaustive()
    }
}

impl Folders {
    pub(crate) fn new(validate_after_ns: u64) -> Self {
        Self { validate_after_ns, known: NamedLock::with_name("static.folders".into(), HashMap::new()) }
    }

    pub(crate) fn lock_snapshot(&self) -> LockSnapshot {
        self.known.snapshot()
    }

    pub(crate) fn may_have_siblings(&self, root: &Root, path: &[u8], now: Now) -> bool {
        let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let folder = &path[..end];
        let known = self.known.lock().get(folder).copied();
        if let Some(known) = known
            && now.monotonic_ns.saturating_sub(known.checked_at) < self.validate_after_ns
        {
            return known.may_have_siblings;
        }
        let found = known.filter(|known| known.is_still(root, folder, now)).map_or_else(
            || Folder::read(root, folder, now),
            |known| Folder { checked_at: now.monotonic_ns, ..known },
        );
        let mut all = self.known.lock();
        if all.len() >= MAX_FOLDERS && !all.contains_key(folder) {
            all.clear();
        }
        all.insert(folder.into(), found);
        found.may_have_siblings
    }
}

impl Folder {
    fn is_still(&self, root: &Root, folder: &[u8], now: Now) -> bool {
        self.stamp.is_some_and(|stamp| {
            now.monotonic_ns.saturating_sub(self.read_at) < READ_AGAIN_AFTER_NS
                && root.folder_stamp(folder) == Ok(stamp)
        })
    }

    fn read(root: &Root, folder: &[u8], now: Now) -> Self {
        let nothing = Self {
            stamp: None,
            may_have_siblings: true,
            checked_at: now.monotonic_ns,
            read_at: now.monotonic_ns,
        };
        // One that has just been changed may change again without another stamp, and one that changes often need not be
        // read each time.
        let Some(stamp) = root.folder_stamp(folder).ok().filter(|stamp| !stamp.is_young(now.unix_seconds))
        else {
            return nothing;
        };
        match has_compressed(root, folder) {
            Ok(may_have_siblings) => Self { stamp: Some(stamp), may_have_siblings, ..nothing },
            Err(_) => nothing,
        }
    }
}

fn has_compressed(root: &Root, folder: &[u8]) -> Result<bool, Errno> {
    let suffixes = Coding::COMPRESSED.map(suffix);
    for (number, entry) in Dir::new(root.open_folder(folder)?)?.enumerate() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if number >= MAX_NAMES || suffixes.iter().any(|suffix| name.ends_with(suffix.as_bytes())) {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, SystemTime};

    use tempfile::TempDir;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    struct Place {
        folder: TempDir,
        root: Root,
        folders: Folders,
        now: Now,
    }

    impl Place {
        fn new() -> Self {
            let folder = TempDir::new().unwrap();
            let root = Root::open(folder.path()).unwrap();
            let unix_seconds = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs() + 60;
            let now = Now { monotonic_ns: 1000 * SECOND, unix_seconds };
            Self { folder, root, folders: Folders::new(SECOND), now }
        }

        /// Makes a file, and gives its folder times that it has not had before, on file systems with coarse times, too.
        fn write(&self, name: &str) {
            fs::write(self.folder.path().join(name), "").unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + name.len() as u64);
            File::open(self.folder.path().join(name).parent().unwrap()).unwrap().set_modified(time).unwrap();
        }

        fn pass(&mut self, seconds: u64) {
            self.now.monotonic_ns += seconds * SECOND;
            self.now.unix_seconds += seconds;
        }

        fn may_have_siblings(&self, path: &str) -> bool {
            self.folders.may_have_siblings(&self.root, path.as_bytes(), self.now)
        }
    }

    #[test]
    fn a_folder_without_compressed_names_has_none_until_it_changes() {
        let mut place = Place::new();
        fs::create_dir(place.folder.path().join("below")).unwrap();
        place.write("below/a.gz");
        place.write("page.html");
        assert!(!place.may_have_siblings("/page.html"));
        assert!(place.may_have_siblings("/below/page.html"));
        place.write("other.html.br");
        assert!(!place.may_have_siblings("/page.html"), "it was looked at a moment ago");
        place.pass(1);
        assert!(place.may_have_siblings("/page.html"));
        fs::remove_file(place.folder.path().join("other.html.br")).unwrap();
        place.write("much-longer.html");
        place.pass(1);
        assert!(!place.may_have_siblings("/page.html"));
    }

    #[test]
    fn a_change_that_the_times_do_not_show_is_seen_a_minute_later() {
        let mut place = Place::new();
        place.write("a.html");
        assert!(!place.may_have_siblings("/a.html"));
        let known = place.folders.known.lock()[&b"/"[..]];
        place.write("a.html.gz");
        // As if the file system had left the times as they were.
        let stamp = Some(place.root.folder_stamp(b"/").unwrap());
        place.folders.known.lock().insert(b"/"[..].into(), Folder { stamp, ..known });
        place.pass(59);
        assert!(!place.may_have_siblings("/a.html"));
        place.pass(1);
        assert!(place.may_have_siblings("/a.html"));
    }

    #[test]
    fn nothing_is_known_of_young_large_and_missing_folders() {
        let mut place = Place::new();
        place.write("a.html");
        place.now.unix_seconds -= 60;
        assert!(place.may_have_siblings("/a.html"), "young");
        place.pass(60);
        assert!(!place.may_have_siblings("/a.html"));
        assert!(place.may_have_siblings("/none/a.html"));
        (0..MAX_NAMES)
            .for_each(|number| fs::write(place.folder.path().join(number.to_string()), "").unwrap());
        place.write("longer.html");
        place.pass(1);
        assert!(place.may_have_siblings("/a.html"), "too many names");
    }

    #[test]
    fn it_knows_a_bounded_number_of_folders() {
        let place = Place::new();
        (0..=MAX_FOLDERS).for_each(|number| _ = place.may_have_siblings(&format!("/{number}/a")));
        assert_eq!(place.folders.known.lock().len(), 1);
    }
}
