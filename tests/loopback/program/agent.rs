//! A call agent that sends what a test says and keeps what comes.

use super::gateway::{Gateway, SOON, Watch, eventually};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// One message of the gateway.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The return code of a response; `None` for a command.
    pub code: Option<u16>,
    /// The verb of a command.
    pub verb: String,
    pub id: u32,
    /// The endpoint name of a command.
    pub name: String,
    /// All lines.
    pub lines: Vec<String>,
}

impl Message {
    fn read(text: &str) -> Message {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut words = lines[0].split(' ');
        let first = words.next().unwrap();
        let id = words.next().and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no message: {text:?}"));
        let code = first.parse().ok();
        let name = words.next().filter(|_| code.is_none()).unwrap_or_default().to_owned();
        Message { code, verb: if code.is_none() { first.into() } else { String::new() }, id, name, lines }
    }

    /// Every message of a datagram, split at its lines with a dot.
    pub fn all(datagram: &[u8]) -> Vec<Message> {
        let text = std::str::from_utf8(datagram).unwrap().replace("\r\n", "\n");
        text.split("\n.\n").filter(|text| !text.is_empty()).map(Message::read).collect()
    }

    /// The value of the first parameter with this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lines.iter().skip(1).find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

/// The agent.
pub struct Agent {
    pub socket: UdpSocket,
    pub gateway: SocketAddr,
    /// Whether commands of the gateway are answered.
    pub answers: bool,
    /// What came, in order; repeats of commands once.
    pub mail: Vec<Message>,
}

/// Ids are different in all of the process: no test meets the repeats of another.
static NEXT_ID: AtomicU32 = AtomicU32::new(1000);

impl Agent {
    /// The agent of this gateway, which has been told of the restart.
    pub fn of(gateway: &Gateway) -> Agent {
        let mut agent = Agent::silent(gateway);
        agent.answers = true;
        let restart = agent.expect("RSIP", SOON);
        assert_eq!((restart.get("RM"), &*restart.name), (Some("restart"), "*@tgw.example.net"));
        eventually("the restart is told", SOON, || {
            let rows = gateway.rows(&["agents"]);
            rows[0]["restarts"].as_array().unwrap().iter().all(|restart| restart["state"] == "told").then_some(())
        });
        agent.mail.clear();
        agent
    }

    /// The agent of this gateway; it does not answer.
    pub fn silent(gateway: &Gateway) -> Agent {
        Agent::at(gateway.tuning.addresses.agent(), gateway.tuning.addresses.gateway())
    }

    /// At an address of its own.
    pub fn at(address: SocketAddr, gateway: SocketAddr) -> Agent {
        let socket = UdpSocket::bind(address).unwrap();
        Agent { socket, gateway, answers: false, mail: Vec::new() }
    }

    pub fn send(&self, text: &str) {
        self.socket.send_to(text.as_bytes(), self.gateway).unwrap();
    }

    /// An id nobody used.
    pub fn id() -> u32 {
        NEXT_ID.fetch_add(1, Ordering::Relaxed)
    }

    /// The text of a command.
    pub fn text(verb: &str, id: u32, name: &str, parameters: &[&str]) -> String {
        let parameters: String = parameters.iter().map(|parameter| format!("{parameter}\r\n")).collect();
        format!("{verb} {id} {name}@tgw.example.net MGCP 1.0\r\n{parameters}")
    }

    /// Sends a command; its id.
    pub fn command(&self, verb: &str, name: &str, parameters: &[&str]) -> u32 {
        let id = Agent::id();
        self.send(&Agent::text(verb, id, name, parameters));
        id
    }

    /// Sends a command and waits for its final response.
    pub fn ask(&mut self, verb: &str, name: &str, parameters: &[&str]) -> Message {
        let id = self.command(verb, name, parameters);
        self.final_of(id, SOON)
    }

    /// Creates a connection; its id.
    pub fn create(&mut self, name: &str) -> String {
        let response = self.ask("CRCX", name, &["C: A1", "M: recvonly"]);
        assert_eq!(response.code, Some(200), "{name}: {response:?}");
        response.get("I").unwrap().to_owned()
    }

    /// Waits for the final response to a command.
    pub fn final_of(&mut self, id: u32, within: Duration) -> Message {
        let is_final = |message: &Message| message.id == id && message.code.is_some_and(|code| code >= 200);
        self.wait(&format!("a final response to {id}"), within, is_final)
    }

    /// Waits for a command of the gateway.
    pub fn expect(&mut self, verb: &str, within: Duration) -> Message {
        self.wait(verb, within, |message| message.verb == verb)
    }

    /// The first RestartInProgress of this method, whatever else comes before it.
    pub fn expect_restart(&mut self, method: &str, within: Duration) -> Message {
        self.wait(&format!("RSIP of {method}"), within, |message| message.verb == "RSIP" && message.get("RM") == Some(method))
    }

    fn wait(&mut self, what: &str, within: Duration, is: impl Fn(&Message) -> bool) -> Message {
        let watch = Watch::start();
        loop {
            if let Some(place) = self.mail.iter().position(&is) {
                return self.mail[place].clone();
            }
            let left = within.checked_sub(watch.elapsed()).unwrap_or_else(|| panic!("no {what} within {within:?}: {:?}", self.mail));
            self.receive(left);
        }
    }

    /// Takes what comes for so long.
    pub fn listen(&mut self, time: Duration) {
        let watch = Watch::start();
        while let Some(left) = time.checked_sub(watch.elapsed()) {
            self.receive(left);
        }
    }

    /// The commands of the gateway, each once.
    pub fn commands(&self, verb: &str) -> Vec<Message> {
        self.mail.iter().filter(|message| message.verb == verb).cloned().collect()
    }

    /// One datagram, if one comes.
    fn receive(&mut self, within: Duration) {
        let mut datagram = [0; 65_536];
        self.socket.set_read_timeout(Some(within.max(Duration::from_millis(1)))).unwrap();
        let (length, from) = match self.socket.recv_from(&mut datagram) {
            Ok(received) => received,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused) => return,
            Err(error) => panic!("agent: {error}"),
        };
        for message in Message::all(&datagram[..length]) {
            let is_command = message.code.is_none();
            if is_command && self.answers {
                self.socket.send_to(format!("200 {} OK\r\n", message.id).as_bytes(), from).unwrap();
            }
            if !(is_command && self.mail.iter().any(|seen| seen.code.is_none() && seen.id == message.id)) {
                self.mail.push(message);
            }
        }
    }
}
