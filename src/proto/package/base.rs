//! B (RFC 3435 appendix B), BA (RFC 3624) and the old M (RFC 2705 6.1.3).

use super::{EventTraits, Item, Package, SignalClass};

pub(super) static B: Package =
    Package { name: "B", version: 0, items: &[Item::named("enf").detected(EventTraits::PLAIN), Item::event("oef"), Item::event("qbo")] };

/// Parameters of audits; no event.
pub(super) static BA: Package = Package { name: "BA", version: 0, items: &[] };

/// An MF digit: 68 ms of tone and as much of silence.
const fn digit(name: &'static str) -> Item {
    Item::event(name).applied(SignalClass::Brief { ms: 136 })
}

/// A KP: 100 ms of tone.
const fn prefix(name: &'static str) -> Item {
    Item::event(name).applied(SignalClass::Brief { ms: 168 })
}

const fn wink(name: &'static str) -> Item {
    Item::event(name).applied(SignalClass::Brief { ms: 200 })
}

const fn seizure(name: &'static str) -> Item {
    Item::event(name).applied(SignalClass::OnOff)
}

pub(super) static M: Package = Package {
    name: "M",
    version: 0,
    items: &[
        digit("0"),
        digit("1"),
        digit("2"),
        digit("3"),
        digit("4"),
        digit("5"),
        digit("6"),
        digit("7"),
        digit("8"),
        digit("9"),
        Item::event("X"),
        Item::event("T"),
        prefix("K0"),
        prefix("K1"),
        prefix("K2"),
        digit("S0"),
        digit("S1"),
        digit("S2"),
        digit("S3"),
        wink("wk"),
        wink("wko"),
        seizure("is"),
        seizure("rs"),
        seizure("us"),
        Item::event("of"),
    ],
};
