//! H.248 gateways: `show gateways`, and the alarm of one that no controller has.

use super::Gateway;
use super::conditions::Condition;
use super::view::{OwnRow, Row};
use crate::proto::core::{Answer, Ask};
use crate::proto::h248::{GatewayView, State};
use crate::proto::restart::Severity;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A gateway is not registered when it starts, and changes its controller now and then: that is no alarm yet.
const PATIENCE: Duration = Duration::from_secs(5);

/// An H.248 gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GatewayRow {
    /// Its name.
    pub name: String,
    /// Its name in messages.
    pub message_id: String,
    /// The address it is served on.
    pub listen: String,
    /// The core that runs it.
    pub core: u8,
    /// `waiting`, `registering` or `active`.
    pub state: String,
    /// The controller in charge, or the one that is asked.
    pub controller: Option<String>,
    /// Since when a controller is in charge, or none is, in s.
    pub age_s: u64,
    /// Since anything came from a controller, in ms.
    pub heard_ms: Option<u64>,
    /// Channels.
    pub channels: u32,
    /// Contexts up.
    pub contexts: u32,
    /// RTP streams, and connections between channels.
    pub connections: u32,
    /// Its requests without a reply.
    pub unanswered: u32,
    /// Its core is overloaded.
    pub overloaded: bool,
    /// The share of calls that controllers are asked to block, in percent (H.248.10).
    pub reduction: u8,
}

impl Row for GatewayRow {
    const STATES: &'static [&'static str] = &["waiting", "registering", "active", "overloaded"];

    fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, state: &str) -> bool {
        match state {
            "overloaded" => self.overloaded,
            state => self.state == state,
        }
    }
}

impl Gateway {
    /// What the cores say of their gateways.
    fn gateway_views(&self, silent: &mut Vec<u8>) -> Vec<GatewayView> {
        if self.cores.plan.gateways.is_empty() {
            return Vec::new();
        }
        let answers = self.ask_owners(&Ask::Gateways, silent).into_iter();
        let views = answers.filter_map(|(_, answer)| if let Answer::Gateways(views) = answer { Some(views) } else { None });
        let mut views: Vec<GatewayView> = views.flatten().collect();
        views.sort_by_key(|view| view.index);
        views
    }

    pub(super) fn gateway_rows(&self, silent: &mut Vec<u8>) -> Vec<GatewayRow> {
        let (plan, now) = (&self.cores.plan, self.clock.now());
        let row = |view: GatewayView| {
            let own = plan.gateways.get(usize::from(view.index))?;
            Some(GatewayRow {
                name: own.name.clone(),
                message_id: own.message_id.clone(),
                listen: plan.listen.get(usize::from(own.listen)).map(ToString::to_string).unwrap_or_default(),
                core: own.core.0,
                state: word(view.state).into(),
                controller: view.controller.map(|controller| controller.to_string()),
                age_s: now.since(view.since).as_secs(),
                heard_ms: view.heard.map(|heard| now.since(heard).as_millis() as u64),
                channels: plan.gateway_spans(view.index).map(|span| span.range.count).sum(),
                contexts: view.contexts,
                connections: view.connections,
                unanswered: view.own.len() as u32,
                overloaded: view.overloaded,
                reduction: view.reduction,
            })
        };
        self.gateway_views(silent).into_iter().filter_map(row).collect()
    }

    /// Requests of the gateways that wait for a reply.
    pub(super) fn gateway_requests(&self, silent: &mut Vec<u8>) -> Vec<OwnRow> {
        let (plan, now) = (&self.cores.plan, self.clock.now());
        let mut list = Vec::new();
        for view in self.gateway_views(silent) {
            let Some(gateway) = plan.gateways.get(usize::from(view.index)) else { continue };
            list.extend(view.own.iter().map(|own| OwnRow {
                core: gateway.core.0,
                id: own.id,
                command: String::new(),
                agent: gateway.name.clone(),
                to: own.to.to_string(),
                copies: own.copies,
                age_ms: own.first_sent.map(|sent| now.since(sent).as_millis() as u64),
                provisional: own.provisional,
            }));
        }
        list
    }

    /// Gateways that no controller has.
    pub(super) fn abandoned(&self, silent: &mut Vec<u8>) -> Vec<Condition> {
        let (plan, now) = (&self.cores.plan, self.clock.now());
        let condition = |view: GatewayView| {
            let own = plan.gateways.get(usize::from(view.index))?;
            if view.state == State::Active || now.since(view.since) < PATIENCE {
                return None;
            }
            let asked = view.controller.map(|controller| controller.to_string()).unwrap_or_default();
            let what = format!("no H.248 controller is in charge: {asked} and the others of its list are asked to take it");
            let lost = Condition::new(&own.name, "controller-lost", Severity::Major, what);
            Some(lost.since(view.since).over("a controller has taken it"))
        };
        self.gateway_views(silent).into_iter().filter_map(condition).collect()
    }

    /// The gateway that is served on this listen address, by its place.
    pub(super) fn gateway_served_at(&self, local: u8) -> Option<&str> {
        self.cores.plan.gateways.iter().find(|gateway| gateway.local() == local).map(|gateway| gateway.name.as_str())
    }
}

fn word(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Registering => "registering",
        State::Active => "active",
    }
}
