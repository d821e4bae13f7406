//! The catalogue of event packages: which events and signals there are, what class and time-out they have, where they may be put, and
//! which channel has which package (RFC 3435 6, RFC 3660, RFC 3064, RFC 3624; T, R, D, G, MS, MD, MO, DT, BL, SL rows).
//!
//! All of it is static: looking a name up allocates nothing and costs a scan over a few short names. What an endpoint does with an event
//! is not here; parameters are in [`parameters`], digit maps in [`digits`].

mod base;
mod cas;
pub mod digits;
pub mod exercise;
mod generic;
pub mod parameters;
mod trunk;

pub use parameters::{BadParameters, EventParameters, SignalParameters};

use crate::proto::codec::mgcp::Writer;
use std::fmt;

/// A package, by its place in the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PackageId(u8);

/// An item of a package: an event, a signal or both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId {
    package: PackageId,
    item: u8,
}

/// One package.
#[derive(Debug)]
pub struct Package {
    /// Its name, in the letter case it is written in.
    pub name: &'static str,
    /// Its version (RFC 3435 6.3).
    pub version: u8,
    /// Its events and signals, in the order of its table.
    pub items: &'static [Item],
}

/// An event, a signal or both.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    /// Its name, as reports write it.
    pub name: &'static str,
    /// What it is as an event; `None`: it cannot be asked for.
    pub event: Option<EventTraits>,
    /// What it is as a signal; `None`: it cannot be applied.
    pub signal: Option<SignalTraits>,
}

/// What an item is as an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventTraits {
    /// Detected and notified without being asked for (G-PER).
    pub persistent: bool,
    /// Whether it describes a state that an audit of ES shows.
    pub state: bool,
    /// Where it is detected.
    pub place: Place,
    /// The hook it needs when it is asked for (G-REQ-14).
    pub hook: HookRule,
    /// The parameters a request may have.
    pub parameters: parameters::Event,
}

/// What an item is as a signal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalTraits {
    /// How it ends.
    pub class: SignalClass,
    /// Where it is applied.
    pub place: Place,
    /// The hook it needs when it is applied to the endpoint.
    pub hook: HookRule,
    /// Its parameters, beside the sign of an OO and the `to` of a TO signal.
    pub parameters: parameters::Signal,
}

/// How a signal ends (RFC 3435 2.1.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalClass {
    /// OO: lasts until it is turned off.
    OnOff,
    /// TO: lasts until it is stopped, times out, or its work is done.
    TimeOut {
        /// Without a `to` parameter; `None`: it never times out.
        default_ms: Option<u32>,
        /// Whether it ends by itself when its work is done (and takes no `to`).
        variable: bool,
    },
    /// BR: ends by itself.
    Brief {
        /// How long it takes; 0 for a change of the line that just happens.
        ms: u32,
    },
}

/// Where an event is detected or a signal applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// On the endpoint only.
    Endpoint,
    /// On connections only. An event without a connection means every connection of the endpoint.
    Connection,
    /// On either.
    Either,
}

/// The hook that the line must have towards the gateway (RFC 3435 4.4.2; RFC 3661 401, 402).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HookRule {
    /// No matter.
    Any,
    /// On-hook: else 401.
    OnHook,
    /// Off-hook: else 402. A channel without hook is never refused.
    OffHook,
}

/// What a DS0 is provisioned as: it decides which packages it has and which machine runs its line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum ChannelKind {
    /// Signalled elsewhere, as with ISUP or PRI: 64 kbit/s and nothing else.
    #[default]
    Clear,
    /// A CAS trunk with MF digits (RFC 3064 1.2.1).
    CasMf,
    /// A CAS trunk with DTMF digits or dial pulses (RFC 3064 1.2.2).
    CasDtmf,
    /// A line of a PBX, with FXS signalling (RFC 3064 1.2.3).
    PbxFxs,
    /// An operator service or emergency trunk, outgoing only (RFC 3064 1.2.6).
    Operator,
    /// A Feature Group D trunk, EANA or EAIN (RFC 3064 1.2.5).
    FeatureGroupD,
}

impl ChannelKind {
    /// Every kind.
    pub const ALL: [ChannelKind; 6] = [
        ChannelKind::Clear,
        ChannelKind::CasMf,
        ChannelKind::CasDtmf,
        ChannelKind::PbxFxs,
        ChannelKind::Operator,
        ChannelKind::FeatureGroupD,
    ];

    /// Whether the channel has a hook, told by its ABCD bits.
    pub const fn has_hook(self) -> bool {
        !matches!(self, ChannelKind::Clear)
    }
}

/// The catalogue.
static PACKAGES: [&Package; 15] = [
    &generic::G,
    &generic::D,
    &trunk::T,
    &trunk::R,
    &cas::MS,
    &cas::DT,
    &cas::BL_PACKAGE,
    &cas::MD,
    &cas::MO,
    &generic::SL,
    &generic::DM1,
    &generic::FM,
    &base::BA,
    &base::B,
    &generic::CG,
];

impl PackageId {
    /// Generic media (RFC 3660 2.1).
    pub const G: PackageId = PackageId(0);
    /// DTMF (RFC 3660 2.2).
    pub const D: PackageId = PackageId(1);
    /// Trunk (RFC 3660 2.3).
    pub const T: PackageId = PackageId(2);
    /// RTP (RFC 3660 2.10).
    pub const R: PackageId = PackageId(3);
    /// MF trunk, single stage (RFC 3064 2.1).
    pub const MS: PackageId = PackageId(4);
    /// DTMF and dial pulse trunk (RFC 3064 2.2).
    pub const DT: PackageId = PackageId(5);
    /// Basic PBX line (RFC 3064 2.3).
    pub const BL: PackageId = PackageId(6);
    /// Feature Group D (RFC 3064 2.5).
    pub const MD: PackageId = PackageId(7);
    /// Operator services (RFC 3064 2.6).
    pub const MO: PackageId = PackageId(8);
    /// Signal list (RFC 3660 2.8).
    pub const SL: PackageId = PackageId(9);
    /// Digit map extension (RFC 3660 2.7).
    pub const DM1: PackageId = PackageId(10);
    /// Media format (RFC 3660 2.9).
    pub const FM: PackageId = PackageId(11);
    /// Bulk audit (RFC 3624).
    pub const BA: PackageId = PackageId(12);
    /// Base (RFC 3435 appendix B).
    pub const B: PackageId = PackageId(13);

    /// Call progress tones as H.248 has them (RFC 3525 E.7, E.8): no package of MGCP and of no channel's list, but what a card is told
    /// to play and says that it hears.
    pub const CG: PackageId = PackageId(14);

    /// Every package of the catalogue.
    pub fn all() -> impl Iterator<Item = PackageId> {
        (0..PACKAGES.len() as u8).map(PackageId)
    }

    /// The package.
    pub fn package(self) -> &'static Package {
        PACKAGES.get(usize::from(self.0)).copied().unwrap_or(PACKAGES[0])
    }

    /// Its items, in the order of its table.
    pub fn items(self) -> impl Iterator<Item = EventId> {
        (0..self.package().items.len() as u8).map(move |item| EventId { package: self, item })
    }
}

impl EventId {
    /// What the catalogue says of it.
    pub fn item(self) -> &'static Item {
        const NONE: Item = Item { name: "", event: None, signal: None };
        self.package.package().items.get(usize::from(self.item)).unwrap_or(&NONE)
    }

    /// Its package.
    pub fn package(self) -> PackageId {
        self.package
    }

    /// Its traits as an event.
    pub fn event(self) -> Option<&'static EventTraits> {
        self.item().event.as_ref()
    }

    /// Its traits as a signal.
    pub fn signal(self) -> Option<&'static SignalTraits> {
        self.item().signal.as_ref()
    }

    /// Its name with its package: `T/co1`.
    pub fn write(self, writer: &mut Writer<'_>) {
        writer.text(self.package.package().name);
        writer.byte(b'/');
        writer.text(self.item().name);
    }

    /// The one-character symbol a digit map knows it by; `None` for an event that is no digit and no timer.
    pub fn symbol(self) -> Option<u8> {
        match (self.package, self.item().name.as_bytes()) {
            (PackageId::D, &[symbol]) if symbol != b'L' && symbol != b'X' => Some(symbol),
            _ => None,
        }
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.package.package().name, self.item().name)
    }
}

/// The package of this name, in any letter case.
pub fn find_package(name: &[u8]) -> Option<PackageId> {
    let place = PACKAGES.iter().position(|package| package.name.as_bytes().eq_ignore_ascii_case(name))?;
    Some(PackageId(place as u8))
}

/// The item of this name, in any letter case; `*` and `#` are keys here.
pub fn find_item(package: PackageId, name: &[u8]) -> Option<EventId> {
    let place = package.package().items.iter().position(|item| item.name.as_bytes().eq_ignore_ascii_case(name))?;
    Some(EventId { package, item: place as u8 })
}

/// The packages of a channel; the first is its default package, and the order is that of `PL:` and `v:`.
pub fn packages(kind: ChannelKind) -> &'static [PackageId] {
    use PackageId as P;
    match kind {
        ChannelKind::Clear => &[P::T, P::G, P::D, P::R, P::SL, P::DM1, P::FM, P::BA, P::B],
        ChannelKind::CasMf => &[P::MS, P::T, P::G, P::R, P::SL, P::FM, P::BA, P::B],
        ChannelKind::CasDtmf => &[P::DT, P::D, P::T, P::G, P::R, P::SL, P::DM1, P::FM, P::BA, P::B],
        ChannelKind::PbxFxs => &[P::BL, P::D, P::T, P::G, P::R, P::SL, P::DM1, P::FM, P::BA, P::B],
        ChannelKind::Operator => &[P::MO, P::T, P::G, P::R, P::SL, P::FM, P::BA, P::B],
        ChannelKind::FeatureGroupD => &[P::MD, P::T, P::G, P::R, P::SL, P::FM, P::BA, P::B],
    }
}

/// The package that a name without one belongs to (PKG-05).
pub fn default_package(kind: ChannelKind) -> PackageId {
    packages(kind).first().copied().unwrap_or(PackageId::G)
}

impl Item {
    /// An item that is neither event nor signal yet.
    const fn named(name: &'static str) -> Item {
        Item { name, event: None, signal: None }
    }

    /// An event of the endpoint.
    const fn event(name: &'static str) -> Item {
        Item::named(name).detected(EventTraits::PLAIN)
    }

    /// A signal of the endpoint.
    const fn signal(name: &'static str, class: SignalClass) -> Item {
        Item::named(name).applied(class)
    }

    const fn detected(mut self, traits: EventTraits) -> Item {
        self.event = Some(traits);
        self
    }

    const fn applied(self, class: SignalClass) -> Item {
        self.applied_as(class, Place::Endpoint, parameters::Signal::None)
    }

    const fn applied_as(mut self, class: SignalClass, place: Place, parameters: parameters::Signal) -> Item {
        self.signal = Some(SignalTraits { class, place, hook: HookRule::Any, parameters });
        self
    }

    /// The hook it needs, as an event and as a signal.
    const fn hooked(mut self, hook: HookRule) -> Item {
        if let Some(event) = &mut self.event {
            event.hook = hook;
        }
        if let Some(signal) = &mut self.signal {
            signal.hook = hook;
        }
        self
    }
}

impl EventTraits {
    const PLAIN: EventTraits =
        EventTraits { persistent: false, state: false, place: Place::Endpoint, hook: HookRule::Any, parameters: parameters::Event::None };
    const PERSISTENT: EventTraits = EventTraits { persistent: true, ..EventTraits::PLAIN };
    const PERSISTENT_STATE: EventTraits = EventTraits { persistent: true, state: true, ..EventTraits::PLAIN };
    const STATE: EventTraits = EventTraits { state: true, ..EventTraits::PLAIN };
    const CONNECTION: EventTraits = EventTraits { place: Place::Connection, ..EventTraits::PLAIN };

    const fn with(self, parameters: parameters::Event) -> EventTraits {
        EventTraits { parameters, ..self }
    }
}

/// A TO signal that ends by itself after `ms`.
const fn time_out(ms: u32) -> SignalClass {
    SignalClass::TimeOut { default_ms: Some(ms), variable: false }
}

/// A TO signal that lasts until it is stopped.
const ENDLESS: SignalClass = SignalClass::TimeOut { default_ms: None, variable: false };
/// A TO signal that ends with its work.
const VARIABLE: SignalClass = SignalClass::TimeOut { default_ms: None, variable: true };
/// A change of the line.
const LINE: SignalClass = SignalClass::Brief { ms: 0 };

#[cfg(test)]
mod tests;
