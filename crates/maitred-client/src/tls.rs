//! Terms of TLS by identity: the files of an identity are read, and the terms are kept with their tickets.
//!
//! A look at the files' times comes before each handshake: a renewed certificate is used from the next connection on.
//!
//! Leaves out: sessions ([`Stream`](crate::stream)); certificates that are revoked.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use maitred_tls::{Identity, IdentityError, OutgoingSettings, OutgoingTerms};

use crate::key::{Authorities, ClientCertificate, TlsIdentity};

/// The most identities whose terms are kept. Source: a program has one, or one for each of its clients with a certificate.
const MOST: usize = 64;

/// The bundles of the usual systems: Debian, Red Hat, SUSE, Alpine and OpenBSD, CentOS.
const BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// The folders of the usual systems.
const FOLDERS: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// A larger file is no bundle of authorities.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// Checks that all files of `identity` can be read and belong together.
///
/// # Errors
/// The file that cannot be used, the reason, and the remedy.
pub fn check(identity: &TlsIdentity) -> Result<(), String> {
    terms(identity).map(|_| ())
}

/// Whether the system has authorities at one of the usual places, or a variable names some.
pub fn has_system_authorities() -> bool {
    of_system(|name| env::var_os(name)).iter().any(|path| path.exists())
}

/// The terms of `identity`.
pub(crate) fn terms(identity: &TlsIdentity) -> Result<OutgoingTerms, String> {
    let process = std::process::id();
    let files = Files::of(identity, |name| env::var_os(name));
    let known = KNOWN.load_full();
    let present = known.as_ref().filter(|known| known.process == process);
    let kept = present.and_then(|known| known.terms.get(identity)).filter(|kept| kept.files == files);
    if let Some(kept) = kept {
        return Ok(kept.terms.clone());
    }
    let kept = Kept { terms: read(identity, &files)?, files };
    let terms = kept.terms.clone();
    KNOWN.rcu(|known| {
        let mut terms = match known {
            Some(known) if known.process == process && known.terms.len() < MOST => known.terms.clone(),
            // The tickets of a parent process are never freed: another thread may have been changing them at the fork.
            Some(known) if known.process != process => {
                std::mem::forget(Arc::clone(known));
                HashMap::new()
            }
            _ => HashMap::new(),
        };
        terms.insert(identity.clone(), kept.clone());
        Some(Arc::new(Known { process, terms }))
    });
    Ok(terms)
}

/// Without a lock: a child process could not take one that a thread of its parent held.
static KNOWN: ArcSwapOption<Known> = ArcSwapOption::const_empty();

struct Known {
    process: u32,
    terms: HashMap<TlsIdentity, Kept>,
}

#[derive(Clone)]
struct Kept {
    files: Files,
    terms: OutgoingTerms,
}

/// The files of an identity and their versions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Files {
    authorities: Vec<(PathBuf, Option<Version>)>,
    own: Vec<(PathBuf, Option<Version>)>,
}

/// Time, length and number of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    changed: (i64, i64),
    length: u64,
    number: u64,
}

impl Files {
    fn of(identity: &TlsIdentity, variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let authorities = match &identity.authorities {
            _ if !identity.verify => Vec::new(),
            Authorities::System => of_system(variable),
            Authorities::At(path) => vec![path.clone()],
            Authorities::Pem(_) => Vec::new(),
        };
        let own = identity.certificate.iter().flat_map(|own| [Some(&own.certificate), own.key.as_ref()]);
        Self {
            authorities: authorities.into_iter().map(with_version).collect(),
            own: own.flatten().cloned().map(with_version).collect(),
        }
    }
}

fn with_version(path: PathBuf) -> (PathBuf, Option<Version>) {
    let version = fs::metadata(&path).ok().map(|file| Version {
        changed: (file.mtime(), file.mtime_nsec()),
        length: file.len(),
        number: file.ino(),
    });
    (path, version)
}

/// The places of the system's authorities: those of the variables that OpenSSL knows, else the first one that exists.
fn of_system(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let file = set("SSL_CERT_FILE").map(PathBuf::from);
    let folders = set("SSL_CERT_DIR").map(|folders| env::split_paths(&folders).collect::<Vec<_>>());
    if file.is_some() || folders.is_some() {
        return file.into_iter().chain(folders.into_iter().flatten()).collect();
    }
    BUNDLES.into_iter().chain(FOLDERS).map(PathBuf::from).find(|path| path.exists()).into_iter().collect()
}

fn read(identity: &TlsIdentity, files: &Files) -> Result<OutgoingTerms, String> {
    let own = identity.certificate.as_ref().map(own).transpose()?;
    OutgoingTerms::new(OutgoingSettings {
        authorities: if identity.verify { Some(authorities(identity, files)?) } else { None },
        identity: own.as_ref(),
        protocols: identity.protocols.iter().map(|name| name.as_bytes().to_vec()).collect(),
        ..OutgoingSettings::default()
    })
}

fn authorities(identity: &TlsIdentity, files: &Files) -> Result<maitred_tls::Authorities, String> {
    let mut authorities = maitred_tls::Authorities::default();
    match &identity.authorities {
        Authorities::Pem(pem) if authorities.add(&pem.0) == 0 => {
            return Err("the authorities that are given have no certificate of one, in PEM".to_owned());
        }
        Authorities::Pem(_) => {}
        Authorities::At(path) => match add(&mut authorities, path) {
            Ok(0) => return Err(format!("{}: it has no certificate of an authority in PEM", path.display())),
            Ok(_) => {}
            Err(error) => {
                return Err(format!("{}: the authorities cannot be read: {error}", path.display()));
            }
        },
        Authorities::System => {
            let paths = files.authorities.iter().map(|(path, _)| path);
            // One place that cannot be read is no fault if another one has authorities.
            if paths.clone().map(|path| add(&mut authorities, path).unwrap_or(0)).sum::<usize>() == 0 {
                let looked: Vec<_> = paths.map(|path| path.display().to_string()).collect();
                return Err(no_authorities(&looked));
            }
        }
    }
    Ok(authorities)
}

fn no_authorities(looked: &[String]) -> String {
    let place = match looked {
        [] => "at none of the usual places".to_owned(),
        places => format!("in {}", places.join(", ")),
    };
    format!(
        "no authorities for certificates are found {place}: install the package ca-certificates, set SSL_CERT_FILE to a bundle in PEM, or give the authorities"
    )
}

/// Adds the certificates in a file, or in the files of a folder: how many.
fn add(authorities: &mut maitred_tls::Authorities, path: &Path) -> std::io::Result<usize> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(authorities.add(&content(path)?));
    }
    let mut count = 0;
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_file() {
            count += content(&path).map_or(0, |file| authorities.add(&file));
        }
    }
    Ok(count)
}

fn content(path: &Path) -> std::io::Result<Vec<u8>> {
    let length = fs::metadata(path)?.len();
    if length > MAX_FILE {
        return Err(std::io::Error::other(format!(
            "it has {length} bytes, more than a bundle of authorities"
        )));
    }
    fs::read(path)
}

fn own(own: &ClientCertificate) -> Result<Identity, String> {
    let read = |path: &Path, what: &str| {
        content(path).map_err(|error| format!("{}: the {what} cannot be read: {error}", path.display()))
    };
    let certificate = read(&own.certificate, "certificate of the client")?;
    let key_path = own.key.as_deref().unwrap_or(&own.certificate);
    let key = read(key_path, "key of the client")?;
    let password: Vec<&[u8]> = own.password.iter().map(|password| password.as_bytes()).collect();
    Identity::from_encrypted_pem(&certificate, &key, &password).map_err(|error| match error {
        IdentityError::EncryptedKey => {
            format!("{}: the key is encrypted, and there is no password for it; give one", key_path.display())
        }
        IdentityError::WrongPassword => {
            format!("{}: the key is encrypted, and the password does not open it", key_path.display())
        }
        IdentityError::NoKey(_) | IdentityError::KeyFile(_) | IdentityError::Key(_) => {
            format!("{}: {error}", key_path.display())
        }
        _ => format!("{}: {error}", own.certificate.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system(variables: &[(&str, &str)]) -> Files {
        Files::of(&TlsIdentity::default(), |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into())
        })
    }

    fn authorities_of(variables: &[(&str, &str)]) -> Result<(), String> {
        authorities(&TlsIdentity::default(), &system(variables)).map(|_| ())
    }

    #[test]
    fn the_variables_of_the_system_name_its_authorities() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (own, empty, missing) = (path("own.pem"), path("empty"), path("missing.pem"));
        fs::create_dir(&empty).expect("a folder");
        let made =
            Identity::development(&["a.example".to_owned()], maitred_tls::system_clock).expect("made").1;
        fs::write(&own, made.certificate).expect("written");
        assert_eq!(authorities_of(&[("SSL_CERT_FILE", &own)]), Ok(()));
        assert_eq!(authorities_of(&[("SSL_CERT_DIR", &format!("{empty}:{}", path("")))]), Ok(()));
        assert_eq!(authorities_of(&[("SSL_CERT_FILE", &missing), ("SSL_CERT_DIR", &path(""))]), Ok(()));
        for variables in [[("SSL_CERT_FILE", &*missing)], [("SSL_CERT_DIR", &*empty)]] {
            let error = authorities_of(&variables).expect_err("none");
            let [(_, place)] = variables;
            assert!(error.contains(place) && error.contains("set SSL_CERT_FILE"), "{error}");
        }
        assert_eq!(system(&[("SSL_CERT_FILE", ""), ("SSL_CERT_DIR", "")]), system(&[]));
    }

    #[test]
    fn a_file_that_has_changed_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("ca.pem");
        let identity = TlsIdentity { authorities: Authorities::At(path.clone()), ..TlsIdentity::default() };
        let mut seen = vec![Files::of(&identity, |_| None)];
        for content in ["a", "ab"] {
            fs::write(&path, content).expect("written");
            let files = Files::of(&identity, |_| None);
            assert_eq!(files, Files::of(&identity, |_| None));
            assert!(!seen.contains(&files));
            seen.push(files);
        }
    }
}
