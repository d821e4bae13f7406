//! The call agent's desk: commands to several gateways from one socket, and what comes back.

use crate::load::sender::is_unreachable;
use crate::load::socket::LoadSocket;
use crate::proto::agent::Timers;
use crate::proto::agent::answers::Answers;
use crate::proto::agent::confirm::Confirmations;
use crate::proto::agent::transactions::{Ended, Matched, Request, Transactions};
use crate::proto::base::{Rng, Time};
use crate::proto::codec::mgcp::{Code, Command, ConnectionParameters, Response, Verb};
use crate::proto::codec::peek::{self, Peek};
use std::io;
use std::net::SocketAddr;

/// What came of a command, or by itself.
#[derive(Clone, Debug)]
pub enum News {
    /// The final response to what `token` asked.
    Final(u32, Answer),
    /// Nobody answered.
    Lost(u32),
    /// A gateway observed events at an endpoint, named as it names it.
    Observed { gateway: usize, name: String, events: Vec<String> },
}

/// A final response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub verb: Option<Verb>,
    pub code: u16,
    pub connection: Option<String>,
    pub description: Option<String>,
    pub parameters: Option<ConnectionParameters>,
}

/// A gateway, as the agent sees it.
struct Gateway {
    address: SocketAddr,
    /// Whether anything came from it.
    is_heard: bool,
    transactions: Transactions,
    confirmations: Confirmations,
}

/// The desk.
pub struct Desk {
    socket: LoadSocket,
    gateways: Vec<Gateway>,
    answers: Answers,
    timers: Timers,
    /// What the network said last of an address that cannot be reached.
    unreachable: Option<io::ErrorKind>,
    /// Restarts that gateways announced.
    pub restarts: u64,
}

impl Desk {
    /// At `listen`, for these gateways, with at most so many commands outstanding at each.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub fn open(listen: SocketAddr, gateways: &[SocketAddr], limit: usize, rng: &mut Rng) -> io::Result<Desk> {
        let timers = Timers::default();
        let gateway = |address: &SocketAddr| Gateway {
            address: *address,
            is_heard: false,
            transactions: Transactions::new(timers, vec![*address], limit, 1, rng),
            confirmations: Confirmations::new(),
        };
        let gateways = gateways.iter().map(gateway).collect();
        Ok(Desk { socket: LoadSocket::bind(listen)?, gateways, answers: Answers::new(), timers, unreachable: None, restarts: 0 })
    }

    /// Sends a command; what becomes of it is told to `token`. False when there is no room for another one.
    pub fn send(&mut self, now: Time, gateway: usize, token: u32, verb: Verb, endpoint: &str, parameters: &str) -> bool {
        let Some(Gateway { transactions, confirmations, .. }) = self.gateways.get_mut(gateway) else { return false };
        let parameters = &[parameters.as_bytes()];
        let request = Request { verb, token, intended: Time::NEVER, endpoint: endpoint.as_bytes(), parameters };
        transactions.start(now, &request, confirmations)
    }

    /// Takes what has come, sends what is due; tells what there is to tell.
    ///
    /// # Errors
    /// What the network said.
    pub fn work(&mut self, now: Time, news: &mut Vec<News>) -> io::Result<()> {
        let Desk { socket, gateways, answers, timers, unreachable, restarts } = self;
        let mut desk = Taking { gateways, answers, timers, restarts, news };
        match socket.receive(|from, datagram| desk.take(now, from, datagram)) {
            Ok(_) => {}
            // A gateway that is not there yet: the command is repeated.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) if is_unreachable(&error) => {
                *unreachable = Some(error.kind());
            }
            Err(error) => return Err(error),
        }
        let mut out = |to: SocketAddr, bytes: &[u8]| {
            // What the kernel refuses is repeated, as what is lost is.
            if let Err(error) = socket.send_run(to, bytes, bytes.len())
                && is_unreachable(&error)
            {
                *unreachable = Some(error.kind());
            }
        };
        answers.poll(&mut out);
        for gateway in gateways {
            gateway.transactions.poll(now, &mut out, &mut |ended: Ended| news.push(News::Lost(ended.token)));
        }
        Ok(())
    }

    /// A gateway that nothing has come from, in words, and what the network says of it.
    pub fn silent(&self) -> Option<String> {
        let gateway = self.gateways.iter().find(|gateway| !gateway.is_heard)?;
        let why = match self.unreachable {
            None => "",
            Some(io::ErrorKind::ConnectionRefused) => ": connection refused (ECONNREFUSED), no gateway listens there",
            Some(_) => ": the network says it cannot be reached",
        };
        Some(format!("{}{why}", gateway.address))
    }

    /// When it has something to send.
    pub fn deadline(&self) -> Time {
        self.gateways.iter().map(|gateway| gateway.transactions.deadline()).min().unwrap_or(Time::NEVER)
    }

    /// Commands that were repeated.
    pub fn repeats(&self) -> u64 {
        self.gateways.iter().map(|gateway| gateway.transactions.repeats()).sum()
    }
}

/// The parts that take a datagram.
struct Taking<'a> {
    gateways: &'a mut [Gateway],
    answers: &'a mut Answers,
    timers: &'a Timers,
    restarts: &'a mut u64,
    news: &'a mut Vec<News>,
}

impl Taking<'_> {
    fn take(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) {
        let exact = self.gateways.iter().position(|gateway| gateway.address == from);
        let Some(place) = exact.or_else(|| self.gateways.iter().position(|gateway| gateway.address.ip() == from.ip())) else { return };
        if let Some(gateway) = self.gateways.get_mut(place) {
            gateway.is_heard = true;
        }
        for (range, peek) in peek::split(datagram) {
            let Some(message) = datagram.get(range) else { continue };
            match peek {
                Peek::Response { code, id } => self.response(now, place, (code, id), message, from),
                Peek::Command(line) => {
                    if self.answers.command(now, self.timers.t_hist, from, line.verb, line.id) {
                        self.command(place, line.verb, message);
                    }
                }
                Peek::Unreadable => {}
            }
        }
        self.answers.close();
    }

    fn response(&mut self, now: Time, place: usize, (code, id): (u16, u32), message: &[u8], from: SocketAddr) {
        let (Some(gateway), Ok(response)) = (self.gateways.get_mut(place), Response::parse(message)) else { return };
        if code >= 200 && response.asks_confirmation() {
            self.answers.acknowledge(from, id);
        }
        if let Matched::Final(ended) = gateway.transactions.handle_response(now, code, id, message) {
            gateway.confirmations.add(now, id);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let answer = Answer {
                verb: Some(ended.verb),
                code,
                connection: response.get(Code::I).map(text),
                description: response.descriptions[0].map(text),
                parameters: response.connection_parameters(),
            };
            self.news.push(News::Final(ended.token, answer));
        }
    }

    fn command(&mut self, gateway: usize, verb: Option<Verb>, message: &[u8]) {
        *self.restarts += u64::from(verb == Some(Verb::Rsip));
        let Ok(command) = Command::parse_at_agent(message) else { return };
        let Ok(Some(observed)) = command.observed_events() else { return };
        let name = String::from_utf8_lossy(command.endpoint.local).to_ascii_lowercase();
        let events = observed.iter().map(|event| String::from_utf8_lossy(event.raw).to_ascii_lowercase()).collect();
        self.news.push(News::Observed { gateway, name, events });
    }
}
