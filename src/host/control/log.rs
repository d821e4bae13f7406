//! The log on standard error, and its level, which a reload may change.
//!
//! A process has one log, so its handle is one too. Nothing is logged per datagram.

use anyhow::{Result, anyhow};
use std::io::IsTerminal;
use std::sync::OnceLock;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    level: reload::Handle<EnvFilter, Registry>,
    fixed: bool,
}

/// Starts the log. `given` is what the command line or RUST_LOG says and outlasts reloads; `configured` counts when it says nothing.
///
/// # Errors
/// When the filter cannot be read, or the process logs already.
pub fn start(given: Option<&str>, configured: &str) -> Result<()> {
    let filter = EnvFilter::try_new(given.unwrap_or(configured)).map_err(|error| anyhow!("log filter: {error}"))?;
    let (layer, level) = reload::Layer::new(filter);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal()).with_target(false);
    tracing_subscriber::registry().with(layer).with(lines).try_init()?;
    // The first call alone comes here.
    let _ = LOG.set(Log { level, fixed: given.is_some() });
    Ok(())
}

/// A filter as the command line gives it, looked at whatever it is used for.
///
/// # Errors
/// When it cannot be read.
pub fn filter(text: &str) -> Result<String> {
    EnvFilter::try_new(text)?;
    Ok(text.to_owned())
}

/// Sets the level a tuning file asks for; false when the command line or RUST_LOG fixed it.
///
/// # Errors
/// When the filter cannot be read.
pub fn set_level(configured: &str) -> Result<bool> {
    let Some(log) = LOG.get() else { return Ok(false) };
    if !log.fixed {
        let filter = EnvFilter::try_new(configured).map_err(|error| anyhow!("log filter: {error}"))?;
        log.level.reload(filter)?;
    }
    Ok(!log.fixed)
}
