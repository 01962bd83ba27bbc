//! Decisions of a connection to move queued bytes of a slow reader from memory to files (`spill.rs` writes them).

use crate::connection::carrier::{Carrier, with_carrier};
use crate::connection::wire::Wire;
use maitred_exchange::{Lot, Site, Which};
use std::sync::Arc;

use super::{Connection, Group, Key};
use crate::group::slots::Token;
use crate::group::thread_registry::own_tid;
use maitred_exchange::spill::{Part, Written};
use maitred_exchange::writer::Marks;

/// Counts one request to the spooler; the drop ends the count after the attempt.
struct Asked<'a>(&'a Group);

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        self.0.site.spilling.note_done();
        self.0.scheduler.go_on_held();
    }
}

/// Whether the queue has fallen to the mark at which a waiting handler is told: half of the limit of memory or of
/// files, so that the handler is not told for every byte; or no bytes in memory.
pub(super) fn has_made_room(site: &Site, before: Marks, now: Marks) -> bool {
    let (memory, file) = (site.spilling.memory() / 2, site.spilling.file() / 2);
    let is_empty = before.memory > 0 && now.memory == 0;
    is_empty || before.memory > memory && now.memory <= memory || before.file > file && now.file <= file
}

/// Writes queued bytes to a file, on a thread that may wait for the disk. Returns false when nothing has changed.
pub(crate) fn spill(group: &Group, token: Token, which: Which) -> bool {
    let lot = group.with_connection(token, |connection| lend(connection, group, which)).flatten();
    lot.is_some_and(|lot| write(group, token, lot))
}

/// Writes bytes that have been lent already to a file. Returns false when nothing has changed.
pub(crate) fn write(group: &Group, token: Token, lot: Lot) -> bool {
    let Some(spooler) = &group.site.spooler else { return false };
    // A request of an event loop must not wait for a thread that waits for a disk.
    let turn = (!group.is_looped()).then(|| group.site.spilling.await_turn());
    let written = lot.write(spooler);
    drop(turn);
    match written {
        Ok(written) => {
            group.with_connection(token, |connection| {
                with_carrier!(connection, |carrier, wire| exchange(carrier, wire, &written));
            });
            true
        }
        Err(error) => {
            group.site.spilling.tell(&group.site.log, &error);
            group.with_connection(token, |connection| {
                with_carrier!(connection, |carrier, wire| take_back(carrier, wire, &lot.parts));
            });
            false
        }
    }
}

/// Counts the queued bytes of a peer that takes no more now. If all responses together hold too much, and no
/// handler of the connection is running, the spooler writes.
pub(super) fn note_waiting(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token) {
    let Some(writer) = &mut wire.writer else { return };
    writer.count(&group.site.spilling);
    if let Some(swift) = writer.is_swift()
        && swift != wire.swift
    {
        // The kernel's send buffer for a slow reader is memory, too; a fast reader with a small one would cause
        // wakes for few bytes.
        wire.swift = swift;
        wire.transport.set_send_ahead(!swift);
    }
    if !carrier.is_running() {
        relieve_later(carrier, wire, group, token);
    }
}

/// Asks the spooler to write if memory is short and the handler has sent everything.
pub(super) fn relieve_later(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token) {
    if group.site.spilling.is_over() && carrier.writers(wire).any(|writer| writer.has_counted()) {
        spill_later(carrier, wire, group, token, Which::Referenced);
    }
}

/// Asks the spooler to write the queued bytes to a file.
fn spill_later(carrier: &mut impl Carrier, wire: &mut Wire, group: &Group, token: Token, which: Which) {
    let Some(writer) = carrier.writers(wire).find(|writer| !writer.asked) else { return };
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

/// Notes the calling thread as the sender, and the application's label for the response.
pub(super) fn note_sender(carrier: &mut impl Carrier, wire: &mut Wire, key: Key, label: Option<&Arc<str>>) {
    if let Some(writer) = carrier.writer_of(wire, key) {
        writer.thread = own_tid();
        writer.label = label.cloned();
    }
}

/// Lends queued bytes for writing to a file; none if that is impossible, or impossible now.
pub(super) fn lend(connection: &mut Connection, group: &Group, which: Which) -> Option<Lot> {
    let most = group.site.spilling.file();
    with_carrier!(connection, |carrier, wire| {
        if wire.is_dead() || wire.direct || group.site.spooler.is_none() {
            return None;
        }
        carrier.writers(wire).find_map(|writer| {
            writer.asked = false;
            writer.lend(which, most)
        })
    })
}

/// Replaces lent bytes by the file that holds them now.
fn exchange(carrier: &mut impl Carrier, wire: &mut Wire, written: &Written) {
    carrier.writers(wire).for_each(|writer| writer.exchange(written));
    carrier.tell();
}

/// Takes back lent bytes that could not be written; the rest of the response stays in memory, too.
fn take_back(carrier: &mut impl Carrier, wire: &mut Wire, parts: &[Part]) {
    carrier.writers(wire).for_each(|writer| writer.take_back(parts));
    carrier.tell();
}
