//! A log file for the user that the process is going to act as: made and given away while it still may.
//!
//! Promises: it acts as root only where that user cannot change what a path leads to. In all other folders it does nothing: the user
//! can make the file there. A link that the user has put in the place of a log would have root open, or give away, any file.

use super::Target;
use super::rotation;
use crate::rights::Identity;
use rustix::fs::{CWD, Gid, Mode, OFlags, ResolveFlags, Uid};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Others than the owner may remove nothing of a folder with this bit but what is theirs.
const STICKY: u32 = 0o1000;

impl Target {
    /// Makes the present file if there is none, and gives it to `identity` if it is root's, unless that user could interfere. What
    /// cannot be done shows when the file is opened as that user.
    pub fn give_to(&self, identity: &Identity) {
        if let Some(path) = self.file()
            && let Ok(path) = std::path::absolute(path)
            && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
            && let Some(folder) = open_closed(folder, identity)
        {
            give(&folder, name, identity);
        }
    }

    fn file(&self) -> Option<PathBuf> {
        match self {
            Self::Path(path) => Some(path.clone()),
            Self::Rotated(given, rotation) => Some(rotation::present(given, *rotation)),
            Self::Stdout | Self::Stderr | Self::Syslog(_) | Self::SyslogUdp(_) | Self::File(_) => None,
        }
    }
}

/// Makes a folder for `identity` alone, and those above it for all, if there is none and that user cannot interfere. What cannot be done shows
/// when that user needs the folder.
pub fn give_folder(path: &Path, identity: &Identity) {
    let Ok(path) = std::path::absolute(path) else { return };
    let Some(above) = path.ancestors().find(|above| fs::symlink_metadata(above).is_ok()) else { return };
    let Ok(missing) = path.strip_prefix(above) else { return };
    let Some(mut folder) = open_closed(above, identity) else { return };
    let parts: Vec<&OsStr> = missing.iter().collect();
    for (place, part) in parts.iter().enumerate() {
        let is_last = place + 1 == parts.len();
        let mode = Mode::from_raw_mode(if is_last { 0o700 } else { 0o755 });
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = rustix::fs::mkdirat(&folder, *part, mode);
        let Ok(opened) = made.and_then(|()| rustix::fs::openat(&folder, *part, flags, Mode::empty())) else {
            return;
        };
        if is_last {
            let (user, group) = (Uid::from_raw(identity.uid), Gid::from_raw(identity.gid));
            let _ = rustix::fs::fchown(&opened, Some(user), Some(group));
        }
        folder = opened;
    }
}

fn give(folder: &OwnedFd, name: &OsStr, identity: &Identity) {
    // Neither a link nor the opening of a FIFO is followed or waited for.
    let flags = OFlags::WRONLY
        | OFlags::APPEND
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o666)) else { return };
    let Ok(found) = rustix::fs::fstat(&file) else { return };
    let is_file = rustix::fs::FileType::from_raw_mode(found.st_mode).is_file();
    if !is_file || found.st_uid != 0 || found.st_nlink != 1 {
        return;
    }
    // The group of a file that was there says who reads logs.
    let group = (found.st_size == 0).then_some(Gid::from_raw(identity.gid));
    let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(identity.uid)), group);
}

/// Opens the folder if it and all above it are out of reach for `identity`, and no link leads there.
fn open_closed(folder: &Path, identity: &Identity) -> Option<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // Not before Linux 5.6: then nothing is given.
    let opened = rustix::fs::openat2(CWD, folder, flags, Mode::empty(), resolve).ok()?;
    let is_closed = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| {
            let seen = Seen {
                owner: found.uid(),
                group: found.gid(),
                mode: found.mode(),
                // What it grants is within the bits of the group.
                has_list: rustix::fs::lgetxattr_query(path, "system.posix_acl_access").is_ok(),
            };
            seen.is_closed_to(identity, path == folder)
        })
    };
    folder.ancestors().all(is_closed).then_some(opened)
}

struct Seen {
    owner: u32,
    group: u32,
    mode: u32,
    /// It has an access control list.
    has_list: bool,
}

impl Seen {
    /// Whether `identity` can exchange nothing in it; `itself`: nor make anything.
    fn is_closed_to(&self, identity: &Identity, itself: bool) -> bool {
        let in_group = self.has_list || self.group == identity.gid || identity.groups.contains(&self.group);
        let writes = self.mode & 0o002 != 0 || (self.mode & 0o020 != 0 && in_group);
        self.owner != identity.uid && (!writes || (!itself && self.mode & STICKY != 0))
    }
}

#[cfg(all(test, target_os = "linux", not(shuttle)))]
mod tests {
    use super::*;

    use std::os::unix::fs::{PermissionsExt, symlink};

    fn nobody() -> Identity {
        Identity { uid: 65_534, gid: 65_534, groups: vec![65_534, 7] }
    }

    #[test]
    fn a_folder_is_closed_to_who_cannot_exchange_what_is_in_it() {
        let closed = |owner, group, mode, itself| {
            Seen { owner, group, mode, has_list: false }.is_closed_to(&nobody(), itself)
        };
        assert!(closed(0, 0, 0o755, true) && closed(0, 0, 0o700, true) && closed(0, 0, 0o775, true));
        assert!(closed(1, 4, 0o775, false), "of somebody else, as /var/log of syslog");
        assert!(
            !closed(0, 7, 0o775, true)
                && !closed(0, 65_534, 0o770, false)
                && !closed(65_534, 0, 0o700, false)
        );
        assert!(!closed(0, 0, 0o757, false) && !closed(0, 0, 0o1777, true));
        assert!(closed(0, 0, 0o1777, false), "what is in /tmp belongs to others");
        let listed = Seen { owner: 0, group: 0, mode: 0o775, has_list: true };
        assert!(!listed.is_closed_to(&nobody(), true));
    }

    /// Only root can give files away.
    #[test]
    fn a_file_in_a_closed_folder_is_made_and_given_away_and_nothing_else_is() {
        if crate::local::user() != 0 {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let owner = |name: &str| {
            let found = fs::symlink_metadata(path(name)).ok()?;
            Some((found.uid(), found.gid()))
        };
        let give = |name: &str| Target::Path(path(name)).give_to(&nobody());
        fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
        give("new");
        assert_eq!(owner("new"), Some((65_534, 65_534)));
        fs::write(path("old"), "line\n").unwrap();
        give("old");
        assert_eq!((owner("old"), fs::read(path("old")).unwrap()), (Some((65_534, 0)), b"line\n".to_vec()));
        // What leads elsewhere.
        fs::write(path("secret"), "").unwrap();
        symlink(path("secret"), path("link")).unwrap();
        fs::write(path("one"), "").unwrap();
        fs::hard_link(path("one"), path("other")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        symlink(path("folder"), path("way")).unwrap();
        for name in ["link", "other", "way/new", "folder", "none/new"] {
            give(name);
        }
        for name in ["secret", "link", "one", "other", "folder"] {
            assert_eq!(owner(name), Some((0, 0)), "{name}");
        }
        assert_eq!((owner("folder/new"), owner("none")), (None, None));
        // A folder that the user may write to.
        fs::set_permissions(path("folder"), PermissionsExt::from_mode(0o777)).unwrap();
        give("folder/new");
        assert_eq!(owner("folder/new"), None);
    }
}
