//! The sockets of this user's servers; for root, also those of other users.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use maitred_io::local;

/// Beginning and end of the names of sockets; between them is the number of the process.
const PREFIX: &str = "maitred-";
const SUFFIX: &str = ".sock";

/// The place and the prefix of the folder of a user without `$XDG_RUNTIME_DIR`; the number of the user follows.
const SHARED: &str = "/tmp";
const OWN: &str = "maitred-";

/// The reason why there is no folder for a socket.
#[derive(Debug)]
pub enum NoSocket {
    /// The folder cannot be made: a container may have no file system to write to.
    NotMade(String),
    /// Other users may write to the folder, or it belongs to another user, who may answer questions in the server's place.
    Unsafe(String),
}

/// The path for the socket of this process, in a folder that only this user may use. Sockets of ended servers in that folder are
/// removed.
///
/// # Errors
/// There is no such folder.
pub fn own_socket() -> Result<PathBuf, NoSocket> {
    let folder = folder();
    make(&folder)?;
    for (path, pid) in sockets(&folder) {
        // The process may run in another container, so the socket is tried, too.
        if !Path::new(&format!("/proc/{pid}")).exists() && !local::is_live(&path) {
            // Another server may have removed the socket.
            let _ = fs::remove_file(path);
        }
    }
    Ok(folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id())))
}

/// The folder of this user's sockets, and the sockets of running servers with the numbers of their processes, in that order.
pub fn live() -> (PathBuf, Vec<(PathBuf, u32)>) {
    let folder = folder();
    let mut live = sockets(&folder);
    live.retain(|(path, _)| local::is_live(path));
    live.sort_by_key(|(_, pid)| *pid);
    (folder, live)
}

/// The sockets of running servers of all other users, for root: a server that root has started may have become another user.
pub fn live_of_others() -> Vec<(PathBuf, u32)> {
    if local::user() != 0 {
        return Vec::new();
    }
    let mut live: Vec<_> = folders_of_others().flat_map(|folder| sockets(&folder)).collect();
    live.retain(|(path, _)| local::is_live(path));
    live.sort_by_key(|(_, pid)| *pid);
    live
}

/// `$XDG_RUNTIME_DIR`, if it belongs to this user, or a folder in /tmp. The process may have become another user, while the variable is
/// still root's.
fn folder() -> PathBuf {
    let is_own = |folder: &PathBuf| fs::metadata(folder).is_ok_and(|found| found.uid() == local::user());
    match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
        Some(folder) if folder.is_absolute() && folder.is_dir() && is_own(&folder) => folder,
        _ => PathBuf::from(format!("{SHARED}/{OWN}{}", local::user())),
    }
}

/// Folders of sockets of other users, if only their user may use them.
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

/// Makes the folder if it is not there, and checks its owner and mode: in /tmp another user could have made it.
fn make(folder: &Path) -> Result<(), NoSocket> {
    let shown = folder.display();
    // A failure counts below, if the folder is not there already.
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
    // A link could lead to a socket of another user.
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_socket()));
    entries.filter_map(|entry| Some((entry.path(), number(entry.file_name().to_str()?)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_another_user_or_open_to_others_is_not_used() {
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
