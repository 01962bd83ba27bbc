//! Streams by their numbers: those that are open, and how the last ones ended (RFC 9113 §5.1).
//!
//! ```text
//!        HEADERS        END_STREAM of the peer          END_STREAM of ours
//!  idle ---------> open -----------------------> received ----------------.
//!                   |  \                                                    >--> over
//!                   |   `--------------------------> sent -----------------'
//!                   |      END_STREAM of ours             END_STREAM of the peer
//!                   `--> over, by RST_STREAM of either side, from every state
//! ```

use crate::window::Window;

/// How many closed streams are remembered with how they ended.
///
/// Reason: frames that are under way when a stream is reset are no error, and any frame behind an END_STREAM is one.
/// Source: twice the streams that may be open, so that each of them may be reset and be replaced by another one while
/// its last frames are under way.
const REMEMBERED: usize = 256;

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) number: u32,
    pub(crate) received: bool,
    pub(crate) sent: bool,
    pub(crate) window: Window,
    /// Bytes of the body that have to come, where it is declared.
    pub(crate) left: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    Ended,
    ByPeer,
    ByUs,
    /// The end is no longer remembered, or the stream never was open.
    Unknown,
}

#[derive(Debug)]
pub(crate) enum Known<'a> {
    /// The stream is still to come, or never comes.
    Idle,
    Open(&'a mut Stream),
    Over(Over),
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Streams {
    /// The open streams in the order of their numbers.
    open: Vec<Stream>,
    /// The last ones that are over, in a ring.
    over: Vec<(u32, Over)>,
    place: usize,
    /// The highest number that the peer has used.
    newest: u32,
}

impl Streams {
    pub(crate) fn open_count(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn memory(&self) -> usize {
        self.open.capacity() * size_of::<Stream>() + self.over.capacity() * size_of::<(u32, Over)>()
    }

    pub(crate) fn each_open(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.open.iter_mut()
    }

    /// Returns whether a stream of this number is new: above all that the peer has used. Lower ones are used up with it.
    pub(crate) fn use_up(&mut self, number: u32) -> bool {
        let is_new = number > self.newest;
        self.newest = self.newest.max(number);
        is_new
    }

    /// The state of a stream: to come, open, or over, with the end if that is remembered.
    pub(crate) fn known(&mut self, number: u32) -> Known<'_> {
        // Those with even numbers are the server's, which opens none.
        if number > self.newest || number.is_multiple_of(2) {
            return Known::Idle;
        }
        match self.place_of(number).and_then(|place| self.open.get_mut(place)) {
            Some(stream) => Known::Open(stream),
            None => {
                let found = self.over.iter().find(|(over, _)| *over == number);
                Known::Over(found.map_or(Over::Unknown, |(_, over)| *over))
            }
        }
    }

    pub(crate) fn open(&mut self, number: u32) -> Option<&mut Stream> {
        let place = self.place_of(number)?;
        self.open.get_mut(place)
    }

    fn place_of(&self, number: u32) -> Option<usize> {
        self.open.binary_search_by_key(&number, |stream| stream.number).ok()
    }

    pub(crate) fn begin(&mut self, stream: Stream) {
        self.open.push(stream);
    }

    /// Ends a stream in both directions. Returns whether it was open.
    pub(crate) fn end(&mut self, number: u32, how: Over) -> bool {
        match self.place_of(number) {
            Some(place) => {
                self.open.remove(place);
                // It was open, so that it is not there.
                self.push_over(number, how);
                true
            }
            None => {
                self.remember(number, how);
                false
            }
        }
    }

    pub(crate) fn remember(&mut self, number: u32, how: Over) {
        match self.over.iter_mut().find(|(over, _)| *over == number) {
            Some((_, over)) => *over = how,
            None => self.push_over(number, how),
        }
    }

    fn push_over(&mut self, number: u32, how: Over) {
        match self.over.get_mut(self.place) {
            Some(place) => *place = (number, how),
            None => self.over.push((number, how)),
        }
        self.place = (self.place + 1) % REMEMBERED;
    }

    /// The peer has ended its direction; the stream is over if the other one has ended, too.
    pub(crate) fn received(&mut self, number: u32) {
        if let Some(stream) = self.open(number) {
            stream.received = true;
            if stream.sent {
                self.end(number, Over::Ended);
            }
        }
    }

    /// The server has ended its direction; the stream is over if the other one has ended, too.
    pub(crate) fn sent(&mut self, number: u32) {
        if let Some(stream) = self.open(number) {
            stream.sent = true;
            if stream.received {
                self.end(number, Over::Ended);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(streams: &mut Streams, number: u32) {
        assert!(streams.use_up(number));
        let window = Window::new(100);
        streams.begin(Stream { number, received: false, sent: false, window, left: None });
    }

    fn over(streams: &mut Streams, number: u32) -> Option<Over> {
        match streams.known(number) {
            Known::Over(over) => Some(over),
            Known::Idle | Known::Open(_) => None,
        }
    }

    #[test]
    fn a_stream_is_over_when_both_sides_have_ended_it() {
        for peer_first in [true, false] {
            let mut streams = Streams::default();
            begin(&mut streams, 1);
            begin(&mut streams, 5);
            if peer_first {
                streams.received(5)
            } else {
                streams.sent(5)
            };
            assert!(matches!(streams.known(5), Known::Open(_)));
            if peer_first {
                streams.sent(5)
            } else {
                streams.received(5)
            };
            assert_eq!(over(&mut streams, 5), Some(Over::Ended));
            assert_eq!(over(&mut streams, 3), Some(Over::Unknown), "a number that was left out");
            assert!(matches!(streams.known(7), Known::Idle));
            assert!(matches!(streams.known(2), Known::Idle));
            assert!(matches!(streams.known(1), Known::Open(_)));
            assert!(!streams.use_up(5) && !streams.use_up(3));
        }
    }

    #[test]
    fn the_last_ones_are_remembered() {
        let mut streams = Streams::default();
        for number in (1..).step_by(2).take(REMEMBERED + 10) {
            begin(&mut streams, number);
            assert!(streams.end(number, Over::ByPeer));
        }
        assert_eq!(over(&mut streams, 19), Some(Over::Unknown));
        assert_eq!(over(&mut streams, 21), Some(Over::ByPeer));
        streams.remember(21, Over::ByUs);
        assert_eq!(over(&mut streams, 21), Some(Over::ByUs));
        assert_eq!(over(&mut streams, 23), Some(Over::ByPeer));
        assert_eq!((streams.over.len(), streams.open_count()), (REMEMBERED, 0));
    }
}
