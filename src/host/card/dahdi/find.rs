//! Whether the driver has what is configured, and where: everything that is missing is told at once, in the words of who mends it.

use super::{Device, reason};
use crate::proto::circuit::Coding;
use crate::proto::dahdi::abi::{self, CHANNELS_MAX, Params, SpanInfo};
use crate::proto::trunk::{FacilityKind, LineState};
use std::collections::BTreeMap;
use std::io;

/// What a span must be.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The facility, by its name.
    pub name: String,
    /// The number of the driver's span.
    pub number: u16,
    /// T1 or E1.
    pub kind: FacilityKind,
    /// Whether it has superframes (D4).
    pub superframe: bool,
    /// By channel, from the first one on: whether it is an endpoint.
    pub used: Vec<bool>,
    /// How they signal.
    pub coding: Option<Coding>,
}

/// Every channel that the driver has, by its span and its place there.
#[derive(Debug, Default)]
pub struct Channels(BTreeMap<(u32, u32), Params>);

impl Channels {
    /// Asks for all of them.
    pub fn of(device: &mut dyn Device) -> Channels {
        let mut found = BTreeMap::new();
        for number in 1..=CHANNELS_MAX {
            let mut octets = Params::of(number);
            if device.control(abi::GET_PARAMS, &mut octets).is_ok() {
                let params = Params::read(&octets);
                found.insert((params.span, params.position), params);
            }
        }
        Channels(found)
    }
}

/// A span's state as the driver tells it.
///
/// # Errors
/// Why it does not, in words.
pub fn status(device: &mut dyn Device, number: u16) -> Result<[u8; SpanInfo::OCTETS], String> {
    let mut octets = SpanInfo::of(number);
    let Err(error) = device.control(abi::SPANSTAT, &mut octets) else { return Ok(octets) };
    let mut old = [0; abi::SPANSTAT_V1.octets()];
    old.iter_mut().zip(SpanInfo::of(number)).for_each(|(old, new)| *old = new);
    let is_unknown = matches!(error.raw_os_error(), Some(libc::ENOTTY | libc::ENOSYS));
    if is_unknown && device.control(abi::SPANSTAT_V1, &mut old).is_ok() {
        return Err("the driver is too old: it tells of spans in 296 octets, and 314 are needed (DAHDI 2.3 and newer)".into());
    }
    Err(match error.raw_os_error() {
        Some(libc::ENOTTY | libc::ENOSYS) => format!("the driver does not tell of spans in the form that is known here ({error})"),
        Some(libc::EINVAL | libc::ENXIO | libc::ENODEV) => format!("the driver has no span {number} ({error})"),
        _ => error.to_string(),
    })
}

/// The driver's numbers of a span's channels; none of one that is not used.
///
/// # Errors
/// Everything that is missing.
pub fn find(device: &mut dyn Device, channels: &Channels, wanted: &Wanted) -> Result<Vec<Option<u16>>, Vec<String>> {
    let Wanted { name, number, kind, superframe, used, coding } = wanted;
    let octets = status(device, *number).map_err(|problem| vec![format!("{name}: {problem}")])?;
    let info = SpanInfo::read(&octets);
    let at = format!("{name} (span {number}, {})", abi::text(&octets, SpanInfo::NAME.0, SpanInfo::NAME.1));
    let mut problems = Vec::new();
    let (all, what) = if *kind == FacilityKind::E1 { (31, "an E1") } else { (24, "a T1") };
    if info.channels != all {
        problems.push(format!("{at}: the driver says it has {} channels; {what} has {all}", info.channels));
    }
    let framing = (info.line & abi::line::D4 != 0, info.line & abi::line::ESF != 0);
    match (framing, *superframe) {
        ((true, false), false) if *kind == FacilityKind::T1 => {
            problems.push(format!("{at}: the driver has it as D4 (superframe): framing must be \"d4\", or the driver's line esf"));
        }
        ((false, true), true) => problems.push(format!("{at}: the driver has it as ESF: framing must be \"esf\", or the driver's line d4")),
        _ => {}
    }
    let signalling = if coding.is_some() { abi::SIG_CAS } else { abi::SIG_CLEAR };
    let mut wrong: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for (position, used) in (1..).zip(used) {
        let channel = channels.0.get(&((*number).into(), position)).filter(|_| *used);
        found.push(channel.and_then(|params| u16::try_from(params.channel).ok()));
        match channel {
            None if *used => missing.push(position),
            Some(params) if params.signalling != signalling => {
                wrong.entry(abi::signalling_word(params.signalling).into()).or_default().push(params.channel);
            }
            _ => {}
        }
    }
    if !missing.is_empty() {
        problems.push(format!("{at}: the driver has no channel at its places {}", ranges(&missing)));
    }
    for (word, numbers) in wrong {
        let line = match coding {
            Some(coding) => format!("cas={}:{:04b}", ranges(&numbers), coding.bits(LineState::OnHook)),
            None => format!("clear={}", ranges(&numbers)),
        };
        let is = if numbers.len() == 1 { "is" } else { "are" };
        let numbers = ranges(&numbers);
        problems
            .push(format!("{at}: channels {numbers} {is} {word} in the driver; /etc/dahdi/system.conf must say {line} (then dahdi_cfg)"));
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// What is wrong when a channel could not be taken.
pub fn channel_problem(name: &str, channel: u16, error: &io::Error) -> String {
    format!("{name}: channel {channel} of the driver: {}", reason(error))
}

/// Numbers in order, runs as `first-last`.
fn ranges(numbers: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => parts.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    parts.iter().map(text).collect::<Vec<_>>().join(",")
}
