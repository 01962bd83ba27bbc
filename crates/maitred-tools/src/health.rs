//! `maitred health`: whether a running server is ready, as an exit code, for containers, scripts and load balancers that run a program.
//!
//! Promises: the command ends within its timeout, with 0 for a server that serves and accepts connections, else with 1 and one line. Leaves
//! out: the health of databases and the like; a page of the application, which `--url` asks, can check these.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use maitred_client::allow::Allow;
use maitred_client::blocking::{Body, Request};
use maitred_client::key::{Authorities, Key, TlsIdentity};
use maitred_client::{Client, Network, Settings, tls};
use maitred_config::{EXIT_FAILURE, Problem, print, say};
use maitred_control::Given as Arguments;
use maitred_http::{FieldSet, Method};
use serde_json::Value;

use crate::ctl::client::{self, Failed};
use crate::ctl::named::Named;
use crate::tool_line::{Given, Known};

const HELP: &str = "\
maitred health: whether a running server is ready.

Usage: maitred health [--server WHICH | --pid N | --port N | --socket PATH | --url URL [--token-file FILE | --ca FILE]]
                      [--timeout SECONDS]

  --server WHICH     the number of the process, or a port it listens on; without it, the only server of this user; root finds
                     those of others
  --pid N, --port N  the same, told apart
  --socket PATH      the socket of the server (its option --control)
  --url URL          with a path: that page is fetched, such as http://127.0.0.1:8000/healthz (the server's option
                     --health-path), and has to answer with a status from 200 to 299; without one: the address of the server's
                     option --admin. By https any certificate is taken, only from an address of this machine: that the server has
                     its key is verified, not who has issued it, for which name and until when
  --ca FILE          with https: all of that is verified, by the authorities in this file (PEM), and any address may be asked; a
                     certificate that has signed itself is its own authority
  --token-file FILE  the token for that address
  --timeout SECONDS  how long it may take in all; 5 without it

Exit code: 0 if the server is ready; 1 with one line if it is not, is draining, or does not answer; 2 for a mistake in the options.
";

const KNOWN: Known = Known {
    command: "health",
    values: &["server", "pid", "port", "socket", "url", "token-file", "ca", "timeout"],
    switches: &[],
    takes_rest: false,
};

const TIMEOUT: Duration = Duration::from_secs(5);

/// A longer wait is a mistake in the unit.
const MAX_TIMEOUT: f64 = 3600.0;

#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// A page of the server, by HTTP.
    Page {
        authority: String,
        target: String,
        /// Set for https; the file of authorities.
        secure: Option<Option<PathBuf>>,
    },
    /// The server's control.
    Control(Named),
}

/// Runs the command with the arguments behind `health`.
///
/// # Errors
/// An option is wrong.
pub fn health(arguments: &[String]) -> Result<u8, Problem> {
    let given = KNOWN.parse(arguments)?;
    if given.wants_help {
        return Ok(print(HELP));
    }
    let timeout = timeout(&given)?;
    let asked = asked(&given)?;
    let (sender, receiver) = mpsc::channel();
    // A thread, which is left behind at the timeout: a lookup of a name has no timeout, and a server may answer a byte at a time.
    let thread = std::thread::Builder::new().name("health".to_owned());
    let began = thread.spawn(move || _ = sender.send(ask(&asked)));
    let answer = match began {
        Ok(_) => receiver
            .recv_timeout(timeout)
            .unwrap_or_else(|_| Err(format!("no answer within {} s", timeout.as_secs_f64()))),
        Err(error) => Err(format!("no thread can be made: {error}")),
    };
    Ok(match answer {
        Ok(text) => print(&format!("{text}\n")),
        Err(text) => {
            say(&format!("health: {text}"));
            EXIT_FAILURE
        }
    })
}

fn timeout(given: &Given) -> Result<Duration, Problem> {
    let Some(text) = given.value("timeout") else { return Ok(TIMEOUT) };
    let seconds = text.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMEOUT);
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        Problem::new("health", format!("--timeout: '{text}' is no time"), "write seconds, such as 5 or 0.5")
    })
}

fn asked(given: &Given) -> Result<Asked, Problem> {
    let named = Named::of(given, "health")?;
    let (token_file, ca) = (given.value("token-file"), given.value("ca"));
    if let Some(url) = given.value("url") {
        return Ok(of_url(url, token_file.is_some(), ca.map(PathBuf::from))?.unwrap_or(Asked::Control(named)));
    }
    match [("token-file", token_file), ("ca", ca)].into_iter().find(|(_, value)| value.is_some()) {
        Some((name, _)) => {
            Err(Problem::new("health", format!("--{name} belongs to --url"), "give --url, or leave it out"))
        }
        None => Ok(Asked::Control(named)),
    }
}

/// A page if there is a path in it; none for the address of the control.
fn of_url(url: &str, has_token: bool, ca: Option<PathBuf>) -> Result<Option<Asked>, Problem> {
    let wrong = |what: &str, remedy: &str| Err(Problem::new("health", format!("--url: {what}"), remedy));
    let by_https = url.strip_prefix("https://");
    let Some(rest) = by_https.or_else(|| url.strip_prefix("http://")) else {
        return wrong(&format!("'{url}' is no URL"), "write one such as http://127.0.0.1:8000/healthz");
    };
    if by_https.is_none() && ca.is_some() {
        return wrong("http has no certificate to verify", "write https://, or leave --ca out");
    }
    if rest.contains(|letter: char| letter.is_control() || letter == ' ') {
        return wrong("there is a space in it", "write %20");
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.is_empty() || authority.contains('@') {
        return wrong(&format!("'{url}' names no host"), "write one such as http://127.0.0.1:8000/healthz");
    }
    match path {
        "" if by_https.is_some() => wrong(
            "the address of --admin is asked by http",
            "write http://, or a page such as https://127.0.0.1:8443/healthz",
        ),
        "" => Ok(None),
        _ if has_token => wrong("a page takes no token", "leave --token-file out, or the path"),
        path => Ok(Some(Asked::Page {
            authority: with_port(authority, if by_https.is_some() { 443 } else { 80 }),
            target: format!("/{}", path.split('#').next().unwrap_or_default()),
            secure: by_https.map(|_| ca),
        })),
    }
}

fn with_port(authority: &str, port: u16) -> String {
    let after_address = authority.rsplit(']').next().unwrap_or(authority);
    match after_address.contains(':') {
        true => authority.to_owned(),
        false => format!("{authority}:{port}"),
    }
}

/// Asks the server. Returns the line about a ready server, else the reason why it is not ready.
fn ask(asked: &Asked) -> Result<String, String> {
    let named = match asked {
        Asked::Page { authority, target, secure } => {
            let secure = secure.as_ref().map(Option::as_deref);
            return page(authority, target, secure);
        }
        Asked::Control(named) => named,
    };
    let place = named.place().map_err(Failed::text)?;
    let status = maitred_control::find("status").map_err(|refusal| refusal.text().to_owned())?;
    judge(&client::ask(&place, status, &Arguments::default()).map_err(Failed::text)?)
}

/// Judges a server by its answer to `status`.
fn judge(status: &Value) -> Result<String, String> {
    let pid = &status["pid"];
    if status["ready"] == true {
        return Ok(format!("ready: process {pid}"));
    }
    let why = match (&status["draining"], &status["ready"]) {
        (Value::Bool(true), _) => "it is draining",
        (_, Value::Bool(false)) => "it is about to end",
        _ => "no worker of it serves",
    };
    Err(format!("process {pid} is not ready: {why}"))
}

/// Judges a server by one of its pages.
fn page(authority: &str, target: &str, secure: Option<Option<&Path>>) -> Result<String, String> {
    let scheme = if secure.is_some() { "https" } else { "http" };
    let asked = format!("{scheme}://{authority}{target}");
    let identity = secure.map(identity).transpose()?;
    let status =
        fetch(authority, target, identity).map_err(|error| format!("{asked} does not answer: {error}"))?;
    match status {
        200..=299 => Ok(format!("ready: {asked} answers {status}")),
        _ => Err(format!("{asked} answers {status}")),
    }
}

/// How TLS knows the server: by the file of authorities, or not at all.
fn identity(ca: Option<&Path>) -> Result<TlsIdentity, String> {
    let Some(path) = ca else { return Ok(TlsIdentity { verify: false, ..TlsIdentity::default() }) };
    let identity = TlsIdentity { authorities: Authorities::At(path.to_owned()), ..TlsIdentity::default() };
    tls::check(&identity).map_err(|error| format!("--ca: {error}; name a file of certificates in PEM"))?;
    Ok(identity)
}

/// Fetches the page and returns the status of the answer.
fn fetch(authority: &str, target: &str, identity: Option<TlsIdentity>) -> Result<u16, String> {
    let mut key = Key::of_authority(authority).map_err(|error| error.to_string())?;
    if identity.as_ref().is_some_and(|identity| !identity.verify) {
        key.allow = Allow::Networks(here(authority).map_err(|error| error.to_string())?);
    }
    key.tls = identity;
    let mut fields = FieldSet::new();
    fields.push("User-Agent", "maitred-health");
    fields.push("Connection", "close");
    let body = Body::Bytes(b"");
    let request = Request { method: Method::Get, target, authority, fields, body, repeatable: None };
    let client = Client::new(Settings::default());
    let response = client.send(&Arc::new(key), request).map_err(|error| error.to_string())?;
    Ok(response.head().status.code())
}

/// The addresses of this machine among those of the host.
fn here(authority: &str) -> io::Result<Arc<[Network]>> {
    let addresses = authority.to_socket_addrs()?.filter(is_here).map(|address| address.ip().to_canonical());
    let all_bits = |address: IpAddr| if address.is_ipv4() { 32 } else { 128 };
    let networks: Arc<[Network]> =
        addresses.filter_map(|address| Network::around(address, all_bits(address))).collect();
    if networks.is_empty() {
        let what = "it is another machine, whose certificate has to be verified: give --ca FILE with its authorities";
        return Err(io::Error::other(what));
    }
    Ok(networks)
}

/// Whether the address is one of this machine: the way there begins at the address itself. Nothing is sent.
fn is_here(address: &SocketAddr) -> bool {
    let own: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let begins = UdpSocket::bind(own).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    address.ip().to_canonical().is_loopback() || begins.is_ok_and(|begins| begins.ip() == address.ip())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        let words: Vec<String> = line.split_whitespace().map(ToOwned::to_owned).collect();
        let given = KNOWN.parse(&words).map_err(|problem| problem.to_string())?;
        asked(&given).map_err(|problem| problem.to_string())
    }

    fn control(option: &str, value: &str) -> Result<Asked, String> {
        let mut named = Named::default();
        named.set(option, value.to_owned())?;
        Ok(Asked::Control(named))
    }

    fn page(authority: &str, target: &str) -> Result<Asked, String> {
        Ok(Asked::Page { authority: authority.to_owned(), target: target.to_owned(), secure: None })
    }

    fn secure_page(authority: &str, ca: Option<&str>) -> Result<Asked, String> {
        let secure = Some(ca.map(PathBuf::from));
        Ok(Asked::Page { authority: authority.to_owned(), target: "/a".to_owned(), secure })
    }

    #[test]
    fn a_server_is_named_in_one_way() {
        assert_eq!(parsed(""), Ok(Asked::Control(Named::default())));
        assert_eq!(parsed("--port 8000"), control("port", "8000"));
        assert_eq!(parsed("--pid 17"), control("pid", "17"));
        assert_eq!(parsed("--socket /run/a"), control("socket", "/run/a"));
        assert_eq!(parsed("--url http://127.0.0.1:9000"), control("url", "http://127.0.0.1:9000"));
        assert_eq!(parsed("--url http://127.0.0.1:8000/healthz"), page("127.0.0.1:8000", "/healthz"));
        assert_eq!(parsed("--url http://[::1]/a?b#c"), page("[::1]:80", "/a?b"));
        assert!(parsed("--port 1 --pid 2").expect_err("two").contains("--pid and --port name two servers"));
        assert!(parsed("--port x").expect_err("a word").contains("'x' is no port"));
        assert_eq!(parsed("--url https://[::1]/a"), secure_page("[::1]:443", None));
        assert_eq!(parsed("--url https://a:8443/a --ca b.pem"), secure_page("a:8443", Some("b.pem")));
        assert!(parsed("--url https://a").expect_err("no page").contains("--admin is asked by http"));
        assert!(parsed("--url http://a/b --ca x").expect_err("no TLS").contains("no certificate to verify"));
        assert!(parsed("--ca x").expect_err("alone").contains("belongs to --url"));
        assert!(parsed("--url a/b").expect_err("no URL").contains("is no URL"));
        assert!(parsed("--token-file x").expect_err("alone").contains("belongs to --url"));
    }

    #[test]
    fn a_server_is_ready_if_it_says_so() {
        assert_eq!(judge(&json!({ "pid": 7, "ready": true })), Ok("ready: process 7".to_owned()));
        let why = |status: Value| judge(&status).expect_err("not ready");
        assert_eq!(
            why(json!({ "pid": 7, "ready": false, "draining": true })),
            "process 7 is not ready: it is draining"
        );
        assert!(why(json!({ "pid": 7, "ready": false, "draining": false })).ends_with("it is about to end"));
        assert!(why(json!({ "pid": 7 })).ends_with("no worker of it serves"));
    }

    #[test]
    fn addresses_of_this_machine_are_told() {
        let is_here = |address: &str| is_here(&address.parse().expect("an address"));
        assert!(is_here("127.0.0.1:1") && is_here("127.9.9.9:1") && is_here("[::1]:1"));
        assert!(!is_here("192.0.2.1:1") && !is_here("[2001:db8::1]:1"));
        assert!(here("192.0.2.1:1").expect_err("another machine").to_string().contains("give --ca FILE"));
        assert_eq!(here("127.0.0.1:1").expect("here").len(), 1);
    }
}
