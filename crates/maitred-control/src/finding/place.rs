//! Where most busy threads stand: the line of the application that they are in, from their stacks.

use std::collections::BTreeMap;

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

/// Adds to what `finding` answers where most threads are, if it is about threads. `ask` gives what `stacks` answers; it is asked now and then.
pub fn add_place(answer: &mut Value, finder: &Finder, ask: impl FnOnce() -> Option<Value>) {
    let is_of_threads = answer["cause"].as_str().is_some_and(|cause| OF_THREADS.contains(&cause));
    if !is_of_threads {
        return;
    }
    let place = finder.place(|| most(ask()?["stacks"].as_array()?));
    if let (Some(place), Some(sentence)) = (place, answer["sentence"].as_str()) {
        answer["sentence"] = format!("{sentence} {place}.").into();
    }
}

/// The line in which most of the server's busy threads are.
fn most(stacks: &[Value]) -> Option<String> {
    let busy: Vec<_> = stacks.iter().filter_map(|stack| Some((stack, place_of(stack)?))).collect();
    let mut counts = BTreeMap::<&Place<'_>, usize>::new();
    for (_, place) in &busy {
        *counts.entry(place).or_default() += 1;
    }
    let (place, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    let threads = match (count, &*busy) {
        (1, [(stack, _)]) if stack["name"] == LOOP => "The event loop stands".to_owned(),
        (1, [_]) => "The busy thread stands".to_owned(),
        (1, _) => return None,
        _ if count * 2 < busy.len() => return None,
        _ => format!("{count} of {} busy threads stand", busy.len()),
    };
    let Place { file, line, function, inner } = place;
    let file = file.rsplit('/').next().unwrap_or(file);
    let inner = if inner == function { String::new() } else { format!(" ({inner})") };
    Some(format!("{threads} at {file}:{line} in {function}{inner}"))
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
}
