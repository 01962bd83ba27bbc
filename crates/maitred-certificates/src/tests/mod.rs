//! An orderer against an authority in memory, in virtual time, with a folder on the disk.

mod authority;

use std::cell::{Cell, RefCell};
use std::fs;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use maitred_acme::{HttpRequest, HttpResponse, Now};
use maitred_log::Level;
use tempfile::TempDir;

use crate::orderer::warnings;
use crate::work::Work;
use crate::world::World;
use crate::{ChallengeKind, Folder, Status, Wishes};
use authority::{Authority, DIRECTORY};

const BEGIN: u64 = 1_800_000_000;
const HOUR: u64 = 60 * 60;
const DAY: u64 = 24 * HOUR;

/// The world as the tests make it.
struct Fake {
    authority: RefCell<Authority>,
    folder: Folder,
    passed: Cell<u64>,
    /// How far the clock of this machine is ahead of the authority's.
    ahead: Cell<u64>,
    /// The authority answers.
    online: Cell<bool>,
    stops: Cell<bool>,
    /// The status of the operator's own URL, and the questions.
    asked: RefCell<(u16, Vec<String>)>,
    /// A name that it says yes to in any case.
    served: Cell<&'static str>,
    hooks: RefCell<Vec<String>>,
    /// The server ends while a hook adds an entry.
    stops_at_hook: Cell<bool>,
    random: Cell<u16>,
}

impl World for Rc<Fake> {
    fn now(&self) -> Now {
        Now { wall: BEGIN + self.passed.get() + self.ahead.get(), steady: self.passed.get() }
    }

    fn random(&self) -> u16 {
        self.random.set(self.random.get().wrapping_mul(25_173).wrapping_add(13_849));
        self.random.get()
    }

    fn send(&self, request: &HttpRequest) -> Result<HttpResponse, String> {
        if !self.online.get() {
            return Err("connection refused".to_owned());
        }
        let files = self.folder.path().join("challenges/http");
        Ok(self.authority.borrow_mut().answer(request, &files, BEGIN + self.passed.get()))
    }

    fn ask(&self, url: &str) -> Result<u16, String> {
        let mut asked = self.asked.borrow_mut();
        asked.1.push(url.to_owned());
        Ok(if url.ends_with(self.served.get()) { 200 } else { asked.0 })
    }

    fn hook(&self, command: &str, [word, name, _]: [&str; 3]) -> Result<(), String> {
        self.hooks.borrow_mut().push(format!("{command} {word} {name}"));
        if word == "add" && self.stops_at_hook.get() {
            self.stops.set(true);
            return Err("the server ends".to_owned());
        }
        Ok(())
    }

    fn stops(&self) -> bool {
        self.stops.get()
    }
}

struct Test {
    _place: TempDir,
    world: Rc<Fake>,
    wishes: Wishes,
    said: Arc<Mutex<Vec<String>>>,
    work: Work<Rc<Fake>>,
}

impl Test {
    fn new(names: &[&str]) -> Self {
        Self::with(names, |_| {})
    }

    fn with(names: &[&str], change: impl FnOnce(&mut Wishes)) -> Self {
        let place = TempDir::new().expect("a folder");
        let folder = Folder::new(place.path().join("acme"));
        folder.prepare().expect("made");
        let world = Rc::new(Fake {
            authority: RefCell::default(),
            folder: folder.clone(),
            passed: Cell::new(0),
            ahead: Cell::new(0),
            online: Cell::new(true),
            stops: Cell::new(false),
            asked: RefCell::new((200, Vec::new())),
            served: Cell::new("none"),
            hooks: RefCell::default(),
            stops_at_hook: Cell::new(false),
            random: Cell::new(7),
        });
        let mut wishes = Wishes {
            folder,
            directory: DIRECTORY.to_owned(),
            authorities: None,
            contact: None,
            external_account: None,
            profile: None,
            chain: None,
            challenges: vec![ChallengeKind::Http01],
            hook: None,
            names: names.iter().map(ToString::to_string).collect(),
            on_demand: Vec::new(),
            ask: None,
        };
        change(&mut wishes);
        let said = Arc::new(Mutex::new(Vec::new()));
        let work = begin(&wishes, &world, &said);
        Self { _place: place, world, wishes, said, work }
    }

    /// Lets this time pass.
    fn pass(&mut self, time: u64) {
        let end = self.world.passed.get() + time;
        for _ in 0..2_000_000 {
            let wait = self.work.turn().as_secs();
            let next = self.world.passed.get() + wait;
            if next > end {
                return self.world.passed.set(end);
            }
            self.world.passed.set(next);
        }
        panic!("it does not rest");
    }

    /// Begins anew as another process does.
    fn restart(&mut self) {
        self.work = begin(&self.wishes, &self.world, &self.said);
    }

    fn orders(&self) -> Vec<String> {
        self.world.authority.borrow().orders.clone()
    }

    fn said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().expect("sound"))
    }

    fn status(&self, name: &str) -> Status {
        self.wishes.folder.status(name)
    }

    fn pem(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.wishes.folder.certificate(name)).ok()
    }
}

fn begin(wishes: &Wishes, world: &Rc<Fake>, said: &Arc<Mutex<Vec<String>>>) -> Work<Rc<Fake>> {
    let said = Arc::clone(said);
    let say =
        move |level: Level, text: &str| said.lock().expect("sound").push(format!("{} {text}", level.name()));
    Work::new(wishes.clone(), Rc::clone(world), Box::new(say), 30)
}

#[test]
fn an_empty_folder_has_certificates_soon_and_renews_them_at_two_thirds() {
    let mut test = Test::new(&["a.example", "b.example"]);
    test.pass(60);
    assert_eq!(test.orders(), ["a.example", "b.example"]);
    assert_eq!(
        test.said(),
        ["a", "b"].map(|name| format!("info acme: {name}.example has a new certificate, valid for 89 days"))
    );
    let status = test.status("a.example");
    assert_eq!((status.state.as_str(), status.fault), ("valid", None));
    assert!(status.until.is_some_and(|until| (BEGIN - HOUR + 90 * DAY..BEGIN + 90 * DAY).contains(&until)));
    assert!(status.next.is_some_and(|next| next > BEGIN + 58 * DAY), "{:?}", status.next);
    let first = test.pem("a.example").expect("a certificate");
    assert!(first.contains("BEGIN CERTIFICATE") && first.contains("PRIVATE KEY"));
    assert_eq!(fs::read_dir(test.wishes.folder.path().join("challenges/http")).expect("there").count(), 0);
    test.restart();
    test.pass(59 * DAY);
    assert_eq!(test.orders().len(), 2, "not before two thirds, and a restart orders nothing");
    test.pass(6 * DAY);
    assert_eq!(test.orders().len(), 4);
    assert_ne!(test.pem("a.example"), Some(first), "the key is another one, too");
}

#[test]
fn a_name_that_is_refused_holds_up_no_other_and_is_told_once_a_day() {
    let mut test = Test::new(&["bad.example", "good.example"]);
    test.world.authority.borrow_mut().refused.insert("bad.example".to_owned());
    test.pass(60);
    assert!(test.pem("good.example").is_some() && test.pem("bad.example").is_none());
    let status = test.status("bad.example");
    assert_eq!(status.state, "failing");
    assert!(status.fault.expect("a fault").text.contains("not this one") && status.next > Some(BEGIN + 60));
    test.pass(3 * DAY);
    let said: Vec<String> = test.said().into_iter().filter(|line| line.contains("bad.example")).collect();
    assert!((3..=4).contains(&said.len()), "{said:?}");
    assert!(
        said[0].starts_with("error acme: bad.example: ") && said[0].contains("the next attempt is in"),
        "{said:?}"
    );
    let tries = test.orders().iter().filter(|name| *name == "bad.example").count();
    assert!((10..=40).contains(&tries), "{tries} orders in three days");
}

#[test]
fn an_authority_that_is_away_for_days_leaves_the_old_certificate() {
    let mut test = Test::new(&["a.example"]);
    test.pass(59 * DAY);
    let old = test.pem("a.example");
    test.said();
    test.world.online.set(false);
    test.pass(10 * DAY);
    assert_eq!(test.pem("a.example"), old);
    let said = test.said();
    assert!((1..=11).contains(&said.len()) && said[0].contains("the old certificate serves on"), "{said:?}");
    assert_eq!(test.orders().len(), 1, "none came through");
    test.world.online.set(true);
    test.pass(DAY);
    assert_ne!(test.pem("a.example"), old);
    assert_eq!(test.status("a.example").state, "valid");
}

#[test]
fn a_restart_remembers_failures() {
    let mut test = Test::new(&["bad.example"]);
    test.world.authority.borrow_mut().refused.insert("bad.example".to_owned());
    for _ in 0..60 {
        test.restart();
        test.pass(10);
    }
    let tries = test.orders().len();
    assert!(tries <= 6, "{tries} orders in ten minutes");
}

#[test]
fn a_file_that_is_broken_or_missing_is_ordered_again() {
    let mut test = Test::new(&["a.example"]);
    test.pass(2 * HOUR);
    let path = test.wishes.folder.certificate("a.example");
    fs::write(&path, "broken").expect("written");
    test.pass(3 * HOUR);
    assert!(test.pem("a.example").is_some_and(|pem| pem.contains("BEGIN CERTIFICATE")));
    fs::remove_file(&path).expect("removed");
    test.pass(3 * HOUR);
    assert!(path.is_file());
    assert_eq!(test.orders().len(), 3);
}

#[test]
fn nothing_is_ordered_while_the_folder_takes_no_state() {
    let mut test = Test::new(&["a.example"]);
    // A folder in the place of the file cannot be replaced, as on a disk that is full or read-only.
    let state = test.wishes.folder.path().join("certificates/a.example/state.json/x");
    fs::create_dir_all(&state).expect("made");
    test.pass(2 * DAY);
    assert_eq!(test.orders(), [""; 0]);
    let said = test.said();
    assert!((2..=3).contains(&said.len()) && said[0].contains("cannot be used"), "{said:?}");
    fs::remove_dir_all(state.parent().expect("a folder")).expect("removed");
    test.pass(HOUR);
    assert!(test.pem("a.example").is_some());
}

#[test]
fn a_certificate_that_the_disk_refuses_is_kept_until_the_disk_takes_it() {
    let mut test = Test::new(&["a.example"]);
    let path = test.wishes.folder.certificate("a.example");
    fs::create_dir_all(path.join("x")).expect("made");
    test.pass(HOUR);
    let said = test.said();
    assert!(said.len() == 2 && said[1].contains("cannot be written to"), "{said:?}");
    fs::remove_dir_all(&path).expect("removed");
    test.pass(2 * 60);
    assert!(path.is_file() && test.orders().len() == 1, "it was not ordered again");
}

#[test]
fn an_end_is_no_failure() {
    let mut test = Test::new(&["a.example"]);
    test.work.turn();
    test.world.stops.set(true);
    assert_eq!(test.work.turn(), Duration::ZERO);
    assert_eq!((test.status("a.example").fault, test.said().len()), (None, 0));
    test.world.stops.set(false);
    test.restart();
    test.pass(5 * 60);
    assert!(test.pem("a.example").is_some());
}

#[test]
fn another_authority_is_asked_at_once_and_the_old_certificate_serves_until_then() {
    let mut test = Test::new(&["a.example"]);
    test.pass(60);
    let state = test.wishes.folder.path().join("certificates/a.example/state.json");
    let text =
        fs::read_to_string(&state).expect("a state").replace(DIRECTORY, "https://other.example/directory");
    fs::write(&state, text).expect("written");
    test.restart();
    test.pass(60);
    assert_eq!(test.orders().len(), 2);
    test.pass(DAY);
    assert_eq!(test.orders().len(), 2);
}

#[test]
fn names_on_demand_are_asked_for_and_a_no_is_remembered() {
    let mut test = on_demand();
    test.pass(60);
    assert_eq!(test.orders(), [""; 0]);
    test.wishes.folder.want("a.shop.example");
    test.wishes.folder.want("other.example");
    test.pass(60);
    assert_eq!(test.orders(), ["a.shop.example"]);
    assert_eq!(test.world.asked.borrow().1, ["http://127.0.0.1/ask?domain=a.shop.example"]);
    test.world.asked.replace((404, Vec::new()));
    for _ in 0..10 {
        test.wishes.folder.want("b.shop.example");
        test.pass(60);
    }
    assert_eq!((test.orders().len(), test.world.asked.borrow().1.len()), (1, 1));
    test.world.asked.replace((404, Vec::new()));
    (0..60).for_each(|number| test.wishes.folder.want(&format!("n{number}.shop.example")));
    test.pass(59);
    assert_eq!(test.world.asked.borrow().1.len(), 10, "ten questions in a minute");
    test.world.asked.replace((200, Vec::new()));
    test.world.passed.set(test.world.passed.get() + 70 * DAY);
    test.restart();
    test.pass(60);
    assert_eq!(test.orders(), ["a.shop.example"; 2], "a name with a certificate is renewed");
}

#[test]
fn a_pattern_has_its_entry_of_the_dns_made_and_removed() {
    let mut test = Test::with(&["*.shop.example"], |wishes| {
        wishes.challenges = vec![ChallengeKind::Dns01];
        wishes.hook = Some("/opt/dns".to_owned());
    });
    test.world.authority.borrow_mut().kind = Some("dns-01");
    test.pass(HOUR / 2);
    let hooks = test.world.hooks.borrow();
    assert_eq!(
        hooks[..2],
        ["add", "remove"].map(|word| format!("/opt/dns {word} _acme-challenge.shop.example"))
    );
}

#[test]
fn wishes_change_while_it_works() {
    let mut test = Test::new(&["a.example"]);
    test.work.turn();
    test.wishes.names = vec!["b.example".to_owned()];
    test.work.set(test.wishes.clone());
    test.pass(60);
    assert!(test.pem("b.example").is_some() && test.pem("a.example").is_none());
    assert_eq!(fs::read_dir(test.wishes.folder.path().join("challenges/http")).expect("there").count(), 0);
}

#[test]
fn a_year_with_an_authority_that_comes_and_goes_has_few_orders() {
    let mut test = Test::new(&["a.example"]);
    for day in 0..365_u32 {
        test.world.online.set(day % 7 != 3);
        if day % 50 == 20 {
            test.world.authority.borrow_mut().refused.insert("a.example".to_owned());
        }
        if day % 50 == 23 {
            test.world.authority.borrow_mut().refused.clear();
        }
        test.pass(DAY);
    }
    let orders = test.orders().len();
    assert!((6..=120).contains(&orders), "{orders}");
    assert!(test.status("a.example").until > Some(BEGIN + 365 * DAY));
}

#[test]
fn an_operator_hurries_what_has_failed_and_nothing_else() {
    let mut test = Test::new(&["bad.example", "good.example"]);
    test.world.authority.borrow_mut().refused.insert("bad.example".to_owned());
    test.pass(HOUR);
    let before = test.orders().len();
    test.world.authority.borrow_mut().refused.clear();
    test.wishes.folder.hurry();
    test.pass(60);
    assert!(test.pem("bad.example").is_some());
    assert_eq!(test.orders().len(), before + 1);
    test.wishes.folder.hurry();
    test.pass(HOUR / 2);
    assert_eq!(test.orders().len(), before + 1);
}

#[test]
fn a_name_on_demand_that_fails_waits_for_the_next_client_and_its_time() {
    let mut test =
        Test::with(&[], |wishes| wishes.on_demand = vec!["*.shop.example".parse().expect("a pattern")]);
    test.world.authority.borrow_mut().refused.insert("a.shop.example".to_owned());
    for _ in 0..20 {
        test.wishes.folder.want("a.shop.example");
        test.pass(30);
    }
    let tries = test.orders().len();
    assert!((2..=6).contains(&tries), "{tries} orders in ten minutes");
    test.pass(DAY);
    assert_eq!(test.orders().len(), tries, "no client has asked since");
}

#[test]
fn names_that_the_process_with_the_lock_does_not_order_get_a_fault() {
    let mut test = Test::new(&["a.example"]);
    test.pass(60);
    let mut other =
        Wishes { names: vec!["a.example".to_owned(), "b.example".to_owned()], ..test.wishes.clone() };
    let lines = warnings(&other);
    assert!(lines.len() == 1 && lines[0].starts_with("b.example: another process orders"), "{lines:?}");
    assert!(lines[0].contains("acme-folder"), "{lines:?}");
    let states = ["a.example", "b.example"].map(|name| test.status(name).state);
    assert_eq!(states, ["valid", "failing"]);
    assert_eq!(warnings(&other), lines, "the next day, too");
    other.names.remove(1);
    assert_eq!(warnings(&other), [""; 0]);
    test.work.set(Wishes { names: vec!["b.example".to_owned()], ..test.wishes.clone() });
    test.pass(60);
    assert_eq!(test.status("b.example").state, "valid", "an orderer of the name begins anew");
}

#[test]
fn an_end_removes_entries_of_the_dns_and_is_no_fault() {
    let mut test = Test::with(&["a.example"], |wishes| {
        wishes.challenges = vec![ChallengeKind::Dns01];
        wishes.hook = Some("/opt/dns".to_owned());
    });
    test.world.authority.borrow_mut().kind = Some("dns-01");
    let hooks = |test: &Test| test.world.hooks.borrow().len();
    while hooks(&test) == 0 {
        test.pass(1);
    }
    assert_eq!(test.wishes.folder.noted_dns().len(), 1);
    test.restart();
    assert_eq!(test.world.hooks.borrow()[1], "/opt/dns remove _acme-challenge.a.example", "behind a kill");
    test.world.stops_at_hook.set(true);
    while !test.world.stops.get() {
        let wait = test.work.turn().as_secs();
        test.world.passed.set(test.world.passed.get() + wait);
    }
    assert_eq!(test.status("a.example").fault, None);
    test.work.remove_dns();
    assert_eq!((test.wishes.folder.noted_dns().len(), hooks(&test)), (0, 4));
}

fn on_demand() -> Test {
    Test::with(&[], |wishes| {
        wishes.on_demand = vec!["*.shop.example".parse().expect("a pattern")];
        wishes.ask = Some("http://127.0.0.1/ask".to_owned());
    })
}

#[test]
fn a_flood_of_names_holds_up_no_renewal() {
    let mut test = on_demand();
    test.wishes.folder.want("z.shop.example");
    test.pass(60);
    assert_eq!(test.orders(), ["z.shop.example"]);
    test.world.passed.set(70 * DAY);
    test.world.asked.replace((404, Vec::new()));
    test.world.served.set("z.shop.example");
    for number in 0..10 {
        (0..64).for_each(|part| test.wishes.folder.want(&format!("{number}-{part}.shop.example")));
        test.pass(30);
    }
    assert_eq!(test.orders(), ["z.shop.example"; 2]);
    let asked = test.world.asked.borrow().1.len();
    assert!((40..=61).contains(&asked), "{asked} questions in five minutes");
}

#[test]
fn a_no_at_a_renewal_is_asked_again_while_the_certificate_serves() {
    let mut test = on_demand();
    test.wishes.folder.want("a.shop.example");
    test.pass(60);
    let held = test.pem("a.shop.example");
    // The application is being deployed.
    test.world.passed.set(70 * DAY);
    test.world.asked.replace((404, Vec::new()));
    test.said();
    test.pass(3 * HOUR);
    assert_eq!(test.world.asked.borrow().1.len(), 4);
    let said = test.said();
    assert!(said.len() == 1 && said[0].starts_with("warn acme: a.shop.example: acme-ask "), "{said:?}");
    test.world.asked.replace((200, Vec::new()));
    test.pass(HOUR + 60);
    assert_ne!(test.pem("a.shop.example"), held);
    // A no about a certificate that has ended is an end: the next client begins anew.
    test.world.asked.replace((404, Vec::new()));
    test.world.passed.set(170 * DAY);
    test.pass(DAY);
    assert_eq!((test.pem("a.shop.example"), test.wishes.folder.names().len()), (None, 0));
    assert_eq!(test.world.asked.borrow().1.len(), 1);
    test.world.asked.replace((200, Vec::new()));
    test.wishes.folder.want("a.shop.example");
    test.pass(60);
    assert!(test.pem("a.shop.example").is_some());
}

#[test]
fn an_order_that_runs_is_not_hurried() {
    let mut test = Test::new(&["a.example"]);
    while test.orders().is_empty() {
        test.work.turn();
    }
    test.world.online.set(false);
    test.wishes.folder.hurry();
    test.pass(50);
    let said = test.said();
    assert!(said.len() == 1 && said[0].ends_with("the next attempt is in 2 min"), "{said:?}");
}

#[test]
fn a_clock_that_is_two_months_ahead_is_told_and_costs_an_order_a_day() {
    let mut test = Test::new(&["a.example"]);
    test.world.ahead.set(61 * DAY);
    test.pass(10 * DAY);
    let count = test.orders().len();
    assert!((10..=16).contains(&count), "{count} orders in ten days");
    let said = test.said();
    assert_eq!(said.iter().filter(|line| line.contains("set the clock of this machine")).count(), count - 2);
}

#[test]
fn memory_is_spoken_of_while_there_is_a_certificate_in_it() {
    let mut test = Test::new(&["a.example"]);
    test.pass(2 * HOUR);
    let path = test.wishes.folder.certificate("a.example");
    fs::write(&path, "broken").expect("written");
    test.said();
    test.pass(HOUR);
    assert!(test.said()[0].contains("servers keep the certificate that they have in memory; another one is"));
    test.world.passed.set(200 * DAY);
    test.restart();
    test.pass(HOUR);
    let said = test.said();
    assert!(said[0].contains("current.pem") && !said[0].contains("memory"), "{said:?}");
}

#[test]
fn another_fault_of_the_same_kind_is_told_at_once() {
    let mut test = Test::new(&["a.example"]);
    test.world.authority.borrow_mut().refused.insert("a.example".to_owned());
    test.pass(HOUR);
    assert_eq!(test.said().len(), 1);
    test.world.authority.borrow_mut().problem = Some("invalidProfile");
    test.pass(HOUR);
    let said = test.said();
    assert!(said.len() == 1 && said[0].contains("invalidProfile"), "{said:?}");
}

#[test]
fn a_certificate_that_the_disk_refuses_outlives_a_change_of_the_wishes() {
    let mut test = Test::with(&["a.example"], |wishes| {
        // Looks every half minute.
        wishes.on_demand = vec!["*.shop.example".parse().expect("a pattern")];
    });
    let path = test.wishes.folder.certificate("a.example");
    fs::create_dir_all(path.join("x")).expect("made");
    test.pass(HOUR);
    test.wishes.contact = Some("me@shop.example".to_owned());
    test.work.set(test.wishes.clone());
    fs::remove_dir_all(&path).expect("removed");
    test.work.turn();
    assert!(!path.exists(), "a disk that refuses is left alone for a minute");
    test.pass(2 * 60);
    assert!(path.is_file() && test.orders().len() == 1, "it was not ordered again");
}

#[test]
fn folders_of_names_that_have_failed_are_removed_a_day_after_their_next_attempt() {
    let mut test = on_demand();
    for name in ["a.shop.example", "b.shop.example"] {
        test.wishes.folder.want(name);
    }
    test.world.authority.borrow_mut().refused.insert("a.shop.example".to_owned());
    test.pass(HOUR);
    let folder = test.wishes.folder.path().join("certificates");
    let count = || fs::read_dir(&folder).expect("there").count();
    assert_eq!(count(), 2);
    test.pass(20 * HOUR);
    assert_eq!(count(), 2, "its failures count");
    test.pass(6 * HOUR);
    assert_eq!((count(), test.wishes.folder.names()), (1, vec!["b.shop.example".to_owned()]));
}
