//! What reading and writing a message costs, per message: the numbers behind the codec's share of a command.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tollgate::proto::base::HexId;
use tollgate::proto::codec::mgcp::{Code, Command, EventList, ListKind, Response, Writer};
use tollgate::proto::codec::sdp::{self, Address, Description, Payload, Session};
use tollgate::proto::codec::{exercise, peek};

/// A CreateConnection with a 300-byte session description.
const CRCX: &[u8] = concat!(
    "CRCX 123456789 ds/ds3-1/ds1-12/24@tgw.example.net MGCP 1.0\r\n\
    C: A3C47F21678900\r\n\
    L: p:20, a:PCMU;PCMA;G729, e:on, s:off\r\n\
    M: sendrecv\r\n\
    \r\n",
    include_str!("harness/offer.sdp")
)
.as_bytes();
const DLCX: &[u8] = b"DLCX 123456790 ds/ds3-1/ds1-12/24@tgw.example.net MGCP 1.0\r\nC: A3C47F21678900\r\nI: 8A01F3C2\r\n";
const EVENTS: &[u8] = b"T/co1(N), T/oc(N), D/[0-9#*](D), hd(A,E(R(hu(N)),S(G/dl),D((0T|[1-7]xxx))))";
const RESPONSE: &[u8] = b"250 123456790 OK\r\nP: PS=1500, OS=240000, PR=1498, OR=239680, PL=2, JI=3, LA=0\r\n";

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    for (name, datagram) in [("CRCX", CRCX), ("DLCX", DLCX), ("response", RESPONSE)] {
        group.throughput(Throughput::Bytes(datagram.len() as u64));
        group.bench_function(format!("peek {name}"), |b| b.iter(|| peek::split(black_box(datagram)).next()));
    }
    group.throughput(Throughput::Bytes(CRCX.len() as u64));
    group.bench_function("parse CRCX", |b| b.iter(|| Command::parse(black_box(CRCX)).map(|command| command.id)));
    group.bench_function("parse CRCX, its values and its SDP", |b| b.iter(|| whole_crcx(black_box(CRCX))));
    group.throughput(Throughput::Bytes(DLCX.len() as u64));
    group.bench_function("parse DLCX and its values", |b| {
        b.iter(|| {
            let command = Command::parse(black_box(DLCX)).ok()?;
            Some((command.call().ok()?, command.connection().ok()?))
        })
    });
    group.throughput(Throughput::Bytes(EVENTS.len() as u64));
    group.bench_function("parse requested events", |b| {
        b.iter(|| EventList::parse(black_box(EVENTS), ListKind::Requested).map(|list| list.iter().count()))
    });
    group.throughput(Throughput::Bytes(RESPONSE.len() as u64));
    group.bench_function("parse response and its counters", |b| {
        b.iter(|| Response::parse(black_box(RESPONSE)).ok()?.connection_parameters())
    });
    group.finish();
}

/// What a gateway reads of a CreateConnection that carries everything.
fn whole_crcx(datagram: &[u8]) -> Option<(HexId, u16, usize)> {
    let command = Command::parse(datagram).ok()?;
    let call = command.call().ok()??;
    black_box((command.mode().ok()?, command.options().ok()?));
    let session = Session::parse(command.description?).ok()?;
    Some((call, session.port, session.formats().count()))
}

fn write(criterion: &mut Criterion) {
    let payloads = [
        Payload { payload_type: 0, attributes: "" },
        Payload { payload_type: 101, attributes: "a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n" },
    ];
    let description = Description {
        session_id: 3_908_120_312,
        version: 3_908_120_313,
        address: Address::Ip4([192, 0, 2, 10].into()),
        port: 40_000,
        payloads: &payloads,
        ptime_ms: Some(20),
        connection: None,
        crypto: None,
    };
    let connection = HexId::from_u64(0x8a01_f3c2, 8);
    let mut buffer = [0; 2048];
    criterion.bench_function("write/response to CRCX with SDP", |b| {
        b.iter(|| {
            let mut writer = Writer::new(black_box(&mut buffer));
            writer.response(200, 123_456_789, None, "OK");
            writer.parameter_hex_id(Code::I, connection);
            sdp::write(&mut writer, black_box(&description));
            writer.finish()
        })
    });
}

/// The worst datagrams an enemy can send, each of the size of a UDP datagram: time must stay proportional to size.
fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hostile 65,507 bytes");
    for (name, unit) in exercise::HOSTILE_UNITS {
        let datagram = exercise::hostile(unit);
        group.throughput(Throughput::Bytes(datagram.len() as u64));
        group.bench_function(*name, |b| b.iter(|| exercise::datagram(black_box(&datagram))));
    }
    group.finish();
}

criterion_group!(benches, read, write, hostile);
criterion_main!(benches);
