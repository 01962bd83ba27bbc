//! The routes that took the time, minute by minute for two days, and when the server began or was loaded again.
//!
//! Promises: the routes that took most time of a minute, with their number of requests, mean and 95th percentile, which
//! are those of that minute alone. Memory is bounded by the constants below, with any names of routes. Leaves out: all
//! other routes of a minute, and percentiles over several minutes: those of the slowest minute are shown.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;

use maitred_stats::Distribution;

/// Minutes that are kept: two days, so that each minute of one can be compared with that of the day before.
pub const MINUTES: usize = 2880;

/// Routes of a minute that are kept.
pub const MOST: usize = 12;

/// Names that are kept; when all are taken, new routes have the last one, "other".
const MAX_NAMES: usize = 1000;
const MAX_NAME: usize = 200;

/// Routes whose times are remembered from minute to minute, those that took most since the start. Of others a minute has no percentile.
const MAX_KNOWN: usize = 200;

/// Moments that are kept.
const MAX_MARKS: usize = 500;
const MAX_MARK: usize = 80;

/// Stands before the routes in a file.
const TITLE: &[u8; 8] = b"routes 1";

/// See the module text.
#[derive(Default)]
pub struct ByRoute {
    names: Vec<String>,
    numbers: HashMap<String, u16>,
    minutes: VecDeque<Minute>,
    marks: VecDeque<Mark>,
    /// The totals of each route at the last look: requests and nanoseconds, and of some the times.
    before: HashMap<String, (u64, u64, Option<Distribution>)>,
}

/// An event of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Seconds since 1970.
    pub at: u64,
    /// The event: `start`, `reload`.
    pub what: String,
}

struct Minute {
    /// The number since 1970.
    number: u32,
    rows: Box<[Row]>,
}

#[derive(Clone, Copy)]
struct Row {
    name: u16,
    requests: u32,
    /// Microseconds.
    mean: u32,
    /// 0 where it is not known.
    p95: u32,
}

/// The totals of a route in some minutes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Requests that have ended.
    pub requests: u64,
    /// Their times together.
    pub seconds: f64,
    /// The 95th percentile of the slowest minute.
    pub p95_seconds: Option<f64>,
}

impl Done {
    /// The mean time of a request.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.seconds / self.requests as f64)
    }

    fn add(&mut self, row: Row) {
        self.requests += u64::from(row.requests);
        self.seconds += f64::from(row.mean) / 1e6 * f64::from(row.requests);
        let p95 = (row.p95 > 0).then(|| f64::from(row.p95) / 1e6);
        self.p95_seconds = [self.p95_seconds, p95].into_iter().flatten().reduce(f64::max);
    }
}

impl ByRoute {
    /// Adds a minute, counted since 1970: of each route the times of its requests since the start.
    pub fn add(&mut self, minute: u64, routes: &[(String, Distribution)]) {
        let mut risen: Vec<_> = routes.iter().filter_map(|(name, now)| self.risen(name, now)).collect();
        risen.sort_by_key(|(_, _, nanos, _)| std::cmp::Reverse(*nanos));
        risen.truncate(MOST);
        let mut rows = Vec::new();
        for (name, requests, nanos, p95) in risen {
            let micros = |nanos: u64| u32::try_from(nanos / 1000).unwrap_or(u32::MAX);
            let name = self.number(name);
            let requests = u32::try_from(requests).unwrap_or(u32::MAX);
            rows.push(Row {
                name,
                requests,
                mean: micros(nanos / u64::from(requests.max(1))),
                p95: micros(p95),
            });
        }
        self.remember(routes);
        let number = u32::try_from(minute).unwrap_or(u32::MAX);
        // A clock that was set back tells a minute anew.
        while self.minutes.back().is_some_and(|last| last.number > number) {
            self.minutes.pop_back();
        }
        // A server that was started again within a minute goes on with that.
        if let Some(last) = self.minutes.back_mut().filter(|last| last.number == number) {
            rows.extend(&last.rows);
            rows.truncate(2 * MOST);
            last.rows = rows.into();
            return;
        }
        while self.minutes.len() >= MINUTES {
            self.minutes.pop_front();
        }
        self.minutes.push_back(Minute { number, rows: rows.into() });
    }

    /// Notes an event at a second since 1970.
    pub fn mark(&mut self, at: u64, what: &str) {
        while self.marks.len() >= MAX_MARKS {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { at, what: what.chars().take(MAX_MARK).collect() });
    }

    /// The events in these seconds.
    pub fn marks(&self, seconds: Range<u64>) -> impl Iterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| seconds.contains(&mark.at))
    }

    /// The totals of the routes in the minutes of these seconds, by their names.
    pub fn done(&self, seconds: Range<u64>) -> BTreeMap<&str, Done> {
        let mut done = BTreeMap::<&str, Done>::new();
        for row in self.within(seconds).flat_map(|minute| &minute.rows) {
            done.entry(self.name(row.name)).or_default().add(*row);
        }
        done
    }

    /// The totals of one route in each minute of these seconds: the first second of the minute, and nothing where it
    /// was none of those that took most.
    pub fn minutes(&self, route: &str, seconds: Range<u64>) -> impl Iterator<Item = (u64, Done)> {
        let number = self.numbers.get(route).copied();
        self.within(seconds).map(move |minute| {
            let mut done = Done::default();
            minute.rows.iter().filter(|row| Some(row.name) == number).for_each(|row| done.add(*row));
            (u64::from(minute.number) * 60, done)
        })
    }

    fn within(&self, seconds: Range<u64>) -> impl Iterator<Item = &Minute> {
        let is_within = move |minute: &&Minute| {
            let begin = u64::from(minute.number) * 60;
            begin < seconds.end && begin + 60 > seconds.start
        };
        self.minutes.iter().filter(is_within)
    }

    /// Requests, nanoseconds and percentile since the last look.
    fn risen<'a>(&self, name: &'a str, now: &Distribution) -> Option<(&'a str, u64, u64, u64)> {
        let (count, sum, times) =
            self.before.get(name).map_or((0, 0, None), |(count, sum, times)| (*count, *sum, times.as_ref()));
        let requests = now.count().checked_sub(count).filter(|requests| *requests > 0)?;
        let p95 = match (times, count) {
            (Some(times), _) => now.since(times).percentile(95.0),
            (None, 0) => now.percentile(95.0),
            (None, _) => 0,
        };
        Some((name, requests, now.sum().saturating_sub(sum), p95))
    }

    fn remember(&mut self, routes: &[(String, Distribution)]) {
        let mut by_time: Vec<_> = routes.iter().collect();
        by_time.sort_by_key(|(_, now)| std::cmp::Reverse(now.sum()));
        let of = |(at, (name, now)): (usize, &(String, Distribution))| {
            (name.clone(), (now.count(), now.sum(), (at < MAX_KNOWN).then(|| now.clone())))
        };
        self.before = by_time.into_iter().enumerate().map(of).collect();
    }

    fn number(&mut self, name: &str) -> u16 {
        let name: String = name.chars().take(MAX_NAME).collect();
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let name = if self.names.len() + 1 < MAX_NAMES { name } else { "other".to_owned() };
        let next = u16::try_from(self.names.len()).unwrap_or(u16::MAX);
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            self.names.push(name);
            next
        })
    }

    fn name(&self, number: u16) -> &str {
        self.names.get(usize::from(number)).map_or("other", |name| name)
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend(TITLE);
        let push = |bytes: &mut Vec<u8>, number: u32| bytes.extend(number.to_le_bytes());
        let text = |bytes: &mut Vec<u8>, text: &str| {
            push(bytes, text.len() as u32);
            bytes.extend(text.as_bytes());
        };
        push(bytes, self.names.len() as u32);
        self.names.iter().for_each(|name| text(bytes, name));
        push(bytes, self.minutes.len() as u32);
        for minute in &self.minutes {
            push(bytes, minute.number);
            push(bytes, minute.rows.len() as u32);
            for Row { name, requests, mean, p95 } in &minute.rows {
                for number in [u32::from(*name), *requests, *mean, *p95] {
                    push(bytes, number);
                }
            }
        }
        push(bytes, self.marks.len() as u32);
        for mark in &self.marks {
            push(bytes, u32::try_from(mark.at).unwrap_or(u32::MAX));
            text(bytes, &mark.what);
        }
    }

    /// Reads the output of [`write`](Self::write) with nothing behind it; an empty history of a file without this part.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut read = Self::default();
        if bytes.is_empty() {
            return Some(read);
        }
        let rest = &mut bytes.strip_prefix(TITLE)?;
        for _ in 0..number(rest)? {
            let name = text(rest)?;
            if read.names.len() >= MAX_NAMES {
                return None;
            }
            read.numbers.insert(name.clone(), u16::try_from(read.names.len()).ok()?);
            read.names.push(name);
        }
        for _ in 0..number(rest)? {
            let (minute, count) = (number(rest)?, number(rest)?);
            let mut rows = Vec::new();
            for _ in 0..count {
                let (name, requests) = (u16::try_from(number(rest)?).ok()?, number(rest)?);
                rows.push(Row { name, requests, mean: number(rest)?, p95: number(rest)? });
            }
            read.minutes.push_back(Minute { number: minute, rows: rows.into() });
        }
        for _ in 0..number(rest)? {
            let (at, what) = (number(rest)?.into(), text(rest)?);
            read.marks.push_back(Mark { at, what });
        }
        rest.is_empty().then_some(read)
    }
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    let (number, behind) = rest.split_first_chunk::<4>()?;
    *rest = behind;
    Some(u32::from_le_bytes(*number))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let length = number(rest)? as usize;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// The times of routes since the start.
    #[derive(Default)]
    struct Server(BTreeMap<String, Distribution>);

    impl Server {
        fn answers(&mut self, route: &str, times: u64, milliseconds: u64) {
            let own = self.0.entry(route.to_owned()).or_default();
            (0..times).for_each(|_| own.record(milliseconds * MS));
        }

        fn look(&self, kept: &mut ByRoute, minute: u64) {
            kept.add(minute, &self.0.clone().into_iter().collect::<Vec<_>>());
        }
    }

    fn near(value: Option<f64>, seconds: f64) {
        assert!(value.is_some_and(|value| (value / seconds - 1.0).abs() < 0.02), "{value:?} {seconds}");
    }

    #[test]
    fn a_minute_has_its_own_requests_alone() {
        let (mut server, mut kept) = (Server::default(), ByRoute::default());
        server.answers("GET /a", 100, 10);
        server.answers("GET /b", 10, 5);
        server.look(&mut kept, 20);
        server.answers("GET /a", 50, 400);
        server.look(&mut kept, 21);
        let first = kept.done(1200..1260);
        assert_eq!((first.len(), first["GET /a"].requests), (2, 100));
        near(first["GET /a"].p95_seconds, 0.01);
        let second = kept.done(1260..1320);
        assert_eq!((second.len(), second["GET /a"].requests), (1, 50));
        near(second["GET /a"].mean_seconds(), 0.4);
        let both = kept.done(1259..1261);
        assert_eq!(both["GET /a"].requests, 150);
        near(both["GET /a"].mean_seconds(), 0.14);
        near(both["GET /a"].p95_seconds, 0.4);
        let minutes: Vec<_> = kept.minutes("GET /b", 0..9999).map(|(at, done)| (at, done.requests)).collect();
        assert_eq!(minutes, [(1200, 10), (1260, 0)]);
        assert!(kept.done(0..1200).is_empty());
    }

    #[test]
    fn it_is_bounded_in_all_directions_and_the_same_in_a_file() {
        let (mut server, mut kept) = (Server::default(), ByRoute::default());
        for minute in 0..MINUTES as u64 + 50 {
            server.0.retain(|_, times| times.count() > 1);
            for route in 0..MOST as u64 + 3 {
                server.answers(&format!("GET /{minute}/{route}"), 1, route + 1);
            }
            server.look(&mut kept, minute);
            kept.mark(minute * 60, "reload");
        }
        assert_eq!((kept.minutes.len(), kept.names.len(), kept.marks.len()), (MINUTES, MAX_NAMES, MAX_MARKS));
        assert!(kept.minutes.iter().all(|minute| minute.rows.len() == MOST));
        assert_eq!(kept.name(kept.minutes.back().unwrap().rows[0].name), "other");
        let mut bytes = Vec::new();
        kept.write(&mut bytes);
        assert!(bytes.len() < 1_000_000, "{}", bytes.len());
        let read = ByRoute::read(&bytes).unwrap();
        let all = 0..u64::MAX;
        assert_eq!(read.done(all.clone()), kept.done(all.clone()));
        assert!(read.marks(all.clone()).eq(kept.marks(all)));
        for length in 1..bytes.len().min(3000) {
            assert!(ByRoute::read(&bytes[..length]).is_none());
        }
        assert!(ByRoute::read(b"").is_some());
    }

    #[test]
    fn a_clock_that_goes_back_tells_its_minutes_anew() {
        let (mut server, mut kept) = (Server::default(), ByRoute::default());
        for minute in [10, 11, 10] {
            server.answers("GET /a", 1, 1);
            server.look(&mut kept, minute);
        }
        let minutes = kept.minutes("GET /a", 0..9999).map(|(at, done)| (at, done.requests));
        assert_eq!(minutes.collect::<Vec<_>>(), [(600, 2)], "the first and the third");
    }
}
