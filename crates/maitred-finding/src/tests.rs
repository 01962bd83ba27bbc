//! Each cause, a case just below its threshold, and ordinary load.

use super::*;

const SECOND: u64 = 1_000_000_000;
const MIB: u64 = 1 << 20;

/// A server with one pool of eight threads and one interpreter, before and after two seconds.
struct Scene {
    before: Picture,
    after: Picture,
}

impl Scene {
    fn new() -> Self {
        let mut before = Picture { at: 10 * SECOND, parallel: 1, processors: 4, ..Picture::default() };
        before
            .pools
            .insert("default".into(), Pool { threads: 8, max_threads: 8, idle: 8, ..Pool::default() });
        before.logs.insert("error".into(), Log { settled: 5, ..Log::default() });
        before.logs.insert("access".into(), Log { settled: 900, ..Log::default() });
        before.memory = Memory { resident: 100 * MIB, held: 0, limit: Some(1024 * MIB) };
        let after = Picture { at: 12 * SECOND, ..before.clone() };
        Self { before, after }
    }

    /// So many requests of a route have ended, each after so many seconds.
    fn ended(mut self, route: &str, requests: u64, seconds: f64) -> Self {
        let ended = self.route(route);
        ended.requests += requests;
        ended.run += (requests as f64 * seconds * 1e9) as u64;
        self
    }

    /// So many threads were in a route all the time.
    fn inside(mut self, route: &str, count: u64, seconds: f64) -> Self {
        let spent = count * ((seconds * 1e9) as u64);
        let inside = self.route(route);
        (inside.inside, inside.inside_for) = (count, spent);
        let before = self
            .before
            .routes
            .entry(route.into())
            .or_insert_with(|| Route { pool: "default".into(), ..Route::default() });
        (before.inside, before.inside_for) = (count, spent.saturating_sub(count * 2 * SECOND));
        self
    }

    fn route(&mut self, route: &str) -> &mut Route {
        let route = self.after.routes.entry(route.into()).or_default();
        route.pool = "default".into();
        route
    }

    fn queued(mut self, queued: u64) -> Self {
        for picture in [&mut self.before, &mut self.after] {
            let pool = picture.pools.get_mut("default").expect("a pool");
            pool.queued = queued;
        }
        self
    }

    fn computes(mut self, threads: f64) -> Self {
        self.after.wanted = (threads * 2e9) as u64;
        self.after.ran = self.after.wanted;
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Picture, &mut Picture)) -> Self {
        change(&mut self.before, &mut self.after);
        self
    }

    fn cause(&self) -> Option<Cause> {
        self.found().map(|finding| finding.cause)
    }

    fn found(&self) -> Option<Finding> {
        find(&self.before, &self.after)
    }
}

fn delivery(waiting: u64, sent: u64) -> Delivery {
    Delivery { sent, waiting, route: "GET /big".into() }
}

#[test]
fn quiet_and_ordinary_load_have_no_cause() {
    let ordinary: [(&str, Scene); 9] = [
        ("nothing", Scene::new()),
        ("quiet", Scene::new().ended("GET /", 10, 0.002)),
        ("busy", Scene::new().ended("GET /", 1200, 0.004).computes(0.8).queued(1)),
        ("computes alone, and nobody is delayed", Scene::new().ended("GET /", 2000, 0.001).computes(1.0)),
        ("half of the threads wait", Scene::new().ended("GET /", 40, 0.2).computes(0.1)),
        ("all threads work, and nothing waits", Scene::new().ended("GET /", 80, 0.19).computes(0.3)),
        ("one long request", Scene::new().ended("GET /", 100, 0.002).inside("GET /report", 1, 20.0)),
        (
            "a few errors",
            Scene::new().ended("GET /", 500, 0.002).with(|_, after| {
                after.routes.get_mut("GET /").expect("a route").errors = 9;
            }),
        ),
        (
            "the log lingers",
            Scene::new().ended("GET /", 100, 0.002).with(|before, after| {
                before.logs.get_mut("access").expect("a log").waiting = 3;
                *after.logs.get_mut("access").expect("a log") = Log { waiting: 4, settled: 901, dropped: 0 };
            }),
        ),
    ];
    for (name, scene) in ordinary {
        assert_eq!(scene.found(), None, "{name}");
    }
}

#[test]
fn nothing_follows_from_two_pictures_of_one_moment() {
    let full = || Scene::new().ended("GET /", 20, 1.0).inside("GET /", 8, 4.0).queued(20);
    assert_eq!(full().cause(), Some(Cause::SlowRoute));
    assert_eq!(full().with(|before, after| after.at = before.at + MIN_INTERVAL - 1).found(), None);
    assert_eq!(full().with(|before, after| after.at = before.at - 1).found(), None);
}

#[test]
fn errors_are_a_burst_by_number_and_part() {
    let with = |requests: u64, errors: u64| {
        Scene::new().ended("GET /ok", 100, 0.001).ended("GET /broken", requests, 0.001).with(|_, after| {
            after.routes.get_mut("GET /broken").expect("a route").errors = errors;
        })
    };
    let found = with(20, 10).found().expect("half of a route");
    assert_eq!(
        (found.cause, found.route.as_deref(), found.pool.as_deref()),
        (Cause::Errors, Some("GET /broken"), Some("default"))
    );
    assert_eq!(
        found.sentence,
        "The application fails: 10 of 120 requests in 2.0 s were answered with a status of 500 or above, 10 of them of GET /broken."
    );
    assert_eq!(with(9, rules::MIN_ERRORS - 1).cause(), None, "too few");
    assert_eq!(with(21, 10).cause(), None, "less than half of the route");
    assert_eq!(with(75, 35).cause(), Some(Cause::Errors), "a fifth of all");
    assert_eq!(with(75, 34).cause(), None);
    assert_eq!(with(20, 19).with(|_, after| after.timeouts = 9).cause(), Some(Cause::Errors));
    assert_eq!(with(20, 19).with(|_, after| after.timeouts = 10).cause(), None, "most were only too slow");
}

#[test]
fn a_log_that_stands_or_loses_lines_is_a_cause() {
    let with = |then: (u64, u64), now: (u64, u64), dropped: u64| {
        Scene::new().with(|before, after| {
            before.logs.insert("access".into(), Log { waiting: then.0, settled: then.1, dropped: 2 });
            after.logs.insert("access".into(), Log { waiting: now.0, settled: now.1, dropped: 2 + dropped });
        })
    };
    let found = with((10, 900), (40, 900), 0).found().expect("it stands");
    assert_eq!(
        found.sentence,
        "The access log was not written at all for 2.0 s: 40 lines wait and 0 were dropped; requests go on without it."
    );
    assert_eq!(with((10, 900), (40, 901), 0).cause(), None, "a line was written");
    assert_eq!(with((0, 900), (40, 900), 0).cause(), None, "they have just come");
    assert_eq!(with((10, 900), (40, 950), 1).cause(), Some(Cause::Log), "one is lost");
}

#[test]
fn a_collector_that_fails_or_loses_something_is_a_cause() {
    let collector = |failing: &str, lost| Collector { waiting: 7, lost, failing: failing.into() };
    for (then, now, told) in [
        (Some(("", 3)), ("", 3), None),
        (Some(("", 3)), ("refused", 3), None),
        (Some(("refused", 3)), ("", 3), None),
        (None, ("refused", 0), None),
        (
            Some(("reset", 3)),
            ("refused", 3),
            Some("does not take traces: refused; in 2.0 s 0 were dropped or refused, and 7 wait"),
        ),
        (
            Some(("refused", 3)),
            ("refused", 8),
            Some("does not take traces: refused; in 2.0 s 5 were dropped or refused"),
        ),
        (Some(("", 3)), ("", 8), Some("does not take all traces; in 2.0 s 5 were dropped or refused")),
        (None, ("", 8), Some("in 2.0 s 8 were dropped or refused")),
    ] {
        let scene = || {
            Scene::new().with(|before, after| {
                if let Some((failing, lost)) = then {
                    before.collectors.insert("traces".into(), collector(failing, lost));
                }
                after.collectors.insert("traces".into(), collector(now.0, now.1));
            })
        };
        let found = scene().found();
        assert_eq!(
            found.as_ref().map(|found| found.cause),
            told.map(|_| Cause::Collector),
            "{then:?} {now:?}"
        );
        let sentence = found.map_or(String::new(), |found| found.sentence);
        assert!(sentence.contains(told.unwrap_or_default()), "{sentence}");
        let busy = scene().ended("GET /", 20, 1.0).inside("GET /", 8, 4.0).queued(20);
        assert_eq!(busy.cause(), Some(Cause::SlowRoute), "what requests wait for comes first");
    }
}

#[test]
fn a_spool_that_stands_or_is_behind_is_a_cause() {
    let with = |then: (u64, u64), now: (u64, u64)| {
        Scene::new().with(|before, after| {
            before.spool = Queue { waiting: then.0, done: then.1 };
            after.spool = Queue { waiting: now.0, done: now.1 };
        })
    };
    assert_eq!(with((1, 7), (1, 7)).cause(), Some(Cause::Spool));
    assert_eq!(with((1, 7), (1, 8)).cause(), None, "it moves");
    assert_eq!(with((rules::MIN_SPOOL, 7), (20, 30)).cause(), Some(Cause::Spool));
    assert_eq!(with((rules::MIN_SPOOL - 1, 7), (20, 30)).cause(), None, "it had caught up");
}

#[test]
fn memory_that_grows_is_a_cause_where_its_limit_is_near() {
    let with = |grown: u64, held: u64, limit: Option<u64>| {
        Scene::new().ended("POST /keep", 20, 0.01).with(|_, after| {
            after.memory = Memory { resident: 100 * MIB + grown, held, limit };
        })
    };
    let found = with(80 * MIB, 0, Some(1024 * MIB)).found().expect("it grows");
    assert_eq!(
        found.sentence,
        "The application's memory has grown by 80 MiB in 2.0 s, to 180 MiB, so that 1.0 GiB are reached in 21.1 s; \
         meanwhile 20 requests ended, 20 of them of POST /keep."
    );
    assert_eq!(with(rules::MIN_GROWTH, 0, Some(1024 * MIB)).cause(), Some(Cause::Memory));
    assert_eq!(with(rules::MIN_GROWTH - 1, 0, Some(1024 * MIB)).cause(), None, "a little");
    assert_eq!(with(80 * MIB, 20 * MIB, Some(1024 * MIB)).cause(), None, "bodies are the engine's");
    assert_eq!(with(80 * MIB, 0, None).cause(), None, "nothing says what there is");
    let near = 100 * MIB + 80 * MIB + (40.0 * rules::TO_LIMIT) as u64 * MIB;
    assert_eq!(with(80 * MIB, 0, Some(near)).cause(), Some(Cause::Memory));
    assert_eq!(with(80 * MIB, 0, Some(near + 100 * MIB)).cause(), None, "in more than an hour");
}

#[test]
fn many_readers_that_stand_are_a_cause() {
    let with = |standing: u64, bytes: u64, others: u64, rate: u64| {
        Scene::new().with(|before, after| {
            for number in 0..standing + others {
                let sent = if number < standing { rate * 2 } else { 90_000 };
                before.deliveries.insert(number.to_string(), delivery(bytes, 500));
                after.deliveries.insert(number.to_string(), delivery(bytes, 500 + sent));
            }
        })
    };
    let found = with(8, 2 * MIB, 0, 0).found().expect("they stand");
    assert_eq!((found.cause, found.route.as_deref()), (Cause::SlowReaders, Some("GET /big")));
    assert_eq!(with(8, 2 * MIB, 0, 1023).cause(), Some(Cause::SlowReaders), "hardly moves");
    assert_eq!(with(8, 2 * MIB, 0, 1024).cause(), None, "slow, but it moves");
    assert_eq!(with(rules::MIN_STANDING - 1, 2 * MIB, 0, 0).cause(), None, "a few");
    assert_eq!(with(8, rules::MIN_STANDING_BYTES / 8, 0, 0).cause(), Some(Cause::SlowReaders));
    assert_eq!(with(8, rules::MIN_STANDING_BYTES / 8 - 1, 0, 0).cause(), None, "they hold little");
    assert_eq!(with(8, 2 * MIB, 24, 0).cause(), Some(Cause::SlowReaders), "a quarter");
    assert_eq!(with(8, 2 * MIB, 25, 0).cause(), None, "the others are more");
}

#[test]
fn threads_that_compute_are_a_cause_where_requests_are_delayed() {
    let with = |computes: f64, inside: u64| {
        Scene::new().ended("GET /", 50, 0.002).inside("GET /loop", inside, 2.0).computes(computes)
    };
    let found = with(0.97, 4).found().expect("it computes");
    assert_eq!((found.cause, found.route.as_deref()), (Cause::Interpreter, Some("GET /loop")));
    assert_eq!(
        found.sentence,
        "The application computes all the time: its threads want 0.97 processors, and one worker uses one processor, \
         and 3.1 requests are delayed at each moment; most of the time is that of GET /loop."
    );
    assert!(
        found.next.ends_with("4 processors are there, and --workers 4 uses all of them"),
        "{}",
        found.next
    );
    // One interpreter runs one thread at once, however many want to.
    let many =
        with(1.61, 4).with(|_, after| after.ran = 2 * SECOND * 102 / 100).found().expect("it computes");
    assert!(many.sentence.starts_with("The application computes all the time"), "{}", many.sentence);
    assert_eq!(with(rules::COMPUTING, 4).cause(), Some(Cause::Interpreter));
    assert_ne!(with(rules::COMPUTING - 0.01, 4).cause(), Some(Cause::Interpreter), "it has time left");
    assert_eq!(with(0.97, 1).cause(), None, "nobody is delayed");
    assert_eq!(with(0.97, 1).queued(1).cause(), Some(Cause::Interpreter), "somebody waits for a thread");
    let several = with(0.97, 3).with(|_, after| after.parallel = 2);
    assert_eq!(several.cause(), Some(Cause::SlowRoute), "of two workers one is busy");
    let over = with(0.97, 4).with(|_, after| after.routes.get_mut("GET /loop").expect("a route").inside = 0);
    assert_eq!(over.cause(), None, "a burst that is over");
}

#[test]
fn the_larger_of_two_programs_comes_first() {
    let with = |part: f64| {
        let scene = Scene::new().ended("GET /", 50, 0.002).inside("GET /loop", 4, 2.0).computes(0.97);
        let found = scene.with(|_, after| after.ran = (after.wanted as f64 * part) as u64).found();
        found.expect("it computes")
    };
    let found = with(0.3);
    assert!(found.sentence.starts_with("Other programs use the processors that the"), "{}", found.sentence);
    assert!(
        found.sentence.contains("want 0.97 processors, and one worker uses one processor; they get 0.29"),
        "{}",
        found.sentence
    );
    assert!(found.next.starts_with("look at what else runs"), "{}", found.next);
    let both = "The application computes all the time, and other programs use a part of the processors";
    for part in [rules::STARVED + 0.01, rules::SHARED - 0.01] {
        let found = with(part);
        assert!(found.sentence.starts_with(both), "{}", found.sentence);
        assert!(found.next.starts_with("'stacks' shows what computes"), "{}", found.next);
    }
    assert!(with(rules::SHARED + 0.01).sentence.starts_with("The application computes all the time: "));
}

#[test]
fn threads_that_wait_for_a_processor_after_each_sleep_count_as_sleeping() {
    let with = |computed: f64, starved: f64, ran: f64| {
        let scene = Scene::new().ended("GET /", 50, 0.002).ended("GET /writes", 16, 0.5).computes(1.2);
        scene.with(|_, after| {
            after.ran = (after.wanted as f64 * ran) as u64;
            let route = after.routes.get_mut("GET /writes").expect("a route");
            route.measured = route.run;
            route.computed = (route.run as f64 * computed) as u64;
            route.starved = (route.run as f64 * starved) as u64;
            route.inside = 1;
        })
    };
    let found = with(0.1, 0.2, 0.3).found().expect("slow");
    assert_eq!(found.cause, Cause::SlowRoute);
    assert!(found.sentence.contains("waits for something for 70 % of that"), "{}", found.sentence);
    assert_eq!(with(0.1, rules::RUNNABLE - 0.11, 0.3).cause(), Some(Cause::SlowRoute));
    assert_eq!(with(0.1, rules::RUNNABLE - 0.09, 0.3).cause(), Some(Cause::Interpreter));
    assert_eq!(with(0.1, 0.1, 0.9).cause(), Some(Cause::Interpreter), "all that can run does");
    let idle = with(0.1, 0.6, 0.3).with(|_, after| after.wanted = SECOND);
    let found = idle.found().expect("slow");
    assert!(found.sentence.contains("waits for a processor for 60 % of that"), "{}", found.sentence);
}

#[test]
fn the_route_that_computes_is_named_and_not_one_that_is_held_meanwhile() {
    let measured = |route: &mut Route, part: f64| {
        (route.measured, route.computed) = (SECOND, (part * 1e9) as u64);
    };
    let scene = Scene::new().inside("GET /long", 1, 2.0).inside("GET /short", 3, 2.0).computes(0.97);
    let found = scene.with(|_, after| {
        measured(after.routes.get_mut("GET /long").expect("a route"), 0.9);
        measured(after.routes.get_mut("GET /short").expect("a route"), 0.02);
    });
    let found = found.found().expect("it computes");
    assert_eq!((found.cause, found.route.as_deref()), (Cause::Interpreter, Some("GET /long")));
}

#[test]
fn a_pool_without_a_free_thread_is_a_cause_where_requests_wait() {
    // Two routes of the same kind: none of them is the slow one.
    let with = |each: u64, queued: u64| {
        Scene::new().ended("GET /a", each, 0.2).ended("GET /b", each, 0.2).queued(queued)
    };
    let found = with(40, 12).found().expect("all are taken");
    assert_eq!((found.cause, found.pool.as_deref()), (Cause::Threads, Some("default")));
    assert!(
        found
            .sentence
            .starts_with("All 8 threads of the pool default are in the application and 12.0 requests wait"),
        "{}",
        found.sentence
    );
    assert!(found.next.ends_with("'set pool.default.max-threads 16'"));
    assert_eq!(with(36, 12).cause(), Some(Cause::Threads), "nine tenths");
    assert_eq!(with(35, 12).cause(), None, "some are free at times");
    assert_eq!(with(40, rules::WAITING as u64).cause(), Some(Cause::Threads));
    assert_eq!(with(40, 0).cause(), None, "nothing waits");
    let waited =
        with(40, 0).with(|_, after| after.routes.get_mut("GET /a").expect("a route").waited = 3 * SECOND);
    assert_eq!(waited.cause(), Some(Cause::Threads), "those that have ended have waited");
}

#[test]
fn a_route_is_slow_beside_others_or_by_itself() {
    let beside = |requests: u64, seconds: f64, others: u64| {
        Scene::new().ended("GET /slow", requests, seconds).ended("GET /", others, 0.002)
    };
    let found = beside(8, 0.5, 100).found().expect("slow");
    assert_eq!((found.cause, found.route.as_deref()), (Cause::SlowRoute, Some("GET /slow")));
    assert_eq!(
        found.sentence,
        "GET /slow takes 500 ms a request and waits for something; it holds 2.0 of the 8 threads of the pool default at each moment."
    );
    let measured = |computed: u64| {
        let scene = beside(8, 0.5, 100).with(move |_, after| {
            let route = after.routes.get_mut("GET /slow").expect("a route");
            (route.computed, route.measured) = (computed, 100);
        });
        scene.found().expect("slow").sentence
    };
    assert!(
        measured(3).starts_with(
            "GET /slow takes 500 ms a request and waits for something for 97 % of that; it holds"
        )
    );
    assert!(
        measured(50).starts_with("GET /slow takes 500 ms a request and computes for 50 % of that; it holds")
    );
    assert_eq!(beside(7, 0.5, 100).cause(), None, "less than two threads");
    assert_eq!(beside(16, rules::SLOW, 100).cause(), Some(Cause::SlowRoute));
    assert_eq!(beside(17, rules::SLOW - 0.01, 100).cause(), None, "not that slow");
    assert_eq!(beside(16, rules::SLOW, 2).cause(), None, "nothing to compare it with");
    assert_eq!(beside(4, rules::SLOW_ALONE, 0).cause(), Some(Cause::SlowRoute), "alone");
    assert_eq!(beside(5, rules::SLOW_ALONE - 0.05, 0).cause(), None);
    assert_eq!(
        Scene::new().inside("GET /hangs", 3, 40.0).cause(),
        Some(Cause::SlowRoute),
        "none of them has ended"
    );
    let full = beside(30, 0.53, 100).queued(9).found().expect("full");
    assert!(full.sentence.ends_with("so that 9.0 requests wait at each moment."), "{}", full.sentence);
    let of_loop =
        beside(8, 5.0, 100).with(|_, after| after.pools.get_mut("default").expect("a pool").is_loop = true);
    assert_eq!(of_loop.cause(), None, "a long poll takes no thread");
}

#[test]
fn a_database_has_the_time_of_a_slow_route() {
    let with = |part: f64, is_loop: bool| {
        Scene::new().ended("GET /orders", 8, 1.0).ended("GET /", 100, 0.002).with(|_, after| {
            let route = after.routes.get_mut("GET /orders").expect("a route");
            route.database = (route.run as f64 * part) as u64;
            after.pools.get_mut("default").expect("a pool").is_loop = is_loop;
        })
    };
    let found = with(0.9, false).found().expect("slow");
    assert_eq!(
        found.sentence,
        "Requests wait for the database: it has 90 % of the time of GET /orders, which takes 1.0 s a request."
    );
    let more = with(1.4, false).found().expect("slow");
    assert!(
        more.sentence.contains("it has 100 % of the time"),
        "requests of its statements have not ended: {}",
        more.sentence
    );
    assert_eq!(with(0.9, true).cause(), Some(Cause::Database), "on a loop, too: it is no long poll");
    // Other routes have a part of the time as well.
    assert_eq!(with(rules::DATABASE + 0.02, false).cause(), Some(Cause::Database));
    assert_eq!(
        with(rules::DATABASE - 0.01, false).cause(),
        Some(Cause::SlowRoute),
        "the application has most of it"
    );
    let full = Scene::new().ended("GET /a", 40, 0.2).ended("GET /b", 40, 0.2).queued(5).with(|_, after| {
        for route in after.routes.values_mut() {
            route.database = route.run;
        }
    });
    assert!(
        full.found().expect("full").sentence.ends_with("and all 8 threads of the pool default are taken.")
    );
}

#[test]
fn many_statements_of_a_request_are_told() {
    let with = |each: u64, asking: u64| {
        let scene = Scene::new().ended("GET /orders", 8, 1.0).ended("GET /", 100, 0.002);
        let found = scene.with(|_, after| {
            let route = after.routes.get_mut("GET /orders").expect("a route");
            route.database = route.run * 9 / 10;
            (route.statements, route.asking) = (each * asking, asking);
        });
        found.found().expect("slow")
    };
    let found = with(60, 8);
    assert_eq!(
        found.sentence,
        "Requests wait for the database: it has 90 % of the time of GET /orders, which takes 1.0 s a request for 60 statements of 15 ms each."
    );
    assert!(found.next.contains("(N+1)"), "{}", found.next);
    assert!(with(rules::MANY_STATEMENTS as u64, 4).next.contains("(N+1)"), "of half of the requests");
    for few in [with(rules::MANY_STATEMENTS as u64 - 1, 8), with(0, 0)] {
        assert_eq!(few.cause, Cause::Database);
        assert!(few.sentence.ends_with("takes 1.0 s a request."), "{}", few.sentence);
        assert!(few.next.contains("'stats --route'"), "{}", few.next);
    }
}

#[test]
fn several_processes_are_one_server() {
    let one = Scene::new().ended("GET /a", 20, 0.2).ended("GET /b", 20, 0.2).queued(3);
    let (mut before, mut after) = (one.before.clone(), one.after.clone());
    before.merge("2", &one.before);
    after.merge("2", &one.after);
    assert_eq!(
        (after.parallel, after.pools["default"].max_threads, after.routes["GET /a"].requests),
        (2, 16, 40)
    );
    assert_eq!(find(&before, &after), None, "half of the threads");
    after.routes.get_mut("GET /a").expect("a route").run += 16 * SECOND;
    assert_eq!(find(&before, &after).map(|finding| finding.cause), Some(Cause::Threads));
    let mut merged = Picture::default();
    merged
        .merge("1", &Picture { deliveries: [("7".to_owned(), delivery(1, 1))].into(), ..Picture::default() });
    assert_eq!(merged.deliveries.keys().collect::<Vec<_>>(), ["1/7"]);
}

#[test]
fn a_process_that_has_ended_takes_its_counts_with_it() {
    let scene = Scene::new().ended("GET /", 100, 0.1).inside("GET /x", 8, 30.0);
    assert_eq!(find(&scene.after, &Picture { at: 20 * SECOND, ..scene.before }), None);
}

#[test]
fn causes_have_names_of_their_own() {
    let mut names = Cause::ALL.map(Cause::name).to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Cause::ALL.len());
}

impl Scene {
    /// All requests of the route that are there wait in a call to this server.
    fn calling(mut self, route: &str, server: &str, part: &str) -> Self {
        let before = self.before.routes.get_mut(route).expect("a route");
        before.calling_for = before.inside_for;
        let after = self.after.routes.get_mut(route).expect("a route");
        after.calling_for = after.inside_for;
        let running = [(part.to_owned(), after.inside)];
        after.calling.insert(server.to_owned(), running.clone().into());
        self.after.servers.entry(server.to_owned()).or_default().running = running.into();
        self
    }

    /// So many calls to this server have ended so in between.
    fn calls(
        mut self,
        server: &str,
        answered: u64,
        timeouts: &[(&str, u64)],
        failures: &[(&str, u64)],
    ) -> Self {
        let counts = |counts: &[(&str, u64)]| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let own = self.after.servers.entry(server.to_owned()).or_default();
        (own.answered, own.timeouts, own.failures) = (answered, counts(timeouts), counts(failures));
        self
    }
}

const API: &str = "https://api.example:443";

#[test]
fn the_server_that_threads_wait_for_is_named() {
    let found = Scene::new()
        .inside("GET /checkout", 7, 9.0)
        .queued(4)
        .calling("GET /checkout", API, "first byte")
        .found();
    let found = found.expect("a cause");
    assert_eq!((found.cause, found.route.as_deref()), (Cause::Upstream, Some("GET /checkout")));
    assert_eq!(
        found.sentence,
        "100 % of the time of GET /checkout is spent in calls to other servers, 9.0 s of 9.0 s a request, most of it waiting for \
         https://api.example:443 (first byte); 7 of 8 threads are in calls to it."
    );
    assert!(found.next.contains(API), "{}", found.next);
}

#[test]
fn each_part_of_a_call_has_its_words() {
    for (part, words) in [
        ("slot", "a free connection to https://api.example:443 (slot)"),
        ("resolve", "the address of https://api.example:443 (resolver)"),
        ("connect", "a connection to https://api.example:443 (connect)"),
        ("tls", "the TLS handshake with https://api.example:443 (tls)"),
        ("body", "the rest of responses of https://api.example:443 (body)"),
    ] {
        let scene = Scene::new().inside("GET /a", 8, 9.0).queued(4).calling("GET /a", API, part);
        let found = scene.found().expect("a cause");
        assert!(
            found.cause == Cause::Upstream && found.sentence.contains(words),
            "{part}: {}",
            found.sentence
        );
    }
}

#[test]
fn ended_calls_name_their_server_and_their_ends() {
    let scene = Scene::new()
        .ended("GET /pay", 16, 1.0)
        .queued(2)
        .calls("http://cdn.example:80", 500, &[], &[])
        .calls(API, 4, &[("connect", 12)], &[("refused", 1)])
        .with(|_, after| {
            after.routes.get_mut("GET /pay").expect("a route").outgoing = 15 * SECOND;
            let parts = [("connect".to_owned(), 14 * SECOND), ("first byte".to_owned(), SECOND)];
            after.servers.get_mut(API).expect("a server").parts = parts.into();
            let parts = [("body".to_owned(), SECOND)];
            after.servers.get_mut("http://cdn.example:80").expect("a server").parts = parts.into();
        });
    let found = scene.found().expect("a cause");
    assert_eq!(found.cause, Cause::Upstream);
    assert!(
        found.sentence.starts_with("94 % of the time of GET /pay is spent in calls to other servers, "),
        "{}",
        found.sentence
    );
    assert!(
        found.sentence.contains(
            "waiting for a connection to https://api.example:443 (connect); of 17 calls to it 12 timed out (connect) and 1 failed (refused)"
        ),
        "{}",
        found.sentence
    );
}

#[test]
fn calls_that_take_less_than_most_of_the_time_are_no_cause() {
    let of = |calls: u64| {
        let scene = Scene::new().ended("GET /pay", 16, 1.0).queued(2).calls(API, 16, &[], &[]);
        scene
            .with(|_, after| after.routes.get_mut("GET /pay").expect("a route").outgoing = calls * SECOND)
            .cause()
    };
    assert_eq!((of(10), of(9)), (Some(Cause::Upstream), Some(Cause::SlowRoute)));
    let quick = Scene::new().ended("GET /pay", 100, 0.02).calls(API, 100, &[], &[]);
    let quick =
        quick.with(|_, after| after.routes.get_mut("GET /pay").expect("a route").outgoing = 2 * SECOND);
    assert_eq!(quick.cause(), None, "no request is slow");
}

#[test]
fn errors_name_the_server_whose_calls_fail() {
    let failing = |failed: u64| {
        let scene = Scene::new().ended("GET /pay", 40, 0.001).calls(API, 0, &[], &[("refused", failed)]);
        scene
            .with(|_, after| after.routes.get_mut("GET /pay").expect("a route").errors = 40)
            .found()
            .expect("errors")
    };
    let found = failing(40);
    assert_eq!(found.cause, Cause::Errors);
    assert!(
        found.sentence.ends_with(
            "40 of them of GET /pay; meanwhile of 40 calls to https://api.example:443 40 failed (refused)."
        ),
        "{}",
        found.sentence
    );
    assert!(!failing(3).sentence.contains(API), "three calls do not explain forty errors");
}

#[test]
fn calls_of_several_processes_are_added_up() {
    let scene = Scene::new().inside("GET /a", 3, 9.0).calling("GET /a", API, "first byte").calls(
        API,
        5,
        &[("read", 1)],
        &[],
    );
    let mut both = scene.after.clone();
    both.merge("2", &scene.after);
    let server = &both.servers[API];
    assert_eq!((server.answered, server.timeouts["read"], server.running["first byte"]), (10, 2, 6));
    assert_eq!(both.routes["GET /a"].calling[API]["first byte"], 6);
}

#[test]
fn a_certificate_that_ends_soon_and_cannot_be_renewed_comes_first() {
    const DAY: u64 = 24 * 60 * 60 * SECOND;
    let with = |left: u64| {
        let fault = "the authority refuses shop.example: no answer on port 80; open the port".to_owned();
        let one = Certificate { left, valid_for: 90 * DAY, fault };
        let later = Certificate { left: left + DAY, ..one.clone() };
        Scene::new().ended("GET /a", 20, 0.1).with(|_, after| {
            after.routes.get_mut("GET /a").expect("a route").errors = 20;
            after.certificates.insert("shop.example".into(), one);
            after.certificates.insert("a.example".into(), later);
        })
    };
    assert_eq!(with(16 * DAY).cause(), Some(Cause::Errors), "there is time");
    let found = with(15 * DAY).found().expect("a finding");
    assert_eq!(found.cause, Cause::Certificate);
    assert_eq!(
        found.sentence,
        "The certificate of shop.example ends in 15 days, and the last order of a new one has failed: \
         the authority refuses shop.example: no answer on port 80; open the port."
    );
    assert!(found.next.contains("maitred check --acme"));
    assert!(with(DAY).found().expect("a finding").sentence.contains("ends in 1 day,"));
    assert!(with(DAY - 1).found().expect("a finding").sentence.contains("ends within a day,"));
    assert!(
        with(0)
            .found()
            .expect("a finding")
            .sentence
            .starts_with("There is no valid certificate of an authority for")
    );
    let unordered = Certificate { left: DAY, valid_for: 90 * DAY, fault: String::new() };
    let scene = Scene::new().with(|_, after| _ = after.certificates.insert("shop.example".into(), unordered));
    let found = scene.found().expect("a finding").sentence;
    assert!(found.contains("ends in 1 day, and no order of a new one has failed: it waits, or"), "{found}");
}
