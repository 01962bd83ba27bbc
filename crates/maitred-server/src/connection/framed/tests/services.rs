//! A service of the engine over HTTP/2: it answers one stream from the event of another one.

use std::sync::Arc;

use maitred_runtime::Handler;
use maitred_testkit::wall::Wall;

use super::client::{Client, Part, WINDOW, body, data, ok};
use super::open_for;
use crate::connection::Protocol;
use crate::connection::framed::Framed;

fn with_wall() -> (Client, Arc<Wall>) {
    let wall = Arc::new(Wall::default());
    let handler = Arc::clone(&wall) as Arc<dyn Handler>;
    let mut client =
        Client::of(open_for(handler, 4 << 20, |_| {}, |site| Protocol::Framed(Framed::new(site))));
    client.begin(&[]);
    (client, wall)
}

impl Client {
    /// Asks the wall, and returns all that the server sends.
    fn wall(&mut self, stream: u32, path: &str) -> Vec<Part> {
        let jobs = self.get(stream, path, &[]);
        self.driven.run_here(jobs);
        self.driven.goes_on();
        self.answers()
    }
}

fn answer(stream: u32, text: &str) -> [Part; 3] {
    [ok(stream), data(stream, text), Part::End(stream)]
}

#[test]
fn a_stream_is_answered_from_the_event_of_another_one() {
    let (mut client, _wall) = with_wall();
    assert_eq!(client.wall(1, "/listen"), []);
    assert_eq!(client.wall(3, "/say?5"), [&[ok(1), data(1, "wwwww")][..], &answer(3, "1 of 1")].concat());
    assert_eq!(client.wall(5, "/end"), [&[Part::End(1)][..], &answer(5, "0 of 1")].concat());
}

#[test]
fn a_stream_that_its_peer_resets_is_told_to_the_service() {
    let (mut client, wall) = with_wall();
    client.wall(1, "/listen");
    let before = wall.changes();
    assert!(client.resets(1).is_empty());
    assert!(wall.changes() > before);
    assert_eq!(client.wall(3, "/say?5"), answer(3, "0 of 0"));
}

#[test]
fn a_stream_without_a_window_gets_nothing_more_until_its_peer_opens_one() {
    let (mut client, wall) = with_wall();
    client.wall(1, "/listen");
    let much = WINDOW + (1 << 20);
    let sent = client.wall(3, &format!("/say?{much}"));
    assert_eq!(body(&sent, 1).len(), WINDOW, "as much as the window");
    // The connection's window is used up, too.
    assert!(client.gives(0, 2 << 20).is_empty());
    client.answers();
    assert_eq!(body(&client.wall(5, "/say?1"), 5), b"0 of 1", "there is no room");
    let before = wall.changes();
    assert!(client.gives(1, 2 << 20).is_empty());
    client.driven.goes_on();
    assert_eq!(body(&client.answers(), 1).len(), 1 << 20);
    assert!(wall.changes() > before);
    assert_eq!(body(&client.wall(7, "/say?1"), 7), b"1 of 1");
}
