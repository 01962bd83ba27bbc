//! When the certificate of one name is ordered.
//!
//! A certificate is renewed in the window that the CA has told for this very certificate (RFC 9773), else after two thirds of its life, half if
//! that is short. An order counts as failed from its start, so that a process which dies over it does not begin at once again. A wait is
//! kept by a clock that never jumps; only after a restart by the calendar, and then it is never longer than it was.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::chain::Held;
use crate::fault::{Fault, Kind};
use crate::messages::Window;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The waits after failures: minutes, and how often. Those of certmagic.
const WAITS: [(u64, u32); 9] =
    [(1, 1), (2, 2), (5, 1), (10, 3), (20, 4), (30, 5), (60, 5), (120, 4), (180, 3)];

/// The wait behind the table, and after a month of failures.
const LONG_WAIT: u64 = 6 * HOUR;
const LONGEST_WAIT: u64 = DAY;
const MONTH: u64 = 30 * DAY;

/// The least wait after an order that a try had promised to succeed, and between two wishes of a person: Let's Encrypt takes five failed
/// orders of a name in an hour.
const QUARTER: u64 = 15 * MINUTE;

/// The least time between a certificate and the next order, whatever a CA says: doubled up to a day while each certificate is due at once.
const AFTER_SUCCESS: u64 = HOUR;

/// The longest wait that a CA may ask for after a failure.
const MAX_RETRY_AFTER: u64 = 7 * DAY;

/// How often a CA is asked for its window: by default, and the bounds of its own wish (RFC 9773 §4.3.2).
const ASK: u64 = 6 * HOUR;
const ASK_LEAST: u64 = MINUTE;
const ASK_MOST: u64 = DAY;

/// A life below this is short.
const SHORT_LIFE: u64 = 10 * DAY;

/// The time by two clocks, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Since 1970; may jump.
    pub wall: u64,
    /// Since any moment of this process; never jumps.
    pub steady: u64,
}

/// The next thing to do for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing for this time, which is at most an hour.
    Wait(Duration),
    /// The CA's window for the certificate `id`.
    AskForWindow {
        /// The certificate.
        id: String,
    },
    /// A certificate.
    Order(Order),
}

/// An order that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The directory.
    pub to: To,
    /// How many challenges have failed at all: for [`Ordering::new`](crate::Ordering::new). A kind that has worked is the first again.
    pub attempt: u32,
    /// The certificate that the new one replaces.
    pub replaces: Option<String>,
}

/// A directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum To {
    /// The one whose certificates are used.
    Production,
    /// The one for tries: [`staging_of`](crate::staging_of).
    Staging,
}

/// When the certificate of one name is ordered. Plain data, to be kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Schedule {
    held: Option<Held>,
    window: Option<Window>,
    /// The place in each span of time, in parts of 65,536: so that names and machines do not all come at once.
    place: u16,
    failures: u32,
    attempt: u32,
    failing_since: u64,
    /// Whether the last order was a try that succeeded.
    tried: bool,
    /// How many certificates in succession were renewed in the first quarter of their lives.
    early: u32,
    order: Pause,
    /// The wish of the CA after a failure.
    wanted: Pause,
    /// The time behind the last wish of a person.
    hurried: Pause,
    ask: Pause,
}

/// A time in which something is not done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Pause {
    since: u64,
    length: u64,
    /// Its end by the steady clock of this process.
    #[serde(skip)]
    end: Option<u64>,
}

impl Schedule {
    /// A name without a certificate. `random` is different for each name and machine.
    pub fn new(random: u16) -> Self {
        Self { place: random, ..Self::default() }
    }

    /// The certificate that is in use; `None`: there is none, or it cannot be used. To be called after the state is read.
    pub fn hold(&mut self, held: Option<Held>) {
        if self.held != held {
            self.held = held;
            self.window = None;
            self.ask = Pause::default();
        }
    }

    /// The next thing to do. `staging` says whether there is a directory for tries.
    pub fn next(&mut self, staging: bool, now: Now) -> Due {
        let id = self.held.as_ref().and_then(|held| held.id.clone());
        let ask = self.ask.left(now);
        let order = self.order_in(now).as_secs();
        match id {
            Some(id) if ask == 0 => Due::AskForWindow { id },
            replaces if order == 0 => {
                let to =
                    if staging && self.failures > 0 && !self.tried { To::Staging } else { To::Production };
                let replaces = replaces.filter(|_| to == To::Production);
                Due::Order(Order { to, attempt: self.attempt, replaces })
            }
            id => {
                let ask = if id.is_some() { ask } else { HOUR };
                Due::Wait(Duration::from_secs(order.min(ask).min(HOUR)))
            }
        }
    }

    /// An order begins. The state is kept before the CA hears of it.
    pub fn ordering(&mut self, now: Now) {
        if self.failures == 0 {
            self.failing_since = now.wall;
            let is_early = self.held.as_ref().is_some_and(|held| self.order.age(now) < held.life() / 4);
            self.early = if is_early { self.early.saturating_add(1) } else { 0 };
        }
        self.failures = self.failures.saturating_add(1);
        let least = if self.tried { QUARTER } else { 0 };
        self.tried = false;
        self.order = Pause::new(self.wait(now).max(least), now);
    }

    /// The order has given a certificate, which is in use now.
    pub fn issued(&mut self, held: Held, random: u16, now: Now) {
        self.order = Pause::new((AFTER_SUCCESS << self.early.min(5)).min(DAY), now);
        let (order, attempt, early) = (self.order, self.attempt, self.early);
        *self = Self { held: Some(held), place: random, order, attempt, early, ..Self::default() };
    }

    /// The try has given a certificate, which is thrown away: the real order may follow.
    pub fn tried(&mut self, now: Now) {
        self.tried = true;
        self.order = Pause::new(0, now);
    }

    /// The order has failed.
    pub fn failed(&mut self, fault: &Fault, now: Now) {
        if fault.kind == Kind::Challenge {
            self.attempt = self.attempt.wrapping_add(1);
        }
        let wanted = fault.retry_after.map_or(0, |wait| wait.as_secs().min(MAX_RETRY_AFTER));
        self.order = Pause::new(self.order.length.max(wanted), now);
        self.wanted = Pause::new(wanted, now);
    }

    /// A person wants the next try at once. The hour after a certificate stays, and the wish of the CA. Not for an order that runs.
    pub fn hurry(&mut self, now: Now) {
        let least = self.wanted.left(now);
        if self.failures > 0 && self.order.left(now) > least && self.hurried.left(now) == 0 {
            self.order = Pause::new(least, now);
            self.hurried = Pause::new(QUARTER, now);
        }
    }

    /// The answer to the question for a window: `None` if the CA has none to tell. After a fault the last one counts.
    pub fn window<E>(&mut self, answer: Result<Option<Window>, E>, retry_after: Option<Duration>, now: Now) {
        let usual = if matches!(answer, Ok(None)) { ASK_MOST } else { ASK };
        let wait = retry_after.map_or(usual, |wait| wait.as_secs().clamp(ASK_LEAST, ASK_MOST));
        self.ask = Pause::new(wait, now);
        if let Ok(window) = answer {
            self.window = window;
        }
    }

    /// The time until the next order.
    pub fn order_in(&mut self, now: Now) -> Duration {
        let wanted = self.renewal().map_or(0, |at| at.saturating_sub(now.wall));
        Duration::from_secs(self.order.left(now).max(wanted))
    }

    /// When the certificate is to be renewed, in seconds since 1970. `None`: there is no certificate.
    pub fn renewal(&self) -> Option<u64> {
        let held = self.held.as_ref()?;
        let life = held.life();
        let part = |span: u64| span.saturating_mul(u64::from(self.place)) / 65_536;
        let after = if life < SHORT_LIFE { life / 2 } else { life / 3 * 2 };
        let own = held.not_before.saturating_add(after + part(life / 30));
        // A window of another certificate has made clients order one after the other.
        let window = self.window.as_ref().filter(|window| held.id.as_deref() == Some(&window.id));
        let told =
            window.map(|window| window.start.saturating_add(part(window.end.saturating_sub(window.start))));
        Some(told.unwrap_or(own).min(held.not_after.saturating_sub(life / 10)))
    }

    /// The certificate that is in use.
    pub fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// How many orders have failed since the last certificate; one that runs counts.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Whether one certificate after the other was renewed long before it had to be: the clock is wrong, or the window that the CA tells.
    pub fn is_hasty(&self) -> bool {
        self.early > 1
    }

    fn wait(&self, now: Now) -> u64 {
        if now.wall.saturating_sub(self.failing_since) > MONTH {
            return LONGEST_WAIT;
        }
        let mut left = self.failures.saturating_sub(1);
        let wait = WAITS.iter().find(|(_, times)| left.checked_sub(*times).map(|less| left = less).is_none());
        let wait = wait.map_or(LONG_WAIT, |(minutes, _)| minutes * MINUTE);
        wait + wait / 8 * u64::from(self.place) / 65_536
    }
}

impl Pause {
    fn new(length: u64, now: Now) -> Self {
        Self { since: now.wall, length, end: Some(now.steady.saturating_add(length)) }
    }

    /// The seconds since its start, by the clock that has seen more of them: the steady one has seen none before a restart.
    fn age(&self, now: Now) -> u64 {
        let steady = self.end.map_or(0, |end| now.steady.saturating_add(self.length).saturating_sub(end));
        steady.max(now.wall.saturating_sub(self.since))
    }

    /// The rest of the pause, in seconds.
    fn left(&mut self, now: Now) -> u64 {
        let by_calendar = || {
            // A calendar that was set back says nothing.
            let passed = now.wall.saturating_sub(self.since);
            now.steady.saturating_add(self.length.saturating_sub(passed))
        };
        let end = *self.end.get_or_insert_with(by_calendar);
        end.saturating_sub(now.steady)
    }
}

/// The pace of orders of all names together: at most ten in a minute.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// The last orders, by the steady clock.
    last: VecDeque<u64>,
}

impl Pace {
    const MOST: usize = 10;

    /// Counts an order that begins now.
    ///
    /// # Errors
    /// How long it has to wait.
    pub fn take(&mut self, now: Now) -> Result<(), Duration> {
        while self.last.front().is_some_and(|first| first + MINUTE <= now.steady) {
            self.last.pop_front();
        }
        match self.last.front() {
            Some(first) if self.last.len() >= Self::MOST => {
                Err(Duration::from_secs((first + MINUTE).saturating_sub(now.steady)))
            }
            _ => {
                self.last.push_back(now.steady);
                Ok(())
            }
        }
    }
}
