//! The terms of TLS, made of the configuration and its files, and their handing over to other processes.
//!
//! ```text
//! the first process    files --read--> Material          before rights are given up
//! a worker             Handed ------> Material           since a worker may not be able to read the files
//! a new program        files, or Handed for unreadable ones --> Material
//! ```
//! Promises: all processes of a server have the same secret of tickets, and so has a new program that takes over.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64ct::{Base64, Encoding};
use maitred_certificates::Heard;
use maitred_match::HostTable;
use maitred_server::tls::{
    ClientPolicy, HostClients, IdentityInfo, Terms, TermsError, TermsSettings, TicketSecret, Tickets, Trust,
    TrustError, system_clock,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::files::Files;
use super::{development, is_on, pairs};
use crate::tls_values as values;
use crate::{Config, Origins, Problem, SiteConfig, http2};

/// See the module text.
#[derive(Debug)]
pub struct Material {
    pub(super) files: Files,
    /// The terms of the handshake.
    pub terms: Arc<Terms>,
    /// The file of each certificate, in the order of the terms.
    pub places: Vec<String>,
    pub(super) lists: Vec<ListEnd>,
    tickets: Option<Tickets>,
    /// The names on demand that clients have asked for.
    pub heard: Heard,
}

impl PartialEq for Material {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Eq for Material {}

/// Files and secret from another process.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Value", try_from = "Value")]
pub struct Handed {
    files: Files,
    /// The secret of tickets, if there are tickets and no file has the secret.
    secret: Option<Vec<u8>>,
}

/// The source of the files.
#[derive(Clone, Copy)]
pub enum From<'a> {
    /// The files themselves.
    Disk,
    /// Files that this process may not read are taken from another process.
    DiskOr(Option<&'a Handed>),
    /// Another process, which has read all files.
    Handed(&'a Handed),
}

impl Material {
    /// Makes the material of the configuration; none without a certificate.
    ///
    /// # Errors
    /// A file cannot be read, or has the wrong content.
    pub fn read(config: &Config, origins: &Origins, from: From<'_>) -> Result<Option<Arc<Self>>, Problem> {
        if !is_on(config) {
            return Ok(None);
        }
        let handed = match from {
            From::Disk => None,
            From::DiskOr(handed) => handed,
            From::Handed(handed) => Some(handed),
        };
        let kept = handed.map(|handed| &handed.files);
        let mut files = match from {
            // Some are missing only if the other process has another configuration.
            From::Handed(handed) if handed.files.has_all(config) => handed.files.clone(),
            _ => {
                let mut files = Files::read(config, origins, kept)?;
                if config.tls.development {
                    let earlier = kept.and_then(|kept| kept.development.clone());
                    files.development = Some(match earlier {
                        Some(earlier) => earlier,
                        None => development::find(&origins.describe("tls"))?,
                    });
                }
                files
            }
        };
        files.complete(config, kept);
        let secret = handed.and_then(|handed| handed.secret.as_deref()?.first_chunk());
        let tickets = match secret.map(TicketSecret::from_bytes) {
            _ if !config.tls.tickets => None,
            Some(secret) => Some(Tickets::from_secret(&secret, system_clock)),
            None => Some(random(origins)?),
        };
        Self::make(config, origins, files, tickets, Heard::default()).map(Arc::new).map(Some)
    }

    /// Makes the material again from the current files. Clients can resume earlier sessions, and the certificate for development stays.
    ///
    /// # Errors
    /// As of [`read`](Self::read); this material stays valid.
    pub fn again(&self, config: &Config, origins: &Origins) -> Result<Arc<Self>, Problem> {
        let mut files = Files::read(config, origins, None)?;
        if config.tls.development {
            files.development = Some(match &self.files.development {
                Some(known) => known.clone(),
                None => development::find(&origins.describe("tls"))?,
            });
        }
        files.complete(config, Some(&self.files));
        let tickets = match &self.tickets {
            _ if !config.tls.tickets => None,
            Some(tickets) => Some(tickets.clone()),
            None => Some(random(origins)?),
        };
        Self::make(config, origins, files, tickets, self.heard.clone()).map(Arc::new)
    }

    /// Makes the material again with other settings and the known files; none if a file is not known.
    pub fn as_before(&self, config: &Config, origins: &Origins) -> Option<Arc<Self>> {
        let has_all =
            self.files.has_all(config) && (!config.tls.development || self.files.development.is_some());
        let tickets = self.tickets.clone().filter(|_| config.tls.tickets);
        let mut files = self.files.clone();
        files.complete(config, Some(&self.files));
        let made = has_all.then(|| Self::make(config, origins, files, tickets, self.heard.clone()).ok());
        made.flatten().map(Arc::new)
    }

    fn make(
        config: &Config,
        origins: &Origins,
        files: Files,
        tickets: Option<Tickets>,
        heard: Heard,
    ) -> Result<Self, Problem> {
        let (identities, places): (Vec<_>, Vec<_>) =
            pairs::identities(config, origins, &files, &heard)?.into_iter().unzip();
        // Tickets of a key file are not kept: the file may change later.
        let of_file = match &config.tls.ticket_key {
            Some(path) => {
                let content = files.get(path).unwrap_or_default();
                let place = || origins.describe("tls-ticket-key");
                let of_file = Tickets::from_key_file(content, system_clock)
                    .map_err(|error| pairs::problem(place(), &path.display().to_string(), &error))?;
                Some(of_file)
            }
            None => None,
        };
        let (clients, hosts, lists) = clients(config, origins, &files)?;
        let settings = TermsSettings {
            identities,
            unknown_name: config.tls.unknown_name,
            clients,
            hosts,
            tickets: of_file.or_else(|| tickets.clone()),
            minimum: config.tls.min_version,
            alpn: http2::protocols(config),
            clock: system_clock,
        };
        let terms = Terms::new(settings).map_err(|error| {
            let key = if matches!(error, TermsError::Clients(_)) { "tls-client-ca" } else { "tls-cert" };
            pairs::problem(origins.describe(key), "the terms of TLS", &error)
        })?;
        Ok(Self { files, terms, places, lists, tickets, heard })
    }

    /// The files and the secret, from which another process makes the same material.
    pub fn handed(&self) -> Handed {
        let secret = self.tickets.as_ref().map(|tickets| tickets.secret().to_bytes().to_vec());
        Handed { files: self.files.clone().handed(), secret }
    }

    /// Whether the files are readable and have other contents now.
    pub fn differs_from_files(&self, config: &Config, origins: &Origins) -> bool {
        Files::read(config, origins, None).is_ok_and(|mut files| {
            files.complete(config, Some(&self.files));
            !files.is_same(&self.files)
        })
    }

    /// The certificates, each with its file.
    pub fn certificates(&self) -> impl Iterator<Item = (&IdentityInfo, &str)> {
        self.terms.identities().iter().zip(self.places.iter().map(String::as_str))
    }

    /// The line about the certificate for development, if there is one.
    pub fn development_line(&self) -> Option<String> {
        let (place, _) = self.files.development.as_ref()?;
        let print = &self.terms.identities().first()?.certificate.fingerprint;
        Some(format!(
            "a certificate for development, {place}: browsers ask once whether to trust it (SHA-256 {print})"
        ))
    }
}

fn random(origins: &Origins) -> Result<Tickets, Problem> {
    Tickets::random(system_clock)
        .map_err(|error| pairs::problem(origins.describe("tls-tickets"), "the keys of tickets", &error))
}

/// The file of a list of revoked certificates, and the end of its validity in seconds since 1970.
pub(super) type ListEnd = (String, u64);

/// Returns the policies for certificates of clients, of the default host and of the others, and the ends of lists of revoked certificates.
fn clients(
    config: &Config,
    origins: &Origins,
    files: &Files,
) -> Result<(ClientPolicy, HostClients, Vec<ListEnd>), Problem> {
    let mut lists = Vec::new();
    let default = policy(&config.site, None, origins, files, &mut lists)?;
    let mut hosts = HostClients::default();
    let mut table = HostTable::default();
    // Thousands of hosts may have the same files, which are parsed once.
    let mut known: HashMap<ClientKeys, u16> = HashMap::new();
    for (number, host) in (1..).zip(&config.hosts) {
        for name in &host.names {
            table.insert(name, number);
        }
        let mut own = 0;
        if values::CLIENTS.into_iter().any(|key| host.given.contains(key)) {
            let site = host.effective(&config.site);
            let keys = (site.client_auth as u8, site.client_ca.clone(), site.client_crl.clone());
            own = match known.get(&keys) {
                Some(own) => *own,
                None => {
                    hosts.policies.push(policy(&site, Some(&host.name), origins, files, &mut lists)?);
                    let own = u16::try_from(hosts.policies.len()).unwrap_or(u16::MAX);
                    known.insert(keys, own);
                    own
                }
            };
        }
        hosts.of_hosts.resize(usize::from(number), 0);
        hosts.of_hosts.push(own);
    }
    if !hosts.policies.is_empty() {
        hosts.find = Some(Arc::new(move |name| table.find(name.as_bytes()).unwrap_or_default()));
    }
    lists.sort();
    lists.dedup();
    Ok((default, hosts, lists))
}

/// The options of a policy: hosts with the same ones share a policy.
type ClientKeys = (u8, Vec<PathBuf>, Vec<PathBuf>);

fn policy(
    site: &SiteConfig,
    host: Option<&str>,
    origins: &Origins,
    files: &Files,
    lists: &mut Vec<ListEnd>,
) -> Result<ClientPolicy, Problem> {
    let mut trust = Trust::default();
    let problem = |key: &str, path: &Path, error: TrustError| {
        pairs::problem(origins.describe_in(host, key), &path.display().to_string(), &error)
    };
    let content = |path: &Path| files.get(path).unwrap_or_default();
    if site.client_auth == values::ClientAuth::None {
        // The files are for other hosts, which take them from the default host.
        return Ok(ClientPolicy::None);
    }
    for path in &site.client_ca {
        trust.add_authorities(content(path)).map_err(|error| problem("tls-client-ca", path, error))?;
    }
    for path in &site.client_crl {
        let known = trust.crls().len();
        trust.add_crls(content(path)).map_err(|error| problem("tls-client-crl", path, error))?;
        let shown = path.display().to_string();
        lists.extend(trust.crls().iter().skip(known).map(|list| (shown.clone(), list.next_update)));
    }
    Ok(match site.client_auth {
        values::ClientAuth::None => ClientPolicy::None,
        values::ClientAuth::Optional => ClientPolicy::Optional(trust),
        values::ClientAuth::Required => ClientPolicy::Required(trust),
    })
}

impl fmt::Debug for Handed {
    /// Leaves the secret out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handed").field("files", &self.files).finish_non_exhaustive()
    }
}

impl std::convert::From<Handed> for Value {
    fn from(Handed { files, secret }: Handed) -> Self {
        let mut value = files.to_json();
        value["tickets"] = json!(secret.as_deref().map(Base64::encode_string));
        value
    }
}

impl TryFrom<Value> for Handed {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let secret = value["tickets"].as_str().and_then(|text| Base64::decode_vec(text).ok());
        Ok(Self { files: Files::from_json(&value).ok_or("no files of TLS")?, secret })
    }
}

#[cfg(test)]
mod tests {
    use maitred_server::tls::Identity;

    use super::*;

    /// A configuration with a certificate, whose files are in the folder.
    fn config(folder: &Path) -> Config {
        let (_, pem) = Identity::development(&["localhost".to_owned()], system_clock).expect("made");
        let mut config = Config::with_defaults();
        config.site.certificates = vec![folder.join("cert.pem")];
        config.site.keys = vec![folder.join("key.pem")];
        std::fs::write(&config.site.certificates[0], pem.certificate).expect("written");
        std::fs::write(&config.site.keys[0], pem.key).expect("written");
        config
    }

    fn read(config: &Config, from: From<'_>) -> Result<Arc<Material>, Problem> {
        Material::read(config, &Origins::default(), from)
            .map(|material| material.expect("there is a certificate"))
    }

    #[test]
    fn another_process_makes_the_same_of_what_it_is_handed() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let config = config(folder.path());
        let first = read(&config, From::Disk).expect("valid");
        let handed = Handed::try_from(Value::from(first.handed())).expect("the same");
        assert_eq!(handed, first.handed());
        assert!(!format!("{handed:?}").contains("secret"));
        std::fs::remove_file(&config.site.keys[0]).expect("removed");
        let other = read(&config, From::Handed(&handed)).expect("it has all");
        assert_eq!(other.terms.identities(), first.terms.identities());
        assert_eq!(other.handed(), handed, "the secret of tickets too");
        // A missing file is an error even if it was handed over: only an unreadable one is taken from there.
        assert!(read(&config, From::DiskOr(Some(&handed))).is_err());
        assert!(Handed::try_from(Value::Null).is_err());
    }

    #[test]
    fn material_that_is_made_again_resumes_the_same_sessions() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let mut config = config(folder.path());
        let first = read(&config, From::Disk).expect("valid");
        let secret = first.handed().secret.expect("there are tickets");
        let again = first.again(&config, &Origins::default()).expect("valid");
        assert_eq!(again.handed().secret, Some(secret));
        config.tls.tickets = false;
        let off = again.again(&config, &Origins::default()).expect("valid");
        assert!(off.handed().secret.is_none() && !off.terms.has_tickets());
        std::fs::write(&config.site.keys[0], "no key").expect("written");
        let error = off.again(&config, &Origins::default()).expect_err("it is none").to_string();
        assert!(error.starts_with("--tls-key: ") && error.contains("key.pem: "), "{error}");
        // The known files are enough for other settings.
        assert!(off.as_before(&config, &Origins::default()).is_some());
        config.site.certificates.push(folder.path().join("another.pem"));
        assert!(off.as_before(&config, &Origins::default()).is_none());
    }
}
