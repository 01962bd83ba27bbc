//! TLS: certificates, clients' certificates, sessions, and reloading of files.

use super::definition::{Definition, Kind, Reload, server, site};
use crate::forms::{
    CLIENT_AUTH, FILE, FILES, HSTS, MIN_VERSION, Maybe, RATE, SECONDS, SECONDS_OR_OFF, SWITCH, UNKNOWN_NAME,
};

pub(super) const OPTIONS: &[Definition] = &[
    Definition {
        name: "tls",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.tls.development)),
        default: &["false"],
        summary: "Serve https with a self-signed certificate for development: for localhost, 127.0.0.1, ::1 and the \
                  machine's name, for 90 days. It is kept in the user's cache folder, so a browser asks once. The \
                  start-up lines name file and fingerprint.",
        cost: "as tls-cert",
        worst: "no client can tell this server from another one: not for the public",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-cert",
        kind: Kind::Content(&site(FILES, |site| &mut site.certificates)),
        summary: "A certificate with its chain, PEM, the server's own first. Addresses of --listen without http:// or \
                  https:// then speak TLS, but not Unix sockets. Clients get the certificate with the name that they ask \
                  for, all others the first one (tls-unknown-name). In the table of a host it is for that host's names. \
                  An ECDSA and an RSA certificate may have the same names.",
        cost: "a handshake: 0.2 ms of processor time with ECDSA P-256, 0.6 ms with RSA 2048; each record is encrypted",
        worst: "an incomplete chain: browsers that know the rest accept it, other clients do not",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-key",
        kind: Kind::Content(&site(FILES, |site| &mut site.keys)),
        summary: "The private key of the certificate in the same position, PEM; tls-key-password opens an encrypted \
                  one. A certificate file that has its key needs none. It is read before --user gives up rights: only root must be able to \
                  read it.",
        cost: "none",
        worst: "whoever can read the file can act as this server: mode 0600",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-key-password",
        placeholder: "FILE|env:NAME",
        kind: Kind::Server(&server(FILES, |config| &mut config.tls.key_passwords)),
        summary: "A file with the passwords of encrypted keys (PKCS#8: ENCRYPTED PRIVATE KEY), one in each line, of which \
                  each is tried; or env: and the name of a variable that has one. It is read with the keys, before \
                  --user gives up rights.",
        cost: "the start: some 0.1 s for each password that is tried, as the key was written",
        worst: "beside the key it protects nothing; a variable can be read by the application, too",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-ocsp",
        kind: Kind::Content(&site(FILES, |site| &mut site.ocsp)),
        summary: "The OCSP response for the certificate in the same position, DER, as 'openssl ocsp -respout' writes \
                  it. Clients get it with the certificate (stapling). - for none.",
        cost: "its bytes in each full handshake",
        worst: "one that has expired: clients that look at it refuse the certificate",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-unknown-name",
        kind: Kind::Server(&server(UNKNOWN_NAME, |config| &mut config.tls.unknown_name)),
        default: &["default"],
        summary: "What a client gets that asks for a name without a certificate: the first certificate, or a refusal \
                  (alert unrecognized_name, RFC 6066 section 3). A client that names no server gets the certificate of \
                  the address that it connects to, else the first one of an address, else the first one, or missing_extension.",
        cost: "none",
        worst: "default: whoever connects learns the names of the first certificate",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-min-version",
        kind: Kind::Server(&server(MIN_VERSION, |config| &mut config.tls.min_version)),
        default: &["1.2"],
        summary: "The earliest version of TLS that clients may speak.",
        cost: "none",
        worst: "1.3: clients from before 2018 are refused",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-client-auth",
        kind: Kind::Manner(&site(CLIENT_AUTH, |site| &mut site.client_auth)),
        default: &["none"],
        summary: "Whether clients must have a certificate that one of tls-client-ca has signed. optional also lets in \
                  clients without one; an invalid one always ends the handshake. In the table of a host it is for that \
                  host's names, by the name in the handshake (SNI): a request on a connection of other rules gets 421.",
        cost: "the verification of the client's chain in each full handshake, 0.1 to 0.5 ms",
        worst: "optional: the application has to check whether there is one",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-client-ca",
        kind: Kind::Manner(&site(FILES, |site| &mut site.client_ca)),
        summary: "Certificates of the authorities that sign clients' certificates, PEM, one or more in a file.",
        cost: "none",
        worst: "a public authority: everybody can get a certificate of it",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-client-crl",
        kind: Kind::Manner(&site(FILES, |site| &mut site.client_crl)),
        summary: "Lists of revoked certificates of clients, PEM or DER. With any list, each certificate of a chain \
                  must be covered by one that has not expired. A host with a tls-client-ca of its own has none of the \
                  default host's lists.",
        cost: "their size in memory, in each worker",
        worst: "a list that is not renewed: once it has expired, no client is let in",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-tickets",
        kind: Kind::Server(&server(SWITCH, |config| &mut config.tls.tickets)),
        default: &["true"],
        summary: "Give clients tickets with which they resume their session, also with another worker: no \
                  certificate is sent, and nothing is signed. The keys change every 8 hours. Without tickets every \
                  handshake is a full one.",
        cost: "two tickets of 250 bytes in each full handshake",
        worst: "off: clients that connect often cost several times the processor time",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-ticket-key",
        kind: Kind::Server(&server(Maybe(FILE), |config| &mut config.tls.ticket_key)),
        summary: "A file of which the keys of tickets are made: 32 bytes or more, for example from 'openssl rand \
                  -out FILE 48'. With the same file several servers resume each other's sessions. Without it the \
                  keys are random, and shared by the workers of this server.",
        cost: "none",
        worst: "whoever has the file can read recorded sessions of TLS 1.2 that were resumed: replace it each week",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "tls-handshake-timeout",
        kind: Kind::Server(&server(SECONDS, |config| &mut config.tls.handshake_timeout)),
        default: &["10"],
        summary: "From the accept to the end of the TLS handshake; then the connection is closed.",
        cost: "a peer that is too slow holds its connection and up to 64 KiB this long",
        worst: "short: clients on bad networks do not get in",
        ..Definition::of(Reload::Restart)
    },
    Definition {
        name: "tls-handshake-rate",
        placeholder: "N",
        kind: Kind::Server(&server(RATE, |config| &mut config.limits.clients.handshakes)),
        default: &["0"],
        summary: "TLS handshakes a second of one client address, on an average, in all workers together, with a burst of as many, at least 8. The \
                  connection of one more is closed before its handshake. 0: no limit. Behind a proxy all are the \
                  proxy's: leave it off there, or name the proxy in client-exempt.",
        cost: "2 MiB of memory for all workers, 0.5 MiB in each, and a look into a table for each connection",
        worst: "low: offices behind one address lose connections",
        ..Definition::of(Reload::Peers)
    },
    Definition {
        name: "tls-watch",
        kind: Kind::Server(&server(SECONDS_OR_OFF, |config| &mut config.tls.watch)),
        default: &["10"],
        summary: "How often the server looks at the files of certificates, keys, OCSP responses, CAs, CRLs and the ticket \
                  key. Changed files are loaded at once: new handshakes use them, connections go on. An invalid file \
                  changes nothing, and the error log says why. 0: only SIGHUP and 'maitred ctl tls reload' load them.",
        cost: "a stat(2) of each file",
        worst: "off: a renewed certificate is not used, and the old one expires",
        ..Definition::of(Reload::Terms)
    },
    Definition {
        name: "hsts",
        placeholder: "SECONDS[,include-subdomains][,preload]",
        kind: Kind::Manner(&site(HSTS, |site| &mut site.hsts)),
        default: &["off"],
        summary: "Tell browsers to use https alone for so long: Strict-Transport-Security (RFC 6797), with each response by \
                  https. include-subdomains adds all names below; preload lets makers of browsers list the name. 0 \
                  makes browsers forget it. In the table of a host it is for that host.",
        cost: "a filter for each request by https",
        worst: "a name that loses its https cannot be reached by browsers until the time is over",
        ..Definition::of(Reload::Filters)
    },
];
