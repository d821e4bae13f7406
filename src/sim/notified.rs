//! What Notify commands tell of the lines' numbered events (`T/oc(1)`, `T/oc(2)`, ... of each endpoint, see [`World::happen`]): in order,
//! and none left out (G-QUA-13, G-PIG-03, G-SHD-09).
//!
//! A Notify that is sent while earlier ones of its endpoint are not answered has those in front of it in its datagram, oldest first, so
//! that whatever the network does the agent has them in order. What stood behind one that was given up, because no address answered, is
//! told again, all of it (G-DIS-13). An event that is left out is only noted here: whether the gateway had to drop it is known to its
//! counters. But what stood behind the one that was given up must not be left out with it, which nothing excuses.
//!
//! [`World::happen`]: super::World::happen

use super::reply::Reply;
use crate::proto::base::{EndpointIndex, Time};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// One endpoint.
#[derive(Default)]
struct Line {
    /// Events that happened, by count; the first has number 1.
    happened: u32,
    /// The last that was told.
    told: u32,
    /// Commands without an answer, in order.
    open: Vec<Open>,
    /// The first events of those that were answered of late.
    closed: VecDeque<u32>,
}

/// A Notify without an answer.
#[derive(Debug)]
struct Open {
    id: u32,
    /// Its first event.
    first: u32,
    /// When it was sent first.
    since: Time,
    /// One behind it was answered, so the agent has it.
    is_there: bool,
}

impl Open {
    /// Whether a copy of it may still come to the agent, later than what is sent now: none leaves after T-MAX, which began up to `unseen`
    /// before the first copy that was seen.
    fn may_come(&self, now: Time, unseen: Duration) -> bool {
        !self.is_there && now.since(self.since) + unseen <= T_MAX
    }
}

/// T-MAX, of the settings all worlds have.
const T_MAX: Duration = Duration::from_secs(20);
/// Where frames to send lack, the first copy that left may be the last one that was tried.
pub(super) const UNSEEN: Duration = T_MAX;
/// Answered commands of an endpoint that are remembered.
const CLOSED: usize = 8;

/// See the module page.
#[derive(Default)]
pub(super) struct Notified {
    lines: HashMap<EndpointIndex, Line>,
    /// Events that were left out, in words.
    gaps: Vec<String>,
    /// Endpoints go out of service and come back as new: what was said before need not come first.
    pub restarts: bool,
    /// Answers that came in may be lost on their way to the core that waits for them.
    pub loses_answers: bool,
    /// First copies may not leave for want of a frame; [`UNSEEN`] then.
    pub unseen: Duration,
}

impl Notified {
    /// The number of the next event of an endpoint.
    pub fn next(&self, endpoint: EndpointIndex) -> u32 {
        self.lines.get(&endpoint).map_or(0, |line| line.happened) + 1
    }

    /// It happens now.
    pub fn happens(&mut self, endpoint: EndpointIndex) {
        self.lines.entry(endpoint).or_default().happened += 1;
    }

    /// The gateway takes in a final for its command `id`.
    pub fn answered(&mut self, id: u32) {
        for line in self.lines.values_mut() {
            if let Some(place) = line.open.iter().position(|open| open.id == id) {
                let answered = line.open.remove(place);
                line.closed.truncate(CLOSED - 1);
                line.closed.push_front(answered.first);
                line.open.iter_mut().take(place).for_each(|open| open.is_there = true);
            }
        }
    }

    /// The gateway sends a Notify for the first time, behind these messages of its datagram.
    ///
    /// # Panics
    /// When its events are out of order, were told before, did not happen, or may overtake others.
    pub fn sent(&mut self, now: Time, endpoint: EndpointIndex, front: &[Reply], command: &Reply) {
        let numbers: Vec<u32> = numbers(command).collect();
        let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else { return };
        // Events that a script numbers itself are its own concern.
        let Some(line) = self.lines.get_mut(&endpoint) else { return };
        let text = || String::from_utf8_lossy(&command.bytes).into_owned();
        assert!(numbers.is_sorted_by(|a, b| a < b) && first > 0, "events out of order in {}", text());
        assert!(last <= line.happened, "{} events happened, told {}", line.happened, text());
        if first <= line.told {
            // The oldest was given up: what stood behind it is told again.
            let place = line.open.iter().position(|open| open.first == first);
            // The answer may have been lost behind the boundary, where a ring is full or a core stands still.
            let may_be_lost = self.restarts || self.loses_answers && line.closed.contains(&first);
            let place = place
                .or(may_be_lost.then_some(0))
                .unwrap_or_else(|| panic!("events told again that were answered, in {}; open {:?}", text(), line.open));
            let lost = line.open.get(..place).unwrap_or_default();
            // One that was out together with the one before stood behind it; those that the agent is past may be left out.
            let unknown = lost.iter().filter(|open| !open.is_there);
            let apart = unknown.is_sorted_by(|one, next| next.since.since(one.since) > T_MAX);
            assert!(self.restarts || apart, "{lost:?} are left out, of which not all were given up");
            self.gaps.extend(lost.iter().map(|open| format!("Notify {} of {endpoint:?} was given up", open.id)));
            line.open.clear();
        } else {
            let waits = |id: &u32| line.open.iter().any(|open| open.id == *id && open.may_come(now, self.unseen));
            let mut before = front.iter().map(|message| message.id).filter(waits);
            let missing = line.open.iter().find(|open| open.may_come(now, self.unseen) && before.next() != Some(open.id));
            assert!(self.restarts || missing.is_none(), "may overtake {missing:?}, an earlier Notify of its endpoint: {}", text());
            if first != line.told + 1 {
                self.gaps.push(format!("after {} of {endpoint:?} comes {}", line.told, text()));
            }
        }
        if !numbers.is_sorted_by(|a, b| a + 1 == *b) {
            self.gaps.push(format!("between the events of {}", text()));
        }
        line.told = last;
        line.open.push(Open { id: command.id, first, since: now, is_there: false });
    }

    /// Events that were left out so far.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// Endpoints with events that were not told, or whose Notify was not answered.
    pub fn untold(&self) -> Vec<EndpointIndex> {
        let untold = |line: &Line| line.told < line.happened || !line.open.is_empty();
        let mut list: Vec<_> = self.lines.iter().filter(|(_, line)| untold(line)).map(|(endpoint, _)| *endpoint).collect();
        list.sort_unstable_by_key(|endpoint| endpoint.0);
        list
    }
}

/// The numbers of the events a Notify tells of.
fn numbers(command: &Reply) -> impl Iterator<Item = u32> {
    let events = command.get("O").unwrap_or_default().split(',');
    events.filter_map(|event| event.trim().strip_prefix("T/oc(")?.strip_suffix(')')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const E: EndpointIndex = EndpointIndex(3);
    const AT: Time = Time::from_millis(1000);

    fn notify(id: u32, events: &str) -> Reply {
        let text = format!("NTFY {id} ds/ds1-1/4@tgw.example.net MGCP 1.0\r\nX: 1\r\nO: {events}\r\n");
        Reply::all(text.as_bytes()).remove(0)
    }

    fn after(events: u32) -> Notified {
        let mut notified = Notified::default();
        (0..events).for_each(|_| notified.happens(E));
        notified
    }

    #[test]
    fn what_is_right_passes() {
        let mut notified = after(6);
        let (one, two, three) = (notify(1, "T/oc(1)"), notify(2, "T/oc(2),T/oc(3)"), notify(3, "T/oc(4)"));
        notified.sent(AT, E, &[], &one);
        notified.sent(AT, E, std::slice::from_ref(&one), &two);
        notified.answered(1);
        notified.sent(AT, E, &[two], &three);
        // Given up, and told again when the agent is back.
        notified.sent(AT, E, &[], &notify(4, "T/oc(2),T/oc(3)"));
        notified.answered(4);
        notified.sent(AT, E, &[], &notify(5, "T/oc(4),T/oc(5)"));
        notified.answered(5);
        assert_eq!((notified.gaps().len(), notified.untold()), (0, vec![E]));
        notified.sent(AT, E, &[], &notify(6, "T/oc(6)"));
        notified.answered(6);
        assert_eq!(notified.untold(), []);
    }

    #[test]
    #[should_panic(expected = "may overtake")]
    fn a_notify_without_the_one_before_is_caught() {
        let mut notified = after(2);
        notified.sent(AT, E, &[], &notify(1, "T/oc(1)"));
        notified.sent(AT, E, &[], &notify(2, "T/oc(2)"));
    }

    #[test]
    #[should_panic(expected = "told again")]
    fn an_event_told_twice_is_caught() {
        let mut notified = after(2);
        notified.sent(AT, E, &[], &notify(1, "T/oc(1)"));
        notified.answered(1);
        notified.sent(AT, E, &[], &notify(2, "T/oc(1)"));
    }

    #[test]
    #[should_panic(expected = "left out")]
    fn what_is_given_up_with_another_is_caught() {
        let mut notified = after(3);
        let (one, two) = (notify(1, "T/oc(1)"), notify(2, "T/oc(2)"));
        notified.sent(AT, E, &[], &one);
        notified.sent(AT, E, std::slice::from_ref(&one), &two);
        notified.sent(AT, E, &[one, two], &notify(3, "T/oc(3)"));
        notified.sent(AT, E, &[], &notify(4, "T/oc(3)"));
    }

    #[test]
    fn what_the_agent_is_past_may_be_left_out_before_one_that_is_given_up() {
        let mut notified = after(4);
        let [one, two, three, four] = [1, 2, 3, 4].map(|number| notify(number, &format!("T/oc({number})")));
        notified.sent(AT, E, &[], &one);
        notified.sent(AT, E, std::slice::from_ref(&one), &two);
        notified.answered(2);
        let later = AT + T_MAX / 2;
        notified.sent(later, E, &[], &three);
        notified.sent(later, E, &[three], &four);
        notified.sent(later + T_MAX, E, &[], &notify(5, "T/oc(4)"));
        assert_eq!(notified.gaps().len(), 2);
    }

    #[test]
    #[should_panic(expected = "out of order")]
    fn events_out_of_order_are_caught() {
        after(2).sent(AT, E, &[], &notify(1, "T/oc(2),T/oc(1)"));
    }

    #[test]
    fn an_event_left_out_is_noted() {
        let mut notified = after(5);
        notified.sent(AT, E, &[], &notify(1, "T/oc(2)"));
        notified.answered(1);
        notified.sent(AT, E, &[], &notify(2, "T/oc(3),T/oc(5)"));
        assert_eq!(notified.gaps().len(), 2);
    }
}
