//! The form of sockets that a service manager passes: `systemd` for all sockets, `systemd:NAME` for those with this name.

use crate::BadValue;

/// The word for all sockets; a colon and a name may follow.
pub(crate) const WORD: &str = "systemd";

/// `systemd` or `systemd:NAME`: the name, if there is one. None for every other text.
pub(crate) fn name(text: &str) -> Option<Result<Option<String>, BadValue>> {
    let name = match text.strip_prefix(WORD)? {
        "" => return Some(Ok(None)),
        rest => rest.strip_prefix(':')?,
    };
    // As systemd.socket(5) has it for FileDescriptorName=.
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
    Some(if is_name {
        Ok(Some(name.to_owned()))
    } else {
        let remedy = "write systemd:NAME with the FileDescriptorName= of a .socket unit, or systemd for all";
        Err(BadValue::new(format!("'{text}' names no sockets"), remedy))
    })
}

/// The remedy for a listener's parameter that a `.socket` unit has under another name (systemd.socket(5)).
pub(crate) fn of_unit(parameter: &str) -> Option<&'static str> {
    Some(match parameter {
        "backlog" => "set Backlog= in its .socket unit",
        "mode" => "set SocketMode= in its .socket unit",
        "owner" => "set SocketUser= in its .socket unit",
        "group" => "set SocketGroup= in its .socket unit",
        _ => return None,
    })
}
