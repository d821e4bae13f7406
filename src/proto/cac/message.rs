//! What a gateway node (SC) and the central node (CS) say to each other.
//!
//! Every message belongs to one session: that of a node's life with one life of the central node. Messages of a session are numbered
//! each way; what is not newer than the last one is dropped, so that to the machines a link only ever loses messages (R25).

use super::charge::{Charge, Guid, Leg, ScId};
use super::ledger::{Admission, Digests};
use super::limits::Denial;
use super::scope::ScopeId;
use std::time::Duration;

/// The version spoken; nodes of the version before it are understood.
pub const VERSION: u16 = 1;

/// What an end can do beyond the first minor version: bits of HELLO and WELCOME. Neither is asked for what the other did not name (R43).
pub mod features {
    /// A gateway that keeps a copy of its calls at a standby.
    pub const COPY: u32 = 1;
    /// Leased quotas. A call of a node that knows none is asked for.
    pub const QUOTAS: u32 = 1 << 1;
    /// A gateway that knows [`Answer::Busy`](super::Answer::Busy).
    pub const BUSY: u32 = 1 << 2;
    /// A central node that keeps the floors of hold-last free ([`floor`](super::super::floor)).
    pub const FLOORS: u32 = 1 << 3;
    /// A central node that knows [`Span`](super::Span)s.
    pub const PAGES: u32 = 1 << 4;
    /// A central node that knows [`ToCentral::AskBoth`](super::ToCentral::AskBoth).
    pub const PAIRS: u32 = 1 << 5;
}

/// One of the central nodes that a gateway is configured with, by its place among them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Side(pub u8);

/// The highest load a central node tells of.
pub const LOAD_MAX: u8 = 3;

/// What each message begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The gateway node. The central node believes the connection, not this (R34).
    pub sc: ScId,
    /// The life of the gateway node; later ones are larger.
    pub incarnation: u32,
    /// The life of the central node; later ones are larger.
    pub epoch: u64,
    /// The session; 0 before there is one.
    pub session: u64,
    /// Counts the messages of the session this way, from 1.
    pub number: u64,
}

/// A message with its header.
#[derive(Clone, PartialEq, Debug)]
pub struct Framed<M> {
    /// The header.
    pub header: Header,
    /// The message.
    pub message: M,
}

/// Where a waiting request stands in its node's table: comes back with the reply (R4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Handle {
    /// The place.
    pub slot: u32,
    /// Counts the uses of the place (race 19).
    pub generation: u32,
}

/// What a request is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Where it waits.
    pub handle: Handle,
    /// The call.
    pub guid: Guid,
    /// Ingress: this is IP_LOOKUP. Egress: ALLOCATE (R6).
    pub leg: Leg,
    /// What it is to be charged.
    pub charge: Charge,
}

/// One call as its node tells of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Told {
    /// The call.
    pub guid: Guid,
    /// Its leg.
    pub leg: Leg,
    /// What it is charged.
    pub charge: Charge,
    /// Who let it in.
    pub admission: Admission,
}

/// Something that happened at a node and must arrive: numbered, repeated until acknowledged (R28, R31).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Report {
    /// A call is up, or is charged this from now on.
    Fact(Told),
    /// A call is over, or was never begun.
    Release(Guid, Leg),
}

/// From a gateway node.
#[derive(Clone, PartialEq, Debug)]
pub enum ToCentral {
    /// A session is wanted.
    Hello {
        /// The version spoken.
        version: u16,
        /// Counts the attempts; the answer repeats it.
        attempt: u32,
        /// [`Tree::fingerprint`](super::scope::Tree::fingerprint).
        fingerprint: u64,
        /// The highest epoch seen: a central node of a lower one must step back.
        highest_epoch: u64,
        /// The cluster, as in the welcome, of the central node that had it; 0: not said.
        cluster: u64,
        /// What the node can do beyond the first minor version: [`features`].
        features: u32,
        /// [`policy::fingerprint`](super::policy::fingerprint); 0: not said.
        rules: u64,
    },
    /// IP_LOOKUP or ALLOCATE.
    Ask(Request),
    /// Both legs of a pair, which have one handle: both may begin or none. The reply is about the first.
    AskBoth(Request, Request),
    /// A call is to be charged otherwise.
    Modify(Request),
    /// What happened.
    Report {
        /// Counts the reports of the session, from 1.
        number: u64,
        /// It.
        report: Report,
    },
    /// All calls follow (R11).
    SyncBegin {
        /// Counts the syncs of the session.
        generation: u32,
    },
    /// Some of them.
    SyncChunk {
        /// Of this sync.
        generation: u32,
        /// Counts the chunks from 0.
        index: u32,
        /// Calls that were up when this was sent.
        calls: Vec<Told>,
    },
    /// That was all ("sync complete").
    SyncEnd {
        /// Of this sync.
        generation: u32,
        /// Chunks sent.
        chunks: u32,
    },
    /// What the node has, to be compared (R33).
    Compare(Box<Digests>),
    /// All that the node has or asks for in one part, or in a span of it (R33).
    Bucket {
        /// The part.
        bucket: u8,
        /// Which of its calls these are.
        span: Span,
        /// Calls that are up.
        calls: Vec<Told>,
        /// Calls whose request is on its way, or was given up a moment ago.
        asked: Vec<(Guid, Leg)>,
    },
    /// What the node has of scopes that are given out in quotas: every 250 ms, and when it is short. The answer renews its lease.
    QuotaReport {
        /// Counts the reports of the session, from 1.
        number: u64,
        /// The last [`ToNode::QuotaGrant`] of the session that it goes by; 0: none.
        seen: u64,
        /// Each scope with something to tell.
        scopes: Vec<QuotaUse>,
    },
    /// The authority of the node is alive (R36).
    Heartbeat {
        /// As in the hello, for they change with a reload.
        rules: u64,
    },
    /// The node ends, and its calls with it.
    Goodbye,
}

/// A span of calls in the order of GUIDs and legs: those behind `after`, up to `upto`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// `None`: from the first one on.
    pub after: Option<(Guid, Leg)>,
    /// That one with them. `None`: to the last.
    pub upto: Option<(Guid, Leg)>,
}

impl Span {
    /// Whether this one is among them.
    pub fn has(&self, guid: Guid, leg: Leg) -> bool {
        self.after.is_none_or(|after| after < (guid, leg)) && self.upto.is_none_or(|upto| (guid, leg) <= upto)
    }
}

/// What a node has of one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QuotaUse {
    /// The scope.
    pub scope: ScopeId,
    /// Calls on its quota.
    pub live: u32,
    /// So many there will be at most, unless it gets more: its quota, or more until it has got used to less.
    pub bound: u32,
    /// Calls that found no place in it since the last report.
    pub want: u32,
}

/// What a node may have of one scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// The scope.
    pub scope: ScopeId,
    /// So many calls at a time; [`UNLIMITED`](super::limits::UNLIMITED) where nothing is limited.
    pub calls: u32,
}

/// Why a session is refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Refusal {
    /// It speaks another version.
    Version,
    /// Its scopes are others.
    Configuration,
    /// A node of this name is alive (R35).
    DuplicateId,
    /// The central node has no room for another node.
    Full,
    /// It does not lead, and the node has no use for a standby.
    NotLeader,
    /// The node listens to a central node of another cluster, which has a higher epoch.
    OtherCluster,
}

impl Refusal {
    /// In words, for operators.
    pub const fn text(self) -> &'static str {
        match self {
            Refusal::Version => "it speaks another version of the protocol",
            Refusal::Configuration => "its [[scope]] tables are others",
            Refusal::DuplicateId => "another node of this number is alive",
            Refusal::Full => "there is no room for another node",
            Refusal::NotLeader => "it is the standby",
            Refusal::OtherCluster => "the other central node in cac.cs is of another cac.cluster: a pair has one name",
        }
    }
}

/// The answer to a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Admitted.
    Granted,
    /// Not admitted.
    Denied(Denial),
    /// The central node does not know yet what is up (R32).
    Learning,
    /// The request waited too long at the central node for the answer to be of use: the rule of being alone decides at once (R38).
    Busy,
}

/// To a gateway node.
#[derive(Clone, PartialEq, Debug)]
pub enum ToNode {
    /// The session, in the header, begins.
    Welcome {
        /// That of the hello.
        attempt: u32,
        /// Chunks that may be sent before more are allowed (R30).
        credit: u32,
        /// Whether it decides about calls. A standby keeps a copy of them.
        leads: bool,
        /// What it can do beyond the first minor version: [`features`].
        features: u32,
        /// Tells clusters apart, by the name that both of a pair have; 0: not said.
        cluster: u64,
    },
    /// The standby leads from now on, in this epoch; the session goes on in it (R42).
    Lead {
        /// Higher than every one before.
        epoch: u64,
    },
    /// The session ends: the central node ends, or leads no more.
    Goodbye,
    /// There will be no session.
    Refused {
        /// That of the hello.
        attempt: u32,
        /// Why.
        why: Refusal,
    },
    /// The reply to IP_LOOKUP, ALLOCATE or Modify.
    Reply {
        /// Where the request waits.
        handle: Handle,
        /// The call.
        guid: Guid,
        /// Its leg.
        leg: Leg,
        /// The answer.
        answer: Answer,
    },
    /// The quotas of the node: all of them; a scope that is not among them is not given out in quotas, its calls are asked for.
    QuotaGrant {
        /// Counts the grants of the session, from 1.
        number: u64,
        /// The report this answers; 0: none, and the lease is what it was.
        answers: u64,
        /// How long the quotas hold, from the moment that report was sent.
        lease: Duration,
        /// By scope.
        quotas: Vec<Quota>,
    },
    /// Reports have come.
    ReportAck {
        /// All up to this one.
        number: u64,
        /// The number, in the session, of the message with one behind the next one, which is missing; 0: none.
        gap: u64,
    },
    /// So many chunks of this sync may be sent in all.
    SyncCredit {
        /// Of this sync.
        generation: u32,
        /// In all.
        chunks: u32,
    },
    /// The sync is over.
    SyncResult {
        /// This one.
        generation: u32,
        /// False: chunks were lost, all over again.
        ok: bool,
    },
    /// These parts differ.
    Differ(Vec<u8>),
    /// The central authority is alive.
    Heartbeat {
        /// How busy it is: 0 idle, up to [`LOAD_MAX`], at which it should be asked nothing that can be decided without it (R38).
        load: u8,
    },
    /// An operator wants the node to tell all again (R47).
    Resync,
}
