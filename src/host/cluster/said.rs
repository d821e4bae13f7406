//! What the threads that decide about calls have to log: another thread writes it, which may be kept waiting by a terminal or a pipe that
//! takes nothing. Lines beyond those that wait are lost, and told of.

use anyhow::{Context, Result};
use crossbeam::channel::{Receiver, Sender, bounded};
use std::time::Duration;
use tracing::Level;

/// Lines that wait.
const LINES: usize = 256;
/// How long the end waits for them to be written.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The way to the log.
pub struct Said {
    /// `None` at the end only.
    lines: Option<Sender<(Level, String)>>,
    lost: u64,
    /// Ends with the thread.
    written: Receiver<()>,
}

impl Said {
    /// One with a thread that logs.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub fn start() -> Result<Said> {
        Said::with(|level, words| match level {
            Level::ERROR => tracing::error!("{words}"),
            Level::WARN => tracing::warn!("{words}"),
            _ => tracing::info!("{words}"),
        })
    }

    fn with(write: impl Fn(Level, &str) + Send + 'static) -> Result<Said> {
        let (lines, waiting) = bounded::<(Level, String)>(LINES);
        let (writing, written) = bounded(0);
        let run = move || {
            waiting.iter().for_each(|(level, words)| write(level, &words));
            drop(writing);
        };
        std::thread::Builder::new().name("cluster-log".into()).spawn(run).context("no thread for the log of the cluster")?;
        Ok(Said { lines: Some(lines), lost: 0, written })
    }

    /// Has this logged; never waits.
    pub fn say(&mut self, level: Level, words: String) {
        let Some(lines) = &self.lines else { return };
        if self.lost > 0 && lines.try_send((Level::WARN, format!("cluster: {} lines are lost: the log took none", self.lost))).is_ok() {
            self.lost = 0;
        }
        self.lost += u64::from(lines.try_send((level, words)).is_err());
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.lines = None;
        // Nobody sends there: it ends when all is written, or the time is over.
        let _ = self.written.recv_timeout(END_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_takes_nothing_holds_nobody_up() {
        let (stuck, free, taken) = (bounded::<()>(0), bounded(1_000), bounded(1_000));
        let (go, log) = (stuck.1, free.0);
        let mut said = Said::with(move |level, words| {
            // Stuck until the other end is gone.
            let _ = taken.0.send(());
            let _ = go.recv();
            let _ = log.send((level, words.to_owned()));
        })
        .unwrap();
        said.say(Level::INFO, "0".into());
        taken.1.recv().unwrap();
        (1..1_000).for_each(|line| said.say(Level::INFO, line.to_string()));
        let lost = said.lost;
        assert_eq!(lost, 1_000 - LINES as u64 - 1);
        drop(stuck.0);
        // The last line is told behind those that are lost, as soon as there is room.
        let first: Vec<_> = free.1.iter().take(LINES / 2).collect();
        assert_eq!(first[1], (Level::INFO, "1".to_owned()));
        said.say(Level::ERROR, "after".into());
        drop(said);
        let rest: Vec<_> = free.1.iter().collect();
        let told = (Level::WARN, format!("cluster: {lost} lines are lost: the log took none"));
        assert_eq!(rest[rest.len() - 2..], [told, (Level::ERROR, "after".to_owned())]);
    }
}
