//! The operator socket's server: accepts, one bounded thread for each client, rights, one request and one response each.

use super::Gateway;
use super::protocol::{Failure, FailureKind, LineError, REQUEST_MAX, Request, Response, Timed};
use super::socket::{self, Bound};
use super::view::Body;
use anyhow::{Context, Result};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Operators served at a time.
const CLIENTS_MAX: usize = 16;
/// A request must be there so soon.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
/// A response must be taken so soon.
const RESPONSE_WITHIN: Duration = Duration::from_secs(20);
/// So long nobody is accepted after the system refused to.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The running server; it ends when dropped.
pub struct Server {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `bound`.
    pub fn start(gateway: Arc<Gateway>, bound: Bound) -> Result<Server> {
        let (path, closing) = (bound.path().to_owned(), Arc::new(AtomicBool::new(false)));
        let closes = closing.clone();
        let thread = std::thread::Builder::new().name("operator".into());
        let thread = thread.spawn(move || accept(&gateway, &bound, &closes)).context("no thread for the operator socket")?;
        Ok(Server { path, closing, thread: Some(thread) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Wakes the thread; when nobody listens there any more it has ended.
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(gateway: &Arc<Gateway>, bound: &Bound, closing: &AtomicBool) {
    let clients = Arc::new(AtomicUsize::new(0));
    loop {
        let stream = bound.listener.accept();
        if closing.load(Ordering::Acquire) {
            return;
        }
        let Ok((stream, _)) = stream else {
            std::thread::park_timeout(ACCEPT_PAUSE);
            continue;
        };
        let Some(client) = Client::enter(&clients) else {
            refuse(gateway, &stream);
            continue;
        };
        let gateway = gateway.clone();
        // Without a thread the stream closes, which the operator sees.
        let _ = std::thread::Builder::new().name("client".into()).spawn(move || {
            serve(&gateway, &stream);
            drop(client);
        });
    }
}

/// One of the clients served at a time.
struct Client(Arc<AtomicUsize>);

impl Client {
    fn enter(clients: &Arc<AtomicUsize>) -> Option<Client> {
        // Only the accepting thread counts up.
        let free = clients.load(Ordering::Acquire) < CLIENTS_MAX;
        free.then(|| {
            clients.fetch_add(1, Ordering::AcqRel);
            Client(clients.clone())
        })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A response so short fits into a fresh socket without waiting.
fn refuse(gateway: &Gateway, stream: &UnixStream) {
    let busy = Failure::new(FailureKind::Busy, format!("{CLIENTS_MAX} operators are being served; try again"));
    respond(gateway, stream, &response(gateway, Vec::new(), Body::Error(busy)), Duration::from_millis(10));
}

fn serve(gateway: &Gateway, stream: &UnixStream) {
    let line = Timed::new(stream, gateway.clock, REQUEST_WITHIN).read_line(REQUEST_MAX);
    let answer = match line {
        // Whoever only looked whether somebody is here wants no answer.
        Err(LineError::Cut | LineError::Io(_)) => return,
        Err(error) => {
            let limits = format!("a request is one line of less than {REQUEST_MAX} bytes, within {} s", REQUEST_WITHIN.as_secs());
            let bad = Failure::new(FailureKind::BadRequest, format!("{error}: {limits}"));
            response(gateway, Vec::new(), Body::Error(bad))
        }
        Ok(line) => answer(gateway, stream, &line),
    };
    respond(gateway, stream, &answer, RESPONSE_WITHIN);
}

fn answer(gateway: &Gateway, stream: &UnixStream, line: &[u8]) -> Response {
    let mut silent = Vec::new();
    let done = serde_json::from_slice(line)
        .map_err(|error| Failure::new(FailureKind::BadRequest, format!("not a request: {error}")))
        .and_then(|request: Request| permit(gateway, stream, &request).map(|()| request))
        .and_then(|request| gateway.answer(request, &mut silent));
    let body = done.unwrap_or_else(Body::Error);
    response(gateway, silent, body)
}

/// Changes are for the owner of the socket and for root.
fn permit(gateway: &Gateway, stream: &UnixStream, request: &Request) -> Result<(), Failure> {
    if !request.changes() {
        return Ok(());
    }
    let peer = socket::peer(stream).map_err(|error| Failure::new(FailureKind::NotPermitted, format!("who asks is not known: {error}")))?;
    if may_change(peer, gateway.owner) {
        tracing::info!("operator (user {peer}): {request:?}");
        return Ok(());
    }
    Err(Failure::new(FailureKind::NotPermitted, format!("user {peer} may look only; changes are for user {}", gateway.owner)))
}

fn may_change(peer: u32, owner: u32) -> bool {
    peer == owner || peer == 0
}

fn response(gateway: &Gateway, silent_cores: Vec<u8>, body: Body) -> Response {
    Response { gateway: gateway.view(), silent_cores, body }
}

fn respond(gateway: &Gateway, stream: &UnixStream, response: &Response, within: Duration) {
    match serde_json::to_vec(response) {
        // An operator who went away is no fault of ours.
        Ok(line) => drop(Timed::new(stream, gateway.clock, within).write_line(line)),
        Err(error) => tracing::error!("operator socket: a response cannot be written: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_and_root_may_change() {
        assert!(may_change(1000, 1000) && may_change(0, 1000));
        assert!(!may_change(1001, 1000) && !may_change(1000, 0));
    }
}
