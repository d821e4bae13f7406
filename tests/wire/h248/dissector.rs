//! What we write, read by a dissector that is not ours: tshark's, for MEGACO.

use tollgate::proto::codec::h248::Style;

use super::super::tshark::dissect;
use super::{corpus, transcribed};

#[test]
fn tshark_reads_all_our_messages() {
    // The dissector takes alternatives in Local for one description and knows no version 3 statistics; both are only read here.
    let messages: Vec<(String, Vec<u8>)> = corpus()
        .into_iter()
        .flat_map(|(name, message)| {
            [Style::Compact, Style::Pretty].map(|style| (format!("{name} {style:?}"), transcribed(&message, style).unwrap()))
        })
        .collect();
    let payloads = messages.iter().map(|(_, message)| message.as_slice());
    let Some(text) = dissect("2944,2944", payloads, &["-d", "udp.port==2944,megaco", "-V"]) else { return };
    let frames: Vec<&str> = text.split("\nFrame ").collect();
    assert_eq!(frames.len(), messages.len());
    for (frame, (name, message)) in frames.iter().zip(&messages) {
        let message = String::from_utf8_lossy(message);
        assert!(frame.contains("MEGACO"), "{name}: not taken for MEGACO\n{message}\n{frame}");
        for mark in ["Malformed", "malformed", "Parse error", "[Expert Info (Error", "Dissector bug"] {
            assert!(!frame.contains(mark), "{name}: {mark}\n{message}\n{frame}");
        }
    }
}
