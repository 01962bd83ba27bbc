//! The parts of the view as lines of text, for the screen and for plain output.

use serde_json::Value;

use super::data::{CLASSES, Route, SECONDS, SPANS, View, list, newest_first, number, text};
use super::shown::{count, percent, sparkline, time};
use crate::ctl::show::size;

/// The columns of routes, and the keys that put routes in their order.
pub(super) const COLUMNS: [(u8, &str); 5] =
    [(b'r', "requests"), (b'm', "mean"), (b'9', "p99"), (b't', "time"), (b'n', "route")];

/// The column whose order is the first one.
pub(super) const BY_TIME: usize = 3;

fn or_none(value: Option<f64>, shown: fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), shown)
}

/// The application is last: its name may be cut off.
pub(super) fn title(view: &View) -> String {
    let status = &view.answers.status;
    let up = time(number(&status["uptime_seconds"]));
    let mut parts = vec![format!("maitred {}", text(&status["version"])), format!("up {up}")];
    parts.extend(match list(&status["workers"]).count() {
        0 => None,
        1 => Some("1 worker".to_owned()),
        several => Some(format!("{several} workers")),
    });
    parts.extend(status["pid"].as_u64().map(|pid| format!("pid {pid}")));
    parts.extend(status["application"].as_str().map(ToOwned::to_owned));
    parts.join("  ")
}

pub(super) fn listeners(view: &View) -> String {
    let listener = |row: &Value| {
        let address = text(&row["address"]);
        let is_whole = address.contains("://") || address.starts_with("unix:");
        let scheme = if row["tls"] == true { "https://" } else { "http://" };
        if is_whole { address.to_owned() } else { format!("{scheme}{address}") }
    };
    list(&view.answers.status["listeners"]).map(listener).collect::<Vec<_>>().join(", ")
}

/// What is wrong, as far as the server says it: nothing is concluded from times.
pub(super) fn sentence(view: &View) -> Option<String> {
    let status = &view.answers.status;
    if status["draining"] == true {
        return Some(format!("The server drains: {} connections are open.", status["connections"]));
    }
    if let Some(scarce) = status["low_on"].as_str() {
        return Some(format!("There is little left of: {scarce}. Idle connections are closed."));
    }
    if !view.is_on() {
        return Some("Statistics are off: there are no times ('maitred ctl set statistics on').".to_owned());
    }
    let (pool, stuck) = view.pools("lost").into_iter().find(|(_, stuck)| *stuck > 0.0)?;
    let threads = if stuck == 1.0 { "thread" } else { "threads" };
    Some(format!("Stuck in requests that have timed out: {stuck} {threads} of pool {pool}."))
}

/// Requests, times, the machine, threads, and the pools if there are several.
pub(super) fn present(view: &View) -> Vec<String> {
    let of_class = |class: &str| view.per_second(&format!("requests_{class}")).unwrap_or_default();
    let classes = CLASSES.map(|class| format!("{class} {}", count(of_class(class)))).join("  ");
    let times = ["p50", "p90", "p99"].map(|name| or_none(view.percentile(&format!("{name}_seconds")), time));
    let cpu = ["cpu_user_seconds", "cpu_system_seconds"].map(|name| view.per_second(name));
    let cpu = match cpu {
        [Some(user), Some(kernel)] => format!("{} (kernel {})", percent(user + kernel), percent(kernel)),
        _ => "-".to_owned(),
    };
    let newest = |name: &str| or_none(view.newest(name), count);
    let queued: f64 = view.pools("queued").iter().map(|(_, queued)| queued).sum();
    let mut all = vec![
        format!("requests/s {}   {classes}", or_none(view.rate(), count)),
        format!(
            "p50 {}  p90 {}  p99 {}   out {}/s",
            times[0],
            times[1],
            times[2],
            or_none(view.per_second("out_bytes"), size)
        ),
        format!(
            "cpu {cpu}  memory {}  connections {} (HTTP/2 {}, WebSocket {})",
            or_none(view.newest("memory_bytes"), size),
            number(&view.answers.status["connections"]),
            newest("http2_open"),
            newest("websockets_open"),
        ),
        format!(
            "threads: {} busy, {} idle, {} stuck, {} wait for the interpreter; queue {}",
            newest("threads_busy"),
            newest("threads_idle"),
            newest("threads_stuck"),
            or_none(view.mean("threads_gate"), count),
            count(queued),
        ),
    ];
    all.extend(pools(view));
    all
}

fn pools(view: &View) -> Option<String> {
    let [threads, most, queued] = ["threads", "max_threads", "queued"].map(|figure| view.pools(figure));
    let one = |at: usize| {
        let (name, threads) = threads[at];
        let running = view.running().iter().filter(|row| row["pool"] == name).count();
        format!("{name} {running}/{threads} of {} ({} queued)", most[at].1, queued[at].1)
    };
    let all: Vec<String> = (0..threads.len()).map(one).collect();
    (all.len() > 1).then(|| format!("pools: {}", all.join(", ")))
}

/// A letter for each span in the bar.
const LETTERS: [&str; SPANS.len()] = ["a", "q", "g", "f", "r", "c", "w"];

/// The part that each span has of a bar of `width` columns.
pub(super) fn bar(spans: &[f64; SPANS.len()], width: usize) -> [String; SPANS.len()] {
    let all = spans.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let (mut before, mut used) = (0.0, 0);
    std::array::from_fn(|at| {
        before += spans[at];
        let end = (before / all * width as f64).round() as usize;
        let columns = end.min(width).saturating_sub(used);
        used += columns;
        LETTERS[at].repeat(columns)
    })
}

/// What the letters mean, with the mean of each span.
pub(super) fn legend(spans: &[f64; SPANS.len()]) -> String {
    let all = spans.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let is_shown = |(_, span): &(&&str, &f64)| *span / all >= 0.005;
    let one = |(name, span): (&&str, &f64)| format!("{name} {} {}", percent(span / all), time(*span));
    SPANS.iter().zip(spans).filter(is_shown).map(one).collect::<Vec<_>>().join("  ")
}

/// The last minutes, each figure with its largest value.
pub(super) fn minutes(view: &View, width: usize) -> [String; 3] {
    let history = &view.answers.history;
    let line = |name: &str, figure: &str, shown: fn(f64) -> String| {
        let mut values: Vec<Option<f64>> = newest_first(history, figure).collect();
        values.reverse();
        let most = values.iter().flatten().copied().max_by(f64::total_cmp);
        let most = format!("max {}", or_none(most, shown));
        let room = width.saturating_sub(11 + most.chars().count() + 1);
        // The first second, since 1970.
        let start = history["start"].as_u64().unwrap_or_default();
        format!("{name:<11}{:>room$} {most}", sparkline(&values, start, SECONDS, room))
    };
    [
        line("requests/s", "requests", count),
        line("p99", "p99_seconds", time),
        line("queue", "queue_max", count),
    ]
}

/// The first routes in the order of a column, below what the columns are.
pub(super) fn routes(view: &View, order: usize, most: usize) -> Vec<String> {
    let of = view.routes_of.map_or_else(|| "since the start".to_owned(), |of| format!("last {}", time(of)));
    let mut at = 0..;
    let [requests, mean, p99, time_of, route] =
        COLUMNS.map(|(_, name)| if at.next() == Some(order) { format!("{name}▼") } else { name.to_owned() });
    let mut all = vec![format!("{requests:>9} {mean:>8} {p99:>8} {time_of:>6}  {route} ({of})")];
    let time_of_all = view.routes.iter().map(|route| route.figures[3]).sum::<f64>();
    let one = |route: &&Route| {
        let [requests, mean, p99, spent] = route.figures;
        let (requests, mean, p99) = (count(requests), time(mean), time(p99));
        let share = or_none((time_of_all > 0.0).then(|| spent / time_of_all), percent);
        format!("{requests:>9} {mean:>8} {p99:>8} {share:>6}  {}", route.name)
    };
    let mut routes: Vec<&Route> = view.routes.iter().collect();
    routes.sort_by(|one, other| match (one.figures.get(order), other.figures.get(order)) {
        (Some(one), Some(other)) => other.total_cmp(one),
        _ => one.name.cmp(&other.name),
    });
    all.extend(routes.iter().take(most).map(one));
    all
}

/// The longest requests that run, below how many there are.
pub(super) fn running(view: &View, most: usize) -> Vec<String> {
    let one = |row: &Value| {
        let [peer, pool, method, path] = ["peer", "pool", "method", "path"].map(|field| text(&row[field]));
        let worker = row["worker"].as_u64().map(|worker| format!(" (worker {worker})")).unwrap_or_default();
        format!("{:>9} {peer}  {pool}{worker}  {method} {path}", time(number(&row["for_seconds"])))
    };
    let title = format!("{} requests run; the longest:", number(&view.answers.active["total"]));
    std::iter::once(title).chain(view.running().into_iter().take(most).map(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::data::{Answers, Memory, tests::answers};
    use super::*;

    #[test]
    fn each_line_says_what_it_is_of() {
        let view = Memory::default().view(answers());
        assert_eq!(title(&view), "maitred 0.1.0  up 2.0 h  2 workers  pid 4711  WSGI shop:app");
        assert_eq!(listeners(&view), "http://127.0.0.1:8000, https://[::1]:8443");
        assert_eq!(
            present(&view),
            [
                "requests/s 40   1xx 0  2xx 38  3xx 0  4xx 0  5xx 2",
                "p50 100 ms  p90 200 ms  p99 900 ms   out 2.0 MiB/s",
                "cpu 60 % (kernel 10 %)  memory 80.0 MiB  connections 12 (HTTP/2 3, WebSocket 1)",
                "threads: 2 busy, 4 idle, 1 stuck, 0.5 wait for the interpreter; queue 3",
            ]
        );
        assert_eq!(legend(&view.spans().expect("spans")), "queue 20 % 10.0 ms  run 80 % 40.0 ms");
        assert!(minutes(&view, 80)[0].ends_with(" ████████████ max 40"));
        let by_mean = routes(&view, 1, 1);
        assert_eq!(
            by_mean,
            [
                " requests    mean▼      p99   time  route (since the start)",
                "      100   200 ms   900 ms   98 %  /search",
            ]
        );
        let running = running(&view, 1);
        assert_eq!(running, ["2 requests run; the longest:", "    3.5 s 127.0.0.1:6  default  GET /search"]);
    }

    #[test]
    fn routes_are_in_the_order_of_a_column() {
        let view = Memory::default().view(answers());
        for (order, first) in ["/", "/search", "/search", "/search", "/"].into_iter().enumerate() {
            let all = routes(&view, order, 2);
            assert!(all[0].contains(&format!("{}▼", COLUMNS[order].1)), "{all:?}");
            assert!(all[1].ends_with(&format!("  {first}")), "{all:?}");
        }
    }

    #[test]
    fn several_pools_have_a_line() {
        let mut answers = answers();
        answers.pools["pools"][0]["name"] = "slow".into();
        answers.active["active"][0]["pool"] = "slow".into();
        let view = Memory::default().view(answers);
        let pools = present(&view).pop();
        assert_eq!(pools.as_deref(), Some("pools: slow 1/4 of 8 (1 queued), default 1/3 of 8 (2 queued)"));
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let all = present(&View::default());
        assert!(all[0].starts_with("requests/s -") && all[1].starts_with("p50 -  p90 -"), "{all:?}");
        assert!(all[2].starts_with("cpu -  memory -") && all.len() == 4, "{all:?}");
    }

    #[test]
    fn what_the_server_says_is_told() {
        let mut answers = answers();
        let told = |answers: &Answers| sentence(&Memory::default().view(answers.clone())).unwrap_or_default();
        assert_eq!(told(&answers), "Stuck in requests that have timed out: 1 thread of pool default.");
        answers.pools = Value::Null;
        assert_eq!(told(&answers), "");
        answers.history["on"] = false.into();
        assert!(told(&answers).starts_with("Statistics are off"));
        answers.status["low_on"] = "descriptors".into();
        assert!(told(&answers).contains("of: descriptors"));
        answers.status["draining"] = true.into();
        assert_eq!(told(&answers), "The server drains: 12 connections are open.");
    }

    #[test]
    fn a_bar_is_as_wide_as_there_is_room() {
        for spans in [[0.0, 0.2, 0.0, 0.0, 0.8, 0.0, 0.0], [1e-9, 0.02, 0.02, 0.02, 0.9, 0.0, 0.02], [1.0; 7]]
        {
            for width in [7, 20, 79] {
                assert_eq!(bar(&spans, width).concat().len(), width, "{spans:?} {width}");
            }
        }
        assert_eq!(bar(&[0.0, 0.2, 0.0, 0.0, 0.8, 0.0, 0.0], 5).concat(), "qrrrr");
        assert_eq!(bar(&[0.0; 7], 20).concat(), "");
    }
}
