//! The rules of the house that a compiler does not check: who may name whom, where `unsafe` may stand, what outside input may never
//! reach, and that the conformance documents name tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which module of `proto` may name which; itself always, and `core` every one. The same table as in docs/architecture.md.
const EDGES: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("codec", &["base"]),
    ("timer", &["base"]),
    ("pseudowire", &["base"]),
    ("voice", &["trunk", "package", "base"]),
    ("cac", &["base"]),
    ("framer", &["base"]),
    ("circuit", &["voice", "framer", "pseudowire", "trunk", "package", "base"]),
    ("dahdi", &["circuit", "voice", "trunk", "package", "base"]),
    ("trunk", &["pseudowire", "package", "base"]),
    ("overload", &["base"]),
    ("package", &["codec", "base"]),
    ("cas", &["package", "trunk", "codec", "timer", "base"]),
    ("endpoint", &["package", "trunk", "base"]),
    ("aggregate", &["trunk", "base"]),
    ("transaction", &["timer", "base"]),
    ("restart", &["aggregate", "endpoint", "trunk", "base"]),
    ("plan", &["cac", "cas", "aggregate", "endpoint", "overload", "transaction", "package", "codec", "trunk", "base"]),
    ("mgcp", &["cac", "plan", "aggregate", "endpoint", "package", "codec", "trunk", "timer", "base"]),
    (
        "h248",
        &["mgcp", "plan", "cac", "transaction", "overload", "aggregate", "endpoint", "cas", "package", "codec", "trunk", "timer", "base"],
    ),
    ("agent", &["transaction", "codec", "overload", "base"]),
];

/// Outside `proto`: which module of the crate may name which. `cli` belongs to the program and names the library from outside.
const CRATE_EDGES: &[(&str, &[&str])] = &[
    ("proto", &[]),
    ("sim", &["proto"]),
    ("load", &["proto", "config", "host"]),
    ("config", &["proto"]),
    ("host", &["proto", "config"]),
    ("cli", &["proto", "config", "host", "load"]),
];

/// The only files with `unsafe` in them.
const UNSAFE: &[&str] = &[
    "src/host/card/dahdi/sys.rs",
    "src/host/frame.rs",
    "src/host/large.rs",
    "src/host/transport/sys.rs",
    "src/host/transport/burst.rs",
    "src/host/transport/mmsg.rs",
    "src/host/transport/uring.rs",
    "src/host/transport/xdp/sys.rs",
    "src/host/transport/xdp/ring.rs",
    "src/host/transport/xdp/umem.rs",
    "src/load/socket.rs",
];

/// What must not stand in `proto` outside tests.
const PANICS: &[&str] = &[".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!("];

/// The longest file in lines, tests at its end left out.
const LINES_MAX: usize = 700;

/// The requirements of docs/conformance/mgcp.md: area, and how many it has.
const REQUIREMENTS: &[(&str, usize)] = &[
    ("EPN", 16),
    ("NET", 14),
    ("PKG", 11),
    ("EVT", 15),
    ("SIG", 14),
    ("REQ", 16),
    ("PER", 7),
    ("DMP", 16),
    ("QUA", 23),
    ("EPC", 5),
    ("RQN", 6),
    ("NTF", 5),
    ("CRX", 10),
    ("LCO", 19),
    ("MOD", 7),
    ("MDX", 6),
    ("DLX", 7),
    ("STA", 7),
    ("AUE", 17),
    ("AUC", 6),
    ("RSI", 9),
    ("MSG", 3),
    ("PAR", 8),
    ("SYN", 13),
    ("SDP", 6),
    ("RSL", 5),
    ("RTN", 5),
    ("TRX", 8),
    ("ACK", 10),
    ("RTX", 16),
    ("PRV", 7),
    ("PIG", 5),
    ("TXN", 9),
    ("SVC", 4),
    ("RST", 12),
    ("DIS", 17),
    ("LOD", 3),
    ("SEC", 5),
    ("SHD", 9),
];

/// The requirements of docs/conformance/packages.md: how their ids begin, and how many there are.
const PACKAGE_REQUIREMENTS: &[(&str, usize)] = &[
    ("PKG-", 12),
    ("SIG-", 16),
    ("EVT-", 10),
    ("G.", 12),
    ("D.", 23),
    ("M.", 25),
    ("T.", 19),
    ("COT-", 17),
    ("R.", 12),
    ("MS.", 13),
    ("DT.", 13),
    ("BL.", 11),
    ("DO.", 10),
    ("MD.", 16),
    ("MO.", 12),
    ("SL.", 3),
    ("FM-", 7),
    ("FXR.", 10),
    ("BA-", 20),
    ("A", 21),
    ("B", 7),
    ("C", 16),
    ("D", 9),
    ("E", 6),
    ("CAS-", 20),
];

/// The words a row of packages.md may have for a status, and whether it must name a test.
const PACKAGE_STATUSES: &[(&str, bool)] = &[("passes", true), ("differs", false), ("not offered", false)];

/// The requirements of docs/conformance/h248.md: area, and how many it has.
const H248_REQUIREMENTS: &[(&str, usize)] = &[
    ("CTX", 11),
    ("TRM", 17),
    ("PRP", 17),
    ("PAR", 6),
    ("MDM", 1),
    ("MUX", 2),
    ("MED", 2),
    ("TS", 3),
    ("STR", 3),
    ("LC", 8),
    ("LR", 11),
    ("EVT", 13),
    ("EB", 8),
    ("SIG", 15),
    ("DM", 20),
    ("AUD", 2),
    ("STA", 2),
    ("PD", 1),
    ("OE", 1),
    ("ERD", 3),
    ("ADD", 4),
    ("MOD", 3),
    ("SUB", 5),
    ("MOV", 4),
    ("CMD", 1),
    ("AV", 7),
    ("AC", 4),
    ("NTF", 5),
    ("SC", 23),
    ("CA", 2),
    ("TOP", 7),
    ("TXN", 14),
    ("PND", 6),
    ("MSG", 6),
    ("ASC", 16),
    ("TRP", 6),
    ("UDP", 10),
    ("TCP", 5),
    ("SEC", 5),
    ("TXT", 27),
    ("BIN", 15),
    ("CT", 6),
    ("OVL", 23),
    ("PRF", 13),
];

/// The words a row of h248.md may have for a status, and whether it must name a test.
const H248_STATUSES: &[(&str, bool)] = &[("passes", true), ("read", true), ("later", false)];

/// The words a row of the document may have for a status.
const STATUSES: &[&str] = &["passes", "differs"];

/// One Rust file.
struct Source {
    /// Its path from the root of the repository.
    path: String,
    text: String,
    /// Whether all of it is only compiled for tests.
    is_test: bool,
}

impl Source {
    /// The lines that are compiled outside tests, with their numbers, comments left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = if self.is_test { 0 } else { self.tests_at() };
        let lines = self.text.lines().take(end).enumerate();
        lines.map(|(n, line)| (n + 1, line.find("//").map_or(line, |at| &line[..at])))
    }

    /// The line where the tests at the end begin; the number of lines when there are none.
    fn tests_at(&self) -> usize {
        let lines: Vec<&str> = self.text.lines().collect();
        // A module behind `;` is a file of its own. Whatever else stands behind the attribute, from there on the file is for tests.
        let inline = |n: usize| lines[n] == "#[cfg(test)]" && lines.get(n + 1).is_some_and(|next| !next.ends_with(';'));
        (0..lines.len()).find(|&n| inline(n)).unwrap_or(lines.len())
    }

    /// The path of the module, `src` and the crate left out.
    fn module(&self) -> Vec<&str> {
        let path = self.path.trim_end_matches(".rs").trim_end_matches("/mod").trim_end_matches("/main");
        path.split('/').skip(if path.starts_with("tests/") { 2 } else { 1 }).filter(|part| *part != "lib").collect()
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `folder`.
fn sources(folder: &str) -> Vec<Source> {
    let mut paths = Vec::new();
    collect(&root().join(folder), &mut paths);
    paths.sort();
    let read = |path: &PathBuf| std::fs::read_to_string(path).expect("a source file");
    let relative = |path: &Path| path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
    // Modules that are declared for tests only.
    let mut tests = BTreeSet::new();
    for path in &paths {
        let text = read(path);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(test)") || pair[0].starts_with("#[cfg(all(test")) {
            let declared = pair[1].trim_start_matches("pub(crate) ").trim_start_matches("pub ");
            if let Some(name) = declared.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
                let folder = match path.file_name().and_then(|name| name.to_str()) {
                    Some("mod.rs" | "lib.rs" | "main.rs") => path.parent().expect("a folder").to_path_buf(),
                    _ => path.with_extension(""),
                };
                tests.insert(folder.join(name));
            }
        }
    }
    let is_test = |path: &Path| tests.iter().any(|test| path.with_extension("") == *test || path.starts_with(test));
    paths.iter().map(|path| Source { path: relative(path), text: read(path), is_test: is_test(path) }).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

/// The words that `text` begins with: a name, or the first names inside braces.
fn names_at(text: &str) -> Vec<&str> {
    let word = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(list) = text.strip_prefix('{') else { return vec![&text[..word(text)]] };
    let (mut depth, mut start, mut names) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                let item = list[start..at].trim();
                names.push(&item[..word(item)]);
                start = at + 1;
                if c == '}' {
                    return names;
                }
            }
            _ => {}
        }
    }
    names
}

/// The modules of the crate, and those of `proto`, that a file names: by `crate::` and by `super::`.
fn named(source: &Source) -> (Vec<&str>, Vec<&str>) {
    let (mut of_crate, mut of_proto) = (Vec::new(), Vec::new());
    let text = source.text.as_str();
    for (at, _) in text.match_indices("crate::") {
        for name in names_at(&text[at + 7..]) {
            of_crate.push(name);
        }
    }
    for (at, _) in text.match_indices("crate::proto::") {
        of_proto.extend(names_at(&text[at + 14..]));
    }
    let module = source.module();
    if module.first() == Some(&"proto") && module.len() > 1 {
        // As many steps up as lead to `proto` itself.
        let up = "super::".repeat(module.len() - 1);
        let known: Vec<&str> = EDGES.iter().map(|(name, _)| *name).chain(["core"]).collect();
        for (at, _) in text.match_indices(&up).filter(|(at, _)| !text[..*at].ends_with("super::")) {
            of_proto.extend(names_at(&text[at + up.len()..]).into_iter().filter(|name| known.contains(name) && *name != module[1]));
        }
    }
    (of_crate, of_proto)
}

#[test]
fn modules_name_only_those_below_them() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for source in sources("src") {
        let module = source.module();
        let (of_crate, of_proto) = named(&source);
        let Some(&part) = module.first().filter(|part| **part != "main") else { continue };
        let Some((_, allowed)) = CRATE_EDGES.iter().find(|(name, _)| *name == part) else {
            wrong.push(format!("{}: the module {part} is not in the table", source.path));
            continue;
        };
        for name in of_crate.iter().filter(|name| CRATE_EDGES.iter().any(|(known, _)| known == *name)) {
            if *name != part && !allowed.contains(name) {
                wrong.push(format!("{} names crate::{name}", source.path));
            }
        }
        let (true, Some(&inner)) = (part == "proto", module.get(1)) else { continue };
        seen.insert(inner.to_owned());
        let allowed = EDGES.iter().find(|(name, _)| *name == inner).map(|(_, allowed)| *allowed);
        match allowed {
            _ if inner == "core" => {}
            None => wrong.push(format!("{}: the module proto::{inner} is not in the table", source.path)),
            Some(allowed) => {
                for name in of_proto.iter().filter(|name| **name != inner && !allowed.contains(name)) {
                    wrong.push(format!("{} names proto::{name}", source.path));
                }
            }
        }
    }
    assert!(seen.len() > 10, "{seen:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unsafe_stands_where_it_may() {
    let is_word = |line: &str| {
        line.match_indices("unsafe").any(|(at, word)| {
            let part = |c: char| c.is_alphanumeric() || c == '_';
            !line[..at].ends_with(part) && !line[at + word.len()..].starts_with(part)
        })
    };
    let found: Vec<String> = sources("src")
        .iter()
        .filter(|source| !UNSAFE.contains(&source.path.as_str()))
        .flat_map(|source| {
            let all = source.text.lines().enumerate().map(|(n, line)| (n + 1, line.find("//").map_or(line, |at| &line[..at])));
            all.filter(|(_, line)| is_word(line)).map(|(n, _)| format!("{}:{n}", source.path)).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "unsafe in {found:?}");
    assert!(UNSAFE.iter().all(|path| root().join(path).exists()), "a file in the list is gone");
}

#[test]
fn nothing_in_proto_panics_on_purpose() {
    let mut found = Vec::new();
    let mut read = 0;
    for source in sources("src/proto") {
        for (n, line) in source.code() {
            read += 1;
            if PANICS.iter().any(|panic| line.contains(panic)) {
                found.push(format!("{}:{n}: {}", source.path, line.trim()));
            }
        }
    }
    assert!(read > 10_000, "{read} lines read");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn files_are_short_enough_to_read() {
    let long: Vec<String> = sources("src")
        .iter()
        .filter(|source| !source.is_test && source.tests_at() > LINES_MAX)
        .map(|source| format!("{}: {} lines", source.path, source.tests_at()))
        .collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn nothing_is_left_for_later_in_words() {
    let mut found = Vec::new();
    for source in sources("src") {
        for (n, line) in source.text.lines().enumerate() {
            if ["TODO", "FIXME", "XXX", "not implemented"].iter().any(|word| line.contains(word)) {
                found.push(format!("{}:{}: {}", source.path, n + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Every test by the name the documents use: its binary, and its path as cargo prints it.
fn tests() -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    for folder in ["src", "tests"] {
        for source in sources(folder) {
            let binary = match source.path.strip_prefix("tests/") {
                None => "lib",
                Some(rest) => rest.split(['/', '.']).next().expect("a name"),
            };
            let mut module: Vec<String> = source.module().into_iter().map(str::to_owned).collect();
            if source.path.matches('/').count() == 1 && binary != "lib" {
                module.clear();
            }
            let mut attribute = false;
            for line in source.text.lines() {
                if line.starts_with("mod ") && line.ends_with('{') {
                    module.push(line[4..line.len() - 1].trim().to_owned());
                }
                if line == "}" && source.module().len() < module.len() {
                    module.pop();
                }
                let line = line.trim();
                if line == "#[test]" {
                    attribute = true;
                } else if let (true, Some(rest)) = (attribute, line.strip_prefix("fn ")) {
                    let name = rest.split(['(', '<']).next().expect("a name");
                    let path = module.iter().map(String::as_str).chain([name]).collect::<Vec<_>>().join("::");
                    tests.insert(format!("{binary}: {path}"));
                    attribute = false;
                }
            }
        }
    }
    tests
}

/// The tests that a line names: `` `binary: path` ``.
fn tests_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|code| {
        let binary = code.split_once(": ").map(|(binary, _)| binary);
        binary.is_some_and(|binary| ["lib", "wire", "sim", "loopback", "conformance", "tidy", "interop", "long"].contains(&binary))
    })
}

#[test]
fn documents_name_tests_that_exist() {
    let tests = tests();
    assert!(tests.len() > 400 && tests.contains("tidy: documents_name_tests_that_exist"), "{} tests found", tests.len());
    let mut named = 0;
    let mut missing = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/conformance")).expect("the folder").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("a document");
        for (n, line) in text.lines().enumerate() {
            for test in tests_in(line) {
                named += 1;
                if !tests.contains(test) {
                    missing.push(format!("{}:{}: {test}", entry.path().display(), n + 1));
                }
            }
        }
    }
    assert!(named > 200, "{named} tests named");
    assert!(missing.is_empty(), "no such test:\n{}", missing.join("\n"));
}

/// Every requirement has one row, with a known status; what passes names a test, what differs says why; the counts are right.
#[test]
fn every_requirement_has_one_row() {
    let text = std::fs::read_to_string(root().join("docs/conformance/mgcp.md")).expect("the document");
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| G-")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "{line}");
        *rows.entry(cells[0].to_owned()).or_default() += 1;
        let status = STATUSES.iter().find(|status| **status == cells[2]).unwrap_or_else(|| panic!("no such status: {line}"));
        *counts.entry(status).or_default() += 1;
        assert!(!cells[1].is_empty() && (*status != "passes" || tests_in(cells[3]).next().is_some()), "a test is missing: {line}");
        assert!(*status == "passes" || cells[3].len() > 5, "a reason is missing: {line}");
    }
    let mut expected = BTreeMap::new();
    for (area, count) in REQUIREMENTS {
        expected.extend((1..=*count).map(|n| (format!("G-{area}-{n:02}"), 1)));
    }
    assert_eq!(expected.len(), 381);
    let wrong: Vec<_> = expected.iter().filter(|(id, _)| rows.get(*id) != Some(&1)).map(|(id, _)| id).collect();
    assert!(wrong.is_empty(), "missing or more than once: {wrong:?}");
    assert_eq!(rows.len(), expected.len());
    for status in STATUSES {
        let said = format!("| {status} | {} |", counts.get(status).copied().unwrap_or(0));
        assert!(text.contains(&said), "the table of counts should say {said:?}");
    }
}

/// The ids of rows in the part of a document before its first section; `A.01 to A.03` are three.
fn left_out(text: &str) -> BTreeSet<String> {
    let head = text.split("\n## ").next().unwrap_or_default();
    let list = head.lines().filter(|line| line.starts_with("* "));
    let is_id = |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase()) && word.ends_with(|c: char| c.is_ascii_digit());
    let mut ids = BTreeSet::new();
    for line in list {
        let words: Vec<&str> = line.split([' ', ',', ';', ':', '(', ')']).filter(|word| !word.is_empty()).collect();
        for (n, word) in words.iter().enumerate().filter(|(_, word)| is_id(word)) {
            ids.insert((*word).to_owned());
            if let (Some(&"to"), Some(last)) = (words.get(n + 1), words.get(n + 2)) {
                let (stem, first) = word.split_at(word.len() - 2);
                let number = |text: &str| text.parse::<u32>().expect("two digits");
                ids.extend((number(first)..=number(&last[stem.len()..])).map(|n| format!("{stem}{n:02}")));
            }
        }
    }
    ids
}

/// What is not done is listed in front, and nothing else is.
#[test]
fn what_is_left_out_is_listed_in_front() {
    for (document, begin) in [("mgcp.md", "G-"), ("packages.md", "")] {
        let text = std::fs::read_to_string(root().join("docs/conformance").join(document)).expect("the document");
        let rows = text
            .lines()
            .filter(|line| line.starts_with("| "))
            .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
        let is_number = |cell: &str| cell.ends_with(|c: char| c.is_ascii_digit());
        let rows: Vec<_> = rows.filter(|cells| cells.len() == 4 && cells[0].starts_with(begin) && is_number(cells[0])).collect();
        let open = rows.iter().filter(|cells| ["differs", "not offered"].contains(&cells[2]));
        let open: BTreeSet<String> = open.map(|cells| cells[0].to_owned()).collect();
        assert_eq!(left_out(&text), open, "{document}");
        let counted = format!("Left out, {} of {}, ", open.len(), rows.len());
        assert!(text.contains(&counted), "{document}: {counted}");
    }
}

/// Each requirement of admission control has one row: R1 to R48 and I1 to I17.
#[test]
fn every_requirement_of_admission_has_one_row() {
    let text = std::fs::read_to_string(root().join("docs/conformance/cac.md")).expect("the document");
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| R") || line.starts_with("| I")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        assert_eq!(cells.len(), 4, "{line}");
        *rows.entry(cells[0].to_owned()).or_default() += 1;
        assert!(["passes", "part", "later"].contains(&cells[2]), "no such state: {line}");
        assert!(!cells[1].is_empty() && (cells[2] == "later" || tests_in(cells[3]).next().is_some()), "a test is missing: {line}");
        assert!(cells[3].len() > 5, "a reason is missing: {line}");
    }
    let expected: BTreeMap<_, _> = (1..=48).map(|n| (format!("R{n}"), 1)).chain((1..=17).map(|n| (format!("I{n}"), 1))).collect();
    assert_eq!(rows, expected);
}

/// Each requirement has one row in the document, with a status of these, a test where the status asks for one, and the counts are right.
fn check_rows(document: &str, statuses: &[(&str, bool)], expected: &BTreeSet<String>) {
    let text = std::fs::read_to_string(root().join("docs/conformance").join(document)).expect("the document");
    let is_id = |cell: &str| cell.starts_with(|c: char| c.is_ascii_uppercase()) && cell.ends_with(|c: char| c.is_ascii_digit());
    let mut rows: BTreeMap<String, usize> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if cells.len() != 4 || !is_id(cells[0]) {
            continue;
        }
        *rows.entry(cells[0].to_owned()).or_default() += 1;
        let (status, shown) = statuses.iter().find(|(status, _)| *status == cells[2]).unwrap_or_else(|| panic!("{line}"));
        *counts.entry(status).or_default() += 1;
        assert!(!cells[1].is_empty() && (!shown || tests_in(cells[3]).next().is_some()), "a test is missing: {line}");
        assert!(cells[3].len() > 5, "a reason is missing: {line}");
    }
    let wrong: Vec<_> = expected.iter().filter(|id| rows.get(*id) != Some(&1)).collect();
    assert!(wrong.is_empty() && rows.len() == expected.len(), "missing, more than once or unknown: {wrong:?}, {} rows", rows.len());
    for (status, _) in statuses {
        let said = format!("| {status} | {} |", counts.get(status).copied().unwrap_or(0));
        assert!(text.contains(&said), "the table of counts of {document} should say {said:?}");
    }
}

/// The same for the packages.
#[test]
fn every_requirement_of_a_package_has_one_row() {
    let mut expected = BTreeSet::new();
    for (begin, count) in PACKAGE_REQUIREMENTS {
        let narrow = begin.ends_with(['-', '.']);
        expected.extend((1..=*count).map(|n| if narrow { format!("{begin}{n:02}") } else { format!("{begin}{n}") }));
    }
    assert_eq!(expected.len(), 340);
    check_rows("packages.md", PACKAGE_STATUSES, &expected);
}

/// The same for H.248.
#[test]
fn every_requirement_of_h248_has_one_row() {
    let ids = H248_REQUIREMENTS.iter().flat_map(|(area, count)| (1..=*count).map(move |n| format!("{area}-{n:02}")));
    let expected: BTreeSet<String> = ids.collect();
    assert_eq!(expected.len(), 363);
    check_rows("h248.md", H248_STATUSES, &expected);
}
