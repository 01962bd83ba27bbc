//! The report for people and for programs.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::cascades::{Cascade, WaitReport};
use super::figures::{Figures, Route};
use super::read::{Log, Request, SPANS};
use super::together::Holder;

/// The content of a report. Requests are in the order of arrival.
pub(super) struct Report {
    pub(super) log: Log,
    pub(super) spans: Vec<(&'static str, Figures)>,
    pub(super) routes: Vec<Route>,
    pub(super) cascades: WaitReport,
    pub(super) holders: Vec<Holder>,
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

    fn what(&self, request: &Request) -> String {
        let mut text = self.log.routes.name(request.route).to_owned();
        if !request.id.is_empty() {
            let _ = write!(text, ", id {}", request.id);
        }
        let _ = write!(text, ", {}:{}", self.log.logs.name(request.log), request.line);
        text
    }

    pub(super) fn json(&self) -> Value {
        let Log { requests, missing, not_understood, .. } = &self.log;
        let WaitReport { waits, held, cascades, most, .. } = &self.cascades;
        let mut report =
            json!({ "requests": requests.len(), "missing": missing, "not_understood": not_understood });
        if let Some((log, line, text)) = &self.log.first_not_understood {
            report["first_not_understood"] = json!({ "log": log, "line": line, "text": text });
        }
        let spans = self.spans.iter().map(|(name, figures)| ((*name).to_owned(), shown(figures)));
        report["spans"] = spans.collect::<Map<_, _>>().into();
        let route = |number: u32| self.log.routes.name(number);
        let routes = self.routes.iter().take(self.top).map(|own| {
            let mut row =
                json!({ "route": route(own.route), "share": own.share, "total": shown(&own.figures) });
            for (name, mean) in SPANS.iter().zip(own.spans) {
                row[format!("{name}_mean")] = (mean / 1e6).into();
            }
            row
        });
        report["routes"] = routes.collect();
        let holders = self.holders.iter().map(|holder| {
            let Holder { route: own, moments, waited, together, others } = holder;
            let others: Vec<&str> = others.iter().map(|other| route(*other)).collect();
            json!({ "route": route(*own), "moments": moments, "waited": waited, "together": seconds(*together), "others": others })
        });
        report["holders"] = holders.collect();
        report["waits"] = (*waits).into();
        report["waits_all_threads_held"] = (*held).into();
        let most = (0..).zip(most).map(|(pool, most)| (self.log.pools.name(pool).to_owned(), (*most).into()));
        report["most_at_once"] = most.collect::<Map<_, _>>().into();
        let cascades = cascades.iter().take(self.top).map(|cascade| {
            let Cascade { request, waits, waited, longest } = *cascade;
            let (waited, longest) = (seconds(waited), seconds(longest));
            json!({ "waits": waits, "waited": waited, "longest": longest, "request": self.request(request) })
        });
        report["cascades"] = cascades.collect();
        if self.requests {
            report["in_order_of_arrival"] = (0..requests.len()).map(|index| self.request(index)).collect();
        }
        report
    }

    fn request(&self, index: usize) -> Value {
        let request = &self.log.requests[index];
        let mut shown = json!({
            "number": index + 1,
            "log": self.log.logs.name(request.log),
            "line": request.line,
            "id": request.id,
            "route": self.log.routes.name(request.route),
            "status": request.status,
            "start": seconds(request.start),
        });
        for (name, span) in SPANS.iter().zip(request.spans) {
            shown[*name] = seconds(span).into();
        }
        shown["total"] = seconds(request.total()).into();
        if let Some(cause) = self.cascades.cause[index] {
            shown["waited_for"] = (cause + 1).into();
        }
        shown
    }
}

fn shown(figures: &Figures) -> Value {
    let Figures { count, mean, deviation, .. } = *figures;
    let [min, median, p90, p99, max] =
        [figures.min, figures.median, figures.p90, figures.p99, figures.max].map(seconds);
    json!({
        "count": count, "min": min, "mean": mean / 1e6, "deviation": deviation / 1e6, "median": median,
        "p90": p90, "p99": p99, "max": max,
    })
}

fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

fn ms(micros: u64) -> String {
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

fn mean_ms(micros: f64) -> String {
    format!("{:.3}", micros / 1e3)
}
