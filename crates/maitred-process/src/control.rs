//! The doors at which a running server answers questions: from the configuration to open doors.

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_config::accounts::{shown_group, shown_user};
use maitred_config::value::ControlSocket;
use maitred_config::{Config, Origins, Problem};
use maitred_control::local;
use maitred_control::own_sockets::{self, NoSocket};
use maitred_control::{Control, DoorSettings, Doors, Keeper, NotOpened, read_token};
use maitred_server::rights::Identity;
use maitred_server::{Log, Server};

use crate::host::Host;
use crate::operator::Operator;

/// Opens the doors that the configuration names: the socket, whose file belongs to `identity` if the process becomes another user, and
/// the address.
pub(crate) fn open_named(
    config: &Config,
    origins: &Origins,
    identity: Option<&Identity>,
) -> Result<Doors, Problem> {
    let at = |name: &str| origins.describe(name);
    let socket = match &config.control {
        ControlSocket::Off | ControlSocket::Auto => None,
        ControlSocket::Path(path) => Some(path.clone()),
    };
    let token = match &config.admin_token_file {
        Some(path) => Some(read_token(path).map_err(|what| {
            Problem::new(at("admin-token-file"), what, "give the path of a file with a token")
        })?),
        None => None,
    };
    let admin = match &config.admin {
        Some(address) => Some(address.resolve_tcp().map_err(|bad| bad.at(at("admin")))?),
        None => None,
    };
    let owner = identity.map(|identity| (identity.uid, identity.gid));
    Doors::open(&DoorSettings { socket, owner, admin, token }).map_err(|error| problem(&error, origins))
}

/// Opens the default socket, in the folder of the current user, unless the configuration names another one or none. Failures are only
/// logged, since this socket was not asked for.
pub(crate) fn open_own(config: &Config, doors: &mut Doors, log: &Log) {
    if config.control != ControlSocket::Auto {
        return;
    }
    match own_sockets::own_socket() {
        Ok(path) => {
            if let Err(error) = doors.open_socket(&path) {
                log.info(format_args!("{error}; name another path with --control"));
            }
        }
        Err(NoSocket::Unsafe(why)) => {
            log.warn(format_args!("no control socket: {why}; correct that, or name a path with --control"));
        }
        Err(NoSocket::NotMade(why)) => {
            log.info(format_args!("no control socket: {why}; name one with --control"));
        }
    }
}

/// The history of the figures, with the rows of its file.
pub(crate) fn history(config: &Config, origins: &Origins, log: &Arc<Log>) -> Result<Keeper, Problem> {
    let Some(path) = &config.history else { return Ok(Keeper::default()) };
    Keeper::of_file(path, log).map_err(|what| {
        let remedy = "name a file of its own, in a folder that this user may write to";
        Problem::new(origins.describe("history"), what, remedy)
    })
}

/// Like [`history`], but none if the history can neither be asked for, since no door is open, nor is kept in a file.
pub(crate) fn own_history(
    config: &Config,
    origins: &Origins,
    doors: &Doors,
    log: &Arc<Log>,
) -> Result<Option<Keeper>, Problem> {
    let is_wanted = config.history.is_some() || !doors.places().is_empty();
    is_wanted.then(|| history(config, origins, log)).transpose()
}

fn problem(error: &NotOpened, origins: &Origins) -> Problem {
    match error {
        NotOpened::Socket(..) => Problem::new(
            origins.describe("control"),
            error.to_string(),
            "stop the server there, or name another path in a folder that this user may write to",
        ),
        NotOpened::Admin(..) => {
            Problem::new(origins.describe("admin"), error.to_string(), "take a free port of this machine")
        }
        NotOpened::NeedsToken(address) => {
            let here = SocketAddr::new(std::net::Ipv4Addr::LOCALHOST.into(), address.port());
            let remedy = format!("give one with --admin-token-file, or listen on {here}");
            Problem::new(origins.describe("admin"), error.to_string(), remedy)
        }
    }
}

/// The language, application, user and group of the server, for `status`.
pub(crate) fn about(host: &dyn Host, application: Option<String>) -> Vec<(&'static str, String)> {
    let mut about = vec![("language", host.languages().to_owned())];
    about.extend(application.map(|what| ("application", what)));
    about.push(("user", shown_user(local::user())));
    about.push(("group", shown_group(local::group())));
    about
}

/// Begins to answer questions. If that fails, the server goes on without a control.
pub(crate) fn start(
    server: &Arc<Server>,
    doors: Doors,
    operator: Operator,
    history: Option<Keeper>,
    log: &Log,
) -> Option<Control> {
    let control = Control::start(server, doors, Arc::new(operator), history);
    control.inspect_err(|error| log.error(format_args!("the control cannot be started: {error}"))).ok()
}
