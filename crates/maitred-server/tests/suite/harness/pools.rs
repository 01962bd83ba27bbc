//! Servers with several pools, and requests that block their threads.

use std::sync::Arc;

use maitred_server::{DEFAULT_POOL, PoolRule, PoolSettings, Routes, Settings, Strategy};
use maitred_testkit::client::Client;

use super::door::{Door, Opened, guarded};
use super::{Running, ask, read_response, settings, start};

pub(crate) const ALL: [Strategy; 4] = [Strategy::Adaptive, Strategy::Pc, Strategy::Pec, Strategy::Epc];

/// Strategies whose default pool has more than one thread.
pub(crate) const MANY: [Strategy; 3] = [Strategy::Adaptive, Strategy::Pec, Strategy::Epc];

/// A server with a pool `reports` for `/report...`; `/wait...` waits at the same door in the default pool.
pub(crate) fn serve(change: impl FnOnce(&mut Settings)) -> (Running, Opened) {
    let door = Arc::new(Door::default());
    let routes = Routes::new().with_application(Arc::new(guarded(&door)));
    (start(with_reports(settings(routes), change)), Opened(door))
}

pub(crate) fn with_reports(mut settings: Settings, change: impl FnOnce(&mut Settings)) -> Settings {
    settings.pools.push(PoolSettings::named("reports"));
    settings.rules.push(rule("reports", "/report*"));
    settings.metrics_path = Some("/metrics".to_owned());
    change(&mut settings);
    settings
}

pub(crate) fn rule(pool: &str, path: &str) -> PoolRule {
    PoolRule { pool: pool.to_owned(), path: Some(path.parse().unwrap()), ..PoolRule::default() }
}

/// The settings of the pool with this name.
pub(crate) fn pool<'a>(settings: &'a mut Settings, name: &str) -> &'a mut PoolSettings {
    if name == DEFAULT_POOL {
        return &mut settings.pool;
    }
    settings.pools.iter_mut().find(|pool| pool.name == name).unwrap()
}

/// A path whose requests wait in this pool.
pub(crate) fn path(pool: &str) -> &'static str {
    if pool == DEFAULT_POOL { "/wait" } else { "/report" }
}

pub(crate) fn body(stream: &mut Client) -> String {
    let (head, body) = read_response(stream);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    String::from_utf8(body).unwrap()
}

/// Reads the responses: each of these requests is answered with its own path.
pub(crate) fn all_answered(clients: &mut [Client], path: &str) {
    for stream in clients {
        assert!(body(stream).starts_with(path));
    }
}

/// Requests that wait for a thread, one after the other, so that their order is certain.
pub(crate) fn queue(running: &Running, name: &str, count: u64) -> Vec<Client> {
    let waiting = running.figure(name, "queued");
    let ask_one = |n| {
        let stream = ask(running.address, path(name));
        running.wait_for_figure(name, "queued", waiting + n);
        stream
    };
    (1..=count).map(ask_one).collect()
}

/// Blocks `count` threads of a pool.
pub(crate) fn block(running: &Running, door: &Door, name: &str, count: usize) -> Vec<Client> {
    let before = door.came().len();
    let block_one = |n| {
        let stream = ask(running.address, path(name));
        door.wait_for(before + n);
        stream
    };
    (1..=count).map(block_one).collect()
}
