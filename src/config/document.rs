//! `docs/configuration.md`, written from the register.

use std::fmt::Write;

use super::defaults::*;
use super::file::Section;

/// The page. A test holds `docs/configuration.md` to it.
pub fn markdown() -> String {
    let mut page = String::from(PREFACE);
    macro_rules! every {
        ($($section:ident)+) => { $(table::<$section>(&mut page);)+ };
    }
    sections!(every);
    page
}

const PREFACE: &str = "\
# Configuration

One TOML file decides everything that is not the program: `tollgate run --config FILE`. Without a file the gateway runs on
`tuning/gateway.toml`, which is built in. `tollgate check FILE` says what is wrong, all of it at once, or prints the plan.

This page is written from the register in `src/config/defaults.rs`; change a setting there and run
`TOLLGATE_WRITE_DOCS=1 cargo test --lib config::document`.

- A key left out has its default. An unknown key is an error. `required` keys have no default.
- Durations are strings with a unit: `us`, `ms`, `s`, `min`, `h`. Sizes are strings with a unit: `B`, `KiB`, `MiB`, `GiB`.
- *reload*: `tollgate reload` or SIGHUP changes it while calls are up. *restart*: it takes effect at the next start, and a reload
  that would change it is refused as a whole.
- Errors count tables and list items from 1: `agent[2].notify[1]`.
";

fn table<S: Section>(page: &mut String) {
    let list = S::SETTINGS.iter().any(|setting| (setting.default)().is_none());
    let header = if list { format!("[[{}]]", S::TABLE) } else { format!("[{}]", S::TABLE) };
    let _ = write!(page, "\n## `{header}`\n\n{}\n\n| key | type | allowed | default | change | what and why |\n", S::ABOUT);
    page.push_str("|---|---|---|---|---|---|\n");
    for setting in S::SETTINGS {
        let default = (setting.default)().map_or_else(|| "required".into(), |default| format!("`{default}`"));
        let change = if setting.reloadable { "reload" } else { "restart" };
        let (key, kind, allowed, reason) = (setting.key, setting.kind, (setting.allowed)(), setting.reason);
        let _ = writeln!(page, "| `{key}` | {kind} | {allowed} | {default} | {change} | {reason} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_the_register() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        if std::env::var_os("TOLLGATE_WRITE_DOCS").is_some() {
            std::fs::write(path, markdown()).unwrap();
        }
        let page = std::fs::read_to_string(path).unwrap_or_default();
        assert!(page == markdown(), "docs/configuration.md is not what the register says; the page tells how to write it anew");
    }

    #[test]
    fn every_setting_has_a_reason_and_no_stray_bar() {
        for line in markdown().lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            assert!(cells.len() == 8 && cells[1..7].iter().all(|cell| !cell.is_empty()) && cells[6].ends_with('.'), "{line}");
        }
    }
}
