//! Filters: rules for requests before routes, and for the fields of their responses.
//!
//! ```text
//! rule.rs      a filter as it is configured       chain.rs    all of them, and one request in them
//! access.rs, template.rs (redirect, rewrite), fields.rs, basic/     their effects
//! native.rs    filters of the program's own       list.rs     shown and explained
//! statuses.rs  the statuses of responses whose fields are changed
//! ```
//! Promises: filters see the head of a request before its body is asked for, so that a refused client causes no upload;
//! nothing here waits, a password is checked by threads of its own (`basic/hasher.rs`). Without a filter a request
//! costs one load.
//!
//! Leaves out: when filters run and the state of the connection meanwhile (`filter.rs` of maitred-exchange);
//! the syntax of filters (maitred-config).

mod access;
mod basic;
mod chain;
mod fields;
mod list;
mod native;
mod rule;
mod statuses;
mod template;

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use maitred_http::{RequestHead, ResponseHead};
use maitred_io::sync::atomic::{AtomicBool, Ordering};

use basic::hasher::{self, Hasher};
use chain::{Chain, Own};
use maitred_log::Log;
use maitred_log::{End, Outcome};
use maitred_match::Ambiguity;

pub use access::Access;
pub use basic::{Authentication, BadUsers, BasicAuth, MAX_NAME, Users, check_name, user_line};
pub use chain::{Answer, At, Decision, Passed, Suspicion};
pub use fields::{FieldChanges, Side};
pub use native::{Filter, FilterRequest, Place, Step, Traced};
pub use rule::{Asker, Condition, FilterRule};
pub use statuses::Statuses;
pub use template::{Redirect, Rewrite};

/// The filters of a server.
pub struct Filters {
    on: AtomicBool,
    /// The configured ones. Exchanged at run time.
    chain: ArcSwap<Chain>,
    own: Arc<Own>,
    /// The threads for passwords, from the first filter on that asks for them.
    hasher: OnceLock<Hasher>,
    log: Arc<Log>,
}

impl Filters {
    /// # Errors
    /// The system has no thread for password checks.
    pub fn new(rules: Vec<FilterRule>, own: Vec<Arc<dyn Filter>>, log: &Arc<Log>) -> io::Result<Self> {
        let filters = Self {
            on: false.into(),
            chain: ArcSwap::default(),
            own: Arc::new(Own::new(own)),
            hasher: OnceLock::new(),
            log: Arc::clone(log),
        };
        filters.set_rules(rules)?;
        Ok(filters)
    }

    /// Exchanges the configured filters. Requests that have met earlier ones keep those; counts begin anew.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing has changed.
    pub fn set_rules(&self, rules: Vec<FilterRule>) -> io::Result<()> {
        let asks = rules.iter().any(|rule| matches!(rule.authentication, Some(Authentication::Basic(_))));
        if asks && self.hasher.get().is_none() {
            let hasher = Hasher::start(Arc::clone(&self.log))?;
            // The caller that comes second ends the threads it has made.
            let _ = self.hasher.set(hasher);
        }
        let on = !rules.is_empty() || self.own.is_asked();
        self.chain.store(Arc::new(Chain::new(rules)));
        self.on.store(on, Ordering::Release);
        Ok(())
    }

    /// Whether there is a filter that a request could meet. One load.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    fn chain(&self) -> Arc<Chain> {
        self.chain.load_full()
    }

    /// The filters that a request meets; none if it meets none. `path` becomes its decoded and normalised path, if some filter looks at
    /// that.
    ///
    /// # Errors
    /// It depends on the reader of the path which filters these are.
    pub fn meet(
        &self,
        head: &RequestHead,
        path: &mut Vec<u8>,
        asker: Asker,
    ) -> Result<Option<Box<Passed>>, Ambiguity> {
        let chain = self.chain();
        let met = chain.met(head, path, asker)?;
        let any = !met.is_empty() || self.own.is_asked();
        Ok(any.then(|| Box::new(Passed::new(chain, Arc::clone(&self.own), met))))
    }

    /// The threads that check passwords.
    pub fn hasher(&self) -> Option<&Hasher> {
        self.hasher.get()
    }

    /// The head of an answer to a request that has met no filter, because it was refused before: with the fields that
    /// filters give it which ask for nothing but the host and the scheme. None if there are none.
    pub fn change_refused(&self, head: &ResponseHead, host: u16, secure: bool) -> Option<ResponseHead> {
        if !self.is_on() {
            return None;
        }
        let chain = self.chain();
        let mut changed = None;
        // The most specific one changes it last.
        let rules = chain.rules.iter().rev().map(|entry| &entry.rule);
        for rule in rules.filter(|rule| rule.changes(head.status) && rule.when.is_met_by(host, secure)) {
            rule.response.apply(&mut changed.get_or_insert_with(|| head.clone()).fields);
        }
        changed
    }

    /// Shows an exchange that has ended to the program's own filters.
    pub fn trace(&self, outcome: &Outcome<'_>) {
        if self.own.trace.is_empty() {
            return;
        }
        let traced = Traced {
            head: outcome.head,
            peer: outcome.peer,
            status: outcome.status,
            body_bytes: outcome.body_bytes,
            complete: outcome.end == End::Complete,
            times: outcome.times,
        };
        for filter in &self.own.trace {
            if catch_unwind(AssertUnwindSafe(|| filter.trace(&traced))).is_err() {
                self.log.error(format_args!("the filter {} panicked in trace", filter.name()));
            }
        }
    }

    /// Looks at all files of users, and tells in the log which of them have changed.
    pub fn look_at_users(&self) {
        for entry in &self.chain().rules {
            if let Some(Authentication::Basic(basic)) = &entry.rule.authentication {
                hasher::tell(basic.users(), &basic.users().look(), &self.log);
            }
        }
    }

    /// Ends the threads that check passwords.
    pub fn end(&self) {
        if let Some(hasher) = self.hasher.get() {
            hasher.end();
        }
    }
}
