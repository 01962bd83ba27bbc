//! Tables of virtual hosts.

use super::Case;
use crate::{check, validation};

fn case(text: &str) -> Case {
    Case::new(&[("maitred.toml", text)])
}

/// Returns the error of a check of this file.
fn checked(text: &str) -> String {
    let loaded = case(text).loaded(&[]);
    validation::check(&loaded.config, &loaded.origins).expect_err("an error").to_string()
}

#[test]
fn errors_name_file_line_and_key() {
    for (text, error) in [
        (
            "host = 1",
            ":1: host: the value is of the type integer; write a table [host.\"NAME\"] for each host",
        ),
        ("[host]\na = 1", ":2: 'a' in [host] is no host, it is of the type integer; give the host a name"),
        ("[host.\"a:80\"]\nstatic = \"/=x\"", ":1: host.a:80: the host 'a:80' has a port; leave it out"),
        ("[host.\"*\"]\nstatic = \"/=x\"", ":1: host.*: the host '*' means every host"),
        ("[host.a]\nnames = [\"b\",\n\"b c\"]", ":3: host.a.names: the host 'b c' is no name of a host"),
        (
            "[host.a]\npool = 1",
            ":2: host.a.pool: the value is of the type integer; expected: the name of a pool",
        ),
        (
            "[host.a]\napplicaton = \"x\"",
            ":2: unknown key 'applicaton' in [host.\"a\"]; did you mean 'application'?",
        ),
        (
            "[host.a]\nmax-threads = 2",
            ":2: unknown key 'max-threads' in [host.\"a\"]; write it above the first table: behind [host.\"a\"] \
             it belongs to the host, which has no such key",
        ),
        ("[host.a]\nmount = \"api:app\"", ":2: host.a.mount: 'api:app' has no '='; write /url=application"),
        (
            "[host.a]\nerror-page = \"200=x\"",
            ":2: host.a.error-page: '200=x' does not begin with a status from 400",
        ),
        (
            "[[host.a.filter]]\nhost = \"b\"\nmax-body = 1",
            ": filter.host: the filter stands in the table of a host",
        ),
        (
            "[[filter]]\nhost = \"shop.exmple\"\nmax-body = 1\n[host.\"shop.example\"]\nstatic = \"/=x\"",
            ": filter.host: there is no host 'shop.exmple'; did you mean 'shop.example'?",
        ),
        (
            "[pool.p]\nmatch = { host = \"b\" }",
            ":2: pool.p: there is no host 'b'; write a table [host.\"b\"] for it",
        ),
        ("hots = 1", ":1: unknown key 'hots'; did you mean '[host.\"NAME\"]'?"),
    ] {
        let found = case(text).error(&[]);
        assert!(found.starts_with("maitred.toml") && found.contains(error), "{text}\n{found}");
    }
}

#[test]
fn hosts_are_checked_against_each_other_and_the_rest() {
    for (text, error) in [
        (
            "[host.a]\nnames = \"b\"\nmount = \"/x=x\"\n[host.c]\nnames = \"b\"\nmount = \"/x=x\"",
            "maitred.toml:5: host.c.names: 'b' is a name of the host 'a' already; leave one of them out",
        ),
        (
            "[host.a]\nmax-body = 1",
            "maitred.toml:1: host.a: the host 'a' serves nothing; give it an application",
        ),
        (
            "[host.a]\nmount = \"/x=x\"\naccess-log-format = \"json\"",
            "maitred.toml:3: host.a.access-log-format: it says how",
        ),
        (
            "[host.a]\nmount = \"/x=x\"\npool = \"slo\"\n[pool.slow]",
            "maitred.toml:3: host.a.pool: there is no pool 'slo'; did you mean 'slow'?",
        ),
        (
            "[host.a]\nmount = \"/x=x,pool=p\"",
            "maitred.toml:2: host.a.mount: there is no pool 'p'; write a table [pool.p] for it",
        ),
        ("[host.a]\nmount = [\"/x=x\", \"/x/=y\"]", "maitred.toml:2: host.a.mount: /x is mounted twice"),
        ("[host.a]\nmount = \"/x=x/\"", "maitred.toml:2: host.a.mount: there is no folder x/"),
        ("[host.a]\nstatic = \"/=nowhere\"", "maitred.toml:2: host.a.static: there is no folder nowhere"),
        (
            "[host.a]\nmount = \"/x=x\"\nerror-page = \"404=none.html\"",
            "maitred.toml:3: host.a.error-page: the page none.html cannot be read",
        ),
        (
            "[host.a]\nmount = \"/x=x\"\naccess-log = \"no/folder/log\"",
            "maitred.toml:3: host.a.access-log: there is no folder no/folder",
        ),
        (
            "access-log = \"x.log\"\n[host.a]\nmount = \"/x=x\"\naccess-log = \"x.log\"",
            "maitred.toml:4: host.a.access-log: x.log is the access log of another host, too",
        ),
    ] {
        let found = checked(text);
        assert!(found.starts_with(error), "{text}\n{found}");
    }
}

#[test]
fn tables_of_one_host_are_merged_key_by_key() {
    let files = [
        (
            "maitred.toml",
            "listing = true\nmax-body = \"2k\"\n[host.\"Shop.Example.\"]\napplication = \"a:a\"\nmax-body = \"1k\"",
        ),
        (
            "maitred.toml.d/b.toml",
            "[host.\"shop.example\"]\napplication = \"b:b\"\nnames = \"www.shop.example\"",
        ),
    ];
    let loaded = Case::new(&files).loaded(&[]);
    let [host] = &loaded.config.hosts[..] else { panic!("one host") };
    let site = host.effective(&loaded.config.site);
    assert_eq!((site.application.as_deref(), site.max_body, site.listing), (Some("b:b"), 1024, true));
    assert_eq!(host.names.len(), 2);
    let report = check::report(&loaded);
    for line in [
        "[host.\"shop.example\"]",
        "names            = [\"www.shop.example\"]",
        "application      = \"b:b\"",
        "# listing        = true",
        "max-body         = \"1k\"",
    ] {
        assert!(report.lines().any(|own| own.starts_with(line)), "{line}\n{report}");
    }
    assert!(report.contains("# drop-in maitred.toml.d/b.toml:2"), "{report}");
    // The report is a file with the same meaning.
    let again = Case::new(&[("maitred.toml", &report)]).loaded(&[]);
    assert_eq!(again.config.hosts, loaded.config.hosts);
}

#[test]
fn pools_and_limits_of_hosts_are_rules() {
    let text = "[pool.p]\nmatch = { host = \"b\", path = \"/x\" }\n\
                [host.a]\napplication = \"a\"\npool = \"p\"\nmount = \"/m=m,pool=p\"\nmax-body = 7\n\
                [[host.a.filter]]\npath = \"/y\"\nmax-body = 9\n[host.b]\napplication = \"b\"\n";
    let loaded = case(text).loaded(&[]);
    let shown: Vec<String> = loaded.config.all_rules().iter().map(crate::pools::show_rule).collect();
    let expected =
        ["{ host = \"a\" }", "{ host = \"a\", path = \"/m/*\" }", "{ host = \"b\", path = \"/x\" }"];
    assert_eq!(shown, expected);
    let numbers: Vec<_> =
        loaded.config.all_rules().into_iter().map(|rule| rule.host.map(|host| host.number)).collect();
    assert_eq!(numbers, [Some(1), Some(1), Some(2)]);
    let filters = crate::filters::rules(&loaded.config, &loaded.origins).expect("no files");
    let limits: Vec<_> =
        filters.iter().map(|rule| (rule.when.host.as_ref().map(|host| host.number), rule.max_body)).collect();
    assert_eq!(limits, [(Some(1), Some(7)), (Some(1), Some(9))]);
}

#[test]
fn browsers_are_told_of_https_by_responses_of_each_host() {
    let told = |text: &str| -> Vec<(Option<u16>, Option<bool>, String)> {
        let rules = case(text).loaded(&[]).config.host_filters().collect::<Vec<_>>();
        let shown = |rule: &maitred_filters::FilterRule| {
            (rule.when.host.as_ref().map(|host| host.number), rule.when.secure, rule.response.to_string())
        };
        rules.iter().map(shown).collect()
    };
    let field = |text: &str| format!("set Strict-Transport-Security: max-age={text}");
    assert_eq!(told("application = \"a\""), []);
    assert_eq!(told("hsts = 300"), [(None, Some(true), field("300"))]);
    let hosts = "hsts = 300\n[host.a]\napplication = \"a\"\nhsts = \"off\"\n[host.b]\napplication = \"b\"\n\
                 [host.c]\napplication = \"c\"\nhsts = \"7,include-subdomains\"\n";
    let expected = [(0, "300"), (2, "300"), (3, "7; includeSubDomains")];
    assert_eq!(told(hosts), expected.map(|(number, text)| (Some(number), Some(true), field(text))));
}

#[test]
fn certificates_of_a_host_are_its_own() {
    let text = "tls-cert = \"c.pem\"\ntls-key = \"k.pem\"\n[host.a]\napplication = \"a\"\n\
                [host.b]\napplication = \"b\"\ntls-cert = [\"b.pem\", \"b-rsa.pem\"]\ntls-key = [\"b.key\", \"b-rsa.key\"]\n\
                tls-ocsp = [\"-\", \"b.ocsp\"]\n";
    let loaded = case(text).loaded(&[]);
    let [a, b] = &loaded.config.hosts[..] else { panic!("two hosts") };
    let files = |host: &crate::config::HostConfig| {
        let site = host.effective(&loaded.config.site);
        [site.certificates, site.keys, site.ocsp].map(|files| files.len())
    };
    assert_eq!((files(a), files(b)), ([0, 0, 0], [2, 2, 2]));
    let report = check::report(&loaded);
    for line in ["tls-cert         = [\"c.pem\"]", "tls-ocsp         = [\"-\", \"b.ocsp\"]"] {
        assert!(report.lines().any(|own| own.starts_with(line)), "{line}\n{report}");
    }
    let alone = "tls = true\n[host.a]\nmount = \"/x=x\"\ntls-key = \"k.pem\"";
    let found = checked(alone);
    assert!(
        found.starts_with(
            "maitred.toml:4: host.a.tls-key: it says nothing without a certificate; give the host"
        ),
        "{found}"
    );
}

#[test]
fn a_filter_with_several_paths_is_one_for_each() {
    let text = "[[filter]]\npath = [\"~*.sql\", \"*/.git*\"]\naccess = \"deny all\"\n";
    let paths: Vec<String> = case(text)
        .loaded(&[])
        .config
        .filters
        .iter()
        .map(|filter| filter.rule.when.path.as_ref().map(ToString::to_string).unwrap_or_default())
        .collect();
    assert_eq!(paths, ["~*.sql", "*/.git*"]);
    for (path, error) in [
        ("[\"/a\", \"b\"]", ":2: filter.path: the path 'b' starts neither with '/' nor with '*'"),
        ("[]", ":2: filter.path: the path is empty"),
        ("[1.5]", ":2: filter.path: the value is of the type float; expected: text, or a list of texts"),
    ] {
        let found = case(&format!("[[filter]]\npath = {path}\naccess = \"deny all\"\n")).error(&[]);
        assert!(found.contains(error), "{found}");
    }
}
