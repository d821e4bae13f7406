//! From the text of `L:` to the options a connection keeps, and to what it will send and receive (RFC 3435 2.3.5, 2.6).

use super::describe::Described;
use super::{Calls, FORMAT_OF_NOTHING, NO_COMMON_ENCODING, OPTION_VALUE, PACKAGE_UNKNOWN, Refused};
use crate::proto::base::EndpointIndex;
use crate::proto::codec::mgcp::{
    Code, Command, Format, Gain as GainText, LocalConnectionOptions, NameList, Network as NetworkText, Range, Reservation,
};
use crate::proto::endpoint::{Encoding, Encodings, Gain, Network, Options, negotiate};
use crate::proto::trunk::TelephoneEvents;

/// The options of `command`, each one that can be had (G-LCO-10..12). What cannot be had is passed over for agents that give options to
/// any gateway and mean them for those that have them.
pub(super) fn given(calls: &Calls, command: &Command<'_>) -> Result<Options, Refused> {
    let Some(text) = command.get(Code::L) else { return Ok(Options::default()) };
    let readings = &mut *calls.readings.borrow_mut();
    let lenient = calls.manners.ignores_options;
    let memo = if lenient { &mut readings.lenient_options } else { &mut readings.options };
    memo.read(text, |_| read(command, lenient)).copied()
}

fn read(command: &Command<'_>, lenient: bool) -> Result<Options, Refused> {
    let text: LocalConnectionOptions<'_> = if lenient { command.known_options()? } else { command.options()? };
    if !lenient && text.packages().next().is_some() {
        return Err(PACKAGE_UNKNOWN);
    }
    let reserves = !matches!(text.reservation, None | Some(Reservation::BestEffort));
    if !lenient && (text.encryption.is_some() || reserves) {
        return Err(OPTION_VALUE);
    }
    let network = match text.network {
        None => None,
        Some(NetworkText::Internet) => Some(Network::Internet),
        Some(NetworkText::Local) => Some(Network::Local),
        // Another network is not an option more or less: media would go nowhere.
        Some(_) => return Err(OPTION_VALUE),
    };
    let (codecs, telephone_events) = match text.codecs {
        // What is passed over needs no format either.
        codecs if lenient => {
            let named = codecs.into_iter().flat_map(|names| names.iter()).any(is_events);
            let events = if named { TelephoneEvents::Keys } else { TelephoneEvents::None };
            (codecs.map(|names| names.iter().filter_map(Encoding::by_name).collect()), events)
        }
        codecs => without_formats(codecs, &text)?,
    };
    let pair = |range: Range| (range.low, range.high);
    Ok(Options {
        encodings: codecs,
        telephone_events,
        period_ms: text.period_ms.map(pair),
        bandwidth_kbits: text.bandwidth_kbps.map(pair),
        echo_cancellation: text.echo_cancellation,
        gain: text.gain.map(|gain| match gain {
            GainText::Auto => Gain::Auto,
            GainText::Decibels(db) => Gain::Db(db),
        }),
        silence_suppression: text.silence_suppression,
        type_of_service: text.type_of_service,
        best_effort: text.reservation.is_some() && !reserves,
        network,
    })
}

/// The encodings of `a:` that can be had as `fmtp:` wants them, and the telephone events among them. The gateway has no encoding with
/// parameters, so whatever must have some counts as not supported (FM-03), and what is optional is ignored (FM-04); of telephone events
/// it has 0 to 15 (FM-05, FM-06) and, where they are named, continuity tones.
fn without_formats(
    codecs: Option<NameList<'_>>,
    text: &LocalConnectionOptions<'_>,
) -> Result<(Option<Encodings>, TelephoneEvents), Refused> {
    let names = || codecs.into_iter().flat_map(|names| names.iter());
    let same = |name: &[u8], other: &[u8]| name.eq_ignore_ascii_case(other);
    let count = |codec: &[u8]| names().filter(|name| same(name, codec)).count();
    // FM-02.
    if text.formats().any(|format| !(1..=count(format.codec)).contains(&(format.occurrence.unwrap_or(1) as usize))) {
        return Err(FORMAT_OF_NOTHING);
    }
    let plain = || {
        names().enumerate().filter(|&(place, name)| {
            let occurrence = names().take(place + 1).filter(|other| same(other, name)).count();
            let meant =
                |format: &Format<'_>| same(format.codec, name) && format.occurrence.is_none_or(|number| number as usize == occurrence);
            let possible = |format: &Format<'_>| format.optional || is_events(name) && TelephoneEvents::all_of(format.parameters).is_some();
            text.formats().filter(meant).all(|format| possible(&format))
        })
    };
    let events_wanted =
        text.formats().filter(|format| is_events(format.codec)).filter_map(|format| TelephoneEvents::all_of(format.parameters));
    let events = match plain().any(|(_, name)| is_events(name)) {
        true => events_wanted.max().unwrap_or(TelephoneEvents::Keys),
        false => TelephoneEvents::None,
    };
    Ok((codecs.map(|_| plain().filter_map(|(_, name)| Encoding::by_name(name)).collect()), events))
}

/// The name of telephone events where encodings are named.
pub(super) const EVENTS_NAME: &[u8] = b"telephone-event";

/// Whether `name` is that of telephone events.
pub(super) fn is_events(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(EVENTS_NAME)
}

/// The telephone events that are agreed: as `a:` of this command says, else as the far end offers; `kept` when the command has neither.
pub(super) fn choose_events(given: &Options, described: Option<&Described>, kept: TelephoneEvents) -> TelephoneEvents {
    match (given.encodings, described) {
        (None, None) => kept,
        (None, Some(described)) => described.events,
        (Some(_), None) => given.telephone_events,
        (Some(_), Some(described)) => given.telephone_events.and(described.events),
    }
}

/// What the connection may send and receive, and its packetization period, from the options `given` in this command, those `kept`
/// and the encodings the far end offers (G-LCO-03, G-LCO-04, G-LCO-14..16).
pub(super) fn choose(
    calls: &Calls,
    endpoint: EndpointIndex,
    given: &Options,
    kept: &Options,
    remote: Option<&Encodings>,
) -> Result<(Encodings, u16), Refused> {
    let wanted = given.period_ms.or(kept.period_ms);
    let period = |encoding: Encoding| match wanted {
        None => encoding.facts().default_ms,
        Some((low, high)) => encoding.closest_period(encoding.facts().default_ms.clamp(low, high.max(low))),
    };
    let mut internal = calls.encodings(endpoint);
    // Bandwidth restricts the choice only where no list was given: a listed codec may exceed it. The low end of a range restricts
    // nothing: it is what the agent expects to be used, and to use less is allowed.
    if let (None, Some((_, kbits))) = (given.encodings, given.bandwidth_kbits) {
        internal = internal.iter().filter(|&e| e.bandwidth_kbits(period(e)) <= u32::from(kbits)).collect();
    }
    let encodings = negotiate(&internal, given.encodings.as_ref(), remote);
    let first = encodings.first().ok_or(NO_COMMON_ENCODING)?;
    Ok((encodings, period(first)))
}
