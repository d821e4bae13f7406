//! What is wrong with a tuning file: all of it at once, each with key, value, allowed range and line.

use std::fmt;

/// One thing wrong with a tuning file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The file, as the caller named it.
    pub file: String,
    /// The line, counted from 1; `None` for what is not in the file (a missing key, a default that clashes).
    pub line: Option<usize>,
    /// The full key, such as `timers.t_max` or `agent[2].notify[1]` (counted from 1). Empty when the file as a whole is at fault.
    pub key: String,
    /// The value as written, shortened; `None` for a key or table as a whole.
    pub value: Option<String>,
    /// What would be right.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    /// `gateway.toml:41: timers.t_max = "40s": must be 1s..=20s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        match (&*self.key, &self.value) {
            ("", _) => {}
            (key, Some(value)) => write!(f, ": {key} = {value}")?,
            (key, None) => write!(f, ": {key}")?,
        }
        write!(f, ": {}", self.problem)
    }
}

/// Everything wrong with a tuning file, in the order of its lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Errors(pub Vec<ConfigError>);

impl fmt::Display for Errors {
    /// One line each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}
