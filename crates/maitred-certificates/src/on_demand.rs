//! Names on demand: the question whether one is served, and what is remembered of the answers.
//!
//! Promises: at most ten questions in a minute, and at most [`MOST_REFUSED`] answers are remembered.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use maitred_acme::Now;

use crate::world::World;

/// Seconds for which a no is remembered.
const REMEMBERED: u64 = 60 * 60;

/// Most answers that are remembered.
const MOST_REFUSED: usize = 1000;

const MINUTE: u64 = 60;

/// Most names that are heard between two looks.
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
    /// Names that are not served, until these times.
    refused: HashMap<String, u64>,
    /// The times of the last questions.
    asked: VecDeque<u64>,
}

impl OnDemand {
    /// Most names that one folder has certificates of.
    pub(crate) const MOST_NAMES: usize = 10_000;

    const MOST_IN_A_MINUTE: usize = 10;

    pub(crate) fn is_refused(&self, name: &str, now: Now) -> bool {
        self.refused.get(name).is_some_and(|until| now.steady < *until)
    }

    /// Asks whether a name is served.
    ///
    /// # Errors
    /// There is no answer yet: the seconds until the next question.
    pub(crate) fn may(&mut self, name: &str, ask: Option<&str>, world: &impl World) -> Result<bool, u64> {
        let Some(ask) = ask else { return Ok(true) };
        let now = world.now().steady;
        self.asked.retain(|at| at + MINUTE > now);
        if let Some(first) = self.asked.front().filter(|_| self.asked.len() >= Self::MOST_IN_A_MINUTE) {
            return Err((first + MINUTE).saturating_sub(now));
        }
        self.asked.push_back(now);
        let separator = if ask.contains('?') { '&' } else { '?' };
        match world.ask(&format!("{ask}{separator}domain={name}")) {
            Ok(200) => Ok(true),
            // An application that is not there, or broken, has said nothing.
            Err(_) | Ok(500..) => Err(MINUTE),
            Ok(_) => {
                self.refused.retain(|_, until| *until > now);
                if self.refused.len() < MOST_REFUSED {
                    self.refused.insert(name.to_owned(), now + REMEMBERED);
                }
                Ok(false)
            }
        }
    }
}
