//! The parts of the view as lines of text, for the screen and for plain output.

use super::data::{CLASSES, Route, SECONDS, SPANS, View};
use super::shown::{count, grouped, percent, size, sparkline, time};

/// By what routes are in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// The time of all their requests.
    #[default]
    Time,
    Requests,
    Mean,
    P99,
    Name,
}

/// What stands for what is not known.
const NONE: &str = "-";

fn or_none(value: Option<f64>, shown: fn(f64) -> String) -> String {
    value.map_or_else(|| NONE.to_owned(), shown)
}

/// Who it is. The application is last: its name may be cut off.
pub(super) fn title(view: &View) -> String {
    let mut parts = vec![format!("maitred {}", view.version), format!("up {}", time(view.uptime))];
    parts.extend(match view.workers {
        0 => None,
        1 => Some("1 worker".to_owned()),
        several => Some(format!("{several} workers")),
    });
    parts.extend(view.pid.map(|pid| format!("pid {pid}")));
    parts.extend(view.application.clone());
    parts.join("  ")
}

pub(super) fn requests(view: &View) -> String {
    let classes = CLASSES.iter().zip(view.classes).map(|(class, rate)| format!("{class} {}", count(rate)));
    let classes = classes.collect::<Vec<_>>().join("  ");
    format!("requests/s {}   {classes}", or_none(view.rate, count))
}

pub(super) fn times(view: &View) -> String {
    let [p50, p90, p99] = [view.p50, view.p90, view.p99].map(|value| or_none(value, time));
    format!("p50 {p50}  p90 {p90}  p99 {p99}   out {}/s", or_none(view.out, size))
}

pub(super) fn machine(view: &View) -> String {
    let cpu = view.cpu.map_or_else(
        || NONE.to_owned(),
        |(user, system)| format!("{} (kernel {})", percent(user + system), percent(system)),
    );
    let of_connections = |value: Option<f64>| or_none(value, |value| format!("{value:.0}"));
    format!(
        "cpu {cpu}  memory {}  connections {} (HTTP/2 {}, WebSocket {})",
        or_none(view.memory, size),
        view.connections,
        of_connections(view.http2),
        of_connections(view.websockets)
    )
}

pub(super) fn threads(view: &View) -> String {
    let threads = &view.threads;
    let [busy, idle, stuck, waiting] =
        [threads.busy, threads.idle, threads.stuck, threads.waiting].map(|value| or_none(value, count));
    let queued: u64 = view.pools.iter().map(|pool| pool.queued).sum();
    format!(
        "threads: {busy} busy, {idle} idle, {stuck} stuck, {waiting} wait for the interpreter; queue {queued}"
    )
}

/// Each pool, if there are several.
pub(super) fn pools(view: &View) -> Option<String> {
    let one = |pool: &super::data::Pool| {
        format!("{} {}/{} of {} ({} queued)", pool.name, pool.running, pool.threads, pool.most, pool.queued)
    };
    let pools = view.pools.iter().map(one).collect::<Vec<_>>().join(", ");
    (view.pools.len() > 1).then(|| format!("pools: {pools}"))
}

/// A letter for each span in the bar.
pub(super) const LETTERS: [char; SPANS.len()] = ['a', 'q', 'g', 'f', 'r', 'c', 'w'];

/// How many of `width` columns each span takes: those that are there take one at least, as far as there is room.
pub(super) fn bar(spans: &[f64; SPANS.len()], width: usize) -> [usize; SPANS.len()] {
    let all: f64 = spans.iter().sum();
    let mut columns = [0; SPANS.len()];
    if all <= 0.0 {
        return columns;
    }
    let mut before = 0.0;
    let mut used = 0;
    for (at, span) in spans.iter().enumerate() {
        before += span;
        let end = ((before / all * width as f64).round() as usize).min(width);
        columns[at] = end.saturating_sub(used);
        used = used.max(end);
    }
    for at in 0..spans.len() {
        // A hundredth is seen, less is not missed.
        if columns[at] == 0
            && spans[at] >= all / 100.0
            && let Some(widest) =
                (0..spans.len()).max_by_key(|other| columns[*other]).filter(|widest| columns[*widest] > 1)
        {
            (columns[at], columns[widest]) = (1, columns[widest] - 1);
        }
    }
    columns
}

/// What the letters mean, with the mean of each span.
pub(super) fn legend(spans: &[f64; SPANS.len()]) -> String {
    let all: f64 = spans.iter().sum();
    let one = |(name, span): (&&str, &f64)| {
        let share = if all > 0.0 { span / all } else { 0.0 };
        (share >= 0.005).then(|| format!("{name} {} {}", percent(share), time(*span)))
    };
    let parts: Vec<String> = SPANS.iter().zip(spans).filter_map(one).collect();
    parts.join("  ")
}

/// A line of the last minutes with its largest value. A column is the largest value of its seconds.
pub(super) fn line(
    name: &str,
    (values, start): (&[Option<f64>], u64),
    shown: fn(f64) -> String,
    width: usize,
) -> String {
    let most = values.iter().flatten().copied().max_by(f64::total_cmp);
    let most = format!("max {}", or_none(most, shown));
    let room = width.saturating_sub(11 + most.chars().count() + 1);
    let columns = grouped(values, start, SECONDS.div_ceil(room.max(1)).max(1));
    let drawn = sparkline(&columns, room);
    let blank = room.saturating_sub(drawn.chars().count());
    format!("{name:<11}{:blank$}{drawn} {most}", "")
}

/// The routes in order.
pub(super) fn ordered(view: &View, order: Order) -> Vec<&Route> {
    let mut routes: Vec<&Route> = view.routes.iter().collect();
    let by = |key: fn(&Route) -> f64| move |one: &&Route, other: &&Route| key(other).total_cmp(&key(one));
    match order {
        Order::Time => routes.sort_by(by(|route| route.time)),
        Order::Requests => routes.sort_by(by(|route| route.requests)),
        Order::Mean => routes.sort_by(by(Route::mean)),
        Order::P99 => routes.sort_by(by(|route| route.p99)),
        Order::Name => routes.sort_by(|one, other| one.name.cmp(&other.name)),
    }
    routes
}

/// What the columns of routes are.
pub(super) fn routes_title(view: &View, order: Order) -> String {
    let of = view
        .routes_of
        .map_or_else(|| "since the start".to_owned(), |window| format!("last {}", time(window)));
    let mark = |own: Order, name: &str| if own == order { format!("{name}▼") } else { name.to_owned() };
    let (requests, mean) = (mark(Order::Requests, "requests"), mark(Order::Mean, "mean"));
    let (p99, share) = (mark(Order::P99, "p99"), mark(Order::Time, "time"));
    format!("{requests:>9} {mean:>8} {p99:>8} {share:>6}  {} ({of})", mark(Order::Name, "route"))
}

pub(super) fn route(route: &Route, view: &View) -> String {
    let all: f64 = view.routes.iter().map(|route| route.time).sum();
    let share = if all > 0.0 { percent(route.time / all) } else { NONE.to_owned() };
    let (requests, mean, p99) = (count(route.requests), time(route.mean()), time(route.p99));
    format!("{requests:>9} {mean:>8} {p99:>8} {share:>6}  {}", route.name)
}

/// The longest requests that run, after how many there are.
pub(super) fn running(view: &View) -> (String, Vec<String>) {
    let one = |request: &super::data::Running| {
        let worker = request.worker.map(|worker| format!(" (worker {worker})")).unwrap_or_default();
        format!("{:>9} {}  {}{worker}  {}", time(request.seconds), request.peer, request.pool, request.what)
    };
    (format!("{} requests run; the longest:", view.running_total), view.running.iter().map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::super::data::{Memory, tests::answers};
    use super::*;

    #[test]
    fn each_line_says_what_it_is_of() {
        let view = Memory::default().view(&answers());
        assert_eq!(title(&view), "maitred 0.1.0  up 2.0 h  2 workers  pid 4711  WSGI shop:app");
        assert_eq!(requests(&view), "requests/s 40   1xx 0  2xx 38  3xx 0  4xx 0  5xx 2");
        assert_eq!(times(&view), "p50 100 ms  p90 200 ms  p99 900 ms   out 2.0 MiB/s");
        let expected = "cpu 60 % (kernel 10 %)  memory 80 MiB  connections 12 (HTTP/2 3, WebSocket 1)";
        assert_eq!(machine(&view), expected);
        let expected = "threads: 2 busy, 4 idle, 1 stuck, 0.5 wait for the interpreter; queue 3";
        assert_eq!(threads(&view), expected);
        assert_eq!(legend(&view.spans.expect("spans")), "queue 20 % 10.0 ms  run 80 % 40.0 ms");
        assert_eq!(
            routes_title(&view, Order::Mean),
            " requests    mean▼      p99   time  route (since the start)"
        );
        assert_eq!(route(&view.routes[0], &view), "      100   200 ms   900 ms   98 %  /search");
        let (title, requests) = running(&view);
        assert_eq!(title, "2 requests run; the longest:");
        assert_eq!(requests[0], "    3.5 s 127.0.0.1:6  default  GET /search");
        assert_eq!(pools(&view), None);
        assert!(line("requests/s", (&view.requests_line, 0), count, 80).ends_with(" ████████████ max 40"));
        assert!(
            ordered(&view, Order::Requests)[0].name == "/"
                && ordered(&view, Order::Time)[0].name == "/search"
        );
    }

    #[test]
    fn what_is_not_known_is_no_number() {
        let view = View::default();
        assert!(requests(&view).starts_with("requests/s -"));
        assert!(times(&view).starts_with("p50 -  p90 -"));
        assert!(machine(&view).starts_with("cpu -  memory -"));
    }

    #[test]
    fn a_bar_is_as_wide_as_there_is_room() {
        for spans in [[0.0, 0.2, 0.0, 0.0, 0.8, 0.0, 0.0], [1e-9, 0.02, 0.02, 0.02, 0.9, 0.0, 0.02], [1.0; 7]]
        {
            for width in [7, 20, 79] {
                let columns = bar(&spans, width);
                assert_eq!(columns.iter().sum::<usize>(), width, "{spans:?} {width}: {columns:?}");
            }
        }
        assert_eq!(bar(&[0.0, 0.012, 0.0, 0.0, 0.988, 0.0, 0.0], 20), [0, 1, 0, 0, 19, 0, 0]);
        assert_eq!(bar(&[0.0; 7], 20), [0; 7]);
    }
}
