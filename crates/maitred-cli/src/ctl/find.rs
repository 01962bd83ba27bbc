//! Where the sockets of this user's servers are; for root, those of other users', too.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use maitred_control::local;

/// What the names of sockets begin and end with; between them is the number of the process.
const PREFIX: &str = "maitred-";
const SUFFIX: &str = ".sock";

/// Where a user without a folder has one of ours, and what its name begins with; the number of the user follows.
const SHARED: &str = "/tmp";
const OWN: &str = "maitred-";

/// Why there is no folder for a socket.
#[derive(Debug)]
pub(crate) enum NoSocket {
    /// The system makes none: a container may have nothing to write to.
    NotMade(String),
    /// Others may write there, or it is somebody else's, who may be waiting for questions.
    Unsafe(String),
}

/// The socket of this process, in a folder that is there and is this user's alone. Sockets that servers have left there
/// are removed.
///
/// # Errors
/// There is no such folder: why.
pub(crate) fn own_socket() -> Result<PathBuf, NoSocket> {
    let folder = folder();
    make(&folder)?;
    for (path, pid) in sockets(&folder) {
        // In another container its process may be there, so it is asked, too.
        if !Path::new(&format!("/proc/{pid}")).exists() && !local::is_live(&path) {
            // Somebody else may have removed it.
            let _ = fs::remove_file(path);
        }
    }
    Ok(folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id())))
}

/// The sockets of this user's running servers, with the numbers of their processes, in their order; and their folder.
pub(super) fn live() -> (PathBuf, Vec<(PathBuf, u32)>) {
    let folder = folder();
    let mut live = sockets(&folder);
    live.retain(|(path, _)| local::is_live(path));
    live.sort_by_key(|(_, pid)| *pid);
    (folder, live)
}

/// The same of all other users, for root: a server that root has started may be another user by now.
pub(super) fn live_of_others() -> Vec<(PathBuf, u32)> {
    if local::user() != 0 {
        return Vec::new();
    }
    let mut live: Vec<_> = folders_of_others().flat_map(|folder| sockets(&folder)).collect();
    live.retain(|(path, _)| local::is_live(path));
    live.sort_by_key(|(_, pid)| *pid);
    live
}

/// `$XDG_RUNTIME_DIR`, which is this user's alone, or a folder of our own that is made so. The variable may be that of the user who was root
/// before.
fn folder() -> PathBuf {
    let is_own = |folder: &PathBuf| fs::metadata(folder).is_ok_and(|found| found.uid() == local::user());
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.is_dir() && is_own(&folder) => folder,
        _ => PathBuf::from(format!("{SHARED}/{OWN}{}", local::user())),
    }
}

/// Folders in which servers of other users have their sockets, if each is its user's alone.
fn folders_of_others() -> impl Iterator<Item = PathBuf> {
    let own = folder();
    [(SHARED, OWN), ("/run/user", "")]
        .into_iter()
        .flat_map(|(place, prefix)| {
            let entries = fs::read_dir(place).into_iter().flatten().flatten();
            entries.filter_map(move |entry| {
                let user: u32 = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
                let found = entry.metadata().ok()?;
                let is_its = found.is_dir() && found.uid() == user && found.permissions().mode() & 0o077 == 0;
                is_its.then(|| entry.path())
            })
        })
        .filter(move |folder| *folder != own)
}

/// Makes the folder if it is not there, and looks whose it is: in /tmp anybody could have made it.
fn make(folder: &Path) -> Result<(), NoSocket> {
    let shown = folder.display();
    // It may be there.
    let made = DirBuilder::new().mode(0o700).create(folder);
    let found = fs::symlink_metadata(folder).map_err(|error| {
        let error = made.err().unwrap_or(error);
        NoSocket::NotMade(format!("the folder {shown} cannot be made: {error}"))
    })?;
    if !found.is_dir() || found.uid() != local::user() || found.permissions().mode() & 0o077 != 0 {
        return Err(NoSocket::Unsafe(format!("{shown} is no folder of this user alone (mode 0700)")));
    }
    Ok(())
}

/// The sockets in a folder, with the numbers of their processes.
fn sockets(folder: &Path) -> Vec<(PathBuf, u32)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let number = |name: &str| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok();
    // A link could lead to a socket of somebody else.
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    entries.filter_map(|entry| Some((entry.path(), number(entry.file_name().to_str()?)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_somebody_else_or_open_to_others_is_not_used() {
        let folder = tempfile::tempdir().expect("a folder");
        let own = folder.path().join("own");
        make(&own).expect("made");
        make(&own).expect("found");
        assert_eq!(fs::metadata(&own).expect("a folder").permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&own, PermissionsExt::from_mode(0o755)).expect("changed");
        assert!(matches!(make(&own), Err(NoSocket::Unsafe(why)) if why.contains("of this user alone")));
        let link = folder.path().join("link");
        fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).expect("changed");
        std::os::unix::fs::symlink(&own, &link).expect("a link");
        assert!(make(&link).is_err());
        let made = make(Path::new("/proc/none/such"));
        assert!(matches!(made, Err(NoSocket::NotMade(why)) if why.contains("cannot be made")));
    }

    #[test]
    fn sockets_are_known_by_their_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let bind = |name: &str| std::os::unix::net::UnixListener::bind(folder.path().join(name)).expect(name);
        let _bound = ["maitred-7.sock", "maitred-x.sock", "maitred-8.sock.bak", "other"].map(bind);
        fs::write(folder.path().join("maitred-5.sock"), "").expect("a file");
        std::os::unix::fs::symlink("maitred-7.sock", folder.path().join("maitred-6.sock")).expect("a link");
        assert_eq!(sockets(folder.path()), [(folder.path().join("maitred-7.sock"), 7)]);
    }
}
