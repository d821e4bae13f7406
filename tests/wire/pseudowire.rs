//! Pseudowire packets we write, read by a dissector that is not ours: tshark's, for CESoPSN and SAToP.

use tollgate::proto::base::Time;
use tollgate::proto::circuit::{Channels, Circuit, CircuitSettings, Framing};
use tollgate::proto::framer::Format;
use tollgate::proto::pseudowire::{Layout, Structure};

use super::tshark::dissect;

/// Channels that send their number.
struct Numbers;

impl Channels for Numbers {
    fn exchange(&mut self, channel: u8, _: &[u8], _: bool, send: &mut [u8]) {
        send.fill(channel);
    }

    fn take_bits(&mut self, _: u8, _: u8) {}

    fn give_bits(&mut self, channel: u8) -> u8 {
        channel % 16
    }
}

/// Packets of a circuit nothing comes to: the first ones without R, the last ones with it.
fn packets(structure: Structure) -> Vec<Vec<u8>> {
    let ms = std::time::Duration::from_millis;
    let layout = Layout::new(structure, None).unwrap();
    let framing = layout.is_bits().then_some(Framing { format: Format::Esf, signalled: false });
    let (jitter, jitter_max) = (ms(6), ms(20));
    let settings = CircuitSettings { layout, framing, jitter, jitter_max, own_clock: false, idle: 0xFF, sequence: 65_534 };
    let mut circuit = Circuit::new(Time::ZERO, &settings).unwrap();
    (0..200).map(|_| circuit.play(&mut Numbers).to_vec()).collect()
}

#[test]
fn tshark_reads_the_control_word_of_every_packet() {
    // The dissector knows the basic mode only: signalling behind the last frame is a payload of a wrong size to it.
    let frames = [Structure::Frames { channels: 24, frames: 8 }, Structure::Frames { channels: 1, frames: 40 }];
    reads_each("pwcesopsn", "pwcesopsn", "51000", frames.into_iter().flat_map(packets).collect());
    let bits = [Structure::Bits(192), Structure::Groups(8)];
    reads_each("pwsatopcw", "pwsatop", "51002", bits.into_iter().flat_map(packets).collect());
}

/// tshark's `protocol`, whose fields begin with `prefix`, makes sense of each packet to `port`.
fn reads_each(protocol: &str, prefix: &str, port: &str, packets: Vec<Vec<u8>>) {
    let decode = format!("udp.port=={port},{protocol}");
    let [number, r, size] = ["cw.seqno", "cw.rbit", "payload.size_invalid"].map(|field| format!("{prefix}.{field}"));
    let fields = [&*number, &r, &size, "_ws.malformed"];
    let mut arguments = vec!["-d", &decode, "-T", "fields", "-e", "frame.protocols"];
    arguments.extend(fields.into_iter().flat_map(|field| ["-e", field]));
    let Some(text) = dissect(&format!("50000,{port}"), packets.iter().map(Vec::as_slice), &arguments) else { return };
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), packets.len());
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u16::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    for (place, (line, packet)) in lines.iter().zip(&packets).enumerate() {
        assert!(line[0].contains(protocol), "{place}: {line:?}");
        assert_eq!(number(line[1]), (place as u16 % 200).wrapping_add(65_534), "{place}: {line:?}");
        let has_r = packet[0] & 4 != 0;
        assert_eq!(matches!(line[2], "1" | "True"), has_r, "{place}: {line:?}");
        assert!(line[3].is_empty() && line[4].is_empty(), "{place}: {line:?}");
    }
    assert!(packets[0][0] & 4 == 0 && packets[199][0] & 4 != 0, "packet loss is told");
}
