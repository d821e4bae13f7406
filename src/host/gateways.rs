//! H.248 gateways, from the configuration to what their cores start with.

use crate::config::{self, Config};
use crate::proto::base::CoreId;
use crate::proto::plan::{GatewayPlan, MessageEncoding, SpanPlan};
use crate::proto::trunk::Topology;

/// The H.248 gateways, spread over the cores that own endpoints.
pub fn plans(config: &Config, topology: &Topology, spans: &[SpanPlan], owners: &[CoreId]) -> Vec<GatewayPlan> {
    let each = config.h248.iter().enumerate().map(|(place, gateway)| {
        let own = topology.spans().iter().zip(spans).filter(|(_, span)| span.gateway == Some(place as u8)).map(|(span, _)| span);
        let endpoints: u32 = own.clone().map(|span| span.endpoints.count).sum();
        let encoding = match gateway.encoding {
            config::Encoding::Compact => MessageEncoding::Compact,
            config::Encoding::Pretty => MessageEncoding::Pretty,
            config::Encoding::Binary => MessageEncoding::Binary,
        };
        GatewayPlan {
            name: gateway.name.clone(),
            message_id: config.message_id(gateway),
            listen: (config.gateway.listen.len() + place) as u8,
            streams: gateway.transport == config::Bearer::Tcp,
            core: owners.get(place % owners.len().max(1)).copied().unwrap_or_default(),
            spread: gateway.spread,
            controllers: gateway.controllers.clone(),
            has_t3: own.clone().any(|span| span.t3.is_some()),
            encoding,
            // Octets are twice as many as the text's at most.
            max_message: (gateway.max_message / if encoding == MessageEncoding::Binary { 2 } else { 1 }).min(u32::from(u16::MAX)) as u16,
            connections: endpoints.saturating_mul(config.limits.connections_per_endpoint.into()),
        }
    });
    each.collect()
}
