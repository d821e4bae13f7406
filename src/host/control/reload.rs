//! Reload: the tuning file is read again, checked whole, compared, and taken over whole or not at all.

use super::protocol::{Failure, FailureKind};
use super::view::{ChangeRow, Reload};
use super::{Gateway, log};
use crate::config::{self, Change};
use std::sync::Arc;

impl Gateway {
    /// Takes over what changed in the tuning file; with `dry_run` only says what did.
    pub(super) fn reload(&self, dry_run: bool) -> Result<Reload, Failure> {
        let refused = |message: String| Failure::new(FailureKind::Refused, message);
        let Some(path) = &self.config_path else {
            return Err(refused("the gateway runs on its built-in tuning file: there is nothing to reload".into()));
        };
        let (new, _) = config::check_file(path, &self.facts).map_err(|errors| refused(errors.to_string()))?;
        let mut config = self.locked_config();
        let changes = config::diff(&config, &new);
        let rows = changes.iter().map(row).collect();
        if dry_run {
            return Ok(Reload { done: false, changes: rows, notes: Vec::new() });
        }
        let fixed: Vec<_> = changes.iter().filter(|change| !change.reloadable).map(Change::to_string).collect();
        if !fixed.is_empty() {
            return Err(refused(format!("nothing was changed, for this needs a restart:\n{}", fixed.join("\n"))));
        }
        self.hand_out(&config, &new)?;
        if let Some(cluster) = &self.cluster {
            cluster.set_limits(config::limits(&new));
        }
        let mut notes = Vec::new();
        if config.log.level != new.log.level {
            match log::set_level(&new.log.level) {
                Ok(true) => {}
                Ok(false) => notes.push("log.level: --log or RUST_LOG came first at the start and still counts".into()),
                Err(error) => notes.push(format!("log.level: {error}")),
            }
        }
        *config = Arc::new(new);
        Ok(Reload { done: true, changes: rows, notes })
    }

    /// SIGHUP: nobody waits for an answer, so the log says it.
    pub(super) fn reload_by_signal(&self) {
        match self.reload(false) {
            Ok(reload) if reload.changes.is_empty() => tracing::info!("reload: nothing has changed"),
            Ok(reload) => {
                reload.changes.iter().for_each(|change| tracing::info!("reload: {}: {} -> {}", change.key, change.old, change.new));
                reload.notes.iter().for_each(|note| tracing::warn!("reload: {note}"));
            }
            Err(failure) => tracing::error!("reload: {}", failure.message),
        }
    }

    /// Gives every core the settings of `new`. When one cannot take them, those that did get the ones of `old` back.
    fn hand_out(&self, old: &config::Config, new: &config::Config) -> Result<(), Failure> {
        let stalled = self.cores.stalled(self.clock.now(), old.limits.stall_alarm).next();
        let stalled = stalled.map(|(core, _)| format!("core {} is silent", core.0));
        let settings = |config| Arc::new((self.settings)(config, &self.known()));
        let failed = stalled.or_else(|| {
            self.set_settings(&settings(new)).err().map(|silent| {
                // The same core refuses these too; it still has the old ones.
                let _ = self.set_settings(&settings(old));
                silent.to_string()
            })
        });
        failed.map_or(Ok(()), |why| Err(Failure::new(FailureKind::Silent, format!("nothing was changed: {why}"))))
    }
}

fn row(change: &Change) -> ChangeRow {
    ChangeRow { key: change.key.clone(), old: change.old.clone(), new: change.new.clone(), needs_restart: !change.reloadable }
}
