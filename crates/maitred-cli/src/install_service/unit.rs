//! The text of the units. What each line is for stands in docs/guides/systemd.md.

use std::ffi::OsStr;
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
    pub(super) user: Option<String>,
    pub(super) group: Option<String>,
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

/// What `ProtectHome=` hides.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

pub(super) fn is_in_home(path: &Path) -> bool {
    HOMES.iter().any(|home| path.starts_with(home))
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
        let _ = write!(
            text,
            "\n[Service]\nType=notify\nExecStart={}\nExecReload=kill -HUP $MAINPID\nWorkingDirectory={}\n",
            command.join(" "),
            plain(&self.folder)
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
        let _ = write!(
            text,
            "RuntimeDirectory={name}\nStateDirectory={name}\nLogsDirectory={name}\n\
             KillMode=mixed\nWatchdogSec=30\nRestart=on-failure\n\n"
        );
        self.write_limits(&mut text);
        text.push_str("\n[Install]\nWantedBy=multi-user.target\n");
        text
    }

    fn write_limits(&self, text: &mut String) {
        text.push_str(CLOSED);
        let capabilities = if self.has_low_port { "CAP_NET_BIND_SERVICE" } else { "" };
        let _ = writeln!(text, "CapabilityBoundingSet={capabilities}\nAmbientCapabilities={capabilities}");
        if !self.has_low_port {
            // A capability in a user namespace of one's own opens no port.
            text.push_str("PrivateUsers=yes\n");
        }
        let _ = writeln!(text, "ProtectHome={}", if self.uses_home() { "read-only" } else { "yes" });
        if !self.has_jit {
            text.push_str("MemoryDenyWriteExecute=yes\n");
        }
        for folder in &self.writable {
            let _ = writeln!(text, "ReadWritePaths={}", quoted(&folder.to_string_lossy(), false));
        }
    }

    /// Whether the program, the folder or something that it writes to is in a home.
    fn uses_home(&self) -> bool {
        self.written().chain(self.links.iter().map(|path| &**path)).any(is_in_home)
    }

    /// The paths that stand in the unit.
    pub(super) fn written(&self) -> impl Iterator<Item = &Path> {
        let program = self.command.iter().map(Path::new).filter(|word| word.is_absolute());
        program.chain([&*self.folder]).chain(self.writable.iter().map(|path| &**path))
    }

    /// The text of NAME.socket, if systemd listens.
    pub(super) fn socket_unit(&self) -> Option<String> {
        if self.sockets.is_empty() {
            return None;
        }
        let mut text = self.beginning("socket", &format!("where {} listens", self.name));
        text.push_str("\n[Socket]\n");
        for address in &self.sockets {
            let _ = writeln!(text, "ListenStream={}", percent(address));
        }
        text.push_str("FileDescriptorName=http\nBacklog=4096\n\n[Install]\nWantedBy=sockets.target\n");
        Some(text)
    }

    fn beginning(&self, ending: &str, description: &str) -> String {
        format!(
            "# Written by `maitred install-service`. Changes of yours: systemctl edit {}.{ending}\n\
             [Unit]\nDescription={}\n",
            self.name,
            percent(description)
        )
    }
}

/// A word of a command line (systemd.service(5), "Command lines").
fn argument(word: &str) -> String {
    quoted(&word.replace('$', "$$"), word.starts_with([';', '-', '@', ':', '+', '!']) && word.len() == 1)
}

/// In quotation marks if it needs them; `%` begins a specifier (systemd.unit(5)).
fn quoted(word: &str, always: bool) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,@%+~*$[]{}?&^!".contains(letter);
    let text = percent(word);
    if !always && !word.is_empty() && word.chars().all(is_plain) {
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

/// A path where systemd takes the rest of the line.
fn plain(path: &Path) -> String {
    percent(&path.to_string_lossy())
}

fn percent(text: &str) -> String {
    text.replace('%', "%%")
}

/// Whether systemd takes it as the name of a unit and of a folder.
pub(super) fn is_name(name: &str) -> bool {
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    !name.is_empty() && name.len() <= 64 && !name.starts_with(['.', '-']) && name.chars().all(is_allowed)
}

/// The name of a service for an application, if nobody chooses one: `shop` for `shop.wsgi:application`, `srv/shop.py` and `srv/shop/`.
pub(super) fn name_for(application: Option<&str>, folder: &Path) -> Option<String> {
    let module = |target: &str| -> Option<String> {
        let path = Path::new(target.split(':').next()?);
        let last = path.file_stem().and_then(OsStr::to_str)?;
        Some(last.split('.').next()?.to_owned())
    };
    let of_folder = || folder.file_name().and_then(OsStr::to_str).map(ToOwned::to_owned);
    let name = application.and_then(module).filter(|name| !GENERAL.contains(&&**name)).or_else(of_folder)?;
    is_name(&name).then_some(name)
}

/// Names of modules that say nothing of the site; the folder's name says more.
const GENERAL: [&str; 7] = ["app", "main", "application", "asgi", "wsgi", "server", "src"];

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
        let text = service().service_unit();
        for line in ["DynamicUser=yes", "PrivateUsers=yes", "CapabilityBoundingSet=", "ProtectHome=yes"] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        let text = Service {
            user: Some("www-data".to_owned()),
            has_low_port: true,
            has_jit: true,
            folder: "/home/ann/shop".into(),
            writable: vec!["/srv/shop media".into()],
            ..service()
        }
        .service_unit();
        for line in [
            "User=www-data",
            "AmbientCapabilities=CAP_NET_BIND_SERVICE",
            "ProtectHome=read-only",
            "ReadWritePaths=\"/srv/shop media\"",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} in {text}");
        }
        let linked = Service { links: vec!["/home/ann/.local/bin/python3".into()], ..service() };
        assert!(linked.service_unit().contains("\nProtectHome=read-only\n"));
        assert!(!text.contains("PrivateUsers") && !text.contains("MemoryDenyWriteExecute"), "{text}");
    }

    #[test]
    fn systemd_listens_where_it_is_told() {
        assert_eq!(service().socket_unit(), None);
        let service = Service { sockets: vec!["80".into(), "/run/shop.sock".into()], ..service() };
        let text = service.socket_unit().expect("a unit");
        assert!(text.contains("\nListenStream=80\nListenStream=/run/shop.sock\n"), "{text}");
        assert!(service.service_unit().contains("\nRequires=shop.socket\n"));
    }

    #[test]
    fn a_service_is_called_as_what_it_serves() {
        let name = |application| name_for(application, Path::new("/srv/site"));
        assert_eq!(name(Some("shop.wsgi:application")).as_deref(), Some("shop"));
        assert_eq!(name(Some("srv/shop.py")).as_deref(), Some("shop"));
        assert_eq!(name(Some("/srv/pages/")).as_deref(), Some("pages"));
        assert_eq!(name(Some("app:app")).as_deref(), Some("site"));
        assert_eq!(name(None).as_deref(), Some("site"));
        assert_eq!(name_for(None, Path::new("/")), None);
        assert_eq!(name_for(None, Path::new("/a b")), None);
    }
}
