//! What the agent must hear of restarts and disconnects before a response: which announcements go in front of it (RFC 3435 4.4.6, 4.4.7;
//! G-RST-03, G-RST-05, G-DIS-06, G-DIS-09).

use super::Core;
use super::jobs::Job;
use super::lead::OUTSTANDING;
use super::outside::{Frames, Outside, Turn};
use super::receive::text;
use super::respond::Way;
use crate::proto::base::{Counter, EndpointIndex};
use crate::proto::codec::mgcp::{CommandLine, Verb};
use crate::proto::codec::peek::Peek;
use crate::proto::endpoint::Announcement as Told;
use crate::proto::mgcp;
use crate::proto::trunk::SpanIndex;

/// Announcements in front of one response: as many as may be unanswered by one agent. More are sent before it, each by itself.
const FRONT: usize = OUTSTANDING as usize;

/// What the restart has to do with a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Preface {
    /// Nothing: an audit, or a refusal that may come before it (405, 501, 520).
    None,
    /// The response is about this endpoint: its outstanding restart goes in front.
    Endpoint(EndpointIndex),
    /// The response is about endpoints of these spans, the last one included: the outstanding restarts of any of them.
    Spans(SpanIndex, SpanIndex),
}

impl Preface {
    /// As one number of less than 56 bits.
    pub fn pack(self) -> u64 {
        match self {
            Preface::None => 0,
            Preface::Endpoint(endpoint) => u64::from(endpoint.0) << 2 | 1,
            Preface::Spans(first, last) => u64::from(first.0) << 18 | u64::from(last.0) << 2 | 2,
        }
    }

    pub fn unpack(number: u64) -> Preface {
        match number & 3 {
            1 => Preface::Endpoint(EndpointIndex((number >> 2) as u32)),
            2 => Preface::Spans(SpanIndex((number >> 18) as u16), SpanIndex((number >> 2) as u16)),
            _ => Preface::None,
        }
    }
}

/// The announcements in front of one response.
pub(super) enum Front {
    /// None.
    Nothing,
    /// So many, by their numbers.
    These([u32; FRONT], usize),
}

impl Front {
    /// Their numbers.
    #[inline]
    pub fn numbers(&self) -> &[u32] {
        match self {
            Front::Nothing => &[],
            Front::These(list, count) => list.get(..*count).unwrap_or_default(),
        }
    }

    /// False: there is no room for one more.
    fn push(&mut self, number: u32) -> bool {
        if let Front::Nothing = self {
            *self = Front::These([0; FRONT], 0);
        }
        let Front::These(list, count) = self else { return false };
        let Some(place) = list.get_mut(*count) else { return false };
        *place = number;
        *count += 1;
        true
    }
}

/// What restarts and disconnects mean for a response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing: it is sent as it is.
    Clear,
    /// The agent must hear first of one that is not on its way yet.
    Owed,
    /// Announcements that are out may concern it.
    Announced,
    /// The same; whether one is still to be sent other cores know.
    Elsewhere,
}

impl Core {
    /// What goes in front of a response with `code` to a command for `local`: the restarts of what it names, or of the endpoint that was
    /// `chosen`, unless it is an audit or one of the refusals that may be seen before.
    pub(super) fn preface(&self, verb: Option<Verb>, local: &[u8], chosen: Option<EndpointIndex>, code: u16) -> Preface {
        if matches!(verb, Some(Verb::Auep | Verb::Aucx)) || mgcp::before_restart(code) {
            return Preface::None;
        }
        if let Some(endpoint) = chosen.or_else(|| self.plan.topology.lookup(local)) {
            return Preface::Endpoint(endpoint);
        }
        // A name that means nothing has nothing to announce.
        let Ok(selection) = self.plan.topology.resolve(local, true) else { return Preface::None };
        let (first, last) = selection.outer_spans();
        Preface::Spans(first, last)
    }

    /// The same for a command that waited.
    pub(super) fn preface_of<F: Frames, O: Outside>(
        &self,
        turn: &Turn<'_, F, O>,
        job: &Job,
        chosen: Option<EndpointIndex>,
        code: u16,
    ) -> Preface {
        let datagram = turn.frames.read(job.received.message.frame);
        let peeked = datagram.as_ref().map(|(datagram, _)| Peek::at(text(datagram, job.received.message)));
        let local = if let Some(Peek::Command(line)) = &peeked { CommandLine::local(line) } else { &[] };
        self.preface(Some(job.verb), local, chosen.or(job.endpoint), code)
    }

    /// Whether the agent must hear of a restart or a disconnect first that is not on its way yet.
    pub(super) fn owes_announcement(&self, preface: Preface) -> bool {
        self.standing(preface) == Standing::Owed
    }

    /// What stands before a response, in one look at its endpoint.
    #[inline]
    pub(super) fn standing(&self, preface: Preface) -> Standing {
        let endpoint = match preface {
            Preface::None => return Standing::Clear,
            Preface::Endpoint(endpoint) => endpoint,
            Preface::Spans(..) => return Standing::Elsewhere,
        };
        match self.calls.endpoints.get(endpoint).map(|state| state.announcement) {
            Some(Told::Waiting) => Standing::Owed,
            Some(Told::Done) => Standing::Clear,
            Some(Told::Outstanding(_)) => Standing::Announced,
            // That of another core was chosen for `$`.
            None => Standing::Elsewhere,
        }
    }

    /// Puts the restarts that go in front of a response in its datagram into `front`, which is large and empty.
    #[inline]
    pub(super) fn put_in_front<F: Frames, O: Outside>(
        &mut self,
        turn: &mut Turn<'_, F, O>,
        way: Way,
        preface: Preface,
        front: &mut Front,
    ) -> Standing {
        let standing = self.standing(preface);
        if matches!(standing, Standing::Announced | Standing::Elsewhere) {
            self.put_announced(turn, way, preface, front);
        }
        standing
    }

    /// The announcements that are out and concern it. To an agent that takes one message a datagram they are sent by themselves, now.
    fn put_announced<F: Frames, O: Outside>(&self, turn: &mut Turn<'_, F, O>, way: Way, preface: Preface, front: &mut Front) {
        let manners = self.settings.manners(way.agent);
        let (announcements, plan, calls, counters) = (&self.announcements, &self.plan, &self.calls, &self.counters);
        let mut put = |number| {
            if manners.piggyback && front.push(number) {
                return;
            }
            if !turn.out.transmit(way.to, way.local, |buffer| announcements.write_alone(plan, number, buffer, manners).unwrap_or(0)) {
                counters.add(Counter::TransmitFull);
            }
        };
        match preface {
            Preface::None => {}
            Preface::Endpoint(endpoint) => match calls.endpoints.get(endpoint).map(|state| state.announcement) {
                Some(Told::Outstanding(number)) => put(number),
                Some(Told::Waiting | Told::Done) => {}
                None => announcements.about(plan, |named| named.contains(&plan.topology, endpoint)).for_each(put),
            },
            Preface::Spans(first, last) => announcements.about(plan, |named| named.meets(&plan.topology, (first, last))).for_each(put),
        }
    }
}
