//! Certificates with their keys and OCSP responses, matched by position.

use std::fmt;
use std::path::{Path, PathBuf};

use maitred_certificates::Heard;
use maitred_server::HostPattern;
use maitred_server::tls::{Identity, IdentityError};

use super::files::{Files, NO_FILE, PASSWORDS};
use crate::{BadValue, Config, Origins, Problem, SiteConfig, acme};

/// The files of a certificate.
#[derive(Debug)]
struct Pair<'a> {
    certificate: &'a Path,
    /// The file of the key, which may be that of the certificate.
    key: &'a Path,
    ocsp: Option<&'a Path>,
}

/// End of the first line of a private key in PEM (RFC 7468 section 10).
const KEY_MARK: &[u8] = b"PRIVATE KEY-----";

/// All certificates of all hosts, those of the default host first, each with its file.
///
/// # Errors
/// A key is missing or does not fit, or a file has the wrong content.
pub(super) fn identities(
    config: &Config,
    origins: &Origins,
    files: &Files,
    heard: &Heard,
) -> Result<Vec<(Identity, String)>, Problem> {
    let mut identities = of_site(config, &config.site, None, origins, files)?;
    for host in &config.hosts {
        for (identity, shown) in of_site(config, &host.site, Some(&host.name), origins, files)? {
            let names: Vec<String> = host.names.iter().filter_map(server_name).collect();
            identities.push((identity.for_names(names), shown));
        }
    }
    for (name, path) in acme::files(config) {
        let pem = files.get(&path).unwrap_or_default();
        let identity = Identity::from_pem(pem, pem)
            .map_err(|error| problem(origins.describe("acme"), &path.display().to_string(), &error))?;
        let is_own = identity.info().certificate.is_self_signed;
        let shown = if is_own { format!("self-signed for {name}") } else { path.display().to_string() };
        let is_pattern = acme::is_pattern_on_demand(config, &name);
        let is_asked_for = is_own && (is_pattern || acme::is_on_demand(config, &name));
        let is_ordered = !is_pattern && acme::why_not(config, &name).is_none();
        let identity = if is_ordered { identity.ordered() } else { identity };
        let heard = heard.clone();
        let identity =
            if is_asked_for { identity.with_hearer(move |name| heard.note(name)) } else { identity };
        identities.push((identity, shown));
    }
    if let Some((shown, pem)) = &files.development {
        let identity = Identity::from_pem(pem, pem).map_err(|error| {
            let what = format!("the certificate for development ({shown}): {error}");
            Problem::new(origins.describe("tls"), what, "remove the file, so that another one is made")
        })?;
        identities.push((identity, shown.clone()));
    }
    Ok(identities)
}

/// A name of a host as clients ask for it in a handshake; none for an address, which clients do not ask for (RFC 6066 section 3).
pub(super) fn server_name(name: &HostPattern) -> Option<String> {
    let text = name.to_string();
    (!text.starts_with('[') && text.parse::<std::net::Ipv4Addr>().is_err()).then_some(text)
}

fn of_site(
    config: &Config,
    site: &SiteConfig,
    host: Option<&str>,
    origins: &Origins,
    files: &Files,
) -> Result<Vec<(Identity, String)>, Problem> {
    let place = |key: &str| origins.describe_in(host, key);
    let passwords = passwords(config, files);
    let content = |path: &Path| files.get(path).unwrap_or_default();
    let pairs = pairs(site, |path| content(path).windows(KEY_MARK.len()).any(|part| part == KEY_MARK))
        .map_err(|(key, bad)| bad.at(place(key)))?;
    let identity = |pair: Pair<'_>| {
        let Pair { certificate, key, ocsp } = pair;
        let shown = certificate.display().to_string();
        let identity = Identity::from_encrypted_pem(content(certificate), content(key), &passwords).map_err(
            |error| {
                if error == IdentityError::WrongPassword {
                    return problem(origins.describe(PASSWORDS), &key.display().to_string(), &error);
                }
                let (wrong, file) =
                    if is_about_key(&error) { ("tls-key", key) } else { ("tls-cert", certificate) };
                let wrong = if site.keys.is_empty() { "tls-cert" } else { wrong };
                let both = match error {
                    IdentityError::OtherKey(_) if key != certificate => format!(", for {shown}"),
                    _ => String::new(),
                };
                problem(place(wrong), &format!("{}{both}", file.display()), &error)
            },
        )?;
        let identity = match ocsp {
            None => identity,
            Some(path) => identity.with_ocsp(content(path).to_vec()).map_err(|error| {
                problem(place("tls-ocsp"), &format!("{}, for {shown}", path.display()), &error)
            })?,
        };
        Ok((identity, shown))
    };
    pairs.into_iter().map(identity).collect()
}

/// The passwords of encrypted keys: one in each line of the files, as nginx's `ssl_password_file` has them.
fn passwords<'a>(config: &Config, files: &'a Files) -> Vec<&'a [u8]> {
    let contents = config.tls.key_passwords.iter().filter_map(|path| files.get(path));
    let lines = contents.flat_map(|content| content.split(|byte| *byte == b'\n'));
    lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty()).collect()
}

fn is_about_key(error: &IdentityError) -> bool {
    use IdentityError::{CostlyEncryption, EncryptedKey, Key, KeyFile, NoKey, OtherKey, UnknownEncryption};
    let is_encrypted = matches!(error, EncryptedKey | UnknownEncryption(_) | CostlyEncryption(_));
    is_encrypted || matches!(error, KeyFile(_) | NoKey(_) | Key(_) | OtherKey(_))
}

/// The line about a file with the wrong content. The text of `error` has the remedy behind a semicolon.
pub(super) fn problem(place: String, file: &str, error: &dyn fmt::Display) -> Problem {
    let text = error.to_string();
    let (what, remedy) =
        text.split_once("; ").unwrap_or((&text, "see what the file is, or name another one"));
    Problem::new(place, format!("{file}: {what}"), remedy)
}

/// Matches certificates with keys and OCSP responses. As many keys as certificates are matched by position; fewer keys belong to the
/// certificates whose files have no key. An error has the key of the configuration that is wrong.
fn pairs(
    site: &SiteConfig,
    has_key: impl Fn(&Path) -> bool,
) -> Result<Vec<Pair<'_>>, (&'static str, BadValue)> {
    let SiteConfig { certificates, keys, ocsp, .. } = site;
    let counted = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    for (name, count, what, each) in
        [("tls-key", keys.len(), "key", "each key"), ("tls-ocsp", ocsp.len(), "OCSP response", "each")]
    {
        if count > certificates.len() {
            let certificates = counted(certificates.len(), "certificate");
            let what = format!("there are {} and {certificates} (tls-cert)", counted(count, what));
            let remedy = format!("give {each} its certificate, in the same position");
            return Err((name, BadValue::new(what, remedy)));
        }
    }
    let by_position = keys.len() == certificates.len();
    let mut own = keys.iter();
    let mut pairs = Vec::with_capacity(certificates.len());
    for (position, certificate) in certificates.iter().enumerate() {
        let key = if !by_position && has_key(certificate) { Some(certificate) } else { own.next() };
        let Some(key) = key else {
            let what =
                format!("{} has no private key in it, and there is none for it", certificate.display());
            return Err(("tls-cert", BadValue::new(what, "name the file of its key with tls-key")));
        };
        let ocsp = ocsp.get(position).filter(|path| path.as_os_str() != NO_FILE);
        pairs.push(Pair { certificate, key, ocsp: ocsp.map(PathBuf::as_path) });
    }
    match own.next() {
        None => Ok(pairs),
        Some(left) => {
            let what =
                format!("the key {} has no certificate: theirs are in the files of all", left.display());
            Err(("tls-key", BadValue::new(what, "leave it out, or name a key for each certificate")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(certificates: &[&str], keys: &[&str], ocsp: &[&str]) -> SiteConfig {
        let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect();
        SiteConfig {
            certificates: paths(certificates),
            keys: paths(keys),
            ocsp: paths(ocsp),
            ..Config::with_defaults().site
        }
    }

    /// Returns lines `certificate key ocsp`, or the error. Certificates with `both` in their names have their keys in their files.
    fn paired(certificates: &[&str], keys: &[&str], ocsp: &[&str]) -> Result<Vec<String>, String> {
        let site = site(certificates, keys, ocsp);
        let pairs = pairs(&site, |path| path.to_string_lossy().contains("both"));
        let shown = |Pair { certificate, key, ocsp }: Pair<'_>| {
            let ocsp = ocsp.map_or(String::new(), |ocsp| format!(" {}", ocsp.display()));
            format!("{} {}{ocsp}", certificate.display(), key.display())
        };
        pairs
            .map(|pairs| pairs.into_iter().map(shown).collect())
            .map_err(|(key, BadValue { what, remedy })| format!("{key}: {what}; {remedy}"))
    }

    #[test]
    fn keys_have_the_positions_of_their_certificates() {
        let ok = |lines: &[&str]| Ok(lines.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(paired(&["a", "b"], &["ka", "kb"], &["-", "ob"]), ok(&["a ka", "b kb ob"]));
        assert_eq!(paired(&["both"], &[], &[]), ok(&["both both"]));
        assert_eq!(paired(&["both", "b"], &["kb"], &["o"]), ok(&["both both o", "b kb"]));
        assert_eq!(paired(&["both"], &["k"], &[]), ok(&["both k"]), "what is said counts");
        assert_eq!(paired(&[], &[], &[]), Ok(Vec::new()));
    }

    #[test]
    fn errors_name_the_key_and_a_remedy() {
        for (certificates, keys, ocsp, line) in [
            (
                &["a"][..],
                &[][..],
                &[][..],
                "tls-cert: a has no private key in it, and there is none for it; name the file of its key with tls-key",
            ),
            (
                &["a"],
                &["k", "l"],
                &[],
                "tls-key: there are 2 keys and 1 certificate (tls-cert); give each key its certificate, in the same \
                 position",
            ),
            (
                &[],
                &[],
                &["o"],
                "tls-ocsp: there are 1 OCSP response and 0 certificates (tls-cert); give each its certificate, in the \
                 same position",
            ),
            (
                &["both", "both2"],
                &["k"],
                &[],
                "tls-key: the key k has no certificate: theirs are in the files of all; leave it out, or name a key for \
                 each certificate",
            ),
            (
                &["a", "b"],
                &["k"],
                &[],
                "tls-cert: b has no private key in it, and there is none for it; name the file of its key with tls-key",
            ),
        ] {
            assert_eq!(paired(certificates, keys, ocsp), Err(line.to_owned()));
        }
    }

    #[test]
    fn clients_ask_for_names_alone() {
        let name = |text: &str| server_name(&text.parse::<HostPattern>().expect(text));
        assert_eq!(name("*.Shop.example").as_deref(), Some("*.shop.example"));
        assert_eq!((name("192.0.2.7"), name("[2001:db8::7]")), (None, None));
    }
}
