//! Conditions in the log: each is told when it begins, when it changes, and when it ends.

use super::Gateway;
use super::conditions::Condition;
use super::names::facility_name;
use super::stall;
use super::view::EventRow;
use crate::host::clock;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::proto::core::{Answer, Ask, LossView};
use crate::proto::mgcp;
use crate::proto::restart::Severity;
use crate::proto::trunk::{Facility, SpanIndex};

/// How often the lead core is asked; an alarm lasts longer, for failures are integrated over seconds.
const EVERY: Duration = Duration::from_secs(1);

/// Lines of the journal that are kept for `show history`.
const KEPT: usize = 1000;

/// What the journal has told, the latest last.
#[derive(Default)]
pub struct History(Mutex<VecDeque<EventRow>>);

impl History {
    pub(super) fn add(&self, row: EventRow) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if rows.len() == KEPT {
            rows.pop_front();
        }
        rows.push_back(row);
    }

    /// All of it.
    pub fn rows(&self) -> Vec<EventRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// What was told last, by name and kind.
#[derive(Default)]
struct Journal {
    told: BTreeMap<(String, &'static str), Condition>,
}

/// What there is to tell.
#[derive(Clone, PartialEq, Eq, Debug)]
enum News {
    Begun(Condition),
    Over(Condition),
}

/// Keeps the journal in a thread of its own until the process ends: the lead core may take its time to answer.
pub fn start(gateway: Arc<Gateway>) -> Result<()> {
    let keep = move || {
        let mut journal = Journal::default();
        let mut abandoned = Vec::new();
        loop {
            // A silent core is told by the watch over the cores.
            if let Some(view) = gateway.facilities(&mut Vec::new()) {
                // Of a core that says nothing now it is not known that anything is over.
                let mut silent = Vec::new();
                let found = gateway.abandoned(&mut silent);
                if silent.is_empty() {
                    abandoned = found;
                }
                for news in journal.compare([gateway.unresolved(), abandoned.clone(), gateway.conditions_of(&view)].concat()) {
                    tell(&news);
                    gateway.history.add(news.row(gateway.wall_us()));
                }
            }
            gateway.losses().iter().for_each(|loss| tracing::warn!("{loss}"));
            std::thread::park_timeout(EVERY);
        }
    };
    std::thread::Builder::new().name("journal".into()).spawn(keep).context("no thread for the journal")?;
    Ok(())
}

impl Gateway {
    /// Microseconds since 1970.
    fn wall_us(&self) -> u64 {
        clock::wall_us_at_zero(&self.clock) + self.clock.now().0 / 1000
    }

    /// What the watch over the cores has told goes into the history as well.
    pub(super) fn keep(&self, news: &stall::News) {
        let (over, what) = match news {
            stall::News::Silent(_, silence) => (false, format!("silent for {} ms: what it owns is not served", silence.as_millis())),
            stall::News::Back(_, silence) => (true, format!("serves again, silent for {} ms", silence.as_millis())),
            stall::News::TooLong(..) | stall::News::Ended(_) => return,
        };
        let (name, kind, severity) = (format!("core {}", news.core().0), "core-silent".into(), "critical".into());
        self.history.add(EventRow { at_us: self.wall_us(), name, kind, severity, over, what });
    }

    /// Calls lost since this was asked last, in words: one line for each facility and reason.
    fn losses(&self) -> Vec<String> {
        let Some((_, Answer::Losses(list))) = self.ask(&[self.cores.plan.lead()], &Ask::Losses, &mut Vec::new()).pop() else {
            return Vec::new();
        };
        let topology = &self.cores.plan.topology;
        let mut sums: BTreeMap<(Facility, u16), (u32, u32, SpanIndex)> = BTreeMap::new();
        for LossView { span, reason, connections } in list {
            let t3 = topology.span(span).and_then(|span| span.t3);
            let sum = sums.entry((t3.map_or(Facility::Span(span), Facility::T3), reason)).or_insert((0, 0, span));
            (sum.0, sum.1) = (sum.0 + connections, sum.1 + 1);
        }
        let line = |((facility, reason), (connections, spans, span)): ((Facility, u16), (u32, u32, SpanIndex))| {
            let facility = if spans == 1 { Facility::Span(span) } else { facility };
            let calls = if connections == 1 { "1 call lost".to_owned() } else { format!("{connections} calls lost") };
            let reason = mgcp::reason_text(reason);
            format!("{}: {calls} ({reason})", facility_name(topology, facility))
        };
        sums.into_iter().map(line).collect()
    }
}

impl Journal {
    /// What is new in `list`. What another condition explains is told with that one.
    fn compare(&mut self, list: Vec<Condition>) -> Vec<News> {
        let key = |condition: &Condition| (condition.name.clone(), condition.kind);
        let now: BTreeMap<_, _> = list.into_iter().filter(|condition| !condition.explained).map(|c| (key(&c), c)).collect();
        let mut news: Vec<_> = self.told.iter().filter(|(key, _)| !now.contains_key(key)).map(|(_, c)| News::Over(c.clone())).collect();
        let fresh = now.iter().filter(|(key, condition)| self.told.get(key).is_none_or(|told| told.what != condition.what));
        news.extend(fresh.map(|(_, condition)| News::Begun(condition.clone())));
        self.told = now;
        news
    }
}

impl News {
    fn row(&self, at_us: u64) -> EventRow {
        let (News::Begun(condition) | News::Over(condition)) = self;
        let over = matches!(self, News::Over(_));
        EventRow {
            at_us,
            name: condition.name.clone(),
            kind: condition.kind.into(),
            severity: condition.severity_word().into(),
            over,
            what: if over { condition.over.clone() } else { condition.what.clone() },
        }
    }
}

fn tell(news: &News) {
    match news {
        News::Begun(Condition { name, what, severity: Severity::Minor, .. }) => tracing::warn!("{name}: {what}"),
        News::Begun(Condition { name, what, .. }) => tracing::error!("{name}: {what}"),
        News::Over(Condition { name, over, .. }) => tracing::info!("{name}: {over}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_keeps_the_latest() {
        let history = History::default();
        for at_us in 0..KEPT as u64 + 5 {
            let row =
                EventRow { at_us, name: String::new(), kind: String::new(), severity: String::new(), over: false, what: String::new() };
            history.add(row);
        }
        let rows = history.rows();
        assert_eq!((rows.len(), rows[0].at_us, rows[KEPT - 1].at_us), (KEPT, 5, KEPT as u64 + 4));
    }

    #[test]
    fn each_condition_is_told_once_and_its_end() {
        let failure = |name: &str, what: &str, explained| Condition {
            name: name.into(),
            kind: "failure",
            severity: Severity::Major,
            what: what.into(),
            over: format!("{what} is over"),
            since: None,
            explained,
        };
        let mut journal = Journal::default();
        let (t3, t1) = (failure("ds/ds3-1", "los", false), failure("ds/ds3-1/ds1-4", "ais", true));
        assert_eq!(journal.compare(vec![t3.clone(), t1.clone()]), [News::Begun(t3.clone())]);
        assert_eq!(journal.compare(vec![t3.clone(), t1.clone()]), []);
        let alone = Condition { explained: false, ..t1 };
        assert_eq!(journal.compare(vec![alone.clone()]), [News::Over(t3), News::Begun(alone.clone())]);
        let worse = Condition { what: "los".into(), ..alone.clone() };
        let draining = Condition { kind: "draining", ..alone };
        assert_eq!(journal.compare(vec![worse.clone(), draining.clone()]), [News::Begun(draining.clone()), News::Begun(worse.clone())]);
        assert_eq!(journal.compare(vec![]), [News::Over(draining), News::Over(worse)]);
    }
}
