//! The cards of cores: from the configuration to what carries the spans of a core.
//!
//! A simulated card has its spans to itself ([`SimCard`]); spans that carry a voice are on a `Trunks`, which does its own IO when it is
//! polled. A core with both kinds has a `Mixed` card.

pub mod dahdi;
mod halves;
mod mixed;
mod ports;
mod trunks;
pub mod wire;

use self::dahdi::{Device, Kernel, LineSettings, Wanted};
use self::mixed::Mixed;
use self::ports::Ports;
pub use self::trunks::SLICE;
use self::trunks::{Carried, Driven, Trunks};
use super::clock::{self, Clock};
use super::entropy;
use super::lines;
use super::transport::sys;
use crate::config::{self, Config, DriverSpan, SpanKind, Transponder, Wire};
use crate::proto::base::{CoreId, EndpointIndex};
use crate::proto::circuit::{CircuitSettings, Coding, DigroupSettings};
use crate::proto::dahdi::SpanSettings;
use crate::proto::dahdi::abi::CHUNK;
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
    Some(configured(config, topology, span)?.wire?.line(place(span)))
}

/// The place of a line in the span that the file has it in.
fn place(span: &Span) -> usize {
    if span.t3.is_some() { span.number.saturating_sub(1) as usize } else { 0 }
}

/// Whether it is on a card that carries a voice.
fn is_real(config: &Config, topology: &Topology, span: SpanIndex) -> bool {
    let configured = topology.span(span).and_then(|span| configured(config, topology, span));
    configured.is_some_and(config::Span::is_real)
}

/// Files of a process beside the RTP ports of connections.
const FILES_BESIDE: u64 = 512;

/// Sees to it that all connections of real spans can have their ports at a time, two sockets each, and channels of the kernel's driver their
/// files (DAH-14). Where the machine does not let, that is said; connections beyond are refused (403), and channels beyond are no start.
pub fn reserve_files(config: &Config) {
    let channels: u32 = config.spans.iter().filter(|span| span.is_real()).map(|span| span.endpoints()).sum();
    let held: u32 = config.spans.iter().filter(|span| span.dahdi.is_some()).map(|span| span.endpoints()).sum();
    let connections = channels.saturating_mul(config.limits.connections_per_endpoint.into()).min(config.cesopsn.media_ports.pairs());
    if connections == 0 {
        return;
    }
    let beside = FILES_BESIDE + u64::from(held);
    let wanted = beside + 2 * u64::from(connections);
    match sys::allow_files(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => {
            let enough_for = allowed.saturating_sub(beside) / 2;
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
        Facility::Span(span) => is_real(config, topology, *span),
        // A T3 whose T1s come each in a pseudowire, or as spans of the driver, which has no T3s, has no signal of its own.
        Facility::T3(t3) => topology.t3_spans(*t3).map(SpanIndex).all(|span| is_real(config, topology, span)),
    };
    let (real, simulated): (Vec<Facility>, Vec<Facility>) = share.facilities.iter().partition(|facility| is_real(facility));
    if real.is_empty() {
        return Ok(Box::new(sim_card(config, plan, &simulated, &share)?));
    }
    let trunks = trunks(config, plan, &real, &share, clock)?;
    if simulated.is_empty() {
        return Ok(Box::new(trunks));
    }
    let sim = sim_card(config, plan, &simulated, &share)?;
    Ok(Box::new(Mixed::new(sim, trunks, share.connections)))
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

fn trunks(config: &Config, plan: &Plan, facilities: &[Facility], share: &Share, clock: &Clock) -> Result<Trunks> {
    let (mut carried, mut driven) = (Vec::new(), Vec::new());
    for facility in facilities {
        let Facility::Span(index) = *facility else { continue };
        let (Some(span), Some(of_plan)) = (plan.topology.span(index), plan.spans.get(usize::from(index.0))) else { continue };
        let signalling = of_plan.signalling;
        let coding = Coding::of(signalling.kind, signalling.ground_start, span.kind);
        let law = if of_plan.law == Law::A { voice::Law::A } else { voice::Law::Mu };
        let connections = config.limits.connections_per_endpoint.into();
        let (time_out, symmetric) = (config.cesopsn.media_timeout, config.cesopsn.symmetric_rtp);
        let quality = voice::Quality {
            loss_per_mille: config.cesopsn.quality_loss,
            delay_ms: config.cesopsn.quality_delay.as_millis() as u16,
            jitter_ms: config.cesopsn.quality_jitter.as_millis() as u16,
        };
        let of_file = configured(config, &plan.topology, span);
        let transponder = of_file.and_then(|span| span.wire.map(|wire| wire.transponder).or(span.dahdi.map(|driver| driver.transponder)));
        let transponder_hears = if transponder == Some(Transponder::Co2) { CheckTone::Co2 } else { CheckTone::Co1 };
        let voice = voice::Settings { law, connections, time_out, symmetric, quality, transponder_hears, ..voice::Settings::default() };
        if let Some(wanted) = of_file.and_then(|of_file| wanted(of_file, place(span))) {
            let block = config.dahdi.block.as_millis() as usize * CHUNK;
            let voice = voice::Settings { grain: block, ..voice };
            let endpoints = channels(span, false);
            let span_settings = SpanSettings { facility: *facility, number: wanted.number, endpoints, coding, voice };
            driven.push(Driven { settings: LineSettings { span: span_settings, wanted, block }, range: span.endpoints });
            continue;
        }
        let Some(wire) = wire(config, &plan.topology, span) else { continue };
        let layout = wire.layout().map_err(|problem| anyhow!("the pseudowire at {}: {problem}", wire.local))?;
        // Silence, and no endpoint on a channel that carries signalling.
        let idle = if of_plan.law == Law::A { 0xD5 } else { 0xFF };
        let sequence = entropy::seed().context("no randomness from the kernel")?[0] as u16;
        let Wire { framing, jitter, jitter_max, .. } = wire;
        let circuit = CircuitSettings { layout, framing, jitter, jitter_max, own_clock: false, idle, sequence };
        let endpoints = channels(span, coding.is_some());
        let settings = DigroupSettings { circuit, facility: *facility, endpoints, coding, voice };
        carried.push(Carried { settings, range: span.endpoints, wire });
    }
    let card = &config.cesopsn;
    let range = card.media_ports.first..=card.media_ports.last;
    let pool = PortPool::new(range, share.part.0, share.part.1);
    let ports = Ports::new(card.media_address, pool, share.connections, card.dscp).context("an event queue for RTP")?;
    let device = match driven.len() {
        0 => None,
        lines => Some(Box::new(Kernel::new(lines).map_err(|problem| anyhow!("card = \"dahdi\": {problem}"))?) as Box<dyn Device>),
    };
    Ok(Trunks::new(carried, driven, device, ports, share.connections, card.dscp, clock)?.with_srtp(srtp(card.srtp)))
}

fn srtp(configured: config::Srtp) -> Srtp {
    match configured {
        config::Srtp::Off => Srtp::Off,
        config::Srtp::Accept => Srtp::Accept,
        config::Srtp::Require => Srtp::Require,
    }
}

/// What the driver must have for a line of a span; `None` unless it is on such a card.
pub fn wanted(span: &config::Span, place: usize) -> Option<Wanted> {
    let DriverSpan { number, superframe, .. } = span.dahdi?.line(place);
    let name = span.lines().nth(place)?.name;
    let (kind, all, common) = if span.kind == SpanKind::E1 { (FacilityKind::E1, 31, 16) } else { (FacilityKind::T1, 24, 24) };
    let used = (1..=all).map(|channel| !(span.common_channel && channel == common)).collect();
    let signalling = lines::signalling(span);
    Some(Wanted { name, number, kind, superframe, used, coding: Coding::of(signalling.kind, signalling.ground_start, kind) })
}

/// The endpoint on each channel of a span; in a pseudowire with signalling an E1 leaves its channel 16 out.
fn channels(span: &Span, signalled: bool) -> Vec<Option<EndpointIndex>> {
    let last = if span.kind == FacilityKind::E1 { 31 } else { 24 };
    let left_out = if span.kind == FacilityKind::E1 && signalled { 16 } else { 0 };
    let on =
        |channel: u32| span.endpoints.iter().zip(0..).find(|(_, place)| span.channel_at(*place) == channel).map(|(endpoint, _)| endpoint);
    (1..=last).filter(|channel| *channel != left_out).map(on).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EMBEDDED;
    use crate::proto::trunk::FacilityPlan;

    #[test]
    fn channels_that_the_driver_must_have_are_those_that_are_endpoints() {
        let text = EMBEDDED.replacen("media_ports = \"16384-32767\"", "media_ports = \"14000-16383\"", 1);
        for (kind, word) in [(FacilityKind::T1, "t1"), (FacilityKind::E1, "e1")] {
            for common_channel in [false, true] {
                let table =
                    format!("[[span]]\nkind = \"{word}\"\nunit = 7\ncard = \"dahdi\"\ndahdi_span = 5\ncommon_channel = {common_channel}\n");
                let config = Config::parse(&format!("{text}\n{table}"), "f").unwrap();
                let wanted = wanted(&config.spans[1], 0).unwrap();
                let topology = Topology::new(&[FacilityPlan { kind, unit: 7, common_channel }]).unwrap();
                let endpoints = channels(&topology.spans()[0], false);
                assert_eq!(wanted.used, endpoints.iter().map(Option::is_some).collect::<Vec<_>>());
                assert_eq!((wanted.name, wanted.number), (format!("ds/{}-7", if word == "e1" { "e1" } else { "ds1" }), 5));
            }
        }
    }
}
