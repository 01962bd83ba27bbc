//! The low-resource mode, entered and left by checks. Memory that was needed in the mode is given back to the system
//! at its end.

use super::{Group, Resident};
use maitred_io::memory;
use maitred_limits::resources::Scarce;
use maitred_runtime::long_memory;

impl<R: Resident> Group<R> {
    /// Checks the resources, with `open` of at most `most` connections. In the low-resource mode, idle connections of
    /// all groups end in a moment. Returns whether the mode is on, so that another check has to follow.
    pub(crate) fn look_at_resources(&self, open: usize, most: usize) -> bool {
        let guard = &self.site.guard;
        let (held, budget) = guard.budget.figures();
        if let Some((before, now)) = guard.resources.look(open, most, guard.budget.is_over(), &guard.heads) {
            let log = &self.site.log;
            let idle = "idle connections are closed after a second";
            match (before, now) {
                (_, Some(Scarce::Connections)) => log.warn(format_args!(
                    "low on connections: {open} of {most} are open (--max-connections, ulimit -n); {idle}"
                )),
                (_, Some(Scarce::Buffers)) => log.warn(format_args!(
                    "low on memory: connections hold {held} bytes of {budget} (--buffer-budget); new requests get 503 until \
                     an eighth is free, and {idle}"
                )),
                (_, Some(Scarce::Heads)) => {
                    let (held, most) = guard.heads.figures();
                    log.warn(format_args!(
                        "low on memory for heads: requests that are not complete hold {} bytes, others {}, of {most} each \
                         (--head-budget); the largest are refused",
                        held.waiting, held.running
                    ));
                }
                (_, None) => log.warn(format_args!("not low on anything any more: {open} connections hold {held} bytes")),
            }
            long_memory::leave_room(0);
            if now.is_none() && before != Some(Scarce::Connections) {
                memory::give_back();
            }
            if now.is_some_and(Scarce::is_held_by_idle) {
                self.groups.all().for_each(|group| group.tell_idle());
            }
        }
        guard.resources.low().is_some()
    }
}
