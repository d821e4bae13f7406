//! The raw shape of the tuning file: TOML tables read against the register, with the line of everything.
//!
//! Owns the text-to-typed step: unknown keys, wrong types and values out of range are found here, each with its line. What makes
//! values fit each other is `check`. A value at fault is replaced by its default so that the rest can still be examined; checks
//! that lean on it keep silent (`Findings::cross`).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml_edit::{Document, Item, TableLike};

use super::defaults::*;
use super::error::{ConfigError, Errors};
use super::value::Written;

/// The longest tuning file read, in octets.
pub(super) const FILE_MAX: usize = 1 << 20;
/// The most `[[agent]]` tables.
const AGENTS_MAX: usize = 64;
/// The most `[[span]]` tables.
const SPANS_MAX: usize = 4096;
/// The most `[[h248]]` tables.
const H248_MAX: usize = 64;
/// The most `[[scope]]` tables.
const SCOPES_MAX: usize = 4096;
/// The longest piece of the file quoted in an error, in characters.
const QUOTE_MAX: usize = 60;

/// The file as it was written, every value typed and in range, but not yet checked against each other.
pub(super) struct Raw {
    pub gateway: Gateway,
    pub agents: Vec<(String, Agent)>,
    pub dns: Dns,
    pub cores: Cores,
    pub transport: Transport,
    pub xdp: Xdp,
    pub sim: SimCard,
    pub cesopsn: CesopsnCard,
    pub dahdi: DahdiCard,
    pub spans: Vec<(String, SpanEntry)>,
    pub h248: Vec<(String, H248)>,
    pub cas: Cas,
    pub timers: Timers,
    pub limits: Limits,
    pub overload: Overload,
    pub load_control: LoadControl,
    pub cac: Cac,
    pub scopes: Vec<(String, ScopeEntry)>,
    pub operator: Operator,
    pub metrics: Metrics,
    pub log: Log,
}

/// One line of the register.
pub struct Setting {
    /// The key inside its table.
    pub key: &'static str,
    /// The type.
    pub kind: &'static str,
    /// The values allowed.
    pub allowed: fn() -> String,
    /// The default as written in the file; `None` when the key must be given.
    pub default: fn() -> Option<String>,
    /// Whether `reload` may change it while calls are up.
    pub reloadable: bool,
    /// What it does, and why the default is what it is.
    pub reason: &'static str,
}

/// A table of the file.
pub(super) trait Section: Sized {
    /// Its name in the file.
    const TABLE: &'static str;
    /// What it is about.
    const ABOUT: &'static str;
    /// Its settings.
    const SETTINGS: &'static [Setting];

    /// Reads every setting; `None` when a required one is missing or wrong (already reported).
    fn read(table: &mut Table<'_, '_>) -> Option<Self>;

    /// Every setting with its value, as written in the file.
    fn show(&self) -> Vec<(&'static Setting, String)>;
}

/// What was found while reading: errors, and where every key stands.
pub(super) struct Findings<'a> {
    name: &'a str,
    text: &'a str,
    /// Where each line begins.
    lines: Vec<usize>,
    errors: Vec<ConfigError>,
    places: BTreeMap<String, Range<usize>>,
    failed: BTreeSet<String>,
}

impl<'a> Findings<'a> {
    pub fn new(name: &'a str, text: &'a str) -> Findings<'a> {
        let lines = std::iter::once(0).chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1)).collect();
        Findings { name, text, lines, errors: Vec::new(), places: BTreeMap::new(), failed: BTreeSet::new() }
    }

    /// Reports one error at `span`.
    fn report(&mut self, key: &str, span: Option<Range<usize>>, value: Option<String>, problem: String) {
        let line = span.map(|span| self.line(span.start));
        self.failed.insert(key.to_owned());
        self.errors.push(ConfigError { file: self.name.to_owned(), line, key: key.to_owned(), value, problem });
    }

    /// Reports that the value of `key` does not go with the rest. Silent when `key` or one of `others` was wrong in itself.
    pub fn cross(&mut self, key: &str, others: &[&str], value: &impl Written, problem: impl Into<String>) {
        self.cross_text(key, others, value.show(), problem);
    }

    /// [`Findings::cross`] with the value as text.
    pub fn cross_text(&mut self, key: &str, others: &[&str], shown: String, problem: impl Into<String>) {
        if self.failed.contains(key) || others.iter().any(|other| self.failed.contains(*other)) {
            return;
        }
        let span = self.places.get(key).cloned();
        let value = match &span {
            Some(span) => self.quote(span),
            None => format!("{shown} (the default)"),
        };
        self.report(key, span, Some(value), problem.into());
        // A second rule about the same key may still be broken: only values wrong in themselves silence.
        self.failed.remove(key);
    }

    /// Reports that a table as a whole does not go with the rest, or is missing.
    pub fn table(&mut self, key: &str, problem: impl Into<String>) {
        let span = self.places.get(key).cloned();
        self.report(key, span, None, problem.into());
    }

    /// Whether `key` is in the file.
    pub fn stands(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// Whether `key` was wrong in itself.
    pub fn at_fault(&self, key: &str) -> bool {
        self.failed.contains(key)
    }

    /// Whether anything whose key begins with `path` was wrong in itself.
    pub fn any_fault_below(&self, path: &str) -> bool {
        self.failed.range(path.to_owned()..).next().is_some_and(|key| key.starts_with(path))
    }

    /// `config` when nothing was found, else all of it in the order of the lines.
    pub fn verdict<T>(mut self, config: Option<T>) -> Result<T, Errors> {
        self.errors.sort_by_key(|error| error.line.unwrap_or(usize::MAX));
        match config {
            Some(config) if self.errors.is_empty() => Ok(config),
            _ => Err(Errors(self.errors)),
        }
    }

    fn line(&self, offset: usize) -> usize {
        self.lines.partition_point(|&start| start <= offset)
    }

    /// The text at `span`, on one line, shortened.
    fn quote(&self, span: &Range<usize>) -> String {
        let text = self.text.get(span.clone()).unwrap_or_default();
        let mut quote: String = text.chars().take(QUOTE_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if text.chars().nth(QUOTE_MAX).is_some() {
            quote.push_str("...");
        }
        quote
    }
}

/// One table being read.
pub(super) struct Table<'t, 'a> {
    findings: &'t mut Findings<'a>,
    table: Option<&'t dyn TableLike>,
    path: String,
}

impl Table<'_, '_> {
    /// The value of `key`, or its default when the key is absent or wrong (then reported).
    pub fn setting<T: Written>(&mut self, key: &str, allowed: &T::Allowed, default: Option<T>) -> Option<T> {
        let path = format!("{}.{key}", self.path);
        let Some(item) = self.table.and_then(|table| table.get(key)).filter(|item| !item.is_none()) else {
            if default.is_none() {
                let span = self.findings.places.get(&self.path).cloned();
                self.findings.report(&path, span, None, format!("is missing; must be {}", T::allowed(allowed)));
            }
            return default;
        };
        let Some(value) = item.as_value() else {
            let span = self.table.and_then(|table| table.key(key)).and_then(|key| key.span());
            self.findings.report(&path, span, None, format!("must be {}", T::allowed(allowed)));
            return default;
        };
        note_places(self.findings, &path, value);
        match T::read(value, allowed) {
            Ok(value) => Some(value),
            Err(faults) => {
                for fault in faults {
                    let quote = fault.span.as_ref().map(|span| self.findings.quote(span));
                    self.findings.report(&format!("{path}{}", fault.path), fault.span, quote, format!("must be {}", fault.allowed));
                }
                self.findings.failed.insert(path);
                default
            }
        }
    }
}

/// Remembers where a value and, if it is a list, each of its items stands.
fn note_places(findings: &mut Findings<'_>, path: &str, value: &toml_edit::Value) {
    let items = value.as_array().into_iter().flatten().enumerate().map(|(i, item)| (format!("{path}[{}]", i + 1), item));
    for (path, value) in std::iter::once((path.to_owned(), value)).chain(items) {
        if let Some(span) = value.span() {
            findings.places.insert(path, span);
        }
    }
}

/// Reads the whole file. `None` only when it is not TOML at all; otherwise whatever could be read, faults being in `findings`.
pub(super) fn read(findings: &mut Findings<'_>) -> Option<Raw> {
    if findings.text.len() > FILE_MAX {
        findings.report("", None, None, format!("is {} octets long; must be at most {FILE_MAX}", findings.text.len()));
        return None;
    }
    let document = match Document::parse(findings.text) {
        Ok(document) => document,
        Err(error) => {
            findings.report("", error.span(), None, format!("is not TOML: {}", error.message().replace('\n', "; ")));
            return None;
        }
    };
    let root: &dyn TableLike = document.as_table();
    refuse_unknown(findings, root, "", &TABLES);
    if let Some(cards) = root.get("cards").and_then(Item::as_table_like) {
        refuse_unknown(findings, cards, "cards", &["sim", "cesopsn", "dahdi"]);
    }
    Some(Raw {
        gateway: section(findings, root)?,
        agents: list(findings, root, AGENTS_MAX),
        dns: section(findings, root)?,
        cores: section(findings, root)?,
        transport: section(findings, root)?,
        xdp: section(findings, root)?,
        sim: section(findings, root)?,
        cesopsn: section(findings, root)?,
        dahdi: section(findings, root)?,
        spans: list(findings, root, SPANS_MAX),
        h248: list(findings, root, H248_MAX),
        cas: section(findings, root)?,
        timers: section(findings, root)?,
        limits: section(findings, root)?,
        overload: section(findings, root)?,
        load_control: section(findings, root)?,
        cac: section(findings, root)?,
        scopes: list(findings, root, SCOPES_MAX),
        operator: section(findings, root)?,
        metrics: section(findings, root)?,
        log: section(findings, root)?,
    })
}

/// The tables at the top of the file.
const TABLES: [&str; 19] = [
    Gateway::TABLE,
    Agent::TABLE,
    Dns::TABLE,
    Cores::TABLE,
    Transport::TABLE,
    Xdp::TABLE,
    "cards",
    SpanEntry::TABLE,
    H248::TABLE,
    Cas::TABLE,
    Timers::TABLE,
    Limits::TABLE,
    Overload::TABLE,
    LoadControl::TABLE,
    Cac::TABLE,
    ScopeEntry::TABLE,
    Operator::TABLE,
    Metrics::TABLE,
    Log::TABLE,
];

/// A table that stands once, `[name]`; absent means all defaults.
fn section<S: Section>(findings: &mut Findings<'_>, root: &dyn TableLike) -> Option<S> {
    let mut parent = Some(root);
    let mut path = String::new();
    for key in S::TABLE.split('.') {
        let item = parent.and_then(|table| table.get(key)).filter(|item| !item.is_none());
        path.push_str(if path.is_empty() { "" } else { "." });
        path.push_str(key);
        if let Some(item) = item.filter(|item| !item.is_table_like() && !findings.failed.contains(&path)) {
            let span = parent.and_then(|table| table.key(key)).and_then(|key| key.span()).or_else(|| item.span());
            findings.report(&path, span, None, format!("must be one table, [{path}]"));
        }
        parent = item.and_then(Item::as_table_like);
    }
    read_table(findings, parent, path)
}

/// One table of a list, and where it stands.
type Row<'t> = (Option<Range<usize>>, &'t dyn TableLike);

/// A table that stands any number of times, `[[name]]`; each with its path `name[1]`, `name[2]`, ...
fn list<S: Section>(findings: &mut Findings<'_>, root: &dyn TableLike, most: usize) -> Vec<(String, S)> {
    let Some(item) = root.get(S::TABLE).filter(|item| !item.is_none()) else { return Vec::new() };
    let tables: Option<Vec<Row>> = match (item.as_array_of_tables(), item.as_array()) {
        (Some(tables), _) => Some(tables.iter().map(|table| (table.span(), table as &dyn TableLike)).collect()),
        (_, Some(array)) => array.iter().map(|value| value.as_inline_table().map(|t| (value.span(), t as &dyn TableLike))).collect(),
        _ => None,
    };
    let key_span = || root.key(S::TABLE).and_then(|key| key.span()).or_else(|| item.span());
    let Some(tables) = tables.filter(|tables| tables.len() <= most) else {
        findings.report(S::TABLE, key_span(), None, format!("must be at most {most} tables, each [[{}]]", S::TABLE));
        return Vec::new();
    };
    let mut read = Vec::with_capacity(tables.len());
    for (i, (span, table)) in tables.into_iter().enumerate() {
        let path = format!("{}[{}]", S::TABLE, i + 1);
        if let Some(span) = span {
            findings.places.insert(path.clone(), span);
        }
        read.extend(read_table(findings, Some(table), path.clone()).map(|section| (path, section)));
    }
    read
}

fn read_table<S: Section>(findings: &mut Findings<'_>, table: Option<&dyn TableLike>, path: String) -> Option<S> {
    if let Some(table) = table {
        let known: Vec<_> = S::SETTINGS.iter().map(|setting| setting.key).collect();
        refuse_unknown(findings, table, &path, &known);
    }
    S::read(&mut Table { findings, table, path })
}

fn refuse_unknown(findings: &mut Findings<'_>, table: &dyn TableLike, path: &str, known: &[&str]) {
    let unknown: Vec<_> = table.iter().filter(|(key, _)| !known.contains(key)).map(|(key, item)| (key.to_owned(), item)).collect();
    for (key, item) in unknown {
        let span = table.key(&key).and_then(|key| key.span()).or_else(|| item.span());
        let key: String = key.chars().take(QUOTE_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
        let full = if path.is_empty() { key } else { format!("{path}.{key}") };
        findings.report(&full, span, None, format!("is not a setting; must be one of {}", known.join(", ")));
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    #[track_caller]
    fn refused(text: &str, wanted: &str) {
        let found = Config::parse(text, "f").unwrap_err().to_string();
        assert!(found.lines().any(|line| line.starts_with(wanted)), "{found}\nwanted {wanted}");
    }

    #[test]
    fn errors_name_key_value_range_and_line() {
        refused("[timers]\n\nmax1 = 99\n", "f:3: timers.max1 = 99: must be 1..=20");
        refused("timers.t_max = 20", "f:1: timers.t_max = 20: must be 1s..=290s");
        refused("[timers.t_max]\n", "f:1: timers.t_max: must be 1s..=290s");
        refused("[timers]\nt_min = 1\n", "f:2: timers.t_min: is not a setting; must be one of t_hist, t_max, max1, ");
        refused("\n\n[extra]", "f:3: extra: is not a setting; must be one of gateway, agent, dns, cores, ");
        refused("[cards.real]\n", "f:1: cards.real: is not a setting; must be one of sim");
        refused("cards = 1", "f:1: cards: must be one table, [cards]");
        refused("[[timers]]\n", "f:1: timers: must be one table, [timers]");
        refused("[agent]\n", "f:1: agent: must be at most 64 tables, each [[agent]]");
        refused("agent = [1]", "f:1: agent: must be at most 64 tables, each [[agent]]");
        refused("[[span]]\nunit = 1\n", "f:1: span[1].kind: is missing; must be \"t3\" or \"t1\" or \"e1\"");
        refused("agent = [{ name = \"\" }]", "f:1: agent[1].name = \"\": must be a name of 1..=32 letters, ");
        let listen = "[gateway]\nlisten = [\n \"127.0.0.1\",\n \"nowhere\"]";
        refused(listen, "f:4: gateway.listen[2] = \"nowhere\": must be an address with an optional port 1..=65535 (else 2427), ");
        let long = format!("[log]\nlevel = {{ a = \"{}\" }}", "x".repeat(200));
        refused(&long, &format!("f:2: log.level = {{ a = \"{}...: must be a log filter ", "x".repeat(53)));
    }

    #[test]
    fn what_is_not_toml_is_said_with_its_line() {
        let found = Config::parse("[timers]\nmax1 = = 5\n", "f").unwrap_err().to_string();
        assert!(found.starts_with("f:2: is not TOML: "), "{found}");
        let twice = Config::parse("[timers]\nmax1 = 5\nmax1 = 5\n", "f").unwrap_err().to_string();
        assert!(twice.starts_with("f:3: is not TOML: "), "{twice}");
        let huge = "#".repeat(super::FILE_MAX + 1);
        assert!(Config::parse(&huge, "f").unwrap_err().to_string().contains("must be at most"));
    }

    #[test]
    fn inline_and_dotted_forms_mean_the_same() {
        let text = [
            "agent = [{ name = \"ca\", addresses = [\"127.0.0.1\"], notify = [\"127.0.0.1\"] }]",
            "span = [{ kind = \"t3\", unit = 1 }]",
            "timers = { max1 = 4 }",
            "cards.sim.allow_network = true",
        ];
        let config = Config::parse(&text.join("\n"), "f").unwrap();
        assert_eq!((config.timers.max1, config.sim.allow_network), (4, true));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_like_any_other() {
        let found = Config::load(std::path::Path::new("/nowhere/gateway.toml")).unwrap_err().to_string();
        assert!(found.starts_with("/nowhere/gateway.toml: cannot be read: "), "{found}");
        assert!(Config::parse(EMBEDDED, "f").is_ok());
    }
}
