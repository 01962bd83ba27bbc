//! One certificate, from the directory to the checked chain (RFC 8555 §7).
//!
//! ```text
//! Directory → Account → NewOrder → { Authorization → Publish → Answer → Validation }… → Ready → Finalize → Issuance
//!                                                                                                 → Certificate → Alternate… → Done
//! ```
//!
//! A request that needs a nonce is preceded by one for a nonce if there is none. Every stage may end in a [`Fault`]. A challenge that is
//! published is withdrawn in each case.

use std::fmt;
use std::time::Duration;

use maitred_tls::{CertificateRequest, is_token};
use serde_json::{Value, json};

use crate::account::{Account, base64url};
use crate::chain::{Chain, Held};
use crate::challenge::{Challenge, ChallengeKind};
use crate::fault::{Fault, Kind, Problem};
use crate::identifier::Identifier;
use crate::messages::{Authorization, Directory, OrderDocument, Status};
use crate::settings::Settings;
use crate::wire::{HttpRequest, HttpResponse, MAX_RESPONSE, Method, checked_url};

/// How many names a certificate may have; Let's Encrypt takes as many.
const MAX_IDENTIFIERS: usize = 100;

/// How often a request is sent again with a new nonce. Pebble refuses one nonce of twenty.
const MAX_NONCES: u32 = 8;

/// How often a question for a state is asked again after no answer.
const MAX_STUMBLES: u32 = 3;

/// How many requests an order may take: an order of 100 names takes about 800.
const MAX_REQUESTS: u32 = 2000;

/// How many further chains are looked at.
const MAX_ALTERNATES: usize = 8;

/// How long the waits of an order may take in all.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// A new certificate.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// The chain, the certificate first.
    pub chain_pem: String,
    /// The key.
    pub key_pem: String,
    /// The dates of the certificate.
    pub held: Held,
    /// Sentences for the operator, without a full stop.
    pub notes: Vec<String>,
}

impl fmt::Debug for Issued {
    /// Without the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Issued").field("held", &self.held).field("notes", &self.notes).finish_non_exhaustive()
    }
}

/// The next step of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this, then [`answered`](Ordering::answered) or [`not_answered`](Ordering::not_answered).
    Send(HttpRequest),
    /// Answer this challenge from now on. [`not_published`](Ordering::not_published) if that cannot be done.
    Publish(Challenge),
    /// Do not answer this challenge any longer.
    Withdraw(Challenge),
    /// Ask for the next step after this time.
    Wait(Duration),
    /// The end: the certificate.
    Issued(Box<Issued>),
    /// The end: there is none.
    Failed(Box<Fault>),
}

/// An order of one certificate.
#[derive(Debug)]
pub struct Ordering {
    settings: Settings,
    account: Account,
    identifiers: Vec<Identifier>,
    replaces: Option<String>,
    directory: Option<Directory>,
    order: Option<Placed>,
    stage: Stage,
    /// The nonce for the next request.
    nonce: Option<String>,
    /// Whether the request that has no answer yet is for a nonce.
    asks_nonce: bool,
    wait: Option<Duration>,
    published: Option<Challenge>,
    withdrawn: Option<Challenge>,
    now: u64,
    spent: Spent,
}

/// The counts of an order that have a limit.
#[derive(Debug, Default)]
struct Spent {
    requests: u32,
    /// Whether the CA was asked for the account.
    account: bool,
    nonces: u32,
    stumbles: u32,
    /// The questions for the state that is waited for.
    polls: u32,
    waited: Duration,
}

/// An order that the CA has taken.
#[derive(Debug)]
struct Placed {
    url: String,
    authorizations: Vec<String>,
    finalize: String,
    request: Option<CertificateRequest>,
}

#[derive(Debug)]
enum Stage {
    Directory,
    Account,
    NewOrder,
    /// The state of the authorisation with this index.
    Authorization(usize),
    Publish(usize, Challenge, String),
    /// Tells the CA that the challenge is published: its URL.
    Answer(usize, String),
    /// Waits for the verdict on the authorisation.
    Validation(usize),
    /// Waits until the order can be finalised.
    Ready,
    Finalize,
    /// Waits for the certificate.
    Issuance,
    Certificate(String),
    Alternate(Box<Chain>, Vec<String>),
    Done(Result<Box<Issued>, Box<Fault>>),
}

impl Ordering {
    /// An order for these names and addresses. `attempt` counts the tries: each begins with another kind of challenge. `replaces` is the
    /// [`id`](Held::id) of the certificate that the new one replaces.
    pub fn new(
        settings: &Settings,
        account: Account,
        identifiers: Vec<Identifier>,
        replaces: Option<String>,
        attempt: u32,
    ) -> Self {
        let mut settings = settings.clone();
        let kinds = settings.challenges.len().max(1);
        settings.challenges.rotate_left(attempt as usize % kinds);
        let fits = (1..=MAX_IDENTIFIERS).contains(&identifiers.len());
        let stage = if fits {
            Stage::Directory
        } else {
            let names = format!("a certificate has 1 to {MAX_IDENTIFIERS} names, not {}", identifiers.len());
            Stage::Done(Err(Box::new(Fault::new(Kind::Order, &names))))
        };
        Self {
            settings,
            account,
            identifiers,
            replaces,
            directory: None,
            order: None,
            stage,
            nonce: None,
            asks_nonce: false,
            wait: None,
            published: None,
            withdrawn: None,
            now: 0,
            spent: Spent::default(),
        }
    }

    /// The account, with its URL once the CA has told it: to be kept.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The next step, at the time `now` in seconds since 1970.
    pub fn next(&mut self, now: u64) -> Step {
        self.now = now;
        if let Some(challenge) = self.withdrawn.take() {
            return Step::Withdraw(challenge);
        }
        if let Some(wait) = self.wait.take() {
            return Step::Wait(wait);
        }
        match &self.stage {
            Stage::Done(Ok(issued)) => return Step::Issued(issued.clone()),
            Stage::Done(Err(fault)) => return Step::Failed(fault.clone()),
            Stage::Publish(index, challenge, url) => {
                let challenge = challenge.clone();
                self.stage = Stage::Answer(*index, url.clone());
                self.published = Some(challenge.clone());
                return Step::Publish(challenge);
            }
            _ => {}
        }
        match self.request() {
            Ok(request) => Step::Send(request),
            Err(fault) => {
                self.end(Err(fault));
                self.next(now)
            }
        }
    }

    /// The answer to the request of the last step.
    pub fn answered(&mut self, mut response: HttpResponse) {
        if let Some(nonce) = response.take_nonce() {
            self.nonce = Some(nonce);
        }
        let result = match (std::mem::take(&mut self.asks_nonce), response.status) {
            (true, ..400) if self.nonce.is_none() => Err(Fault::unreadable("it has no nonce")),
            (true, ..400) => Ok(()),
            (false, ..400) => self.advance(&response),
            _ => self.refused(&response),
        };
        if let Err(fault) = result {
            self.end(Err(fault));
        }
    }

    /// The request of the last step has no answer.
    pub fn not_answered(&mut self, why: &str) {
        self.asks_nonce = false;
        self.nonce = None;
        let fault = Fault::new(
            Kind::Unreachable,
            &format!("the CA at {} does not answer: {why}", self.settings.directory),
        );
        if let Err(fault) = self.stumble(fault) {
            self.end(Err(fault));
        }
    }

    /// The challenge of the last step could not be published.
    pub fn not_published(&mut self, why: &str) {
        let fault = Fault::new(Kind::Publishing, &format!("the challenge cannot be published: {why}"));
        self.end(Err(match &self.published {
            Some(challenge) => fault.of(&challenge.identifier),
            None => fault,
        }));
    }

    fn end(&mut self, result: Result<Box<Issued>, Fault>) {
        if let (Err(_), Stage::Alternate(first, _)) = (&result, &self.stage) {
            let first = first.clone();
            return self.choose(first, Vec::new());
        }
        self.withdraw();
        self.wait = None;
        let named = |fault: Fault| match self.identifiers.as_slice() {
            [only] => fault.of(only),
            _ => fault,
        };
        self.stage = Stage::Done(result.map_err(|fault| Box::new(named(fault))));
    }

    fn withdraw(&mut self) {
        self.withdrawn = self.published.take();
    }

    // Requests.

    fn request(&mut self) -> Result<HttpRequest, Fault> {
        self.spent.requests += 1;
        if self.spent.requests > MAX_REQUESTS {
            return Err(Fault::new(
                Kind::Slow,
                &format!("the order takes more than {MAX_REQUESTS} requests"),
            ));
        }
        let Some(directory) = &self.directory else {
            return Ok(HttpRequest::plain(Method::Get, &self.settings.directory));
        };
        let Some(nonce) = self.nonce.take() else {
            self.asks_nonce = true;
            return Ok(HttpRequest::plain(Method::Head, &directory.new_nonce));
        };
        let (url, payload) = self.post(directory)?;
        let url = url.to_owned();
        let is_certificate = matches!(self.stage, Stage::Certificate(_) | Stage::Alternate(..));
        let body = self.account.key.sign(self.account.url.as_deref(), &url, &nonce, payload.as_ref());
        Ok(HttpRequest {
            method: Method::Post,
            url,
            content_type: Some("application/jose+json"),
            accept: is_certificate.then_some("application/pem-certificate-chain"),
            body: body.ok_or_else(|| Fault::new(Kind::Account, "the key of the account cannot sign"))?,
        })
    }

    /// The URL and the payload of the stage's request.
    fn post<'a>(&'a self, directory: &'a Directory) -> Result<(&'a str, Option<Value>), Fault> {
        let lost = || Fault::new(Kind::Order, "the order has no such part");
        let order = self.order.as_ref().ok_or_else(lost);
        Ok(match &self.stage {
            Stage::Account => {
                (&directory.new_account, Some(self.settings.account_payload(&self.account.key, directory)?))
            }
            Stage::NewOrder => (
                &directory.new_order,
                Some(self.settings.order_payload(&self.identifiers, self.replaces.as_deref(), directory)?),
            ),
            Stage::Authorization(index) | Stage::Validation(index) => {
                (order?.authorizations.get(*index).ok_or_else(lost)?, None)
            }
            Stage::Answer(_, url) => (url, Some(json!({}))),
            Stage::Ready | Stage::Issuance => (&order?.url, None),
            Stage::Finalize => {
                let order = order?;
                let request = order.request.as_ref().ok_or_else(lost)?;
                (&order.finalize, Some(json!({ "csr": base64url(&request.der) })))
            }
            Stage::Certificate(url) => (url, None),
            Stage::Alternate(_, urls) => (urls.last().ok_or_else(lost)?, None),
            Stage::Directory | Stage::Publish(..) | Stage::Done(_) => return Err(lost()),
        })
    }

    // Answers.

    fn refused(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        let problem: Problem = response.json("a problem").unwrap_or_default();
        let fault = Fault::by(&problem, response.status, response.wait(self.now));
        match (problem.word(), &self.stage) {
            ("badNonce", _) if self.spent.nonces < MAX_NONCES => {
                self.spent.nonces += 1;
                Ok(())
            }
            // The CA has forgotten the account, or the directory has another host by now: the key finds it, or makes a new one.
            ("accountDoesNotExist" | "malformed" | "unauthorized", Stage::NewOrder)
                if !self.spent.account =>
            {
                self.account.url = None;
                self.stage = Stage::Account;
                Ok(())
            }
            // Replaced already, of another CA or account: a new certificate is wanted in any case (RFC 9773 §5).
            (_, Stage::NewOrder)
                if fault.kind != Kind::RateLimited && response.status < 500 && self.replaces.is_some() =>
            {
                self.replaces = None;
                Ok(())
            }
            ("orderNotReady", Stage::Finalize) => {
                self.stage = Stage::Ready;
                self.poll(response)
            }
            _ if fault.kind == Kind::Broken => self.stumble(fault),
            _ => Err(fault),
        }
    }

    /// Asks once more where that does no harm.
    fn stumble(&mut self, fault: Fault) -> Result<(), Fault> {
        let is_question = matches!(
            self.stage,
            Stage::Authorization(_)
                | Stage::Validation(_)
                | Stage::Ready
                | Stage::Issuance
                | Stage::Certificate(_)
        );
        self.spent.stumbles += 1;
        if !is_question || self.spent.stumbles > MAX_STUMBLES {
            return Err(fault);
        }
        self.pause(fault.retry_after.unwrap_or(Duration::from_secs(5)))
    }

    fn advance(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        self.spent.nonces = 0;
        match std::mem::replace(&mut self.stage, Stage::Ready) {
            Stage::Directory => self.take_directory(response),
            Stage::Account => {
                let url = response
                    .location
                    .as_deref()
                    .ok_or_else(|| Fault::unreadable("the account has no URL"))?;
                self.account.url = Some(self.checked(url)?);
                self.spent.account = true;
                self.stage = Stage::NewOrder;
                Ok(())
            }
            Stage::NewOrder => self.take_order(response),
            Stage::Authorization(index) => self.take_authorization(index, response),
            Stage::Answer(index, _) => {
                self.stage = Stage::Validation(index);
                self.spent.polls = 0;
                self.poll(response)
            }
            Stage::Validation(index) => self.take_verdict(index, response),
            Stage::Ready => self.take_state(response, Stage::Ready),
            Stage::Finalize | Stage::Issuance => self.take_state(response, Stage::Issuance),
            Stage::Certificate(_) => self.take_certificate(response),
            Stage::Alternate(first, urls) => self.take_alternate(first, urls, response),
            stage @ (Stage::Publish(..) | Stage::Done(_)) => {
                self.stage = stage;
                Ok(())
            }
        }
    }

    fn take_directory(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        let directory: Directory = response.json("the directory")?;
        for url in [&directory.new_nonce, &directory.new_account, &directory.new_order] {
            self.checked(url)?;
        }
        self.directory = Some(directory);
        self.stage = if self.account.url.is_some() { Stage::NewOrder } else { Stage::Account };
        Ok(())
    }

    fn take_order(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        let order: OrderDocument = response.json("the order")?;
        let url = response.location.as_deref().ok_or_else(|| Fault::unreadable("the order has no URL"))?;
        if order.authorizations.len() > self.identifiers.len() {
            return Err(Fault::unreadable("the order has more authorisations than names"));
        }
        let authorizations: Result<_, _> = order.authorizations.iter().map(|url| self.checked(url)).collect();
        self.order = Some(Placed {
            url: self.checked(url)?,
            authorizations: authorizations?,
            finalize: self.checked(&order.finalize)?,
            request: None,
        });
        self.go_to_authorization(0);
        Ok(())
    }

    fn go_to_authorization(&mut self, index: usize) {
        self.spent.polls = 0;
        let count = self.order.as_ref().map_or(0, |order| order.authorizations.len());
        self.stage = if index < count { Stage::Authorization(index) } else { Stage::Ready };
    }

    fn take_authorization(&mut self, index: usize, response: &HttpResponse) -> Result<(), Fault> {
        let (authorization, identifier) = self.authorization(response)?;
        match authorization.status {
            Status::Valid => {
                self.go_to_authorization(index + 1);
                return Ok(());
            }
            Status::Pending => {}
            _ => return Err(self.verdict(&authorization, &identifier)),
        }
        let offered =
            |kind: &ChallengeKind| authorization.challenges.iter().find(|offer| offer.kind == kind.as_str());
        let chosen = self.settings.challenges.iter().find_map(|kind| Some((*kind, offered(kind)?)));
        let Some((kind, offer)) = chosen else {
            let kinds: Vec<&str> = authorization.challenges.iter().map(|offer| offer.kind.as_str()).collect();
            let said = format!("the CA offers the challenges {}, and none of them is on", kinds.join(", "));
            return Err(Fault::new(Kind::Challenge, &said).of(&identifier));
        };
        if !is_token(offer.token.as_bytes()) {
            return Err(Fault::unreadable("the token of a challenge is not base64url").of(&identifier));
        }
        let key_authorization = self.account.key.authorize(&offer.token);
        let challenge = Challenge {
            kind,
            identifier,
            token: offer.token.clone(),
            key_authorization: key_authorization
                .ok_or_else(|| Fault::new(Kind::Account, "the key of the account cannot be read"))?,
        };
        self.stage = Stage::Publish(index, challenge, self.checked(&offer.url)?);
        Ok(())
    }

    fn take_verdict(&mut self, index: usize, response: &HttpResponse) -> Result<(), Fault> {
        let (authorization, identifier) = self.authorization(response)?;
        match authorization.status {
            Status::Valid => {
                self.withdraw();
                self.go_to_authorization(index + 1);
                Ok(())
            }
            Status::Pending | Status::Processing => {
                self.stage = Stage::Validation(index);
                self.poll(response).map_err(|fault| fault.of(&identifier))
            }
            _ => Err(self.verdict(&authorization, &identifier)),
        }
    }

    /// An authorisation, and the one of our names to which it belongs.
    fn authorization(&self, response: &HttpResponse) -> Result<(Authorization, Identifier), Fault> {
        let authorization: Authorization = response.json("the authorisation")?;
        let named = authorization.identifier.value.parse::<Identifier>().ok();
        let identifier =
            self.identifiers.iter().map(Identifier::checked).find(|own| Some(own) == named.as_ref());
        let identifier =
            identifier.ok_or_else(|| Fault::unreadable("the authorisation is for another name"))?;
        Ok((authorization, identifier))
    }

    fn verdict(&self, authorization: &Authorization, identifier: &Identifier) -> Fault {
        let problem = authorization.challenges.iter().find_map(|offer| offer.error.as_ref());
        let fault = match problem {
            Some(problem) => Fault::by(problem, 0, None),
            None => Fault::new(Kind::Challenge, &format!("the authorisation is {:?}", authorization.status)),
        };
        fault.of(identifier)
    }

    /// The state of the order; `waiting` is the stage in which the next one is waited for.
    fn take_state(&mut self, response: &HttpResponse, waiting: Stage) -> Result<(), Fault> {
        let order: OrderDocument = response.json("the order")?;
        let finalized = matches!(waiting, Stage::Issuance);
        match (order.status, order.certificate) {
            (Status::Invalid, _) => Err(match &order.error {
                Some(problem) => Fault::by(problem, 0, None),
                None => Fault::new(Kind::Order, "the order has become invalid"),
            }),
            (Status::Valid, Some(url)) if finalized => {
                self.stage = Stage::Certificate(self.checked(&url)?);
                Ok(())
            }
            (Status::Ready, _) if !finalized => self.finalize(),
            (Status::Pending | Status::Processing | Status::Ready, _) => {
                self.stage = waiting;
                self.poll(response)
            }
            _ => Err(Fault::unreadable("the state of the order does not fit")),
        }
    }

    fn finalize(&mut self) -> Result<(), Fault> {
        let names: Vec<String> = self.identifiers.iter().map(ToString::to_string).collect();
        let request = maitred_tls::request(&names).map_err(|why| Fault::new(Kind::Order, &why))?;
        if let Some(order) = &mut self.order {
            order.request.get_or_insert(request);
        }
        self.stage = Stage::Finalize;
        Ok(())
    }

    fn take_certificate(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        let chain = self.chain(response)?;
        let mut urls = Vec::new();
        if self.settings.preferred_chain.as_ref().is_some_and(|name| !chain.ends_at(name)) {
            urls = response
                .linked("alternate")
                .take(MAX_ALTERNATES)
                .map(|url| self.checked(url))
                .collect::<Result<_, _>>()?;
            urls.reverse();
        }
        self.choose(Box::new(chain), urls);
        Ok(())
    }

    fn take_alternate(
        &mut self,
        first: Box<Chain>,
        mut urls: Vec<String>,
        response: &HttpResponse,
    ) -> Result<(), Fault> {
        urls.pop();
        match self.chain(response) {
            Ok(other) if self.settings.preferred_chain.as_ref().is_some_and(|name| other.ends_at(name)) => {
                self.choose(Box::new(other), Vec::new());
            }
            _ => self.choose(first, urls),
        }
        Ok(())
    }

    /// Goes on with the chains at `urls`, or ends with this one.
    fn choose(&mut self, chain: Box<Chain>, urls: Vec<String>) {
        if !urls.is_empty() {
            self.stage = Stage::Alternate(chain, urls);
            return;
        }
        let mut notes: Vec<String> = chain.held.warning(self.now).map(str::to_owned).into_iter().collect();
        if let Some(name) = self.settings.preferred_chain.as_ref().filter(|name| !chain.ends_at(name)) {
            notes.push(format!(
                "the CA has no chain that ends at \"{name}\" (acme-chain): its first one is used"
            ));
        }
        let request = self.order.as_mut().and_then(|order| order.request.take());
        let key_pem = request.map(|request| request.key_pem).unwrap_or_default();
        self.end(Ok(Box::new(Issued { chain_pem: chain.pem, key_pem, held: chain.held, notes })));
    }

    fn chain(&self, response: &HttpResponse) -> Result<Chain, Fault> {
        if response.body.len() > MAX_RESPONSE {
            return Err(Fault::unreadable(&format!("the chain is longer than {MAX_RESPONSE} bytes")));
        }
        let key = self
            .order
            .as_ref()
            .and_then(|order| order.request.as_ref())
            .map(|request| request.key_pem.as_str());
        Chain::check(&response.body, key.unwrap_or_default().as_bytes(), &self.identifiers, self.now)
    }

    /// Waits as long as the CA wants, or a little longer each time.
    fn poll(&mut self, response: &HttpResponse) -> Result<(), Fault> {
        self.spent.polls += 1;
        let own = Duration::from_secs(u64::from(self.spent.polls).div_ceil(2).min(10));
        self.pause(response.wait(self.now).unwrap_or(own))
    }

    fn pause(&mut self, wait: Duration) -> Result<(), Fault> {
        let wait = wait.max(Duration::from_secs(1));
        self.spent.waited = self.spent.waited.saturating_add(wait);
        if self.spent.waited > PATIENCE {
            let mut fault = Fault::new(
                Kind::Slow,
                &format!("the CA wants more than {} minutes", PATIENCE.as_secs() / 60),
            );
            fault.retry_after = Some(wait);
            return Err(fault);
        }
        self.wait = Some(wait);
        Ok(())
    }

    fn checked(&self, url: &str) -> Result<String, Fault> {
        checked_url(url, &self.settings.directory)
    }
}
