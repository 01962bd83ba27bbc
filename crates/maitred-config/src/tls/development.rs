//! The certificate for development (`--tls`): made once, and kept in a file that only this user reads, so that a browser asks once.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use maitred_control::local;
use maitred_server::tls::{Identity, Pem, system_clock};

use crate::Problem;

/// The file in the folder of the user's cache.
const FILE: &str = "maitred/development.pem";

/// Least time left of a kept certificate; an older one is replaced, so that a browser does not ask in the middle of a day's work.
const LEAST_LEFT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Names in every certificate for development.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Finds or makes the certificate. Returns its place, for people, and the certificate with its key in PEM.
///
/// # Errors
/// No certificate can be made.
pub(super) fn find(place: &str) -> Result<(String, Vec<u8>), Problem> {
    let names = names(rustix::system::uname().nodename().to_str().unwrap_or_default());
    let make = || {
        Identity::development(&names, system_clock).map_err(|error| {
            let what = format!("no certificate for development can be made: {error}");
            Problem::new(place, what, "give one with --tls-cert and --tls-key")
        })
    };
    let Some(path) = path(std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from), std::env::home_dir()) else {
        let (_, pem) = make()?;
        return Ok(("in memory, as this user has no folder".to_owned(), together(&pem)));
    };
    if let Some(pem) = kept(&path, &names) {
        return Ok((path.display().to_string(), pem));
    }
    let (_, pem) = make()?;
    let pem = together(&pem);
    Ok(match keep(&path, &pem) {
        Ok(()) => (path.display().to_string(), pem),
        Err(error) => (format!("in memory, as {} cannot be written: {error}", path.display()), pem),
    })
}

/// A self-signed certificate with its key for one name: the known one while it is valid for [`LEAST_LEFT`]. None if the system refuses.
pub(super) fn for_name(name: &str, known: Option<&[u8]>) -> Option<Vec<u8>> {
    let lasts = |pem: &&[u8]| Identity::from_pem(pem, pem).is_ok_and(|identity| lasts(&identity));
    let made = || Identity::development(&[name.to_owned()], system_clock).ok().map(|(_, pem)| together(&pem));
    known.filter(lasts).map(<[u8]>::to_vec).or_else(made)
}

pub(super) fn is_self_signed(pem: &[u8]) -> bool {
    Identity::from_pem(pem, pem).is_ok_and(|identity| identity.info().certificate.is_self_signed)
}

fn lasts(identity: &Identity) -> bool {
    identity.info().certificate.not_after.saturating_sub(system_clock()) > LEAST_LEFT.as_secs()
}

/// `$XDG_CACHE_HOME`, or `.cache` of the home folder (XDG Base Directory Specification).
fn path(cache: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    let cache = cache.filter(|folder| folder.is_absolute());
    let home = || home.filter(|folder| folder.is_absolute()).map(|home| home.join(".cache"));
    cache.or_else(home).map(|folder| folder.join(FILE))
}

fn names(machine: &str) -> Vec<String> {
    let machine = Some(machine).filter(|name| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
        !name.is_empty() && name.bytes().all(plain) && !NAMES.contains(name)
    });
    NAMES.into_iter().chain(machine).map(ToOwned::to_owned).collect()
}

/// The kept certificate, if no other user can read the file, the certificate has these names, and it is valid for [`LEAST_LEFT`].
fn kept(path: &Path, names: &[String]) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    let is_own = found.is_file() && found.uid() == local::user() && found.mode() & 0o077 == 0;
    let pem = fs::read(path).ok().filter(|_| is_own)?;
    let identity = Identity::from_pem(&pem, &pem).ok()?;
    let is_for_all = names.iter().all(|name| identity.info().names.contains(name));
    (is_for_all && lasts(&identity)).then_some(pem)
}

/// Certificate and key in one text.
fn together(Pem { certificate, key }: &Pem) -> Vec<u8> {
    format!("{certificate}{key}").into_bytes()
}

/// Replaces the file in one step (rename(2)): a reader sees the old one or the new one.
fn keep(path: &Path, pem: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let own = path.with_extension(format!("{}.tmp", std::process::id()));
    // An earlier process with this number may have left the file.
    let _ = fs::remove_file(&own);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&own)?;
    file.write_all(pem)?;
    file.sync_all()?;
    fs::rename(&own, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    #[test]
    fn it_is_kept_in_the_cache_folder_of_the_user() {
        let path = |cache: Option<&str>, home: Option<&str>| {
            path(cache.map(PathBuf::from), home.map(PathBuf::from)).map(|path| path.display().to_string())
        };
        assert_eq!(path(Some("/c"), Some("/h")).as_deref(), Some("/c/maitred/development.pem"));
        assert_eq!(path(Some("c"), Some("/h")).as_deref(), Some("/h/.cache/maitred/development.pem"));
        assert_eq!(path(None, Some("")), None);
    }

    #[test]
    fn one_that_is_kept_is_found_again_by_its_owner_alone() {
        let folder = TempDir::new().expect("a folder");
        let path = folder.path().join("x/maitred/development.pem");
        let names = names("box");
        assert_eq!(names, ["localhost", "127.0.0.1", "::1", "box"]);
        assert_eq!(kept(&path, &names), None);
        let (_, pem) = Identity::development(&names, system_clock).expect("made");
        let pem = together(&pem);
        keep(&path, &pem).expect("kept");
        assert_eq!(kept(&path, &names).as_ref(), Some(&pem));
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        let more = [names.clone(), vec!["other".to_owned()]].concat();
        assert_eq!(kept(&path, &more), None, "it is not for that name");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("changed");
        assert_eq!(kept(&path, &names), None, "others may have it");
        keep(&path, b"no certificate").expect("kept");
        assert_eq!(kept(&path, &names), None);
    }

    #[test]
    fn a_name_that_is_none_is_left_out() {
        for machine in ["", "a b", "localhost", "ümlaut"] {
            assert_eq!(names(machine), NAMES, "{machine}");
        }
    }
}
