//! Certificates by ACME in the process: the folder at the start, the orderer while it serves.
//!
//! ```text
//! as root      the folder is made, and given to the user
//! as the user  the folder is tried
//! serving      the orderer runs: in the supervisor, or in the only process
//! draining     the orderer ends
//! ```
//! Leaves out: how certificates come into handshakes (`tls_watch`).

use std::io::ErrorKind;
use std::sync::Arc;

use maitred_certificates::{Orderer, Wishes};
use maitred_config::accounts::shown_user;
use maitred_config::acme_values::AcmeConfig;
use maitred_config::{Config, Origins, Problem, acme};
use maitred_control::local;
use maitred_io::line_writer::give_folder;
use maitred_server::Log;
use maitred_server::rights::Identity;

/// The orderer of this process, if it is the one that orders.
#[derive(Default)]
pub(crate) struct Certificates {
    orderer: Option<Orderer>,
    wishes: Option<Wishes>,
    /// The options that the wishes are of.
    options: AcmeConfig,
}

/// Makes the folder for the user that the process becomes, before it does.
pub(crate) fn give(config: &Config, identity: &Identity) {
    if acme::is_on(config) {
        give_folder(acme::folder(config).path(), identity);
    }
}

/// Tries the folder. On a disk that is full or can only be read the known certificates are served, and the orderer says so.
///
/// # Errors
/// This user cannot use the folder.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    if !acme::is_on(config) {
        return Ok(());
    }
    let folder = acme::folder(config);
    let Err(error) = folder.check() else { return Ok(()) };
    if matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    ) {
        return Ok(());
    }
    let (user, shown) = (shown_user(local::user()), folder.path().display());
    Err(Problem::new(
        origins.describe("acme-folder"),
        format!("user {user} cannot use the folder {shown} for certificates: {error}"),
        format!(
            "make it for that user (chown -R {} {shown}), or name another one with --acme-folder",
            local::user()
        ),
    ))
}

impl Certificates {
    /// Begins to order, if anything is wished.
    pub(crate) fn begin(wishes: Option<Wishes>, config: &Config, log: &Arc<Log>) -> Self {
        let mut this = Self::default();
        this.set(wishes, config, log);
        this
    }

    /// Changes what is ordered.
    pub(crate) fn set(&mut self, wishes: Option<Wishes>, config: &Config, log: &Arc<Log>) {
        self.options = config.acme.clone();
        if wishes == self.wishes {
            return;
        }
        acme::lines(config).iter().for_each(|line| log.info(format_args!("{line}")));
        self.wishes.clone_from(&wishes);
        match (wishes, &self.orderer) {
            (None, _) => self.orderer = None,
            (Some(wishes), Some(orderer)) => orderer.set(wishes),
            (Some(wishes), None) => match Orderer::start(wishes, log) {
                Ok(orderer) => self.orderer = Some(orderer),
                Err(error) => {
                    log.error(format_args!("acme: no certificate is ordered, as there is no thread: {error}"))
                }
            },
        }
    }

    /// As [`set`](Self::set), by a configuration that was read again, if this process orders.
    pub(crate) fn read_again(&mut self, config: &Config, origins: &Origins, log: &Arc<Log>) {
        let wishes = self.next(config, origins).unwrap_or_else(|problem| {
            log.warn(format_args!("only a restart applies acme-eab: {problem}"));
            acme::wishes_again(config, None)
        });
        // A deploy without another wish is no reason to try again what has failed: authorities count failures.
        if let Some(wishes) = wishes.as_ref().filter(|_| wishes != self.wishes) {
            wishes.folder.hurry();
        }
        self.set(wishes, config, log);
    }

    /// The wishes of a configuration that was read again: perhaps the start alone could read the key of the account elsewhere.
    fn next(&self, config: &Config, origins: &Origins) -> Result<Option<Wishes>, Problem> {
        acme::wishes(config, origins).or_else(|problem| {
            let of = |options: &AcmeConfig| (options.directory.clone(), options.external_account.clone());
            let known = self.wishes.as_ref().and_then(|wishes| wishes.external_account.clone());
            let known = known.filter(|_| of(&self.options) == of(&config.acme)).ok_or(problem)?;
            Ok(acme::wishes_again(config, Some(known)))
        })
    }

    /// Ends the orderer, within a moment.
    pub(crate) fn end(&mut self) {
        self.orderer = None;
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use maitred_config::options;

    use super::*;

    #[test]
    fn a_reload_reads_the_account_elsewhere_and_keeps_the_known_one_for_the_same_authority_alone() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let file = folder.path().join("eab");
        let mut config = Config::with_defaults();
        let set = |config: &mut Config, key: &str, text: &str| {
            options::find(key).expect(key).set(config, &[text.to_owned()]).expect(text);
        };
        set(&mut config, "acme", "on");
        set(&mut config, "acme-host", "a.org");
        set(&mut config, "acme-eab", &file.to_string_lossy());
        let origins = Origins::default();
        fs::write(&file, "one:AAAA").expect("written");
        let wishes = acme::wishes(&config, &origins).expect("read");
        let before = Certificates { orderer: None, wishes, options: config.acme.clone() };
        let account = |config: &Config| {
            let next = before.next(config, &origins)?;
            Ok(next.and_then(|wishes| wishes.external_account).map(|account| account.kid))
        };
        let one = Ok::<_, Problem>(Some("one".to_owned()));
        assert_eq!(account(&config), one);
        fs::write(&file, "two:AAAA").expect("written");
        assert_eq!(account(&config), Ok(Some("two".to_owned())));
        fs::remove_file(&file).expect("removed");
        assert_eq!(account(&config), one, "it cannot be read any more");
        set(&mut config, "acme-directory", "https://ca.internal/dir");
        assert!(account(&config).expect_err("none").to_string().contains("acme-eab"));
    }
}
