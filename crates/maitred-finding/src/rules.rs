//! The causes in their order, each with its thresholds.
//!
//! Causes that lose something come first, then those that take a resource that all share, then those that take threads:
//! threads that are taken are often the consequence of an earlier cause. The reasons are in decision 0061.

use super::interval::{Interval, OfCollector, OfPool, OfRoute};
use super::upstream::{self, Told};
use super::words::{MIB, size, time};
use super::{Cause, Finding};

/// A certificate is late in its last sixth: it should be renewed when a third is left, so that half of that time is over.
const LATE: u64 = 6;
/// A day in nanoseconds.
const DAY: u64 = 24 * 60 * 60 * 1_000_000_000;

/// The number of errors that are a burst: fewer may be one client that repeats itself.
pub(crate) const MIN_ERRORS: u64 = 10;
/// The smallest share of errors: one of so many requests of all, or of a route.
const ERRORS_OF_ALL: u64 = 5;
const ERRORS_OF_ROUTE: u64 = 2;

/// Work for the disk that waits at both ends: a disk that keeps up has none for most of the time.
pub(crate) const MIN_SPOOL: u64 = 8;

/// Growth that is no warm start: the imports of an application with its first requests take less as a rule.
pub(crate) const MIN_GROWTH: u64 = 64 * MIB;
/// The time to the limit of memory, in seconds. If the limit is further away, an operator has time to see the growth in
/// the history.
pub(crate) const TO_LIMIT: f64 = 3600.0;

/// Readers that stand are ordinary: telephones lose their network. So many at once, of so many, with so much are not.
pub(crate) const MIN_STANDING: u64 = 8;
pub(crate) const MIN_STANDING_BYTES: u64 = 8 * MIB;
const STANDING_OF_ALL: u64 = 4;

/// Part of the threads that can compute at once. Above it, waiting times grow faster than the load: with 85 % they are
/// six times the time of a request (M/M/1).
pub(crate) const COMPUTING: f64 = 0.85;
/// Part of its time that the route which computes most does so, or waits for a processor: with less, it mostly waits for something else.
pub(crate) const RUNNABLE: f64 = 0.5;
/// Part of the processors that the threads want: if they get less, the sentence names other programs, too. The second:
/// then they have more of them than the application, and come first. Beside one busy program each has a half, beside
/// two a third.
pub(crate) const SHARED: f64 = 0.7;
pub(crate) const STARVED: f64 = 0.4;
/// Requests that are delayed at each moment.
pub(crate) const DELAYED: f64 = 1.0;

/// Part of the threads that are in the application: then hardly ever one is free.
pub(crate) const FULL: f64 = 0.9;
/// Requests that wait for a thread at each moment.
pub(crate) const WAITING: f64 = 1.0;

/// Threads that one route holds at each moment, and its part of the threads that all routes of the pool hold.
pub(crate) const HELD: f64 = 2.0;
const HELD_PART: f64 = 0.7;
/// Seconds of one request: beside others that are so many times as fast, and without others.
pub(crate) const SLOW: f64 = 0.25;
const TIMES_AS_SLOW: f64 = 10.0;
pub(crate) const SLOW_ALONE: f64 = 1.0;
/// Requests of other routes that it can be compared with.
const MIN_OTHERS: u64 = 3;

/// Part of the time of the routes of a pool that is spent in calls to other servers.
pub(crate) const OUTGOING: f64 = 0.6;

/// Part of the time of a route that is the database's.
pub(crate) const DATABASE: f64 = 0.6;
/// Statements of one request: more are most often the same one again and again, for each row of another.
pub(crate) const MANY_STATEMENTS: f64 = 20.0;

/// The first cause that holds.
pub(crate) fn first(interval: &Interval) -> Option<Finding> {
    certificate(interval)
        .or_else(|| errors(interval))
        .or_else(|| log(interval))
        .or_else(|| spool(interval))
        .or_else(|| memory(interval))
        .or_else(|| slow_readers(interval))
        .or_else(|| interpreter(interval))
        .or_else(|| interval.pools.iter().find_map(|pool| taken(interval, pool)))
        // The last one: no request waits for a collector.
        .or_else(|| collector(interval))
}

fn certificate(interval: &Interval) -> Option<Finding> {
    let ending = interval.certificates.iter().filter(|(_, one)| one.left * LATE <= one.valid_for);
    let (name, one) = ending.min_by_key(|(_, one)| one.left)?;
    let state = match one.left / DAY {
        _ if one.left == 0 => {
            format!("There is no valid certificate of an authority for {name}, so that browsers warn of it")
        }
        0 => format!("The certificate of {name} ends within a day"),
        1 => format!("The certificate of {name} ends in 1 day"),
        days => format!("The certificate of {name} ends in {days} days"),
    };
    let why = match one.fault.trim_end_matches('.') {
        "" => "no order of a new one has failed: it waits, or another server holds the lock of acme-folder"
            .to_owned(),
        fault => format!("the last order of a new one has failed: {fault}"),
    };
    Some(Finding {
        cause: Cause::Certificate,
        sentence: format!("{state}, and {why}."),
        next: "'tls' has the time of the next attempt, and 'maitred check --acme' looks at the server as the authority does".to_owned(),
        ..none()
    })
}

fn errors(interval: &Interval) -> Option<Finding> {
    let worst = interval.routes.iter().max_by_key(|route| route.errors)?;
    // Requests that took too long are a matter of time.
    let own = |errors: u64| errors.saturating_sub(interval.timeouts) >= MIN_ERRORS;
    let is_of_all = own(interval.errors) && interval.errors * ERRORS_OF_ALL >= interval.requests;
    let is_of_route = own(worst.errors) && worst.errors * ERRORS_OF_ROUTE >= worst.requests;
    (is_of_all || is_of_route).then(|| Finding {
        cause: Cause::Errors,
        sentence: format!(
            "The application fails: {} of {} requests in {} were answered with a status of 500 or above, {} of them of {}{}.",
            interval.errors,
            interval.requests,
            time(interval.seconds),
            worst.errors,
            worst.name,
            upstream::behind_errors(interval, interval.errors)
        ),
        next: "'recent' has the last of them with their ids, and 'logs --request ID' what was said of one".to_owned(),
        ..of_route(worst)
    })
}

fn log(interval: &Interval) -> Option<Finding> {
    let log = interval.logs.iter().find(|log| log.stands || log.dropped > 0)?;
    let (name, seconds) = (&log.name, time(interval.seconds));
    let stands = if log.stands { "was not written at all" } else { "is written too slowly" };
    Some(Finding {
        cause: Cause::Log,
        sentence: format!(
            "The {name} log {stands} for {seconds}: {} lines wait and {} were dropped; requests go on without it.",
            log.waiting, log.dropped
        ),
        next: format!(
            "look at the disk of the {name} log, or at what reads it if it is a pipe; 'logs --which error' says more"
        ),
        route: None,
        pool: None,
    })
}

fn collector(interval: &Interval) -> Option<Finding> {
    let OfCollector { signal, waiting, lost, failing } = interval.collectors.first()?;
    let why = match failing {
        Some(why) => format!("does not take {signal}: {why}"),
        None => format!("does not take all {signal}"),
    };
    Some(Finding {
        cause: Cause::Collector,
        sentence: format!(
            "The OpenTelemetry collector {why}; in {} {lost} were dropped or refused, and {waiting} wait; requests go on without it.",
            time(interval.seconds)
        ),
        next:
            "look at the collector; 'otlp' has its URL and the counts, and 'logs --which error' the reasons"
                .to_owned(),
        ..none()
    })
}

fn spool(interval: &Interval) -> Option<Finding> {
    let spool = interval.spool;
    let stands = if spool.stands { "does not move" } else { "is behind" };
    (spool.stands || spool.least >= MIN_SPOOL).then(|| Finding {
        cause: Cause::Spool,
        sentence: format!(
            "The disk of the spool {stands}: {} parts of bodies have waited to be written for {} or longer, and their requests with them.",
            spool.waiting,
            time(interval.seconds)
        ),
        next: "look at the disk of the folder of --spool; --body-memory and --body-budget keep more bodies in memory".to_owned(),
        route: None,
        pool: None,
    })
}

fn memory(interval: &Interval) -> Option<Finding> {
    let (grown, memory) = (interval.grown, interval.memory);
    let rate = grown as f64 / interval.seconds;
    let left = memory.limit?.saturating_sub(memory.resident) as f64 / rate;
    if grown < MIN_GROWTH || left > TO_LIMIT {
        return None;
    }
    let busiest =
        interval.routes.iter().max_by_key(|route| route.requests).filter(|route| route.requests > 0);
    let beside = busiest.map_or(String::new(), |route| {
        format!(
            "; meanwhile {} requests ended, {} of them of {}",
            interval.requests, route.requests, route.name
        )
    });
    Some(Finding {
        cause: Cause::Memory,
        sentence: format!(
            "The application's memory has grown by {} in {}, to {}, so that {} are reached in {}{beside}.",
            size(grown),
            time(interval.seconds),
            size(memory.resident),
            size(memory.limit.unwrap_or_default()),
            time(left)
        ),
        next: "look at what this route keeps; 'memory' shows each process, and --worker-memory replaces a worker in time".to_owned(),
        ..busiest.map_or_else(none, of_route)
    })
}

fn slow_readers(interval: &Interval) -> Option<Finding> {
    let standing = &interval.standing;
    let is_many = standing.count >= MIN_STANDING && standing.count * STANDING_OF_ALL >= standing.all;
    (is_many && standing.bytes >= MIN_STANDING_BYTES).then(|| Finding {
        cause: Cause::SlowReaders,
        sentence: format!(
            "{} of {} clients have taken nothing of their responses for {}, which hold {} in memory and files; most asked for {}.",
            standing.count,
            standing.all,
            time(interval.seconds),
            size(standing.bytes),
            standing.route
        ),
        next: "'deliveries' lists them; --body-timeout and --min-rate-out end them earlier".to_owned(),
        route: Some(standing.route.clone()).filter(|route| !route.is_empty()),
        pool: None,
    })
}

fn interpreter(interval: &Interval) -> Option<Finding> {
    let parallel = interval.parallel as f64;
    let in_threads: f64 =
        interval.pools.iter().filter(|pool| !pool.after.is_loop).map(|pool| pool.held).sum();
    let delayed = interval.waiting + (in_threads - interval.ran).max(0.0);
    if interval.parallel == 0 || interval.computing < COMPUTING * parallel || delayed < DELAYED {
        return None;
    }
    // A burst that is over delays no request.
    let inside: u64 = interval.routes.iter().map(|route| route.inside).sum();
    let queued: u64 = interval.pools.iter().map(|pool| pool.after.queued).sum();
    if inside + queued == 0 {
        return None;
    }
    // Short pages beside a long computation are held for as long, and compute nothing.
    let usual = interval.computing / interval.routes.iter().map(|route| route.held).sum::<f64>().max(1.0);
    let runnable = |route: &OfRoute| route.held * route.runnable().unwrap_or(usual);
    let most = interval.routes.iter().max_by(|one, other| runnable(one).total_cmp(&runnable(other)))?;
    // Threads that mostly sleep want a processor all the time, too, if each waits for one for long after it wakes.
    let is_full = interval.ran >= COMPUTING * parallel;
    if !is_full && most.runnable().is_some_and(|part| part < RUNNABLE) {
        return None;
    }
    let possible = match interval.parallel {
        1 => "one worker uses one processor".to_owned(),
        several => format!("{several} can run at once"),
    };
    let wanted = format!("its threads want {:.2} processors, and {possible}", interval.computing);
    // More than can run at once does not run on a machine without other programs either.
    let part = interval.ran / interval.computing.min(parallel);
    let is_starved = part < STARVED;
    let what = if is_starved {
        format!(
            "Other programs use the processors that the application needs: {wanted}; they get {:.2}",
            interval.ran
        )
    } else if part < SHARED {
        format!(
            "The application computes all the time, and other programs use a part of the processors that it needs: {wanted}; they get {:.2}",
            interval.ran
        )
    } else {
        format!("The application computes all the time: {wanted}")
    };
    let next = if is_starved {
        "look at what else runs on this machine; 'stacks' shows what the application computes".to_owned()
    } else if interval.processors > interval.parallel {
        format!(
            "'stacks' shows what computes; {} processors are there, and --workers {0} uses all of them",
            interval.processors
        )
    } else {
        "'stacks' shows what computes; the application has all processors there are".to_owned()
    };
    Some(Finding {
        cause: Cause::Interpreter,
        sentence: format!(
            "{what}, and {delayed:.1} requests are delayed at each moment; most of the time is that of {}.",
            most.name
        ),
        next,
        ..of_route(most)
    })
}

/// The cause that takes the threads of a pool, or the requests of an event loop: a database, a route, or all of them
/// together.
fn taken(interval: &Interval, pool: &OfPool) -> Option<Finding> {
    let routes = || interval.routes.iter().filter(|route| route.pool == pool.name);
    let most = routes().max_by(|one, other| one.held.total_cmp(&other.held))?;
    let is_full = !pool.after.is_loop
        && pool.after.max_threads > 0
        && pool.held >= FULL * pool.after.max_threads as f64
        && pool.waiting() >= WAITING;
    let others = || routes().filter(|route| route.name != most.name);
    let is_slow = (most.held >= HELD || is_full) && most.held >= HELD_PART * pool.held && {
        let count: u64 = others().map(|route| route.requests).sum();
        let mean =
            others().map(|route| route.mean * route.requests as f64).sum::<f64>() / count.max(1) as f64;
        let is_slower = count >= MIN_OTHERS && most.mean >= SLOW && most.mean >= TIMES_AS_SLOW * mean;
        // Long polls and streams on an event loop last as long, and take nothing.
        is_slower && !pool.after.is_loop || most.mean >= SLOW_ALONE
    };
    let of_calls = routes().map(|route| route.held * route.outgoing).sum::<f64>();
    if (is_slow || is_full) && pool.held > 0.0 && of_calls >= OUTGOING * pool.held {
        let waits = routes()
            .max_by(|one, other| (one.held * one.outgoing).total_cmp(&(other.held * other.outgoing)))?;
        if let Some(Told { sentence, next }) = upstream::waits(interval, pool, waits, is_full) {
            return Some(Finding { cause: Cause::Upstream, sentence, next, ..of_route(waits) });
        }
    }
    let of_database = routes().map(|route| route.held * route.database).sum::<f64>();
    if (is_slow || is_full) && pool.held > 0.0 && of_database >= DATABASE * pool.held {
        let waits = routes()
            .max_by(|one, other| (one.held * one.database).total_cmp(&(other.held * other.database)))?;
        return Some(database(pool, waits, is_full));
    }
    if is_slow && !pool.after.is_loop {
        return Some(slow_route(interval, pool, most, is_full));
    }
    is_full.then(|| threads(interval, pool, most))
}

fn database(pool: &OfPool, route: &OfRoute, is_full: bool) -> Finding {
    let full = if is_full {
        format!(", and all {} threads of the pool {} are taken", pool.after.max_threads, pool.name)
    } else {
        String::new()
    };
    let (statements, next) = match route.statements {
        Some(count) if count >= MANY_STATEMENTS => (
            format!(" for {count:.0} statements of {} each", time(route.database * route.mean / count)),
            "look for a statement that is sent for each row of another one (N+1): one that asks for all rows takes its place".to_owned(),
        ),
        _ => (String::new(), format!("look at what {} asks the database for: 'stats --route' has the times", route.name)),
    };
    Finding {
        cause: Cause::Database,
        sentence: format!(
            "Requests wait for the database: it has {:.0} % of the time of {}, which takes {} a request{statements}{full}.",
            // A statement may end in the interval, and its request behind it.
            route.database.min(1.0) * 100.0,
            route.name,
            time(route.mean)
        ),
        next,
        ..of_route(route)
    }
}

fn slow_route(interval: &Interval, pool: &OfPool, route: &OfRoute, is_full: bool) -> Finding {
    let does = match route.computing {
        Some(part) if route.starved > part.max(0.5 - part) => {
            format!("waits for a processor for {:.0} % of that", route.starved * 100.0)
        }
        Some(part) if part + route.starved >= 0.5 => format!("computes for {:.0} % of that", part * 100.0),
        Some(part) => {
            format!("waits for something for {:.0} % of that", (1.0 - part - route.starved) * 100.0)
        }
        None if interval.computing >= 0.5 * route.held => "computes".to_owned(),
        None => "waits for something".to_owned(),
    };
    let waiting = if is_full {
        format!(", so that {:.1} requests wait at each moment", pool.waiting())
    } else {
        String::new()
    };
    Finding {
        cause: Cause::SlowRoute,
        sentence: format!(
            "{} takes {} a request and {does}; it holds {:.1} of the {} threads of the pool {} at each moment{waiting}.",
            route.name,
            time(route.mean),
            route.held,
            pool.after.max_threads,
            pool.name
        ),
        next: "'active' shows these requests and 'stacks' where they are; a pool of its own keeps it from the others".to_owned(),
        ..of_route(route)
    }
}

fn threads(interval: &Interval, pool: &OfPool, route: &OfRoute) -> Finding {
    let OfPool { name, after, .. } = pool;
    let stuck = if after.stuck > 0 {
        format!("; {} of them are in the same request for more than 30 s", after.stuck)
    } else {
        String::new()
    };
    Finding {
        cause: Cause::Threads,
        sentence: format!(
            "All {} threads of the pool {name} are in the application and {:.1} requests wait for one at each moment; they want {:.1} processors, so they wait rather than compute, most of the time in {} ({} a request){stuck}.",
            after.max_threads,
            pool.waiting(),
            interval.computing,
            route.name,
            time(route.mean)
        ),
        next: format!(
            "'stacks' shows what they wait for; more threads help if that can do more at once: 'set pool.{name}.max-threads {}'",
            after.max_threads * 2
        ),
        route: Some(route.name.clone()),
        pool: Some(name.clone()),
    }
}

/// A finding with the names of a route and its pool; the caller adds the rest.
fn of_route(route: &OfRoute) -> Finding {
    let (name, pool) = (route.name.clone(), route.pool.clone());
    Finding { route: Some(name), pool: Some(pool).filter(|pool| !pool.is_empty()), ..none() }
}

fn none() -> Finding {
    Finding { cause: Cause::Upstream, sentence: String::new(), next: String::new(), route: None, pool: None }
}
