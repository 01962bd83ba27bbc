//! The threads of the process: the system's account of them, and the state of those that serve.

use std::sync::Arc;

use maitred_io::tasks;
use maitred_io::waiting::Waiting;
use maitred_runtime::ThreadStack;
use maitred_server::Server;
use maitred_server::inspect::{Inside, Member, ProcessThread, Role, ThreadList};
use serde_json::{Value, json};

use super::shown::{IDLE, moment};
use super::{Done, Given, QueryContext, Refusal, Wanted};

pub(super) fn request_of(server: &Server, inside: Inside) -> Option<(String, String, String)> {
    let shown = server.connections().at(inside.place)?;
    let peer = shown.peer.to_string();
    let asked = shown.request(inside.place.stream())?;
    Some((asked.method.as_str().to_owned(), asked.path(), peer))
}

pub(super) fn doing(server: &Server, member: &Member) -> String {
    match member.inside() {
        None => IDLE.to_owned(),
        Some(inside) => match request_of(server, inside) {
            Some((method, path, peer)) => format!("{method} {path} of {peer}"),
            None => "a request whose peer has its answer or is gone".to_owned(),
        },
    }
}

pub(super) fn threads(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let names = asking.server.pools().names();
    let ThreadList { mut threads, roles } = asking.server.threads().of_process();
    if threads.is_empty() {
        return Err(Refusal::conflict("this system does not list the threads of a process (no /proc)"));
    }
    threads.retain(|thread| wanted.has(thread.member.as_ref().and_then(|member| member.pool)));
    let mut listed = Vec::new();
    for ProcessThread { task, name, role, member } in threads {
        let pool = member.as_ref().and_then(|member| names.get(member.pool?));
        let inside = member.as_ref().and_then(|member| member.inside());
        let (since, seconds) = inside.map(|inside| moment(inside.since)).unzip();
        let (method, path, peer) = match inside.map(|inside| request_of(asking.server, inside)) {
            Some(Some((method, path, peer))) => (Some(method), Some(path), Some(peer)),
            // The peer has its answer, or is gone, and the thread is still in the application.
            Some(None) => (None, Some("(its peer has its answer or is gone)".to_owned()), None),
            None => (None, None, None),
        };
        listed.push(json!({
            "tid": task.tid,
            "name": name,
            "role": role,
            "pool": pool,
            "state": task.state.to_string(),
            "user_seconds": task.user.as_secs_f64(),
            "system_seconds": task.system.as_secs_f64(),
            "method": method,
            "path": path,
            "peer": peer,
            "since": since,
            "for_seconds": seconds,
        }));
    }
    if wanted.name.is_some() {
        return Ok(json!({ "threads": listed }));
    }
    let roles = roles.into_iter().map(|(role, sum)| {
        json!({
            "role": role,
            "threads": sum.threads,
            "user_seconds": sum.times.user.as_secs_f64(),
            "system_seconds": sum.times.system.as_secs_f64(),
        })
    });
    Ok(json!({ "threads": listed, "roles": roles.collect::<Vec<_>>() }))
}

pub(super) fn stacks(asking: &QueryContext<'_>, given: &Given) -> Result<Done, Refusal> {
    let (server, of_pool) = (asking.server, Wanted::of(asking, given)?);
    let wanted = match given.value("tid") {
        None => None,
        Some(text) => {
            let tid = text.parse().ok().filter(|tid| *tid > 0);
            let wrong = || Refusal::wrong(format!("'{text}' is no thread's number; 'threads' lists them"));
            let tid: i32 = tid.ok_or_else(wrong)?;
            tasks::read(tid).map(|_| Some(tid)).ok_or_else(|| {
                Refusal::unknown(format!("there is no thread {tid}; 'threads' lists those there are"))
            })?
        }
    };
    let mut members = server.threads().members();
    members.retain(|member| of_pool.has(member.pool));
    let is_in_application =
        |member: &&Arc<Member>| member.role == Role::EventLoop || member.inside().is_some();
    let serving: Vec<i32> = members.iter().filter(is_in_application).map(|member| member.tid).collect();
    // Before they are disturbed.
    let for_interpreter = |call, argument| server.threads().is_interpreter_waited_for(call, argument);
    let waits: Vec<(i32, Option<Waiting>)> =
        serving.iter().map(|tid| (*tid, Waiting::of(*tid, for_interpreter))).collect();
    let Some(stacks) = server.threads().stacks(wanted, &serving) else {
        return Err(Refusal::conflict("the application's language has no stacks to show"));
    };
    let is_wanted =
        |stack: &ThreadStack| of_pool.has(None) || members.iter().any(|member| member.tid == stack.tid);
    let shown = stacks.into_iter().filter(is_wanted).map(|stack| {
        let ThreadStack { tid, name, state, frames } = stack;
        let member = members.iter().find(|member| member.tid == tid);
        let waiting = waits.iter().find(|(other, _)| *other == tid).and_then(|(_, waiting)| *waiting);
        json!({
            "tid": tid,
            "name": member.map_or(name, |member| member.name.clone()),
            "state": Some(state).filter(|state| !state.is_empty()),
            "doing": member.map(|member| doing(server, member)),
            "waits_for": waiting.map(Waiting::name),
            "stack": frames,
        })
    });
    Ok(Done { lines: Vec::new(), value: Some(json!({ "stacks": shown.collect::<Vec<_>>() })) })
}
