//! The history of the figures: a look at them once a second, and the answers to `history`.
//!
//! ```text
//! mod.rs   when there is a look    looked.rs   the figures of a look    answer.rs   questions    file.rs   over a restart
//! routes.rs   questions about routes
//! ```
//! Promises: looks take at most a hundredth of a processor, however many routes there are: with many they are done less
//! often, and the seconds between have no row, at most [`LONGEST_PAUSE`]. A machine without a free processor makes
//! looks no rarer: then they are wanted most. While statistics are off nothing is kept. Leaves out: rows and steps,
//! which maitred-history defines.

mod answer;
mod file;
mod looked;
mod routes;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use maitred_history::{Counts, Gauges, History, Sample};
use maitred_io::process;
use maitred_server::{Log, Server, Statistics};

use crate::lock;
pub(super) use answer::ARGUMENTS;
use file::HistoryFile;
pub use looked::{CounterSums, ProcessFigures, counts_of};

/// The part of a processor that looks may take.
const SHARE: u32 = 100;

/// The longest time between two looks, however long the last one took.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Looks come a little after a second has ended, so that each is of one second.
const AFTER: Duration = Duration::from_millis(2);

const WRITE_EVERY: Duration = Duration::from_secs(600);

/// A look at the figures that has begun on this thread.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    at: Instant,
    processor_ns: u64,
}

impl Look {
    /// Begins now.
    pub fn begin() -> Self {
        Self { at: Instant::now(), processor_ns: process::thread_processor_ns() }
    }

    /// How long there is no other one, from its begin on. How long it has waited for a processor or a worker does not matter.
    fn pause(&self) -> Duration {
        pause_after(process::thread_processor_ns().saturating_sub(self.processor_ns))
    }
}

fn pause_after(processor_ns: u64) -> Duration {
    (Duration::from_nanos(processor_ns) * SHARE).min(LONGEST_PAUSE)
}

/// Keeps the history of a server.
pub struct Keeper {
    state: Mutex<State>,
    file: Option<Arc<HistoryFile>>,
}

struct State {
    history: History,
    last: Instant,
    due: Instant,
    is_on: bool,
    /// The minute since 1970 of the last look.
    minute: u64,
    /// When the file was written, or the start; none when another process writes it.
    written: Option<Instant>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self::new(History::default(), None)
    }
}

impl Keeper {
    fn new(mut history: History, file: Option<Arc<HistoryFile>>) -> Self {
        let now = Instant::now();
        let (due, written) = (now + until_next(), Some(now));
        history.routes.mark(seconds(), "start");
        let state = State { history, last: now, due, is_on: true, minute: seconds() / 60, written };
        Self { state: Mutex::new(state), file }
    }

    /// Notes a change of the server, such as a reload: figures before and after it are those of different code.
    pub fn mark(&self, what: &str) {
        lock(&self.state).history.routes.mark(seconds(), what);
    }

    /// Whether a minute has ended whose routes have not been noted.
    pub fn wants_routes(&self) -> bool {
        let state = lock(&self.state);
        state.is_on && state.minute != seconds() / 60
    }

    /// Notes the times of the routes in the minute that has ended, or, for the file, so far.
    pub fn note_routes(&self, statistics: &Statistics) {
        let times: Vec<_> =
            statistics.routes.iter().map(|(name, leaf)| (name.clone(), leaf.total.clone())).collect();
        let mut state = lock(&self.state);
        let minute = state.minute;
        state.history.routes.add(minute, &times);
        state.minute = seconds() / 60;
    }

    /// Continues the history of this file, and writes the file now and then.
    ///
    /// # Errors
    /// The reason: the file is something else, or cannot be read or written.
    pub fn of_file(path: &Path, log: &Arc<Log>) -> Result<Self, String> {
        let (place, history) = file::open(path, log)?;
        Ok(Self::new(history.unwrap_or_default(), Some(Arc::new(place))))
    }

    /// How long the next look is still ahead.
    pub fn ahead(&self) -> Duration {
        lock(&self.state).due.saturating_duration_since(Instant::now())
    }

    /// Notes the figures of a look; `is_on` says whether figures are counted.
    pub fn note(&self, counts: &Counts, gauges: &Gauges, is_on: bool, look: Look) {
        let state = &mut *lock(&self.state);
        let began = look.at;
        let covered = began.saturating_duration_since(state.last);
        if is_on && state.is_on {
            let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = at.saturating_sub(began.elapsed());
            state.history.add(&Sample { at, covered, counts, gauges });
        } else {
            state.history.skip(counts);
        }
        (state.last, state.is_on) = (began, is_on);
        let earliest = began + look.pause();
        state.due = Instant::now() + until_next();
        while state.due < earliest {
            state.due += Duration::from_secs(1);
        }
        if let Some(file) = &self.file
            && let Some(written) = &mut state.written
            && written.elapsed() >= WRITE_EVERY
        {
            *written = Instant::now();
            let (file, bytes) = (Arc::clone(file), state.history.to_bytes());
            // A disk may take its time. Without a thread it is written the next time.
            let writes = std::thread::Builder::new().name("maitred-history".to_owned());
            let _ = writes.spawn(move || file.write(&bytes));
        }
    }

    /// Looks at a server of this process, if it is time to; how long it is not.
    pub(super) fn look(&self, server: &Server) -> Duration {
        let ahead = self.ahead();
        if !ahead.is_zero() {
            return ahead;
        }
        self.look_now(server);
        self.ahead()
    }

    pub(super) fn look_now(&self, server: &Server) {
        let (look, totals, looked) = (Look::begin(), server.figures().totals(), ProcessFigures::at(server));
        let mut counters = CounterSums::default();
        server.figures().each_counter(|series, count| counters.add(series, count));
        let is_on = totals.on;
        self.note(&counts_of(totals, &counters, &looked), &looked.gauges, is_on, look);
        if self.wants_routes() {
            self.note_routes(&server.figures().statistics());
        }
    }

    /// Writes the file, if there is one.
    pub fn write(&self) {
        let mut state = lock(&self.state);
        if let Some(file) = self.file.as_ref().filter(|_| state.written.is_some()) {
            let bytes = state.history.to_bytes();
            drop(state);
            file.write(&bytes);
        }
    }

    /// Stops writing the file: another process writes it from now on.
    pub fn leave_file(&self) {
        lock(&self.state).written = None;
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// How long it is until a second of the clock has ended.
fn until_next() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into()) + AFTER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_that_waits_for_a_processor_makes_the_next_one_no_later() {
        let keeper = Keeper::default();
        let look = Look { at: Instant::now() - Duration::from_secs(4), ..Look::begin() };
        keeper.note(&Counts::default(), &Gauges::default(), true, look);
        assert!(keeper.ahead() <= Duration::from_secs(1) + AFTER);
    }

    #[test]
    fn a_dear_look_is_followed_by_a_pause_that_is_bounded() {
        let pause = |milliseconds: u64| pause_after(milliseconds * 1_000_000);
        assert_eq!((pause(1), pause(20)), (Duration::from_millis(100), Duration::from_secs(2)));
        assert_eq!((pause(50), pause(5_000)), (LONGEST_PAUSE, LONGEST_PAUSE));
    }
}
