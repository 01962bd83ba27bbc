//! The pool that a question is about: its name, and the test whether an item belongs to it.

use super::{Given, QueryContext, Refusal, did_you_mean};

pub(super) const NAME: &str = "pool";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted<'a> {
    pub(super) name: Option<&'a str>,
    number: Option<usize>,
}

impl<'a> Wanted<'a> {
    /// Errors: there is no pool of that name.
    pub(super) fn of(asking: &QueryContext<'_>, given: &'a Given) -> Result<Self, Refusal> {
        Self::among(&asking.server.pools().names(), given)
    }

    /// The wanted one among pools with these names.
    /// Errors: there is no pool of that name.
    pub(super) fn among(names: &[&str], given: &'a Given) -> Result<Self, Refusal> {
        let Some(name) = given.value(NAME) else { return Ok(Self { name: None, number: None }) };
        match names.iter().position(|known| *known == name) {
            Some(number) => Ok(Self { name: Some(name), number: Some(number) }),
            None => {
                let all = format!("there are {}", names.join(", "));
                let remedy = did_you_mean(name, names.iter().copied(), all);
                Err(Refusal::unknown(format!("there is no pool '{name}'; {remedy}")))
            }
        }
    }

    /// Whether items of this pool are wanted; none stands for items without a pool.
    pub(super) fn has(self, pool: impl Into<Option<usize>>) -> bool {
        self.number.is_none() || self.number == pool.into()
    }

    pub(super) fn has_name(self, pool: &str) -> bool {
        self.name.is_none_or(|name| name == pool)
    }
}
