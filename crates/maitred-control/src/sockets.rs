//! The options of listening sockets: the configured value, the kernel's value, and the reason for a difference.

use maitred_server::Server;
use maitred_server::inspect::ListenerState;
use maitred_server::listening::{ActiveOptions, Address, KeepAlive, SocketOptions};
use serde_json::{Value, json};

pub(super) fn options(server: &Server) -> Value {
    let rows = server.listeners().flat_map(|listener| {
        let address = listener.address.to_string();
        rows(&listener).into_iter().map(move |Row { option, requested, active, why }| {
            json!({ "listener": address, "option": option, "requested": requested, "active": active, "why": why })
        })
    });
    rows.collect::<Vec<_>>().into()
}

struct Row {
    option: &'static str,
    /// None: nothing was asked for.
    requested: Option<String>,
    /// None: the listener is closed.
    active: Option<String>,
    why: Option<&'static str>,
}

fn rows(listener: &ListenerState) -> Vec<Row> {
    let SocketOptions { backlog, defer_accept, fast_open, no_delay, cork, keep_alive } = listener.options;
    let number =
        |number: Option<u32>| number.filter(|number| *number > 0).map_or(word(false), |own| own.to_string());
    let row = |option, requested: Option<String>, of: fn(&ActiveOptions) -> Option<String>| {
        let active = listener.active.as_ref().map(|active| of(active).unwrap_or_else(|| word(false)));
        Row { option, requested, active, why: None }
    };
    let mut queue =
        row("backlog", backlog.map(|own| own.to_string()), |active| Some(active.backlog.to_string()));
    if queue.differs() {
        queue.why = Some("the system permits no more: raise net.core.somaxconn");
    }
    let mut rows = vec![queue];
    if matches!(listener.address, Address::Unix(_)) {
        return rows;
    }
    let mut deferred = row("defer-accept", defer_accept.map(|own| number(Some(own))), |active| {
        active.defer_accept.map(|own| own.to_string())
    });
    if deferred.differs() {
        deferred.why = Some("the kernel rounds up to what its repeated answers take");
    }
    let mut opened = row("fast-open", fast_open.map(|own| number(Some(own))), |active| {
        let own = active.fast_open.filter(|own| own.trouble().is_none())?;
        Some(own.queue.to_string())
    });
    if opened.differs() {
        opened.why = listener.active.and_then(|active| active.fast_open?.trouble());
    }
    rows.extend([
        deferred,
        opened,
        row("no-delay", no_delay.map(word), |active| active.no_delay.map(word)),
        row("cork", cork.map(word), |active| active.cork.map(word)),
        row("keep-alive", keep_alive.map(times), |active| active.keep_alive.map(times)),
    ]);
    rows
}

impl Row {
    fn differs(&self) -> bool {
        self.requested.is_some() && self.active.is_some() && self.requested != self.active
    }
}

fn word(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn times(KeepAlive { idle_s, interval_s, count }: KeepAlive) -> String {
    format!("{idle_s}:{interval_s}:{count}")
}

#[cfg(test)]
mod tests {
    use maitred_server::listening::{FastOpen, UnixAddress};

    use super::*;

    fn listener(options: SocketOptions, active: Option<ActiveOptions>) -> ListenerState {
        ListenerState {
            address: Address::Tcp(([127, 0, 0, 1], 80).into()),
            options,
            active,
            tls: false,
            redirect: None,
            proxy_protocol: false,
            read_ahead: true,
            writer: true,
            accepts: active.is_some(),
        }
    }

    fn shown(listener: &ListenerState) -> Vec<String> {
        let cell = |text: Option<&str>| text.unwrap_or("-").to_owned();
        let line = |row: &Row| {
            let parts = [cell(row.requested.as_deref()), cell(row.active.as_deref()), cell(row.why)];
            format!("{} {}", row.option, parts.join(" "))
        };
        rows(listener).iter().map(line).collect()
    }

    #[test]
    fn the_configured_value_stands_beside_the_kernels() {
        let times = KeepAlive { idle_s: 60, interval_s: 10, count: 6 };
        let asked = SocketOptions {
            backlog: Some(9000),
            defer_accept: Some(5),
            fast_open: Some(256),
            no_delay: Some(false),
            cork: Some(false),
            keep_alive: Some(times),
        };
        let active = ActiveOptions {
            backlog: 4096,
            defer_accept: Some(7),
            fast_open: Some(FastOpen { queue: 256, enabled: Some(false) }),
            no_delay: Some(false),
            cork: Some(false),
            keep_alive: Some(times),
        };
        assert_eq!(
            shown(&listener(asked, Some(active))),
            [
                "backlog 9000 4096 the system permits no more: raise net.core.somaxconn",
                "defer-accept 5 7 the kernel rounds up to what its repeated answers take",
                "fast-open 256 off net.ipv4.tcp_fastopen lets no server do it: sysctl -w net.ipv4.tcp_fastopen=3",
                "no-delay off off -",
                "cork off off -",
                "keep-alive 60:10:6 60:10:6 -",
            ]
        );
        let enabled =
            ActiveOptions { fast_open: Some(FastOpen { queue: 256, enabled: Some(true) }), ..active };
        assert_eq!(shown(&listener(asked, Some(enabled)))[2], "fast-open 256 256 -");
        assert!(shown(&listener(asked, None)).iter().all(|line| line.ends_with(" - -")), "it is closed");
    }

    #[test]
    fn options_that_are_not_configured_show_the_kernels_value() {
        let active =
            ActiveOptions { backlog: 128, no_delay: Some(true), cork: Some(true), ..Default::default() };
        assert_eq!(
            shown(&listener(SocketOptions::default(), Some(active))),
            [
                "backlog - 128 -",
                "defer-accept - off -",
                "fast-open - off -",
                "no-delay - on -",
                "cork - on -",
                "keep-alive - off -"
            ]
        );
        let off = SocketOptions { defer_accept: Some(0), fast_open: Some(0), ..SocketOptions::default() };
        assert_eq!(
            shown(&listener(off, Some(active)))[1..3],
            ["defer-accept off off -", "fast-open off off -"]
        );
        let local = Address::Unix(UnixAddress::path("/run/app.sock"));
        let local = ListenerState { address: local, ..listener(SocketOptions::default(), Some(active)) };
        assert_eq!(shown(&local), ["backlog - 128 -"], "the others are TCP's");
    }
}
