//! The terms of a running server, which are made again from the files when an operator asks for it, or when the files have changed.
//!
//! Promises: invalid files change nothing. Connections go on.

use std::sync::Arc;

use maitred_config::tls::{Material, Stamps, changes};
use maitred_config::{Config, Origins, Problem};
use maitred_server::Server;

/// The material of a running server.
pub(crate) struct Running {
    material: Arc<Material>,
    /// The state of the files at the last look; none before the first one.
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

    /// Loads the files, and has the server use them. Returns the changes in lines.
    ///
    /// # Errors
    /// A file is not valid; nothing has changed.
    pub(crate) fn load(
        &mut self,
        config: &Config,
        origins: &Origins,
        server: &Server,
    ) -> Result<Vec<String>, Problem> {
        // Taken before the files are read, so that a change during the reading is seen at the next look.
        self.seen = Some(Stamps::of(config));
        let next = self.material.again(config, origins)?;
        let lines = changes(&self.material, &next);
        server.settings().set_tls(Arc::clone(&next.terms));
        self.material = next;
        Ok(lines)
    }

    /// Loads the certificates by ACME that have come since, and has the server use them. Returns the changes in lines.
    pub(crate) fn load_ordered(
        &mut self,
        config: &Config,
        origins: &Origins,
        server: &Server,
    ) -> Vec<String> {
        let Some(next) = self.material.as_before(config, origins) else { return Vec::new() };
        let lines = changes(&self.material, &next);
        if !lines.is_empty() {
            server.settings().set_tls(Arc::clone(&next.terms));
            self.material = next;
        }
        lines
    }

    /// Whether the files have changed since they were loaded, and are the same at two looks. `pending` is their state at the look before, if they had
    /// changed then.
    pub(crate) fn has_changed(
        &mut self,
        config: &Config,
        origins: &Origins,
        pending: &mut Option<Stamps>,
    ) -> bool {
        let now = Stamps::of(config);
        let Some(seen) = &self.seen else {
            // Files that cannot be read have been reported at the start.
            self.seen = Some(now);
            return self.material.differs_from_files(config, origins);
        };
        let is_settled = pending.as_ref() == Some(&now);
        let has_changed = *seen != now;
        *pending = has_changed.then_some(now);
        has_changed && is_settled
    }
}
