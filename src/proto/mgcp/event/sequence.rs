//! Signal lists, SL/s: their members are played one after the other (RFC 3660 2.8; SL.01 to SL.03).
//!
//! To the rest of the event machine the list is one time-out signal, whose time is up when the member ends that is being played.

use super::list;
use super::playing::{Ending, Member};
use super::watch::WatchSlot;
use crate::proto::base::Time;
use crate::proto::codec::mgcp::ParameterList;
use crate::proto::mgcp::Calls;
use crate::proto::package::parameters::members;
use crate::proto::package::{EventId, PackageId, SignalClass};
use crate::proto::trunk::CardFault;
use std::time::Duration;

/// Whether `signal` is a list of signals.
pub(super) fn is(signal: EventId) -> bool {
    signal.package() == PackageId::SL
}

/// Plays member `number` of the list that is signal `n`. False: there is no such member.
pub(super) fn play(calls: &mut Calls, now: Time, slot: WatchSlot, n: usize, number: usize) -> Result<bool, CardFault> {
    let Some((endpoint, Some(whole))) = calls.watches.get(slot).map(|watch| (watch.endpoint, watch.signals.get(n))) else {
        return Ok(false);
    };
    let mut room = list::ROOM;
    let text = list::text(&calls.endpoints.blobs, whole.parameters, &mut room);
    let Ok(all) = ParameterList::parse(text) else { return Ok(false) };
    let Some((signal, told, parameters)) = members(all, calls.channel_kind(endpoint)).nth(number) else { return Ok(false) };
    let (brief, ms) = match signal.signal().map(|traits| traits.class) {
        Some(SignalClass::Brief { ms }) => (true, Some(ms)),
        Some(SignalClass::TimeOut { default_ms, .. }) => (false, told.time_out_ms.or(default_ms).filter(|&ms| ms > 0)),
        Some(SignalClass::OnOff) | None => return Ok(false),
    };
    calls.card.start_signal(now, endpoint, None, signal, parameters)?;
    let Some(watch) = calls.watches.get_mut(slot) else { return Ok(false) };
    watch.member = Some(Member { number, signal, brief });
    if let Some(whole) = watch.signals.get_mut(n) {
        // A member without end keeps those behind it waiting for ever.
        whole.ending = Ending::TimeOut(ms.map_or(Time::NEVER, |ms| now + Duration::from_millis(ms.into())));
    }
    Ok(true)
}

/// Stops what is being played of the list: a brief member goes on to its end.
pub(super) fn stop(calls: &mut Calls, now: Time, slot: WatchSlot) {
    let Some(watch) = calls.watches.get_mut(slot) else { return };
    let endpoint = watch.endpoint;
    if let Some(member) = watch.member.take().filter(|member| !member.brief) {
        calls.card.stop_signal(now, endpoint, None, member.signal);
    }
}
