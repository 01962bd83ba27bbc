//! Schedules by virtual time: a year takes a moment.

use std::time::Duration;

use proptest::prelude::*;

use super::authority::{DAY, NOW};
use crate::{Due, Fault, Held, Kind, Now, Order, Pace, Schedule, To, Window};

const HOUR: u64 = 3600;
const YEAR: u64 = 365 * DAY;

/// The waits behind the first, the second… failure, in minutes, by the reference.
const WAITS: [u64; 30] = [
    1, 2, 2, 5, 10, 10, 10, 20, 20, 20, 20, 30, 30, 30, 30, 30, 60, 60, 60, 60, 60, 120, 120, 120, 120, 180,
    180, 180, 360, 360,
];

/// A world with a CA whose clock is right.
struct World {
    schedule: Schedule,
    /// The true time is `NOW` and this.
    passed: u64,
    /// How far the calendar of the machine is ahead of the true time, in seconds.
    ahead: i64,
    staging: bool,
    fault: Kind,
    life: u64,
    issued: u64,
    orders: Vec<(u64, To)>,
    certificates: Vec<u64>,
    asked: Vec<u64>,
}

impl World {
    fn new(life: u64) -> Self {
        Self {
            schedule: Schedule::new(0),
            passed: 0,
            ahead: 0,
            staging: true,
            fault: Kind::Challenge,
            life,
            issued: 0,
            orders: Vec::new(),
            certificates: Vec::new(),
            asked: Vec::new(),
        }
    }

    fn now(&self) -> Now {
        Now { wall: (NOW + self.passed).saturating_add_signed(self.ahead), steady: self.passed }
    }

    fn next(&mut self) -> Due {
        self.schedule.next(self.staging, self.now())
    }

    fn held(&self) -> Held {
        let not_before = NOW + self.passed - HOUR;
        Held { id: Some(format!("AKI.{}", self.issued)), not_before, not_after: not_before + self.life }
    }

    /// Places the order that is due.
    fn order(&mut self, order: &Order, succeeds: bool, retry_after: Option<Duration>) {
        self.orders.push((self.passed, order.to));
        self.schedule.ordering(self.now());
        self.passed += 5;
        self.issued += 1;
        let held = self.held();
        let now = self.now();
        match order.to {
            To::Staging if succeeds => self.schedule.tried(now),
            To::Production if succeeds && now.wall < held.not_after => {
                self.certificates.push(self.passed);
                self.schedule.issued(held, 0, now);
            }
            _ => {
                let mut fault = Fault::new(self.fault, "no luck");
                fault.retry_after = retry_after;
                self.schedule.failed(&fault, now);
            }
        }
    }

    /// Lets the time pass until something is due, at most until `end`.
    fn until_due(&mut self, end: u64) -> Option<Due> {
        while self.passed < end {
            match self.next() {
                Due::Wait(time) => {
                    assert!((1..=HOUR).contains(&time.as_secs()), "{time:?}");
                    self.passed += time.as_secs();
                }
                due => return Some(due),
            }
        }
        None
    }

    /// The same, with questions for a window answered by this.
    fn until_order(
        &mut self,
        end: u64,
        window: impl Fn(&str) -> Result<Option<Window>, ()>,
    ) -> Option<Order> {
        loop {
            match self.until_due(end)? {
                Due::Order(order) => return Some(order),
                Due::AskForWindow { id } => {
                    self.asked.push(self.passed);
                    self.schedule.window(window(&id), None, self.now());
                }
                Due::Wait(_) => {}
            }
        }
    }

    fn first(&mut self) {
        let order = self.until_order(1, |_| Ok(None)).expect("an order at once");
        assert_eq!(order, Order { to: To::Production, attempt: 0, replaces: None });
        self.order(&order, true, None);
    }

    fn restart(&mut self) {
        let kept = serde_json::to_string(&self.schedule).expect("JSON");
        self.schedule = serde_json::from_str(&kept).expect("JSON");
    }
}

fn window(id: &str, start: u64, end: u64) -> Result<Option<Window>, ()> {
    Ok(Some(Window { id: id.to_owned(), start: NOW + start, end: NOW + end, explanation: None }))
}

#[test]
fn without_a_window_a_certificate_is_renewed_after_two_thirds_or_half_of_its_life() {
    for (life, from, to) in
        [(90 * DAY, 60 * DAY, 63 * DAY), (45 * DAY, 30 * DAY, 32 * DAY), (6 * DAY, 3 * DAY, 4 * DAY)]
    {
        let mut renewals = Vec::new();
        for place in [0, 30_000, u16::MAX] {
            let mut world = World::new(life);
            world.schedule = Schedule::new(place);
            world.first();
            let held = world.schedule.held().cloned().expect("a certificate");
            world.schedule.issued(held, place, world.now());
            let order = world.until_order(YEAR, |_| Err(())).expect("an order");
            assert_eq!((order.to, order.replaces.as_deref()), (To::Production, Some("AKI.1")));
            assert!((from - HOUR..to).contains(&world.passed), "{} of {life}", world.passed);
            renewals.push(world.passed);
        }
        assert!(renewals[0] < renewals[1] && renewals[1] < renewals[2], "{renewals:?}");
    }
}

#[test]
fn the_window_of_the_certificate_decides() {
    let mut world = World::new(90 * DAY);
    world.first();
    let order = world.until_order(YEAR, |id| window(id, 20 * DAY, 21 * DAY)).expect("an order");
    assert_eq!(order.replaces.as_deref(), Some("AKI.1"));
    assert!((20 * DAY..21 * DAY).contains(&world.passed));
    // At once, then every six hours.
    assert!(world.asked[0] < 10 && (79..=82).contains(&world.asked.len()), "{:?}", world.asked);
    // One behind the end of the certificate is a mistake of the CA.
    let mut world = World::new(90 * DAY);
    world.first();
    world.until_order(YEAR, |id| window(id, 200 * DAY, 201 * DAY)).expect("an order");
    assert!((80 * DAY..82 * DAY).contains(&world.passed));
}

#[test]
fn the_window_of_another_certificate_counts_for_nothing() {
    let mut world = World::new(90 * DAY);
    world.first();
    // The CA answers with the window of the certificate before, which has passed.
    world.until_order(YEAR, |_| window("AKI.0", 0, 1)).expect("an order");
    assert!(world.passed > 59 * DAY);
    // A window that was told before the renewal does not come through it.
    let mut world = World::new(90 * DAY);
    world.first();
    let order = world.until_order(YEAR, |id| window(id, 2 * DAY, 2 * DAY + 1)).expect("an order");
    world.order(&order, true, None);
    world.until_order(YEAR, |_| Err(())).expect("an order");
    assert!(world.passed > 61 * DAY, "{}", world.passed);
}

#[test]
fn certificates_that_are_due_as_soon_as_they_are_issued_come_ever_more_seldom() {
    for (life, ahead, start, most) in [
        // A clock that is wrong, with and without restarts, and a CA that wants every certificate replaced at once.
        (90 * DAY, 61 * DAY, None, 15),
        (90 * DAY, 89 * DAY, None, 15),
        (90 * DAY, 0, Some(0), 15),
        // A short life needs them.
        (3 * HOUR, 0, None, 240),
    ] {
        for restarts in [false, true] {
            let mut world = World::new(life);
            world.ahead = ahead as i64;
            let told = |id: &str| start.map_or(Ok(None), |start| window(id, start, start + 1));
            while let Some(order) = world.until_order(10 * DAY, told) {
                world.order(&order, true, None);
                if restarts {
                    world.restart();
                }
            }
            assert!(world.certificates.windows(2).all(|pair| pair[1] - pair[0] >= HOUR));
            let count = world.certificates.len();
            assert!((most - 5..=most).contains(&count), "{count} in ten days: {life} {ahead}");
            assert_eq!(world.schedule.is_hasty(), life > DAY);
        }
    }
    // One early renewal, such as after a mistake of the CA, says nothing yet about the others.
    let mut world = World::new(90 * DAY);
    world.first();
    let order = world.until_order(YEAR, |id| window(id, 0, 1)).expect("an order");
    world.order(&order, true, None);
    world.until_order(YEAR, |_| Ok(None)).expect("an order");
    assert!(world.passed > 59 * DAY);
    world.schedule.ordering(world.now());
    assert!(!world.schedule.is_hasty());
}

#[test]
fn the_ca_says_when_it_wants_to_be_asked_again_within_bounds() {
    for (wanted, least, most) in [
        (Some(1), 60, 61),
        (Some(7200), 7200, 7201),
        (Some(u64::MAX), DAY, DAY + 1),
        (None, 6 * HOUR, 6 * HOUR + 1),
    ] {
        let mut world = World::new(90 * DAY);
        world.first();
        let mut asked = Vec::new();
        while asked.len() < 3 {
            let Some(Due::AskForWindow { id }) = world.until_due(YEAR) else { panic!("an order") };
            assert_eq!(id, "AKI.1");
            asked.push(world.passed);
            // A fault keeps the window: there is none.
            world.schedule.window(Err(()), wanted.map(Duration::from_secs), world.now());
        }
        assert!(asked.windows(2).all(|pair| (least..most).contains(&(pair[1] - pair[0]))), "{asked:?}");
    }
}

#[test]
fn retries_go_to_the_staging_directory_first() {
    let mut world = World::new(90 * DAY);
    let take = |world: &mut World, succeeds: bool| {
        let order = world.until_order(YEAR, |_| Ok(None)).expect("an order");
        world.order(&order, succeeds, None);
        (order.to, order.attempt)
    };
    assert_eq!(take(&mut world, false), (To::Production, 0));
    assert_eq!(take(&mut world, false), (To::Staging, 1));
    assert_eq!(take(&mut world, true), (To::Staging, 2));
    // The kind of challenge that has worked in the try.
    assert_eq!(take(&mut world, false), (To::Production, 2));
    assert_eq!(take(&mut world, true), (To::Staging, 3));
    assert_eq!(take(&mut world, true), (To::Production, 3));
    let at: Vec<u64> = world.orders.iter().map(|(at, _)| *at).collect();
    assert_eq!(at, [0, 65, 190, 195, 195 + 15 * 60 + 5, 195 + 15 * 60 + 10]);
    assert_eq!(world.schedule.failures(), 0);
    // It is the first at the renewal, too, and after faults that say nothing against it.
    world.fault = Kind::Unreachable;
    assert_eq!(take(&mut world, false), (To::Production, 3));
    assert_eq!(take(&mut world, true), (To::Staging, 3));
}

#[test]
fn a_directory_that_is_down_for_days_is_tried_by_the_table() {
    for staging in [true, false] {
        let mut world = World::new(90 * DAY);
        world.staging = staging;
        world.first();
        while let Some(order) = world.until_order(YEAR, |_| Err(())) {
            world.order(&order, false, None);
        }
        let at: Vec<u64> = world.orders.iter().skip(1).map(|(at, _)| *at).collect();
        let waits: Vec<u64> = at.windows(2).map(|pair| (pair[1] - pair[0]) / 60).collect();
        assert_eq!(waits[..WAITS.len()], WAITS);
        // A month of six hours, then one a day.
        assert_eq!(waits.iter().filter(|wait| **wait == 360).count(), 116);
        assert_eq!(waits.last(), Some(&1440));
        assert!(at.len() < 420, "{}", at.len());
    }
}

#[test]
fn the_ca_says_how_long_no_order_is_wanted() {
    let mut world = World::new(90 * DAY);
    for (wanted, waits) in [(5 * HOUR, 5 * HOUR), (u64::MAX, 7 * DAY)] {
        let order = world.until_order(YEAR, |_| Ok(None)).expect("an order");
        world.order(&order, false, Some(Duration::from_secs(wanted)));
        let from = world.passed;
        assert_eq!(world.schedule.order_in(world.now()), Duration::from_secs(waits));
        world.until_order(YEAR, |_| Ok(None)).expect("an order");
        assert_eq!(world.passed - from, waits);
    }
}

#[test]
fn a_person_need_not_wait_for_the_next_try() {
    let mut world = World::new(90 * DAY);
    let order = world.until_order(YEAR, |_| Ok(None)).expect("an order");
    world.order(&order, false, None);
    world.schedule.hurry(world.now());
    let order = world.until_order(world.passed + 1, |_| Ok(None)).expect("an order at once");
    assert_eq!(order.to, To::Staging);
    // The CA's own wish stays.
    let mut world = World::new(90 * DAY);
    let order = world.until_order(YEAR, |_| Ok(None)).expect("an order");
    world.order(&order, false, Some(Duration::from_secs(DAY)));
    world.schedule.hurry(world.now());
    assert_eq!(world.schedule.order_in(world.now()), Duration::from_secs(DAY));
    let mut world = World::new(90 * DAY);
    world.first();
    world.schedule.hurry(world.now());
    assert_eq!(world.until_order(DAY, |_| Ok(None)), None);
}

#[test]
fn a_process_that_dies_over_an_order_does_not_begin_at_once_again() {
    let mut world = World::new(90 * DAY);
    let mut begun = 0;
    while world.until_order(DAY, |_| Ok(None)).is_some() {
        world.schedule.ordering(world.now());
        begun += 1;
        world.restart();
    }
    assert!(begun < 40, "{begun}");
}

#[test]
fn a_jump_of_the_clock_neither_hastens_nor_holds_up_an_order() {
    for jump in [YEAR as i64, -(YEAR as i64), HOUR as i64 / 2, -(HOUR as i64) / 2] {
        let mut world = World::new(90 * DAY);
        world.staging = false;
        for wait in [60, 120, 120, 300] {
            let order = world.until_order(YEAR, |_| Ok(None)).expect("an order");
            world.order(&order, false, None);
            world.ahead += jump;
            let from = world.passed;
            world.until_order(YEAR, |_| Ok(None)).expect("an order");
            assert_eq!(world.passed - from, wait, "{jump}");
            world.ahead -= jump;
        }
    }
    // A year ahead each certificate has expired: the table holds, and the clock that is right again is enough.
    let mut world = World::new(90 * DAY);
    world.first();
    world.ahead = YEAR as i64;
    while let Some(order) = world.until_order(DAY, |_| Ok(None)) {
        world.order(&order, true, None);
    }
    assert!(world.certificates.len() == 1 && world.orders.len() < 60, "{:?}", world.orders);
    world.ahead = 0;
    assert_eq!(world.until_order(30 * DAY, |_| Ok(None)), None);
    // After a restart the calendar counts, and a wait is never longer than it was.
    let mut world = World::new(90 * DAY);
    world.first();
    let held = world.schedule.held().cloned().expect("a certificate");
    world.ahead = -(YEAR as i64);
    world.restart();
    world.schedule.hold(Some(held));
    assert_eq!(world.schedule.renewal().map(|at| at > NOW), Some(true));
    world.schedule.hold(None);
    let from = world.passed;
    world.until_order(YEAR, |_| Ok(None)).expect("an order");
    assert_eq!(world.passed - from, HOUR);
}

#[test]
fn ten_orders_a_minute_begin() {
    let mut pace = Pace::default();
    let at = |steady| Now { wall: 0, steady };
    for second in 0..10 {
        assert_eq!(pace.take(at(second)), Ok(()));
    }
    assert_eq!(pace.take(at(10)), Err(Duration::from_secs(50)));
    assert_eq!(pace.take(at(59)), Err(Duration::from_secs(1)));
    assert_eq!(pace.take(at(60)), Ok(()));
    assert_eq!(pace.take(at(60)), Err(Duration::from_secs(1)));
}

/// The next deeds of a CA, the network and the machine.
#[derive(Clone, Copy, Debug)]
struct Luck {
    succeeds: bool,
    retry_after: Option<u64>,
    /// A window for this certificate, for another one, none, or a fault; and where it is.
    window: (u8, u64),
    jump: Option<i64>,
    restarts: bool,
}

#[test]
fn a_person_in_a_hurry_all_the_time_has_five_orders_an_hour_at_most() {
    let mut world = World::new(90 * DAY);
    world.staging = false;
    while world.passed < 3 * DAY {
        match world.next() {
            Due::Order(order) => world.order(&order, false, None),
            _ => world.passed += 60,
        }
        world.schedule.hurry(world.now());
        world.restart();
    }
    let at: Vec<u64> = world.orders.iter().map(|(at, _)| *at).skip_while(|at| *at < 6 * HOUR).collect();
    assert!(at.len() > 100 && at.windows(6).all(|six| six[5] - six[0] >= HOUR), "{} orders", at.len());
}

fn luck() -> impl Strategy<Value = Luck> {
    let retry_after = prop_oneof![4 => Just(None), 1 => (0..2 * DAY).prop_map(Some)];
    let jump = prop_oneof![20 => Just(None), 1 => (-(YEAR as i64)..YEAR as i64).prop_map(Some)];
    let window = (0..5u8, 0..100 * DAY);
    (prop::bool::weighted(0.3), retry_after, window, jump, prop::bool::weighted(0.1)).prop_map(
        |(succeeds, retry_after, window, jump, restarts)| Luck {
            succeeds,
            retry_after,
            window,
            jump,
            restarts,
        },
    )
}

/// A year under this luck, over and over. Either the clock jumps or the process restarts: both together can hide an hour.
fn a_year(lucks: &[Luck], life: u64, staging: bool, jumps: bool) -> World {
    let mut world = World::new(life);
    world.staging = staging;
    let mut turns = lucks.iter().cycle();
    while world.passed < YEAR {
        let luck = *turns.next().expect("it goes round");
        match world.next() {
            Due::Wait(time) => world.passed += time.as_secs(),
            Due::AskForWindow { id } => {
                let start = (luck.window.1 + world.passed).saturating_sub(50 * DAY);
                let answer = match luck.window.0 {
                    0 => Err(()),
                    1 => Ok(None),
                    2 => window("AKI.0", start, start + DAY),
                    _ => window(&id, start, start + DAY),
                };
                world.schedule.window(answer, luck.retry_after.map(Duration::from_secs), world.now());
            }
            Due::Order(order) => {
                world.order(&order, luck.succeeds, luck.retry_after.map(Duration::from_secs))
            }
        }
        if let Some(jump) = luck.jump.filter(|_| jumps) {
            world.ahead = jump;
        }
        if luck.restarts && !jumps {
            world.restart();
        }
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_year_has_no_more_orders_than_the_waits_allow(
        lucks in prop::collection::vec(luck(), 20..60),
        life in prop::sample::select(vec![6 * DAY, 45 * DAY, 90 * DAY]),
        staging: bool,
        jumps: bool,
    ) {
        let world = a_year(&lucks, life, staging, jumps);
        // Never two certificates within an hour.
        for pair in world.certificates.windows(2) {
            prop_assert!(pair[1] - pair[0] >= HOUR, "{pair:?}");
        }
        let mut failed = 0;
        for pair in world.orders.windows(2) {
            let [(before, from), (after, to)] = [pair[0], pair[1]];
            if world.certificates.contains(&(before + 5)) {
                failed = 0;
                prop_assert!(after - before >= HOUR);
                continue;
            }
            failed += 1;
            // A try that has succeeded is followed by the real order; any other wait is that of the table.
            let follows = from == To::Staging && to == To::Production;
            let wait = WAITS.get(failed - 1).copied().unwrap_or(360) * 60;
            prop_assert!(follows || after - before >= wait, "{failed}: {before} to {after}");
        }
        // Five failed validations of a name in an hour are what Let's Encrypt takes.
        let real: Vec<u64> = world.orders.iter().filter(|(_, to)| *to == To::Production).map(|(at, _)| *at).collect();
        prop_assert!(!staging || real.windows(6).all(|six| six[5] - six[0] >= HOUR), "{real:?}");
        // No luck is bad enough for no order at all.
        prop_assert!(!real.is_empty());
    }
}
