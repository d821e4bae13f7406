//! The lease of a pair of central nodes in etcd, by its JSON gateway (v3, plain HTTP).
//!
//! The key `/tollgate/cac/NAME/leader` exists as long as somebody leads: it is created only when it is not there, bound to a lease that
//! etcd forgets when nobody renews it, and the revision that created it is the epoch. A thread of its own asks, one question at a time;
//! whatever goes wrong is "no answer" to the machine, which knows what that means ([`lease`]).

use crate::host::clock::Clock;
use crate::host::transport::Waker;
use crate::proto::base::Time;
use crate::proto::cac::lease::{Action, Event};
use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crossbeam::channel::{Receiver, Sender, bounded};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

/// Questions and answers that wait: the machine has one under way at a time.
const WAITING: usize = 8;
/// Requests to ask for a lease: to give back the one before, to look who leads, for a lease, and for the key.
const TO_ACQUIRE: u32 = 4;
/// What etcd says of a lease that it does not know (any more), as gRPC numbers it.
const NOT_FOUND: u64 = 5;
/// Of what etcd answers when it refuses, so many characters go to the log.
const SAID_MAX: usize = 200;

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
    /// The lease that is held, or was asked for last, until etcd has taken it back: the key may hang on it.
    lease: Option<String>,
    /// When the question must be answered, and the requests that it still may take.
    until: Time,
    clock: Clock,
    requests: u32,
    /// Why etcd did not answer, as it was last said; `None` when it did.
    trouble: Option<String>,
}

impl Store {
    /// Starts asking these servers, for leases of `length` under the name of the cluster; `value` says who leads, for people.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn start(servers: &[SocketAddr], cluster: &str, value: &str, length: Duration, waker: Waker) -> Result<Store> {
        let mut client = Client::new(servers, cluster, value, length);
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
    fn new(servers: &[SocketAddr], cluster: &str, value: &str, length: Duration) -> Client {
        let encoded = |text: &str| BASE64_STANDARD.encode(text);
        Client {
            // What etcd refuses it says why in the body.
            agent: ureq::Agent::config_builder().http_status_as_error(false).max_idle_connections(2).build().new_agent(),
            servers: servers.to_vec(),
            key: encoded(&format!("/tollgate/cac/{cluster}/leader")),
            value: encoded(value),
            length,
            lease: None,
            until: Time::default(),
            clock: Clock::new(),
            requests: 0,
            trouble: None,
        }
    }

    fn ask(&mut self, action: Action) -> Option<Event> {
        // A tenth shorter than the machine waits, for the way of question and answer.
        self.until = self.clock.now() + self.length * 3 / 10;
        let (requests, attempt) = match action {
            Action::Acquire { attempt } => (TO_ACQUIRE, attempt),
            Action::Renew { attempt } => (1, attempt),
            Action::Release => (1, 0),
            Action::Lead { .. } | Action::Extend { .. } | Action::StepDown | Action::Store { .. } => return None,
        };
        self.requests = requests;
        let done = match action {
            Action::Acquire { .. } => self.acquire().map(|epoch| match epoch {
                Some(epoch) => Some(Event::Acquired { attempt, epoch }),
                None => Some(Event::Held { attempt }),
            }),
            Action::Renew { .. } => self.renew().map(|goes_on| match goes_on {
                true => Some(Event::Renewed { attempt }),
                false => Some(Event::Gone { attempt }),
            }),
            _ => self.give_back().map(|()| None),
        };
        match done {
            Ok(answer) => {
                // Unless there was nothing to ask.
                if self.requests < requests {
                    self.trouble = None;
                }
                answer
            }
            Err(error) => {
                self.tell(format!("{error:#}"));
                (action != Action::Release).then_some(Event::Failed { attempt })
            }
        }
    }

    /// Why etcd does not answer: once, until that changes.
    fn tell(&mut self, trouble: String) {
        if self.trouble.as_ref() != Some(&trouble) {
            tracing::warn!("etcd does not answer as it should: {trouble}");
            self.trouble = Some(trouble);
        }
    }

    /// Gives back what was asked for last. An attempt whose answer was late or lost may have the key.
    fn give_back(&mut self) -> Result<()> {
        if let Some(lease) = &self.lease {
            let body = json!({ "ID": lease });
            self.post("lease/revoke", &body)?;
            self.lease = None;
        }
        Ok(())
    }

    /// The revision of the key if it is ours since now; `None` while it is somebody's.
    fn acquire(&mut self) -> Result<Option<u64>> {
        self.give_back()?;
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
        // Somebody was faster. The next attempt gives the lease back.
        Ok(None)
    }

    /// Whether the lease goes on.
    fn renew(&mut self) -> Result<bool> {
        let Some(lease) = self.lease.clone() else { return Ok(false) };
        let renewed = self.post("lease/keepalive", &json!({ "ID": lease }))?;
        Ok(number(&renewed["result"]["TTL"]).is_some_and(|seconds| seconds > 0))
    }

    /// One request to the first server that answers. A server that is gone leaves time for the next one, and for the requests to come.
    fn post(&mut self, path: &str, body: &Value) -> Result<Value> {
        self.requests = self.requests.saturating_sub(1);
        let body = body.to_string();
        let mut troubles = Vec::new();
        for place in 0..self.servers.len() {
            let Some(&server) = self.servers.get(place) else { break };
            let shares = self.requests + (self.servers.len() - place) as u32;
            let patience = self.until.since(self.clock.now()) / shares;
            match self.post_to(server, path, &body, patience) {
                Ok(answer) => {
                    self.servers.swap(0, place);
                    return Ok(answer);
                }
                Err(error) => troubles.push(format!("{server}: {error:#}")),
            }
        }
        // In an order that does not depend on who answered last: what is said twice is not logged twice.
        troubles.sort();
        bail!("{}", troubles.join("; "))
    }

    fn post_to(&self, server: SocketAddr, path: &str, body: &str, patience: Duration) -> Result<Value> {
        ensure!(!patience.is_zero(), "no time is left to ask");
        let request = self.agent.post(format!("http://{server}/v3/{path}")).config().timeout_global(Some(patience)).build();
        let mut response = request.header("Content-Type", "application/json").send(body)?;
        let text = response.body_mut().read_to_string()?;
        // Renewals come as a stream, of which the first line is the answer.
        let answer = serde_json::from_str::<Value>(text.lines().next().unwrap_or(""));
        let is_gone = path == "lease/revoke" && answer.as_ref().is_ok_and(|answer| answer["code"] == NOT_FOUND);
        if !response.status().is_success() && !is_gone {
            let said: String = text.trim().chars().take(SAID_MAX).collect();
            bail!("{}: {said}", response.status());
        }
        answer.context("no answer of etcd")
    }
}

/// etcd writes 64-bit numbers as text.
fn number(value: &Value) -> Option<u64> {
    value.as_str().and_then(|text| text.parse().ok()).or_else(|| value.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// What is asked of etcd: where, and with which body.
    fn asked(stream: &TcpStream) -> Option<(String, Value)> {
        let mut reader = BufReader::new(stream);
        let (mut first, mut length) = (String::new(), 0);
        reader.read_line(&mut first).ok()?;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            match line.trim().to_ascii_lowercase().split_once(": ") {
                Some(("content-length", octets)) => length = octets.parse().ok()?,
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        Some((first.split(' ').nth(1)?.to_owned(), serde_json::from_slice(&body).ok()?))
    }

    /// Something that speaks like etcd, on a port of its own: `answer` gives status and body, or nothing at all.
    fn etcd(mut answer: impl FnMut(&str, &Value) -> Option<(u16, Value)> + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the process of the test.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                if let Some((path, body)) = asked(&stream)
                    && let Some((status, body)) = answer(&path, &body)
                {
                    let body = body.to_string();
                    let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                    let _ = stream.write_all((head + &body).as_bytes());
                }
            }
        });
        address
    }

    fn client(server: SocketAddr) -> Client {
        Client::new(&[server], "test", "here", Duration::from_secs(60))
    }

    /// The answer that it has the key is lost: nobody else holds it, so the next attempt must get it, not find itself in the way.
    #[test]
    fn a_key_whose_answer_was_lost_is_no_obstacle() {
        let (mut leases, mut key, mut revision) = (0, None, 7);
        let server = etcd(move |path, body| match path {
            "/v3/kv/range" => Some((200, json!({ "count": if key.is_some() { "1" } else { "0" } }))),
            "/v3/lease/grant" => {
                leases += 1;
                Some((200, json!({ "ID": leases.to_string(), "TTL": "60" })))
            }
            "/v3/lease/revoke" => {
                key = key.take().filter(|held| *held != body["ID"]);
                Some((200, json!({})))
            }
            _ => {
                key = Some(body["success"][0]["request_put"]["lease"].clone());
                revision += 1;
                (revision > 8).then(|| (200, json!({ "succeeded": true, "header": { "revision": revision.to_string() } })))
            }
        });
        let mut client = client(server);
        assert_eq!(client.ask(Action::Acquire { attempt: 1 }), Some(Event::Failed { attempt: 1 }));
        assert_eq!(client.ask(Action::Acquire { attempt: 2 }), Some(Event::Acquired { attempt: 2, epoch: 9 }));
        assert_eq!(client.trouble, None);
    }

    /// A lease that etcd knows no more is given back; whatever else it says leaves the lease to be given back.
    #[test]
    fn a_lease_that_ran_out_is_no_obstacle() {
        let mut times = 0;
        let server = etcd(move |path, _| match path {
            "/v3/lease/revoke" => {
                times += 1;
                let (status, code) = if times == 1 { (503, 14) } else { (404, NOT_FOUND) };
                Some((status, json!({ "code": code, "message": "etcdserver: requested lease not found" })))
            }
            _ => Some((200, json!({ "count": "1" }))),
        });
        let mut client = client(server);
        client.lease = Some("1".into());
        assert_eq!(client.ask(Action::Acquire { attempt: 1 }), Some(Event::Failed { attempt: 1 }));
        assert_eq!(client.lease.as_deref(), Some("1"));
        assert_eq!(client.ask(Action::Acquire { attempt: 2 }), Some(Event::Held { attempt: 2 }));
        assert_eq!(client.lease, None);
    }

    /// Operators can tell a server that wants a password from one that is no etcd and from one that is not there.
    #[test]
    fn what_is_wrong_with_etcd_is_told_in_its_words() {
        let wants_user = etcd(|_, _| Some((400, json!({ "code": 3, "message": "etcdserver: user name is empty" }))));
        let is_other = etcd(|_, _| Some((404, json!("404 page not found"))));
        let is_away = TcpListener::bind("127.0.0.97:0").unwrap().local_addr().unwrap();
        for (server, words) in [(wants_user, "user name is empty"), (is_other, "404 page not found"), (is_away, "refused")] {
            let mut client = client(server);
            assert_eq!(client.ask(Action::Renew { attempt: 1 }), Some(Event::Gone { attempt: 1 }));
            assert_eq!(client.ask(Action::Acquire { attempt: 2 }), Some(Event::Failed { attempt: 2 }));
            let trouble = client.trouble.unwrap();
            assert!(trouble.contains(words) && trouble.contains(&server.to_string()), "{trouble}");
        }
    }
}
