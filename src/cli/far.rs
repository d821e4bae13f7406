//! Tells far ends of simulated channels what to do, for `tollgate load`: over the operator socket, as `tollgate sim` does.

use super::{Cli, ask, order, read};
use anyhow::{Context, Result};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use tollgate::host::control::socket;
use tollgate::load::FarEnds;

/// An order is given so often before it counts as not given: a core may have lost its CPU for
/// a moment. One that was carried out all the same is carried out again, which matters for winks only.
const ATTEMPTS: usize = 3;
/// Before the next attempt.
const PAUSE: Duration = Duration::from_millis(500);

/// Whoever runs the gateway.
pub struct Operator {
    config: Option<PathBuf>,
    /// The operator socket; found when it is needed.
    socket: OnceLock<PathBuf>,
}

impl Operator {
    /// By `socket`, or by the one the tuning file names.
    pub fn new(config: Option<&Path>, socket: Option<PathBuf>) -> Operator {
        Operator { config: config.map(Path::to_owned), socket: socket.map(OnceLock::from).unwrap_or_default() }
    }

    fn socket(&self) -> Result<&Path> {
        if let Some(socket) = self.socket.get() {
            return Ok(socket);
        }
        let found = socket::path(&read(self.config.as_deref())?);
        Ok(self.socket.get_or_init(|| found))
    }
}

impl FarEnds for Operator {
    fn order(&self, endpoint: &str, words: &str) -> Result<()> {
        let (verb, argument) = words.split_once(' ').unwrap_or((words, ""));
        let argument = Some(argument).filter(|argument| !argument.is_empty());
        let line = ["tollgate", "sim", verb, endpoint].into_iter().chain(argument);
        let request = order(Cli::try_parse_from(line).with_context(|| format!("sim {words}"))?.verb);
        let socket = self.socket()?;
        let mut done = ask::exchange(socket, &request);
        for _ in 1..ATTEMPTS {
            if done.is_ok() {
                break;
            }
            std::thread::park_timeout(PAUSE);
            done = ask::exchange(socket, &request);
        }
        done.map(drop)
    }
}
