//! What fuzzing calls, on every run of the tests: the seeds as they are, and some thousand seeded mutations of them.
//!
//! A failure prints the input; put it among the seeds. `TOLLGATE_INPUTS` sets how many mutations are tried.

use std::path::Path;

use tollgate::proto::base::Rng;
use tollgate::proto::cas::exercise as lines;
use tollgate::proto::codec::exercise as codec;
use tollgate::proto::core::exercise as core;
use tollgate::proto::package::exercise as catalogue;

use crate::files;

/// Pieces that mutations put in, beside those of other seeds.
const PIECES: &[&[u8]] = &[
    b"\x1e",
    b"\r\n",
    b"\n.\n",
    b"!T",
    b"!a",
    b"!e",
    b"!d",
    b"!D",
    b"!r",
    b"!l",
    b"!f",
    b"!b",
    b"!B",
    b"!u",
    b"!x",
    b"*",
    b"$",
    b"[1-9]",
    b"@",
    b"K: 1-4294967295\n",
    b"000 1\n",
    b"I: 0\n",
    b"C: 0\n",
    b"M: sendrecv\n",
    b"M: conference\n",
    b"Z2: $@tgw.example.net\n",
    b"\"",
    b"\0",
    b"999999999",
];

pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut paths: Vec<_> = std::fs::read_dir(directory).expect("seeds are there").map(|entry| entry.expect("listed").path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    paths.iter().map(|path| std::fs::read(path).expect("a seed can be read")).collect()
}

/// How many mutations to try, when `default` is a moment's work.
pub fn inputs(default: u64) -> u64 {
    std::env::var("TOLLGATE_INPUTS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A seed with some bytes changed, removed, repeated, or taken from another seed.
pub fn mutated(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng| &seeds[rng.below(seeds.len() as u64) as usize];
    let mut input = pick(rng).clone();
    for _ in 0..=rng.below(8) {
        let at = rng.below(input.len() as u64 + 1) as usize;
        let until = (at + rng.below(40) as usize).min(input.len());
        match rng.below(6) {
            0 if at < input.len() => input[at] ^= 1 << rng.below(8),
            1 if at < input.len() => input[at] = rng.next() as u8,
            2 => drop(input.drain(at..until)),
            3 => {
                let piece = input[at..until].to_vec();
                input.splice(at..at, piece);
            }
            4 => {
                let piece = PIECES[rng.below(PIECES.len() as u64) as usize];
                input.splice(at..at, piece.iter().copied());
            }
            _ => {
                let other = pick(rng);
                let from = rng.below(other.len() as u64) as usize;
                let to = (from + rng.below(200) as usize).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    input
}

/// Prints the input when a test ends by a panic within it.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("input: b\"{}\"", self.0.escape_ascii());
        }
    }
}

#[test]
fn the_codec_takes_everything() {
    let read = |input: &[u8]| {
        let _shown = Shown(input);
        codec::datagram(input);
        codec::description(input);
        codec::value(input);
    };
    let mut all = seeds("codec");
    all.extend([files("wire", ".txt"), files("field-bugs", ".txt")].concat().into_iter().map(|(_, bytes)| bytes));
    all.iter().for_each(|seed| read(seed));
    let mut rng = Rng::new(1);
    (0..inputs(20_000)).for_each(|_| read(&mutated(&all, &mut rng)));
}

#[test]
fn a_core_takes_everything_and_gives_every_frame_back() {
    let run = |input: &[u8]| {
        let _shown = Shown(input);
        let outcome = core::datagrams(input);
        assert!(outcome.is_sound(), "{outcome:?}");
        outcome
    };
    let all = seeds("core");
    for seed in &all {
        let outcome = run(seed);
        assert!(outcome.sent > 0, "{outcome:?}");
        assert_eq!(run(seed), outcome, "one seed, one outcome");
    }
    let mut rng = Rng::new(2);
    (0..inputs(3000)).for_each(|_| {
        run(&mutated(&all, &mut rng));
    });
}

/// G-DMP-16, PKG-08: digit maps, names and parameters.
#[test]
fn the_catalogue_takes_everything() {
    let read = |input: &[u8]| {
        let _shown = Shown(input);
        catalogue::catalogue(input)
    };
    let all = seeds("packages");
    assert!(all.iter().all(|seed| read(seed) > 0));
    let mut rng = Rng::new(3);
    (0..inputs(20_000)).for_each(|_| {
        read(&mutated(&all, &mut rng));
    });
}

#[test]
fn no_line_stays_stuck_whatever_happens_to_it() {
    let run = |input: &[u8]| {
        let _shown = Shown(input);
        let outcome = lines::lines(input).unwrap_or_default();
        assert_eq!(outcome.stuck, 0, "{outcome:?}");
        outcome
    };
    let all = seeds("lines");
    for seed in &all {
        let outcome = run(seed);
        assert!(outcome.told > 0 && outcome.begun > 0, "{:?}: {outcome:?}", seed);
        assert_eq!(run(seed), outcome, "one seed, one outcome");
    }
    let mut rng = Rng::new(4);
    (0..inputs(1000)).for_each(|_| {
        run(&mutated(&all, &mut rng));
    });
}
