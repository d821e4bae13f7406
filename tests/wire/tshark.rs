//! What we write, read by a dissector that is not ours: tshark's.

use std::io::Write as _;
use std::process::{Command, Stdio};

/// What tshark says of these UDP payloads between `ports` ("source,destination"), given these arguments; `None`, with the reason printed,
/// where it is not installed.
pub fn dissect<'a>(ports: &str, payloads: impl Iterator<Item = &'a [u8]>, arguments: &[&str]) -> Option<String> {
    let there = |program: &str| Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !there("tshark") || !there("text2pcap") {
        println!("skipped: tshark is not installed");
        return None;
    }
    let capture = std::env::temp_dir().join(format!("tollgate-wire-{}-{}.pcap", std::process::id(), ports.replace(',', "-")));
    let mut converter = Command::new("text2pcap")
        .args(["-q", "-u", ports, "-"])
        .arg(&capture)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines: String = payloads.map(line).collect();
    converter.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    assert!(converter.wait().unwrap().success());
    let read = Command::new("tshark").arg("-r").arg(&capture).args(arguments).output().unwrap();
    std::fs::remove_file(&capture).unwrap();
    assert!(!read.stdout.is_empty(), "{}", String::from_utf8_lossy(&read.stderr));
    Some(String::from_utf8_lossy(&read.stdout).into_owned())
}

/// A payload as text2pcap wants it.
fn line(payload: &[u8]) -> String {
    let octets: Vec<String> = payload.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("0000 {}\n", octets.join(" "))
}
