//! Where each worker has sockets of its own (`accept = "reuseport"`): the workers that get new connections, and the way of connections that wait
//! for a worker that does not serve.

use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_supervise::Phase;

use super::Supervisor;
use super::message::ToWorker;
use super::process::Process;

/// Times after the end of a worker's service at which its sockets are emptied: a connection that began before may be queued a moment later.
const EMPTIED: [Duration; 3] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(4)];

impl Supervisor {
    /// Where each worker has sockets of its own: steers new connections to the serving workers, and has one of them accept the connections that
    /// wait for others.
    pub(super) fn lead(&mut self, now: Instant) {
        if !self.listeners.is_own() || self.ending || self.stand_in.is_some() {
            return;
        }
        let serving = self.crew.workers().filter(|view| view.phase == Phase::Serving);
        let mut present: Vec<usize> = serving.map(|view| view.number).collect();
        present.sort_unstable();
        present.dedup();
        if present != self.led_to && !present.is_empty() {
            if let Err(error) = self.listeners.steer(&present) {
                self.log.error(format_args!("new connections go to workers that do not serve: {error}"));
            }
            let gone = self.led_to.iter().filter(|number| !present.contains(number));
            self.to_empty.extend(gone.flat_map(|number| EMPTIED.map(|later| (*number, now + later))));
            self.led_to = present;
        }
        let (due, later) = std::mem::take(&mut self.to_empty).into_iter().partition(|(_, at)| *at <= now);
        self.to_empty = later;
        let due: Vec<(usize, Instant)> = due;
        for (number, _) in due.into_iter().filter(|(number, _)| !self.led_to.contains(number)) {
            let Some(taker) = self.taker() else { return };
            for (listener, socket) in self.listeners.only_of_worker(number) {
                taker.send_with(&ToWorker::Empty(listener), &[socket]);
            }
        }
    }

    /// Returns a serving worker, which accepts connections that wait for another one.
    fn taker(&self) -> Option<&Arc<Process>> {
        let mut serving = self.crew.workers().filter(|view| view.phase == Phase::Serving);
        serving.find_map(|view| self.processes.get(&view.id))
    }
}
