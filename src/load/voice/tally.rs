//! What became of the calls: figures of each direction, checks, and the report.

use super::call::Plan;
use super::ear::Heard;
use super::probe::Signal;
use super::quality;
use crate::load::far_end::pattern::LEVEL;
use crate::proto::codec::mgcp::ConnectionParameters;
use serde_json::{Value, json};
use std::time::Duration;

/// The level of a voice may differ by so much, in dB.
const LEVEL_WITHIN: f64 = 0.2;
/// Nothing may be louder than the tone by more than this, in dB: what is lost may be heard as silence, not as a crack.
const LOUDER_BY: f64 = 1.5;
/// So many times the share of lost packets may be impaired: a loss takes a whole packet, a fade on both sides, and packets that come late.
const IMPAIRED_PER_LOSS: f64 = 6.0;
/// Without any loss on purpose so much may be impaired: nobody promises a generator its CPU.
const IMPAIRED_ANYWAY: f64 = 0.02;
/// Complaints that are remembered.
const COMPLAINTS: usize = 20;
/// Delays of a call that are remembered.
const DELAYS: usize = 4_096;

/// What was heard at one end of a call.
#[derive(Clone, Debug, Default)]
pub struct Direction {
    pub heard: Heard,
    /// Octets of the pattern, bit errors, losses of its place.
    pub errors: (u64, u64, u64),
    /// As the gateway at this end counted.
    pub parameters: Option<ConnectionParameters>,
    delays: Vec<Duration>,
}

impl Direction {
    pub fn note_delay(&mut self, delay: Duration) {
        if self.delays.len() < DELAYS {
            self.delays.push(delay);
        }
    }

    /// The median and the longest delay, in ms.
    fn delay_ms(&self) -> Option<(f64, f64)> {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let ms = |delay: Option<&Duration>| delay.map(|delay| delay.as_secs_f64() * 1e3);
        Some((ms(delays.get(delays.len() / 2))?, ms(delays.last())?))
    }
}

/// The lowest, the sum and the highest of something.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    sum: f64,
    high: f64,
    count: u64,
}

impl Default for Range {
    fn default() -> Range {
        Range { low: f64::INFINITY, sum: 0.0, high: f64::NEG_INFINITY, count: 0 }
    }
}

impl Range {
    fn note(&mut self, value: f64) {
        *self = Range { low: self.low.min(value), sum: self.sum + value, high: self.high.max(value), count: self.count + 1 };
    }

    fn json(&self) -> Value {
        let round = |value: f64| (value * 1000.0).round() / 1000.0;
        match self.count {
            0 => Value::Null,
            count => json!({ "min": round(self.low), "mean": round(self.sum / count as f64), "max": round(self.high) }),
        }
    }
}

/// All calls.
#[derive(Debug, Default)]
pub struct Tally {
    /// Calls that were set up.
    pub set_up: u64,
    /// Calls that were ended too early to be judged, because the load was.
    pub cut: u64,
    /// Digits that arrived.
    pub digits: u64,
    /// Why a call could not be set up, last.
    pub last_refusal: String,
    calls: u64,
    well: u64,
    level: Range,
    impaired: Range,
    loudest: Range,
    delay: Range,
    delay_max: Range,
    mos: Range,
    pattern: (u64, u64, u64),
    lost_on_purpose: u64,
    packets: (u64, u64, u64),
    jitter: Range,
    latency: Range,
    complaints: Vec<String>,
}

impl Tally {
    /// A call has ended.
    pub fn call(&mut self, plan: &Plan, name: &str, directions: &[Direction; 2], wrong: Option<String>, lost: u64) {
        self.calls += 1;
        self.lost_on_purpose += lost;
        let wrong =
            wrong.or_else(|| directions.iter().find_map(|direction| complaint(plan, direction)).map(|why| format!("{name}: {why}")));
        self.well += u64::from(wrong.is_none());
        if let Some(why) = wrong
            && self.complaints.len() < COMPLAINTS
        {
            self.complaints.push(why);
        }
        directions.iter().for_each(|direction| self.direction(plan, direction));
    }

    fn direction(&mut self, plan: &Plan, direction: &Direction) {
        let Direction { heard, errors, parameters, .. } = direction;
        if let Some(level) = heard.level() {
            self.level.note(level);
            self.impaired.note(heard.impaired_share());
            self.loudest.note(heard.loudest);
        }
        self.pattern = (self.pattern.0 + errors.0, self.pattern.1 + errors.1, self.pattern.2 + errors.2);
        if let Some((median, longest)) = direction.delay_ms() {
            self.delay.note(median);
            self.delay_max.note(longest);
            if plan.signal == Signal::Tone && heard.good > 0 {
                self.mos.note(quality::mos(median, heard.impaired_share()));
            }
        }
        if let Some(parameters) = parameters {
            let of = |value: Option<u32>| u64::from(value.unwrap_or(0));
            self.packets.0 += of(parameters.packets_sent);
            self.packets.1 += of(parameters.packets_received);
            self.packets.2 += of(parameters.packets_lost);
            parameters.jitter_ms.into_iter().for_each(|ms| self.jitter.note(ms.into()));
            parameters.latency_ms.into_iter().for_each(|ms| self.latency.note(ms.into()));
        }
    }

    /// Something is wrong that is no call's.
    pub fn complain(&mut self, why: String) {
        self.complaints.push(why);
    }

    /// Whether every call that was judged went well, and there was one at all.
    pub fn is_well(&self) -> bool {
        self.calls + self.cut > 0 && self.well == self.calls && self.complaints.is_empty()
    }

    /// The report.
    pub fn json(&self) -> Value {
        let (octets, bits, losses) = self.pattern;
        let (sent, received, lost) = self.packets;
        json!({
            "calls": self.calls,
            "well": self.well,
            "cut": self.cut,
            "set_up": self.set_up,
            "digits": self.digits,
            "level_dbm0": self.level.json(),
            "loudest_dbm0": self.loudest.json(),
            "impaired_share": self.impaired.json(),
            "delay_ms": self.delay.json(),
            "delay_max_ms": self.delay_max.json(),
            "mos": self.mos.json(),
            "pattern": { "octets": octets, "bit_errors": bits, "losses": losses },
            "rtp": { "sent": sent, "received": received, "lost": lost, "lost_on_purpose": self.lost_on_purpose },
            "rtp_jitter_ms": self.jitter.json(),
            "rtp_latency_ms": self.latency.json(),
            "complaints": self.complaints,
            "last_refusal": if self.calls == 0 { self.last_refusal.as_str().into() } else { Value::Null },
        })
    }
}

/// What is wrong with a direction.
fn complaint(plan: &Plan, direction: &Direction) -> Option<String> {
    let impaired = IMPAIRED_ANYWAY + IMPAIRED_PER_LOSS * plan.impairment.loss;
    if plan.signal == Signal::Pattern {
        let (octets, bits, losses) = direction.errors;
        let wrong = octets == 0 || (plan.impairment.is_none() && (bits > 0 || losses > 0));
        return wrong.then(|| format!("of {octets} octets of the pattern {bits} bits were wrong, and its place was lost {losses} times"));
    }
    let heard = direction.heard;
    let Some(level) = heard.level() else { return Some("the tone did not arrive".into()) };
    if (level - LEVEL).abs() > LEVEL_WITHIN {
        return Some(format!("the tone of {LEVEL} dBm0 arrived at {level:.2}"));
    }
    if heard.loudest > LEVEL + LOUDER_BY {
        return Some(format!("there was a crack of {:.1} dBm0", heard.loudest));
    }
    (heard.impaired_share() > impaired).then(|| format!("{:.1} % of the tone were impaired", 100.0 * heard.impaired_share()))
}

/// The report for people: a line for each figure.
pub fn text(report: &Value) -> String {
    let mut text = String::new();
    for (key, value) in report.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
        match value.as_array() {
            Some(lines) => text.extend(lines.iter().map(|line| format!("{key:16} {line}\n"))),
            None => text += &format!("{key:16} {value}\n"),
        }
    }
    text
}
