//! Where most busy threads stand: the line of the application that they are in, from their stacks, and what they wait for there.

use std::collections::BTreeMap;

use maitred_finding::Cause;
use maitred_io::waiting::Waiting;
use serde_json::Value;

use super::super::threads::IDLE;
use super::Finder;

/// Causes for which it matters what threads do.
const OF_THREADS: [&str; 4] = ["interpreter", "database", "slow-route", "threads"];

/// Parts of paths that are not the application's.
const OF_OTHERS: [&str; 5] =
    ["/site-packages/", "/dist-packages/", "/lib/python", "/python/maitred/", "<frozen "];

/// What the thread of an event loop is called.
const LOOP: &str = "maitred-loop";

/// What most busy threads have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Common {
    /// In words: who they are, and the line.
    place: String,
    /// Of more than half of those.
    waits_for: Option<String>,
}

/// Adds to what `finding` answers where most threads are, if it is about threads, and what they wait for: that is the cause of a slow
/// route, or of threads that are taken. `ask` gives what `stacks` answers; it is asked now and then.
pub fn add_place(answer: &mut Value, finder: &Finder, ask: impl FnOnce() -> Option<Value>) {
    let is_of_threads = answer["cause"].as_str().is_some_and(|cause| OF_THREADS.contains(&cause));
    if !is_of_threads {
        return;
    }
    let route = answer["route"].as_str().map(ToOwned::to_owned);
    let common = finder.place(|| most(ask()?["stacks"].as_array()?, route.as_deref()));
    let (Some(Common { place, waits_for }), Some(sentence)) = (common, answer["sentence"].as_str()) else {
        return;
    };
    let turns_out = TURNS_OUT.iter().find(|(what, ..)| waits_for.as_deref() == Some(what.name()));
    let waits = turns_out.map_or(String::new(), |(what, ..)| format!(", and wait for {}", what.name()));
    answer["sentence"] = format!("{sentence} {place}{waits}.").into();
    let is_open = OF_WAITING.contains(&answer["cause"].as_str().unwrap_or_default());
    if let Some((_, cause, next)) = turns_out.filter(|_| is_open) {
        answer["cause"] = cause.name().into();
        answer["next"] = (*next).into();
    }
}

/// Causes that do not say what the threads wait for.
const OF_WAITING: [&str; 2] = [Cause::SlowRoute.name(), Cause::Threads.name()];

/// What these are then, and what to do.
const TURNS_OUT: [(Waiting, Cause, &str); 3] = [
    (
        Waiting::Lock,
        Cause::Lock,
        "'stacks' shows which thread is between the lines that the lock protects: what takes long there holds up all others",
    ),
    (
        Waiting::Peer,
        Cause::Upstream,
        "look at the server that is asked there; a timeout of the call ends it earlier, and a pool of its own keeps the route from the others",
    ),
    (Waiting::Disk, Cause::Disk, "look at the disk that is read or written there, and at what else uses it"),
];

/// The line in which most of the server's busy threads are, or the function; of those that run the route, if any do.
fn most(stacks: &[Value], route: Option<&str>) -> Option<Common> {
    let is_of_route = |stack: &Value| {
        let doing = stack["doing"].as_str()?.strip_prefix(route?)?;
        Some(doing.starts_with([' ', '?']))
    };
    let all = stacks.iter().filter_map(|stack| Some((stack, place_of(stack)?)));
    let (own, others): (Vec<_>, Vec<_>) = all.partition(|(stack, _)| is_of_route(stack) == Some(true));
    let busy = if own.is_empty() { others } else { own };
    let mut counts = BTreeMap::<&Place<'_>, usize>::new();
    for (_, place) in &busy {
        *counts.entry(place).or_default() += 1;
    }
    let (place, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let is_most = |count: usize| count * 2 >= busy.len() && (count > 1 || busy.len() == 1);
    // Threads that compute are in several lines of one loop.
    let is_near = |other: &Place<'_>| (other.file, other.function) == (place.file, place.function);
    let near = busy.iter().filter(|(_, other)| is_near(other)).count();
    let (count, at) = match (is_most(count), is_most(near)) {
        (true, _) => (count, "at"),
        (false, true) => (near, "near"),
        (false, false) => return None,
    };
    let threads = match &*busy {
        [(stack, _)] if stack["name"] == LOOP => "The event loop stands".to_owned(),
        [_] => "The busy thread stands".to_owned(),
        _ => format!("{count} of {} busy threads stand", busy.len()),
    };
    let Place { file, line, function, inner } = place;
    let file = file.rsplit('/').next().unwrap_or(file);
    let inner = if inner == function { String::new() } else { format!(" ({inner})") };
    let waits = busy.iter().filter(|(_, other)| is_near(other));
    let waits = waits.filter_map(|(stack, _)| stack["waits_for"].as_str());
    let mut kinds = BTreeMap::<&str, usize>::new();
    waits.for_each(|what| *kinds.entry(what).or_default() += 1);
    let waits_for = kinds.into_iter().find(|(_, those)| those * 2 > near).map(|(what, _)| what.to_owned());
    Some(Common { place: format!("{threads} {at} {file}:{line} in {function}{inner}"), waits_for })
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    file: &'a str,
    line: u32,
    function: &'a str,
    /// The function that is called there, in the end.
    inner: &'a str,
}

/// The innermost frame of the application; of a thread with a request, else the innermost of anything. None of one that waits for
/// requests, and of one that is not the server's.
fn place_of(stack: &Value) -> Option<Place<'_>> {
    let doing = stack["doing"].as_str()?;
    let frames = stack["stack"].as_array()?.iter().filter_map(|frame| frame_of(frame.as_str()?));
    let frames: Vec<_> = frames.collect();
    let (_, _, inner) = *frames.last()?;
    let own = frames.iter().rev().find(|(file, ..)| !OF_OTHERS.iter().any(|part| file.contains(part)));
    let (file, line, function) = *own.or_else(|| frames.last().filter(|_| doing != IDLE))?;
    Some(Place { file, line, function, inner })
}

/// Of `  File "/srv/shop.py", line 19, in stock` and what follows.
fn frame_of(text: &str) -> Option<(&str, u32, &str)> {
    let (file, rest) = text.split_once("File \"")?.1.split_once('"')?;
    let (line, rest) = rest.split_once("line ")?.1.split_once(|c: char| !c.is_ascii_digit())?;
    let function = rest.split_once("in ")?.1.lines().next()?.trim();
    Some((file, line.parse().ok()?, function))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stack(doing: &str, frames: &[&str]) -> Value {
        json!({ "doing": doing, "stack": frames })
    }

    #[test]
    fn the_line_of_the_application_is_named_and_what_it_calls() {
        let app = "  File \"/srv/shop/app.py\", line 7, in app\n    return stock()";
        let stock = "  File \"/srv/shop/shop.py\", line 19, in stock\n    urlopen(URL)";
        let urlopen = "  File \"/usr/lib/python3.11/urllib/request.py\", line 216, in urlopen";
        let read = "  File \"/usr/lib/python3.11/socket.py\", line 706, in readinto";
        let waiting = stack("GET /stock of 192.0.2.1:1", &[app, stock, urlopen, read]);
        let other = stack("GET / of 192.0.2.1:2", &[app]);
        let own = "  File \"/opt/python/maitred/_asgi.py\", line 121, in _run";
        let idle = stack(IDLE, &[own]);
        let most = |stacks: &[Value]| super::most(stacks, None).map(|common| common.place);
        let told = most(&[waiting.clone(), other.clone(), waiting.clone(), idle.clone()]);
        assert_eq!(told.as_deref(), Some("2 of 3 busy threads stand at shop.py:19 in stock (readinto)"));
        assert_eq!(most(&[waiting.clone(), other.clone()]), None, "each is somewhere else");
        let mut looped = stack(IDLE, &[own, stock]);
        looped["name"] = LOOP.into();
        let told = most(&[looped, idle.clone(), json!({ "doing": null, "stack": [app] })]);
        assert_eq!(told.as_deref(), Some("The event loop stands at shop.py:19 in stock"));
        assert_eq!(most(&[other, idle]).as_deref(), Some("The busy thread stands at app.py:7 in app"));
        assert_eq!(most(&[stack("GET /", &[]), stack("GET /", &["no frame"])]), None);
        let only = stack("GET /", &["File \"/x/site-packages/lib.py\", line 3 in run"]);
        assert_eq!(most(&[only]).as_deref(), Some("The busy thread stands at lib.py:3 in run"));
    }

    #[test]
    fn only_what_is_about_threads_has_a_place_and_stacks_are_asked_for_now_and_then() {
        let frames = ["File \"/srv/a.py\", line 1, in f"];
        let stacks = || Some(json!({ "stacks": [stack("GET /", &frames)] }));
        let (finder, mut asked) = (Finder::new(), 0);
        for _ in 0..2 {
            let mut answer = json!({ "cause": "slow-route", "sentence": "It is slow." });
            add_place(&mut answer, &finder, || {
                asked += 1;
                stacks()
            });
            assert_eq!(answer["sentence"], "It is slow. The busy thread stands at a.py:1 in f.");
        }
        assert_eq!(asked, 1);
        let mut answer = json!({ "cause": "log", "sentence": "It is slow." });
        add_place(&mut answer, &Finder::new(), || panic!("nobody asks"));
        assert_eq!(answer["sentence"], "It is slow.");
    }

    #[test]
    fn threads_of_the_route_count_and_lines_of_one_function_are_near_each_other() {
        let at = |doing: &str, line: u32| {
            stack(doing, &[&format!("  File \"/srv/app.py\", line {line}, in compute\n    x")])
        };
        let told = |stacks: &[Value], route| super::most(stacks, route).map(|common| common.place);
        let [one, other] = [at("GET /half of 192.0.2.1:1", 7), at("GET /half?a=b of 192.0.2.1:2", 8)];
        let rest = stack("GET /halfway of 192.0.2.1:3", &["  File \"/srv/app.py\", line 1, in app"]);
        let near = told(&[one.clone(), other, rest.clone()], Some("GET /half"));
        assert!(
            near.as_deref().is_some_and(|near| near.starts_with("2 of 2 busy threads stand near app.py:"))
        );
        let alone = told(&[one.clone(), rest.clone()], Some("GET /half"));
        assert_eq!(alone.as_deref(), Some("The busy thread stands at app.py:7 in compute"));
        assert_eq!(told(&[one, rest], Some("GET /other")), None);
    }

    #[test]
    fn what_most_of_them_wait_for_is_the_cause_of_a_slow_route() {
        let waiting = |what: Option<&str>| {
            let mut one = stack("GET /", &["File \"/srv/a.py\", line 1, in f"]);
            one["waits_for"] = what.into();
            one
        };
        let found = |cause: &str, stacks: &[Value]| {
            let mut answer = json!({ "cause": cause, "sentence": "It is slow.", "next": "look" });
            add_place(&mut answer, &Finder::new(), || Some(json!({ "stacks": stacks })));
            (answer["cause"].as_str().unwrap_or_default().to_owned(), answer)
        };
        let lock = Some("a lock");
        let (cause, answer) = found("slow-route", &[waiting(lock), waiting(lock), waiting(Some("time"))]);
        assert_eq!(cause, "lock");
        assert_eq!(
            answer["sentence"],
            "It is slow. 3 of 3 busy threads stand at a.py:1 in f, and wait for a lock."
        );
        assert!(answer["next"].as_str().is_some_and(|next| next.contains("lock protects")), "{answer}");
        assert_eq!(found("threads", &[waiting(Some("a peer"))]).0, "upstream");
        assert_eq!(found("slow-route", &[waiting(Some("a disk"))]).0, "disk");
        assert_eq!(found("slow-route", &[waiting(lock), waiting(None)]).0, "slow-route", "half of them");
        assert_eq!(found("slow-route", &[waiting(Some("time"))]).0, "slow-route");
        let (cause, answer) = found("database", &[waiting(Some("a peer"))]);
        assert_eq!((cause.as_str(), &answer["next"]), ("database", &"look".into()), "it is known already");
    }
}
