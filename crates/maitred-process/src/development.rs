//! `maitred dev`: watches the files of an application and reports changes, and makes the token of the page with tracebacks.
//!
//! The supervisor keeps the sockets open and starts a new worker for each change. The page itself is Python's: python/maitred/_dev.py.
//! The kernel reports changes (inotify). File systems of other machines have no such reports: their files are looked at a few times a second.
//! Left out: hidden folders, virtual environments, caches, static folders, and files with endings that applications do not load.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use maitred_config::Problem;
use notify::event::{AccessKind, AccessMode, ModifyKind};
use notify::{EventKind, PollWatcher, RecommendedWatcher, RecursiveMode, Watcher};

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

/// Endings of files that applications load: code, templates, settings.
const SUFFIXES: &[&str] = &[
    "py", "html", "jinja", "jinja2", "j2", "mako", "toml", "ini", "cfg", "yaml", "yml", "env", "sql",
    "graphql",
];

/// Folders without code of the developer.
const OTHERS: &[&str] = &["__pycache__", "node_modules", "site-packages"];

/// A thread that watches. Dropping this ends the thread.
pub(crate) struct Watch {
    sender: Sender<Event>,
    thread: Option<JoinHandle<()>>,
    /// A warning for the user about folders that are not watched.
    pub(crate) warning: Option<String>,
}

enum Event {
    Files(notify::Result<notify::Event>),
    Stop,
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
        let (sender, receiver) = mpsc::channel();
        let told = sender.clone();
        let tell = move |event| _ = told.send(Event::Files(event));
        let is_remote = paths.iter().any(|path| is_remote(path));
        let watcher: Box<dyn Watcher + Send> = if is_remote {
            let settings = notify::Config::default().with_poll_interval(POLL);
            Box::new(PollWatcher::new(tell, settings).map_err(error)?)
        } else {
            Box::new(RecommendedWatcher::new(tell, notify::Config::default()).map_err(error)?)
        };
        let left_out = left_out.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut folders = Folders { watcher, left_out, count: 0, is_full: false };
        for path in paths {
            match path.is_dir() {
                true => folders.add(path)?,
                false => folders.watcher.watch(path, RecursiveMode::NonRecursive).map_err(error)?,
            }
        }
        let warning = folders.is_full.then(|| {
            format!("only the first {MAX_FOLDERS} folders are watched: --watch FOLDER says which ones count")
        });
        let thread = thread::Builder::new().name("maitred-watch".to_owned());
        let thread = thread.spawn(move || watch(&mut folders, &receiver, &changed))?;
        Ok(Self { sender, thread: Some(thread), warning })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.sender.send(Event::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

struct Folders {
    watcher: Box<dyn Watcher + Send>,
    left_out: BTreeSet<PathBuf>,
    count: usize,
    is_full: bool,
}

impl Folders {
    /// Watches this folder and its subfolders.
    fn add(&mut self, folder: &Path) -> io::Result<()> {
        if self.is_full || self.is_left_out(folder) {
            return Ok(());
        }
        if self.count == MAX_FOLDERS {
            self.is_full = true;
            return Ok(());
        }
        self.watcher.watch(folder, RecursiveMode::NonRecursive).map_err(error)?;
        self.count += 1;
        // A folder that is gone meanwhile needs no watch.
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            // A link is left out: it may lead to a folder above it.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_of_others(&entry.path()) {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }

    fn is_left_out(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|folder| self.left_out.contains(&folder))
    }
}

fn watch(folders: &mut Folders, events: &Receiver<Event>, changed: &dyn Fn(&BTreeSet<PathBuf>)) {
    let mut files = BTreeSet::new();
    let mut since = None;
    loop {
        let event = match since {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => events.recv_timeout(QUIET),
        };
        match event {
            Ok(Event::Files(Ok(event))) => {
                let before = files.len();
                note(folders, event, &mut files);
                since = since.or((files.len() > before).then(Instant::now));
                if since.is_none_or(|since| since.elapsed() < LONGEST) {
                    continue;
                }
            }
            // Events were lost: changed files are loaded with the next event.
            Ok(Event::Files(Err(_))) => continue,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => return,
        }
        changed(&files);
        files.clear();
        since = None;
    }
}

/// Handles a report of the kernel: notes files that count, and watches new folders.
fn note(folders: &mut Folders, event: notify::Event, files: &mut BTreeSet<PathBuf>) {
    let counts = match event.kind {
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Any => true,
        EventKind::Modify(kind) => !matches!(kind, ModifyKind::Metadata(_)),
        // The end of a write, or of `touch`.
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) | EventKind::Other => false,
    };
    if !counts {
        return;
    }
    for path in event.paths {
        if path.is_dir() {
            if !is_of_others(&path) {
                // If this fails, changes in the folder are not seen, and all else works.
                let _ = folders.add(&path);
                // Files may have been made in the folder before the watch began.
                let inside = path.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
                files.extend(inside.filter(|file| is_of_application(file)));
            }
        } else if is_of_application(&path) {
            files.insert(path);
        }
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

fn error(error: notify::Error) -> io::Error {
    match error.kind {
        notify::ErrorKind::Io(error) => error,
        notify::ErrorKind::MaxFilesWatch => io::Error::other(
            "the kernel watches no further files for this user (fs.inotify.max_user_watches)",
        ),
        other => io::Error::other(format!("{other:?}")),
    }
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
mod tests {
    use std::fs;

    use super::*;

    /// Longest wait, enough for a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn files_of_the_application_are_told_of_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["shop", ".venv/lib", "env/lib", "public", "shop/__pycache__"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("env/pyvenv.cfg"), "").unwrap();
        fs::write(at("shop/views.py"), "a").unwrap();
        let (sender, told) = mpsc::channel();
        let watch = Watch::start(&[folder.path().to_owned()], &[at("public")], move |files| {
            _ = sender.send(files.clone());
        })
        .unwrap();
        let next = || {
            let files = told.recv_timeout(PATIENCE).unwrap();
            let names =
                files.iter().map(|file| file.strip_prefix(folder.path()).unwrap().display().to_string());
            names.collect::<Vec<_>>().join(" ")
        };
        for name in [
            ".venv/lib/a.py",
            "env/lib/a.py",
            "public/a.html",
            "shop/__pycache__/a.py",
            "data.sqlite3",
            ".#b.py",
        ] {
            fs::write(at(name), "x").unwrap();
        }
        fs::write(at("shop/views.py"), "b").unwrap();
        assert_eq!(next(), "shop/views.py");
        // Many editors write a new file and rename it to the old name.
        fs::write(at("shop/views.py~"), "c").unwrap();
        fs::rename(at("shop/views.py~"), at("shop/views.py")).unwrap();
        assert_eq!(next(), "shop/views.py");
        // A new folder is watched from then on.
        fs::create_dir(at("blog")).unwrap();
        fs::write(at("blog/urls.py"), "x").unwrap();
        assert_eq!(next(), "blog/urls.py");
        fs::remove_file(at("blog/urls.py")).unwrap();
        assert_eq!(next(), "blog/urls.py");
        fs::write(at(".env"), "A=1").unwrap();
        assert_eq!(next(), ".env");
        drop(watch);
        assert!(told.try_recv().is_err());
    }
}
