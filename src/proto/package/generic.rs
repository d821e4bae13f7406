//! G, D, SL, DM1 and FM (RFC 3660 2.1, 2.2, 2.7, 2.8, 2.9), and the tones of H.248.

use super::parameters::{Event, Signal};
use super::{ENDLESS, EventTraits, HookRule, Item, Package, Place, SignalClass, VARIABLE, time_out};

const BRIEF_DIGIT: SignalClass = SignalClass::Brief { ms: 100 };
const CONFIRMATION: SignalClass = SignalClass::Brief { ms: 600 };

pub(super) static G: Package = Package {
    name: "G",
    version: 1,
    items: &[
        Item::signal("cf", CONFIRMATION).hooked(HookRule::OffHook),
        Item::signal("cg", ENDLESS),
        Item::event("ft"),
        Item::signal("it", ENDLESS),
        Item::named("ld").detected(EventTraits::CONNECTION),
        Item::event("mt"),
        Item::event("oc"),
        Item::event("of"),
        Item::named("pat").detected(EventTraits::PLAIN.with(Event::Pattern)).applied_as(
            SignalClass::OnOff,
            Place::Endpoint,
            Signal::Pattern,
        ),
        Item::signal("pt", ENDLESS),
        Item::named("rbk").applied_as(time_out(180_000), Place::Endpoint, Signal::Connection),
        Item::named("rt").applied_as(time_out(180_000), Place::Either, Signal::None).hooked(HookRule::OffHook),
    ],
};

/// A key of a telephone: 50 ms of tone and 45 ms of silence at least. On a connection it is a telephone event of the far end.
const fn key(name: &'static str) -> Item {
    Item::named(name).detected(EventTraits { place: Place::Either, ..EventTraits::PLAIN }).applied(BRIEF_DIGIT).hooked(HookRule::OffHook)
}

pub(super) static D: Package = Package {
    name: "D",
    version: 1,
    items: &[
        key("0"),
        key("1"),
        key("2"),
        key("3"),
        key("4"),
        key("5"),
        key("6"),
        key("7"),
        key("8"),
        key("9"),
        key("#"),
        key("*"),
        key("A"),
        key("B"),
        key("C"),
        key("D"),
        Item::named("DD").detected(EventTraits::PLAIN.with(Event::ToneDuration)).applied_as(
            time_out(3_000),
            Place::Endpoint,
            Signal::ToneDuration,
        ),
        Item::named("DO").applied_as(SignalClass::OnOff, Place::Endpoint, Signal::Tone),
        Item::event("L"),
        Item::event("oc"),
        Item::event("of"),
        Item::event("T").applied(time_out(16_000)),
        Item::event("X"),
    ],
};

pub(super) static SL: Package = Package {
    name: "SL",
    version: 0,
    items: &[Item::event("oc"), Item::event("of"), Item::named("s").applied_as(VARIABLE, Place::Endpoint, Signal::List)],
};

/// A letter of digit maps; no event.
pub(super) static DM1: Package = Package { name: "DM1", version: 0, items: &[] };

/// An option of connections; no event.
pub(super) static FM: Package = Package { name: "FM", version: 0, items: &[] };

/// A call progress tone that can be played and heard.
const fn progress(name: &'static str, ms: u32) -> Item {
    Item::event(name).applied(time_out(ms))
}

/// `cg` and `cd` of H.248; how long they play is provisioned there (RFC 3525 E.7).
pub(super) static CG: Package = Package {
    name: "CG",
    version: 1,
    items: &[
        progress("dt", 16_000),
        progress("rt", 180_000),
        progress("bt", 30_000),
        progress("ct", 30_000),
        progress("sit", 2_000),
        progress("wt", 30_000),
        progress("prt", 2_000),
        progress("cw", 30_000),
        progress("cr", 3_000),
    ],
};
