//! One connection: a request is read, answered and the connection closed. Blocking, with a limit for all of it.
//!
//! Each connection has a thread of its own for at most [`LIMIT`], and each listener at most `MAX_GUESTS` of them: a
//! slow client delays no other. When all places are taken, a further connection displaces the client that has been
//! silent for longest; when all clients are being answered, it waits in the kernel's backlog (`guests.rs`).

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use maitred_h1::{Event, Limits, Receiver};
use maitred_http::{Method, RequestHead};
use maitred_io::local::{Credentials, wait_readable};

use super::access::{self, Denied, admit_local};
use super::dashboard::{self, Feed, Item, Wanted};
use super::guests::{Guest, Guests};
use super::inner::Inner;
use super::question::in_query;
use super::response::Answer;
use super::sessions::is_same;
use super::watch::SpinWatch;
use super::{Answered, Caller, Question, SNAPSHOT};
use maitred_server::CONTROL;

/// The limit for one request to come, and again for its answer to leave.
const LIMIT: Duration = Duration::from_secs(5);

/// The longest body of a request: arguments are short.
const MAX_BODY: usize = 64 * 1024;

/// How long something is taken from a peer whose answer has left.
const LINGER: Duration = Duration::from_secs(1);

/// How long nothing is accepted when the process is out of descriptors or threads.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Default)]
struct OfDoors {
    local: Guests,
    admin: Guests,
}

/// Waits for knocks until the server is gone, and looks at its threads now and then.
pub(super) fn serve(feed: &Arc<Feed>) {
    let inner = &*feed.inner;
    let guests = Arc::new(OfDoors::default());
    let mut watch = SpinWatch::default();
    loop {
        let Some(next) = inner.look(&mut watch) else {
            return wait_for(&guests, inner);
        };
        let doors = &inner.doors;
        let local = doors.local.as_ref().filter(|_| guests.local.may_have_room());
        let admin = doors.admin.as_ref().filter(|_| guests.admin.may_have_room());
        let mut descriptors = vec![inner.bell.descriptor()];
        descriptors.extend(local.map(AsFd::as_fd));
        descriptors.extend(admin.map(|(listener, _)| listener.as_fd()));
        if wait_readable(&descriptors, next).is_err() {
            std::thread::sleep(PAUSE);
        }
        inner.bell.hear();
        // When a client has to go first, the end of its thread rings the bell.
        let is_there = |descriptor: BorrowedFd<'_>| {
            wait_readable(&[descriptor], Duration::ZERO).is_ok_and(|found| found.contains(&true))
        };
        let local = local.filter(|listener| guests.local.make_room(|| is_there(listener.as_fd())));
        let admin = admin.filter(|(listener, _)| guests.admin.make_room(|| is_there(listener.as_fd())));
        let accepted = [
            local.map(|door| {
                door.accept().map(|guest| guest.map(|(stream, peer)| Session::Local(stream, peer)))
            }),
            admin.map(|(listener, _)| match listener.accept() {
                Ok((stream, _)) => stream.set_nonblocking(false).map(|()| Some(Session::Admin(stream))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
                Err(error) => Err(error),
            }),
        ];
        for guest in accepted.into_iter().flatten() {
            let received =
                guest.and_then(|guest| guest.map_or(Ok(()), |guest| receive(feed, &guests, guest)));
            if received.is_err() {
                std::thread::sleep(PAUSE);
            }
        }
    }
}

/// Waits a little for answers that are under way when the control ends, such as the answer to `drain`.
fn wait_for(guests: &OfDoors, inner: &Inner) {
    let deadline = Instant::now() + LINGER;
    let is_answering = || guests.local.count() + guests.admin.count() > 0;
    while is_answering() && Instant::now() < deadline {
        // Each of them rings when it is done. An error is the end of waiting, too.
        if wait_readable(&[inner.bell.descriptor()], PAUSE).is_err() {
            return;
        }
        inner.bell.hear();
    }
}

enum Session {
    Local(UnixStream, Credentials),
    Admin(TcpStream),
}

fn receive(feed: &Arc<Feed>, guests: &Arc<OfDoors>, session: Session) -> io::Result<()> {
    let guest = match &session {
        Session::Local(stream, _) => guests.local.enter(stream.as_fd())?,
        Session::Admin(stream) => guests.admin.enter(stream.as_fd())?,
    };
    let feed = Arc::clone(feed);
    let spawned = std::thread::Builder::new().name(CONTROL.to_owned()).spawn(move || {
        // An error means that the client has gone and needs no answer.
        let _ = match session {
            Session::Local(stream, peer) => answer_local(&feed.inner, stream, peer, &guest),
            Session::Admin(stream) => answer_admin(&feed, stream, &guest),
        };
        drop(guest);
        feed.inner.bell.ring();
    });
    spawned.map(drop)
}

enum Reply {
    Answer(Answer),
    Feed(Vec<Item>, String),
}

fn admin_reply(feed: &Feed, asked: RequestSummary, peer: SocketAddr) -> Reply {
    let (head, body) = match asked {
        Ok(asked) => asked,
        Err(answer) => return Reply::Answer(answer),
    };
    let to_head = head.method == Method::Head;
    match try_reply(feed, head, body, peer) {
        Ok(Reply::Answer(answer)) => Reply::Answer(answer.asked_with_head(to_head)),
        Ok(feed) => feed,
        Err((status, text)) => Reply::Answer(Answer::error(status, text).asked_with_head(to_head)),
    }
}

fn try_reply(feed: &Feed, head: RequestHead, body: Vec<u8>, peer: SocketAddr) -> Result<Reply, Denied> {
    let inner = &*feed.inner;
    let Some(sessions) = &inner.sessions else { return Err((404, "no browsers are served here")) };
    let token = inner.doors.token.as_deref();
    access::admit_place(&head, token.is_some())?;
    let wanted = Wanted::of(&head);
    match &wanted {
        Some(Wanted::Redirect) => return Ok(Reply::Answer(dashboard::redirect())),
        Some(Wanted::File(path)) => return Ok(Reply::Answer(dashboard::file(path, &head))),
        Some(Wanted::Login) => {
            let shown = dashboard::shown_token(&body).unwrap_or_default();
            let wrong = (401, "that is not the token");
            let token = token.ok_or(wrong)?;
            judge(inner, peer, shown.as_bytes(), token, wrong)?;
            let cookie = sessions.begin(Instant::now()).map_err(|_| (503, "no random numbers"))?;
            return Ok(Reply::Answer(Answer::bytes(204, "", Vec::new()).with("Set-Cookie", &cookie)));
        }
        _ => {}
    }
    let csrf = access::admit_who(&head, token, sessions, |shown, token| {
        judge(inner, peer, shown, token, access::NO_TOKEN)
    })?;
    if !matches!(head.method, Method::Get | Method::Head) {
        access::admit_change(&head, &csrf)?;
    }
    Ok(match wanted {
        Some(Wanted::Session) => Reply::Answer(dashboard::session(&csrf, token.is_some())),
        Some(Wanted::Leave) => {
            Reply::Answer(Answer::bytes(204, "", Vec::new()).with("Set-Cookie", &sessions.end(&csrf)))
        }
        Some(Wanted::Snapshot) => {
            let answered = inner.answer(&Question::get(format!("/{SNAPSHOT}")), Caller::Remote(peer));
            let taken = answered.read::<serde_json::Value>();
            Reply::Answer(taken.map_or_else(|| answered.into(), |taken| dashboard::snapshot(&taken)))
        }
        Some(Wanted::Feed) if feed.is_full() => return Err((503, "too many pages follow already")),
        Some(Wanted::Feed) => {
            let given = in_query(head.query().unwrap_or_default());
            match Item::all(given.all("of")) {
                Ok(items) => Reply::Feed(items, csrf),
                Err(refusal) => Reply::Answer(Answered::from(refusal).into()),
            }
        }
        _ => Reply::Answer(answer(inner, Ok((head, body)), Caller::Remote(peer))),
    })
}

/// Whether that is the token. An address that shows many wrong ones is not listened to for a while.
fn judge(inner: &Inner, peer: SocketAddr, shown: &[u8], token: &str, wrong: Denied) -> Result<(), Denied> {
    if !inner.strangers.may_show(peer.ip(), Instant::now()) {
        return Err(access::TOO_MANY);
    }
    if is_same(shown, token.as_bytes()) {
        return Ok(());
    }
    inner.note_wrong_token(peer);
    Err(wrong)
}

fn answer_local(inner: &Inner, mut stream: UnixStream, peer: Credentials, guest: &Guest) -> io::Result<()> {
    let asked = ask(&mut stream, |stream, left| stream.set_read_timeout(Some(left)))?;
    guest.has_asked();
    let answer = match admit_local(peer) {
        Ok(()) => answer(inner, asked, Caller::Local(peer)),
        Err((status, text)) => Answer::error(status, text),
    };
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_read_timeout(Some(LINGER))?;
    send(&mut stream, answer, |stream| stream.shutdown(std::net::Shutdown::Write))
}

fn answer_admin(feed: &Arc<Feed>, mut stream: TcpStream, guest: &Guest) -> io::Result<()> {
    let peer = stream.peer_addr()?;
    let asked = ask(&mut stream, |stream, left| stream.set_read_timeout(Some(left)))?;
    guest.has_asked();
    let answer = match admin_reply(feed, asked, peer) {
        Reply::Answer(answer) => answer,
        Reply::Feed(items, csrf) => return feed.join(stream, items, csrf, Caller::Remote(peer)),
    };
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_read_timeout(Some(LINGER))?;
    send(&mut stream, answer, |stream| stream.shutdown(std::net::Shutdown::Write))
}

/// Sends the answer, and reads the rest of the request until the peer has closed: unread bytes would reset the connection
/// and cut the answer.
fn send<S: Read + Write>(
    stream: &mut S,
    answer: Answer,
    shutdown: impl Fn(&S) -> io::Result<()>,
) -> io::Result<()> {
    stream.write_all(&answer.into_bytes())?;
    shutdown(stream)?;
    let deadline = Instant::now() + LINGER;
    let mut buffer = [0; 4096];
    while stream.read(&mut buffer)? > 0 && Instant::now() < deadline {}
    Ok(())
}

/// A request that has come, or why it is refused.
type RequestSummary = Result<(RequestHead, Vec<u8>), Answer>;

fn ask<S: Read>(
    stream: &mut S,
    limit: impl Fn(&S, Duration) -> io::Result<()>,
) -> io::Result<RequestSummary> {
    let deadline = Instant::now() + LIMIT;
    let (mut receiver, mut head) = (Receiver::new(), RequestHead::default());
    let (limits, mut input, mut body, mut has_head) = (Limits::default(), Vec::new(), Vec::new(), false);
    loop {
        let mut consumed = 0;
        let complete = loop {
            let step = match receiver.poll_event(&input[consumed..], &mut head, &limits) {
                Ok(step) => step,
                Err(error) => return Ok(Err(Answer::error(error.status.code(), error.reason))),
            };
            consumed += step.consumed;
            match step.event {
                Event::NeedMore => break false,
                Event::Head(facts) if facts.complete => break true,
                Event::Head(_) => has_head = true,
                Event::Data(data) => body.extend_from_slice(data),
                Event::Trailers(_) => {}
                Event::End => break true,
            }
        };
        if complete {
            return Ok(Ok((head, body)));
        }
        if body.len() > MAX_BODY {
            return Ok(Err(Answer::error(413, "the arguments are too long")));
        }
        input.drain(..consumed);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(Answer::error(408, "the request did not come in time")));
        }
        limit(stream, left)?;
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) if has_head || !input.is_empty() => {
                return Ok(Err(Answer::error(400, "the request is not complete")));
            }
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => input.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

fn answer(inner: &Inner, asked: RequestSummary, caller: Caller) -> Answer {
    let (head, body) = match asked {
        Ok(asked) => asked,
        Err(answer) => return answer,
    };
    let question = Question {
        method: head.method.to_string(),
        path: String::from_utf8_lossy(head.path()).into_owned(),
        query: String::from_utf8_lossy(head.query().unwrap_or_default()).into_owned(),
        body: String::from_utf8_lossy(&body).into_owned(),
        accept: head
            .fields
            .all("accept")
            .map(|value| String::from_utf8_lossy(value).into_owned())
            .collect::<Vec<_>>()
            .join(", "),
    };
    Answer::from(inner.answer(&question, caller)).asked_with_head(head.method == Method::Head)
}
