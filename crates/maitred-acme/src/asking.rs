//! Asking a CA when it wants a certificate to be renewed (RFC 9773 §4).

use std::time::Duration;

use crate::fault::{Fault, Kind, Problem};
use crate::messages::{Directory, RenewalInfo, Window};
use crate::wire::{HttpRequest, HttpResponse, Method, checked_url, is_base64url};

/// The question for a window: the directory, then the window.
#[derive(Debug)]
pub struct Asking {
    directory: String,
    id: String,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Directory,
    Window(String),
    Done(Asked),
}

/// The next step of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Send this, and give back the answer.
    Send(HttpRequest),
    /// The end: the window, or `None` if the CA gives none; and when the CA wants to be asked again. For [`Schedule::window`](crate::Schedule::window).
    Done(Result<Option<Window>, Fault>, Option<Duration>),
}

impl Asking {
    /// Asks for the window of the certificate `id` at this directory.
    pub fn new(directory: &str, id: &str) -> Self {
        Self { directory: directory.to_owned(), id: id.to_owned(), stage: Stage::Directory }
    }

    /// The next step.
    pub fn next(&self) -> Asked {
        match &self.stage {
            Stage::Directory => Asked::Send(HttpRequest::plain(Method::Get, &self.directory)),
            Stage::Window(url) => Asked::Send(HttpRequest::plain(Method::Get, url)),
            Stage::Done(asked) => asked.clone(),
        }
    }

    /// The answer to the request of the last step.
    pub fn answered(&mut self, response: &HttpResponse, now: u64) {
        let wait = response.wait(now);
        self.stage = match self.read(response, wait) {
            Ok(stage) => stage,
            Err(fault) => Stage::Done(Asked::Done(Err(fault), wait)),
        };
    }

    /// The request of the last step has no answer.
    pub fn not_answered(&mut self, why: &str) {
        self.stage = Stage::Done(Asked::Done(Err(Fault::new(Kind::Unreachable, why)), None));
    }

    fn read(&self, response: &HttpResponse, wait: Option<Duration>) -> Result<Stage, Fault> {
        if !(200..300).contains(&response.status) {
            let problem: Problem = response.json("a problem").unwrap_or_default();
            return Err(Fault::by(&problem, response.status, wait));
        }
        if let Stage::Window(_) = self.stage {
            let info: RenewalInfo = response.json("the renewal information")?;
            return Ok(Stage::Done(Asked::Done(Ok(Some(info.window(&self.id)?)), wait)));
        }
        let directory: Directory = response.json("the directory")?;
        let Some(base) = directory.renewal_info else { return Ok(Stage::Done(Asked::Done(Ok(None), None))) };
        if !self.id.split('.').all(is_base64url) {
            return Ok(Stage::Done(Asked::Done(Ok(None), None)));
        }
        let url = format!("{}/{}", base.trim_end_matches('/'), self.id);
        Ok(Stage::Window(checked_url(&url, &self.directory)?))
    }
}
