use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::Wake;
use std::thread::Thread;

use super::*;

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], 0))
}

/// The names without threads, at a time that the test sets.
struct Test {
    inner: Inner,
    now: Instant,
}

fn test() -> Test {
    Test { inner: Inner::default(), now: Instant::now() }
}

impl Test {
    /// The answer, and a `+` if a look-up begins.
    fn ask(&mut self, host: &str) -> String {
        self.ask_as(0, host)
    }

    fn ask_as(&mut self, waiter: u64, host: &str) -> String {
        match self.inner.find(host, self.now, Waker::noop(), waiter) {
            Err(error) => error.to_string(),
            Ok((found, begins)) => {
                let found = match found {
                    Found::Addresses(found) => format!("{found:?}").replace("192.0.2.", "").replace(":0", ""),
                    Found::Pending(None) => "pending".to_owned(),
                    Found::Pending(Some(until)) => format!("pending for {:?}", until - self.now),
                };
                found + if begins { "+" } else { "" }
            }
        }
    }

    fn after(&mut self, seconds: u64) -> &mut Self {
        self.now += Duration::from_secs(seconds);
        self
    }

    fn good(&mut self, host: &str, last: u8) {
        self.inner.complete(host, Ok(vec![address(last)]), self.now);
    }

    fn bad(&mut self, host: &str, kind: ErrorKind) {
        self.inner.complete(host, Err(io::Error::new(kind, "bad")), self.now);
    }
}

#[test]
fn text_that_is_an_address_needs_no_look_up() {
    for host in ["127.0.0.1", "::1", "localhost", "LocalHost."] {
        assert!(literal(host).is_some_and(|found| found[0].is_loopback()), "{host}");
    }
    assert_eq!(literal("localhost").map(|found| found.len()), Some(2));
    assert!(literal("localhost.example").is_none());
}

#[test]
fn addresses_are_used_for_a_while_and_refreshed_while_they_are_in_use() {
    let mut test = test();
    assert_eq!((test.ask("a"), test.ask("a")), ("pending+".to_owned(), "pending".to_owned()));
    assert_eq!(test.ask("b"), "pending+");
    test.good("a", 1);
    assert_eq!(test.after(23).ask("a"), "[1]");
    assert_eq!(test.after(1).ask("a"), "[1]+", "it is looked up behind the caller's back");
    assert_eq!(test.ask("a"), "[1]", "once");
    test.good("a", 2);
    assert_eq!(test.ask("a"), "[2]");
    assert_eq!(test.after(31).ask("a"), "pending for 2s+", "it was not in use");
    test.good("a", 3);
    assert_eq!(test.ask("a"), "[3]");
}

#[test]
fn a_name_without_addresses_counts_as_one_for_a_second() {
    let mut test = test();
    test.ask("a");
    test.bad("a", ErrorKind::NotFound);
    assert_eq!((test.ask("a"), test.after(1).ask("a")), ("bad".to_owned(), "pending+".to_owned()));
    test.inner.complete("a", Ok(Vec::new()), test.now);
    assert_eq!(test.ask("a"), "it has none");
    // Addresses that the name has had do not count any more.
    test.after(1).ask("a");
    test.good("a", 1);
    test.after(24).ask("a");
    test.bad("a", ErrorKind::NotFound);
    assert_eq!(test.ask("a"), "bad");
}

#[test]
fn old_addresses_serve_while_the_resolver_fails() {
    let mut test = test();
    test.ask("a");
    test.good("a", 1);
    assert_eq!(test.after(40).ask("a"), "pending for 2s+");
    test.bad("a", ErrorKind::Other);
    assert_eq!(test.ask("a"), "[1]");
    assert_eq!(test.after(1).ask("a"), "pending for 2s+", "it is tried again");
    assert_eq!(test.after(2).ask("a"), "[1]", "and hangs");
    assert_eq!(test.after(580).ask("a"), "[1]");
    assert_eq!(test.after(10).ask("a"), "pending", "ten minutes are over");
    test.bad("a", ErrorKind::Other);
    assert_eq!(test.ask("a"), "bad");
}

#[test]
fn the_number_of_names_is_bounded() {
    let mut test = test();
    for number in 0..MOST_NAMES {
        test.ask(&number.to_string());
    }
    assert_eq!(test.ask("more"), "1000 names wait for the resolver");
    test.after(1);
    test.good("7", 1);
    test.good("8", 1);
    assert_eq!(test.ask("7"), "[1]");
    assert_eq!(test.ask("more"), "pending+");
    assert_eq!((test.ask("7"), test.inner.names.len()), ("[1]".to_owned(), MOST_NAMES));
    assert!(!test.inner.names.contains_key("8"), "it was used least lately");
}

#[test]
fn a_name_for_which_no_call_waits_leaves_the_queue() {
    let mut test = test();
    assert_eq!((test.ask_as(1, "a"), test.ask_as(2, "a")), ("pending+".to_owned(), "pending".to_owned()));
    test.ask_as(3, "b");
    test.inner.leave("a", 1);
    assert_eq!(test.inner.queue.len(), 2, "one call waits still");
    test.inner.leave("a", 2);
    assert_eq!(test.inner.begin().as_deref(), Some("b"));
    assert_eq!((test.ask_as(4, "a"), test.inner.begin().as_deref()), ("pending+".to_owned(), Some("a")));
    test.inner.leave("a", 4);
    assert_eq!(test.ask_as(5, "a"), "pending", "its look-up runs already");
}

#[test]
fn a_call_that_asks_often_or_has_gone_is_no_second_waiter() {
    let mut test = test();
    for waiter in 0..MOST_WAITING as u64 {
        test.ask_as(waiter, "a");
    }
    assert_eq!(
        (test.ask_as(0, "a"), test.ask_as(9999, "a")),
        ("pending".to_owned(), "4096 calls wait for the resolver".to_owned())
    );
    test.inner.leave("a", 1);
    assert_eq!(test.ask_as(9999, "a"), "pending");

    let (end, ends) = mpsc::channel::<()>();
    let ends = Mutex::new(ends);
    let names = Names::new(Arc::new(move |_: &str| {
        let _ = ends.lock().expect("no panic").recv();
        Ok(Vec::new())
    }));
    let mut waiter = None;
    names.find("a", Instant::now(), Waker::noop(), &mut waiter).expect("it waits");
    assert_eq!(names.0.lock().names["a"].waiting.len(), 1);
    drop(waiter);
    assert_eq!(names.0.lock().names["a"].waiting.len(), 0);
    drop(end);
}

#[test]
fn addresses_serve_on_while_no_thread_can_be_started() {
    let mut test = test();
    for host in ["used", "old"] {
        test.ask(host);
        test.inner.begin();
        test.good(host, 1);
    }
    test.after(20).ask("new");
    test.inner.begin();
    test.good("new", 2);
    assert_eq!(test.after(4).ask("used"), "[1]+");
    assert_eq!(test.after(7).ask("old"), "pending for 2s+");
    assert_eq!(test.ask("other"), "pending+");
    let woken = test.inner.fail_queued(&ErrorKind::WouldBlock.into(), test.now);
    assert_eq!((woken.len(), test.inner.queue.len()), (2, 0));
    assert_eq!(["used", "old", "new"].map(|host| test.ask(host)), ["[1]", "[1]", "[2]"]);
    assert!(test.ask("other").starts_with("no thread for the resolver: "), "{}", test.ask("other"));
    assert_eq!(test.after(1).ask("other"), "pending+", "it is tried again");
}

#[test]
fn names_in_use_are_refreshed_before_others() {
    let mut test = test();
    test.ask("used");
    test.inner.begin();
    test.good("used", 1);
    test.after(24).ask("new");
    assert_eq!(test.ask("used"), "[1]+");
    assert_eq!(test.inner.begin().as_deref(), Some("used"));
    test.inner.leave("used", 0);
    assert_eq!(test.inner.begin().as_deref(), Some("new"));
}

#[test]
fn addresses_that_failed_come_last_for_a_while() {
    let names = Names::new(Arc::new(|_| Err(ErrorKind::Other.into())));
    let now = Instant::now();
    let parted = |now| names.parted(vec![address(1), address(2), address(3)], now);
    names.sink(&[address(1), address(2)], now);
    assert_eq!(parted(now), [vec![address(3)], vec![address(1), address(2)]]);
    assert_eq!(parted(now + SINKS), [vec![address(1), address(2), address(3)], vec![]]);
    let many: Vec<_> = (0..2000).map(|port| SocketAddr::from(([192, 0, 2, 9], port))).collect();
    names.sink(&many, now);
    assert_eq!(names.0.lock().sunk.len(), MOST_NAMES);
    names.sink(&[address(3)], now + SINKS);
    assert_eq!(names.0.lock().sunk.len(), 1);
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn wait(names: &Names, host: &str) -> Vec<SocketAddr> {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut waiter = None;
    loop {
        match names.find(host, Instant::now(), &waker, &mut waiter).expect("it has addresses") {
            Found::Addresses(found) => return found.to_vec(),
            Found::Pending(_) => thread::park(),
        }
    }
}

#[test]
fn a_resolver_that_hangs_holds_its_own_waiters_only() {
    let (begin, hangs) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let (ends, calls) = (Mutex::new(ends), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&calls);
    let names = Names::new(Arc::new(move |host: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        if host == "hangs" {
            begin.send(()).expect("the test waits");
            let _ = ends.lock().expect("no panic").recv();
        }
        Ok(vec![address(host.len() as u8)])
    }));
    let mut waiters = [const { None }; 3];
    let mut pending = |waiter: usize| {
        let found = names.find("hangs", Instant::now(), Waker::noop(), &mut waiters[waiter]);
        matches!(found, Ok(Found::Pending(_)))
    };
    assert!(pending(0) && pending(1));
    hangs.recv().expect("it runs");
    for host in ["a", "ab", "abc"] {
        assert_eq!(wait(&names, host), [address(host.len() as u8)]);
    }
    assert!(pending(2));
    drop(end);
    assert_eq!(wait(&names, "hangs"), [address(5)]);
    assert_eq!(calls.load(Ordering::SeqCst), 4, "one look-up for each name");
}

#[test]
fn a_resolver_that_panics_fails() {
    let names = Names::new(Arc::new(|_| std::panic::resume_unwind(Box::new("a fault of the resolver"))));
    let (waker, mut waiter) = (Waker::from(Arc::new(Parked(thread::current()))), None);
    let error = loop {
        match names.find("a", Instant::now(), &waker, &mut waiter) {
            Ok(_) => thread::park(),
            Err(error) => break error,
        }
    };
    assert_eq!(error.to_string(), "the resolver has panicked");
}

#[test]
fn at_most_four_look_ups_run_at_once() {
    let (end, ends) = mpsc::channel::<()>();
    let (ends, begun) = (Arc::new(Mutex::new(ends)), Arc::new(AtomicUsize::new(0)));
    let (count, gate) = (Arc::clone(&begun), Arc::clone(&ends));
    let hold = gate.lock().expect("no panic");
    let names = Names::new(Arc::new(move |_: &str| {
        count.fetch_add(1, Ordering::SeqCst);
        let _ = ends.lock().expect("no panic").recv();
        Ok(vec![address(1)])
    }));
    let mut waiters = [const { None }; 20];
    for (number, waiter) in waiters.iter_mut().enumerate() {
        names.find(&number.to_string(), Instant::now(), Waker::noop(), waiter).expect("it waits");
    }
    assert_eq!(names.0.lock().threads, MOST_THREADS);
    assert!(begun.load(Ordering::SeqCst) <= MOST_THREADS);
    drop((hold, end));
    for number in 0..20 {
        assert_eq!(wait(&names, &number.to_string()), [address(1)]);
    }
}
