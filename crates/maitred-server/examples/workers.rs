//! temporary harness
use maitred_http::{ResponseHead, Status};
use maitred_runtime::*;
use maitred_server::*;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

static GIL: std::sync::Mutex<()> = std::sync::Mutex::new(());
struct Exclusive(NativeThreads);
impl ThreadHost for Exclusive {
    fn spawn(&self, name: String, body: ThreadBody) -> std::io::Result<()> {
        self.0.spawn(name, body)
    }
    fn is_exclusive(&self) -> bool {
        true
    }
}
fn spin(d: Duration) {
    let mut v = std::hint::black_box(1u64);
    for _ in 0..d.as_nanos() as u64 * 2 / 3 {
        v = v.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 7;
    }
    std::hint::black_box(v);
}
fn now() -> u64 {
    let t = rustix_now();
    t
}
fn rustix_now() -> u64 {
    maitred_io::clock::monotonic()
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let model = args[2].clone();
    let kind = args[3].clone();
    let mut listeners: Vec<ListenerSettings> =
        vec![std::env::var("L").unwrap_or("127.0.0.1:0".into()).parse().unwrap()];
    if args[1] == "worker" {
        let channel = maitred_io::channel::Channel::take_standard_input().unwrap();
        let mut fds = channel.receive().unwrap().descriptors;
        let bell = Bell::open(fds.remove(0));
        let bound = BoundListeners::adopt(fds, &listeners).unwrap();
        let log = Log::open(Level::Error, LogTarget::Stderr, None).unwrap();
        let me = std::process::id();
        let locked = kind == "gated";
        let handler = move |exchange: Exchange| {
            let begin = now();
            let path = String::from_utf8_lossy(exchange.request().head.path_and_query()).into_owned();
            let mut parts = path.split('/').skip(1);
            let (k, n) =
                (parts.next().unwrap_or(""), parts.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0));
            let _lock = (locked && k != "sleep").then(|| GIL.lock().unwrap());
            let begin = now();
            match k {
                "cpu" => spin(Duration::from_micros(n)),
                "sleep" => std::thread::sleep(Duration::from_micros(n)),
                "mix" => spin(Duration::from_micros(n * (1 + (begin / 1000) % 5))),
                _ => {}
            }
            let head = ResponseHead::new(Status::OK)
                .with("X-Worker", me.to_string())
                .with("X-Begin", begin.to_string())
                .with("X-End", now().to_string());
            drop(exchange.respond(head, "Hello\n"));
        };
        let mut s = Settings::new(Routes::new().with_application(Arc::new(handler)), Arc::new(log));
        s.listeners = listeners;
        s.bound = Some(bound);
        s.accept = match &*model {
            "shared" => Accept::Shared(bell),
            "own" => Accept::Own(bell),
            _ => Accept::Single,
        };
        if kind == "gated" {
            s.threads = Arc::new(Exclusive(NativeThreads));
        }
        let server = Server::start(s).unwrap();
        while let Ok(m) = channel.receive() {
            if m.text.is_empty() {
                break;
            }
            eprintln!("{me} {:?}", server.snapshot());
        }
        server.drain();
        server.wait_drained(Duration::from_secs(5));
        return;
    }
    let count: usize = args[1].parse().unwrap();
    let bound = BoundListeners::bind(&listeners).unwrap();
    let address = bound.addresses().next().unwrap().clone();
    listeners[0].address = address.clone();
    let bell = Bell::new().unwrap();
    let mut kids: Vec<_> = (0..count)
        .map(|_| {
            let (own, other) = maitred_io::channel::Channel::pair().unwrap();
            let mut fds = vec![bell.as_fd()];
            fds.extend(bound.descriptors());
            own.send(b"x", &fds).unwrap();
            let kid = Command::new(std::env::current_exe().unwrap())
                .env("L", address.to_string())
                .args(["worker", &model, &kind])
                .stdin(Stdio::from(other.into_descriptor()))
                .spawn()
                .unwrap();
            (own, kid)
        })
        .collect();
    std::thread::sleep(Duration::from_millis(200));
    println!(
        "{} {}",
        address.tcp().unwrap().port(),
        kids.iter().map(|k| k.1.id().to_string()).collect::<Vec<_>>().join(",")
    );
    let mut b = [0];
    while let Ok(1) = std::io::stdin().read(&mut b) {
        for k in &mut kids {
            let _ = k.0.send(b"r", &[]);
        }
    }
    for mut k in kids {
        drop(k.0);
        let _ = k.1.wait();
    }
}
