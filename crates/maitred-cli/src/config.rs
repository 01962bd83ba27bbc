//! The merged configuration, and the rules that concern several options at once.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use maitred_log::{Format, Mask};
use maitred_server::{CompressionSettings, Period, PoolRule};

use crate::env_file;
use crate::filters::{self, FilterConfig};
use crate::host::Interface;
use crate::limits::LimitConfig;
use crate::logs::{self, LogPlace};
use crate::options;
use crate::pools::{self, NamedPool, PoolConfig};
use crate::problem::{Problem, nearest};
use crate::sources::{Origins, Source};
use crate::value::{ControlSocket, ListenAddress, LogLevel, Mount, Spans};

/// Everything that can be configured. The meaning of the fields is that of the options with the
/// same names, see docs/operations/configuration.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `module:attr`, a path to a program, or a folder.
    pub application: Option<String>,
    /// At least one.
    pub listen: Vec<ListenAddress>,
    /// The threads of all requests that no rule leads elsewhere.
    pub pool: PoolConfig,
    /// Further pools, in the order in which they were named first.
    pub pools: Vec<NamedPool>,
    /// Which requests are whose; of two equal rules the later one decides.
    pub rules: Vec<PoolRule>,
    /// What requests meet before they are answered; of two for the same requests the later one decides.
    pub filters: Vec<FilterConfig>,
    /// From 1 to `max_threads` of the default pool; as many as fit the processors without it.
    pub poll_groups: Option<usize>,
    /// Folders of static files, without the one given as application.
    pub mounts: Vec<Mount>,
    /// Folders whose files the application may submit.
    pub sendfile: Vec<Mount>,
    /// Whether folders without an index file are listed.
    pub listing: bool,
    /// The calling convention of the application.
    pub interface: Interface,
    /// The event loop of an ASGI application.
    pub event_loop: String,
    /// Whether the attribute makes the application instead of being it.
    pub factory: bool,
    /// Where modules are looked for, instead of the current directory.
    pub app_dir: Option<PathBuf>,
    /// Becomes the current directory.
    pub chdir: Option<PathBuf>,
    /// Environment variables for the application.
    pub env_file: Option<PathBuf>,
    /// The URL path of the application: starts with `/` and does not end with one, except for `/`.
    pub root_path: String,
    /// Where the engine itself says that it serves.
    pub health_path: Option<String>,
    /// Where the engine itself shows its figures.
    pub metrics_path: Option<String>,
    /// How the parts of a request's time are measured.
    pub spans: Spans,
    /// Requests are counted by route.
    pub statistics: bool,
    /// Clients are told them.
    pub server_timing: bool,
    /// Requests without an id get one.
    pub request_ids: bool,
    /// From when on a request is reported as stuck; zero for never.
    pub stuck_after: Duration,
    /// From the first to the last byte of a request head; more than zero.
    pub head_timeout: Duration,
    /// Without progress in a body; more than zero.
    pub body_timeout: Duration,
    /// Idle between two requests; more than zero.
    pub keep_alive: Duration,
    /// The largest request body in bytes.
    pub max_body: u64,
    /// Bytes of a request body that are kept in memory.
    pub body_memory: u64,
    /// Where longer bodies are kept, and what waits for slow readers.
    pub spool: PathBuf,
    /// How slow peers may be, and how much they may ask for.
    pub limits: LimitConfig,
    /// Whether responses are compressed.
    pub compress: bool,
    /// How.
    pub compression: CompressionSettings,
    /// Bytes of a streamed response that wait in memory.
    pub response_memory: u64,
    /// Bytes of one response that wait in files; zero for none.
    pub response_file: u64,
    /// Bytes of complete bodies that wait in memory.
    pub response_budget: u64,
    /// For running requests after a stop signal; more than zero.
    pub drain_timeout: Duration,
    /// Where the access log goes.
    pub access_log: LogPlace,
    /// What is in its lines.
    pub access_log_format: Format,
    /// How much of an address is kept there.
    pub access_log_mask: Option<Mask>,
    /// Whether its lines are written before anything else is done.
    pub access_log_sync: bool,
    /// Where the error log goes.
    pub error_log: LogPlace,
    /// Whether an entry says how each request got its thread.
    pub dispatch_trace: bool,
    /// How long a log file lasts.
    pub log_rotate: Option<Period>,
    /// How long it becomes, in bytes; zero for no limit.
    pub log_rotate_size: u64,
    /// Closed log files that are kept; zero for all.
    pub log_keep: usize,
    /// For so many days at most; zero for ever.
    pub log_keep_days: usize,
    /// How much the error log says.
    pub log_level: LogLevel,
    /// Where the server answers `maitred ctl`.
    pub control: ControlSocket,
    /// Where it answers the same over HTTP.
    pub admin: Option<ListenAddress>,
    /// What has to be shown there.
    pub admin_token_file: Option<PathBuf>,
}

impl Default for Config {
    /// The defaults of the option table.
    fn default() -> Self {
        let mut config = Self {
            application: None,
            listen: Vec::new(),
            pool: PoolConfig::EMPTY,
            pools: Vec::new(),
            rules: Vec::new(),
            filters: Vec::new(),
            poll_groups: None,
            mounts: Vec::new(),
            sendfile: Vec::new(),
            listing: false,
            interface: Interface::default(),
            event_loop: String::new(),
            factory: false,
            app_dir: None,
            chdir: None,
            env_file: None,
            root_path: String::new(),
            health_path: None,
            metrics_path: None,
            spans: Spans::Kernel,
            statistics: true,
            server_timing: false,
            request_ids: false,
            stuck_after: Duration::ZERO,
            head_timeout: Duration::ZERO,
            body_timeout: Duration::ZERO,
            keep_alive: Duration::ZERO,
            max_body: 0,
            body_memory: 0,
            spool: PathBuf::new(),
            limits: LimitConfig::EMPTY,
            compress: false,
            compression: CompressionSettings::default(),
            response_memory: 0,
            response_file: 0,
            response_budget: 0,
            drain_timeout: Duration::ZERO,
            access_log: LogPlace::default(),
            access_log_format: Format::default(),
            access_log_mask: None,
            access_log_sync: false,
            error_log: LogPlace::default(),
            dispatch_trace: false,
            log_rotate: None,
            log_rotate_size: 0,
            log_keep: 0,
            log_keep_days: 0,
            log_level: LogLevel::default(),
            control: ControlSocket::default(),
            admin: None,
            admin_token_file: None,
        };
        for definition in options::all().filter(|definition| !definition.default.is_empty()) {
            let texts: Vec<String> = definition.default.iter().map(ToString::to_string).collect();
            let set = definition.set(&mut config, &texts);
            debug_assert!(set.is_ok(), "the default of {} is not valid", definition.name);
        }
        config
    }
}

/// What the configuration means on this machine, found while it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    /// One for each of `listen`, in the same order.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) target: Option<Target>,
    /// All mounts, with the folder given as application.
    pub(crate) mounts: Vec<Mount>,
    /// The variables of the `env-file`, in its order.
    pub(crate) environment: Vec<(String, String)>,
}

impl Checked {
    /// Whether this is the folder given as application.
    pub(crate) fn is_of_application(&self, mount: &Mount) -> bool {
        mount.prefix == "/" && self.target.as_ref() == Some(&Target::Folder(mount.folder.clone()))
    }
}

/// What the application argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A folder of static files.
    Folder(PathBuf),
    /// Something for the host to load.
    Program(String),
}

/// Makes `chdir` the current directory: what follows looks at relative paths.
pub(crate) fn change_folder(config: &Config, origins: &Origins) -> Result<(), Problem> {
    let Some(folder) = &config.chdir else { return Ok(()) };
    let wrong = |(what, remedy)| Problem::new(origins.describe("chdir"), what, remedy);
    check_folder(folder).map_err(wrong)?;
    std::env::set_current_dir(folder).map_err(|error| {
        wrong((format!("the folder {} cannot be entered: {error}", folder.display()), "allow it".to_owned()))
    })
}

/// Checks what no single option can know. `origins` says in an error where the value came from.
pub(crate) fn check(config: &Config, origins: &Origins) -> Result<Checked, Problem> {
    let at = |name: &str| origins.describe(name);
    pools::check(config, origins)?;
    if config.interface == Interface::Asgi {
        pools::refuse_with_event_loop(config, origins)?;
    }
    let target = match &config.application {
        Some(text) => Some(
            target(text, config.app_dir.as_deref())
                .map_err(|(what, remedy)| Problem::new(at("application"), what, remedy))?,
        ),
        None => None,
    };
    if let Some(folder) = &config.app_dir {
        check_folder(folder).map_err(|(what, remedy)| Problem::new(at("app-dir"), what, remedy))?;
    }
    let environment = match &config.env_file {
        Some(path) => env_file::read(path, &at("env-file"))?,
        None => Vec::new(),
    };
    let mut mounts = config.mounts.clone();
    check_mounts(&mounts).map_err(|(what, remedy)| Problem::new(at("static"), what, remedy))?;
    if let Some(Target::Folder(folder)) = &target {
        if mounts.iter().any(|mount| mount.prefix == "/") {
            return Err(Problem::new(
                at("static"),
                format!("'/' is already served from the folder {}", folder.display()),
                "choose another URL or leave the folder out",
            ));
        }
        mounts.push(Mount { prefix: "/".to_owned(), folder: folder.clone() });
    }
    check_mounts(&config.sendfile).map_err(|(what, remedy)| Problem::new(at("sendfile"), what, remedy))?;
    logs::check(config, origins)?;
    filters::rules(config, origins)?;
    // A default that does not fit this machine is a warning when the server starts.
    if *origins.of("spool") != Source::Default {
        check_spool(&config.spool).map_err(|(what, remedy)| Problem::new(at("spool"), what, remedy))?;
    }
    let addresses =
        addresses(&config.listen).map_err(|(what, remedy)| Problem::new(at("listen"), what, remedy))?;
    Ok(Checked { addresses, target, mounts, environment })
}

/// What is wrong, and the remedy.
type Wrong = (String, String);

fn check_mounts(mounts: &[Mount]) -> Result<(), Wrong> {
    for (position, mount) in mounts.iter().enumerate() {
        if let Some(other) = mounts[..position].iter().find(|other| other.prefix == mount.prefix) {
            let what = format!(
                "{} is served from two folders, {} and {}",
                mount.prefix,
                other.folder.display(),
                mount.folder.display()
            );
            return Err((what, "leave one of them out".to_owned()));
        }
        check_folder(&mount.folder)?;
    }
    Ok(())
}

fn check_folder(folder: &Path) -> Result<(), Wrong> {
    let shown = folder.display();
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => std::fs::read_dir(folder)
            .map(drop)
            .map_err(|error| (format!("the folder {shown} cannot be read: {error}"), "allow it".to_owned())),
        Ok(_) => Err((format!("{shown} is not a folder"), "name the folder that holds the files".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err((format!("there is no folder {shown}"), correct(folder)))
        }
        Err(error) => Err((format!("the folder {shown} cannot be used: {error}"), "allow it".to_owned())),
    }
}

fn check_spool(folder: &Path) -> Result<(), Wrong> {
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err((format!("{} is not a folder", folder.display()), "name a folder on a disk".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err((format!("there is no folder {}", folder.display()), correct(folder)))
        }
        Err(error) => {
            Err((format!("the folder {} cannot be used: {error}", folder.display()), "allow it".to_owned()))
        }
    }
}

fn addresses(listen: &[ListenAddress]) -> Result<Vec<SocketAddr>, Wrong> {
    if listen.is_empty() {
        return Err((
            "there is no address to listen on".to_owned(),
            "give one, such as 127.0.0.1:8000".to_owned(),
        ));
    }
    let mut addresses: Vec<SocketAddr> = Vec::with_capacity(listen.len());
    for wanted in listen {
        let address = wanted.resolve().map_err(|error| {
            (
                format!("the name in {wanted} cannot be resolved: {error}"),
                "use a number, such as 127.0.0.1".to_owned(),
            )
        })?;
        if let Some(position) = addresses.iter().position(|other| overlap(*other, address)) {
            let what = if addresses[position] == address {
                format!("{address} is listed twice")
            } else {
                format!("{} and {wanted} cover the same address", listen[position])
            };
            return Err((what, "leave one of them out".to_owned()));
        }
        addresses.push(address);
    }
    Ok(addresses)
}

fn overlap(one: SocketAddr, other: SocketAddr) -> bool {
    // Port 0 is a different port each time.
    one.port() == other.port()
        && one.port() != 0
        && one.is_ipv4() == other.is_ipv4()
        && (one.ip() == other.ip() || one.ip().is_unspecified() || other.ip().is_unspecified())
}

/// A folder when it is one, or looks like one; a Python module of that name is a program.
fn target(text: &str, app_dir: Option<&Path>) -> Result<Target, Wrong> {
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
        return Err((format!("there is no file {file}"), correct(Path::new(file))));
    }
    if path.is_file() && !text.ends_with(".py") {
        let remedy = format!("give the folder to serve ({}/), or a Python file", folder_of(path).display());
        return Err((format!("{text} is a file, neither a folder nor a Python program"), remedy));
    }
    Ok(Target::Program(text.to_owned()))
}

/// The folder that holds `path`.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The remedy for a path that does not exist: the nearest name beside it, or where it was looked for.
fn correct(path: &Path) -> String {
    let entries = std::fs::read_dir(folder_of(path)).into_iter().flatten().flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match nearest(&wanted, names.iter().map(String::as_str)) {
        Some(name) => format!("did you mean {}?", path.with_file_name(name).display()),
        None => {
            let current = std::env::current_dir().unwrap_or_default();
            format!("create it or correct the path (the current directory is {})", current.display())
        }
    }
}
