//! Proxies as the environment names them: `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`, and these in lower case.
//!
//! - The name in lower case comes first. An empty value says nothing.
//! - `HTTP_PROXY` does not count while `REQUEST_METHOD` is set: in a CGI program a client sets it by the field `Proxy`
//!   (CVE-2016-5385 and others).
//! - `NO_PROXY` is a list with commas: `*`; `shop.example`, `.shop.example` or `*.shop.example` for that host and all below
//!   it; an address; a network (`10.0.0.0/8`); each but the last with `:port` if it is for that port only.

use std::net::IpAddr;

use maitred_match::Network;

/// The URL of the proxy for a server, by the variables that `variable` knows. `None`: the server is called directly.
pub fn proxy_for(
    secure: bool,
    host: &str,
    port: u16,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<String> {
    let either = |lower: &str, upper: &str| variable(lower).or_else(|| variable(upper));
    let set =
        |value: Option<String>| value.map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let own = match secure {
        true => either("https_proxy", "HTTPS_PROXY"),
        false if variable("REQUEST_METHOD").is_some() => variable("http_proxy"),
        false => either("http_proxy", "HTTP_PROXY"),
    };
    let url = set(own).or_else(|| set(either("all_proxy", "ALL_PROXY")))?;
    let exceptions = either("no_proxy", "NO_PROXY").unwrap_or_default();
    if is_excepted(&exceptions, host, port) { None } else { Some(url) }
}

/// Whether the list says that this server is called directly.
fn is_excepted(exceptions: &str, host: &str, port: u16) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches([']', '.']).to_ascii_lowercase();
    let address: Option<IpAddr> = host.parse().ok();
    let entries = exceptions.split(|letter: char| letter == ',' || letter.is_whitespace());
    entries.filter(|entry| !entry.is_empty()).any(|entry| is_match(entry, &host, address, port))
}

fn is_match(entry: &str, host: &str, address: Option<IpAddr>, port: u16) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some(address) = address
        && let Some(network) = network(entry)
    {
        return network.contains(address.to_canonical());
    }
    let (name, of_port) = parts(entry);
    if of_port.is_some_and(|of_port| of_port.parse() != Ok(port)) {
        return false;
    }
    let own: Option<IpAddr> = name.parse().ok();
    if address.is_some() || own.is_some() {
        return own.map(|own| own.to_canonical()) == address.map(|address| address.to_canonical());
    }
    let name = name.strip_prefix('*').unwrap_or(name);
    let name = name.strip_prefix('.').unwrap_or(name).trim_end_matches('.').to_ascii_lowercase();
    let above = host.strip_suffix(&*name);
    !name.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// A network; bits behind its prefix are none of its own.
fn network(entry: &str) -> Option<Network> {
    let (address, prefix) = entry.split_once('/')?;
    Network::around(address.parse().ok()?, prefix.parse().ok()?)
}

/// The name or address, and the port if there is one.
fn parts(entry: &str) -> (&str, Option<&str>) {
    if let Some((address, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, rest.strip_prefix(':'));
    }
    match entry.split_once(':') {
        Some((name, port)) if !port.contains(':') => (name, Some(port)),
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)], secure: bool) -> Option<String> {
        let port = if secure { 443 } else { 80 };
        proxy_for(secure, "shop.example", port, |name| {
            variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn each_scheme_has_its_variable_and_all_have_one() {
        for (variables, plain, secure) in [
            (&[][..], None, None),
            (&[("http_proxy", "a")], Some("a"), None),
            (&[("HTTP_PROXY", "a")], Some("a"), None),
            (&[("http_proxy", "a"), ("HTTP_PROXY", "b")], Some("a"), None),
            (&[("http_proxy", ""), ("HTTP_PROXY", "b")], None, None),
            (&[("https_proxy", "a"), ("HTTPS_PROXY", "b")], None, Some("a")),
            (&[("HTTPS_PROXY", " b ")], None, Some("b")),
            (&[("ALL_PROXY", "c")], Some("c"), Some("c")),
            (&[("all_proxy", "c"), ("HTTPS_PROXY", "b")], Some("c"), Some("b")),
            (&[("all_proxy", "c"), ("https_proxy", "")], Some("c"), Some("c")),
            // httpoxy
            (&[("HTTP_PROXY", "a"), ("REQUEST_METHOD", "GET")], None, None),
            (&[("http_proxy", "a"), ("REQUEST_METHOD", "GET")], Some("a"), None),
            (&[("HTTPS_PROXY", "a"), ("REQUEST_METHOD", "GET")], None, Some("a")),
            (&[("ALL_PROXY", "a"), ("NO_PROXY", "*")], None, None),
            (&[("ALL_PROXY", "a"), ("no_proxy", ""), ("NO_PROXY", "*")], Some("a"), Some("a")),
            (&[("ALL_PROXY", "a"), ("NO_PROXY", "shop.example:443")], Some("a"), None),
        ] {
            let owned = |url: Option<&str>| url.map(str::to_owned);
            assert_eq!(found(variables, false), owned(plain), "{variables:?}");
            assert_eq!(found(variables, true), owned(secure), "{variables:?}");
        }
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        for (exceptions, direct, proxied) in [
            ("*", &["a:1", "[::1]:1", "10.0.0.1:1"][..], &[][..]),
            (
                "shop.example",
                &["shop.example:1", "www.shop.example:1", "Shop.Example.:1"],
                &["myshop.example:1"],
            ),
            (".shop.example", &["shop.example:1", "a.b.shop.example:1"], &["example:1", "shopxexample:1"]),
            ("*.shop.example", &["shop.example:1", "www.shop.example:1"], &["shop.example.org:1"]),
            ("SHOP.example.", &["shop.example:1"], &["shop:1"]),
            ("a, b c,,", &["a:1", "b:1", "c:1"], &["d:1", "ab:1"]),
            ("a:80", &["a:80", "x.a:80"], &["a:81"]),
            ("a:x,*.,.", &[], &["a:80", "b:80"]),
            ("10.0.0.0/8", &["10.1.2.3:1", "[::ffff:10.0.0.1]:1"], &["11.0.0.1:1", "10.shop.example:1"]),
            ("10.1.2.3/8", &["10.9.9.9:1"], &["11.0.0.1:1"]),
            ("10.0.0.0/33,10/8,/8", &[], &["10.0.0.1:1"]),
            ("fd00::/8", &["[fd12::1]:1"], &["[fe80::1]:1"]),
            ("192.0.2.1", &["192.0.2.1:1", "192.0.2.1:2"], &["192.0.2.10:1", "2.192.0.2.1:1"]),
            ("192.0.2.1:2", &["192.0.2.1:2"], &["192.0.2.1:1"]),
            ("::1", &["[::1]:1"], &["[::2]:1"]),
            ("[::1]:2", &["[::1]:2"], &["[::1]:1"]),
            ("0.0.2.1", &[], &["192.0.2.1:1"]),
            ("localhost", &["localhost:1"], &["127.0.0.1:1"]),
        ] {
            let is_direct = |place: &str| {
                let (host, port) = place.rsplit_once(':').expect("a port");
                is_excepted(exceptions, host, port.parse().expect("a port"))
            };
            assert_eq!(direct.iter().find(|place| !is_direct(place)), None, "{exceptions}");
            assert_eq!(proxied.iter().find(|place| is_direct(place)), None, "{exceptions}");
        }
    }
}
