//! The choice among this user's servers: the only one, or the one with a given process or port.
//!
//! Promises: one server, or an error that names the running ones. Leaves out: servers whose socket has a place of its own
//! (`--control PATH`), which no folder lists.

use std::fmt;
use std::path::{Path, PathBuf};

use maitred_control::{Given, own_sockets};
use serde_json::Value;

use super::client::{self, Place};

/// A server that runs.
struct Running {
    socket: PathBuf,
    pid: u32,
    /// The server's answer to `status`; null if there is none.
    status: Value,
}

/// The socket of the only server of this user; for root, of any user if root has none.
///
/// # Errors
/// There is no server, or there are several; with the remedy.
pub(crate) fn only_one() -> Result<PathBuf, String> {
    let (folder, mut live) = own_sockets::live();
    if live.is_empty() {
        live = own_sockets::live_of_others();
    }
    match live.len() {
        0 => Err(format!(
            "no running server of this user has a socket in {}; name its socket with --socket, or its address with --url",
            folder.display()
        )),
        1 => Ok(live.swap_remove(0).0),
        count => {
            let all = listed(&ask_all(live));
            Err(format!("{count} servers run; choose one with --pid or --port: {all}"))
        }
    }
}

/// The name of a server on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `--server`: a process or a port, as a number or behind a colon, or an address.
    Any(String),
    /// `--pid`: one of the server's processes, the supervisor's or a worker's.
    Process(u32),
    /// `--port`: the port of an address that the server listens on.
    Port(u16),
}

impl Which {
    /// Parses the value of `--pid`.
    pub(crate) fn process(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self::Process)
            .map_err(|_| format!("--pid: '{text}' is no number of a process; --port takes a port"))
    }

    /// Parses the value of `--port`.
    pub(crate) fn port(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix(':').unwrap_or(text).parse();
        number
            .ok()
            .filter(|port| *port > 0)
            .map(Self::Port)
            .ok_or_else(|| format!("--port: '{text}' is no port from 1 to 65535; --server takes an address"))
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(text) => write!(f, "the process or port {text}"),
            Self::Process(pid) => write!(f, "the process {pid}"),
            Self::Port(port) => write!(f, "the port {port}"),
        }
    }
}

/// Finds the socket of the named server.
///
/// # Errors
/// No server or several servers have that name; with the running servers.
pub(crate) fn named(which: &Which) -> Result<PathBuf, String> {
    let mut live = own_sockets::live().1;
    live.extend(own_sockets::live_of_others());
    let found = choose(which, ask_all(live));
    match which {
        Which::Process(pid) if found.is_err() && !is_running(*pid) => {
            Err(format!("there is no process {pid}; 'maitred ctl' lists what there is to ask"))
        }
        _ => found,
    }
}

fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn ask_all(live: Vec<(PathBuf, u32)>) -> Vec<Running> {
    live.into_iter()
        .map(|(socket, pid)| {
            let place = Place::Socket(socket.clone());
            let asked = maitred_control::find("status").ok();
            let status = asked.and_then(|command| client::ask(&place, command, &Given::default()).ok());
            Running { socket, pid, status: status.unwrap_or_default() }
        })
        .collect()
}

fn choose(which: &Which, running: Vec<Running>) -> Result<PathBuf, String> {
    let (meant, others): (Vec<_>, Vec<_>) = running.into_iter().partition(|server| server.is(which));
    match &*meant {
        [one] => Ok(one.socket.clone()),
        [] if others.is_empty() => {
            Err(format!("no server of this user runs, so none has {which}; {NAME_IT}"))
        }
        [] => Err(format!("no server of this user has {which}; there are {}; {NAME_IT}", listed(&others))),
        several => Err(format!(
            "{} servers have {which}; choose one by its process, --pid: {}",
            several.len(),
            listed(several)
        )),
    }
}

/// The remedy for a server that is not listed.
const NAME_IT: &str = "one with a socket of its own is named by --socket PATH";

impl Running {
    fn is(&self, which: &Which) -> bool {
        let has_port = |port: &str| {
            addresses(self).any(|address| address.rsplit_once(':').is_some_and(|(_, own)| own == port))
        };
        match which {
            Which::Any(text) => {
                let port = text.strip_prefix(':').unwrap_or(text);
                text.parse() == Ok(self.pid)
                    || addresses(self).any(|address| address == text)
                    || has_port(port)
            }
            Which::Process(pid) => *pid == self.pid || self.workers().any(|worker| worker == u64::from(*pid)),
            Which::Port(port) => has_port(&port.to_string()),
        }
    }

    /// The processes of the server's workers.
    fn workers(&self) -> impl Iterator<Item = u64> {
        let workers = self.status["workers"].as_array().into_iter().flatten();
        workers.filter_map(|worker| worker["pid"].as_u64())
    }
}

fn addresses(server: &Running) -> impl Iterator<Item = &str> {
    let listeners = server.status["listeners"].as_array().into_iter().flatten();
    listeners.filter_map(|listener| listener["address"].as_str())
}

/// `4711 (127.0.0.1:8000, shop:app)`, one after the other.
fn listed(servers: &[Running]) -> String {
    let one = |server: &Running| {
        let known: Vec<&str> = addresses(server).chain(server.status["application"].as_str()).collect();
        if known.is_empty() {
            server.pid.to_string()
        } else {
            format!("{} ({})", server.pid, known.join(", "))
        }
    };
    servers.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn running() -> Vec<Running> {
        let server = |pid: u32, addresses: &[&str]| Running {
            socket: format!("/run/{pid}").into(),
            pid,
            status: json!({
                "listeners": addresses.iter().map(|address| json!({ "address": address })).collect::<Vec<_>>(),
                "application": "shop:app",
                "workers": [{ "worker": 1, "pid": pid + 10_000 }],
            }),
        };
        vec![
            server(4711, &["127.0.0.1:8000"]),
            server(4712, &["0.0.0.0:8001", "[::1]:8002"]),
            server(8001, &["127.0.0.2:8000"]),
        ]
    }

    fn chosen(which: &str) -> Result<String, String> {
        choose(&Which::Any(which.to_owned()), running()).map(|path| path.display().to_string())
    }

    fn by(which: Which) -> Result<String, String> {
        choose(&which, running()).map(|path| path.display().to_string())
    }

    #[test]
    fn a_process_is_no_port_and_may_be_a_worker() {
        assert_eq!(by(Which::Process(8001)).as_deref(), Ok("/run/8001"));
        assert_eq!(by(Which::Port(8001)).as_deref(), Ok("/run/4712"));
        assert_eq!(by(Which::Process(14_711)).as_deref(), Ok("/run/4711"));
        let error = by(Which::Port(4711)).expect_err("a process");
        assert!(error.starts_with("no server of this user has the port 4711; there are 4711 ("), "{error}");
        assert!(by(Which::Port(8000)).expect_err("two").contains("choose one by its process, --pid"));
    }

    #[test]
    fn values_that_are_no_numbers_are_refused() {
        assert_eq!(Which::port(":80"), Ok(Which::Port(80)));
        assert_eq!(Which::process("4711"), Ok(Which::Process(4711)));
        assert!(Which::port("0").is_err() && Which::port("65536").is_err() && Which::port("a").is_err());
        assert!(Which::process("-1").expect_err("no process").starts_with("--pid: '-1' is no number"));
    }

    #[test]
    fn a_server_is_named_by_its_process_its_port_or_its_address() {
        for (which, socket) in [
            ("4711", "/run/4711"),
            ("8002", "/run/4712"),
            (":8001", "/run/4712"),
            ("[::1]:8002", "/run/4712"),
            ("127.0.0.1:8000", "/run/4711"),
        ] {
            assert_eq!(chosen(which).as_deref(), Ok(socket), "{which}");
        }
    }

    #[test]
    fn a_name_must_fit_exactly_one_server() {
        assert!(
            chosen("8001")
                .expect_err("a process and a port")
                .starts_with("2 servers have the process or port 8001; choose one")
        );
        let error = chosen(":8000").expect_err("a port of two");
        assert!(
            error.ends_with("4711 (127.0.0.1:8000, shop:app); 8001 (127.0.0.2:8000, shop:app)"),
            "{error}"
        );
        assert!(
            chosen("9")
                .expect_err("none")
                .starts_with("no server of this user has the process or port 9; there are 4711 (")
        );
        assert!(
            choose(&Which::Port(9), Vec::new()).expect_err("none").contains("no server of this user runs")
        );
    }
}
