//! `maitred install-service`: writes the units of systemd that run an application.
//!
//! ```text
//! mod.rs     the command line, what it means, and the files    unit.rs       the text of the units
//! checks.rs  what would keep the service from starting         access.rs     whether its user may read something
//! sqlite.rs  a database where it may not write                 logrotate.rs  for log files that nobody rotates
//! ```
//! Promises: what the server would refuse is refused here, before anything is written, and so is what its user cannot read; a unit that is there stays
//! unless `--force` says otherwise.
//! Leaves out: systemd itself; nothing is enabled or started.

mod access;
mod checks;
mod logrotate;
mod sqlite;
mod unit;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::host::Host;
use crate::listen::ListenAddress;
use crate::log_values::LogPlace;
use crate::origins::{Origins, Source};
use crate::problem::Problem;
use crate::sources::{self, Inputs, Loaded};
use crate::tool_line::{Given, Known};
use crate::value::ControlSocket;
use crate::{EXIT_SUCCESS, EXIT_USAGE, print, say};
use unit::{Service, is_name, name_for};

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
  --logrotate FOLDER  write there what logrotate needs for its log files, such as /etc/logrotate.d; without it that is printed
  --force           replace units that are there
  --unchecked       write the units although the service could not start now: what its user cannot read, or an application that
                    cannot be found, is a warning
  --print           print the units and write nothing; such problems are warnings
";

const KNOWN: Known = Known {
    command: "install-service",
    values: &["name", "user", "group", "folder", "socket", "writable", "unit-dir", "logrotate"],
    switches: &["jit", "force", "unchecked", "print"],
    takes_rest: true,
};

const UNITS: &str = "/etc/systemd/system";

/// Where logrotate looks.
const ROTATION: &str = "/etc/logrotate.d";

/// Ports below it need a capability (ip_unprivileged_port_start of Linux).
const FIRST_FREE_PORT: u16 = 1024;

fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("install-service", what, remedy)
}

/// Runs the command with the arguments behind `install-service`.
///
/// # Errors
/// An argument is wrong, one of the server's is, or a unit cannot be written.
pub(crate) fn install_service(arguments: &[String], host: &dyn Host) -> Result<u8, Problem> {
    let given = KNOWN.parse(arguments)?;
    if given.wants_help {
        return Ok(print(HELP));
    }
    let (service, loaded) = service(&given, host)?;
    let logs = logrotate::files(&loaded.config, &service.folder);
    let stanza = (!logs.is_empty()).then(|| logrotate::stanza(&service.name, &logs));
    // Before the current folder becomes that of the service.
    let folder = absolute(Path::new(given.value("unit-dir").unwrap_or(UNITS)))?;
    let rotation = given.value("logrotate").map(|folder| absolute(Path::new(folder))).transpose()?;
    if !is_sound(&given, &service, &loaded, host) {
        return Ok(EXIT_USAGE);
    }
    let mut units = vec![(format!("{}.service", service.name), service.service_unit())];
    units.extend(service.socket_unit().map(|text| (format!("{}.socket", service.name), text)));
    if given.has("print") {
        let texts: Vec<String> =
            units.into_iter().map(|(name, text)| format!("# {UNITS}/{name}\n{text}")).collect();
        let stanza = stanza.map(|text| format!("\n# {ROTATION}/{}\n{text}", service.name));
        return Ok(print(&(texts.join("\n") + &stanza.unwrap_or_default())));
    }
    let mut units: Vec<(PathBuf, String)> =
        units.into_iter().map(|(name, text)| (folder.join(name), text)).collect();
    let is_written = rotation.is_some();
    if let (Some(folder), Some(text)) = (rotation, &stanza) {
        units.push((folder.join(&service.name), text.clone()));
    }
    if let Some((path, _)) = units.iter().find(|(path, _)| path.exists()).filter(|_| !given.has("force")) {
        return Err(problem(format!("{} is there already", path.display()), "give --force to replace it"));
    }
    write_all(&units)?;
    print(&next_steps(&service));
    if let Some(text) = stanza.filter(|_| !is_written) {
        let place = format!("{ROTATION}/{}", service.name);
        print(&format!(
            "\nNobody rotates its log files. For logrotate, in {place} (--logrotate {ROTATION} writes it), or give the server \
             --log-rotate daily:\n\n{text}"
        ));
    }
    Ok(EXIT_SUCCESS)
}

/// Tells what would keep the service from starting; whether units may be written.
fn is_sound(given: &Given, service: &Service, loaded: &Loaded, host: &dyn Host) -> bool {
    let problems = checks::problems(service, loaded, host);
    if !problems.is_empty() && !given.has("print") && !given.has("unchecked") {
        problems.iter().for_each(|problem| say(&problem.to_string()));
        return false;
    }
    let warnings = problems.iter().map(ToString::to_string);
    let warnings: Vec<String> = warnings.chain(checks::linked_homes(service)).collect();
    warnings.iter().for_each(|warning| say(&format!("warning: {warning}")));
    hint(service).iter().for_each(|hint| say(hint));
    true
}

fn write_all(units: &[(PathBuf, String)]) -> Result<(), Problem> {
    for (path, text) in units {
        write(path, text).map_err(|error| {
            let what = format!("{} cannot be written: {error}", path.display());
            problem(what, "run it as root, or give --print")
        })?;
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

/// For a site with a database of SQLite where the service may not write.
fn hint(service: &Service) -> Option<String> {
    let found = sqlite::find(&service.folder)?;
    let own = PathBuf::from(format!("/var/lib/{}", service.name));
    if service.writable.iter().chain([&own]).any(|folder| found.folder.starts_with(folder)) {
        return None;
    }
    let (place, folder) = (found.place.display(), found.folder.display());
    let rights = match &service.user {
        Some(user) => format!("and let its user write there: chown {user} {folder}"),
        None => format!(
            "and give it a user with --user, whom the folder belongs to; or keep the database in {}",
            own.display()
        ),
    };
    Some(format!(
        "hint: {place}: SQLite writes beside its file, and the service may not write to {folder}; add --writable {folder}, {rights}"
    ))
}

/// What the arguments mean, those of the server too.
fn service(given: &Given, host: &dyn Host) -> Result<(Service, Loaded), Problem> {
    let folder = absolute(Path::new(given.value("folder").unwrap_or(".")))?;
    if !folder.is_dir() {
        return Err(problem(
            format!("{} is no folder", folder.display()),
            "name one that exists with --folder",
        ));
    }
    let loaded = sources::load(&inputs(&given.rest, &folder))?;
    let (config, origins) = (&loaded.config, &loaded.origins);
    refuse(given, config, origins)?;
    let application = config.site.application.as_deref();
    let name = match given.value("name") {
        Some(name) => Some(name.to_owned()),
        None => name_for(application, &folder),
    };
    let name = name.filter(|name| is_name(name)).ok_or_else(|| {
        problem(
            "the service needs a name of letters, digits, - and _",
            "give one with --name, such as --name shop",
        )
    })?;
    let folders = given.all("writable").map(|folder| absolute(Path::new(folder)));
    let mut writable = folders.collect::<Result<Vec<_>, _>>()?;
    writable.extend(written_to(config, &folder));
    writable.sort();
    writable.dedup();
    let command = command(&given.rest, host)?;
    let service = Service {
        serves: application.map_or_else(|| name.clone(), ToOwned::to_owned),
        name,
        links: links(&command, host),
        command,
        folder,
        user: given.value("user").map(ToOwned::to_owned),
        group: given.value("group").map(ToOwned::to_owned),
        writable,
        sockets: given.all("socket").map(for_systemd).collect::<Result<_, _>>()?,
        has_low_port: config.listen.iter().filter_map(ListenAddress::port).any(|port| port < FIRST_FREE_PORT),
        has_jit: given.has("jit"),
        sets_control: config.control == ControlSocket::Auto,
    };
    Ok((service, loaded))
}

/// Where the program and what it reads really are.
fn links(command: &[String], host: &dyn Host) -> Vec<PathBuf> {
    let program = command.iter().take(2).map(PathBuf::from).filter(|word| word.is_absolute());
    let folders = host.folders().into_iter().map(|(_, folder)| folder);
    program.chain(folders).filter_map(|path| fs::canonicalize(path).ok()).collect()
}

/// What the service would be started with, but for the variables of whoever calls this.
fn inputs(arguments: &[String], folder: &Path) -> Inputs {
    Inputs {
        arguments: arguments.to_vec(),
        environment: Vec::new(),
        folder: folder.to_owned(),
        started_in: folder.to_owned(),
        earlier: crate::NAMES,
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
    let listens = *origins.of("listen") != Source::Default;
    if has_sockets && listens && config.listen.iter().all(|listen| listen.passed().is_none()) {
        let what = "the server would listen itself, and use no socket of systemd";
        return Err(Problem::new(origins.describe("listen"), what, "leave it out, or leave --socket out"));
    }
    for (name, value) in [("user", given.value("user")), ("group", given.value("group"))] {
        let is_right =
            |text: &str| text.chars().all(|letter| letter.is_alphanumeric() || "-_.".contains(letter));
        if let Some(value) = value.filter(|value| !is_right(value)) {
            return Err(problem(
                format!("--{name}: '{value}' is no name of one"),
                "write it as in /etc/passwd",
            ));
        }
    }
    Ok(())
}

/// Folders of the files that the server itself makes, where they are not folders that a service has anyway.
fn written_to(config: &Config, folder: &Path) -> Vec<PathBuf> {
    let logs = [&config.site.access_log, &config.error_log];
    let logs = logs.into_iter().filter_map(|log| match log {
        LogPlace::File(path) => path.parent(),
        _ => None,
    });
    let sockets = config.listen.iter().filter_map(ListenAddress::socket_file).filter_map(Path::parent);
    let mut folders: Vec<PathBuf> = logs.chain(sockets).map(|path| folder.join(path)).collect();
    folders.push(folder.join(&config.spool));
    let has_anyway =
        |path: &PathBuf| ["/run", "/var/log", "/tmp", "/var/tmp"].iter().any(|own| path == Path::new(own));
    folders.retain(|path| path.is_absolute() && !has_anyway(path));
    folders
}

/// The program as it was started here, and what it is given.
fn command(rest: &[String], host: &dyn Host) -> Result<Vec<String>, Problem> {
    let mut words = Vec::new();
    for word in host.command() {
        let word = word.into_string().map_err(|word| {
            problem(
                format!("{} is not UTF-8", word.display()),
                "install maitred in a folder with another name",
            )
        })?;
        words.push(word);
    }
    // A script is named by where it was found from here, and the service starts elsewhere.
    for word in words.iter_mut().filter(|word| word.contains('/')) {
        *word = absolute(Path::new(word))?.to_string_lossy().into_owned();
    }
    // A program without a slash was found on the PATH, which systemd's service has not.
    if let Some(first) = words.first_mut().filter(|first| !first.starts_with('/')) {
        let own = std::env::current_exe().map_err(|error| {
            problem(format!("the own program is not known: {error}"), "start it by its whole path")
        })?;
        *first = own.to_string_lossy().into_owned();
    }
    words.extend(rest.iter().cloned());
    Ok(words)
}

/// An address as `ListenStream=` has it.
fn for_systemd(address: &str) -> Result<String, Problem> {
    let plain = address.strip_prefix("unix:").unwrap_or(address);
    let port = plain.strip_prefix(':').unwrap_or(plain);
    let is_port = |text: &str| text.parse::<u16>().is_ok_and(|port| port > 0);
    if plain.starts_with('/') || plain.starts_with('@') || is_port(port) && !plain.contains('[') {
        return Ok(if is_port(port) { port.to_owned() } else { plain.to_owned() });
    }
    // systemd takes numbers only.
    match plain.parse::<std::net::SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(address.to_string()),
        _ => Err(problem(
            format!("--socket: '{address}' is no address for systemd"),
            "write a port, NUMBERS:PORT such as 127.0.0.1:8000, or the path of a Unix socket",
        )),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Problem> {
    let found = std::path::absolute(path)
        .map_err(|error| problem(format!("{} is no path: {error}", path.display()), "name a folder"))?;
    if found.to_str().is_none_or(|text| text.contains(char::is_control)) {
        return Err(problem(format!("{} cannot stand in a unit", found.display()), "choose another name"));
    }
    // Without the `.` at its end; links stay.
    Ok(found.components().collect())
}

/// Writes the file as a whole: systemd may read it meanwhile.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let written = fs::write(&new, text)
        .and_then(|()| fs::set_permissions(&new, fs::Permissions::from_mode(0o644)))
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // What is not there cannot be removed.
        let _ = fs::remove_file(&new);
    }
    written
}

fn next_steps(service: &Service) -> String {
    let name = &service.name;
    let units = match service.sockets.is_empty() {
        true => format!("{name}.service"),
        false => format!("{name}.socket {name}.service"),
    };
    let control = match service.sets_control {
        true => format!("maitred health --socket /run/{name}/control.sock\n"),
        false => String::new(),
    };
    format!(
        "Next, as root:\n\n  systemctl daemon-reload\n  systemctl enable --now {units}\n  systemctl status {name}\n  \
         journalctl --unit {name} --follow\n  {control}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_systemd_reads_them() {
        for (address, written) in [
            ("80", "80"),
            (":80", "80"),
            ("127.0.0.1:8000", "127.0.0.1:8000"),
            ("[::1]:8000", "[::1]:8000"),
            ("/run/shop.sock", "/run/shop.sock"),
            ("unix:/run/shop.sock", "/run/shop.sock"),
        ] {
            assert_eq!(for_systemd(address).map_err(|problem| problem.to_string()).as_deref(), Ok(written));
        }
        for wrong in ["0", "localhost:80", "127.0.0.1", "70000", ""] {
            assert!(for_systemd(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_path_is_whole() {
        let folder = std::env::current_dir().expect("a folder");
        assert_eq!(absolute(Path::new(".")).ok(), Some(folder.clone()));
        assert_eq!(absolute(Path::new("a/")).ok(), Some(folder.join("a")));
        assert!(absolute(Path::new("a\nb")).is_err());
    }
}
