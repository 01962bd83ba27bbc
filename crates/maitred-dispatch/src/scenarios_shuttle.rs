//! The scheduler under many interleavings: each scenario is a list of requests that must all be answered.

use std::time::Duration;

use maitred_io::sync::schedules;
use maitred_pool::{PoolLimits, PoolSettings, Strategy};
use shuttle::scheduler::{PctScheduler, RandomScheduler};

use crate::Scheduler;
use crate::model_shuttle::Kind::{
    File, FileBeforeThreads, LongAfterPages, NonBlocking, Other, OtherAfterOthers, OtherAfterPages,
    OtherHoldsUntilPages, Page, PageAfterFiles, PageAfterPages, Shared, SlowAfterPages, WritesUntilPages,
};
use crate::model_shuttle::{
    Kind, SCHEDULES, Source, Threads, check, check_looped, find_out, play, play_groups, run, scenario,
    scheduler, scheduler_with,
};

#[test]
fn an_event_loop_forgets_nothing() {
    for source in [Source::Poller, Source::Elsewhere] {
        check_looped(&[Page, File, Page], source, false);
    }
}

#[test]
fn files_are_served_while_the_event_loop_is_in_application_code() {
    for source in [Source::Poller, Source::Elsewhere] {
        check_looped(&[PageAfterFiles, File, File], source, false);
        check_looped(&[PageAfterFiles, Page, File], source, false);
    }
}

#[test]
fn threads_beside_an_event_loop_get_their_requests() {
    for source in [Source::Poller, Source::Elsewhere] {
        check_looped(&[Other, Page, Other], source, false);
        check_looped(&[OtherAfterPages, Page, OtherAfterOthers, Other], source, false);
    }
    // The backup poller gives it to them while the loop does not come back.
    check_looped(&[Other, File, Other], Source::Poller, true);
}

#[test]
fn the_backup_poller_serves_alone_while_the_event_loop_does_not_come_back() {
    for source in [Source::Poller, Source::Elsewhere, Source::Unsent] {
        check_looped(&[File, File], source, true);
    }
}

#[test]
fn deferred_work_is_taken_as_soon_as_a_thread_is_free() {
    for max in [1, 2] {
        check(&[Page, Shared, Page], max, 1, Source::Poller);
        check(&[Shared, Shared, Shared], max, 2, Source::Poller);
    }
}

#[test]
fn other_strategies_take_deferred_work() {
    for strategy in [Strategy::Pc, Strategy::Epc] {
        run(RandomScheduler::new(schedules(SCHEDULES)), move || {
            play(
                scheduler(strategy, 2, 1, Threads::Free),
                &[Shared, Page, Shared],
                2,
                Source::Poller,
                |_| None,
            );
        });
    }
}

#[test]
fn an_event_loop_takes_deferred_work() {
    check_looped(&[Shared, Page, Shared], Source::Poller, false);
}

/// The requests are like streams of one connection that are read at once.
#[test]
fn requests_that_come_at_once_begin_in_their_order() {
    for kinds in [&[Page; 4], &[Other; 4]] {
        for max in [1, 3] {
            check(kinds, max, 1, Source::Batch);
            check(kinds, max, 2, Source::Batch);
        }
    }
    check_looped(&[Page; 4], Source::Batch, false);
    check(&[SlowAfterPages, Page, LongAfterPages, Page], 2, 1, Source::Batch);
}

#[test]
fn files_are_served_while_the_only_thread_is_in_application_code() {
    check(&[PageAfterFiles, File, File], 1, 1, Source::Poller);
}

#[test]
fn pages_queued_by_the_backup_poller_are_run_by_the_only_thread() {
    check(&[PageAfterFiles, Page, File, Page], 1, 1, Source::Poller);
}

#[test]
fn threads_are_made_up_to_the_most() {
    check(&[PageAfterFiles, PageAfterFiles, Page, File], 2, 1, Source::Poller);
}

/// A batch's rest, left by a thread that entered application code while another one had begun to
/// poll. Random schedules hardly ever get there; priorities that change a few times do.
#[test]
fn the_rest_of_a_batch_reaches_the_thread_that_polls() {
    for changes in 2..=4 {
        run(PctScheduler::new(changes, schedules(SCHEDULES)), || {
            scenario(&[Page, PageAfterFiles, File], 2, 1, Threads::Free, Source::Poller, false);
        });
    }
}

/// Requests that come at once, and handlers that stand still among them.
#[test]
fn others_are_answered_although_a_handler_stands_still() {
    for pollers in [1, 2] {
        check(&[Page, PageAfterPages, Page], 3, pollers, Source::Poller);
        check(&[Page, Page, PageAfterPages, PageAfterPages], 3, pollers, Source::Poller);
        check(&[Page, PageAfterPages, File, Page, PageAfterFiles], 4, pollers, Source::Poller);
    }
}

#[test]
fn several_pollers_forget_nothing() {
    check(&[PageAfterFiles, File, Page, NonBlocking], 3, 2, Source::Poller);
}

#[test]
fn a_connection_made_ready_elsewhere_is_served() {
    check(&[File, Page], 1, 1, Source::Elsewhere);
    check(&[PageAfterFiles, File, NonBlocking], 2, 2, Source::Elsewhere);
}

/// Slow requests block every thread. The requests behind them are answered all the same.
#[test]
fn others_get_past_slow_requests() {
    for pollers in [1, 2] {
        check(&[SlowAfterPages, Page, Page], 2, pollers, Source::Poller);
        check(&[SlowAfterPages, SlowAfterPages, Page], 2, pollers, Source::Poller);
        check(&[SlowAfterPages, SlowAfterPages, SlowAfterPages, Page], 2, pollers, Source::Poller);
        check(&[LongAfterPages, LongAfterPages, Page], 2, pollers, Source::Poller);
        check(&[LongAfterPages, SlowAfterPages, LongAfterPages, Page], 3, pollers, Source::Poller);
        check(&[SlowAfterPages, PageAfterPages, SlowAfterPages, Page], 4, pollers, Source::Poller);
    }
}

/// Every thread writes to a disk. The requests behind them are answered all the same.
#[test]
fn others_get_past_requests_that_write() {
    for pollers in [1, 2] {
        check(&[WritesUntilPages, Page, Page], 2, pollers, Source::Poller);
        check(&[WritesUntilPages, WritesUntilPages, Page], 2, pollers, Source::Poller);
        check(&[WritesUntilPages, SlowAfterPages, Page, File], 2, pollers, Source::Poller);
        check(&[WritesUntilPages, PageAfterFiles, WritesUntilPages, Page], 3, pollers, Source::Poller);
    }
}

/// A request blocks the only thread of the other pool. The requests of the default pool behind it are answered all the same.
#[test]
fn requests_for_another_pool_hold_no_others_up() {
    for pollers in [1, 2] {
        check(&[OtherAfterPages, OtherAfterPages, Page, File], 1, pollers, Source::Poller);
        check(&[OtherAfterPages, SlowAfterPages, OtherAfterPages, Page], 3, pollers, Source::Poller);
    }
}

/// Threads of the other pool stand still, and those behind them get past, whether the pool's threads end after each request
/// or not.
#[test]
fn the_other_pool_has_a_limiter_too() {
    const KINDS: [&[Kind]; 4] = [
        &[OtherAfterOthers, Other],
        &[OtherAfterOthers, OtherAfterOthers, Other, Page],
        &[OtherAfterPages, OtherAfterOthers, Other, PageAfterPages, Page],
        &[Other, OtherAfterOthers, Other, OtherAfterOthers, Other],
    ];
    for threads in [Threads::Free, Threads::Limited] {
        for (kinds, budget) in KINDS.into_iter().flat_map(|kinds| [(kinds, 0), (kinds, 1)]) {
            run(RandomScheduler::new(schedules(SCHEDULES)), move || {
                let scheduler = scheduler_with(budget, 3, Strategy::Adaptive, 2, 2, threads);
                play(scheduler, kinds, 2, Source::Poller, |_| None);
            });
        }
    }
}

/// The system refuses the successor of a thread that has ended: the backup poller serves work that needs no application
/// meanwhile, and waiting requests run when there is a thread again.
#[test]
fn a_successor_that_comes_late_leaves_no_request_behind() {
    const KINDS: [&[Kind]; 3] = [
        &[Page, FileBeforeThreads, Page],
        &[Other, FileBeforeThreads, Other],
        &[Page, Other, FileBeforeThreads, NonBlocking],
    ];
    for source in [Source::Poller, Source::Elsewhere] {
        for strategy in [Strategy::Adaptive, Strategy::Epc] {
            for (kinds, threads) in
                KINDS.into_iter().flat_map(|kinds| [(kinds, Threads::Free), (kinds, Threads::Limited)])
            {
                run(RandomScheduler::new(schedules(SCHEDULES / 4)), move || {
                    play(scheduler_with(1, 1, strategy, 1, 1, threads), kinds, 1, source, |_| None);
                });
            }
        }
    }
}

fn check_strategy(strategy: Strategy, kinds: &'static [Kind], max: usize) {
    for source in [Source::Poller, Source::Elsewhere] {
        let play_once =
            move || play(scheduler(strategy, max, 1, Threads::Free), kinds, max, source, |_| None);
        run(RandomScheduler::new(schedules(SCHEDULES / 4)), play_once);
    }
}

#[test]
fn every_strategy_forgets_nothing() {
    for strategy in [Strategy::Pc, Strategy::Pec, Strategy::Epc] {
        check_strategy(strategy, &[PageAfterFiles, File, Page, NonBlocking], 1);
        check_strategy(strategy, &[OtherAfterPages, Page, OtherAfterPages, File], 1);
    }
    for strategy in [Strategy::Pec, Strategy::Epc] {
        check_strategy(strategy, &[PageAfterPages, PageAfterPages, Page, File], 3);
        check_strategy(strategy, &[PageAfterFiles, PageAfterPages, Page, SlowAfterPages, File], 4);
    }
}

/// Threads that end after each request, while others are parked and rely on them to poll.
#[test]
fn a_thread_that_ends_leaves_another_one_polling() {
    const KINDS: &[Kind] = &[PageAfterPages, Page, Page, File, Page];
    for (strategy, threads) in [
        (Strategy::Adaptive, Threads::Free),
        (Strategy::Adaptive, Threads::Limited),
        (Strategy::Epc, Threads::Free),
        (Strategy::Pec, Threads::Free),
    ] {
        for pollers in [1, 2] {
            let play_once = move || {
                let scheduler = scheduler_with(1, 1, strategy, 3, pollers, threads);
                play(scheduler, KINDS, 3, Source::Poller, |_| None);
            };
            run(RandomScheduler::new(schedules(SCHEDULES / 4)), play_once);
        }
    }
}

/// The other pool's language has an interpreter of its own, which a thread keeps until pages have been answered.
#[test]
fn a_language_that_keeps_its_interpreter_does_not_hold_up_another_one() {
    const KINDS: [&[Kind]; 3] = [
        &[OtherHoldsUntilPages, Page, Page],
        &[OtherHoldsUntilPages, LongAfterPages, Page, File],
        &[LongAfterPages, OtherHoldsUntilPages, Page, OtherAfterPages],
    ];
    for (kinds, others) in KINDS.into_iter().flat_map(|kinds| [(kinds, 1), (kinds, 2)]) {
        let play_once = move || {
            let scheduler = scheduler_with(0, others, Strategy::Adaptive, 2, 1, Threads::Apart);
            play(scheduler, kinds, 2, Source::Poller, |_| None);
        };
        run(RandomScheduler::new(schedules(SCHEDULES / 4)), play_once);
    }
}

/// `count` groups of up to `max` threads. No thread looks again by itself.
fn groups(count: usize, max: usize, forgetful: bool, events: &[(usize, Kind)]) {
    let limits =
        PoolLimits { max_threads: max, thread_idle: Duration::from_secs(3600), ..PoolLimits::default() };
    let first = PoolSettings { limits, ..PoolSettings::default() };
    let other =
        PoolSettings { limits: PoolLimits { max_threads: 1, ..limits }, ..PoolSettings::named("other") };
    for source in [Source::Poller, Source::Elsewhere] {
        let mut all =
            Scheduler::linked(&vec![first.clone(); count], &[other.clone()], 1, &[None]).expect("simulated");
        all[1].forgetful = forgetful;
        play_groups(all, events, max, source, |_| None);
    }
}

fn check_groups(count: usize, max: usize, events: &'static [(usize, Kind)]) {
    run(RandomScheduler::new(schedules(SCHEDULES / 4)), move || groups(count, max, false, events));
    run(PctScheduler::new(3, schedules(SCHEDULES / 4)), move || groups(count, max, false, events));
}

/// All threads of a group stand still until a request has been answered that only another group can run.
#[test]
fn requests_of_a_stuck_group_run_in_another_one() {
    check_groups(2, 1, &[(0, PageAfterPages), (0, Page), (0, Page), (0, File)]);
    check_groups(2, 1, &[(0, PageAfterPages), (0, Page), (1, Page), (1, File)]);
    check_groups(2, 2, &[(0, PageAfterPages), (0, PageAfterPages), (0, Page), (1, Page)]);
    check_groups(2, 1, &[(0, OtherAfterPages), (1, OtherAfterPages), (0, PageAfterPages), (0, Page)]);
}

/// The group that is called has too few threads for that, and makes more.
#[test]
fn a_group_makes_threads_for_another_one_that_may_not() {
    check_groups(2, 2, &[(0, PageAfterPages), (0, PageAfterPages), (0, PageAfterPages), (0, Page)]);
}

/// The group that is called is stuck itself in the next moment: a third one is left.
#[test]
fn a_call_is_passed_on() {
    check_groups(3, 1, &[(0, PageAfterPages), (0, PageAfterPages), (0, Page), (1, File)]);
    check_groups(3, 1, &[(0, PageAfterPages), (1, PageAfterPages), (0, Page), (1, Page)]);
}

/// The mutation: a thread that has nothing to do in its own group, and does not look at the others after it has counted
/// itself as a poller.
#[test]
#[should_panic(expected = "deadlock")]
fn a_poller_that_does_not_look_at_other_groups_is_found_out() {
    find_out(|| groups(2, 1, true, &[(0, PageAfterPages), (0, Page), (0, Page)]));
}

/// The mutation: a thread that does not look again after it has counted itself as a poller. The
/// model must notice.
#[test]
#[should_panic(expected = "deadlock")]
fn a_poller_that_does_not_look_again_is_found_out() {
    find_out(|| scenario(&[File, Page], 1, 1, Threads::Free, Source::Elsewhere, true));
}
