//! What cores say to each other: one-cache-line entries of the rings between them.

use super::announce::Announcement;
use super::missed::Standing;
use crate::proto::aggregate::Pattern;
use crate::proto::base::srtp::Passed;
use crate::proto::base::{AgentId, EndpointIndex, EndpointRange, FrameRef, Time, TransactionId};
use crate::proto::cac::Charge;
use crate::proto::cac::share::{ToBank, ToHolder};
use crate::proto::endpoint::{ConnectionId, Service};
use crate::proto::mgcp::bulk::{Part, StateTypes};
use crate::proto::mgcp::meetings::Parting;
use crate::proto::mgcp::{Created, Refused, Restart};
use crate::proto::trunk::{Defect, Facility, MediaAddress, PartAnswer, PartOrder, SpanIndex, Violations};
use std::net::{IpAddr, SocketAddr};

/// One protocol message inside a received frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The frame; its meta data tell the source and the listen address.
    pub frame: FrameRef,
    /// First byte of the message in the frame.
    pub start: u16,
    /// One past its last byte.
    pub end: u16,
    /// The entry of the receiving core's datagram table, [`SINGLE`] or `KEPT`.
    pub datagram: u16,
    /// Who sent it.
    pub agent: AgentId,
}

/// The message is the only one of its datagram.
pub const SINGLE: u16 = u16::MAX;

/// The message is alone in a frame of the core that keeps it: a copy, made because it waits (see [`Outside::keep`](super::Outside::keep)).
pub const KEPT: u16 = u16::MAX - 1;

/// A command that waits, by its place in the table of the core that coordinates it and a generation that tells old answers from new.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct JobId {
    /// Place in the table.
    pub slot: u16,
    /// Counts the uses of the place.
    pub generation: u32,
}

/// What one core asks of or tells another.
#[derive(Clone, Copy, Debug)]
pub enum Envelope {
    /// To the home core: handle this message.
    Message(Message),
    /// To the receiving core: a message is finished, its frame no longer in use.
    Done {
        /// The frame.
        frame: FrameRef,
        /// Its entry in the datagram table.
        datagram: u16,
    },
    /// From the coordinator of a command over many endpoints: validate your share, change nothing.
    Prepare {
        /// The coordinator's job.
        job: JobId,
        /// The command.
        message: Message,
    },
    /// The answer to Prepare.
    Vote {
        /// The job voted on.
        job: JobId,
        /// Why not; `None`: it can be done.
        refused: Option<Refused>,
    },
    /// The decision; a commit cannot fail.
    Decide {
        /// The job decided.
        job: JobId,
        /// Whether to apply.
        commit: bool,
    },
    /// A commit is applied.
    Applied {
        /// The job.
        job: JobId,
    },
    /// To a core that may own a free endpoint: create a connection on one.
    Try {
        /// The coordinator's job.
        job: JobId,
        /// The command.
        message: Message,
    },
    /// A try failed.
    TryFailed {
        /// The job.
        job: JobId,
        /// Why; [`NOTHING_FREE`](crate::proto::mgcp::NOTHING_FREE) when another core may be asked.
        refused: Refused,
    },
    /// Before [`Envelope::Made`] of a connection that is protected: by this.
    Key {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It.
        connection: ConnectionId,
        /// What it sends is protected so.
        local: Passed,
    },
    /// A try or the second half of a pair is done.
    Made {
        /// The job.
        job: JobId,
        /// What was made.
        created: Created,
    },
    /// To the owner of a second endpoint: open its half of a pair.
    Pair {
        /// The coordinator's job.
        job: JobId,
        /// The command.
        message: Message,
        /// In a cluster: the number of the first half, and what it is to be charged, which is asked for with the second one;
        /// [`Charge::EMPTY`]: nothing.
        first: (u64, Charge),
    },
    /// Before [`Envelope::Made`] or [`Envelope::TryFailed`] of a pair: its first half, of this number, may begin and be charged this.
    FirstGranted {
        /// The job.
        job: JobId,
        /// As in [`Envelope::Pair`].
        first: (u64, Charge),
    },
    /// To the owner of a second half: the first one is there too. Answered by Applied, or TryFailed when the half is gone.
    Join {
        /// The coordinator's job.
        job: JobId,
        /// The second half.
        endpoint: EndpointIndex,
        /// Its connection.
        connection: ConnectionId,
        /// The first half.
        other: (EndpointIndex, ConnectionId),
        /// Where that receives; port 0: on a card that moves no media.
        at: MediaAddress,
    },
    /// To the owner of a connection that a description of the form `c=LOCAL` names: the other half receives there.
    Meet {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It; 0: the only one of the endpoint.
        connection: ConnectionId,
        /// The other half.
        other: (EndpointIndex, ConnectionId),
        /// Where that receives.
        at: MediaAddress,
        /// Whether the other half wants to know the same.
        answer: bool,
    },
    /// To the owner of the half that is left of two joined by such descriptions, or by `Z2:`.
    HalfGone(Parting),
    /// To the owner of a connection that was made for a command which failed meanwhile: take it down.
    TakeDown {
        /// Its endpoint.
        endpoint: EndpointIndex,
        /// It.
        connection: ConnectionId,
    },
    /// To the owner of these endpoints: what are they like?
    Look {
        /// The asker's job.
        job: JobId,
        /// The first.
        first: u32,
        /// How many, at most [`PART`](crate::proto::mgcp::bulk::PART).
        count: u8,
        /// What makes their state "true".
        types: StateTypes,
    },
    /// They are like this.
    Seen {
        /// The asker's job.
        job: JobId,
        /// The first.
        first: u32,
        /// What they are like.
        part: Part,
    },
    /// The agent has these responses.
    Confirm {
        /// Who says so.
        agent: AgentId,
        /// First transaction.
        low: TransactionId,
        /// Last one.
        high: TransactionId,
    },
    /// From the lead core: the service state of these endpoints is now this.
    Service {
        /// Which.
        range: EndpointRange,
        /// The state.
        service: Service,
    },
    /// From the lead core: what these endpoints are, in place of all orders about them that were missed.
    Anew {
        /// Which.
        range: EndpointRange,
        /// What they are.
        standing: Standing,
    },
    /// From the lead core: say when the service states that came before this are applied.
    Settle {
        /// How many they were since the start.
        states: u64,
    },
    /// To the lead core: these service states are applied.
    Settled {
        /// As in Settle.
        states: u64,
    },
    /// From the lead core: a RestartInProgress is out, answered, or withdrawn.
    Announce(Announcement),
    /// To the lead core: a command met an endpoint whose restart was not announced.
    Trigger {
        /// The endpoint.
        endpoint: EndpointIndex,
        /// Which agent sent the command, and from where.
        source: Option<(AgentId, IpAddr)>,
    },
    /// To an owner of endpoints: a response about these is held until what waits there to be announced is.
    Announcing {
        /// What to answer with.
        key: u32,
        /// The endpoints, whoever owns them.
        range: EndpointRange,
        /// How long an answer is waited for.
        until: Time,
    },
    /// The answer: nothing waits there any more.
    Announced {
        /// As asked.
        key: u32,
    },
    /// To the core of an H.248 gateway: the last stream with a controller has ended.
    EndedStream {
        /// The gateway.
        gateway: u8,
        /// The other end.
        peer: SocketAddr,
    },
    /// To the core that sent it: the network says that this command of ours did not arrive there.
    Unreachable {
        /// Its transaction.
        id: TransactionId,
        /// Where it was sent.
        to: SocketAddr,
    },
    /// To the lead core: commands of these endpoints were not answered by their notified entity.
    Unanswered {
        /// Which.
        range: EndpointRange,
    },
    /// To the lead core: something happened on the line of this endpoint, which is disconnected.
    Activity {
        /// The endpoint.
        endpoint: EndpointIndex,
    },
    /// From the lead core: these endpoints are disconnected.
    Disconnected {
        /// Which.
        range: EndpointRange,
    },
    /// To the lead core: these endpoints notify this port of this agent now.
    Entity {
        /// The endpoints.
        range: EndpointRange,
        /// The agent.
        agent: AgentId,
        /// Its UDP port; 0: the provisioned addresses.
        port: u16,
    },
    /// To the lead core while the gateway drains: calls up here.
    Calls {
        /// How many.
        count: u32,
    },
    /// To the lead core: these endpoints, which are leaving, have no connection.
    Idle {
        /// Which.
        range: EndpointRange,
    },
    /// To the lead core: the far ends of these endpoints hold their lines off-hook though their calls are over, or no more.
    Lockout {
        /// Which.
        range: EndpointRange,
        /// Whether they do.
        on: bool,
    },
    /// To the lead core: connections were lost because endpoints went out of service.
    Lost {
        /// The span of the endpoints.
        span: SpanIndex,
        /// How many connections.
        count: u32,
        /// Why, 900..=905.
        reason: u16,
    },
    /// To the lead core: a card sees a defect come or go.
    Defect {
        /// Where.
        facility: Facility,
        /// What.
        defect: Defect,
        /// Come or gone.
        on: bool,
        /// Without integration.
        at_once: bool,
    },
    /// To the lead core: what a framer counted.
    Violations {
        /// Where.
        facility: Facility,
        /// What.
        violations: Violations,
    },
    /// From the lead core: the agent named another notified entity for these endpoints in its answer to a restart.
    NotifiedEntity {
        /// Which.
        pattern: Pattern,
        /// The agent.
        agent: AgentId,
        /// Its UDP port; 0: the provisioned addresses.
        port: u16,
    },
    /// To the lead core: what this core needs of admission's places, and does not.
    ToBank(ToBank),
    /// From the lead core: what it gets of them.
    ToHolder(ToHolder),
    /// To a core that carries spans of an H.248 gateway which another core runs: an order to its card.
    PartOrder {
        /// The gateway.
        gateway: u8,
        /// What it is to do.
        order: PartOrder,
    },
    /// To the core that runs an H.248 gateway: what the card of another core says.
    PartAnswer {
        /// The gateway.
        gateway: u8,
        /// Whether the other core is overloaded.
        overloaded: bool,
        /// What it says.
        answer: PartAnswer,
    },
    /// From the lead core to the core that runs an H.248 gateway: its controller is to hear this.
    ServiceChange {
        /// Which gateway of the plan.
        gateway: u8,
        /// What a RestartInProgress would say.
        restart: Restart,
    },
    /// Stop or resume taking new calls.
    Drain {
        /// Whether to refuse new calls.
        on: bool,
    },
}

// One cache line, so that a ring entry is one transfer between cores.
const _: () = assert!(size_of::<Envelope>() <= 64);
