//! T and R (RFC 3660 2.3, 2.10).

use super::parameters::{Event, Signal};
use super::{ENDLESS, EventTraits, Item, LINE, Package, Place, SignalClass, time_out};

/// A tone that can be sent and recognised.
const fn tone(name: &'static str, ms: u32) -> Item {
    Item::event(name).applied(time_out(ms))
}

pub(super) static T: Package = Package {
    name: "T",
    version: 1,
    items: &[
        Item::event("as").applied(LINE),
        Item::named("bl").applied_as(LINE, Place::Endpoint, Signal::Sign),
        Item::signal("bz", time_out(30_000)),
        tone("co1", 3_000),
        tone("co2", 3_000),
        Item::named("ct").applied_as(SignalClass::OnOff, Place::Endpoint, Signal::Transponder),
        Item::signal("lb", SignalClass::OnOff),
        tone("nm", 3_000),
        tone("mm", 3_000),
        Item::event("oc"),
        Item::event("of"),
        tone("om", 3_000),
        Item::signal("pst", ENDLESS),
        Item::signal("qt", ENDLESS),
        tone("ro", 30_000),
        Item::named("sit").detected(EventTraits::PLAIN.with(Event::Number(1, 7, None))).applied_as(
            time_out(2_000),
            Place::Endpoint,
            Signal::Number(1, 7, None),
        ),
        Item::event("tl").applied(ENDLESS),
        Item::named("tp").detected(EventTraits::PLAIN.with(Event::Number(0, 255, Some(95)))).applied_as(
            time_out(3_000),
            Place::Endpoint,
            Signal::Number(0, 255, Some(95)),
        ),
        tone("zz", 2_000),
    ],
};

/// A continuity tone on the packet side.
const fn check_tone(name: &'static str) -> Item {
    Item::named(name).detected(EventTraits::CONNECTION).applied_as(time_out(3_000), Place::Connection, Signal::None)
}

pub(super) static R: Package = Package {
    name: "R",
    version: 1,
    items: &[
        check_tone("co1"),
        check_tone("co2"),
        Item::named("iu").detected(EventTraits::CONNECTION.with(Event::Number(1, 255, Some(3)))),
        Item::named("ji").detected(EventTraits::CONNECTION),
        Item::named("ma").detected(EventTraits::CONNECTION),
        Item::named("oc").detected(EventTraits { place: Place::Either, ..EventTraits::PLAIN }),
        Item::named("of").detected(EventTraits { place: Place::Either, ..EventTraits::PLAIN }),
        Item::named("pl").detected(EventTraits::CONNECTION.with(Event::Number(1, 100_000, None))),
        Item::named("qa").detected(EventTraits::CONNECTION),
        Item::named("rto").detected(EventTraits::CONNECTION.with(Event::Silence)),
        Item::named("sr").detected(EventTraits::CONNECTION),
        Item::named("uc").detected(EventTraits::CONNECTION),
    ],
};
