//! The lease of a pair of central nodes in etcd, by its JSON gateway (v3, plain HTTP).
//!
//! The key `/tollgate/cac/NAME/leader` exists as long as somebody leads: it is created only when it is not there, bound to a lease that
//! etcd forgets when nobody renews it, and the revision that created it is the epoch. A thread of its own asks, one question at a time;
//! whatever goes wrong is "no answer" to the machine, which knows what that means ([`lease`]).

use crate::host::transport::Waker;
use crate::proto::cac::lease::{Action, Event};
use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crossbeam::channel::{Receiver, Sender, bounded};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

/// Questions and answers that wait: the machine has one under way at a time.
const WAITING: usize = 8;

/// The way to etcd.
pub struct Store {
    questions: Option<Sender<Action>>,
    answers: Receiver<Event>,
    thread: Option<JoinHandle<()>>,
}

/// What asks etcd.
struct Client {
    agent: ureq::Agent,
    /// The server that answered last is asked first.
    servers: Vec<SocketAddr>,
    key: String,
    value: String,
    length: Duration,
    /// The lease that is held, or was asked for last.
    lease: Option<String>,
}

impl Store {
    /// Starts asking these servers, for leases of `length` under the name of the cluster; `value` says who leads, for people.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(servers: &[SocketAddr], cluster: &str, value: &str, length: Duration, waker: Waker) -> Result<Store> {
        // Shorter than the machine waits, so that a server that is gone leaves time for the next one.
        let patience = length / 3 / (servers.len() as u32).max(1);
        let agent = ureq::Agent::config_builder().timeout_global(Some(patience)).max_idle_connections(2).build().new_agent();
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        let mut client = Client {
            agent,
            servers: servers.to_vec(),
            key: encoded(&format!("/tollgate/cac/{cluster}/leader")),
            value: encoded(value),
            length,
            lease: None,
        };
        let (questions, receiver) = bounded(WAITING);
        let (sender, answers) = bounded(WAITING);
        let run = move || {
            for question in receiver {
                if let Some(answer) = client.ask(question) {
                    // The process ends: nobody listens any more.
                    let _ = sender.try_send(answer);
                    waker.wake();
                }
            }
        };
        let thread = std::thread::Builder::new().name("etcd".into()).spawn(run).context("no thread to ask etcd")?;
        Ok(Store { questions: Some(questions), answers, thread: Some(thread) })
    }

    /// Has `action` done. With too much waiting it is not, as if etcd did not answer.
    pub fn ask(&self, action: Action) {
        if let Some(questions) = &self.questions {
            let _ = questions.try_send(action);
        }
    }

    /// What came of one.
    pub fn answer(&self) -> Option<Event> {
        self.answers.try_recv().ok()
    }

    /// Waits until all that was asked for is done: a lease that is given back need not be waited for.
    pub fn finish(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported.
            drop(thread.join());
        }
    }
}

impl Client {
    fn ask(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Acquire { attempt } => Some(match self.acquire() {
                Ok(Some(epoch)) => Event::Acquired { attempt, epoch },
                Ok(None) => Event::Held { attempt },
                Err(error) => failed(attempt, &error),
            }),
            Action::Renew { attempt } => Some(match self.renew() {
                Ok(true) => Event::Renewed { attempt },
                Ok(false) => Event::Gone { attempt },
                Err(error) => failed(attempt, &error),
            }),
            Action::Release => {
                if let Some(lease) = self.lease.take()
                    && let Err(error) = self.post("lease/revoke", &json!({ "ID": lease }))
                {
                    tracing::debug!("etcd: the lease is left to run out: {error:#}");
                }
                None
            }
            Action::Lead { .. } | Action::Extend { .. } | Action::StepDown | Action::Store { .. } => None,
        }
    }

    /// The revision of the key if it is ours since now; `None` while it is somebody's.
    fn acquire(&mut self) -> Result<Option<u64>> {
        let found = self.post("kv/range", &json!({ "key": self.key, "keys_only": true }))?;
        if number(&found["count"]).unwrap_or(0) > 0 {
            return Ok(None);
        }
        let granted = self.post("lease/grant", &json!({ "TTL": self.length.as_secs_f64().ceil() as u64 }))?;
        let lease = granted["ID"].as_str().context("etcd granted no lease")?.to_owned();
        self.lease = Some(lease.clone());
        let done = self.post(
            "kv/txn",
            &json!({
                "compare": [{ "key": self.key, "target": "CREATE", "result": "EQUAL", "create_revision": "0" }],
                "success": [{ "request_put": { "key": self.key, "value": self.value, "lease": lease } }],
            }),
        )?;
        if done["succeeded"] == true {
            return number(&done["header"]["revision"]).map(Some).context("etcd named no revision");
        }
        self.ask(Action::Release);
        Ok(None)
    }

    /// Whether the lease goes on.
    fn renew(&mut self) -> Result<bool> {
        let Some(lease) = self.lease.clone() else { return Ok(false) };
        let renewed = self.post("lease/keepalive", &json!({ "ID": lease }))?;
        Ok(number(&renewed["result"]["TTL"]).is_some_and(|seconds| seconds > 0))
    }

    /// One question to the first server that answers.
    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        let body = body.to_string();
        let mut last = None;
        for place in 0..self.servers.len() {
            let Some(&server) = self.servers.get(place) else { break };
            match self.post_to(server, path, &body) {
                Ok(answer) => {
                    self.servers.swap(0, place);
                    return Ok(answer);
                }
                Err(error) => last = Some(error.context(server.to_string())),
            }
        }
        match last {
            Some(error) => Err(error),
            None => bail!("no etcd server is named"),
        }
    }

    fn post_to(&self, server: SocketAddr, path: &str, body: &str) -> Result<Value> {
        let request = self.agent.post(format!("http://{server}/v3/{path}")).header("Content-Type", "application/json");
        let text = request.send(body)?.body_mut().read_to_string()?;
        // Renewals come as a stream, of which the first line is the answer.
        serde_json::from_str(text.lines().next().unwrap_or("")).context("no answer of etcd")
    }
}

fn failed(attempt: u64, error: &anyhow::Error) -> Event {
    tracing::debug!("etcd: {error:#}");
    Event::Failed { attempt }
}

/// etcd writes 64-bit numbers as text.
fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64())
}
