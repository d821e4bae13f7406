//! Spans on cards of the kernel's driver (DAHDI): which one each is, and what must fit.

use std::collections::BTreeMap;

use super::defaults::SpanEntry;
use super::file::{Findings, Raw};
use super::types::{Card, SpanKind, T1Framing, Transponder};
use super::valid::Span;
use crate::proto::dahdi::abi::{CHANNELS_MAX, CHUNK, SPANS_MAX};

/// The span of the driver that a T1 or E1 is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverSpan {
    /// Its number in the driver.
    pub number: u16,
    /// Whether it is a T1 with superframes (D4).
    pub superframe: bool,
    /// The tone that its channels answer with the other one.
    pub transponder: Transponder,
}

impl DriverSpan {
    /// That of the line so many places behind this one: the next numbers.
    pub fn line(&self, place: usize) -> DriverSpan {
        DriverSpan { number: self.number.saturating_add(u16::try_from(place).unwrap_or(u16::MAX)), ..*self }
    }
}

/// Lines of one span of the file.
fn lines(entry: &SpanEntry) -> usize {
    if entry.kind == SpanKind::T3 { 28 } else { 1 }
}

/// The driver's span of the first line of the span number `place` of `entry`; `None` unless it is on such a card.
pub(super) fn driver_span(entry: &SpanEntry, place: usize) -> Option<DriverSpan> {
    let number = entry.dahdi_span.filter(|_| entry.card == Card::Dahdi)?;
    let first = DriverSpan { number, superframe: entry.framing == T1Framing::D4, transponder: entry.transponder };
    Some(first.line(place * lines(entry)))
}

/// Checks every `[[span]]` and all of them together.
pub(super) fn check(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    for (path, entry) in &raw.spans {
        check_entry(path, entry, findings);
    }
    let block = raw.dahdi.block;
    if !block.subsec_nanos().is_multiple_of(1_000_000) {
        findings.cross("cards.dahdi.block", &[], &block, format!("must be whole milliseconds: the driver moves {CHUNK} octets at a time"));
    }
    check_numbers(raw, spans, findings);
}

fn check_entry(path: &str, entry: &SpanEntry, findings: &mut Findings<'_>) {
    let key = format!("{path}.dahdi_span");
    let card = format!("{path}.card");
    match (entry.card == Card::Dahdi, entry.dahdi_span) {
        (true, None) => findings.cross(&key, &[&card], &entry.dahdi_span, "must be given with card = \"dahdi\""),
        (false, Some(_)) => findings.cross(&key, &[&card], &entry.dahdi_span, "must be \"off\" unless card = \"dahdi\""),
        (true, Some(first)) => {
            let lines = lines(entry) * (usize::from(entry.unit.last - entry.unit.first) + 1);
            if usize::from(first) + lines > usize::from(SPANS_MAX) + 1 {
                let problem = format!("must leave room for {lines} lines: the driver has {SPANS_MAX} spans at the most");
                findings.cross(&key, &[], &entry.dahdi_span, problem);
            }
        }
        (false, None) => {}
    }
}

/// No span of the driver is used twice, and it has as many channels.
fn check_numbers(raw: &Raw, spans: &[Span], findings: &mut Findings<'_>) {
    let mut taken: BTreeMap<u16, String> = BTreeMap::new();
    let mut channels = 0;
    for span in spans {
        let Some(first) = span.dahdi else { continue };
        let mut entries = raw.spans.iter();
        let entry = entries.find(|(_, entry)| entry.kind == span.kind && (entry.unit.first..=entry.unit.last).contains(&span.unit));
        let Some((path, entry)) = entry else { continue };
        let key = format!("{path}.dahdi_span");
        for place in 0..span.lines().count() {
            let number = first.line(place).number;
            channels += if span.kind == SpanKind::E1 { 31 } else { 24 };
            if let Some(other) = taken.insert(number, key.clone()) {
                findings.cross(&key, &["span"], &entry.dahdi_span, format!("must leave {number} to {other}"));
                return;
            }
        }
        if channels > u32::from(CHANNELS_MAX) {
            let problem =
                format!("must be for fewer channels, with all before it: the driver has {CHANNELS_MAX} at the most, one T3 and 14 T1s");
            findings.cross(&key, &["span"], &entry.dahdi_span, problem);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Config, EMBEDDED};

    /// What is said of the built-in file with these tables more.
    fn with(tables: &str) -> Result<Config, String> {
        let text = EMBEDDED.replacen("media_ports = \"16384-32767\"", "media_ports = \"14000-16383\"", 1);
        Config::parse(&format!("{text}\n{tables}\n"), "f").map_err(|errors| errors.to_string())
    }

    const GOOD: &str = "[[span]]\nkind = \"t1\"\nunit = \"1-4\"\ncard = \"dahdi\"\ndahdi_span = 3\nframing = \"d4\"\n";

    #[test]
    fn lines_of_a_table_are_consecutive_spans_of_the_driver() {
        let numbers = |tables: &str| {
            let spans = with(tables).unwrap().spans;
            spans.iter().filter_map(|span| span.dahdi).map(|span| (span.number, span.superframe)).collect::<Vec<_>>()
        };
        assert_eq!(numbers(GOOD), [(3, true), (4, true), (5, true), (6, true)]);
        let t3 = "[[span]]\nkind = \"t3\"\nunit = \"2-3\"\ncard = \"dahdi\"\ndahdi_span = 1\n";
        assert!(with(t3).unwrap_err().contains("the driver has 1024 at the most"));
        let one = t3.replace("\"2-3\"", "2");
        assert_eq!(numbers(&one), [(1, false)]);
        assert!(with(&one).unwrap().spans[1].lines().all(|line| line.is_real));
    }

    /// CESoPSN has its nibbles, an E1 its channel 16, and without signalling nothing takes a bit.
    #[test]
    fn bits_are_robbed_on_t1s_that_signal_in_their_octets() {
        let robs = |table: &str| with(table).unwrap().spans[1].robs_bits();
        let signalling = GOOD.to_owned() + "signalling = \"mf-wink\"\n";
        let wired = |card: &str| {
            let addresses = "local = \"127.0.0.1:50000\"\npeer = \"127.0.0.2:50100\"\n";
            signalling.replace("\"dahdi\"", card).replace("dahdi_span = 3\nframing = \"d4\"\n", addresses)
        };
        assert!(robs(&signalling) && robs(&wired("\"satop\"")));
        assert!(!robs(GOOD) && !robs(&wired("\"cesopsn\"")));
        let e1 = signalling.replace("\"t1\"", "\"e1\"").replace("framing = \"d4\"", "common_channel = true");
        assert!(!robs(&e1));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_reason() {
        let cases = [
            ("dahdi_span = 3\n", "", "span[2].dahdi_span = \"off\" (the default): must be given with card = \"dahdi\""),
            ("card = \"dahdi\"\n", "", "span[2].dahdi_span = 3: must be \"off\" unless card = \"dahdi\""),
            ("= 3\n", "= 126\n", "span[2].dahdi_span = 126: must leave room for 4 lines: the driver has 128 spans at the most"),
            ("= 3\n", "= 129\n", "span[2].dahdi_span = 129: must be \"off\" or 1..=128"),
            ("framing", "payload = 192\nframing", "span[2].payload = 192: must be the default unless card = \"satop\""),
            ("framing", "local = \"127.0.0.1:50000\"\nframing", "must be \"off\" unless card = \"cesopsn\" or \"satop\""),
            ("\"t1\"", "\"e1\"", "span[2].framing = \"d4\": must be the default on an E1"),
            ("framing", "signalling = \"operator\"\ndirection = \"incoming\"\nframing", "such trunks are outgoing only"),
        ];
        for (of, is, problem) in cases {
            let found = with(&GOOD.replacen(of, is, 1)).unwrap_err();
            assert!(found.contains(problem), "{problem}\n{found}");
        }
        let e1 = GOOD.replace("t1", "e1").replace("framing = \"d4\"", "signalling = \"mf-wink\"");
        assert!(with(&e1).unwrap_err().contains("channel 16 of an E1 carries the signalling of the others"));
        let twice = format!("{GOOD}{}", GOOD.replace("\"1-4\"", "9"));
        assert!(with(&twice).unwrap_err().contains("span[3].dahdi_span = 3: must leave 3 to span[2].dahdi_span"));
        assert_eq!(with(GOOD).unwrap().dahdi.block.as_millis(), 10);
        let odd = EMBEDDED.replacen("[cards.dahdi]", "[cards.dahdi]\nblock = \"10500us\"", 1).replacen("\nblock = \"10ms\"", "", 1);
        assert!(Config::parse(&odd, "f").unwrap_err().to_string().contains("cards.dahdi.block = \"10500us\": must be whole milliseconds"));
    }
}
