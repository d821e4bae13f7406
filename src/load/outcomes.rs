//! What became of calls over trunks, as a table and as JSON.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::proto::agent::trunks::Outcomes;

/// Calls by name: whether their far ends misbehaved, and what became of them.
pub(super) type List = [(&'static str, bool, Outcomes)];

/// The table, a line for each kind of call that was made, and one for all.
pub(super) fn write(out: &mut String, list: &List) -> std::fmt::Result {
    writeln!(out, "{:<28}{:>8}{:>8}{:>9}{:>7}  far end", "call", "begun", "well", "refused", "wrong")?;
    let line = |out: &mut String, name: &str, all: &Outcomes, far: &str| {
        writeln!(out, "{name:<28}{:>8}{:>8}{:>9}{:>7}  {far}", all.begun, all.well, all.refused, all.wrong)
    };
    for (name, odd, outcomes) in list.iter().filter(|(.., outcomes)| outcomes.begun > 0) {
        line(out, name, outcomes, if *odd { "misbehaves" } else { "behaves" })?;
    }
    line(out, "all", &total(list), "")
}

/// All of them together.
pub(super) fn total(list: &List) -> Outcomes {
    list.iter().fold(Outcomes::default(), |all, (.., one)| Outcomes {
        begun: all.begun + one.begun,
        well: all.well + one.well,
        refused: all.refused + one.refused,
        wrong: all.wrong + one.wrong,
    })
}

/// The same as an object.
pub(super) fn json(list: &List) -> Value {
    let value = |one: &Outcomes| json!({ "begun": one.begun, "well": one.well, "refused": one.refused, "wrong": one.wrong });
    let calls = list.iter().map(|(name, odd, outcomes)| {
        let mut value = value(outcomes);
        value["misbehaves"] = json!(odd);
        ((*name).to_owned(), value)
    });
    let mut all: Map<String, Value> = calls.collect();
    all.insert("all".into(), value(&total(list)));
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_told_by_name_and_in_all() {
        let well = Outcomes { begun: 5, well: 5, ..Outcomes::default() };
        let mixed = Outcomes { begun: 4, well: 1, refused: 2, wrong: 1 };
        let list = [("out", false, well), ("out, no wink", true, mixed), ("in", false, Outcomes::default())];
        let mut table = String::new();
        write(&mut table, &list).unwrap();
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1], ["out", "5", "5", "0", "0", "behaves"]);
        assert_eq!(lines[2], ["out,", "no", "wink", "4", "1", "2", "1", "misbehaves"]);
        assert_eq!((lines[3].as_slice(), lines.len()), (["all", "9", "6", "2", "1"].as_slice(), 4));
        assert_eq!(json(&list)["all"]["well"], 6);
        assert_eq!(json(&list)["out, no wink"]["misbehaves"], true);
    }
}
