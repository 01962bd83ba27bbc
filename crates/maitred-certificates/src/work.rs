//! The work of an orderer: it finds the certificates that are due, takes the steps of their orders, and keeps their states.
//!
//! ```text
//! idle --due--> state saved --> steps: requests, challenges, waits --certificate--> saved, idle
//!                                                                 `--fault--> state saved, idle until the next attempt
//! ```
//! Promises: each name fails by itself. An order begins only when the folder can be written, since a server that forgets its failures
//! orders too often. Waits for nothing but calls and hooks: the time of the next turn is returned. Leaves out: when something is due
//! (`Schedule` of maitred-acme).

mod orders;
mod records;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use maitred_acme::{
    Account, Due, Held, Identifier, Ordering, Pace, Schedule, Step, To, check_chain, staging_of,
};
use maitred_log::Level;

use crate::Mark;
use crate::on_demand::{Answer, Kind, OnDemand};
use crate::state::State;
use crate::wishes::Wishes;
use crate::world::World;

/// Most orders at once. An order mostly waits for the authority.
const MOST_AT_ONCE: usize = 10;

/// Most names on demand that wait for their first certificate: others have to wait for them.
const MOST_WAITING: usize = 100;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Receives lines for the log.
pub(crate) type Say = Box<dyn Fn(Level, &str) + Send>;

/// See the module text.
pub(crate) struct Work<W> {
    wishes: Wishes,
    world: W,
    say: Say,
    names: BTreeMap<String, Entry>,
    running: Vec<Running>,
    accounts: HashMap<String, Account>,
    pace: Pace,
    on_demand: OnDemand,
    /// The time of the last line about each name; the empty name is the folder.
    told: HashMap<String, (u64, String)>,
    /// No order begins before this time, as the folder could not be written.
    held_until: u64,
    /// The files are looked at again at this time.
    look_at: u64,
    /// Seconds between two looks at the wishes of clients and operators.
    look_every: u64,
}

struct Entry {
    identifier: Identifier,
    /// The name is one of the configuration, none on demand.
    is_own: bool,
    /// The name needs no further question before its next certificate.
    is_granted: bool,
    /// No question before this time.
    ask_at: u64,
    schedule: Schedule,
    state: State,
    /// The mark of the file at the last look; none before.
    seen: Option<Option<Mark>>,
    /// A certificate that the disk has not taken, and the time of the next attempt.
    unsaved: Option<(u64, Vec<u8>)>,
}

impl Entry {
    /// Its place among the names that are due: names on demand without a valid certificate are the last, else the earliest end is the first.
    fn rank(&self, now: u64) -> (bool, u64) {
        (!self.is_own && !self.is_valid(now), self.state.until.unwrap_or_default())
    }

    fn is_valid(&self, now: u64) -> bool {
        self.state.until.is_some_and(|until| until > now)
    }
}

struct Running {
    name: String,
    to: To,
    ordering: Ordering,
    resume_at: u64,
}

impl<W: World> Work<W> {
    /// Begins with the lock of the folder held.
    pub(crate) fn new(wishes: Wishes, world: W, say: Say, look_every: u64) -> Self {
        wishes.folder.withdraw_all();
        let mut this = Self {
            on_demand: OnDemand::default(),
            wishes,
            world,
            say,
            names: BTreeMap::new(),
            running: Vec::new(),
            accounts: HashMap::new(),
            pace: Pace::default(),
            told: HashMap::new(),
            held_until: 0,
            look_at: 0,
            look_every,
        };
        this.remove_dns();
        this.enlist();
        this
    }

    /// Changes what is wished, in the same folder. Orders that run for other wishes end.
    pub(crate) fn set(&mut self, wishes: Wishes) {
        if wishes == self.wishes {
            return;
        }
        while let Some(mut running) = self.running.pop() {
            running.ordering.not_published("the configuration has changed");
            while let Step::Withdraw(challenge) = running.ordering.next(self.world.now().wall) {
                self.withdraw(&challenge);
            }
        }
        self.wishes = wishes;
        let earlier = std::mem::take(&mut self.names);
        self.accounts.clear();
        self.enlist();
        for (name, earlier) in earlier.into_iter().filter(|(_, entry)| entry.unsaved.is_some()) {
            if self.wishes.is_on_demand(&name) && !self.names.contains_key(&name) {
                self.add(&name);
            }
            // The one of another authority is ordered in any case.
            if let Some(entry) =
                self.names.get_mut(&name).filter(|_| earlier.state.directory == self.wishes.directory)
            {
                let Entry { schedule, state, unsaved, .. } = earlier;
                (entry.schedule, entry.state, entry.unsaved) = (schedule, state, unsaved);
            }
        }
    }

    /// Does what is due, and returns the time until the next turn.
    pub(crate) fn turn(&mut self) -> Duration {
        let mut wait = HOUR;
        if self.wishes.folder.take_hurry() {
            self.hurry();
        }
        self.take_wanted();
        wait = wait.min(self.take_new());
        self.step_all();
        let now = self.world.now();
        if now.steady >= self.look_at {
            self.look();
        }
        let ranked = self.names.iter().map(|(name, entry)| (entry.rank(now.wall), name.clone()));
        for (_, name) in ranked.collect::<BTreeSet<_>>() {
            if self.world.stops() {
                return Duration::ZERO;
            }
            wait = wait.min(self.serve(&name));
        }
        let running = self.running.iter().map(|running| running.resume_at.saturating_sub(now.steady));
        wait = running.fold(wait, u64::min);
        // An operator may hurry what has failed, and clients may ask for names.
        let is_looked_at = self.held_until > now.steady
            || !self.wishes.on_demand.is_empty()
            || self.names.values().any(|entry| entry.schedule.failures() > 0);
        Duration::from_secs(if is_looked_at { wait.min(self.look_every) } else { wait })
    }

    /// Waits no longer for names that have failed, and looks at the files again.
    fn hurry(&mut self) {
        let now = self.world.now();
        (self.held_until, self.look_at) = (0, 0);
        self.told.clear();
        for (name, entry) in &mut self.names {
            // The next attempt after an order that runs has its pause.
            if !self.running.iter().any(|running| running.name == *name) {
                entry.schedule.hurry(now);
            }
        }
    }

    /// Takes the names of the wishes, and those on demand that have certificates.
    fn enlist(&mut self) {
        let earlier = self.wishes.folder.names().into_iter().filter(|name| self.wishes.is_on_demand(name));
        for name in self.wishes.names.iter().cloned().chain(earlier).collect::<Vec<_>>() {
            self.add(&name);
        }
        self.look_at = 0;
    }

    fn add(&mut self, name: &str) {
        self.entry(name).into_iter().for_each(|entry| _ = self.names.insert(name.to_owned(), entry));
    }

    /// A name as the folder knows it.
    fn entry(&self, name: &str) -> Option<Entry> {
        let identifier = name.parse::<Identifier>().ok()?;
        let mut state = self.wishes.folder.state(name).unwrap_or_default();
        state.ordering = false;
        if state.directory != self.wishes.directory {
            // Waits and windows of another CA count for nothing.
            state =
                State { directory: self.wishes.directory.clone(), issuer: state.issuer, ..State::default() };
        }
        let schedule = serde_json::from_value(state.schedule.clone()).ok();
        let schedule = schedule.unwrap_or_else(|| Schedule::new(self.world.random()));
        let is_own = self.wishes.names.iter().any(|own| own == name);
        Some(Entry {
            identifier,
            is_own,
            is_granted: is_own,
            ask_at: 0,
            schedule,
            state,
            seen: None,
            unsaved: None,
        })
    }

    /// Looks at the files: a certificate that is broken or missing is ordered again.
    fn look(&mut self) {
        let now = self.world.now();
        self.look_at = now.steady + HOUR;
        self.wishes.folder.sweep(now.wall, |name| self.names.contains_key(name));
        let mut faults = Vec::new();
        for (name, entry) in &mut self.names {
            if self.running.iter().any(|running| running.name == *name) || entry.unsaved.is_some() {
                continue;
            }
            let mark = self.wishes.folder.mark_of(name);
            if entry.seen.replace(mark) == Some(mark) {
                continue;
            }
            let path = self.wishes.folder.certificate(name);
            let held = match std::fs::read(&path) {
                Ok(pem) => check_chain(&pem, &pem, std::slice::from_ref(&entry.identifier), now.wall)
                    .map_err(|fault| fault.said.trim_start_matches("the new certificate ").to_owned()),
                Err(error) => Err(format!("cannot be read: {error}")),
            };
            if let Err(why) = &held
                && (entry.state.until.is_some() || path.exists())
            {
                let serves = if entry.is_valid(now.wall) {
                    "; servers keep the certificate that they have in memory"
                } else {
                    ""
                };
                faults.push((name.clone(), format!("{} {why}{serves}", path.display())));
            }
            let held = held.ok();
            entry.state.until = held.as_ref().map(|held: &Held| held.not_after);
            // One of another authority serves on, and is replaced at once.
            let is_own = entry.state.issuer.as_ref().is_none_or(|issuer| *issuer == self.wishes.directory);
            entry.schedule.hold(held.filter(|_| is_own));
        }
        for (name, fault) in faults {
            self.tell(Level::Error, &name, &format!("{fault}; another one is ordered"));
        }
    }

    /// Does what is due for a name. Returns the seconds until something is.
    fn serve(&mut self, name: &str) -> u64 {
        if self.running.iter().any(|running| running.name == name) {
            return HOUR;
        }
        let now = self.world.now();
        let has_staging = staging_of(&self.wishes.directory).is_some();
        let Some(entry) = self.names.get_mut(name) else { return HOUR };
        if let Some((at, _)) = entry.unsaved.as_ref().filter(|(at, _)| *at > now.steady) {
            return at - now.steady;
        }
        if let Some((_, pem)) = entry.unsaved.take() {
            return self.keep(name, pem);
        }
        match entry.schedule.next(has_staging, now) {
            Due::Wait(wait) => wait.as_secs().max(1),
            Due::AskForWindow { id } => {
                self.ask_for_window(name, &id);
                0
            }
            Due::Order(_) if self.held_until > now.steady => self.held_until - now.steady,
            Due::Order(_) if self.running.len() >= MOST_AT_ONCE => 1,
            Due::Order(order) => match self.begin(name, order) {
                Ok(()) => 0,
                Err(wait) => wait.max(1),
            },
        }
    }

    /// Takes the names that clients have asked for. One that has failed a moment ago would only take the room of others.
    fn take_wanted(&mut self) {
        if self.wishes.on_demand.is_empty() {
            return;
        }
        let now = self.world.now();
        for name in self.wishes.folder.take_wanted() {
            let is_new = self.wishes.is_on_demand(&name) && !self.names.contains_key(&name);
            if is_new
                && !self.on_demand.is_refused(&name, now)
                && self.entry(&name).is_some_and(|mut entry| entry.schedule.order_in(now).is_zero())
            {
                self.on_demand.want(name);
            }
        }
    }

    /// Takes the next new name, if it is served. Returns the seconds until another one can be.
    fn take_new(&mut self) -> u64 {
        let is_waiting = |entry: &&Entry| !entry.is_own && entry.state.until.is_none();
        let waiting = self.names.values().filter(is_waiting).count();
        if waiting >= MOST_WAITING || self.names.len() >= OnDemand::MOST_NAMES {
            return HOUR;
        }
        match self.on_demand.next(self.wishes.ask.as_deref(), &self.world) {
            Err(wait) => return wait,
            Ok(Some(name)) if self.wishes.is_on_demand(&name) && !self.names.contains_key(&name) => {
                self.add(&name);
                self.names.entry(name).and_modify(|entry| entry.is_granted = true);
                self.look_at = 0;
            }
            Ok(_) => {}
        }
        0
    }

    /// Asks whether a name on demand is still served, before its certificate is renewed.
    ///
    /// # Errors
    /// It is not now: the seconds until the next question.
    fn ask_again(&mut self, name: &str) -> Result<(), u64> {
        let now = self.world.now();
        let Some(entry) = self.names.get_mut(name).filter(|entry| !entry.is_granted) else { return Ok(()) };
        if entry.ask_at > now.steady {
            return Err(entry.ask_at - now.steady);
        }
        let why = match self.on_demand.may(name, Kind::Renewed, self.wishes.ask.as_deref(), &self.world)? {
            Answer::Yes => {
                entry.is_granted = true;
                return Ok(());
            }
            // The next client that asks for it brings it back.
            Answer::No(_) if !entry.is_valid(now.wall) => {
                self.names.remove(name);
                self.wishes.folder.forget(name);
                return Err(HOUR);
            }
            Answer::No(why) | Answer::None(why) => why,
        };
        entry.ask_at = now.steady + HOUR;
        let text = format!(
            "acme-ask does not say that the name is served ({why}): its certificate is not renewed until it does; it is asked again every hour"
        );
        self.tell(Level::Warn, name, &text);
        Err(HOUR)
    }
}
