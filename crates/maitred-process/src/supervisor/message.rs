//! Messages between a supervisor and its workers, as JSON over a channel.
//!
//! ```text
//! supervisor                                         worker
//!     ---- setup, with descriptors -------------------->
//!     <--- ready (applications), or failed (why) -------
//!     <--- beat, each second ---------------------------
//!     ---- ask (a question of ctl) --> answer <---------
//!     <--- ask (figures of all) ----> answer ---------->
//!     ---- unready, last, at once, empty (with a socket) ->
//! ```

use maitred_config::sources::file::SourceFile;
use maitred_config::tls::Handed;
use maitred_config::{PassedName, Problem};
use maitred_control::{Answered, Question};
use maitred_supervise::Beat;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Questions that only the supervisor asks: the counts of a worker, and the worker's part of the page of figures.
pub(crate) const COUNTED: &str = "/worker/counted";
pub(crate) const LOOKED: &str = "/worker/looked";
/// A picture of the process, for `finding`.
pub(crate) const PICTURE: &str = "/worker/picture";
pub(crate) const OWN_PAGE: &str = "/worker/metrics";

/// Number of the form of all these messages. A change of their form, or of their meaning, raises the number.
const FORM: u64 = 1;

/// The remedy for a supervisor and a worker of different versions.
const UPGRADED: &str =
    "maitred was upgraded while the server ran: send SIGUSR2 to the supervisor, or restart the server";

/// The version of a supervisor. The first message has it in all versions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Version {
    form: u64,
    name: String,
}

impl Default for Version {
    /// A supervisor that does not tell its version.
    fn default() -> Self {
        Self { form: 0, name: "of an earlier version".to_owned() }
    }
}

impl Version {
    /// This program.
    pub(crate) fn own() -> Self {
        Self { form: FORM, name: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The first message to a worker. The descriptors come with this message: the listeners in the order of the configuration, the bell of all
/// workers, the table of clients of all workers, and the worker's own memory of figures and of its counts in that table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Setup {
    /// Read before the other fields: those of another version may have another form.
    pub(crate) version: Version,
    /// The number of the worker, from 1 on.
    pub(crate) number: usize,
    pub(crate) workers: usize,
    /// Number of descriptors that are listeners.
    pub(crate) listeners: usize,
    /// The listeners are the worker's own, with queues that no other worker accepts from.
    pub(crate) own: bool,
    /// The listeners that a service manager has passed, by position.
    pub(crate) passed: Vec<Option<PassedName>>,
    /// The configuration files as the supervisor has read them.
    pub(crate) files: Vec<SourceFile>,
    /// The process has become another user.
    pub(crate) acts: bool,
    /// Changes that operators have made, in this order.
    pub(crate) changes: Vec<Question>,
    /// Certificates, keys and the ticket secret. The supervisor reads them: the worker may lack the right to.
    pub(crate) tls: Option<Handed>,
    /// The token of the page with tracebacks, in development.
    pub(crate) development: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The worker serves: the application and the addresses, for the start-up lines.
    Ready {
        what: Option<String>,
        served: Vec<String>,
    },
    /// The worker cannot start, for this reason.
    Failed(String),
    Beat(Beat),
    /// The answer to the question with this number.
    Answer(u64, Answered),
    /// A question for the supervisor.
    Ask(u64, Question),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    Ask(u64, Question, String),
    Answer(u64, Answered),
    /// The health path of the worker shall answer "not ready" from now on.
    Unready,
    /// This worker is among the last ones: it shall accept the connections that wait, then end.
    Last,
    /// The worker shall accept the connections that wait at the socket in this message, as if they waited at the listener with this number.
    Empty(usize),
    /// The worker shall end at once and cut requests off.
    AtOnce,
}

/// The message as it is sent: all of these can be written as JSON.
pub(super) fn to_text(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

/// Reads a message; none of bytes that are another one.
pub(super) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Reads the setup of a supervisor.
///
/// # Errors
/// The supervisor is of another version.
pub(super) fn read_setup(place: &str, bytes: &[u8]) -> Result<Setup, Problem> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Head {
        version: Version,
    }
    let Head { version } = read(bytes).unwrap_or_default();
    let setup = if version.form == FORM { read(bytes) } else { None };
    setup.ok_or_else(|| {
        let what = format!(
            "this process is maitred {}, and its supervisor is {}: the setup cannot be read",
            env!("CARGO_PKG_VERSION"),
            version.name
        );
        Problem::new(place, what, UPGRADED)
    })
}

/// The cause of failure of a process with a message that the supervisor cannot read.
pub(super) fn unreadable() -> String {
    let own = env!("CARGO_PKG_VERSION");
    format!(
        "its message cannot be read: it is of another version than the supervisor, which is maitred {own}; {UPGRADED}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_of_another_version_names_both_versions() {
        let setup = Setup { version: Version::own(), number: 2, ..Setup::default() };
        assert_eq!(read_setup("--as-worker", &to_text(&setup)), Ok(setup.clone()));
        let why = |bytes: &[u8]| read_setup("--as-worker", bytes).expect_err("another version").to_string();
        let later = Setup { version: Version { form: FORM + 1, name: "9.8.7".to_owned() }, ..setup };
        // The form is compared first: a setup with the same fields may mean something else, and one with other fields still has its version.
        for bytes in [to_text(&later), br#"{"version":{"form":2,"name":"9.8.7"},"workers":[]}"#.to_vec()] {
            let why = why(&bytes);
            assert!(why.contains("its supervisor is 9.8.7") && why.contains("send SIGUSR2"), "{why}");
            assert!(why.contains(concat!("maitred ", env!("CARGO_PKG_VERSION"))), "{why}");
        }
        let same = format!(r#"{{"version":{{"form":{FORM},"name":"9.8.7"}},"workers":[]}}"#);
        assert!(why(same.as_bytes()).contains("9.8.7"));
        for bytes in [&b"{}"[..], b"", br#"{"number":1}"#] {
            assert!(why(bytes).contains("of an earlier version"));
        }
    }

    #[test]
    fn written_messages_are_read_as_they_were() {
        let asked =
            Question { method: "POST".into(), path: "/set".into(), body: "{}".into(), ..Question::default() };
        let file =
            SourceFile { name: "maitred.toml".into(), text: "listen = \":1\"".into(), is_drop_in: false };
        let setup = Setup {
            version: Version::own(),
            number: 2,
            workers: 3,
            listeners: 2,
            own: true,
            passed: vec![None, Some(PassedName { number: 3, name: "http".to_owned() })],
            files: vec![file],
            acts: true,
            changes: vec![asked.clone()],
            tls: Some(Handed::default()),
            development: Some("token".to_owned()),
        };
        assert_eq!(read(&to_text(&setup)), Some(setup));
        let answer = Answered { allow: Some("GET".into()), ..Answered::error(405, "no") };
        for message in [
            FromWorker::Ready { what: Some("WSGI".into()), served: vec!["/ x".into()] },
            FromWorker::Failed("no module".into()),
            FromWorker::Beat(Beat { requests: 7, memory: 8, waiting: 9 }),
            FromWorker::Answer(3, answer.clone()),
            FromWorker::Ask(4, asked.clone()),
        ] {
            assert_eq!(read(&to_text(&message)), Some(message));
        }
        for message in [
            ToWorker::Ask(1, asked, "user 0".into()),
            ToWorker::Answer(2, answer),
            ToWorker::Unready,
            ToWorker::Last,
            ToWorker::Empty(3),
            ToWorker::AtOnce,
        ] {
            assert_eq!(read(&to_text(&message)), Some(message));
        }
        for other in ["", "7", "{}", "[1]"] {
            let other = other.as_bytes();
            assert_eq!((read::<ToWorker>(other), read::<Setup>(other)), (None, None));
            assert_eq!(read::<FromWorker>(other), None);
        }
    }
}
