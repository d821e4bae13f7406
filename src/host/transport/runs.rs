//! Runs: which queued datagrams leave in one send.
//!
//! Datagrams of equal length to one destination can go to the kernel as one message that it cuts again (UDP_SEGMENT), whatever the
//! receiver knows of that; the last may be shorter. Most of what a send costs is then paid once. A run pays from two datagrams on.
//!
//! Order per destination is kept: a datagram joins the last run towards its destination or begins a new one behind it. Where the path
//! refuses (no checksum offload, IPsec), datagrams to that address go out one by one from then on.

use std::collections::VecDeque;
use std::net::IpAddr;

use super::slots::SendSlots;

/// The most datagrams of a run: what Linux before 6.9 takes.
pub(super) const SEGMENTS_MAX: usize = 64;
/// The longest datagram that joins a run: one that fits any path, because a run with a longer one is refused as a whole. (The least
/// MTU of IPv6 is 1280 bytes, 48 of which are headers.)
const SEGMENT_MAX: u32 = 1232;
/// The most bytes of a run: what one UDP datagram may hold over IPv4.
const BYTES_MAX: u32 = 65_507;
/// How many runs back the last one to a destination is looked for: so many agents may take turns.
const OPEN_MAX: usize = 16;
/// Addresses whose path refused that are remembered; one more, and nothing is coalesced any longer.
const REFUSED_MAX: usize = 8;

/// Queued slots that leave together: linked from `first` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// The first slot.
    pub first: u32,
    /// How many slots.
    pub count: u16,
    /// Bytes of each datagram, of the last one at most.
    pub segment: u16,
    last: u32,
    bytes: u32,
    /// Nothing may follow.
    closed: bool,
    /// How often its send failed by what may be another one's error, and no report said so.
    doubts: u8,
}

/// Reports that may have been taken elsewhere while one datagram was on its way out: several destinations may be dead.
const DOUBTS: u8 = 3;

/// The queue of a socket, or of all of them.
pub(super) struct Runs {
    queue: VecDeque<Run>,
    coalesce: bool,
    refused: Vec<IpAddr>,
}

impl Runs {
    /// Empty; never grows when there are at most `slots` slots.
    pub fn new(slots: usize, coalesce: bool) -> Runs {
        Runs { queue: VecDeque::with_capacity(slots), coalesce, refused: Vec::with_capacity(REFUSED_MAX) }
    }

    /// Puts a queued slot behind everything that goes to its destination.
    #[inline]
    pub fn push(&mut self, slots: &mut SendSlots, slot: u32) {
        let outgoing = *slots.outgoing(slot);
        if self.coalesce && outgoing.len <= SEGMENT_MAX {
            let same = |run: &&mut Run| {
                let head = slots.outgoing(run.first);
                head.to == outgoing.to && head.local == outgoing.local
            };
            if let Some(run) = self.queue.iter_mut().rev().take(OPEN_MAX).find(same)
                && run.takes(outgoing.len)
                && !self.refused.iter().any(|&address| outgoing.to.address().is_some_and(|to| to.ip() == address))
            {
                slots.link(run.last, slot);
                run.last = slot;
                run.count += 1;
                run.bytes += outgoing.len;
                run.closed = outgoing.len < u32::from(run.segment) || usize::from(run.count) == SEGMENTS_MAX;
                return;
            }
        }
        self.queue.push_back(Run::of(slots, slot));
    }

    /// Whether nothing is queued.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The runs, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.queue.iter()
    }

    /// The oldest run.
    pub fn front(&self) -> Option<&Run> {
        self.queue.front()
    }

    /// Takes the oldest run out.
    pub fn pop_front(&mut self) -> Option<Run> {
        self.queue.pop_front()
    }

    /// Puts a run back in front of all others, to be sent again. It takes no more datagrams.
    pub fn push_front(&mut self, run: Run) {
        self.queue.push_front(Run { closed: true, ..run });
    }

    /// Puts a run back, which was taken out, when its send failed by a report about an earlier datagram (`reported`: one was found); and
    /// [`DOUBTS`] times without, because the kernel queues a report before it lets a call fail for it, and another look may have taken it in
    /// between. False: the error is its own.
    pub fn put_back(&mut self, run: Run, reported: bool) -> bool {
        let again = reported || run.doubts < DOUBTS;
        if again {
            self.push_front(Run { doubts: run.doubts + u8::from(!reported), ..run });
        }
        again
    }

    /// The path refused this run, which was taken out: its datagrams go one by one, in front of all others, and so does what follows
    /// to the same address.
    pub fn refuse(&mut self, slots: &SendSlots, run: Run) {
        let address = slots.outgoing(run.first).to.address().map(|address| address.ip());
        match address {
            Some(address) if self.refused.len() < REFUSED_MAX => self.refused.push(address),
            _ => self.coalesce = false,
        }
        let mut datagrams = [0; SEGMENTS_MAX];
        let count = usize::from(run.count).min(SEGMENTS_MAX);
        for (place, slot) in datagrams.iter_mut().zip(run.slots(slots)) {
            *place = slot;
        }
        for &slot in datagrams.iter().take(count).rev() {
            self.push_front(Run::of(slots, slot));
        }
    }
}

impl Run {
    fn of(slots: &SendSlots, slot: u32) -> Run {
        let bytes = slots.outgoing(slot).len;
        // A datagram alone is not cut, so its segment length does not matter when it is too long to be followed.
        let segment = u16::try_from(bytes).unwrap_or(0);
        Run { first: slot, last: slot, count: 1, segment, bytes, closed: bytes == 0 || bytes > SEGMENT_MAX, doubts: 0 }
    }

    fn takes(&self, length: u32) -> bool {
        !self.closed && length > 0 && length <= self.segment.into() && self.bytes + length <= BYTES_MAX
    }

    /// Its slots, in order.
    pub fn slots(self, slots: &SendSlots) -> impl Iterator<Item = u32> + '_ {
        let mut at = self.first;
        (0..self.count).map(move |_| {
            let slot = at;
            at = slots.next(slot);
            slot
        })
    }

    /// Makes its slots free again; says how many.
    pub fn release(self, slots: &mut SendSlots) -> u64 {
        let mut at = self.first;
        for _ in 0..self.count {
            let next = slots.next(at);
            slots.release(at);
            at = next;
        }
        self.count.into()
    }
}

/// Whether an error of a send means that the path takes no runs: no checksum offload or IPsec (EIO), a segment longer than the path
/// takes (EINVAL, EMSGSIZE), a kernel or socket without (EOPNOTSUPP).
pub(super) fn is_refusal(error: i32) -> bool {
    matches!(error, libc::EIO | libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP)
}

/// The control message that says how long segments are (UDP_SEGMENT), as `sendmsg` reads it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct SegmentControl {
    length: usize,
    level: i32,
    kind: i32,
    segment: u16,
    padding: [u8; 6],
}

impl SegmentControl {
    /// Bytes of it, padding included.
    pub const SIZE: usize = size_of::<SegmentControl>();

    /// For segments of no bytes yet.
    pub const fn new() -> SegmentControl {
        SegmentControl { length: 18, level: libc::SOL_UDP, kind: libc::UDP_SEGMENT, segment: 0, padding: [0; 6] }
    }

    /// What `run` is sent with, as `msg_control` and `msg_controllen`: nothing for a datagram alone.
    pub fn fill(&mut self, run: &Run) -> (*mut libc::c_void, usize) {
        if run.count < 2 {
            return (std::ptr::null_mut(), 0);
        }
        self.segment = run.segment;
        ((&raw mut *self).cast(), SegmentControl::SIZE)
    }
}

// A header of 16 bytes and two of payload, rounded up to 8.
const _: () = assert!(SegmentControl::SIZE == 24);

#[cfg(test)]
mod tests {
    use super::super::TransportSettings;
    use super::*;
    use std::net::SocketAddr;

    struct Bed {
        slots: SendSlots,
        runs: Runs,
        sent: usize,
    }

    impl Bed {
        fn new() -> Bed {
            Bed { slots: SendSlots::new(&TransportSettings::default()), runs: Runs::new(256, true), sent: 0 }
        }

        fn send(&mut self, to: u16, length: usize) -> u32 {
            let slot = self.slots.reserve().expect("a free slot");
            self.slots.buffer(&slot)[0] = self.sent as u8;
            self.sent += 1;
            let slot = self.slots.queue(slot, length, SocketAddr::from(([127, 0, 0, 1], to)), 0);
            self.runs.push(&mut self.slots, slot);
            slot
        }

        /// Lengths by run, with the port each goes to.
        fn shape(&self) -> Vec<(u16, Vec<u32>)> {
            let lengths = |run: &Run| run.slots(&self.slots).map(|slot| self.slots.outgoing(slot).len).collect();
            let port = |run: &Run| self.slots.outgoing(run.first).to.address().expect("an address").port();
            self.runs.iter().map(|run| (port(run), lengths(run))).collect()
        }
    }

    #[test]
    fn equal_lengths_run_and_a_shorter_one_ends_the_run() {
        let mut bed = Bed::new();
        for length in [145, 145, 63, 145, 145, 146, 0, 0, 5] {
            bed.send(1, length);
        }
        let wanted = [vec![145, 145, 63], vec![145, 145], vec![146], vec![0], vec![0], vec![5]];
        assert_eq!(bed.shape(), wanted.map(|lengths| (1, lengths)));
    }

    #[test]
    fn each_destination_has_its_own_runs_in_its_own_order() {
        let mut bed = Bed::new();
        for (to, length) in [(1, 50), (2, 50), (1, 50), (3, 70), (2, 60), (1, 50), (2, 60), (3, 70)] {
            bed.send(to, length);
        }
        assert_eq!(bed.shape(), [(1, vec![50; 3]), (2, vec![50]), (3, vec![70; 2]), (2, vec![60; 2])]);
    }

    #[test]
    fn runs_are_bounded_in_datagrams_and_bytes() {
        let mut bed = Bed::new();
        for _ in 0..70 {
            bed.send(1, 10);
        }
        for _ in 0..56 {
            bed.send(2, 1200);
        }
        for _ in 0..2 {
            bed.send(3, 1233);
        }
        let lengths: Vec<usize> = bed.shape().iter().map(|(_, lengths)| lengths.len()).collect();
        assert_eq!(lengths, [64, 6, 54, 2, 1, 1]);
    }

    #[test]
    fn a_refused_path_gets_datagrams_one_by_one_in_their_order_and_others_keep_their_runs() {
        let mut bed = Bed::new();
        let slots: Vec<u32> = (0..3).map(|_| bed.send(1, 10)).collect();
        let run = bed.runs.pop_front().expect("a run");
        bed.send(1, 10);
        bed.runs.refuse(&bed.slots, run);
        let firsts: Vec<u32> = bed.runs.iter().map(|run| run.first).collect();
        assert_eq!((&firsts[..3], bed.shape().len()), (&slots[..], 4));
        bed.send(1, 10);
        assert_eq!(bed.shape().len(), 5, "no run to this address any longer");
        while let Some(run) = bed.runs.pop_front() {
            run.release(&mut bed.slots);
        }
        assert_eq!(bed.slots.free(), bed.slots.count());
        let other = |bed: &mut Bed| {
            let slot = bed.slots.reserve().expect("a free slot");
            let slot = bed.slots.queue(slot, 10, SocketAddr::from(([127, 0, 0, 2], 1)), 0);
            bed.runs.push(&mut bed.slots, slot);
        };
        (0..3).for_each(|_| other(&mut bed));
        assert_eq!(bed.shape(), [(1, vec![10; 3])]);
    }

    #[test]
    fn what_is_sent_again_takes_nothing_more() {
        let mut bed = Bed::new();
        bed.send(1, 10);
        let run = bed.runs.pop_front().expect("a run");
        bed.runs.push_front(run);
        bed.send(1, 10);
        assert_eq!(bed.shape(), [(1, vec![10]), (1, vec![10])]);
    }

    #[test]
    fn an_error_without_a_report_is_taken_for_anothers_a_few_times() {
        let mut bed = Bed::new();
        bed.send(1, 10);
        let doubts = std::iter::repeat_n((false, true), usize::from(DOUBTS));
        for (reported, goes_on) in [(true, true), (true, true)].into_iter().chain(doubts).chain([(true, true), (false, false)]) {
            let run = bed.runs.pop_front().expect("it was put back");
            assert_eq!(bed.runs.put_back(run, reported), goes_on);
        }
        assert!(bed.runs.front().is_none(), "its sender lets it go");
    }

    #[test]
    fn nothing_runs_when_it_is_off() {
        let mut bed = Bed { runs: Runs::new(256, false), ..Bed::new() };
        for _ in 0..3 {
            bed.send(1, 10);
        }
        assert_eq!(bed.shape().len(), 3);
    }
}
