//! `history` and `finding`: answers that need earlier looks at the server.

use serde_json::Value;

use super::{Given, QueryContext, Refusal, picture_of, threads};

pub(super) fn history(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let kept = asking.history.ok_or_else(|| {
        Refusal::conflict("this process keeps no history: with several workers the supervisor keeps that of all of them; leave the number of the worker out")
    })?;
    kept.answer(given)
}

/// The answer of this process. The first question has waited before (`Inner::answer`), without the objects that this
/// one holds.
pub(super) fn finding(asking: &QueryContext<'_>, _: &Given) -> Result<Value, Refusal> {
    let mut answer = asking.finder.answer(picture_of(asking));
    asking.finder.add_place(&mut answer, || threads::stacks(asking, &Given::default()).ok()?.value);
    Ok(answer)
}
