//! Unix stream sockets that listen: a file with the wanted permissions, or a name in the kernel.
//!
//! Promises: the file appears at its path when the socket listens and has its permissions and its owner, not before;
//! the file of a dead server is replaced in the same step, so that of several servers which begin at once one gets the
//! path; the file of a live server, and one that is no socket, are never touched. It waits for another server at most a
//! second.
//!
//! How: the socket is bound to another name in the same folder, dressed there, and moved (rename(2)). So that is the name which
//! lists of sockets have (ss(8)), and a peer that asks: the path, a dot and the process.
//!
//! Leaves out: making folders, and taking sockets from a service manager.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;
use rustix::net::SocketAddrUnix;

use super::address::MODE;
use super::{BindError, SocketOptions, UnixAddress, UnixName};
use crate::local;

/// Bytes of a path or a name. Linux takes one more of a path, which not every client can write.
const LONGEST: usize = 107;

/// Bytes of the file's name that the name before the move has.
pub(super) const NAME_PART: usize = 48;

/// Times that something else may be in the way.
const ATTEMPTS: u32 = 100;

/// How long another server may hold the folder, which takes it microseconds.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

type FileId = (u64, u64);

#[derive(Debug)]
pub(super) struct OwnFile {
    path: PathBuf,
    id: FileId,
}

impl OwnFile {
    pub(super) fn at(path: &Path) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        Some(Self { id: id_at(&path)?, path })
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        match id_at(&self.path) {
            Some(id) if id == self.id => fs::remove_file(&self.path),
            _ => Ok(()),
        }
    }
}

pub(super) fn bind(
    address: &UnixAddress,
    options: &SocketOptions,
) -> Result<(OwnedFd, Option<OwnFile>), BindError> {
    let place = Place { address };
    check_options(address, options)?;
    let owners = [("owner", address.owner), ("group", address.group)];
    if let Some((name, _)) = owners.iter().find(|(_, id)| *id == Some(u32::MAX)) {
        return Err(BindError::invalid(
            format!("{address}: {} is no {name}", u32::MAX),
            "take another number",
        ));
    }
    if let Some(mode) = address.mode.filter(|mode| *mode > 0o777) {
        return Err(BindError::invalid(
            format!("{address}: {mode:#o} are no permissions"),
            "take three octal digits, for example 660",
        ));
    }
    match &address.name {
        UnixName::Path(path) => place.bind_path(path, options).map(|(socket, file)| (socket, Some(file))),
        UnixName::Abstract(name) => place.bind_abstract(name, options).map(|socket| (socket, None)),
    }
}

pub(super) fn check_options(address: &UnixAddress, options: &SocketOptions) -> Result<(), BindError> {
    match options.of_tcp() {
        None => Ok(()),
        Some(option) => Err(BindError::invalid(
            format!("{address} cannot have {option}, which is an option of TCP"),
            "leave it out for Unix sockets",
        )),
    }
}

enum Found {
    Nothing,
    /// The socket of a dead server.
    Left,
}

struct Place<'a> {
    address: &'a UnixAddress,
}

impl Place<'_> {
    fn bind_abstract(&self, name: &[u8], options: &SocketOptions) -> Result<OwnedFd, BindError> {
        let UnixAddress { mode, owner, group, .. } = self.address;
        if mode.or(*owner).or(*group).is_some() {
            return Err(BindError::invalid(
                format!("{} has no file, so it cannot have a mode, an owner or a group", self.address),
                "leave them out, or take a path",
            ));
        }
        self.check_length("name", name.len())?;
        let address = SocketAddrUnix::new_abstract_name(name)
            .map_err(|error| self.system("listen on", error, "take another name"))?;
        let socket = local::stream().map_err(|error| self.no_socket(error))?;
        match rustix::net::bind(&socket, &address) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Err(self.in_use(local::knock(&address).ok(), "name")),
            Err(error) => return Err(self.system("listen on", error, "take another name")),
        }
        self.listen(&socket, options)?;
        Ok(socket)
    }

    fn bind_path(&self, path: &Path, options: &SocketOptions) -> Result<(OwnedFd, OwnFile), BindError> {
        self.check_length("path", path.as_os_str().len())?;
        let Some(name) = path.file_name().filter(|_| !path.as_os_str().as_bytes().ends_with(b"/")) else {
            return Err(BindError::invalid(
                format!("{} names no file", self.address),
                "take the path of a file in a folder that exists",
            ));
        };
        let wanted = SocketAddrUnix::new(path)
            .map_err(|error| self.system("listen on", error, "take a path without zero bytes"))?;
        // The working directory may change before the end.
        let path = std::path::absolute(path)
            .map_err(|error| self.system("listen on", error, "take a path that begins with /"))?;
        // Most errors are reported before anything is made.
        self.look(&path, &wanted)?;
        let socket = local::stream().map_err(|error| self.no_socket(error))?;
        let mode = Mode::from_raw_mode(self.address.mode.unwrap_or(MODE));
        // Linux gives the file the mode of the socket, less the umask (net/unix/af_unix.c, unix_bind).
        rustix::fs::fchmod(&socket, mode).map_err(|error| self.no_socket(error))?;
        let temporary = self.bind_beside(&socket, &path, name)?;
        let id = self.dress(&temporary.path, mode)?;
        self.listen(&socket, options)?;
        self.place(&temporary.path, &path, &wanted)?;
        temporary.moved();
        Ok((socket, OwnFile { path, id }))
    }

    fn bind_beside(&self, socket: &OwnedFd, path: &Path, name: &OsStr) -> Result<Temporary, BindError> {
        let folder_path = path.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(CWD, folder_path, flags, Mode::empty())
            .map_err(|error| self.no_file(error, folder_path))?;
        let name = &name.as_bytes()[..name.len().min(NAME_PART)];
        for attempt in 0..ATTEMPTS {
            let mut beside = name.to_vec();
            beside.extend_from_slice(format!(".{}", std::process::id()).as_bytes());
            if attempt > 0 {
                beside.extend_from_slice(format!(".{attempt}").as_bytes());
            }
            let beside = OsString::from_vec(beside);
            let whole = folder_path.join(&beside);
            // It may be longer than the path, and then has a shorter name by the folder's descriptor.
            let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(&beside);
            let bound = if whole.as_os_str().len() <= LONGEST { &whole } else { &short };
            match SocketAddrUnix::new(bound.as_path()).and_then(|address| rustix::net::bind(socket, &address))
            {
                Ok(()) => return Ok(Temporary { path: whole }),
                Err(Errno::ADDRINUSE) => {}
                Err(error) => return Err(self.no_file(error, folder_path)),
            }
        }
        Err(self.system(
            "listen on",
            Errno::ADDRINUSE,
            &format!("remove the files {}.{}*", self.path_text(), std::process::id()),
        ))
    }

    /// Gives the file at `path` its permissions and its owner. No client can connect yet: it does not listen.
    fn dress(&self, path: &Path, mode: Mode) -> Result<FileId, BindError> {
        let UnixAddress { owner, group, .. } = *self.address;
        // Other users that may write to the folder could put a link there, so it is held.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let trouble = |error: Errno| {
            self.system("set the permissions of", error, "see that nobody else changes its folder")
        };
        let file = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(trouble)?;
        let found = rustix::fs::fstat(&file).map_err(trouble)?;
        // A socket with two names belongs to another user.
        if !rustix::fs::FileType::from_raw_mode(found.st_mode).is_socket() || found.st_nlink != 1 {
            return Err(trouble(Errno::NOTSOCK));
        }
        if Mode::from_raw_mode(found.st_mode) != mode {
            // No call takes the descriptor itself before Linux 6.6 (fchmodat2).
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            rustix::fs::chmod(path, mode).map_err(|error| {
                self.system(
                    "set the permissions of",
                    error,
                    "see that /proc is mounted, or take another umask",
                )
            })?;
        }
        if owner.is_some() || group.is_some() {
            let (user, group_id) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
            rustix::fs::chownat(&file, "", user, group_id, AtFlags::EMPTY_PATH).map_err(|error| {
                self.system(
                    "give away the file of",
                    error,
                    "start as root, or ask for the own user and for a group of it",
                )
            })?;
        }
        Ok((found.st_dev as u64, found.st_ino as u64))
    }

    fn listen(&self, socket: impl AsFd, options: &SocketOptions) -> Result<(), BindError> {
        rustix::net::listen(socket, options.queue()).map_err(|error| self.no_socket(error))
    }

    fn place(&self, temporary: &Path, path: &Path, wanted: &SocketAddrUnix) -> Result<(), BindError> {
        let folder = path.parent().unwrap_or(path);
        // Between the look and the move no other server of ours takes the path.
        let _lock = lock(folder);
        for _ in 0..ATTEMPTS {
            let moved = match self.look(path, wanted)? {
                Found::Left => rustix::fs::rename(temporary, path),
                Found::Nothing => {
                    match rustix::fs::renameat_with(CWD, temporary, CWD, path, RenameFlags::NOREPLACE) {
                        Err(Errno::EXIST) => continue,
                        // A file system without this flag.
                        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                            rustix::fs::rename(temporary, path)
                        }
                        moved => moved,
                    }
                }
            };
            return moved.map_err(|error| self.no_file(error, folder));
        }
        Err(self.system("listen on", Errno::BUSY, "see who else makes and removes that file"))
    }

    fn look(&self, path: &Path, wanted: &SocketAddrUnix) -> Result<Found, BindError> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(self.no_file(error, path.parent().unwrap_or(path))),
        };
        let kind = found.file_type();
        if !kind.is_socket() {
            let what = match () {
                () if kind.is_symlink() => "a symbolic link",
                () if kind.is_dir() => "a folder",
                () if kind.is_file() => "a regular file",
                () => "a pipe or a device",
            };
            return Err(BindError::new(
                ErrorKind::AlreadyExists,
                format!("{} cannot be used: there is {what}, and no socket", self.address),
                "take another path, or move it away if nobody needs it",
            ));
        }
        match local::knock(wanted) {
            Ok(connected) => Err(self.in_use(Some(connected), "path")),
            Err(Errno::CONNREFUSED) => Ok(Found::Left),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            // Its queue is full, or it is a socket of another sort.
            Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(self.in_use(None, "path")),
            Err(error) => Err(self.system(
                "see who listens on",
                error,
                "take another path, or remove the file if nobody needs it",
            )),
        }
    }

    // ---- Texts ----

    /// `connected` leads to the process that listens there.
    fn in_use(&self, connected: Option<OwnedFd>, name: &str) -> BindError {
        let holder = connected.and_then(|socket| local::credentials(socket).ok());
        let holder = holder_text(holder.map_or(0, |found| found.pid));
        BindError::new(
            ErrorKind::AddrInUse,
            format!("{} is in use by {holder}", self.address),
            format!("stop it, or take another {name}"),
        )
    }

    fn check_length(&self, name: &str, bytes: usize) -> Result<(), BindError> {
        if (1..=LONGEST).contains(&bytes) {
            return Ok(());
        }
        Err(BindError::invalid(
            format!("{}: a {name} of {bytes} bytes; that of a Unix socket has 1 to {LONGEST}", self.address),
            format!("take a {}er {name}", if bytes == 0 { "long" } else { "short" }),
        ))
    }

    fn no_socket(&self, error: impl Into<io::Error>) -> BindError {
        self.system("listen on", error, "see what limits this process")
    }

    /// No file can be made in `folder`.
    fn no_file(&self, error: impl Into<io::Error>, folder: &Path) -> BindError {
        let error = error.into();
        let folder = folder.display();
        let remedy = match error.kind() {
            ErrorKind::NotFound => format!("make the folder {folder}"),
            ErrorKind::NotADirectory => format!("see what {folder} is: it has to be a folder"),
            ErrorKind::PermissionDenied => {
                format!("let this user write to the folder {folder}, or take another one")
            }
            ErrorKind::ReadOnlyFilesystem => format!("take another folder than {folder}"),
            _ => format!("see what the folder {folder} is, or take another one"),
        };
        self.system("listen on", error, &remedy)
    }

    fn system(&self, doing: &str, error: impl Into<io::Error>, remedy: &str) -> BindError {
        let error = error.into();
        BindError::new(error.kind(), format!("cannot {doing} {} ({error})", self.address), remedy)
    }

    fn path_text(&self) -> String {
        match &self.address.name {
            UnixName::Path(path) => path.display().to_string(),
            UnixName::Abstract(_) => String::new(),
        }
    }
}

/// A process; 0 is one that is not known.
fn holder_text(pid: i32) -> String {
    if pid <= 0 {
        return "another process".to_owned();
    }
    if u32::try_from(pid) == Ok(std::process::id()) {
        return format!("this process itself ({pid})");
    }
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(command) => format!("process {pid} ({})", command.trim_end()),
        Err(_) => format!("process {pid}"),
    }
}

struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// The file has its final name: a new file with the old name is not ours.
    fn moved(mut self) {
        self.path.clear();
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // A remaining file is an empty socket, and the next server takes another name.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Holds a folder against other servers that begin to listen (flock(2)), until it is dropped. None where that cannot be
/// had in time: any user that may read the folder can hold it, and must not keep us from listening.
fn lock(folder: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, folder, flags, Mode::empty()).ok()?;
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Some(folder),
            Err(Errno::WOULDBLOCK | Errno::INTR) if begun.elapsed() < LOCK_PATIENCE => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(_) => return None,
        }
    }
}

fn id_at(path: &Path) -> Option<FileId> {
    fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
