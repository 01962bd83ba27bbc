//! Several classes of requests at once: some in a closed loop, some on a schedule of their own.
//!
//! Each class has connections of its own. In a closed loop each of them always has a request on its way; on a schedule (Poisson) latency
//! counts from the scheduled time, and a request that is due while every connection of its class is busy waits for one. All answers that
//! come in the measured window count. A request without an answer at its end counts with its age if that is longer than every latency
//! of its class: a class that starves has a bad percentile, not none.
//!
//! `measuring` and `measured` on standard output mark the window. With `--outstanding FILE` the file says in two little-endian 32-bit
//! numbers how many requests the server has not answered yet, and how many were ever sent; both are right whenever the generator sleeps.

use crate::connection::{Answer, Connection};
use crate::plan::{self, Class, Plan};
use crate::report;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub(crate) struct Mix<'a> {
    plan: &'a Plan,
    epoll: OwnedFd,
    classes: Vec<Load<'a>>,
    lanes: Vec<Lane>,
    start: Instant,
    measuring: bool,
    outstanding: u32,
    sent: u32,
    /// Where both are told, and what was told last.
    told: Option<(File, (u32, u32))>,
}

/// A class, and what has come of it.
struct Load<'a> {
    class: &'a Class,
    request: Vec<u8>,
    /// Due times; empty in a closed loop.
    schedule: Vec<Duration>,
    next: usize,
    /// Connections of a schedule without a request.
    idle: VecDeque<usize>,
    latencies: Vec<Duration>,
    /// How old requests were that had no answer at the end.
    unanswered: Vec<Duration>,
    wrong: usize,
    broken: usize,
}

struct Lane {
    connection: Connection,
    class: usize,
    /// When its request was due or, in a closed loop, sent.
    due: Duration,
}

impl<'a> Mix<'a> {
    pub(crate) fn new(plan: &'a Plan) -> io::Result<Self> {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
        let told = plan.outstanding.as_ref().map(File::create).transpose()?.map(|file| (file, (u32::MAX, 0)));
        let mut mix = Self {
            plan,
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            classes: (0..).zip(&plan.classes).map(|(place, class)| Load::new(plan, class, place)).collect(),
            lanes: Vec::new(),
            start: Instant::now(),
            measuring: false,
            outstanding: 0,
            sent: 0,
            told,
        };
        for (class, load) in plan.classes.iter().enumerate() {
            for _ in 0..load.clients {
                let place = mix.lanes.len();
                let connection = mix.open(place)?;
                mix.lanes.push(Lane { connection, class, due: Duration::ZERO });
            }
        }
        Ok(mix)
    }

    /// Loads the server for as long as planned; the lines of the classes.
    pub(crate) fn run(mut self) -> io::Result<String> {
        self.start = Instant::now();
        for place in 0..self.lanes.len() {
            self.free(place)?;
        }
        let warm_up = Duration::from_secs_f64(self.plan.warm_up);
        self.turn_until(warm_up)?;
        self.measuring = true;
        report::say("measuring")?;
        let began = self.start.elapsed();
        self.turn_until(began + Duration::from_secs_f64(self.plan.seconds))?;
        let end = self.start.elapsed();
        report::say("measured")?;
        self.charge_unanswered(end);
        let seconds = (end - began).as_secs_f64();
        Ok(self.classes.iter_mut().map(|load| load.line(seconds)).collect())
    }

    fn turn_until(&mut self, end: Duration) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::with_capacity(64);
        while self.start.elapsed() < end {
            for class in 0..self.classes.len() {
                self.send_due(class)?;
            }
            self.tell()?;
            let next = self.classes.iter().filter(|load| !load.idle.is_empty()).filter_map(Load::due).min();
            let sleep = next.map_or(end, |due| due.min(end)).saturating_sub(self.start.elapsed());
            let sleep =
                Timespec { tv_sec: sleep.as_secs().cast_signed(), tv_nsec: sleep.subsec_nanos().into() };
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&sleep)) {
                Err(rustix::io::Errno::INTR) => continue,
                other => other?,
            };
            for event in &events {
                self.receive(usize::try_from(event.data.u64()).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// What a schedule wants sent by now, as far as there are connections.
    fn send_due(&mut self, class: usize) -> io::Result<()> {
        while let Some(load) = self.classes.get_mut(class) {
            let Some(due) = load.due().filter(|due| *due <= self.start.elapsed()) else { break };
            let Some(place) = load.idle.pop_front() else { break };
            load.next += 1;
            self.send(place, due)?;
        }
        Ok(())
    }

    fn send(&mut self, place: usize, due: Duration) -> io::Result<()> {
        let Some(lane) = self.lanes.get_mut(place) else { return Ok(()) };
        let Some(load) = self.classes.get(lane.class) else { return Ok(()) };
        lane.due = due;
        self.outstanding += 1;
        self.sent = self.sent.wrapping_add(1);
        match lane.connection.send(0, &load.request) {
            Ok(()) => Ok(()),
            Err(_) => self.replace(place, true),
        }
    }

    fn receive(&mut self, place: usize) -> io::Result<()> {
        let Some(lane) = self.lanes.get_mut(place) else { return Ok(()) };
        let answer = lane.connection.receive();
        let busy = lane.connection.waiting_for.is_some();
        match answer {
            Ok(None) => Ok(()),
            Ok(Some(answer)) if busy => {
                lane.connection.waiting_for = None;
                self.outstanding -= 1;
                self.note(place, &answer);
                if answer.closes { self.replace(place, false) } else { self.free(place) }
            }
            Ok(Some(_)) | Err(_) => self.replace(place, busy),
        }
    }

    fn note(&mut self, place: usize, answer: &Answer) {
        let Some(lane) = self.lanes.get(place).filter(|_| self.measuring) else { return };
        let Some(load) = self.classes.get_mut(lane.class) else { return };
        if answer.status == 200 && self.plan.length.is_none_or(|length| length == answer.length) {
            load.latencies.push(self.start.elapsed().saturating_sub(lane.due));
        } else {
            load.wrong += 1;
        }
    }

    /// The connection has no request: a closed loop sends the next one.
    fn free(&mut self, place: usize) -> io::Result<()> {
        let Some(load) = self.lanes.get(place).and_then(|lane| self.classes.get_mut(lane.class)) else {
            return Ok(());
        };
        if load.class.rate.is_some() {
            load.idle.push_back(place);
            return Ok(());
        }
        self.send(place, self.start.elapsed())
    }

    /// A new connection in the place of one that has ended; `failed`: with a request on its way.
    fn replace(&mut self, place: usize, failed: bool) -> io::Result<()> {
        let connection = self.open(place)?;
        let Some(lane) = self.lanes.get_mut(place) else { return Ok(()) };
        lane.connection = connection;
        if let Some(load) = self.classes.get_mut(lane.class) {
            load.idle.retain(|&other| other != place);
            load.broken += usize::from(failed && self.measuring);
        }
        self.outstanding -= u32::from(failed);
        self.free(place)
    }

    fn open(&self, place: usize) -> io::Result<Connection> {
        let connection = Connection::open(self.plan.address)?;
        epoll::add(&self.epoll, &connection.stream, EventData::new_u64(place as u64), EventFlags::IN)?;
        Ok(connection)
    }

    fn tell(&mut self) -> io::Result<()> {
        let now = (self.outstanding, self.sent);
        let Some((file, last)) = self.told.as_mut().filter(|(_, last)| *last != now) else { return Ok(()) };
        *last = now;
        file.write_all_at([now.0.to_le_bytes(), now.1.to_le_bytes()].as_flattened(), 0)
    }

    /// Requests that the window leaves without an answer.
    fn charge_unanswered(&mut self, end: Duration) {
        for (place, load) in self.classes.iter_mut().enumerate() {
            let sent = self.lanes.iter().filter(|lane| lane.class == place);
            let sent = sent.filter(|lane| lane.connection.waiting_for.is_some()).map(|lane| lane.due);
            let unsent = load.schedule.get(load.next..).unwrap_or_default().iter().copied();
            let unsent = unsent.take_while(|due| *due < end);
            load.charge(sent.chain(unsent).map(|due| end.saturating_sub(due)).collect());
        }
    }
}

impl<'a> Load<'a> {
    fn new(plan: &Plan, class: &'a Class, place: u64) -> Self {
        let schedule = class.rate.map(|rate| {
            let count = (rate * (plan.warm_up + plan.seconds)) as usize + 1;
            plan::poisson(plan.seed.unwrap_or_default() + 1000 * place, rate, count)
        });
        Self {
            class,
            request: plan.get(&class.path),
            schedule: schedule.unwrap_or_default(),
            next: 0,
            idle: VecDeque::new(),
            latencies: Vec::new(),
            unanswered: Vec::new(),
            wrong: 0,
            broken: 0,
        }
    }

    /// When its next request is due.
    fn due(&self) -> Option<Duration> {
        self.schedule.get(self.next).copied()
    }

    fn charge(&mut self, ages: Vec<Duration>) {
        let longest = self.latencies.iter().max().copied().unwrap_or_default();
        self.unanswered.extend(ages.into_iter().filter(|age| *age > longest));
    }

    /// `class NAME answered N rate R wrong N broken N p50_us N p99_us N`
    fn line(&mut self, seconds: f64) -> String {
        let answered = self.latencies.len();
        self.latencies.append(&mut self.unanswered);
        self.latencies.sort_unstable();
        let at = |share| report::micros(report::percentile(&self.latencies, share));
        format!(
            "class {} answered {answered} rate {:.3} wrong {} broken {} p50_us {} p99_us {}\n",
            self.class.name,
            answered as f64 / seconds,
            self.wrong,
            self.broken,
            at(0.5),
            at(0.99)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};

    /// Answers every request but those for /never.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                std::thread::spawn(move || {
                    let mut buffer = [0; 1024];
                    while let Ok(length @ 1..) = stream.read(&mut buffer) {
                        let answered = !buffer.get(..length).unwrap_or_default().starts_with(b"GET /never");
                        if answered
                            && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").is_err()
                        {
                            break;
                        }
                    }
                });
            }
        });
        address
    }

    fn plan(classes: &[&str]) -> Plan {
        let address = server().to_string();
        let words = ["--connect", &address, "--seconds", "0.3", "--warm-up", "0", "--length", "2"];
        let classes = classes.iter().flat_map(|class| ["--class", class]);
        Plan::from_arguments(words.into_iter().chain(classes).map(str::to_owned)).expect("a plan")
    }

    /// The value behind a name in the line of a class.
    fn said(text: &str, class: &str, name: &str) -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("class {class} "))).expect("a line");
        let mut words = line.split(' ').skip_while(|word| *word != name);
        words.nth(1).and_then(|word| word.parse().ok()).expect("a number")
    }

    #[test]
    fn each_class_has_a_load_of_its_own() {
        let plan = plan(&["loop clients=2 /", "schedule rate=100 clients=4 /", "starved clients=1 /never"]);
        let text = Mix::new(&plan).expect("a mix").run().expect("lines");
        // Thirty are due: a Poisson schedule has some more or fewer.
        assert!((1.0..=60.0).contains(&said(&text, "schedule", "answered")), "{text}");
        assert!(said(&text, "loop", "answered") > 60.0, "{text}");
        for class in ["loop", "schedule", "starved"] {
            assert_eq!((said(&text, class, "wrong"), said(&text, class, "broken")), (0.0, 0.0), "{text}");
        }
    }

    #[test]
    fn a_request_without_an_answer_counts_with_its_age() {
        let plan = plan(&["loop clients=1 /never", "schedule rate=100 clients=1 /never"]);
        let text = Mix::new(&plan).expect("a mix").run().expect("lines");
        assert_eq!((said(&text, "loop", "answered"), said(&text, "schedule", "answered")), (0.0, 0.0));
        assert!(said(&text, "loop", "p99_us") >= 300_000.0, "{text}");
        // Those that wait for the only connection are younger.
        let (median, oldest) = (said(&text, "schedule", "p50_us"), said(&text, "schedule", "p99_us"));
        assert!(0.0 < median && median < oldest, "{text}");
    }

    #[test]
    fn a_wrong_length_is_not_an_answer() {
        let mut plan = plan(&["loop clients=1 /"]);
        plan.length = Some(3);
        let text = Mix::new(&plan).expect("a mix").run().expect("lines");
        assert!(said(&text, "loop", "wrong") > 0.0, "{text}");
        assert_eq!(said(&text, "loop", "answered"), 0.0);
    }

    #[test]
    fn requests_on_their_way_are_told() {
        let mut plan = plan(&["never clients=3 /never", "loop clients=1 /"]);
        let file = std::env::temp_dir().join(format!("openloop-outstanding-{}", std::process::id()));
        plan.outstanding = Some(file.clone());
        Mix::new(&plan).expect("a mix").run().expect("lines");
        let told = std::fs::read(&file).expect("the file");
        std::fs::remove_file(&file).expect("removed");
        let (outstanding, sent) = told.split_at(4);
        assert_eq!(outstanding, 4_u32.to_le_bytes());
        assert!(u32::from_le_bytes(sent.try_into().expect("four bytes")) > 4);
    }
}
