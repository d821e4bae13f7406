//! The end of the gateway, as its agents are told it. Bounded, whatever a core does: what the lead core cannot say in time is not said,
//! and other cores are not waited for.

use super::Gateway;
use super::protocol::{Failure, FailureKind};
use crate::host::cores::Silent;
use crate::proto::base::{AgentId, Time};
use crate::proto::core::{Administration, Answer, Ask, ShutdownView};
use std::time::Duration;

/// How often the lead core is asked how far it is.
const POLL: Duration = Duration::from_millis(20);
/// Longer than the grace and this a shutdown is not waited for: the last answers are awaited for 3 s.
const MARGIN: Duration = Duration::from_secs(4);

impl Gateway {
    /// Tells the agents that the gateway ends, graceful, then forced. Returns when they know, or it took too long: whether the lead
    /// core has said all of it. (Whether an agent answered is its own affair.)
    pub(super) fn shut_down(&self) -> bool {
        let forced_at = self.clock.now() + self.config().timers.shutdown_grace;
        let mut silence_told = false;
        if let Some(cluster) = &self.cluster {
            cluster.keep_places();
        }
        while self.clock.now() < forced_at + MARGIN {
            match self.lead_on(forced_at) {
                Ok(ShutdownView { complete: true, untold, .. }) => {
                    self.tell_end(&untold);
                    return true;
                }
                Err(failure) if !silence_told => {
                    tracing::error!("shutdown: {}; the agents are not told before", failure.message);
                    silence_told = true;
                }
                Ok(_) | Err(_) => {}
            }
            std::thread::park_timeout(POLL);
        }
        tracing::error!("shutdown: took too long; the agents may not know");
        false
    }

    /// Sees to it that the lead core tells the agents; how far it is.
    fn lead_on(&self, forced_at: Time) -> Result<ShutdownView, Failure> {
        let view = match self.ask_lead(Ask::Shutdown)? {
            Answer::Shutdown(view) => view,
            _ => return Err(Failure::new(FailureKind::Refused, "the lead core says something else")),
        };
        if !view.begun {
            self.ask_lead(Ask::Administer(Administration::Shutdown(forced_at)))?;
        }
        Ok(view)
    }

    /// Asks the lead core, unless it stands still: its inbox must not fill up with the same question.
    fn ask_lead(&self, ask: Ask) -> Result<Answer, Failure> {
        let lead = self.cores.plan.lead();
        let alarm = self.config().limits.stall_alarm;
        if self.cores.stalled(self.clock.now(), alarm).any(|(core, _)| core == lead) {
            return Err(Failure::new(FailureKind::Silent, Silent(lead).to_string()));
        }
        self.order(lead, ask)
    }

    /// What the agents know when all is said.
    fn tell_end(&self, untold: &[(AgentId, u16)]) {
        let plan = &self.cores.plan;
        for (core, _) in self.cores.stalled(self.clock.now(), self.config().limits.stall_alarm) {
            let part = if plan.owners.contains(&core) {
                format!("core {} told the agents for it, and its calls are not ended", plan.lead().0)
            } else {
                "what other cores send through it has not gone out".to_owned()
            };
            tracing::error!("shutdown: core {} stands still: {part}", core.0);
        }
        if untold.is_empty() {
            return tracing::info!("shutdown: every agent has confirmed that the gateway is out of service");
        }
        let names: Vec<_> = untold.iter().map(|&(agent, port)| self.agent_name(agent, port)).collect();
        tracing::warn!("shutdown: not confirmed by {}", names.join(", "));
    }
}
