//! Which traces are kept, as `OTEL_TRACES_SAMPLER` and `OTEL_TRACES_SAMPLER_ARG` say.
//!
//! Promises: all servers with the same ratio keep the same traces. Leaves out: the rule that keeps slow and failed requests.

use crate::context::TraceId;

/// The rule by which a trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampler {
    /// The decision of a trusted parent is taken over.
    by_parent: bool,
    /// A trace is kept if the low half of its id is below this: from 0 to 2^64.
    below: u128,
}

const ALL: u128 = 1 << 64;

const NAMES: &str = "always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off and \
    parentbased_traceidratio";

impl Default for Sampler {
    /// `parentbased_always_on`, as the specification says.
    fn default() -> Self {
        Self { by_parent: true, below: ALL }
    }
}

impl Sampler {
    /// The sampler with this name and argument.
    ///
    /// # Errors
    /// A sentence: the name is unknown, or the argument is no ratio.
    pub fn parse(name: &str, argument: Option<&str>) -> Result<Self, String> {
        let name = name.trim().to_ascii_lowercase();
        let root = name.strip_prefix("parentbased_");
        let below = match root.unwrap_or(&name) {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => argument.map_or(Ok(ALL), ratio)?,
            _ => {
                return Err(format!(
                    "OTEL_TRACES_SAMPLER: {name:?} is no sampler of maitred; it has {NAMES}"
                ));
            }
        };
        Ok(Self { by_parent: root.is_some(), below })
    }

    /// Whether a trace is kept. `parent` is the decision of a trusted parent, if there is one.
    #[must_use]
    pub fn keeps(&self, trace: TraceId, parent: Option<bool>) -> bool {
        parent.filter(|_| self.by_parent).unwrap_or_else(|| u128::from(trace.low()) < self.below)
    }
}

fn ratio(text: &str) -> Result<u128, String> {
    let ratio = text.trim().parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
    ratio
        .map(|ratio| (ratio * ALL as f64).round() as u128)
        .ok_or_else(|| format!("OTEL_TRACES_SAMPLER_ARG: {text:?} is no ratio; say a number from 0 to 1"))
}
