//! Digit maps and parameters from anywhere: the function that fuzzers and tests call.

use super::digits::{DigitMap, DigitTimers, Matcher};
use super::parameters::{members, setup};
use super::{ChannelKind, PackageId, find_item, find_package};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::ParameterList;
use std::time::Duration;

/// Reads the first line of `input` as a digit map that the others dial, and as the parameters of every event and signal there is, and
/// as the name of one. How much of that was accepted.
pub fn catalogue(input: &[u8]) -> u32 {
    let timers = DigitTimers { partial: Duration::from_secs(16), critical: Duration::from_secs(4) };
    let mut accepted = 0;
    let mut lines = input.split(|&byte| byte == b'\n');
    let first = lines.next().unwrap_or_default();
    if let Ok(map) = DigitMap::compile(first) {
        let mut matcher = Matcher::default();
        // A digit costs no more than the length of the map.
        for symbol in lines.flatten().take(64) {
            let found = matcher.feed(&map, *symbol, Time::ZERO, Some(&timers));
            accepted += 1 + found as u32;
        }
    }
    if let Ok(list) = ParameterList::parse(first) {
        for event in PackageId::all().flat_map(PackageId::items) {
            accepted += u32::from(event.event_parameters(Some(list)).is_ok());
            accepted += u32::from(event.signal_parameters(Some(list), ChannelKind::CasDtmf).is_ok());
        }
        accepted += members(list, ChannelKind::Clear).count() as u32;
        accepted += u32::from(setup(list, false).is_ok()) + u32::from(setup(list, true).is_ok());
    }
    let slash = first.iter().position(|&byte| byte == b'/').unwrap_or(first.len());
    let package = find_package(first.get(..slash).unwrap_or_default());
    accepted += u32::from(package.and_then(|package| find_item(package, first.get(slash + 1..)?)).is_some());
    accepted
}
