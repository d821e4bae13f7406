//! Layouts of cores, and the plan and settings a simulated gateway starts from.

use crate::proto::base::CoreId;
use crate::proto::cas::{self};
use crate::proto::plan::{AgentSettings, Limits, Plan, Settings, SpanPlan};
use crate::proto::trunk::{FacilityPlan, Topology};

/// Which cores there are and what they do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// One core that does everything.
    One,
    /// Two cores that do everything.
    Two,
    /// Four cores that do everything.
    Four,
    /// One core moves datagrams, one owns the endpoints.
    Split1,
    /// One core moves datagrams, three own endpoints.
    Split3,
}

impl Layout {
    /// Every layout.
    pub const ALL: [Layout; 5] = [Layout::One, Layout::Two, Layout::Four, Layout::Split1, Layout::Split3];

    /// How many cores.
    pub fn cores(self) -> u8 {
        match self {
            Layout::One => 1,
            Layout::Two | Layout::Split1 => 2,
            Layout::Four | Layout::Split3 => 4,
        }
    }

    /// The cores that own endpoints.
    pub fn owners(self) -> Vec<CoreId> {
        let first = u8::from(matches!(self, Layout::Split1 | Layout::Split3));
        (first..self.cores()).map(CoreId).collect()
    }

    /// Received frames that may stay in hand, as a gateway has them.
    fn in_hand(self) -> u16 {
        match self {
            Layout::One | Layout::Two | Layout::Four | Layout::Split1 => 1536,
            Layout::Split3 => 3072,
        }
    }

    /// The cores that receive datagrams.
    pub fn receivers(self) -> Vec<CoreId> {
        match self {
            Layout::Split1 | Layout::Split3 => vec![CoreId(0)],
            _ => self.owners(),
        }
    }
}

/// The plan of a gateway with these facilities: domain `tgw.example.net` and its address, 192.0.2.10 and 2001:db8::10, port 2427.
pub fn plan(layout: Layout, facilities: &[FacilityPlan]) -> Plan {
    let topology = Topology::new(facilities).expect("facilities of a simulation");
    let spans = vec![SpanPlan::default(); topology.spans().len()];
    Plan {
        spans,
        domains: vec![b"tgw.example.net"[..].into(), b"[192.0.2.10]"[..].into()],
        listen: vec!["192.0.2.10:2427".parse().expect("address"), "[2001:db8::10]:2427".parse().expect("address")],
        cores: layout.cores(),
        owners: layout.owners(),
        limits: Limits {
            connections: topology.len() * 4,
            connections_per_endpoint: 4,
            blob_blocks: 4096,
            entities: 64,
            jobs: 256,
            datagrams: layout.in_hand(),
            messages_per_datagram: 32,
            slice: 16,
            datagram: 4400,
            history_entries: 20_000,
            history_bytes: 16 << 20,
            own_commands: 128,
        },
        times: cas::Times::default(),
        admission: None,
        gateways: Vec::new(),
        epoch_ms: 1_767_225_600_000,
        topology: topology.into(),
    }
}

/// Settings with two agents, `ca1` at 192.0.2.1 and `ca2` at 192.0.2.2, and the default timers.
pub fn settings() -> Settings {
    let agent = |number: u8| AgentSettings {
        domains: vec![format!("ca{number}.example.net")],
        ..AgentSettings::at(&format!("ca{number}"), ([192, 0, 2, number], 2727).into())
    };
    Settings::new(vec![agent(1), agent(2)])
}
