//! Alarms in the log: facilities that fail and come back, each told once.

use super::Gateway;
use super::names::facility_name;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::proto::restart::{Alarm, Severity};
use crate::proto::trunk::{Facility, Failure};

/// How often the lead core is asked; an alarm lasts longer, for failures are integrated over seconds.
const EVERY: Duration = Duration::from_secs(1);

/// What was told last of each failed facility.
#[derive(Default)]
struct Journal {
    failed: BTreeMap<Facility, Failure>,
}

/// What there is to tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    Failed(Facility, Failure, Severity),
    Back(Facility, Failure),
}

/// Keeps the journal in a thread of its own until the process ends: the lead core may take its time to answer.
pub fn start(gateway: Arc<Gateway>) -> Result<()> {
    let keep = move || {
        let mut journal = Journal::default();
        loop {
            // A silent lead core is told by the watch over the cores.
            if let Some(view) = gateway.facilities(&mut Vec::new()) {
                journal.compare(&view.alarms).into_iter().for_each(|news| tell(&gateway, news));
            }
            std::thread::park_timeout(EVERY);
        }
    };
    std::thread::Builder::new().name("journal".into()).spawn(keep).context("no thread for the journal")?;
    Ok(())
}

impl Journal {
    /// What is new in `alarms`. A span that fails because its T3 does is told with the T3.
    fn compare(&mut self, alarms: &[Alarm]) -> Vec<News> {
        let now: BTreeMap<_, _> = alarms.iter().filter(|alarm| !alarm.covered).map(|alarm| (alarm.facility, alarm)).collect();
        let mut news: Vec<_> =
            self.failed.iter().filter(|(facility, _)| !now.contains_key(facility)).map(|(f, why)| News::Back(*f, *why)).collect();
        let fresh = now.values().filter(|alarm| self.failed.get(&alarm.facility) != Some(&alarm.failure));
        news.extend(fresh.map(|alarm| News::Failed(alarm.facility, alarm.failure, alarm.severity)));
        self.failed = now.values().map(|alarm| (alarm.facility, alarm.failure)).collect();
        news
    }
}

fn tell(gateway: &Gateway, news: News) {
    let name = |facility| facility_name(&gateway.cores.plan.topology, facility);
    match news {
        News::Failed(facility, failure, Severity::Minor) => tracing::warn!("{}: {}", name(facility), failure.name()),
        News::Failed(facility, failure, _) => tracing::error!("{}: {}", name(facility), failure.name()),
        News::Back(facility, failure) => tracing::info!("{}: {} is over", name(facility), failure.name()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::base::Time;
    use crate::proto::trunk::{SpanIndex, T3Index};

    #[test]
    fn each_alarm_is_told_once_and_its_end() {
        let alarm = |facility, failure, covered| Alarm { facility, failure, since: Time::ZERO, severity: Severity::Major, covered };
        let (t3, t1) = (Facility::T3(T3Index(0)), Facility::Span(SpanIndex(3)));
        let mut journal = Journal::default();
        let both = [alarm(t3, Failure::LossOfSignal, false), alarm(t1, Failure::Ais, true)];
        assert_eq!(journal.compare(&both), [News::Failed(t3, Failure::LossOfSignal, Severity::Major)]);
        assert_eq!(journal.compare(&both), []);
        let left = [alarm(t1, Failure::Ais, false)];
        let expected = [News::Back(t3, Failure::LossOfSignal), News::Failed(t1, Failure::Ais, Severity::Major)];
        assert_eq!(journal.compare(&left), expected);
        let worse = [alarm(t1, Failure::LossOfSignal, false)];
        assert_eq!(journal.compare(&worse), [News::Failed(t1, Failure::LossOfSignal, Severity::Major)]);
        assert_eq!(journal.compare(&[]), [News::Back(t1, Failure::LossOfSignal)]);
    }
}
