//! The world of an orderer: the time, the authority, the hook, random numbers.
//!
//! Promises: everything ends soon behind [`Stop`], a hook that removes an entry of the DNS within some seconds; a call takes at most a minute, a hook two. Leaves out: what is asked.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use maitred_acme::{HttpRequest, HttpResponse, MAX_RESPONSE, Method, Now};
use maitred_client::call::{Call, Options, Step};
use maitred_client::key::{Authorities, Key, Place, Proxy, TlsIdentity};
use maitred_client::{CallError, Client, Settings, Times, blocking, environment};
use maitred_h1::OutgoingRequest;
use maitred_http::FieldSet;
use rustix::process::{Pid, Signal, kill_process_group};

/// Longest times of a call. Let's Encrypt answers within some seconds.
const CONNECT: Duration = Duration::from_secs(10);
const WHOLE: Duration = Duration::from_secs(60);

/// Longest time of a hook: an entry of the DNS can be seen by then.
const HOOK: Duration = Duration::from_secs(120);

/// Time between two looks whether the server ends, while a call or a hook runs.
const LOOK: Duration = Duration::from_millis(100);

/// Time behind [`Stop`] for hooks that remove entries of the DNS. The next start removes the others.
const REMOVAL: Duration = Duration::from_secs(5);

/// A wish to end, which is not taken back, with its time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<OnceLock<Instant>>);

impl Stop {
    pub(crate) fn set(&self) {
        self.0.get_or_init(Instant::now);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.is_over(Duration::ZERO)
    }

    /// Whether this time has passed since the wish.
    fn is_over(&self, time: Duration) -> bool {
        self.0.get().is_some_and(|at| at.elapsed() >= time)
    }
}

/// See the module text.
pub(crate) trait World {
    fn now(&self) -> Now;

    fn random(&self) -> u16;

    /// Sends a request to the authority. The error says why there is no answer.
    fn send(&self, request: &HttpRequest) -> Result<HttpResponse, String>;

    /// Asks a URL of the operator's own, which is no authority: its status.
    fn ask(&self, url: &str) -> Result<u16, String>;

    /// Runs the hook with these arguments.
    fn hook(&self, command: &str, arguments: [&str; 3]) -> Result<(), String>;

    fn stops(&self) -> bool;
}

/// The world itself.
pub(crate) struct Outside {
    client: Client,
    tls: TlsIdentity,
    variable: fn(&str) -> Option<String>,
    begun: Instant,
    stop: Stop,
}

impl Outside {
    /// `authorities` sign the certificate of the directory, if the system's do not.
    pub(crate) fn new(authorities: Option<&Path>, stop: &Stop) -> Self {
        let authorities = authorities.map_or(Authorities::System, |path| Authorities::At(path.to_owned()));
        let times = Times { connect: Some(CONNECT), tls: Some(CONNECT), ..Times::default() };
        let mut settings = Settings { times, ..Settings::default() };
        settings.times.exchange.total = Some(WHOLE);
        Self {
            client: Client::new(settings),
            tls: TlsIdentity { authorities, ..TlsIdentity::default() },
            variable: |name| std::env::var(name).ok(),
            begun: Instant::now(),
            stop: stop.clone(),
        }
    }

    /// `variable` has the proxies.
    fn call(
        &self,
        request: &HttpRequest,
        tls: &TlsIdentity,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<HttpResponse, String> {
        let Url { secure, host, port, authority, target } =
            Url::parse(&request.url).ok_or_else(|| format!("{} is no URL", request.url))?;
        let proxy = environment::proxy_for(secure, &host, port, variable);
        let proxy =
            proxy.map(|url| Proxy::of_url(&url, TlsIdentity::default()).map_err(|error| error.to_string()));
        let key = Arc::new(Key {
            place: Place::Host(host.into(), port),
            proxy: proxy.transpose()?,
            tls: secure.then(|| tls.clone()),
            ..Key::plain("", 0)
        });
        let mut fields = FieldSet::default();
        // RFC 8555 §6.1 wants it.
        fields.push("User-Agent", concat!("maitred/", env!("CARGO_PKG_VERSION")));
        request.content_type.iter().for_each(|value| _ = fields.push("Content-Type", value));
        request.accept.iter().for_each(|value| _ = fields.push("Accept", value));
        let (method, has_body) = match request.method {
            Method::Get => (maitred_http::Method::Get, false),
            Method::Head => (maitred_http::Method::Head, false),
            Method::Post => (maitred_http::Method::Post, true),
        };
        let outgoing = OutgoingRequest {
            method: &method,
            target: target.as_bytes(),
            authority: authority.as_bytes(),
            fields: &fields,
            length: has_body.then_some(request.body.len() as u64).or(Some(0)),
            upgrade: false,
        };
        let times = self.client.settings().times;
        // The authority refuses a nonce that it has seen, so a second copy of a request does nothing.
        let options = Options { times, repeatable: Some(true), body_again: true, ..Options::default() };
        let call = Call::begin(&self.client, &key, &outgoing, &options, Instant::now());
        let answer = call.and_then(|call| self.drive(call, &request.body));
        answer.map_err(|error| error.to_string())?.ok_or_else(|| "the server ends".to_owned())
    }

    /// Drives a call to its end; none if the server ends before.
    fn drive(&self, mut call: Call, body: &[u8]) -> Result<Option<HttpResponse>, CallError> {
        let mut content = Vec::new();
        if !body.is_empty() {
            call.give_body(body)?;
        }
        loop {
            let now = Instant::now();
            match blocking::with_waker(|waker| call.step(now, waker))? {
                Step::Body => {
                    let at = usize::try_from(call.body_at()).unwrap_or(usize::MAX);
                    call.give_body(body.get(at..).unwrap_or_default())?;
                }
                Step::Head | Step::Interim => {}
                Step::Data(length) => {
                    content.extend_from_slice(call.data());
                    call.consume(length);
                    if content.len() > MAX_RESPONSE {
                        return Err(CallError::TooLong(MAX_RESPONSE));
                    }
                }
                Step::End => break,
                Step::Wait(_) if self.stop.is_set() => return Ok(None),
                Step::Wait(until) => {
                    let limit = until.map_or(LOOK, |until| until.saturating_duration_since(now).min(LOOK));
                    blocking::wait(&call, Some(limit))?;
                }
            }
        }
        let head = call.head();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields: Vec<_> = head.fields.iter().map(|(name, value)| (text(name), text(value))).collect();
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Ok(Some(HttpResponse::new(head.status.code(), fields, content)))
    }
}

impl World for Outside {
    fn now(&self) -> Now {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Now { wall, steady: self.begun.elapsed().as_secs() }
    }

    fn random(&self) -> u16 {
        // The keys of a new hasher are random.
        RandomState::new().build_hasher().finish() as u16
    }

    fn send(&self, request: &HttpRequest) -> Result<HttpResponse, String> {
        self.call(request, &self.tls, self.variable)
    }

    fn ask(&self, url: &str) -> Result<u16, String> {
        let request = HttpRequest {
            method: Method::Get,
            url: url.to_owned(),
            content_type: None,
            accept: None,
            body: Vec::new(),
        };
        // The server is the operator's own: the word of a proxy would be taken for its.
        self.call(&request, &TlsIdentity::default(), |_| None).map(|response| response.status)
    }

    fn hook(&self, command: &str, arguments: [&str; 3]) -> Result<(), String> {
        run(command, arguments, &self.stop)
    }

    fn stops(&self) -> bool {
        self.stop.is_set()
    }
}

/// Held while a hook runs, whose end only this crate may wait for.
static HOOK_RUNS: Mutex<()> = Mutex::new(());

/// Calls `act`, which waits for children of this process, unless a hook runs: `act` would take the end of the hook away.
pub fn unless_hook_runs(act: impl FnOnce()) {
    match HOOK_RUNS.try_lock() {
        Ok(_idle) => act(),
        Err(TryLockError::Poisoned(_)) => act(),
        Err(TryLockError::WouldBlock) => {}
    }
}

fn run(command: &str, arguments: [&str; 3], stop: &Stop) -> Result<(), String> {
    let _runs = HOOK_RUNS.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = if arguments[0] == "remove" { REMOVAL } else { Duration::ZERO };
    if stop.is_over(rest) {
        return Err("the server ends".to_owned());
    }
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut child = Command::new(program)
        .args(words)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| format!("{program} cannot be started: {error}"))?;
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(format!(
                    "{command} has ended with {status}; its words are in the error output of this server"
                ));
            }
            Ok(None) if stop.is_over(rest) => {
                end(&mut child);
                return Err(format!("{command} was killed, as the server ends"));
            }
            Ok(None) if begun.elapsed() >= HOOK => break,
            Ok(None) => thread::sleep(LOOK),
            Err(error) => return Err(format!("the end of {program} cannot be waited for: {error}")),
        }
    }
    end(&mut child);
    Err(format!("{command} has not ended within {} s, and was killed", HOOK.as_secs()))
}

fn end(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _: io::Result<_> = child.wait();
}

/// The parts of a URL.
struct Url {
    secure: bool,
    host: String,
    port: u16,
    authority: String,
    target: String,
}

impl Url {
    fn parse(url: &str) -> Option<Self> {
        let (secure, rest) = match url.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, url.strip_prefix("http://")?),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let target = target.split('#').next().unwrap_or_default();
        let usual = if secure { 443 } else { 80 };
        let is_port = |port: &str| !port.contains(']');
        let (host, port) = match authority.rsplit_once(':').filter(|(_, port)| is_port(port)) {
            Some((host, port)) => (host, port.parse().ok()?),
            None => (authority, usual),
        };
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let slash = if target.starts_with('/') { "" } else { "/" };
        let is_host = !host.is_empty() && (host.parse::<IpAddr>().is_ok() || !host.contains(':'));
        let (authority, target) = (authority.to_owned(), format!("{slash}{target}"));
        is_host.then_some(Self { secure, host, port, authority, target })
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn urls_have_a_place_and_a_target() {
        let parts = |url: &str| {
            let Url { secure, host, port, authority, target } = Url::parse(url)?;
            Some(format!("{secure} {host} {port} {authority} {target}"))
        };
        assert_eq!(
            parts("https://CA.example/dir?x=1#f").as_deref(),
            Some("true ca.example 443 CA.example /dir?x=1")
        );
        assert_eq!(parts("http://[::1]:8000?a").as_deref(), Some("false ::1 8000 [::1]:8000 /?a"));
        assert_eq!(parts("http://[::1]").as_deref(), Some("false ::1 80 [::1] /"));
        for url in ["", "ftp://a/", "https://", "https://a:b/", "https://::1/"] {
            assert_eq!(parts(url), None, "{url}");
        }
    }

    #[test]
    fn the_operators_own_url_is_asked_without_a_proxy() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/ask", listener.local_addr().expect("an address"));
        let server = thread::spawn(move || {
            let (mut client, _) = listener.accept()?;
            io::Read::read(&mut client, &mut [0; 1024])?;
            io::Write::write_all(&mut client, b"HTTP/1.1 204 No Content\r\n\r\n")
        });
        let mut outside = Outside::new(None, &Stop::default());
        outside.variable = |name| (name == "http_proxy").then(|| "http://proxy.invalid:1".to_owned());
        assert_eq!(outside.ask(&url), Ok(204));
        server.join().expect("no panic").expect("answered");
    }

    #[test]
    fn a_hook_says_by_its_code_whether_it_has_worked() {
        let stop = Stop::default();
        assert_eq!(run("true", ["add", "a", "b"], &stop), Ok(()));
        let error = run("false", ["add", "a", "b"], &stop).expect_err("it fails");
        assert!(error.starts_with("false has ended with exit status: 1"), "{error}");
        assert!(
            run("/nowhere/hook", ["add", "a", "b"], &stop).expect_err("none").contains("cannot be started")
        );
        let folder = tempfile::TempDir::new().expect("a folder");
        let endless = folder.path().join("endless");
        std::fs::write(&endless, "sleep 600\n").expect("written");
        let command = format!("sh {}", endless.display());
        let ending = stop.clone();
        let other = thread::spawn(move || run(&command, ["add", "a", "b"], &ending));
        stop.set();
        let error = other.join().expect("no panic").expect_err("the end of the server ends the hook");
        assert!(error.ends_with("the server ends"), "{error}");
        assert_eq!(run("true", ["remove", "a", "b"], &stop), Ok(()), "entries are removed at the end, too");
    }

    #[test]
    fn nothing_else_waits_for_children_while_a_hook_runs() {
        let _runs = HOOK_RUNS.lock().expect("idle");
        unless_hook_runs(|| panic!("a hook runs"));
    }
}
