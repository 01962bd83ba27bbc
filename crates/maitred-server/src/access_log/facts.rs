//! What a line is made of, as bytes: put together by the thread that has answered, which has better to do than to write
//! lines, and read by the one that writes them.
//!
//! ```text
//! words of 8 bytes: stations, numbers, address │ for each source of the format: length (4 bytes), text
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use maitred_stats::Times;

use super::format::Source;
use super::text::Text;
use crate::ids::RequestId;
use crate::outcome::{End, Outcome};
use crate::outer::outer_queue;

const WORDS: usize = 14;

/// In the place of the number of a pool: the engine has answered.
const NO_POOL: u64 = u16::MAX as u64;

/// What is known of an exchange beside texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) peer: SocketAddr,
    /// For the id of a request that brought none.
    pub(super) number: u64,
    pub(super) listener: u32,
    pub(super) pool: Option<u16>,
    pub(super) status: u16,
    pub(super) end: End,
    pub(super) body_bytes: u64,
    pub(super) times: Times,
    /// On its way from a proxy, in nanoseconds; 0 where nobody asks.
    pub(super) outer: u64,
}

impl Facts {
    /// Of an exchange; `outer` is asked for.
    fn of(outcome: &Outcome<'_>, outer: bool) -> Self {
        let Outcome { head, id, peer, listener, pool, status, body_bytes, times, end, .. } = *outcome;
        Self {
            peer,
            number: match id {
                RequestId::Made(number) => number,
                RequestId::Given(_) => 0,
            },
            listener,
            pool,
            status: status.code(),
            end,
            body_bytes,
            times,
            outer: if outer { outer_queue(&head.fields, times.arrived).unwrap_or(0) } else { 0 },
        }
    }

    #[inline]
    fn pack(&self) -> [u64; WORDS] {
        let Times { arrived, complete, begun, gated, filtering, filtered, done, written } = self.times;
        let (address, is_v6) = match self.peer.ip() {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 0),
            IpAddr::V6(address) => (address.to_bits(), 1),
        };
        let pool = self.pool.map_or(NO_POOL, u64::from);
        let small = u64::from(self.status)
            | pool << 16
            | u64::from(self.peer.port()) << 32
            | (self.end as u64) << 48
            | is_v6 << 56;
        // The number of a listener is small, and what a proxy says is less than a day: 47 bits.
        let outer = self.outer << 16 | u64::from(self.listener).min(u64::from(u16::MAX));
        [
            arrived,
            complete,
            begun,
            gated,
            filtering,
            filtered,
            done,
            written,
            self.body_bytes,
            self.number,
            small,
            outer,
            address as u64,
            (address >> 64) as u64,
        ]
    }

    fn unpack(words: [u64; WORDS]) -> Self {
        let [
            arrived,
            complete,
            begun,
            gated,
            filtering,
            filtered,
            done,
            written,
            body_bytes,
            number,
            small,
            outer,
            low,
            high,
        ] = words;
        let address = u128::from(high) << 64 | u128::from(low);
        let ip = match small >> 56 {
            0 => IpAddr::V4(Ipv4Addr::from_bits(address as u32)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(address)),
        };
        let pool = small >> 16 & 0xffff;
        Self {
            peer: SocketAddr::new(ip, (small >> 32) as u16),
            number,
            listener: (outer & 0xffff) as u32,
            pool: (pool != NO_POOL).then_some(pool as u16),
            status: small as u16,
            end: End::ALL[(small >> 48 & 0xff) as usize % End::ALL.len()],
            body_bytes,
            times: Times { arrived, complete, begun, gated, filtering, filtered, done, written },
            outer: outer >> 16,
        }
    }
}

/// Replaces what is in `out` by what `outcome` and these sources have.
pub(super) fn write(out: &mut Text, outcome: &Outcome<'_>, sources: &[Source], outer: bool) {
    out.clear();
    let mut fixed = [0; WORDS * 8];
    for (bytes, word) in fixed.as_chunks_mut().0.iter_mut().zip(Facts::of(outcome, outer).pack()) {
        *bytes = word.to_ne_bytes();
    }
    out.push(&fixed);
    for source in sources {
        let text = source.text(outcome);
        // Heads are far below 4 GiB.
        let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
        out.push(&length.to_ne_bytes());
        out.push(&text[..length as usize]);
    }
}

/// What [`write()`] has made; where the texts are goes to `places`. None of other bytes.
pub(super) fn read(bytes: &[u8], places: &mut Vec<Range<usize>>) -> Option<Facts> {
    places.clear();
    let (words, _) = bytes.split_at_checked(WORDS * 8)?;
    let mut found = [0; WORDS];
    for (word, bytes) in found.iter_mut().zip(words.as_chunks().0) {
        *word = u64::from_ne_bytes(*bytes);
    }
    let mut at = WORDS * 8;
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let begin = at + 4;
        at = begin + u32::from_ne_bytes(*length) as usize;
        bytes.get(begin..at)?;
        places.push(begin..at);
    }
    (at == bytes.len()).then(|| Facts::unpack(found))
}

#[cfg(test)]
mod tests {
    use maitred_http::{RequestHead, Status};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ip: IpAddr, port: u16, number: u64, listener: u16, pool in proptest::option::of(0..u16::MAX), end in 0..3_usize,
            [arrived, begun, written, body_bytes]: [u64; 4], user in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut head = RequestHead::default();
            head.fields.push("x", &user);
            let outcome = Outcome {
                head: &head,
                id: RequestId::Made(number),
                peer: SocketAddr::new(ip, port),
                listener: listener.into(),
                pool,
                engine_route: None,
                status: Status::NOT_FOUND,
                body_bytes,
                times: Times { arrived, begun, written, ..Times::default() },
                end: End::ALL[end],
            };
            let (mut text, mut places) = (Text::default(), Vec::new());
            let sources = [Source::Method, Source::Header("X".into()), Source::Query];
            write(&mut text, &outcome, &sources, false);
            let bytes = text.as_bytes();
            let facts = read(bytes, &mut places).unwrap();
            prop_assert_eq!(facts, Facts::of(&outcome, false));
            let texts: Vec<&[u8]> = places.iter().map(|place| &bytes[place.clone()]).collect();
            prop_assert_eq!(texts, [b"GET", &user[..], b""]);
            prop_assert_eq!(read(&bytes[..bytes.len() - 1], &mut places), None);
        }

        #[test]
        fn other_bytes_are_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes, &mut Vec::new());
        }
    }

    #[test]
    fn the_longest_time_that_a_proxy_can_say_fits() {
        let facts = Facts {
            peer: "192.0.2.1:99".parse().unwrap(),
            number: 1,
            listener: u32::from(u16::MAX),
            pool: None,
            status: 200,
            end: End::Cut,
            body_bytes: 6,
            times: Times::default(),
            outer: crate::outer::MOST,
        };
        assert_eq!(Facts::unpack(facts.pack()), facts);
    }
}
