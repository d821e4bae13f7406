//! (temporary)
use super::Core;
use super::outside::{Frames, Outside, Turn};
use crate::proto::base::*;
use crate::proto::codec::mgcp::NotifiedEntity;
use crate::proto::plan::{Plan, Settings};
use crate::proto::transaction::outgoing::Outcome;
use crate::proto::trunk::{Defect, Facility};
pub(super) struct Lead {}
impl Lead {
    pub fn new(_: &Plan, _: &Settings, _: Rng, _: Time) -> Lead {
        Lead {}
    }
    pub fn set_settings(&mut self, _: &Settings) {}
    pub fn deadline(&self) -> Time {
        Time::NEVER
    }
}
impl Core {
    pub(super) fn handle_lead<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>) {}
    pub(super) fn lead_trigger<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>, _: EndpointIndex) {}
    pub(super) fn lead_entity<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>, _: EndpointRange, _: AgentId, _: u16) {}
    pub(super) fn lead_calls<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>, _: CoreId, _: u32) {}
    pub(super) fn note_calls<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>) {}
    pub(super) fn note_defect<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>, _: Facility, _: Defect, _: bool, _: bool) {}
    pub(super) fn restart_answered<F: Frames, O: Outside>(
        &mut self,
        _: &mut Turn<'_, F, O>,
        _: u32,
        _: Outcome,
        _: u16,
        _: Option<NotifiedEntity<'_>>,
    ) {
    }
    pub(super) fn restart_unanswered<F: Frames, O: Outside>(&mut self, _: &mut Turn<'_, F, O>, _: u32) {}
}
