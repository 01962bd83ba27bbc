//! How often a worker was started in the place of another one, by the reason.
//!
//! Leaves out: workers that an operator adds, and attempts for a successor that did not become ready.

use crate::recycle::Reason;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The worker before ended without being asked.
    Exit,
    /// The worker could not start.
    Start,
    /// An operator, or a change of the code in development, wanted new ones.
    Reload,
    Requests,
    Lifetime,
    Memory,
    Stuck,
}

impl Cause {
    const ALL: [Self; 7] =
        [Self::Exit, Self::Start, Self::Reload, Self::Requests, Self::Lifetime, Self::Memory, Self::Stuck];

    fn name(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Start => "start",
            Self::Reload => "reload",
            Self::Requests => "requests",
            Self::Lifetime => "lifetime",
            Self::Memory => "memory",
            Self::Stuck => "stuck",
        }
    }
}

impl From<Reason> for Cause {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Requests(_) => Self::Requests,
            Reason::Lifetime => Self::Lifetime,
            Reason::Memory(_) => Self::Memory,
            Reason::Stuck(_) | Reason::Silent(_) => Self::Stuck,
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Restarts([u64; Cause::ALL.len()]);

impl Restarts {
    pub(crate) fn add(&mut self, cause: Cause) {
        self.0[cause as usize] += 1;
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Cause::ALL.map(Cause::name).into_iter().zip(self.0)
    }
}
