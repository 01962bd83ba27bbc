//! A thread that loads the files of TLS when they have changed, and logs which certificates expire soon.
//!
//! Promises: invalid files are logged once for each change, and the server goes on with the loaded ones.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use maitred_certificates::{Folder, Heard, Mark};
use maitred_config::acme;
use maitred_config::tls::{self, Stamps};
use maitred_control::lock;
use maitred_io::clock;
use maitred_server::{Log, Server};

use crate::reload::Reload;

/// Time between a change and the next look: a renewal writes several files, one after the other.
const SETTLE: Duration = Duration::from_secs(1);

/// Time between two looks whether there is a new certificate by ACME: one stat(2).
const LOOK: Duration = Duration::from_secs(1);

/// Longest time between two removals of expired ticket keys. Without them such keys stay as long as no client resumes a session.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Time between two warnings about certificates that expire.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A thread that looks at the files, and warns of certificates that expire. Dropping this ends the thread.
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look; `tells`: this process warns of certificates that expire.
    ///
    /// # Errors
    /// There is no thread.
    pub(crate) fn start(
        reload: &Arc<Mutex<Reload>>,
        server: &Arc<Server>,
        log: &Arc<Log>,
        tells: bool,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let watcher = Watcher {
            reload: Arc::clone(reload),
            server: Arc::downgrade(server),
            log: Arc::clone(log),
            pending: None,
            tells,
            folder: None,
            mark: None,
            heard: Heard::default(),
        };
        let thread = std::thread::Builder::new().name("maitred-tls".to_owned());
        let thread = thread.spawn(move || watcher.run(&stopped))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

/// The time until the next multiple of the interval. Workers have one clock, so all look at the same moment, and no client
/// meets the new certificate at one worker and the old one at another.
fn until_next(now: Duration, interval: Duration) -> Duration {
    let over = now.as_nanos() % interval.as_nanos().max(1);
    interval - Duration::from_nanos(u64::try_from(over).unwrap_or(0))
}

struct Watcher {
    reload: Arc<Mutex<Reload>>,
    server: Weak<Server>,
    log: Arc<Log>,
    pending: Option<Stamps>,
    tells: bool,
    /// The folder of certificates by ACME, if any are ordered, and its mark at the last look.
    folder: Option<Folder>,
    mark: Option<Option<Mark>>,
    /// The names on demand that clients have asked for.
    heard: Heard,
}

impl Watcher {
    fn run(mut self, stopped: &Receiver<()>) {
        let mut told: Option<Instant> = None;
        loop {
            if told.is_none_or(|at| at.elapsed() >= DAY) {
                let again = told.replace(Instant::now()).is_some();
                if self.tells {
                    self.tell(again);
                }
                // A self-signed certificate that stands in for one by ACME is made again before it ends.
                self.mark = None;
            }
            let interval = self.begin();
            let interval = match self.pending {
                Some(_) => interval.min(SETTLE),
                None => interval.min(HOUR),
            };
            let now = Duration::from_nanos(clock::monotonic());
            let end = now + if interval.is_zero() { HOUR } else { until_next(now, interval) };
            if !self.wait(stopped, end) {
                return;
            }
            if !interval.is_zero() {
                self.look();
            }
        }
    }

    /// Waits until `end`, and loads certificates by ACME as they come. Returns false if the watch ends.
    fn wait(&mut self, stopped: &Receiver<()>, end: Duration) -> bool {
        loop {
            let now = Duration::from_nanos(clock::monotonic());
            let left = end.saturating_sub(now);
            let left = if self.folder.is_some() { left.min(until_next(now, LOOK)) } else { left };
            if stopped.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
                return false;
            }
            if let Some(folder) = &self.folder {
                self.heard.take().iter().for_each(|name| folder.want(name));
            }
            let mark = self.folder.as_ref().map(Folder::mark);
            if mark != self.mark {
                self.mark = mark;
                self.load_ordered();
            }
            if Duration::from_nanos(clock::monotonic()) >= end {
                return true;
            }
        }
    }

    fn load_ordered(&self) {
        let mut reload = lock(&self.reload);
        let Reload { tls: Some(tls), running, origins, .. } = &mut *reload else { return };
        let Some(server) = self.server.upgrade() else { return };
        let lines = tls.load_ordered(running, origins, &server);
        lines.iter().for_each(|line| self.log.info(format_args!("{line}")));
    }

    /// Forgets expired ticket keys, and returns the interval of looks; zero for none.
    fn begin(&mut self) -> Duration {
        let reload = lock(&self.reload);
        self.folder = acme::is_on(&reload.running).then(|| acme::folder(&reload.running));
        if let Some(tls) = &reload.tls {
            tls.material().terms.forget_old_keys();
            self.heard = tls.material().heard.clone();
        }
        reload.running.tls.watch
    }

    fn look(&mut self) {
        let mut reload = lock(&self.reload);
        let Reload { tls: Some(tls), running, origins, .. } = &mut *reload else { return };
        if !tls.has_changed(running, origins, &mut self.pending) {
            return;
        }
        let Some(server) = self.server.upgrade() else { return };
        match tls.load(running, origins, &server) {
            Ok(lines) => lines.iter().for_each(|line| self.log.info(format_args!("{line}"))),
            Err(problem) => self.log.error(format_args!(
                "TLS: the files have changed and are not valid, the ones before are used on: {problem}"
            )),
        }
    }

    fn tell(&self, again: bool) {
        let lines = lock(&self.reload).tls.as_ref().map(|tls| tls::warnings(tls.material(), again));
        lines.iter().flatten().for_each(|line| self.log.warn(format_args!("{line}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_began_at_different_times_look_at_the_same_moment() {
        let interval = Duration::from_secs(10);
        let looks = [1_u64, 4_999, 9_999, 10_000].map(|millis| {
            let now = Duration::from_secs(70) + Duration::from_millis(millis);
            now + until_next(now, interval)
        });
        assert_eq!(looks, [80, 80, 80, 90].map(Duration::from_secs));
    }
}
