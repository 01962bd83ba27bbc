//! Tickets by which a client resumes a session (TLS 1.3: RFC 8446 §4.6.1, §2.2; TLS 1.2: RFC 5077), and keys that change by the clock.
//!
//! ```text
//!   period        n-1            n             n+1        eight hours each, counted from 1970
//!   secret     s(n-1)  ─HKDF→  s(n)  ─HKDF→  s(n+1)      a ratchet: there is no way back
//!   held       s(n-1)                                     in period n, all of this is made of it
//!   opened       yes           yes           yes
//!   sealed                     with s(n)
//! ```
//! Processes with the same secret have the same keys at the same time, without asking each other: workers of one
//! supervisor, servers with the same key file. The next period's tickets are opened, too, as the clocks of two servers
//! differ. A ticket is opened for at least eight hours and at most sixteen, and then nothing in memory can open it.
//!
//! With a key file each period's secret is made of the file, so an attacker who gets the file can open the tickets of
//! all times. TLS 1.3 makes a new key exchange with each resumption, so traffic stays closed; TLS 1.2 does not.
//!
//! A ticket: 16 bytes name of its key, 32 random bytes, the sealed state, 16 bytes tag. Each ticket is sealed by AES-256-GCM with a key and a nonce of
//! its own, made of the period's key and the random bytes, so that there is no number of tickets that would be too many for one key.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{self, HKDF_SHA256, KeyType, Prk, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use zeroize::Zeroizing;

use crate::clock::Clock;

/// How long a key seals, in seconds. Also the lifetime of a ticket that clients are told (at most seven days, RFC 8446
/// §4.6.1).
const PERIOD: u64 = 8 * 60 * 60;

/// The most periods that a secret is carried on at once: 100 years.
const MAX_STEPS: u64 = 110_000;

/// The least bytes of a key file: as many as a secret has.
const MIN_FILE: usize = 32;

/// The least different bytes of a key file. Of 32 random bytes, or of 44 characters of base64, fewer than these come once in 10^20 files.
const MIN_DIFFERENT: usize = 12;

const NAME: usize = 16;
const SEED: usize = 32;
const TAG: usize = 16;

/// Ticket keys that change by the clock. A copy shares them.
#[derive(Clone)]
pub struct Tickets {
    source: Source,
    clock: Clock,
}

#[derive(Clone)]
enum Source {
    Ratchet(Arc<Mutex<Held>>),
    File(Arc<Zeroizing<[u8; 32]>>),
}

#[derive(Clone)]
struct Held {
    period: u64,
    secret: Zeroizing<[u8; 32]>,
}

/// The secret that a process gives another one so that both have the same ticket keys.
#[derive(Clone)]
pub struct TicketSecret {
    /// [`OF_A_FILE`](Self::OF_A_FILE): not of a period.
    period: u64,
    secret: Zeroizing<[u8; 32]>,
}

impl TicketSecret {
    /// How many bytes it has.
    pub const LENGTH: usize = 40;

    const OF_A_FILE: u64 = u64::MAX;

    /// The secret as bytes: eight for the period, the most significant first, and 32.
    pub fn to_bytes(&self) -> Zeroizing<[u8; Self::LENGTH]> {
        let mut bytes = Zeroizing::new([0; Self::LENGTH]);
        let (period, secret) = bytes.split_at_mut(8);
        period.copy_from_slice(&self.period.to_be_bytes());
        secret.copy_from_slice(&*self.secret);
        bytes
    }

    /// Reads the output of [`to_bytes`](Self::to_bytes).
    pub fn from_bytes(bytes: &[u8; Self::LENGTH]) -> Self {
        let (mut period, mut secret) = ([0; 8], Zeroizing::new([0; 32]));
        let (first, rest) = bytes.split_at(8);
        period.copy_from_slice(first);
        secret.copy_from_slice(rest);
        Self { period: u64::from_be_bytes(period), secret }
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret")
    }
}

/// Why the content of a key file makes no ticket keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketKeyError {
    /// So many bytes, fewer than 32.
    Short(usize),
    /// Few different bytes: they were not drawn at random.
    NotRandom,
    /// There are no random numbers.
    NoRandomness,
}

impl fmt::Display for TicketKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(length) => write!(
                f,
                "the ticket key has {length} bytes, and it takes {MIN_FILE} or more; `openssl rand -base64 48` writes a good one"
            ),
            Self::NotRandom => f.write_str(
                "the ticket key has too few different bytes to be random; `openssl rand -base64 48` writes a good one",
            ),
            Self::NoRandomness => f.write_str("the system gives no random numbers for ticket keys"),
        }
    }
}

impl std::error::Error for TicketKeyError {}

impl Tickets {
    /// New keys, which no other process has.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn random(clock: Clock) -> Result<Self, TicketKeyError> {
        let mut secret = Zeroizing::new([0; 32]);
        rand::fill(&mut *secret).map_err(|_| TicketKeyError::NoRandomness)?;
        let period = (clock() / PERIOD).saturating_sub(1);
        Ok(Self::from_secret(&TicketSecret { period, secret }, clock))
    }

    /// The keys of the process that this secret comes from.
    pub fn from_secret(secret: &TicketSecret, clock: Clock) -> Self {
        let TicketSecret { period, secret } = secret.clone();
        let source = if period == TicketSecret::OF_A_FILE {
            Source::File(Arc::new(secret))
        } else {
            Source::Ratchet(Arc::new(Mutex::new(Held { period, secret })))
        };
        Self { source, clock }
    }

    /// The keys of all servers with the same key file. This is its content: 32 random bytes or more in any form. Where
    /// it is text, white space at its ends does not count.
    ///
    /// # Errors
    /// When it is too short, or is not random at first sight.
    pub fn from_key_file(content: &[u8], clock: Clock) -> Result<Self, TicketKeyError> {
        let content = if content.is_ascii() { content.trim_ascii() } else { content };
        if content.len() < MIN_FILE {
            return Err(TicketKeyError::Short(content.len()));
        }
        let mut seen = [false; 256];
        for byte in content {
            if let Some(seen) = seen.get_mut(usize::from(*byte)) {
                *seen = true;
            }
        }
        if seen.iter().filter(|seen| **seen).count() < MIN_DIFFERENT {
            return Err(TicketKeyError::NotRandom);
        }
        let root = Salt::new(HKDF_SHA256, b"maitred: ticket key file").extract(content);
        let secret = expand(&root, &[b"root"]);
        Ok(Self::from_secret(&TicketSecret { period: TicketSecret::OF_A_FILE, secret }, clock))
    }

    /// The secret with which another process has the same keys from now on. It opens no tickets of periods before the
    /// last one.
    pub fn secret(&self) -> TicketSecret {
        match &self.source {
            Source::File(root) => {
                TicketSecret { period: TicketSecret::OF_A_FILE, secret: Zeroizing::clone(root) }
            }
            Source::Ratchet(held) => {
                let Held { period, secret } = carried_on(held, (self.clock)() / PERIOD);
                TicketSecret { period, secret }
            }
        }
    }

    /// The secrets of the last, this and the next period, and the number of this one; without the last one where the clock has been put back to
    /// before the first one that is known.
    fn secrets(&self) -> (u64, [Option<Zeroizing<[u8; 32]>>; 3]) {
        let now = (self.clock)() / PERIOD;
        match &self.source {
            Source::File(root) => {
                let root = prk(&***root);
                let of = |period: u64| expand::<32>(&root, &[b"period", &period.to_be_bytes()]);
                (now, [now.checked_sub(1).map(of), Some(of(now)), Some(of(now.saturating_add(1)))])
            }
            Source::Ratchet(held) => {
                let held = carried_on(held, now);
                let second = next(&held.secret);
                if held.period < now {
                    let third = next(&second);
                    (held.period + 1, [Some(held.secret), Some(second), Some(third)])
                } else {
                    (held.period, [None, Some(held.secret), Some(second)])
                }
            }
        }
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

/// Forgets secrets that are older than the period before `now`, and returns the one that is held then.
fn carried_on(held: &Mutex<Held>, now: u64) -> Held {
    let mut held = held.lock().unwrap_or_else(PoisonError::into_inner);
    let oldest = now.saturating_sub(1);
    for _ in 0..oldest.saturating_sub(held.period).min(MAX_STEPS) {
        held.secret = next(&held.secret);
    }
    held.period = held.period.max(oldest);
    held.clone()
}

fn next(secret: &[u8; 32]) -> Zeroizing<[u8; 32]> {
    expand(&prk(secret), &[b"maitred: secret of the next period"])
}

fn prk(secret: &[u8]) -> Prk {
    Prk::new_less_safe(HKDF_SHA256, secret)
}

struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// RFC 5869 §2.3. It fails only for lengths beyond 255 hashes; ours are constants below that.
fn expand<const N: usize>(key: &Prk, info: &[&[u8]]) -> Zeroizing<[u8; N]> {
    const { assert!(N <= 255 * 32) };
    let mut bytes = Zeroizing::new([0; N]);
    let filled = key.expand(info, Length(N)).and_then(|okm: hkdf::Okm<'_, Length>| okm.fill(&mut *bytes));
    debug_assert!(filled.is_ok());
    bytes
}

pub(crate) struct Ticketer {
    tickets: Tickets,
    generation: [u8; 32],
    /// When resumption ends, in seconds since 1970, because something by which clients were verified is out of date then. `None`: never.
    until: Option<u64>,
    keys: ArcSwap<Keys>,
}

struct Keys {
    period: u64,
    keys: [Option<Key>; 3],
}

struct Key {
    name: [u8; NAME],
    prk: Prk,
}

impl Ticketer {
    /// `generation` names the rules by which clients were verified: a ticket is opened only by a ticketer with the same
    /// ones.
    pub(crate) fn new(tickets: Tickets, generation: [u8; 32], until: Option<u64>) -> Self {
        let keys = ArcSwap::from_pointee(Keys::new(&tickets, &generation));
        Self { tickets, generation, until, keys }
    }

    /// Forgets the keys of periods that are over. Otherwise the next ticket does that.
    pub(crate) fn forget_old_keys(&self) {
        self.keys();
    }

    fn keys(&self) -> Arc<Keys> {
        let keys = self.keys.load_full();
        // When the clock was put back, the keys stay until their time comes again.
        if keys.period >= (self.tickets.clock)() / PERIOD {
            return keys;
        }
        let keys = Arc::new(Keys::new(&self.tickets, &self.generation));
        self.keys.store(Arc::clone(&keys));
        keys
    }
}

impl Keys {
    fn new(tickets: &Tickets, generation: &[u8; 32]) -> Self {
        let (period, secrets) = tickets.secrets();
        let keys = secrets.map(|secret| {
            let bytes: Zeroizing<[u8; NAME + 32]> =
                expand(&prk(&*secret?), &[b"maitred: ticket key", generation]);
            let (name, secret) = bytes.split_first_chunk::<NAME>()?;
            Some(Key { name: *name, prk: prk(secret) })
        });
        Self { period, keys }
    }
}

impl Key {
    fn of_ticket(&self, seed: &[u8]) -> Option<(LessSafeKey, Nonce)> {
        let bytes: Zeroizing<[u8; 32 + 12]> = expand(&self.prk, &[b"maitred: ticket", seed]);
        let (key, nonce) = bytes.split_first_chunk::<32>()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?);
        Some((key, Nonce::try_assume_unique_for_key(nonce).ok()?))
    }

    fn seal(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut ticket = Vec::with_capacity(NAME + SEED + plain.len() + TAG);
        let mut head = [0; NAME + SEED];
        let (name, seed) = head.split_at_mut(NAME);
        name.copy_from_slice(&self.name);
        rand::fill(seed).ok()?;
        let (key, nonce) = self.of_ticket(seed)?;
        ticket.extend_from_slice(&head);
        ticket.extend_from_slice(plain);
        let sealed = ticket.get_mut(NAME + SEED..)?;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(head), sealed).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn open(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (head, sealed) = ticket.split_first_chunk::<{ NAME + SEED }>()?;
        let (key, nonce) = self.of_ticket(head.get(NAME..)?)?;
        let mut sealed = sealed.to_vec();
        let length = key.open_in_place(nonce, Aad::from(head), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        const { PERIOD as u32 }
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let [_, this, _] = &self.keys().keys;
        this.as_ref()?.seal(plain)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        if self.until.is_some_and(|until| (self.tickets.clock)() >= until) {
            return None;
        }
        let name = ticket.first_chunk::<NAME>()?;
        self.keys().keys.iter().flatten().find(|key| key.name == *name)?.open(ticket)
    }
}

impl fmt::Debug for Ticketer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticketer")
    }
}

#[cfg(test)]
mod tests;
