//! TLS in the command: from options and files to the terms of the server, and to new terms when the files change.
//!
//! ```text
//! pairs.rs     certificates, keys and OCSP responses that belong together    development.rs  the certificate of --tls
//! files.rs     files and their contents                                      report.rs       lines about certificates
//! material.rs  terms, made of all this, and their handing over
//! ```
//! The protocol is in maitred-tls. Files are read before rights are given up (`--user`), and once for all workers.

mod development;
mod files;
mod material;
mod pairs;
mod report;

use maitred_server::listening::Address;

use crate::tls_values::{CLIENTS, ClientAuth};
use crate::{Config, HostConfig, Origins, Problem, SiteConfig, acme};

pub use files::Stamps;
use pairs::server_name;

pub use material::{From, Handed, Material};
pub use report::{changes, report, warnings};

/// Whether there is any certificate, or one is ordered.
pub fn is_on(config: &Config) -> bool {
    config.tls.development || certificates(config) > 0 || acme::is_on(config)
}

fn certificates(config: &Config) -> usize {
    let sites = std::iter::once(&config.site).chain(config.hosts.iter().map(|host| &host.site));
    sites.map(|site| site.certificates.len()).sum()
}

/// The paths of all files of TLS, which are read again when they change.
pub fn named_files(config: &Config) -> impl Iterator<Item = &std::path::Path> {
    files::all(config).into_iter().map(|named| named.path)
}

/// Checks the options of TLS together, without the files.
pub fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let wrong = |key: &str, what: &str, remedy: &str| Err(Problem::new(origins.describe(key), what, remedy));
    acme::check(config, origins)?;
    let tls = &config.tls;
    if tls.development && certificates(config) > 0 {
        return wrong(
            "tls",
            "there is a certificate (tls-cert), so none for development is made",
            "leave one of them out",
        );
    }
    if !is_on(config) {
        if let Some(listen) = config.listen.iter().find(|listen| listen.says_https()) {
            let what = format!("{listen} needs a certificate, and there is none");
            let remedy = "give one with --tls-cert and --tls-key, or --acme orders one, or --tls makes one for development";
            return wrong("listen", &what, remedy);
        }
        let alone = [
            ("tls-key", !config.site.keys.is_empty()),
            ("tls-key-password", !tls.key_passwords.is_empty()),
            ("tls-ocsp", !config.site.ocsp.is_empty()),
            ("tls-client-auth", config.site.client_auth != ClientAuth::None),
            ("tls-client-ca", !config.site.client_ca.is_empty()),
            ("tls-client-crl", !config.site.client_crl.is_empty()),
            ("tls-ticket-key", tls.ticket_key.is_some()),
        ];
        if let Some((key, _)) = alone.into_iter().find(|(_, is_set)| *is_set) {
            let remedy = "give one with --tls-cert and --tls-key, or leave this out";
            return wrong(key, "it says nothing without a certificate", remedy);
        }
    }
    for host in config.hosts.iter().filter(|host| host.site.certificates.is_empty()) {
        let alone = [("tls-key", &host.site.keys), ("tls-ocsp", &host.site.ocsp)];
        if let Some((key, _)) = alone.into_iter().find(|(_, files)| !files.is_empty()) {
            let place = origins.describe_host(&host.name, Some(key));
            let what = "it says nothing without a certificate";
            return Err(Problem::new(place, what, "give the host tls-cert, too"));
        }
    }
    for (host, site) in config.sites() {
        check_clients(config, origins, host, &site)?;
    }
    if !tls.tickets && tls.ticket_key.is_some() {
        return wrong("tls-ticket-key", "there are no tickets (tls-tickets is off)", "leave one of them out");
    }
    Ok(())
}

/// Checks the options for certificates of clients, of a host or the default host. `site` has the effective options of the host.
fn check_clients(
    config: &Config,
    origins: &Origins,
    host: Option<&HostConfig>,
    site: &SiteConfig,
) -> Result<(), Problem> {
    // An option of the default host may be meant for the other hosts.
    let is_own = |key: &str| host.is_none_or(|host| host.given.contains(key));
    let others_ask = host.is_none() && asks_clients(config);
    let wrong = |key: &str, what: &str, remedy: &str| {
        let place = host.map_or_else(
            || origins.describe(key),
            |host| origins.describe_host(&host.name, is_own(key).then_some(key)),
        );
        Err(Problem::new(place, what, remedy))
    };
    if let Some(key) = CLIENTS.into_iter().find(|key| host.is_some() && is_own(key)) {
        if !is_on(config) {
            let remedy = "give one with tls-cert and tls-key, or leave this out";
            return wrong(key, "it says nothing without a certificate", remedy);
        }
        let names = host.into_iter().flat_map(|host| &host.names);
        if names.clone().next().is_some() && names.filter_map(server_name).next().is_none() {
            let what = "its clients are not known by the handshake: they ask for an address, and name no server then";
            return wrong(key, what, "give the host a name, or write this above the first table");
        }
    }
    match site.client_auth {
        ClientAuth::None if others_ask => Ok(()),
        ClientAuth::None => {
            let lists = [("tls-client-ca", &site.client_ca), ("tls-client-crl", &site.client_crl)];
            match lists.into_iter().find(|(key, files)| !files.is_empty() && is_own(key)) {
                Some((key, _)) => wrong(
                    key,
                    "clients are not asked for certificates",
                    "set tls-client-auth to optional or required",
                ),
                None => Ok(()),
            }
        }
        ClientAuth::Optional | ClientAuth::Required if site.client_ca.is_empty() => {
            let remedy = "name the file with the certificates of those who sign them with --tls-client-ca";
            wrong("tls-client-auth", "nobody is known who signs certificates of clients", remedy)
        }
        ClientAuth::Optional | ClientAuth::Required => Ok(()),
    }
}

/// Whether clients of any host are asked for certificates.
pub(crate) fn asks_clients(config: &Config) -> bool {
    let own = config.hosts.iter().map(|host| host.site.client_auth);
    std::iter::once(config.site.client_auth).chain(own).any(|asked| asked != ClientAuth::None)
}

/// The scheme before the address of a listener in a start-up line.
pub fn scheme(address: &Address, is_tls: bool) -> &'static str {
    match (address, is_tls) {
        (_, true) => "https://",
        (Address::Tcp(_), false) => "http://",
        (Address::Unix(_), false) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::renamed;
    use crate::sources::{self, Inputs, Loaded};

    /// The error of `check`, or none.
    fn checked(arguments: &[&str]) -> Option<String> {
        let inputs = Inputs {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            folder: "/nowhere".into(),
            earlier: renamed::NAMES,
            files: None,
            workers: None,
            started_in: "/".into(),
        };
        let Loaded { config, origins, .. } = sources::load(&inputs).expect("values");
        check(&config, &origins).err().map(|problem| problem.to_string())
    }

    #[test]
    fn conflicting_options_are_refused() {
        for (line, error) in [
            ("--tls", None),
            ("--tls-cert a --tls-client-auth=required --tls-client-ca b --tls-client-crl c", None),
            (
                "--listen https://:1",
                Some("--listen: https://:1 needs a certificate, and there is none; give one with"),
            ),
            (
                "--tls --tls-cert a",
                Some("--tls: there is a certificate (tls-cert), so none for development is made;"),
            ),
            (
                "--tls-key a",
                Some("--tls-key: it says nothing without a certificate; give one with --tls-cert"),
            ),
            ("--tls-client-auth required", Some("--tls-client-auth: it says nothing without a certificate;")),
            (
                "--tls --tls-client-auth optional",
                Some("--tls-client-auth: nobody is known who signs certificates of clients; name the file"),
            ),
            (
                "--tls --tls-client-ca a",
                Some(
                    "--tls-client-ca: clients are not asked for certificates; set tls-client-auth to optional or",
                ),
            ),
            ("--tls --tls-client-crl a", Some("--tls-client-crl: clients are not asked for certificates;")),
            (
                "--tls --no-tls-tickets --tls-ticket-key a",
                Some("--tls-ticket-key: there are no tickets (tls-tickets is off); leave one of them out"),
            ),
        ] {
            let found = checked(&line.split(' ').collect::<Vec<_>>());
            match (found, error) {
                (None, None) => {}
                (Some(found), Some(error)) => assert!(found.starts_with(error), "{line}: {found}"),
                (found, _) => panic!("{line}: {found:?}"),
            }
        }
    }
}
