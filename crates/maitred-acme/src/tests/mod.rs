//! Orders against a CA in memory, and schedules by virtual time.

mod authority;
mod orders;
mod refusals;
mod schedules;
