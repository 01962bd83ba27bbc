//! When an exchange passed its stations, and the spans between them.

/// Stations of an exchange, in monotonic nanoseconds; 0 where it has not been, or no clock was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The kernel had the request's first byte; where the kernel reports no time of receipt, the server has read it.
    /// For the first request by TLS the duration of the handshake is subtracted.
    pub arrived: u64,
    /// The kernel had its last byte, likewise: of the head, and of the body as far as it is read before the handler runs.
    pub complete: u64,
    /// A thread that runs it had it.
    pub begun: u64,
    /// That thread had the interpreter, where the language has one for all threads.
    pub gated: u64,
    /// The filters began: before a thread had it, and perhaps while its body was still on its way.
    pub filtering: u64,
    /// The filters were done.
    pub filtered: u64,
    /// The response was complete.
    pub done: u64,
    /// The kernel had taken its last byte, or the peer had gone.
    pub written: u64,
    /// How long the TLS handshake took, for the first request behind it, else 0: a duration, which is part of the time from `arrived` to
    /// `complete`.
    pub handshake: u64,
    /// How long the handler has waited for bytes of a body that it reads as they come: a duration, which is part of the time that it ran.
    pub awaited: u64,
}

/// A part of the time of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Span {
    /// From the first to the last byte of the request, and the TLS handshake if it is the first one behind that: its client's, and the way's.
    Accept,
    /// From there, in the socket's buffer and in a queue, until a thread had it.
    Queue,
    /// Waiting for the interpreter.
    Gate,
    /// In filters, without the time that belongs to another span.
    Filter,
    /// In the handler, until its response was complete, without the next one.
    Run,
    /// There, for bytes of a body that is read as they come: its client's, and the way's.
    Receive,
    /// Until the kernel had taken all of it.
    Write,
}

impl Span {
    /// All of them, in the order in which they pass; together they are the whole time.
    pub const ALL: [Self; 7] =
        [Self::Accept, Self::Queue, Self::Gate, Self::Filter, Self::Run, Self::Receive, Self::Write];

    /// The name in logs, metrics and `Server-Timing`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Queue => "queue",
            Self::Gate => "gate",
            Self::Filter => "filter",
            Self::Run => "run",
            Self::Receive => "receive",
            Self::Write => "write",
        }
    }
}

/// The parts of the time of an exchange, in nanoseconds, in the order of [`Span::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spans(pub [u64; Span::ALL.len()]);

impl Spans {
    /// One of them.
    pub fn get(&self, span: Span) -> u64 {
        self.0[span as usize]
    }

    /// The sum; wraps at 2^64 (584 years).
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, span| sum.wrapping_add(*span))
    }
}

impl Times {
    /// The time from the arrival to the last station: the sum of the [`spans`](Self::spans).
    pub fn total(&self) -> u64 {
        let Self { arrived, complete, begun, gated, done, written, .. } = *self;
        complete.max(begun).max(gated).max(done).max(written).saturating_sub(arrived)
    }

    /// A station that was not passed takes no time, and none of them goes back.
    pub fn spans(&self) -> Spans {
        let ends = [
            (Span::Accept, self.complete),
            (Span::Queue, self.begun),
            (Span::Gate, self.gated),
            (Span::Run, self.done),
            (Span::Write, self.written),
        ];
        let mut spans = Spans::default();
        let mut last = self.arrived;
        for (span, end) in ends {
            let end = end.max(last);
            // Filters take time in one of the spans, in two at most, and for most requests in none.
            let filtered = match self.filtering {
                0 => 0,
                filtering => self.filtered.min(end).saturating_sub(filtering.max(last)),
            };
            spans.0[span as usize] = end - last - filtered;
            spans.0[Span::Filter as usize] += filtered;
            last = end;
        }
        let awaited = self.awaited.min(spans.get(Span::Run));
        spans.0[Span::Run as usize] -= awaited;
        spans.0[Span::Receive as usize] = awaited;
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spans_are_the_whole_time() {
        let times = Times {
            arrived: 100,
            complete: 110,
            begun: 130,
            gated: 131,
            filtering: 131,
            filtered: 140,
            done: 200,
            written: 250,
            handshake: 4,
            awaited: 15,
        };
        assert_eq!(times.spans(), Spans([10, 20, 1, 9, 45, 15, 50]));
        assert_eq!((times.spans().total(), times.total()), (150, 150));
        assert_eq!((times.spans().get(Span::Run), times.spans().get(Span::Receive)), (45, 15));
    }

    #[test]
    fn a_station_that_was_not_passed_takes_no_time() {
        let times = Times { arrived: 100, begun: 130, done: 120, written: 150, ..Times::default() };
        assert_eq!(times.spans(), Spans([0, 30, 0, 0, 0, 0, 20]));
        assert_eq!(times.total(), 50);
    }

    #[test]
    fn time_in_filters_is_that_of_no_other_span_wherever_it_was() {
        let times =
            Times { arrived: 100, complete: 110, begun: 150, done: 160, written: 160, ..Times::default() };
        let spans = |filtering, filtered| Times { filtering, filtered, ..times }.spans();
        assert_eq!(spans(0, 0), Spans([10, 40, 0, 0, 10, 0, 0]));
        assert_eq!(spans(111, 141), Spans([10, 10, 0, 30, 10, 0, 0]), "after the request was complete");
        assert_eq!(spans(102, 108), Spans([4, 40, 0, 6, 10, 0, 0]), "while its body came");
        assert_eq!(spans(105, 115), Spans([5, 35, 0, 10, 10, 0, 0]), "both");
        assert_eq!(spans(150, 160), Spans([10, 40, 0, 10, 0, 0, 0]), "nothing but filters answered");
        assert_eq!(spans(120, 0), Spans([10, 40, 0, 0, 10, 0, 0]), "it ended in them");
        assert_eq!(spans(0, 120), Spans([10, 40, 0, 0, 10, 0, 0]), "nobody looked when they began");
        for (filtering, filtered) in [(0, 0), (90, 170), (111, 141), (105, 155), (120, 0), (0, 130)] {
            assert_eq!(spans(filtering, filtered).total(), 60, "{filtering} {filtered}");
        }
    }

    #[test]
    fn spans_are_indexed_by_their_order() {
        for (index, span) in Span::ALL.into_iter().enumerate() {
            assert_eq!(span as usize, index);
        }
    }
}
