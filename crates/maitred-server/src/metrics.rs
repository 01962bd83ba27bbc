//! The figures of a running server as text for Prometheus and its kin.

use std::collections::BTreeMap;

use maitred_dispatch::Pool;
use maitred_io::listener::Backlog;
use maitred_io::process;
use maitred_limits::RULES_TOTAL;
use maitred_stats::exposition::{Format, Metric, Page, Sink, Value};
use maitred_stats::pool::{
    self, END_REASONS, ENDS_TOTAL, IDLE_REQUESTS_TOTAL, IDLE_SECONDS_TOTAL, MADE_TOTAL, MIGRATIONS_TOTAL,
    PoolFigures, START_REASONS, STARTS_TOTAL, WAITED_TOTAL,
};
use maitred_stats::{Counter, LockSnapshot, exposition};
use maitred_trace::{Counts, Signal};

use crate::connection::Group;
use crate::group::thread_registry::Times;
use crate::roles;
use crate::roles::OfRole;
use maitred_exchange::site;
use maitred_exchange::site::{
    ACCEPTED_TOTAL, BODY_BYTES_TOTAL, CUT_TOTAL, ERRORS_TOTAL, REFUSED_TOTAL, REQUESTS_TOTAL, SPOOLED_TOTAL,
    TIMEOUTS_TOTAL,
};

/// Lines missing in a log, by log.
pub const LOG_DROPPED_TOTAL: &str = "maitred_log_dropped_total";

impl Group {
    /// All figures. Takes some milliseconds with many routes.
    pub(crate) fn metrics(&self, format: Format) -> String {
        let mut page = Page::new(format);
        self.write_own_metrics(&mut page);
        site::write_process(&process::Figures::read(), &mut page);
        site::write_exchanges(&self.site.figures.snapshot(), &mut page);
        exposition::end(format, &mut page.text);
        page.text
    }

    /// All figures except those of exchanges, without an end.
    pub(crate) fn own_metrics(&self, format: Format) -> String {
        let mut page = Page::new(format);
        self.write_own_metrics(&mut page);
        site::write_process(&process::Figures::read(), &mut page);
        page.text
    }

    /// Gives all figures except those of exchanges and of the process: with much memory the kernel takes long for these.
    pub(crate) fn write_own_metrics(&self, out: &mut dyn Sink) {
        let counters = &self.site.counters;
        let plain = |name, help, value| Metric { name, help, labels: &[], value };
        let count = |name, help, counter: &Counter| plain(name, help, Value::Counter(counter.total()));
        let mut metrics = vec![
            count(ACCEPTED_TOTAL, "Connections accepted.", &counters.connections),
            plain("maitred_connections", "Connections open now.", Value::gauge(self.groups.open() as u64)),
            count(REQUESTS_TOTAL, "Requests answered.", &counters.requests),
            count(REFUSED_TOTAL, "Requests refused before they reached a route.", &counters.refused),
            count(ERRORS_TOTAL, "Answers with a status of 500 or above.", &counters.errors),
            count(TIMEOUTS_TOTAL, "Requests answered 504 because they took too long.", &counters.timeouts),
            count(
                CUT_TOTAL,
                "Responses that did not reach their end, and requests not run because their client had left.",
                &counters.cut,
            ),
            count(BODY_BYTES_TOTAL, "Body bytes of answers.", &counters.body_bytes),
            plain("maitred_poll_groups", "Poll groups.", Value::gauge(self.groups.count() as u64)),
            plain(
                MIGRATIONS_TOTAL,
                "Requests run by a thread of another poll group because all threads of their own were busy.",
                Value::Counter(self.groups.all().map(|group| group.scheduler.migrations()).sum()),
            ),
        ];
        let guard = &self.site.guard;
        let (held, budget) = guard.budget.figures();
        let bodies = self.site.body_budget.figures();
        metrics.extend([
            plain(
                "maitred_body_memory_bytes",
                "Bytes of memory that request bodies hold beyond what each may hold in any case.",
                Value::gauge(bodies.held),
            ),
            plain("maitred_body_budget_bytes", "How many they may hold.", Value::gauge(bodies.most)),
            plain("maitred_buffer_bytes", "Bytes that connections hold in buffers.", Value::gauge(held)),
            plain(
                "maitred_buffer_budget_bytes",
                "How many they may hold; 0 for any number.",
                Value::gauge(budget),
            ),
            plain(
                "maitred_low_resources",
                "Whether there is little of something, so that idle connections are closed.",
                Value::gauge(guard.resources.low().is_some().into()),
            ),
        ]);
        let rules: Vec<_> =
            self.site.guard.applied.totals().map(|(name, count)| ([("rule", name)], count)).collect();
        metrics.extend(rules.iter().map(|(labels, count)| Metric {
            name: RULES_TOTAL,
            help: "Connections ended and requests refused because of a limit on peers.",
            labels,
            value: Value::Counter(*count),
        }));
        for metric in self.dropped_lines() {
            metrics.push(metric);
        }
        out.take(&metrics);
        self.write_otlp(out);
        metrics.clear();
        let pools = self.pool_figures();
        let names: Vec<_> = pools.iter().map(|pool| [("pool", &*pool.name)]).collect();
        for (name, help, value) in OF_POOLS {
            let of_pool = |(pool, labels)| Metric { name, help, labels, value: value(pool) };
            metrics.extend(pools.iter().zip(names.iter().map(<[_; 1]>::as_slice)).map(of_pool));
        }
        let reasons = reason_labels(&pools);
        metrics.extend(reasons.iter().map(|&(name, help, ref labels, count)| Metric {
            name,
            help,
            labels,
            value: Value::Counter(count),
        }));
        let spooled = names.iter().zip(self.site.figures.spooled());
        metrics.extend(spooled.map(|(labels, count)| Metric {
            name: SPOOLED_TOTAL,
            help: "Requests whose body was kept in a file.",
            labels,
            value: Value::Counter(count),
        }));
        let locks = self.locks();
        let names: Vec<_> = locks.iter().map(|lock| [("lock", &*lock.name)]).collect();
        for (name, help, value) in OF_LOCKS {
            let of_lock = |(lock, labels)| Metric { name, help, labels, value: value(lock) };
            metrics.extend(locks.iter().zip(names.iter().map(<[_; 1]>::as_slice)).map(of_lock));
        }
        site::write_build(&self.site.language, out);
        out.take(&metrics);
        if self.site.tls.load().is_some() {
            self.site.handshakes.with_metrics(|metrics| out.take(metrics));
        }
        if self.site.http2.is_some() {
            self.site.http2_counters.with_metrics(|metrics| out.take(metrics));
        }
        if self.site.websockets.is_some() {
            self.site.websocket_counters.with_metrics(|metrics| out.take(metrics));
        }
        self.write_listeners(out);
        self.write_certificates(out);
        site::write_cache(&self.site.hosts.cache_statistics(), out);
        if let Some(compression) = &self.site.compression {
            compression.write_metrics(out);
        }
        write_roles(&roles::list(&self.groups.thread_registry).roles, out);
    }

    /// Writes the items for a collector of OpenTelemetry.
    fn write_otlp(&self, out: &mut dyn Sink) {
        let Some(tracing) = &self.site.tracing else { return };
        let counts: Vec<_> = [Signal::Traces, Signal::Metrics, Signal::Logs]
            .into_iter()
            .filter_map(|signal| Some((signal.name(), tracing.waiting(signal)?.exporter.lock().counts())))
            .collect();
        let results = counts.iter().flat_map(|(signal, counts)| {
            let Counts { sent, dropped, refused, .. } = *counts;
            [("sent", sent), ("dropped", dropped), ("refused", refused)]
                .map(|(result, count)| ([("signal", *signal), ("result", result)], count))
        });
        let results: Vec<_> = results.collect();
        let items = results.iter().map(|(labels, count)| Metric {
            name: "maitred_otlp_items_total",
            help: "Spans, metrics and log records for the OpenTelemetry collector, by their fate.",
            labels,
            value: Value::Counter(*count),
        });
        out.take(&items.collect::<Vec<_>>());
        let labels: Vec<_> = counts.iter().map(|(signal, _)| [("signal", *signal)]).collect();
        let queue = counts.iter().zip(&labels).map(|((_, counts), labels)| Metric {
            name: "maitred_otlp_queue",
            help: "Items that wait for the OpenTelemetry collector.",
            labels,
            value: Value::gauge(counts.waiting),
        });
        out.take(&queue.collect::<Vec<_>>());
    }

    /// Writes the queue in the kernel of each listener, where the kernel tells.
    fn write_listeners(&self, out: &mut dyn Sink) {
        let queues: Vec<(String, Backlog)> = (self.groups.listeners.iter())
            .filter_map(|listening| Some((listening.address().to_string(), listening.backlog()?)))
            .collect();
        let labels: Vec<_> = queues.iter().map(|(name, _)| [("listener", &**name)]).collect();
        let mut metrics = Vec::new();
        for (name, help, of) in OF_LISTENERS {
            let of_one = |((_, queue), labels): (&(String, Backlog), _)| Metric {
                name,
                help,
                labels,
                value: Value::gauge(of(queue).into()),
            };
            metrics.extend(queues.iter().zip(labels.iter().map(<[_; 1]>::as_slice)).map(of_one));
        }
        out.take(&metrics);
    }

    /// Writes the ends of the certificates.
    fn write_certificates(&self, out: &mut dyn Sink) {
        let Some(terms) = self.site.tls.load_full() else { return };
        let ends: Vec<(String, &str, u64)> = (1..)
            .zip(terms.identities())
            .map(|(number, info): (usize, _)| {
                let name = info.names.first().map_or("", String::as_str);
                // A certificate that browsers do not trust has ended for an alert.
                let end = if info.stands_in() { 0 } else { info.certificate.not_after };
                (number.to_string(), name, end)
            })
            .collect();
        let labels: Vec<_> = ends
            .iter()
            .map(|(number, name, _)| [("certificate", number.as_str()), ("name", *name)])
            .collect();
        let metrics = ends.iter().zip(&labels).map(|((.., end), labels)| Metric {
            name: "maitred_tls_certificate_not_after_seconds",
            help: "Until when a certificate is valid, in seconds since 1970; 0: a self-signed one stands in for it.",
            labels,
            value: Value::gauge(*end),
        });
        out.take(&metrics.collect::<Vec<_>>());
    }

    /// Lines lost through a slow target of a log.
    fn dropped_lines(&self) -> impl Iterator<Item = Metric<'static>> + use<> {
        let (errors, access) = self.site.log.dropped();
        let of_log = |labels, dropped| Metric {
            name: LOG_DROPPED_TOTAL,
            help: "Lines of a log that could not be written and are missing there.",
            labels,
            value: Value::Counter(dropped),
        };
        let access = access.map(|dropped| of_log(&[("log", "access")], dropped));
        let calls = self.site.log.dropped_calls().map(|dropped| of_log(&[("log", "client")], dropped));
        access.into_iter().chain(calls).chain([of_log(&[("log", "error")], errors)])
    }

    /// The figures of all pools. Each group has a part of the default pool and the whole of the others.
    pub(crate) fn pool_figures(&self) -> Vec<PoolFigures> {
        let mut pools = self.scheduler.pools().map(Pool::figures).collect::<Vec<_>>();
        for group in self.groups.all().filter(|group| group.number != self.number) {
            pools[0].add(&group.scheduler.pool_at(0).figures());
        }
        pools
    }

    /// The counts of all locks; those with the same name in several groups are added.
    pub(crate) fn locks(&self) -> Vec<LockSnapshot> {
        let mut locks: Vec<LockSnapshot> = Vec::new();
        for group in self.groups.all() {
            let own = [group.timers.lock_snapshot(), group.slots.lock_snapshot()];
            group.scheduler.own_locks().chain(own).for_each(|lock| add(&mut locks, lock));
        }
        let folders = self.site.hosts.all().iter().flat_map(|host| host.routes().folders());
        folders.for_each(|(_, files)| add(&mut locks, files.lock_snapshot()));
        locks.extend(self.scheduler.pools().skip(1).flat_map(Pool::lock_snapshots));
        let site = &self.site;
        locks.extend([
            site.figures.lock_snapshot(),
            site.traced.lock_snapshot(),
            site.recent.lock_snapshot(),
        ]);
        locks
    }
}

/// Adds the counts of a lock to those of the same name.
fn add(locks: &mut Vec<LockSnapshot>, lock: LockSnapshot) {
    match locks.iter_mut().find(|other| other.name == lock.name) {
        Some(sum) => sum.add(&lock),
        None => locks.push(lock),
    }
}

/// A figure of a pool: name, sentence, value.
type Figure = (&'static str, &'static str, fn(&PoolFigures) -> Value<'static>);

const OF_POOLS: &[Figure] = &[
    ("maitred_pool_threads", "Threads that exist or have been asked for.", |pool| {
        Value::gauge(pool.threads as u64)
    }),
    (
        "maitred_pool_threads_starting",
        "Threads asked for that have not begun: for long if the system refuses them.",
        |pool| Value::gauge(pool.starting as u64),
    ),
    (
        "maitred_pool_threads_lost",
        "Threads whose request has timed out and that have not returned.",
        |pool| Value::gauge(pool.lost as u64),
    ),
    ("maitred_pool_threads_max", "The most threads.", |pool| Value::gauge(pool.max as u64)),
    ("maitred_pool_threads_idle", "Threads that are parked.", |pool| Value::gauge(pool.parked as u64)),
    (MADE_TOTAL, "Threads ever asked for.", |pool| Value::Counter(pool.made as u64)),
    ("maitred_pool_queued", "Requests that wait for a thread.", |pool| Value::gauge(pool.queued as u64)),
    (WAITED_TOTAL, "Requests that have waited for a thread.", |pool| Value::Counter(pool.waited)),
    (pool::REFUSED_TOTAL, "Requests refused because the queue was full.", |pool| {
        Value::Counter(pool.refused)
    }),
    (IDLE_REQUESTS_TOTAL, "Requests that waited although a thread was idle.", |pool| {
        Value::Counter(pool.idleness.requests)
    }),
    (IDLE_SECONDS_TOTAL, "How long they waited.", |pool| Value::SecondsTotal(pool.idleness.total_ns)),
    ("maitred_pool_idle_while_waiting_longest_microseconds", "The longest of these waits.", |pool| {
        Value::gauge(pool.idleness.longest_ns / 1000)
    }),
];

/// A counter with its labels: name, sentence, labels, value.
type Labelled<'a> = (&'static str, &'static str, [(&'static str, &'a str); 2], u64);

/// Reasons for which threads of pools were requested, and have ended.
fn reason_labels(pools: &[PoolFigures]) -> Vec<Labelled<'_>> {
    let starts = pools.iter().flat_map(|pool| {
        let counts = START_REASONS.into_iter().zip(pool.starts);
        let help = "Threads asked for, by reason.";
        counts.map(move |(reason, count)| (STARTS_TOTAL, help, labels_of(pool, reason), count))
    });
    let ends = pools.iter().flat_map(|pool| {
        let counts = END_REASONS.into_iter().zip(pool.ends);
        let help = "Threads that have ended, by reason.";
        counts.map(move |(reason, count)| (ENDS_TOTAL, help, labels_of(pool, reason), count))
    });
    starts.chain(ends).collect()
}

fn labels_of<'a>(pool: &'a PoolFigures, reason: &'a str) -> [(&'static str, &'a str); 2] {
    [("pool", &pool.name), ("reason", reason)]
}

/// A figure of a listener's queue: name, sentence, value.
type QueueFigure = (&'static str, &'static str, fn(&Backlog) -> u32);

const OF_LISTENERS: &[QueueFigure] = &[
    ("maitred_listener_queue", "Connections that wait in the kernel to be accepted.", |queue| queue.waiting),
    ("maitred_listener_queue_max", "The most that may wait; what comes above is dropped.", |queue| queue.max),
];

/// A figure of a lock: name, sentence, value.
type LockFigure = (&'static str, &'static str, fn(&LockSnapshot) -> Value<'static>);

const OF_LOCKS: &[LockFigure] = &[
    ("maitred_lock_acquisitions_total", "How often a lock was taken.", |lock| {
        Value::Counter(lock.acquisitions)
    }),
    ("maitred_lock_contended_total", "How often it was held by another thread.", |lock| {
        Value::Counter(lock.contended)
    }),
    ("maitred_lock_wait_seconds_total", "Time spent waiting for it.", |lock| {
        Value::SecondsTotal(nanos(lock.wait_total))
    }),
    ("maitred_lock_wait_longest_microseconds", "The longest wait for it.", |lock| {
        Value::gauge(nanos(lock.wait_max) / 1000)
    }),
];

/// Figures of the threads of each role: name and text of their processor time, of their number, and the name of a
/// role.
type RoleFigures = ([&'static str; 2], [&'static str; 2], fn(&'static str) -> &'static str);

const OF_ROLES: [RoleFigures; 2] = [
    (
        [
            "maitred_thread_cpu_seconds_total",
            "Processor time of the threads with a role, those that have ended included; in steps of 10 ms.",
        ],
        ["maitred_threads", "Threads with a role."],
        |role| role,
    ),
    (
        [
            "maitred_role_cpu_seconds_total",
            "Deprecated, until the next release: maitred_thread_cpu_seconds_total, with the earlier names of roles.",
        ],
        [
            "maitred_role_threads",
            "Deprecated, until the next release: maitred_threads, with the earlier names of roles.",
        ],
        earlier,
    ),
];

/// Former name of a role.
fn earlier(role: &'static str) -> &'static str {
    match role {
        "backup poller" => "driver",
        "reserve" => "extra",
        same => same,
    }
}

/// Writes threads and processor time of each role.
fn write_roles(roles: &BTreeMap<&'static str, OfRole>, out: &mut dyn Sink) {
    for figures in OF_ROLES {
        write_roles_as(figures, roles, out);
    }
}

fn write_roles_as(
    ([time_name, time_help], [count_name, count_help], called): RoleFigures,
    roles: &BTreeMap<&'static str, OfRole>,
    out: &mut dyn Sink,
) {
    let labels: Vec<_> = (roles.iter())
        .flat_map(|(&role, of)| {
            let Times { user, system } = of.times;
            [("user", user), ("system", system)]
                .map(|(mode, time)| ([("role", called(role)), ("mode", mode)], time))
        })
        .collect();
    let times = labels.iter().map(|(labels, time)| Metric {
        name: time_name,
        help: time_help,
        labels,
        value: Value::SecondsTotal(nanos(*time)),
    });
    let counts = labels.iter().step_by(2).zip(roles.values()).map(|((labels, _), of)| Metric {
        name: count_name,
        help: count_help,
        labels: &labels[..1],
        value: Value::gauge(of.threads),
    });
    out.take(&times.chain(counts).collect::<Vec<_>>());
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
