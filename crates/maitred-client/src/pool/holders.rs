//! The holders of a pool's slots, as an error names them.

use std::cmp::Reverse;
use std::collections::HashMap;
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

/// The holders that a call to `key` waits for: those of the key if it has as many slots as it may have, else all. The callers with the
/// most slots are named, as `describe` knows them. `most`: the limits of slots, of a key and of all.
pub(crate) fn named(
    all: &[Holder],
    key: &Key,
    most: (usize, usize),
    now: Instant,
    describe: impl Fn(u64) -> Option<String>,
) -> String {
    let own = || all.iter().filter(|holder| *holder.key == *key);
    let (held, most, of) = match own().count() {
        held if held >= most.0 => (held, most.0, format!("to {key}")),
        _ => (all.len(), most.1, "of the pool".to_owned()),
    };
    let mut callers: HashMap<Option<String>, (usize, Instant)> = HashMap::new();
    for holder in all.iter().filter(|holder| held == all.len() || *holder.key == *key) {
        let (slots, since) = callers.entry(describe(holder.caller)).or_insert((0, holder.since));
        (*slots, *since) = (*slots + 1, holder.since.min(*since));
    }
    let mut callers: Vec<_> = callers.into_iter().collect();
    callers.sort_unstable_by_key(|(_, (slots, since))| (Reverse(*slots), *since));
    let mut text = format!("{held} of {most} connections {of} are held");
    for (at, (caller, (slots, since))) in callers.iter().take(MOST_NAMED).enumerate() {
        let separator = if at == 0 { ':' } else { ',' };
        let caller = caller.as_ref().map_or(String::new(), |caller| format!(" by {caller}"));
        let age = now.saturating_duration_since(*since).as_secs_f64();
        _ = write!(text, "{separator} {slots}{caller} for {age:.1} s");
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
        let name = |all: &[Holder], most| {
            named(all, &a, most, now, |caller| (caller > 1).then(|| format!("request {caller}")))
        };
        let text = "3 of 3 connections to http://a:80 are held: 2 by request 2 for 9.0 s, 1 for 2.0 s";
        assert_eq!(name(&all, (3, 9)), text);
        all.extend((4..9).map(|caller| holder(&b, caller, 20 + caller)));
        let text = name(&all, (99, 9));
        let expected = "9 of 9 connections of the pool are held: 2 by request 2 for 9.0 s, 1 by request 8";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with(", and by 4 more"), "{text}");
    }
}
