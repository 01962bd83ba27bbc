//! Files and lines of an orderer.

use std::io;

use maitred_log::Level;

use super::{HOUR, MINUTE, Work};
use crate::world::World;

/// Time between two lines about the same fault.
const DAY: u64 = 24 * HOUR;

impl<W: World> Work<W> {
    /// Begins no order for some time, as the folder cannot be written. Returns the seconds.
    pub(super) fn hold(&mut self, error: &io::Error) -> u64 {
        let wait = 10 * MINUTE;
        self.held_until = self.world.now().steady + wait;
        let text = format!(
            "the folder {} cannot be used: {error}; no certificate is ordered until this user can write there and the disk has room",
            self.wishes.folder.path().display()
        );
        self.tell(Level::Error, "", &text);
        wait
    }

    /// Writes a new certificate; if the disk refuses, again a minute later. Returns the seconds until something is due.
    pub(super) fn keep(&mut self, name: &str, pem: Vec<u8>) -> u64 {
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

    /// Saves the state of a name. A state that the disk refuses is saved at the next change.
    pub(super) fn write_down(&mut self, name: &str) {
        if let Err(error) = self.save(name) {
            self.hold(&error);
        }
    }

    pub(super) fn save(&mut self, name: &str) -> io::Result<()> {
        let now = self.world.now();
        let Some(entry) = self.names.get_mut(name) else { return Ok(()) };
        entry.state.schedule = serde_json::to_value(&entry.schedule)?;
        entry.state.next = Some(now.wall + entry.schedule.order_in(now).as_secs());
        self.wishes.folder.save_state(name, &entry.state)
    }

    /// Says a line about a name, and the same once a day.
    pub(super) fn tell(&mut self, level: Level, name: &str, text: &str) {
        self.tell_of(level, name, text, text);
    }

    pub(super) fn tell_of(&mut self, level: Level, name: &str, kind: &str, text: &str) {
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
