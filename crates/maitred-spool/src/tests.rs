use std::io::Read;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use maitred_testkit::disk::{full, on_disk, standing_still};

use super::*;

/// Longer than anything here takes; reached only when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A body that is begun with `first`, and the calls of its wake.
fn begin(spooler: &Spooler, first: &[u8]) -> (Spool, Receiver<()>) {
    let (sender, woken) = mpsc::channel();
    let wake = Mutex::new(sender);
    let wake = move || {
        // The test may have seen enough.
        let _ = wake.lock().expect("not poisoned").send(());
    };
    (spooler.begin(first.to_vec(), None, &BodyMemory::new(0), wake), woken)
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

#[test]
fn bytes_come_back_in_order_however_they_came() {
    let spooler = Spooler::start(on_disk(), 1).expect("a thread");
    for (first, part, length) in [
        (0, 1000, 1000),
        (10, 64 * 1024, 64 * 1024),
        (0, CHUNK, CHUNK),
        (3 * CHUNK, 65_000, 1_000_000),
        (5, 3, 20_000),
        (7, 5 * CHUNK, 5 * CHUNK + 7),
    ] {
        let bytes = pattern(length.max(first));
        let (mut spool, woken) = begin(&spooler, &bytes[..first]);
        let wait = |spool: &mut Spool| {
            while let Progress::Waiting = spool.advance() {
                woken.recv_timeout(PATIENCE).expect("woken");
            }
        };
        for part in bytes[first..].chunks(part) {
            spool.push(part);
            wait(&mut spool);
        }
        spool.complete();
        wait(&mut spool);
        assert!(matches!(spool.advance(), Progress::Written));
        assert_eq!(spool.length(), bytes.len() as u64);
        assert_eq!(spool.take_body().to_vec().expect("readable"), bytes, "{first} {part} {length}");
    }
}

#[test]
fn with_two_threads_a_disk_that_stands_still_for_one_body_takes_another() {
    let (open, told, release) = standing_still();
    // The lock around making files is held as long as one is made: the second body has its file already.
    let spooler = Spooler::start(open, 2).expect("threads");
    let (mut first, _woken) = begin(&spooler, &pattern(CHUNK));
    first.complete();
    assert!(matches!(first.advance(), Progress::Waiting));
    told.recv_timeout(PATIENCE).expect("it stands still");
    let (done, hear) = mpsc::channel();
    assert!(spooler.run(move || done.send(()).expect("somebody hears")));
    hear.recv_timeout(PATIENCE).expect("the other thread does it");
    drop(release);
}

#[test]
fn while_a_chunk_waits_for_the_disk_one_more_is_taken_and_no_third() {
    let (open, told, release) = standing_still();
    let spooler = Spooler::start(open, 1).expect("a thread");
    let (mut spool, woken) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Open));
    told.recv_timeout(PATIENCE).expect("the chunk is being written");
    spool.push(&pattern(CHUNK - 1));
    assert!(matches!(spool.advance(), Progress::Open));
    spool.push(b"x");
    assert!(matches!(spool.advance(), Progress::Waiting));
    drop(release);
    woken.recv_timeout(PATIENCE).expect("the chunk is written");
    assert!(matches!(spool.advance(), Progress::Open));
}

#[test]
fn a_full_disk_is_told() {
    let spooler = Spooler::start(full(), 1).expect("a thread");
    let (mut spool, woken) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Open));
    woken.recv_timeout(PATIENCE).expect("woken");
    let Progress::Failed(error) = spool.advance() else { panic!("written to a full disk") };
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn the_file_of_a_body_that_ends_early_is_closed() {
    for chunk_is_written in [true, false] {
        let (mut there, here) = std::io::pipe().expect("a pipe");
        let mut here = Some(File::from(std::os::fd::OwnedFd::from(here)));
        let (wait, waited) = mpsc::channel::<()>();
        let open = move || {
            // Ends with an error, when the sender is gone.
            let _ = waited.recv();
            Ok(here.take().expect("opened once"))
        };
        let spooler = Spooler::start(Box::new(open), 1).expect("a thread");
        let (mut spool, woken) = begin(&spooler, b"abc");
        spool.complete();
        assert!(matches!(spool.advance(), Progress::Waiting));
        let mut wait = Some(wait);
        if chunk_is_written {
            wait = None;
            woken.recv_timeout(PATIENCE).expect("written");
        }
        drop(spool);
        drop(wait);
        // Ends when the file is closed; a chunk that the spooler has not taken yet is not written any more.
        let mut written = Vec::new();
        if chunk_is_written {
            there.read_to_end(&mut written).expect("closed");
            assert_eq!(written, b"abc");
        } else {
            drop(spooler);
            there.read_to_end(&mut written).expect("closed");
            assert!(written.is_empty() || written == b"abc");
        }
    }
}

#[test]
fn an_ended_spooler_takes_nothing_and_keeps_nothing() {
    let spooler = Spooler::start(on_disk(), 1).expect("a thread");
    spooler.end();
    let (mut spool, _) = begin(&spooler, &pattern(CHUNK));
    assert!(matches!(spool.advance(), Progress::Failed(_)));
}
