//! Contexts and terminations of one gateway, and which are in which (RFC 3525 6.1, 6.2).
//!
//! A physical termination is an endpoint, an ephemeral one a connection; both have a [`Row`] here with what only H.248 knows of them.
//! Invariants: a termination is in the context that its row names, and that context lists it; a context without terminations does not
//! exist (CTX-02). All memory is claimed at construction.

use crate::proto::base::{EndpointIndex, EndpointRange, Time};
use crate::proto::codec::h248::{ServiceState, StreamMode};
use crate::proto::endpoint::{ConnectionSlot, NO_CONNECTION};

/// The most terminations in a context (`root/maxTerminationsPerContext`).
pub const TERMINATIONS_PER_CONTEXT: usize = 16;
/// The null context.
pub const NULL: u32 = 0;

/// A termination.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Termination {
    /// The gateway as a whole.
    Root,
    /// A DS0: an endpoint of the topology.
    Physical(EndpointIndex),
    /// An RTP stream: a connection.
    Ephemeral(ConnectionSlot),
}

/// What H.248 knows of a termination beside its endpoint or connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// The context it is in; [`NULL`] for none.
    pub context: u32,
    /// The controller's number of its stream (CTX-11).
    pub stream: u16,
    /// Its mode.
    pub mode: StreamMode,
    /// ReserveValue and ReserveGroup (LC-03).
    pub reserve: (bool, bool),
    /// What the controller wants it to be (TS-01).
    pub service: ServiceState,
    /// EventBufferControl is lockstep (TS-02).
    pub lockstep: bool,
    /// `tdmc/ec`: the echo canceller is on.
    pub echo_canceller: bool,
    /// `tdmc/gain` in dB; `None`: automatic.
    pub gain: Option<i32>,
    /// `nt/jit`: the largest jitter buffer in ms.
    pub jitter_ms: u16,
    /// Whether the controller has given Local.
    pub has_local: bool,
    /// Whether the controller has given Remote.
    pub has_remote: bool,
    /// Since when it is in its context.
    pub since: Time,
    /// The controller wants it out of service when it leaves its context.
    pub leaving: bool,
    /// When the delay of a service change that the controller ordered ends: then it goes out of service when it is leaving, else into it.
    pub due: Time,
    /// What the controller was told of it.
    pub told: Told,
    /// In the name of an ephemeral one.
    pub number: u32,
    /// The endpoint that the card knows the connection of an ephemeral one by; the channel it is joined to may change.
    pub carrier: EndpointIndex,
    /// What it detects and plays.
    pub watch: Option<u32>,
    /// The half of a pair on the first physical termination of its context, and its own: how two physical ones hear each other.
    pub pair: Option<(ConnectionSlot, ConnectionSlot)>,
}

/// What the controller was told of a physical termination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    /// In service, or nothing.
    In,
    /// It leaves service.
    Leaving,
    /// Out of service.
    Out,
}

/// `nt/jit` unless the controller says otherwise, in ms.
pub const JITTER_MS: u16 = 100;

impl Default for Row {
    fn default() -> Row {
        Row {
            context: NULL,
            stream: 1,
            mode: StreamMode::Inactive,
            reserve: (false, false),
            service: ServiceState::InService,
            lockstep: false,
            echo_canceller: true,
            gain: Some(0),
            jitter_ms: JITTER_MS,
            has_local: false,
            has_remote: false,
            since: Time::ZERO,
            leaving: false,
            due: Time::NEVER,
            told: Told::In,
            number: 0,
            carrier: EndpointIndex(0),
            watch: None,
            pair: None,
        }
    }
}

/// A context.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// Its identifier.
    pub id: u32,
    /// 0..=15 (CTX-05).
    pub priority: u8,
    /// An emergency call.
    pub emergency: bool,
    members: [Termination; TERMINATIONS_PER_CONTEXT],
    count: u8,
}

impl Context {
    /// Its terminations, in the order in which they came.
    pub fn members(&self) -> &[Termination] {
        self.members.get(..usize::from(self.count)).unwrap_or_default()
    }
}

/// All contexts, and the rows of all terminations.
pub struct Tables {
    contexts: Vec<Option<Context>>,
    free: Vec<u32>,
    /// How often each place was used: identifiers do not return soon.
    uses: Vec<u32>,
    spans: Vec<(EndpointRange, u32)>,
    physical: Vec<Row>,
    ephemeral: Vec<Option<Row>>,
    /// How often each connection's place was used for a termination.
    names: Vec<u32>,
}

impl Tables {
    /// The bytes that the tables of so many physical terminations and connections take.
    pub fn memory(physical: u32, connections: u32) -> u64 {
        let contexts = u64::from(physical) + u64::from(connections);
        let context = (size_of::<Option<Context>>() + 2 * size_of::<u32>()) as u64;
        let ephemeral = (size_of::<Option<Row>>() + size_of::<u32>()) as u64;
        contexts * context + u64::from(physical) * size_of::<Row>() as u64 + u64::from(connections) * ephemeral
    }

    /// Nothing in any context. `spans` in ascending order; `connections` is how many connections there can be.
    pub fn new(spans: impl Iterator<Item = EndpointRange>, connections: u32) -> Tables {
        let (mut starts, mut count) = (Vec::new(), 0);
        for span in spans {
            starts.push((span, count));
            count += span.count;
        }
        let contexts = (count + connections).max(1);
        Tables {
            contexts: vec![None; contexts as usize],
            free: (0..contexts).rev().collect(),
            uses: vec![0; contexts as usize],
            spans: starts,
            physical: vec![Row::default(); count as usize],
            ephemeral: vec![None; connections as usize],
            names: vec![0; connections as usize],
        }
    }

    /// The most contexts at a time.
    pub fn contexts_max(&self) -> u32 {
        self.contexts.len() as u32
    }

    /// Contexts there are.
    pub fn contexts_up(&self) -> u32 {
        (self.contexts.len() - self.free.len()) as u32
    }

    /// Every context.
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.contexts.iter().flatten()
    }

    /// The physical terminations, in the order of their endpoints.
    pub fn physical(&self) -> impl Iterator<Item = EndpointIndex> + '_ {
        self.spans.iter().flat_map(|(range, _)| range.iter())
    }

    /// The spans they are on.
    pub fn spans(&self) -> impl Iterator<Item = EndpointRange> + '_ {
        self.spans.iter().map(|(range, _)| *range)
    }

    /// The context `id`.
    pub fn context(&self, id: u32) -> Option<&Context> {
        let place = id.checked_sub(1)? as usize % self.contexts.len();
        self.contexts.get(place)?.as_ref().filter(|context| context.id == id)
    }

    /// The same, to change.
    pub fn context_mut(&mut self, id: u32) -> Option<&mut Context> {
        let place = id.checked_sub(1)? as usize % self.contexts.len();
        self.contexts.get_mut(place)?.as_mut().filter(|context| context.id == id)
    }

    /// A new context without terminations: put one into it, or give it back by [`Tables::drop_if_empty`].
    pub fn create(&mut self) -> Option<u32> {
        let place = self.free.pop()?;
        let uses = self.uses.get_mut(place as usize)?;
        let length = self.contexts.len() as u32;
        // Identifiers end below the reserved ones (CTX-06); then they begin anew.
        let id = match uses.checked_mul(length).and_then(|base| base.checked_add(place + 1)).filter(|id| *id < u32::MAX - 1) {
            Some(id) => id,
            None => {
                *uses = 0;
                place + 1
            }
        };
        *uses += 1;
        let members = [Termination::Root; TERMINATIONS_PER_CONTEXT];
        *self.contexts.get_mut(place as usize)? = Some(Context { id, priority: 0, emergency: false, members, count: 0 });
        Some(id)
    }

    /// Whether the context went because nothing is in it.
    pub fn drop_if_empty(&mut self, id: u32) -> bool {
        if self.context(id).is_none_or(|context| context.count > 0) {
            return false;
        }
        let place = (id - 1) % self.contexts.len() as u32;
        if let Some(context) = self.contexts.get_mut(place as usize) {
            *context = None;
            self.free.push(place);
        }
        true
    }

    /// Puts `termination`, which is in none, into a context; false when that is full or not there.
    pub fn join(&mut self, now: Time, id: u32, termination: Termination) -> bool {
        let Some(context) = self.context_mut(id) else { return false };
        let Some(place) = context.members.get_mut(usize::from(context.count)) else { return false };
        *place = termination;
        context.count += 1;
        if let Some(row) = self.row_mut(termination) {
            (row.context, row.since) = (id, now);
        }
        true
    }

    /// Takes `termination` out of its context, which goes with the last one: its identifier.
    pub fn leave(&mut self, termination: Termination) -> Option<u32> {
        let id = self.step_out(termination)?;
        self.drop_if_empty(id);
        Some(id)
    }

    /// The same, and the context stays in any case: [`Tables::drop_if_empty`] when the termination is not to come back.
    pub fn step_out(&mut self, termination: Termination) -> Option<u32> {
        let row = self.row_mut(termination)?;
        let id = std::mem::replace(&mut row.context, NULL);
        let context = self.context_mut(id)?;
        let place = context.members().iter().position(|member| *member == termination)?;
        context.members.get_mut(place..usize::from(context.count))?.rotate_left(1);
        context.count -= 1;
        Some(id)
    }

    /// The place of a physical termination among all of them.
    pub fn place(&self, endpoint: EndpointIndex) -> Option<usize> {
        let after = self.spans.partition_point(|(range, _)| range.first <= endpoint.0);
        let (range, start) = self.spans.get(after.checked_sub(1)?)?;
        range.contains(endpoint).then_some((start + endpoint.0 - range.first) as usize)
    }

    /// What is known of a termination; `None`: it is none of this gateway's, or ROOT.
    pub fn row(&self, termination: Termination) -> Option<&Row> {
        match termination {
            Termination::Root => None,
            Termination::Physical(endpoint) => self.physical.get(self.place(endpoint)?),
            Termination::Ephemeral(slot) => self.ephemeral.get(slot as usize)?.as_ref(),
        }
    }

    /// The same, to change.
    pub fn row_mut(&mut self, termination: Termination) -> Option<&mut Row> {
        match termination {
            Termination::Root => None,
            Termination::Physical(endpoint) => {
                let place = self.place(endpoint)?;
                self.physical.get_mut(place)
            }
            Termination::Ephemeral(slot) => self.ephemeral.get_mut(slot as usize)?.as_mut(),
        }
    }

    /// The connection in `slot` is a termination from now on.
    pub fn make_ephemeral(&mut self, slot: ConnectionSlot) {
        let length = self.ephemeral.len() as u32;
        let (Some(row), Some(uses)) = (self.ephemeral.get_mut(slot as usize), self.names.get_mut(slot as usize)) else { return };
        let number = uses.checked_mul(length).and_then(|base| base.checked_add(slot + 1));
        if number.is_none() {
            *uses = 0;
        }
        *uses += 1;
        *row = Some(Row { number: number.unwrap_or(slot + 1), ..Row::default() });
    }

    /// It is none any more.
    pub fn end_ephemeral(&mut self, slot: ConnectionSlot) {
        if let Some(row) = self.ephemeral.get_mut(slot as usize) {
            *row = None;
        }
    }

    /// The ephemeral termination with this number in its name.
    pub fn ephemeral(&self, number: u32) -> Option<Termination> {
        let slot = number.checked_sub(1)?.checked_rem(self.ephemeral.len() as u32)?;
        let row = self.ephemeral.get(slot as usize)?.as_ref().filter(|row| row.number == number)?;
        (row.number != 0 && slot != NO_CONNECTION).then_some(Termination::Ephemeral(slot))
    }

    /// Every ephemeral termination.
    pub fn ephemerals(&self) -> impl Iterator<Item = Termination> + '_ {
        self.ephemeral.iter().enumerate().filter(|(_, row)| row.is_some()).map(|(slot, _)| Termination::Ephemeral(slot as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables() -> Tables {
        Tables::new([EndpointRange { first: 24, count: 4 }].into_iter(), 3)
    }

    #[test]
    fn a_termination_is_in_one_context_and_the_last_one_takes_it_along() {
        // CTX-01, CTX-02
        let mut tables = tables();
        let (a, b) = (Termination::Physical(EndpointIndex(24)), Termination::Physical(EndpointIndex(27)));
        let id = tables.create().unwrap();
        assert!(tables.join(Time::ZERO, id, a) && tables.join(Time::ZERO, id, b));
        assert_eq!(tables.context(id).unwrap().members(), [a, b]);
        assert_eq!((tables.row(a).unwrap().context, tables.leave(a)), (id, Some(id)));
        assert_eq!((tables.row(a).unwrap().context, tables.context(id).unwrap().members()), (NULL, &[b][..]));
        assert_eq!((tables.leave(b), tables.contexts_up()), (Some(id), 0));
        assert!(tables.context(id).is_none() && tables.leave(b).is_none());
        assert!(tables.row(Termination::Physical(EndpointIndex(28))).is_none());
    }

    #[test]
    fn identifiers_of_contexts_and_names_do_not_return_soon_and_are_never_reserved_ones() {
        // CTX-06
        let mut tables = tables();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            let id = tables.create().unwrap();
            assert!(id != 0 && id < u32::MAX - 1 && seen.insert(id));
            assert!(tables.drop_if_empty(id) && !tables.drop_if_empty(id));
        }
        tables.uses.fill(u32::MAX / tables.contexts.len() as u32);
        for _ in 0..20 {
            let id = tables.create().unwrap();
            assert!(id != 0 && id < u32::MAX - 1);
            tables.drop_if_empty(id);
        }
        tables.make_ephemeral(2);
        let first = tables.row(Termination::Ephemeral(2)).unwrap().number;
        assert_eq!(tables.ephemeral(first), Some(Termination::Ephemeral(2)));
        tables.end_ephemeral(2);
        tables.make_ephemeral(2);
        assert_eq!(tables.ephemeral(first), None);
    }

    #[test]
    fn a_context_holds_so_many_and_no_more() {
        let mut tables = Tables::new([EndpointRange { first: 0, count: 20 }].into_iter(), 0);
        let id = tables.create().unwrap();
        let joined = (0..20).filter(|n| tables.join(Time::ZERO, id, Termination::Physical(EndpointIndex(*n)))).count();
        assert_eq!(joined, TERMINATIONS_PER_CONTEXT);
        assert_eq!(std::iter::from_fn(|| tables.create()).count(), 19);
    }
}
