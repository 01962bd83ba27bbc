//! All workers of a supervisor.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::backoff::{HEALTHY, Random};
use crate::exit::Exit;
use crate::recycle::{Beat, Limits, Reason, Wear};
use crate::restarts::{Cause, Restarts};
use crate::slot::{Member, Phase, Slot, WorkerId, WorkerView};

/// The settings of a crew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many workers there are, at least one.
    pub workers: usize,
    /// Time from the start of a worker until it is ready; then it is killed.
    pub start_timeout: Duration,
    /// Time from the request to end until the end; then it is killed.
    pub stop_timeout: Duration,
    /// Time without a worker that serves; then clients are told ([`Action::StandIn`]).
    pub unavailable_after: Duration,
    /// When workers are replaced.
    pub limits: Limits,
    /// Any number, so that waits and limits of several crews differ.
    pub seed: u64,
    /// A developer works on the application: one that cannot start does not end the crew, since its next version may
    /// start.
    pub development: bool,
}

/// How much an entry of the log means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Something was lost, or does not work.
    Error,
    /// Something is not as it should be.
    Warning,
    /// Information for the operator.
    Info,
}

/// An action for the caller, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A process is to be started.
    Start {
        /// The worker.
        worker: WorkerId,
        /// The number of its place, from 1 on.
        number: usize,
    },
    /// The process is to be asked to end: SIGTERM.
    Stop(WorkerId),
    /// SIGKILL.
    Kill(WorkerId),
    /// Whether the supervisor itself answers clients while no worker serves.
    StandIn(bool),
    /// All workers are ready for the first time.
    Ready,
    /// An entry for the log.
    Say(Level, String),
    /// No worker is left; the exit code.
    End(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// The exit code if all goes well.
    Ending(u8),
    Ended,
}

/// See the text of the crate.
pub struct Crew {
    settings: Settings,
    slots: Vec<Slot>,
    /// How many of them are wanted; those behind are left by their processes.
    wanted: usize,
    /// Slots that are yet to be replaced, as indices.
    rolling: VecDeque<usize>,
    /// An operator waits for the end of that.
    replaces: bool,
    state: State,
    was_ready: bool,
    /// [`Action::Ready`] has been returned.
    announced: bool,
    /// The time since which no worker serves; none while one does.
    idle_since: Option<Instant>,
    stands_in: bool,
    restarts: Restarts,
    next: u64,
    random: Random,
    actions: VecDeque<Action>,
}

impl Crew {
    /// A crew that begins: its workers are to be started.
    pub fn new(settings: Settings, now: Instant) -> Self {
        let wanted = settings.workers.max(1);
        let mut crew = Self {
            settings,
            slots: Vec::new(),
            wanted,
            rolling: VecDeque::new(),
            replaces: false,
            state: State::Running,
            was_ready: false,
            announced: false,
            idle_since: Some(now),
            stands_in: false,
            restarts: Restarts::default(),
            next: 1,
            random: Random::new(settings.seed),
            actions: VecDeque::new(),
        };
        crew.fill(now);
        crew
    }

    /// The next action; `None` when there is no more for now.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let of_slots = self.slots.iter().flat_map(|slot| {
            let members = slot.members().filter_map(|member| self.deadline(member));
            let lifetime = slot.current.iter().filter_map(|member| member.wear.ends_at());
            let silence = slot.current.iter().filter(|member| member.phase == Phase::Serving);
            let silence = silence.filter_map(|member| member.wear.silent_at());
            members.chain(slot.start_at).chain(lifetime).chain(silence)
        });
        let stand_in = self
            .idle_since
            .filter(|_| self.may_stand_in())
            .map(|since| since + self.settings.unavailable_after);
        of_slots.chain(stand_in).min()
    }

    /// All processes, by number.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> + '_ {
        self.slots.iter().zip(1..).flat_map(|(slot, number)| {
            slot.members().map(move |&Member { id, phase, since, .. }| WorkerView {
                number,
                id,
                phase,
                since,
            })
        })
    }

    /// How many workers are wanted.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    /// Whether it has been asked to end.
    pub fn is_ending(&self) -> bool {
        self.state != State::Running
    }

    /// Whether workers are still to be replaced that an operator has had replaced, and no successor was refused.
    pub fn is_replacing(&self) -> bool {
        self.replaces
            && (!self.rolling.is_empty() || !self.slots.iter().take(self.wanted).all(Slot::is_settled))
    }

    /// Processes that have ended without being asked, of all workers.
    pub fn failures(&self) -> u64 {
        self.slots.iter().map(|slot| slot.failures).sum()
    }

    /// How often a worker was started in the place of another one, by reason; of a reason that has not been met 0.
    pub fn restarts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.restarts.all()
    }

    // ---- Events ----

    /// The worker serves.
    pub fn handle_ready(&mut self, worker: WorkerId, now: Instant) {
        let Some(index) = self.find(worker) else { return };
        let slot = &mut self.slots[index];
        let is_successor = slot.successor.as_ref().is_some_and(|member| member.id == worker);
        if is_successor
            && let Some(successor) = slot.successor.take()
            && let Some(old) = slot.current.replace(successor)
        {
            let cause = slot.cause.take().unwrap_or(Cause::Reload);
            self.restarts.add(cause);
            self.dismiss(index, old, now);
        }
        let slot = &mut self.slots[index];
        let Some(current) = slot.current.as_mut().filter(|member| member.id == worker) else { return };
        if current.phase != Phase::Starting {
            return;
        }
        (current.phase, current.since) = (Phase::Serving, now);
        current.wear.heard(now);
        self.was_ready = true;
        self.say(Level::Info, format!("worker {} is ready", index + 1));
        self.roll(now);
        self.look(now);
    }

    /// The process has ended, or could not be started; `cause` is its own account of that.
    pub fn handle_exit(&mut self, worker: WorkerId, exit: Exit, cause: Option<&str>, now: Instant) {
        let Some(index) = self.find(worker) else { return };
        let number = index + 1;
        let is_this = |member: &mut Member| member.id == worker;
        let slot = &mut self.slots[index];
        if let Some(successor) = slot.successor.take_if(is_this) {
            let why = why(&successor, exit, cause, self.settings.start_timeout);
            self.refuse(index, &format!("the successor of worker {number} {why}"), now);
        } else if let Some(at) = slot.leaving.iter().position(|member| member.id == worker) {
            let left = slot.leaving.swap_remove(at);
            self.note_left(number, &left, exit);
        } else if let Some(mut current) = slot.current.take_if(is_this) {
            let why = why(&current, exit, cause, self.settings.start_timeout);
            let served = current.phase == Phase::Serving;
            if served && now.saturating_duration_since(current.since) >= HEALTHY {
                slot.backoff.reset();
            }
            slot.failures += 1;
            slot.worn = None;
            // Its successor starts already, in its place from now on.
            current = match slot.successor.take() {
                Some(successor) => {
                    slot.current = Some(successor);
                    self.restarts.add(Cause::Exit);
                    self.say(Level::Error, format!("worker {number} {why}; its successor starts already"));
                    return self.look(now);
                }
                None => current,
            };
            self.restart(index, &current, &why, exit, now);
        }
        self.look(now);
    }

    /// A worker says how it is.
    pub fn handle_beat(&mut self, worker: WorkerId, beat: Beat, now: Instant) {
        let Some(index) = self.find(worker) else { return };
        let slot = &mut self.slots[index];
        let Some(current) = slot.current.as_mut().filter(|member| member.id == worker) else { return };
        let is_free = slot.worn.is_none() && slot.successor.is_none() && slot.start_at.is_none();
        let worn = current.wear.beat(beat, now).filter(|_| is_free);
        if let Some(reason) = worn {
            self.wear_out(index, reason);
        }
        self.look(now);
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut kills = Vec::new();
        for slot in &self.slots {
            let late = slot.members().filter(|member| self.deadline(member).is_some_and(|at| at <= now));
            kills.extend(late.map(|member| member.id));
        }
        for slot in &mut self.slots {
            let late = slot.members_mut().filter(|member| kills.contains(&member.id));
            late.for_each(|member| member.killed = true);
        }
        self.actions.extend(kills.into_iter().map(Action::Kill));
        for index in 0..self.slots.len() {
            let slot = &mut self.slots[index];
            if slot.start_at.is_some_and(|at| at <= now) {
                slot.start_at = None;
                self.start(index, now);
            }
            let slot = &mut self.slots[index];
            let old =
                slot.current.as_mut().filter(|member| member.wear.ends_at().is_some_and(|at| at <= now));
            if let Some(old) = old {
                old.wear.spend();
                if slot.successor.is_none() {
                    self.wear_out(index, Reason::Lifetime);
                }
            }
            let slot = &mut self.slots[index];
            let current = slot.current.as_mut().filter(|member| member.phase == Phase::Serving);
            if let Some(reason) = current.and_then(|member| member.wear.silence(now))
                && slot.worn.is_none()
                && slot.successor.is_none()
            {
                self.wear_out(index, reason);
            }
        }
        self.look(now);
    }

    // ---- Requests of an operator ----

    /// Replaces all workers, one after the other: a successor is ready before the worker is asked to end. Successors that were started before and
    /// are not ready are given up.
    pub fn replace_all(&mut self, now: Instant) {
        if self.state != State::Running {
            return;
        }
        // A successor that is not ready yet has been started with the former settings.
        for index in 0..self.slots.len() {
            if let Some(successor) = self.slots[index].successor.take() {
                let text = format!("the successor of worker {} is given up: a newer one starts", index + 1);
                self.say(Level::Info, text);
                self.dismiss(index, successor, now);
            }
        }
        self.rolling = (0..self.wanted).collect();
        self.replaces = true;
        self.roll(now);
        self.look(now);
    }

    /// Replaces all workers at once: each is asked to end, and its successor starts without waiting for that. Requests that no worker has taken wait
    /// for the successors.
    pub fn replace_now(&mut self, now: Instant) {
        if self.state != State::Running {
            return;
        }
        self.rolling.clear();
        self.replaces = false;
        for index in 0..self.slots.len() {
            if self.slots[index].current.is_some() {
                self.restarts.add(Cause::Reload);
            }
            self.dismiss_all(index, now);
            self.slots[index].backoff.reset();
        }
        self.fill(now);
        self.look(now);
    }

    /// Changes the number of workers, at least one.
    pub fn set_count(&mut self, workers: usize, now: Instant) {
        if self.state != State::Running {
            return;
        }
        self.wanted = workers.max(1);
        self.rolling.retain(|index| *index < workers);
        for index in self.wanted..self.slots.len() {
            self.dismiss_all(index, now);
        }
        self.fill(now);
        self.look(now);
    }

    /// Replaces the settings, for workers that are started later. The number of workers is [`set_count`](Self::set_count)'s.
    pub fn set(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Ends all workers; then [`Action::End`] comes. `code` is the exit code if each of them ends as it should.
    pub fn stop(&mut self, code: u8, now: Instant) {
        if self.state != State::Running {
            return;
        }
        self.state = State::Ending(code);
        self.rolling.clear();
        (0..self.slots.len()).for_each(|index| self.dismiss_all(index, now));
        self.look(now);
    }

    /// Asks all that are left once more, which ends them at once; a worker that does not end is killed after `grace`.
    pub fn stop_at_once(&mut self, code: u8, grace: Duration, now: Instant) {
        self.stop(code, now);
        if let State::Ending(present) = &mut self.state {
            *present = code;
        }
        self.settings.stop_timeout = grace;
        for member in self.slots.iter_mut().flat_map(Slot::members_mut) {
            member.since = now;
            self.actions.push_back(Action::Stop(member.id));
        }
    }

    // ---- Parts ----

    fn find(&self, worker: WorkerId) -> Option<usize> {
        self.slots.iter().position(|slot| slot.members().any(|member| member.id == worker))
    }

    fn say(&mut self, level: Level, text: String) {
        self.actions.push_back(Action::Say(level, text));
    }

    /// When a process is killed.
    fn deadline(&self, member: &Member) -> Option<Instant> {
        let limit = match member.phase {
            _ if member.killed => return None,
            Phase::Starting => self.settings.start_timeout,
            Phase::Stopping => self.settings.stop_timeout,
            Phase::Serving => return None,
        };
        (!limit.is_zero()).then(|| member.since + limit)
    }

    /// Has all wanted places a worker that is there or planned.
    fn fill(&mut self, now: Instant) {
        while self.slots.len() < self.wanted {
            self.slots.push(Slot::default());
        }
        for index in 0..self.wanted {
            if self.slots[index].current.is_none() && self.slots[index].start_at.is_none() {
                self.start(index, now);
            }
        }
    }

    /// Starts a process: for the place, or, where it is taken, as a successor.
    fn start(&mut self, index: usize, now: Instant) {
        if self.state != State::Running || index >= self.wanted {
            return;
        }
        let worker = WorkerId(self.next);
        let wear = Wear::new(self.settings.limits, &mut self.random, now);
        let member = Member {
            id: worker,
            phase: Phase::Starting,
            since: now,
            wear,
            killed: false,
            late: false,
            unserved: false,
        };
        let slot = &mut self.slots[index];
        let place = if slot.current.is_none() { &mut slot.current } else { &mut slot.successor };
        if place.is_some() {
            return;
        }
        *place = Some(member);
        slot.worn = None;
        self.next += 1;
        self.actions.push_back(Action::Start { worker, number: index + 1 });
    }

    /// A process of a place is asked to end.
    fn dismiss(&mut self, index: usize, mut member: Member, now: Instant) {
        let was_asked = member.phase == Phase::Stopping;
        if !was_asked {
            member.late = member.killed;
            member.unserved = member.phase == Phase::Starting;
            (member.phase, member.since) = (Phase::Stopping, now);
            self.actions.push_back(Action::Stop(member.id));
        }
        self.slots[index].leaving.push(member);
    }

    fn dismiss_all(&mut self, index: usize, now: Instant) {
        let slot = &mut self.slots[index];
        slot.start_at = None;
        for member in [slot.current.take(), slot.successor.take()].into_iter().flatten() {
            self.dismiss(index, member, now);
        }
    }

    fn wear_out(&mut self, index: usize, reason: Reason) {
        self.say(Level::Info, format!("worker {} {reason}: it is replaced", index + 1));
        self.slots[index].worn = Some(reason);
    }

    /// Goes on with a replacement of all, or with that of a worker that has had enough: one at a time.
    fn roll(&mut self, now: Instant) {
        if self.state != State::Running || self.slots.iter().any(|slot| slot.successor.is_some()) {
            return;
        }
        if let Some(index) = self.rolling.pop_front() {
            (self.slots[index].start_at, self.slots[index].cause) = (None, Some(Cause::Reload));
            self.start(index, now);
            return;
        }
        let worn = self.slots.iter().position(|slot| slot.worn.is_some() && slot.start_at.is_none());
        if let Some(index) = worn.filter(|index| *index < self.wanted) {
            self.slots[index].cause = self.slots[index].worn.map(Cause::from);
            self.start(index, now);
        }
    }

    /// A successor could not start: the present workers serve on.
    fn refuse(&mut self, index: usize, what: &str, now: Instant) {
        let was_rolling = !std::mem::take(&mut self.rolling).is_empty();
        self.replaces = false;
        let rest = if was_rolling {
            "; the workers that are not replaced yet serve on"
        } else {
            "; the worker serves on"
        };
        self.say(Level::Error, format!("{what}{rest}"));
        let random = self.random.next();
        let slot = &mut self.slots[index];
        // A spent worker is replaced later; an operator's request is not repeated.
        let wait = slot.backoff.fail(random).max(Duration::from_secs(1));
        if slot.current.as_ref().is_some_and(|current| current.wear.is_spent()) {
            slot.start_at = Some(now + wait);
        }
    }

    fn note_left(&mut self, number: usize, left: &Member, exit: Exit) {
        // SIGTERM ends a process that does not handle it yet, and no request is lost by that.
        if left.unserved && !left.killed {
            return;
        }
        if let State::Ending(code) = &mut self.state
            && !exit.is_as_asked()
            && *code == 0
        {
            *code = 1;
        }
        if left.late {
            let why = not_ready(self.settings.start_timeout);
            self.say(Level::Error, format!("worker {number} {why}"));
        } else if left.killed {
            let seconds = self.settings.stop_timeout.as_secs_f64();
            self.say(Level::Error, format!("worker {number} did not end within {seconds} s and was killed"));
        } else if !exit.is_as_asked() {
            self.say(Level::Warning, format!("worker {number}, asked to end, {exit}"));
        }
    }

    /// The worker of a place has ended by itself: the next attempt, or the end of all.
    fn restart(&mut self, index: usize, ended: &Member, why: &str, exit: Exit, now: Instant) {
        let number = index + 1;
        if !self.was_ready && ended.phase == Phase::Starting && !self.settings.development {
            self.say(
                Level::Error,
                format!("worker {number} {why}; no worker could start, so the server ends"),
            );
            let code = match exit {
                Exit::Code(code @ 1..) => code,
                Exit::Code(0) | Exit::Signal(_) => 1,
            };
            return self.stop(code, now);
        }
        if self.settings.development && ended.phase == Phase::Starting {
            return self.say(Level::Error, format!("worker {number} {why}; the next change starts it again"));
        }
        self.restarts.add(if ended.phase == Phase::Starting { Cause::Start } else { Cause::Exit });
        let random = self.random.next();
        let slot = &mut self.slots[index];
        let wait = slot.backoff.fail(random);
        slot.start_at = Some(now + wait);
        let when =
            if wait.is_zero() { "at once".to_owned() } else { format!("in {:.1} s", wait.as_secs_f64()) };
        self.say(Level::Error, format!("worker {number} {why}; it is started again {when}"));
        if wait.is_zero() {
            self.slots[index].start_at = None;
            self.start(index, now);
        }
    }

    fn may_stand_in(&self) -> bool {
        // The developer who has changed the code waits for it.
        let waits = self.settings.development && self.slots.iter().any(|slot| slot.current.is_some());
        let is_due = self.was_ready || self.settings.development;
        self.state == State::Running && is_due && !waits && !self.stands_in
    }

    fn look(&mut self, now: Instant) {
        self.roll(now);
        while self.slots.len() > self.wanted && self.slots.last().is_some_and(Slot::is_empty) {
            self.slots.pop();
        }
        let serves = self.slots.iter().any(Slot::serves);
        self.idle_since = if serves { None } else { self.idle_since.or(Some(now)) };
        let is_late = |since| now.saturating_duration_since(since) >= self.settings.unavailable_after;
        if self.stands_in && (serves || self.state != State::Running) {
            self.stands_in = false;
            self.actions.push_back(Action::StandIn(false));
        } else if self.may_stand_in() && self.idle_since.is_some_and(is_late) {
            self.stands_in = true;
            self.actions.push_back(Action::StandIn(true));
        }
        let is_settled = |slot: &Slot| slot.successor.is_none() && slot.leaving.is_empty();
        let is_done = self.rolling.is_empty() && self.slots.iter().all(is_settled);
        if self.replaces && is_done && self.slots.iter().take(self.wanted).all(Slot::serves) {
            self.replaces = false;
            self.say(Level::Info, "all workers are replaced".to_owned());
        }
        if !self.announced && self.slots.iter().take(self.wanted).all(Slot::serves) {
            self.announced = true;
            self.actions.push_back(Action::Ready);
        }
        if let State::Ending(code) = self.state
            && self.slots.iter().all(Slot::is_empty)
        {
            self.state = State::Ended;
            self.actions.push_back(Action::End(code));
        }
    }
}

fn why(member: &Member, exit: Exit, cause: Option<&str>, start_timeout: Duration) -> String {
    match (member.phase, cause) {
        (Phase::Starting, _) if member.killed => not_ready(start_timeout),
        (Phase::Starting, Some(cause)) => format!("could not start: {cause}"),
        (Phase::Starting, None) => format!("{exit} before it was ready"),
        (_, Some(cause)) => format!("{exit}: {cause}"),
        (_, None) => exit.to_string(),
    }
}

fn not_ready(start_timeout: Duration) -> String {
    format!("was not ready within {} s (start-timeout) and was killed", start_timeout.as_secs_f64())
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
