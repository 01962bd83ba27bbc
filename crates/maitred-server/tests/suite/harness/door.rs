//! A door that handlers wait at until the test opens it or lets one of them through.

use std::sync::{Arc, Condvar, Mutex};

use maitred_runtime::{Exchange, Handler};

use super::{PATIENCE, text};

#[derive(Default)]
pub(crate) struct Door {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Paths of the requests that came, in order.
    came: Vec<String>,
    /// Number of requests that wait at the door now, and the most at any time.
    inside: usize,
    most: usize,
    /// Number of requests that may go through while the door is shut.
    passes: usize,
    open: bool,
}

impl Door {
    pub(crate) fn pass(&self, who: &str) {
        let mut state = self.state.lock().unwrap();
        state.came.push(who.to_owned());
        state.inside += 1;
        state.most = state.most.max(state.inside);
        self.changed.notify_all();
        let mut state = self.changed.wait_while(state, |now| !now.open && now.passes == 0).unwrap();
        state.passes = state.passes.saturating_sub(1);
        state.inside -= 1;
        self.changed.notify_all();
    }

    /// Waits until `came` requests have come since the start.
    pub(crate) fn wait_for(&self, came: usize) {
        self.wait_until(&format!("{came} have come"), |state| state.came.len() >= came);
    }

    /// Waits until `inside` requests wait at the door.
    pub(crate) fn wait_for_inside(&self, inside: usize) {
        self.wait_until(&format!("{inside} are inside"), |state| state.inside == inside);
    }

    fn wait_until(&self, what: &str, is_so: impl Fn(&State) -> bool) {
        let state = self.state.lock().unwrap();
        let (state, timeout) =
            self.changed.wait_timeout_while(state, PATIENCE, |state| !is_so(state)).unwrap();
        let (inside, came) = (state.inside, state.came.len());
        // Handlers go on when the assertion fails.
        drop(state);
        assert!(!timeout.timed_out(), "{what}: {came} came, {inside} are inside");
    }

    pub(crate) fn let_one_through(&self) {
        self.state.lock().unwrap().passes += 1;
        self.changed.notify_all();
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    pub(crate) fn came(&self) -> Vec<String> {
        self.state.lock().unwrap().came.clone()
    }

    pub(crate) fn most(&self) -> usize {
        self.state.lock().unwrap().most
    }
}

/// Opens its door also when the test fails: threads that wait there would keep the process.
pub(crate) struct Opened(pub(crate) Arc<Door>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Requests for `/report...` and `/wait...` wait at the door. The answer is the path and the name of the thread.
pub(crate) fn guarded(door: &Arc<Door>) -> impl Handler + use<> {
    let door = Arc::clone(door);
    move |exchange: Exchange| {
        let path = String::from_utf8_lossy(exchange.request().head.path()).into_owned();
        if path.starts_with("/report") || path.starts_with("/wait") {
            door.pass(&path);
        }
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        text(exchange, format!("{path} on {thread}"));
    }
}
