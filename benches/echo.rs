//! The floor under every gateway figure: a bare UDP echo on each transport, with the loop and the batching a core uses.
//!
//! `cargo bench --bench echo [-- --rounds 8 --burst-ms 350 --real-time]`. Requests of 200 bytes, responses of 250, window 256: a
//! CreateConnection with its session description is of that size. Not a criterion bench: see `harness`.
#![allow(missing_docs, reason = "a program")]

mod harness;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use harness::{Plan, Running, Subject, Workload, compare};
use tollgate::host::clock::Clock;
use tollgate::host::frame::{FrameLayout, FrameTable};
use tollgate::host::transport::{BATCH, Kind, SocketSettings, TransportSettings, bind, wake};

const REQUEST: usize = 200;
const RESPONSE: usize = 250;
const WINDOW: usize = 256;

fn main() {
    let mut subjects = Vec::new();
    for &kind in Kind::ALL {
        match kind.probe() {
            Ok(()) => {
                subjects.push(echo(kind, true));
                subjects.push(echo(kind, false));
            }
            Err(reason) => println!("skipped: transport {}: {reason}", kind.name()),
        }
    }
    let write = |n: u64, request: &mut [u8]| {
        request.fill(b'x');
        request[..8].copy_from_slice(&n.to_be_bytes());
    };
    let workload = Arc::new(Workload { request_len: REQUEST, write: Box::new(write), window: WINDOW });
    compare(&subjects, &workload, &Plan::from_arguments());
}

fn echo(kind: Kind, timestamps: bool) -> Subject {
    let name = format!("echo over {}{}", kind.name(), if timestamps { "" } else { ", no timestamps" });
    let start = move |placement: &harness::Placement| {
        Running::start(placement, move |ready, idle_turns, stop| serve(kind, timestamps, ready, idle_turns, stop))
    };
    Subject { name, start: Box::new(start) }
}

/// The loop of a core with nothing in it: receive a batch, answer each datagram in a send slot, flush once.
fn serve(kind: Kind, timestamps: bool, ready: &dyn Fn(SocketAddr), idle_turns: &AtomicU64, stop: &AtomicBool) {
    let settings = SocketSettings { timestamps, ..SocketSettings::default() };
    let sockets = bind(&[SocketAddr::from(([127, 0, 0, 1], 0))], &settings).expect("a port");
    let address = sockets[0].local_addr().expect("bound");
    let (table, mut pools) = FrameTable::new(&[FrameLayout::default()]).expect("frames");
    let mut pool = pools.remove(0);
    pool.touch();
    let (_, sleeper) = wake::pair().expect("an event");
    let mut transport = kind.open(sockets, pool, sleeper, Clock::new(), &TransportSettings::default()).expect("probed");
    ready(address);
    let mut frames = Vec::with_capacity(BATCH);
    let mut idle = 0;
    while !stop.load(Ordering::Relaxed) {
        transport.receive(BATCH, &mut frames);
        if frames.is_empty() {
            idle += 1;
            idle_turns.store(idle, Ordering::Relaxed);
            continue;
        }
        for frame in frames.drain(..) {
            let slot = transport.reserve().expect("no more datagrams than slots");
            let datagram = table.read(frame).expect("held");
            let (to, local) = (datagram.meta().from, datagram.meta().local);
            let (copied, padding) = transport.buffer(&slot)[..RESPONSE].split_at_mut(datagram.len().min(RESPONSE));
            copied.copy_from_slice(&datagram[..copied.len()]);
            padding.fill(b' ');
            drop(datagram);
            transport.send(slot, RESPONSE, to, local);
            transport.release(frame);
        }
        transport.flush();
    }
}
