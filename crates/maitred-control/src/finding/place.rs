//! Where most busy threads stand: the line of the application in their stacks, and the reason for their waits there.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use maitred_finding::Cause;
use maitred_io::waiting::Waiting;
use serde_json::Value;

use crate::lock;
use crate::shown::IDLE;

/// Causes that the place of the threads helps to explain.
const OF_THREADS: [&str; 5] = ["interpreter", "database", "upstream", "slow-route", "threads"];

const OF_OTHERS: [&str; 5] =
    ["/site-packages/", "/dist-packages/", "/lib/python", "/python/maitred/", "<frozen "];

const LOOP: &str = "maitred-loop";

/// The words in `stacks` for a thread that keeps the interpreter from others.
const KEEPS: &str = "keeps the interpreter";

/// Threads are looked at until some looks agree, at most so often: in one moment any of them may be where it hardly ever is.
const LOOKS: usize = 8;

/// So many looks have to agree about threads that wait.
const AGREEING: usize = 2;

/// So many looks have to agree about threads that compute. A look that takes the interpreter between two calls of C code sees neither that
/// it is kept nor the line of these calls.
const AGREEING_OF_INTERPRETER: usize = 4;

/// A common wait is shown only if at least one of so many of the threads has it.
const SLEEPING: usize = 4;

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// How long it is not asked again where threads stand: each question takes the interpreter.
const KEPT_FOR: Duration = Duration::from_secs(3);

/// The place where most threads stood, and when that was asked.
#[derive(Debug, Default)]
pub(super) struct LastPlace(Mutex<Option<(Instant, Option<Common>)>>);

impl LastPlace {
    /// The place that was found some seconds ago, or the result of `ask`.
    fn or_ask(&self, ask: impl FnOnce() -> Option<Common>) -> Option<Common> {
        let last = || lock(&self.0);
        if let Some((at, place)) = &*last()
            && at.elapsed() < KEPT_FOR
        {
            return place.clone();
        }
        // Not under the lock: threads that keep the interpreter make it take seconds.
        let place = ask();
        *last() = Some((Instant::now(), place.clone()));
        place
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Common {
    /// In words: which threads, and the line.
    place: String,
    line: (String, u32),
    /// The reason for the waits of more than half of the sleeping threads.
    waits_for: Option<String>,
    keeps: bool,
}

/// See [`Finder::add_place`](super::Finder::add_place).
pub(super) fn add_place(answer: &mut Value, last: &LastPlace, mut ask: impl FnMut() -> Option<Value>) {
    let Some(found) = answer["cause"].as_str().filter(|cause| OF_THREADS.contains(cause)) else { return };
    let (is_interpreter, is_open) = (found == Cause::Interpreter.name(), OF_WAITING.contains(&found));
    let route = answer["route"].as_str().map(ToOwned::to_owned);
    let look = || {
        let mut common = most(ask()?["stacks"].as_array()?, route.as_deref())?;
        // Threads that compute wait for the interpreter now and then.
        common.waits_for = common.waits_for.filter(|_| !is_interpreter);
        Some(common)
    };
    let agreeing = if is_interpreter { AGREEING_OF_INTERPRETER } else { AGREEING };
    let common = last.or_ask(|| agreed(is_open, agreeing, look, || std::thread::sleep(BETWEEN_LOOKS)));
    let (Some(Common { place, waits_for, keeps, .. }), Some(sentence)) =
        (common, answer["sentence"].as_str())
    else {
        return;
    };
    if keeps && (is_interpreter || is_open) {
        answer["sentence"] =
            format!("C code keeps the interpreter from all other threads. {sentence} {place}.").into();
        answer["cause"] = Cause::Interpreter.name().into();
        answer["next"] = "look at what is called there: Python code gives the interpreter to other threads every 5 ms, a call of C code only if it is written so; smaller calls, or another process for it, let others run".into();
        return;
    }
    let turns_out = TURNS_OUT.iter().find(|(what, ..)| waits_for.as_deref() == Some(what.name()));
    let waits = turns_out.map_or(String::new(), |(what, ..)| format!(", and wait for {}", what.name()));
    answer["sentence"] = format!("{sentence} {place}{waits}.").into();
    if let Some((_, cause, next)) = turns_out.filter(|_| is_open) {
        answer["cause"] = cause.name().into();
        answer["next"] = (*next).into();
    }
}

/// The place that `agreeing` looks have in common, else that of most looks. Where `asks_what`, only looks at threads that sleep count for
/// that. A look that finds a thread that keeps the interpreter decides alone.
fn agreed(
    asks_what: bool,
    agreeing: usize,
    mut look: impl FnMut() -> Option<Common>,
    mut pause: impl FnMut(),
) -> Option<Common> {
    let mut seen = Vec::<(Common, usize)>::new();
    for number in 0..LOOKS {
        if number > 0 {
            pause();
        }
        let Some(common) = look() else { continue };
        if common.keeps {
            return Some(common);
        }
        let is_same = |(other, _): &&mut (Common, usize)| {
            (&other.line, &other.waits_for) == (&common.line, &common.waits_for)
        };
        let tells = common.waits_for.is_some() || !asks_what;
        let times = match seen.iter_mut().find(is_same) {
            Some((_, times)) => {
                *times += 1;
                *times
            }
            None => {
                seen.push((common.clone(), 1));
                1
            }
        };
        if tells && times >= agreeing {
            return Some(common);
        }
    }
    seen.into_iter().max_by_key(|(_, times)| *times).map(|(common, _)| common)
}

/// Causes that do not say why the threads wait.
const OF_WAITING: [&str; 2] = [Cause::SlowRoute.name(), Cause::Threads.name()];

/// The more precise causes by the kind of wait, each with its advice.
const TURNS_OUT: [(Waiting, Cause, &str); 4] = [
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
    (
        Waiting::Interpreter,
        Cause::Interpreter,
        "'stacks' shows what computes meanwhile: a thread of the application's own may be none of a request",
    ),
    (Waiting::Disk, Cause::Disk, "look at the disk that is read or written there, and at what else uses it"),
];

/// The line in which most of the server's busy threads are, or the function; of those that run the route, if any do.
fn most(stacks: &[Value], route: Option<&str>) -> Option<Common> {
    let keeper =
        stacks.iter().find(|stack| stack["state"].as_str().is_some_and(|state| state.ends_with(KEEPS)));
    if let Some((keeper, place)) = keeper.and_then(|keeper| Some((keeper, place_of(keeper)?))) {
        let who = if keeper["name"] == LOOP { "The event loop" } else { "The thread that keeps it" };
        return Some(Common { keeps: true, ..place.common(who, "stands at") });
    }
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
    let waits = busy.iter().filter(|(_, other)| is_near(other));
    let waits = waits.filter_map(|(stack, _)| stack["waits_for"].as_str());
    let mut kinds = BTreeMap::<&str, usize>::new();
    waits.for_each(|what| *kinds.entry(what).or_default() += 1);
    // Threads that run at this moment say nothing about the waits of the others.
    let asleep: usize = kinds.values().sum();
    let most = kinds.into_iter().find(|(_, those)| those * 2 > asleep && those * SLEEPING >= near);
    let waits_for = most.map(|(what, _)| what.to_owned());
    Some(Common { waits_for, ..place.common(&threads, at) })
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    file: &'a str,
    line: u32,
    function: &'a str,
    /// The function that is called there, in the end.
    inner: &'a str,
}

impl Place<'_> {
    fn common(&self, who: &str, at: &str) -> Common {
        let Self { file, line, function, inner } = self;
        let name = file.rsplit('/').next().unwrap_or(file);
        let inner = if inner == function { String::new() } else { format!(" ({inner})") };
        let place = format!("{who} {at} {name}:{line} in {function}{inner}");
        Common { place, line: ((*file).to_owned(), *line), waits_for: None, keeps: false }
    }
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

/// Parses `  File "/srv/shop.py", line 19, in stock` and the text behind it.
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
    fn the_line_of_the_application_and_its_callee_are_named() {
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
    fn only_causes_about_threads_have_a_place_and_stacks_are_asked_for_now_and_then() {
        let frames = ["File \"/srv/a.py\", line 1, in f"];
        let mut sleeps = stack("GET /", &frames);
        sleeps["waits_for"] = "time".into();
        let stacks = || Some(json!({ "stacks": [sleeps.clone()] }));
        let (last, mut asked) = (LastPlace::default(), 0);
        for _ in 0..2 {
            let mut answer = json!({ "cause": "slow-route", "sentence": "It is slow." });
            add_place(&mut answer, &last, || {
                asked += 1;
                stacks()
            });
            assert_eq!(answer["sentence"], "It is slow. The busy thread stands at a.py:1 in f.");
        }
        assert_eq!(asked, 2, "until two agree, and not again");
        let mut answer = json!({ "cause": "log", "sentence": "It is slow." });
        add_place(&mut answer, &LastPlace::default(), || panic!("nobody asks"));
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
    fn two_looks_that_agree_decide() {
        let at = |line: u32, waits_for: Option<&str>| {
            let mut one = stack("GET /", &[&format!("File \"/srv/a.py\", line {line}, in f")]);
            one["waits_for"] = waits_for.into();
            super::most(&[one], None)
        };
        let disk = Some("a disk");
        let told = |looks: &[Option<Common>]| {
            let (mut left, mut pauses) = (looks.iter().cloned(), 0);
            let common =
                agreed(true, AGREEING, || left.next().expect("at most so many looks"), || pauses += 1);
            (common.map(|common| (common.line.1, common.waits_for)), pauses)
        };
        let of_disk = Some((2, disk.map(ToOwned::to_owned)));
        let late = [at(1, None), at(2, None), at(2, None), None, at(2, disk), at(2, disk)];
        assert_eq!(told(&late), (of_disk.clone(), 5), "those that run tell nothing");
        assert_eq!(told(&[at(2, disk), at(2, disk)]), (of_disk.clone(), 1));
        let mut differ = [const { None }; LOOKS];
        assert_eq!(told(&differ), (None, LOOKS - 1));
        (differ[0], differ[3]) = (at(1, None), at(2, disk));
        assert_eq!(told(&differ), (of_disk, LOOKS - 1), "the last of those that are as frequent");
        differ[5] = at(1, None);
        assert_eq!(told(&differ), (Some((1, None)), LOOKS - 1), "the most frequent");
    }

    #[test]
    fn of_threads_that_compute_more_looks_have_to_agree() {
        let stacks = |state: &str, line: u32| {
            let mut one = stack("GET /c", &[&format!("File \"/srv/a.py\", line {line}, in match")]);
            one["state"] = state.into();
            Some(json!({ "stacks": [one] }))
        };
        let told = |looks: &[Option<Value>]| {
            let mut answer = json!({ "cause": "interpreter", "sentence": "It computes." });
            let mut left = looks.iter().cloned();
            add_place(&mut answer, &LastPlace::default(), || left.next().flatten());
            answer["sentence"].as_str().map(ToOwned::to_owned)
        };
        let between = || stacks("runs GET /c", 3);
        let kept = stacks("runs GET /c, keeps the interpreter", 7);
        let found = told(&[between(), between(), between(), kept]);
        assert!(
            found.is_some_and(|found| found.starts_with("C code keeps")),
            "after three between two calls"
        );
        let loops = || stacks("runs GET /c", 7);
        let found = told(&[between(), loops(), between(), loops(), loops(), loops()]);
        assert_eq!(found.as_deref(), Some("It computes. The busy thread stands at a.py:7 in match."));
    }

    #[test]
    fn one_look_at_a_thread_that_keeps_the_interpreter_decides() {
        let waits = stack("GET /", &["File \"/srv/a.py\", line 1, in f"]);
        let mut keeps = stack("GET /c", &["File \"/srv/a.py\", line 7, in match"]);
        keeps["state"] = "runs GET /c, keeps the interpreter".into();
        let stacks = json!({ "stacks": [waits.clone(), waits, keeps] });
        for cause in ["interpreter", "slow-route", "threads"] {
            let (mut answer, mut asked) = (json!({ "cause": cause, "sentence": "It is slow." }), 0);
            add_place(&mut answer, &LastPlace::default(), || {
                asked += 1;
                Some(stacks.clone())
            });
            assert_eq!(
                (&answer["sentence"], &answer["cause"], asked),
                (&"C code keeps the interpreter from all other threads. It is slow. The thread that keeps it stands at a.py:7 in match.".into(), &"interpreter".into(), 1)
            );
        }
    }

    #[test]
    fn the_wait_of_most_threads_is_the_cause_of_a_slow_route() {
        let waiting = |what: Option<&str>| {
            let mut one = stack("GET /", &["File \"/srv/a.py\", line 1, in f"]);
            one["waits_for"] = what.into();
            one
        };
        let found = |cause: &str, stacks: &[Value]| {
            let mut answer = json!({ "cause": cause, "sentence": "It is slow.", "next": "look" });
            add_place(&mut answer, &LastPlace::default(), || Some(json!({ "stacks": stacks })));
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
        let interpreter = [waiting(Some("the interpreter"))];
        assert_eq!(found("slow-route", &interpreter).0, "interpreter");
        let (_, answer) = found("interpreter", &interpreter);
        assert_eq!(answer["sentence"], "It is slow. The busy thread stands at a.py:1 in f.");
        let [runs, other] = [waiting(None), waiting(Some("something"))];
        assert_eq!(found("slow-route", &[waiting(lock), runs.clone(), runs.clone()]).0, "lock");
        let five = [waiting(lock), runs.clone(), runs.clone(), runs.clone(), runs];
        assert_eq!(found("slow-route", &five).0, "slow-route", "hardly any sleeps");
        assert_eq!(found("slow-route", &[waiting(lock), other]).0, "slow-route", "half of those that sleep");
        assert_eq!(found("slow-route", &[waiting(Some("time"))]).0, "slow-route");
        let (cause, answer) = found("database", &[waiting(Some("a peer"))]);
        assert_eq!((cause.as_str(), &answer["next"]), ("database", &"look".into()), "it is known already");
    }
}
