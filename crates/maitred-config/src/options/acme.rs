//! Certificates by ACME.

use super::definition::{Definition, Kind, Reload, server, site};
use crate::forms::{ACME, CHALLENGES, COMMAND, DIR, DIRECTORY, FILE, Maybe, NAMES, TEXT, URL};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "acme",
        placeholder: "EMAIL|on|off",
        kind: Kind::Manner(&site(ACME, |site| &mut site.acme)),
        default: &["off"],
        summary: "Order certificates from an authority (ACME, RFC 8555), for all names of hosts that have no tls-cert, and \
                  renew them; with it you agree to the authority's terms. Without --listen the server then listens on ports 443 and 80, and leads from http to https. \
                  Until the first certificate is there, clients get a self-signed one. on is without an address for the authority's mail; off in the table of a \
                  host leaves its names out.",
        cost: "a thread, and a look at a file each second in each process",
        worst: "all names stand in public logs",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "acme-host",
        placeholder: "NAME",
        kind: Kind::Server(&server(NAMES, |config| &mut config.acme.hosts)),
        summary: "A name or a public IP address of the default host, for acme. On the command line --host is the same beside --acme, if it is a name.",
        cost: "an order for each name",
        worst: "a name that does not lead to this server: the authority refuses it, again and again",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-directory",
        placeholder: "URL|letsencrypt|letsencrypt-staging",
        kind: Kind::Server(&server(DIRECTORY, |config| &mut config.acme.directory)),
        default: &["letsencrypt"],
        summary: "The authority. letsencrypt-staging is for tries: it has wide limits, and browsers do not trust its certificates.",
        cost: "none",
        worst: "another one than before: all certificates are ordered anew",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-ca",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.acme.authorities)),
        summary: "The authorities that sign the certificate of the directory itself, PEM, where those of the system do not: for an authority of \
                  one's own.",
        cost: "none",
        worst: "a thief of their keys can act as the directory",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-folder",
        kind: Kind::Server(&server(Maybe(DIR), |config| &mut config.acme.folder)),
        summary: "The folder of accounts, keys and certificates, for this user alone. Several servers with the same names may share it: one of them orders. Without it: \
                  $STATE_DIRECTORY/acme, for root /var/lib/maitred/acme, for others $XDG_DATA_HOME or ~/.local/share, and /maitred/acme.",
        cost: "some KiB for each name",
        worst: "one that does not outlive a container: each start orders anew, until the authority refuses",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "acme-profile",
        placeholder: "NAME",
        kind: Kind::Server(&server(Maybe(TEXT), |config| &mut config.acme.profile)),
        summary: "The kind of certificate, if the authority has several: Let's Encrypt has classic, tlsserver, and shortlived for 6 days. \
                  IP addresses take shortlived by themselves there.",
        cost: "short ones: an order every few days",
        worst: "one that the authority does not have: it refuses each order",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-eab",
        placeholder: "FILE|env:NAME",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.acme.external_account)),
        summary: "The account that one has with the authority already (external account binding): a file, or a variable, with the number of the key, \
                  a colon and the key (HMAC, base64url), as the authority gives them.",
        cost: "none",
        worst: "a thief of the file can order in your name",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-chain",
        placeholder: "NAME",
        kind: Kind::Server(&server(Maybe(TEXT), |config| &mut config.acme.chain)),
        summary: "The name of the root that the chain shall lead to, if the authority offers several chains.",
        cost: "a request for each chain that is offered",
        worst: "a root that clients do not know",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-challenge",
        placeholder: "http|tls-alpn|dns",
        kind: Kind::Server(&server(CHALLENGES, |config| &mut config.acme.challenges)),
        default: &["http", "tls-alpn"],
        summary: "How the authority sees that a name is yours, in the order in which the ways are tried: a request on port 80, a handshake on port 443, \
                  an entry of the DNS (acme-hook). Names with * need dns.",
        cost: "none",
        worst: "one that does not reach this server: no certificate",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-hook",
        placeholder: "COMMAND",
        kind: Kind::Server(&server(Maybe(COMMAND), |config| &mut config.acme.hook)),
        summary: "The program that makes and removes entries of the DNS: it gets add or remove, the name of the TXT entry and its value, and ends with \
                  0 when the entry can be seen. After 120 seconds it is killed.",
        cost: "its time",
        worst: "it has the server's rights",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-on-demand",
        placeholder: "PATTERN",
        kind: Kind::Server(&server(NAMES, |config| &mut config.acme.on_demand)),
        summary: "Names, such as *.shop.example (one label for the star), whose certificates are ordered when the first client asks for one; that client gets a \
                  self-signed one. acme-ask says whether a name is served.",
        cost: "an order for each name, at most 10 in a minute",
        worst: "without acme-ask: everybody can have certificates ordered for all names of the pattern",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "acme-ask",
        placeholder: "URL",
        kind: Kind::Server(&server(Maybe(URL), |config| &mut config.acme.ask)),
        summary: "For acme-on-demand: the server asks there with ?domain=NAME. Status 200 is a yes, everything else a no, which is remembered for an hour.",
        cost: "a request for each new name, at most 10 in a minute",
        worst: "one that always says yes: see acme-on-demand",
        ..Definition::of(Reload::Terms)
    },
];
