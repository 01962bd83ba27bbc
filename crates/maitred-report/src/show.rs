//! The report for people and for programs.

use std::fmt::Write as _;

use super::cascades::WaitReport;
use super::figures::{Figures, Route};
use super::json::push_string;
use super::read::{Log, Request, SPANS};
use super::together::Holder;

/// The content of a report. Requests are in the order of arrival.
pub(super) struct Report {
    pub(super) log: Log,
    pub(super) spans: Vec<(&'static str, Figures)>,
    pub(super) routes: Vec<Route>,
    pub(super) cascades: WaitReport,
    pub(super) holders: Vec<Holder>,
    /// How many routes and cascades.
    pub(super) top: usize,
    /// A wait is longer than so many microseconds.
    pub(super) wait: u64,
    pub(super) requests: bool,
}

// Writing to a String does not fail.
impl Report {
    /// The report as tables; times in milliseconds, as everywhere for people.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        let requests = &self.log.requests;
        let _ = writeln!(out, "{} requests{}", requests.len(), self.period());
        if self.log.missing > 0 {
            let _ = writeln!(out, "{} lines are missing in the log, it says", self.log.missing);
        }
        if let Some((log, line, begin)) = &self.log.first_not_understood {
            let count = self.log.not_understood;
            let _ = writeln!(out, "{count} lines were not understood, the first one {log}:{line}: {begin}");
        }
        if requests.is_empty() {
            out.push_str("There is nothing to report.\n");
            return out;
        }
        self.write_spans(&mut out);
        self.write_routes(&mut out);
        self.write_holders(&mut out);
        self.write_cascades(&mut out);
        if self.requests {
            self.write_requests(&mut out);
        }
        out
    }

    /// The period from the first byte of the first request to the last byte of the last response.
    fn period(&self) -> String {
        let requests = &self.log.requests;
        let end = requests.iter().map(|request| request.start + request.total()).max();
        let (Some(first), Some(end)) = (requests.first(), end) else { return String::new() };
        format!(" in {:.1} s", (end - first.start) as f64 / 1e6)
    }

    fn write_spans(&self, out: &mut String) {
        out.push_str("\nTimes in milliseconds\n");
        let _ = writeln!(
            out,
            "{:<8}{:>10}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            "span", "count", "min", "mean", "deviation", "median", "p90", "p99", "max"
        );
        for (name, figures) in &self.spans {
            let Figures { count, min, mean, deviation, median, p90, p99, max } = *figures;
            let _ = writeln!(
                out,
                "{name:<8}{count:>10}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
                ms(min),
                mean_ms(mean),
                mean_ms(deviation),
                ms(median),
                ms(p90),
                ms(p99),
                ms(max)
            );
        }
    }

    fn write_routes(&self, out: &mut String) {
        out.push_str("\nRoutes, by their part of the whole time; milliseconds\n");
        let _ = writeln!(
            out,
            "{:>6}{:>9}{:>11}{:>11}{:>11}{:>11} |{:>10}{:>10}{:>11}  route",
            "part", "count", "mean", "median", "p99", "max", "queue", "gate", "run"
        );
        for route in self.routes.iter().take(self.top) {
            let Figures { count, mean, median, p99, max, .. } = route.figures;
            let [_, queue, gate, _, run, ..] = route.spans.map(mean_ms);
            let _ = writeln!(
                out,
                "{:>5.1}%{count:>9}{:>11}{:>11}{:>11}{:>11} |{queue:>10}{gate:>10}{run:>11}  {}",
                route.share * 100.0,
                mean_ms(mean),
                ms(median),
                ms(p99),
                ms(max),
                self.log.routes.name(route.route)
            );
        }
        self.write_rest(out, self.routes.len(), "routes");
    }

    fn write_holders(&self, out: &mut String) {
        for holder in self.holders.iter().take(self.top) {
            let Holder { route, moments, waited, together, others } = holder;
            let routes: Vec<&str> = others.iter().take(5).map(|other| self.log.routes.name(*other)).collect();
            let more = others.len().saturating_sub(routes.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let _ = writeln!(
                out,
                "\n{} probably holds something that others wait for: a lock, or a connection of a pool.\n  \
                 {moments} times one of its requests ended, and at the same moment others: {waited} in all, which had run for {} ms together meanwhile\n  \
                 ({}{more}).\n  Where they stand: maitred ctl stacks at such a moment, or the error log with --stuck-after 0.5.",
                self.log.routes.name(*route),
                ms(*together),
                routes.join(", "),
            );
        }
    }

    fn write_cascades(&self, out: &mut String) {
        let WaitReport { waits, held, cascades, most, .. } = &self.cascades;
        let _ = writeln!(
            out,
            "\n{waits} requests waited longer than {} ms for a thread, {held} of them while as many ran as ever did at once",
            ms(self.wait)
        );
        for (pool, most) in (0..).zip(most) {
            let _ = writeln!(out, "pool {}: at most {most} at once", self.log.pools.name(pool));
        }
        if cascades.is_empty() {
            return;
        }
        out.push_str("\nCascades: requests that had the thread for which others waited; milliseconds\n");
        let _ = writeln!(out, "{:>8}{:>12}{:>12}{:>12}  request", "waits", "together", "longest", "ran");
        for cascade in cascades.iter().take(self.top) {
            let request = &self.log.requests[cascade.request];
            let _ = writeln!(
                out,
                "{:>8}{:>12}{:>12}{:>12}  {}",
                cascade.waits,
                ms(cascade.waited),
                ms(cascade.longest),
                ms(request.done() - request.begun()),
                self.what(request)
            );
        }
        self.write_rest(out, cascades.len(), "cascades");
    }

    fn write_rest(&self, out: &mut String, all: usize, what: &str) {
        if all > self.top {
            let _ = writeln!(out, "and {} more {what} (--top 0 for all)", all - self.top);
        }
    }

    fn write_requests(&self, out: &mut String) {
        out.push_str("\nRequests in the order of arrival; milliseconds\n");
        let _ = write!(out, "{:>6}{:>12}", "", "arrived");
        for span in SPANS {
            let _ = write!(out, "{span:>11}");
        }
        let _ = writeln!(out, "{:>11}{:>7}  request", "total", "status");
        let first = self.log.requests.first().map_or(0, |request| request.start);
        for (index, request) in self.log.requests.iter().enumerate() {
            let _ = write!(out, "{:>6}{:>12}", index + 1, ms(request.start - first));
            for span in request.spans {
                let _ = write!(out, "{:>11}", ms(span));
            }
            let total = ms(request.total());
            let _ = write!(out, "{total:>11}{:>7}  {}", request.status, self.what(request));
            match self.cascades.cause[index] {
                Some(cause) => {
                    let _ = writeln!(out, ", waited for {}", cause + 1);
                }
                None => out.push('\n'),
            }
        }
    }

    /// How a request is named.
    fn what(&self, request: &Request) -> String {
        let mut text = self.log.routes.name(request.route).to_owned();
        if !request.id.is_empty() {
            let _ = write!(text, ", id {}", request.id);
        }
        let _ = write!(text, ", {}:{}", self.log.logs.name(request.log), request.line);
        text
    }

    /// The report as one object; times in seconds.
    pub(super) fn json(&self) -> String {
        let mut out = String::new();
        let Log { requests, missing, not_understood, .. } = &self.log;
        let _ = write!(
            out,
            "{{\"requests\":{},\"missing\":{missing},\"not_understood\":{not_understood}",
            requests.len()
        );
        if let Some((log, line, begin)) = &self.log.first_not_understood {
            out.push_str(",\"first_not_understood\":{\"log\":");
            push_string(&mut out, log);
            let _ = write!(out, ",\"line\":{line},\"text\":");
            push_string(&mut out, begin);
            out.push('}');
        }
        out.push_str(",\"spans\":");
        list(&mut out, ('{', '}'), &self.spans, |out, (name, figures)| {
            let _ = write!(out, "\"{name}\":");
            push_figures(out, figures);
        });
        out.push_str(",\"routes\":");
        let routes: Vec<&Route> = self.routes.iter().take(self.top).collect();
        list(&mut out, ('[', ']'), &routes, |out, route| {
            out.push_str("{\"route\":");
            push_string(out, self.log.routes.name(route.route));
            let _ = write!(out, ",\"share\":{:.6},\"total\":", route.share);
            push_figures(out, &route.figures);
            for (name, mean) in SPANS.iter().zip(route.spans) {
                let _ = write!(out, ",\"{name}_mean\":{}", mean_seconds(mean));
            }
            out.push('}');
        });
        out.push_str(",\"holders\":");
        list(&mut out, ('[', ']'), &self.holders, |out, holder| {
            let Holder { route, moments, waited, together, others } = holder;
            out.push_str("{\"route\":");
            push_string(out, self.log.routes.name(*route));
            let together = seconds(*together);
            let _ =
                write!(out, ",\"moments\":{moments},\"waited\":{waited},\"together\":{together},\"others\":");
            list(out, ('[', ']'), others, |out, other| push_string(out, self.log.routes.name(*other)));
            out.push('}');
        });
        let WaitReport { waits, held, cascades, most, .. } = &self.cascades;
        let _ = write!(out, ",\"waits\":{waits},\"waits_all_threads_held\":{held},\"most_at_once\":");
        let pools: Vec<_> = (0..).zip(most).collect();
        list(&mut out, ('{', '}'), &pools, |out, (pool, most)| {
            push_string(out, self.log.pools.name(*pool));
            let _ = write!(out, ":{most}");
        });
        out.push_str(",\"cascades\":");
        let cascades: Vec<_> = cascades.iter().take(self.top).collect();
        list(&mut out, ('[', ']'), &cascades, |out, cascade| {
            let (waits, waited, longest) = (cascade.waits, seconds(cascade.waited), seconds(cascade.longest));
            let _ = write!(out, "{{\"waits\":{waits},\"waited\":{waited},\"longest\":{longest},\"request\":");
            self.push_request(out, cascade.request);
            out.push('}');
        });
        if self.requests {
            out.push_str(",\"in_order_of_arrival\":");
            let indexes: Vec<usize> = (0..requests.len()).collect();
            list(&mut out, ('[', ']'), &indexes, |out, index| self.push_request(out, *index));
        }
        out.push_str("}\n");
        out
    }

    fn push_request(&self, out: &mut String, index: usize) {
        let request = &self.log.requests[index];
        let _ = write!(out, "{{\"number\":{},\"log\":", index + 1);
        push_string(out, self.log.logs.name(request.log));
        let _ = write!(out, ",\"line\":{},\"id\":", request.line);
        push_string(out, &request.id);
        out.push_str(",\"route\":");
        push_string(out, self.log.routes.name(request.route));
        let _ = write!(out, ",\"status\":{},\"start\":{}", request.status, seconds(request.start));
        for (name, span) in SPANS.iter().zip(request.spans) {
            let _ = write!(out, ",\"{name}\":{}", seconds(span));
        }
        let _ = write!(out, ",\"total\":{}", seconds(request.total()));
        if let Some(cause) = self.cascades.cause[index] {
            let _ = write!(out, ",\"waited_for\":{}", cause + 1);
        }
        out.push('}');
    }
}

fn list<T>(out: &mut String, (open, close): (char, char), items: &[T], push: impl Fn(&mut String, &T)) {
    out.push(open);
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push(',');
        }
        push(out, item);
    }
    out.push(close);
}

fn push_figures(out: &mut String, figures: &Figures) {
    let Figures { count, min, mean, deviation, median, p90, p99, max } = *figures;
    let _ = write!(
        out,
        "{{\"count\":{count},\"min\":{},\"mean\":{},\"deviation\":{},\"median\":{},\"p90\":{},\"p99\":{},\"max\":{}}}",
        seconds(min),
        mean_seconds(mean),
        mean_seconds(deviation),
        seconds(median),
        seconds(p90),
        seconds(p99),
        seconds(max)
    );
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn mean_seconds(micros: f64) -> String {
    format!("{:.6}", micros / 1e6)
}

fn ms(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn mean_ms(micros: f64) -> String {
    format!("{:.3}", micros / 1e3)
}
