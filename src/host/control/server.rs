//! The operator socket's server: rights, one request and one response for each guest.

use super::Gateway;
use super::guests::{self, GUESTS_MAX, Service};
use super::protocol::{Failure, FailureKind, GatewayView, LineError, REQUEST_MAX, Request, Response, Timed};
use super::socket::{self, Bound};
use super::view::Body;
use crate::host::clock::Clock;
use anyhow::Result;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request must be there so soon.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);
/// A response must be taken so soon.
const RESPONSE_WITHIN: Duration = Duration::from_secs(5);
/// A response so short fits into a fresh socket without waiting.
const REFUSAL_WITHIN: Duration = Duration::from_millis(10);

/// The running server; it ends when dropped.
pub struct Server {
    path: PathBuf,
    closing: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `bound`.
    ///
    /// # Errors
    /// When no thread can be had.
    pub fn start(gateway: Arc<dyn Answers>, bound: Bound) -> Result<Server> {
        let (path, closing) = (bound.path().to_owned(), Arc::new(AtomicBool::new(false)));
        let listen = move || bound.listener.accept().map(|(stream, _)| stream);
        let thread = guests::accept("operators", listen, closing.clone(), Operators(gateway))?;
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

/// Who answers operators: a gateway, or the central node of a cluster.
pub trait Answers: Send + Sync + 'static {
    /// The process clock.
    fn clock(&self) -> Clock;
    /// The user who may change things.
    fn owner(&self) -> u32;
    /// Who answers.
    fn view(&self) -> GatewayView;
    /// Does what is asked. Cores that do not answer go to `silent`.
    ///
    /// # Errors
    /// Why it was not done.
    fn answer(&self, request: Request, silent: &mut Vec<u8>) -> Result<Body, Failure>;
    /// Writes datagrams as they come, once `begin` has told that it does.
    ///
    /// # Errors
    /// Why it does not.
    fn trace(&self, stream: &UnixStream, request: &Request, begin: &mut dyn FnMut(String)) -> Result<(), Failure>;
}

impl Answers for Gateway {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn owner(&self) -> u32 {
        self.owner
    }

    fn view(&self) -> GatewayView {
        Gateway::view(self)
    }

    fn answer(&self, request: Request, silent: &mut Vec<u8>) -> Result<Body, Failure> {
        Gateway::answer(self, request, silent)
    }

    fn trace(&self, stream: &UnixStream, request: &Request, begin: &mut dyn FnMut(String)) -> Result<(), Failure> {
        Gateway::trace(self, stream, request, begin)
    }
}

/// What operators come for.
struct Operators(Arc<dyn Answers>);

impl Service<UnixStream> for Operators {
    fn serve(&self, stream: &UnixStream, asked: &dyn Fn()) {
        let gateway = &*self.0;
        let line = Timed::new(stream, gateway.clock(), REQUEST_WITHIN).read_line(REQUEST_MAX);
        asked();
        let answer = match line {
            // Whoever only looked whether somebody is here wants no answer.
            Err(LineError::Cut | LineError::Io(_)) => return,
            Err(error) => {
                let limits = format!("a request is one line of less than {REQUEST_MAX} bytes, within {} s", REQUEST_WITHIN.as_secs());
                let bad = Failure::new(FailureKind::BadRequest, format!("{error}: {limits}"));
                response(gateway, Vec::new(), Body::Error(bad))
            }
            Ok(line) => match answer(gateway, stream, &line) {
                Some(answer) => answer,
                None => return,
            },
        };
        respond(gateway, stream, &answer, RESPONSE_WITHIN);
    }

    fn refuse(&self, stream: &UnixStream) {
        let busy = Failure::new(FailureKind::Busy, format!("busy: {GUESTS_MAX} others are connected; try again"));
        respond(&*self.0, stream, &response(&*self.0, Vec::new(), Body::Error(busy)), REFUSAL_WITHIN);
    }
}

/// What is to be answered; nothing when it has been.
fn answer(gateway: &dyn Answers, stream: &UnixStream, line: &[u8]) -> Option<Response> {
    let mut silent = Vec::new();
    let mut answered = false;
    let done = serde_json::from_slice(line)
        .map_err(|error| Failure::new(FailureKind::BadRequest, format!("not a request: {error}")))
        .and_then(|request: Request| {
            let order = request.is_owners().then(|| request.to_string());
            let peer = socket::peer(stream);
            let mut trace = |request: &Request| {
                let mut begin = |words: String| {
                    answered = true;
                    if let Some(order) = &order {
                        tracing::info!("operator {}: {order}", who(&peer));
                    }
                    respond(gateway, stream, &response(gateway, Vec::new(), Body::Done(words)), RESPONSE_WITHIN);
                };
                gateway.trace(stream, request, &mut begin).map(|()| Body::Done("over".into()))
            };
            let done = permit(gateway, &peer, &request).and_then(|()| match request {
                Request::Trace { .. } => trace(&request),
                request => gateway.answer(request, &mut silent),
            });
            if let Some(order) = order {
                log(&peer, &order, &done);
            }
            done
        });
    let body = done.unwrap_or_else(Body::Error);
    (!answered).then(|| response(gateway, silent, body))
}

/// Changes are for the owner of the socket and for root.
fn permit(gateway: &dyn Answers, peer: &std::io::Result<u32>, request: &Request) -> Result<(), Failure> {
    if !request.is_owners() {
        return Ok(());
    }
    let unknown = |error| Failure::new(FailureKind::NotPermitted, format!("who asks is not known: {error}"));
    let peer = *peer.as_ref().map_err(unknown)?;
    if may_change(peer, gateway.owner()) {
        return Ok(());
    }
    Err(Failure::new(FailureKind::NotPermitted, format!("user {peer} may look only; changes are for user {}", gateway.owner())))
}

/// One line for each order: who, what, and what came of it.
fn log(peer: &std::io::Result<u32>, order: &str, done: &Result<Body, Failure>) {
    let who = who(peer);
    match done {
        Ok(Body::Done(outcome)) => tracing::info!("operator {who}: {order}: {outcome}"),
        Ok(Body::Reload(reload)) => tracing::info!("operator {who}: {order}: {} settings changed", reload.changes.len()),
        Ok(_) => tracing::info!("operator {who}: {order}: done"),
        Err(failure) => tracing::warn!("operator {who}: {order}: refused: {}", failure.message.replace('\n', "; ")),
    }
}

fn who(peer: &std::io::Result<u32>) -> String {
    peer.as_ref().map_or("unknown".to_owned(), ToString::to_string)
}

fn may_change(peer: u32, owner: u32) -> bool {
    peer == owner || peer == 0
}

fn response(gateway: &dyn Answers, silent_cores: Vec<u8>, body: Body) -> Response {
    Response { gateway: gateway.view(), silent_cores, body }
}

fn respond(gateway: &dyn Answers, stream: &UnixStream, response: &Response, within: Duration) {
    match serde_json::to_vec(response) {
        // An operator who went away is no fault of ours.
        Ok(line) => drop(Timed::new(stream, gateway.clock(), within).write_line(line)),
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
