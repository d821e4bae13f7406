//! What a core carries of the card of another one.

use super::super::card::{Answer, Card, CardFault, EventText, Indication, MediaAddress};
use super::super::{Defect, Facility, Violations};
use super::{BEHIND, PartAnswer, PartOrder, Piece};
use crate::proto::base::Time;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Answers that found no room from which on events are lost.
const ANSWERS_MAX: usize = 4096;
/// What one call of [`Part::poll`] takes from the card.
const POLL_MAX: usize = 256;

/// See the page of [`super`].
pub struct Part {
    card: Box<dyn Card + Send>,
    towards: Option<SocketAddr>,
    text: EventText,
    /// Which of those that had its place each connection is, and whether it is open or opening.
    pub(super) connections: Vec<(u32, bool)>,
    answers: VecDeque<PartAnswer>,
}

/// What the card of a part says that is for the core it is on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// [`Indication::Defect`].
    Defect(Facility, Defect, bool, bool),
    /// [`Indication::Violations`].
    Violations(Facility, Violations),
    /// An event that there was no room for.
    Lost,
}

impl Part {
    /// `card` has so many connections.
    pub fn new(card: Box<dyn Card + Send>, connections: u32) -> Part {
        let connections = vec![(0, false); connections as usize];
        Part { card, towards: None, text: EventText::NONE, connections, answers: VecDeque::with_capacity(BEHIND) }
    }

    /// The card.
    pub fn card(&self) -> &dyn Card {
        self.card.as_ref()
    }

    /// The card, to order.
    pub fn card_mut(&mut self) -> &mut dyn Card {
        self.card.as_mut()
    }

    /// Does what was ordered.
    pub fn handle(&mut self, now: Time, order: PartOrder) {
        match order {
            PartOrder::Text(piece) => self.text.push(piece.text()),
            PartOrder::Towards(to) => self.towards = Some(to),
            PartOrder::Open { endpoint, connection, generation, media } => {
                let media = media.whole(self.towards.take());
                let Some(place) = self.connections.get_mut(connection as usize) else { return };
                let result = at_once(self.card.open(now, endpoint, connection, &media));
                *place = (generation, !matches!(result, Some(Err(_))));
                if let Some(result) = result {
                    self.answers.push_back(PartAnswer::Opened { connection, generation, result });
                }
            }
            PartOrder::Modify { endpoint, connection, media } => {
                let media = media.whole(self.towards.take());
                // Whoever ordered it has not yet heard that there is none.
                if !self.is_open(connection) {
                    return;
                }
                if let Some(result) = at_once(self.card.modify(now, endpoint, connection, &media)) {
                    self.answers.push_back(PartAnswer::Modified { connection, generation: self.generation(connection), result });
                }
            }
            PartOrder::Close { endpoint, connection } => {
                if self.is_open(connection) {
                    self.note_ended(connection);
                    self.card.close(now, endpoint, connection);
                }
            }
            PartOrder::Report { connection, ticket } => {
                let report = self.card.report(now, connection);
                let generation = self.generation(connection);
                // Mostly there is nothing to tell.
                if report.playout() != [0; 3] {
                    self.answers.push_back(PartAnswer::Playout { connection, generation, counts: report.playout() });
                }
                self.answers.push_back(PartAnswer::Report { connection, generation, ticket, counts: report.traffic() });
            }
            PartOrder::StartSignal { endpoint, connection, signal } => {
                let text = std::mem::replace(&mut self.text, EventText::NONE);
                if self.card.start_signal(now, endpoint, connection, signal, text.as_bytes()).is_err() {
                    self.answers.push_back(PartAnswer::SignalEnded { endpoint, connection, signal, failed: true });
                }
            }
            PartOrder::StopSignal { endpoint, connection, signal } => self.card.stop_signal(now, endpoint, connection, signal),
            PartOrder::ListenFor { endpoint, sounds } => self.card.listen_for(now, endpoint, sounds),
            PartOrder::ResetLine { endpoint, in_service } => self.card.reset_line(now, endpoint, in_service),
        }
    }

    fn generation(&self, connection: u32) -> u32 {
        self.connections.get(connection as usize).map_or(0, |(generation, _)| *generation)
    }

    fn is_open(&self, connection: u32) -> bool {
        self.connections.get(connection as usize).is_some_and(|(_, open)| *open)
    }

    fn note_ended(&mut self, connection: u32) {
        if let Some((_, open)) = self.connections.get_mut(connection as usize) {
            *open = false;
        }
    }

    /// Takes from the card what it has to say; what is for the core it is on goes to `seen`.
    pub fn poll(&mut self, now: Time, mut seen: impl FnMut(Seen)) {
        for _ in 0..POLL_MAX {
            let Some(indication) = self.card.poll(now) else { return };
            match indication {
                Indication::Opened { connection, result, .. } => {
                    if result.is_err() {
                        self.note_ended(connection);
                    }
                    self.answers.push_back(PartAnswer::Opened { connection, generation: self.generation(connection), result });
                }
                Indication::Modified { connection, result, .. } => {
                    self.answers.push_back(PartAnswer::Modified { connection, generation: self.generation(connection), result });
                }
                Indication::SignalEnded { endpoint, connection, signal, failed } => {
                    self.answers.push_back(PartAnswer::SignalEnded { endpoint, connection, signal, failed });
                }
                Indication::Defect { facility, defect, present, at_once } => seen(Seen::Defect(facility, defect, present, at_once)),
                Indication::Violations { facility, violations } => seen(Seen::Violations(facility, violations)),
                // Whoever wants events stands still, and has not taken thousands of them.
                Indication::Event { .. } | Indication::MediaLost { .. } if self.answers.len() >= ANSWERS_MAX => seen(Seen::Lost),
                Indication::MediaLost { connection, again, .. } => {
                    self.answers.push_back(PartAnswer::MediaLost { connection, generation: self.generation(connection), again });
                }
                Indication::Event { endpoint, connection, event, parameters } => {
                    let connection = connection.map(|connection| (connection, self.generation(connection)));
                    self.answers.extend(Piece::all(parameters.as_bytes()).map(PartAnswer::Text));
                    self.answers.push_back(PartAnswer::Event { endpoint, connection, event });
                }
                // No channel has signalling on its line, and who collects digits by a map wants to know when they begin only.
                Indication::Line { .. } | Indication::Trouble { .. } | Indication::KeyUp { .. } => {}
            }
        }
    }

    /// Sends what `offer` has room for. True: something is left.
    pub fn send(&mut self, mut offer: impl FnMut(PartAnswer) -> bool) -> bool {
        while let Some(answer) = self.answers.front().copied() {
            if !offer(answer) {
                return true;
            }
            self.answers.pop_front();
        }
        false
    }

    /// When to poll again at the latest.
    pub fn deadline(&self) -> Time {
        self.card.deadline()
    }
}

fn at_once(answer: Answer<MediaAddress>) -> Option<Result<MediaAddress, CardFault>> {
    match answer {
        Answer::Now(at) => Some(Ok(at)),
        Answer::Later => None,
        Answer::Refused(fault) => Some(Err(fault)),
    }
}
