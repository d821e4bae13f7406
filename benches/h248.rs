//! What reading and writing an H.248 text message costs, per message: over the corpus of the tests, and over the messages of a call.
//!
//! `read` walks all of a message: every part is read and checked, as the gateway would before it does anything. `read and write` writes all
//! of it anew too; the difference is what writing costs. `cargo bench --bench h248 -- --otp` measures both beside OTP's megaco.

#[path = "harness/otp.rs"]
mod otp;

use std::fs;
use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group};
use tollgate::proto::codec::h248::{ActionPart, Content, Message, ReplyPart, Shape, Side, Style, Transaction, exercise};

/// The messages of a call: Add and Subtract with their replies, a Notify with its reply.
const CALL: [&str; 6] = ["call-add", "call-add-reply", "call-subtract", "call-subtract-reply", "notify-digits", "notify-reply"];

/// Every message of the corpus that is read whole, in one style, by name.
fn corpus(style: Style) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/h248");
    let mut paths: Vec<_> = fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut messages = Vec::new();
    let (mut shape, mut buffer) = (Shape::new(), vec![0; 65_536]);
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "txt")) {
        let text = fs::read(path).expect("a message");
        if let Ok(length) = exercise::transcribe(&text, &mut shape, &mut buffer, style) {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            messages.push((name, buffer[..length].to_vec()));
        }
    }
    messages
}

/// Reads and checks all of a message; how many commands it has.
fn read(text: &[u8], shape: &mut Shape) -> usize {
    let Ok(Content::Transactions(transactions)) = Message::parse(text, shape).and_then(|message| message.content()) else { return 0 };
    let mut commands = 0;
    let mut part = |part: ActionPart<'_>, side| {
        if let ActionPart::Command(command) = part {
            commands += usize::from(command.check(side).is_ok());
        }
    };
    for transaction in transactions.flatten() {
        match transaction {
            Transaction::Request(request) => {
                request.actions().flatten().flat_map(|action| action.parts()).flatten().for_each(|p| part(p, Side::Request));
            }
            Transaction::Reply(reply) => {
                for action in reply.actions().flatten() {
                    if let ReplyPart::Action(action) = action {
                        action.parts().flatten().for_each(|p| part(p, Side::Reply));
                    }
                }
            }
            Transaction::Pending(_) | Transaction::Acknowledgement(_) => {}
        }
    }
    commands
}

fn messages(criterion: &mut Criterion) {
    for style in [Style::Compact, Style::Pretty] {
        let corpus = corpus(style);
        let call: Vec<_> = corpus.iter().filter(|(name, _)| CALL.contains(&name.as_str())).cloned().collect();
        assert_eq!(call.len(), CALL.len());
        for (set, messages) in [("corpus", &corpus), ("call", &call)] {
            let bytes: usize = messages.iter().map(|(_, text)| text.len()).sum();
            let mut group = criterion.benchmark_group(format!("{set}, {style:?}, {} bytes a message", bytes / messages.len()));
            group.throughput(Throughput::Elements(messages.len() as u64));
            let (mut shape, mut buffer) = (Shape::new(), vec![0; 65_536]);
            group.bench_function("read", |b| {
                b.iter(|| messages.iter().map(|(_, text)| read(black_box(text), &mut shape)).sum::<usize>());
            });
            group.bench_function("read and write", |b| {
                b.iter(|| {
                    let transcribe = |(_, text): &(String, Vec<u8>)| exercise::transcribe(black_box(text), &mut shape, &mut buffer, style);
                    messages.iter().map(transcribe).filter(Result::is_ok).count()
                });
            });
            group.finish();
        }
    }
}

/// The worst messages an enemy can send: time must stay proportional to size.
fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hostile 65,535 bytes");
    let (mut shape, mut buffer) = (Shape::new(), vec![0; 400_000]);
    for (name, unit) in exercise::HOSTILE_UNITS {
        for place in [0, 5, 6] {
            let message = exercise::hostile(unit, place, 65_535);
            group.throughput(Throughput::Bytes(message.len() as u64));
            group.bench_function(format!("{name} in place {place}"), |b| {
                b.iter(|| exercise::message(black_box(&message), &mut shape, &mut buffer));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, messages, hostile);

fn main() {
    if std::env::args().any(|word| word == "--otp") {
        let texts = |style, wanted: &dyn Fn(&str) -> bool| {
            corpus(style).into_iter().filter(|(name, _)| wanted(name)).map(|(_, text)| text).collect()
        };
        let set = |wanted: &dyn Fn(&str) -> bool| [Style::Compact, Style::Pretty].map(|style| texts(style, wanted));
        return otp::beside(&[("corpus", set(&|_| true)), ("call", set(&|name| CALL.contains(&name)))], read);
    }
    benches();
    Criterion::default().configure_from_args().final_summary();
}
