//! Users and groups by name and by number, as this machine's name service has them (nsswitch.conf(5)): from files, a
//! directory or another source.
//!
//! Promises: a lookup that fails is not taken for an unknown name. A directory may take its time: not for threads that
//! serve.

use std::ffi::{CStr, CString, OsStr};
use std::fs;
use std::io::{self, ErrorKind};
use std::mem::MaybeUninit;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// The room a lookup gets first, and at most: a group may have many members.
const ROOM: usize = 1024;
const MAX_ROOM: usize = 16 << 20;

/// Groups of one user, at most (NGROUPS_MAX of Linux).
const MAX_GROUPS: usize = 65_536;

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The number of the group that the user begins with.
    pub gid: u32,
    /// The home folder.
    pub home: PathBuf,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The number.
    pub gid: u32,
}

/// The user with this name; none if there is none.
pub fn user_named(name: &str) -> io::Result<Option<User>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: the name ends with a zero byte and outlives the call; `find` describes the other arguments.
    find(
        |entry, room, length, found| unsafe { libc::getpwnam_r(name.as_ptr(), entry, room, length, found) },
        user,
    )
}

/// The user with this number; none if there is none.
pub fn user_numbered(uid: u32) -> io::Result<Option<User>> {
    // SAFETY: `find` describes the arguments.
    find(|entry, room, length, found| unsafe { libc::getpwuid_r(uid, entry, room, length, found) }, user)
}

/// The group with this name; none if there is none.
pub fn group_named(name: &str) -> io::Result<Option<Group>> {
    let Ok(name) = CString::new(name) else { return Ok(None) };
    // SAFETY: the name ends with a zero byte and outlives the call; `find` describes the other arguments.
    find(
        |entry, room, length, found| unsafe { libc::getgrnam_r(name.as_ptr(), entry, room, length, found) },
        group,
    )
}

/// The group with this number; none if there is none.
pub fn group_numbered(gid: u32) -> io::Result<Option<Group>> {
    // SAFETY: `find` describes the arguments.
    find(|entry, room, length, found| unsafe { libc::getgrgid_r(gid, entry, room, length, found) }, group)
}

/// All groups of the user with this name, `gid` among them, in the order of their numbers (getgrouplist(3)).
///
/// # Errors
/// The user is in more groups than the system allows.
pub fn groups_of(name: &str, gid: u32) -> io::Result<Vec<u32>> {
    let name = CString::new(name).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut count = libc::c_int::try_from(groups.len()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the name ends with a zero byte; there is room for `count` numbers, of which the call says how many it needs.
        let done = unsafe { libc::getgrouplist(name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        let needed = usize::try_from(count).unwrap_or(0);
        if done >= 0 {
            groups.truncate(needed);
            groups.sort_unstable();
            groups.dedup();
            return Ok(groups);
        }
        if groups.len() >= MAX_GROUPS {
            return Err(io::Error::other("the user is in too many groups"));
        }
        // musl does not say how many it needs.
        groups.resize(needed.max(groups.len() * 2).min(MAX_GROUPS), 0);
    }
}

/// The names of the users in the machine's own file, for suggestions; a directory has others.
pub fn local_users() -> Vec<String> {
    first_fields("/etc/passwd")
}

/// The names of groups in the files of this machine.
pub fn local_groups() -> Vec<String> {
    first_fields("/etc/group")
}

fn first_fields(path: &str) -> Vec<String> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let names = text.lines().filter_map(|line| line.split(':').next());
    names
        .filter(|name| !name.is_empty() && !name.starts_with(['#', '+', '-']))
        .map(ToOwned::to_owned)
        .collect()
}

/// Calls a lookup with more and more room. It gets a place for the entry, room for its texts with the length of it, and a place for
/// a pointer to the entry, all of which it may write to.
fn find<E, T>(
    mut look: impl FnMut(*mut E, *mut c_char, usize, *mut *mut E) -> libc::c_int,
    read: fn(&E) -> T,
) -> io::Result<Option<T>> {
    let mut room: Vec<c_char> = vec![0; ROOM];
    loop {
        let mut entry = MaybeUninit::<E>::uninit();
        let mut found = ptr::null_mut();
        match look(entry.as_mut_ptr(), room.as_mut_ptr(), room.len(), &raw mut found) {
            0 if found.is_null() => return Ok(None),
            // SAFETY: the call has succeeded and found something, so it has filled the entry, whose texts are in `room`.
            0 => return Ok(Some(read(unsafe { entry.assume_init_ref() }))),
            libc::ERANGE if room.len() < MAX_ROOM => room.resize(room.len() * 4, 0),
            libc::EINTR => {}
            // Some sources return these for an unknown name (getpwnam(3)).
            libc::ENOENT | libc::ESRCH => return Ok(None),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

fn user(entry: &libc::passwd) -> User {
    // SAFETY: the texts of an entry end with a zero byte, and are there while the entry is borrowed.
    let (name, home) = unsafe { (text(entry.pw_name), text(entry.pw_dir)) };
    let home = PathBuf::from(OsStr::from_bytes(&home));
    User { name: String::from_utf8_lossy(&name).into_owned(), uid: entry.pw_uid, gid: entry.pw_gid, home }
}

fn group(entry: &libc::group) -> Group {
    // SAFETY: as for a user.
    let name = unsafe { text(entry.gr_name) };
    Group { name: String::from_utf8_lossy(&name).into_owned(), gid: entry.gr_gid }
}

/// # Safety
/// `text` is null, or leads to bytes that end with a zero byte.
unsafe fn text(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller has promised it.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_known_by_name_and_by_number() {
        let root = user_named("root").unwrap().expect("every machine has it");
        assert_eq!((root.uid, root.gid, user_numbered(0).unwrap()), (0, 0, Some(root.clone())));
        let group = group_numbered(0).unwrap().expect("every machine has it");
        assert_eq!(group_named(&group.name).unwrap(), Some(group));
        assert!(local_users().contains(&"root".to_owned()), "{:?}", local_users());
        assert!(!local_groups().is_empty());
    }

    #[test]
    fn unknown_names_and_numbers_are_not_found() {
        for name in ["no such user", "", "a\0b", "root:0"] {
            assert_eq!((user_named(name).unwrap(), group_named(name).unwrap()), (None, None), "{name:?}");
        }
        // The number that stands for "no change" in chown(2).
        assert_eq!((user_numbered(u32::MAX).unwrap(), group_numbered(u32::MAX).unwrap()), (None, None));
    }

    #[test]
    fn the_groups_of_a_user_have_the_one_asked_for() {
        assert!(groups_of("root", 12_345).unwrap().contains(&12_345));
        assert_eq!(groups_of("no such user", 7).unwrap(), [7]);
    }
}
