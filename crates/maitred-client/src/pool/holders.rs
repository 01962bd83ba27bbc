//! The holders of a pool's slots, as an error names them.

use std::cmp::Reverse;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Instant;

use crate::key::Key;

/// The most callers in a text.
const MOST_NAMED: usize = 4;

/// The holder of a slot.
#[derive(Clone, Debug)]
pub struct Holder {
    /// The key of its slot.
    pub key: Arc<Key>,
    /// The number that the caller has given itself.
    pub caller: u64,
    /// The time of its check-out.
    pub since: Instant,
}

/// A caller with the number of its slots and the time of the first one.
type Caller = (u64, usize, Instant);

/// The holders that a call to `key` waits for: those of the key if it has `per_key` slots, else all. The callers with the most slots
/// are named.
pub(super) fn named(all: &[Holder], key: &Key, per_key: usize, total: usize, now: Instant) -> String {
    let own = || all.iter().filter(|holder| *holder.key == *key);
    let (held, most, of) = match own().count() {
        held if held >= per_key => (held, per_key, format!("to {key}")),
        _ => (all.len(), total, "of the pool".to_owned()),
    };
    let mut callers: Vec<Caller> = Vec::new();
    for holder in all.iter().filter(|holder| held == all.len() || *holder.key == *key) {
        match callers.iter_mut().find(|(caller, ..)| *caller == holder.caller) {
            Some((_, slots, since)) => (*slots, *since) = (*slots + 1, holder.since.min(*since)),
            None => callers.push((holder.caller, 1, holder.since)),
        }
    }
    callers.sort_unstable_by_key(|(_, slots, since)| (Reverse(*slots), *since));
    let mut text = format!("{held} of {most} connections {of} are held");
    for (at, (caller, slots, since)) in callers.iter().take(MOST_NAMED).enumerate() {
        let (separator, age) = (if at == 0 { ':' } else { ',' }, now.saturating_duration_since(*since));
        _ = write!(text, "{separator} {slots} by caller {caller} for {:.1} s", age.as_secs_f64());
    }
    if callers.len() > MOST_NAMED {
        _ = write!(text, ", and by {} more", callers.len() - MOST_NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_callers_with_the_most_slots_are_named() {
        let now = Instant::now() + Duration::from_secs(60);
        let [a, b] = ["a", "b"].map(|host| Arc::new(Key::plain(host, 80)));
        let holder = |key: &Arc<Key>, caller, seconds| Holder {
            key: Arc::clone(key),
            caller,
            since: now - Duration::from_secs(seconds),
        };
        let mut all = vec![holder(&a, 1, 2), holder(&a, 2, 9), holder(&a, 2, 3), holder(&b, 3, 1)];
        let text =
            "3 of 3 connections to http://a:80 are held: 2 by caller 2 for 9.0 s, 1 by caller 1 for 2.0 s";
        assert_eq!(named(&all, &a, 3, 9, now), text);
        all.extend((4..9).map(|caller| holder(&b, caller, 20 + caller)));
        let text = named(&all, &a, 99, 9, now);
        assert!(
            text.starts_with(
                "9 of 9 connections of the pool are held: 2 by caller 2 for 9.0 s, 1 by caller 8"
            )
        );
        assert!(text.ends_with(", and by 4 more"), "{text}");
    }
}
