//! `finding`: what stands in the way of the server now. Two pictures of it are compared, as maitred-finding says.
//!
//! ```text
//! mod.rs       pictures that are kept while somebody asks, and the answer
//! picture.rs   a picture of this process    wire.rs   a picture on its way to the supervisor
//! ```
//! Nothing is done while nobody asks. The first who asks waits for a second; who asks again and again, as the dashboard does, is answered at once.

mod picture;
mod wire;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use maitred_finding::{Finding, Interval, MIN_INTERVAL, Picture};
use maitred_io::clock;
use serde_json::{Value, json};

use super::QueryContext;
use super::owner::Refusal;
use super::table::Given;
pub use picture::of as picture_of;
pub use wire::{from_json as picture_from_json, to_json as picture_to_json};

/// The query.
pub const FINDING: &str = "finding";

/// The age, in nanoseconds, up to which an earlier picture is compared with the present: a trouble that has ended is not reported for longer.
const MAX_AGE: u64 = 5_000_000_000;

/// Pictures are at least so far apart.
const APART: u64 = MIN_INTERVAL / 2;

/// How long the first who asks waits.
const FIRST: Duration = Duration::from_nanos(MIN_INTERVAL + MIN_INTERVAL / 8);

/// The pictures of the last seconds, of one process or of all of them.
#[derive(Debug, Default)]
pub struct Finder {
    kept: Mutex<VecDeque<Picture>>,
}

impl Finder {
    /// Without pictures.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Picture>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody has asked for a while, so that there is nothing to compare with. Then a picture is to be [kept](Self::keep), and
    /// [awaited](Self::wait) what becomes of it.
    pub fn is_first(&self) -> bool {
        let now = clock::monotonic();
        !self.kept().iter().any(|picture| is_right(picture, now))
    }

    /// Waits until something follows from a picture that was taken just now.
    pub fn wait(&self) {
        std::thread::sleep(FIRST);
    }

    /// Keeps a picture.
    pub fn keep(&self, picture: Picture) {
        let mut kept = self.kept();
        // One that is older than it may be is not used again.
        kept.retain(|old| picture.at.saturating_sub(old.at) <= MAX_AGE);
        if kept.back().is_none_or(|last| picture.at.saturating_sub(last.at) >= APART) {
            kept.push_back(picture);
        }
    }

    /// What `finding` answers when the server looks like this, which is kept.
    pub fn answer(&self, now: Picture) -> Value {
        let answer = {
            let kept = self.kept();
            let mut right = kept.iter().filter(|picture| is_right(picture, now.at));
            let (oldest, newest) = (right.next(), right.next_back());
            // What has begun just now is a cause for a part of the whole time only.
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
        let sentence = format!(
            "Nothing stands in the way: {} requests have ended in {:.1} s, {:.1} have waited at each moment, and the application wants {:.2} of the {} \
             that it can use.",
            interval.requests,
            interval.seconds,
            interval.waiting,
            interval.computing,
            match interval.parallel {
                1 => "processor".to_owned(),
                several => format!("{several} processors"),
            }
        );
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

/// The answer of this process. Who asks first is made to wait before (`Inner::answer`), without what this holds.
pub(super) fn finding(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    Ok(asking.finder.answer(picture_of(asking.server)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64, lost: u64) -> Picture {
        let mut picture = Picture { at: seconds * SECOND, ..Picture::default() };
        picture.logs.insert("access".into(), maitred_finding::Log { dropped: lost, ..Default::default() });
        picture
    }

    #[test]
    fn what_was_some_seconds_ago_is_compared_and_then_forgotten() {
        let finder = Finder::new();
        assert_eq!(finder.answer(at(10, 0))["cause"], "none", "nothing to compare with");
        let found = finder.answer(at(11, 3));
        assert_eq!((&found["cause"], &found["compared_seconds"]), (&"log".into(), &1.0.into()));
        assert_eq!(finder.answer(at(14, 3))["cause"], "log", "four seconds ago it was less");
        assert_eq!(finder.answer(at(16, 3))["cause"], "none", "it has been so for five");
        assert!(finder.kept().len() <= 3);
        let beside = at(16, 4);
        assert_eq!(finder.answer(Picture { at: beside.at + 1, ..beside })["cause"], "log");
        assert_eq!(finder.kept().len(), 2, "two pictures of one moment are one, and the first is too old");
    }
}
