//! `finding`: the present bottleneck of the server. Two pictures of the server are compared, as maitred-finding says.
//!
//! ```text
//! mod.rs       the kept pictures, and the answer
//! picture.rs   a picture of this process    place.rs  where most busy threads stand
//! ```
//! Without questions nothing is done. The first question waits for a second picture; further ones, such as those of the
//! dashboard, are answered at once.

mod picture;
mod place;

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use maitred_finding::{Finding, Interval, MIN_INTERVAL, Picture};
use maitred_io::clock;
use serde_json::{Value, json};

use crate::lock;
pub(crate) use picture::of as picture_of;
use place::LastPlace;

/// The query.
pub const FINDING: &str = "finding";

/// The age, in nanoseconds, up to which an earlier picture is compared with the present: a trouble that has ended is not reported for longer.
const MAX_AGE: u64 = 5_000_000_000;

/// Pictures are at least so far apart.
const APART: u64 = MIN_INTERVAL / 2;

const FIRST: Duration = Duration::from_nanos(MIN_INTERVAL + MIN_INTERVAL / 8);

/// The pictures of the last seconds, of one process or of all of them.
#[derive(Debug, Default)]
pub struct Finder {
    kept: Mutex<VecDeque<Picture>>,
    place: LastPlace,
}

impl Finder {
    /// A finder without pictures.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is no picture to compare with, because the last question is too long ago. The caller then
    /// [keeps](Self::keep) one and [waits](Self::wait) for the next.
    pub fn is_first(&self) -> bool {
        let now = clock::monotonic();
        !lock(&self.kept).iter().any(|picture| is_right(picture, now))
    }

    /// Adds to the answer of `finding` the place of most threads, and the cause of their waits, if the answer is about
    /// threads: the wait is the cause behind a slow route, or behind threads that are taken. `ask` returns the answer of
    /// `stacks`; it is called now and then.
    pub fn add_place(&self, answer: &mut Value, ask: impl FnMut() -> Option<Value>) {
        place::add_place(answer, &self.place, ask);
    }

    /// Waits until something follows from a picture that was taken just now.
    pub fn wait(&self) {
        std::thread::sleep(FIRST);
    }

    /// Keeps a picture.
    pub fn keep(&self, picture: Picture) {
        let mut kept = lock(&self.kept);
        // One that is older than it may be is not used again.
        kept.retain(|old| picture.at.saturating_sub(old.at) <= MAX_AGE);
        if kept.back().is_none_or(|last| picture.at.saturating_sub(last.at) >= APART) {
            kept.push_back(picture);
        }
    }

    /// The answer of `finding` for this picture, which is kept.
    pub fn answer(&self, now: Picture) -> Value {
        let answer = {
            let kept = lock(&self.kept);
            let mut right = kept.iter().filter(|picture| is_right(picture, now.at));
            let (oldest, newest) = (right.next(), right.next_back());
            // A cause that has begun just now shows only in the newer interval.
            let found = [oldest, newest].into_iter().flatten();
            let found = found.map(|before| (before, maitred_finding::find(before, &now)));
            let found = found.reduce(|one, other| if one.1.is_some() { one } else { other });
            let none = Picture { at: now.at, ..Picture::default() };
            let (before, found) = found.unwrap_or((&none, None));
            shown(&Interval::between(before, &now), found)
        };
        self.keep(now);
        answer
    }
}

fn is_right(picture: &Picture, now: u64) -> bool {
    (MIN_INTERVAL..=MAX_AGE).contains(&now.saturating_sub(picture.at))
}

fn shown(interval: &Interval, found: Option<Finding>) -> Value {
    let found = found.map(|finding| (finding.cause.name(), finding));
    let (cause, finding) = found.unwrap_or_else(|| {
        let sentence = at_rest(interval);
        let cause = maitred_finding::Cause::Upstream;
        ("none", Finding { cause, sentence, next: String::new(), route: None, pool: None })
    });
    json!({
        "cause": cause,
        "sentence": finding.sentence,
        "next": Some(finding.next).filter(|next| !next.is_empty()),
        "route": finding.route,
        "pool": finding.pool,
        "compared_seconds": interval.seconds,
        "requests": interval.requests,
        "errors": interval.errors,
        "waiting": interval.waiting,
        "computing": interval.computing,
        "parallel": interval.parallel,
    })
}

fn at_rest(interval: &Interval) -> String {
    let Interval { requests, seconds, waiting, computing, parallel, .. } = interval;
    let ended = match requests {
        0 => return format!("Nothing stands in the way: no request has ended in the last {seconds:.1} s."),
        1 => "1 request has".to_owned(),
        several => format!("{several} requests have"),
    };
    let waited = if *waiting < 0.05 {
        "hardly any has waited".to_owned()
    } else {
        format!("{waiting:.1} have waited on average")
    };
    let part = 100.0 * computing / (*parallel).max(1) as f64;
    let of = match parallel {
        0 | 1 => "its processor".to_owned(),
        several => format!("its {several} processors"),
    };
    format!(
        "Nothing stands in the way: {ended} ended in {seconds:.1} s, {waited}, and the application needs {part:.0} % of {of}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quiet_server_is_told_of_in_plain_words() {
        let now = Picture { at: 1_020_000_000, parallel: 1, ..Picture::default() };
        let mut interval = Interval::between(&Picture::default(), &now);
        let told = at_rest(&interval);
        assert_eq!(told, "Nothing stands in the way: no request has ended in the last 1.0 s.");
        (interval.requests, interval.computing) = (1, 0.12);
        let told = at_rest(&interval);
        assert_eq!(
            told,
            "Nothing stands in the way: 1 request has ended in 1.0 s, hardly any has waited, and the application needs 12 % of its processor."
        );
        (interval.requests, interval.waiting, interval.parallel) = (40, 0.5, 2);
        let told = at_rest(&interval);
        assert!(told.contains("40 requests have ended in 1.0 s, 0.5 have waited on average"), "{told}");
        assert!(told.ends_with("needs 6 % of its 2 processors."), "{told}");
    }

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64, lost: u64) -> Picture {
        let mut picture = Picture { at: seconds * SECOND, ..Picture::default() };
        picture.logs.insert("access".into(), maitred_finding::Log { dropped: lost, ..Default::default() });
        picture
    }

    #[test]
    fn pictures_of_the_last_seconds_are_compared_and_then_forgotten() {
        let finder = Finder::new();
        assert_eq!(finder.answer(at(10, 0))["cause"], "none", "nothing to compare with");
        let found = finder.answer(at(11, 3));
        assert_eq!((&found["cause"], &found["compared_seconds"]), (&"log".into(), &1.0.into()));
        assert_eq!(finder.answer(at(14, 3))["cause"], "log", "four seconds ago it was less");
        assert_eq!(finder.answer(at(16, 3))["cause"], "none", "it has been so for five");
        assert!(lock(&finder.kept).len() <= 3);
        let beside = at(16, 4);
        assert_eq!(finder.answer(Picture { at: beside.at + 1, ..beside })["cause"], "log");
        assert_eq!(
            lock(&finder.kept).len(),
            2,
            "two pictures of one moment are one, and the first is too old"
        );
    }
}
