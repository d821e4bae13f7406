//! An agent that sets calls up and takes them down: half of the requests CRCX with a session description of 300 bytes, half DLCX.

use std::collections::VecDeque;

use tollgate::proto::base::Rng;
use tollgate::proto::core::exercise::DOMAIN;

use super::harness::Agent;

/// Calls up above which they are taken down again.
const UP: usize = 64;
/// Requests that can be told apart at a time; more than are ever under way.
const OUTSTANDING: usize = 512;
/// All identifiers have nine digits, so that all requests of a kind are equally long.
const FIRST_ID: u64 = 100_000_000;
/// Where the digits are in a response and in a request.
const ID_IN_RESPONSE: usize = 4;
pub const ID_IN_REQUEST: usize = 5;
pub const ID_DIGITS: usize = 9;

const SDP: &str = include_str!("offer.sdp");

/// A request with places to fill in.
struct Template {
    text: Vec<u8>,
    name: usize,
    call: usize,
    connection: usize,
}

/// What a request was.
#[derive(Clone, Copy)]
enum Asked {
    Nothing,
    Create(usize),
    Delete(usize),
}

/// The agent.
pub struct Calls {
    create: Template,
    delete: Template,
    names: Vec<[u8; 18]>,
    /// Endpoints without a call, in random order.
    free: VecDeque<usize>,
    up: VecDeque<(usize, [u8; 8])>,
    asked: Vec<Asked>,
    next: u64,
}

impl Calls {
    /// An agent of the endpoints of one T3 whose names are equally long.
    pub fn new(seed: u64) -> Calls {
        let mut rng = Rng::new(seed);
        let names: Vec<[u8; 18]> = (10..=28)
            .flat_map(|span| (10..=24).map(move |channel| format!("ds/ds3-1/ds1-{span}/{channel}")))
            .map(|name| name.as_bytes().try_into().expect("18 bytes"))
            .collect();
        let mut order: Vec<usize> = (0..names.len()).collect();
        (1..order.len()).rev().for_each(|last| order.swap(last, rng.below(last as u64 + 1) as usize));
        let line = |verb: &str| format!("{verb} 000000000 ds/ds3-1/ds1-00/00@{DOMAIN} MGCP 1.0\r\nC: A3C47F2100\r\n");
        let create = format!("{}L: p:20, a:PCMU;PCMA;G729, e:on, s:off\r\nM: sendrecv\r\n\r\n{SDP}", line("CRCX"));
        let delete = format!("{}I: 00000000\r\n", line("DLCX"));
        Calls {
            create: Template::new(create),
            delete: Template::new(delete),
            names,
            free: order.into(),
            up: VecDeque::new(),
            asked: vec![Asked::Nothing; OUTSTANDING],
            next: rng.below(800_000_000),
        }
    }
}

impl Template {
    fn new(text: String) -> Template {
        let name = text.find("ds/").expect("a name");
        let call = text.find("2100\r\n").expect("a call") - 2;
        let connection = text.find("I: ").map_or(0, |at| at + 3);
        Template { text: text.into_bytes(), name, call, connection }
    }

    /// Appends the request and gives its text, to fill in what only one of the kinds has.
    fn write<'a>(&self, into: &'a mut Vec<u8>, id: u64, name: &[u8; 18]) -> &'a mut [u8] {
        let start = into.len();
        into.extend_from_slice(&self.text);
        let request = &mut into[start..];
        let mut digits = FIRST_ID + id;
        for digit in request[ID_IN_REQUEST..ID_IN_REQUEST + ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (digits % 10) as u8;
            digits /= 10;
        }
        request[self.name..self.name + name.len()].copy_from_slice(name);
        // The numbers of span and channel make the call.
        request[self.call..self.call + 2].copy_from_slice(&name[13..15]);
        request[self.call + 2..self.call + 4].copy_from_slice(&name[16..18]);
        request
    }
}

impl Agent for Calls {
    fn requests(&mut self, count: usize, into: &mut Vec<u8>) -> usize {
        let deletes = self.up.len() >= count && (self.up.len() >= UP || self.free.len() < count);
        if !deletes && self.free.len() < count {
            (0..OUTSTANDING).for_each(|place| self.forget(place));
        }
        for _ in 0..count {
            let id = self.next;
            self.next = (self.next + 1) % 900_000_000;
            let place = id as usize % OUTSTANDING;
            self.forget(place);
            if deletes {
                let (endpoint, connection) = self.up.pop_front().expect("enough calls are up");
                let request = self.delete.write(into, id, &self.names[endpoint]);
                request[self.delete.connection..self.delete.connection + 8].copy_from_slice(&connection);
                self.asked[place] = Asked::Delete(endpoint);
            } else {
                let endpoint = self.free.pop_front().expect("enough endpoints are free");
                self.create.write(into, id, &self.names[endpoint]);
                self.asked[place] = Asked::Create(endpoint);
            }
        }
        if deletes { self.delete.text.len() } else { self.create.text.len() }
    }

    fn response(&mut self, response: &[u8]) -> bool {
        let digits = response.get(ID_IN_RESPONSE..ID_IN_RESPONSE + ID_DIGITS).unwrap_or_default();
        let id = digits.iter().fold(0, |id, &digit| id * 10 + u64::from(digit.wrapping_sub(b'0'))).wrapping_sub(FIRST_ID);
        let place = id as usize % OUTSTANDING;
        match (self.asked[place], connection(response)) {
            (Asked::Create(endpoint), Some(connection)) if response.starts_with(b"200 ") => {
                self.asked[place] = Asked::Nothing;
                self.up.push_back((endpoint, connection));
                true
            }
            (Asked::Delete(_), _) if response.starts_with(b"250 ") => {
                self.forget(place);
                true
            }
            _ => {
                self.forget(place);
                false
            }
        }
    }
}

impl Calls {
    /// A request is over, or lost; its endpoint has no call.
    fn forget(&mut self, place: usize) {
        if let Asked::Create(endpoint) | Asked::Delete(endpoint) = std::mem::replace(&mut self.asked[place], Asked::Nothing) {
            self.free.push_back(endpoint);
        }
    }
}

/// The connection identifier of a response to a CreateConnection.
fn connection(response: &[u8]) -> Option<[u8; 8]> {
    let at = ID_IN_RESPONSE + ID_DIGITS + b" OK\r\nI: ".len();
    response.get(at..at + 8)?.try_into().ok()
}
