//! The figures of a server as metrics of OpenTelemetry: those of the conventions for HTTP by their stable names, ours below `maitred.`.
//!
//! Leaves out: when they are read (`otlp.rs`). A reading takes some milliseconds with many routes.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use maitred_exchange::site::{HttpRequests, Statistics, write_pools};
use maitred_exchange::tracing::server_of;
use maitred_stats::exposition::{self, Sink};
use maitred_stats::{Distribution, Upstream};
use maitred_trace::metrics::{BYTES, Buckets, Data, Metric, Number, Period, Point, SECONDS, encode_exposed};
use maitred_trace::span::known_method;
use maitred_trace::{Attribute, Format, Value};

use crate::connection::Group;
use crate::inspect::Connections;

/// Requests that run, by method and whether the client uses TLS. A pair that has occurred stays, with zero.
pub(crate) type Active = BTreeMap<(&'static str, bool), i64>;

/// Reads figures, and gives each metric as an item of an exporter.
pub(crate) struct Reading<'a> {
    pub(crate) exponential: bool,
    pub(crate) format: Format,
    pub(crate) period: Period,
    pub(crate) push: &'a mut dyn FnMut(&[u8]),
}

impl Reading<'_> {
    pub(crate) fn read(&mut self, groups: &[Weak<Group>], active: &mut Active) {
        let groups: Vec<Arc<Group>> = groups.iter().filter_map(Weak::upgrade).collect();
        let Some(first) = groups.first() else { return };
        let statistics = first.site.figures.snapshot();
        self.requests(&statistics.http);
        self.active(&groups, active);
        self.calls(&statistics.upstreams);
        first.write_own_metrics(&mut Own(self));
        self.pools(&statistics);
    }

    fn requests(&mut self, all: &[HttpRequests]) {
        let attributes: Vec<Vec<Attribute<'_>>> = all.iter().map(attributes_of).collect();
        type Of = fn(&HttpRequests) -> &Distribution;
        let metrics: [(_, _, _, Of); 3] = [
            ("http.server.request.duration", "Duration of HTTP server requests.", "s", |one| &one.duration),
            ("http.server.response.body.size", "Size of HTTP server response bodies.", "By", |one| &one.sent),
            ("http.server.request.body.size", "Size of HTTP server request bodies.", "By", |one| {
                &one.received
            }),
        ];
        for (name, description, unit, of) in metrics {
            let points: Vec<_> = (all.iter().map(of).zip(&attributes))
                .filter(|(distribution, _)| distribution.count() > 0)
                .map(|(distribution, attributes)| (attributes.as_slice(), distribution))
                .collect();
            self.histogram(name, description, unit, &points);
        }
    }

    fn active(&mut self, groups: &[Arc<Group>], active: &mut Active) {
        active.values_mut().for_each(|count| *count = 0);
        Connections(groups).each_request(|request| {
            let method = known_method(request.method.as_str().as_bytes()).unwrap_or("_OTHER");
            *active.entry((method, request.secure)).or_default() += 1;
        });
        let attributes: Vec<_> = active
            .keys()
            .map(|(method, secure)| {
                [("http.request.method", Value::Text(method)), ("url.scheme", Value::Text(scheme(*secure)))]
            })
            .collect();
        let values = active.values().map(|count| Number::Integer(*count));
        self.sum(
            "http.server.active_requests",
            "Requests that run or wait for a thread.",
            "{request}",
            &points(&attributes, values),
        );
    }

    /// Calls to other servers. The counts know the server, and not the method.
    fn calls(&mut self, upstreams: &[Upstream]) {
        let attributes: Vec<_> =
            upstreams.iter().map(|upstream| attributes_of_server(&upstream.name)).collect();
        let times: Vec<_> = (upstreams.iter().zip(&attributes))
            .filter(|(upstream, _)| upstream.total.count() > 0)
            .map(|(upstream, attributes)| (attributes.as_slice(), &upstream.total))
            .collect();
        self.histogram("http.client.request.duration", "Duration of HTTP client requests.", "s", &times);
        let running = upstreams.iter().map(|upstream| Number::count(upstream.running));
        self.sum(
            "http.client.active_requests",
            "Calls to other servers that have not ended.",
            "{request}",
            &points(&attributes, running),
        );
    }

    fn pools(&mut self, statistics: &Statistics) {
        write_pools(&statistics.pools, &mut Own(self));
    }

    fn histogram(
        &mut self,
        name: &str,
        description: &str,
        unit: &str,
        points: &[(&[Attribute<'_>], &Distribution)],
    ) {
        let (scale, bounds) = if unit == "s" { (1e-9, SECONDS) } else { (1.0, BYTES) };
        let data = Data::Histogram { scale, buckets: self.buckets(bounds), points };
        if !points.is_empty() {
            self.give(&Metric { name, description, unit, data });
        }
    }

    fn sum(&mut self, name: &str, description: &str, unit: &str, points: &[Point<'_>]) {
        if !points.is_empty() {
            self.give(&Metric { name, description, unit, data: Data::Sum { monotonic: false, points } });
        }
    }

    fn give(&mut self, metric: &Metric<'_>) {
        let mut item = Vec::new();
        metric.encode(self.format, self.period, &mut item);
        (self.push)(&item);
    }

    fn buckets<'b>(&self, bounds: &'b [f64]) -> Buckets<'b> {
        if self.exponential { Buckets::Exponential } else { Buckets::Explicit(bounds) }
    }
}

/// The metrics of our own page. Those of the process are left out: every collector reads them itself.
struct Own<'a, 'b>(&'a mut Reading<'b>);

impl Sink for Own<'_, '_> {
    fn take(&mut self, metrics: &[exposition::Metric<'_>]) {
        let Self(reading) = self;
        encode_exposed(metrics, reading.buckets(SECONDS), reading.format, reading.period, &mut *reading.push);
    }
}

fn attributes_of(requests: &HttpRequests) -> Vec<Attribute<'_>> {
    if requests.status == 0 {
        return vec![("otel.metric.overflow", Value::Bool(true))];
    }
    let mut attributes = vec![
        ("http.request.method", Value::Text(requests.method)),
        ("url.scheme", Value::Text(scheme(requests.secure))),
        ("network.protocol.version", Value::Text(requests.version)),
        ("http.response.status_code", Value::Integer(requests.status.into())),
    ];
    if !requests.route.is_empty() {
        attributes.push(("http.route", Value::Text(&requests.route)));
    }
    let status = (requests.status >= 500).then_some(Value::Code(requests.status));
    attributes.extend(requests.aborted.map(Value::Text).or(status).map(|value| ("error.type", value)));
    attributes
}

const fn scheme(secure: bool) -> &'static str {
    if secure { "https" } else { "http" }
}

/// The attributes of a server by its name; one point is of all servers for which there was no room.
fn attributes_of_server(name: &str) -> Vec<Attribute<'_>> {
    let (scheme, host, port) = server_of(name);
    if host.is_empty() {
        return vec![("otel.metric.overflow", Value::Bool(true))];
    }
    let mut attributes = vec![("server.address", Value::Text(host)), ("url.scheme", Value::Text(scheme))];
    attributes.extend(port.map(|port| ("server.port", Value::Integer(port.into()))));
    attributes
}

fn points<'a, A: AsRef<[Attribute<'a>]>>(
    attributes: &'a [A],
    values: impl Iterator<Item = Number>,
) -> Vec<Point<'a>> {
    attributes.iter().zip(values).map(|(of, value)| Point { attributes: of.as_ref(), value }).collect()
}
