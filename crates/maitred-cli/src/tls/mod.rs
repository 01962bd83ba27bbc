//! TLS as the command has it: from options and files to the terms of the server, and to others when the files are.
//!
//! ```text
//! pairs.rs     certificates, keys and OCSP responses that belong together    development.rs  the certificate of --tls
//! files.rs     files and what was in them                                    report.rs       what is told of certificates
//! material.rs  terms, made of all this; what other processes get of it       running.rs      those of a running server, loaded again
//! ```
//! How TLS is spoken says maitred-tls. Files are read before rights are given up (`--user`), and once for all workers.

mod development;
mod files;
mod material;
mod pairs;
mod report;
mod running;

use maitred_server::listening::Address;

use crate::config::Config;
use crate::origins::Origins;
use crate::problem::Problem;
use crate::tls_values::ClientAuth;

pub(crate) use files::Stamps;
pub(crate) use material::{From, Handed, Material};
pub(crate) use report::{report, warnings};
pub(crate) use running::Running;

/// Whether there is any certificate.
pub(crate) fn is_on(config: &Config) -> bool {
    config.tls.development || certificates(config) > 0
}

fn certificates(config: &Config) -> usize {
    let sites = std::iter::once(&config.site).chain(config.hosts.iter().map(|host| &host.site));
    sites.map(|site| site.certificates.len()).sum()
}

/// The files that are read again, with what the error of one that cannot be read would begin with.
pub(crate) fn named_files(config: &Config) -> impl Iterator<Item = &std::path::Path> {
    files::all(config).into_iter().map(|named| named.path)
}

/// Checks what no single option can know, without the files.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let wrong = |key: &str, what: &str, remedy: &str| Err(Problem::new(origins.describe(key), what, remedy));
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
            let remedy = "give one with --tls-cert and --tls-key, or --tls makes one for development";
            return wrong("listen", &what, remedy);
        }
        let alone = [
            ("tls-key", !config.site.keys.is_empty()),
            ("tls-key-password", !tls.key_passwords.is_empty()),
            ("tls-ocsp", !config.site.ocsp.is_empty()),
            ("tls-client-auth", tls.client_auth != ClientAuth::None),
            ("tls-client-ca", !tls.client_ca.is_empty()),
            ("tls-client-crl", !tls.client_crl.is_empty()),
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
    match (tls.client_auth, tls.client_ca.is_empty(), tls.client_crl.is_empty()) {
        (ClientAuth::None, true, true) | (ClientAuth::Optional | ClientAuth::Required, false, _) => {}
        (ClientAuth::None, false, _) => {
            return wrong(
                "tls-client-ca",
                "clients are not asked for certificates",
                "set tls-client-auth to optional or required",
            );
        }
        (ClientAuth::None, true, false) => {
            return wrong(
                "tls-client-crl",
                "clients are not asked for certificates",
                "set tls-client-auth to optional or required",
            );
        }
        (_, true, _) => {
            let remedy = "name the file with the certificates of those who sign them with --tls-client-ca";
            return wrong("tls-client-auth", "nobody is known who signs certificates of clients", remedy);
        }
    }
    if !tls.tickets && tls.ticket_key.is_some() {
        return wrong("tls-ticket-key", "there are no tickets (tls-tickets is off)", "leave one of them out");
    }
    Ok(())
}

/// What a start-up line says of a listener before and behind its address.
pub(crate) fn scheme(address: &Address, is_tls: bool) -> &'static str {
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
    fn what_does_not_go_together_is_told() {
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
