//! The folder of certificates: its layout, and how it is written and read.
//!
//! ```text
//! lock                         held by the one process that orders (flock(2)): it is free when that process ends, however it ends
//! changed                      touched behind each new certificate: servers look at this one file
//! accounts/HASH.json           the account at a directory
//! certificates/NAME/current.pem  the chain, then its key      certificates/NAME/state.json  see `state`
//! challenges/http/TOKEN        a key authorisation            challenges/tls-alpn/NAME     a key authorisation
//! challenges/dns/HASH          an entry of the DNS that is not removed yet: its name and its value
//! wanted/NAME                  a name that a client has asked for and that has no certificate yet
//! hurry                        an operator wants the next attempts at once
//! ```
//! Promises: folders have mode 0700, files 0600. A file is written aside, synced and renamed: a reader sees the old one or the new one, also
//! after a loss of power. Leaves out: whether a certificate is right, and when it is ordered.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use maitred_tls::{Challenges, is_token};
use rustix::fs::{Access, FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::system::uname;

use crate::name;
use crate::on_demand::OnDemand;
use crate::state::{State, Status};

const CERTIFICATES: &str = "certificates";
const ACCOUNTS: &str = "accounts";
const HTTP: &str = "challenges/http";
const TLS_ALPN: &str = "challenges/tls-alpn";
const DNS: &str = "challenges/dns";
const WANTED: &str = "wanted";
const CHANGED: &str = "changed";
const HURRY: &str = "hurry";

/// Most bytes of a file that is read here. A chain has some thousand, a key authorisation 87.
const MAX_FILE: u64 = 256 * 1024;

/// Most names that clients can have noted: a look at the folder stays cheap, and a flood of names fills no disk.
const MAX_WANTED: usize = 64;

/// Seconds for which failures are kept when no client asks for the name any more.
const KEPT: u64 = 24 * 60 * 60;

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder(PathBuf);

/// The right to order, for as long as this lives.
#[derive(Debug)]
pub struct Lock(File);

impl Drop for Lock {
    /// A process that the application has forked has the descriptor, too, and would keep the lock.
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The state of a file by which a new one is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u64, i64, i64);

impl Folder {
    /// The folder at `path`, which need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes what is missing of the folder.
    ///
    /// # Errors
    /// A folder cannot be made.
    pub fn prepare(&self) -> io::Result<()> {
        for part in [CERTIFICATES, ACCOUNTS, HTTP, TLS_ALPN, WANTED] {
            make(&self.0.join(part))?;
        }
        Ok(())
    }

    /// Makes what is missing, and looks whether this user can write there.
    ///
    /// # Errors
    /// The user cannot.
    pub fn check(&self) -> io::Result<()> {
        self.prepare()?;
        let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        [CERTIFICATES, ACCOUNTS]
            .iter()
            .try_for_each(|part| Ok(rustix::fs::access(self.0.join(part), access)?))
    }

    /// The file of the certificate of this name.
    pub fn certificate(&self, name: &str) -> PathBuf {
        self.of_name(name).join("current.pem")
    }

    fn of_name(&self, name: &str) -> PathBuf {
        self.0.join(CERTIFICATES).join(name::file(name))
    }

    /// The names that have a certificate here.
    pub fn names(&self) -> Vec<String> {
        self.some_names(OnDemand::MOST_NAMES)
    }

    fn some_names(&self, most: usize) -> Vec<String> {
        let names = self.known().filter(|name| self.certificate(name).exists());
        let mut names: Vec<String> = names.take(most).collect();
        names.sort();
        names
    }

    fn known(&self) -> impl Iterator<Item = String> + use<> {
        entries(&self.0.join(CERTIFICATES)).filter_map(|file| name::of_file(&file))
    }

    /// Removes the failures of names without a certificate, a day after the next attempt was free. `is_kept` says which ones stay.
    pub(crate) fn sweep(&self, now: u64, is_kept: impl Fn(&str) -> bool) {
        for name in self.known().filter(|name| !is_kept(name) && !self.certificate(name).exists()) {
            let next = self.state(&name).and_then(|state| state.next);
            if next.is_some_and(|next| next + KEPT < now) {
                let _ = fs::remove_dir_all(self.of_name(&name));
            }
        }
    }

    /// Replaces the certificate of a name, and tells the servers.
    ///
    /// # Errors
    /// The disk refuses; the old one is untouched.
    pub fn save_certificate(&self, name: &str, pem: &[u8]) -> io::Result<()> {
        let path = self.certificate(name);
        make(&self.of_name(name))?;
        write(&path, pem)?;
        write(&self.0.join(CHANGED), b"")
    }

    /// Removes the files of a name, and tells the servers. Files that the disk refuses to remove stay.
    pub(crate) fn forget(&self, name: &str) {
        let _ = fs::remove_dir_all(self.of_name(name)).and_then(|()| write(&self.0.join(CHANGED), b""));
    }

    /// The state of a name; none if there is none that can be read.
    pub fn state(&self, name: &str) -> Option<State> {
        serde_json::from_slice(&read(&self.of_name(name).join("state.json")).ok()?).ok()
    }

    /// Replaces the state of a name.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn save_state(&self, name: &str, state: &State) -> io::Result<()> {
        make(&self.of_name(name))?;
        write(&self.of_name(name).join("state.json"), &serde_json::to_vec_pretty(state)?)
    }

    /// The status of a name, for operators.
    pub fn status(&self, name: &str) -> Status {
        self.state(name).unwrap_or_default().status(name)
    }

    /// The account at the directory with this URL, as it was saved.
    ///
    /// # Errors
    /// It is there and cannot be read.
    pub fn account(&self, directory: &str) -> io::Result<Option<Vec<u8>>> {
        match read(&self.of_account(directory)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            account => account.map(Some),
        }
    }

    /// Saves the account at a directory.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn save_account(&self, directory: &str, account: &[u8]) -> io::Result<()> {
        make(&self.0.join(ACCOUNTS))?;
        write(&self.of_account(directory), account)
    }

    fn of_account(&self, directory: &str) -> PathBuf {
        self.0.join(ACCOUNTS).join(format!("{:016x}.json", hash(directory.as_bytes())))
    }

    /// Puts the answer to HTTP-01 where all servers find it.
    ///
    /// # Errors
    /// The token is none, or the disk refuses.
    pub fn publish_http(&self, token: &str, authorization: &str) -> io::Result<()> {
        let path =
            self.of_token(token).ok_or_else(|| io::Error::other("the token of the challenge is none"))?;
        make(&self.0.join(HTTP))?;
        write(&path, authorization.as_bytes())
    }

    /// Puts the answer to TLS-ALPN-01 where all servers find it.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn publish_tls_alpn(&self, name: &str, authorization: &str) -> io::Result<()> {
        make(&self.0.join(TLS_ALPN))?;
        write(&self.0.join(TLS_ALPN).join(name::file(name)), authorization.as_bytes())
    }

    /// Takes the answers of a challenge away.
    pub fn withdraw(&self, name: &str, token: &str) {
        let paths = [self.of_token(token), Some(self.0.join(TLS_ALPN).join(name::file(name)))];
        // It may never have been published.
        paths.into_iter().flatten().for_each(|path| _ = fs::remove_file(path));
    }

    /// Takes the answer to HTTP-01 away.
    pub fn withdraw_http(&self, token: &str) {
        let _ = self.of_token(token).map(fs::remove_file);
    }

    /// Notes an entry of the DNS before it is made.
    pub(crate) fn note_dns(&self, name: &str, value: &str) -> io::Result<()> {
        make(&self.0.join(DNS))?;
        write(&self.of_dns(name, value), format!("{name} {value}").as_bytes())
    }

    /// Takes the note of an entry away.
    pub(crate) fn forget_dns(&self, name: &str, value: &str) {
        let _ = fs::remove_file(self.of_dns(name, value));
    }

    /// The entries of the DNS that are not removed yet: names and values.
    pub(crate) fn noted_dns(&self) -> Vec<(String, String)> {
        let folder = self.0.join(DNS);
        let texts =
            entries(&folder).filter_map(|file| String::from_utf8(read(&folder.join(file)).ok()?).ok());
        texts
            .filter_map(|text| text.split_once(' ').map(|(name, value)| (name.into(), value.into())))
            .collect()
    }

    fn of_dns(&self, name: &str, value: &str) -> PathBuf {
        self.0.join(DNS).join(format!("{:016x}", hash(format!("{name} {value}").as_bytes())))
    }

    /// Takes the answers of an orderer away that was killed.
    pub fn withdraw_all(&self) {
        for part in [HTTP, TLS_ALPN] {
            let folder = self.0.join(part);
            entries(&folder).for_each(|file| _ = fs::remove_file(folder.join(file)));
        }
    }

    fn of_token(&self, token: &str) -> Option<PathBuf> {
        is_token(token.as_bytes()).then(|| self.0.join(HTTP).join(token))
    }

    /// Takes the lock; none while another process has it.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn lock(&self) -> io::Result<Option<Lock>> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(self.0.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                let lock = Lock(file);
                // Only for the line about a process that has gone.
                let _ = lock
                    .0
                    .set_len(0)
                    .and_then(|()| (&lock.0).write_all(holder(std::process::id()).as_bytes()));
                Ok(Some(lock))
            }
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The process that has taken the lock, if it was on this machine and is gone: another one keeps its lock.
    pub(crate) fn gone_holder(&self) -> Option<u32> {
        let text = String::from_utf8(read(&self.0.join("lock")).ok()?).ok()?;
        let number = text.split(' ').next()?.parse().ok()?;
        let pid = Pid::from_raw(i32::try_from(number).ok()?)?;
        (text == holder(number) && test_kill_process(pid) == Err(Errno::SRCH)).then_some(number)
    }

    /// The mark of the last new certificate: another one than before says that there is one. It costs a stat(2).
    pub fn mark(&self) -> Option<Mark> {
        Mark::of(&self.0.join(CHANGED))
    }

    /// The mark of the certificate of a name.
    pub(crate) fn mark_of(&self, name: &str) -> Option<Mark> {
        Mark::of(&self.certificate(name))
    }

    /// Has the orderer, in whichever process, try at once what has failed. Nothing happens if the disk refuses.
    pub fn hurry(&self) {
        let _ = write(&self.0.join(HURRY), b"");
    }

    /// Takes the wish to hurry.
    pub(crate) fn take_hurry(&self) -> bool {
        fs::remove_file(self.0.join(HURRY)).is_ok()
    }

    /// Notes a name that a client has asked for. Nothing happens if there are many, or if the disk refuses: the next client asks again.
    pub fn want(&self, name: &str) {
        let folder = self.0.join(WANTED);
        if name::of_file(&name::file(name)).is_some() && entries(&folder).count() < MAX_WANTED {
            let _ = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(folder.join(name::file(name)));
        }
    }

    /// Takes the names that clients have asked for.
    pub fn take_wanted(&self) -> Vec<String> {
        let folder = self.0.join(WANTED);
        let taken = entries(&folder).filter(|file| fs::remove_file(folder.join(file)).is_ok());
        taken.filter_map(|file| name::of_file(&file)).collect()
    }
}

impl Mark {
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self(found.ino(), found.mtime(), found.mtime_nsec()))
    }
}

impl Challenges for Folder {
    fn http(&self, token: &str) -> Option<String> {
        String::from_utf8(read(&self.of_token(token)?).ok()?).ok()
    }

    fn tls_alpn(&self, name: &str) -> Option<String> {
        let file = name::file(name);
        name::of_file(&file)?;
        String::from_utf8(read(&self.0.join(TLS_ALPN).join(file)).ok()?).ok()
    }
}

/// The names of the files in a folder; none of one that cannot be read. Files that are being written begin with a dot.
fn entries(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let names = fs::read_dir(folder).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).filter(|name| !name.starts_with('.'))
}

/// The note about the process with the lock. Machines that share a folder have process numbers of their own.
fn holder(pid: u32) -> String {
    format!("{pid} {}\n", uname().nodename().to_string_lossy())
}

/// Makes a folder and those above it. Each is synced into the one above.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    let above = folder.parent().unwrap_or(folder);
    make(above)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => return Err(error),
        _ => {}
    }
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    match File::open(above) {
        // This user may make folders there, and may not read.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(()),
        opened => opened?.sync_all(),
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(MAX_FILE).read_to_end(&mut content)?;
    Ok(content)
}

fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let aside = folder.join(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    // An earlier process with this number may have left the file.
    let _ = fs::remove_file(&aside);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&aside)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&aside, path)
    })();
    // A full disk must not keep half files.
    written.inspect_err(|_| _ = fs::remove_file(&aside))?;
    File::open(folder)?.sync_all()
}

/// FNV-1a: the name of a file needs no secret, and stays the same in all versions.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;

    fn folder() -> (TempDir, Folder) {
        let place = TempDir::new().expect("a folder");
        let folder = Folder::new(place.path().join("acme"));
        folder.prepare().expect("made");
        (place, folder)
    }

    #[test]
    fn accounts_and_certificates_belong_to_their_user_alone() {
        let (_place, folder) = folder();
        folder.save_certificate("shop.example", b"pem").expect("written");
        folder.save_account("https://ca.example/dir", b"{}").expect("written");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let file = folder.certificate("shop.example");
        assert_eq!(
            (mode(&file), mode(folder.path()), mode(file.parent().expect("a folder"))),
            (0o600, 0o700, 0o700)
        );
        assert_eq!(mode(&folder.of_account("https://ca.example/dir")), 0o600);
        assert_eq!(folder.account("https://ca.example/dir").expect("read").as_deref(), Some(&b"{}"[..]));
        assert_eq!(folder.account("https://other.example/dir").expect("read"), None);
    }

    #[test]
    fn a_new_certificate_is_seen_by_one_look() {
        let (_place, folder) = folder();
        assert_eq!((folder.mark(), folder.names()), (None, Vec::new()));
        folder.save_certificate("shop.example", b"1").expect("written");
        let first = folder.mark();
        folder.save_certificate("2001:db8::7", b"2").expect("written");
        assert!(first.is_some() && folder.mark() != first);
        assert_eq!(folder.names(), ["2001:db8::7", "shop.example"]);
        assert!(folder.certificate("2001:db8::7").ends_with("certificates/2001_db8__7/current.pem"));
    }

    #[test]
    fn names_without_a_certificate_take_no_room_from_others() {
        let (_place, folder) = folder();
        for number in 0..100 {
            make(&folder.of_name(&format!("n{number}.example"))).expect("made");
        }
        for number in 40..52 {
            folder.save_certificate(&format!("n{number}.example"), b"pem").expect("written");
        }
        assert_eq!(folder.some_names(12).len(), 12);
    }

    #[test]
    fn challenges_are_answered_from_files_and_from_nowhere_else() {
        let (place, folder) = folder();
        fs::write(place.path().join("secret"), "x").expect("written");
        folder.publish_http("tok_en", "tok_en.print").expect("written");
        folder.publish_tls_alpn("::1", "other.print").expect("written");
        assert_eq!(folder.http("tok_en").as_deref(), Some("tok_en.print"));
        assert_eq!(folder.tls_alpn("::1").as_deref(), Some("other.print"));
        for wrong in ["", ".", "..", "../../secret", "a/b", "other", "/etc/passwd"] {
            assert_eq!((folder.http(wrong), folder.tls_alpn(wrong)), (None, None), "{wrong}");
        }
        assert!(folder.publish_http("../x", "y").is_err());
        folder.withdraw("::1", "tok_en");
        assert_eq!((folder.http("tok_en"), folder.tls_alpn("::1")), (None, None));
        folder.publish_http("left", "x").expect("written");
        folder.withdraw_all();
        assert_eq!(folder.http("left"), None);
    }

    #[test]
    fn one_process_orders() {
        let (_place, folder) = folder();
        let first = folder.lock().expect("asked");
        assert!(first.is_some());
        assert!(folder.lock().expect("asked").is_none());
        // As a forked child has it.
        let copy = first.as_ref().map(|lock| lock.0.try_clone().expect("a copy"));
        drop(first);
        let second = folder.lock().expect("asked");
        assert!(second.is_some() && copy.is_some());
        assert_eq!(folder.gone_holder(), None, "this process lives");
        let mut child = std::process::Command::new("true").spawn().expect("a process");
        child.wait().expect("an end");
        fs::write(folder.path().join("lock"), holder(child.id())).expect("written");
        assert_eq!(folder.gone_holder(), Some(child.id()));
        fs::write(folder.path().join("lock"), format!("{} elsewhere\n", child.id())).expect("written");
        assert_eq!(folder.gone_holder(), None);
    }

    #[test]
    fn names_that_clients_ask_for_are_noted_up_to_a_limit() {
        let (_place, folder) = folder();
        folder.want("a.example");
        folder.want("a.example");
        folder.want("../x");
        assert_eq!(folder.take_wanted(), ["a.example"]);
        assert_eq!(folder.take_wanted(), [""; 0]);
        (0..2 * MAX_WANTED).for_each(|number| folder.want(&format!("n{number}.example")));
        assert_eq!(folder.take_wanted().len(), MAX_WANTED);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_no_half_one() {
        let (_place, folder) = folder();
        folder.save_certificate("a.example", b"old").expect("written");
        let path = folder.certificate("a.example");
        // A folder in the place of the file aside cannot be written.
        let aside = path.with_file_name(format!(".current.pem.{}", std::process::id()));
        fs::create_dir(&aside).expect("made");
        fs::write(aside.join("x"), "x").expect("written");
        assert!(folder.save_certificate("a.example", b"new").is_err());
        assert_eq!(fs::read(&path).expect("there"), b"old");
        assert_eq!(folder.names(), ["a.example"]);
    }
}
