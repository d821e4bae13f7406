//! What we write, read by a dissector that is not ours: tshark's, for MEGACO.

use std::io::Write as _;
use std::process::{Command, Stdio};

use tollgate::proto::codec::h248::Style;

use super::{corpus, transcribed};

/// Datagrams as text2pcap wants them.
fn dump(messages: &[Vec<u8>]) -> String {
    let line = |message: &Vec<u8>| {
        let bytes: Vec<String> = message.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("0000 {}\n", bytes.join(" "))
    };
    messages.iter().map(line).collect()
}

#[test]
fn tshark_reads_all_our_messages() {
    let there = |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there("tshark") || !there("text2pcap") {
        println!("skipped: tshark is not installed");
        return;
    }
    // The dissector takes alternatives in Local for one description and knows no version 3 statistics; both are only read here.
    let messages: Vec<(String, Vec<u8>)> = corpus()
        .into_iter()
        .flat_map(|(name, message)| {
            [Style::Compact, Style::Pretty].map(|style| (format!("{name} {style:?}"), transcribed(&message, style).unwrap()))
        })
        .collect();
    let folder = std::env::temp_dir().join(format!("tollgate-megaco-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let capture = folder.join("messages.pcap");
    let bodies: Vec<Vec<u8>> = messages.iter().map(|(_, message)| message.clone()).collect();
    let mut converter = Command::new("text2pcap")
        .args(["-q", "-u", "2944,2944", "-"])
        .arg(&capture)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    converter.stdin.take().unwrap().write_all(dump(&bodies).as_bytes()).unwrap();
    assert!(converter.wait().unwrap().success());
    let read = Command::new("tshark").arg("-r").arg(&capture).args(["-d", "udp.port==2944,megaco", "-V"]).output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let text = String::from_utf8_lossy(&read.stdout);
    let frames: Vec<&str> = text.split("\nFrame ").collect();
    assert_eq!(frames.len(), messages.len(), "{}", String::from_utf8_lossy(&read.stderr));
    for (frame, (name, message)) in frames.iter().zip(&messages) {
        let message = String::from_utf8_lossy(message);
        assert!(frame.contains("MEGACO"), "{name}: not taken for MEGACO\n{message}\n{frame}");
        for mark in ["Malformed", "malformed", "Parse error", "[Expert Info (Error", "Dissector bug"] {
            assert!(!frame.contains(mark), "{name}: {mark}\n{message}\n{frame}");
        }
    }
}
