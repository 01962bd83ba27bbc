//! Which of this user's servers is meant: the only one, or that with this process or port.

use std::path::PathBuf;

use maitred_control::Given;
use serde_json::Value;

use super::client::{self, Place};
use super::find;

/// A server that runs.
struct Running {
    socket: PathBuf,
    pid: u32,
    /// What it says of itself; null when it does not answer.
    status: Value,
}

/// The socket of the only server of this user; for root, of any user if root has none.
///
/// # Errors
/// There is none, or there are several: what to do.
pub(crate) fn only_one() -> Result<PathBuf, String> {
    let (folder, mut live) = find::live();
    if live.is_empty() {
        live = find::live_of_others();
    }
    match live.len() {
        0 => Err(format!(
            "no running server of this user has a socket in {}; name its socket with --socket, or its address with --url",
            folder.display()
        )),
        1 => Ok(live.swap_remove(0).0),
        count => {
            let all = listed(&ask_all(live));
            Err(format!("{count} servers run; choose one with --server and its process or port: {all}"))
        }
    }
}

/// The socket of the server with this process or port, as a number or behind a colon.
///
/// # Errors
/// There is none, or there are two: those there are.
pub(crate) fn named(which: &str) -> Result<PathBuf, String> {
    let mut live = find::live().1;
    live.extend(find::live_of_others());
    choose(which, ask_all(live))
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

fn choose(which: &str, running: Vec<Running>) -> Result<PathBuf, String> {
    let port = which.strip_prefix(':').unwrap_or(which);
    let is_meant = |server: &Running| {
        let listens =
            |address: &str| address == which || address.rsplit_once(':').is_some_and(|(_, own)| own == port);
        which.parse() == Ok(server.pid) || addresses(server).any(listens)
    };
    let (meant, others): (Vec<_>, Vec<_>) = running.into_iter().partition(is_meant);
    match &*meant {
        [one] => Ok(one.socket.clone()),
        [] if others.is_empty() => {
            Err(format!("no server of this user runs, so none is {which}; see 'maitred ctl'"))
        }
        [] => Err(format!(
            "no server of this user has the process or port {which}; there are {}",
            listed(&others)
        )),
        several => Err(format!(
            "{} servers have {which}; choose one by its process: {}",
            several.len(),
            listed(several)
        )),
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
            }),
        };
        vec![
            server(4711, &["127.0.0.1:8000"]),
            server(4712, &["0.0.0.0:8001", "[::1]:8002"]),
            server(8001, &["127.0.0.2:8000"]),
        ]
    }

    fn chosen(which: &str) -> Result<String, String> {
        choose(which, running()).map(|path| path.display().to_string())
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
    fn what_is_meant_must_be_one() {
        assert!(
            chosen("8001").expect_err("a process and a port").starts_with("2 servers have 8001; choose one")
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
        assert!(choose("9", Vec::new()).expect_err("none").contains("no server of this user runs"));
    }
}
