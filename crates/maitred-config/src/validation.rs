//! Checks over several options: whether they fit together, and fit this machine.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use maitred_certificates::Wishes;
use maitred_server::listening::Address;

use crate::mounted::MountedApplication;
use crate::problem::{correct, folder_of};
use crate::tls::{self, Material};
use crate::value::{Interface, Mount};
use crate::{
    BadValue, Config, ListenAddress, Origins, Problem, SiteConfig, Source, Wanted, development, env_file,
    error_page, logs, otlp_variables, pools, rights, tables,
};

/// The configuration as it applies to this machine, found while it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// One for each of `listen`, in the same order, until the sockets of a service manager are assigned.
    pub listeners: Vec<CheckedListener>,
    /// The hosts' applications and files, the default host first.
    pub sites: Vec<CheckedSite>,
    /// The user and group that the process becomes when it listens.
    pub wanted: Option<Wanted>,
    /// The variables of the `env-file`, in its order.
    pub environment: Vec<(String, String)>,
    /// The material of TLS, if there are certificates and their files have been read.
    pub tls: Option<Arc<Material>>,
    /// The certificates to order by ACME, in the process that orders.
    pub acme: Option<Wishes>,
}

impl Checked {
    /// All applications to be loaded.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.sites.iter().flat_map(|site| &site.programs)
    }

    /// The addresses to listen on. Sockets of a service manager are among them once they have been assigned.
    pub fn addresses(&self) -> Vec<Address> {
        self.listeners.iter().filter_map(|listener| listener.address.clone()).collect()
    }

    /// Whether no host serves anything.
    pub fn is_empty(&self) -> bool {
        self.sites.iter().all(|site| site.programs.is_empty() && site.mounts.is_empty())
    }
}

/// A listener of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedListener {
    /// The listener as it was written.
    pub listen: ListenAddress,
    /// None for sockets of a service manager until they have been assigned.
    pub address: Option<Address>,
    /// The service manager's name for the socket.
    pub passed: Option<PassedName>,
}

/// The number and the name of a socket that a service manager has passed.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PassedName {
    /// The descriptor.
    pub number: i32,
    /// The name in the unit.
    pub name: String,
}

impl fmt::Display for PassedName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "socket {} ({}) of the service manager", self.number, self.name)
    }
}

/// The applications and files of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedSite {
    /// The target of the application argument, if there is one.
    pub target: Option<Target>,
    /// All mounts of files, with the folder given as application.
    pub mounts: Vec<Mount>,
    /// The applications to load: that of the root, and the mounted ones.
    pub programs: Vec<Program>,
}

/// An application to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The prefix at which it is mounted; `/` for the root.
    pub prefix: String,
    /// The application as it was written.
    pub name: String,
    /// Its calling convention.
    pub interface: Interface,
    /// Whether the name is that of a function that makes the application.
    pub factory: bool,
    /// The folder of its modules, if that is not the current one.
    pub app_dir: Option<PathBuf>,
    /// The URL path of the application.
    pub root_path: String,
}

impl CheckedSite {
    /// Whether this is the folder given as application.
    pub fn is_of_application(&self, mount: &Mount) -> bool {
        mount.prefix == "/" && self.target.as_ref() == Some(&Target::Folder(mount.folder.clone()))
    }
}

/// The target of the application argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A folder of static files.
    Folder(PathBuf),
    /// An application for the host to load.
    Program(String),
}

/// Makes `chdir` the current directory, before relative paths are used.
pub fn change_folder(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let Some(folder) = &config.chdir else { return Ok(()) };
    let wrong = |bad: BadValue| bad.at(origins.describe("chdir"));
    check_folder(folder).map_err(wrong)?;
    std::env::set_current_dir(folder).map_err(|error| {
        wrong(BadValue::new(
            format!("the folder {} cannot be entered: {error}", folder.display()),
            "allow it",
        ))
    })
}

/// Checks the configuration as a whole. Errors name the origin of the value, from `origins`.
pub fn check(config: &Config, origins: &Origins) -> Result<Checked, Problem> {
    let at = |name: &str| origins.describe(name);
    development::check(config, origins)?;
    tables::check(config, origins)?;
    check_heads(config, origins)?;
    let environment = match &config.env_file {
        Some(path) => env_file::read(path, &at("env-file"))?,
        None => Vec::new(),
    };
    otlp_variables::read(config, origins, &environment)?;
    let mut sites = Vec::with_capacity(1 + config.hosts.len());
    for (host, site) in config.sites() {
        let name = host.map(|host| host.name.as_str());
        sites.push(check_site(&site, &|key| origins.describe_in(name, key))?);
    }
    let mut interfaces: Vec<Interface> =
        sites.iter().flat_map(|site| &site.programs).map(|program| program.interface).collect();
    if interfaces.is_empty() {
        interfaces.push(config.site.interface);
    }
    if interfaces.iter().all(|interface| *interface == Interface::Asgi) {
        pools::refuse_with_event_loop(config, origins)?;
    }
    check_mounts(&config.sendfile).map_err(|bad| bad.at(at("sendfile")))?;
    if let Some(file) = config.sendfile.iter().find_map(|mount| mount.fallback.as_ref()) {
        let what = format!("fallback={file} has no meaning here: the application names each file");
        return Err(Problem::new(at("sendfile"), what, "leave it out"));
    }
    logs::check(config, origins)?;
    // A default that does not fit this machine is a warning when the server starts.
    if *origins.of("spool") != Source::Default {
        check_is_folder(&config.spool, "name a folder on a disk").map_err(|bad| bad.at(at("spool")))?;
    }
    let listeners = listeners(&config.listen).map_err(|bad| bad.at(at("listen")))?;
    let wanted = rights::wanted(config, origins)?;
    tls::check(config, origins)?;
    Ok(Checked { listeners, sites, wanted, environment, tls: None, acme: None })
}

/// Checks the applications and files of one host; `place` returns the place of a key in the configuration.
fn check_site(site: &SiteConfig, place: &dyn Fn(&str) -> String) -> Result<CheckedSite, Problem> {
    let wrong = |key: &str, bad: BadValue| bad.at(place(key));
    let own = site.application.as_ref().map(|text| target(text, site.app_dir.as_deref())).transpose();
    let own = own.map_err(|error| wrong("application", error))?;
    if let Some(folder) = &site.app_dir {
        check_folder(folder).map_err(|error| wrong("app-dir", error))?;
    }
    let mut mounts = site.mounts.clone();
    check_mounts(&mounts).map_err(|error| wrong("static", error))?;
    if let Some(Target::Folder(folder)) = &own {
        if mounts.iter().any(|mount| mount.prefix == "/") {
            let what = format!("'/' is already served from the folder {}", folder.display());
            return Err(wrong("static", BadValue::new(what, "choose another URL or leave the folder out")));
        }
        mounts.push(Mount { prefix: "/".to_owned(), folder: folder.clone(), fallback: None });
    }
    let mut programs = Vec::new();
    if let Some(Target::Program(name)) = &own {
        programs.push(Program {
            prefix: "/".to_owned(),
            name: name.clone(),
            interface: site.interface,
            factory: site.factory,
            app_dir: site.app_dir.clone(),
            root_path: site.root_path.clone(),
        });
    }
    for mounted in &site.mounted {
        let program = mounted_program(site, mounted).map_err(|error| wrong("mount", error))?;
        let same = |prefix: &str| prefix == mounted.prefix;
        if programs.iter().any(|other| same(&other.prefix)) || mounts.iter().any(|mount| same(&mount.prefix))
        {
            let what = format!("{} is mounted twice", mounted.prefix);
            return Err(wrong("mount", BadValue::new(what, "leave one of them out")));
        }
        programs.push(program);
    }
    error_page::read(&site.error_pages).map_err(|error| wrong("error-page", error))?;
    Ok(CheckedSite { target: own, mounts, programs })
}

fn mounted_program(site: &SiteConfig, mounted: &MountedApplication) -> Result<Program, BadValue> {
    let app_dir = mounted.app_dir.clone().or_else(|| site.app_dir.clone());
    if let Some(folder) = &mounted.app_dir {
        check_folder(folder)?;
    }
    match target(&mounted.application, app_dir.as_deref())? {
        Target::Folder(folder) => {
            let what = format!("{} is a folder", folder.display());
            Err(BadValue::new(what, format!("write static = \"{}={}\"", mounted.prefix, folder.display())))
        }
        Target::Program(name) => Ok(Program {
            prefix: mounted.prefix.clone(),
            name,
            interface: mounted.interface,
            factory: mounted.factory,
            app_dir,
            root_path: mounted.prefix.clone(),
        }),
    }
}

/// Allowed values of max-head in bytes. A head is parsed again when more of it comes, which costs little up to this size.
const HEADS: RangeInclusive<u64> = 16 * 1024..=256 * 1024;
const MIN_FIELD: u64 = 1024;

fn check_heads(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let (head, field) = (config.max_head, config.max_field);
    let wrong = |name, what: String, remedy: &str| Err(Problem::new(origins.describe(name), what, remedy));
    if !HEADS.contains(&head) {
        return wrong("max-head", format!("{head} bytes are no size of a head here"), "give 16k to 256k");
    }
    if field < MIN_FIELD || field > head {
        let what = format!("{field} bytes are no size of a field in a head of {head}");
        return wrong("max-field", what, "give 1k to the value of max-head");
    }
    Ok(())
}

fn check_mounts(mounts: &[Mount]) -> Result<(), BadValue> {
    for (position, mount) in mounts.iter().enumerate() {
        if let Some(other) = mounts[..position].iter().find(|other| other.prefix == mount.prefix) {
            let what = format!(
                "{} is served from two folders, {} and {}",
                mount.prefix,
                other.folder.display(),
                mount.folder.display()
            );
            return Err(BadValue::new(what, "leave one of them out"));
        }
        check_folder(&mount.folder)?;
    }
    Ok(())
}

fn check_folder(folder: &Path) -> Result<(), BadValue> {
    check_is_folder(folder, "name the folder that holds the files")?;
    std::fs::read_dir(folder).map(drop).map_err(|error| {
        BadValue::new(format!("the folder {} cannot be read: {error}", folder.display()), "allow it")
    })
}

/// `instead` is the remedy for what is no folder.
fn check_is_folder(folder: &Path, instead: &str) -> Result<(), BadValue> {
    let shown = folder.display();
    Err(match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => BadValue::new(format!("{shown} is not a folder"), instead),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            BadValue::new(format!("there is no folder {shown}"), correct(folder))
        }
        Err(error) => BadValue::new(format!("the folder {shown} cannot be used: {error}"), "allow it"),
    })
}

fn listeners(listen: &[ListenAddress]) -> Result<Vec<CheckedListener>, BadValue> {
    if listen.is_empty() {
        return Err(BadValue::new("there is no address to listen on", "give one, such as 127.0.0.1:8000"));
    }
    let checked = |listen: &ListenAddress| {
        let address = listen.resolve()?;
        Ok::<_, BadValue>(CheckedListener { listen: listen.clone(), address, passed: None })
    };
    let mut listeners: Vec<CheckedListener> = Vec::with_capacity(listen.len());
    for wanted in listen {
        let next = checked(wanted)?;
        if let Some(other) = listeners.iter().find(|other| overlap(other, &next)) {
            let what = match &next.address {
                Some(address) if other.address == next.address => format!("{address} is listed twice"),
                Some(_) => format!("{} and {wanted} cover the same address", other.listen),
                None => format!("{} and {wanted} are the same sockets", other.listen),
            };
            return Err(BadValue::new(what, "leave one of them out"));
        }
        listeners.push(next);
    }
    for wanted in listen.iter().filter_map(ListenAddress::for_ipv4) {
        let next = checked(&wanted)?;
        if !listeners.iter().any(|other| overlap(other, &next)) {
            listeners.push(next);
        }
    }
    Ok(listeners)
}

fn overlap(one: &CheckedListener, other: &CheckedListener) -> bool {
    let (one, other) = match (&one.address, &other.address) {
        (Some(Address::Tcp(one)), Some(Address::Tcp(other))) => (one, other),
        (Some(Address::Unix(one)), Some(Address::Unix(other))) => return one.name == other.name,
        (None, None) => return one.listen.passed() == other.listen.passed(),
        _ => return false,
    };
    // The system chooses a different port for each port 0.
    one.port() == other.port()
        && one.port() != 0
        && one.is_ipv4() == other.is_ipv4()
        && (one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// Decides whether the text is a folder or a program. A folder that is also a Python module is a program.
fn target(text: &str, app_dir: Option<&Path>) -> Result<Target, BadValue> {
    let path = Path::new(text);
    let is_module_name = !text.contains('/') && text != "." && text != "..";
    let module = app_dir.unwrap_or(Path::new("")).join(text);
    let file = PathBuf::from(format!("{}.py", module.display()));
    let is_python = module.join("__init__.py").exists() || file.exists();
    if text.ends_with('/') || path.is_dir() && !(is_module_name && is_python) {
        return check_folder(path).map(|()| Target::Folder(path.to_owned()));
    }
    let file = text.rsplit_once(".py:").map_or(text, |(stem, _)| &text[..stem.len() + 3]);
    if (file.ends_with(".py") || text.contains('/')) && !Path::new(file).is_file() {
        return Err(BadValue::new(format!("there is no file {file}"), correct(Path::new(file))));
    }
    if path.is_file() && !text.ends_with(".py") {
        let remedy = format!("give the folder to serve ({}/), or a Python file", folder_of(path).display());
        return Err(BadValue::new(
            format!("{text} is a file, neither a folder nor a Python program"),
            remedy,
        ));
    }
    Ok(Target::Program(text.to_owned()))
}
