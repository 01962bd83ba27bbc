//! A few names that others choose, numbered.

use std::sync::{PoisonError, RwLock};

/// The most names; the number of all further ones is that of the last, "other".
pub(crate) const MAX_NAMES: usize = 64;

/// Bytes of a name; longer ones are "other".
const MAX_NAME: usize = 64;

/// Names of `Server-Timing` entries, at most [`MAX_NAMES`] and "other".
#[derive(Default)]
pub(crate) struct Names(RwLock<Vec<Box<str>>>);

impl Names {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn number(&self, name: &str) -> u8 {
        let position = |known: &Vec<Box<str>>| known.iter().position(|known| &**known == name);
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = position(&read) {
            return number as u8;
        }
        if read.len() == MAX_NAMES || name.len() > MAX_NAME {
            return MAX_NAMES as u8;
        }
        drop(read);
        let mut write = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = position(&write) {
            return number as u8;
        }
        if write.len() == MAX_NAMES {
            return MAX_NAMES as u8;
        }
        write.push(name.into());
        (write.len() - 1) as u8
    }

    /// By number; behind the last known one only "other".
    pub(crate) fn all(&self) -> Vec<String> {
        let read = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<String> = read.iter().map(|name| name.to_string()).collect();
        all.resize(MAX_NAMES + 1, "other".to_owned());
        all
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len() * (MAX_NAME + 32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let names = Names::new();
        assert_eq!(["db", "cache", "db"].map(|name| names.number(name)), [0, 1, 0]);
        assert_eq!(names.number(&"x".repeat(MAX_NAME + 1)), 64);
        for number in 0..1000 {
            assert!(names.number(&number.to_string()) <= 64);
        }
        assert_eq!((names.number("61"), names.number("62"), names.all().len()), (63, 64, 65));
        assert_eq!((&*names.all()[1], &*names.all()[64]), ("cache", "other"));
    }
}
