//! A span of the driver with its channels: alarms to defects, counters to violations, bits to and from hooks, octets to and from media.

use super::abi::{Counts, Event, SpanInfo};
use super::alarms::{self, KINDS, Presence, Told};
use crate::proto::base::{EndpointIndex, Time};
use crate::proto::circuit::{Coding, PacketsOut, Slots};
use crate::proto::trunk::{Defect, DriverCounts, DriverView, Facility, Hook, Indication, Violations};
use crate::proto::voice;
use std::collections::VecDeque;

/// What a span is made of.
#[derive(Clone, Debug)]
pub struct SpanSettings {
    /// Which facility it is.
    pub facility: Facility,
    /// Its number in the driver.
    pub number: u16,
    /// The endpoint on each channel in order; none on one that carries signalling, which is then not touched.
    pub endpoints: Vec<Option<EndpointIndex>>,
    /// How its channels signal; `None`: they do not.
    pub coding: Option<Coding>,
    /// The media of each channel; its grain is the block that is read at a time.
    pub voice: voice::Settings,
}

/// What an event asks whoever holds the files for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wants {
    /// Nothing.
    Nothing,
    /// The bits that come: [`Span::take_bits`].
    Bits,
    /// The span's state: [`Span::take_status`].
    Status,
    /// The end of everything: the device is gone, see [`Span::lose`].
    End,
}

/// A span.
#[derive(Debug)]
pub struct Span {
    facility: Facility,
    number: u16,
    slots: Slots,
    bits: Box<[Bits]>,
    /// The defects that were indicated, and whether the device is gone.
    told: Told,
    is_gone: bool,
    alarms: u32,
    /// What the driver had counted, once it has said so.
    counted: Option<Counts>,
    counts: DriverCounts,
}

/// The ABCD bits of a channel.
#[derive(Clone, Copy, Debug)]
struct Bits {
    came: u8,
    /// What the driver was told to send.
    shown: Option<u8>,
}

impl Span {
    /// One of which nothing is known yet.
    pub fn new(settings: &SpanSettings) -> Span {
        let SpanSettings { facility, number, endpoints, coding, voice } = settings;
        let idle = Bits { came: coding.map_or(0, |coding| coding.far_bits(Hook::On)), shown: None };
        Span {
            facility: *facility,
            number: *number,
            slots: Slots::new(endpoints, *coding, voice),
            bits: vec![idle; endpoints.len()].into(),
            told: Told::default(),
            is_gone: false,
            alarms: 0,
            counted: None,
            counts: DriverCounts::default(),
        }
    }

    /// Which facility it is.
    pub fn facility(&self) -> Facility {
        self.facility
    }

    /// Its number in the driver.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Its channels.
    pub fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Its channels.
    pub fn slots_mut(&mut self) -> &mut Slots {
        &mut self.slots
    }

    /// How it is.
    pub fn view(&self) -> DriverView {
        DriverView { number: self.number, is_there: !self.is_gone, alarms: self.alarms, counts: self.counts }
    }

    /// What it counts, for what only the holder of the files can know.
    pub fn counts_mut(&mut self) -> &mut DriverCounts {
        &mut self.counts
    }

    /// The state of the span: asked for twice a second, because an alarm that follows another one is no event (DAH-06), and when there is one.
    pub fn take_status(&mut self, info: &SpanInfo, out: &mut VecDeque<Indication>) {
        self.alarms = info.alarms;
        let now = alarms::read(info.alarms, &self.told);
        for ((defect, was), is) in KINDS.into_iter().zip(self.told).zip(now) {
            let (present, was_present) = (is != Presence::None, was != Presence::None);
            // That a failure is one no longer and the defect is still there changes nothing: it is integrated until it ends.
            if present != was_present || is > was {
                // Its end is integrated in any case.
                let at_once = is == Presence::Failure;
                out.push_back(Indication::Defect { facility: self.facility, defect, present, at_once });
            }
        }
        self.told = now;
        let before = self.counted.replace(info.counts).unwrap_or(info.counts);
        let violations = violations(&info.counts, &before);
        if violations != Violations::default() {
            out.push_back(Indication::Violations { facility: self.facility, violations });
        }
    }

    /// The device is gone, or nobody can use its channels: its endpoints are out of service until [`Span::find`].
    pub fn lose(&mut self, out: &mut VecDeque<Indication>) {
        if !self.is_gone {
            self.counts.losses = self.counts.losses.saturating_add(1);
            self.tell_equipment(true, out);
        }
    }

    /// The device is there again. It has forgotten what it was told.
    pub fn find(&mut self, out: &mut VecDeque<Indication>) {
        self.counted = None;
        self.bits.iter_mut().for_each(|bits| bits.shown = None);
        if self.is_gone {
            self.tell_equipment(false, out);
        }
    }

    fn tell_equipment(&mut self, present: bool, out: &mut VecDeque<Indication>) {
        self.is_gone = present;
        out.push_back(Indication::Defect { facility: self.facility, defect: Defect::Equipment, present, at_once: true });
    }

    /// The driver told this of a channel.
    pub fn take_event(&mut self, event: Event) -> Wants {
        let count = |counter: &mut u64| *counter = counter.saturating_add(1);
        match event {
            Event::Bits => Wants::Bits,
            Event::Alarms => Wants::Status,
            Event::Removed => Wants::End,
            Event::Overrun => {
                count(&mut self.counts.overruns);
                Wants::Nothing
            }
            Event::Underrun => {
                count(&mut self.counts.underruns);
                Wants::Nothing
            }
            Event::Other => {
                count(&mut self.counts.unknown);
                Wants::Nothing
            }
        }
    }

    /// These bits come on a channel.
    pub fn take_bits(&mut self, channel: usize, bits: u8) {
        if let Some(place) = self.bits.get_mut(channel) {
            place.came = bits & 0x0F;
        }
    }

    /// A multiframe of signalling, by the gateway's clock: what comes is looked at, and what changed in what goes out is given to `show`, which
    /// says whether the driver has taken it. Without a signal the bits that come stay as they were.
    pub fn signal(&mut self, now: Time, out: &mut VecDeque<Indication>, show: &mut dyn FnMut(usize, u8) -> bool) {
        let Span { slots, bits, told, .. } = self;
        let is_dark = alarms::is_dark(told);
        for (channel, place) in bits.iter_mut().enumerate() {
            if !is_dark {
                slots.take_bits(now, channel, place.came, out);
            }
            let Some(wanted) = slots.give_bits(now, channel, out) else { continue };
            if place.shown != Some(wanted) && show(channel, wanted) {
                place.shown = Some(wanted);
            }
        }
    }

    /// Whether octets of a channel need to be moved; those of others are the driver's silence.
    pub fn is_active(&self, channel: usize) -> bool {
        !self.slots.is_idle(channel)
    }

    /// A block of a channel: `octets` came, and are replaced by those to send.
    pub fn exchange(&mut self, now: Time, channel: usize, octets: &mut [u8], out: &mut VecDeque<Indication>, packets: PacketsOut<'_>) {
        self.counts.blocks = self.counts.blocks.saturating_add(1);
        self.slots.exchange(now, channel, octets, false, out, packets);
    }
}

/// What the driver has counted since `before` (DAH-09): modulo 2^32, and nothing when it began anew. Of two names for the same thing a
/// driver counts by one.
fn violations(now: &Counts, before: &Counts) -> Violations {
    let since = |of: fn(&Counts) -> u32| {
        let more = of(now).wrapping_sub(of(before));
        if more > u32::MAX / 2 { 0 } else { more }
    };
    let framing = since(|counts| counts.framing).max(since(|counts| counts.alignment));
    let line = since(|counts| counts.bipolar).max(since(|counts| counts.coding));
    Violations { path: framing.saturating_add(since(|counts| counts.crc)), line, ..Violations::default() }
}
