//! The numbers of this crate that measurements chose. Each comment says what its number is for, and what half and double of it change.
//!
//! Sizes that only bound memory (lanes, places of routes) stand where they are used. Times are in nanoseconds.

/// Python takes the interpreter from a thread that others wait for after this time, as the server sets it. A complete
/// response of an event loop waits at most this long for others. Half: fewer responses leave together. Double: the
/// slowest client of a round waits that much longer.
pub(crate) const SWITCH: u64 = 500_000;

/// From this time on a request counts as long: a computation that gives up the permit of usual requests (half of it
/// decides the class of a route), a time without a look at the poller, or without a sample while requests end. From
/// then on four turns that Python gives others cost little of the request's own time. Half: pages of 1 ms count as
/// long, and those beside them take turns more often. Double: a short request waits for 4 ms.
pub(crate) const LONG: u64 = 4 * SWITCH;

/// A request of usual length is over by now: one in Python takes 50 to 200 µs. The backup poller looks no earlier after the last thread that
/// polled has entered application code. Half: it wakes for most pages. Double: a thread is woken that much later.
pub(crate) const USUAL: u64 = 300_000;

/// The first pause between two samples; each further one is twice as long. Half: more samples of 2 µs. Double: a request that waits
/// at once is passed by that much later. The fair queue charges a request so much at least.
pub(crate) const FIRST_PAUSE: u64 = 50_000;

/// A thread whose request has been there for so long may stay: the reserve thread runs others (Python's default switch
/// interval), and after twice the time the backup poller serves in place of an event loop. Half: requests that only compute for some
/// milliseconds have the reserve thread made. Double: requests behind slow ones wait that much longer.
#[cfg(not(shuttle))]
pub(crate) const STUCK: u64 = 5_000_000;

/// Simulated time passes slowly.
#[cfg(shuttle)]
pub(crate) const STUCK: u64 = 100_000;

/// A delay that people hardly notice: so long a burst beyond the queue of an event loop may wait, and a request before a peer that takes
/// nothing loses its response for it; half of it the queue may stand still although samples say that threads compute. Half: a burst of
/// some hundred requests is refused. Double: clients of a server that has too much to do learn it later.
#[cfg(not(shuttle))]
pub(crate) const UNNOTICED: u64 = 100_000_000;

/// Simulated time passes slowly.
#[cfg(shuttle)]
pub(crate) const UNNOTICED: u64 = 4_000_000;

/// Events fetched by a wait of the only thread that polls, and handlers called in one turn of an event loop. Half: a look at the
/// poller more for each 32 events. Double: no gain, as more are hardly ever there.
pub(crate) const EVENTS: usize = 64;

/// The number of events of a wait where other threads take fetched ones from the ready list, and the number of complete
/// responses of an event loop that leave together. Half: a look at the poller more for each 8 requests. Double: 2 to 3
/// % more requests/s of a hello, and threads meet at the lock.
pub(crate) const FEW_EVENTS: usize = EVENTS / 4;

/// Looks at the poller in one turn of an event loop, and handlers in a turn while their cost is unknown. A client that
/// is answered sends its next request within microseconds, and coming back from the loop costs more than a look. Half
/// and double: other tasks of the loop get their turn sooner or later by microseconds.
pub(crate) const LOOKS: u32 = 8;

/// Looks without anything to see before a thread that watches parks: a steady load does not wake it for every request. Half and double:
/// it sleeps some 20 ms earlier or later, beside an event loop 0.1 s.
#[cfg(not(shuttle))]
pub(crate) const IDLE_LOOKS: u32 = 50;

/// Parks at once, so that the model finds errors that only these looks would have mended.
#[cfg(shuttle)]
pub(crate) const IDLE_LOOKS: u32 = 1;

/// Steps that cost microseconds are done once in so many requests or questions. Half: costs 0.1 µs more each. Double: a
/// busy thread gets its monitor some microseconds later.
pub(crate) const NOW_AND_THEN: u32 = 32;

/// The number of samples in a row without the interpreter that take the permit from a thread: most requests give the
/// interpreter up for microseconds again and again. One: a second thread gets in between. Four: each wait of a request
/// costs two more samples.
pub(crate) const DETACHED: u64 = 2;

/// The newest request counts for one part in so many of the average of its route. Half and double: the average
/// follows within two or eight requests.
pub(crate) const STEP: u64 = 4;

/// The score at which a route of short requests waits: one more for each that waited, [`COMPUTED`] fewer for each that did not, from 0
/// to this. Half: chance decides. Double: a route is known 8 requests later.
pub(crate) const WAITS: u64 = 8;

/// A request that did not wait lowers the score by so much: a route waits if more than three in four of its requests
/// do. One or two: pages that wait now and then enter beside others. Six: a page that waits in nine of ten requests is
/// not known.
pub(crate) const COMPUTED: u64 = 3;
