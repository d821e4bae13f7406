//! The protobuf bodies, and what they are to the machines. Field numbers are never used again; 0 of an enumeration is "not said".

use super::super::charge::{Charge, Class, Direction, Guid, KBITS_MAX, Leg};
use super::super::ledger::{Admission, BUCKETS, Digest, Digests};
use super::super::limits::{Cause, Denial};
use super::super::message::{Answer, Handle, LOAD_MAX, Quota, QuotaUse, Refusal, Report, Request, Span, ToCentral, ToNode, Told};
use super::super::scope::{ScopeId, Tree};
use super::{CALLS_MAX, Wire, WireError, append, read};
use std::time::Duration;

/// One call and what it is charged: the heart of IP_LOOKUP, ALLOCATE, MODIFY, FACT, RELEASE and of each entry of a sync.
#[derive(Clone, PartialEq, prost::Message)]
struct Call {
    /// Node and life of the GUID.
    #[prost(fixed64, tag = "1")]
    guid_high: u64,
    #[prost(fixed64, tag = "2")]
    guid_low: u64,
    /// 1 ingress, 2 egress.
    #[prost(uint32, tag = "3")]
    leg: u32,
    /// Places of the scopes in the tree both ends have.
    #[prost(uint32, repeated, tag = "4")]
    scopes: Vec<u32>,
    /// 1 from the trunk, 2 to it.
    #[prost(uint32, tag = "5")]
    direction: u32,
    /// 1 normal, 2 priority, 3 emergency.
    #[prost(uint32, tag = "6")]
    class: u32,
    #[prost(uint32, tag = "7")]
    kbits: u32,
    /// Who let it in: 1 the authority, 2 disconnected, 3 learning, 4 deadline, 5 emergency, 6 a quota (since minor version 2).
    #[prost(uint32, tag = "8")]
    admission: u32,
    /// Where a request waits.
    #[prost(uint32, tag = "9")]
    slot: u32,
    #[prost(uint32, tag = "10")]
    generation: u32,
    /// Since minor version 2: in which of `scopes` it sits on the node's quota, a bit for each.
    #[prost(uint32, tag = "11")]
    leased: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Hello {
    #[prost(uint32, tag = "1")]
    version: u32,
    #[prost(uint32, tag = "2")]
    attempt: u32,
    #[prost(fixed64, tag = "3")]
    fingerprint: u64,
    #[prost(uint64, tag = "4")]
    highest_epoch: u64,
    /// Since minor version 1.
    #[prost(uint32, tag = "5")]
    features: u32,
    #[prost(fixed64, tag = "6")]
    rules: u64,
    #[prost(fixed64, tag = "7")]
    cluster: u64,
}

/// FACT and RELEASE.
#[derive(Clone, PartialEq, prost::Message)]
struct Reported {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(message, optional, tag = "2")]
    call: Option<Call>,
}

/// SYNC_BEGIN, SYNC_CHUNK, SYNC_END, SYNC_CREDIT, SYNC_RESULT, BUCKET.
#[derive(Clone, PartialEq, prost::Message)]
struct Part {
    #[prost(uint32, tag = "1")]
    generation: u32,
    /// Index of a chunk, or count of chunks.
    #[prost(uint32, tag = "2")]
    chunks: u32,
    #[prost(message, repeated, tag = "3")]
    calls: Vec<Call>,
    /// Calls whose request is on its way.
    #[prost(message, repeated, tag = "4")]
    asked: Vec<Call>,
    #[prost(bool, tag = "5")]
    ok: bool,
    /// A part of a comparison.
    #[prost(uint32, tag = "6")]
    bucket: u32,
    /// Since minor version 2: the calls of the part behind this one, and up to that one.
    #[prost(message, optional, tag = "7")]
    after: Option<Call>,
    #[prost(message, optional, tag = "8")]
    upto: Option<Call>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Compare {
    #[prost(uint32, repeated, tag = "1")]
    counts: Vec<u32>,
    #[prost(fixed64, repeated, tag = "2")]
    sums: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Lead {
    #[prost(uint64, tag = "1")]
    epoch: u64,
}

/// QUOTA_REPORT and QUOTA_GRANT, since minor version 2.
#[derive(Clone, PartialEq, prost::Message)]
struct Quotas {
    #[prost(uint64, tag = "1")]
    number: u64,
    /// The grant a report has seen, the report a grant answers.
    #[prost(uint64, tag = "2")]
    other: u64,
    #[prost(uint64, tag = "3")]
    lease_ms: u64,
    #[prost(message, repeated, tag = "4")]
    scopes: Vec<QuotaOf>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct QuotaOf {
    #[prost(uint32, tag = "1")]
    scope: u32,
    /// Of a grant: the quota. Of a report: what there will be at most.
    #[prost(uint32, tag = "2")]
    calls: u32,
    #[prost(uint32, tag = "3")]
    live: u32,
    #[prost(uint32, tag = "4")]
    want: u32,
}

/// The heartbeat of a central node.
#[derive(Clone, PartialEq, prost::Message)]
struct Heartbeat {
    #[prost(uint32, tag = "1")]
    load: u32,
}

/// The heartbeat of a gateway.
#[derive(Clone, PartialEq, prost::Message)]
struct Rules {
    #[prost(fixed64, tag = "1")]
    rules: u64,
}

/// A word that says all: RESYNC, GOODBYE.
#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

/// WELCOME and REFUSED.
#[derive(Clone, PartialEq, prost::Message)]
struct Greeting {
    #[prost(uint32, tag = "1")]
    attempt: u32,
    #[prost(uint32, tag = "2")]
    credit: u32,
    /// 1 version, 2 configuration, 3 duplicate id, 4 full, 5 not the leader, 6 another cluster.
    #[prost(uint32, tag = "3")]
    why: u32,
    /// Since minor version 1: it keeps a copy, and decides nothing.
    #[prost(bool, tag = "4")]
    standby: bool,
    #[prost(uint32, tag = "5")]
    features: u32,
    #[prost(fixed64, tag = "6")]
    cluster: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Reply {
    #[prost(message, optional, tag = "1")]
    call: Option<Call>,
    /// 1 granted, 2 denied, 3 learning, 4 busy.
    #[prost(uint32, tag = "2")]
    answer: u32,
    /// Of a denial: the scope plus 1, as the place 0 is one; [`Cause`] plus 1.
    #[prost(uint32, tag = "3")]
    scope: u32,
    #[prost(uint32, tag = "4")]
    cause: u32,
    #[prost(uint32, tag = "5")]
    used: u32,
    #[prost(uint32, tag = "6")]
    limit: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Acknowledged {
    #[prost(uint64, tag = "1")]
    number: u64,
    #[prost(uint64, tag = "2")]
    gap: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Differ {
    #[prost(uint32, repeated, tag = "1")]
    buckets: Vec<u32>,
}

/// The types of messages. IP_LOOKUP (ingress) and ALLOCATE (egress) have one each, and one body (R6).
mod kind {
    pub const HELLO: u16 = 1;
    pub const WELCOME: u16 = 2;
    pub const REFUSED: u16 = 3;
    pub const IP_LOOKUP: u16 = 4;
    pub const ALLOCATE: u16 = 5;
    pub const MODIFY: u16 = 6;
    pub const REPLY: u16 = 7;
    pub const FACT: u16 = 8;
    pub const RELEASE: u16 = 9;
    pub const REPORT_ACK: u16 = 10;
    pub const SYNC_BEGIN: u16 = 11;
    pub const SYNC_CHUNK: u16 = 12;
    pub const SYNC_CREDIT: u16 = 13;
    pub const SYNC_END: u16 = 14;
    pub const SYNC_RESULT: u16 = 15;
    pub const COMPARE: u16 = 16;
    pub const DIFFER: u16 = 17;
    pub const BUCKET: u16 = 18;
    pub const HEARTBEAT: u16 = 19;
    pub const RESYNC: u16 = 20;
    pub const LEAD: u16 = 21;
    /// Of a gateway, and of a central node.
    pub const GOODBYE: u16 = 22;
    pub const QUOTA_REPORT: u16 = 23;
    pub const QUOTA_GRANT: u16 = 24;
    pub const ASK_BOTH: u16 = 25;
}

fn one_of<T: Copy>(all: &[T], number: u32) -> Result<T, WireError> {
    let place = (number as usize).checked_sub(1).ok_or(WireError::Body)?;
    all.get(place).copied().ok_or(WireError::Body)
}

const LEGS: [Leg; 2] = [Leg::Ingress, Leg::Egress];
const DIRECTIONS: [Direction; 2] = [Direction::Inbound, Direction::Outbound];
const CLASSES: [Class; 3] = [Class::Normal, Class::Priority, Class::Emergency];
const REFUSALS: [Refusal; 6] =
    [Refusal::Version, Refusal::Configuration, Refusal::DuplicateId, Refusal::Full, Refusal::NotLeader, Refusal::OtherCluster];

fn number_of<T: PartialEq>(all: &[T], value: &T) -> u32 {
    all.iter().position(|known| known == value).map_or(0, |place| place as u32 + 1)
}

impl Call {
    fn of(guid: Guid, leg: Leg) -> Call {
        let guid_high = u64::from(guid.sc) << 32 | u64::from(guid.incarnation);
        Call { guid_high, guid_low: guid.number, leg: number_of(&LEGS, &leg), ..Call::default() }
    }

    fn charged(self, charge: &Charge) -> Call {
        Call {
            scopes: charge.scopes().map(|scope| u32::from(scope.0)).collect(),
            direction: number_of(&DIRECTIONS, &charge.direction),
            class: number_of(&CLASSES, &charge.class),
            kbits: charge.kbits,
            leased: charge.scopes().zip(0..).map(|(scope, place)| u32::from(charge.is_leased(scope)) << place).sum(),
            ..self
        }
    }

    fn told(told: &Told) -> Call {
        Call { admission: number_of(&Admission::ALL, &told.admission), ..Call::of(told.guid, told.leg).charged(&told.charge) }
    }

    fn request(request: &Request) -> Call {
        let Handle { slot, generation } = request.handle;
        Call { slot, generation, ..Call::of(request.guid, request.leg).charged(&request.charge) }
    }

    fn name(&self) -> Result<(Guid, Leg), WireError> {
        let guid = Guid { sc: (self.guid_high >> 32) as u32, incarnation: self.guid_high as u32, number: self.guid_low };
        Ok((guid, one_of(&LEGS, self.leg)?))
    }

    fn handle(&self) -> Handle {
        Handle { slot: self.slot, generation: self.generation }
    }

    fn charge(&self) -> Result<Charge, WireError> {
        if self.kbits > KBITS_MAX {
            return Err(WireError::Body);
        }
        let mut charge = Charge::new(one_of(&DIRECTIONS, self.direction)?, one_of(&CLASSES, self.class)?, self.kbits);
        if self.scopes.len() > super::super::charge::SCOPES_PER_CHARGE {
            return Err(WireError::Body);
        }
        for &scope in &self.scopes {
            let scope = ScopeId(u16::try_from(scope).map_err(|_| WireError::Body)?);
            if scope == ScopeId::NONE {
                return Err(WireError::Body);
            }
            charge.add(scope);
        }
        let leased = charge.scopes().zip(0..).filter(|(_, place)| self.leased >> place & 1 == 1);
        Ok(leased.fold(charge, |charge, (scope, _)| charge.lease(scope)))
    }

    fn to_told(&self) -> Result<Told, WireError> {
        let (guid, leg) = self.name()?;
        Ok(Told { guid, leg, charge: self.charge()?, admission: one_of(&Admission::ALL, self.admission)? })
    }

    fn to_request(&self) -> Result<Request, WireError> {
        let (guid, leg) = self.name()?;
        Ok(Request { handle: self.handle(), guid, leg, charge: self.charge()? })
    }
}

fn calls(calls: &[Call]) -> Result<Vec<Told>, WireError> {
    if calls.len() > CALLS_MAX {
        return Err(WireError::Long);
    }
    calls.iter().map(Call::to_told).collect()
}

fn scope(number: u32) -> Result<ScopeId, WireError> {
    u16::try_from(number).map(ScopeId).map_err(|_| WireError::Body)
}

/// The numbers and scopes of a report or a grant.
fn quotas<T>(body: &[u8], read_scope: impl Fn(&QuotaOf, ScopeId) -> T) -> Result<(Quotas, Vec<T>), WireError> {
    let quotas = read::<Quotas>(body)?;
    if quotas.scopes.len() > Tree::SCOPES_MAX {
        return Err(WireError::Long);
    }
    let scopes = quotas.scopes.iter().map(|of| Ok(read_scope(of, scope(of.scope)?))).collect::<Result<_, _>>()?;
    Ok((quotas, scopes))
}

fn bucket(number: u32) -> Result<u8, WireError> {
    u8::try_from(number).map_err(|_| WireError::Body)
}

impl Wire for ToCentral {
    fn put(&self, out: &mut Vec<u8>) -> u16 {
        match self {
            &ToCentral::Hello { version, attempt, fingerprint, highest_epoch, features, rules, cluster } => {
                let version = u32::from(version);
                append(&Hello { version, attempt, fingerprint, highest_epoch, features, rules, cluster }, out);
                kind::HELLO
            }
            ToCentral::Ask(request) => {
                append(&Call::request(request), out);
                if request.leg == Leg::Ingress { kind::IP_LOOKUP } else { kind::ALLOCATE }
            }
            ToCentral::AskBoth(one, other) => {
                append(&Part { calls: vec![Call::request(one), Call::request(other)], ..Part::default() }, out);
                kind::ASK_BOTH
            }
            ToCentral::Modify(request) => {
                append(&Call::request(request), out);
                kind::MODIFY
            }
            ToCentral::Report { number, report } => {
                let (call, kind) = match report {
                    Report::Fact(told) => (Call::told(told), kind::FACT),
                    Report::Release(guid, leg) => (Call::of(*guid, *leg), kind::RELEASE),
                };
                append(&Reported { number: *number, call: Some(call) }, out);
                kind
            }
            ToCentral::SyncBegin { generation } => {
                append(&Part { generation: *generation, ..Part::default() }, out);
                kind::SYNC_BEGIN
            }
            ToCentral::SyncChunk { generation, index, calls } => {
                let calls = calls.iter().map(Call::told).collect();
                append(&Part { generation: *generation, chunks: *index, calls, ..Part::default() }, out);
                kind::SYNC_CHUNK
            }
            ToCentral::SyncEnd { generation, chunks } => {
                append(&Part { generation: *generation, chunks: *chunks, ..Part::default() }, out);
                kind::SYNC_END
            }
            ToCentral::Compare(digests) => {
                let counts = digests.iter().map(|digest| digest.count).collect();
                append(&Compare { counts, sums: digests.iter().map(|digest| digest.sum).collect() }, out);
                kind::COMPARE
            }
            ToCentral::Bucket { bucket, span, calls, asked } => {
                let calls = calls.iter().map(Call::told).collect();
                let name = |(guid, leg)| Call::of(guid, leg);
                let asked = asked.iter().copied().map(name).collect();
                let (after, upto) = (span.after.map(name), span.upto.map(name));
                append(&Part { bucket: u32::from(*bucket), calls, asked, after, upto, ..Part::default() }, out);
                kind::BUCKET
            }
            ToCentral::QuotaReport { number, seen, scopes } => {
                let of =
                    |&QuotaUse { scope, live, bound, want }: &QuotaUse| QuotaOf { scope: u32::from(scope.0), calls: bound, live, want };
                append(&Quotas { number: *number, other: *seen, lease_ms: 0, scopes: scopes.iter().map(of).collect() }, out);
                kind::QUOTA_REPORT
            }
            &ToCentral::Heartbeat { rules } => {
                append(&Rules { rules }, out);
                kind::HEARTBEAT
            }
            ToCentral::Goodbye => {
                append(&Nothing {}, out);
                kind::GOODBYE
            }
        }
    }

    fn get(kind: u16, body: &[u8]) -> Result<ToCentral, WireError> {
        let part = || read::<Part>(body);
        Ok(match kind {
            kind::HELLO => {
                let Hello { version, attempt, fingerprint, highest_epoch, features, rules, cluster } = read(body)?;
                let version = u16::try_from(version).unwrap_or(u16::MAX);
                ToCentral::Hello { version, attempt, fingerprint, highest_epoch, features, rules, cluster }
            }
            kind::IP_LOOKUP | kind::ALLOCATE => {
                let request = read::<Call>(body)?.to_request()?;
                if (request.leg == Leg::Ingress) != (kind == kind::IP_LOOKUP) {
                    return Err(WireError::Body);
                }
                ToCentral::Ask(request)
            }
            kind::ASK_BOTH => match &part()?.calls[..] {
                [one, other] => ToCentral::AskBoth(one.to_request()?, other.to_request()?),
                _ => return Err(WireError::Body),
            },
            kind::MODIFY => ToCentral::Modify(read::<Call>(body)?.to_request()?),
            kind::FACT | kind::RELEASE => {
                let Reported { number, call } = read(body)?;
                let call = call.ok_or(WireError::Body)?;
                let report = match kind {
                    kind::FACT => Report::Fact(call.to_told()?),
                    _ => call.name().map(|(guid, leg)| Report::Release(guid, leg))?,
                };
                ToCentral::Report { number, report }
            }
            kind::SYNC_BEGIN => ToCentral::SyncBegin { generation: part()?.generation },
            kind::SYNC_CHUNK => {
                let part = part()?;
                ToCentral::SyncChunk { generation: part.generation, index: part.chunks, calls: calls(&part.calls)? }
            }
            kind::SYNC_END => part().map(|part| ToCentral::SyncEnd { generation: part.generation, chunks: part.chunks })?,
            kind::COMPARE => {
                let Compare { counts, sums } = read(body)?;
                if counts.len() != BUCKETS || sums.len() != BUCKETS {
                    return Err(WireError::Body);
                }
                let mut digests: Box<Digests> = Box::new([Digest::default(); BUCKETS]);
                for (digest, (&count, &sum)) in digests.iter_mut().zip(counts.iter().zip(&sums)) {
                    *digest = Digest { count, sum };
                }
                ToCentral::Compare(digests)
            }
            kind::BUCKET => {
                let part = part()?;
                let asked = part.asked.iter().take(CALLS_MAX).map(Call::name).collect::<Result<_, _>>()?;
                let name = |call: Option<Call>| call.map(|call| call.name()).transpose();
                let span = Span { after: name(part.after)?, upto: name(part.upto)? };
                ToCentral::Bucket { bucket: bucket(part.bucket)?, span, calls: calls(&part.calls)?, asked }
            }
            kind::QUOTA_REPORT => {
                let of = |of: &QuotaOf, scope| QuotaUse { scope, live: of.live, bound: of.calls, want: of.want };
                let (Quotas { number, other: seen, .. }, scopes) = quotas(body, of)?;
                ToCentral::QuotaReport { number, seen, scopes }
            }
            kind::HEARTBEAT => read(body).map(|Rules { rules }| ToCentral::Heartbeat { rules })?,
            kind::GOODBYE => ToCentral::Goodbye,
            other => return Err(WireError::Type(other)),
        })
    }
}

impl Wire for ToNode {
    fn put(&self, out: &mut Vec<u8>) -> u16 {
        match self {
            &ToNode::Welcome { attempt, credit, leads, features, cluster } => {
                append(&Greeting { attempt, credit, standby: !leads, features, cluster, ..Greeting::default() }, out);
                kind::WELCOME
            }
            ToNode::Refused { attempt, why } => {
                append(&Greeting { attempt: *attempt, why: number_of(&REFUSALS, why), ..Greeting::default() }, out);
                kind::REFUSED
            }
            ToNode::Reply { handle, guid, leg, answer } => {
                let call = Call { slot: handle.slot, generation: handle.generation, ..Call::of(*guid, *leg) };
                let reply = Reply { call: Some(call), ..Reply::default() };
                let reply = match answer {
                    Answer::Granted => Reply { answer: 1, ..reply },
                    Answer::Denied(Denial { scope, cause, used, limit }) => Reply {
                        answer: 2,
                        scope: u32::from(scope.0) + 1,
                        cause: number_of(&Cause::ALL, cause),
                        used: *used,
                        limit: *limit,
                        ..reply
                    },
                    Answer::Learning => Reply { answer: 3, ..reply },
                    Answer::Busy => Reply { answer: 4, ..reply },
                };
                append(&reply, out);
                kind::REPLY
            }
            ToNode::QuotaGrant { number, answers, lease, quotas } => {
                let of = |&Quota { scope, calls }: &Quota| QuotaOf { scope: u32::from(scope.0), calls, ..QuotaOf::default() };
                let lease_ms = lease.as_millis() as u64;
                append(&Quotas { number: *number, other: *answers, lease_ms, scopes: quotas.iter().map(of).collect() }, out);
                kind::QUOTA_GRANT
            }
            &ToNode::ReportAck { number, gap } => {
                append(&Acknowledged { number, gap }, out);
                kind::REPORT_ACK
            }
            ToNode::SyncCredit { generation, chunks } => {
                append(&Part { generation: *generation, chunks: *chunks, ..Part::default() }, out);
                kind::SYNC_CREDIT
            }
            ToNode::SyncResult { generation, ok } => {
                append(&Part { generation: *generation, ok: *ok, ..Part::default() }, out);
                kind::SYNC_RESULT
            }
            ToNode::Differ(buckets) => {
                append(&Differ { buckets: buckets.iter().map(|&bucket| u32::from(bucket)).collect() }, out);
                kind::DIFFER
            }
            &ToNode::Heartbeat { load } => {
                append(&Heartbeat { load: load.into() }, out);
                kind::HEARTBEAT
            }
            ToNode::Resync => {
                append(&Nothing {}, out);
                kind::RESYNC
            }
            ToNode::Lead { epoch } => {
                append(&Lead { epoch: *epoch }, out);
                kind::LEAD
            }
            ToNode::Goodbye => {
                append(&Nothing {}, out);
                kind::GOODBYE
            }
        }
    }

    fn get(kind: u16, body: &[u8]) -> Result<ToNode, WireError> {
        let part = || read::<Part>(body);
        Ok(match kind {
            kind::WELCOME => {
                let Greeting { attempt, credit, standby, features, cluster, .. } = read(body)?;
                ToNode::Welcome { attempt, credit, leads: !standby, features, cluster }
            }
            kind::REFUSED => {
                let Greeting { attempt, why, .. } = read(body)?;
                ToNode::Refused { attempt, why: one_of(&REFUSALS, why)? }
            }
            kind::REPLY => reply(&read(body)?)?,
            kind::QUOTA_GRANT => {
                let (Quotas { number, other: answers, lease_ms, .. }, quotas) = quotas(body, |of, scope| Quota { scope, calls: of.calls })?;
                ToNode::QuotaGrant { number, answers, lease: Duration::from_millis(lease_ms), quotas }
            }
            kind::REPORT_ACK => read(body).map(|Acknowledged { number, gap }| ToNode::ReportAck { number, gap })?,
            kind::SYNC_CREDIT => part().map(|part| ToNode::SyncCredit { generation: part.generation, chunks: part.chunks })?,
            kind::SYNC_RESULT => part().map(|part| ToNode::SyncResult { generation: part.generation, ok: part.ok })?,
            kind::DIFFER => {
                let Differ { buckets } = read(body)?;
                if buckets.len() > BUCKETS {
                    return Err(WireError::Body);
                }
                ToNode::Differ(buckets.into_iter().map(bucket).collect::<Result<_, _>>()?)
            }
            kind::HEARTBEAT => read(body).map(|Heartbeat { load }| ToNode::Heartbeat { load: load.min(LOAD_MAX.into()) as u8 })?,
            kind::RESYNC => ToNode::Resync,
            kind::LEAD => read(body).map(|Lead { epoch }| ToNode::Lead { epoch })?,
            kind::GOODBYE => ToNode::Goodbye,
            other => return Err(WireError::Type(other)),
        })
    }
}

fn reply(reply: &Reply) -> Result<ToNode, WireError> {
    let call = reply.call.as_ref().ok_or(WireError::Body)?;
    let (guid, leg) = call.name()?;
    let answer = match reply.answer {
        1 => Answer::Granted,
        2 => {
            let scope = reply.scope.checked_sub(1).and_then(|scope| u16::try_from(scope).ok()).ok_or(WireError::Body)?;
            // A cause of a later version is a refusal all the same.
            let cause = one_of(&Cause::ALL, reply.cause).unwrap_or(Cause::Calls);
            Answer::Denied(Denial { scope: ScopeId(scope), cause, used: reply.used, limit: reply.limit })
        }
        3 => Answer::Learning,
        4 => Answer::Busy,
        _ => return Err(WireError::Body),
    };
    Ok(ToNode::Reply { handle: call.handle(), guid, leg, answer })
}
