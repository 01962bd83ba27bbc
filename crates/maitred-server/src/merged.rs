//! Merging of the pages of several processes.
//!
//! Promises: no socket, no clock; a malformed line is left out. Leaves out: the times of exchanges, since no sum of
//! texts has percentiles; they come as [`Statistics`].

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

use maitred_stats::exposition::{self, Format, Page};

use maitred_exchange::site::{Statistics, write_exchanges};

/// The page of a running process ([`own_page`](crate::inspect::ServerFigures::own_page)).
#[derive(Clone, Copy, Debug)]
pub struct WorkerPage<'a> {
    /// Value of the label `worker`.
    pub worker: &'a str,
    /// The text; all pages have the same format.
    pub text: &'a str,
}

/// The way to merge equal series of several processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Sum,
    /// The largest value: for a value that all processes share, and for a longest time.
    Largest,
    /// Each value stays, with the label `worker`: a sum would mean nothing, or hide one process that has reached a
    /// limit of its own.
    Apart,
}

/// All other figures are sums.
const WAYS: &[(&str, Way)] = &[
    ("maitred_build_info", Way::Largest),
    ("maitred_low_resources", Way::Largest),
    ("maitred_tcp_memory_bytes", Way::Largest),
    ("maitred_pool_idle_while_waiting_longest_microseconds", Way::Largest),
    ("maitred_lock_wait_longest_microseconds", Way::Largest),
    // One queue that all processes see, or one for each process.
    ("maitred_listener_queue", Way::Apart),
    ("maitred_listener_queue_max", Way::Apart),
    // One process may have an older certificate.
    ("maitred_tls_certificate_not_after_seconds", Way::Apart),
    ("process_open_fds", Way::Apart),
    ("process_max_fds", Way::Apart),
    // Each process counts the pages that processes share.
    ("process_resident_memory_bytes", Way::Apart),
    ("process_virtual_memory_bytes", Way::Apart),
    ("process_start_time_seconds", Way::Apart),
];

/// Beginnings of the names of figures that come from [`Statistics`].
const OF_EXCHANGES: [&str; 6] = [
    "maitred_statistics_",
    "maitred_application_",
    "maitred_route_",
    "maitred_request_duration_",
    "maitred_span_duration_",
    "maitred_upstream_",
];

/// Billionths of one: with this unit all values are whole numbers, seconds too.
const UNIT: i128 = 1_000_000_000;

/// Merges the pages of all running processes, the counters of ended ones ([`Retired`](crate::figures::Retired)), and
/// the exchanges of all, into one page with its end.
#[must_use]
pub fn merge_pages(
    pages: &[WorkerPage<'_>],
    retired: &BTreeMap<String, u64>,
    exchanges: &Statistics,
    format: Format,
) -> String {
    let mut families = Families::default();
    for page in pages {
        families.add_page(page);
    }
    families.add_retired(retired, format);
    let mut page = Page::new(format);
    families.list.iter().for_each(|family| family.write(&mut page.text));
    write_exchanges(exchanges, &mut page);
    exposition::end(format, &mut page.text);
    page.text
}

/// The counters of a page, by series, without those of exchanges. Those that end in `_seconds_total` are in nanoseconds.
#[must_use]
pub fn counters_of_page(text: &str) -> BTreeMap<String, u64> {
    let mut families = Families::default();
    families.add_page(&WorkerPage { worker: "", text });
    let counters = families.list.into_iter().filter(|family| family.kind == "counter");
    let samples = counters.flat_map(|family| family.samples).map(|(series, value)| {
        let value = if is_seconds(&series) { value } else { value / UNIT };
        (series, u64::try_from(value).unwrap_or_default())
    });
    samples.collect()
}

/// Whether a counter is one of seconds, by the name of its series.
fn is_seconds(series: &str) -> bool {
    name_of(series).ends_with("_seconds_total")
}

fn name_of(series: &str) -> &str {
    series.split('{').next().unwrap_or_default()
}

/// Figures of one name: in OpenMetrics without `_total`.
struct Family {
    kind: String,
    /// The lines that describe the figure.
    described: String,
    way: Way,
    samples: Vec<(String, i128)>,
    places: HashMap<String, usize>,
}

impl Family {
    fn new(name: &str, kind: &str) -> Self {
        let way = WAYS.iter().find(|(of, _)| *of == name).map_or(Way::Sum, |(_, way)| *way);
        let described = format!("# TYPE {name} {kind}\n");
        let kind = kind.to_owned();
        Self { kind, described, way, samples: Vec::new(), places: HashMap::new() }
    }

    fn add(&mut self, series: String, value: i128) {
        match self.places.get(&series) {
            Some(place) => {
                let mine = &mut self.samples[*place].1;
                *mine = if self.way == Way::Largest { value.max(*mine) } else { mine.saturating_add(value) };
            }
            None => {
                self.places.insert(series.clone(), self.samples.len());
                self.samples.push((series, value));
            }
        }
    }

    fn write(&self, out: &mut String) {
        if self.samples.is_empty() {
            return;
        }
        out.push_str(&self.described);
        for (series, value) in &self.samples {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{series} {}", decimal(*value));
        }
    }
}

/// Families in the order of their first lines.
#[derive(Default)]
struct Families {
    list: Vec<Family>,
    places: HashMap<String, usize>,
}

impl Families {
    /// The figures of one name, and whether the name is new.
    fn of(&mut self, name: &str, kind: &str) -> (&mut Family, bool) {
        let known = self.places.get(name).copied();
        let place = known.unwrap_or(self.list.len());
        if known.is_none() {
            self.places.insert(name.to_owned(), place);
            self.list.push(Family::new(name, kind));
        }
        (&mut self.list[place], known.is_none())
    }

    fn add_page(&mut self, page: &WorkerPage<'_>) {
        // None while lines are left out.
        let mut current: Option<(&mut Family, bool)> = None;
        for line in page.text.lines() {
            if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
                let is_kept = matches!(kind, "counter" | "gauge")
                    && !OF_EXCHANGES.iter().any(|beginning| name.starts_with(beginning));
                current = is_kept.then(|| self.of(name, kind));
                continue;
            }
            let Some((family, is_new)) = &mut current else { continue };
            if line.starts_with('#') {
                if *is_new && line != "# EOF" {
                    family.described.push_str(line);
                    family.described.push('\n');
                }
            } else if let Some((series, value)) = line.rsplit_once(' ')
                && let Some(value) = billionths(value)
            {
                let series = match family.way {
                    Way::Apart => with_worker(series, page.worker),
                    Way::Sum | Way::Largest => series.to_owned(),
                };
                family.add(series, value);
            }
        }
    }

    fn add_retired(&mut self, retired: &BTreeMap<String, u64>, format: Format) {
        for (series, count) in retired {
            let full = name_of(series);
            let name = match format {
                Format::Prometheus => full,
                Format::OpenMetrics => full.strip_suffix("_total").unwrap_or(full),
            };
            let unit = if is_seconds(series) { 1 } else { UNIT };
            self.of(name, "counter").0.add(series.clone(), i128::from(*count) * unit);
        }
    }
}

fn with_worker(series: &str, worker: &str) -> String {
    let label = exposition::series("", &[("worker", worker)]);
    match series.strip_suffix('}') {
        Some(others) => format!("{others},{}", label.trim_start_matches('{')),
        None => format!("{series}{label}"),
    }
}

/// A decimal number with up to nine places, exactly.
fn billionths(text: &str) -> Option<i128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || fraction.len() > 9 || !is_number(whole) || !is_number(fraction)
    {
        return None;
    }
    let value = whole.parse::<i128>().ok()? * UNIT + format!("{fraction:0<9}").parse::<i128>().ok()?;
    Some(if negative { -value } else { value })
}

fn decimal(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let (whole, fraction) = (value.abs() / UNIT, value.abs() % UNIT);
    let text = format!("{sign}{whole}.{fraction:09}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "# TYPE maitred_requests_total counter\n\
        # HELP maitred_requests_total Requests answered.\n\
        maitred_requests_total 7\n\
        # TYPE maitred_pool_queued gauge\n\
        # HELP maitred_pool_queued Requests that wait.\n\
        maitred_pool_queued{pool=\"a b\"} 2\n\
        maitred_pool_queued{pool=\"reports\"} 5\n\
        # TYPE maitred_low_resources gauge\n\
        maitred_low_resources 0\n\
        # TYPE maitred_route_requests_total counter\n\
        maitred_route_requests_total{route=\"x\"} 9\n\
        # TYPE process_open_fds gauge\n\
        process_open_fds 10\n\
        # TYPE process_cpu_seconds_total counter\n\
        process_cpu_seconds_total 1.500000001\n";

    const OTHER: &str = "# TYPE maitred_requests_total counter\n\
        maitred_requests_total 5\n\
        # TYPE maitred_pool_queued gauge\n\
        maitred_pool_queued{pool=\"a b\"} 1\n\
        # TYPE maitred_low_resources gauge\n\
        maitred_low_resources 1\n\
        # TYPE maitred_listener_queue gauge\n\
        maitred_listener_queue{listener=\"[::1]:1\"} 3\n\
        # TYPE process_open_fds gauge\n\
        process_open_fds 12\n\
        # TYPE process_cpu_seconds_total counter\n\
        process_cpu_seconds_total 0.6\n\
        rubbish\n";

    fn own(page: &str) -> Vec<&str> {
        page.lines().take_while(|line| !line.contains("maitred_statistics_")).collect()
    }

    #[test]
    fn equal_series_are_one_and_what_has_ended_is_in_it() {
        let pages = [WorkerPage { worker: "1", text: ONE }, WorkerPage { worker: "2", text: OTHER }];
        let retired = [
            ("maitred_requests_total", 100),
            ("maitred_gone_total{pool=\"x\"}", 4),
            ("process_cpu_seconds_total", 2_000_000_000),
        ];
        let retired = retired.map(|(name, count)| (name.to_owned(), count)).into();
        let page = merge_pages(&pages, &retired, &Statistics::default(), Format::Prometheus);
        let expected = [
            "# TYPE maitred_requests_total counter",
            "# HELP maitred_requests_total Requests answered.",
            "maitred_requests_total 112",
            "# TYPE maitred_pool_queued gauge",
            "# HELP maitred_pool_queued Requests that wait.",
            "maitred_pool_queued{pool=\"a b\"} 3",
            "maitred_pool_queued{pool=\"reports\"} 5",
            "# TYPE maitred_low_resources gauge",
            "maitred_low_resources 1",
            "# TYPE process_open_fds gauge",
            "process_open_fds{worker=\"1\"} 10",
            "process_open_fds{worker=\"2\"} 12",
            "# TYPE process_cpu_seconds_total counter",
            "process_cpu_seconds_total 4.100000001",
            "# TYPE maitred_listener_queue gauge",
            "maitred_listener_queue{listener=\"[::1]:1\",worker=\"2\"} 3",
            "# TYPE maitred_gone_total counter",
            "maitred_gone_total{pool=\"x\"} 4",
        ];
        assert_eq!(own(&page), expected);
        assert!(!page.contains("maitred_route_requests_total{route"), "exchanges come from statistics");
    }

    #[test]
    fn open_metrics_has_one_end_and_families_without_total() {
        let text = "# TYPE maitred_wait_seconds counter\n# UNIT maitred_wait_seconds seconds\n\
            # HELP maitred_wait_seconds Waits.\nmaitred_wait_seconds_total 0.25\n# EOF\n";
        let pages = ["1", "2"].map(|worker| WorkerPage { worker, text });
        let retired = BTreeMap::from([("maitred_wait_seconds_total".to_owned(), 1)]);
        let page = merge_pages(&pages, &retired, &Statistics::default(), Format::OpenMetrics);
        let expected = [
            "# TYPE maitred_wait_seconds counter",
            "# UNIT maitred_wait_seconds seconds",
            "# HELP maitred_wait_seconds Waits.",
            "maitred_wait_seconds_total 0.500000001",
        ];
        assert_eq!(own(&page), expected);
        assert_eq!((page.matches("# EOF").count(), page.ends_with("# EOF\n")), (1, true));
    }

    #[test]
    fn counters_of_a_page_are_whole_numbers() {
        let counters = counters_of_page(ONE);
        let expected = [("maitred_requests_total", 7), ("process_cpu_seconds_total", 1_500_000_001)];
        assert_eq!(counters, expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    #[test]
    fn numbers_are_exact() {
        for text in ["0", "-1", "7", "18446744073709551615", "0.000000001", "-2.5", "1.5"] {
            assert_eq!(billionths(text).map(decimal).as_deref(), Some(text));
        }
        for text in ["", "-", "NaN", "+Inf", "1e3", "1.0000000001", "999999999999999999999", "1.2.3"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }
}
