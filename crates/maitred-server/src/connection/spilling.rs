//! When a connection gives away what waits in memory for a slow reader; how that is done says `spill.rs`.

use std::sync::Arc;

use super::writer::Marks;
use super::{Connection, Group, Key};
use crate::group::slots::Token;
use crate::group::thread_registry::own_tid;
use crate::site::Site;
use crate::spill::{Lot, Part, Which, Written};

impl Connection {
    /// Whether the handler of a streamed response has to wait: more than the limit waits for the peer, or anything
    /// where writing is left to the handler's thread, or where all responses of an event loop hold too much together: its
    /// streams are not written to a disk.
    pub(super) fn is_writer_full(&self, group: &Group) -> bool {
        let Some(writer) = &self.writer else { return false };
        let (held, spilling) = (writer.held(), &group.site.spilling);
        let on_loop = || self.stream.as_ref().is_some_and(|stream| group.is_on_loop(stream.pool()));
        self.direct || held > spilling.memory() || (held > 0 && spilling.is_over() && on_loop())
    }

    /// Whether its handlers wait until the kernel has taken everything.
    pub(crate) fn is_direct(&self) -> bool {
        self.direct
    }

    /// The calling thread has given it something; what the application calls that.
    pub(crate) fn note_sender(&mut self, key: Key, label: Option<&Arc<str>>) {
        if let Some(writer) = self.writer_of(key) {
            writer.thread = own_tid();
            writer.label = label.cloned();
        }
    }

    /// Hands out what is in memory, so that it is written to a file; none if it cannot be, or not now.
    pub(crate) fn lend(&mut self, group: &Group, which: Which) -> Option<Lot> {
        let most = group.site.spilling.file();
        if self.is_dead() || self.direct || group.site.spooler.is_none() {
            return None;
        }
        self.writers().find_map(|writer| {
            writer.asked = false;
            writer.lend(which, most)
        })
    }

    /// What was lent is in a file now.
    pub(crate) fn exchange(&mut self, written: &Written) {
        self.writers().for_each(|writer| writer.exchange(written));
        self.tell();
    }

    /// What was lent stays in memory, and so does the rest of the response.
    pub(crate) fn take_back(&mut self, parts: &[Part]) {
        self.writers().for_each(|writer| writer.take_back(parts));
        self.tell();
    }

    /// The peer takes no more now. What is left is counted; if that makes all responses together hold too much, and no
    /// handler is there to do something about it, the spooler does.
    pub(super) fn note_waiting(&mut self, group: &Group, token: Token) {
        let Some(writer) = &mut self.writer else { return };
        writer.count(&group.site.spilling);
        if let Some(swift) = writer.is_swift()
            && swift != self.swift
        {
            // What the kernel holds for a slow reader is memory, too; a fast one would be woken up for too little.
            self.swift = swift;
            self.transport.set_send_ahead(!swift);
        }
        if !self.is_running() {
            self.relieve_later(group, token);
        }
    }

    /// All that a handler had to send is here.
    pub(super) fn relieve_later(&mut self, group: &Group, token: Token) {
        if group.site.spilling.is_over() && self.writers().any(|writer| writer.has_counted()) {
            self.spill_later(group, token, Which::Referenced);
        }
    }

    /// Has the spooler write to a file what waits in memory.
    pub(crate) fn spill_later(&mut self, group: &Group, token: Token, which: Which) {
        let Some(writer) = self.writers().find(|writer| !writer.asked) else { return };
        let (Some(spooler), Some(group)) = (&group.site.spooler, group.groups.find(group.number)) else {
            return;
        };
        let site = &group.site;
        site.spilling.ask();
        let own = Arc::clone(&group);
        writer.asked = spooler.run(move || {
            let _asked = Asked(&own);
            spill(&own, token, which);
        });
        if !writer.asked {
            drop(Asked(&group));
        }
    }
}

/// What the spooler is asked to write, until it has tried.
struct Asked<'a>(&'a Group);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.site.spilling.note_done();
        self.0.scheduler.go_on_held();
    }
}

/// Whether a writer that held `before` and holds `now` has passed the mark at which a handler that waits for room is told:
/// half of what makes it wait, so that it is not told for every byte, or nothing.
pub(super) fn has_made_room(site: &Site, before: Marks, now: Marks) -> bool {
    let (memory, file) = (site.spilling.memory() / 2, site.spilling.file() / 2);
    let is_empty = before.memory > 0 && now.memory == 0;
    is_empty || before.memory > memory && now.memory <= memory || before.file > file && now.file <= file
}

/// Writes what the connection holds to a file, on a thread that may wait for the disk. False when nothing has changed.
pub(crate) fn spill(group: &Group, token: Token, which: Which) -> bool {
    let lot = group.with_connection(token, |connection| connection.lend(group, which)).flatten();
    lot.is_some_and(|lot| write(group, token, lot))
}

/// The same with what has been lent already.
pub(crate) fn write(group: &Group, token: Token, lot: Lot) -> bool {
    let Some(spooler) = &group.site.spooler else { return false };
    // An event loop does not wait for a thread that waits for a disk.
    let turn = (!group.is_looped()).then(|| group.site.spilling.await_turn());
    let written = lot.write(spooler);
    drop(turn);
    match written {
        Ok(written) => {
            group.with_connection(token, |connection| connection.exchange(&written));
            true
        }
        Err(error) => {
            group.site.spilling.tell(&group.site.log, &error);
            group.with_connection(token, |connection| connection.take_back(&lot.parts));
            false
        }
    }
}
