//! The short line for a person at a terminal, who watches one request after the other.
//!
//! ```text
//! 14:03:11 200 GET /shop/?page=2  48.1 ms (queue 0.3, run 47.6)
//! ```
//! Of a request that has had a database, `run` is followed by `db 12.3 (4)`: the milliseconds and the statements; of a request with calls
//! to other servers, by `calls 31.0 (2)`. Of a request that took long, a second line says what took most of it.

use std::io::Write as _;

use maitred_stats::{Span, Spans};

use crate::escape::push_escaped;
use crate::format::Escape;
use crate::outcome::{End, Outcome};

/// From this time on a request gets the second line: people notice it.
const SLOW: u64 = 200_000_000;

/// A part below a hundredth of the request, or below this, is not shown.
const SHOWN: u64 = 50_000;

const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";

/// What a page of the server's own asks for while it is open, and the link that has a secret in it: see python/maitred/_dev.py.
const OWN: &[u8] = b"/.maitred/";

pub(crate) fn is_left_out(outcome: &Outcome<'_>) -> bool {
    outcome.head.target().windows(OWN.len()).any(|part| part == OWN)
}

/// Appends the line, without its end. `clock` is the time of day, such as 14:03:11.
pub(crate) fn push(out: &mut Vec<u8>, outcome: &Outcome<'_>, spans: &Spans, clock: &[u8], colored: bool) {
    let paint = |color: &'static str| if colored { color } else { "" };
    let reset = paint(RESET);
    let code = outcome.status.code();
    let of_status = match code {
        200..=299 => GREEN,
        300..=399 | 100..=199 => CYAN,
        400..=499 => YELLOW,
        _ => RED,
    };
    out.extend_from_slice(paint(DIM).as_bytes());
    out.extend_from_slice(clock);
    // Writing to memory does not fail.
    let _ = write!(out, "{reset} {}{code}{reset} {} ", paint(of_status), outcome.head.method.as_str());
    push_escaped(out, outcome.head.target(), Escape::Text);
    let total = outcome.times.total();
    let _ = write!(out, "  {} ms{}", Milliseconds(total), paint(DIM));
    let mut before = " (";
    for span in Span::ALL {
        let time = spans.get(span);
        if time >= SHOWN && time >= total / 100 {
            let _ = write!(out, "{before}{} {}", span.name(), Milliseconds(time));
            before = ", ";
        }
        if span == Span::Run
            && let Some(database) = outcome.database
        {
            let _ = write!(out, "{before}db {} ({})", Milliseconds(database.nanos), database.statements);
            before = ", ";
        }
        if span == Span::Run
            && let Some(calls) = outcome.outgoing
        {
            let _ = write!(out, "{before}calls {} ({})", Milliseconds(calls.nanos), calls.calls);
            before = ", ";
        }
    }
    let _ = write!(out, "{}{reset}", if before == ", " { ")" } else { "" });
    if outcome.end != End::Complete {
        let _ = write!(out, " {}{}{reset}", paint(RED), outcome.end.name());
    }
    if let Some((span, time)) = slowest(spans).filter(|_| total >= SLOW) {
        let _ = write!(
            out,
            "\n         {}slow: {} {} of {} ms",
            paint(YELLOW),
            what(span),
            Milliseconds(time),
            Milliseconds(total)
        );
        if let Some(database) =
            outcome.database.filter(|database| span == Span::Run && database.nanos >= time / 2)
        {
            let (nanos, statements) = (Milliseconds(database.nanos), database.statements);
            let _ = write!(out, ", {nanos} of them in the database ({statements} statements)");
        }
        if let Some(calls) = outcome.outgoing.filter(|calls| span == Span::Run && calls.nanos >= time / 2) {
            let (nanos, number) = (Milliseconds(calls.nanos), calls.calls);
            let plural = if number == 1 { "" } else { "s" };
            let _ = write!(out, ", {nanos} of them in {number} call{plural}, most in one to ");
            push_escaped(out, calls.slowest.as_bytes(), Escape::Text);
            let _ = write!(out, " ({}: {})", calls.slowest_part, Milliseconds(calls.slowest_nanos));
        }
        out.extend_from_slice(reset.as_bytes());
    }
}

fn slowest(spans: &Spans) -> Option<(Span, u64)> {
    Span::ALL.into_iter().map(|span| (span, spans.get(span))).max_by_key(|(_, time)| *time)
}

fn what(span: Span) -> &'static str {
    match span {
        Span::Accept => "the request took to arrive",
        Span::Queue => "it waited for a free thread",
        Span::Gate => "it waited for Python's interpreter",
        Span::Filter => "filters took",
        Span::Run => "the application took",
        Span::Receive => "the client took to send what the application asked for",
        Span::Write => "the client took to read the response",
    }
}

/// Nanoseconds as milliseconds: with a digit behind the point below 100.
struct Milliseconds(u64);

impl std::fmt::Display for Milliseconds {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = self.0 as f64 / 1e6;
        if time < 100.0 { write!(f, "{time:.1}") } else { write!(f, "{time:.0}") }
    }
}
