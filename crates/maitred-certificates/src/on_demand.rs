//! Names on demand: the application is asked whether it serves a name, and its answers are kept for a time.
//!
//! Promises: at most ten questions in a minute about new names, and as many about renewals; at most [`MOST_HEARD`] names wait for theirs,
//! and at most [`MOST_REFUSED`] answers are remembered.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use maitred_acme::Now;

use crate::world::World;

/// Seconds for which a no is remembered.
const REMEMBERED: u64 = 60 * 60;

/// Most answers that are remembered.
const MOST_REFUSED: usize = 1000;

const MINUTE: u64 = 60;

/// Most names that are heard between two looks, and most that wait for a question.
const MOST_HEARD: usize = 64;

/// Names that clients have asked for in handshakes, until they are written down. All clones are one.
#[derive(Clone, Debug, Default)]
pub struct Heard(Arc<Mutex<BTreeSet<String>>>);

impl Heard {
    /// Notes a name, in the turn of a connection; one more than many is dropped, and the next client asks again.
    pub fn note(&self, name: &str) {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() < MOST_HEARD {
            names.insert(name.trim_end_matches('.').to_ascii_lowercase());
        }
    }

    /// Takes the names.
    pub fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// See the module text.
#[derive(Default)]
pub(crate) struct OnDemand {
    /// Names that clients have asked for, the longest wait first.
    new: VecDeque<String>,
    /// Names that are not served, until these times.
    refused: HashMap<String, u64>,
    /// The times of the last questions, about each [`Kind`].
    asked: [VecDeque<u64>; 2],
}

/// The kind of a name. A flood of new names takes no question from a renewal.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    New,
    Renewed,
}

/// An answer of the operator's own URL.
pub(crate) enum Answer {
    Yes,
    No(String),
    /// An application that is not there, or broken, has said nothing.
    None(String),
}

impl OnDemand {
    /// Most names that one folder has certificates of.
    pub(crate) const MOST_NAMES: usize = 10_000;

    const MOST_IN_A_MINUTE: usize = 10;

    /// Takes a name that a client has asked for; one more than many is dropped, and the next client asks again.
    pub(crate) fn want(&mut self, name: String) {
        if self.new.len() < MOST_HEARD && !self.new.contains(&name) {
            self.new.push_back(name);
        }
    }

    pub(crate) fn is_refused(&self, name: &str, now: Now) -> bool {
        self.refused.get(name).is_some_and(|until| now.steady < *until)
    }

    /// Asks about the new name that has waited longest, and returns it if it is served.
    ///
    /// # Errors
    /// There is nothing to ask now: the seconds until the next question.
    pub(crate) fn next(&mut self, ask: Option<&str>, world: &impl World) -> Result<Option<String>, u64> {
        let name = self.new.front().cloned().ok_or(REMEMBERED)?;
        let answer = self.may(&name, Kind::New, ask, world)?;
        self.new.pop_front();
        let now = world.now().steady;
        if matches!(answer, Answer::No(_)) {
            self.refused.retain(|_, until| *until > now);
            if self.refused.len() < MOST_REFUSED {
                self.refused.insert(name.clone(), now + REMEMBERED);
            }
        }
        Ok(Some(name).filter(|_| matches!(answer, Answer::Yes)))
    }

    /// Asks whether a name is served.
    ///
    /// # Errors
    /// There is no answer yet: the seconds until the next question.
    pub(crate) fn may(
        &mut self,
        name: &str,
        kind: Kind,
        ask: Option<&str>,
        world: &impl World,
    ) -> Result<Answer, u64> {
        let Some(ask) = ask else { return Ok(Answer::Yes) };
        let now = world.now().steady;
        let asked = &mut self.asked[kind as usize];
        asked.retain(|at| at + MINUTE > now);
        if let Some(first) = asked.front().filter(|_| asked.len() >= Self::MOST_IN_A_MINUTE) {
            return Err((first + MINUTE).saturating_sub(now));
        }
        asked.push_back(now);
        let separator = if ask.contains('?') { '&' } else { '?' };
        Ok(match world.ask(&format!("{ask}{separator}domain={name}")) {
            Ok(200) => Answer::Yes,
            Ok(status @ 500..) => Answer::None(format!("status {status}")),
            Ok(status) => Answer::No(format!("status {status}")),
            Err(why) => Answer::None(why),
        })
    }
}
