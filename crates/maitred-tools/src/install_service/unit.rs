//! The text of the units. What each line is for stands in docs/guides/systemd.md.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use maitred_config::{Account, Problem};

/// What is to be run, and how.
pub(super) struct Service {
    /// Of the units, without their endings; also of the folders below /run, /var/lib and /var/log.
    pub(super) name: String,
    /// What is served, for people.
    pub(super) serves: String,
    /// The program with all its arguments.
    pub(super) command: Vec<String>,
    pub(super) folder: PathBuf,
    /// Where the program and its libraries are, behind all links.
    pub(super) links: Vec<PathBuf>,
    /// Without one systemd makes a user while the service runs.
    pub(super) user: Option<Account>,
    pub(super) group: Option<Account>,
    /// Folders that it may write to, beside its own.
    pub(super) writable: Vec<PathBuf>,
    /// Addresses in the form of systemd at which systemd listens.
    pub(super) sockets: Vec<String>,
    /// It listens on a port below 1024 itself.
    pub(super) has_low_port: bool,
    /// Code is made while it runs.
    pub(super) has_jit: bool,
    /// It has no control socket of its own choice.
    pub(super) sets_control: bool,
}

/// What the service neither needs to see nor to do, whatever it serves.
const CLOSED: &str = "\
NoNewPrivileges=yes
ProtectSystem=strict
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
LockPersonality=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
UMask=0027
";

/// Whether `ProtectHome=` hides it.
pub(super) fn is_in_home(path: &Path) -> bool {
    ["/home", "/root", "/run/user"].iter().any(|home| path.starts_with(home))
}

impl Service {
    /// The text of NAME.service.
    pub(super) fn service_unit(&self) -> String {
        let name = &self.name;
        let mut text = self.beginning("service", &format!("{} by maitred", self.serves));
        text.push_str("After=network.target\n");
        if !self.sockets.is_empty() {
            let _ = writeln!(text, "Requires={name}.socket\nAfter={name}.socket");
        }
        let command: Vec<String> = self.command.iter().map(|word| argument(word)).collect();
        let _ = writeln!(
            text,
            "\n[Service]\nType=notify\nExecStart={}\nExecReload=kill -HUP $MAINPID\nWorkingDirectory={}",
            command.join(" "),
            percent(&self.folder.to_string_lossy())
        );
        match &self.user {
            Some(user) => _ = writeln!(text, "User={user}"),
            None => text.push_str("DynamicUser=yes\n"),
        }
        if let Some(group) = &self.group {
            let _ = writeln!(text, "Group={group}");
        }
        if self.sets_control {
            let _ = writeln!(text, "Environment=MAITRED_CONTROL=/run/{name}/control.sock");
        }
        let _ = writeln!(
            text,
            "RuntimeDirectory={name}\nStateDirectory={name}\nLogsDirectory={name}\n\
             KillMode=mixed\nWatchdogSec=30\nRestart=on-failure\n\n{CLOSED}{}\n\n[Install]\nWantedBy=multi-user.target",
            self.opened().join("\n")
        );
        text
    }

    /// The lines that differ from service to service.
    fn opened(&self) -> Vec<String> {
        let capabilities = if self.has_low_port { "CAP_NET_BIND_SERVICE" } else { "" };
        let mut lines = vec![
            format!("CapabilityBoundingSet={capabilities}"),
            format!("AmbientCapabilities={capabilities}"),
        ];
        if !self.has_low_port {
            // A capability in a user namespace of one's own opens no port.
            lines.push("PrivateUsers=yes".to_owned());
        }
        let program = self.command.iter().map(Path::new).filter(|word| word.is_absolute());
        let others = self.links.iter().chain(&self.writable).chain([&self.folder]).map(|path| &**path);
        let uses_home = program.chain(others).any(is_in_home);
        lines.push(format!("ProtectHome={}", if uses_home { "read-only" } else { "yes" }));
        if !self.has_jit {
            lines.push("MemoryDenyWriteExecute=yes".to_owned());
        }
        let writable = self.writable.iter().map(|folder| quoted(&folder.to_string_lossy()));
        lines.extend(writable.map(|folder| format!("ReadWritePaths={folder}")));
        lines
    }

    /// The text of NAME.socket, if systemd listens.
    pub(super) fn socket_unit(&self) -> Option<String> {
        let addresses = self.sockets.iter().map(|address| format!("ListenStream={}\n", percent(address)));
        (!self.sockets.is_empty()).then(|| {
            let beginning = self.beginning("socket", &format!("where {} listens", self.name));
            let addresses: String = addresses.collect();
            format!(
                "{beginning}\n[Socket]\n{addresses}FileDescriptorName=http\nBacklog=4096\n\n[Install]\nWantedBy=sockets.target\n"
            )
        })
    }

    fn beginning(&self, ending: &str, description: &str) -> String {
        let (name, description) = (&self.name, percent(description));
        format!(
            "# Written by `maitred install-service`. Changes of yours: systemctl edit {name}.{ending}\n\
             [Unit]\nDescription={description}\n"
        )
    }
}

/// A word of a command line (systemd.service(5), "Command lines").
fn argument(word: &str) -> String {
    quoted(&word.replace('$', "$$"))
}

/// In quotation marks if it needs them; `%` begins a specifier (systemd.unit(5)).
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+~*$[]{}?&^!".contains(letter);
    let text = percent(word);
    if !word.is_empty() && word.chars().all(is_plain) {
        return text;
    }
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter.is_ascii_control() => _ = write!(out, "\\x{:02x}", letter as u32),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// An error of the command.
pub(super) fn problem(what: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem::new("install-service", what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service() -> Service {
        Service {
            name: "shop".to_owned(),
            serves: "shop:app".to_owned(),
            command: ["/opt/shop/bin/maitred", "shop:app"].map(ToOwned::to_owned).into(),
            folder: "/srv/shop".into(),
            links: Vec::new(),
            user: None,
            group: None,
            writable: Vec::new(),
            sockets: Vec::new(),
            has_low_port: false,
            has_jit: false,
            sets_control: true,
        }
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        for (word, written) in [
            ("shop:app", "shop:app"),
            ("/a b", "\"/a b\""),
            ("100%", "100%%"),
            ("$HOME", "$$HOME"),
            ("say \"x\\y\"", "\"say \\\"x\\\\y\\\"\""),
            ("a'b", "\"a'b\""),
            ("", "\"\""),
            (";", "\";\""),
            ("a\nb", "\"a\\x0ab\""),
        ] {
            assert_eq!(argument(word), written, "{word:?}");
        }
    }

    #[test]
    fn the_service_gets_no_more_than_it_needs() {
        let has = |service: Service, lines: &[&str]| {
            let text = service.service_unit();
            lines.iter().for_each(|line| assert!(text.lines().any(|own| own == *line), "{line} in {text}"));
            text
        };
        has(service(), &["DynamicUser=yes", "PrivateUsers=yes", "CapabilityBoundingSet=", "ProtectHome=yes"]);
        let open = Service {
            user: Some(Account::Name("www-data".to_owned())),
            has_low_port: true,
            has_jit: true,
            folder: "/home/ann/shop".into(),
            writable: vec!["/srv/shop media".into()],
            ..service()
        };
        let lines = ["User=www-data", "AmbientCapabilities=CAP_NET_BIND_SERVICE", "ProtectHome=read-only"];
        let text = has(open, &[&lines[..], &["ReadWritePaths=\"/srv/shop media\""]].concat());
        assert!(!text.contains("PrivateUsers") && !text.contains("MemoryDenyWriteExecute"), "{text}");
        let links = vec!["/home/ann/.local/bin/python3".into()];
        has(Service { links, ..service() }, &["ProtectHome=read-only"]);
    }
}
