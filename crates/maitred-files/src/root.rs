//! Opening below a folder: nothing outside it, and nothing that is not a regular file.
//!
//! Promises: no path and no symbolic link leads out of the root; a FIFO, socket or device is never
//! opened; no call waits for a peer. Symbolic links that stay inside are followed where the kernel
//! has `openat2` (Linux 5.6); they must be relative, an absolute one counts as leading out. Without
//! `openat2` (older kernels, some sandboxes) no symbolic link below the root is followed at all.
//! Leaves out: which names may be served (see `path.rs`).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2, stat};
use rustix::io::Errno;

use crate::Now;
use crate::stamp::Stamp;

/// How often an opening that met a concurrent rename is tried (openat2(2): EAGAIN).
const MAX_RENAME_RETRIES: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    File(Stamp),
    Folder,
    /// A FIFO, socket or device: never opened.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resolution {
    /// By `openat2` with `RESOLVE_BENEATH`.
    Kernel,
    /// Component by component, refusing symbolic links.
    Walk,
}

#[derive(Debug)]
pub(crate) struct Root {
    folder: OwnedFd,
    resolution: Resolution,
    identity: (u64, u64),
}

impl Root {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(path, flags, Mode::empty())?;
        let identity = identity(&fstat(&folder)?);
        // ENOSYS: an old kernel. EPERM: a seccomp filter that does not know the call.
        let resolution = match beneath(folder.as_fd(), b".", OFlags::PATH) {
            Err(Errno::NOSYS | Errno::PERM) => Resolution::Walk,
            _ => Resolution::Kernel,
        };
        Ok(Self { folder, resolution, identity })
    }

    pub(crate) fn inspect(&self, path: &[u8]) -> Result<ObjectKind, Errno> {
        let found = fstat(self.resolve(path, OFlags::PATH)?)?;
        Ok(kind(&found))
    }

    pub(crate) fn folder_stamp(&self, path: &[u8]) -> Result<Stamp, Errno> {
        Ok(Stamp::of(&fstat(self.resolve(path, OFlags::PATH | OFlags::DIRECTORY)?)?))
    }

    /// Opens the regular file at `path` for reading. The caller has inspected it; another object that took its place
    /// since then is opened without waiting (`O_NONBLOCK`) and refused as not found.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<(File, Stamp), Errno> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.resolve(path, flags)?;
        match kind(&fstat(&file)?) {
            ObjectKind::File(stamp) => Ok((File::from(file), stamp)),
            ObjectKind::Folder | ObjectKind::Other => Err(Errno::NOENT),
        }
    }

    pub(crate) fn open_folder(&self, path: &[u8]) -> Result<OwnedFd, Errno> {
        self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
    }

    fn resolve(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let below = match path.strip_prefix(b"/").unwrap_or(path) {
            b"" => b".",
            below => below,
        };
        match self.resolution {
            Resolution::Kernel => beneath(self.folder.as_fd(), below, flags),
            Resolution::Walk => walk(self.folder.as_fd(), below, flags),
        }
    }
}

fn beneath(folder: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut retries = 0;
    loop {
        match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if retries < MAX_RENAME_RETRIES => retries += 1,
            result => return result,
        }
    }
}

/// Opens `path` component by component; a symbolic link anywhere is ELOOP or ENOTDIR.
fn walk(root: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let (path, must_be_folder) = match path.strip_suffix(b"/") {
        Some(path) => (path, true),
        None => (path, false),
    };
    let mut folder: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some(slash) = rest.iter().position(|byte| *byte == b'/') {
        let (name, after) = rest.split_at(slash);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        folder = Some(step(folder.as_ref().map_or(root, AsFd::as_fd), name, flags)?);
        rest = after.strip_prefix(b"/").unwrap_or_default();
    }
    let flags = if must_be_folder { flags | OFlags::DIRECTORY } else { flags };
    step(folder.as_ref().map_or(root, AsFd::as_fd), rest, flags)
}

fn step(folder: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    // The caller checks names; this is the second lock on the same door.
    if name.is_empty() || name == b".." {
        return Err(Errno::NOENT);
    }
    let opened = openat(folder, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    // O_PATH | O_NOFOLLOW opens a symbolic link itself.
    if flags.contains(OFlags::PATH) && file_type(&fstat(&opened)?) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(opened)
}

fn file_type(stat: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn kind(stat: &rustix::fs::Stat) -> ObjectKind {
    match file_type(stat) {
        FileType::RegularFile => ObjectKind::File(Stamp::of(stat)),
        FileType::Directory => ObjectKind::Folder,
        _ => ObjectKind::Other,
    }
}

#[expect(clippy::unnecessary_cast, reason = "the fields of Stat differ in width between architectures")]
fn identity(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// The root as it is now. A root that is a symbolic link to a release folder changes when the link
/// does, so the path is looked at again at most once per `validate_after`.
#[derive(Debug)]
pub(crate) struct CurrentRoot {
    path: PathBuf,
    validate_after_ns: u64,
    current: ArcSwap<Root>,
    checked_at: AtomicU64,
}

impl CurrentRoot {
    pub(crate) fn open(path: &Path, validate_after_ns: u64) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let root = Arc::new(Root::open(&path)?);
        Ok(Self { path, validate_after_ns, current: ArcSwap::new(root), checked_at: AtomicU64::new(0) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The root to resolve against. While the path leads nowhere the last root stays in use.
    pub(crate) fn at(&self, now: Now) -> Arc<Root> {
        let checked = self.checked_at.load(Ordering::Relaxed);
        // The thread that exchanges the time looks; the others take the root that is known.
        if now.monotonic_ns.saturating_sub(checked) >= self.validate_after_ns
            && self
                .checked_at
                .compare_exchange(checked, now.monotonic_ns, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            let known = self.current.load();
            let moved = stat(&self.path).is_ok_and(|found| identity(&found) != known.identity);
            if moved && let Ok(new) = Root::open(&self.path) {
                self.current.store(Arc::new(new));
            }
        }
        self.current.load_full()
    }
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
