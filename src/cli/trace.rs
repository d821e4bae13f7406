//! `tollgate trace`: prints datagrams as they come and go, or writes them to a capture file.

use super::ask::{self, Form};
use super::pcapng::Capture;
use super::{complain, print};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tollgate::host::control::protocol::{Request, Response};
use tollgate::host::control::trace::{TraceLine, TraceRow};
use tollgate::host::control::view::Body;

/// Traces until it is over; `pcap` is a file, or `-` for standard output.
///
/// # Errors
/// When no gateway runs there, the gateway refuses, or the file cannot be written.
pub fn run(socket: &Path, request: &Request, form: Form, pcap: Option<&Path>) -> Result<ExitCode> {
    let mut stream = ask::connect(socket)?;
    let failed = || format!("operator socket {}", socket.display());
    serde_json::to_writer(&stream, request)?;
    stream.write_all(b"\n").with_context(failed)?;
    let mut lines = BufReader::new(&stream);
    let mut first = String::new();
    lines.read_line(&mut first).with_context(failed)?;
    let response: Response = serde_json::from_str(&first).context("the gateway's answer cannot be read; is it of another version?")?;
    if let Body::Error(failure) = &response.body {
        bail!("{}", failure.message);
    }
    match pcap {
        Some(path) => capture(path, &mut lines),
        None => show(form, &mut lines),
    }
}

fn show(form: Form, lines: &mut BufReader<&UnixStream>) -> Result<ExitCode> {
    each(lines, |line, text| {
        match (form, line) {
            (Form::Json, _) => print(text.trim_end())?,
            (_, TraceLine::Datagram(row)) => print(&page(&row))?,
            (_, TraceLine::Lost(count)) => complain(format_args!("tollgate: {count} datagrams were too fast for the trace")),
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn capture(path: &Path, lines: &mut BufReader<&UnixStream>) -> Result<ExitCode> {
    let about = || path.display().to_string();
    let out: Box<dyn Write> =
        if path == Path::new("-") { Box::new(io::stdout()) } else { Box::new(File::create(path).with_context(about)?) };
    let mut capture = Capture::new(out).with_context(about)?;
    let mut written = 0u64;
    each(lines, |line, _| {
        match line {
            TraceLine::Lost(count) => complain(format_args!("tollgate: {count} datagrams were too fast for the trace")),
            TraceLine::Datagram(row) => {
                if let (Ok(local), Ok(remote)) = (row.local.parse::<SocketAddr>(), row.remote.parse::<SocketAddr>()) {
                    let (from, to) = if row.sent { (local, remote) } else { (remote, local) };
                    written += u64::from(capture.write(row.at_us, from, to, &row.bytes()).with_context(about)?);
                }
            }
        }
        Ok(())
    })?;
    complain(format_args!("{written} datagrams in {}", about()));
    Ok(ExitCode::SUCCESS)
}

/// Each line until the gateway ends the connection.
fn each(lines: &mut BufReader<&UnixStream>, mut take: impl FnMut(TraceLine, &str) -> Result<()>) -> Result<()> {
    let mut text = String::new();
    while lines.read_line(&mut text).context("operator socket")? > 0 {
        take(serde_json::from_str(&text).context("a line of the trace cannot be read")?, &text)?;
        text.clear();
    }
    Ok(())
}

/// A datagram as text: a line on it, then its lines.
fn page(row: &TraceRow) -> String {
    let seconds = row.at_us / 1_000_000;
    let (hours, minutes, seconds, us) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, row.at_us % 1_000_000);
    let (from, to) = if row.sent { (&row.local, &row.remote) } else { (&row.remote, &row.local) };
    let bytes = row.bytes();
    let who = row.agent.as_deref().unwrap_or("nobody known");
    let word = if row.sent { "sent to" } else { "received from" };
    let mut text =
        format!("{hours:02}:{minutes:02}:{seconds:02}.{us:06} core {} {word} {who}: {from} -> {to}, {} octets\n", row.core, bytes.len());
    for line in String::from_utf8_lossy(&bytes).lines() {
        // What an agent sends is not to steer a terminal.
        let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
        let _ = writeln!(text, "  {line}");
    }
    text
}

/// Arguments of `tollgate trace`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only of these endpoints: a name, or a pattern with `*`; wildcards in messages that cover it count.
    name: Option<String>,
    /// Only to and from this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only of this call.
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// End after so long.
    #[arg(long, value_name = "S")]
    seconds: Option<u32>,
    /// End after so many datagrams.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Write a capture file for Wireshark; `-`: to standard output.
    #[arg(long, value_name = "FILE")]
    pub pcap: Option<PathBuf>,
    /// Print each datagram as one line of JSON.
    #[arg(long, conflicts_with = "pcap")]
    pub json: bool,
}

impl Args {
    /// The request they stand for.
    pub fn request(&self) -> Request {
        let Args { name, agent, call, seconds, count, .. } = self.clone();
        Request::Trace { name, agent, call, seconds, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_who_when_and_what() {
        let row = TraceRow {
            at_us: 86_400_000_000 + 3_723_000_045,
            core: 2,
            sent: false,
            local: "127.0.0.1:2427".into(),
            remote: "127.0.0.2:2727".into(),
            agent: Some("ca".into()),
            octets: "3230302031204f4b1b5b320d0a".into(),
        };
        let expected = "01:02:03.000045 core 2 received from ca: 127.0.0.2:2727 -> 127.0.0.1:2427, 13 octets\n  200 1 OK?[2\n";
        assert_eq!(page(&row), expected);
    }
}
