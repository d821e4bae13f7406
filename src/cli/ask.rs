//! Asks a running gateway over its operator socket and prints the answer.

use super::{complain, print, render};
use anyhow::{Context, Result, anyhow, bail};
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tollgate::host::clock::Clock;
use tollgate::host::control::protocol::{RESPONSE_MAX, Request, Response, Timed};
use tollgate::host::control::view::Body;

/// The whole exchange must be over so soon.
const WITHIN: Duration = Duration::from_secs(30);

/// How the answer is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Tables.
    Text,
    /// Tables, with the past of a facility.
    History,
    /// As it came.
    Json,
}

/// One request, one answer on standard output.
///
/// The exit code is that of a failure too when the answer is that a reload would be refused.
///
/// # Errors
/// When no gateway runs there, or the gateway refuses.
pub fn ask(socket: &Path, request: &Request, form: Form) -> Result<ExitCode> {
    let (response, line) = exchange(socket, request)?;
    match form {
        Form::Json => print(&String::from_utf8_lossy(&line))?,
        Form::Text | Form::History => print(render::text(&response, form == Form::History).trim_end())?,
    }
    if !response.silent_cores.is_empty() {
        let cores: Vec<_> = response.silent_cores.iter().map(u8::to_string).collect();
        complain(format_args!("tollgate: core {} did not answer: what it owns is missing here", cores.join(", ")));
    }
    let refused = matches!(&response.body, Body::Reload(reload) if reload.is_refused());
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Connects to a gateway.
///
/// # Errors
/// When none runs there.
pub fn connect(socket: &Path) -> Result<UnixStream> {
    UnixStream::connect(socket).map_err(|error| why(socket, &error))
}

/// One request and its answer, read and as it came.
///
/// # Errors
/// When no gateway runs there, or the gateway refuses.
pub fn exchange(socket: &Path, request: &Request) -> Result<(Response, Vec<u8>)> {
    let stream = connect(socket)?;
    let mut timed = Timed::new(&stream, Clock::new(), WITHIN);
    let failed = |error| anyhow!("operator socket {}: {error}", socket.display());
    // A gateway that is busy says so without waiting for the request.
    let sent = timed.write_line(serde_json::to_vec(request)?);
    let line = timed.read_line(RESPONSE_MAX).map_err(|error| failed(sent.err().unwrap_or(error)))?;
    let response: Response = serde_json::from_slice(&line).context("the gateway's answer cannot be read; is it of another version?")?;
    if let Body::Error(failure) = &response.body {
        bail!("{}", failure.message);
    }
    Ok((response, line))
}

fn why(socket: &Path, error: &std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("no gateway is running: nobody answers on {} (another one? --socket PATH or --config FILE)", socket.display())
        }
        _ => anyhow!("operator socket {}: {error}", socket.display()),
    }
}
