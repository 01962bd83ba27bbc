//! The doors at which a running server can be asked: from the configuration to open ones.

use std::net::SocketAddr;
use std::sync::Arc;

use maitred_control::{Control, DoorSettings, Doors, NotOpened, read_token};
use maitred_server::{Log, Server};

use crate::config::Config;
use crate::ctl::find;
use crate::host::Host;
use crate::operator::Operator;
use crate::origins::Origins;
use crate::problem::Problem;
use crate::value::ControlSocket;

/// Opens the doors of the configuration. One that nobody asked for is left out where it cannot be.
pub(crate) fn open(config: &Config, origins: &Origins, log: &Log) -> Result<Doors, Problem> {
    let at = |name: &str| origins.describe(name);
    let socket = match &config.control {
        ControlSocket::Off => None,
        ControlSocket::Path(path) => Some(path.clone()),
        ControlSocket::Auto => {
            let own = find::own_socket();
            own.inspect_err(|why| log.info(format_args!("no control socket: {why}; name one with --control")))
                .ok()
        }
    };
    let token = match &config.admin_token_file {
        Some(path) => Some(read_token(path).map_err(|what| {
            Problem::new(at("admin-token-file"), what, "give the path of a file with a token")
        })?),
        None => None,
    };
    let admin = match &config.admin {
        Some(address) => Some(address.resolve_tcp().map_err(|error| {
            let what = format!("the name in {address} cannot be resolved: {error}");
            Problem::new(at("admin"), what, "use a number, such as 127.0.0.1")
        })?),
        None => None,
    };
    let mut settings = DoorSettings { socket, admin, token };
    match Doors::open(&settings) {
        Ok(doors) => Ok(doors),
        Err(error @ NotOpened::Socket(..)) if config.control == ControlSocket::Auto => {
            log.info(format_args!("{error}; name another path with --control"));
            settings.socket = None;
            Doors::open(&settings).map_err(|error| problem(&error, origins))
        }
        Err(error) => Err(problem(&error, origins)),
    }
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

/// What the server is, for whoever asks.
pub(crate) fn about(host: &dyn Host, application: Option<String>) -> Vec<(&'static str, String)> {
    let language = ("language", host.languages().to_owned());
    std::iter::once(language).chain(application.map(|what| ("application", what))).collect()
}

/// Begins to answer; the server serves without it, too.
pub(crate) fn start(server: &Arc<Server>, doors: Doors, operator: Operator, log: &Log) -> Option<Control> {
    let control = Control::start(server, doors, Arc::new(operator));
    control.inspect_err(|error| log.error(format_args!("the control cannot be started: {error}"))).ok()
}
