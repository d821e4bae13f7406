//! H.248 gateways, from the configuration to what their cores start with.

use super::entropy;
use crate::config::{self, Config};
use crate::proto::base::CoreId;
use crate::proto::plan::{GatewayPlan, Plan, SpanPlan};
use crate::proto::trunk::{Card, Facility, SimCard, SimulatedPlan, Topology};
use anyhow::{Context, Result};

/// The H.248 gateways, spread over the cores that own endpoints.
pub fn plans(config: &Config, topology: &Topology, spans: &[SpanPlan], owners: &[CoreId]) -> Vec<GatewayPlan> {
    let each = config.h248.iter().enumerate().map(|(place, gateway)| {
        let own = topology.spans().iter().zip(spans).filter(|(_, span)| span.gateway == Some(place as u8)).map(|(span, _)| span);
        let endpoints: u32 = own.clone().map(|span| span.endpoints.count).sum();
        GatewayPlan {
            name: gateway.name.clone(),
            message_id: config.message_id(gateway),
            listen: (config.gateway.listen.len() + place) as u8,
            core: owners.get(place % owners.len().max(1)).copied().unwrap_or_default(),
            controllers: gateway.controllers.clone(),
            has_t3: own.clone().any(|span| span.t3.is_some()),
            pretty: gateway.encoding == config::Encoding::Pretty,
            max_message: gateway.max_message.min(u32::from(u16::MAX)) as u16,
            connections: endpoints.saturating_mul(config.limits.connections_per_endpoint.into()),
        }
    });
    each.collect()
}

/// A simulated card for each H.248 gateway that `core` runs, with ports of its own.
pub fn cards(config: &Config, plan: &Plan, core: CoreId) -> Result<Vec<Box<dyn Card + Send>>> {
    let ports = config.sim.media_ports;
    let here = plan.gateways.iter().enumerate().filter(|(_, gateway)| gateway.core == core);
    here.map(|(place, gateway)| {
        let owned: Vec<_> = plan.gateway_spans(place as u8).map(|span| span.range).collect();
        let mine = |facility: &Facility| matches!(facility, Facility::Span(_)) && owned.contains(&plan.topology.endpoints_of(*facility));
        let facilities: Vec<Facility> = plan.topology.facilities().filter(mine).collect();
        let card = SimCard::new(&SimulatedPlan {
            topology: &plan.topology,
            kinds: &plan.kinds(),
            facilities: &facilities,
            address: config.sim.media_address,
            ports: ports.first..=ports.last,
            part: ((plan.owners.len() + place) as u32, (plan.owners.len() + plan.gateways.len()) as u32),
            connections: gateway.connections,
            seed: entropy::seed().context("no randomness from the kernel")?[1],
        });
        Ok(Box::new(card) as Box<dyn Card + Send>)
    })
    .collect()
}
