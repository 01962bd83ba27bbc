//! One look at the server: the answers that a view is made of.

use maitred_control::{Given, find};
use serde_json::Value;

use super::data::{Answers, CLASSES, SECONDS, SPANS};
use crate::ctl::client::{self, Failed, Place};
use crate::ctl::named::Named;

/// Figures beside those of the classes and of the spans.
const FIGURES: &str = "requests,covered_seconds,p99_seconds,queue_max,cpu_user_seconds,cpu_system_seconds,out_bytes,threads_busy,\
                       threads_idle,threads_stuck,threads_gate,http2_open,websockets_open,memory_bytes";

/// Asks a server, and looks for it again when it does not answer: it may have been started anew.
pub(super) struct Looker {
    named: Named,
    place: Option<Place>,
}

impl Looker {
    pub(super) fn new(named: Named) -> Self {
        Self { named, place: None }
    }

    /// # Errors
    /// The server does not answer, or there is none.
    pub(super) fn look(&mut self) -> Result<Answers, Failed> {
        let place = match self.place.take() {
            Some(place) => place,
            None => self.named.place()?,
        };
        let status = ask(&place, "status", &[])?;
        // Without a worker that serves there is nothing else.
        let or_nothing = |name: &str, given: &[(&str, &str)]| ask(&place, name, given).unwrap_or_default();
        let classes = CLASSES.map(|class| format!("requests_{class}")).join(",");
        let spans = SPANS.map(|span| format!("{span}_seconds")).join(",");
        let figures = format!("{FIGURES},{classes},{spans}");
        let answers = Answers {
            status,
            stats: or_nothing("stats", &[]),
            pools: or_nothing("pools", &[]),
            active: or_nothing("active", &[]),
            history: or_nothing(
                "history",
                &[("last", &SECONDS.to_string()), ("resolution", "1s"), ("figure", &figures)],
            ),
            recent: or_nothing(
                "history",
                &[("last", "20"), ("resolution", "10s"), ("figure", "p50_seconds,p90_seconds,p99_seconds")],
            ),
        };
        self.place = Some(place);
        Ok(answers)
    }
}

fn ask(place: &Place, name: &str, given: &[(&str, &str)]) -> Result<Value, Failed> {
    let command = find(name).map_err(|refusal| Failed::Refused(refusal.text().to_owned()))?;
    let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    client::ask(place, command, &Given(given.collect()))
}
