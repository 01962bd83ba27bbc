//! Sessions of browsers that have shown the token: a cookie, and for changes a value that a page of another site cannot
//! know.
//!
//! A browser sends a cookie with every request, also with those that another page makes. So a change has to show [`CSRF`], whose value only a
//! page of the same origin can read.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock;

pub(super) const CSRF: &str = "x-csrf-token";

const LASTS: Duration = Duration::from_secs(12 * 3600);

/// Sessions at a time: for a further one the oldest ends.
const MOST: usize = 64;

struct Session {
    id: String,
    csrf: String,
    ends: Instant,
}

pub(super) struct Sessions {
    /// The CSRF value for changes from a browser when no token is needed.
    open: String,
    /// Cookies do not tell ports apart.
    cookie: String,
    sessions: Mutex<Vec<Session>>,
}

impl Sessions {
    /// `port` is that of the listener.
    /// Errors: the system has no random numbers.
    pub(super) fn new(port: u16) -> std::io::Result<Self> {
        Ok(Self { open: random()?, cookie: format!("maitred-{port}"), sessions: Mutex::default() })
    }

    pub(super) fn open_csrf(&self) -> &str {
        &self.open
    }

    /// Begins one; the value of `Set-Cookie`.
    pub(super) fn begin(&self, now: Instant) -> std::io::Result<String> {
        let (id, csrf) = (random()?, random()?);
        let cookie =
            format!("{}={id}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}", self.cookie, LASTS.as_secs());
        let mut sessions = lock(&self.sessions);
        sessions.retain(|session| session.ends > now);
        if sessions.len() >= MOST {
            sessions.remove(0);
        }
        sessions.push(Session { id, csrf, ends: now + LASTS });
        Ok(cookie)
    }

    /// The CSRF value of the session that these cookies name; none if it is none of ours.
    pub(super) fn csrf<'a>(&self, cookies: impl Iterator<Item = &'a [u8]>, now: Instant) -> Option<String> {
        let id = self.id(cookies)?;
        let sessions = lock(&self.sessions);
        let found = sessions.iter().find(|session| is_same(id, session.id.as_bytes()));
        found.filter(|session| session.ends > now).map(|session| session.csrf.clone())
    }

    pub(super) fn end(&self, csrf: &str) -> String {
        lock(&self.sessions).retain(|session| session.csrf != csrf);
        format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", self.cookie)
    }

    /// Whether the session with this CSRF value goes on; that of browsers without a token always does.
    pub(super) fn lasts(&self, csrf: &str, now: Instant) -> bool {
        csrf == self.open
            || lock(&self.sessions).iter().any(|session| session.csrf == csrf && session.ends > now)
    }

    fn id<'a>(&self, cookies: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
        let mut pairs = cookies.flat_map(|value| value.split(|byte| *byte == b';'));
        pairs.find_map(|pair| pair.trim_ascii().strip_prefix(self.cookie.as_bytes())?.strip_prefix(b"="))
    }
}

/// Compares without stopping at the first difference: how long it takes says nothing of the token but its length.
pub(super) fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differences = shown.iter().zip(token).fold(0, |all, (one, other)| all | black_box(one ^ other));
    shown.len() == token.len() && differences == 0
}

fn random() -> std::io::Result<String> {
    let mut bytes = [0; 32];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if filled < bytes.len() {
        return Err(std::io::Error::other("the system gives no random numbers"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_its_cookie_and_ends() {
        let sessions = Sessions::new(9000).expect("random numbers");
        let now = Instant::now();
        let set = sessions.begin(now).expect("random numbers");
        let pair = set.split(';').next().expect("a pair");
        assert!(pair.starts_with("maitred-9000=") && set.contains("HttpOnly; SameSite=Strict"));
        let csrf = |cookies: &str, at| sessions.csrf([cookies.as_bytes()].into_iter(), at);
        let shown = csrf(&format!("other=1; {pair}"), now).expect("a session");
        assert!(sessions.lasts(&shown, now) && shown != sessions.open_csrf());
        assert_eq!(csrf(&pair.replace("9000", "9001"), now), None, "of another server");
        assert_eq!(csrf(&format!("{pair}0"), now), None);
        assert_eq!(csrf("maitred-9000=", now), None);
        assert_eq!(csrf(pair, now + LASTS), None, "too old");
        assert!(!sessions.lasts(&shown, now + LASTS));
        sessions.end(&shown);
        assert_eq!(csrf(pair, now), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let sessions = Sessions::new(1).expect("random numbers");
        let now = Instant::now();
        let all: Vec<String> = (0..=MOST).map(|_| sessions.begin(now).expect("random numbers")).collect();
        let is_in = |set: &String| {
            let pair = set.split(';').next().unwrap_or_default();
            sessions.csrf([pair.as_bytes()].into_iter(), now).is_some()
        };
        assert_eq!(all.iter().filter(|set| is_in(set)).count(), MOST);
        assert!(!is_in(&all[0]));
    }
}
