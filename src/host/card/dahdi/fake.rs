//! A driver in memory, which does what the facts say of the kernel's (t1-t3 section 13): channels with buffers, events that go before octets,
//! bits, alarms, and devices that are pulled out.

use super::{Device, PLACES};
use crate::proto::dahdi::abi::{self, Params, Request, SpanInfo};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

/// A driver, shared by a card and the test that plays the world.
pub struct Fake {
    world: Arc<Mutex<World>>,
    /// Whether it is a card's: then its files are closed with it, as the kernel does.
    is_card: bool,
}

/// What the driver has.
#[derive(Default)]
pub struct World {
    /// Spans, from number 1 on.
    pub spans: Vec<FakeSpan>,
    /// Every channel.
    pub channels: Vec<FakeChannel>,
    /// By place: the channel, counted from 0.
    places: Vec<Option<usize>>,
    /// Every request and transfer in order: place (none for the control file), and what.
    pub log: Vec<(Option<usize>, Did)>,
    /// Requests that are not known to it.
    pub unknown: Vec<Request>,
    /// The most files that may be open.
    pub files_max: usize,
}

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Did {
    /// A request, with its first number.
    Asked(Request, i32),
    /// A block was read.
    Read,
    /// A block was written.
    Wrote,
}

/// A span.
#[derive(Clone, Default)]
pub struct FakeSpan {
    pub alarms: u32,
    pub line: u32,
    /// BPV, CRC, E bits, FAS, FE, CV.
    pub counts: [u32; 6],
    pub channels: u32,
    pub loops: Vec<i32>,
    pub is_gone: bool,
}

/// A channel.
#[derive(Clone, Default)]
pub struct FakeChannel {
    pub span: u32,
    pub position: u32,
    pub signalling: u32,
    pub is_open: bool,
    pub is_busy: bool,
    pub events: VecDeque<i32>,
    pub came: u8,
    pub shown: Option<u8>,
    /// Blocks that came, and blocks to send.
    pub received: VecDeque<Vec<u8>>,
    pub sent: VecDeque<Vec<u8>>,
    pub buffers: (usize, usize),
    ready: (bool, bool),
}

fn error<T>(number: i32) -> io::Result<T> {
    Err(io::Error::from_raw_os_error(number))
}

impl Fake {
    /// A driver with so many spans of so many channels that signal so.
    pub fn new(spans: u32, channels: u32, signalling: u32) -> Fake {
        let span = FakeSpan { channels, line: abi::line::ESF, ..FakeSpan::default() };
        let channel = |n: u32| FakeChannel { span: 1 + n / channels, position: 1 + n % channels, signalling, ..FakeChannel::default() };
        let world = World {
            spans: vec![span; spans as usize],
            channels: (0..spans * channels).map(channel).collect(),
            places: vec![None; spans as usize * PLACES],
            files_max: usize::MAX,
            ..World::default()
        };
        Fake { world: Arc::new(Mutex::new(world)), is_card: false }
    }

    /// The driver as a card holds it.
    pub fn device(&self) -> Fake {
        Fake { world: self.world.clone(), is_card: true }
    }

    /// The world.
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let (true, Ok(mut world)) = (self.is_card, self.world.lock()) {
            world.places.fill(None);
            world.channels.iter_mut().for_each(|channel| channel.is_open = false);
        }
    }
}

impl World {
    /// An event of a channel, counted from 0.
    pub fn tell(&mut self, channel: usize, event: i32) {
        let of = &mut self.channels[channel];
        // What does not fit is lost, as in the kernel.
        if of.events.len() < 64 {
            of.events.push_back(event);
        }
        of.ready.0 = true;
    }

    /// The far end shows these bits.
    pub fn show(&mut self, channel: usize, bits: u8) {
        self.channels[channel].came = bits;
        self.tell(channel, 13);
    }

    /// A block came, and one went: what was to be sent, if anything. The driver keeps as many as it was told, and loses the newest then.
    pub fn pass(&mut self, channel: usize, octets: Vec<u8>) -> Option<Vec<u8>> {
        let of = &mut self.channels[channel];
        assert!(of.buffers.0 == 0 || octets.len() == of.buffers.0, "a block");
        if of.received.len() < of.buffers.1 {
            of.received.push_back(octets);
        }
        of.ready.1 = true;
        of.sent.pop_front()
    }

    /// The device of a span, numbered from 1, is pulled out.
    pub fn pull(&mut self, span: u32) {
        self.spans[span as usize - 1].is_gone = true;
        for channel in 0..self.channels.len() {
            if self.channels[channel].span == span {
                self.channels[channel].ready = (true, true);
            }
        }
    }

    /// It is there again, with everything forgotten.
    pub fn plug(&mut self, span: u32) {
        self.spans[span as usize - 1].is_gone = false;
        for channel in self.channels.iter_mut().filter(|channel| channel.span == span) {
            let FakeChannel { span, position, signalling, .. } = *channel;
            *channel = FakeChannel { span, position, signalling, ..FakeChannel::default() };
        }
    }

    /// How often a request was made of any channel.
    pub fn count(&self, request: Request) -> usize {
        self.log.iter().filter(|(_, did)| matches!(did, Did::Asked(made, _) if *made == request)).count()
    }

    fn channel(&mut self, place: usize) -> io::Result<&mut FakeChannel> {
        let Some(channel) = self.places[place] else { return Err(io::ErrorKind::NotFound.into()) };
        if self.spans[self.channels[channel].span as usize - 1].is_gone {
            return error(libc::ENODEV);
        }
        Ok(&mut self.channels[channel])
    }
}

impl Device for Fake {
    fn control(&mut self, request: Request, argument: &mut [u8]) -> io::Result<()> {
        let world = &mut *self.world();
        assert_eq!(argument.len(), request.octets());
        let number = i32::from_ne_bytes(argument[..4].try_into().unwrap());
        world.log.push((None, Did::Asked(request, number)));
        if world.unknown.contains(&request) {
            return error(libc::ENOTTY);
        }
        let mut put = |at: usize, value: u32| argument[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        match request {
            abi::SPANSTAT | abi::SPANSTAT_V1 => {
                let spans = world.spans.len() as u32;
                let Some(span) = world.spans.get(number as usize - 1).filter(|span| !span.is_gone) else { return error(libc::EINVAL) };
                put(64, span.alarms);
                if request == abi::SPANSTAT {
                    for (at, count) in (76..).step_by(4).zip(span.counts) {
                        put(at, count);
                    }
                    put(120, span.channels);
                    put(124, span.channels);
                    put(128, spans);
                    put(136, span.line);
                    argument[SpanInfo::NAME.0..][..8].copy_from_slice(b"WCT1/0\0\xEE");
                }
                Ok(())
            }
            abi::GET_PARAMS => {
                let Some(channel) = world.channels.get(number as usize - 1) else { return error(libc::EINVAL) };
                if world.spans.get(channel.span as usize - 1).is_none_or(|span| span.is_gone) {
                    return error(libc::EINVAL);
                }
                let FakeChannel { span, position, signalling, .. } = *channel;
                let params = Params { channel: number as u32, span, position, signalling };
                for (at, value) in (0..).step_by(4).zip([params.channel, params.span, params.position, params.signalling]) {
                    put(at, value);
                }
                Ok(())
            }
            abi::GETVERSION => {
                argument[..6].copy_from_slice(b"3.2.0\0");
                Ok(())
            }
            abi::MAINT => {
                let command = i32::from_ne_bytes(argument[4..8].try_into().unwrap());
                let span = &mut world.spans[number as usize - 1];
                span.loops.push(command);
                span.alarms = if command == abi::PAYLOAD_LOOP { abi::alarm::LOOPBACK } else { 0 };
                Ok(())
            }
            other => panic!("{other:?} on the control file"),
        }
    }

    fn open(&mut self, place: usize, channel: u16) -> io::Result<()> {
        let world = &mut *self.world();
        world.log.push((Some(place), Did::Asked(abi::SPECIFY, channel.into())));
        assert!(world.places[place].is_none());
        if world.places.iter().flatten().count() >= world.files_max {
            return error(libc::EMFILE);
        }
        let Some(of) = world.channels.get_mut(usize::from(channel) - 1) else { return error(libc::EINVAL) };
        if world.spans[of.span as usize - 1].is_gone || of.signalling == abi::SIG_NONE {
            return error(libc::ENXIO);
        }
        if of.is_open || of.is_busy {
            return error(libc::EBUSY);
        }
        (of.is_open, of.buffers) = (true, (1024, 2));
        world.places[place] = Some(usize::from(channel) - 1);
        Ok(())
    }

    fn close(&mut self, place: usize) {
        let world = &mut *self.world();
        if let Some(channel) = world.places[place].take() {
            world.channels[channel].is_open = false;
        }
    }

    fn order(&mut self, place: usize, request: Request, argument: &mut [u8]) -> io::Result<()> {
        let world = &mut *self.world();
        assert_eq!(argument.len(), request.octets());
        let number = i32::from_ne_bytes(argument[..4].try_into().unwrap());
        world.log.push((Some(place), Did::Asked(request, number)));
        if world.unknown.contains(&request) {
            return error(libc::ENOTTY);
        }
        let of = world.channel(place)?;
        let answer = match request {
            abi::SET_BUFINFO => {
                let field = |at: usize| u32::from_ne_bytes(argument[at..at + 4].try_into().unwrap());
                // Half full, at once, and no more than the driver has room for.
                assert_eq!((field(0), field(4)), (2, 0));
                assert!(field(8) <= 32 && field(12) <= 8192 && field(12) % 8 == 0 && field(8) * field(12) <= 32_768);
                of.buffers = (field(12) as usize, field(8) as usize);
                of.received.clear();
                of.sent.clear();
                return Ok(());
            }
            abi::SETLAW | abi::ECHOCANCEL | abi::BUFFER_EVENTS => return Ok(()),
            abi::AUDIOMODE => return if of.signalling == abi::SIG_CLEAR { Ok(()) } else { error(libc::EINVAL) },
            abi::SETTXBITS => {
                of.shown = Some(number as u8);
                return if of.signalling == abi::SIG_CAS { Ok(()) } else { error(libc::EINVAL) };
            }
            abi::GETRXBITS => of.came.into(),
            abi::GETEVENT => of.events.pop_front().unwrap_or(0),
            other => panic!("{other:?} on a channel"),
        };
        argument.copy_from_slice(&i32::to_ne_bytes(answer));
        Ok(())
    }

    fn read(&mut self, place: usize, octets: &mut [u8]) -> io::Result<usize> {
        let world = &mut *self.world();
        world.log.push((Some(place), Did::Read));
        let of = world.channel(place)?;
        if !of.events.is_empty() {
            return error(abi::EVENT_WAITS);
        }
        let Some(block) = of.received.pop_front() else { return error(libc::EAGAIN) };
        let length = block.len().min(octets.len());
        octets[..length].copy_from_slice(&block[..length]);
        Ok(length)
    }

    fn write(&mut self, place: usize, octets: &[u8]) -> io::Result<usize> {
        let world = &mut *self.world();
        world.log.push((Some(place), Did::Wrote));
        let of = world.channel(place)?;
        if !of.events.is_empty() {
            return error(abi::EVENT_WAITS);
        }
        if of.sent.len() >= of.buffers.1 {
            return error(libc::EAGAIN);
        }
        of.sent.push_back(octets.to_vec());
        Ok(octets.len())
    }

    fn look(&mut self, seen: &mut dyn FnMut(usize, bool, bool)) {
        let world = &mut *self.world();
        for (place, channel) in world.places.iter().enumerate() {
            let Some(of) = channel.and_then(|channel| world.channels.get_mut(channel)) else { continue };
            // As an edge: once for each thing that happened.
            let (urgent, readable) = std::mem::take(&mut of.ready);
            if urgent || readable {
                seen(place, urgent, readable);
            }
        }
    }
}
