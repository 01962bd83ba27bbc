//! Options of other servers on the command line: each becomes a value of ours, some of them together.
//!
//! Promises: what is meant is never guessed; where two of them contradict each other the user is asked. Leaves out: which
//! names there are (options/familiar).

use crate::options::familiar::{ADDRESS, Becomes, Familiar, Part, Written, address};
use crate::options::{self, Definition};
use crate::origins::Source;
use crate::problem::Problem;
use crate::value::BadValue;

use super::command_line::CommandLine;

/// What several names make together.
#[derive(Default)]
pub(super) struct Parts {
    given: Vec<Given>,
    /// Files of which there can be one only.
    single: Vec<&'static str>,
}

struct Given {
    part: Part,
    name: &'static str,
    value: String,
}

/// It can be given several times there, and once here.
const ONE_FILE: &str = "--env-files";

impl Parts {
    /// Takes one; `next` is the argument behind it.
    pub(super) fn take<'a>(
        &mut self,
        written: &Written<'a>,
        next: impl FnOnce() -> Option<&'a str>,
        line: &mut CommandLine,
    ) -> Result<(), Problem> {
        let Written { familiar, name, attached } = written;
        let wrong = |BadValue { what, remedy }| Problem::new(*name, what, remedy);
        if matches!(familiar.becomes, Becomes::Nothing) {
            return Err(refused(familiar, name));
        }
        let value = match (familiar.takes_value(), attached) {
            (true, Some(value)) => value,
            (true, None) => {
                next().ok_or_else(|| Problem::new(*name, "needs a value", format!("write {name} VALUE")))?
            }
            (false, None) => "true",
            (false, Some(_)) => return Err(Problem::new(*name, "takes no value", "leave the value out")),
        };
        if *name == ONE_FILE && self.single.contains(name) {
            let remedy = "write all variables into one file, --env-file FILE";
            return Err(Problem::new(*name, "there can be one file", remedy));
        }
        self.single.push(name);
        let (option, value) = match familiar.becomes {
            Becomes::Option(option) => (option, value.to_owned()),
            Becomes::Translated(option, translate) => (option, translate(value).map_err(wrong)?),
            Becomes::Fixed(option, value) => (option, value.to_owned()),
            Becomes::Chosen(_, choose) => choose(value).map_err(wrong)?,
            Becomes::Part(part) => {
                self.given.push(Given { part, name, value: value.to_owned() });
                return Ok(());
            }
            Becomes::Always | Becomes::Nothing => return Ok(()),
        };
        line.add(definition(option), &value, Some(name))
    }

    /// Adds what they make together, when all have been taken.
    pub(super) fn finish(self, line: &mut CommandLine) -> Result<(), Problem> {
        self.listener(line)?;
        self.backlog(line)?;
        self.folders(line)?;
        self.proxies(line)
    }

    /// The last one counts.
    fn last(&self, part: Part) -> Option<&Given> {
        self.given.iter().rev().find(|given| given.part == part)
    }

    fn all(&self, part: Part) -> impl Iterator<Item = &Given> {
        self.given.iter().filter(move |given| given.part == part)
    }

    /// `--host` and `--port`, or `--uds`.
    fn listener(&self, line: &mut CommandLine) -> Result<(), Problem> {
        let (host, port) = (self.last(Part::Host), self.last(Part::Port));
        let (socket, mode) = (self.last(Part::Socket), self.last(Part::Mode));
        let listen = definition("listen");
        match (socket, host.or(port)) {
            (Some(socket), Some(other)) => Err(Problem::new(
                socket.name,
                format!("{} names another place to listen", other.name),
                "leave one of them out, or write --listen for each place",
            )),
            (Some(socket), None) => {
                let mode_text = mode.map(|mode| format!(",mode={}", mode.value)).unwrap_or_default();
                line.add(listen, &format!("unix:{}{mode_text}", socket.value), Some(socket.name))
            }
            (None, other) => {
                if let Some(mode) = mode {
                    let remedy = "name one with --uds PATH, or write ,mode=660 behind unix:/PATH of --listen";
                    return Err(Problem::new(mode.name, "there is no socket", remedy));
                }
                let Some(first) = other else { return Ok(()) };
                let text = address(
                    host.map_or(ADDRESS.0, |host| &host.value),
                    port.map_or(ADDRESS.1, |port| &port.value),
                );
                line.add(listen, &text, Some(first.name))?;
                if let (Some(_), Some(port)) = (host, port) {
                    line.also(listen, port.name);
                }
                Ok(())
            }
        }
    }

    /// Behind each address of the command line; if there is none, behind the one that there would be.
    fn backlog(&self, line: &mut CommandLine) -> Result<(), Problem> {
        let Some(backlog) = self.last(Part::Backlog) else { return Ok(()) };
        let listen = definition("listen");
        if !line.assignments.iter().any(|given| given.definition.name == listen.name) {
            line.add(listen, &address(ADDRESS.0, ADDRESS.1), Some(backlog.name))?;
        }
        line.also(listen, backlog.name);
        let texts = line.assignments.iter_mut().filter(|given| given.definition.name == listen.name);
        for text in texts.flat_map(|given| &mut given.texts).filter(|text| !text.contains(",backlog=")) {
            text.push_str(&format!(",backlog={}", backlog.value));
        }
        Ok(())
    }

    /// Routes and folders in the same order; a single folder needs no route.
    fn folders(&self, line: &mut CommandLine) -> Result<(), Problem> {
        const ROUTE: &str = "/static";
        let routes: Vec<&Given> = self.all(Part::StaticRoute).collect();
        let folders: Vec<&Given> = self.all(Part::StaticFolder).collect();
        let is_default = routes.is_empty() && folders.len() == 1;
        if routes.len() != folders.len() && !is_default {
            let given = routes.first().or(folders.first()).map_or("", |given| given.name);
            let what = format!("there are {} routes and {} folders", routes.len(), folders.len());
            return Err(Problem::new(given, what, "write --static /URL=FOLDER for each"));
        }
        for (position, folder) in folders.into_iter().enumerate() {
            let route = routes.get(position).map_or(ROUTE, |route| &route.value);
            line.add(definition("static"), &format!("{route}={}", folder.value), Some(folder.name))?;
        }
        Ok(())
    }

    /// `--forwarded-allow-ips` says who is trusted, `--proxy-headers` whether anybody is.
    fn proxies(&self, line: &mut CommandLine) -> Result<(), Problem> {
        /// Those of uvicorn.
        const USUAL: &str = "127.0.0.1,::1";
        const EVERYBODY: &str = "0.0.0.0/0,::/0,unix";
        let switch = self.given.iter().rev().find(|given| matches!(given.part, Part::ProxyHeaders(_)));
        let trusted = definition("trusted-proxies");
        match (switch, self.last(Part::Proxies)) {
            (Some(off), _) if off.part == Part::ProxyHeaders(false) => {
                line.add(trusted, "none", Some(off.name))
            }
            (_, Some(given)) => {
                let value = if given.value.trim() == "*" { EVERYBODY } else { &given.value };
                line.add(trusted, value, Some(given.name))
            }
            (Some(on), None) => {
                let is_given = line.assignments.iter().any(|given| given.definition.name == trusted.name);
                if is_given { Ok(()) } else { line.add(trusted, USUAL, Some(on.name)) }
            }
            (None, None) => Ok(()),
        }
    }
}

impl CommandLine {
    /// Notes that another name has a part in the value of this option.
    fn also(&mut self, option: &Definition, name: &'static str) {
        for given in self.assignments.iter_mut().filter(|given| given.definition.name == option.name) {
            given.source.also(&Source::Familiar(vec![name]));
        }
    }
}

/// The error for an option that is nothing here.
fn refused(familiar: &Familiar, name: &str) -> Problem {
    Problem::new(name, format!("an option of {} that is none here", familiar.whose()), familiar.note)
}

fn definition(name: &str) -> &'static Definition {
    options::find(name).expect("a test has looked for every option that the table names")
}
