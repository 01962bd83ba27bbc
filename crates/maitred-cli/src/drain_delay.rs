//! The time between SIGTERM and the drain (`--drain-delay`), in which load balancers learn that this server will end.
//!
//! Kubernetes takes a pod out of its endpoints at the time of SIGTERM, not before, and each balancer follows a moment later: connections that
//! come until then must not be refused.

use std::time::{Duration, Instant};

use crate::host::{Signal, Signals};
use crate::lifetime::{Asked, Drain};

/// Has the server answer "not ready" and serve on for `delay`, or until another signal to end comes.
pub(crate) fn hold(
    server: &dyn Drain,
    signals: &mut dyn Signals,
    delay: Duration,
    answer: &mut dyn FnMut(Asked),
    say: &mut dyn FnMut(&str),
) {
    server.set_unready();
    let seconds = delay.as_secs_f64();
    say(&format!(
        "SIGTERM: not ready any more, draining in {seconds} s (drain-delay); another signal drains at once"
    ));
    let deadline = Instant::now() + delay;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match signals.wait(Some(left)) {
            Some(Signal::Stop(signal)) => return say(&format!("{signal}: the delay ends")),
            Some(Signal::Reload) => answer(Asked::Reload),
            Some(Signal::Reopen) => answer(Asked::Reopen),
            Some(Signal::ForSupervisor(signal)) => answer(Asked::ForSupervisor(signal)),
            None if left.is_zero() => return,
            None => {}
        }
    }
}
