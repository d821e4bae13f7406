//! Digit maps against the examples of the RFCs and a naive model.

use super::*;
use crate::proto::base::Rng;

const TIMERS: DigitTimers = DigitTimers { partial: Duration::from_secs(16), critical: Duration::from_secs(4) };

fn map(text: &str) -> DigitMap {
    DigitMap::compile(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// The results of feeding `digits`, a letter each: p, f, n, up to the first that is not p.
fn fed(text: &str, digits: &str) -> String {
    let map = map(text);
    let mut matcher = Matcher::default();
    let mut results = String::new();
    for symbol in digits.bytes() {
        let result = matcher.feed(&map, symbol, Time::ZERO, None);
        results.push(match result {
            Match::Partial => 'p',
            Match::Full => 'f',
            Match::None => 'n',
        });
        if result != Match::Partial {
            break;
        }
    }
    results
}

/// G-DMP-03, G-DMP-05, G-DMP-06, G-DMP-07, G-DMP-08.
#[test]
fn the_first_complete_string_wins_and_what_fits_none_is_told() {
    let table = "(0[12].|00|1[12].1|2x.#)";
    for (text, digits, wanted) in [
        (table, "0", "f"),
        (table, "11", "pf"),
        (table, "121", "ppf"),
        (table, "12", "pp"),
        (table, "2#", "pf"),
        (table, "2345#", "ppppf"),
        (table, "3", "n"),
        ("1[2-3].T", "1T", "pf"),
        ("1[2-3].T", "1232T", "ppppf"),
        ("1[2-3].T", "14", "pn"),
        ("12", "15", "pn"),
        ("xxxx", "123", "ppp"),
        ("x", "#", "n"),
        ("xx", "1T", "pn"),
        ("(xxxxxxx|x11)", "411", "ppf"),
        ("(1[2-3T].)", "1", "f"),
        ("(1[2-3]T.)", "12", "pf"),
        ("a", "A", "f"),
        ("[0-9#T]", "T", "f"),
        ("x.x.x.", "5", "f"),
    ] {
        assert_eq!(fed(text, digits), wanted, "{text} {digits}");
    }
}

/// G-DMP-09, D.22: T-partial while digits are needed, T-critical when only the timer is; the examples of RFC 3660 2.2.
#[test]
fn the_timer_is_critical_when_only_it_is_missing() {
    let waits = |text: &str, digits: &str| {
        let (map, mut matcher) = (map(text), Matcher::default());
        assert_eq!(matcher.deadline(), Time::NEVER);
        for symbol in digits.bytes() {
            assert_eq!(matcher.feed(&map, symbol, Time::ZERO, Some(&TIMERS)), Match::Partial);
        }
        matcher.deadline().since(Time::ZERO).as_secs()
    };
    for (text, digits, seconds) in [
        ("(xxxxxxx|x11T)", "4", 16),
        ("(xxxxxxx|x11T)", "41", 16),
        ("(xxxxxxx|x11T)", "411", 4),
        ("(xxxxxxx|x11T)", "4112", 16),
        ("(1[2-3].T)", "1", 4),
        ("(1[2-3]T.)", "1", 16),
        ("(12T#)", "12", 16),
        ("(1T.2.T|999)", "9", 16),
    ] {
        assert_eq!(waits(text, digits), seconds, "{text} {digits}");
    }
    let (map, mut matcher) = (map("(12T|13)"), Matcher::default());
    matcher.feed(&map, b'1', Time::ZERO, None);
    assert_eq!(matcher.deadline(), Time::NEVER, "no timer was asked for");
    matcher.feed(&map, b'2', Time::ZERO, Some(&TIMERS));
    assert_eq!(matcher.feed(&map, b'T', Time::ZERO + TIMERS.critical, Some(&TIMERS)), Match::Full);
    assert_eq!((matcher.deadline(), matcher.has_begun()), (Time::NEVER, false));
}

/// DM1 (RFC 3660 2.7): a string that yields matches only when no other can.
#[test]
fn a_string_with_p_yields_to_others() {
    let text = "([3-7]11|123xxxxxxx|[1-7]xxxxxxP|8xxxP)";
    let extended = |text: &str| check(&mgcp::DigitMap::parse(text.as_bytes()).unwrap());
    assert_eq!((extended(text), extended("(1|2)")), (Ok(true), Ok(false)));
    for (digits, wanted) in [("1234567", "ppppppp"), ("1234567890", "pppppppppf"), ("411", "ppf"), ("8234", "pppf"), ("4123456", "ppppppf")]
    {
        assert_eq!(fed(text, digits), wanted, "{digits}");
    }
    // It does not wait for itself.
    assert_eq!(fed("(1x.P|2)", "1"), "f");
    assert_eq!(fed("(1x.P|1xxP)", "12"), "pp");
    for wrong in ["(P1)", "(1P2)", "(1[P2])", "(1P.)", "(1PP)", "(1E)"] {
        assert_eq!(DigitMap::compile(wrong.as_bytes()), Err(DigitMapError::Letter), "{wrong}");
    }
}

#[test]
fn what_is_no_map_is_refused() {
    for wrong in ["", "()", "(1|)", "[A-C]", "1..", "(1", "1,2"] {
        assert_eq!(DigitMap::compile(wrong.as_bytes()), Err(DigitMapError::Malformed), "{wrong}");
    }
    assert_eq!(DigitMap::compile(&vec![b'x'; MAP_MAX + 1]), Err(DigitMapError::TooLong));
}

/// G-DMP-13, G-DMP-16: memory and work per digit follow the length of the map, whatever is in it.
#[test]
fn a_hostile_map_costs_no_more_than_its_length() {
    for unit in ["x.", "[0-9T].", "x.T.", "x|", "x.|", "[0-9]", "5.x.#."] {
        let text = unit.repeat(2048 / unit.len());
        let text = format!("({}#)", text);
        let map = map(&text);
        assert!(map.positions.len() <= text.len());
        let mut matcher = Matcher::default();
        for _ in 0..100 {
            let _ = matcher.feed(&map, b'5', Time::ZERO, Some(&TIMERS));
            assert!(matcher.active.len() <= text.len().div_ceil(64));
        }
    }
    let last = format!("({}|77#)", "xxxx#|".repeat(340).trim_end_matches('|'));
    assert!(last.len() > 2040);
    assert_eq!(fed(&last, "77#"), "ppf");
}

/// One position of the naive model: symbols and whether it may be repeated.
type Naive = (SymbolSet, bool);

/// Whether `string` could become `digits` in full, and whether more digits could follow.
fn naive(string: &[Naive], digits: &[u8]) -> (bool, bool) {
    let Some((&first, rest)) = string.split_first() else { return (digits.is_empty(), false) };
    let (symbols, repeated) = first;
    let mut result = (false, digits.is_empty());
    let mut join = |(full, open): (bool, bool)| result = (result.0 | full, result.1 | open);
    if repeated {
        join(naive(rest, digits));
    }
    if let Some((&digit, behind)) = digits.split_first()
        && symbols.has(digit)
    {
        join(naive(if repeated { string } else { rest }, behind));
    }
    result
}

/// What the rules say of `digits`, told string by string.
fn judged(strings: &[(Vec<Naive>, bool)], digits: &[u8]) -> Match {
    let states: Vec<(bool, bool, bool)> = strings
        .iter()
        .map(|(string, yields)| {
            let (full, open) = naive(string, digits);
            (full, open, *yields)
        })
        .collect();
    let others_open = |place: usize| states.iter().enumerate().any(|(other, state)| other != place && state.1);
    let full = |(place, &(full, _, yields)): (usize, &(bool, bool, bool))| full && (!yields || !others_open(place));
    if states.iter().enumerate().any(full) {
        Match::Full
    } else if states.iter().any(|state| state.0 || state.1) {
        Match::Partial
    } else {
        Match::None
    }
}

#[test]
fn the_automaton_agrees_with_a_naive_matcher() {
    let mut rng = Rng::new(2705);
    let mut seen = [0; 3];
    for round in 0..4000 {
        let mut text = String::from("(");
        let mut strings = Vec::new();
        for n in 0..1 + rng.below(4) {
            if n > 0 {
                text.push('|');
            }
            let mut string = Vec::new();
            for _ in 0..1 + rng.below(5) {
                let part = ["1", "2", "x", "[12]", "[2T]", "T", "#"][rng.below(7) as usize];
                let repeated = rng.below(3) == 0;
                text.push_str(part);
                text.push_str(if repeated { "." } else { "" });
                let parsed = mgcp::DigitMap::parse(part.as_bytes()).unwrap();
                string.push((parsed.symbols(), repeated));
            }
            let yields = rng.below(4) == 0;
            text.push_str(if yields { "P" } else { "" });
            strings.push((string, yields));
        }
        text.push(')');
        let map = map(&text);
        let mut matcher = Matcher::default();
        let mut digits = Vec::new();
        for _ in 0..8 {
            digits.push(b"1123T#"[rng.below(6) as usize]);
            let found = matcher.feed(&map, digits[digits.len() - 1], Time::ZERO, Some(&TIMERS));
            let wanted = judged(&strings, &digits);
            assert_eq!(found, wanted, "round {round}: {text} {:?}", String::from_utf8_lossy(&digits));
            seen[found as usize] += 1;
            if found != Match::Partial {
                break;
            }
            // What the timer waits for is told by what it would bring.
            let timed: Vec<u8> = digits.iter().copied().chain([b'T']).collect();
            let completes = strings.iter().any(|(string, _)| naive(string, &timed).0);
            let critical = matcher.deadline() == Time::ZERO + TIMERS.critical;
            assert_eq!(critical, completes, "round {round}: {text} {:?}", String::from_utf8_lossy(&digits));
        }
    }
    assert!(seen.iter().all(|count| *count > 500), "{seen:?}");
}
