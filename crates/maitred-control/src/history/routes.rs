//! The answer about routes over time: the times of all, now and earlier; the minutes of one; events of the server.

use std::ops::Range;

use maitred_history::{ByRoute, Done};
use serde_json::{Value, json};

use crate::{Given, Refusal};

pub(super) const SHOWN: u64 = 600;

/// The routes of these seconds, or one of them by minutes, whichever is asked for.
pub(super) fn answer(routes: &ByRoute, given: &Given, seconds: Range<u64>) -> Result<Value, Refusal> {
    match (given.value("route"), given.value("routes")) {
        (Some(_), Some(_)) => Err(Refusal::wrong("route and routes at once; leave one of them out")),
        (Some(route), None) => Ok(by_minutes(routes, route, seconds)),
        (None, _) => compared(routes, given, seconds),
    }
}

pub(super) fn marks(routes: &ByRoute, seconds: Range<u64>) -> Vec<Value> {
    routes.marks(seconds).map(|mark| json!({ "time": mark.at, "what": mark.what })).collect()
}

fn by_minutes(routes: &ByRoute, route: &str, seconds: Range<u64>) -> Value {
    let minute = |(time, done): (u64, Done)| {
        json!({
            "time": time,
            "requests": done.requests,
            "mean_seconds": done.mean_seconds(),
            "p95_seconds": done.p95_seconds,
        })
    };
    json!({
        "route": route,
        "minutes": routes.minutes(route, seconds.clone()).map(minute).collect::<Vec<_>>(),
        "marks": marks(routes, seconds),
    })
}

/// Compares the routes: first those whose requests cost most more than earlier, then those that took most time.
fn compared(routes: &ByRoute, given: &Given, seconds: Range<u64>) -> Result<Value, Refusal> {
    let ago = match given.value("routes") {
        Some("before") | None => seconds.end.saturating_sub(seconds.start),
        Some(_) => given.duration("routes")?.unwrap_or_default(),
    };
    let earlier = seconds.start.saturating_sub(ago)..seconds.end.saturating_sub(ago);
    let (now, before) = (routes.done(seconds.clone()), routes.done(earlier.clone()));
    let mut rows: Vec<_> = now
        .into_iter()
        .map(|(name, done)| (name, done, before.get(name).copied().unwrap_or_default()))
        .collect();
    let more = |done: &Done, before: &Done| match before.mean_seconds() {
        Some(mean) => (done.seconds - mean * done.requests as f64).max(0.0),
        None => 0.0,
    };
    rows.sort_by(|(_, one, one_before), (_, other, other_before)| {
        let cost = more(other, other_before).total_cmp(&more(one, one_before));
        cost.then(other.seconds.total_cmp(&one.seconds))
    });
    let row = |(name, done, before): (&str, Done, Done)| {
        json!({
            "route": name,
            "requests": done.requests,
            "mean_seconds": done.mean_seconds(),
            "p95_seconds": done.p95_seconds,
            "earlier_requests": before.requests,
            "earlier_mean_seconds": before.mean_seconds(),
            "earlier_p95_seconds": before.p95_seconds,
        })
    };
    Ok(json!({
        "since": seconds.start,
        "until": seconds.end.saturating_sub(1),
        "earlier_since": earlier.start,
        "earlier_until": earlier.end.saturating_sub(1),
        "routes": rows.into_iter().map(row).collect::<Vec<_>>(),
        "marks": marks(routes, earlier.start.min(seconds.start)..seconds.end),
    }))
}
