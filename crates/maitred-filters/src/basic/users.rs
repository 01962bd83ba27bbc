//! The file of users: a name and the hash of a password on each line.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use argon2::password_hash::phc::PasswordHash;
use maitred_io::clock;

use super::Credentials;
use super::cache::{Cache, CheckedUser, Key, Tag};
use super::password;

/// A change of the file is seen after this time at most, in nanoseconds, if requests come.
const LOOK: u64 = 2_000_000_000;

/// The longest file: about 80,000 users.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// The longest name of a user, in bytes.
pub const MAX_NAME: usize = 64;

/// Whether a password is that of a hash; another one in tests.
pub(crate) type Verify = Box<dyn Fn(&PasswordHash, &[u8]) -> bool + Send + Sync>;

/// The users and their passwords in a file. It is read again when it has changed; an invalid file then changes nothing.
pub struct Users {
    path: PathBuf,
    key: Key,
    verify: Verify,
    state: Mutex<State>,
}

struct State {
    table: Arc<Table>,
    /// Rises with every table.
    generation: u64,
    stamp: Option<Stamp>,
    looked: u64,
    cache: Cache,
}

/// The attributes that tell two contents of a file apart.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

pub(super) struct Table {
    users: HashMap<Box<[u8]>, (Arc<str>, PasswordHash)>,
    /// The hash that is checked for an unknown name: as costly as the costliest one, so that its absence takes as long.
    decoy: PasswordHash,
}

/// The fault of a file of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadUsers {
    /// The line, from 1 on; none for the file as a whole.
    pub line: Option<usize>,
    /// The fault.
    pub what: String,
}

impl fmt::Display for BadUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for BadUsers {}

impl Table {
    /// Reads `NAME:HASH` line by line. Empty lines and those that begin with `#` say nothing.
    pub(super) fn parse(text: &[u8]) -> Result<Self, BadUsers> {
        let mut users = HashMap::new();
        let mut decoy = (0, password::parse(password::NOBODY).map_err(|what| BadUsers { line: None, what })?);
        for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let bad = |what: String| BadUsers { line: Some(number), what };
            let line = std::str::from_utf8(line).map_err(|_| bad("the text is not UTF-8".to_owned()))?.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (name, hash) = line.split_once(':').ok_or_else(|| bad("there is no ':'".to_owned()))?;
            check_name(name).map_err(bad)?;
            let hash = password::parse(hash).map_err(bad)?;
            let cost = password::cost_of(&hash);
            if cost > decoy.0 {
                decoy = (cost, hash.clone());
            }
            if users.insert(name.as_bytes().into(), (Arc::from(name), hash)).is_some() {
                return Err(bad(format!("the user '{name}' is there twice")));
            }
        }
        Ok(Self { users, decoy: decoy.1 })
    }
}

/// Whether users may be called so: no colon (RFC 7617 §2), and nothing that a log or a header field could take for something
/// else.
///
/// # Errors
/// They may not: why.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_plain = |c: char| !c.is_control() && !c.is_whitespace() && !":\"\\#,;=".contains(c);
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Ok(());
    }
    Err(format!(
        "'{}' is no name of a user: 1 to {MAX_NAME} bytes without white space and none of : \" \\ # , ; =",
        name.escape_debug()
    ))
}

pub(super) struct Known {
    pub(super) tag: Tag,
    /// The result of an earlier check, if that is not too long ago.
    pub(super) found: Option<CheckedUser>,
    pub(super) stale: bool,
}

impl Users {
    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or a line is wrong.
    pub fn open(path: &Path) -> Result<Arc<Self>, BadUsers> {
        Self::open_with(path, Box::new(password::verify))
    }

    /// The same, but `is_right` decides whether a password is right: for tests.
    #[doc(hidden)]
    pub fn open_judged(
        path: &Path,
        is_right: impl Fn(&[u8]) -> bool + Send + Sync + 'static,
    ) -> Result<Arc<Self>, BadUsers> {
        Self::open_with(path, Box::new(move |_, password| is_right(password)))
    }

    /// Opens a file with another way to check passwords.
    pub fn open_with(path: &Path, verify: Verify) -> Result<Arc<Self>, BadUsers> {
        let whole = |what: String| BadUsers { line: None, what };
        // The current folder may be another one when it is read again.
        let path = std::path::absolute(path).map_err(|error| whole(error.to_string()))?;
        let (table, stamp) = read(&path)?;
        let state = State {
            table: Arc::new(table),
            generation: 0,
            stamp: Some(stamp),
            looked: clock::monotonic(),
            cache: Cache::default(),
        };
        Ok(Arc::new(Self { path, key: Key::new().map_err(whole)?, verify, state: Mutex::new(state) }))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of users.
    pub fn len(&self) -> usize {
        self.lock().table.users.len()
    }

    /// Whether there is no user.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn know(&self, credentials: &Credentials, now: u64) -> Known {
        let tag = self.key.tag(credentials);
        let state = self.lock();
        Known { tag, found: state.cache.find(&tag, now), stale: now.saturating_sub(state.looked) >= LOOK }
    }

    /// Checks credentials; takes as long as a hash for all names. To be called on a thread that no request waits on.
    pub(super) fn check(&self, credentials: &Credentials, tag: Tag) -> CheckedUser {
        let state = self.lock();
        // Another thread may have made the same check meanwhile.
        if let Some(found) = state.cache.find(&tag, clock::monotonic()) {
            return found;
        }
        let (table, generation) = (Arc::clone(&state.table), state.generation);
        drop(state);
        let user = table.users.get(&credentials.user);
        let hash = user.map_or(&table.decoy, |(_, hash)| hash);
        let fits = (self.verify)(hash, &credentials.password);
        let found = user.filter(|_| fits).map(|(name, _)| Arc::clone(name));
        let mut state = self.lock();
        if state.generation == generation {
            state.cache.add(tag, found.clone(), clock::monotonic());
        }
        found
    }

    pub(super) fn is_due(&self) -> bool {
        clock::monotonic().saturating_sub(self.lock().looked) >= LOOK
    }

    /// Reads the file again if it has changed; the number of users then. Results of checks are forgotten.
    ///
    /// # Errors
    /// It cannot be read, or a line is wrong: the present users stay. Reported once for each state of the file.
    pub fn look(&self) -> Result<Option<usize>, BadUsers> {
        let mut state = self.lock();
        state.looked = clock::monotonic();
        let before = state.stamp;
        drop(state);
        let stamp = match fs::metadata(&self.path) {
            Ok(metadata) => Some(Stamp::of(&metadata)),
            Err(_) if before.is_none() => return Ok(None),
            Err(error) => {
                self.lock().stamp = None;
                return Err(BadUsers { line: None, what: error.to_string() });
            }
        };
        if stamp == before {
            return Ok(None);
        }
        let result = read(&self.path);
        let mut state = self.lock();
        match result {
            Ok((table, stamp)) => {
                let count = table.users.len();
                state.table = Arc::new(table);
                state.generation += 1;
                state.stamp = Some(stamp);
                state.cache.clear();
                Ok(Some(count))
            }
            Err(error) => {
                state.stamp = stamp;
                Err(error)
            }
        }
    }
}

impl PartialEq for Users {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Users {}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No hash, and no password that was checked.
        f.debug_struct("Users").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// The stamp is of before the reading: the next look sees a change that is made meanwhile.
fn read(path: &Path) -> Result<(Table, Stamp), BadUsers> {
    let failed = |error: io::Error| BadUsers { line: None, what: error.to_string() };
    let file = fs::File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() || metadata.len() > MAX_FILE {
        let what = format!("it is no file of at most {MAX_FILE} bytes");
        return Err(BadUsers { line: None, what });
    }
    let mut text = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut text).map_err(failed)?;
    Ok((Table::parse(&text)?, Stamp::of(&metadata)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use proptest::prelude::*;

    use super::*;

    /// The hash of the password `password`, as cheap as can be.
    const HASH: &str = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

    fn credentials(user: &str, password: &str) -> Credentials {
        Credentials { user: user.as_bytes().into(), password: password.as_bytes().into() }
    }

    /// A file, and how often a hash was made; the password of all is `right`.
    fn users(text: &str) -> (tempfile::TempDir, Arc<Users>, Arc<AtomicUsize>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users.txt");
        fs::write(&path, text).expect("room");
        let hashed = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&hashed);
        let verify: Verify = Box::new(move |_, password| {
            count.fetch_add(1, Ordering::Relaxed);
            password == b"right"
        });
        let users = Users::open_with(&path, verify).expect("valid");
        (folder, users, hashed)
    }

    fn check(users: &Users, user: &str, password: &str) -> Option<String> {
        let credentials = credentials(user, password);
        let known = users.know(&credentials, clock::monotonic());
        let found = known.found.unwrap_or_else(|| users.check(&credentials, known.tag));
        found.map(|name| name.to_string())
    }

    #[test]
    fn lines_are_users_and_errors_name_their_line() {
        let table =
            Table::parse(format!("# people\r\n\n ann:{HASH}\r\nb.o-b@x:{HASH}").as_bytes()).expect("valid");
        let mut names: Vec<_> = table.users.values().map(|(name, _)| name.to_string()).collect();
        names.sort();
        assert_eq!(names, ["ann", "b.o-b@x"]);
        for (text, error) in [
            ("ann", "line 1: there is no ':'"),
            ("\nann:secret", "line 2: the hash is no PHC string"),
            (&*format!(":{HASH}"), "line 1: '' is no name of a user"),
            (&*format!("a b:{HASH}"), "line 1: 'a b' is no name of a user"),
            (&*format!("a:{HASH}\na:{HASH}"), "line 2: the user 'a' is there twice"),
            (&*format!("{}:{HASH}", "x".repeat(65)), "is no name of a user"),
        ] {
            let found = Table::parse(text.as_bytes()).err().expect(text).to_string();
            assert!(found.contains(error), "{text}: {found}");
        }
        assert_eq!(Table::parse(b"a:\xff").err().expect("bad").to_string(), "line 1: the text is not UTF-8");
    }

    #[test]
    fn an_unknown_name_costs_a_hash_too() {
        let (_folder, users, hashed) = users(&format!("ann:{HASH}\n"));
        let hashed = || hashed.load(Ordering::Relaxed);
        assert_eq!(check(&users, "ann", "right").as_deref(), Some("ann"));
        assert_eq!((check(&users, "ann", "wrong"), hashed()), (None, 2));
        assert_eq!((check(&users, "bob", "right"), hashed()), (None, 3));
        assert_eq!((check(&users, "bob", "right"), hashed()), (None, 3), "known to be wrong");
        assert_eq!((check(&users, "ann", "right").is_some(), hashed()), (true, 3), "known to be right");
    }

    #[test]
    fn the_decoy_costs_as_much_as_the_costliest() {
        let dear = HASH.replace("m=8,", "m=64,");
        let table = Table::parse(format!("a:{HASH}\nb:{dear}\nc:{HASH}").as_bytes()).expect("valid");
        assert_eq!(password::cost_of(&table.decoy), 64);
        let empty = Table::parse(b"").expect("valid");
        assert_eq!(password::cost_of(&empty.decoy), 2 * 19456);
    }

    #[test]
    fn a_file_that_has_changed_is_read_again_and_one_that_is_wrong_changes_nothing() {
        let (folder, users, hashed) = users(&format!("ann:{HASH}\n"));
        let path = folder.path().join("users.txt");
        let replace = |text: &str| {
            // Another inode, as editors and `maitred passwd` make it.
            fs::write(folder.path().join("new"), text).expect("room");
            fs::rename(folder.path().join("new"), &path).expect("renamed");
        };
        assert_eq!(users.look(), Ok(None));
        assert!(check(&users, "ann", "right").is_some());
        replace(&format!("ann:{HASH}\nbob:{HASH}\n"));
        assert_eq!(users.look(), Ok(Some(2)));
        assert!(check(&users, "bob", "right").is_some());
        assert!(check(&users, "ann", "right").is_some());
        assert_eq!(hashed.load(Ordering::Relaxed), 3, "what had been checked is forgotten");
        replace("ann\n");
        assert_eq!(users.look().expect_err("wrong").to_string(), "line 1: there is no ':'");
        assert_eq!((users.look(), users.len()), (Ok(None), 2), "said once");
        fs::remove_file(&path).expect("there");
        assert!(users.look().is_err());
        assert_eq!((users.look(), users.len()), (Ok(None), 2), "said once");
        replace(&format!("bob:{HASH}\n"));
        assert_eq!(users.look(), Ok(Some(1)));
        assert!(check(&users, "ann", "right").is_none());
    }

    #[test]
    fn a_check_that_was_begun_before_a_change_is_not_remembered() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users.txt");
        fs::write(&path, format!("ann:{HASH}\n")).expect("room");
        let (own, inner): (Arc<Mutex<Option<Arc<Users>>>>, _) = (Arc::default(), path.clone());
        let users = Arc::clone(&own);
        let verify: Verify = Box::new(move |_, _| {
            // Everybody is removed while the hash is made.
            fs::write(&inner, "").expect("room");
            let users = users.lock().expect("not poisoned").take();
            assert_eq!(users.map(|users| users.look()), Some(Ok(Some(0))));
            true
        });
        let users = Users::open_with(&path, verify).expect("valid");
        *own.lock().expect("not poisoned") = Some(Arc::clone(&users));
        let credentials = credentials("ann", "right");
        let known = users.know(&credentials, clock::monotonic());
        assert!(users.check(&credentials, known.tag).is_some());
        assert!(users.know(&credentials, clock::monotonic()).found.is_none());
    }

    #[test]
    fn the_file_has_to_be_one() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Users::open(folder.path()).expect_err("a folder").to_string().contains("it is no file"));
        assert!(Users::open(&folder.path().join("none")).is_err());
    }

    proptest! {
        /// No file is a reason to panic, and the users that are read have only valid names.
        #[test]
        fn any_text_is_users_or_an_error(text in "([a-z#: ]{0,4}(:\\$argon2id\\$v=19\\$m=[0-9]{1,6},t=[0-9]{1,3},p=[0-9]\\$[A-Za-z0-9]{0,12}\\$[A-Za-z0-9]{0,43})?\r?\n){0,4}") {
            if let Ok(table) = Table::parse(text.as_bytes()) {
                for (name, _) in table.users.values() {
                    prop_assert_eq!(check_name(name), Ok(()));
                }
            }
        }

        #[test]
        fn any_bytes_are_users_or_an_error(bytes: Vec<u8>) {
            let _ = Table::parse(&bytes);
        }
    }
}
