//! The mode in which there is little of something: entered and left by whoever looks.

use super::{Group, Resident};
use maitred_limits::resources::Scarce;

impl<R: Resident> Group<R> {
    /// Looks at what there is, with `open` of at most `most` connections. In the low-resource mode, idle connections of all
    /// groups end in a moment. Whether it is on, so that somebody has to look again.
    pub(crate) fn look_at_resources(&self, open: usize, most: usize) -> bool {
        let guard = &self.site.guard;
        let (held, budget) = guard.budget.figures();
        if let Some((before, now)) = guard.resources.look(open, most, guard.budget.is_over()) {
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
                (_, None) => log.warn(format_args!("not low on anything any more: {open} connections hold {held} bytes")),
            }
            if now.is_some() {
                self.groups.all().for_each(|group| group.tell_idle());
            }
        }
        guard.resources.low().is_some()
    }
}
