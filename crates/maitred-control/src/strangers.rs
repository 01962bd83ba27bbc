//! Wrong tokens by address. An address may show one now and then; beyond that its tokens are refused unread for a
//! while.
//!
//! Promises: bounded. Other addresses, sessions and the Unix socket are never affected.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

/// Wrong tokens at once, and how long it takes until one more is allowed: a person mistypes, a program with an old token asks every few
/// seconds.
const AT_ONCE: u32 = 10;
const EACH: Duration = Duration::from_secs(1);

/// Addresses that are remembered; one takes about 40 bytes.
const MOST: usize = 4096;

/// An IPv4 address, or the IPv6 addresses with the same 64 bits.
type Place = u128;

#[derive(Default)]
pub(super) struct Strangers(Mutex<HashMap<Place, Instant>>);

impl Strangers {
    pub(super) fn may_show(&self, address: IpAddr, now: Instant) -> bool {
        let forgiven = lock(&self.0).get(&place(address)).copied();
        forgiven.is_none_or(|forgiven| forgiven.saturating_duration_since(now) + EACH <= AT_ONCE * EACH)
    }

    pub(super) fn note(&self, address: IpAddr, now: Instant) {
        let (mut places, place) = (lock(&self.0), place(address));
        if places.len() >= MOST && !places.contains_key(&place) {
            places.retain(|_, forgiven| *forgiven > now);
        }
        if places.len() >= MOST
            && !places.contains_key(&place)
            && let Some(least) = places.iter().min_by_key(|(_, forgiven)| **forgiven).map(|(place, _)| *place)
        {
            places.remove(&least);
        }
        let forgiven = places.entry(place).or_insert(now);
        *forgiven = (*forgiven).max(now) + EACH;
    }
}

fn place(address: IpAddr) -> Place {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => Ipv6Addr::to_bits(address) >> 64 << 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn some_wrong_tokens_are_allowed_and_then_one_at_a_time() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let one = address("192.0.2.1");
        for number in 0..AT_ONCE {
            assert!(strangers.may_show(one, now), "{number}");
            strangers.note(one, now);
        }
        assert!(!strangers.may_show(one, now));
        assert!(strangers.may_show(address("192.0.2.2"), now), "somebody else");
        assert!(!strangers.may_show(address("::ffff:192.0.2.1"), now), "the same address");
        let later = now + EACH;
        assert!(strangers.may_show(one, later));
        strangers.note(one, later);
        assert!(!strangers.may_show(one, later));
        assert!(strangers.may_show(one, later + EACH));
    }

    #[test]
    fn ipv6_addresses_of_one_network_are_one() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        (0..AT_ONCE).for_each(|number| strangers.note(address(&format!("2001:db8::{number}")), now));
        assert!(!strangers.may_show(address("2001:db8::ffff"), now));
        assert!(strangers.may_show(address("2001:db8:0:1::1"), now));
    }

    #[test]
    fn there_are_never_more_than_may_be() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let worst = address("192.0.2.1");
        (0..AT_ONCE).for_each(|_| strangers.note(worst, now));
        for number in 0..2 * MOST as u32 {
            strangers.note(IpAddr::V4(number.into()), now);
        }
        assert!(lock(&strangers.0).len() <= MOST);
        assert!(!strangers.may_show(worst, now), "those who have shown least make room");
    }
}
