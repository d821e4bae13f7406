//! One span of the driver, held and worked: its events, bits and state, then the blocks of its channels.

use super::find::{Channels, Wanted, channel_problem, find, status};
use super::{Device, PLACES};
use crate::proto::base::Time;
use crate::proto::circuit::PacketsOut;
use crate::proto::dahdi::abi::{self, Event, Request, SpanInfo};
use crate::proto::dahdi::{Span, SpanSettings, Wants};
use crate::proto::trunk::{Facility, Indication};
use crate::proto::voice::Law;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Bits are looked at and sent so often: a multiframe of an ESF T1.
const TICK: Duration = Duration::from_millis(3);
/// The span's state is asked for so often, by a clock of its own, so each second has two.
const STATUS: Duration = Duration::from_millis(500);
/// A device that is gone is looked for so often.
const RETRY: Duration = Duration::from_secs(1);
/// Events of a channel taken at a time, and of a span after which the rest of it waits for the next turn: twice what the driver keeps of a channel.
const EVENTS_MAX: usize = 128;
/// Blocks of a channel that are sent when several came while the core was late: as many as the driver has when all goes well.
const HELD: usize = 2;
/// Octets that count as one period of a span in the slice of a turn: a millisecond of a T1.
const PERIOD: usize = 192;

/// What a line is made of.
pub(in crate::host::card) struct LineSettings {
    /// Its channels.
    pub span: SpanSettings,
    /// Which span it is, and what it must be.
    pub wanted: Wanted,
    /// How many octets are read at a time.
    pub block: usize,
}

/// A span of the driver.
pub(in crate::host::card) struct Line {
    span: Span,
    wanted: Wanted,
    law: i32,
    block: usize,
    /// The place of its first channel.
    place: usize,
    channels: Box<[Channel]>,
    buffer: Box<[u8]>,
    tick: Time,
    status: Time,
    /// While its channels are not held: when to try again.
    lost: Option<Time>,
    /// Whether events wait that a turn had no room for, and the channel to begin with.
    behind: bool,
    first: usize,
    /// Whether blocks may wait that the slice had no room for; the channel to go on with, and octets of a period begun.
    backlog: bool,
    next: usize,
    spent: usize,
    is_looped: bool,
}

/// A channel.
struct Channel {
    /// Whether it is an endpoint.
    used: bool,
    urgent: bool,
    readable: bool,
    /// Whether its octets are moved.
    active: bool,
    /// Blocks to send, until it is known that no newer one came.
    held: Box<[u8]>,
    lengths: [usize; HELD],
    count: usize,
}

/// Nothing is to be had of the device any more.
struct Gone;

/// What the files of a line are worked with.
pub(in crate::host::card) struct Carry<'a> {
    pub device: &'a mut dyn Device,
    pub queue: &'a mut VecDeque<Indication>,
    pub packets: PacketsOut<'a>,
}

impl Line {
    /// Takes all channels of a span; `place`: the number of the line on its card.
    ///
    /// # Errors
    /// Everything that is wrong, in words.
    pub fn new(now: Time, settings: LineSettings, place: usize, device: &mut dyn Device, all: &Channels) -> Result<Line, Vec<String>> {
        let LineSettings { span, wanted, block } = settings;
        let channel = |used: &bool| Channel {
            used: *used,
            urgent: false,
            readable: false,
            active: false,
            held: vec![0; HELD * block].into(),
            lengths: [0; HELD],
            count: 0,
        };
        let mut line = Line {
            law: if span.voice.law == Law::A { 2 } else { 1 },
            span: Span::new(&span),
            channels: wanted.used.iter().map(channel).collect(),
            wanted,
            block,
            place: place * PLACES,
            buffer: vec![0; block].into(),
            tick: now,
            status: now,
            lost: None,
            behind: false,
            first: 0,
            backlog: false,
            next: 0,
            spent: 0,
            is_looped: false,
        };
        let numbers = find(device, all, &line.wanted)?;
        line.take(device, &numbers).map_err(|(channel, error)| vec![channel_problem(&line.wanted.name, channel, &error)])?;
        Ok(line)
    }

    /// Which facility it is.
    pub fn facility(&self) -> Facility {
        self.span.facility()
    }

    /// What it is.
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// What it is.
    pub fn span_mut(&mut self) -> &mut Span {
        &mut self.span
    }

    /// Whether its channels are held.
    pub fn is_held(&self) -> bool {
        self.lost.is_none()
    }

    /// When to work next.
    pub fn due(&self) -> Time {
        match self.lost {
            Some(retry) => retry,
            None if self.backlog || self.behind => Time::ZERO,
            None => self.tick,
        }
    }

    /// Its number among those of its card.
    pub fn number(&self) -> usize {
        self.place / PLACES
    }

    /// Something is ready on a channel.
    pub fn note(&mut self, channel: usize, urgent: bool, readable: bool) {
        if let Some(channel) = self.channels.get_mut(channel) {
            channel.urgent |= urgent;
            channel.readable |= readable;
        }
    }

    /// Loops it towards the far end, or not any more.
    ///
    /// # Errors
    /// Why not.
    pub fn set_loop(&mut self, device: &mut dyn Device, on: bool) -> Result<(), &'static str> {
        let command = if on { abi::PAYLOAD_LOOP } else { abi::NO_LOOP };
        match device.control(abi::MAINT, &mut abi::pair(self.span.number().into(), command)) {
            Ok(()) => {
                (self.is_looped, self.status) = (on, Time::ZERO);
                Ok(())
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => Err("the driver of its card has no payload loopback"),
            Err(_) => Err("the driver refused it"),
        }
    }

    /// Ends a loop of the gateway's own.
    pub fn end_loop(&mut self, device: &mut dyn Device) {
        if self.is_looped {
            let _ = self.set_loop(device, false);
        }
    }

    /// Opens all channels, or none. Gives what went wrong with which.
    fn take(&mut self, device: &mut dyn Device, numbers: &[Option<u16>]) -> Result<(), (u16, io::Error)> {
        for (channel, number) in numbers.iter().enumerate() {
            let Some(number) = *number else { continue };
            if let Err(error) = self.take_one(device, channel, number) {
                self.drop_all(device);
                return Err((number, error));
            }
        }
        Ok(())
    }

    fn take_one(&mut self, device: &mut dyn Device, channel: usize, number: u16) -> io::Result<()> {
        let place = self.place + channel;
        device.open(place, number)?;
        device.order(place, abi::SET_BUFINFO, &mut abi::buffers(self.block))?;
        device.order(place, abi::SETLAW, &mut abi::number(self.law))?;
        if self.wanted.coding.is_none() {
            device.order(place, abi::AUDIOMODE, &mut abi::number(1))?;
        } else {
            let bits = ask(device, place, abi::GETRXBITS)?;
            self.span.take_bits(channel, bits as u8);
        }
        // Nothing here wants one, and neither continuity tests nor data nor modems bear one (DAH-13). A channel without any refuses.
        let _ = device.order(place, abi::ECHOCANCEL, &mut abi::number(0));
        if let Some(channel) = self.channels.get_mut(channel) {
            (channel.urgent, channel.readable, channel.active, channel.count) = (true, false, false, 0);
        }
        Ok(())
    }

    fn drop_all(&mut self, device: &mut dyn Device) {
        (0..self.channels.len()).for_each(|channel| device.close(self.place + channel));
        (self.backlog, self.behind) = (false, false);
    }

    /// Gives everything back: the device is gone, and asking each channel would cost 5 ms.
    fn lose(&mut self, now: Time, carry: &mut Carry<'_>) {
        self.drop_all(carry.device);
        self.lost = Some(now + RETRY);
        self.span.lose(carry.queue);
    }

    /// Looks for a device that was gone.
    fn retry(&mut self, now: Time, carry: &mut Carry<'_>) {
        let device = &mut *carry.device;
        self.lost = Some(now + RETRY);
        // Not the channels of all spans each time.
        if status(device, self.wanted.number).is_err() {
            return;
        }
        let all = Channels::of(device);
        let Ok(numbers) = find(device, &all, &self.wanted) else { return };
        if self.take(device, &numbers).is_ok() {
            (self.lost, self.tick, self.status) = (None, now, now);
            self.span.find(carry.queue);
        }
    }

    /// What signals: events, the span's state, bits. Before any octet is moved (DAH-03).
    pub fn attend(&mut self, now: Time, carry: &mut Carry<'_>) {
        if let Some(retry) = self.lost {
            if retry > now {
                return;
            }
            self.retry(now, carry);
        }
        if self.lost.is_none() && self.try_attend(now, carry).is_err() {
            self.lose(now, carry);
        }
    }

    fn try_attend(&mut self, now: Time, carry: &mut Carry<'_>) -> Result<(), Gone> {
        self.drain_all(carry)?;
        if now >= self.status {
            self.status += STATUS;
            if self.status <= now {
                self.status = now + STATUS;
            }
            let mut octets = SpanInfo::of(self.span.number());
            match carry.device.control(abi::SPANSTAT, &mut octets) {
                Ok(()) => self.span.take_status(&SpanInfo::read(&octets), carry.queue),
                // A span whose state is not to be had is none that carries calls.
                Err(_) => return Err(Gone),
            }
        }
        if now < self.tick {
            return Ok(());
        }
        self.tick += TICK;
        if self.tick <= now {
            self.tick = now + TICK;
        }
        let (first, device) = (self.place, &mut *carry.device);
        let (mut refused, mut gone) = (0, false);
        self.span.signal(now, carry.queue, &mut |channel, bits| {
            let told = device.order(first + channel, abi::SETTXBITS, &mut abi::number(bits.into()));
            refused += u64::from(told.is_err());
            gone |= told.as_ref().is_err_and(is_gone);
            told.is_ok()
        });
        let counts = self.span.counts_mut();
        counts.refused = counts.refused.saturating_add(refused);
        if gone {
            return Err(Gone);
        }
        (0..self.channels.len()).try_for_each(|channel| self.activate(channel, device))
    }

    /// Begins or ends to move the octets of a channel.
    fn activate(&mut self, channel: usize, device: &mut dyn Device) -> Result<(), Gone> {
        let wanted = self.span.is_active(channel);
        let place = self.place + channel;
        let Some(of) = self.channels.get_mut(channel).filter(|of| of.used && of.active != wanted) else { return Ok(()) };
        (of.active, of.readable, of.count) = (wanted, wanted, 0);
        // What waits in the driver is old; and what is sent begins anew when half of its buffers are full.
        let emptied = if wanted { device.order(place, abi::SET_BUFINFO, &mut abi::buffers(self.block)) } else { Ok(()) };
        if let Err(error) = emptied {
            self.refused(&error)?;
        }
        // An old driver has no such events.
        let _ = device.order(place, abi::BUFFER_EVENTS, &mut abi::number(wanted.into()));
        Ok(())
    }

    /// Takes the events of all channels that have some, of as many as a turn has room for.
    fn drain_all(&mut self, carry: &mut Carry<'_>) -> Result<(), Gone> {
        self.behind = false;
        let (mut taken, count) = (0, self.channels.len());
        for step in 0..count {
            let channel = (self.first + step) % count;
            if !self.channels.get(channel).is_some_and(|channel| channel.urgent && channel.used) {
                continue;
            }
            if taken >= EVENTS_MAX {
                (self.behind, self.first) = (true, channel);
                break;
            }
            taken += self.drain(channel, carry)?;
        }
        Ok(())
    }

    /// Takes the events of a channel until there is none (DAH-04); how many there were.
    fn drain(&mut self, channel: usize, carry: &mut Carry<'_>) -> Result<usize, Gone> {
        let place = self.place + channel;
        let (mut bits, mut left, mut taken) = (false, true, 0);
        while taken < EVENTS_MAX {
            let number = match ask(carry.device, place, abi::GETEVENT) {
                Ok(number) => number,
                Err(error) => {
                    self.refused(&error)?;
                    0
                }
            };
            let Some(event) = Event::of(number) else {
                left = false;
                break;
            };
            taken += 1;
            match self.span.take_event(event) {
                Wants::Nothing => {}
                Wants::Bits => bits = true,
                Wants::Status => self.status = Time::ZERO,
                Wants::End => return Err(Gone),
            }
        }
        if let Some(of) = self.channels.get_mut(channel) {
            of.urgent = left;
        }
        if bits {
            match ask(carry.device, place, abi::GETRXBITS) {
                Ok(bits) => self.span.take_bits(channel, bits as u8),
                Err(error) => self.refused(&error)?,
            }
        }
        Ok(taken)
    }

    /// Moves the blocks that have come, `budget` periods of a span at the most.
    pub fn carry(&mut self, now: Time, carry: &mut Carry<'_>, budget: &mut usize) {
        self.backlog = false;
        if self.lost.is_some() {
            return;
        }
        let count = self.channels.len();
        for step in 0..count {
            let channel = (self.next + step) % count;
            if !self.channels.get(channel).is_some_and(|of| of.active && of.readable) {
                continue;
            }
            if *budget == 0 {
                (self.next, self.backlog) = (channel, true);
                return;
            }
            if self.carry_channel(now, channel, carry, budget).is_err() {
                return self.lose(now, carry);
            }
        }
    }

    fn carry_channel(&mut self, now: Time, channel: usize, carry: &mut Carry<'_>, budget: &mut usize) -> Result<(), Gone> {
        let place = self.place + channel;
        let mut interrupted = false;
        loop {
            match carry.device.read(place, &mut self.buffer) {
                Ok(length) if length > 0 => {
                    let Line { span, buffer, channels, .. } = self;
                    let (Some(octets), Some(of)) = (buffer.get_mut(..length), channels.get_mut(channel)) else { return Ok(()) };
                    span.exchange(now, channel, octets, carry.queue, carry.packets);
                    let dropped = of.hold(octets);
                    let counts = span.counts_mut();
                    counts.dropped = counts.dropped.saturating_add(u64::from(dropped));
                    self.spent += length;
                    *budget = budget.saturating_sub(self.spent / PERIOD);
                    self.spent %= PERIOD;
                    if *budget == 0 {
                        (self.next, self.backlog) = (channel, true);
                        return Ok(());
                    }
                }
                Ok(_) => return self.rest(channel, carry),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.rest(channel, carry),
                // What it reads is there behind the event (DAH-02).
                Err(error) if error.raw_os_error() == Some(abi::EVENT_WAITS) && !interrupted => {
                    interrupted = true;
                    self.drain(channel, carry)?;
                }
                Err(error) => {
                    let more = error.raw_os_error() == Some(abi::EVENT_WAITS);
                    if let Some(of) = self.channels.get_mut(channel) {
                        // An event again: it is taken first at the next turn.
                        (of.urgent, of.readable) = (true, more);
                    }
                    return if more { Ok(()) } else { self.refused(&error) };
                }
            }
        }
    }

    /// Nothing newer came: what is held is sent.
    fn rest(&mut self, channel: usize, carry: &mut Carry<'_>) -> Result<(), Gone> {
        let Some(of) = self.channels.get_mut(channel) else { return Ok(()) };
        of.readable = false;
        let count = std::mem::take(&mut of.count);
        for number in 0..count {
            let mut written = self.write(channel, number, carry.device);
            if written.as_ref().is_err_and(|error| error.raw_os_error() == Some(abi::EVENT_WAITS)) {
                self.drain(channel, carry)?;
                written = self.write(channel, number, carry.device);
            }
            let Err(error) = written else { continue };
            let counts = self.span.counts_mut();
            counts.dropped = counts.dropped.saturating_add(1);
            if is_gone(&error) {
                return Err(Gone);
            }
        }
        Ok(())
    }

    fn write(&self, channel: usize, number: usize, device: &mut dyn Device) -> io::Result<()> {
        let of = self.channels.get(channel).ok_or(io::ErrorKind::NotFound)?;
        let length = of.lengths.get(number).copied().unwrap_or(0);
        let octets = of.held.get(number * self.block..).and_then(|rest| rest.get(..length)).unwrap_or_default();
        device.write(self.place + channel, octets).map(|_| ())
    }

    /// The driver refused something.
    fn refused(&mut self, error: &io::Error) -> Result<(), Gone> {
        if is_gone(error) {
            return Err(Gone);
        }
        let counts = self.span.counts_mut();
        counts.refused = counts.refused.saturating_add(1);
        Ok(())
    }
}

impl Channel {
    /// Keeps a block to send, in place of the oldest when there are too many; whether there were.
    fn hold(&mut self, octets: &[u8]) -> bool {
        let block = self.held.len() / HELD;
        let is_full = self.count == HELD;
        if is_full {
            self.held.copy_within(block.., 0);
            self.lengths.copy_within(1.., 0);
            self.count -= 1;
        }
        if let (Some(place), Some(length)) = (self.held.get_mut(self.count * block..), self.lengths.get_mut(self.count))
            && let Some(place) = place.get_mut(..octets.len())
        {
            place.copy_from_slice(octets);
            *length = octets.len();
            self.count += 1;
        }
        is_full
    }
}

/// A number that the driver gives.
fn ask(device: &mut dyn Device, place: usize, request: Request) -> io::Result<i32> {
    let mut octets = [0; 4];
    device.order(place, request, &mut octets)?;
    Ok(i32::from_ne_bytes(octets))
}

/// Whether the device is gone.
fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENODEV)
}
