//! Reading and merging, from the arguments to the configuration.

mod familiar;
mod hosts;
mod pools;
mod renamed;

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::validation::check;

/// A folder with these files, and the inputs of a process in it.
struct Case {
    folder: TempDir,
    environment: Vec<(String, String)>,
    earlier: Names,
}

impl Case {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        Self { folder, environment: Vec::new(), earlier: crate::options::renamed::NAMES }
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    fn load(&self, arguments: &[&str]) -> Result<Loaded, Problem> {
        load(&self.inputs(arguments))
    }

    fn inputs(&self, arguments: &[&str]) -> Inputs {
        Inputs {
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: self.environment.clone(),
            folder: self.folder.path().to_owned(),
            earlier: self.earlier,
            files: None,
            workers: None,
            started_in: "/".into(),
        }
    }

    fn loaded(&self, arguments: &[&str]) -> Loaded {
        self.load(arguments).expect("a valid configuration")
    }

    fn error(&self, arguments: &[&str]) -> String {
        self.load(arguments).expect_err("an error").to_string()
    }
}

fn origin(loaded: &Loaded, name: &str) -> String {
    loaded.origins.of(name).to_string()
}

fn listeners(loaded: &Loaded) -> Vec<String> {
    loaded.config.listen.iter().map(ToString::to_string).collect()
}

#[test]
fn variables_of_a_platform_count_least() {
    let case = Case::new(&[]).with("PORT", "8123").with("WEB_CONCURRENCY", "3");
    let loaded = case.loaded(&[]);
    assert_eq!((listeners(&loaded), loaded.config.workers.number()), (vec![":8123".to_owned()], 3));
    assert_eq!(origin(&loaded, "listen"), "environment variable PORT");
    assert_eq!(origin(&loaded, "workers"), "environment variable WEB_CONCURRENCY");
    let loaded = case.loaded(&["--listen", "127.0.0.1:9", "--workers", "2"]);
    assert_eq!((listeners(&loaded), loaded.config.workers.number()), (vec!["127.0.0.1:9".to_owned()], 2));
    let case = Case::new(&[("maitred.toml", "listen = \":1\"\nworkers = 4\n")]);
    let loaded = case.with("PORT", "8123").with("WEB_CONCURRENCY", "3").loaded(&[]);
    assert_eq!((listeners(&loaded), loaded.config.workers.number()), (vec![":1".to_owned()], 4));
    let loaded = Case::new(&[]).with("PORT", "").with("WEB_CONCURRENCY", "").loaded(&[]);
    assert_eq!(
        (listeners(&loaded), origin(&loaded, "workers")),
        (vec!["127.0.0.1:8000".to_owned()], "default".to_owned())
    );
    let wrong = Case::new(&[]).with("PORT", "http").error(&[]);
    assert!(wrong.starts_with("PORT: "), "{wrong}");
    let wrong = Case::new(&[]).with("WEB_CONCURRENCY", "many").error(&[]);
    assert!(wrong.starts_with("WEB_CONCURRENCY: "), "{wrong}");
    let own = Case::new(&[]).with("PORT", "8123").loaded(&["--reload"]);
    assert_eq!(listeners(&own), ["127.0.0.1:8123"], "not for everybody while somebody works on it");
}

#[test]
fn every_switch_has_both_forms_and_the_last_one_counts() {
    for definition in options::all().filter(|definition| definition.can_be_off()) {
        let (on, off) = (format!("--{}", definition.name), format!("--no-{}", definition.name));
        let shown = |arguments: &[&str]| definition.show(&Case::new(&[]).loaded(arguments).config);
        assert_eq!(shown(&[&off]).as_deref(), Some("false"), "{off}");
        assert_eq!(shown(&[&off, &on]).as_deref(), Some("true"), "{on}");
        assert_eq!(shown(&[&on, &off]).as_deref(), Some("false"), "{off}");
    }
    let case = Case::new(&[("maitred.toml", "statistics = true\n")]);
    assert!(!case.loaded(&["--no-statistics"]).config.insight.statistics);
    assert_eq!(
        case.error(&["--no-statistic"]),
        "--no-statistic: unknown option; did you mean '--no-statistics'?"
    );
    assert_eq!(case.error(&["--no-listing=off"]), "--no-listing: takes no value; leave the value out");
    for no_switch in ["--no-listen", "--no-help", "--no-pool", "--no-application", "--no-"] {
        assert!(case.error(&[no_switch]).contains("unknown option"), "{no_switch}");
    }
}

/// The default of a server that runs.
fn settled() -> Config {
    let mut config = Config::with_defaults();
    config.site.access_log.settle();
    config
}

#[test]
fn nothing_given_is_the_default() {
    let loaded = Case::new(&[]).loaded(&["app:app"]);
    let mut expected = settled();
    expected.site.application = Some("app:app".to_owned());
    assert_eq!(loaded.config, expected);
    assert_eq!(listeners(&loaded), ["127.0.0.1:8000"]);
    assert_eq!((loaded.config.pool.limits.min_threads, loaded.config.pool.limits.max_threads), (1, 10));
    assert_eq!(loaded.config.site.max_body, 1 << 30);
    assert_eq!(origin(&loaded, "listen"), "default");
    assert_eq!(origin(&loaded, "application"), "command line");
    assert!(loaded.files.is_empty());
}

#[test]
fn each_place_wins_over_the_one_before() {
    let numbers: String = ["max-threads", "max-body", "keep-alive", "head-timeout"]
        .iter()
        .map(|name| format!("{name} = 20\n"))
        .collect();
    let case = Case::new(&[
        ("maitred.toml", &numbers),
        ("maitred.toml.d/20.toml", "max-body = 23\nkeep-alive = 23\nhead-timeout = 23\n"),
        ("maitred.toml.d/10.toml", "# the later file wins\n\nmax-body = 21\n"),
    ])
    .with("MAITRED_KEEP_ALIVE", "24")
    .with("MAITRED_HEAD_TIMEOUT", "24");
    let loaded = case.loaded(&["--head-timeout=25"]);
    assert_eq!(loaded.files, ["maitred.toml", "maitred.toml.d/10.toml", "maitred.toml.d/20.toml"]);
    let shown = |name: &str| {
        let definition = crate::options::find(name).expect(name);
        (definition.show(&loaded.config).expect(name), origin(&loaded, name))
    };
    let expected = |value: &str, source: &str| (value.to_owned(), source.to_owned());
    assert_eq!(shown("min-threads"), expected("1", "default"));
    assert_eq!(shown("max-threads"), expected("20", "maitred.toml:1"));
    assert_eq!(shown("max-body"), expected("23", "drop-in maitred.toml.d/20.toml:1"));
    assert_eq!(shown("keep-alive"), expected("24", "environment variable MAITRED_KEEP_ALIVE"));
    assert_eq!(shown("head-timeout"), expected("25", "command line"));
}

#[test]
fn lists_are_collected_within_a_place_and_replaced_between_places() {
    let case = Case::new(&[("maitred.toml", "listen = [\n  \":1\",\n  \":2\",\n]\n")]);
    assert_eq!(listeners(&case.loaded(&[])), [":1", ":2"]);
    assert_eq!(listeners(&case.loaded(&["--listen", ":3", "--listen=[::1]:4"])), [":3", "[::1]:4"]);
    let case = case.with("MAITRED_LISTEN", ":5, :6");
    assert_eq!(listeners(&case.loaded(&[])), [":5", ":6"]);
    let case = Case::new(&[]).with("MAITRED_LISTEN", ":5,read-ahead=off, :6, read-ahead=on,:7");
    assert_eq!(listeners(&case.loaded(&[])), [":5,read-ahead=off", ":6,read-ahead=on", ":7"]);
}

#[test]
fn another_file_brings_its_own_drop_ins() {
    let case = Case::new(&[
        ("maitred.toml", "max-threads = 2"),
        ("etc/site.toml", "max-threads = 3"),
        ("etc/site.toml.d/a.toml", "keep-alive = 0.5"),
        ("etc/site.toml.d/.a.toml", "not read"),
        ("etc/site.toml.d/a.toml~", "not read"),
    ]);
    let loaded = case.loaded(&["--config", "etc/site.toml"]);
    assert_eq!(loaded.config.pool.limits.max_threads, 3);
    assert_eq!(loaded.files, ["etc/site.toml", "etc/site.toml.d/a.toml"]);
    let case = case.with("MAITRED_CONFIG", "etc/site.toml");
    assert_eq!(case.loaded(&[]).config.pool.limits.max_threads, 3);
    assert_eq!(case.loaded(&["--config=maitred.toml"]).config.pool.limits.max_threads, 2);
    assert_eq!(
        case.error(&["--config", "none.toml"]),
        "--config: there is no file none.toml; create it or correct the path"
    );
}

#[test]
fn a_drop_in_folder_needs_no_main_file() {
    let case = Case::new(&[("maitred.toml.d/x.toml", "application = \"app:app\"")]);
    assert_eq!(case.loaded(&[]).config.site.application.as_deref(), Some("app:app"));
}

#[test]
fn errors_in_files_name_file_line_and_remedy() {
    for (text, error) in [
        ("\n\nmax-thread = 1\n", "maitred.toml:3: unknown key 'max-thread'; did you mean 'max-threads'?"),
        ("max_threads = 1\n", "maitred.toml:1: unknown key 'max_threads'; did you mean 'max-threads'?"),
        ("colour = 1\n", "maitred.toml:1: unknown key 'colour'; 'maitred --help all' lists the options"),
        ("config = \"x\"\n", "maitred.toml:1: unknown key 'config'; 'maitred --help all' lists the options"),
        (
            "# one\nmax-threads = 0\n",
            "maitred.toml:2: max-threads: '0' is not a whole number from 1 to 10000; give one, for example 1",
        ),
        (
            "# one\r\nlisten = [\r\n  \":1\",\r\n  {},\r\n]\r\n",
            "maitred.toml:4: listen: the value is of the type table; expected: text, or a list of texts",
        ),
        (
            "max-threads = [1]\n",
            "maitred.toml:1: max-threads: the value is of the type array; expected: whole number from 1 to 10000",
        ),
    ] {
        assert_eq!(Case::new(&[("maitred.toml", text)]).error(&[]), error);
    }
}

#[test]
fn a_syntax_error_names_its_line() {
    for (text, place) in
        [("a = 1\nb = \n", "maitred.toml:2: "), ("x", "maitred.toml:1: "), ("a=1\na=2", "maitred.toml:2: ")]
    {
        let error = Case::new(&[("maitred.toml", text)]).error(&[]);
        assert!(error.starts_with(place), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }
    let case = Case::new(&[]);
    fs::write(case.folder.path().join("maitred.toml"), b"# \n\xff\n").expect("a file");
    assert_eq!(case.error(&[]), "maitred.toml:2: the text is not UTF-8; save the file as UTF-8");
}

#[test]
fn a_value_that_is_replaced_is_checked_too() {
    let case = Case::new(&[("maitred.toml", "max-threads = -1\n")]);
    assert!(case.error(&["--max-threads", "4"]).starts_with("maitred.toml:1: max-threads: "));
}

#[test]
fn unknown_variables_are_warnings_and_empty_ones_are_not_set() {
    let case = Case::new(&[])
        .with("MAITRED_MAX_THREAD", "9")
        .with("MAITRED_PORT_8000_TCP_ADDR", "tcp://10.0.0.1:8000")
        .with("MAITRED_BENCH_NICE", "-15")
        .with("MAITRED_MAX_BODY", "");
    let loaded = case.loaded(&[]);
    assert_eq!(
        loaded.warnings,
        [
            "MAITRED_MAX_THREAD: unknown variable, ignored; did you mean 'MAITRED_MAX_THREADS'?",
            "MAITRED_PORT_8000_TCP_ADDR: unknown variable, ignored; 'maitred --help all' lists the options",
        ]
    );
    assert_eq!(loaded.config, settled());
    let case = Case::new(&[]).with("MAITRED_LISTING", "maybe");
    assert_eq!(case.error(&[]), "MAITRED_LISTING: 'maybe' is neither on nor off; write true or false");
}

#[test]
fn the_command_line_in_its_forms() {
    let case = Case::new(&[]);
    let loaded = case.loaded(&[
        "check",
        "--listing",
        "app:app",
        "--access-log",
        "-",
        "--max-threads=3",
        "--max-threads=4",
    ]);
    assert_eq!(loaded.command, Command::Check);
    assert!(loaded.config.site.listing);
    assert_eq!(loaded.config.site.access_log, crate::log_values::LogPlace::Stdout);
    assert_eq!(loaded.config.pool.limits.max_threads, 4);
    assert_eq!(case.loaded(&["--", "-x"]).config.site.application.as_deref(), Some("-x"));
    assert_eq!(case.loaded(&["a:b", "--version"]).command, Command::Version);
    assert_eq!(case.loaded(&["-h"]).command, Command::Help);
    let case = Case::new(&[("maitred.toml", "listing = true")]);
    assert!(!case.loaded(&["--listing=off"]).config.site.listing);
}

#[test]
fn errors_on_the_command_line_name_the_option_and_the_remedy() {
    for (arguments, error) in [
        (&["--max-thread", "2"][..], "--max-thread: unknown option; did you mean '--max-threads'?"),
        (&["--max_threads=2"], "--max_threads: unknown option; did you mean '--max-threads'?"),
        (&["-x"], "-x: unknown option; 'maitred --help all' lists the options"),
        (&["--application", "a"], "--application: unknown option; 'maitred --help all' lists the options"),
        (&["--listen"], "--listen: needs a value; for example --listen 127.0.0.1:8000"),
        (&["--static", "--listing"], "--static: needs a value; for example --static /URL=FOLDER"),
        (&["--help=1"], "--help: takes no value; leave the value out"),
        (&["a:a", "b:b"], "b:b: a second application after 'a:a'; start one process for each"),
        (&["chekc", "a:a"], "a:a: a second application after 'chekc'; did you mean 'maitred check a:a'?"),
        (
            &["a:a", "check"],
            "check: a second application after 'a:a'; put the command first: maitred check a:a",
        ),
        (&[""], "application: the name is empty; give module:attr, a file or a folder"),
    ] {
        assert_eq!(Case::new(&[]).error(arguments), error);
    }
}

#[test]
fn options_are_checked_against_each_other() {
    let case =
        Case::new(&[("maitred.toml", "max-threads = 3\n"), ("a/index.html", ""), ("b/index.html", "")]);
    let inside = |name: &str| case.folder.path().join(name).display().to_string();
    let (a, b, file, none) = (inside("a"), inside("b"), inside("a/index.html"), inside("none"));
    let error = |arguments: &[String]| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let loaded = case.loaded(&arguments);
        check(&loaded.config, &loaded.origins).expect_err("an error").to_string()
    };
    assert_eq!(
        error(&["--min-threads=4".into()]),
        "--min-threads: min-threads 4 is greater than max-threads 3 (maitred.toml:1); set max-threads to 4 or more"
    );
    assert_eq!(
        error(&[format!("--static=/x={a}"), format!("--static=/x/={b}")]),
        format!("--static: /x is served from two folders, {a} and {b}; leave one of them out")
    );
    assert_eq!(
        error(&[a.clone(), format!("--static=/={b}")]),
        format!(
            "--static: '/' is already served from the folder {a}; choose another URL or leave the folder out"
        )
    );
    assert!(
        error(&[format!("--static=/x={none}")])
            .starts_with(&format!("--static: there is no folder {none}; "))
    );
    assert!(
        error(&[format!("--static=/x={file}")]).starts_with(&format!("--static: {file} is not a folder; "))
    );
    assert!(error(&[format!("{none}/")]).starts_with(&format!("application: there is no folder {none}/; ")));
    assert!(
        error(&[format!("{none}.py:app")]).starts_with(&format!("application: there is no file {none}.py; "))
    );
    assert_eq!(
        error(&[format!("--access-log={none}/log")]),
        format!(
            "--access-log: there is no folder {none} for the file {none}/log; create it or correct the path"
        )
    );
    assert_eq!(
        error(&[format!("--access-log={a}")]),
        format!("--access-log: {a} is a folder; name a file in it")
    );
    let listen = |one: &str, other: &str| error(&[format!("--listen={one}"), format!("--listen={other}")]);
    assert_eq!(
        listen("127.0.0.1:80", "127.0.0.1:80"),
        "--listen: 127.0.0.1:80 is listed twice; leave one of them out"
    );
    assert_eq!(
        listen("127.0.0.1:80", ":80"),
        "--listen: 127.0.0.1:80 and :80 cover the same address; leave one of them out"
    );
}

#[test]
fn folders_modules_and_files_pass_the_checks() {
    let case = Case::new(&[("site/index.html", ""), ("app.py", "")]);
    let site = case.folder.path().join("site");
    let program = case.folder.path().join("app.py").display().to_string();
    let loaded = case.loaded(&[&site.display().to_string(), "--listen=:0", "--listen=:0", "--listen=[::]:0"]);
    let checked = check(&loaded.config, &loaded.origins).expect("valid");
    assert_eq!(checked.sites[0].target, Some(crate::validation::Target::Folder(site.clone())));
    assert_eq!(
        checked.sites[0].mounts,
        [crate::value::Mount { prefix: "/".to_owned(), folder: site, fallback: None }]
    );
    assert_eq!(checked.listeners.len(), 3);
    for name in ["module", "module:app", &program, &format!("{program}:app")] {
        let loaded = case.loaded(&[name]);
        let checked = check(&loaded.config, &loaded.origins).expect(name);
        assert_eq!(checked.sites[0].target, Some(crate::validation::Target::Program(name.to_owned())));
    }
}

#[test]
fn all_interfaces_of_ipv6_are_those_of_ipv4_too() {
    let case = Case::new(&[]);
    let places = |listen: &[&str]| {
        let arguments: Vec<String> = listen.iter().map(|one| format!("--listen={one}")).collect();
        let mut all = vec!["app:app"];
        all.extend(arguments.iter().map(String::as_str));
        let loaded = case.loaded(&all);
        let checked = check(&loaded.config, &loaded.origins).expect("valid");
        let addresses =
            checked.listeners.iter().filter_map(|one| one.address.as_ref().map(ToString::to_string));
        addresses.collect::<Vec<_>>()
    };
    assert_eq!(places(&["[::]:8000"]), ["[::]:8000", "0.0.0.0:8000"]);
    for (other, shown) in [(":8000", "0.0.0.0:8000"), ("127.0.0.1:8000", "127.0.0.1:8000")] {
        assert_eq!(places(&["[::]:8000", other]), ["[::]:8000", shown], "who names it means it");
    }
    assert_eq!(places(&["[::1]:8000"]), ["[::1]:8000"]);
    assert_eq!(places(&["[::]:0"]), ["[::]:0"], "the system would choose two ports");
}

/// Each reading divides the configured values anew.
#[test]
fn a_worker_has_its_part_of_what_is_for_all() {
    let case = Case::new(&[("maitred.toml", "body-budget = \"64M\"\nresponse-budget = \"32M\"\n")]);
    let alone = case.loaded(&["app:app"]).config;
    assert_eq!((alone.body_budget, alone.writer.budget), (64 << 20, 32 << 20));
    let inputs = Inputs { workers: Some(4), ..case.inputs(&["app:app"]) };
    for _ in 0..2 {
        let one = load(&inputs).expect("a valid configuration").config;
        assert_eq!((one.body_budget, one.writer.budget), (16 << 20, 8 << 20));
    }
}

#[test]
fn every_table_tells_of_unknown_keys_alike() {
    for table in tables::ALL {
        let head = table.head_of("a");
        let [kind, _] = table.names;
        let error = |key: &str| Case::new(&[("maitred.toml", &format!("{head}\n{key} = 1\n"))]).error(&[]);
        let known = (table.keys)();
        let first = known[0].name;
        let unknown = format!("maitred.toml:2: unknown key 'zzz' in {head}; a {kind} has {first}, ");
        assert!(error("zzz").starts_with(&unknown), "{}", error("zzz"));
        let near = format!("unknown key '{first}x' in {head}; did you mean '{first}'?");
        assert!(error(&format!("{first}x")).ends_with(&near), "{}", error(&format!("{first}x")));
        let option = format!("behind {head} it belongs to the {kind}, which has no such key");
        assert!(error("drain-timeout").ends_with(&option), "{}", error("drain-timeout"));
    }
}

#[test]
fn an_item_of_a_list_that_is_wrong_is_told_with_its_line() {
    let text = "[[filter]]\nset-response = [\n\"X-A: 1\",\n\"Connection: close\",\n]\n";
    let error = Case::new(&[("maitred.toml", text)]).error(&[]);
    assert!(error.starts_with("maitred.toml:4: filter.set-response: "), "{error}");
}
