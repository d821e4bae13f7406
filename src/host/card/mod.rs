//! The cards of cores: from the configuration to what carries the spans of a core.
//!
//! A simulated card has its spans to itself ([`SimCard`]); spans in pseudowires are on a `Pseudowires`, which does its own IO when it is
//! polled. A core with both kinds has a `Mixed` card.

mod halves;
mod mixed;
mod ports;
mod pseudowires;
pub mod wire;

use self::mixed::Mixed;
use self::ports::Ports;
pub use self::pseudowires::SLICE;
use self::pseudowires::{Carried, Pseudowires};
use super::clock::{self, Clock};
use super::entropy;
use super::transport::sys;
use crate::config::{self, Config, SpanKind, Transponder, Wire};
use crate::proto::base::CoreId;
use crate::proto::circuit::{CircuitSettings, Coding, DigroupSettings};
use crate::proto::endpoint::Law;
use crate::proto::plan::Plan;
use crate::proto::trunk::simulated::PortPool;
use crate::proto::trunk::topology::Span;
use crate::proto::trunk::{Card, CheckTone, Facility, FacilityKind, SimCard, SimulatedPlan, SpanIndex, Srtp, Topology};
use crate::proto::voice;
use anyhow::{Context, Result, anyhow};

/// What the file says of a span of the topology.
pub fn configured<'c>(config: &'c Config, topology: &Topology, span: &Span) -> Option<&'c config::Span> {
    let (kind, unit) = match span.t3 {
        Some(t3) => (SpanKind::T3, topology.t3_unit(t3)),
        None if span.kind == FacilityKind::E1 => (SpanKind::E1, Some(span.number)),
        None => (SpanKind::T1, Some(span.number)),
    };
    config.spans.iter().find(|c| c.kind == kind && Some(u32::from(c.unit)) == unit)
}

/// The word of the card a facility is on.
pub fn kind(config: &Config, topology: &Topology, facility: Facility) -> &'static str {
    let span = match facility {
        Facility::T3(t3) => SpanIndex(topology.t3_spans(t3).start),
        Facility::Span(span) => span,
    };
    topology.span(span).and_then(|span| configured(config, topology, span)).map_or("sim", |span| span.card.word())
}

/// The pseudowire of a span; `None` unless it is on one.
fn wire(config: &Config, topology: &Topology, span: &Span) -> Option<Wire> {
    let first = configured(config, topology, span)?.wire?;
    Some(if span.t3.is_some() { first.line(span.number.saturating_sub(1) as usize) } else { first })
}

/// Files of a process beside the RTP ports of connections.
const FILES_BESIDE: u64 = 512;

/// Sees to it that all connections of real spans can have their ports at a time: two sockets each. Where the machine does not let, that
/// is said, and connections beyond are refused (403).
pub fn reserve_files(config: &Config) {
    let channels: u32 = config.spans.iter().filter(|span| span.wire.is_some()).map(|span| span.endpoints()).sum();
    let connections = channels.saturating_mul(config.limits.connections_per_endpoint.into()).min(config.cesopsn.media_ports.pairs());
    if connections == 0 {
        return;
    }
    let wanted = FILES_BESIDE + 2 * u64::from(connections);
    match sys::allow_files(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => {
            let enough_for = allowed.saturating_sub(FILES_BESIDE) / 2;
            tracing::warn!(allowed, wanted, "the limit of open files (ulimit -n) leaves RTP ports for {enough_for} connections only");
        }
        Err(error) => tracing::warn!(%error, wanted, "the limit of open files is not known"),
    }
}

/// Whose card it is, and what it may use.
struct Share {
    facilities: Vec<Facility>,
    connections: u32,
    /// Its part of the ports of all, 0-based, and how many there are.
    part: (u32, u32),
}

/// The card of one core: for all the spans it owns; a T3 is the lead core's.
///
/// # Errors
/// What the machine refused.
pub fn of_core(config: &Config, plan: &Plan, core: CoreId, clock: &Clock) -> Result<Box<dyn Card + Send>> {
    let owned: Vec<_> = plan.owned_spans(core).map(|span| span.range).collect();
    let mine = |facility: &Facility| match facility {
        Facility::T3(_) => plan.lead() == core,
        Facility::Span(_) => owned.contains(&plan.topology.endpoints_of(*facility)),
    };
    let facilities = plan.topology.facilities().filter(mine).collect();
    card(config, plan, Share { facilities, connections: plan.limits.connections, part: plan.card_part(core, None) }, clock)
}

/// What `core` carries of H.248 gateways: whose, and the card.
///
/// # Errors
/// What the machine refused.
pub fn of_gateways(config: &Config, plan: &Plan, core: CoreId, clock: &Clock) -> Result<Vec<(u8, Box<dyn Card + Send>)>> {
    let here = plan.gateway_cards().filter(|&(_, on)| on == core);
    here.map(|(gateway, _)| {
        let carried: Vec<_> = plan.carried_spans(gateway, core).collect();
        let mine = |facility: &Facility| matches!(facility, Facility::Span(_)) && carried.contains(&plan.topology.endpoints_of(*facility));
        let facilities = plan.topology.facilities().filter(mine).collect();
        let connections = plan.gateways.get(usize::from(gateway)).map_or(0, |gateway| gateway.connections);
        let share = Share { facilities, connections, part: plan.card_part(core, Some(gateway)) };
        Ok((gateway, card(config, plan, share, clock)?))
    })
    .collect()
}

fn card(config: &Config, plan: &Plan, share: Share, clock: &Clock) -> Result<Box<dyn Card + Send>> {
    let topology = &plan.topology;
    let is_real = |facility: &Facility| match facility {
        Facility::Span(span) => topology.span(*span).is_some_and(|span| wire(config, topology, span).is_some()),
        // A T3 whose T1s come each in a pseudowire has no signal of its own.
        Facility::T3(t3) => {
            let mut spans = topology.t3_spans(*t3).map(SpanIndex);
            spans.all(|span| topology.span(span).is_some_and(|span| wire(config, topology, span).is_some()))
        }
    };
    let (real, simulated): (Vec<Facility>, Vec<Facility>) = share.facilities.iter().partition(|facility| is_real(facility));
    if real.is_empty() {
        return Ok(Box::new(sim_card(config, plan, &simulated, &share)?));
    }
    let pseudowires = pseudowires(config, plan, &real, &share, clock)?;
    if simulated.is_empty() {
        return Ok(Box::new(pseudowires));
    }
    let sim = sim_card(config, plan, &simulated, &share)?;
    Ok(Box::new(Mixed::new(sim, pseudowires, share.connections)))
}

fn sim_card(config: &Config, plan: &Plan, facilities: &[Facility], share: &Share) -> Result<SimCard> {
    let ports = config.sim.media_ports;
    let card = SimCard::new(&SimulatedPlan {
        topology: &plan.topology,
        kinds: &plan.kinds(),
        facilities,
        address: config.sim.media_address,
        ports: ports.first..=ports.last,
        part: share.part,
        connections: share.connections,
        seed: entropy::seed().context("no randomness from the kernel")?[1],
    });
    let cost = config.sim.open_cost;
    let card = card.with_srtp(srtp(config.sim.srtp));
    Ok(if cost.is_zero() { card } else { card.with_work(Box::new(move || clock::spin(cost))) })
}

fn pseudowires(config: &Config, plan: &Plan, facilities: &[Facility], share: &Share, clock: &Clock) -> Result<Pseudowires> {
    let mut carried = Vec::new();
    for facility in facilities {
        let Facility::Span(index) = *facility else { continue };
        let (Some(span), Some(of_plan)) = (plan.topology.span(index), plan.spans.get(usize::from(index.0))) else { continue };
        let Some(wire) = wire(config, &plan.topology, span) else { continue };
        let layout = wire.layout().map_err(|problem| anyhow!("the pseudowire at {}: {problem}", wire.local))?;
        let signalling = of_plan.signalling;
        let coding = Coding::of(signalling.kind, signalling.ground_start, span.kind);
        // Silence, and no endpoint on a channel that carries signalling.
        let idle = if of_plan.law == Law::A { 0xD5 } else { 0xFF };
        let sequence = entropy::seed().context("no randomness from the kernel")?[0] as u16;
        let Wire { framing, jitter, jitter_max, transponder, .. } = wire;
        let circuit = CircuitSettings { layout, framing, jitter, jitter_max, own_clock: false, idle, sequence };
        let endpoints = channels(span, coding.is_some());
        let law = if of_plan.law == Law::A { voice::Law::A } else { voice::Law::Mu };
        let connections = config.limits.connections_per_endpoint.into();
        let (time_out, symmetric) = (config.cesopsn.media_timeout, config.cesopsn.symmetric_rtp);
        let transponder_hears = if transponder == Transponder::Co1 { CheckTone::Co1 } else { CheckTone::Co2 };
        let quality = voice::Quality {
            loss_per_mille: config.cesopsn.quality_loss,
            delay_ms: config.cesopsn.quality_delay.as_millis() as u16,
            jitter_ms: config.cesopsn.quality_jitter.as_millis() as u16,
        };
        let voice = voice::Settings { law, connections, time_out, symmetric, quality, transponder_hears, ..voice::Settings::default() };
        let settings = DigroupSettings { circuit, facility: *facility, endpoints, coding, voice };
        carried.push(Carried { settings, range: span.endpoints, wire });
    }
    let card = &config.cesopsn;
    let range = card.media_ports.first..=card.media_ports.last;
    let pool = PortPool::new(range, share.part.0, share.part.1);
    let ports = Ports::new(card.media_address, pool, share.connections, card.dscp).context("an event queue for RTP")?;
    Ok(Pseudowires::new(carried, ports, share.connections, card.dscp, clock)?.with_srtp(srtp(card.srtp)))
}

fn srtp(configured: config::Srtp) -> Srtp {
    match configured {
        config::Srtp::Off => Srtp::Off,
        config::Srtp::Accept => Srtp::Accept,
        config::Srtp::Require => Srtp::Require,
    }
}

/// The endpoint on each channel of a pseudowire. With signalling an E1 leaves its channel 16 out.
fn channels(span: &Span, signalled: bool) -> Vec<Option<crate::proto::base::EndpointIndex>> {
    let last = if span.kind == FacilityKind::E1 { 31 } else { 24 };
    let left_out = if span.kind == FacilityKind::E1 && signalled { 16 } else { 0 };
    let on =
        |channel: u32| span.endpoints.iter().zip(0..).find(|(_, place)| span.channel_at(*place) == channel).map(|(endpoint, _)| endpoint);
    (1..=last).filter(|channel| *channel != left_out).map(on).collect()
}
