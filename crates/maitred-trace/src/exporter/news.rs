//! Troubles of an exporter as sentences, each kind at most once in ten minutes.

use std::collections::VecDeque;
use std::fmt;

use crate::encoding::Signal;

/// A trouble of the same kind is told again after so many nanoseconds.
const QUIET: u64 = 600_000_000_000;

/// A trouble with a collector, or its end. Its text is a sentence for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Posts fail; items wait.
    Failing {
        /// The kind of items.
        signal: Signal,
        /// The reason.
        why: String,
    },
    /// The queue is full.
    Dropping {
        /// The kind of items.
        signal: Signal,
    },
    /// The collector has refused a whole batch.
    Refused {
        /// The kind of items.
        signal: Signal,
        /// Of the answer.
        status: u16,
        /// Empty, or `: ` with the message of the collector.
        why: String,
    },
    /// The collector has refused a part of a batch, or has a warning.
    Partial {
        /// The kind of items.
        signal: Signal,
        /// Refused items.
        items: u64,
        /// The message of the collector.
        why: String,
    },
    /// Posts arrive again.
    Recovered {
        /// The kind of items.
        signal: Signal,
        /// Items that were lost meanwhile.
        dropped: u64,
    },
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failing { signal, why } => {
                write!(f, "the OpenTelemetry collector does not take {}: {why}; they wait", signal.name())
            }
            Self::Dropping { signal } => {
                write!(
                    f,
                    "the queue of {} for the OpenTelemetry collector is full: new ones are dropped and counted",
                    signal.name()
                )
            }
            Self::Refused { signal, status, why } => {
                let name = signal.name();
                let advice = match status {
                    300..=399 => "; say the URL that it redirects to",
                    401 | 403 => "; credentials go into OTEL_EXPORTER_OTLP_HEADERS",
                    404 | 405 => "; look at the path of the URL",
                    _ => "",
                };
                write!(f, "the OpenTelemetry collector refuses {name} with {status}{why}{advice}")
            }
            Self::Partial { signal, items: 0, why } => {
                write!(f, "the OpenTelemetry collector warns about {}: {why}", signal.name())
            }
            Self::Partial { signal, items, why } => {
                let name = signal.name();
                write!(f, "the OpenTelemetry collector refuses {items} of the {name} of a batch: {why}")
            }
            Self::Recovered { signal, dropped } => {
                let name = signal.name();
                write!(f, "the OpenTelemetry collector takes {name} again; {dropped} were dropped meanwhile")
            }
        }
    }
}

/// The memory of what was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    news: VecDeque<News>,
    /// The last times of [`News::Failing`], [`News::Dropping`], [`News::Refused`] and [`News::Partial`].
    times: [Option<u64>; 4],
    /// [`News::Failing`] was told, and not its end; dropped items at that time.
    failing: Option<u64>,
}

impl Told {
    pub(super) fn failing(&mut self, signal: Signal, why: &str, dropped: u64, now: u64) {
        if self.tell(0, now, || News::Failing { signal, why: why.to_owned() }) {
            self.failing.get_or_insert(dropped);
        }
    }

    pub(super) fn dropping(&mut self, signal: Signal, now: u64) {
        self.tell(1, now, || News::Dropping { signal });
    }

    pub(super) fn refused(&mut self, signal: Signal, status: u16, why: String, now: u64) {
        self.tell(2, now, || News::Refused { signal, status, why });
    }

    pub(super) fn partial(&mut self, signal: Signal, items: u64, why: String, now: u64) {
        self.tell(3, now, || News::Partial { signal, items, why });
    }

    pub(super) fn taken(&mut self, signal: Signal, dropped: u64) {
        if let Some(before) = self.failing.take() {
            self.news.push_back(News::Recovered { signal, dropped: dropped - before });
        }
    }

    /// Keeps the news, unless it was told lately: whether it does.
    fn tell(&mut self, kind: usize, now: u64, news: impl FnOnce() -> News) -> bool {
        let Some(last) = self.times.get_mut(kind) else { return false };
        let is_new = last.is_none_or(|last| now.saturating_sub(last) >= QUIET);
        if is_new {
            *last = Some(now);
            self.news.push_back(news());
        }
        is_new
    }

    pub(super) fn next(&mut self) -> Option<News> {
        self.news.pop_front()
    }
}
