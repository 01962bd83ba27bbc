//! The terms of a running server: the files are loaded again when somebody asks for it or when they have changed, and certificates that
//! end are told.
//!
//! Promises: what is not valid changes nothing, and the log says why, once for each change of the files. Connections go on.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use maitred_server::tls::{IdentityInfo, system_clock};
use maitred_server::{Log, Server};

use super::Material;
use super::files::{Files, Stamps};
use super::material::ListEnd;
use crate::config::Config;
use crate::origins::Origins;
use crate::problem::Problem;
use crate::reload::Reload;

/// Files that change are looked at again after this time: a renewal writes several, one after the other.
const SETTLE: Duration = Duration::from_secs(1);

/// Keys of tickets that are over are forgotten this often, also where nobody resumes a session.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Certificates are looked at this often.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// One that has fewer days left is told. Those of 90 days are renewed 30 days before their end, those of 47 days earlier than this.
const DAYS_TOLD: u64 = 21;

/// In seconds.
const DAY_SECONDS: u64 = 24 * 60 * 60;

/// That of a running server.
pub(crate) struct Running {
    material: Arc<Material>,
    /// How the files were when they were looked at last; none before that.
    seen: Option<Stamps>,
}

impl Running {
    /// `handed`: another process has read the files, some time before.
    pub(crate) fn new(material: Arc<Material>, config: &Config, handed: bool) -> Self {
        let seen = (!handed).then(|| Stamps::of(config));
        Self { material, seen }
    }

    pub(crate) fn material(&self) -> &Arc<Material> {
        &self.material
    }

    /// Loads the files, and has the server use them: what has changed, in lines.
    ///
    /// # Errors
    /// A file is not valid; nothing has changed.
    pub(crate) fn load(
        &mut self,
        config: &Config,
        origins: &Origins,
        server: &Server,
    ) -> Result<Vec<String>, Problem> {
        // Before they are read: what changes meanwhile is seen later.
        self.seen = Some(Stamps::of(config));
        let next = self.material.again(config, origins)?;
        let lines = changes(&self.material, &next);
        server.set_tls(Arc::clone(&next.terms));
        self.material = next;
        Ok(lines)
    }

    /// Whether the files are not as they were when they were looked at last. `pending` is how they were a moment ago, if they had changed then.
    fn has_changed(&mut self, config: &Config, origins: &Origins, pending: &mut Option<Stamps>) -> bool {
        let now = Stamps::of(config);
        let Some(seen) = &self.seen else {
            // What cannot be read has been told at the start.
            self.seen = Some(now);
            return Files::read(config, origins, None)
                .is_ok_and(|files| !files.is_same(&self.material.files));
        };
        let is_settled = pending.as_ref() == Some(&now);
        let has_changed = *seen != now;
        *pending = has_changed.then_some(now);
        has_changed && is_settled
    }
}

/// What has changed, in lines for the log.
fn changes(before: &Material, after: &Material) -> Vec<String> {
    if before.files == after.files {
        return Vec::new();
    }
    let prints = |material: &Material| -> Vec<String> {
        material.certificates().map(|(info, _)| info.certificate.fingerprint.clone()).collect()
    };
    let known = prints(before);
    let new = after.certificates().filter(|(info, _)| !known.contains(&info.certificate.fingerprint));
    let used = |(info, file): (&IdentityInfo, &str)| {
        let until = date(info.certificate.not_after);
        format!("TLS: the certificate {file} ({}) is used now, valid until {until}", named(info))
    };
    let mut lines: Vec<String> = new.map(used).collect();
    if lines.is_empty() {
        lines.push("TLS: the files have been loaded".to_owned());
    }
    lines
}

/// The first name, and how many more there are.
fn named(info: &IdentityInfo) -> String {
    match info.names.as_slice() {
        [] => "no name".to_owned(),
        [name] => name.clone(),
        [name, others @ ..] => format!("{name} and {} more", others.len()),
    }
}

/// UTC.
fn date(seconds: u64) -> String {
    let time = i64::try_from(seconds).ok().and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
    time.map_or_else(|| "a time far away".to_owned(), |time| time.to_string())
}

/// What there is to say of a certificate at this time, in seconds since 1970.
fn warnings(info: &IdentityInfo, file: &str, now: u64) -> Vec<String> {
    let what = format!("{file} ({})", named(info));
    let mut lines: Vec<String> = info.warnings(now).iter().map(|line| format!("{what}: {line}")).collect();
    let until = info.certificate.not_after;
    let days = until.saturating_sub(now) / DAY_SECONDS;
    if now < until && days < DAYS_TOLD {
        let days = match days {
            0 => "within a day".to_owned(),
            1 => "in 1 day".to_owned(),
            days => format!("in {days} days"),
        };
        lines.push(format!("{what}: the certificate expires {days}, {}; renew it", date(until)));
    }
    lines
}

/// What there is to say of lists of revoked certificates.
fn list_warnings(lists: &[ListEnd], now: u64) -> impl Iterator<Item = String> {
    let ending = lists.iter().filter(move |(_, until)| *until < now.saturating_add(DAY_SECONDS));
    ending.map(move |(file, until)| {
        let ends = if *until <= now { "has expired" } else { "expires within a day" };
        let until = date(*until);
        format!("{file}: the list of revoked certificates {ends}, {until}: no client is let in then; put a new one there")
    })
}

/// What `maitred check` says of the certificates: a line for each, and what there is to say of it.
pub(crate) fn report(material: &Material) -> Vec<String> {
    let now = system_clock();
    let mut lines = Vec::new();
    for (info, file) in material.certificates() {
        let certificate = &info.certificate;
        let days = certificate.not_after.saturating_sub(now) / DAY_SECONDS;
        let names = info.names.join(", ");
        lines.push(format!(
            "{file}: {names}; {}, issued by {}; until {}, {days} days left",
            certificate.key,
            certificate.issuer,
            date(certificate.not_after)
        ));
        lines.extend(warnings(info, file, now).into_iter().map(|line| format!("warning: {line}")));
    }
    lines.extend(list_warnings(&material.lists, now).map(|line| format!("warning: {line}")));
    lines
}

/// A thread that looks at the files, and tells what expires. It ends when this is dropped.
pub(crate) struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to look; `tells`: this process tells what expires.
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

struct Watcher {
    reload: Arc<Mutex<Reload>>,
    server: Weak<Server>,
    log: Arc<Log>,
    pending: Option<Stamps>,
    tells: bool,
}

impl Watcher {
    fn run(mut self, stopped: &Receiver<()>) {
        let mut told: Option<Instant> = None;
        loop {
            if self.tells && told.is_none_or(|at| at.elapsed() >= DAY) {
                told = Some(Instant::now());
                self.tell();
            }
            let interval = self.begin();
            let wait = match (interval.is_zero(), &self.pending) {
                (true, _) => HOUR,
                (false, Some(_)) => interval.min(SETTLE),
                (false, None) => interval.min(HOUR),
            };
            if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            if !interval.is_zero() {
                self.look();
            }
        }
    }

    /// How long to wait for the next look; zero for ever.
    fn begin(&self) -> Duration {
        let reload = self.reload.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tls) = &reload.tls {
            tls.material.terms.forget_old_keys();
        }
        reload.running.tls.watch
    }

    fn look(&mut self) {
        let mut reload = self.reload.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn tell(&self) {
        let reload = self.reload.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(tls) = &reload.tls else { return };
        let now = system_clock();
        for (info, file) in tls.material.certificates() {
            warnings(info, file, now).iter().for_each(|line| self.log.warn(format_args!("{line}")));
        }
        list_warnings(&tls.material.lists, now).for_each(|line| self.log.warn(format_args!("{line}")));
    }
}

#[cfg(test)]
mod tests {
    use maitred_server::tls::Identity;

    use super::*;

    #[test]
    fn a_list_that_ends_is_told() {
        let lists = [("a.crl".to_owned(), 1_800_000_000), ("b.crl".to_owned(), 1_800_200_000)];
        let told = |now: u64| list_warnings(&lists, now).collect::<Vec<_>>();
        assert_eq!(told(1_799_900_000), [""; 0]);
        assert!(
            told(1_799_990_000)[0]
                .starts_with("a.crl: the list of revoked certificates expires within a day, 2027-")
        );
        assert_eq!(told(1_800_200_000).len(), 2);
    }

    #[test]
    fn the_end_of_a_certificate_is_told_three_weeks_before() {
        /// 2027-01-15T08:00:00Z.
        fn clock() -> u64 {
            1_800_000_000
        }
        let names = ["shop.example".to_owned(), "www.shop.example".to_owned()];
        let (identity, _) = Identity::development(&names, clock).expect("made");
        let lines = |days_left: u64, more: u64| {
            let until = identity.info().certificate.not_after;
            warnings(identity.info(), "a.pem", until - days_left * DAY_SECONDS - more).join("\n")
        };
        assert_eq!(lines(21, 0), "");
        assert_eq!(
            lines(20, 5),
            "a.pem (shop.example and 1 more): the certificate expires in 20 days, 2027-04-15T08:00:00Z; renew it"
        );
        assert!(lines(1, 0).contains("expires in 1 day, "));
        assert!(lines(0, 1).contains("expires within a day, "));
        assert_eq!(lines(0, 0), "a.pem (shop.example and 1 more): the certificate has expired");
    }
}
