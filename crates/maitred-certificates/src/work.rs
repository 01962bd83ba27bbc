//! The work of an orderer: which certificate is due, the steps of its order, and what is written down of it.
//!
//! ```text
//! idle --due--> state saved --> steps: requests, challenges, waits --certificate--> saved, idle
//!                                                                 `--fault--> state saved, idle until the next attempt
//! ```
//! Promises: each name fails by itself. An order begins only when the folder can be written, since a server that forgets its failures
//! orders too often. Waits for nothing but calls and hooks: the time of the next turn is returned. Leaves out: when something is due
//! (`Schedule` of maitred-acme).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::time::Duration;

use maitred_acme::{
    Account, Asked, Asking, Challenge, ChallengeKind, Due, Fault, Held, Identifier, Issued, Order, Ordering,
    Pace, Schedule, Settings, Step, To, check_chain, staging_of,
};
use maitred_log::Level;

use crate::Mark;
use crate::on_demand::{Answer, Kind, OnDemand};
use crate::state::{self, State};
use crate::wishes::Wishes;
use crate::world::World;

/// Most orders at once. An order mostly waits for the authority.
const MOST_AT_ONCE: usize = 10;

/// Most steps of an order in one turn: others come next.
const MOST_STEPS: usize = 100;

/// Most names on demand that wait for their first certificate: others have to wait for them.
const MOST_WAITING: usize = 100;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
/// Time between two lines about the same fault.
const DAY: u64 = 24 * HOUR;

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

    /// Removes the entries of the DNS that are still there: behind the end of an orderer, and before its own.
    pub(crate) fn remove_dns(&self) {
        let noted = self.wishes.folder.noted_dns();
        noted.iter().for_each(|(name, value)| self.remove_entry(name, value));
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

    fn begin(&mut self, name: &str, order: Order) -> Result<(), u64> {
        let now = self.world.now();
        self.ask_again(name)?;
        let directory = match order.to {
            To::Production => self.wishes.directory.clone(),
            To::Staging => staging_of(&self.wishes.directory).unwrap_or_default().to_owned(),
        };
        let account = self.account(&directory).map_err(|error| self.hold(&error))?;
        self.pace.take(now).map_err(|wait| wait.as_secs())?;
        let settings = self.settings(&directory);
        let Some(entry) = self.names.get_mut(name) else { return Ok(()) };
        let before = (entry.schedule.clone(), entry.state.clone());
        entry.schedule.ordering(now);
        entry.state.ordering = true;
        let identifiers = vec![entry.identifier.clone()];
        if let Err(error) = self.save(name) {
            // The authority has not heard of it.
            self.names
                .get_mut(name)
                .into_iter()
                .for_each(|entry| (entry.schedule, entry.state) = before.clone());
            return Err(self.hold(&error));
        }
        let ordering = Ordering::new(&settings, account, identifiers, order.replaces, order.attempt);
        self.running.push(Running { name: name.to_owned(), to: order.to, ordering, resume_at: 0 });
        Ok(())
    }

    // Names on demand.

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

    /// Begins no order for some time, as the folder cannot be written. Returns the seconds.
    fn hold(&mut self, error: &io::Error) -> u64 {
        let wait = 10 * MINUTE;
        self.held_until = self.world.now().steady + wait;
        let text = format!(
            "the folder {} cannot be used: {error}; no certificate is ordered until this user can write there and the disk has room",
            self.wishes.folder.path().display()
        );
        self.tell(Level::Error, "", &text);
        wait
    }

    fn settings(&self, directory: &str) -> Settings {
        let wishes = &self.wishes;
        Settings {
            directory: directory.to_owned(),
            contact: wishes.contact.clone(),
            external_account: wishes.external_account.clone(),
            profile: wishes.profile.clone(),
            preferred_chain: wishes.chain.clone(),
            challenges: wishes.challenges.clone(),
        }
    }

    /// The account at a directory; a new one is saved before it is used.
    fn account(&mut self, directory: &str) -> io::Result<Account> {
        if let Some(account) = self.accounts.get(directory) {
            return Ok(account.clone());
        }
        let kept = self.wishes.folder.account(directory)?;
        let read = kept.as_deref().and_then(|text| serde_json::from_slice::<Account>(text).ok());
        let account = match read.filter(|account| account.directory == directory) {
            Some(account) => account,
            None => {
                if kept.is_some() {
                    let text =
                        format!("the account at {directory} cannot be read, and a new one takes its place");
                    (self.say)(Level::Warn, &format!("acme: {text}"));
                }
                let account = Account::generate(directory)
                    .ok_or_else(|| io::Error::other("there are no random numbers"))?;
                self.wishes.folder.save_account(directory, &serde_json::to_vec(&account)?)?;
                account
            }
        };
        self.accounts.insert(directory.to_owned(), account.clone());
        Ok(account)
    }

    fn keep_account(&mut self, account: &Account) {
        if self.accounts.get(&account.directory) == Some(account) {
            return;
        }
        // The account is found again by its key.
        if let Ok(text) = serde_json::to_vec(account) {
            let _ = self.wishes.folder.save_account(&account.directory, &text);
        }
        self.accounts.insert(account.directory.clone(), account.clone());
    }

    // Orders that run.

    fn step_all(&mut self) {
        let now = self.world.now();
        let due = self.running.iter().filter(|running| running.resume_at <= now.steady);
        for name in due.map(|running| running.name.clone()).collect::<Vec<_>>() {
            let Some(at) = self.running.iter().position(|running| running.name == name) else { continue };
            let mut running = self.running.swap_remove(at);
            if !self.step(&mut running) && !self.world.stops() {
                self.running.push(running);
            }
        }
    }

    /// Steps an order until it waits; whether it has ended.
    fn step(&mut self, running: &mut Running) -> bool {
        for _ in 0..MOST_STEPS {
            let now = self.world.now();
            match running.ordering.next(now.wall) {
                Step::Send(request) => {
                    let answer = self.world.send(&request);
                    if self.world.stops() {
                        return true;
                    }
                    match answer {
                        Ok(response) => running.ordering.answered(response),
                        Err(why) => running.ordering.not_answered(&why),
                    }
                    self.keep_account(running.ordering.account());
                }
                Step::Publish(challenge) => {
                    let published = self.publish(&challenge);
                    if self.world.stops() {
                        return true;
                    }
                    if let Err(why) = published {
                        running.ordering.not_published(&why);
                    }
                }
                Step::Withdraw(challenge) => self.withdraw(&challenge),
                Step::Wait(wait) => {
                    running.resume_at = now.steady + wait.as_secs().max(1);
                    return false;
                }
                Step::Issued(issued) => {
                    self.issued(&running.name, running.to, *issued);
                    return true;
                }
                Step::Failed(fault) => {
                    self.failed(&running.name, &fault);
                    return true;
                }
            }
        }
        false
    }

    fn publish(&self, challenge: &Challenge) -> Result<(), String> {
        let Challenge { token, key_authorization, identifier, .. } = challenge;
        let folder = &self.wishes.folder;
        match challenge.kind {
            ChallengeKind::Http01 => {
                folder.publish_http(token, key_authorization).map_err(|error| error.to_string())
            }
            ChallengeKind::TlsAlpn01 => folder
                .publish_tls_alpn(&identifier.to_string(), key_authorization)
                .map_err(|error| error.to_string()),
            ChallengeKind::Dns01 => {
                let (name, value) = (challenge.dns_name(), challenge.dns_value());
                folder.note_dns(&name, &value).map_err(|error| error.to_string())?;
                self.hook("add", &name, &value)
            }
        }
    }

    fn withdraw(&self, challenge: &Challenge) {
        if challenge.kind != ChallengeKind::Dns01 {
            return self.wishes.folder.withdraw(&challenge.identifier.to_string(), &challenge.token);
        }
        self.remove_entry(&challenge.dns_name(), &challenge.dns_value());
    }

    fn remove_entry(&self, name: &str, value: &str) {
        let removed = self.hook("remove", name, value);
        // Behind a kill at the end the next orderer removes it.
        if removed.is_ok() || !self.world.stops() {
            self.wishes.folder.forget_dns(name, value);
            removed.unwrap_or_else(|why| {
                (self.say)(
                    Level::Warn,
                    &format!("acme: {name}: {why}; remove the TXT entry {value} by hand"),
                );
            });
        }
    }

    fn hook(&self, word: &str, name: &str, value: &str) -> Result<(), String> {
        let hook = self.wishes.hook.as_deref().ok_or("there is no hook")?;
        self.world.hook(hook, [word, name, value])
    }

    fn issued(&mut self, name: &str, to: To, issued: Issued) {
        let (now, random) = (self.world.now(), self.world.random());
        let Some(entry) = self.names.get_mut(name) else { return };
        entry.state.ordering = false;
        if to == To::Staging {
            entry.schedule.tried(now);
            self.write_down(name);
            return;
        }
        entry.schedule.issued(issued.held.clone(), random, now);
        entry.is_granted = entry.is_own;
        entry.state.until = Some(issued.held.not_after);
        entry.state.fault = None;
        entry.state.issuer = Some(self.wishes.directory.clone());
        self.told.remove(name);
        let haste = "certificates are due as soon as they are issued: set the clock of this machine; if it is right, report it to the CA, whose renewal information is wrong; the pause between orders grows up to a day";
        let haste = entry.schedule.is_hasty().then(|| haste.to_owned());
        for note in issued.notes.iter().chain(&haste) {
            (self.say)(Level::Warn, &format!("acme: {name}: {note}"));
        }
        self.keep(name, format!("{}{}", issued.chain_pem, issued.key_pem).into_bytes());
    }

    /// Writes a new certificate; if the disk refuses, again a minute later. Returns the seconds until something is due.
    fn keep(&mut self, name: &str, pem: Vec<u8>) -> u64 {
        let saved = self.wishes.folder.save_certificate(name, &pem);
        let now = self.world.now();
        let Some(entry) = self.names.get_mut(name) else { return HOUR };
        match saved {
            Ok(()) => {
                let days = entry.state.until.unwrap_or_default().saturating_sub(now.wall) / DAY;
                (self.say)(
                    Level::Info,
                    &format!("acme: {name} has a new certificate, valid for {days} days"),
                );
                self.write_down(name);
                0
            }
            Err(error) => {
                entry.unsaved = Some((now.steady + MINUTE, pem));
                let path = self.wishes.folder.certificate(name);
                let text = format!(
                    "the new certificate cannot be written to {}: {error}; the old one serves until the disk has room and this user can write there",
                    path.display()
                );
                self.tell(Level::Error, name, &text);
                MINUTE
            }
        }
    }

    fn failed(&mut self, name: &str, fault: &Fault) {
        let now = self.world.now();
        let Some(entry) = self.names.get_mut(name) else { return };
        entry.schedule.failed(fault, now);
        entry.is_granted = entry.is_own;
        entry.state.ordering = false;
        entry.state.fault = Some(state::Fault { at: now.wall, text: fault.to_string() });
        let wait = entry.schedule.order_in(now).as_secs();
        let (is_own, is_served) = (entry.is_own, entry.is_valid(now.wall));
        let (level, serves) = match is_served {
            true => (Level::Warn, "the old certificate serves on"),
            false => (Level::Error, "clients get a self-signed certificate"),
        };
        let text = format!("{fault}; {serves}, and the next attempt is in {} min", wait.div_ceil(MINUTE));
        self.write_down(name);
        if !is_served && !is_own {
            // The next client that asks for it brings it back.
            self.names.remove(name);
        }
        // Numbers in the words of an authority change with each answer.
        self.tell_of(level, name, &format!("{:?} {:?}", fault.kind, fault.problem), &text);
    }

    fn ask_for_window(&mut self, name: &str, id: &str) {
        let mut asking = Asking::new(&self.wishes.directory, id);
        let (answer, retry_after) = loop {
            match asking.next() {
                Asked::Send(request) => {
                    let answer = self.world.send(&request);
                    if self.world.stops() {
                        return;
                    }
                    match answer {
                        Ok(response) => asking.answered(&response, self.world.now().wall),
                        Err(why) => asking.not_answered(&why),
                    }
                }
                Asked::Done(answer, retry_after) => break (answer, retry_after),
            }
        };
        if let Ok(Some(window)) = &answer
            && let Some(page) = &window.explanation
        {
            self.tell(Level::Info, name, &format!("the CA wants an earlier renewal: {page}"));
        }
        let now = self.world.now();
        if let Some(entry) = self.names.get_mut(name) {
            entry.schedule.window(answer, retry_after, now);
        }
        self.write_down(name);
    }

    // Files and lines.

    /// Saves the state of a name. A state that the disk refuses is saved at the next change.
    fn write_down(&mut self, name: &str) {
        if let Err(error) = self.save(name) {
            self.hold(&error);
        }
    }

    fn save(&mut self, name: &str) -> io::Result<()> {
        let now = self.world.now();
        let Some(entry) = self.names.get_mut(name) else { return Ok(()) };
        entry.state.schedule = serde_json::to_value(&entry.schedule)?;
        entry.state.next = Some(now.wall + entry.schedule.order_in(now).as_secs());
        self.wishes.folder.save_state(name, &entry.state)
    }

    /// Says a line about a name, and the same once a day.
    fn tell(&mut self, level: Level, name: &str, text: &str) {
        self.tell_of(level, name, text, text);
    }

    fn tell_of(&mut self, level: Level, name: &str, kind: &str, text: &str) {
        let now = self.world.now().steady;
        let is_known = |(at, known): &(u64, String)| known == kind && now < at + DAY;
        if self.told.get(name).is_some_and(is_known) {
            return;
        }
        self.told.retain(|_, (at, _)| now < *at + DAY);
        self.told.insert(name.to_owned(), (now, kind.to_owned()));
        let of = if name.is_empty() || text.starts_with(name) { String::new() } else { format!("{name}: ") };
        (self.say)(level, &format!("acme: {of}{text}"));
    }
}
