//! The terms of a running server, which are made of the files again when somebody asks for it, or when they have changed.
//!
//! Promises: what is not valid changes nothing. Connections go on.

use std::sync::Arc;

use maitred_server::Server;
use maitred_server::tls::IdentityInfo;

use super::Material;
use super::files::{Files, Stamps};
use super::report::{date, named};
use crate::config::Config;
use crate::origins::Origins;
use crate::problem::Problem;

/// That of a running server.
pub(crate) struct Running {
    material: Arc<Material>,
    /// How the files were when they were looked at last; none before that.
    seen: Option<Stamps>,
}

impl Running {
    /// `handed`: another process has read the files, some time before.
    pub(crate) fn new(material: Arc<Material>, config: &Config, handed: bool) -> Self {
        let seen = (!handed).then(|| Stamps::of(config));
        Self { material, seen }
    }

    pub(crate) fn material(&self) -> &Arc<Material> {
        &self.material
    }

    /// Loads the files, and has the server use them: what has changed, in lines.
    ///
    /// # Errors
    /// A file is not valid; nothing has changed.
    pub(crate) fn load(
        &mut self,
        config: &Config,
        origins: &Origins,
        server: &Server,
    ) -> Result<Vec<String>, Problem> {
        // Before they are read: what changes meanwhile is seen later.
        self.seen = Some(Stamps::of(config));
        let next = self.material.again(config, origins)?;
        let lines = changes(&self.material, &next);
        server.set_tls(Arc::clone(&next.terms));
        self.material = next;
        Ok(lines)
    }

    /// Whether the files are not as they were when they were looked at last. `pending` is how they were a moment ago, if they had changed then.
    pub(crate) fn has_changed(
        &mut self,
        config: &Config,
        origins: &Origins,
        pending: &mut Option<Stamps>,
    ) -> bool {
        let now = Stamps::of(config);
        let Some(seen) = &self.seen else {
            // What cannot be read has been told at the start.
            self.seen = Some(now);
            return Files::read(config, origins, None)
                .is_ok_and(|files| !files.is_same(&self.material.files));
        };
        let is_settled = pending.as_ref() == Some(&now);
        let has_changed = *seen != now;
        *pending = has_changed.then_some(now);
        has_changed && is_settled
    }
}

/// What has changed, in lines for the log.
fn changes(before: &Material, after: &Material) -> Vec<String> {
    if before.files == after.files {
        return Vec::new();
    }
    let prints = |material: &Material| -> Vec<String> {
        material.certificates().map(|(info, _)| info.certificate.fingerprint.clone()).collect()
    };
    let known = prints(before);
    let new = after.certificates().filter(|(info, _)| !known.contains(&info.certificate.fingerprint));
    let used = |(info, file): (&IdentityInfo, &str)| {
        let until = date(info.certificate.not_after);
        format!("TLS: the certificate {file} ({}) is used now, valid until {until}", named(info))
    };
    let mut lines: Vec<String> = new.map(used).collect();
    if lines.is_empty() {
        lines.push("TLS: the files have been loaded".to_owned());
    }
    lines
}
