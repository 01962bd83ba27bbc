//! A control: its start, its thread, its end.

use std::io;
use std::sync::{Arc, RwLock};
use std::thread::JoinHandle;
use std::time::Instant;

use maitred_finding::Picture;
use maitred_server::Server;

use super::dashboard::Feed;
use super::doors::Bell;
use super::inner::{Answers, Inner};
use super::sessions::Sessions;
use super::strangers::Strangers;
use super::{Answered, Caller, Doors, Finder, Keeper, Owner, Question, Relay, WrongToken, http, picture_of};

/// A server that can be asked and changed, until [`end`](Self::end) or its drop.
pub struct Control {
    inner: Arc<Inner>,
    feed: Arc<Feed>,
    thread: Option<JoinHandle<()>>,
}

impl Control {
    /// Begins to answer. `owner` answers for the program around the server; `history` is none when another process
    /// keeps it, or when it is off.
    ///
    /// # Errors
    /// The process has no thread or descriptor left.
    pub fn start(
        server: &Arc<Server>,
        doors: Doors,
        owner: Arc<dyn Owner>,
        history: Option<Keeper>,
    ) -> io::Result<Self> {
        let server = RwLock::new(Some(Arc::clone(server)));
        let history = history.map(Box::new);
        Self::start_with(Answers::Server { server, owner, began: Instant::now(), history }, doors)
    }

    /// Begins to answer through `relay`; `wrong_token` is called for each client that shows a wrong one.
    pub fn relay(doors: Doors, relay: Relay, wrong_token: WrongToken) -> io::Result<Self> {
        Self::start_with(Answers::Relay { relay: RwLock::new(Some(relay)), wrong_token }, doors)
    }

    fn start_with(answers: Answers, doors: Doors) -> io::Result<Self> {
        let sessions = doors.admin().map(|address| Sessions::new(address.port())).transpose()?;
        let (bell, strangers, finder) = (Bell::new()?, Strangers::default(), Finder::new());
        let inner = Arc::new(Inner { answers, doors, bell, sessions, strangers, finder });
        let feed = Arc::new(Feed::new(Arc::clone(&inner)));
        let own = Arc::clone(&feed);
        let thread = std::thread::Builder::new().name(maitred_server::CONTROL.to_owned());
        let thread = thread.spawn(move || http::serve(&own))?;
        Ok(Self { inner, feed, thread: Some(thread) })
    }

    /// Where it answers.
    pub fn doors(&self) -> &Doors {
        &self.inner.doors
    }

    /// The answer to a question that came another way than by a door.
    pub fn ask(&self, question: &Question, caller: Caller) -> Answered {
        self.inner.answer(question, caller)
    }

    /// A picture of this process, to be compared with a later one; none after the end.
    pub fn picture(&self) -> Option<Picture> {
        self.inner.with_server(picture_of)
    }

    /// Lets go of the server: questions that are being answered are, later ones are not.
    pub fn end(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        // The last figures before the end belong in the file. Only the first call finds a server.
        self.inner.with_server(|asking| {
            if let Some(history) = asking.history {
                history.look_now(asking.server);
                history.note_routes(&asking.server.figures().statistics());
                history.write();
            }
        });
        let server = self.inner.end();
        // A guest that is still being answered has a part in the doors.
        if let Some(socket) = &self.inner.doors.local
            && let Err(error) = socket.withdraw()
            && let Some(server) = &server
        {
            let path = socket.path.display();
            server
                .log()
                .info(format_args!("the file {path} stays ({error}); the next server there replaces it"));
        }
        drop(server);
        self.feed.end();
        self.inner.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        self.finish();
    }
}
