//! The floor under every gateway figure: a bare UDP echo on each transport, with the loop and the batching a core uses.
//!
//! `cargo bench --bench echo [-- --rounds 8 --burst-ms 350 --real-time --xdp]`; with `--xdp` AF_XDP as well, all over a veth pair between
//! two network namespaces (needs root). Requests of 200 bytes, responses of 250, window 256: a
//! CreateConnection with its session description is of that size. Not a criterion bench: see `harness`.
#![allow(missing_docs, reason = "a program")]

mod harness;

use std::sync::Arc;

use harness::echo::{self, Variant};
use harness::{Agent, Plan, Running, Subject, Workload, compare};
use tollgate::host::clock::Clock;
use tollgate::host::transport::Kind;

const REQUEST: usize = 200;
const RESPONSE: usize = 250;
const WINDOW: usize = 256;

fn main() {
    let past_the_kernel = std::env::args().any(|argument| argument == "--xdp");
    if past_the_kernel && let Err(reason) = harness::veth::start() {
        return println!("skipped: {reason}");
    }
    let (kinds, wire): (_, fn(_) -> _) =
        if past_the_kernel { (Kind::ALL, harness::veth::kernel) } else { (Kind::AUTO, harness::wire::loopback) };
    let mut subjects = Vec::new();
    for &kind in kinds {
        match kind.probe() {
            Ok(()) => {
                let variants = [(true, false), (false, false), (true, true)];
                // AF_XDP has neither.
                for &(timestamps, coalesce) in if kind == Kind::Xdp { &variants[..1] } else { &variants } {
                    subjects.push(subject(kind, Variant { timestamps, coalesce }));
                }
            }
            Err(reason) => println!("skipped: transport {}: {reason}", kind.name()),
        }
    }
    let workload = Arc::new(Workload { agent: Box::new(|| Box::new(Padding)), window: WINDOW, wire });
    compare(&subjects, &workload, &Plan::from_arguments());
}

/// Requests without meaning.
struct Padding;

impl Agent for Padding {
    fn requests(&mut self, count: usize, into: &mut Vec<u8>) -> usize {
        into.resize(into.len() + count * REQUEST, b'x');
        REQUEST
    }

    fn response(&mut self, response: &[u8]) -> bool {
        response.len() == RESPONSE
    }
}

/// The request, cut or padded.
fn respond(request: &[u8], response: &mut [u8]) -> usize {
    let (copied, padding) = response[..RESPONSE].split_at_mut(request.len().min(RESPONSE));
    copied.copy_from_slice(&request[..copied.len()]);
    padding.fill(b' ');
    RESPONSE
}

fn subject(kind: Kind, variant: Variant) -> Subject {
    let (stamps, sends) = (if variant.timestamps { "" } else { ", no timestamps" }, if variant.coalesce { ", UDP_SEGMENT" } else { "" });
    let name = format!("echo over {}{stamps}{sends}", kind.name());
    let start = move |placement: &harness::Placement| {
        Running::start(placement, move |ready, idle_turns, stop| {
            echo::serve(kind, Clock::new(), variant, respond, ready, idle_turns, stop);
        })
    };
    Subject { name, start: Box::new(start) }
}
