//! Entries that come again and again: the first one is written at once, the others are counted, and told of in one line
//! when their time is over.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::level::Level;

/// From an entry on, the same is counted for so long.
pub(crate) const WINDOW: Duration = Duration::from_secs(5);

/// So many different entries are remembered; the oldest makes room for a new one. A fault as a rule repeats one or two.
const MOST: usize = 16;

/// Of a repeated entry, so many bytes are said again: the whole one stands above.
const MAX_SAID: usize = 200;

#[derive(Default)]
pub(crate) struct Folds {
    recent: Mutex<Vec<Recent>>,
}

struct Recent {
    level: Level,
    text: String,
    since: Instant,
    times: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    Write,
    /// It is one of several; told of at that time.
    Count(Instant),
}

impl Folds {
    /// Looks at an entry that came at `now`; `say` gets what is to be written before it.
    pub(crate) fn note(
        &self,
        level: Level,
        text: &str,
        now: Instant,
        say: &mut dyn FnMut(Level, &str),
    ) -> Fold {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = recent.iter_mut().find(|found| found.level == level && found.text == text)
            && now < found.since + WINDOW
        {
            found.times += 1;
            return Fold::Count(found.since + WINDOW);
        }
        tell(&mut recent, now, say);
        // One that has been told of is still there, for what follows.
        if let Some(found) = recent.iter_mut().find(|found| found.level == level && found.text == text) {
            found.times += 1;
            return Fold::Count(found.since + WINDOW);
        }
        if recent.len() == MOST {
            let oldest = recent.remove(0);
            oldest.say(now, say);
        }
        recent.push(Recent { level, text: text.to_owned(), since: now, times: 0 });
        Fold::Write
    }

    pub(crate) fn due(&self, now: Instant, say: &mut dyn FnMut(Level, &str)) -> Option<Instant> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        tell(&mut recent, now, say);
        recent.iter().filter(|found| found.times > 0).map(|found| found.since + WINDOW).min()
    }

    pub(crate) fn all(&self, now: Instant, say: &mut dyn FnMut(Level, &str)) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.drain(..).for_each(|found| found.say(now, say));
    }
}

/// One that came again is told of, and counted anew; one that did not is forgotten.
fn tell(recent: &mut Vec<Recent>, now: Instant, say: &mut dyn FnMut(Level, &str)) {
    recent.retain_mut(|found| {
        if now < found.since + WINDOW {
            return true;
        }
        let goes_on = found.times > 0;
        found.say(now, say);
        (found.since, found.times) = (now, 0);
        goes_on
    });
}

impl Recent {
    fn say(&self, now: Instant, say: &mut dyn FnMut(Level, &str)) {
        if self.times == 0 {
            return;
        }
        let line = self.text.lines().next().unwrap_or_default();
        let end = line.floor_char_boundary_at(MAX_SAID);
        let seconds = now.saturating_duration_since(self.since).as_secs_f64();
        let mut text = String::with_capacity(end + 48);
        let more =
            if self.times == 1 { "once more".to_owned() } else { format!("{} times more", self.times) };
        // Writing to a String does not fail.
        let _ = write!(text, "{more} in the last {seconds:.1} s: {}", &line[..end]);
        say(self.level, &text);
    }
}

trait FloorBoundary {
    fn floor_char_boundary_at(&self, at: usize) -> usize;
}

impl FloorBoundary for str {
    fn floor_char_boundary_at(&self, at: usize) -> usize {
        (0..=at.min(self.len())).rev().find(|at| self.is_char_boundary(*at)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Said(Vec<String>);

    impl Said {
        fn note(&mut self, folds: &Folds, text: &str, now: Instant) {
            let said = &mut self.0;
            if folds.note(Level::Error, text, now, &mut |_, text| said.push(text.to_owned())) == Fold::Write {
                self.0.push(text.to_owned());
            }
        }
    }

    #[test]
    fn repeated_entries_are_counted_and_told_of_once_a_window() {
        let (folds, mut said, begin) = (Folds::default(), Said(Vec::new()), Instant::now());
        let after = |millis| begin + Duration::from_millis(millis);
        for millis in [0, 100, 200] {
            said.note(&folds, "broken\ntraceback", after(millis));
        }
        said.note(&folds, "another", after(300));
        assert_eq!(said.0, ["broken\ntraceback", "another"]);
        let next = folds.due(after(5_000), &mut |_, text| said.0.push(text.to_owned()));
        assert_eq!(said.0[2..], ["2 times more in the last 5.0 s: broken"]);
        assert_eq!(next, None);
        // It goes on: still not every time.
        said.note(&folds, "broken\ntraceback", after(6_000));
        assert_eq!(said.0.len(), 3);
        said.note(&folds, "unrelated", after(10_500));
        assert_eq!(said.0[3..], ["once more in the last 5.5 s: broken", "unrelated"]);
        // Nothing for a whole window: it is new again.
        said.note(&folds, "broken\ntraceback", after(16_000));
        assert_eq!(said.0.last().map(String::as_str), Some("broken\ntraceback"));
    }

    #[test]
    fn nothing_is_lost_by_the_bound_or_at_the_end() {
        let (folds, mut said, now) = (Folds::default(), Said(Vec::new()), Instant::now());
        said.note(&folds, "first", now);
        said.note(&folds, "first", now);
        for number in 0..MOST {
            said.note(&folds, &format!("entry {number}"), now);
        }
        assert!(said.0.contains(&"once more in the last 0.0 s: first".to_owned()), "{:?}", said.0);
        said.note(&folds, "entry 3", now);
        folds.all(now, &mut |_, text| said.0.push(text.to_owned()));
        assert_eq!(said.0.last().map(String::as_str), Some("once more in the last 0.0 s: entry 3"));
    }
}
