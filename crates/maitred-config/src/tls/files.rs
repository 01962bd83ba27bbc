//! The files of TLS: their names, their contents, and their changes.
//!
//! Promises: an error names the file, the key that it was written for, and a remedy. The content of a file is never shown.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding};
use serde_json::{Value, json};

use maitred_certificates::{Held, check_chain};
use maitred_server::tls::system_clock;

use super::development;
use crate::accounts::shown_user;
use crate::problem::correct;
use crate::{BadValue, Config, Origins, Problem, acme};

/// Most bytes of a file: the longest lists of revoked certificates have some MiB. All files go to a worker in one message.
const MAX_FILE: u64 = 16 * 1024 * 1024;

/// The word for no file in a list of files by position.
pub(super) const NO_FILE: &str = "-";

pub(super) const PASSWORDS: &str = "tls-key-password";

/// Prefix of the name of an environment variable that has a password, instead of a file.
const VARIABLE: &str = "env:";

/// A file as it is written in the configuration.
pub(super) struct Named<'a> {
    pub(super) path: &'a Path,
    /// The host in whose table it is; none for the default host.
    pub(super) host: Option<&'a str>,
    pub(super) key: &'static str,
}

/// All files, in the order in which they are read.
pub(super) fn all(config: &Config) -> Vec<Named<'_>> {
    let mut all = Vec::new();
    let sites = std::iter::once((None, &config.site));
    let sites = sites.chain(config.hosts.iter().map(|host| (Some(host.name.as_str()), &host.site)));
    for (host, site) in sites {
        for (key, files) in [
            ("tls-cert", &site.certificates),
            ("tls-key", &site.keys),
            ("tls-ocsp", &site.ocsp),
            ("tls-client-ca", &site.client_ca),
            ("tls-client-crl", &site.client_crl),
        ] {
            let files = files.iter().filter(|path| path.as_os_str() != NO_FILE);
            all.extend(files.map(|path| Named { path, host, key }));
        }
    }
    let tls = &config.tls;
    let mut named = |key, path| all.push(Named { path, host: None, key });
    tls.key_passwords.iter().for_each(|path| named(PASSWORDS, path));
    tls.ticket_key.iter().for_each(|path| named("tls-ticket-key", path));
    all
}

impl Named<'_> {
    /// The place of the file's name in the configuration, for errors.
    pub(super) fn place(&self, origins: &Origins) -> String {
        origins.describe_in(self.host, self.key)
    }

    fn read(&self) -> Result<Vec<u8>, Unread> {
        let name = self.path.as_os_str().as_bytes().strip_prefix(VARIABLE.as_bytes());
        let Some(name) = name.filter(|_| self.key == PASSWORDS) else {
            let content = read(self.path)?;
            let has_password = content.iter().any(|byte| !matches!(byte, b'\r' | b'\n'));
            return if has_password || self.key != PASSWORDS {
                Ok(content)
            } else {
                let what = format!("there is no password in the file {}", self.path.display());
                Err(BadValue::new(what, "write it there, one in each line").into())
            };
        };
        let found = std::env::var_os(OsStr::from_bytes(name)).filter(|value| !value.is_empty());
        found.map(OsString::into_vec).ok_or_else(|| {
            let what = format!("the variable {} is not set, or empty", name.escape_ascii());
            BadValue::new(what, "set it to the password of the key where the server is started").into()
        })
    }
}

/// The contents of the files, by their paths as they are written.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Files {
    contents: BTreeMap<PathBuf, Vec<u8>>,
    /// Those of certificates by ACME.
    ordered: BTreeMap<PathBuf, Vec<u8>>,
    /// The place of the certificate for development, and the certificate with its key.
    pub(super) development: Option<(String, Vec<u8>)>,
}

impl fmt::Debug for Files {
    /// Shows only the names: keys are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.contents.keys().chain(self.ordered.keys())).finish()
    }
}

impl Files {
    /// Reads all files of the configuration. A file that this process may not read is taken from `kept`, if `kept` has it.
    pub(super) fn read(config: &Config, origins: &Origins, kept: Option<&Self>) -> Result<Self, Problem> {
        let mut files = Self::default();
        for named in all(config) {
            if files.contents.contains_key(named.path) {
                continue;
            }
            let content = match named.read() {
                Ok(content) => content,
                Err(Unread { denied: true, .. }) if kept.is_some_and(|kept| kept.has(named.path)) => {
                    kept.and_then(|kept| kept.get(named.path)).unwrap_or_default().to_vec()
                }
                Err(Unread { bad, .. }) => return Err(bad.at(named.place(origins))),
            };
            files.contents.insert(named.path.to_owned(), content);
        }
        Ok(files)
    }

    /// Adds the certificates by ACME. In the place of a file that is missing, broken, ended, or older than the known certificate, as one from a
    /// backup, there is the known certificate, else a self-signed one: there always is one.
    pub(super) fn complete(&mut self, config: &Config, known: Option<&Self>) {
        for (name, path) in acme::files(config) {
            let held = |pem: Vec<u8>| {
                let held = check_chain(&pem, &pem, &[name.parse().ok()?], system_clock()).ok()?;
                Some((held, pem))
            };
            let known = known.and_then(|known| known.get(&path));
            let own = known.filter(|pem| development::is_self_signed(pem));
            let known = known.filter(|_| own.is_none()).and_then(|pem| held(pem.to_vec()));
            let pem = match (read(&path).ok().and_then(held), known) {
                (Some((new, _)), Some((old, pem))) if is_older(&new, &old) => Some(pem),
                (Some((_, pem)), _) | (None, Some((_, pem))) => Some(pem),
                (None, None) => development::for_name(&name, own),
            };
            self.ordered.extend(pem.map(|pem| (path, pem)));
        }
    }

    /// Without the certificates by ACME that each process reads from the same files.
    pub(super) fn handed(mut self) -> Self {
        self.ordered.retain(|path, pem| read(path).ok().as_ref() != Some(pem));
        self
    }

    /// Whether the contents are the same, apart from the certificate for development.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.contents == other.contents && self.ordered == other.ordered
    }

    pub(super) fn has_all(&self, config: &Config) -> bool {
        all(config).iter().all(|named| self.has(named.path))
    }

    fn has(&self, path: &Path) -> bool {
        self.contents.contains_key(path)
    }

    pub(super) fn get(&self, path: &Path) -> Option<&[u8]> {
        self.contents.get(path).or_else(|| self.ordered.get(path)).map(Vec::as_slice)
    }

    pub(super) fn to_json(&self) -> Value {
        let encoded = |content: &[u8]| Base64::encode_string(content);
        let list = |contents: &BTreeMap<PathBuf, Vec<u8>>| {
            let file = |(path, content): (&PathBuf, &Vec<u8>)| {
                // Paths come from text.
                json!({ "path": path.to_string_lossy(), "content": encoded(content) })
            };
            contents.iter().map(file).collect::<Vec<_>>()
        };
        let development = self.development.as_ref();
        let development = development.map(|(place, pem)| json!({ "place": place, "content": encoded(pem) }));
        json!({ "files": list(&self.contents), "ordered": list(&self.ordered), "development": development })
    }

    /// None for another value.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let content = |value: &Value| Base64::decode_vec(value["content"].as_str()?).ok();
        let list = |key: &str| {
            let file = |file: &Value| Some((PathBuf::from(file["path"].as_str()?), content(file)?));
            value[key].as_array().map_or(Some(BTreeMap::new()), |list| list.iter().map(file).collect())
        };
        value["files"].as_array()?;
        let mut files = Self { contents: list("files")?, ordered: list("ordered")?, development: None };
        if let Some(place) = value["development"]["place"].as_str() {
            files.development = Some((place.to_owned(), content(&value["development"])?));
        }
        Some(files)
    }
}

/// Another authority, or a profile of shorter certificates, may change one of both.
fn is_older(new: &Held, old: &Held) -> bool {
    new.not_before < old.not_before && new.not_after < old.not_after
}

/// The reason why a file has not been read.
#[derive(Debug)]
struct Unread {
    bad: BadValue,
    /// Whether this user may not read the file.
    denied: bool,
}

impl From<BadValue> for Unread {
    fn from(bad: BadValue) -> Self {
        Self { bad, denied: false }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Unread> {
    let shown = path.display();
    if let Ok(found) = fs::metadata(path) {
        if !found.is_file() {
            return Err(BadValue::new(format!("{shown} is no file"), "name the file itself").into());
        }
        if found.len() > MAX_FILE {
            let what = format!("the file {shown} has {} bytes, and at most {MAX_FILE} are read", found.len());
            return Err(BadValue::new(what, "name the file itself, not a bundle of other things").into());
        }
    }
    fs::read(path).map_err(|error| {
        let denied = error.kind() == ErrorKind::PermissionDenied;
        let bad = match error.kind() {
            ErrorKind::NotFound => BadValue::new(format!("there is no file {shown}"), correct(path)),
            _ if denied => BadValue::new(
                format!("user {} may not read the file {shown}", shown_user(maitred_control::local::user())),
                "start the server as root with --user, which reads it before, or let that user read it",
            ),
            _ => BadValue::new(
                format!("the file {shown} cannot be read: {error}"),
                "see what is wrong with it",
            ),
        };
        Unread { bad, denied }
    })
}

/// The state of a file, by which a replacement or a change is noticed: stat(2), which follows links.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    number: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// None if there is no file, or this user may not look.
    fn of(path: &Path) -> Option<Self> {
        let found = fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
            bytes: found.size(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// The states of all files of a configuration at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamps(BTreeMap<PathBuf, Option<Stamp>>);

impl Stamps {
    /// Looks at the files that the configuration names.
    pub fn of(config: &Config) -> Self {
        let ordered = acme::files(config).into_iter().map(|(_, path)| path);
        let paths = all(config).into_iter().map(|named| named.path.to_owned()).chain(ordered);
        Self(paths.map(|path| (path.clone(), Stamp::of(&path))).collect())
    }
}

#[cfg(test)]
mod tests {
    use maitred_server::tls::Identity;
    use tempfile::TempDir;

    use super::*;

    fn config(folder: &TempDir, names: &[&str]) -> Config {
        let mut config = Config::with_defaults();
        config.site.certificates = names.iter().map(|name| folder.path().join(name)).collect();
        config
    }

    #[test]
    fn files_are_handed_over_as_they_were_read() {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("a"), b"text\n").expect("written");
        fs::write(folder.path().join("b"), [0, 255, 13]).expect("written");
        let mut config = config(&folder, &["a", "b", "a"]);
        config.site.ocsp = vec![NO_FILE.into()];
        let mut files = Files::read(&config, &Origins::default(), None).expect("they are there");
        files.development = Some(("a place".to_owned(), b"secret".to_vec()));
        let [same, other] = ["c", "d"].map(|name| folder.path().join(name));
        fs::write(&same, "one").expect("written");
        files.ordered = [(same.clone(), b"one".to_vec()), (other.clone(), b"two".to_vec())].into();
        let files = files.handed();
        assert_eq!(
            (files.get(&same), files.get(&other)),
            (None, Some(&b"two"[..])),
            "of ACME the others alone"
        );
        let read = Files::from_json(&files.to_json()).expect("the same");
        assert_eq!(read, files);
        assert!(read.has_all(&config));
        assert_eq!(read.get(&folder.path().join("b")), Some(&[0, 255, 13][..]));
        assert!(!format!("{files:?}").contains("secret"));
        assert_eq!(Files::from_json(&Value::Null), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_with_its_key_and_a_remedy() {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("cert.pem"), b"x").expect("written");
        let error = |names: &[&str]| {
            let read = Files::read(&config(&folder, names), &Origins::default(), None);
            read.expect_err("none").to_string().replace(&*folder.path().to_string_lossy(), "")
        };
        assert_eq!(error(&["crt.pem"]), "--tls-cert: there is no file /crt.pem; did you mean /cert.pem?");
        assert_eq!(error(&["."]), "--tls-cert: /. is no file; name the file itself");
        let mut config = config(&folder, &["cert.pem"]);
        config.site.client_ca = vec![folder.path().join("ca.pem")];
        let error = Files::read(&config, &Origins::default(), None).expect_err("none").to_string();
        assert!(error.starts_with("--tls-client-ca: there is no file"), "{error}");
    }

    #[test]
    fn a_file_that_is_replaced_or_written_has_changed() {
        let folder = TempDir::new().expect("a folder");
        let (path, other) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, b"1").expect("written");
        let config = config(&folder, &["a"]);
        let before = Stamps::of(&config);
        assert_eq!(Stamps::of(&config), before);
        fs::write(&other, b"1").expect("written");
        fs::rename(&other, &path).expect("renamed");
        let after = Stamps::of(&config);
        assert_ne!(after, before);
        fs::remove_file(&path).expect("removed");
        assert_ne!(Stamps::of(&config), after);
    }

    #[test]
    fn only_a_better_certificate_replaces_the_known_one() {
        /// Seventy days ago.
        fn then() -> u64 {
            system_clock() - 70 * 24 * 60 * 60
        }
        /// 2020-09-13.
        fn long_ago() -> u64 {
            1_600_000_000
        }
        let folder = TempDir::new().expect("a folder");
        let mut config = Config::with_defaults();
        config.site.acme = crate::acme_values::Acme::On(None);
        config.acme.hosts = vec!["shop.example".parse().expect("a name")];
        config.acme.folder = Some(folder.path().to_owned());
        let path = acme::folder(&config).certificate("shop.example");
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        let made = |clock: fn() -> u64| {
            let (_, pem) = Identity::development(&["shop.example".to_owned()], clock).expect("made");
            format!("{}{}", pem.certificate, pem.key).into_bytes()
        };
        let completed = |known: &[u8]| {
            let known = Files { ordered: [(path.clone(), known.to_vec())].into(), ..Files::default() };
            let mut files = Files::default();
            files.complete(&config, Some(&known));
            files.ordered.remove(&path).expect("there always is one")
        };
        let own = made(system_clock);
        for broken in [made(long_ago), b"nothing".to_vec()] {
            fs::write(&path, broken).expect("written");
            assert_eq!(completed(&own), own);
        }
        let in_file = made(then);
        assert_ne!(completed(&in_file), in_file, "it would end soon");
        fs::write(&path, &in_file).expect("written");
        assert_eq!(completed(&own), in_file, "a self-signed one stands in");
        let held = |not_before, not_after| Held { id: None, not_before, not_after };
        assert!(is_older(&held(1, 5), &held(2, 6)), "a backup");
        assert!(!is_older(&held(3, 5), &held(2, 6)), "certificates may be shorter now");
    }
}
