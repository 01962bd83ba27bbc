use std::io::{Read, Write};

use super::*;
use crate::writer::Writer;
use maitred_spool::Open;

fn spooler(open: impl FnMut() -> io::Result<File> + Send + 'static) -> Spooler {
    let open: Open = Box::new(open);
    Spooler::start(open, 1).expect("a thread")
}

fn on_disk() -> io::Result<File> {
    tempfile::tempfile()
}

/// Room for everything.
const NO_LIMIT: u64 = u64::MAX;

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|position| (position * 7 % 251) as u8).collect()
}

/// The content of a writer, in order, from memory and files.
fn content(writer: &Writer) -> Vec<u8> {
    let mut all = Vec::new();
    for (content, done) in writer.contents() {
        match content {
            Content::File(range) => {
                let mut part = vec![0; (range.length - done) as usize];
                range.file.read_exact_at(&mut part, range.offset + done).expect("in the file");
                all.append(&mut part);
            }
            memory => all.extend_from_slice(&memory.bytes().expect("memory")[done as usize..]),
        }
    }
    all
}

#[test]
fn an_object_counts_once_however_often_it_is_referred_to() {
    let spilling = Spilling::new(WriterSettings { budget: 150_000, ..WriterSettings::default() });
    let shared = Content::Shared(vec![0; 100_000].into());
    let first = spilling.count(&shared).expect("counted");
    let second = spilling.count(&shared.clone()).expect("counted");
    assert!(!spilling.is_over() && !first.is_only());
    let other = spilling.count(&Content::Bytes(vec![0; 100_000])).expect("counted");
    assert!(spilling.is_over() && other.is_only());
    drop((first, other));
    assert!(!spilling.is_over() && second.is_only());
    drop(second);
    assert_eq!(spilling.referenced.total.load(Ordering::Relaxed), 0);
    for small in [Content::Static(&[0; 100_000]), Content::Bytes(vec![0; MIN_COUNTED as usize])] {
        assert!(spilling.count(&small).is_none());
    }
}

#[test]
fn what_is_lent_is_found_again_in_its_place_in_the_file() {
    let spooler = spooler(on_disk);
    let (mut writer, all) = (Writer::default(), pattern(200_000));
    for part in all.chunks(30_000) {
        writer.push(part.to_vec().into(), 0);
    }
    let marks = writer.marks();
    let lot = writer.lend(Which::All, NO_LIMIT).expect("something");
    assert!(writer.lend(Which::All, NO_LIMIT).is_none(), "nothing is lent twice");
    // Meanwhile more has come, and some has left: a part whole, another one half.
    writer.push(b"behind".to_vec().into(), 0);
    writer.advance(45_000);
    writer.exchange(&lot.write(&spooler).expect("room"));
    let rest = [&all[45_000..], b"behind"].concat();
    assert!(content(&writer) == rest, "in its order");
    assert_eq!((writer.marks().memory, writer.marks().file), (6, marks.memory - 45_000));
    assert_eq!(writer.contents().count(), 2, "one range of the file, and what came later");
    // The next lot goes behind the first, into the same file.
    let lot = writer.lend(Which::All, NO_LIMIT).expect("what came later");
    writer.exchange(&lot.write(&spooler).expect("room"));
    assert!(content(&writer) == rest && writer.contents().count() == 1);
    assert_eq!(writer.marks().memory, 0);
}

#[test]
fn a_response_has_no_more_in_files_than_it_may() {
    let mut writer = Writer::default();
    writer.push(pattern(100_000).into(), 0);
    assert!(writer.lend(Which::All, 99_999).is_none());
    let lot = writer.lend(Which::All, 100_000).expect("as much as it may");
    writer.exchange(&lot.write(&spooler(on_disk)).expect("room"));
    writer.push(pattern(1).into(), 0);
    assert!(writer.lend(Which::All, 100_000).is_none());
    writer.advance(1);
    assert!(writer.lend(Which::All, 100_000).is_some());
}

#[test]
fn what_a_full_disk_does_not_take_stays_in_memory() {
    let mut writer = Writer::default();
    writer.push(pattern(100_000).into(), 0);
    let lot = writer.lend(Which::All, NO_LIMIT).expect("something");
    let error = lot.write(&spooler(|| File::options().write(true).open("/dev/full"))).err().expect("full");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    writer.take_back(&lot.parts);
    assert!(content(&writer) == pattern(100_000));
    assert!(writer.lend(Which::All, NO_LIMIT).is_none(), "it is not tried again for this response");
    assert!(writer.clear());
    writer.push(pattern(1).into(), 0);
    assert!(writer.lend(Which::All, NO_LIMIT).is_some(), "but for the next one");
}

#[test]
fn the_file_is_closed_by_the_spooler_when_its_last_byte_has_left() {
    let (mut there, here) = std::io::pipe().expect("a pipe");
    let close: CloseFile = Arc::new(move |file| {
        // Ends what is read below.
        drop(file);
        (&here).write_all(b"closed").expect("read");
    });
    let mut writer = Writer::default();
    writer.push(pattern(50_000).into(), 0);
    let lot = writer.lend(Which::All, NO_LIMIT).expect("something");
    let spilled = Arc::new(Spilled::new(on_disk().expect("a file"), close));
    spilled.busy.store(false, Ordering::Relaxed);
    let lot = Lot { file: Some(spilled), ..lot };
    writer.exchange(&lot.write(&spooler(|| panic!("there is one"))).expect("room"));
    drop(lot);
    writer.advance(50_000);
    let mut text = [0; 6];
    there.read_exact(&mut text).expect("closed");
    assert_eq!(&text, b"closed");
}
