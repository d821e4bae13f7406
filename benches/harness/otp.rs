//! Our codec beside that of OTP's megaco: the same messages, in turn, in one run. Needs erl and erlc (Debian's erlang-base, erlang-megaco).

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use tollgate::proto::codec::h248::{Shape, Style, exercise};

/// Times round; one of each kind in each.
const ROUNDS: usize = 15;
/// Passes over the messages for one figure.
const PASSES: usize = 200;

/// A set of messages in both styles.
pub type Set = [Vec<Vec<u8>>; 2];

/// Prints nanoseconds per message of both, for each of the sets by name.
pub fn beside(sets: &[(&str, Set)], read: impl Fn(&[u8], &mut Shape) -> usize) {
    let folder = std::env::temp_dir().join(format!("tollgate-megaco-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/harness/megaco.erl"), folder.join("megaco_beside.erl")).expect("a copy");
    let compiled = Command::new("erlc").arg("-o").arg(&folder).arg(folder.join("megaco_beside.erl")).status();
    assert!(compiled.is_ok_and(|status| status.success()), "erlc");
    for (name, set) in sets {
        measure(name, set, &folder, &read);
    }
    let _ = fs::remove_dir_all(folder);
}

fn measure(name: &str, set: &Set, folder: &Path, read: &impl Fn(&[u8], &mut Shape) -> usize) {
    let folders = ["compact", "pretty"].map(|style| folder.join(format!("{name}-{style}")));
    for (folder, texts) in folders.iter().zip(set) {
        fs::create_dir_all(folder).expect("a folder");
        texts.iter().enumerate().for_each(|(n, text)| fs::write(folder.join(format!("{n:03}")), text).expect("a file"));
    }
    let main = format!("megaco_beside:main([{:?},{:?}])", folders[0], folders[1]);
    let erl = Command::new("erl")
        .args(["-noshell", "-pa"])
        .arg(folder)
        .args(["-eval", &main])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut erl = erl.expect("erl");
    let (mut orders, mut answers) = (erl.stdin.take().expect("a pipe"), BufReader::new(erl.stdout.take().expect("a pipe")));
    assert_eq!(line(&mut answers), "ready");
    for ((texts, style), word) in set.iter().zip([Style::Compact, Style::Pretty]).zip(["compact", "pretty"]) {
        let mut figures: [Vec<u64>; 4] = Default::default();
        let (mut shape, mut buffer, mut count) = (Shape::new(), vec![0; 65_536], 0);
        for _ in 0..ROUNDS {
            let ours = per_message(texts, |text| {
                black_box(read(black_box(text), &mut shape));
            });
            let both = per_message(texts, |text| {
                let _ = black_box(exercise::transcribe(black_box(text), &mut shape, &mut buffer, style));
            });
            figures[0].push(ours);
            figures[1].push(both.saturating_sub(ours));
            for (place, what) in [(2, "decode"), (3, "encode")] {
                let (read, ns) = ask(&mut orders, &mut answers, &format!("{what} {word} {PASSES}"));
                count = read;
                figures[place].push(ns);
            }
        }
        let [read, write, decode, encode] = figures.map(|mut list| {
            list.sort_unstable();
            list[list.len() / 2]
        });
        let octets = texts.iter().map(Vec::len).sum::<usize>() / texts.len();
        println!("{name}, {word}: {} messages of {octets} octets (megaco: {count} of them)", texts.len());
        println!("  read  {read} ns, megaco {decode} ns: {:.1} times", decode as f64 / read as f64);
        println!("  write {write} ns, megaco {encode} ns: {:.1} times", encode as f64 / write.max(1) as f64);
    }
    drop(orders);
    let _ = erl.wait();
}

#[allow(clippy::disallowed_methods)]
fn per_message(texts: &[Vec<u8>], mut work: impl FnMut(&[u8])) -> u64 {
    let start = Instant::now();
    (0..PASSES).for_each(|_| texts.iter().for_each(|text| work(text)));
    start.elapsed().as_nanos() as u64 / (PASSES * texts.len()) as u64
}

fn ask(orders: &mut ChildStdin, answers: &mut BufReader<ChildStdout>, order: &str) -> (usize, u64) {
    writeln!(orders, "{order}").expect("a pipe");
    let answer = line(answers);
    let (count, ns) = answer.split_once(' ').expect("two numbers");
    (count.parse().expect("a number"), ns.parse().expect("a number"))
}

fn line(answers: &mut BufReader<ChildStdout>) -> String {
    let mut text = String::new();
    answers.read_line(&mut text).expect("a line");
    text.trim().to_owned()
}
