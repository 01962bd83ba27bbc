//! Sockets that a service manager passes (`--listen systemd`), and their listeners.

use std::os::fd::OwnedFd;

use maitred_config::{Checked, CheckedListener, Origins, PassedName, Problem, listen, nearest};
use maitred_server::service_manager::{PassedSocket, Passing};

/// The remedy for missing sockets.
const REMEDY: &str = "start it by a .socket unit, or name an address";

/// Collects the sockets that another process of the same server has got from a service manager.
pub(crate) fn passing(sockets: impl Iterator<Item = (PassedName, OwnedFd)>) -> Passing {
    let passed = |(PassedName { number, name }, socket)| PassedSocket { number, name, socket };
    let mut sockets: Vec<PassedSocket> = sockets.map(passed).collect();
    sockets.sort_by_key(|socket| socket.number);
    if sockets.is_empty() { Passing::Nothing } else { Passing::Sockets(sockets) }
}

/// Replaces the listeners that stand for passed sockets by those sockets, in their order; without the option `listen`, passed sockets also
/// replace the default listener. Returns the sockets by the position of the listener; none if no listener stands for passed sockets.
/// Adds unused sockets to `warnings`.
///
/// # Errors
/// A socket that a listener asks for was not passed, or connections cannot be accepted from a passed one.
pub(crate) fn assign(
    checked: &mut Checked,
    origins: &Origins,
    passing: Passing,
    warnings: &mut Vec<String>,
) -> Result<Option<Vec<Option<OwnedFd>>>, Problem> {
    let place = origins.describe("listen");
    let (mut sockets, meant) = match passing {
        Passing::Sockets(sockets) => (sockets, None),
        Passing::ForAnother(process) => (Vec::new(), Some(process)),
        Passing::Nothing => (Vec::new(), None),
    };
    if origins.of("listen").is_default() && !sockets.is_empty() {
        checked.listeners =
            vec![CheckedListener { listen: listen::all_passed(), address: None, passed: None }];
    }
    let wanted = checked.listeners.iter().find(|listener| listener.address.is_none());
    let Some(wanted) = wanted else {
        warnings.extend(sockets.iter().map(unused));
        return Ok(None);
    };
    if sockets.is_empty() {
        let (why, remedy) = match meant {
            None => ("LISTEN_FDS is not set for this process".to_owned(), REMEDY),
            Some(process) => (
                match process {
                    Some(process) => {
                        format!("LISTEN_PID is {process}, and this process is {}", std::process::id())
                    }
                    None => "LISTEN_FDS is set without LISTEN_PID".to_owned(),
                },
                "let the unit start the server itself, or the script in it by exec",
            ),
        };
        let what = format!("no sockets for {} came from a service manager ({why})", wanted.listen);
        return Err(Problem::new(place, what, remedy));
    }
    let named = |name: &str| checked.listeners.iter().any(|other| other.listen.passed() == Some(Some(name)));
    let known: Vec<String> = sockets.iter().map(|socket| socket.name.clone()).collect();
    let is_named: Vec<bool> = known.iter().map(|name| named(name)).collect();
    let mut left: Vec<Option<PassedSocket>> = sockets.drain(..).map(Some).collect();
    let (mut listeners, mut taken) = (Vec::new(), Vec::new());
    for listener in std::mem::take(&mut checked.listeners) {
        let Some(name) = listener.listen.passed() else {
            listeners.push(listener);
            taken.push(None);
            continue;
        };
        let fits = |position: usize| name.map_or(!is_named[position], |name| known[position] == name);
        let before = listeners.len();
        for socket in
            (0..left.len()).filter(|position| fits(*position)).filter_map(|position| left[position].take())
        {
            let address = socket.address().map_err(|what| {
                let what = format!("{socket} of the service manager is {what}");
                Problem::new(&*place, what, "use ListenStream= with Accept=no in its .socket unit")
            })?;
            let passed = Some(PassedName { number: socket.number, name: socket.name });
            listeners.push(CheckedListener {
                listen: listener.listen.clone(),
                address: Some(address),
                passed,
            });
            taken.push(Some(socket.socket));
        }
        if listeners.len() == before {
            return Err(none_fits(place, name, &known));
        }
    }
    checked.listeners = listeners;
    warnings.extend(left.iter().flatten().map(unused));
    Ok(Some(taken))
}

fn unused(socket: &PassedSocket) -> String {
    format!(
        "{socket} of the service manager is not used: add --listen systemd:{}, or take it out of the unit",
        socket.name
    )
}

fn none_fits(place: String, name: Option<&str>, known: &[String]) -> Problem {
    let Some(name) = name else {
        let what = "every socket of the service manager is taken by its name, and none is left for systemd";
        return Problem::new(place, what, "leave it out");
    };
    let remedy = match nearest(name, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean systemd:{meant}?"),
        None => format!("set FileDescriptorName={name} in its .socket unit; there are {}", known.join(", ")),
    };
    Problem::new(place, format!("no socket of the service manager is called '{name}'"), remedy)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;
    use maitred_config::config::Config;
    use maitred_config::{Source, validation};

    /// A passed socket with this number and name.
    fn passed(number: i32, name: &str, socket: impl Into<OwnedFd>) -> PassedSocket {
        PassedSocket { number, name: name.to_owned(), socket: socket.into() }
    }

    /// Makes listening sockets with these names, and returns them with their addresses.
    fn listening(names: &[&str]) -> (Passing, Vec<String>) {
        let made = (3..).zip(names).map(|(number, name)| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let address = listener.local_addr().expect("bound").to_string();
            (passed(number, name, listener), address)
        });
        let (sockets, addresses) = made.unzip();
        (Passing::Sockets(sockets), addresses)
    }

    /// Assigns these sockets to `--listen`, or to the default without texts. Returns a line for each listener, and the warnings.
    fn assigned(listen: &[&str], passing: Passing) -> Result<(Vec<String>, Vec<String>), String> {
        let (mut config, mut origins) = (Config::with_defaults(), Origins::default());
        if !listen.is_empty() {
            config.listen = listen.iter().map(|text| text.parse().expect(text)).collect();
            origins.set("listen", Source::CommandLine);
        }
        let mut checked = validation::check(&config, &origins).map_err(|problem| problem.to_string())?;
        let mut warnings = Vec::new();
        let result = assign(&mut checked, &origins, passing, &mut warnings);
        let mut sockets = result.map_err(|problem| problem.to_string())?.unwrap_or_default();
        let lines = checked.listeners.iter().enumerate().map(|(position, listener)| {
            let address = listener.address.as_ref().expect("assigned");
            let what = if sockets.get_mut(position).is_some_and(|socket| socket.take().is_some()) {
                "passed"
            } else {
                "own"
            };
            format!("{} {address} {what}", listener.listen)
        });
        Ok((lines.collect(), warnings))
    }

    #[test]
    fn all_of_them_are_taken_in_their_order() {
        let (passing, at) = listening(&["http", "admin"]);
        let expected = at.iter().map(|address| format!("systemd,read-ahead=off {address} passed"));
        assert_eq!(assigned(&["systemd,read-ahead=off"], passing), Ok((expected.collect(), vec![])));
    }

    #[test]
    fn passed_sockets_replace_the_default_listener() {
        let (passing, at) = listening(&["http"]);
        assert_eq!(assigned(&[], passing), Ok((vec![format!("systemd {} passed", at[0])], vec![])));
        let own = vec!["127.0.0.1:8000 127.0.0.1:8000 own".to_owned()];
        assert_eq!(assigned(&[], Passing::Nothing), Ok((own.clone(), vec![])));
        assert_eq!(assigned(&[], Passing::ForAnother(None)), Ok((own, vec![])));
    }

    #[test]
    fn named_listeners_choose_and_the_others_get_the_rest() {
        let (passing, at) = listening(&["http", "inside", "http"]);
        let (lines, warnings) = assigned(&[":1", "systemd", "systemd:inside,proxy-protocol=on"], passing)
            .expect("they are there");
        let expected = [
            ":1 0.0.0.0:1 own".to_owned(),
            format!("systemd {} passed", at[0]),
            format!("systemd {} passed", at[2]),
            format!("systemd:inside,proxy-protocol=on {} passed", at[1]),
        ];
        assert_eq!((lines.as_slice(), warnings.len()), (&expected[..], 0));
    }

    #[test]
    fn unused_sockets_are_warnings() {
        for listen in ["systemd:http", ":1"] {
            let (passing, _) = listening(&["http", "admin"]);
            let (_, warnings) = assigned(&[listen], passing).expect(listen);
            let unused = "socket 4 (admin) of the service manager is not used: add --listen systemd:admin, or take it \
                          out of the unit";
            assert_eq!(warnings.last().map(String::as_str), Some(unused), "{listen}");
            assert_eq!(warnings.len(), if listen == ":1" { 2 } else { 1 });
        }
    }

    #[test]
    fn missing_sockets_are_named_with_the_remedy() {
        let error = |listen: &[&str], passing| assigned(listen, passing).expect_err("it is missing");
        assert_eq!(
            error(&["systemd"], Passing::Nothing),
            "--listen: no sockets for systemd came from a service manager (LISTEN_FDS is not set for this process); start \
             it by a .socket unit, or name an address"
        );
        let other = error(&["systemd:http"], Passing::ForAnother(Some(7)));
        assert!(
            other.contains("(LISTEN_PID is 7, and this process is ") && other.contains("exec"),
            "{other}"
        );
        let (passing, _) = listening(&["http", "admin"]);
        assert_eq!(
            error(&["systemd:htp"], passing),
            "--listen: no socket of the service manager is called 'htp'; did you mean systemd:http?"
        );
        let (passing, _) = listening(&["http"]);
        assert!(error(&["systemd:http", "systemd"], passing).contains("none is left for systemd"));
        assert!(
            error(&["systemd", "systemd"], Passing::Nothing).contains("systemd and systemd are the same")
        );
    }

    #[test]
    fn a_socket_that_cannot_be_accepted_from_is_refused_with_its_number_and_name() {
        let datagram = passed(3, "dns", UdpSocket::bind("127.0.0.1:0").expect("a free port"));
        assert_eq!(
            assigned(&[], Passing::Sockets(vec![datagram])).expect_err("no stream"),
            "--listen: socket 3 (dns) of the service manager is a datagram socket; use ListenStream= with Accept=no in \
             its .socket unit"
        );
    }
}
