//! Bulk audit, package BA (RFC 3624; BA-01..20): names of endpoints in ranges, and connections and states of many endpoints in one response.
//!
//! This reads what is asked and writes the report; [`look`] says what a report has of some endpoints. The endpoints of other cores are the
//! business of the core that drives it.

use super::event::State;
use super::{BULK_ITEM, BULK_NOT_HERE, BULK_PARAMETER, BULK_RANGE, BULK_START, BULK_START_UNKNOWN, BULK_STATE, Calls, Refused};
use crate::proto::base::{EndpointIndex, EndpointRange, Mode};
use crate::proto::codec::mgcp::{Command, Verb, Writer};
use crate::proto::codec::scan;
use crate::proto::endpoint::CONNECTIONS_PER_ENDPOINT;
use crate::proto::plan::Plan;
use crate::proto::trunk::{Cursor, Hook, Selection, Topology};

/// The name of the package.
const BA: &[u8] = b"BA";

/// Endpoints in one [`Part`].
pub const PART: u32 = 16;

/// What a bulk audit asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BulkAudit {
    /// `BA/SE`: where to begin.
    start: Option<EndpointIndex>,
    /// `BA/NU`: endpoints at most.
    most: u32,
    /// `BA/F`.
    pub lists: Lists,
}

/// The lists of `BA/F`: names, or what the endpoints are like (never both).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lists {
    /// `BA/Z` and `BA/X`, which are the same for channels of trunks.
    Names {
        /// `BA/Z`.
        endpoints: bool,
        /// `BA/X`.
        instantiated: bool,
    },
    /// `BA/C`, `BA/M`, `BA/S`.
    States {
        /// `BA/C`.
        counts: bool,
        /// `BA/M`.
        modes: bool,
        /// `BA/S`, with its types.
        states: Option<StateTypes>,
    },
}

/// A set of state types: what makes the state of an endpoint "true".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct StateTypes(pub u8);

impl StateTypes {
    const LETTERS: &[u8; 6] = b"IDNLSH";

    fn has(self, letter: u8) -> bool {
        StateTypes::LETTERS.iter().position(|&known| known == letter).is_some_and(|place| self.0 >> place & 1 != 0)
    }

    /// Reads `I,D,...`.
    fn parse(text: &[u8]) -> Result<StateTypes, Refused> {
        let mut types = StateTypes::default();
        for item in text.split(|&byte| byte == b',') {
            let [letter] = scan::trim(item) else { return Err(BULK_STATE) };
            let place = StateTypes::LETTERS.iter().position(|known| known.eq_ignore_ascii_case(letter)).ok_or(BULK_STATE)?;
            types.0 |= 1 << place;
        }
        Ok(types)
    }
}

/// What up to [`PART`] endpoints are like.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Part {
    /// The modes of their connections, four bits each: 0 for none, else one more than the place in [`Mode::ALL`].
    pub connections: [u16; PART as usize],
    /// Bit `n`: endpoint `n` is in service.
    pub in_service: u16,
    /// Bit `n`: one of the state types asked for holds for endpoint `n`.
    pub holds: u16,
}

/// Whether `command` is a bulk audit.
pub fn is_asked(command: &Command<'_>) -> bool {
    command.verb == Verb::Auep && command.extensions().any(|one| one.package.eq_ignore_ascii_case(BA))
}

/// Reads the bulk audit in `command`, which is for `selection` (BA-02..06, BA-09, BA-19).
pub fn read(topology: &Topology, command: &Command<'_>, selection: &Selection) -> Result<BulkAudit, Refused> {
    let (mut start, mut most, mut lists) = (None, None, None);
    for one in command.extensions() {
        let name: &[u8] = one.name;
        if name.eq_ignore_ascii_case(b"SE") && start.is_none() {
            start = Some(start_of(topology, one.value, selection)?);
        } else if name.eq_ignore_ascii_case(b"NU") && most.is_none() {
            let number = scan::decimal(one.value, 5).filter(|number| (1..=65_535).contains(number));
            most = Some(number.ok_or(BULK_RANGE)?);
        } else if name.eq_ignore_ascii_case(b"F") && lists.is_none() {
            lists = Some(lists_of(one.value)?);
        } else {
            return Err(BULK_PARAMETER);
        }
    }
    Ok(BulkAudit { start, most: most.unwrap_or(u32::MAX), lists: lists.ok_or(BULK_ITEM)? })
}

fn start_of(topology: &Topology, name: &[u8], selection: &Selection) -> Result<EndpointIndex, Refused> {
    let Some(endpoint) = topology.lookup(name) else {
        let is_name = topology.resolve(name, false).is_ok() || name.is_empty() || name.contains(&b'@') || name.contains(&b'[');
        return Err(if is_name { BULK_START } else { BULK_START_UNKNOWN });
    };
    if selection.contains(topology, endpoint) { Ok(endpoint) } else { Err(BULK_NOT_HERE) }
}

/// Each list at most once, names and states never together.
fn lists_of(value: &[u8]) -> Result<Lists, Refused> {
    let (mut endpoints, mut instantiated, mut counts, mut modes, mut states) = (false, false, false, false, None);
    let mut rest = scan::trim(value);
    while !rest.is_empty() {
        let end = item_end(rest);
        let item = scan::trim(rest.get(..end).unwrap_or_default());
        rest = scan::trim(rest.get(end + 1..).unwrap_or_default());
        let item = item.split_at_checked(3).filter(|(package, _)| package.eq_ignore_ascii_case(b"BA/")).ok_or(BULK_ITEM)?.1;
        let flag = match item {
            [b'Z' | b'z'] => &mut endpoints,
            [b'X' | b'x'] => &mut instantiated,
            [b'C' | b'c'] => &mut counts,
            [b'M' | b'm'] => &mut modes,
            [b'S' | b's', b'(', types @ .., b')'] if states.is_none() => {
                states = Some(StateTypes::parse(types)?);
                continue;
            }
            _ => return Err(BULK_ITEM),
        };
        if std::mem::replace(flag, true) {
            return Err(BULK_ITEM);
        }
    }
    match (endpoints || instantiated, counts || modes || states.is_some()) {
        (true, false) => Ok(Lists::Names { endpoints, instantiated }),
        (false, true) => Ok(Lists::States { counts, modes, states }),
        _ => Err(BULK_ITEM),
    }
}

/// Where the first item ends: at a comma outside parentheses.
fn item_end(text: &[u8]) -> usize {
    let mut depth = 0_u32;
    let comma = text.iter().position(|&byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b',' && depth == 0
    });
    comma.unwrap_or(text.len())
}

/// What the endpoints of `range`, which are this core's, are like.
pub fn look(calls: &Calls, range: EndpointRange, types: StateTypes) -> Part {
    let mut part = Part::default();
    for (n, endpoint) in range.iter().enumerate().take(PART as usize) {
        let Some(state) = calls.endpoints.get(endpoint) else { continue };
        if let Some(room) = part.connections.get_mut(n) {
            for (_, connection) in calls.connections_of(endpoint) {
                let mode = Mode::ALL.into_iter().position(|mode| mode == connection.mode).unwrap_or(0) as u16 + 1;
                *room = *room << 4 | mode;
            }
        }
        if state.service.in_service {
            part.in_service |= 1 << n;
            if holds(calls, endpoint, types) {
                part.holds |= 1 << n;
            }
        }
    }
    part
}

/// Whether one of the types holds for an endpoint in service (BA-06, BA-08).
fn holds(calls: &Calls, endpoint: EndpointIndex, types: StateTypes) -> bool {
    let watch = calls.watch(endpoint).filter(|watch| !watch.request.is_none());
    let state = watch.map_or(State::Normal, |watch| watch.state);
    let signals = || calls.watch(endpoint).is_some_and(|watch| watch.is_playing());
    let disconnected = || calls.endpoints.get(endpoint).is_some_and(|state| state.disconnected);
    let busy = || calls.card.line_state(endpoint).is_some_and(|line| line != "idle") || calls.card.hook(endpoint) == Some(Hook::Off);
    types.has(b'I')
        || types.has(b'D') && disconnected()
        || types.has(b'N') && state == State::Notification
        || types.has(b'L') && state == State::Lockstep
        || types.has(b'S') && signals()
        || types.has(b'H') && busy()
}

impl BulkAudit {
    /// The runs to report, each within one span and at most `limit` long, in order.
    pub fn runs<'a>(&'a self, plan: &'a Plan, selection: &'a Selection, limit: u32) -> impl Iterator<Item = EndpointRange> + 'a {
        let topology = &plan.topology;
        let mut cursor = Cursor::default();
        let mut rest = EndpointRange::default();
        let mut left = self.most;
        std::iter::from_fn(move || {
            loop {
                while rest.count == 0 {
                    rest = selection.next(topology, &mut cursor, u32::MAX)?;
                    let first = self.start.map_or(0, |start| start.0).max(rest.first);
                    rest.count = (rest.first + rest.count).saturating_sub(first);
                    rest.first = first;
                }
                let span = topology.span_of(EndpointIndex(rest.first)).and_then(|span| topology.span(span))?;
                let in_span = (span.endpoints.first + span.endpoints.count - rest.first).min(rest.count);
                // What H.248 has is nothing of MGCP's.
                let passed = plan.gateway_of(EndpointIndex(rest.first)).is_some();
                let run = EndpointRange { first: rest.first, count: if passed { in_span } else { in_span.min(limit).min(left) } };
                rest = EndpointRange { first: run.first + run.count, count: rest.count - run.count };
                if !passed {
                    left -= run.count;
                    return (run.count > 0).then_some(run);
                }
            }
        })
    }

    /// The state types asked for; none when no states are.
    pub fn types(&self) -> StateTypes {
        match self.lists {
            Lists::States { states: Some(types), .. } => types,
            _ => StateTypes::default(),
        }
    }

    /// The endpoints of which so many bytes can tell at the most.
    pub fn endpoints_in(&self, bytes: usize) -> usize {
        match self.lists {
            Lists::Names { .. } => usize::MAX,
            Lists::States { counts, modes, states } => {
                bytes / (usize::from(counts) + usize::from(modes) + usize::from(states.is_some())).max(1)
            }
        }
    }
}

/// A report that may end before all is told.
struct Report<'w, 'a, 'b> {
    calls: &'a Calls,
    writer: &'w mut Writer<'b>,
    /// There is no room for more: the line that says where to go on is written.
    ended: bool,
}

impl Report<'_, '_, '_> {
    /// Writes something about endpoints from `first` on, as long as it leaves room to say where the next report would begin.
    fn add(&mut self, first: EndpointIndex, write: impl FnOnce(&Calls, &mut Writer<'_>)) {
        if self.ended {
            return;
        }
        let before = self.writer.mark();
        write(self.calls, self.writer);
        let behind = self.writer.mark();
        // Any name is as long as the next one, or longer by a digit in each of three terms.
        self.next(first);
        self.writer.bytes(b"   ");
        let fits = !self.writer.overflowed();
        self.writer.rewind(if fits { behind } else { before });
        if !fits {
            self.next(first);
            self.ended = true;
        }
    }

    /// `BA/NE:` (BA-15).
    fn next(&mut self, endpoint: EndpointIndex) {
        self.writer.text("BA/NE: ");
        write_name(self.calls, self.writer, endpoint);
        self.writer.end_line();
    }

    /// There is more than was asked for: where.
    fn more(&mut self, endpoint: Option<EndpointIndex>) {
        if let (Some(endpoint), false) = (endpoint, self.ended) {
            self.next(endpoint);
        }
    }
}

fn write_name(calls: &Calls, writer: &mut Writer<'_>, endpoint: EndpointIndex) {
    let mut name = [0; 64];
    let length = calls.plan.topology.write_name(endpoint, &mut name);
    writer.bytes(name.get(..length).unwrap_or_default());
}

/// The endpoint behind the last one of a report that was cut by `BA/NU`.
fn behind(audit: &BulkAudit, calls: &Calls, selection: &Selection, last: Option<EndpointRange>) -> Option<EndpointIndex> {
    let last = last?;
    let from = EndpointIndex(last.first + last.count - 1);
    let rest = BulkAudit { start: Some(EndpointIndex(from.0 + 1)), most: 1, ..*audit };
    rest.runs(&calls.plan, selection, 1).next().map(|run| EndpointIndex(run.first))
}

/// The names: channels and T1s in ranges (BA-10..12).
pub fn write_names(calls: &Calls, writer: &mut Writer<'_>, command: &Command<'_>, audit: &BulkAudit, selection: &Selection) {
    writer.response(200, command.id, None, "OK");
    let Lists::Names { endpoints, instantiated } = audit.lists else { return };
    let topology = &calls.plan.topology;
    let mut report = Report { calls, writer, ended: false };
    let mut last = None;
    let mut runs = audit.runs(&calls.plan, selection, u32::MAX).peekable();
    while let Some(run) = runs.next() {
        let mut units = (run, run);
        while let Some(next) = runs.next_if(|next| goes_on(topology, units.1, *next)) {
            units.1 = next;
        }
        last = Some(units.1);
        report.add(EndpointIndex(run.first), |calls, writer| {
            for (code, asked) in [("BA/Z: ", endpoints), ("BA/X: ", instantiated)] {
                if asked {
                    writer.text(code);
                    ranged_name(calls, writer, units);
                    writer.end_line();
                }
            }
        });
    }
    let more = behind(audit, calls, selection, last);
    report.more(more);
}

/// Whether a run is that of the next T1 or E1 with the same channels.
fn goes_on(topology: &Topology, run: EndpointRange, next: EndpointRange) -> bool {
    let span = |run: EndpointRange| topology.span_of(EndpointIndex(run.first)).and_then(|span| topology.span(span));
    let (Some(one), Some(other)) = (span(run), span(next)) else { return false };
    (one.kind, one.t3, one.channels, one.number + 1) == (other.kind, other.t3, other.channels, other.number)
        && (run.first - one.endpoints.first, run.count) == (next.first - other.endpoints.first, next.count)
}

/// `ds/ds3-1/ds1-[1-28]/[1-24]`.
fn ranged_name(calls: &Calls, writer: &mut Writer<'_>, (first, last): (EndpointRange, EndpointRange)) {
    let topology = &calls.plan.topology;
    let mut name = [0; 64];
    let length = topology.write_name(EndpointIndex(first.first), &mut name);
    let stem = name.get(..length).unwrap_or_default();
    let stem = stem.iter().rposition(|&byte| byte == b'/').and_then(|slash| stem.get(..slash)).unwrap_or_default();
    let number =
        |run: EndpointRange| topology.span_of(EndpointIndex(run.first)).and_then(|span| topology.span(span)).map_or(0, |span| span.number);
    if first == last {
        writer.bytes(stem);
    } else {
        let digits = stem.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        writer.bytes(stem.get(..stem.len() - digits).unwrap_or_default());
        writer.byte(b'[');
        interval(writer, number(first), number(last));
        writer.byte(b']');
    }
    writer.byte(b'/');
    channels(topology, writer, first);
}

/// The last term of a run: `7`, `[1-24]`, `[1-15,17-31]`.
fn channels(topology: &Topology, writer: &mut Writer<'_>, run: EndpointRange) {
    let mut numbers = run.iter().filter_map(|endpoint| topology.channel_of(endpoint)).peekable();
    if run.count == 1 {
        return writer.number(numbers.next().unwrap_or(0).into());
    }
    writer.byte(b'[');
    let mut comma = "";
    while let Some(first) = numbers.next() {
        let mut last = first;
        while numbers.next_if_eq(&(last + 1)).is_some() {
            last += 1;
        }
        writer.text(comma);
        interval(writer, first, last);
        comma = ",";
    }
    writer.byte(b']');
}

fn interval(writer: &mut Writer<'_>, first: u32, last: u32) {
    writer.number(first.into());
    if last != first {
        writer.byte(b'-');
        writer.number(last.into());
    }
}

/// The states of the endpoints of `parts`, which are the runs of `audit` in order, cut into parts (BA-13, BA-14, BA-16, BA-17).
pub fn write_states(calls: &Calls, writer: &mut Writer<'_>, audit: &BulkAudit, selection: &Selection, mut parts: &[(EndpointRange, Part)]) {
    let Lists::States { counts, modes, states } = audit.lists else { return };
    let mut report = Report { calls, writer, ended: false };
    let mut last = None;
    while let Some((run, of_run, rest)) = first_run(&calls.plan.topology, parts) {
        report.add(EndpointIndex(run.first), |calls, writer| {
            writer.text("BA/EL: ");
            ranged_name(calls, writer, (run, run));
            writer.end_line();
            let mut list = |code: &str, asked: bool, write: fn(&mut Writer<'_>, &Part, usize)| {
                if asked {
                    writer.text(code);
                    for (range, part) in of_run {
                        (0..range.count as usize).for_each(|n| write(writer, part, n));
                    }
                    writer.end_line();
                }
            };
            list("BA/C: ", counts, write_count);
            list("BA/M: ", modes, write_modes);
            list("BA/S: ", states.is_some(), write_state);
        });
        last = Some(run);
        parts = rest;
    }
    let more = behind(audit, calls, selection, last);
    report.more(more);
}

/// The run that the first parts are of, these parts, and the rest.
#[allow(clippy::type_complexity)]
fn first_run<'p>(
    topology: &Topology,
    parts: &'p [(EndpointRange, Part)],
) -> Option<(EndpointRange, &'p [(EndpointRange, Part)], &'p [(EndpointRange, Part)])> {
    let span = |range: EndpointRange| topology.span_of(EndpointIndex(range.first));
    let mut run = parts.first()?.0;
    let mut count = 1;
    for &(range, _) in parts.get(1..)? {
        if range.first != run.first + run.count || span(range) != span(run) {
            break;
        }
        run.count += range.count;
        count += 1;
    }
    let (of_run, rest) = parts.split_at_checked(count)?;
    Some((run, of_run, rest))
}

fn write_count(writer: &mut Writer<'_>, part: &Part, n: usize) {
    writer.number(connections(part, n).count() as u64);
}

/// The modes of the connections of one endpoint.
fn connections(part: &Part, n: usize) -> impl Iterator<Item = Mode> + use<> {
    let all = part.connections.get(n).copied().unwrap_or(0);
    let nibbles = (0..CONNECTIONS_PER_ENDPOINT).rev().map(move |place| usize::from(all >> (4 * place) & 15));
    nibbles.filter_map(|nibble| Mode::ALL.into_iter().nth(nibble.checked_sub(1)?))
}

fn write_modes(writer: &mut Writer<'_>, part: &Part, n: usize) {
    match connections(part, n).count() {
        0 => writer.byte(b'0'),
        1 => {}
        count => writer.number(count as u64),
    }
    connections(part, n).for_each(|mode| writer.byte(letter(mode)));
}

/// The letter of a mode (RFC 3624 2.1.1.5).
fn letter(mode: Mode) -> u8 {
    match mode {
        Mode::Inactive => b'I',
        Mode::SendOnly => b'S',
        Mode::RecvOnly => b'R',
        Mode::SendRecv => b'B',
        Mode::Conference => b'C',
        Mode::Loopback => b'L',
        Mode::ContinuityTest => b'T',
        Mode::NetworkLoop => b'N',
        Mode::NetworkTest => b'U',
    }
}

fn write_state(writer: &mut Writer<'_>, part: &Part, n: usize) {
    let bit = |set: u16| set >> n & 1 != 0;
    writer.byte(match (bit(part.in_service), bit(part.holds)) {
        (false, _) => b'O',
        (true, true) => b'T',
        (true, false) => b'F',
    });
}
