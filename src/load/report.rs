//! What a run measured: latencies for each verb, response codes, failed checks; the progress line, the table and the JSON object.

use std::fmt::Write as _;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::Protocol;
use super::clock::CpuTime;
use super::outcomes;
use super::pace::{LATE, Loop};
use super::plot::Second;
use crate::proto::agent::trunks::Outcomes;
use crate::proto::agent::{Ended, Failure, Observer, Tally};
use crate::proto::base::Time;
use crate::proto::codec::mgcp::Verb;

/// Latencies are kept from 100 ns to 100 s with three digits.
const LATENCY_NS: (u64, u64) = (100, 100_000_000_000);
const DIGITS: u8 = 3;
const CODES: usize = 1000;
/// Failed checks whose evidence is kept.
const EVIDENCE_MAX: usize = 8;
const QUANTILES: [(&str, f64); 5] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

fn histogram() -> Histogram<u64> {
    // The bounds are constants within the limits of the type.
    Histogram::new_with_bounds(LATENCY_NS.0, LATENCY_NS.1, DIGITS).unwrap_or_else(|e| unreachable!("{e:?}"))
}

struct VerbRecord {
    name: &'static str,
    latency: Histogram<u64>,
    codes: Box<[u64]>,
    lost: u64,
}

impl VerbRecord {
    fn new(name: &'static str) -> VerbRecord {
        VerbRecord { name, latency: histogram(), codes: vec![0; CODES].into(), lost: 0 }
    }
}

/// Records ends and failed checks.
pub struct Recorder {
    verbs: Vec<VerbRecord>,
    interval: Histogram<u64>,
    interval_ended: u64,
    failures: Vec<u64>,
    evidence: Vec<(Failure, String)>,
    repeats: u64,
    last_measured: Time,
    /// Set-ups of the second that runs, and the seconds that have ended.
    set_up: Histogram<u64>,
    seconds: Vec<Second>,
    /// What had been counted when the last second ended.
    before: Second,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder::new()
    }
}

impl Recorder {
    /// Nothing recorded.
    pub fn new() -> Recorder {
        let verbs = [Verb::Crcx, Verb::Mdcx, Verb::Dlcx, Verb::Rqnt, Verb::Auep, Verb::Aucx, Verb::Epcf];
        Recorder {
            verbs: verbs.map(|verb| VerbRecord::new(verb.name())).into(),
            interval: histogram(),
            interval_ended: 0,
            failures: vec![0; Failure::ALL.len()],
            evidence: Vec::with_capacity(EVIDENCE_MAX),
            repeats: 0,
            last_measured: Time::ZERO,
            set_up: histogram(),
            seconds: Vec::new(),
            before: Second::default(),
        }
    }

    /// Failed checks in all.
    pub fn failures(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Measured commands with a final response.
    pub fn measured(&self) -> u64 {
        self.verbs.iter().map(|v| v.latency.len()).sum()
    }

    /// Commands without a final response.
    pub fn lost(&self) -> u64 {
        self.verbs.iter().map(|v| v.lost).sum()
    }

    fn used(&self) -> impl Iterator<Item = &VerbRecord> {
        self.verbs.iter().filter(|r| r.lost > 0 || r.codes.iter().any(|count| *count > 0))
    }

    /// Notes the second that ends now: calls sent so far, and what the agent counts.
    pub fn note_second(&mut self, calls: u64, tally: &Tally) {
        let sent = calls.saturating_sub(self.before.sent);
        let held_back = tally.held_back.saturating_sub(self.before.asked);
        let told = tally.overloads.saturating_sub(self.before.told);
        let p99 = Duration::from_nanos(if self.set_up.is_empty() { 0 } else { self.set_up.value_at_quantile(0.99) });
        self.seconds.push(Second { asked: sent + held_back, sent, set_up: self.set_up.len(), told, p99 });
        self.before = Second { asked: tally.held_back, sent: calls, told: tally.overloads, ..Second::default() };
        self.set_up.reset();
    }

    /// The seconds that were noted.
    pub fn seconds(&self) -> &[Second] {
        &self.seconds
    }

    /// The line of the second that ends now; starts the next one.
    pub fn progress(&mut self, seconds: Duration, tally: &Tally, in_flight: usize, held: usize, repeats: u64) -> String {
        let micros = |q| self.interval.value_at_quantile(q) as f64 / 1e3;
        let line = format!(
            "{:>4} s  {:>8}/s  p50 {:.0} us  p99 {:.0} us  max {:.0} us  outstanding {}  held {}  repeats {}  lost {}  failed checks {}{}",
            seconds.as_secs_f64().round(),
            self.interval_ended,
            micros(0.5),
            micros(0.99),
            self.interval.max() as f64 / 1e3,
            in_flight,
            held,
            repeats,
            self.lost(),
            self.failures(),
            if tally.restarts > 0 { format!("  restarts {}", tally.restarts) } else { String::new() },
        );
        self.interval.reset();
        self.interval_ended = 0;
        line
    }
}

impl Observer for Recorder {
    fn ended(&mut self, now: Time, ended: &Ended, code: Option<u16>) {
        self.repeats += u64::from(ended.repeats);
        self.transaction(now, ended.verb.name(), ended.intended, code);
    }

    fn transaction(&mut self, now: Time, name: &'static str, intended: Time, code: Option<u16>) {
        if !self.verbs.iter().any(|record| record.name == name) {
            self.verbs.push(VerbRecord::new(name));
        }
        let Some(record) = self.verbs.iter_mut().find(|record| record.name == name) else { return };
        let Some(code) = code else {
            record.lost += 1;
            return;
        };
        if let Some(count) = record.codes.get_mut(usize::from(code)) {
            *count += 1;
        }
        if intended != Time::NEVER {
            let latency = now.since(intended).as_nanos() as u64;
            record.latency.saturating_record(latency);
            self.interval.saturating_record(latency);
            self.interval_ended += 1;
            // Of MGCP 200, of H.248 no error.
            if (name, code) == ("CRCX", 200) || (name, code) == ("Add", 0) {
                self.set_up.saturating_record(latency);
            }
            self.last_measured = now;
        }
    }

    fn failed(&mut self, failure: Failure, evidence: &[u8]) {
        if let Some(count) = self.failures.get_mut(failure as usize) {
            *count += 1;
        }
        if self.evidence.len() < EVIDENCE_MAX {
            self.evidence.push((failure, String::from_utf8_lossy(evidence).trim_end().replace("\r\n", " | ")));
        }
    }
}

/// Everything else that the end of a run tells.
pub struct Facts {
    /// `call`, `audit`, `mixed`.
    pub scenario: &'static str,
    /// What is spoken.
    pub protocol: Protocol,
    /// Open or closed loop.
    pub kind: Loop,
    /// Endpoints used.
    pub endpoints: usize,
    /// Standing calls asked for.
    pub standing_wanted: usize,
    /// Standing calls that came up.
    pub standing: usize,
    /// Calls begun.
    pub calls: u32,
    /// How long commands were let out.
    pub duration: Duration,
    /// Commands let out by the schedule.
    pub sent: u64,
    /// Commands due and not let out.
    pub unsent: u64,
    /// See [`super::pace::Pace::starved`].
    pub starved: u64,
    /// See [`super::pace::Pace::late`].
    pub late: u64,
    /// See [`super::pace::Pace::late_max`].
    pub late_max: Duration,
    /// Commands repeated.
    pub repeats: u64,
    /// Commands that went on at another address.
    pub failovers: u64,
    /// Endpoints given up.
    pub endpoints_down: usize,
    /// Datagrams lost on purpose, both ways.
    pub simulated_losses: u64,
    /// Datagrams doubled on purpose, both ways.
    pub simulated_duplicates: u64,
    /// Datagrams that the kernel would not send.
    pub send_drops: u64,
    /// Datagrams for each sending system call.
    pub datagrams_per_send: f64,
    /// How datagrams left, in words.
    pub how: String,
    /// CPU time of the generator while commands were let out, and how long it waited for a CPU.
    pub cpu: Option<CpuTime>,
    /// Share of that time in which the generator had something to do, 0.0 to 1.0.
    pub busy: f64,
    /// The agent's counters.
    pub tally: Tally,
    /// Whether errors were expected because the gateway took endpoints away.
    pub disturbed: bool,
    /// What became of calls over trunks; empty when none were made.
    pub outcomes: Vec<(&'static str, bool, Outcomes)>,
    /// The seed.
    pub seed: u64,
}

impl Facts {
    /// What the schedule lets out.
    fn unit(&self) -> &'static str {
        if self.outcomes.is_empty() && self.protocol == Protocol::Mgcp { "commands" } else { "calls" }
    }

    /// Whether the figures tell about the generator rather than about the gateway.
    fn generator_limited(&self) -> bool {
        let waited = self.cpu.map_or(0.0, |cpu| cpu.waited as f64 / 1e9);
        self.late * 1000 > self.sent || self.busy > 0.95 || waited > 0.05 * self.duration.as_secs_f64()
    }
}

/// One machine-readable object.
pub fn json(recorder: &Recorder, facts: &Facts) -> Value {
    let mut verbs = Map::new();
    for record in recorder.used() {
        let mut latency = Map::new();
        for (name, quantile) in QUANTILES {
            latency.insert(name.into(), json!(record.latency.value_at_quantile(quantile) as f64 / 1e3));
        }
        latency.insert("max".into(), json!(record.latency.max() as f64 / 1e3));
        latency.insert("mean".into(), json!(record.latency.mean() / 1e3));
        let value = json!({ "count": record.latency.len(), "lost": record.lost, "latency_us": latency, "codes": codes(record) });
        verbs.insert(record.name.into(), value);
    }
    let failures: Map<String, Value> = failed(recorder).map(|(failure, count)| (failure.text().to_string(), json!(count))).collect();
    let seconds = facts.duration.as_secs_f64();
    let (loop_name, loop_value) = match facts.kind {
        Loop::Rate(rate) => ("rate", rate),
        Loop::Window(window) => ("window", window as f64),
    };
    let rules = json!({
        "requests": facts.tally.requests,
        "requests_with_answer": facts.tally.requests_with_answer,
        "notifies_stale": facts.tally.notifies_stale,
        "commands_extra": facts.tally.commands_extra,
    });
    let mut report = json!({
        "scenario": facts.scenario,
        loop_name: loop_value,
        "duration_s": seconds,
        "seed": facts.seed,
        "endpoints": facts.endpoints,
        "endpoints_given_up": facts.endpoints_down,
        "standing": facts.standing,
        "calls": facts.calls,
        "sent": facts.sent,
        "completed": recorder.measured(),
        "achieved_rate": recorder.measured() as f64 / seconds.max(1e-9),
        "unsent": facts.unsent,
        "starved": facts.starved,
        "late": facts.late,
        "late_max_us": facts.late_max.as_secs_f64() * 1e6,
        "retransmissions": facts.repeats,
        "lost": recorder.lost(),
        "failovers": facts.failovers,
        "repeated_responses": facts.tally.responses_repeated,
        "provisional_responses": facts.tally.provisional,
        "acknowledged_000": facts.tally.acknowledged,
        "stray_responses": facts.tally.stray,
        "restarts": facts.tally.restarts,
        "notifies": facts.tally.notifies,
        "gateway_deletions": facts.tally.gateway_deletions,
        "rules": rules,
        "simulated_losses": facts.simulated_losses,
        "simulated_duplicates": facts.simulated_duplicates,
        "send_drops": facts.send_drops,
        "datagrams_per_send": facts.datagrams_per_send,
        "sent_by": facts.how,
        "generator_cpu_s": facts.cpu.map(|cpu| cpu.used as f64 / 1e9),
        "generator_cpu_waited_s": facts.cpu.map(|cpu| cpu.waited as f64 / 1e9),
        "generator_busy": facts.busy,
        "generator_limited": facts.generator_limited(),
        "disturbed": facts.disturbed,
        "outcomes": outcomes::json(&facts.outcomes),
        "verbs": verbs,
        "failed_checks": failures,
        "evidence": recorder.evidence.iter().map(|(failure, evidence)| format!("{}: {evidence}", failure.text())).collect::<Vec<_>>(),
        "passed": recorder.failures() == 0,
    });
    report["overloads"] = json!(facts.tally.overloads);
    report["held_back"] = json!(facts.tally.held_back);
    report["refused"] = json!(facts.tally.refused);
    report["protocol"] = json!(facts.protocol.name());
    report
}

/// The table at the end of a run.
pub fn table(recorder: &Recorder, facts: &Facts) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_table(&mut out, recorder, facts);
    out
}

fn write_table(out: &mut String, recorder: &Recorder, facts: &Facts) -> std::fmt::Result {
    let seconds = facts.duration.as_secs_f64();
    let kind = match facts.kind {
        Loop::Rate(rate) => format!("open loop, {rate} {}/s", facts.unit()),
        Loop::Window(window) => format!("closed loop, window {window}"),
    };
    writeln!(out, "scenario {}, {kind}, {seconds:.1} s, {} endpoints, seed {}", facts.scenario, facts.endpoints, facts.seed)?;
    write!(out, "{:<6}{:>10}", "verb", "count")?;
    QUANTILES.iter().map(|q| q.0).chain(["max us", "lost"]).try_for_each(|name| write!(out, "{name:>10}"))?;
    writeln!(out, "  codes")?;
    for record in recorder.used() {
        write!(out, "{:<6}{:>10}", record.name, record.latency.len())?;
        let quantiles = QUANTILES.iter().map(|q| record.latency.value_at_quantile(q.1)).chain([record.latency.max()]);
        for value in quantiles {
            write!(out, "{:>10.1}", value as f64 / 1e3)?;
        }
        write!(out, "{:>10} ", record.lost)?;
        codes(record).iter().try_for_each(|(code, count)| write!(out, " {code}:{count}"))?;
        writeln!(out)?;
    }
    if !facts.outcomes.is_empty() {
        outcomes::write(out, &facts.outcomes)?;
    }
    writeln!(
        out,
        "achieved {:.0} commands/s ({} got their final response; the schedule let out {} {})",
        recorder.measured() as f64 / seconds.max(1e-9),
        recorder.measured(),
        facts.sent,
        facts.unit()
    )?;
    writeln!(
        out,
        "calls {} (standing {} of {}), repeats sent {}, lost {}, failovers {}, responses repeated {}, provisional {}, 000 sent {}, stray {}",
        facts.calls,
        facts.standing,
        facts.standing_wanted,
        facts.repeats,
        recorder.lost(),
        facts.failovers,
        facts.tally.responses_repeated,
        facts.tally.provisional,
        facts.tally.acknowledged,
        facts.tally.stray
    )?;
    let Tally { restarts, notifies, gateway_deletions, commands_repeated, commands_unknown, foreign, .. } = facts.tally;
    if facts.protocol == Protocol::H248 {
        writeln!(
            out,
            "from the gateway: ServiceChange of ROOT {restarts}, Notify {notifies}, repeats {commands_repeated}; datagrams from elsewhere {foreign}"
        )?;
        return write_overload(out, recorder, facts);
    }
    writeln!(
        out,
        "from the gateway: RSIP {restarts}, NTFY {notifies}, DLCX {gateway_deletions}, repeats {commands_repeated}, unknown {commands_unknown}; \
         datagrams from elsewhere {foreign}"
    )?;
    if facts.tally.overloads + facts.tally.held_back > 0 {
        writeln!(out, "overload: {} answers 409 or 101, {} calls held back by the throttle", facts.tally.overloads, facts.tally.held_back)?;
    }
    let Tally { requests, requests_with_answer, notifies_stale, commands_extra, .. } = facts.tally;
    if requests + notifies_stale > 0 {
        writeln!(
            out,
            "requests after a Notify {requests}, {requests_with_answer} of them with its answer; of older requests {notifies_stale}"
        )?;
    }
    if commands_extra > 0 {
        writeln!(out, "commands sent to break a rule: {commands_extra}")?;
    }
    write_end(out, recorder, facts)
}

/// What an H.248 gateway said of overload, then the end.
fn write_overload(out: &mut String, recorder: &Recorder, facts: &Facts) -> std::fmt::Result {
    let Tally { overloads, held_back, refused, .. } = facts.tally;
    if overloads + held_back + refused > 0 {
        let rate = overloads as f64 / facts.duration.as_secs_f64().max(1e-9);
        writeln!(
            out,
            "overload: {overloads} notifications ({rate:.1}/s), {held_back} calls held back by the throttle, {refused} refused by the gateway"
        )?;
    }
    write_end(out, recorder, facts)
}

fn write_end(out: &mut String, recorder: &Recorder, facts: &Facts) -> std::fmt::Result {
    if facts.simulated_losses + facts.simulated_duplicates > 0 {
        writeln!(out, "made on purpose: {} losses, {} duplicates", facts.simulated_losses, facts.simulated_duplicates)?;
    }
    write_generator(out, facts)?;
    if facts.endpoints_down > 0 {
        writeln!(out, "endpoints given up because they could not be cleaned: {}", facts.endpoints_down)?;
    }
    if facts.disturbed {
        writeln!(out, "the gateway took endpoints or connections away: error responses are counted, not failed")?;
    }
    if recorder.failures() == 0 {
        return writeln!(out, "checks: none failed");
    }
    writeln!(out, "checks FAILED: {}", recorder.failures())?;
    failed(recorder).try_for_each(|(failure, count)| writeln!(out, "  {count:>8}  {}", failure.text()))?;
    recorder.evidence.iter().try_for_each(|(failure, evidence)| writeln!(out, "  {}: {evidence}", failure.text()))
}

fn write_generator(out: &mut String, facts: &Facts) -> std::fmt::Result {
    let seconds = facts.duration.as_secs_f64().max(1e-9);
    write!(out, "generator: {:.0}% busy", facts.busy * 100.0)?;
    if let Some(cpu) = facts.cpu {
        let (used, waited) = (cpu.used as f64 / 1e9, cpu.waited as f64 / 1e9);
        write!(
            out,
            ", CPU {used:.2} s ({:.0}%), ready without a CPU {waited:.2} s ({:.0}%)",
            used / seconds * 100.0,
            waited / seconds * 100.0
        )?;
    }
    write!(out, ", {:.1} datagrams per send ({})", facts.datagrams_per_send, facts.how)?;
    if facts.send_drops > 0 {
        write!(out, ", {} datagrams refused by the kernel", facts.send_drops)?;
    }
    writeln!(out, "; late by more than {} ms: {} (worst {:.1} ms)", LATE.as_millis(), facts.late, facts.late_max.as_secs_f64() * 1e3)?;
    if facts.generator_limited() {
        writeln!(out, "  the generator was at its limit or had no CPU: the figures are bounds for the gateway, not measurements")?;
    }
    match facts.kind {
        Loop::Rate(_) if facts.starved > 0 => writeln!(
            out,
            "starved: {} {} waited for a free endpoint, and their latency counts it: rate x hold needs more endpoints, or the gateway stalled",
            facts.starved,
            facts.unit()
        )?,
        Loop::Window(_) if facts.starved > 0 => {
            writeln!(out, "starved: {} times no endpoint was free to fill the window", facts.starved)?;
        }
        _ => {}
    }
    if facts.unsent > 0 {
        writeln!(out, "{} {} were due and had not gone out when the time was over", facts.unsent, facts.unit())?;
    }
    Ok(())
}

fn codes(record: &VerbRecord) -> std::collections::BTreeMap<String, u64> {
    record
        .codes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(code, count)| (if code == 0 { "ok".to_owned() } else { code.to_string() }, *count))
        .collect()
}

fn failed(recorder: &Recorder) -> impl Iterator<Item = (Failure, u64)> + '_ {
    Failure::ALL.iter().copied().zip(recorder.failures.iter().copied()).filter(|(_, count)| *count > 0)
}
