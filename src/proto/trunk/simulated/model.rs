//! A simulated card with everything done the plain way, each packet by itself; the model of random tests. It knows the lines and ports
//! of the card they use.

use super::tests::{MS, T3, at};
use crate::proto::base::EndpointIndex;
use crate::proto::trunk::card::{Answer, CardFault, Indication, Media, MediaAddress};
use crate::proto::trunk::{Facility, SpanIndex};

/// One direction, packet by packet.
#[derive(Clone, Default)]
struct NaiveStream {
    /// When the next packet is complete, and its period and size.
    next: Option<(u64, u16, u16)>,
    packets: u32,
    octets: u32,
    lost: u32,
    phase: u32,
}

impl NaiveStream {
    fn advance(&mut self, now: u64, loss: u32) {
        while let Some((next, period, bytes)) = self.next
            && next <= now
        {
            self.next = Some((next + u64::from(period) * MS, period, bytes));
            self.phase += loss.min(1_000_000);
            if self.phase >= 1_000_000 {
                self.phase -= 1_000_000;
                self.lost += 1;
            } else {
                self.packets += 1;
                self.octets += u32::from(bytes);
            }
        }
    }

    fn set(&mut self, now: u64, runs: bool, media: &Media) {
        self.next = match self.next {
            _ if !runs || media.period_ms == 0 => None,
            Some((next, period, _)) if period == media.period_ms => Some((next, period, media.packet_bytes)),
            _ => Some((now + u64::from(media.period_ms) * MS, media.period_ms, media.packet_bytes)),
        };
    }
}

/// When (none: never), the number of the order, and the answer; the media is that of a modification.
type Pending = (Option<u64>, u32, Result<Option<Media>, CardFault>);

#[derive(Clone)]
pub(super) struct NaiveConnection {
    pub(super) endpoint: u32,
    port: u16,
    opened: bool,
    media: Media,
    sent: NaiveStream,
    received: NaiveStream,
    /// The answer to come.
    pending: Option<Pending>,
}

/// The whole card with everything done the plain way.
pub(super) struct Naive {
    now: u64,
    pub(super) connections: Vec<Option<NaiveConnection>>,
    ports: Vec<u16>,
    pub(super) failed: Vec<Facility>,
    pub(super) delay: u32,
    pub(super) refuse: u32,
    pub(super) loss: u32,
    orders: u32,
}

impl Naive {
    pub(super) fn new() -> Naive {
        let (connections, ports, failed) = (vec![None; 4], vec![4000, 4002, 4004], Vec::new());
        Naive { now: 0, connections, ports, failed, delay: 0, refuse: 0, loss: 0, orders: 0 }
    }

    pub(super) fn advance(&mut self, now: u64) {
        self.now = now;
        for connection in self.connections.iter_mut().flatten() {
            connection.sent.advance(now, 0);
            connection.received.advance(now, if connection.media.inside { 0 } else { self.loss });
        }
    }

    fn broken(&self, endpoint: u32) -> bool {
        endpoint >= 48 || self.failed.iter().any(|&part| part == T3 || part == Facility::Span(SpanIndex((endpoint / 24) as u16)))
    }

    pub(super) fn settle(&mut self) {
        for slot in 0..self.connections.len() {
            let broken = self.connections[slot].as_ref().is_some_and(|connection| self.broken(connection.endpoint));
            let Some(connection) = &mut self.connections[slot] else { continue };
            let media = connection.media;
            let runs = connection.opened && !broken && (media.inside || media.remote.is_some());
            connection.sent.set(self.now, runs && media.mode.sends(), &media);
            connection.received.set(self.now, runs && media.mode.receives(), &media);
        }
    }

    fn accept(&mut self, endpoint: u32) -> Result<(), CardFault> {
        if self.broken(endpoint) {
            return Err(CardFault::Broken);
        }
        if self.refuse > 0 {
            self.refuse -= 1;
            return Err(CardFault::Exhausted);
        }
        Ok(())
    }

    fn pending(&mut self, what: Result<Option<Media>, CardFault>) -> Pending {
        self.orders += 1;
        let due = (self.delay != u32::MAX).then(|| self.now + u64::from(self.delay) * MS);
        (due, self.orders, what)
    }

    pub(super) fn open(&mut self, endpoint: u32, slot: usize, media: Media, phase: u32) -> Answer<MediaAddress> {
        match self.connections.get(slot) {
            None => return Answer::Refused(CardFault::Exhausted),
            Some(Some(_)) => return Answer::Refused(CardFault::Broken),
            Some(None) => {}
        }
        let mut result = self.accept(endpoint).map(|()| 0);
        if result.is_ok() && !media.inside {
            result = if self.ports.is_empty() { Err(CardFault::Exhausted) } else { Ok(self.ports.remove(0)) };
        }
        let later = self.delay > 0;
        if let (Err(fault), false) = (result, later) {
            return Answer::Refused(fault);
        }
        let pending = later.then(|| self.pending(result.map(|_| None)));
        let received = NaiveStream { phase, ..NaiveStream::default() };
        let port = result.unwrap_or(0);
        self.connections[slot] =
            Some(NaiveConnection { endpoint, port, opened: !later, media, sent: NaiveStream::default(), received, pending });
        self.settle();
        if later { Answer::Later } else { Answer::Now(at(port)) }
    }

    pub(super) fn modify(&mut self, endpoint: u32, slot: usize, media: Media) -> Answer<MediaAddress> {
        let Some(Some(connection)) = self.connections.get(slot) else { return Answer::Refused(CardFault::Broken) };
        if !connection.opened || connection.endpoint != endpoint {
            return Answer::Refused(CardFault::Broken);
        }
        let no_port = connection.port == 0 && !media.inside;
        let mut port = connection.port;
        let result = match self.accept(endpoint) {
            Ok(()) if no_port && self.ports.is_empty() => Err(CardFault::Exhausted),
            Ok(()) => {
                port = if no_port { self.ports.remove(0) } else { port };
                Ok(Some(media))
            }
            Err(fault) => Err(fault),
        };
        let pending = (self.delay > 0).then(|| self.pending(result));
        let connection = self.connections[slot].as_mut().unwrap();
        connection.pending = pending;
        connection.port = port;
        if connection.pending.is_some() {
            return Answer::Later;
        }
        match result {
            Ok(_) => {
                connection.media = media;
                self.settle();
                Answer::Now(at(port))
            }
            Err(fault) => Answer::Refused(fault),
        }
    }

    pub(super) fn counts(&self, slot: usize) -> [u32; 5] {
        let Some(Some(NaiveConnection { sent, received, .. })) = self.connections.get(slot) else { return [0; 5] };
        [sent.packets, sent.octets, received.packets, received.octets, received.lost]
    }

    pub(super) fn close(&mut self, endpoint: u32, slot: usize) -> [u32; 5] {
        if !matches!(self.connections.get(slot), Some(Some(connection)) if connection.endpoint == endpoint) {
            return [0; 5];
        }
        let counts = self.counts(slot);
        let port = self.connections[slot].take().unwrap().port;
        self.ports.extend((port != 0).then_some(port));
        counts
    }

    pub(super) fn next(&self) -> Option<(u64, u32, usize)> {
        let slots = self.connections.iter().enumerate();
        slots.filter_map(|(slot, c)| c.as_ref()?.pending.and_then(|(due, order, _)| Some((due?, order, slot)))).min()
    }

    pub(super) fn poll(&mut self) -> Option<Indication> {
        let (_, _, slot) = self.next().filter(|&(due, ..)| due <= self.now)?;
        let connection = self.connections[slot].as_mut().unwrap();
        let (_, _, result) = connection.pending.take().unwrap();
        let (endpoint, port) = (EndpointIndex(connection.endpoint), connection.port);
        let indication = if connection.opened {
            if let Ok(Some(media)) = result {
                connection.media = media;
            }
            Indication::Modified { endpoint, connection: slot as u32, result: result.map(|_| at(port)) }
        } else {
            connection.opened = true;
            if result.is_err() {
                self.connections[slot] = None;
            }
            Indication::Opened { endpoint, connection: slot as u32, result: result.map(|_| at(port)) }
        };
        self.settle();
        Some(indication)
    }
}
