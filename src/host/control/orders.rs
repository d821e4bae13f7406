//! Requests that change something, and the list of all requests.

use super::protocol::{self, CacOrder, Failure, FailureKind, Far, Request, Sim};
use super::view::Body;
use super::{Gateway, names};
use crate::host::cluster::view;
use crate::proto::base::{CoreId, EndpointIndex};
use crate::proto::core::{Answer, Ask};
use crate::proto::package::parameters::{Digits, MfDigit};
use crate::proto::trunk::{Behaviour, CardOrder, Defect, DigitKind, Echo, Facility, FarOrder, Hook};
use std::time::Duration;

/// The longest a core can be made to stand still.
const STALL_MAX: Duration = Duration::from_secs(3600);

impl Gateway {
    /// Does what is asked. Cores that do not answer go to `silent`.
    pub(super) fn answer(&self, request: Request, silent: &mut Vec<u8>) -> Result<Body, Failure> {
        let plan = &self.cores.plan;
        let done = match request {
            Request::Show { what, name, state } => return self.show(what, name.as_deref(), state.as_deref(), silent),
            Request::Calls { node, after } => return self.calls(node, after).map(Body::Calls),
            Request::Reload { dry_run } => return self.reload(dry_run).map(Body::Reload),
            Request::Block { name, how } => self.block(&name, names::select(plan, &name)?, how),
            Request::Unblock { name } => self.unblock(&name, names::select(plan, &name)?),
            Request::Free { name } => self.free(names::endpoint(plan, &name)?),
            Request::Loop { name, on } => self.set_loop(&name, on),
            Request::Ais { name, on } => self.set_ais(&name, on),
            Request::Drain { on } => self.drain(on),
            Request::Sim(order) => self.simulate(order),
            Request::Cac(CacOrder::Release { guid }) => self.release(guid.as_deref()),
            Request::Cac(_) => {
                let message = "this is a gateway: such orders are for the central node of a cluster (--socket)";
                return Err(Failure::new(FailureKind::Refused, message));
            }
            // Answered by the server, line by line.
            Request::Trace { .. } => Ok(String::new()),
        };
        done.map(Body::Done)
    }

    fn release(&self, guid: Option<&str>) -> Result<String, Failure> {
        let none = || Failure::new(FailureKind::Refused, "this gateway is in no cluster: cac.mode is not \"cluster\"");
        let cluster = self.cluster.as_ref().ok_or_else(none)?;
        let unknown = |text: &str| Failure::new(FailureKind::Unknown, format!("{text} is no GUID"));
        let only = guid.map(|text| view::guid(text).ok_or_else(|| unknown(text))).transpose()?;
        let silent = || Failure::new(FailureKind::Silent, "the link to the central node does not answer");
        match (cluster.release(only).ok_or_else(silent)?, only) {
            (0, Some(guid)) => Err(Failure::new(FailureKind::Unknown, format!("there is no call {guid} of the last life"))),
            (legs, _) => Ok(format!("{legs} calls of the last life no longer count")),
        }
    }

    fn free(&self, endpoint: EndpointIndex) -> Result<String, Failure> {
        let plan = &self.cores.plan;
        let ended = match self.order(plan.owner(endpoint), Ask::Free(endpoint))? {
            Answer::Freed(1) => "1 connection ended".to_owned(),
            Answer::Freed(count) => format!("{count} connections ended"),
            _ => "its connections ended".to_owned(),
        };
        Ok(format!("{} is free: {ended}, its request is forgotten", names::endpoint_name(&plan.topology, endpoint)))
    }

    fn simulate(&self, order: Sim) -> Result<String, Failure> {
        if !self.simulated() {
            return Err(Failure::new(FailureKind::Refused, "no card of this gateway is simulated"));
        }
        match order {
            Sim::Alarm { facility, defect, now } => self.simulate_alarm(&facility, &defect, now),
            Sim::Delay { ms: u32::MAX } | Sim::Hang => {
                self.order_cards(CardOrder::Delay(u32::MAX))?;
                Ok("cards do not answer orders any more; `sim delay 0` ends it".into())
            }
            Sim::Delay { ms } => {
                self.order_cards(CardOrder::Delay(ms))?;
                Ok(format!("orders to cards take {ms} ms"))
            }
            Sim::Refuse { orders } => {
                self.order_cards(CardOrder::Refuse(orders))?;
                Ok(format!("the card of each core refuses its next {orders} orders"))
            }
            Sim::Loss { ppm } if ppm > 1_000_000 => Err(Failure::new(FailureKind::BadRequest, "loss: 0..=1000000 per million")),
            Sim::Loss { ppm } => {
                self.order_cards(CardOrder::Loss(ppm))?;
                Ok(format!("{ppm} of a million packets are lost"))
            }
            Sim::Far { endpoint, order } => self.order_far(names::endpoint(&self.cores.plan, &endpoint)?, &order),
            Sim::Behave { behaviour } => {
                self.order_cards(CardOrder::Behave(self::behaviour(behaviour)))?;
                Ok("far ends behave so from now on, but for those told by themselves".into())
            }
            Sim::Stall { core, ms } => {
                let time = Duration::from_millis(ms.into()).min(STALL_MAX);
                if usize::from(core) >= self.cores.ports.len() {
                    return Err(Failure::new(FailureKind::Unknown, format!("there is no core {core}")));
                }
                self.cores.hold(CoreId(core), time).map_err(|silent| Failure::new(FailureKind::Silent, silent.to_string()))?;
                Ok(format!("core {core} stands still for {} ms", time.as_millis()))
            }
        }
    }

    fn simulate_alarm(&self, facility: &str, word: &str, at_once: bool) -> Result<String, Failure> {
        let plan = &self.cores.plan;
        let facility = names::facility(plan, facility)?;
        let order = match Defect::by_name(word) {
            Some(defect) => CardOrder::Defect { facility, defect, present: true, at_once },
            None if word.eq_ignore_ascii_case("clear") => CardOrder::Clear { facility, at_once },
            None => {
                let words: Vec<_> = Defect::ALL.iter().map(|defect| defect.name()).collect();
                let message = format!("{word}: no such alarm; there are {} and clear", words.join(", "));
                return Err(Failure::new(FailureKind::Unknown, message));
            }
        };
        self.order_facility(facility, order)?;
        Ok(format!("{}: {}", names::facility_name(&plan.topology, facility), word.to_ascii_lowercase()))
    }

    fn set_loop(&self, facility: &str, on: bool) -> Result<String, Failure> {
        let plan = &self.cores.plan;
        let facility = names::facility(plan, facility)?;
        self.order_facility(facility, CardOrder::Loop { facility, on })?;
        let name = names::facility_name(&plan.topology, facility);
        Ok(if on {
            format!("{name} is looped: its endpoints are out of service until `loop {name} --off`")
        } else {
            format!("{name} is looped no more")
        })
    }

    fn set_ais(&self, facility: &str, on: bool) -> Result<String, Failure> {
        let plan = &self.cores.plan;
        let facility = names::facility(plan, facility)?;
        self.order_facility(facility, CardOrder::Ais { facility, on })?;
        let name = names::facility_name(&plan.topology, facility);
        Ok(if on {
            format!("{name} sends AIS: its endpoints are out of service until `ais {name} --off`")
        } else {
            format!("{name} sends AIS no more")
        })
    }

    /// An order to the card that sees `facility`: a T3 is seen by that of the lead core, a span by the one that carries it.
    fn order_facility(&self, facility: Facility, order: CardOrder) -> Result<(), Failure> {
        let plan = &self.cores.plan;
        let core = match facility {
            Facility::T3(_) => plan.lead(),
            Facility::Span(_) => plan.carrier(EndpointIndex(plan.topology.endpoints_of(facility).first)),
        };
        self.order(core, Ask::Card(order)).map(drop)
    }

    fn order_far(&self, endpoint: EndpointIndex, order: &Far) -> Result<String, Failure> {
        let plan = &self.cores.plan;
        let signalling = plan.signalling(endpoint);
        let order = far_order(order, signalling.digits()).map_err(|why| Failure::new(FailureKind::BadRequest, why))?;
        let name = names::endpoint_name(&plan.topology, endpoint);
        if !signalling.kind.has_hook() && !matches!(order, FarOrder::Echo(_) | FarOrder::Digits(..) | FarOrder::Hold(..)) {
            return Err(Failure::new(FailureKind::Refused, format!("{name} has no channel associated signalling")));
        }
        self.order(plan.carrier(endpoint), Ask::Card(CardOrder::Far(endpoint, order)))?;
        Ok(format!("{name}: its far end does so"))
    }

    /// An order to the card of every core that owns endpoints: the first refusal is told.
    fn order_cards(&self, order: CardOrder) -> Result<(), Failure> {
        self.cores.plan.owners.iter().try_for_each(|&core| self.order(core, Ask::Card(order)).map(drop))
    }

    /// An order to one core.
    pub(super) fn order(&self, core: CoreId, ask: Ask) -> Result<Answer, Failure> {
        match self.cores.ask(core, ask, self.config().limits.stall_alarm) {
            Ok(Answer::Refused(why)) => Err(Failure::new(FailureKind::Refused, why)),
            Ok(answer) => Ok(answer),
            Err(silent) => Err(Failure::new(FailureKind::Silent, format!("{silent}; the order may be carried out when it goes on"))),
        }
    }
}

/// What a far end is ordered to do, by one whose channel sends digits of this kind.
///
/// # Errors
/// Digits that it does not send.
pub fn far_order(order: &Far, kind: DigitKind) -> Result<FarOrder, String> {
    let digits = |text: &str| {
        let wanted = match kind {
            DigitKind::Mf => "MF: 0 to 9, k0 to k2 and s0 to s3, such as k0,5,5,5,1,2,3,4,s0",
            DigitKind::Dtmf => "DTMF: 0 to 9, A to D, * and #, such as 5551234#",
            DigitKind::Pulse => "dial pulses: 0 to 9, such as 5551234",
        };
        let most = Digits::MAX;
        digits(text, kind).ok_or_else(|| format!("{text}: not what this channel sends; it has {wanted}; at most {most} at a time"))
    };
    Ok(match order {
        Far::Seize { digits: text } => FarOrder::Seize(kind, digits(text)?),
        Far::Digits { digits: text } => FarOrder::Digits(kind, digits(text)?),
        Far::Hold { key, ms } => match u8::try_from(*key).ok().filter(|key| b"0123456789ABCD*#".contains(key)) {
            Some(key) => FarOrder::Hold(key, *ms),
            None => return Err(format!("{key}: no key of a telephone; they are 0 to 9, A to D, * and #")),
        },
        Far::Answer => FarOrder::Show(Hook::Off),
        Far::Release => FarOrder::Show(Hook::On),
        Far::Wink => FarOrder::Wink,
        Far::Flash => FarOrder::Flash,
        Far::Behave { behaviour } => FarOrder::Behave(self::behaviour(*behaviour)),
        Far::Echo { echo } => FarOrder::Echo(match echo {
            protocol::Echo::Loop => Echo::Loop,
            protocol::Echo::Transponder => Echo::Transponder,
            protocol::Echo::Open => Echo::Open,
            protocol::Echo::Stuck => Echo::Stuck,
        }),
    })
}

fn behaviour(behaviour: protocol::Behaviour) -> Behaviour {
    match behaviour {
        protocol::Behaviour::Answers => Behaviour::Answers,
        protocol::Behaviour::NoAnswer => Behaviour::NoAnswer,
        protocol::Behaviour::Silent => Behaviour::Silent,
        protocol::Behaviour::Collides => Behaviour::Collides,
        protocol::Behaviour::Holds => Behaviour::Holds,
        protocol::Behaviour::Hangs => Behaviour::Hangs,
        protocol::Behaviour::Manual => Behaviour::Manual,
    }
}

/// Digits as typed, commas or not: `5551234#`, or `k0,5,5,5,s0` for MF.
fn digits(text: &str, kind: DigitKind) -> Option<Digits> {
    let mut digits = Digits::NONE;
    let mut symbols = text.bytes().filter(|byte| !matches!(byte, b',' | b' ')).map(|byte| byte.to_ascii_uppercase());
    while let Some(symbol) = symbols.next() {
        let symbol = match (kind, symbol) {
            (_, b'0'..=b'9') => symbol,
            (DigitKind::Mf, b'K') => MfDigit::KP + symbols.next().filter(|n| (b'0'..=b'2').contains(n))? - b'0',
            (DigitKind::Mf, b'S') => MfDigit::ST + symbols.next().filter(|n| (b'0'..=b'3').contains(n))? - b'0',
            (DigitKind::Dtmf, b'*' | b'#' | b'A'..=b'D') => symbol,
            _ => return None,
        };
        if !digits.push(symbol) {
            return None;
        }
    }
    Some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_typed_with_commas_or_without() {
        let read = |text, kind| digits(text, kind).map(|digits| String::from_utf8_lossy(digits.as_slice()).into_owned());
        assert_eq!(read("5,5#a", DigitKind::Dtmf).as_deref(), Some("55#A"));
        assert_eq!(read("k0,5,S3", DigitKind::Mf).as_deref(), Some("k5v"));
        assert_eq!(read("", DigitKind::Pulse).as_deref(), Some(""));
        for (wrong, kind) in
            [("k0", DigitKind::Dtmf), ("k3", DigitKind::Mf), ("k", DigitKind::Mf), ("#", DigitKind::Pulse), ("#", DigitKind::Mf)]
        {
            assert_eq!(read(wrong, kind), None, "{wrong}");
        }
        assert_eq!(digits(&"1".repeat(41), DigitKind::Dtmf), None);
    }
}
