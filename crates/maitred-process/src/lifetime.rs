//! From the start-up lines to the end of the process.
//!
//! ```text
//! serving <--SIGHUP--> the configuration is read again
//! serving <--SIGUSR1-> log files are opened anew
//! serving --SIGTERM--> not ready --drain-delay, another signal--> draining, as by the first signal
//! serving --first signal--> draining --all answered----> exit code 0
//!                              |-------drain-timeout---> 1, the rest is cut off
//!                              `-------second signal---> 128 + signal, the rest is cut off
//! ```
//! SIGHUP and SIGUSR1 are answered while the server serves, and have no effect later. SIGHUP of a terminal that has hung up is a signal to
//! end.
//!
//! After the requests the collector of OpenTelemetry gets its last items ([`OTLP_TIME`]), and the application ends: both within the rest
//! of drain-timeout, but the application has at least [`MIN_TIME_TO_END`].

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use maitred_config::validation::Target;
use maitred_config::{Checked, CheckedListener, Config, EXIT_FAILURE, EXIT_SUCCESS, PoolConfig};
use maitred_config::{http2, tls};
use maitred_server::listening::Address;

use crate::host::{Application, Host, Signal, Signals, StopSignal};

/// The steps of the end of a running server.
pub(crate) trait Drain {
    /// Has the health path answer "not ready"; the server goes on with everything else.
    fn set_unready(&self);
    /// Begins the graceful stop and returns at once.
    fn drain(&self);
    /// Waits until all requests are answered, at most for `limit`; returns whether all are.
    fn wait_drained(&self, limit: Duration) -> bool;
    /// Ends streams of events, which have been asked to end.
    fn end_events(&self);
    /// Has the items for the collector sent within `limit`.
    fn finish_otlp(&self, limit: Duration);
    /// Waits until they have had their end, at most for `limit`; returns whether they have.
    fn wait_otlp_finished(&self, limit: Duration) -> bool;
    /// Whether the only running handlers are those whose clients are gone.
    fn has_only_abandoned(&self) -> bool;
}

/// Least time for the end of an application, even if its requests took the whole drain-timeout.
pub(crate) const MIN_TIME_TO_END: Duration = Duration::from_secs(2);

/// Least and longest time for a collector. After drain-timeout the least one, [`MIN_TIME_TO_END`] and [`GRACE`] have to end before a
/// supervisor kills a worker.
const OTLP_TIME: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Time beyond an application's limit: at the limit the application cuts off its own tasks, which takes a moment.
const GRACE: Duration = Duration::from_secs(2);

/// Time for handlers to notice that their stream of events has ended or their client is gone.
const TIME_TO_NOTICE: Duration = Duration::from_millis(500);

/// Time between two looks for a second signal during a drain. One thread waits for signals, as Python
/// demands, and for the end of the drain, which it notices at once.
const LOOK_FOR_SIGNAL: Duration = Duration::from_millis(20);

/// Longest times of the parts of the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// From SIGTERM to the drain. Zero for a process whose supervisor has waited.
    pub(crate) delay: Duration,
    pub(crate) drain: Duration,
    /// Streams of events in it.
    pub(crate) events: Duration,
}

/// Waits for the end, and calls `answer` for other signals before it. Returns the exit code and the rest of the drain's time.
/// The caller stops the requests that still run then.
pub(crate) fn wait_for_end(
    server: &dyn Drain,
    signals: &mut dyn Signals,
    Limits { delay, drain: limit, events: grace }: Limits,
    answer: &mut dyn FnMut(Signal),
    say: &mut dyn FnMut(&str),
) -> (u8, Duration) {
    let first = loop {
        match signals.wait(None) {
            Some(Signal::Stop(signal)) => break signal,
            Some(other) => answer(other),
            None => {}
        }
    };
    if first == StopSignal::Terminate && !delay.is_zero() {
        hold(server, signals, delay, answer, say);
    }
    // The drain begins before the line is written: every answer after the line is the last one of its connection.
    server.drain();
    say(&format!(
        "{first}: draining, at most {} s for running requests; a second signal ends at once",
        limit.as_secs_f64()
    ));
    let began = Instant::now();
    let deadline = began + limit;
    let mut ends_events = true;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if ends_events && began.elapsed() >= grace {
            ends_events = false;
            server.end_events();
        }
        let is_late = || began.elapsed() >= grace + TIME_TO_NOTICE && server.has_only_abandoned();
        if server.wait_drained(left.min(LOOK_FOR_SIGNAL)) || is_late() {
            say("drained: every accepted request was answered");
            return (EXIT_SUCCESS, deadline.saturating_duration_since(Instant::now()));
        }
        if let Some(second) = second(signals) {
            say(&format!("{second}: ending at once, running requests are cut off"));
            return (128 + second.number(), Duration::ZERO);
        }
        if left.is_zero() {
            say("drain-timeout is over: running requests are cut off");
            return (EXIT_FAILURE, Duration::ZERO);
        }
    }
}

/// Has the server answer "not ready" and serve on for `delay`, or until another signal to end comes: load balancers learn in that time that
/// the server will end. Kubernetes takes a pod out of its endpoints at the time of SIGTERM, not before, and each balancer follows a moment
/// later: connections that come until then must not be refused.
fn hold(
    server: &dyn Drain,
    signals: &mut dyn Signals,
    delay: Duration,
    answer: &mut dyn FnMut(Signal),
    say: &mut dyn FnMut(&str),
) {
    server.set_unready();
    let seconds = delay.as_secs_f64();
    say(&format!(
        "SIGTERM: not ready any more, draining in {seconds} s (drain-delay); another signal drains at once"
    ));
    let deadline = Instant::now() + delay;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match signals.wait(Some(left)) {
            Some(Signal::Stop(signal)) => return say(&format!("{signal}: the delay ends")),
            Some(other) => answer(other),
            None if left.is_zero() => return,
            None => {}
        }
    }
}

/// Takes a signal that has come and ends the server.
fn second(signals: &mut dyn Signals) -> Option<StopSignal> {
    loop {
        if let Signal::Stop(signal) = signals.wait(Some(Duration::ZERO))? {
            return Some(signal);
        }
    }
}

/// Has the last items sent to the collector. Returns the rest of the time that is `left`.
///
/// # Errors
/// The exit code, if a second signal came meanwhile.
pub(crate) fn finish_otlp(
    server: &dyn Drain,
    signals: &mut dyn Signals,
    left: Duration,
    say: &mut dyn FnMut(&str),
) -> Result<Duration, u8> {
    let limit = left.clamp(OTLP_TIME[0], OTLP_TIME[1]);
    let began = Instant::now();
    server.finish_otlp(limit);
    while !server.wait_otlp_finished(LOOK_FOR_SIGNAL) && began.elapsed() < limit {
        if let Some(second) = second(signals) {
            say(&format!("{second}: ending at once, the collector does not get all"));
            return Err(128 + second.number());
        }
    }
    Ok(left.saturating_sub(began.elapsed()))
}

/// Ends the application, at most for `left`. Returns the exit code if a second signal came meanwhile. An
/// application that does not end is named at the end of the process.
pub(crate) fn end_application(
    host: &dyn Host,
    signals: &mut dyn Signals,
    left: Duration,
    say: &mut dyn FnMut(&str),
) -> Option<u8> {
    let limit = left.max(MIN_TIME_TO_END);
    host.end_application(limit);
    let deadline = Instant::now() + limit + GRACE;
    while !host.wait_application_ended(LOOK_FOR_SIGNAL) {
        if let Some(second) = second(signals) {
            say(&format!("{second}: ending at once, the application is cut off"));
            return Some(128 + second.number());
        }
        if Instant::now() >= deadline {
            say("the application has not ended in its time: it is cut off");
            break;
        }
    }
    None
}

/// The applications and their threads, for the first start-up line; none without applications.
pub(crate) fn what(config: &Config, applications: &[Application]) -> Option<String> {
    let what = match applications {
        [] => return None,
        [only] => only.description.clone(),
        several => format!("{} applications", several.len()),
    };
    let looped = applications.iter().find_map(|application| application.runs_on.clone());
    let has_threads = applications.iter().any(|application| application.runs_on.is_none());
    let place = match looped {
        Some(looped) if has_threads => format!("{looped} and {}", all_threads(config)),
        Some(looped) => looped,
        None => all_threads(config),
    };
    Some(format!("{what} on {place}"))
}

/// Hosts with their applications and prefixes, for further start-up lines; empty if there is only one application.
pub(crate) fn served(config: &Config, checked: &Checked, applications: &[Application]) -> Vec<String> {
    if config.hosts.is_empty() && applications.len() < 2 {
        return Vec::new();
    }
    let mut applications = applications.iter();
    let mut lines = Vec::new();
    for ((host, _), site) in config.sites().zip(&checked.sites) {
        let host = host.map_or("", |host| host.name.as_str());
        for (program, application) in site.programs.iter().zip(applications.by_ref()) {
            lines.push(format!("{host}{}  {}", program.prefix, application.description));
        }
        for mount in site.mounts.iter().filter(|_| !host.is_empty()) {
            lines.push(format!("{host}{}  files of {}", mount.prefix, mount.folder.display()));
        }
    }
    lines
}

/// `1 to 10 threads, 0 to 2 threads for reports`.
fn all_threads(config: &Config) -> String {
    let named = config.pools.iter().map(|pool| format!(", {} for {}", threads(&pool.threads), pool.name));
    threads(&config.pool) + &named.collect::<String>()
}

fn threads(pool: &PoolConfig) -> String {
    match (pool.limits.min_threads, pool.limits.max_threads) {
        (1, 1) => "1 thread".to_owned(),
        (min, max) if min == max => format!("{max} threads"),
        (min, max) => format!("{min} to {max} threads"),
    }
}

/// The start-up lines: the applications, the listeners in their order, and the address of the dashboard.
pub(crate) fn start_up_lines(
    config: &Config,
    checked: &Checked,
    application: Option<&str>,
    served: &[String],
    addresses: &[Address],
    admin: Option<SocketAddr>,
) -> Vec<String> {
    let target = checked.sites.first().and_then(|site| site.target.as_ref());
    let what = match (application, target) {
        (Some(what), _) => what.to_owned(),
        (None, Some(Target::Folder(folder))) => format!("the folder {}", folder.display()),
        _ => "static files".to_owned(),
    };
    let mut lines = vec![format!("maitred {} serving {what}", env!("CARGO_PKG_VERSION"))];
    lines.extend(
        config
            .site
            .mounts
            .iter()
            .map(|mount| format!("{}  files of {}", mount.prefix, mount.folder.display())),
    );
    lines.extend_from_slice(served);
    for (address, CheckedListener { listen, passed, .. }) in addresses.iter().zip(&checked.listeners) {
        let live = if listen.read_ahead == Some(false) { ", without read-ahead" } else { "" };
        let direct = if listen.writer { "" } else { ", without a writer" };
        let proxy = if listen.proxy_protocol { ", behind PROXY headers" } else { "" };
        let is_tls = listen.is_tls(checked.tls.is_some(), address);
        let scheme = tls::scheme(address, is_tls);
        let passed = passed.as_ref().map(|passed| format!(", {passed}")).unwrap_or_default();
        if let Some(port) = listen.redirect {
            lines.push(format!("{scheme}{address}  308 to https, port {port}{proxy}{passed}"));
            continue;
        }
        let spoken = http2::spoken(config);
        lines.push(format!("{scheme}{address}  {spoken}{live}{direct}{proxy}{passed}"));
    }
    lines.extend(checked.tls.as_ref().and_then(|tls| tls.development_line()));
    lines.extend(admin.map(|address| format!("http://{address}/dashboard/  dashboard")));
    lines
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use super::*;
    use crate::host::StopSignal::{Interrupt, Terminate};
    use maitred_config::config::NamedPool;
    use maitred_config::validation::{CheckedSite, PassedName};

    #[test]
    fn the_threads_of_every_pool_are_told() {
        let mut config = Config::with_defaults();
        assert_eq!(all_threads(&config), "1 to 10 threads");
        for (name, min, max) in [("a", 0, 2), ("b", 1, 1), ("c", 3, 3)] {
            let mut threads = config.pool.clone();
            (threads.limits.min_threads, threads.limits.max_threads) = (min, max);
            config.pools.push(NamedPool { name: name.to_owned(), threads });
        }
        assert_eq!(
            all_threads(&config),
            "1 to 10 threads, 0 to 2 threads for a, 1 thread for b, 3 threads for c"
        );
    }

    /// A server that is drained after so many looks.
    struct Scripted {
        looks: Cell<Option<u32>>,
        unready: Cell<bool>,
        draining: Cell<bool>,
    }

    impl Drain for Scripted {
        fn set_unready(&self) {
            assert!(!self.draining.get(), "it drains already");
            self.unready.set(true);
        }

        fn drain(&self) {
            self.draining.set(true);
        }

        fn finish_otlp(&self, limit: Duration) {
            assert!((OTLP_TIME[0]..=OTLP_TIME[1]).contains(&limit));
        }

        fn wait_otlp_finished(&self, _: Duration) -> bool {
            self.wait_drained(LOOK_FOR_SIGNAL)
        }

        fn has_only_abandoned(&self) -> bool {
            false
        }

        fn end_events(&self) {
            assert!(self.draining.get(), "ends them before it drains");
        }

        fn wait_drained(&self, _: Duration) -> bool {
            assert!(self.draining.get(), "waits before it drains");
            let looks = self.looks.get();
            self.looks.set(looks.map(|looks| looks.saturating_sub(1)));
            looks == Some(0)
        }
    }

    struct Sent(VecDeque<Option<Signal>>);

    impl Signals for Sent {
        fn wait(&mut self, limit: Option<Duration>) -> Option<Signal> {
            let next = self.0.pop_front();
            assert!(next.is_some() || limit.is_some(), "would wait for ever");
            next.flatten()
        }
    }

    fn end(looks: Option<u32>, signals: &[Option<StopSignal>], limit: Duration) -> (u8, Vec<String>) {
        let signals: Vec<_> = signals.iter().map(|signal| signal.map(Signal::Stop)).collect();
        end_after(looks, &signals, limit)
    }

    /// Notes `reload` where the configuration would be read.
    fn end_after(looks: Option<u32>, signals: &[Option<Signal>], limit: Duration) -> (u8, Vec<String>) {
        end_after_delay(Duration::ZERO, looks, signals, limit)
    }

    fn end_after_delay(
        delay: Duration,
        looks: Option<u32>,
        signals: &[Option<Signal>],
        limit: Duration,
    ) -> (u8, Vec<String>) {
        let server =
            Scripted { looks: Cell::new(looks), unready: Cell::new(false), draining: Cell::new(false) };
        let said = RefCell::new(Vec::new());
        let mut signals = Sent(signals.iter().copied().collect());
        let mut say = |line: &str| {
            assert!(!line.contains(": draining") || server.draining.get(), "says it before it is so");
            assert!(!line.contains("not ready") || server.unready.get(), "says it before it is so");
            said.borrow_mut().push(line.to_owned());
        };
        let mut answer = |asked| said.borrow_mut().push(format!("{asked:?}").to_lowercase());
        let limits = Limits { delay, drain: limit, events: Duration::ZERO };
        let (code, _) = wait_for_end(&server, &mut signals, limits, &mut answer, &mut say);
        (code, said.into_inner())
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn the_first_signal_drains_and_the_exit_code_is_zero() {
        let (code, said) = end(Some(3), &[Some(Terminate)], MINUTE);
        assert_eq!(code, 0);
        assert_eq!(
            said,
            [
                "SIGTERM: draining, at most 60 s for running requests; a second signal ends at once",
                "drained: every accepted request was answered",
            ]
        );
    }

    #[test]
    fn the_second_signal_ends_at_once() {
        let (code, _) = end(None, &[Some(Terminate), None, Some(Interrupt)], MINUTE);
        assert_eq!(code, 130);
        let (code, _) = end(None, &[Some(Interrupt), Some(Terminate)], MINUTE);
        assert_eq!(code, 143);
    }

    #[test]
    fn the_configuration_is_read_again_until_the_drain_begins() {
        let (reload, stop) = (Some(Signal::Reload), Some(Signal::Stop(Terminate)));
        let (code, said) = end_after(Some(3), &[reload, reload, stop, reload, None, reload], MINUTE);
        assert_eq!((code, said.len()), (0, 4));
        assert_eq!(said[..2], ["reload", "reload"]);
        let (code, _) = end_after(None, &[stop, reload, stop], MINUTE);
        assert_eq!(code, 143);
    }

    #[test]
    fn another_signal_ends_the_delay_and_a_third_one_everything() {
        let [reload, stop, interrupt] =
            [Signal::Reload, Signal::Stop(Terminate), Signal::Stop(Interrupt)].map(Some);
        let (code, said) = end_after_delay(MINUTE, Some(3), &[stop, reload, None, stop], MINUTE);
        assert_eq!(code, 0);
        let expected = [
            "SIGTERM: not ready any more, draining in 60 s (drain-delay); another signal drains at once",
            "reload",
            "SIGTERM: the delay ends",
            "SIGTERM: draining, at most 60 s for running requests; a second signal ends at once",
        ];
        assert_eq!(said[..4], expected);
        let (code, _) = end_after_delay(MINUTE, None, &[stop, interrupt, interrupt], MINUTE);
        assert_eq!(code, 130);
        // The delay ends by itself; SIGINT, from the keyboard, has no delay.
        let brief = Duration::from_millis(1);
        let (code, said) = end_after_delay(brief, Some(0), &[stop], MINUTE);
        assert_eq!((code, said.len()), (0, 3));
        let (code, said) = end_after_delay(MINUTE, Some(0), &[interrupt], MINUTE);
        assert_eq!((code, said.len()), (0, 2));
    }

    #[test]
    fn a_drain_that_takes_too_long_is_a_failure() {
        let (code, said) = end(None, &[Some(Terminate)], Duration::ZERO);
        assert_eq!(code, 1);
        assert_eq!(
            said.last().map(String::as_str),
            Some("drain-timeout is over: running requests are cut off")
        );
    }

    #[test]
    fn a_signal_ends_the_wait_for_a_collector() {
        let wait = |looks, signals: &[Option<Signal>], left| {
            let server =
                Scripted { looks: Cell::new(looks), unready: Cell::new(false), draining: Cell::new(true) };
            finish_otlp(&server, &mut Sent(signals.iter().copied().collect()), left, &mut |_| {})
        };
        assert_eq!(wait(None, &[None, Some(Signal::Stop(Terminate))], MINUTE), Err(143));
        assert!(wait(Some(3), &[], MINUTE).is_ok_and(|left| left < MINUTE));
        assert_eq!(wait(Some(3), &[], Duration::ZERO), Ok(Duration::ZERO));
    }

    #[test]
    fn a_worker_that_waits_for_a_collector_is_not_killed() {
        assert!(OTLP_TIME[0] + MIN_TIME_TO_END + GRACE < crate::supervisor::STOP_GRACE);
    }

    #[test]
    fn start_up_lines_name_what_is_served_and_each_listener_in_order() {
        let mut config = Config::with_defaults();
        let addresses =
            ["127.0.0.1:8000", "[::1]:81"].map(|text| Address::Tcp(text.parse().expect("an address")));
        let listener = |text: &str, passed: Option<&str>| CheckedListener {
            listen: text.parse().expect("a listener"),
            address: None,
            passed: passed.map(|name| PassedName { number: 3, name: name.to_owned() }),
        };
        let mut checked = Checked {
            listeners: vec![listener(":8000", None), listener("systemd,read-ahead=off", Some("http"))],
            sites: vec![CheckedSite::default()],
            wanted: None,
            environment: Vec::new(),
            tls: None,
            acme: None,
        };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            start_up_lines(&config, &checked, Some("WSGI app:app on 1 to 10 threads"), &[], &addresses, None),
            [
                &format!("maitred {version} serving WSGI app:app on 1 to 10 threads"),
                "http://127.0.0.1:8000  HTTP/1.1, HTTP/2",
                "http://[::1]:81  HTTP/1.1, HTTP/2, without read-ahead, socket 3 (http) of the service manager",
            ]
        );
        checked.sites[0].target = Some(Target::Folder("public/".into()));
        config.site.mounts = vec![maitred_config::value::Mount {
            prefix: "/a".to_owned(),
            folder: "b".into(),
            fallback: None,
        }];
        assert_eq!(
            start_up_lines(&config, &checked, None, &[], &[], Some(SocketAddr::from(([127, 0, 0, 1], 9)))),
            [
                &format!("maitred {version} serving the folder public/"),
                "/a  files of b",
                "http://127.0.0.1:9/dashboard/  dashboard"
            ]
        );
    }
}
