//! Certificates by ACME: what the options mean together, for which names there are certificates, and where they lie.
//!
//! Promises: a fault that needs no authority to be seen is an error at the start, with its remedy. Leaves out: the orders.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use maitred_certificates::{ChallengeKind, ExternalAccount, Folder, Identifier, Wishes, is_public};
use maitred_control::local;
use maitred_server::HostPattern;

use crate::acme_values::{Acme, Challenge};
use crate::{Config, Origins, Problem, SiteConfig, Source, options};

/// The folder of root, and of a server that gives its rights up.
const OF_THE_SYSTEM: &str = "/var/lib/maitred/acme";

/// A name with a certificate by ACME.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The host, which may begin with `*.`, or the address.
    pub name: String,
    /// The host in whose table it is; none for the default host.
    pub host: Option<String>,
}

/// Whether any certificate is ordered.
pub fn is_on(config: &Config) -> bool {
    !named(config).is_empty() || asks_on_demand(config)
}

fn asks_on_demand(config: &Config) -> bool {
    config.site.acme != Acme::Off && !config.acme.on_demand.is_empty()
}

/// All names of hosts that have certificates by ACME, without those on demand.
pub fn named(config: &Config) -> Vec<Named> {
    if config.site.acme == Acme::Off && config.hosts.iter().all(|host| host.site.acme == Acme::Off) {
        return Vec::new();
    }
    let mut named: Vec<Named> = Vec::new();
    let mut seen = BTreeSet::new();
    for (host, _) in config.sites().filter(|(_, site)| is_wanted(site)) {
        let names = host.map_or(&config.acme.hosts, |host| &host.names);
        for name in names.iter().map(text).filter(|name| seen.insert(name.clone())) {
            named.push(Named { name, host: host.map(|host| host.name.clone()) });
        }
    }
    named
}

/// Whether the names of a host get certificates: one with certificates of its own needs none.
fn is_wanted(site: &SiteConfig) -> bool {
    site.acme != Acme::Off && site.certificates.is_empty()
}

/// The name as certificates have it: an address without brackets.
fn text(name: &HostPattern) -> String {
    name.to_string().trim_matches(['[', ']']).to_owned()
}

/// Whether a certificate of this name is ordered when a client asks for it.
pub fn is_on_demand(config: &Config, name: &str) -> bool {
    asks_on_demand(config) && maitred_certificates::is_on_demand(&config.acme.on_demand, name)
}

/// The names whose certificates are ordered from the start on.
pub fn ordered(config: &Config) -> Vec<String> {
    let named = named(config).into_iter().map(|named| named.name);
    named.filter(|name| why_not(config, name).is_none() && !is_pattern_on_demand(config, name)).collect()
}

/// The reason why the authority cannot certify this name; it keeps its self-signed certificate then.
pub fn why_not(config: &Config, name: &str) -> Option<&'static str> {
    let bare = name.trim_start_matches("*.");
    // An authority of one's own certifies what it likes.
    (bare.parse::<Identifier>().is_err() || config.acme.directory.is_public() && !is_public(bare))
        .then_some("no public authority certifies it, so it keeps a self-signed certificate")
}

pub(crate) fn is_pattern_on_demand(config: &Config, name: &str) -> bool {
    config.acme.on_demand.iter().any(|pattern| text(pattern) == name)
}

/// The files of certificates by ACME, each with its name: those of the hosts, of the patterns on demand, and of the names that came later.
pub(crate) fn files(config: &Config) -> Vec<(String, PathBuf)> {
    if !is_on(config) {
        return Vec::new();
    }
    let folder = folder(config);
    let mut names: Vec<String> = named(config).into_iter().map(|named| named.name).collect();
    if asks_on_demand(config) {
        names.extend(config.acme.on_demand.iter().map(text));
        names.extend(folder.names().into_iter().filter(|name| is_on_demand(config, name)));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.into_iter().map(|name| (name.clone(), folder.certificate(&name))).collect()
}

/// The folder of accounts and certificates.
pub fn folder(config: &Config) -> Folder {
    Folder::new(match &config.acme.folder {
        Some(path) => path.clone(),
        None => usual_folder(config),
    })
}

/// The folder without an option for it. It is the same before and behind the step at which rights are given up.
fn usual_folder(config: &Config) -> PathBuf {
    // An application may change variables later.
    static VARIABLES: OnceLock<[Option<PathBuf>; 3]> = OnceLock::new();
    let [state, data, home] = VARIABLES.get_or_init(|| {
        let variable =
            |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        [variable("STATE_DIRECTORY"), variable("XDG_DATA_HOME"), std::env::home_dir()]
    });
    usual(config.user.is_some() || local::user() == 0, state.as_deref(), data.as_deref(), home.as_deref())
}

fn usual(of_system: bool, state: Option<&Path>, data: Option<&Path>, home: Option<&Path>) -> PathBuf {
    if let Some(state) = state {
        // Several folders are separated by colons (systemd.exec(5)).
        let first = state.to_string_lossy();
        return Path::new(first.split(':').next().unwrap_or_default()).join("acme");
    }
    let own = data.map(Path::to_owned).or_else(|| Some(home?.join(".local/share")));
    match own.filter(|_| !of_system) {
        Some(own) => own.join("maitred/acme"),
        None => PathBuf::from(OF_THE_SYSTEM),
    }
}

/// `check --acme` without a value is about the certificates of the configuration, or of the names beside it.
pub(crate) fn ask_for(config: &mut Config) {
    if config.sites().all(|(_, site)| site.acme == Acme::Off) {
        config.site.acme = Acme::On(None);
    }
}

/// Without `listen` a server with certificates listens where browsers look for it. In development nothing is ordered.
pub(crate) fn settle(config: &mut Config, origins: &mut Origins) {
    if config.development.on {
        let hosts = config.hosts.iter_mut().map(|host| &mut host.site);
        std::iter::once(&mut config.site).chain(hosts).for_each(|site| site.acme = Acme::Off);
        return;
    }
    if !is_on(config) || *origins.of("listen") != Source::Default {
        return;
    }
    // A kernel without IPv6 has no such file.
    let all = if Path::new("/proc/net/if_inet6").exists() { "[::]" } else { "" };
    let both = [format!("https://{all}:443"), format!("http://{all}:80,redirect=https")];
    let set = options::find("listen").map(|option| option.set(config, &both));
    debug_assert!(matches!(set, Some(Ok(()))), "these are addresses");
    origins.set("listen", Source::Acme);
}

/// Checks the options together.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let wrong =
        |key: &str, what: String, remedy: &str| Err(Problem::new(origins.describe(key), what, remedy));
    let acme = &config.acme;
    let is_asked_for = config.sites().any(|(_, site)| site.acme != Acme::Off);
    let set = [
        ("acme-host", !acme.hosts.is_empty()),
        ("acme-on-demand", !acme.on_demand.is_empty()),
        ("acme-ask", acme.ask.is_some()),
    ];
    let is_off = config.site.acme == Acme::Off && !config.development.on;
    if let Some((key, _)) = set.into_iter().find(|(_, is_set)| *is_set && is_off) {
        let (what, remedy) = match is_asked_for {
            false => ("no certificates are ordered", "write --acme you@example.org, too, or leave it out"),
            true => (
                "acme stands in tables of hosts alone, and this belongs to the default host",
                "write acme above the tables, too, or leave this out",
            ),
        };
        return wrong(key, what.to_owned(), remedy);
    }
    if !is_asked_for {
        return Ok(());
    }
    if !acme.hosts.is_empty() && !config.site.certificates.is_empty() {
        let what = "the default host has a certificate (tls-cert), so none is ordered for it".to_owned();
        return wrong("acme-host", what, "leave one of them out, or give the name a table [host.\"NAME\"]");
    }
    let mut contacts = config.sites().filter_map(|(host, site)| match site.acme {
        Acme::On(Some(contact)) => Some((host.map(|host| host.name.clone()), contact)),
        _ => None,
    });
    if let Some((_, first)) = contacts.next()
        && let Some((host, other)) = contacts.find(|(_, contact)| *contact != first)
    {
        let what = format!("the address {other} is another one than {first}, and all names have one account");
        return Err(Problem::new(
            origins.describe_in(host.as_deref(), "acme"),
            what,
            "write one address, or on",
        ));
    }
    if !is_on(config) {
        let what = "there is no name to order a certificate for".to_owned();
        return wrong(
            "acme",
            what,
            "name the site, --host shop.example, or give it a table [host.\"shop.example\"]",
        );
    }
    if config.tls.development {
        let what = "certificates are ordered (acme), so none for development is made".to_owned();
        return wrong("tls", what, "leave one of them out");
    }
    if acme.ask.is_some() && acme.on_demand.is_empty() {
        let what = "no certificate is ordered on demand".to_owned();
        return wrong("acme-ask", what, "say for which names with --acme-on-demand, or leave it out");
    }
    let has_dns = acme.challenges.contains(&Challenge::Dns);
    if acme.challenges.is_empty() {
        return wrong("acme-challenge", "there is no challenge".to_owned(), "write http, tls-alpn or dns");
    }
    if has_dns && acme.hook.is_none() {
        let what = "nothing makes entries of the DNS".to_owned();
        return wrong(
            "acme-challenge",
            what,
            "name the program that does with --acme-hook, or leave dns out",
        );
    }
    if acme.hook.is_some() && !has_dns {
        let what = "no entry of the DNS is asked for".to_owned();
        return wrong("acme-hook", what, "write --acme-challenge dns, too, or leave it out");
    }
    for Named { name, host } in named(config) {
        if name.starts_with("*.") && !has_dns && !is_pattern_on_demand(config, &name) {
            let place = match &host {
                Some(host) => origins.describe_host(host, None),
                None => origins.describe("acme-host"),
            };
            let what =
                format!("a certificate for {name} needs an entry of the DNS (DNS-01), and nothing makes it");
            let remedy = "write --acme-challenge dns --acme-hook PROGRAM, or --acme-on-demand for single names, or acme = \"off\" for \
                          this host";
            return Err(Problem::new(place, what, remedy));
        }
    }
    if let Some(path) = &acme.authorities
        && !path.is_file()
    {
        let what = format!("there is no file {}", path.display());
        return wrong("acme-ca", what, &crate::problem::correct(path));
    }
    Ok(())
}

/// The wishes for an orderer; none if no certificate is ordered. Read while the process has the rights of the start, which the file of an
/// account elsewhere may need.
///
/// # Errors
/// The account elsewhere cannot be read.
pub fn wishes(config: &Config, origins: &Origins) -> Result<Option<Wishes>, Problem> {
    if !is_on(config) {
        return Ok(None);
    }
    Ok(wishes_again(config, external_account(config, origins)?))
}

/// The same, with the known account elsewhere: its file can perhaps be read at the start alone.
pub fn wishes_again(config: &Config, external_account: Option<ExternalAccount>) -> Option<Wishes> {
    if !is_on(config) {
        return None;
    }
    let acme = &config.acme;
    let contact = config.sites().find_map(|(_, site)| match site.acme {
        Acme::On(contact) => contact,
        Acme::Off => None,
    });
    let kind = |challenge: &Challenge| match challenge {
        Challenge::Http => ChallengeKind::Http01,
        Challenge::TlsAlpn => ChallengeKind::TlsAlpn01,
        Challenge::Dns => ChallengeKind::Dns01,
    };
    Some(Wishes {
        folder: folder(config),
        directory: acme.directory.url().to_owned(),
        authorities: acme.authorities.clone(),
        contact,
        external_account,
        profile: acme.profile.clone(),
        chain: acme.chain.clone(),
        challenges: acme.challenges.iter().map(kind).collect(),
        hook: acme.hook.clone(),
        names: ordered(config),
        on_demand: if asks_on_demand(config) { acme.on_demand.clone() } else { Vec::new() },
        ask: acme.ask.as_ref().map(ToString::to_string),
    })
}

/// The lines of the start about names that keep a self-signed certificate.
pub fn lines(config: &Config) -> Vec<String> {
    let named = named(config).into_iter();
    named
        .filter_map(|named| Some(format!("acme: {}: {}", named.name, why_not(config, &named.name)?)))
        .collect()
}

/// The account elsewhere.
///
/// # Errors
/// The file or the variable has none.
fn external_account(config: &Config, origins: &Origins) -> Result<Option<ExternalAccount>, Problem> {
    let Some(place) = &config.acme.external_account else { return Ok(None) };
    let wrong = |what: String| {
        let remedy = "write the number of the key, a colon and the key there, as the CA gives them";
        Problem::new(origins.describe("acme-eab"), what, remedy)
    };
    let shown = place.display();
    let text = match place.to_string_lossy().strip_prefix("env:") {
        Some(name) => std::env::var(name).map_err(|_| wrong(format!("the variable {name} is not set")))?,
        None => std::fs::read_to_string(place)
            .map_err(|error| wrong(format!("{shown} cannot be read: {error}")))?,
    };
    ExternalAccount::parse(&text).map(Some).ok_or_else(|| wrong(format!("{shown} has no key")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::renamed;
    use crate::sources::{self, Inputs, Loaded};

    fn loaded(line: &str) -> Loaded {
        loaded_in(Path::new("/nowhere"), &line.split(' ').collect::<Vec<_>>())
    }

    fn loaded_in(folder: &Path, arguments: &[&str]) -> Loaded {
        let inputs = Inputs {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: Vec::new(),
            folder: folder.into(),
            earlier: renamed::NAMES,
            files: None,
            workers: None,
            started_in: "/".into(),
        };
        sources::load(&inputs).expect("values")
    }

    fn checked(line: &str) -> Option<String> {
        let Loaded { config, origins, .. } = loaded(line);
        check(&config, &origins).err().map(|problem| problem.to_string())
    }

    #[test]
    fn a_site_with_certificates_listens_where_browsers_look() {
        let listen = |line: &str| {
            let config = loaded(line).config;
            config.listen.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ").replace("[::]", "")
        };
        assert_eq!(listen("app --acme a@b.org --host shop.org"), "https://:443 http://:80,redirect=https");
        assert_eq!(
            listen("app --acme a@b.org --acme-host shop.org"),
            "https://:443 http://:80,redirect=https"
        );
        assert_eq!(listen("app --acme a@b.org --host shop.org --listen :8443"), ":8443");
        assert_eq!(listen("app --host shop.org"), "shop.org:8000", "as in other servers");
        assert_eq!(listen("dev app --acme a@b.org --host shop.org"), "127.0.0.1:8000");
    }

    #[test]
    fn host_is_a_name_beside_acme_and_an_address_elsewhere() {
        let names = |line: &str| ordered(&loaded(line).config);
        assert_eq!(names("app --host a.org --acme a@b.org --host b.org"), ["a.org", "b.org"]);
        assert_eq!(names("app --acme on --acme-host 8.8.8.8 --host 127.0.0.1 --port 80"), ["8.8.8.8"]);
        let config = loaded("app --acme on --host a.org --host 0.0.0.0 --port 8443").config;
        assert_eq!(
            (ordered(&config), config.listen[0].to_string().as_str()),
            (vec!["a.org".to_owned()], "0.0.0.0:8443")
        );
    }

    #[test]
    fn names_that_no_public_authority_certifies_are_not_ordered() {
        let config = loaded(
            "app --acme on --host a.org --acme-host localhost --acme-host db.internal --acme-host 10.0.0.1",
        )
        .config;
        assert_eq!(ordered(&config), ["a.org"]);
        assert_eq!(named(&config).len(), 4);
        let config =
            loaded("app --acme on --acme-host db.internal --acme-directory https://ca.internal/dir").config;
        assert_eq!(ordered(&config), ["db.internal"]);
    }

    #[test]
    fn conflicting_options_are_refused() {
        for (line, error) in [
            ("app --acme on --host a.org", None),
            (
                "app --acme on",
                Some("--acme: there is no name to order a certificate for; name the site, --host"),
            ),
            (
                "app --acme-host a.org",
                Some("--acme-host: no certificates are ordered; write --acme you@example.org, too"),
            ),
            (
                "app --acme on --acme-host *.a.org",
                Some("--acme-host: a certificate for *.a.org needs an entry of the DNS (DNS-01)"),
            ),
            ("app --acme on --acme-host *.a.org --acme-on-demand *.a.org", None),
            ("app --acme on --acme-host *.a.org --acme-challenge dns --acme-hook /bin/true", None),
            (
                "app --acme on --host a.org --acme-challenge dns",
                Some("--acme-challenge: nothing makes entries of the DNS;"),
            ),
            (
                "app --acme on --host a.org --acme-hook x",
                Some("--acme-hook: no entry of the DNS is asked for;"),
            ),
            (
                "app --acme on --host a.org --acme-ask http://127.0.0.1/",
                Some("--acme-ask: no certificate is ordered on demand;"),
            ),
            (
                "app --acme on --host a.org --acme-ca /nowhere/ca.pem",
                Some("--acme-ca: there is no file /nowhere/ca.pem;"),
            ),
            ("app --acme on --host a.org --tls", Some("--tls: certificates are ordered (acme),")),
            (
                "app --acme on --host a.org --tls-cert x.pem",
                Some("--acme-host: the default host has a certificate (tls-cert),"),
            ),
        ] {
            compare(line, checked(line), error);
        }
    }

    #[test]
    fn options_that_no_host_uses_are_refused() {
        let folder = tempfile::TempDir::new().expect("a folder");
        for (top, host, error) in [
            ("", "acme = 'on'", None),
            ("acme = 'a@b.org'", "acme = 'on'", None),
            ("acme-host = 'b.org'", "acme = 'on'", Some("acme stands in tables of hosts alone")),
            ("acme-on-demand = '*.b.org'", "acme = 'on'", Some("acme stands in tables of hosts alone")),
            ("acme = 'a@b.org'", "acme = 'a@c.org'", Some("the address a@c.org is another one than a@b.org")),
        ] {
            let file = format!("{top}\n[host.'a.org']\nstatic = '/=.'\n{host}\n");
            std::fs::write(folder.path().join("maitred.toml"), &file).expect("written");
            let Loaded { config, origins, .. } = loaded_in(folder.path(), &[]);
            let found = check(&config, &origins).err().map(|problem| problem.to_string());
            compare(&file, found, error);
        }
    }

    fn compare(given: &str, found: Option<String>, error: Option<&str>) {
        match (found, error) {
            (None, None) => {}
            (Some(found), Some(error)) => assert!(found.contains(error), "{given}: {found}"),
            (found, _) => panic!("{given}: {found:?}"),
        }
    }

    #[test]
    fn the_folder_is_the_same_before_and_behind_the_end_of_roots_rights() {
        let path = Path::new;
        let usual = |of_system, state: Option<&str>, data: Option<&str>, home: Option<&str>| {
            usual(of_system, state.map(path), data.map(path), home.map(path)).display().to_string()
        };
        assert_eq!(usual(true, None, Some("/d"), Some("/h")), "/var/lib/maitred/acme");
        assert_eq!(usual(true, Some("/var/lib/app:/var/lib/b"), None, None), "/var/lib/app/acme");
        assert_eq!(usual(false, None, Some("/d"), Some("/h")), "/d/maitred/acme");
        assert_eq!(usual(false, None, None, Some("/h")), "/h/.local/share/maitred/acme");
        assert_eq!(usual(false, None, None, None), "/var/lib/maitred/acme");
    }

    #[test]
    fn names_on_demand_are_those_of_the_patterns() {
        let config = loaded("app --acme on --acme-on-demand *.shop.org --acme-on-demand www.org").config;
        for (name, is) in [
            ("a.shop.org", true),
            ("a.b.shop.org", false),
            ("www.org", true),
            ("shop.org", false),
            ("xshop.org", false),
            ("*.shop.org", false),
        ] {
            assert_eq!(is_on_demand(&config, name), is, "{name}");
        }
        assert!(is_on(&config) && ordered(&config).is_empty());
    }
}
