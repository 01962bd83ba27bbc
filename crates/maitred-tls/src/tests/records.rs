//! Records after a complete handshake.

use std::io::{self, IoSlice, Read as _, Write as _};

use proptest::prelude::*;

use super::kit::{Authority, Client, Met, Wanted, meet, pump, settings, unsent};
use crate::{FULL_RECORD, Read, Reason, SMALL_RECORD, SessionError, Terms, Version};

fn met() -> Met {
    met_with(Version::V1_3)
}

fn met_with(version: Version) -> Met {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    meet(&terms, &Client { version: Some(version), ..Client::trusting(&authority) }.config(), "shop.example")
        .expect()
}

/// The bytes that the client has to send.
fn of_client(met: &mut Met) -> Vec<u8> {
    let mut bytes = Vec::new();
    while met.client.wants_write() {
        met.client.write_tls(&mut bytes).expect("memory");
    }
    bytes
}

fn received(met: &mut Met, bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut plain) = (bytes, Vec::new());
    while !rest.is_empty() {
        met.client.read_tls(&mut rest).expect("memory");
        let state = met.client.process_new_packets().expect("records");
        let before = plain.len();
        plain.resize(before + state.plaintext_bytes_to_read(), 0);
        met.client.reader().read_exact(&mut plain[before..]).expect("plaintext");
    }
    plain
}

/// The lengths of the records, heads included.
fn records(mut bytes: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, ..] = bytes {
        let length = 5 + usize::from(*high) * 256 + usize::from(*low);
        lengths.push(length);
        bytes = &bytes[length..];
    }
    assert!(bytes.is_empty());
    lengths
}

#[test]
fn bytes_go_both_ways() {
    for version in [Version::V1_2, Version::V1_3] {
        let mut met = met_with(version);
        met.client.writer().write_all(b"question").expect("memory");
        pump(&mut met);
        assert!(met.server.has_plaintext());
        let mut buffer = [0; 5];
        assert_eq!(met.server.read(&mut buffer), Read::Bytes(5));
        assert_eq!(&buffer, b"quest");
        let mut more = b"was: ".to_vec();
        assert_eq!(met.server.read_more(&mut more, 100), Read::Bytes(3));
        assert_eq!(more, b"was: ion");
        assert!(!met.server.has_plaintext());
        assert_eq!(met.server.read_more(&mut more, 100), Read::Nothing);
        let parts = [IoSlice::new(b"ans"), IoSlice::new(b""), IoSlice::new(b"wer")];
        assert_eq!(met.server.write(&parts, FULL_RECORD), 6);
        let bytes = unsent(&mut met.server);
        assert_eq!(records(&bytes).len(), 1, "joined");
        assert_eq!(received(&mut met, &bytes), b"answer");
    }
}

#[test]
fn nothing_is_written_before_the_handshake_is_complete() {
    let authority = Authority::new("Tests");
    let terms = Terms::new(settings(vec![authority.identity(&Wanted::default())])).expect("terms");
    let mut session = crate::Session::new(&terms).expect("a session");
    assert_eq!(session.write(&[IoSlice::new(b"early")], FULL_RECORD), 0);
    assert!(!session.has_unsent());
}

#[test]
fn small_records_fit_into_packets_and_full_ones_are_full() {
    for (version, overhead) in [(Version::V1_2, 29), (Version::V1_3, 22)] {
        let mut met = met_with(version);
        let body = vec![b'x'; 40_000];
        assert_eq!(met.server.write(&[IoSlice::new(&body[..5_000])], SMALL_RECORD), 5_000);
        let small = records(&unsent(&mut met.server));
        assert!(small.iter().all(|length| *length <= SMALL_RECORD), "{small:?}");
        assert_eq!(small.len(), 5_000_usize.div_ceil(SMALL_RECORD - 29));
        assert_eq!(
            met.server.write(&[IoSlice::new(&body[..20_000]), IoSlice::new(&body[20_000..])], FULL_RECORD),
            40_000
        );
        let full = records(&unsent(&mut met.server));
        assert_eq!(full, [16_384 + overhead, 16_384 + overhead, 40_000 - 32_768 + overhead]);
    }
}

#[test]
fn unsent_bytes_have_a_limit() {
    let mut met = met();
    let body = vec![b'x'; 100_000];
    let mut taken = 0;
    while taken < body.len() {
        let more = met.server.write(&[IoSlice::new(&body[taken..])], FULL_RECORD);
        if more == 0 {
            break;
        }
        taken += more;
    }
    assert!((60_000..=65_536).contains(&taken), "{taken}");
    assert_eq!(met.server.write(&[IoSlice::new(b"x")], SMALL_RECORD), 0);
    let count = met.server.unsent();
    let bytes = unsent(&mut met.server);
    assert_eq!((bytes.len(), met.server.unsent()), (count, 0));
    assert_eq!(received(&mut met, &bytes), body[..taken]);
    assert!(met.server.write(&[IoSlice::new(b"x")], SMALL_RECORD) == 1);
}

#[test]
fn a_socket_that_takes_little_gets_the_rest_later() {
    let mut met = met();
    met.server.write(&[IoSlice::new(&[b'x'; 3_000])], SMALL_RECORD);
    let mut sent = Vec::new();
    let mut calls = 0;
    while met.server.has_unsent() {
        // It takes 1,000 bytes, then nothing.
        let mut takes = [1_000, 0].into_iter();
        let taken = met.server.send_unsent(&mut |parts| {
            calls += 1;
            match takes.next() {
                Some(0) | None => Err(io::ErrorKind::WouldBlock.into()),
                Some(most) => {
                    let all: Vec<u8> = parts.iter().flat_map(|part| part.to_vec()).collect();
                    let taken = all.len().min(most);
                    sent.extend_from_slice(&all[..taken]);
                    Ok(taken)
                }
            }
        });
        assert!(taken.is_ok_and(|taken| taken > 0));
    }
    assert!(calls >= 6);
    assert_eq!(received(&mut met, &sent), [b'x'; 3_000]);
    let error = met.server.write(&[IoSlice::new(b"x")], FULL_RECORD);
    assert_eq!(error, 1);
    let blocked = met.server.send_unsent(&mut |_| Err(io::ErrorKind::WouldBlock.into()));
    assert_eq!(blocked.expect_err("nothing was taken").kind(), io::ErrorKind::WouldBlock);
    assert_eq!(met.server.send_unsent(&mut |_| Ok(0)).expect("no error"), 0);
}

#[test]
fn waiting_plaintext_holds_back_further_bytes() {
    let mut met = met();
    met.client.set_buffer_limit(None);
    let body: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
    met.client.writer().write_all(&body).expect("memory");
    let bytes = of_client(&mut met);
    let (mut rest, mut plain) = (&bytes[..], Vec::new());
    let mut held_back = 0;
    while !rest.is_empty() {
        let taken = met.server.feed(rest).expect("records");
        rest = &rest[taken..];
        if !rest.is_empty() {
            held_back += 1;
            assert!(met.server.has_plaintext());
            assert_eq!(met.server.feed(rest), Ok(0));
        }
        while let Read::Bytes(count) = met.server.read_more(&mut plain, 10_000) {
            assert!(count <= 10_000);
        }
    }
    assert!(held_back >= 5, "{held_back}");
    assert_eq!(plain, body);
}

#[test]
fn an_end_that_was_said_is_told_from_one_that_was_cut() {
    let mut met = met();
    met.client.writer().write_all(b"last").expect("memory");
    let words = of_client(&mut met);
    met.server.feed(&words).expect("a record");
    met.server.feed_end();
    let mut buffer = [0; 10];
    assert_eq!(met.server.read(&mut buffer), Read::Bytes(4), "what came before the end is read");
    assert_eq!(met.server.read(&mut buffer), Read::Truncated);
    met.client.send_close_notify();
    let words = [of_client(&mut met), b"nonsense".to_vec()].concat();
    assert_eq!(met.server.feed(&words), Ok(words.len()), "what comes behind the end is dropped");
    assert_eq!(met.server.read(&mut buffer), Read::End);
    assert_eq!(met.server.read_more(&mut Vec::new(), 10), Read::End);
    assert_eq!(met.server.feed(b"more"), Ok(4));
    // We may still answer.
    assert_eq!(met.server.write(&[IoSlice::new(b"answer")], FULL_RECORD), 6);
}

#[test]
fn our_end_comes_behind_written_bytes() {
    let mut met = met();
    assert_eq!(met.server.write(&[IoSlice::new(b"answer")], FULL_RECORD), 6);
    met.server.close();
    met.server.close();
    assert_eq!(met.server.write(&[IoSlice::new(b"late")], FULL_RECORD), 0);
    let bytes = unsent(&mut met.server);
    assert_eq!(records(&bytes).len(), 2);
    assert_eq!(received(&mut met, &bytes), b"answer");
    assert_eq!(met.client.reader().read(&mut [0; 10]).expect("the end"), 0);
    // The other direction goes on.
    met.client.writer().write_all(b"more").expect("memory");
    let bytes = of_client(&mut met);
    met.server.feed(&bytes).expect("a record");
    assert_eq!(met.server.read(&mut [0; 10]), Read::Bytes(4));
}

#[test]
fn a_changed_record_ends_the_session() {
    for version in [Version::V1_2, Version::V1_3] {
        let mut met = met_with(version);
        met.client.writer().write_all(b"question").expect("memory");
        let good = of_client(&mut met);
        assert_eq!(met.server.feed(&good), Ok(good.len()));
        met.client.writer().write_all(b"more").expect("memory");
        let mut bytes = of_client(&mut met);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        let error = met.server.feed(&bytes).expect_err("changed");
        assert_eq!((&error, error.reason()), (&SessionError::BadRecord, Reason::Misbehaved));
        assert_eq!(met.server.feed(&bytes), Err(error));
        assert!(!met.server.has_plaintext());
        assert_eq!(met.server.write(&[IoSlice::new(b"answer")], FULL_RECORD), 0);
        assert_eq!(met.server.read(&mut [0; 10]), Read::Nothing);
        let alert = unsent(&mut met.server);
        let mut rest = &alert[..];
        met.client.read_tls(&mut rest).expect("memory");
        let told = met.client.process_new_packets().expect_err("an alert");
        assert_eq!(told, rustls::Error::AlertReceived(rustls::AlertDescription::BadRecordMac));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_is_written_in_whatever_pieces_arrives(
        lengths in prop::collection::vec(0_usize..3_000, 1..40),
        record in prop_oneof![Just(SMALL_RECORD), Just(FULL_RECORD), 30_usize..17_000],
    ) {
        let mut met = met();
        let body: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|number| (number % 251) as u8).collect();
        let (mut rest, mut parts) = (&body[..], Vec::new());
        for length in lengths {
            let (part, behind) = rest.split_at(length);
            parts.push(IoSlice::new(part));
            rest = behind;
        }
        let taken = met.server.write(&parts, record);
        let bytes = unsent(&mut met.server);
        prop_assert!(taken == body.len() || bytes.len() > 60_000, "{} {}", taken, bytes.len());
        prop_assert!(records(&bytes).iter().all(|length| *length <= record));
        prop_assert_eq!(received(&mut met, &bytes), &body[..taken]);
    }
}
