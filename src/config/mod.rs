//! The tuning file: one TOML text decides everything that is not the program.
//!
//! Owns reading, checking, explaining and comparing settings, and the plan that follows from them (which core runs where and owns
//! what). Does not open a socket, read /sys or look at the machine: CPU facts are handed in. Steps: `file` reads text against the
//! register in `defaults` (types, ranges, unknown keys), `check` looks at how values go together, [`plan`] places cores. Invariants:
//! a [`Config`] that exists is valid; every fault of a file is reported at once, with key, value, allowed range and line; no input
//! panics.

mod admission;
mod check;
mod cluster;
mod dahdi;
mod defaults;
mod diff;
mod document;
mod error;
mod file;
mod h248;
mod plan;
mod profile;
mod pseudowire;
mod text;
mod types;
mod valid;
mod value;

use std::path::Path;

pub use admission::{giving, groups, limits, limits_of_cores, policies, tree};
pub use check::unfit as unfit_address;
pub use cluster::idle_note;
pub use dahdi::DriverSpan;
pub use defaults::{
    Agent, CORES_MAX, Cac, Cas, CesopsnCard, Cores, DahdiCard, Dns, Gateway, H248, Limits, LoadControl, Log, Metrics, Operator, Overload,
    ScopeEntry, SimCard, Timers, Transport, Xdp,
};
pub use diff::{Change, diff};
pub use document::markdown;
pub use error::{ConfigError, Errors};
pub use plan::{
    CorePlan, CpuFacts, History, Memory, Plan, RING_ENTRIES, Role, STREAM_OUTPUT, STREAMS_EACH, WAITING, XDP_CHUNK, XDP_SLOT_HEAD, in_hand,
    plan, send_slot_bytes, xdp_bytes,
};
pub use profile::Interop;
pub use pseudowire::Wire;
pub use types::*;
pub use valid::{Config, Layout, Line, Span};
pub use value::{Auto, Bytes};

use file::{FILE_MAX, Findings};

/// The tuning file built into the program: `tuning/gateway.toml`.
pub const EMBEDDED: &str = include_str!("../../tuning/gateway.toml");

impl Config {
    /// The settings of the built-in tuning file.
    pub fn default_embedded() -> Config {
        Config::parse(EMBEDDED, "tuning/gateway.toml").unwrap_or_else(|errors| unreachable!("a test reads the built-in file:\n{errors}"))
    }

    /// Reads and checks a tuning file.
    pub fn load(path: &Path) -> Result<Config, Errors> {
        let (name, text) = read_file(path)?;
        Config::parse(&text, &name)
    }

    /// Checks the text of a tuning file; `name` leads the errors.
    pub fn parse(text: &str, name: &str) -> Result<Config, Errors> {
        examine(text, name, None)
    }
}

/// What `tollgate check` does with a text: everything wrong with it on a machine with these CPUs, or the settings and the plan.
pub fn check_text(text: &str, name: &str, facts: &CpuFacts) -> Result<(Config, Plan), Errors> {
    let config = examine(text, name, Some(facts))?;
    let plan = plan(&config, facts)?;
    Ok((config, plan))
}

/// [`check_text`] for a file.
pub fn check_file(path: &Path, facts: &CpuFacts) -> Result<(Config, Plan), Errors> {
    let (name, text) = read_file(path)?;
    check_text(&text, &name, facts)
}

fn examine(text: &str, name: &str, facts: Option<&CpuFacts>) -> Result<Config, Errors> {
    let mut findings = Findings::new(name, text);
    let config = file::read(&mut findings).map(|raw| check::check(raw, facts, &mut findings));
    findings.verdict(config)
}

/// The file's name and text; a file that cannot be read is an error like any other.
fn read_file(path: &Path) -> Result<(String, String), Errors> {
    use std::io::Read;
    let name = path.display().to_string();
    let mut octets = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(FILE_MAX as u64 + 1).read_to_end(&mut octets));
    let problem = match read.map(|_| String::from_utf8(octets)) {
        Ok(Ok(text)) => return Ok((name, text)),
        Ok(Err(error)) => format!("must be UTF-8 text: octet {} is not", error.utf8_error().valid_up_to() + 1),
        Err(error) => format!("cannot be read: {error}"),
    };
    Err(Errors(vec![ConfigError { file: name, line: None, key: String::new(), value: None, problem }]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Rng;

    /// Whatever is done to the file, it is accepted or refused with a reason that names the file: no panic.
    #[test]
    fn mutations_of_the_file_never_panic() {
        let facts = CpuFacts { cpus: vec![(0, 0), (1, 0), (2, 1), (3, 1)] };
        let mut rng = Rng::new(2427);
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..3000 {
            let text = mutated(&mut rng);
            match check_text(&text, "mutant", &facts) {
                Ok((config, plan)) => {
                    accepted += 1;
                    assert_eq!(
                        config.lines().map(|line| line.endpoints).sum::<u32>(),
                        plan.cores.iter().map(|core| core.endpoints).sum::<u32>()
                    );
                    assert!(!plan.to_string().is_empty() && diff(&config, &Config::default_embedded()).len() < 5000);
                }
                Err(errors) => {
                    refused += 1;
                    assert!(!errors.0.is_empty() && errors.to_string().lines().all(|line| line.starts_with("mutant")), "{errors}");
                }
            }
        }
        assert!(accepted > 50 && refused > 50, "{accepted} accepted, {refused} refused: the mutations are too tame or too wild");
    }

    /// The built-in file with one to three things done to it.
    fn mutated(rng: &mut Rng) -> String {
        const VALUES: [&str; 24] = [
            "0",
            "-1",
            "1",
            "64",
            "9223372036854775807",
            "1e300",
            "true",
            "\"\"",
            "\"auto\"",
            "\"off\"",
            "\"any\"",
            "\"0s\"",
            "\"99999999999h\"",
            "\"1us\"",
            "\"16GiB\"",
            "[]",
            "[0, 0]",
            "[\"::1\", 5]",
            "[[[[]]]]",
            "{ a = 1 }",
            "\"1-999\"",
            "1979-05-27",
            "\"\\u0000\"",
            "\"e1\"",
        ];
        let mut lines: Vec<String> = EMBEDDED.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
        for _ in 0..1 + rng.below(3) {
            let at = rng.below(lines.len() as u64) as usize;
            let other = lines[rng.below(lines.len() as u64) as usize].clone();
            let value = VALUES[rng.below(VALUES.len() as u64) as usize];
            match (rng.below(7), lines[at].split_once(" = ")) {
                (0, _) => drop(lines.remove(at)),
                (1, _) => lines.insert(at, other),
                (2, _) => {
                    let mut octets = lines[at].clone().into_bytes();
                    let place = rng.below(octets.len() as u64 + 1) as usize;
                    octets.insert(place, rng.below(256) as u8);
                    lines[at] = String::from_utf8_lossy(&octets).into_owned();
                }
                (3, Some((key, _))) => lines[at] = format!("{key} = {}", other.split_once(" = ").map_or("5", |(_, value)| value)),
                (_, Some((key, _))) => lines[at] = format!("{key} = {value}"),
                _ => lines[at] = lines[at].chars().take(1).collect(),
            }
        }
        lines.join("\n")
    }
}
