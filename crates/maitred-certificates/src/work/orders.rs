//! An order: its account, its steps, its challenges, its end; and the question when a certificate is to be renewed.

use std::io;

use maitred_acme::{
    Account, Asked, Asking, Challenge, ChallengeKind, Fault, Issued, Order, Ordering, Settings, Step, To,
    staging_of,
};
use maitred_log::Level;

use super::{MINUTE, Running, Work};
use crate::state;
use crate::world::World;

/// Most steps of an order in one turn: others come next.
const MOST_STEPS: usize = 100;

impl<W: World> Work<W> {
    /// Removes the entries of the DNS that are still there: behind the end of an orderer, and before its own.
    pub(crate) fn remove_dns(&self) {
        let noted = self.wishes.folder.noted_dns();
        noted.iter().for_each(|(name, value)| self.remove_entry(name, value));
    }

    pub(super) fn begin(&mut self, name: &str, order: Order) -> Result<(), u64> {
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

    pub(super) fn step_all(&mut self) {
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

    pub(super) fn withdraw(&self, challenge: &Challenge) {
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
        // Numbers in the words of a CA change with each answer.
        self.tell_of(level, name, &format!("{:?} {:?}", fault.kind, fault.problem), &text);
    }

    pub(super) fn ask_for_window(&mut self, name: &str, id: &str) {
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
}
