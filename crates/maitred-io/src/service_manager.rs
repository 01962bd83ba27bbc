//! The interface to a service manager such as systemd: the socket for reports (sd_notify(3)), and listening sockets
//! (sd_listen_fds(3)).
//!
//! Promises: sockets and variables that are meant for another process are not taken; the sockets are closed in every
//! program that this one starts; the variables are gone from the environment afterwards, so that no child believes they
//! are for it. Leaves out: the moments of reports (maitred-process), and how a socket is served
//! ([`listener`](crate::listener)).

mod notifier;
mod sockets;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

pub use notifier::Notifier;
pub use sockets::{PassedSocket, Passing};

/// The variables. A process that starts others and has not [taken](Handed::take) them removes them there.
pub const VARIABLES: [&str; 6] =
    ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Everything that a service manager has handed over.
#[derive(Debug, Default)]
pub struct Handed {
    /// The way to the service manager, if it wants reports.
    pub notifier: Option<Notifier>,
    /// The sockets that were passed.
    pub sockets: Passing,
    /// Lines about unusable parts, each with the reason.
    pub troubles: Vec<String>,
}

impl Handed {
    /// Takes it, and removes the variables from the environment of the process. To be called while the process has one
    /// thread: with more of them the variables stay, because another thread may be reading them. Only the first call
    /// finds anything.
    pub fn take() -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Self::default();
        }
        let handed = Self::read(&|name| std::env::var_os(name), std::process::id());
        if crate::tasks::list().is_ok_and(|tasks| tasks.len() == 1) {
            for name in VARIABLES {
                // SAFETY: no other thread is there that could read or write the environment meanwhile.
                unsafe { std::env::remove_var(name) };
            }
        }
        handed
    }

    fn read(variable: &dyn Fn(&str) -> Option<OsString>, process: u32) -> Self {
        let text = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
        let mut troubles = Vec::new();
        let notifier = variable("NOTIFY_SOCKET").and_then(|address| {
            let made = Notifier::new(&address, notifier::watchdog(&text, process));
            made.map_err(|why| troubles.push(format!("the service manager is not told anything: {why}"))).ok()
        });
        let sockets = sockets::take(&text, process, &mut troubles);
        Self { notifier, sockets, troubles }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    fn read(given: &[(&str, &str)]) -> Handed {
        let find = |name: &str| given.iter().find(|(given, _)| *given == name);
        Handed::read(&|name| find(name).map(|(_, value)| OsString::from(value)), 77)
    }

    #[test]
    fn without_variables_there_is_nothing() {
        let handed = read(&[]);
        assert!(handed.notifier.is_none() && handed.troubles.is_empty());
        assert!(matches!(handed.sockets, Passing::Nothing));
    }

    #[test]
    fn sockets_of_another_process_are_left_alone() {
        let handed = read(&[("LISTEN_PID", "78"), ("LISTEN_FDS", "1")]);
        assert!(matches!(handed.sockets, Passing::ForAnother(Some(78))));
        let handed = read(&[("LISTEN_FDS", "1")]);
        assert!(matches!(handed.sockets, Passing::ForAnother(None)));
    }

    #[test]
    fn numbers_that_are_none_are_told() {
        for count in ["-1", "x", "", "1000000"] {
            let handed = read(&[("LISTEN_PID", "77"), ("LISTEN_FDS", count)]);
            assert!(matches!(handed.sockets, Passing::Nothing), "{count}");
            let [line] = &handed.troubles[..] else { panic!("{count}: {:?}", handed.troubles) };
            assert!(line.starts_with(&format!("LISTEN_FDS is '{count}'")), "{line}");
        }
    }

    #[test]
    fn a_socket_that_cannot_be_told_anything_is_named() {
        let handed = read(&[("NOTIFY_SOCKET", "vsock:2:1234")]);
        assert!(handed.notifier.is_none());
        assert!(handed.troubles[0].contains("NOTIFY_SOCKET is 'vsock:2:1234'"), "{:?}", handed.troubles);
    }

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let _socket = UnixDatagram::bind(&path).unwrap();
        let path = path.to_str().unwrap();
        let beat = |more: &[(&str, &str)]| {
            let given = [&[("NOTIFY_SOCKET", path)], more].concat();
            read(&given).notifier.unwrap().watchdog().map(|beat| beat.as_millis())
        };
        assert_eq!(beat(&[]), None);
        assert_eq!(beat(&[("WATCHDOG_USEC", "3000000")]), Some(1500));
        assert_eq!(beat(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "77")]), Some(1500));
        assert_eq!(beat(&[("WATCHDOG_USEC", "3000000"), ("WATCHDOG_PID", "78")]), None);
        assert_eq!(beat(&[("WATCHDOG_USEC", "0")]), None);
    }
}
