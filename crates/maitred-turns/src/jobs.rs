//! The end of a turn, and the requests that it brings.

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// An event or a deadline will bring the next one.
    Wait,
    /// The budget is used up; the next turn comes after those of others.
    Later,
    /// The resident has ended.
    Close,
}

/// The requests that one turn brings: none or one from a connection that answers in order, any number from one with
/// streams.
pub struct Jobs<J> {
    first: Option<J>,
    more: Vec<J>,
}

impl<J> Jobs<J> {
    /// None; takes no memory.
    pub const fn none() -> Self {
        Self { first: None, more: Vec::new() }
    }

    /// Adds a job.
    pub fn push(&mut self, job: J) {
        match &self.first {
            None => self.first = Some(job),
            Some(_) => self.more.push(job),
        }
    }

    /// Whether there is none but the first.
    pub fn is_single(&self) -> bool {
        self.more.is_empty()
    }

    /// Appends the jobs of another turn.
    pub fn append(&mut self, other: Self) {
        if self.first.is_none() {
            *self = other;
        } else {
            other.into_iter().for_each(|job| self.push(job));
        }
    }
}

impl<J> IntoIterator for Jobs<J> {
    type Item = J;
    type IntoIter = std::iter::Chain<std::option::IntoIter<J>, std::vec::IntoIter<J>>;

    /// The jobs in the order in which they came.
    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<J> From<Option<J>> for Jobs<J> {
    fn from(first: Option<J>) -> Self {
        Self { first, more: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::Jobs;

    #[test]
    fn they_keep_their_order() {
        let mut jobs = Jobs::none();
        jobs.push(1);
        jobs.push(2);
        let mut others = Jobs::from(Some(3));
        others.push(4);
        jobs.append(others);
        jobs.append(Jobs::none());
        assert_eq!(jobs.into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
    }
}
