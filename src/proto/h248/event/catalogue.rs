//! The packages of H.248 and what of them a card carries out: names, and which event or signal of the catalogue of all protocols each one
//! is ([`crate::proto::package`]), so that a card hears one vocabulary (RFC 3525 annex E; H.248.10, H.248.11, H.248.14).

use super::super::error::*;
use super::super::table::Termination;
use crate::proto::codec::h248::PackagedName;
use crate::proto::package::{EventId, PackageId, SignalClass, find_item};
use crate::proto::trunk::Sounds;

/// A package.
pub struct Package {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: u16,
    /// Which terminations have it: bits of [`ROOT`], [`PHYSICAL`], [`EPHEMERAL`].
    on: u8,
    /// The package it extends, whose items may be named by its own name too (PRP-02).
    extends: Option<u8>,
    /// Its events.
    pub events: &'static [Event],
    /// Its signals.
    pub signals: &'static [Signal],
}

/// An event.
pub struct Event {
    /// Its name.
    pub name: &'static str,
    /// How it comes about.
    pub seen: Seen,
    /// Parameters that a request may have.
    pub parameters: &'static [&'static str],
}

/// How an event comes about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// The card says it.
    Card(PackageId, &'static str),
    /// A signal has ended (`g/sc`).
    Completion,
    /// A termination has failed (`g/cause`).
    Cause,
    /// A digit map is complete.
    DigitMap,
    /// A continuity test has ended.
    Continuity,
    /// The span of a termination in a context has failed, or nothing comes from the network.
    NetworkFailure,
    /// The gateway is overloaded and has done an Add (H.248.11).
    Overload,
    /// The gateway wants less load, or no less any more (H.248.10).
    Congestion,
    /// Nothing came from the controller for long (H.248.14).
    Inactivity,
    /// Not by any card there is: 512.
    Never,
}

/// A signal.
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// What the card plays; `None`: nothing there is can generate it: 513.
    pub plays: Option<(PackageId, &'static str)>,
}

/// For the gateway as a whole.
const ROOT: u8 = 1;
/// For channels of spans.
const PHYSICAL: u8 = 2;
/// For RTP streams.
const EPHEMERAL: u8 = 4;

const fn event(name: &'static str, seen: Seen) -> Event {
    Event { name, seen, parameters: &[] }
}

const fn heard(name: &'static str) -> Event {
    event(name, Seen::Card(PackageId::CG, name))
}

const fn played(name: &'static str) -> Signal {
    Signal { name, plays: Some((PackageId::CG, name)) }
}

const fn digit(name: &'static str, key: &'static str) -> Event {
    event(name, Seen::Card(PackageId::D, key))
}

const fn key(name: &'static str, key: &'static str) -> Signal {
    Signal { name, plays: Some((PackageId::D, key)) }
}

/// What tonedet gives to each package that extends it; the cards there are do not tell when a tone begins and ends.
const STD: Event = event("std", Seen::Never);
const ETD: Event = event("etd", Seen::Never);
const LTD: Event = event("ltd", Seen::Never);
/// What tonegen gives.
const PT: Signal = Signal { name: "pt", plays: None };

const fn package(name: &'static str, on: u8, events: &'static [Event], signals: &'static [Signal]) -> Package {
    Package { name, version: 1, on, extends: None, events, signals }
}

/// The place of `nt`.
const NT: u8 = 2;

/// All of them. tonegen and tonedet are only extended, and not told (PRP-03).
pub static PACKAGES: &[Package] = &[
    package("root", ROOT, &[], &[]),
    package("g", PHYSICAL | EPHEMERAL, &[event("cause", Seen::Cause), event("sc", Seen::Completion)], &[]),
    package(
        "nt",
        PHYSICAL | EPHEMERAL,
        &[event("netfail", Seen::NetworkFailure), Event { name: "qualert", seen: Seen::Card(PackageId::R, "qa"), parameters: &["th"] }],
        &[],
    ),
    Package { extends: Some(NT), ..package("tdmc", PHYSICAL, &[], &[]) },
    Package { extends: Some(NT), ..package("rtp", EPHEMERAL, &[event("pltrans", Seen::Card(PackageId::R, "uc"))], &[]) },
    package(
        "dd",
        PHYSICAL,
        &[
            digit("d0", "0"),
            digit("d1", "1"),
            digit("d2", "2"),
            digit("d3", "3"),
            digit("d4", "4"),
            digit("d5", "5"),
            digit("d6", "6"),
            digit("d7", "7"),
            digit("d8", "8"),
            digit("d9", "9"),
            digit("da", "A"),
            digit("db", "B"),
            digit("dc", "C"),
            digit("dd", "D"),
            digit("ds", "*"),
            digit("do", "#"),
            event("ce", Seen::DigitMap),
            STD,
            ETD,
            LTD,
        ],
        &[],
    ),
    package(
        "dg",
        PHYSICAL,
        &[],
        &[
            key("d0", "0"),
            key("d1", "1"),
            key("d2", "2"),
            key("d3", "3"),
            key("d4", "4"),
            key("d5", "5"),
            key("d6", "6"),
            key("d7", "7"),
            key("d8", "8"),
            key("d9", "9"),
            key("da", "A"),
            key("db", "B"),
            key("dc", "C"),
            key("dd", "D"),
            key("ds", "*"),
            key("do", "#"),
            PT,
        ],
    ),
    package(
        "cd",
        PHYSICAL,
        &[
            heard("dt"),
            heard("rt"),
            heard("bt"),
            heard("ct"),
            heard("sit"),
            heard("wt"),
            heard("prt"),
            heard("cw"),
            heard("cr"),
            STD,
            ETD,
            LTD,
        ],
        &[],
    ),
    package(
        "cg",
        PHYSICAL,
        &[],
        &[
            played("dt"),
            played("rt"),
            played("bt"),
            played("ct"),
            played("sit"),
            played("wt"),
            played("prt"),
            played("cw"),
            played("cr"),
            PT,
        ],
    ),
    package(
        "ct",
        PHYSICAL,
        &[event("cmp", Seen::Continuity)],
        // Which tone is sent is provisioned, and the controller cannot say (CT-05, CT-06).
        &[Signal { name: "ct", plays: Some((PackageId::T, "co1")) }, Signal { name: "rsp", plays: Some((PackageId::T, "lb")) }],
    ),
    package("it", ROOT, &[Event { name: "ito", seen: Seen::Inactivity, parameters: &["mit"] }], &[]),
    package("chp", ROOT, &[event("mgcon", Seen::Congestion)], &[]),
    package("ocp", ROOT, &[event("mg_overload", Seen::Overload)], &[]),
];

/// The packages of a termination.
pub fn packages(termination: Termination) -> impl Iterator<Item = &'static Package> {
    let kind = match termination {
        Termination::Root => ROOT,
        Termination::Physical(_) => PHYSICAL,
        Termination::Ephemeral(_) => EPHEMERAL,
    };
    PACKAGES.iter().filter(move |package| package.on & kind != 0)
}

/// An event, by its place among [`PACKAGES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EventRef {
    package: u8,
    item: u8,
}

impl EventRef {
    fn package(self) -> &'static Package {
        PACKAGES.get(usize::from(self.package)).unwrap_or(&PACKAGES[0])
    }

    /// What is known of it.
    pub fn event(self) -> &'static Event {
        const NONE: &Event = &event("", Seen::Never);
        self.package().events.get(usize::from(self.item)).unwrap_or(NONE)
    }

    /// Its name.
    pub fn name(self) -> PackagedName<'static> {
        PackagedName { package: self.package().name.as_bytes(), item: self.event().name.as_bytes() }
    }

    /// Whether a digit map collects it.
    pub fn key(self) -> Option<u8> {
        match self.event().seen {
            Seen::Card(PackageId::D, key) => key.as_bytes().first().copied(),
            _ => None,
        }
    }

    /// Whether `name`, which may be a wildcard, means it.
    pub fn is_meant(self, name: &PackagedName<'_>) -> bool {
        let is = |package: &Package| package.name.as_bytes().eq_ignore_ascii_case(name.package);
        let extended = |package: &&Package| package.extends == Some(self.package) && is(package);
        let package = name.package == b"*" || is(self.package()) || PACKAGES.iter().any(|package| extended(&package));
        package && (name.is_wildcard() || self.event().name.as_bytes().eq_ignore_ascii_case(name.item))
    }
}

/// The event that comes about like this.
pub fn seen(how: Seen) -> Option<EventRef> {
    PACKAGES.iter().enumerate().find_map(|(package, facts)| {
        let item = facts.events.iter().position(|event| event.seen == how)?;
        Some(EventRef { package: package as u8, item: item as u8 })
    })
}

/// The sounds that must be listened for, so that what `name` means is seen.
pub fn sounds(name: &PackagedName<'_>) -> Sounds {
    let events = PACKAGES
        .iter()
        .enumerate()
        .flat_map(|(package, facts)| (0..facts.events.len()).map(move |item| EventRef { package: package as u8, item: item as u8 }));
    let sound = |event: EventRef| match event.event().seen {
        Seen::Card(package, item) => find_item(package, item.as_bytes()).map_or(Sounds::NONE, Sounds::of),
        Seen::DigitMap => Sounds::KEYS,
        _ => Sounds::NONE,
    };
    events.filter(|event| event.is_meant(name)).map(sound).collect()
}

/// What `event` of the card is.
pub fn card_event(event: EventId) -> Option<EventRef> {
    let rto = event.package() == PackageId::R && event.item().name == "rto";
    seen(if rto { Seen::NetworkFailure } else { Seen::Card(event.package(), event.item().name) })
}

/// A signal, by its place among [`PACKAGES`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SignalRef {
    package: u8,
    item: u8,
    /// What the card plays.
    pub plays: EventId,
}

impl SignalRef {
    /// Its name.
    pub fn name(self) -> PackagedName<'static> {
        let package = PACKAGES.get(usize::from(self.package)).unwrap_or(&PACKAGES[0]);
        let item = package.signals.get(usize::from(self.item)).map_or("", |signal| signal.name);
        PackagedName { package: package.name.as_bytes(), item: item.as_bytes() }
    }

    /// Whether it is the near end of a continuity test.
    pub fn tests_continuity(self) -> bool {
        self.name().is("ct", "ct")
    }

    /// How it ends when the command does not say.
    pub fn class(self) -> SignalClass {
        self.plays.signal().map_or(SignalClass::OnOff, |traits| traits.class)
    }
}

/// Checks the name of an event in a list for `termination` (EVT-13). Wildcards mean what there is.
pub fn check_event(name: &PackagedName<'_>, termination: Termination) -> Result<Option<&'static Event>, Failure> {
    if name.package == b"*" {
        return Ok(None);
    }
    let own = packages(termination).find(|package| package.name.as_bytes().eq_ignore_ascii_case(name.package)).ok_or(PACKAGE_UNKNOWN)?;
    if name.is_wildcard() {
        return Ok(None);
    }
    let base = own.extends.and_then(|place| PACKAGES.get(usize::from(place)));
    let mut events = own.events.iter().chain(base.into_iter().flat_map(|base| base.events));
    let event = events.find(|event| event.name.as_bytes().eq_ignore_ascii_case(name.item)).ok_or(NO_SUCH_EVENT)?;
    if event.seen == Seen::Never { Err(CANNOT_DETECT) } else { Ok(Some(event)) }
}

/// The signal of this name on `termination` (SIG-15).
pub fn find_signal(name: &PackagedName<'_>, termination: Termination) -> Result<SignalRef, Failure> {
    let is = |package: &Package| package.name.as_bytes().eq_ignore_ascii_case(name.package);
    if !packages(termination).any(is) {
        return Err(PACKAGE_UNKNOWN);
    }
    let package = PACKAGES.iter().position(is).ok_or(PACKAGE_UNKNOWN)?;
    let signals = PACKAGES.get(package).map_or(&[][..], |package| package.signals);
    let item = signals.iter().position(|signal| signal.name.as_bytes().eq_ignore_ascii_case(name.item)).ok_or(NO_SUCH_SIGNAL)?;
    let (of, named) = signals.get(item).and_then(|signal| signal.plays).ok_or(CANNOT_GENERATE)?;
    let plays = find_item(of, named.as_bytes()).ok_or(CANNOT_GENERATE)?;
    Ok(SignalRef { package: package as u8, item: item as u8, plays })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PRP-01, PRP-03, PRP-04: every event and signal that is not refused is something a card knows.
    #[test]
    fn what_is_claimed_is_something_a_card_carries_out() {
        for package in PACKAGES {
            for event in package.events {
                if let Seen::Card(of, name) = event.seen {
                    assert!(find_item(of, name.as_bytes()).is_some_and(|item| item.event().is_some()), "{}/{}", package.name, event.name);
                }
            }
            for (of, name) in package.signals.iter().filter_map(|signal| signal.plays) {
                assert!(find_item(of, name.as_bytes()).is_some_and(|item| item.signal().is_some()), "{}/{name}", package.name);
            }
            assert!(!package.name.starts_with("tone"));
        }
        assert!(packages(Termination::Root).map(|package| package.name).eq(["root", "it", "chp", "ocp"]));
    }

    /// PRP-02: an event of nt has the names of the packages that extend it.
    #[test]
    fn an_event_of_an_extended_package_has_several_names() {
        let failure = seen(Seen::NetworkFailure).unwrap();
        for name in ["nt/netfail", "RTP/NETFAIL", "tdmc/*", "*/*"] {
            assert!(failure.is_meant(&PackagedName::parse(name.as_bytes()).unwrap()), "{name}");
        }
        for name in ["nt/qualert", "g/netfail", "dd/*"] {
            assert!(!failure.is_meant(&PackagedName::parse(name.as_bytes()).unwrap()), "{name}");
        }
    }
}
