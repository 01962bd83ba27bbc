//! A look at what an order would meet (`maitred check --acme`): the folder, the directory, the account, and the answers on the authority's way to each name.
//!
//! ```text
//! name --system's resolver--> addresses --port 80, a token from the folder--> this server, another one, a redirect, nothing
//! ```
//! Promises: nothing is ordered, and the token leaves the folder again. Leaves out: the view of the world: another network may know other
//! addresses, and a firewall may let this machine through alone.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use maitred_acme::{ChallengeKind, HttpRequest, Method};
use maitred_client::blocking::{Body, Request};
use maitred_client::key::Key;
use maitred_client::{Client, Settings, Times};
use maitred_http::FieldSet;
use rustix::process::{Gid, Uid};

use crate::folder::Folder;
use crate::wishes::Wishes;
use crate::world::{Outside, Stop, World};

/// The ports to which authorities connect (RFC 8555 §8.3, RFC 8737 §3).
const PORTS: [u16; 2] = [80, 443];

/// Longest time of each step of a question; authorities wait for about as long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most bytes of an answer that are read: a key authorisation is shorter.
const MOST_READ: usize = 16 * 1024;

/// Most characters of another server's fields that are shown.
const MOST_SHOWN: usize = 200;

/// A line about something that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// An order would fail by it.
    pub is_fault: bool,
    /// The line, with a remedy if it is a fault.
    pub text: String,
}

impl Told {
    fn good(text: String) -> Self {
        Self { is_fault: false, text }
    }

    fn fault(text: String) -> Self {
        Self { is_fault: true, text }
    }
}

/// Looks at everything. Root looks as `user`, whose server it is, else as the owner of the folder: paths in another user's folder lead where that
/// user wants.
pub fn preflight(wishes: &Wishes, user: Option<(u32, u32)>) -> Vec<Told> {
    let path = wishes.folder.path().to_owned();
    let opened = File::open(&path).ok().filter(|_| rustix::process::geteuid().is_root());
    let found = opened.as_ref().and_then(|opened| opened.metadata().ok());
    let mut wishes = wishes.clone();
    if let (None, Some(opened)) = (user, &opened) {
        // The owner may be unable to walk there, as in the folders of systemd's DynamicUser=.
        wishes.folder = Folder::new(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    }
    let user = user.or(found.map(|found| (found.uid(), found.gid())));
    // The kernel keeps a user for each thread.
    thread::scope(|scope| {
        let looked = scope.spawn(|| match user.filter(|_| opened.is_some()).map_or(Ok(()), become_user) {
            Ok(()) => look(&wishes, &path),
            Err(error) => vec![of_folder(&path, &error)],
        });
        looked.join().unwrap_or_default()
    })
}

fn become_user((user, group): (u32, u32)) -> io::Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
    if !user.is_root() {
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(group, group, group)?;
        rustix::thread::set_thread_res_uid(user, user, user)?;
    }
    Ok(())
}

fn look(wishes: &Wishes, path: &Path) -> Vec<Told> {
    let mut told = vec![directory(wishes)];
    let (token, of_folder) = Token::put(&wishes.folder, path);
    told.extend([of_folder, account(wishes)]);
    for name in &wishes.names {
        told.extend(last_fault(&wishes.folder, name));
        told.extend(way(wishes, name, token.as_ref(), PORTS));
    }
    told
}

fn of_folder(path: &Path, error: &io::Error) -> Told {
    let remedy = "check as the user that the server runs as, and see whether the disk is full";
    Told::fault(format!("the folder {} cannot be used: {error}; {remedy}", path.display()))
}

fn directory(wishes: &Wishes) -> Told {
    let url = &wishes.directory;
    let request = HttpRequest {
        method: Method::Get,
        url: url.clone(),
        content_type: None,
        accept: None,
        body: Vec::new(),
    };
    let fault = match Outside::new(wishes.authorities.as_deref(), &Stop::default()).send(&request) {
        Ok(answer) if answer.status == 200 && contains(&answer.body, b"newOrder") => {
            return Told::good(format!("the directory {url} answers"));
        }
        Ok(answer) => {
            format!("it answers {}, and not as a directory of ACME does; see acme-directory", answer.status)
        }
        Err(error) => format!("{error}; see acme-directory, acme-ca and the way out of this machine"),
    };
    Told::fault(format!("the directory {url} cannot be used: {fault}"))
}

fn account(wishes: &Wishes) -> Told {
    let text = match wishes.folder.account(&wishes.directory) {
        Ok(Some(_)) => "there is an account at the directory",
        Ok(None) => "there is no account at the directory yet: the first order makes it",
        Err(error) => {
            let remedy =
                "let the server's user read it, or remove it, so that the next order makes another one";
            return Told::fault(format!("the account at the directory cannot be read: {error}; {remedy}"));
        }
    };
    Told::good(text.to_owned())
}

fn last_fault(folder: &Folder, name: &str) -> Option<Told> {
    let fault = folder.status(name).fault?;
    // The remedy may have been followed since.
    Some(Told::good(format!("{name}: the last order has failed: {}", fault.text)))
}

/// A token in the folder, which a server with this folder knows.
struct Token<'a> {
    folder: &'a Folder,
    token: String,
    text: String,
}

impl<'a> Token<'a> {
    fn put(folder: &'a Folder, path: &Path) -> (Option<Self>, Told) {
        let shown = path.display();
        let is_root = rustix::process::geteuid().is_root();
        if is_root && !path.exists() {
            // The folder shall belong to the server's user.
            let text = format!(
                "the folder {shown} is not there yet: the first start makes it (services of systemd have /var/lib/NAME/acme)"
            );
            return (None, Told::good(text));
        }
        let random = || RandomState::new().build_hasher().finish();
        let token = format!("maitred-check-{:016x}{:016x}", random(), random());
        let text = format!("{token}.test");
        match folder.check().and_then(|()| folder.publish_http(&token, &text)) {
            Ok(()) => {
                (Some(Self { folder, token, text }), Told::good(format!("the folder {shown} can be used")))
            }
            Err(error) => (None, of_folder(path, &error)),
        }
    }
}

impl Drop for Token<'_> {
    fn drop(&mut self) {
        self.folder.withdraw_http(&self.token);
    }
}

/// The way of an authority to a name.
fn way(wishes: &Wishes, name: &str, token: Option<&Token<'_>>, [http, https]: [u16; 2]) -> Vec<Told> {
    let has = |kind| wishes.challenges.contains(&kind);
    if name.starts_with("*.") || !has(ChallengeKind::Http01) && !has(ChallengeKind::TlsAlpn01) {
        return vec![Told::good(format!("{name}: an entry of the DNS answers for it, which is not tried"))];
    }
    let addresses: Vec<IpAddr> = match (name, http).to_socket_addrs() {
        Ok(addresses) => addresses.map(|address| address.ip()).collect(),
        Err(error) => {
            let remedy = "make an entry of the DNS that leads to this server";
            return vec![Told::fault(format!("{name}: no address is found: {error}; {remedy}"))];
        }
    };
    let asked = addresses.into_iter().map(|address| {
        if has(ChallengeKind::Http01) {
            let answer = ask(SocketAddr::new(address, http), name, token);
            judge(&At { name, address, port: http }, answer, token.map(|token| &*token.text))
        } else {
            let connected = TcpStream::connect_timeout(&SocketAddr::new(address, https), PATIENCE);
            let at = At { name, address, port: https };
            match connected {
                Ok(_) => Told::good(format!(
                    "{at}: something takes connections; whether it is this server is not tried"
                )),
                Err(error) => nothing(&at, &error.to_string()),
            }
        }
    });
    asked.collect()
}

/// A place where the authority asks.
struct At<'a> {
    name: &'a str,
    address: IpAddr,
    port: u16,
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, address, port } = self;
        let whose = if is_here(*address) { "this machine" } else { "not an address of this machine" };
        write!(f, "{name}: port {port} of {address} ({whose})")
    }
}

/// The answer of some server.
#[derive(Debug)]
struct Answer {
    status: u16,
    server: Option<String>,
    location: Option<String>,
    body: Vec<u8>,
}

fn ask(place: SocketAddr, name: &str, token: Option<&Token<'_>>) -> Result<Answer, String> {
    let times = Times { connect: Some(PATIENCE), ..Times::default() };
    let mut settings = Settings { times, ..Settings::default() };
    settings.times.exchange.total = Some(PATIENCE);
    let target =
        format!("/.well-known/acme-challenge/{}", token.map_or("maitred-check", |token| &*token.token));
    let authority = if name.contains(':') { format!("[{name}]") } else { name.to_owned() };
    let mut fields = FieldSet::default();
    fields.push("User-Agent", "maitred-check");
    fields.push("Connection", "close");
    let request = Request {
        method: maitred_http::Method::Get,
        target: &target,
        authority: &authority,
        fields,
        body: Body::Bytes(b""),
        repeatable: None,
    };
    let key = Arc::new(Key::plain(&place.ip().to_string(), place.port()));
    let mut response = Client::new(settings).send(&key, request).map_err(|error| error.to_string())?;
    let field = |name: &str| response.head().fields.first(name).map(shown);
    let (status, server, location) = (response.head().status.code(), field("server"), field("location"));
    // A longer body is none of ours.
    let body = response.read_all(MOST_READ).unwrap_or_default();
    Ok(Answer { status, server, location, body })
}

fn judge(at: &At<'_>, answer: Result<Answer, String>, expected: Option<&str>) -> Told {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return nothing(at, &error),
    };
    if answer.status == 200 && expected.is_some_and(|expected| answer.body == expected.as_bytes()) {
        return Told::good(format!("{at}: this server answers"));
    }
    let by = answer.server.map_or("its name is not told".to_owned(), |server| format!("Server: {server}"));
    if let (300..=399, Some(location)) = (answer.status, &answer.location) {
        let remedy = "the CA follows it, so the token has to be served there, or the redirect must leave out /.well-known/acme-challenge/";
        return Told::fault(format!("{at}: a redirect leads to {location} ({by}); {remedy}"));
    }
    if expected.is_none() {
        return Told::good(format!(
            "{at}: a server answers with {} ({by}); which one is not known",
            answer.status
        ));
    }
    let remedy = "lead the port to this server, or give the other one the same acme-folder; if it is this server, restart it with acme";
    Told::fault(format!("{at}: another server answers with {} ({by}); {remedy}", answer.status))
}

fn nothing(at: &At<'_>, error: &str) -> Told {
    if is_here(at.address) {
        return Told::good(format!("{at}: nothing answers yet: {error}; check again when the server runs"));
    }
    let remedy = "start the server with a listener there, and open the port in firewalls and routers, or choose another way with acme-challenge";
    Told::fault(format!("{at}: no answer: {error}; {remedy}"))
}

/// Whether the address is one of this machine: the way there begins at the address itself. Nothing is sent.
fn is_here(address: IpAddr) -> bool {
    let own: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let begins = UdpSocket::bind(own).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    address.is_loopback() || begins.is_ok_and(|begins| begins.ip() == address)
}

/// A field of another server, fit for a terminal.
fn shown(value: &[u8]) -> String {
    String::from_utf8_lossy(value).chars().filter(|letter| !letter.is_control()).take(MOST_SHOWN).collect()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::unix::fs::chown;

    use maitred_tls::Challenges;

    use super::*;
    use crate::state::{Fault, State};

    /// Looks at a server on this machine that answers once.
    fn seen(folder: &Folder, answer: impl FnOnce(&str) -> String + Send + 'static) -> (Told, String) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let server = thread::spawn(move || {
            let (mut peer, _) = listener.accept().expect("a client");
            let mut head = vec![0; 4096];
            let count = peer.read(&mut head).expect("a request");
            let head = String::from_utf8_lossy(&head[..count]).into_owned();
            peer.write_all(answer(&head).as_bytes()).expect("sent");
            head
        });
        let (token, told) = Token::put(folder, folder.path());
        assert!(!told.is_fault, "{told:?}");
        let told = way(&wishes(folder), "127.0.0.1", token.as_ref(), [port, port]);
        (told.into_iter().next().expect("one address"), server.join().expect("served"))
    }

    fn wishes(folder: &Folder) -> Wishes {
        Wishes {
            folder: folder.clone(),
            directory: "http://127.0.0.1:9/directory".to_owned(),
            authorities: None,
            contact: None,
            external_account: None,
            profile: None,
            chain: None,
            challenges: vec![ChallengeKind::Http01],
            hook: None,
            names: vec!["127.0.0.1".to_owned()],
            on_demand: Vec::new(),
            ask: None,
        }
    }

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::TempDir::new().expect("a folder");
        let folder = Folder::new(place.path().join("acme"));
        folder.prepare().expect("made");
        (place, folder)
    }

    #[test]
    fn this_server_is_known_by_the_token_in_its_folder() {
        let (_place, folder) = folder();
        let own = folder.clone();
        let (told, head) = seen(&folder, move |head| {
            let target = head.split(' ').nth(1).unwrap_or_default();
            let text = own.http(target.rsplit('/').next().unwrap_or_default()).expect("the token is there");
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        });
        assert!(
            !told.is_fault && told.text.ends_with("of 127.0.0.1 (this machine): this server answers"),
            "{told:?}"
        );
        assert!(
            head.starts_with("GET /.well-known/acme-challenge/maitred-check-")
                && head.contains("Host: 127.0.0.1\r\n")
        );
        let left = std::fs::read_dir(folder.path().join("challenges/http")).expect("there").count();
        assert_eq!(left, 0, "the token is taken away");
    }

    #[test]
    fn root_can_do_no_more_in_the_folder_than_its_owner() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let (place, folder) = folder();
        let own = place.path().join("acme");
        for part in ["", "accounts", "certificates", "challenges", "challenges/tls-alpn", "wanted"] {
            chown(own.join(part), Some(1234), Some(1234)).expect("given away");
        }
        let looked = || {
            let wishes = Wishes { names: Vec::new(), ..wishes(&folder) };
            let mut told = preflight(&wishes, None).into_iter().map(|told| told.text);
            told.find(|text| text.starts_with("the folder ")).expect("a line")
        };
        let http = own.join("challenges/http");
        let shown = own.display();
        assert!(looked().starts_with(&format!("the folder {shown} cannot be used: Permission denied")));
        chown(&http, Some(1234), Some(1234)).expect("given away");
        assert_eq!(looked(), format!("the folder {shown} can be used"));
        std::fs::remove_dir(&http).expect("empty");
        assert!(looked().ends_with("can be used") && http.metadata().expect("made").uid() == 1234);
        std::fs::remove_dir(&http).expect("empty");
        std::os::unix::fs::symlink(place.path(), &http).expect("a trap");
        assert!(looked().contains("cannot be used: Permission denied"));
    }

    #[test]
    fn other_answers_say_whose_they_are() {
        let (_place, folder) = folder();
        for (answer, expected) in [
            (
                "404 Not Found\r\nServer: nginx/1.26",
                "another server answers with 404 (Server: nginx/1.26); lead the port",
            ),
            ("200 OK\r\nServer: Apache", "another server answers with 200 (Server: Apache)"),
            (
                "301 Moved Permanently\r\nLocation: https://elsewhere.example/",
                "a redirect leads to https://elsewhere.example/ (its name",
            ),
        ] {
            let (told, _) = seen(&folder, move |_| format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n"));
            assert!(told.is_fault && told.text.contains(expected), "{told:?}");
        }
    }

    #[test]
    fn nothing_that_answers_elsewhere_is_a_fault_with_a_remedy() {
        let (_place, folder) = folder();
        let (token, _) = Token::put(&folder, folder.path());
        // The port is free again when the listener is dropped.
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a port")
            .port();
        let told = way(&wishes(&folder), "127.0.0.1", token.as_ref(), [port, port]);
        assert!(!told[0].is_fault && told[0].text.contains("nothing answers yet: "), "{told:?}");
        let at = At { name: "shop.example", address: "192.0.2.1".parse().expect("an address"), port };
        let told = nothing(&at, "timed out");
        assert!(told.is_fault && told.text.contains("no answer: timed out; start the server"), "{told:?}");
        let fault = Fault { at: 0, text: "refused; wait".to_owned() };
        folder.save_state("a.example", &State { fault: Some(fault), ..State::default() }).expect("saved");
        let told = last_fault(&folder, "a.example").expect("a line");
        assert!(
            !told.is_fault && told.text.ends_with("the last order has failed: refused; wait"),
            "{told:?}"
        );
        let told = directory(&wishes(&folder));
        assert!(
            told.is_fault
                && told.text.starts_with("the directory http://127.0.0.1:9/directory cannot be used: "),
            "{told:?}"
        );
        assert!(!account(&wishes(&folder)).is_fault);
        assert!(
            !is_here("192.0.2.1".parse().expect("an address")) && is_here("::1".parse().expect("an address"))
        );
    }
}
