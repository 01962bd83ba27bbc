//! SIGUSR2: a new program takes over, as both sides have it.
//!
//! ```text
//! predecessor                                   successor (fork and exec, the same command)
//!     ---- addresses, with the sockets, the PID file, the bell of the workers, their clients, TLS ->
//!                                               reads its configuration, starts its workers
//!     <--- ready --------------------------------- when all are
//! closes its doors, and the channel
//! drains and ends                               opens its doors
//! ```
//! If the successor ends, or is not ready in time, nothing has changed: its predecessor serves on. The successor is started by path, so that a new
//! installation at the same place runs.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use maitred_config::tls::Handed;
use maitred_config::{Checked, PassedName, Problem};
use maitred_control::lock;
use maitred_io::channel::Channel;
use maitred_io::child::{Child, Ended, Program};
use maitred_server::Bell;
use maitred_server::limits::ClientTable;
use maitred_server::listening::Address;
use maitred_server::service_manager::Passing;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Happening;
use super::message::{read, to_text};
use crate::passed::passing;
use crate::sockets::{self, Sockets};

/// The first argument of a new program that is to take over.
pub(crate) const AS_SUCCESSOR: &str = "--as-successor";

/// Version of the message. The programs may be of different versions: unknown fields are ignored, missing ones have defaults.
const VERSION: u64 = 1;

#[derive(Serialize)]
struct Message {
    version: u64,
    /// Addresses, and how many sockets there are of each.
    listeners: Vec<String>,
    counts: Vec<usize>,
    /// By position, those that a service manager has passed.
    passed: Vec<Option<PassedName>>,
    /// Which further descriptors follow.
    pid_file: bool,
    bell: bool,
    clients: bool,
    acts: bool,
    tls: Value,
}

impl Message {
    /// Reads each field by itself, so that a field of another form costs no socket. Returns the names of the fields that cannot be read.
    fn read(bytes: &[u8]) -> (Self, Vec<&'static str>) {
        let mut fields: Map<String, Value> = read(bytes).unwrap_or_default();
        let mut unread = Vec::new();
        if fields.is_empty() {
            unread.push("all");
        }
        let mut message = Self {
            version: take(&mut fields, "version", &mut unread),
            listeners: take(&mut fields, "listeners", &mut unread),
            counts: take(&mut fields, "counts", &mut unread),
            passed: take(&mut fields, "passed", &mut unread),
            pid_file: take(&mut fields, "pid_file", &mut unread),
            bell: take(&mut fields, "bell", &mut unread),
            clients: take(&mut fields, "clients", &mut unread),
            acts: take(&mut fields, "acts", &mut unread),
            tls: take(&mut fields, "tls", &mut unread),
        };
        // Descriptors are told apart by their order: behind an unreadable field their use is unknown.
        let ordered = ["listeners", "counts", "pid_file", "bell"];
        let known = ordered.iter().position(|name| unread.contains(name)).unwrap_or(ordered.len());
        if known < 2 {
            message.listeners.clear();
        }
        message.pid_file &= known > 2;
        message.bell &= known > 3;
        message.clients &= known > 3;
        (message, unread)
    }
}

/// Takes a field. A field that is missing has its default; a field that cannot be read has it, too, and is noted in `unread`.
fn take<T: Default + DeserializeOwned>(
    fields: &mut Map<String, Value>,
    name: &'static str,
    unread: &mut Vec<&'static str>,
) -> T {
    let value = fields.remove(name).map(serde_json::from_value);
    value.unwrap_or_else(|| Ok(T::default())).unwrap_or_else(|_| {
        unread.push(name);
        T::default()
    })
}

/// The problem of these fields of the message.
fn problem(version: u64, unread: &[&str]) -> Option<String> {
    (!unread.is_empty()).then(|| {
        format!(
            "the program before this one is of another version (message {version}, known is {VERSION}): {} of its message cannot be read, \
             so this program makes its own; if an address is in use, restart the server",
            unread.join(", ")
        )
    })
}

/// The message to a successor, with its descriptors.
pub(crate) struct HandOver<'a> {
    pub(crate) listeners: &'a Sockets,
    /// The configuration of these listeners, in the same order.
    pub(crate) checked: &'a Checked,
    /// The process has become another user.
    pub(crate) acts: bool,
    pub(crate) pid_file: Option<BorrowedFd<'a>>,
    /// Certificates, keys and the ticket secret. The successor may lack the right to read them.
    pub(crate) tls: Option<Handed>,
    /// The bell of the workers: those of both programs accept from the same sockets for a while.
    pub(crate) bell: &'a Bell,
    /// The table of clients, which the workers of both programs share.
    pub(crate) clients: &'a ClientTable,
}

/// A program that is to take over, on the predecessor's side.
pub(crate) struct Successor {
    child: Arc<Child>,
    /// Held open until the doors are closed: the end of the channel tells the successor so.
    _channel: Channel,
}

impl Successor {
    /// Starts a successor. `told` gets one event: the successor is ready, or the reason why it is not.
    ///
    /// # Errors
    /// No process, thread or descriptor can be had.
    pub(crate) fn start(
        program: &Program,
        hand_over: &HandOver<'_>,
        limit: Duration,
        told: Sender<Happening>,
    ) -> io::Result<Self> {
        let (own, other) = Channel::pair()?;
        let HandOver { listeners, checked, acts, pid_file, bell, clients, tls } = hand_over;
        // The successor expects this order of descriptors.
        let all = listeners.all();
        let counts: Vec<usize> = all.iter().map(Vec::len).collect();
        let sockets: Vec<BorrowedFd<'_>> = all
            .into_iter()
            .flatten()
            .chain(*pid_file)
            .chain(bell.descriptors())
            .chain([clients.as_fd()])
            .collect();
        let message = Message {
            version: VERSION,
            listeners: checked.addresses().iter().map(ToString::to_string).collect(),
            counts,
            passed: checked.listeners.iter().map(|listener| listener.passed.clone()).collect(),
            pid_file: pid_file.is_some(),
            bell: true,
            clients: true,
            acts: *acts,
            tls: tls.clone().map_or(Value::Null, Value::from),
        };
        own.send(&to_text(&message), &sockets)?;
        let child = Arc::new(Child::start(program, other.into_descriptor())?);
        // Two threads may tell the outcome; the first one does.
        let told = Arc::new(Mutex::new(Some(told)));
        let say = move |outcome: Result<(), String>| {
            if let Some(told) = lock(&told).take() {
                let _ = told.send(Happening::Succeeded(outcome));
            }
        };
        let (says, waiter) = (say.clone(), Arc::clone(&child));
        let waits = thread::Builder::new().name("maitred-child".to_owned()).spawn(move || {
            let how = match waiter.wait() {
                Ok(Ended::Code(code)) => format!("ended with exit code {code} before it was ready"),
                Ok(Ended::Signal(signal)) => format!("was killed by signal {signal} before it was ready"),
                Err(error) => format!("is gone: {error}"),
            };
            says(Err(how));
        });
        waits.inspect_err(|_| child.end_now())?;
        let channel = own.try_clone()?;
        own.set_receive_limit(Some(limit).filter(|limit| !limit.is_zero()))?;
        let listens =
            thread::Builder::new().name("maitred-channel".to_owned()).spawn(move || match own.receive() {
                Ok(_) => say(Ok(())),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    let seconds = limit.as_secs_f64();
                    say(Err(format!("was not ready within {seconds} s (start-timeout) and is ended")));
                }
                // The thread that waits for the process tells its end, with the exit code.
                Err(_) => {}
            });
        listens.inspect_err(|_| child.kill())?;
        Ok(Self { child, _channel: channel })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Kills the successor; its workers end with it.
    pub(crate) fn end(&self) {
        self.child.kill();
    }
}

/// The program before this one, on the successor's side.
pub(crate) struct Predecessor {
    channel: Channel,
    /// The sockets of each listener, by address.
    sockets: Vec<(String, Vec<OwnedFd>)>,
    acts: bool,
    /// Sockets that a service manager has passed.
    passed: Vec<(PassedName, OwnedFd)>,
    pub(crate) pid_file: Option<OwnedFd>,
    pub(crate) tls: Option<Handed>,
    /// None from a predecessor of an earlier version.
    bell: Option<Bell>,
    clients: Option<ClientTable>,
    /// The parts of the message that cannot be read, until they are logged.
    problem: Option<String>,
}

impl Predecessor {
    /// Receives the message of the predecessor.
    pub(crate) fn join() -> Result<Self, Problem> {
        let wrong = |what: String| {
            Problem::new(
                AS_SUCCESSOR,
                what,
                "it is the supervisor's at SIGUSR2; start 'maitred --workers N …' instead",
            )
        };
        let channel = Channel::take_standard_input()
            .map_err(|error| wrong(format!("this process has no predecessor: {error}")))?;
        let received =
            channel.receive().map_err(|error| wrong(format!("the predecessor is gone: {error}")))?;
        let (message, mut unread) = Message::read(&received.text);
        let mut descriptors = received.descriptors.into_iter();
        let (mut counts, mut all_passed) = (message.counts.into_iter(), message.passed.into_iter());
        let (mut sockets, mut passed) = (Vec::new(), Vec::new());
        for name in message.listeners {
            let mut own = descriptors.by_ref().take(counts.next().unwrap_or(1));
            match all_passed.next().flatten() {
                Some(known) => passed.extend(own.next().map(|socket| (known, socket))),
                None => sockets.push((name, own.collect())),
            }
        }
        let pid_file = if message.pid_file { descriptors.next() } else { None };
        let bell = match (message.bell, descriptors.next(), descriptors.next()) {
            (true, Some(waker), Some(last)) => Bell::open([waker, last]).ok(),
            _ => None,
        };
        let table = if message.clients { descriptors.next() } else { None };
        // A table of another version cannot be opened; then this program makes its own.
        let clients = table.and_then(|table| ClientTable::open(table).ok());
        let tls = if message.tls.is_null() {
            None
        } else {
            Handed::try_from(message.tls).ok().or_else(|| {
                unread.push("tls");
                None
            })
        };
        let problem = problem(message.version, &unread);
        Ok(Self { channel, sockets, acts: message.acts, passed, pid_file, bell, clients, tls, problem })
    }

    /// Takes the line for the log, once, if the predecessor is of a version with another message.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// Whether the predecessor had become another user, as which this process runs.
    pub(crate) fn acts(&self) -> bool {
        self.acts
    }

    /// Takes the bell of the predecessor's workers, once. A worker that was woken for a connection and ends instead wakes the workers of this program.
    pub(crate) fn take_bell(&mut self) -> Option<Bell> {
        self.bell.take()
    }

    /// Takes the table of clients of the predecessor's workers, once.
    pub(crate) fn take_clients(&mut self) -> Option<ClientTable> {
        self.clients.take()
    }

    /// Takes the sockets that a service manager has passed to the predecessor, once.
    pub(crate) fn take_passed(&mut self) -> Passing {
        passing(self.passed.drain(..))
    }

    /// Takes the sockets that listen at these addresses, and closes the others.
    pub(crate) fn take_sockets(&mut self, addresses: &[Address]) -> sockets::Handed {
        let mut take = |address: &Address| {
            let name = address.to_string();
            let at = self.sockets.iter().position(|(known, _)| *known == name);
            at.map_or_else(Vec::new, |at| self.sockets.remove(at).1)
        };
        let taken = addresses.iter().map(&mut take).collect();
        self.sockets.clear();
        taken
    }

    /// Tells the predecessor that this program is ready. [`Happening::Alone`] follows when the predecessor has closed its doors.
    pub(crate) fn tell_ready(self, told: Sender<Happening>) {
        // The predecessor may be gone already.
        let _ = self.channel.send(b"ready", &[]);
        let channel = self.channel;
        let waits = thread::Builder::new().name("maitred-channel".to_owned());
        // Without this thread the doors stay closed, and the program serves all the same.
        let _ = waits.spawn(move || {
            while channel.receive().is_ok() {}
            let _ = told.send(Happening::Alone);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_later_version_loses_only_what_cannot_be_read() {
        let later = br#"{"version":2,"listeners":[":1",":2"],"counts":[1,2],"bell":"loud","clients":true,"acts":true,"later":{}}"#;
        let (message, unread) = Message::read(later);
        assert_eq!((message.listeners, message.counts), (vec![":1".to_owned(), ":2".to_owned()], vec![1, 2]));
        assert_eq!((message.bell, message.clients, message.acts), (false, false, true));
        let line = problem(message.version, &unread).expect("a problem");
        assert!(line.contains("message 2, known is 1") && line.contains("bell of its message"), "{line}");
    }

    #[test]
    fn sockets_without_their_numbers_are_not_taken() {
        let (message, unread) = Message::read(br#"{"listeners":[":1"],"counts":"one","pid_file":true}"#);
        assert_eq!((message.listeners.len(), message.pid_file, unread), (0, false, vec!["counts"]));
        let (message, unread) = Message::read(b"later");
        assert_eq!((message.listeners.len(), unread), (0, vec!["all"]));
    }

    #[test]
    fn a_message_of_an_earlier_version_is_whole() {
        let (message, unread) = Message::read(br#"{"listeners":[":1"],"pid_file":true}"#);
        assert_eq!((message.listeners.len(), message.pid_file), (1, true));
        assert_eq!(problem(message.version, &unread), None);
    }
}
