//! `maitred dev`: watches the files of an application and reports changes, and makes the token of the page with tracebacks.
//!
//! The supervisor keeps the sockets open and starts a new worker for each change. The page itself is Python's: python/maitred/_dev.py.
//! The kernel reports changes (inotify). File systems of other machines have no such reports: their files are looked at a few times a second.
//! Left out: hidden folders, virtual environments, caches, static folders, and files with endings that applications do not load.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::io::{self, ErrorKind::NotFound, ErrorKind::StorageFull};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use maitred_config::Problem;
use maitred_config::problem::folder_of;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Bytes of the token: 128 bits cannot be guessed.
const TOKEN_BYTES: usize = 16;

/// Time without a change that ends a change: an editor writes a file in several steps.
const QUIET: Duration = Duration::from_millis(25);

/// Longest time until a change is reported, even if files go on changing.
const LONGEST: Duration = Duration::from_millis(400);

/// Time between two looks at files where the kernel reports no changes.
const POLL: Duration = Duration::from_millis(250);

/// Most folders that are watched: the kernel has a limit for each user (fs.inotify.max_user_watches), of which other programs need some.
const MAX_FOLDERS: usize = 8_000;

/// The reports that the kernel makes of a folder and its files. The end of a write is one, since `touch` makes no other.
const REPORTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE);

/// Endings of files that applications load: code, templates, settings.
const SUFFIXES: &[&str] = &[
    "py", "html", "jinja", "jinja2", "j2", "mako", "toml", "ini", "cfg", "yaml", "yml", "env", "sql",
    "graphql",
];

/// Folders without code of the developer.
const OTHERS: &[&str] = &["__pycache__", "node_modules", "site-packages"];

/// A thread that watches. Dropping this ends the thread.
pub(crate) struct Watch {
    /// The thread ends when the other end of its own one is gone.
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    /// Warnings for the user about folders that are not watched.
    pub(crate) warnings: Vec<String>,
}

impl Watch {
    /// Begins to watch `paths`, which are files or folders with their subfolders, except folders in `left_out`. `changed` is called with the files that
    /// have changed, on a thread of its own.
    ///
    /// # Errors
    /// The kernel watches no further files, or there is no thread.
    pub(crate) fn start(
        paths: &[PathBuf],
        left_out: &[PathBuf],
        changed: impl Fn(&BTreeSet<PathBuf>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::begin(paths, left_out, paths.iter().any(|path| is_remote(path)), changed)
    }

    fn begin(
        paths: &[PathBuf],
        left_out: &[PathBuf],
        is_remote: bool,
        changed: impl Fn(&BTreeSet<PathBuf>) + Send + 'static,
    ) -> io::Result<Self> {
        let kernel = match is_remote {
            true => None,
            false => Some(Kernel::new()?),
        };
        let left_out = left_out.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut folders = Folders { kernel, left_out, ..Folders::default() };
        for path in paths {
            if path.metadata().map_err(|error| named(path, &error))?.is_dir() {
                folders.roots.push(path.clone());
                continue;
            }
            // A link may be replaced, and so may the file behind the link.
            let target = path.is_symlink().then(|| path.canonicalize()).transpose()?;
            let name = path.file_name().unwrap_or_default();
            folders.files.extend([folder_of(path).join(name)].into_iter().chain(target));
        }
        folders.found = folders.all()?;
        let mut warnings = std::mem::take(&mut folders.found.unread);
        warnings.extend(folders.found.is_full.then(|| {
            format!("only the first {MAX_FOLDERS} folders are watched: --watch FOLDER says which ones count")
        }));
        let thread = thread::Builder::new().name("maitred-watch".to_owned());
        let (end, ended) = UnixStream::pair()?;
        let thread = thread.spawn(move || watch(&mut folders, &ended, &changed))?;
        Ok(Self { end: Some(end), thread: Some(thread), warnings })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// The folders that are watched.
#[derive(Default)]
struct Folders {
    roots: Vec<PathBuf>,
    /// Files that are watched by themselves. The kernel watches their folders, since another file may take the place of each.
    files: BTreeSet<PathBuf>,
    /// `None`: the files are looked at.
    kernel: Option<Kernel>,
    left_out: BTreeSet<PathBuf>,
    found: Found,
}

/// The folders and files of one look.
#[derive(Default)]
struct Found {
    folders: usize,
    is_full: bool,
    /// Warnings about folders that cannot be read.
    unread: Vec<String>,
    /// Files of the application; with the time of their last change and their length where the kernel reports no changes.
    files: BTreeMap<PathBuf, Option<(SystemTime, u64)>>,
}

impl Folders {
    /// Looks through all roots, and has the kernel watch what is found.
    fn all(&mut self) -> io::Result<Found> {
        let mut found = Found::default();
        for root in self.roots.clone() {
            self.add(&root, &mut found)?;
        }
        for file in self.files.clone() {
            self.watch(folder_of(&file)).map_err(|error| named(folder_of(&file), &error))?;
            self.look_at(file, &mut found);
        }
        Ok(found)
    }

    /// Watches this folder and its subfolders.
    fn add(&mut self, folder: &Path, found: &mut Found) -> io::Result<()> {
        if found.is_full || self.is_left_out(folder) {
            return Ok(());
        }
        if self.kernel.as_ref().map_or(found.folders, |kernel| kernel.watched.len()) >= MAX_FOLDERS {
            found.is_full = true;
            return Ok(());
        }
        let entries = match self.watch(folder).and_then(|()| folder.read_dir()) {
            Ok(entries) => entries,
            // A folder that is gone meanwhile needs no watch.
            Err(error) if error.kind() == NotFound => return Ok(()),
            Err(error) if error.kind() == StorageFull || self.roots.iter().any(|root| root == folder) => {
                return Err(named(folder, &error));
            }
            Err(error) => {
                let fault = named(folder, &error);
                found.unread.push(format!("changes are not seen in {fault}: make this folder readable, or name others with --watch FOLDER"));
                return Ok(());
            }
        };
        found.folders += 1;
        for entry in entries.flatten() {
            // A link is left out: it may lead to a folder above it.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder && !is_of_others(&entry.path()) {
                self.add(&entry.path(), found)?;
            } else if !is_folder && is_of_application(&entry.path()) {
                self.look_at(entry.path(), found);
            }
        }
        Ok(())
    }

    fn watch(&mut self, folder: &Path) -> io::Result<()> {
        self.kernel.as_mut().map_or(Ok(()), |kernel| kernel.watch(folder))
    }

    fn look_at(&self, file: PathBuf, found: &mut Found) {
        let state = || file.metadata().and_then(|data| Ok((data.modified()?, data.len()))).ok();
        let state = if self.kernel.is_none() { state() } else { None };
        found.files.insert(file, state);
    }

    fn is_left_out(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|folder| self.left_out.contains(&folder))
    }

    /// Notes files that have changed. Returns whether there was a report, of whatever file.
    fn note(&mut self, files: &mut BTreeSet<PathBuf>) -> bool {
        let Some(kernel) = &mut self.kernel else {
            // What cannot be looked at now can be at the next look.
            let Ok(now) = self.all() else { return false };
            let before = std::mem::replace(&mut self.found, now);
            let changed = |one: &Found, other: &Found| {
                let differs = |(file, state): &(&PathBuf, &Option<_>)| other.files.get(*file) != Some(*state);
                one.files.iter().filter(differs).map(|(file, _)| file.clone()).collect::<Vec<_>>()
            };
            let changed = [changed(&self.found, &before), changed(&before, &self.found)].concat();
            let is_any = !changed.is_empty();
            files.extend(changed);
            return is_any;
        };
        let Some(paths) = kernel.changed() else {
            // The lost reports may be of any file, and of folders that are elsewhere now.
            self.kernel = Kernel::new().ok().or_else(|| self.kernel.take());
            files.extend(self.all().unwrap_or_default().files.into_keys());
            return true;
        };
        let is_any = !paths.is_empty();
        for path in paths {
            let is_inside = self.roots.iter().any(|root| path.starts_with(root));
            if path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
                if is_inside && !is_of_others(&path) {
                    // Files may have been made in the folder before the watch began.
                    let mut found = Found::default();
                    // If this fails, changes in the folder are not seen, and all else works.
                    let _ = self.add(&path, &mut found);
                    files.extend(found.files.into_keys());
                }
            } else if self.files.contains(&path) || is_inside && is_of_application(&path) {
                files.insert(path);
            }
        }
        is_any
    }
}

/// The reports of the kernel, and which folder each of its numbers means.
struct Kernel {
    reports: OwnedFd,
    watched: HashMap<i32, PathBuf>,
}

impl Kernel {
    fn new() -> io::Result<Self> {
        let reports = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { reports, watched: HashMap::new() })
    }

    fn watch(&mut self, path: &Path) -> io::Result<()> {
        match inotify::add_watch(&self.reports, path, REPORTS) {
            // A folder of two roots keeps its first path, as the folders above it do.
            Ok(number) => _ = self.watched.entry(number).or_insert_with(|| path.to_owned()),
            Err(Errno::NOSPC) => {
                let text = "the kernel watches no further files for this user (fs.inotify.max_user_watches)";
                return Err(io::Error::new(StorageFull, text));
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The paths of the reports. `None`: reports were lost.
    fn changed(&mut self) -> Option<Vec<PathBuf>> {
        let mut changed = Vec::new();
        let mut space = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.reports, &mut space);
        while let Ok(report) = reader.next() {
            let events = report.events();
            if events.contains(ReadFlags::QUEUE_OVERFLOW) {
                return None;
            }
            let Some(watched) = self.watched.get(&report.wd()) else { continue };
            let name = report.file_name().map(|name| OsStr::from_bytes(name.to_bytes()));
            let path = name.map_or_else(|| watched.clone(), |name| watched.join(name));
            if events.contains(ReadFlags::IGNORED) {
                self.watched.remove(&report.wd());
                continue;
            }
            if events.contains(ReadFlags::MOVED_FROM | ReadFlags::ISDIR) {
                // The kernel goes on watching a folder that is elsewhere now.
                let moved = self.watched.extract_if(|_, watched| watched.starts_with(&path));
                moved.for_each(|(number, _)| _ = inotify::remove_watch(&self.reports, number));
            }
            changed.push(path);
        }
        Some(changed)
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn watch(folders: &mut Folders, ended: &UnixStream, changed: &dyn Fn(&BTreeSet<PathBuf>)) {
    let mut files = BTreeSet::new();
    let mut since: Option<Instant> = None;
    loop {
        let limit = match since {
            Some(_) => Some(QUIET),
            None => folders.kernel.is_none().then_some(POLL),
        };
        let reports = folders.kernel.as_ref().map(|kernel| kernel.reports.as_fd());
        if wait(ended, reports, limit) {
            return;
        }
        let is_any = folders.note(&mut files);
        since = since.or((!files.is_empty()).then(Instant::now));
        if since.is_some_and(|since| !is_any || since.elapsed() >= LONGEST) {
            changed(&files);
            files.clear();
            since = None;
        }
    }
}

/// Waits for a report or until the limit. Returns whether the watch has ended.
fn wait(ended: &UnixStream, reports: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> bool {
    let mut waited = vec![PollFd::new(ended, PollFlags::IN)];
    waited.extend(reports.map(|reports| PollFd::from_borrowed_fd(reports, PollFlags::IN)));
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    match poll(&mut waited, limit.as_ref()) {
        Ok(_) => waited.first().is_some_and(|ended| !ended.revents().is_empty()),
        Err(error) => error != Errno::INTR,
    }
}

fn is_of_application(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    // `.env` is a name, `.#app.py` is the lock of an editor.
    (!name.starts_with('.') || name.starts_with(".env")) && SUFFIXES.contains(&suffix)
}

/// Whether this subfolder has no files of the application.
fn is_of_others(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('.') || OTHERS.contains(&name) || folder.join("pyvenv.cfg").exists()
}

/// Whether the files are on another machine, whose changes the kernel does not report: NFS, SMB, 9P, FUSE (statfs(2)).
fn is_remote(path: &Path) -> bool {
    const REMOTE: &[i64] = &[0x6969, 0xFE53_4D42, 0xFF53_4D42, 0x0102_1997, 0x6573_5546, 0x786F_4256];
    rustix::fs::statfs(path).is_ok_and(|system| REMOTE.contains(&system.f_type))
}

/// Makes a token, with which a browser may see tracebacks.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn token() -> Result<String, Problem> {
    let mut bytes = [0; TOKEN_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    match filled {
        Ok(TOKEN_BYTES) => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        _ => Err(Problem::new("reload", "the system gives no random numbers", "see random(4)")),
    }
}

#[cfg(test)]
#[path = "development_tests.rs"]
mod tests;
