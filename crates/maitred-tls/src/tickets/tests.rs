//! Tickets of two servers, across periods.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

const NOW: u64 = 1_800_000_000;

fn now() -> u64 {
    NOW
}

/// A secret that is the same in every run.
fn secret() -> TicketSecret {
    TicketSecret { period: NOW / PERIOD - 1, secret: Zeroizing::new([7; 32]) }
}

fn file() -> Vec<u8> {
    b"4Q0Yc2v0m1Zr2o2mJ9w1m8v3nX5pL7tK6s1dF3gH8jU=".to_vec()
}

fn ticketer(tickets: &Tickets) -> Ticketer {
    Ticketer::new(tickets.clone(), [1; 32], None)
}

/// Two servers, each with a clock of its own, in periods from the one at `NOW` on.
macro_rules! two_clocks {
    ($first:ident, $second:ident, $set:ident) => {
        static FIRST: AtomicU64 = AtomicU64::new(NOW);
        static SECOND: AtomicU64 = AtomicU64::new(NOW);
        fn $first() -> u64 {
            FIRST.load(Ordering::Relaxed)
        }
        fn $second() -> u64 {
            SECOND.load(Ordering::Relaxed)
        }
        let $set = |first: i64, second: i64| {
            let at = |periods: i64| NOW.saturating_add_signed(periods * PERIOD as i64);
            FIRST.store(at(first), Ordering::Relaxed);
            SECOND.store(at(second), Ordering::Relaxed);
        };
    };
}

#[test]
fn a_ticket_is_opened_by_every_process_with_the_secret() {
    let first = Tickets::from_secret(&secret(), now);
    let second = Tickets::from_secret(&TicketSecret::from_bytes(&first.secret().to_bytes()), now);
    let ticket = ticketer(&first).encrypt(b"state").expect("a ticket");
    assert_eq!(ticket.len(), NAME + SEED + b"state".len() + TAG);
    assert_eq!(ticketer(&second).decrypt(&ticket).as_deref(), Some(&b"state"[..]));
    let stranger = Tickets::random(now).expect("random numbers");
    assert_eq!(ticketer(&stranger).decrypt(&ticket), None);
}

#[test]
fn two_tickets_of_one_state_are_different() {
    let ticketer = ticketer(&Tickets::from_secret(&secret(), now));
    let (first, second) =
        (ticketer.encrypt(b"state").expect("one"), ticketer.encrypt(b"state").expect("another"));
    assert_eq!(first[..NAME], second[..NAME], "the key's name");
    assert_ne!(first[NAME..NAME + SEED], second[NAME..NAME + SEED]);
    assert_ne!(first[NAME + SEED..], second[NAME + SEED..]);
}

#[test]
fn servers_with_the_same_key_file_open_each_others_tickets() {
    let mut with_line_end = file();
    with_line_end.extend_from_slice(b"\r\n");
    let first = Tickets::from_key_file(&file(), now).expect("a key");
    let second = Tickets::from_key_file(&with_line_end, now).expect("a key");
    // A supervisor that has read the file.
    let third = Tickets::from_secret(&TicketSecret::from_bytes(&second.secret().to_bytes()), now);
    let ticket = ticketer(&first).encrypt(b"state").expect("a ticket");
    for other in [second, third] {
        assert_eq!(ticketer(&other).decrypt(&ticket).as_deref(), Some(&b"state"[..]));
    }
    let mut other = file();
    other[0] ^= 1;
    let other = Tickets::from_key_file(&other, now).expect("a key");
    assert_eq!(ticketer(&other).decrypt(&ticket), None);
}

#[test]
fn key_files_that_are_not_random_are_refused() {
    let fault = |content: &[u8]| Tickets::from_key_file(content, now).map(|_| ()).expect_err("a fault");
    assert_eq!(fault(b""), TicketKeyError::Short(0));
    assert_eq!(fault(b"  correct horse battery staple \n"), TicketKeyError::Short(28));
    assert_eq!(fault(&[b'x'; 80]), TicketKeyError::NotRandom);
    assert_eq!(fault(&[0; 48]), TicketKeyError::NotRandom);
}

#[test]
fn another_policy_for_clients_opens_no_tickets() {
    let tickets = Tickets::from_secret(&secret(), now);
    let ticket = ticketer(&tickets).encrypt(b"state").expect("a ticket");
    assert_eq!(Ticketer::new(tickets, [2; 32], None).decrypt(&ticket), None);
}

#[test]
fn no_ticket_is_opened_after_the_revocation_lists_have_ended() {
    let tickets = Tickets::from_secret(&secret(), now);
    let ticket = ticketer(&tickets).encrypt(b"state").expect("a ticket");
    let until = |until| Ticketer::new(tickets.clone(), [1; 32], Some(until)).decrypt(&ticket);
    assert_eq!(until(NOW), None);
    assert_eq!(until(NOW + 1).as_deref(), Some(&b"state"[..]));
}

#[test]
fn a_ticket_is_opened_in_its_period_and_the_next_and_by_a_clock_that_is_behind() {
    two_clocks!(first_clock, second_clock, set);
    let all: [(Tickets, Tickets); 2] = [
        (Tickets::from_secret(&secret(), first_clock), Tickets::from_secret(&secret(), second_clock)),
        (
            Tickets::from_key_file(&file(), first_clock).expect("a key"),
            Tickets::from_key_file(&file(), second_clock).expect("a key"),
        ),
    ];
    for (first, second) in all {
        set(0, 0);
        let (first, second) = (ticketer(&first), ticketer(&second));
        for (sealed_in, opened_in, is_opened) in [
            (0, 0, true),
            (1, 0, true),
            (1, 1, true),
            (1, 2, true),
            (1, 3, false),
            (5, 3, false),
            (5, 4, true),
            (5, 6, true),
            (5, 7, false),
        ] {
            set(sealed_in, opened_in);
            let ticket = first.encrypt(b"state").expect("a ticket");
            assert_eq!(second.decrypt(&ticket).is_some(), is_opened, "{sealed_in} {opened_in}");
        }
    }
}

#[test]
fn later_keys_do_not_open_an_old_ticket() {
    two_clocks!(first_clock, second_clock, set);
    set(0, 0);
    let tickets = Tickets::from_secret(&secret(), first_clock);
    let ticketer = ticketer(&tickets);
    let ticket = ticketer.encrypt(b"state").expect("a ticket");
    set(2, 0);
    ticketer.forget_old_keys();
    // An attacker reads the memory and puts a clock back.
    let stolen = Tickets::from_secret(&tickets.secret(), second_clock);
    assert_eq!(super::tests::ticketer(&stolen).decrypt(&ticket), None);
    set(0, 0);
    assert_eq!(ticketer.decrypt(&ticket), None);
}

#[test]
fn a_clock_that_is_put_back_does_no_harm() {
    two_clocks!(first_clock, second_clock, set);
    set(5, 5);
    let tickets = Tickets::from_secret(&secret(), first_clock);
    let (first, second) = (ticketer(&tickets), ticketer(&Tickets::from_secret(&secret(), second_clock)));
    first.forget_old_keys();
    set(0, 5);
    let ticket = first.encrypt(b"state").expect("a ticket");
    assert_eq!(first.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
    assert_eq!(second.decrypt(&ticket).as_deref(), Some(&b"state"[..]), "it goes on with what it has");
    // Made while the clock is back: its keys are of a later period.
    let late = ticketer(&tickets);
    assert_eq!(late.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
}

#[test]
fn a_clock_far_away_does_not_stop_the_server() {
    fn far() -> u64 {
        u64::MAX
    }
    let tickets = ticketer(&Tickets::from_secret(&secret(), far));
    let ticket = tickets.encrypt(b"state").expect("a ticket");
    assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
    fn zero() -> u64 {
        0
    }
    let tickets = ticketer(&Tickets::random(zero).expect("random numbers"));
    let ticket = tickets.encrypt(b"state").expect("a ticket");
    assert_eq!(tickets.decrypt(&ticket).as_deref(), Some(&b"state"[..]));
}

#[test]
fn secrets_are_not_shown() {
    let tickets = Tickets::from_secret(&secret(), now);
    assert_eq!(
        format!("{tickets:?} {:?} {:?}", tickets.secret(), ticketer(&tickets)),
        "Tickets TicketSecret Ticketer"
    );
}

proptest! {
    #[test]
    fn sealed_tickets_are_opened_and_changed_ones_are_not(
        state in prop::collection::vec(any::<u8>(), 0..600),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u8,
        cut in any::<prop::sample::Index>(),
    ) {
        let ticketer = ticketer(&Tickets::from_secret(&secret(), now));
        let mut ticket = ticketer.encrypt(&state).expect("a ticket");
        prop_assert_eq!(ticketer.decrypt(&ticket), Some(state));
        prop_assert_eq!(ticketer.decrypt(&ticket[..cut.index(ticket.len())]), None);
        let place = place.index(ticket.len());
        ticket[place] ^= 1 << bit;
        prop_assert_eq!(ticketer.decrypt(&ticket), None);
    }

    #[test]
    fn bytes_that_are_no_ticket_are_not_opened(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let ticketer = ticketer(&Tickets::from_secret(&secret(), now));
        prop_assert_eq!(ticketer.decrypt(&bytes), None);
        // With the name of a key in front.
        let named = [&ticketer.encrypt(b"").expect("a ticket")[..NAME], &bytes].concat();
        prop_assert_eq!(ticketer.decrypt(&named), None);
    }
}
