//! Whom the endpoints of this gateway notify, as the restart coordinator knows them: a group is a port of an agent (0: the provisioned
//! addresses), or an H.248 gateway. Provisioned ones keep their number; those that agents name, or are known by their source, are given
//! up when no endpoint has them any more, so that their number follows the endpoints and not the ports that were ever heard of.

use crate::proto::base::{AgentId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// So many groups that nobody may have any more are kept at least.
const SPARE: usize = 64;

/// See the module page.
pub(super) struct Groups {
    list: Vec<Group>,
    numbers: BTreeMap<(AgentId, u16), u16>,
    free: Vec<u16>,
    agents: u16,
    provisioned: u16,
    /// From so many on it is worth while to look which are still in use.
    many: usize,
}

#[derive(Clone, Copy)]
struct Group {
    entity: (AgentId, u16),
    /// Since when it leaves RestartInProgress commands without an answer.
    unanswering: Option<Time>,
}

impl Groups {
    /// The first groups are the provisioned agents, behind them those of H.248 gateways, which no agent is.
    pub fn new(agents: usize, gateways: usize) -> Groups {
        let agents = (0..agents).map(|place| (AgentId(place as u8), 0));
        let numbers: BTreeMap<_, _> = agents.clone().zip(0..).collect();
        let gateways = (0..gateways).map(|place| (AgentId(u8::MAX), place as u16));
        let list: Vec<_> = agents.chain(gateways).map(|entity| Group { entity, unanswering: None }).collect();
        let provisioned = list.len();
        Groups { agents: numbers.len() as u16, numbers, free: Vec::new(), provisioned: provisioned as u16, many: provisioned + SPARE, list }
    }

    /// The group of an H.248 gateway.
    pub fn of_gateway(&self, gateway: u8) -> u16 {
        self.agents + u16::from(gateway)
    }

    /// The H.248 gateway that a group is.
    pub fn gateway(&self, group: u16) -> Option<u8> {
        (group < self.provisioned).then(|| group.checked_sub(self.agents))?.map(|place| place as u8)
    }

    /// The agent and port of a group.
    pub fn entity(&self, group: u16) -> (AgentId, u16) {
        self.list.get(usize::from(group)).map(|group| group.entity).unwrap_or_default()
    }

    /// The agents of all groups, by number; of one that was given up the last.
    pub fn agents(&self) -> impl Iterator<Item = (u16, AgentId)> {
        (0..).zip(&self.list).map(|(number, group)| (number, group.entity.0))
    }

    /// The number of a group, when there is one.
    pub fn number(&self, entity: (AgentId, u16)) -> Option<u16> {
        self.numbers.get(&entity).copied()
    }

    /// Whether those that nobody has any more are to be given up before a new one is made.
    pub fn is_to_be_cleared(&self) -> bool {
        self.free.is_empty() && self.list.len() >= self.many
    }

    /// Gives up all but the provisioned ones and these.
    pub fn keep(&mut self, used: &BTreeSet<u16>) {
        let Groups { list, numbers, free, .. } = self;
        for number in (self.provisioned..).take(list.len() - usize::from(self.provisioned)).filter(|number| !used.contains(number)) {
            let Some(group) = list.get(usize::from(number)) else { continue };
            if numbers.get(&group.entity) == Some(&number) {
                numbers.remove(&group.entity);
                free.push(number);
            }
        }
        self.many = 2 * (list.len() - free.len()) + SPARE;
    }

    /// A group for what has none; `None` when there are as many as can be.
    pub fn make(&mut self, entity: (AgentId, u16)) -> Option<u16> {
        let group = Group { entity, unanswering: None };
        let number = match self.free.pop() {
            Some(number) => {
                *self.list.get_mut(usize::from(number))? = group;
                number
            }
            None => {
                let number = u16::try_from(self.list.len()).ok().filter(|number| *number < u16::MAX)?;
                self.list.push(group);
                number
            }
        };
        self.numbers.insert(entity, number);
        Some(number)
    }

    /// A command to a group was answered, or not answered as was known at this time.
    pub fn note_answer(&mut self, group: u16, unanswered_at: Option<Time>) {
        if let Some(group) = self.list.get_mut(usize::from(group)) {
            group.unanswering = unanswered_at.map(|now| group.unanswering.unwrap_or(now));
        }
    }

    /// Since when a group leaves commands without an answer.
    pub fn unanswering(&self, group: u16) -> Option<Time> {
        self.list.get(usize::from(group))?.unanswering
    }

    /// Whether any does.
    pub fn is_any_unanswering(&self) -> bool {
        self.list.iter().any(|group| group.unanswering.is_some())
    }

    /// How many there are, with those that were given up.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.list.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::envelope::Envelope;
    use super::super::second::{Ring, core_of_two};
    use crate::proto::base::{AgentId, CoreId, EndpointIndex, EndpointRange, Time};
    use std::time::Duration;

    /// Whatever ports an agent is at in its life, it costs what its endpoints cost, and each of them is told at the right one.
    #[test]
    fn ports_that_no_endpoint_notifies_any_more_are_forgotten() {
        let mut core = core_of_two(CoreId(0), |_| {});
        let mut ring = Ring { room: 10_000, ..Ring::default() };
        let mut last = [0; 48];
        for round in 0..5000u32 {
            let (endpoint, port) = (round * 7 % 48, 3000 + round as u16);
            last[endpoint as usize] = port;
            let range = EndpointRange { first: endpoint, count: 1 };
            let now = Time::ZERO + Duration::from_millis(u64::from(round));
            ring.with(now, |turn| core.handle_envelope(turn, CoreId(1), Envelope::Entity { range, agent: AgentId(0), port }));
            while core.deadline() == Time::ZERO {
                ring.turn(&mut core, now.since(Time::ZERO));
            }
            ring.told.clear();
        }
        let lead = core.lead.as_ref().unwrap();
        assert!(lead.groups().len() < 400, "{}", lead.groups().len());
        for (endpoint, port) in (0..).zip(last) {
            let group = lead.coordinator().group(EndpointIndex(endpoint));
            assert_eq!(lead.group_entity(group), (AgentId(0), port), "{endpoint}");
        }
    }
}
