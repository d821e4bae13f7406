//! MS, DT, BL, MD and MO: trunks and lines with channel associated signalling (RFC 3064 tables 5 to 7, 9, 10).
//!
//! All of them have version 0 and say nothing of `to`, so their signals take none (SIG-06).

use super::parameters::Signal;
use super::{EventTraits, HookRule, Item, LINE, Package, Place, SignalClass, VARIABLE, time_out};

/// A short change of the line and back, as long as a wink as a rule.
const WINK: SignalClass = SignalClass::Brief { ms: 200 };

/// A change of the line that is detected without being asked for, and can be made.
const fn transition(name: &'static str) -> Item {
    Item::named(name).detected(EventTraits::PERSISTENT).applied(LINE)
}

const ANS: Item = transition("ans");
const BL: Item = Item::named("bl").detected(EventTraits::STATE).applied(LINE);
const BUSY: Item = Item::signal("bz", time_out(30_000));
const DIAL: Item = Item::signal("dl", time_out(16_000)).hooked(HookRule::OffHook);
const INF: Item = Item::event("inf");
const OC: Item = Item::event("oc");
const OF: Item = Item::event("of");
/// The cause is in the report only.
const REL: Item = transition("rel");
const RES: Item = transition("res");
const RLC: Item = Item::named("rlc").detected(EventTraits::PERSISTENT_STATE).applied(LINE);
const REORDER: Item = Item::signal("ro", time_out(30_000));
const RINGBACK: Item = Item::signal("rt", time_out(180_000));
const SUS: Item = transition("sus");
const SWK: Item = Item::event("swk");

/// `sup` of a trunk with calls both ways: an incoming seizure is only news while the line is idle (CAS-10).
const fn setup(parameters: Signal) -> Item {
    let mut item = Item::named("sup").detected(EventTraits { hook: HookRule::OnHook, ..EventTraits::PERSISTENT_STATE });
    item.signal = Item::named("sup").applied_as(VARIABLE, Place::Endpoint, parameters).signal;
    item
}

pub(super) static MS: Package =
    Package { name: "MS", version: 0, items: &[ANS, BL, BUSY, INF, OC, OF, REL, RES, RLC, REORDER, RINGBACK, setup(Signal::SetupMf), SUS] };

pub(super) static DT: Package = Package {
    name: "DT",
    version: 0,
    items: &[ANS, BL, BUSY, DIAL, OC, OF, REL, RES, RLC, REORDER, RINGBACK, setup(Signal::SetupDtmf), SUS],
};

pub(super) static BL_PACKAGE: Package = Package {
    name: "BL",
    version: 0,
    items: &[
        BUSY,
        DIAL,
        Item::named("hd").detected(EventTraits { hook: HookRule::OnHook, ..EventTraits::PERSISTENT_STATE }),
        Item::named("hf").detected(EventTraits { hook: HookRule::OffHook, ..EventTraits::PERSISTENT }),
        Item::named("hu").detected(EventTraits { hook: HookRule::OffHook, ..EventTraits::PERSISTENT_STATE }),
        OC,
        OF,
        Item::signal("rel", LINE),
        Item::signal("rg", time_out(180_000)).hooked(HookRule::OnHook),
        REORDER,
        Item::named("rt").applied_as(time_out(180_000), Place::Either, Signal::None),
    ],
};

pub(super) static MD: Package = Package {
    name: "MD",
    version: 0,
    items: &[
        ANS,
        Item::named("awk").detected(EventTraits::PERSISTENT).applied(WINK),
        BL,
        BUSY,
        Item::signal("cwk", WINK),
        Item::event("inf").applied_as(VARIABLE, Place::Endpoint, Signal::DigitsMf),
        OC,
        OF,
        REL,
        RES,
        RLC,
        REORDER,
        RINGBACK,
        setup(Signal::SetupFeatureGroupD),
        SUS,
        SWK,
    ],
};

pub(super) static MO: Package = Package {
    name: "MO",
    version: 0,
    items: &[
        Item::named("ans").detected(EventTraits::PERSISTENT),
        OC,
        OF,
        Item::event("orbk"),
        Item::named("rbz").detected(EventTraits::PERSISTENT_STATE),
        Item::signal("rcl", SignalClass::Brief { ms: 500 }),
        REL,
        Item::signal("res", LINE),
        RLC,
        Item::named("sup").applied_as(VARIABLE, Place::Endpoint, Signal::SetupOperator),
        Item::signal("sus", LINE),
        SWK,
    ],
};
