//! Where a request would be led, and why: the same questions as for a real one, and no answer.

use std::net::IpAddr;
use std::sync::Arc;

use maitred_h1::{Event, Limits, Receiver};
use maitred_http::{RequestHead, TlsClient, TlsSession, target};
use maitred_io::clock;
use maitred_match::Shape;
use serde_json::Value;

use super::status::{shown_application, shown_host, shown_rule};
use super::{Given, QueryContext, Refusal, Wanted, sockets, tls};
use maitred_files::Now;
use maitred_server::listening::Address;
use maitred_server::tls::Clients;
use maitred_server::{Route, https_address};

pub(super) const METHOD: &str = "GET";

/// Whose address a request is explained for unless one is given.
const LOCAL: &str = "127.0.0.1";

pub(super) fn explain(asking: &QueryContext<'_>, given: &Given) -> Result<Value, Refusal> {
    let wanted = Wanted::of(asking, given)?;
    let mut head = head(given)?;
    head.tls = given.value("certificate").map(session);
    let from = given.value("from").unwrap_or(LOCAL);
    let client: IpAddr = from.parse().map_err(|_| {
        Refusal::wrong(format!("'{from}' is no address; write one such as 192.0.2.7 or 2001:db8::7"))
    })?;
    let mut why = Vec::new();
    let mut answer = serde_json::Map::new();
    let mut say = |name: &str, value: Value| answer.insert(name.to_owned(), value);
    // These facts hold for every outcome.
    say("socket_options", sockets::options(asking.server));
    let hosts = asking.server.routing().hosts();
    match hosts.find(head.authority()) {
        Some(number) => {
            head.host = number;
            let host = hosts.of(number);
            say("host", shown_host(host).into());
            if hosts.all().len() > 1 {
                why.push(match shown_host(host) {
                    Some(name) => format!("{} is a name of the host {name}", shown_authority(&head)),
                    None => {
                        format!("no host has the name {}: it is the default host's", shown_authority(&head))
                    }
                });
            }
        }
        None if is_of_engine(asking, &head) => {}
        None => {
            say("leads_to", "nothing".into());
            say("status", 421.into());
            let name = shown_authority(&head);
            why.push(format!("no host has the name {name}, and there is no default host"));
            say("why", why.into());
            return Ok(answer.into());
        }
    }
    let is_secure = is_secure(given) || head.tls.is_some();
    if let Some((listener, location)) = sent_on(asking, given, &head).filter(|_| !is_secure) {
        say("leads_to", "engine".into());
        say("status", if location.is_some() { 308 } else { 400 }.into());
        if let Some(location) = location {
            say("location", location.into());
        }
        why.push(format!("the listener {listener} sends what comes by http on to https (redirect)"));
        say("why", why.into());
        return Ok(answer.into());
    }
    let terms = asking.server.settings().tls().filter(|_| is_secure && !is_of_engine(asking, &head));
    if let Some(terms) = terms {
        let clients = terms.clients_of(head.host);
        say("client_certificate", tls::asked(clients).into());
        if terms.rules().count() > 1 {
            let hosts = tls::hosts_with(asking, &terms, terms.rules_of(head.host));
            why.push(format!(
                "only connections that were made for {hosts} may ask for it: others have other rules for certificates of clients and get 421"
            ));
        }
        match clients {
            Clients::NotAsked if head.tls.take().is_some() => {
                why.push(
                    "clients are not asked for certificates here: nobody sees the one that is given"
                        .to_owned(),
                );
            }
            Clients::Required if head.tls.is_none() => {
                say("leads_to", "nothing".into());
                why.push("clients without a certificate get no connection (tls-client-auth)".to_owned());
                say("why", why.into());
                return Ok(answer.into());
            }
            _ => {}
        }
    }
    let explained = asking.server.settings().filters().explain(&mut head, client, is_secure);
    if !explained.met.is_empty() {
        say("filters", explained.met.into());
    }
    why.extend(explained.why);
    if let Some((status, location)) = explained.answer {
        say("leads_to", "filter".into());
        say("status", status.into());
        if let Some(location) = location {
            say("location", location.into());
        }
        say("why", why.into());
        return Ok(answer.into());
    }
    if head.path_and_query() == b"*" {
        say("leads_to", "engine".into());
        why.push("'*' means the server itself (RFC 9110 section 9.3.7)".to_owned());
        say("why", why.into());
        return Ok(answer.into());
    }
    if let Some(option) = asking.server.routing().engine_answers(&head) {
        say("leads_to", "engine".into());
        why.push(format!("the path is the {option}, and the method GET or HEAD"));
        say("why", why.into());
        return Ok(answer.into());
    }
    let mut path = Vec::new();
    let normal = target::normalise(head.path(), &mut path);
    if let Err(error) = &normal {
        why.push(format!("the path has no normal form ({error}), so no file is at it"));
        target::normalise_decoded(head.path(), &mut path);
    } else if path != head.path() {
        why.push(format!("the path means {}", path.escape_ascii()));
    }
    let routes = hosts.of(head.host).routes();
    let route = if normal.is_ok() { routes.find(&path) } else { routes.unnormal(&path) };
    match route {
        Route::Static { files, below, .. } => {
            let mount = path[..path.len() - below.len()].escape_ascii().to_string();
            why.push(format!("the mount {mount}/ has the longest prefix of the path"));
            let now = Now { monotonic_ns: clock::monotonic(), unix_seconds: clock::unix_seconds() };
            let found = files.answer(&head, below, now);
            say("leads_to", "static files".into());
            say("mount", format!("{mount}/").into());
            say("route", asking.server.routing().engine_route(head.path(), head.host).into());
            say("folder", files.folder().display().to_string().into());
            let own = files.file_at(below, now);
            let fallback = own.is_none() && found.head.fields.contains("etag");
            let file = own.or_else(|| files.fallback_file(now).filter(|_| fallback));
            if fallback && file.is_some() {
                why.push("there is no file: the fallback of the folder is sent".to_owned());
            }
            say("file", file.map(|file| file.display().to_string()).into());
            say("status", found.head.status.code().into());
            say("length_bytes", found.length.into());
            if let Some(note) = found.note {
                why.push(note);
            }
        }
        Route::Slash => {
            say("leads_to", "static files".into());
            say("status", 308.into());
            why.push("the path is a mount without its slash: a redirect adds it".to_owned());
        }
        Route::Bad => {
            say("leads_to", "nothing".into());
            say("status", 400.into());
            why.push("there is no application that could understand it".to_owned());
        }
        Route::Nothing => {
            say("leads_to", "nothing".into());
            say("status", 404.into());
            why.push("no mount is a prefix of the path, and there is no application".to_owned());
        }
        Route::Application(application) => {
            if !application.prefix.is_empty() {
                why.push(format!("the mount {}/ has the longest prefix of the path", application.prefix));
            } else if routes.has_mounts() {
                why.push("no mount is a prefix of the path".to_owned());
            }
            say("mount", format!("{}/", application.prefix).into());
            let shape = Shape { method: head.method.as_str(), path: head.path(), host: head.host };
            say("route", asking.server.routing().route_name(shape).into());
            say("application", shown_application(asking, application).into());
            let map = asking.server.pools().map();
            if let Some(ambiguity) = map.ambiguity(&head, Some(client)) {
                say("leads_to", "nothing".into());
                say("status", 400.into());
                why.push(ambiguity.reason().to_owned());
                say("why", why.into());
                return Ok(answer.into());
            }
            let names = asking.server.pools().names();
            let found = map.find_rule(&head, &path, Some(client.to_canonical()));
            let ruled = map.find(&head, &path, Some(client.to_canonical()));
            let pool = asking.server.routing().pool_for(application, ruled);
            say("leads_to", "application".into());
            say("pool", names.get(pool).copied().into());
            if wanted.name.is_some() {
                say("is_in_pool", wanted.has(pool).into());
            }
            match found {
                Some((number, rule)) => {
                    say("rule", shown_rule(number, rule));
                    why.push(format!("rule {number} is the first one it meets"));
                    if pool != ruled {
                        why.push(
                            "the application runs on the event loop: no rule leads it elsewhere".to_owned(),
                        );
                    }
                }
                None if map.is_trivial() => why.push("there are no rules for pools".to_owned()),
                None => why.push(format!("it meets none of the {} rules", map.rules().len())),
            }
        }
    }
    say("why", why.into());
    Ok(answer.into())
}

fn is_of_engine(asking: &QueryContext<'_>, head: &RequestHead) -> bool {
    head.path_and_query() == b"*" || asking.server.routing().engine_answers(head).is_some()
}

fn is_secure(given: &Given) -> bool {
    given.needed("url").get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

/// The listener that a request to an `http://` URL comes by, if it sends that on to https, and where to. It is the one with the port of
/// the URL; a proxy or a container may have given it another one, then it is any of those without TLS, if all of them do so.
fn sent_on(asking: &QueryContext<'_>, given: &Given, head: &RequestHead) -> Option<(String, Option<String>)> {
    given.needed("url").get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"))?;
    if asking.server.routing().engine_answers(head) == Some("health-path") {
        return None;
    }
    let plain: Vec<_> = asking.server.listeners().filter(|listener| !listener.tls).collect();
    let authority = String::from_utf8_lossy(head.authority());
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or(80);
    let found = match plain.iter().find(|listener| port_of(&listener.address) == Some(port)) {
        Some(listener) => listener,
        None => plain.first().filter(|_| plain.iter().all(|listener| listener.redirect.is_some()))?,
    };
    let location = https_address(head, found.redirect?);
    Some((found.address.to_string(), location.map(|location| location.escape_ascii().to_string())))
}

fn port_of(address: &Address) -> Option<u16> {
    match address {
        Address::Tcp(address) => Some(address.port()),
        Address::Unix(_) => None,
    }
}

/// The session of a client whose certificate has this name: wherever a condition looks for it.
fn session(name: &str) -> Arc<TlsSession> {
    let client = TlsClient {
        subject: name.into(),
        common_name: Some(name.into()),
        hosts: vec![name.to_ascii_lowercase().into()],
        names: vec![name.into()],
        ..TlsClient::default()
    };
    Arc::new(TlsSession { client: Some(client), ..TlsSession::default() })
}

fn shown_authority(head: &RequestHead) -> String {
    head.authority().escape_ascii().to_string()
}

fn head(given: &Given) -> Result<RequestHead, Refusal> {
    let (method, url) = (given.value("method").unwrap_or(METHOD), given.needed("url"));
    let mut text = format!("{method} {url} HTTP/1.1\r\n");
    let mut has_host = false;
    for field in given.all("header") {
        let Some((name, _)) = field.split_once(':') else {
            return Err(Refusal::wrong(format!("'{field}' is no header; write 'Name: value'")));
        };
        has_host |= name.eq_ignore_ascii_case("host");
        text += &format!("{field}\r\n");
    }
    let parts = [method, url].into_iter().chain(given.all("header"));
    if parts.into_iter().any(|part| part.contains(['\r', '\n', '\0'])) {
        return Err(Refusal::wrong("a line break is part of no request; leave it out"));
    }
    if !has_host {
        text += "Host: localhost\r\n";
    }
    text += "\r\n";
    let mut head = RequestHead::default();
    let refused = |why: &str| {
        Refusal::wrong(format!(
            "'{method} {url}' would be refused: {why}; write a path or a URL, such as GET /a or https://shop.example/a"
        ))
    };
    match Receiver::new().poll_event(text.as_bytes(), &mut head, &Limits::default()) {
        Ok(step) if matches!(step.event, Event::Head(_)) => Ok(head),
        Ok(_) => Err(refused("it is not complete")),
        Err(error) => Err(refused(&error.to_string())),
    }
}
