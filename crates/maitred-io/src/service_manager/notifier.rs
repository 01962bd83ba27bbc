//! Telling the service manager how the process is: one datagram for each thing (sd_notify(3)).

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use crate::clock;

/// How long one datagram may wait for a service manager that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// The way to the service manager. Its address is looked at anew for each datagram, so that a service manager which has
/// begun again is reached. Nothing waits for an answer.
pub struct Notifier {
    socket: UnixDatagram,
    address: SocketAddr,
    given: OsString,
    watchdog: Option<Duration>,
}

/// Half of the period in the variables, if they mean this process (sd_watchdog_enabled(3)).
pub(super) fn watchdog(text: &dyn Fn(&str) -> Option<String>, process: u32) -> Option<Duration> {
    let period = text("WATCHDOG_USEC")?.parse().ok().filter(|period| *period > 1)?;
    let is_ours = text("WATCHDOG_PID").is_none_or(|text| text.parse() == Ok(process));
    is_ours.then_some(Duration::from_micros(period) / 2)
}

impl Notifier {
    pub(super) fn new(given: &OsStr, watchdog: Option<Duration>) -> Result<Self, String> {
        let failed = |error| format!("NOTIFY_SOCKET is '{}': {error}", given.display());
        let address = match given.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(given),
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            _ => return Err(failed(io::Error::other("it is neither a path nor an abstract name"))),
        };
        let address = address.map_err(failed)?;
        let socket = UnixDatagram::unbound().map_err(failed)?;
        socket.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Self { socket, address, given: given.to_owned(), watchdog })
    }

    /// How often it wants to hear that the process [is alive](Self::alive): twice in its limit. None if it does not.
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The environment that a successor of this process needs to report to the same service manager. Not the process
    /// that the watchdog is for: that is the successor then.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables = vec![("NOTIFY_SOCKET", self.given.clone())];
        let period = self.watchdog.map(|beat| beat.saturating_mul(2).as_micros().to_string().into());
        variables.extend(period.map(|period| ("WATCHDOG_USEC", period)));
        variables
    }

    /// Reports that the service is ready, and that this is its process.
    pub fn ready(&self, status: &str) -> io::Result<()> {
        let process = std::process::id();
        self.send(format_args!("READY=1\nMAINPID={process}\nSTATUS={}", Line(status)))
    }

    /// Reports that another process is the one of the service from now on: a successor that is [`ready`](Self::ready).
    /// The service manager believes this only of the process that is so far.
    pub fn main_process(&self, process: u32) -> io::Result<()> {
        self.send(format_args!("MAINPID={process}"))
    }

    /// Reports that the service reads its configuration again, until it is [`ready`](Self::ready).
    pub fn reloading(&self) -> io::Result<()> {
        let now = clock::monotonic() / 1000;
        self.send(format_args!("RELOADING=1\nMONOTONIC_USEC={now}\nSTATUS=reading the configuration"))
    }

    /// Reports that the service ends, and will not come back.
    pub fn stopping(&self, status: &str) -> io::Result<()> {
        self.send(format_args!("STOPPING=1\nSTATUS={}", Line(status)))
    }

    /// Reports the present work in these words.
    pub fn status(&self, status: &str) -> io::Result<()> {
        self.send(format_args!("STATUS={}", Line(status)))
    }

    /// Asks for more time for the start or the end: so long at most until this is sent again.
    pub fn extend(&self, time: Duration) -> io::Result<()> {
        self.send(format_args!("EXTEND_TIMEOUT_USEC={}", time.as_micros()))
    }

    /// Reports that the process is alive.
    ///
    /// # Errors
    /// The manager has gone, refuses, or does not read within a second.
    pub fn alive(&self) -> io::Result<()> {
        self.send(format_args!("WATCHDOG=1"))
    }

    fn send(&self, text: fmt::Arguments<'_>) -> io::Result<()> {
        let text = text.to_string();
        self.socket.send_to_addr(text.as_bytes(), &self.address).map(drop)
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({})", self.given.display())
    }
}

/// A text that cannot begin another variable.
struct Line<'a>(&'a str);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|letter| f.write_char(if letter.is_control() { ' ' } else { letter }))
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    fn told(socket: &UnixDatagram) -> String {
        let mut room = [0; 4096];
        let length = socket.recv(&mut room).unwrap();
        String::from_utf8(room[..length].to_vec()).unwrap()
    }

    fn walk(socket: &UnixDatagram, notifier: &Notifier) {
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        notifier.ready("serving\nREADY=0").unwrap();
        assert_eq!(told(socket), format!("READY=1\nMAINPID={}\nSTATUS=serving READY=0", std::process::id()));
        let before = clock::monotonic() / 1000;
        notifier.reloading().unwrap();
        let text = told(socket);
        let time: u64 =
            text.lines().nth(1).unwrap().strip_prefix("MONOTONIC_USEC=").unwrap().parse().unwrap();
        assert!(text.starts_with("RELOADING=1\n") && (before..=clock::monotonic() / 1000).contains(&time));
        notifier.stopping("draining").unwrap();
        assert_eq!(told(socket), "STOPPING=1\nSTATUS=draining");
        notifier.extend(Duration::from_secs(2)).unwrap();
        assert_eq!(told(socket), "EXTEND_TIMEOUT_USEC=2000000");
        notifier.alive().unwrap();
        assert_eq!(told(socket), "WATCHDOG=1");
    }

    #[test]
    fn each_thing_is_one_datagram_to_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let notifier = Notifier::new(path.as_os_str(), Some(Duration::from_millis(1500))).unwrap();
        walk(&socket, &notifier);
        let expected =
            [("NOTIFY_SOCKET", path.clone().into_os_string()), ("WATCHDOG_USEC", "3000000".into())];
        assert_eq!(notifier.variables(), expected);
        // The service manager has begun again.
        std::fs::remove_file(&path).unwrap();
        assert!(notifier.alive().is_err());
        walk(&UnixDatagram::bind(&path).unwrap(), &notifier);
    }

    #[test]
    fn it_may_be_a_name_in_the_kernel() {
        let name = format!("maitred-notify-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        walk(&socket, &Notifier::new(format!("@{name}").as_ref(), None).unwrap());
    }
}
