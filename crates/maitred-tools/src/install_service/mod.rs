//! `maitred install-service`: writes the units of systemd that run an application.
//!
//! Promises: it writes nothing if the server would refuse its options or its application, if the service's user may not read what the
//! server reads (`--unchecked` does), or if a unit is there (`--force` does).
//! Leaves out: systemd itself; nothing is enabled or started.

mod checks;
mod unit;

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use maitred_config::options::renamed::NAMES;
use maitred_config::value::ControlSocket;
use maitred_config::{
    Config, Inputs, ListenAddress, Loaded, LogPlace, Origins, Problem, accounts, print, say, sources,
};
use maitred_process::host::Host;

use crate::tool_line::{Given, Known};
use unit::{Service, problem};

const HELP: &str = "\
maitred install-service: writes the units of systemd that run an application.

Usage: maitred install-service [OPTIONS] -- [APPLICATION] [OPTIONS OF THE SERVER]

  --name NAME       of the service; without it, that of the application or of the folder
  --user USER       who it runs as; without it, systemd makes a user while the service runs (DynamicUser=)
  --group GROUP     the group; without it, that of the user
  --folder FOLDER   where it runs; without it, the current folder
  --socket ADDRESS  systemd listens there and hands the socket over, so that a restart refuses nobody: a port, HOST:PORT, or the
                    path of a Unix socket; repeatable. The server's own --listen is left out then
  --writable FOLDER it may write there, beside /run/NAME, /var/lib/NAME, /var/log/NAME and a /tmp of its own; repeatable
  --jit             code is made while it runs (numba, PyPy, Python's own JIT), which the unit forbids otherwise
  --unit-dir FOLDER where units are written; /etc/systemd/system without it
  --force           replace units that are there
  --unchecked       write them although the service could not start now: no application, or a file that its user may not read
  --print           print the units and write nothing
";

const KNOWN: Known = Known {
    command: "install-service",
    values: &["name", "user", "group", "folder", "socket", "writable", "unit-dir"],
    switches: &["jit", "force", "unchecked", "print"],
    takes_rest: true,
};

const UNITS: &str = "/etc/systemd/system";

/// Ports below it need a capability (ip_unprivileged_port_start of Linux).
const FIRST_FREE_PORT: u16 = 1024;

/// Runs the command with the arguments behind `install-service`.
///
/// # Errors
/// An argument is wrong, one of the server's is, or a unit cannot be written.
pub fn install_service(arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    let given = KNOWN.parse(arguments)?;
    if given.wants_help {
        return Ok(print(HELP));
    }
    let (service, loaded) = service(&given, host)?;
    // Before the current folder becomes that of the service.
    let folder = absolute(Path::new(given.value("unit-dir").unwrap_or(UNITS)))?;
    let mut files = vec![(folder.join(format!("{}.service", service.name)), service.service_unit())];
    let socket = service.socket_unit();
    files.extend(socket.map(|text| (folder.join(format!("{}.socket", service.name)), text)));
    match checks::look(&service, &loaded, host) {
        Err(problem) if !given.has("print") && !given.has("unchecked") => return Err(problem),
        Err(problem) => say(&format!("warning: {problem}")),
        Ok(()) => {}
    }
    if given.has("print") {
        let texts = files.iter().map(|(path, text)| format!("# {}\n{text}", path.display()));
        return Ok(print(&texts.collect::<Vec<_>>().join("\n")));
    }
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()).filter(|_| !given.has("force")) {
        return Err(problem(format!("{} is there already", path.display()), "give --force to replace it"));
    }
    for (path, text) in &files {
        write(path, text)?;
    }
    let name = service.name;
    let socket = if service.sockets.is_empty() { String::new() } else { format!("{name}.socket ") };
    Ok(print(&format!(
        "Next, as root:\n\n  systemctl daemon-reload\n  systemctl enable --now {socket}{name}.service\n  systemctl status {name}\n"
    )))
}

/// What the arguments mean, those of the server too.
fn service(given: &Given, host: &dyn Host) -> Result<(Service, Loaded), Problem> {
    let folder = absolute(Path::new(given.value("folder").unwrap_or(".")))?;
    if !folder.is_dir() {
        let what = format!("{} is no folder", folder.display());
        return Err(problem(what, "name one that exists with --folder"));
    }
    let loaded = sources::load(&inputs(&given.rest, &folder))?;
    let (config, origins) = (&loaded.config, &loaded.origins);
    refuse(given, config, origins)?;
    let application = config.site.application.as_deref();
    let name = given.value("name").map(ToOwned::to_owned).or_else(|| name_for(application, &folder));
    let name = name.filter(|name| is_name(name)).ok_or_else(|| {
        let remedy = "give one with --name, such as --name shop";
        problem("the service needs a name of letters, digits, - and _", remedy)
    })?;
    let account = |option: &str| {
        let account = given.value(option).map(accounts::account).transpose();
        account.map_err(|bad| bad.at(format!("--{option}")))
    };
    let folders = given.all("writable").map(|folder| absolute(Path::new(folder)));
    let mut writable = folders.collect::<Result<Vec<_>, _>>()?;
    writable.extend(written_to(config, &folder));
    writable.sort();
    writable.dedup();
    let command = command(&given.rest, host)?;
    let service = Service {
        serves: application.map_or_else(|| name.clone(), ToOwned::to_owned),
        name,
        links: checks::program(&command, host)
            .into_iter()
            .filter_map(|path| path.canonicalize().ok())
            .collect(),
        command,
        folder,
        user: account("user")?,
        group: account("group")?,
        writable,
        sockets: given.all("socket").map(for_systemd).collect::<Result<_, _>>()?,
        has_low_port: config.listen.iter().filter_map(ListenAddress::port).any(|port| port < FIRST_FREE_PORT),
        has_jit: given.has("jit"),
        sets_control: config.control == ControlSocket::Auto,
    };
    Ok((service, loaded))
}

/// What the service would be started with, but for the variables of whoever calls this.
fn inputs(arguments: &[String], folder: &Path) -> Inputs {
    Inputs {
        arguments: arguments.to_vec(),
        environment: Vec::new(),
        folder: folder.to_owned(),
        started_in: folder.to_owned(),
        earlier: NAMES,
        files: None,
        workers: None,
    }
}

/// What does not fit to a service.
fn refuse(given: &Given, config: &Config, origins: &Origins) -> Result<(), Problem> {
    if config.user.is_some() {
        let remedy = "leave it out, and give --user before the --: systemd starts the service as that user";
        return Err(Problem::new(origins.describe("user"), "it would need root", remedy));
    }
    let has_sockets = given.all("socket").next().is_some();
    let listens = !origins.of("listen").is_default();
    if has_sockets && listens && config.listen.iter().all(|listen| listen.passed().is_none()) {
        let what = "the server would listen itself, and use no socket of systemd";
        return Err(Problem::new(origins.describe("listen"), what, "leave it out, or leave --socket out"));
    }
    Ok(())
}

/// Folders of the files that the server itself makes, where they are not folders that a service has anyway.
fn written_to(config: &Config, folder: &Path) -> Vec<PathBuf> {
    let places = [&config.site.access_log, &config.error_log, &config.client_log];
    let logs = places.into_iter().filter_map(|log| match log {
        LogPlace::File(path) => Some(&**path),
        _ => None,
    });
    let sockets = config.listen.iter().filter_map(ListenAddress::socket_file);
    let parents = logs.chain(sockets).filter_map(Path::parent);
    let own = config.acme.folder.as_deref().into_iter().chain([&*config.spool]);
    let mut folders: Vec<PathBuf> = parents.chain(own).map(|path| folder.join(path)).collect();
    let has_anyway = ["/run", "/var/log", "/tmp", "/var/tmp"].map(Path::new);
    folders.retain(|path| path.is_absolute() && !has_anyway.contains(&&**path));
    folders
}

/// The program as it was started here, and what it is given.
fn command(rest: &[String], host: &dyn Host) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    for word in host.command() {
        let path = match word.to_string_lossy() {
            // A script is named by where it was found from here, and the service starts elsewhere.
            text if text.contains('/') => absolute(Path::new(&word))?,
            // The shell found it on the PATH, which systemd's service has not.
            _ if words.is_empty() => std::env::current_exe().map_err(|error| {
                problem(format!("the own program is not known: {error}"), "start it by its whole path")
            })?,
            _ => PathBuf::from(&word),
        };
        words.push(path.to_string_lossy().into_owned());
    }
    words.extend(rest.iter().cloned());
    Ok(words)
}

/// An address as `ListenStream=` has it: systemd takes numbers only.
fn for_systemd(address: &str) -> Result<String, Problem> {
    let plain = address.strip_prefix("unix:").or(address.strip_prefix(':')).unwrap_or(address);
    let is_port = plain.parse::<NonZeroU16>().is_ok();
    let is_known = plain.starts_with(['/', '@']) || is_port || plain.parse::<SocketAddr>().is_ok();
    is_known.then(|| plain.to_owned()).ok_or_else(|| {
        let remedy = "write a port, NUMBERS:PORT such as 127.0.0.1:8000, or the path of a Unix socket";
        problem(format!("--socket: '{address}' is no address for systemd"), remedy)
    })
}

/// Whether systemd takes it as the name of a unit and of a folder.
fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !name.is_empty() && name.len() <= 64 && !name.starts_with(['.', '-']) && name.chars().all(is_allowed)
}

/// The name of a service that is given none: `shop` for `shop.wsgi:application`, `srv/shop.py` and `srv/shop/`, else that of the folder.
fn name_for(application: Option<&str>, folder: &Path) -> Option<String> {
    /// They say nothing of the site.
    const GENERAL: [&str; 7] = ["app", "main", "application", "asgi", "wsgi", "server", "src"];
    let module = application.and_then(|target| Path::new(target.split(':').next()?).file_stem()?.to_str());
    let module = module.and_then(|name| name.split('.').next()).filter(|name| !GENERAL.contains(name));
    module.or_else(|| folder.file_name().and_then(OsStr::to_str)).map(ToOwned::to_owned)
}

fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    let found = std::path::absolute(path)
        .map_err(|error| problem(format!("{} is no path: {error}", path.display()), "name a folder"))?;
    if found.to_str().is_none_or(|text| text.contains(char::is_control)) {
        let what = format!("{} is not UTF-8, or has a control character", found.display());
        return Err(problem(what, "choose another name: it cannot stand in a unit"));
    }
    // Without the `.` at its end; links stay.
    Ok(found.components().collect())
}

fn write(path: &Path, text: &str) -> Result<(), Problem> {
    let written =
        fs::write(path, text).and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o644)));
    written.map_err(|error| {
        problem(format!("{} cannot be written: {error}", path.display()), "run it as root, or give --print")
    })?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_systemd_reads_them() {
        for (address, written) in [
            (":80", "80"),
            ("127.0.0.1:8000", "127.0.0.1:8000"),
            ("[::1]:8000", "[::1]:8000"),
            ("unix:/run/shop.sock", "/run/shop.sock"),
        ] {
            assert_eq!(for_systemd(address).map_err(|problem| problem.to_string()).as_deref(), Ok(written));
        }
        for wrong in ["0", "localhost:80", "127.0.0.1", "70000", ""] {
            assert!(for_systemd(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_service_is_called_as_what_it_serves_and_paths_are_whole() {
        let name = |application| name_for(application, Path::new("/srv/site"));
        assert_eq!(name(Some("shop.wsgi:application")).as_deref(), Some("shop"));
        assert_eq!(name(Some("srv/shop.py")).as_deref(), Some("shop"));
        assert_eq!(name(Some("/srv/pages/")).as_deref(), Some("pages"));
        assert_eq!(name(Some("app:app")).as_deref(), Some("site"));
        assert_eq!(name(None).as_deref(), Some("site"));
        assert_eq!(name_for(None, Path::new("/")), None);
        assert!(!is_name("a b") && !is_name("../shop") && is_name("shop"));
        let folder = std::env::current_dir().expect("a folder");
        assert_eq!(absolute(Path::new("a/.")).ok(), Some(folder.join("a")));
        assert!(absolute(Path::new("a\nb")).is_err());
    }
}
